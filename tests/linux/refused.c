/* What users may not do to processes of other users, and limits that children inherit. */

#include "pty.h"
#include "users.h"

enum { PRLIMIT64 = 261, PROCESS_VM_READV = 270, PROCESS_VM_WRITEV = 271, EMPTY_PATH = 0x1000, NOATIME = 01000000 };
enum { GETFL = 3, SETFL = 4, SETOWN = 8, ASYNC = 020000, SIGIO = 29, SIGXCPU = 24, LIMIT_CPU = 0 };

static number flags(number file, number command, number argument) {
    return call(FCNTL, file, command, argument, 0, 0, 0);
}

/* Starts a user's process that waits for a while. */
static number waiting(number user) {
    number child = fork();
    if (child)
        return child;
    if (user)
        become(user), prctl(SET_DUMPABLE, 1, 0);
    sleep(100000);
    exit(7);
    return 0;
}

/* Kills such a process, and shows which signal has ended it. */
static void show_end(const char *what, number child) {
    int status = 0;
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    wait_for(child, &status);
    show(what, status);
}

/* Makes a process the owner of a pipe's end, and writes to the pipe, so that SIGIO is sent. */
static void point_at(number victim) {
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    show("  owner", flags(ends[0], SETOWN, victim)), show("  flags", flags(ends[0], SETFL, ASYNC));
    show("  byte", put(ends[1], "x"));
    sleep(10);
}

static number victims[2];

static void send_by_file(void) {
    become(1000);
    point_at(victims[0]), point_at(victims[1]);
}

/* SIGIO is sent with the rights of the user who named the owner, as they were then. */
static void send_after_change(void) {
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    show("  owner", flags(ends[0], SETOWN, victims[0])), show("  flags", flags(ends[0], SETFL, ASYNC));
    become(1000);
    show("  byte", put(ends[1], "x"));
    sleep(10);
}

static void signals_by_files(void) {
    victims[0] = waiting(0), victims[1] = waiting(1000);
    sleep(10);
    apart("SIGIO from a user", send_by_file);
    show_end("root's process", victims[0]), show_end("the user's own", victims[1]);
    victims[0] = waiting(0);
    sleep(10);
    apart("SIGIO by a file whose owner was named by root", send_after_change);
    show_end("root's process", victims[0]);
}

static void write_score(const char *text) {
    number file = open("/proc/self/oom_score_adj", RDWR);
    print("  "), print(text);
    show(" gives", file < 0 ? file : put(file, text));
    close(file);
}

static void scores(void) {
    write_score("100"), write_score("50");
    become(1000);
    prctl(SET_DUMPABLE, 1, 0);
    write_score("60"), write_score("55"), write_score("50"), write_score("49"), write_score("-1"), write_score("1001"), write_score("x");
}

static void links(void) {
    number file = open("/tmp/linked", RDWR | CREAT);
    show("  root links a file of no name", call(LINKAT, file, (number)"", AT_FDCWD, (number)"/tmp/one", EMPTY_PATH, 0));
    show("  root links nothing", call(LINKAT, file, (number)"", AT_FDCWD, (number)"/tmp/two", 0, 0));
    call(53, AT_FDCWD, (number)"/tmp", 0777, 0, 0, 0);
    become(1000);
    show("  a user does", call(LINKAT, file, (number)"", AT_FDCWD, (number)"/tmp/two", EMPTY_PATH, 0));
}

static void times(void) {
    number file = open("/tmp/linked", RDONLY), kept = open("/tmp/linked", RDONLY | NOATIME);
    show("  root sets it", flags(file, SETFL, NOATIME)), show("  and has it", flags(kept, GETFL, 0) & NOATIME);
    show("  and not", flags(file, SETFL, 0));
    call(52, file, 0666, 0, 0, 0, 0);
    become(1000);
    show("  a user", flags(file, SETFL, NOATIME)), show("  keeps", flags(kept, SETFL, NOATIME));
    show("  opens", open("/tmp/linked", RDONLY | NOATIME));
    number own = open("/tmp/of-user", RDWR | CREAT);
    show("  of its own", flags(own, SETFL, NOATIME));
}

static number other;

/* Tries to read the `/proc` files and the memory of another user's process. */
static void look(void) {
    static const char *const files[] = {"fd", "fdinfo", "environ", "maps", "stat", "status", "cmdline", "cwd", "exe", "limits"};
    char path[64];
    become(1000);
    for (size i = 0; i < sizeof files / sizeof *files; i++) {
        char *at = path;
        for (const char *part = "/proc/"; *part; part++)
            *at++ = *part;
        char digits[12], *digit = digits;
        for (number rest = other; rest; rest /= 10)
            *digit++ = '0' + rest % 10;
        while (digit > digits)
            *at++ = *--digit;
        *at++ = '/';
        for (const char *part = files[i]; *part; part++)
            *at++ = *part;
        *at = 0;
        number file = open(path, RDONLY);
        print("  "), print(files[i]), show("", file < 0 ? file : 0);
        close(file);
    }
    char here[8] = "";
    number from[2] = {(number)path, 8}, to[2] = {(number)here, 8};
    show("  memory is read", call(PROCESS_VM_READV, other, (number)to, 1, (number)from, 1, 0));
    show("  memory is written", call(PROCESS_VM_WRITEV, other, (number)to, 1, (number)from, 1, 0));
}

/* Tries to take another session's terminal, which only the super-user may do. */
static void terminals(void) {
    int closed = 0, number_of = 0;
    number master = open("/dev/ptmx", RDWR | NOCTTY);
    control(master, LOCK, &closed), control(master, GET_NUMBER, &number_of);
    number side = call(IOCTL, master, PEER, RDWR | NOCTTY, 0, 0, 0);
    number holder = fork();
    if (holder == 0) {
        call(SETSID, 0, 0, 0, 0, 0, 0);
        show("  the first takes it", call(IOCTL, side, TAKE, 0, 0, 0, 0));
        sleep(100000);
    }
    sleep(20);
    for (number user = 1000; user >= 0; user -= 1000) {
        number child = fork();
        if (child == 0) {
            if (user)
                become(user);
            show("  not a leader", call(IOCTL, side, TAKE, 0, 0, 0, 0));
            call(SETSID, 0, 0, 0, 0, 0, 0);
            show("  asks", call(IOCTL, side, TAKE, 0, 0, 0, 0)), show("  insists", call(IOCTL, side, TAKE, 1, 0, 0, 0));
            exit(0);
        }
        wait_for(child, &closed);
    }
    show_end("  the first", holder);
}

/* Children inherit a limit of CPU time, which counts from each child's start. */
static void times_of_children(void) {
    number limit[2] = {1, 5};
    show("  limit", call(PRLIMIT64, 0, LIMIT_CPU, (number)limit, 0, 0, 0));
    number child = fork();
    if (child == 0)
        for (;;)
            ;
    int status = 0;
    wait_for(child, &status);
    show("  the child", status);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    signals_by_files();
    apart("who is to be killed first", scores);
    apart("links to open files", links);
    apart("times that stay", times);
    other = waiting(0);
    sleep(10);
    apart("another's process", look);
    show_end("it", other);
    other = waiting(1000);
    sleep(10);
    apart("a process of one's own", look);
    show_end("it", other);
    apart("terminals", terminals);
    apart("time", times_of_children);
    return 0;
}
