/* Counters, timers and signals with descriptors, and many files that are watched. */

#include "system.h"

enum { ADD = 1, DEL = 2, MOD = 3, IN = 1, OUT = 4, ERR = 8, HUP = 0x10, ONESHOT = 1 << 30, EDGE = (int)(1u << 31) };
enum { CLOEXEC = 02000000, NONBLOCK = 04000, SEMAPHORE = 1, ABSTIME = 1, BLOCK = 0 };

struct event {
    unsigned events;
    size data;
};

struct times {
    number interval_seconds, interval_nanoseconds, seconds, nanoseconds;
};

struct poll {
    int descriptor;
    short events, found;
};

static number counter(number value, number flags) { return call(EVENTFD2, value, flags, 0, 0, 0, 0); }
static number get(number file, void *into, size count) { return call(READ, file, (number)into, (number)count, 0, 0, 0); }
static number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }

static number put(number file, size value) {
    return call(WRITE, file, (number)&value, sizeof value, 0, 0, 0);
}

static number poll(number file, int events) {
    struct poll one = {(int)file, (short)events, 0};
    number time[2] = {0, 0};
    number result = call(PPOLL, (number)&one, 1, (number)time, 0, 0, 0);
    return result < 0 ? result : one.found;
}

static number control(number set, number operation, number file, unsigned events, size data) {
    struct event event = {events, data};
    return call(EPOLL_CTL, set, operation, file, (number)&event, 0, 0);
}

/* Shows the events of a set. */
static void show_events(const char *what, number set, int most, int milliseconds) {
    struct event events[8];
    number count = call(EPOLL_PWAIT, set, (number)events, most, milliseconds, 0, 8);
    print(what);
    print(":");
    if (count <= 0) {
        print(" ");
        print_number(count);
    }
    for (number i = 0; i < count; i++) {
        print(" ");
        print_number((number)events[i].data);
        print("=");
        print_number(events[i].events);
    }
    print("\n");
}

static void counters(void) {
    size value = 0;
    char mode[128];
    show("flags", counter(0, 8));
    number file = counter(3, NONBLOCK | CLOEXEC);
    show("a byte too few", get(file, &value, 7));
    show("read", get(file, &value, 8));
    show("value", (number)value);
    show("nothing", get(file, &value, 8));
    show("poll of 0", poll(file, IN | OUT));
    show("write 7 bytes", call(WRITE, file, (number)&value, 7, 0, 0, 0));
    show("add", put(file, 5));
    show("add", put(file, 6));
    show("poll", poll(file, IN | OUT));
    show("the highest", put(file, -1ul));
    show("too much", put(file, -2ul));
    show("room for that", put(file, -2ul - 11));
    show("poll of a full one", poll(file, IN | OUT));
    show("read", get(file, &value, 8));
    show("value", (number)value);
    show("seek", call(LSEEK, file, 3, 0, 0, 0, 0));
    show("read at an offset", call(PREAD64, file, (number)&value, 8, 0, 0, 0));
    show("status", call(FSTAT, file, (number)mode, 0, 0, 0, 0));
    show("mode", *(int *)(mode + 16));
    close(file);
    file = counter(2, SEMAPHORE | NONBLOCK);
    for (int i = 0; i < 3; i++) {
        value = 0;
        show("one of two", get(file, &value, 8));
        show("value", (number)value);
    }
    close(file);
    file = counter(0, 0);
    if (fork() == 0) {
        put(file, 77);
        exit(0);
    }
    show("read what a child writes", get(file, &value, 8));
    show("value", (number)value);
    wait_for(-1, 0);
    close(file);
}

static number settime(number file, number flags, number interval, number first, struct times *old) {
    struct times times = {interval / 1000, interval % 1000 * 1000000, first / 1000, first % 1000 * 1000000};
    return call(TIMERFD_SETTIME, file, flags, (number)&times, (number)old, 0, 0);
}

