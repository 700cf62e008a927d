/* Timers that send signals, how long processes have run, how they are scheduled; and reading at several places. */

#include "system.h"

enum { REALTIME = 0, MONOTONIC = 1, PROCESS = 2, ABSTIME = 1, BLOCK = 0 };
enum { BY_SIGNAL = 0, NONE = 1, BY_THREAD_ID = 4, SIGINFO = 4 };

struct event {
    number value;
    int signal, notify, thread, rest[11];
};

struct times {
    number interval_seconds, interval_nanoseconds, seconds, nanoseconds;
};

struct time {
    number seconds, nanoseconds;
};

struct action {
    void *handler;
    size flags;
    void *restorer;
    size mask;
};

static volatile int came, code, timer_id;
static volatile number value;

static void note(int signal, int *info, void *context) {
    (void)context;
    came = came * 100 + signal;
    code = info[2];
    timer_id = info[4];
    value = *(number *)(info + 6);
}

static void handle(int signal) {
    struct action action = {note, SIGINFO, 0, 0};
    call(RT_SIGACTION, signal, (number)&action, 0, 8, 0, 0);
}

static void rest(number milliseconds) {
    struct time time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (call(NANOSLEEP, (number)&time, (number)&time, 0, 0, 0, 0) == -4)
        ;
}

static number create(number clock, int notify, int signal, number what, int *id) {
    struct event event = {what, signal, notify, (int)call(GETPID, 0, 0, 0, 0, 0, 0), {0}};
    return call(TIMER_CREATE, clock, (number)&event, (number)id, 0, 0, 0);
}

static number set(int id, number flags, number interval, number first, struct times *old) {
    struct times times = {interval / 1000, interval % 1000 * 1000000, first / 1000, first % 1000 * 1000000};
    return call(TIMER_SETTIME, id, flags, (number)&times, (number)old, 0, 0);
}

static void timers(void) {
    int id = -1, other = -1;
    struct times old = {1, 1, 1, 1};
    handle(SIGALRM);
    handle(SIGUSR1);
    show("clock", create(77, BY_SIGNAL, SIGUSR1, 5, &id));
    show("signal", create(MONOTONIC, BY_SIGNAL, 65, 5, &id));
    show("way", create(MONOTONIC, 9, SIGUSR1, 5, &id));
    show("no timer", set(3, 0, 0, 10, 0));
    show("create", create(MONOTONIC, BY_SIGNAL, SIGUSR1, 0x123456789, &id));
    show("number", id);
    show("without an event", call(TIMER_CREATE, REALTIME, 0, (number)&other, 0, 0, 0));
    show("number", other);
    show("set", set(id, 0, 0, 500, &old));
    show("what was set", old.seconds | old.nanoseconds | old.interval_seconds | old.interval_nanoseconds);
    show("gettime", call(TIMER_GETTIME, id, (number)&old, 0, 0, 0, 0));
    show("time is left", old.seconds == 0 && old.nanoseconds > 0 && old.nanoseconds <= 500000000);
    set(id, 0, 0, 5, 0);
    rest(10);
    show("came", came);
    show("code", code);
    show("timer", timer_id);
    show("value", value == 0x123456789);
    show("over", call(TIMER_GETTIME, id, (number)&old, 0, 0, 0, 0));
    show("nothing is left", old.seconds | old.nanoseconds);
    came = 0;
    set(other, 0, 0, 5, 0);
    rest(10);
    show("came", came);
    show("value is the number", (int)value == other);
    size mask = 1ul << (SIGUSR1 - 1);
    call(RT_SIGPROCMASK, BLOCK, (number)&mask, 0, 8, 0, 0);
    came = 0;
    set(id, 0, 10, 10, 0);
    rest(35);
    show("stop", set(id, 0, 0, 0, &old));
    show("interval", old.interval_nanoseconds);
    show("once", came);
    struct time none = {0, 0};
    int info[32];
    show("take", call(RT_SIGTIMEDWAIT, (number)&mask, (number)info, (number)&none, 8, 0, 0));
    show("it was one", call(RT_SIGTIMEDWAIT, (number)&mask, (number)info, (number)&none, 8, 0, 0));
    struct times bad = {0, 0, 0, 1000000000};
    show("bad time", call(TIMER_SETTIME, id, 0, (number)&bad, 0, 0, 0));
    show("delete", call(TIMER_DELETE, id, 0, 0, 0, 0, 0));
    show("again", call(TIMER_DELETE, id, 0, 0, 0, 0, 0));
    show("to a thread", create(MONOTONIC, BY_THREAD_ID, SIGUSR1, 1, &id));
    set(id, ABSTIME, 0, 1, 0);
    rest(5);
    show("a time of the past", call(RT_SIGTIMEDWAIT, (number)&mask, (number)info, (number)&none, 8, 0, 0));
    show("to nobody", create(MONOTONIC, NONE, 0, 0, &id));
    set(id, 0, 0, 5, 0);
    rest(10);
    call(TIMER_GETTIME, id, (number)&old, 0, 0, 0, 0);
    show("nothing is left", old.seconds | old.nanoseconds);
    int status;
    number child = fork();
    if (child == 0)
        exit(call(TIMER_DELETE, id, 0, 0, 0, 0, 0) == -22 ? 0 : 1);
    wait_for(child, &status);
    show("a child has none", status);
}

