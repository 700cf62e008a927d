/*
 * Who is there: lists the registered names with the programs that registered them, and looks at its own process, all by
 * interfaces, as docs/manual/interfaces.md shows. census NAME waits 30 ms at the server of that name, which must be a clock.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tench/clock.h>
#include <tench/names.h>
#include <tench/procs.h>

#define MILLISECONDS 30

static int list(void)
{
    struct tench_names_next_reply name;
    char last[TENCH_NAMES_MAX_NAME + 1] = "";
    int code;
    while ((code = tench_names_next(tench_server_names(), last, strlen(last), &name)) == TENCH_DONE) {
        struct tench_procs_status_reply owner;
        int known = tench_procs_status(tench_server_procs(), name.second, &owner);
        if (known == TENCH_DONE)
            printf("%s is served by %s\n", name.first, owner.value.name);
        else
            printf("%s: %s\n", name.first, tench_procs_failure(known));
        strcpy(last, name.first);
    }
    /* The list ends so. */
    if (code != TENCH_NAMES_ERROR_UNKNOWN) {
        printf("census: %s\n", tench_names_failure(code));
        return EXIT_FAILURE;
    }
    struct tench_procs_status_reply self;
    if (tench_procs_status(tench_server_procs(), tench_process(), &self) != TENCH_DONE)
        return EXIT_FAILURE;
    const char *state = self.value.state == TENCH_PROCS_STATE_RUNNING ? "runs" : "does not run";
    printf("%s (%lu bytes of name) %s\n", self.value.name, (unsigned long)self.value.name_length, state);
    return EXIT_SUCCESS;
}

static int wait_at(const char *name)
{
    tench_cap clock = tench_slot();
    int code = tench_names_look_up(tench_server_names(), name, strlen(name), clock);
    if (code != TENCH_DONE) {
        printf("census: %s: %s\n", name, tench_names_failure(code));
        tench_drop(clock);
        return EXIT_FAILURE;
    }
    struct tench_clock_time_reply before;
    struct tench_clock_delay_reply after;
    code = tench_clock_time(clock, &before);
    if (code == TENCH_DONE)
        code = tench_clock_delay(clock, before.second * MILLISECONDS / 1000, &after);
    if (code == TENCH_DONE) {
        uint64_t waited = (after.value - before.first) * 1000 / before.second;
        printf("waited %s\n", waited >= MILLISECONDS && waited < 10 * MILLISECONDS ? "as long as told" : "wrongly");
        /* Only for the process server. */
        struct tench_clock_process_ended_reply more;
        code = tench_clock_process_ended(clock, tench_process(), &more);
        printf("to speak for others: %s\n", tench_clock_failure(code));
    } else {
        printf("census: %s: %s\n", name, tench_clock_failure(code));
    }
    tench_drop(clock);
    return code == TENCH_NOT_ALLOWED ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: census [NAME]\n");
        return EXIT_SUCCESS;
    }
    return argc > 1 ? wait_at(argv[1]) : list();
}