static void timers(void) {
    size value = 0;
    struct times old = {1, 1, 1, 1};
    show("clock", call(TIMERFD_CREATE, 2, 0, 0, 0, 0, 0));
    show("flags", call(TIMERFD_CREATE, 1, 1, 0, 0, 0, 0));
    number file = call(TIMERFD_CREATE, 1, NONBLOCK, 0, 0, 0, 0);
    show("not set", get(file, &value, 8));
    show("poll", poll(file, IN | OUT));
    show("set", settime(file, 0, 0, 20, &old));
    show("what was set", old.seconds | old.nanoseconds | old.interval_seconds | old.interval_nanoseconds);
    show("gettime", call(TIMERFD_GETTIME, file, (number)&old, 0, 0, 0, 0));
    show("time is left", old.seconds == 0 && old.nanoseconds > 0 && old.nanoseconds <= 20000000);
    show("write", put(file, 1));
    number set = call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0);
    show("watch", control(set, ADD, file, IN, 9));
    show_events("not yet", set, 8, 0);
    show_events("due", set, 8, 1000);
    show("read", get(file, &value, 8));
    show("how often", (number)value);
    show("again", get(file, &value, 8));
    show("every 10 ms", settime(file, 0, 10, 10, 0));
    number rest[2] = {0, 35000000};
    call(NANOSLEEP, (number)rest, 0, 0, 0, 0, 0);
    show("read", get(file, &value, 8));
    show("how often", value == 3);
    show("flags", settime(file, 8, 0, 10, 0));
    struct times bad = {0, 0, 0, 1000000000};
    show("bad time", call(TIMERFD_SETTIME, file, 0, (number)&bad, 0, 0, 0));
    show("stop", settime(file, 0, 0, 0, &old));
    show("interval", old.interval_nanoseconds);
    show_events("stopped", set, 8, 0);
    show("a time of the past", settime(file, ABSTIME, 0, 1, 0));
    show_events("due", set, 8, 100);
    number other = counter(0, 0);
    show("no timer", settime(other, 0, 0, 10, 0));
    show("no descriptor", settime(99, 0, 0, 10, 0));
    close(other);
    close(set);
    close(file);
    file = call(TIMERFD_CREATE, 0, 0, 0, 0, 0, 0);
    settime(file, 0, 0, 5, 0);
    show("read until it is due", get(file, &value, 8));
    close(file);
}

static size only(int signal) { return 1ul << (signal - 1); }

static void signals(void) {
    struct {
        unsigned signal;
        int error, code;
        unsigned process, user, rest[27];
    } info[2];
    size set = only(SIGUSR1) | only(SIGUSR2);
    number own = call(GETPID, 0, 0, 0, 0, 0, 0);
    call(RT_SIGPROCMASK, BLOCK, (number)&set, 0, 8, 0, 0);
    show("size", call(SIGNALFD4, -1, (number)&set, 4, 0, 0, 0));
    show("flags", call(SIGNALFD4, -1, (number)&set, 8, 1, 0, 0));
    number file = call(SIGNALFD4, -1, (number)&set, 8, NONBLOCK, 0, 0);
    show("none", get(file, info, sizeof info));
    show("poll", poll(file, IN));
    call(KILL, own, SIGUSR2, 0, 0, 0, 0);
    call(KILL, own, SIGUSR1, 0, 0, 0, 0);
    show("poll", poll(file, IN));
    show("a byte too few", get(file, info, 127));
    show("read", get(file, info, sizeof info));
    show("first", info[0].signal);
    show("second", info[1].signal);
    show("code", info[0].code);
    show("sender", info[0].process == own);
    show("write", put(file, 1));
    set = only(SIGUSR2);
    show("another set", call(SIGNALFD4, file, (number)&set, 8, 0, 0, 0) == file);
    call(KILL, own, SIGUSR1, 0, 0, 0, 0);
    show("which is not read", get(file, info, sizeof info));
    number watch = call(EPOLL_CREATE1, CLOEXEC, 0, 0, 0, 0, 0);
    control(watch, ADD, file, IN, 1);
    if (fork() == 0) {
        call(KILL, own, SIGUSR2, 0, 0, 0, 0);
        exit(0);
    }
    show_events("a signal", watch, 4, 1000);
    show("read", get(file, info, sizeof info));
    wait_for(-1, 0);
    show("of a counter", call(SIGNALFD4, counter(0, 0), (number)&set, 8, 0, 0, 0));
    set = only(SIGUSR1);
    call(RT_SIGTIMEDWAIT, (number)&set, 0, 0, 8, 0, 0);
    close(watch);
    close(file);
}