/* Works for a while. */
static void work(void) {
    for (volatile int i = 0; i < 3000000; i++)
        ;
}

static number nanoseconds(number clock) {
    struct time time = {0, 0};
    number result = call(CLOCK_GETTIME, clock, (number)&time, 0, 0, 0, 0);
    return result < 0 ? result : time.seconds * 1000000000 + time.nanoseconds;
}

static void usage(void) {
    number before = nanoseconds(PROCESS), rusage[18], ticks[4];
    work();
    show("the process's clock goes on", nanoseconds(PROCESS) > before);
    before = nanoseconds(PROCESS);
    rest(20);
    show("while it runs", nanoseconds(PROCESS) - before < 20000000);
    number by_number = (~0ul << 3 | 2) & 0xffffffff, nobody = (~30000ul << 3 | 2) & 0xffffffff;
    show("its clock by a number", nanoseconds(by_number) > 0);
    show("nobody's clock", nanoseconds(nobody));
    show("its thread's", nanoseconds(3) > 0);
    show("unknown", nanoseconds(100));
    show("who", call(GETRUSAGE, 7, (number)rusage, 0, 0, 0, 0));
    show("own", call(GETRUSAGE, 0, (number)rusage, 0, 0, 0, 0));
    show("something", rusage[0] * 1000000 + rusage[1] + rusage[2] * 1000000 + rusage[3] > 0);
    call(GETRUSAGE, -1, (number)rusage, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        for (int i = 0; i < 8; i++)
            work();
        exit(0);
    }
    show("wait4", call(WAIT4, child, 0, 0, (number)rusage, 0, 0) == child);
    show("the child's", rusage[0] * 1000000 + rusage[1] + rusage[2] * 1000000 + rusage[3] > 0);
    call(GETRUSAGE, -1, (number)rusage, 0, 0, 0, 0);
    show("the children's", rusage[0] * 1000000 + rusage[1] + rusage[2] * 1000000 + rusage[3] > 0);
    show("times", call(TIMES, (number)ticks, 0, 0, 0, 0, 0) > 0);
    show("set a clock that goes by itself", call(CLOCK_SETTIME, MONOTONIC, (number)&(struct time){0, 0}, 0, 0, 0, 0));
}

