/* Priorities of processes and threads: how nice they are, and those of their input and output. */

#include "system.h"

enum { SETPRIORITY = 140, GETPRIORITY = 141, SETSCHEDULER = 119, IOPRIO_SET = 30, IOPRIO_GET = 31 };
enum { PROCESS = 0, GROUP = 1, USER = 2, IO_PROCESS = 1, IO_GROUP = 2, IO_USER = 3 };
enum { NONE = 0, REAL_TIME = 1, BEST_EFFORT = 2, IDLE = 3 };

static number of(number class, number level) { return class << 13 | level; }
static number set(number which, number who, number value) { return call(IOPRIO_SET, which, who, value, 0, 0, 0); }
static number get(number which, number who) { return call(IOPRIO_GET, which, who, 0, 0, 0, 0); }
static number nicer(number by) { return call(SETPRIORITY, PROCESS, 0, by, 0, 0, 0); }

static void show_class(const char *what, number value) {
    if (value < 0) {
        show(what, value);
        return;
    }
    print(what);
    show(", class", value >> 13);
    show("  level", value & 0x1fff);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    call(SETPGID, 0, 0, 0, 0, 0, 0);
    show_class("at first", get(IO_PROCESS, 0));
    show_class("of the group", get(IO_GROUP, 0));
    show("best effort", set(IO_PROCESS, 0, of(BEST_EFFORT, 3)));
    show_class("then", get(IO_PROCESS, 0));
    show_class("of the group", get(IO_GROUP, 0));
    show("level 8", set(IO_PROCESS, 0, of(BEST_EFFORT, 8)));
    show("level 8 of real time", set(IO_PROCESS, 0, of(REAL_TIME, 8)));
    show("no class, and a level", set(IO_PROCESS, 0, of(NONE, 1)));
    show("class 4", set(IO_PROCESS, 0, of(4, 0)));
    show("class 7", set(IO_PROCESS, 0, of(7, 0)));
    show("beyond the class", set(IO_PROCESS, 0, of(8, 0)));
    show_class("after that", get(IO_PROCESS, 0));
    show("nobody", set(9, 0, of(BEST_EFFORT, 1)));
    show("named by 0", set(0, 0, of(BEST_EFFORT, 1)));
    show("nobody asked", get(0, 0));
    show("no process", set(IO_PROCESS, 99999, of(BEST_EFFORT, 1)));
    show("no group", get(IO_GROUP, 99999));
    show("both wrong", set(9, 99999, of(BEST_EFFORT, 9)));
    show("best effort again", set(IO_PROCESS, 0, of(BEST_EFFORT, 6)));
    number child = call(CLONE, SIGCHLD, 0, 0, 0, 0, 0);
    if (child == 0) {
        show_class("inherited", get(IO_PROCESS, 0));
        show("idle", set(IO_PROCESS, 0, of(IDLE, 5)));
        show_class("as it was set", get(IO_PROCESS, 0));
        show_class("the best of the group", get(IO_GROUP, 0));
        exit(0);
    }
    call(WAIT4, child, 0, 0, 0, 0, 0);
    show("the group", set(IO_GROUP, 0, of(REAL_TIME, 2)));
    show_class("then", get(IO_PROCESS, call(GETPID, 0, 0, 0, 0, 0, 0)));
    show("none again", set(IO_PROCESS, 0, of(NONE, 0)));
    show_class("then", get(IO_PROCESS, 0));
    show_class("of the group, by what is nice", get(IO_GROUP, 0));
    show("nice", nicer(15));
    show("how nice", call(GETPRIORITY, PROCESS, 0, 0, 0, 0, 0));
    show_class("of the group, then", get(IO_GROUP, 0));
    show("less nice", nicer(-30));
    show("how nice", call(GETPRIORITY, PROCESS, 0, 0, 0, 0, 0));
    show_class("of the group, then", get(IO_GROUP, 0));
    int priority = 0;
    show("runs if nobody else does", call(SETSCHEDULER, 0, 5, (number)&priority, 0, 0, 0));
    show_class("of the group, then", get(IO_GROUP, 0));
    priority = 7;
    show("runs first", call(SETSCHEDULER, 0, 1, (number)&priority, 0, 0, 0));
    show_class("of the group, then", get(IO_GROUP, 0));
    return 0;
}