static void watching(void) {
    int ends[2], more[2];
    char byte = 0;
    struct event event = {IN, 1};
    show("flags", call(EPOLL_CREATE1, 1, 0, 0, 0, 0, 0));
    number set = call(EPOLL_CREATE1, CLOEXEC, 0, 0, 0, 0, 0);
    call(PIPE2, (number)ends, NONBLOCK, 0, 0, 0, 0);
    show("no set", control(ends[0], ADD, ends[1], IN, 1));
    show("itself", control(set, ADD, set, IN, 1));
    show("no descriptor", control(set, ADD, 99, IN, 1));
    show("nowhere", call(EPOLL_CTL, set, ADD, ends[0], 8, 0, 0));
    show("operation", control(set, 7, ends[0], IN, 1));
    number file = call(OPENAT, AT_FDCWD, (number) "/dev/null", RDWR, 0, 0, 0);
    show("a device without events", control(set, ADD, file, IN, 1));
    close(file);
    show("change what is not there", control(set, MOD, ends[0], IN, 1));
    show("remove what is not there", control(set, DEL, ends[0], IN, 1));
    show("watch", control(set, ADD, ends[0], IN, 10));
    show("again", control(set, ADD, ends[0], IN, 10));
    show("the other end", control(set, ADD, ends[1], OUT, 11));
    show("no room", call(EPOLL_PWAIT, set, (number)&event, 0, 0, 0, 8));
    show("of a pipe", call(EPOLL_PWAIT, ends[0], (number)&event, 1, 0, 0, 8));
    show_events("can be written", set, 8, 0);
    show_events("still", set, 8, 0);
    call(WRITE, ends[1], (number) "ab", 2, 0, 0, 0);
    show_events("both", set, 8, 0);
    show_events("one at a time", set, 1, 0);
    show_events("and the other", set, 1, 0);
    show("only input", control(set, MOD, ends[1], 0, 11));
    show("once", control(set, MOD, ends[0], IN | ONESHOT, 12));
    show_events("once", set, 8, 0);
    show_events("not again", set, 8, 0);
    call(WRITE, ends[1], (number) "c", 1, 0, 0, 0);
    show_events("whatever comes", set, 8, 0);
    control(set, MOD, ends[0], IN | EDGE, 13);
    show_events("as an edge", set, 8, 0);
    show_events("which is over", set, 8, 0);
    get(ends[0], &byte, 1);
    show_events("a read is none", set, 8, 0);
    call(WRITE, ends[1], (number) "d", 1, 0, 0, 0);
    show_events("a write is one", set, 8, 0);
    control(set, MOD, ends[0], IN | EDGE, 14);
    show_events("so is a change of what is wanted", set, 8, 0);
    number copy = call(DUP, ends[0], 0, 0, 0, 0, 0);
    show("a copy", control(set, ADD, copy, IN, 15));
    show_events("the copy", set, 8, 0);
    close(ends[0]);
    call(WRITE, ends[1], (number) "e", 1, 0, 0, 0);
    show_events("the file is open still", set, 8, 0);
    close(copy);
    show_events("and not any more", set, 8, 0);
    call(PIPE2, (number)more, 0, 0, 0, 0, 0);
    number outer = call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0);
    show("a set of sets", control(outer, ADD, set, IN, 20));
    show("a ring", control(set, ADD, outer, IN, 21));
    control(set, ADD, more[0], IN, 22);
    show_events("nothing", outer, 8, 0);
    show("poll", poll(set, IN));
    if (fork() == 0) {
        call(WRITE, more[1], (number) "f", 1, 0, 0, 0);
        exit(0);
    }
    show_events("through the inner set", outer, 8, 1000);
    show("poll", poll(set, IN));
    show_events("the inner set", set, 8, 0);
    wait_for(-1, 0);
    get(more[0], &byte, 1);
    show_events("read", outer, 8, 0);
    close(more[1]);
    show_events("the end", set, 8, 0);
    show_events("the outer set", outer, 8, 0);
    show_events("time", outer, 8, 0);
    close(more[0]);
    show_events("closed", set, 8, 5);
    show_events("nothing", outer, 8, 5);
}

static void lengths(void) {
    char bytes[8192];
    number file = call(OPENAT, AT_FDCWD, (number) "/tmp/length", RDWR | CREAT | TRUNC, 0600, 0, 0);
    show("negative", call(FALLOCATE, file, 0, -1, 10, 0, 0));
    show("nothing", call(FALLOCATE, file, 0, 0, 0, 0, 0));
    show("room", call(FALLOCATE, file, 0, 10, 90, 0, 0));
    show("length", call(LSEEK, file, 0, 2, 0, 0, 0));
    show("beyond", call(FALLOCATE, file, 1, 0, 5000, 0, 0));
    show("length", call(LSEEK, file, 0, 2, 0, 0, 0));
    show("less", call(FALLOCATE, file, 0, 0, 50, 0, 0));
    show("length", call(LSEEK, file, 0, 2, 0, 0, 0));
    memset(bytes, 'x', sizeof bytes);
    call(PWRITE64, file, (number)bytes, sizeof bytes, 0, 0, 0);
    show("hole", call(FALLOCATE, file, 3, 4000, 200, 0, 0));
    call(PREAD64, file, (number)bytes, sizeof bytes, 0, 0, 0);
    int zeros = 0, first = -1;
    for (int i = 0; i < (int)sizeof bytes; i++)
        if (!bytes[i]) {
            first = zeros ? first : i;
            zeros++;
        }
    show("zeros", zeros);
    show("from", first);
    show("hole that is longer", call(FALLOCATE, file, 2, 0, 200, 0, 0));
    show("cut out", call(FALLOCATE, file, 8, 0, 4096, 0, 0));
    close(file);
    file = call(OPENAT, AT_FDCWD, (number) "/tmp/length", RDONLY, 0, 0, 0);
    show("to be read", call(FALLOCATE, file, 0, 0, 50, 0, 0));
    call(UNLINKAT, AT_FDCWD, (number) "/tmp/length", 0, 0, 0, 0);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    counters();
    timers();
    signals();
    watching();
    lengths();
    return 0;
}