static void scheduling(void) {
    int priority = 0;
    size processors[16];
    struct time turn;
    show("policy", call(SCHED_GETSCHEDULER, 0, 0, 0, 0, 0, 0));
    show("of nobody", call(SCHED_GETSCHEDULER, 30000, 0, 0, 0, 0, 0));
    show("negative", call(SCHED_GETSCHEDULER, -1, 0, 0, 0, 0, 0));
    show("parameter", call(SCHED_GETPARAM, 0, (number)&priority, 0, 0, 0, 0));
    show("priority", priority);
    show("nowhere", call(SCHED_GETPARAM, 0, 0, 0, 0, 0, 0));
    show("the same", call(SCHED_SETSCHEDULER, 0, 0, (number)&priority, 0, 0, 0));
    show("unknown", call(SCHED_SETSCHEDULER, 0, 77, (number)&priority, 0, 0, 0));
    show("without a priority", call(SCHED_SETSCHEDULER, 0, 1, (number)&priority, 0, 0, 0));
    priority = 1;
    show("with one", call(SCHED_SETSCHEDULER, 0, 0, (number)&priority, 0, 0, 0));
    priority = 100;
    show("too high", call(SCHED_SETSCHEDULER, 0, 1, (number)&priority, 0, 0, 0));
    show("lowest", call(SCHED_GET_PRIORITY_MIN, 1, 0, 0, 0, 0, 0));
    show("highest", call(SCHED_GET_PRIORITY_MAX, 2, 0, 0, 0, 0, 0));
    show("of turns", call(SCHED_GET_PRIORITY_MAX, 0, 0, 0, 0, 0, 0));
    show("of nothing", call(SCHED_GET_PRIORITY_MAX, 77, 0, 0, 0, 0, 0));
    show("turn", call(SCHED_RR_GET_INTERVAL, 0, (number)&turn, 0, 0, 0, 0));
    show("of nobody", call(SCHED_GETAFFINITY, -1, sizeof processors, (number)processors, 0, 0, 0));
    show("processors", call(SCHED_GETAFFINITY, 0, sizeof processors, (number)processors, 0, 0, 0) >= 8);
    show("the first", processors[0] & 1);
    show("a few bytes", call(SCHED_GETAFFINITY, 0, 4, (number)processors, 0, 0, 0));
    processors[0] = 1;
    show("on that", call(SCHED_SETAFFINITY, 0, 8, (number)processors, 0, 0, 0));
    processors[0] = 0;
    show("on none", call(SCHED_SETAFFINITY, 0, 8, (number)processors, 0, 0, 0));
}

/* The machines of these tests start with the year 2026. */
static void wall_clock(void) {
    number hour = 3600 * 1000000000l, before = nanoseconds(REALTIME), after = before + 5000000;
    show("hours since 1970", before / hour);
    show("since the start", nanoseconds(MONOTONIC) / hour);
    struct time until = {after / 1000000000, after % 1000000000};
    show("wait until", call(CLOCK_NANOSLEEP, REALTIME, ABSTIME, (number)&until, 0, 0, 0));
    show("in time", nanoseconds(REALTIME) >= after && nanoseconds(REALTIME) < after + 1000000000);
    int id = -1;
    struct times times = {0, 0, until.seconds + 2, 0}, left = {0, 0, 0, 0};
    create(REALTIME, NONE, 0, 0, &id);
    show("set", call(TIMER_SETTIME, id, ABSTIME, (number)&times, 0, 0, 0));
    show("gettime", call(TIMER_GETTIME, id, (number)&left, 0, 0, 0, 0));
    show("time is left", left.seconds < 2 && (left.seconds | left.nanoseconds) > 0);
}

/* When a file was written last is said by the same clock, of which Linux may use a reading that is a few milliseconds
 * old. */
static void time_of_file(void) {
    enum { WRITTEN = 11 };
    number status[16], before = nanoseconds(REALTIME) - 10000000;
    number file = call(OPENAT, AT_FDCWD, (number) "/tmp/new", RDWR | CREAT | TRUNC, 0600, 0, 0);
    show("status", call(FSTAT, file, (number)status, 0, 0, 0, 0));
    number written = status[WRITTEN] * 1000000000 + status[WRITTEN + 1];
    show("a new file is of now", written >= before && written <= nanoseconds(REALTIME));
    call(CLOSE, file, 0, 0, 0, 0, 0);
    call(UNLINKAT, AT_FDCWD, (number) "/tmp/new", 0, 0, 0, 0);
}

