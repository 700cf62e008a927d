/* Measures costs of calls in instructions, and prints `figure: NAME_WHERE INSTRUCTIONS` for each. The machine's time must advance
by a nanosecond with each instruction, so that its counter counts instructions. A note names calls that the system lacks. */

#pragma once

#include "system.h"

enum { ENOSYS = 38, PAGE = 4096, PAGES = 1024, NO_LARGE_PAGES = 15 };

static uint64_t now(void) {
    uint64_t value;
    __asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}

static uint64_t instructions_per_tick(void) {
    uint64_t frequency;
    __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
    return 1000000000 / frequency;
}

/* The ticks that `rounds` repetitions of `what` take. */
#define TICKS(rounds, what)                                                                                            \
    ({                                                                                                                 \
        uint64_t begin = now();                                                                                        \
        for (number round = 0; round < (rounds); round++) {                                                            \
            what;                                                                                                      \
            __asm__ volatile("" ::: "memory");                                                                         \
        }                                                                                                              \
        (number)(now() - begin);                                                                                       \
    })

/* Defines a function that returns the ticks of `rounds` repetitions of `what`, or the first one's error. */
#define COST(name, what)                                                                                               \
    static number name(number rounds) {                                                                                \
        number first = (what);                                                                                         \
        return first < 0 ? first : TICKS(rounds, (void)(what));                                                        \
    }

static const char *here, *file_name = "/tmp/costs";
static number file, zero, null, self;
static char page[PAGE];
static struct { int file; short events, returned; } polled;
static number time[2], mask[1];

struct cost {
    const char *name;
    number (*ticks)(number rounds);
    number rounds;
};

static void prepare(const char *name) {
    here = name;
    file = call(OPENAT, AT_FDCWD, (number)file_name, RDWR | CREAT | TRUNC, 0600, 0, 0);
    call(WRITE, file, (number)page, PAGE, 0, 0, 0);
    zero = call(OPENAT, AT_FDCWD, (number)"/dev/zero", RDONLY, 0, 0, 0);
    null = call(OPENAT, AT_FDCWD, (number)"/dev/null", WRONLY, 0, 0, 0);
    polled.file = (int)zero, polled.events = 1;
    self = call(GETPID, 0, 0, 0, 0, 0, 0);
}

/* Measures the costs of all calls of a table. Returns how many calls have failed. */
static number measure(const struct cost *all, size count, const char *where) {
    number empty = 0, failed = 0;
    for (size i = 0; i < count; i++) {
        number rounds = all[i].rounds, warm = all[i].ticks(rounds / 10);
        number ticks = warm < 0 ? warm : all[i].ticks(rounds);
        if (ticks >= 0) {
            number instructions = (ticks * (number)instructions_per_tick() + rounds / 2) / rounds;
            if (i == 0)
                empty = instructions;
            print("figure: ");
            print(all[i].name);
            print("_");
            print(where);
            print(" ");
            print_number(i ? instructions - empty : empty);
            print("\n");
        } else {
            print("note: ");
            print(all[i].name);
            print(ticks == -ENOSYS ? ": the system has no such call\n" : ": failed\n");
            failed += ticks != -ENOSYS;
        }
    }
    return failed;
}
#define MEASURE(all, where) measure(all, sizeof all / sizeof *all, where)