struct part {
    char *base;
    size length;
};

static void several_places(void) {
    char one[4] = "abc", two[8] = "defghij", three[16] = {0};
    number file = call(OPENAT, AT_FDCWD, (number) "/tmp/parts", RDWR | CREAT | TRUNC, 0600, 0, 0);
    struct part parts[2] = {{one, 3}, {two, 7}};
    show("write", call(PWRITEV, file, (number)parts, 2, 5, 0, 0));
    show("position", call(LSEEK, file, 0, 1, 0, 0, 0));
    show("length", call(LSEEK, file, 0, 2, 0, 0, 0));
    parts[0] = (struct part){three, 4};
    parts[1] = (struct part){three + 4, 12};
    show("read", call(PREADV, file, (number)parts, 2, 6, 0, 0));
    show("what", equal(three, "bcdefghij", 9));
    show("negative", call(PREADV, file, (number)parts, 2, -1, 0, 0));
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    show("of a pipe", call(PREADV, ends[0], (number)parts, 2, 0, 0, 0));
    call(LSEEK, file, 3, 0, 0, 0, 0);
    show("at the position", call(PREADV2, file, (number)parts, 1, -1, 0, 0));
    show("moved to", call(LSEEK, file, 0, 1, 0, 0, 0));
    show("at an offset", call(PWRITEV2, file, (number)parts, 1, 20, 0, 6));
    show("not moved", call(LSEEK, file, 0, 1, 0, 0, 0));
    show("negative offset", call(PREADV2, file, (number)parts, 1, -2, 0, 0));
    show("unknown flag", call(PREADV2, file, (number)parts, 1, 0, 0, 1 << 20));
    show("no such file", call(PWRITEV2, 99, (number)parts, 1, 0, 0, 1 << 20));
    show("not to be waited for", call(PREADV2, file, (number)parts, 1, 0, 0, 8));
    call(UNLINKAT, AT_FDCWD, (number) "/tmp/parts", 0, 0, 0, 0);
}

/* Who waits for a time is not forgotten while another process makes one call after the other. */
static void sleep_beside_calls(void) {
    number child = fork(), before = nanoseconds(MONOTONIC);
    while (child == 0)
        call(GETPPID, 0, 0, 0, 0, 0, 0);
    for (int i = 0; i < 5; i++)
        rest(20);
    number passed = (nanoseconds(MONOTONIC) - before) / 1000000;
    show("five times 20 ms beside calls", passed >= 100 && passed < 1000);
    call(KILL, child, 9, 0, 0, 0, 0);
    wait_for(child, 0);
}

/* Who has slept, and wakes another one, goes on first. It has woken that one before it slept, too. */
static void woken_after_sleep(void) {
    int turns[2], said[2];
    char text[4] = "";
    call(PIPE2, (number)turns, 0, 0, 0, 0, 0);
    call(PIPE2, (number)said, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        char turn;
        call(READ, turns[0], (number)&turn, 1, 0, 0, 0);
        call(READ, turns[0], (number)&turn, 1, 0, 0, 0);
        call(WRITE, said[1], (number) "c", 1, 0, 0, 0);
        exit(0);
    }
    rest(10);
    call(WRITE, turns[1], (number) "1", 1, 0, 0, 0);
    rest(100);
    call(WRITE, turns[1], (number) "2", 1, 0, 0, 0);
    call(WRITE, said[1], (number) "p", 1, 0, 0, 0);
    wait_for(child, 0);
    call(READ, said[0], (number)text, 2, 0, 0, 0);
    print("first the parent, then the child: "), print(text), print("\n");
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    timers();
    sleep_beside_calls();
    woken_after_sleep();
    usage();
    scheduling();
    several_places();
    wall_clock();
    time_of_file();
    return 0;
}
