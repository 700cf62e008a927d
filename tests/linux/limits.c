/* Limits of what a process may use, and timers that count how long it runs. */

#include "system.h"

enum { GETRLIMIT = 163, SETRLIMIT = 164, PRLIMIT64 = 261, TRUNCATE = 45 };
enum { CPU = 0, FILE = 1, DATA = 2, STACK = 3, DESCRIPTORS = 7, LOCKED = 8, ALL = 9 };
enum { VIRTUAL = 1, PROFILE = 2, OF_PROCESS = 2, OF_THREAD = 3, MONOTONIC = 1 };
enum { SIGXCPU = 24, SIGXFSZ = 25, SIGVTALRM = 26, SIGPROF = 27, SIGINFO = 4 };
enum { FIXED_NOREPLACE = 0x100000, GROWSDOWN = 0x100, MAY_MOVE = 1 };

struct limit {
    size soft, hard;
};

struct action {
    void *handler;
    size flags;
    void *restorer;
    size mask;
};

struct time {
    number seconds, nanoseconds;
};

static const size NONE = ~0ul;
static volatile int came, code;

static void note(int signal, int *info, void *context) {
    (void)context;
    came = came * 100 + signal;
    code = info[2];
}

static void handle(int signal) {
    struct action action = {note, SIGINFO, 0, 0};
    call(RT_SIGACTION, signal, (number)&action, 0, 8, 0, 0);
}

static number limit(number process, number what, size soft, size hard, struct limit *old) {
    struct limit new = {soft, hard};
    return call(PRLIMIT64, process, what, (number)&new, (number)old, 0, 0);
}

static number soft(number what) {
    struct limit old = {7, 7};
    number result = call(PRLIMIT64, 0, what, 0, (number)&old, 0, 0);
    return result < 0 ? result : (number)old.soft;
}

static number map(number address, size length, number rights, number flags) {
    number result = call(MMAP, address, length, rights, flags | ANONYMOUS, -1, 0);
    return result < 0 && result > -4096 ? result : 0;
}

static number nanoseconds(number clock) {
    struct time time = {0, 0};
    number result = call(CLOCK_GETTIME, clock, (number)&time, 0, 0, 0, 0);
    return result < 0 ? result : time.seconds * 1000000000 + time.nanoseconds;
}

static void work(number milliseconds) {
    for (number end = nanoseconds(OF_PROCESS) + milliseconds * 1000000; nanoseconds(OF_PROCESS) < end;)
        for (volatile int i = 0; i < 10000; i++)
            ;
}

static void setting(void) {
    struct limit old = {1, 2};
    show("which", limit(0, 16, 1, 1, &old));
    show("nobody", limit(12345, FILE, 1, 1, &old));
    show("nobody, and which", limit(12345, 16, 1, 1, &old));
    show("soft above hard", limit(0, FILE, 2, 1, &old));
    show("nothing was written", old.soft == 1 && old.hard == 2);
    show("bad address", call(PRLIMIT64, 0, FILE, 8, 0, 0, 0));
    show("nowhere to write", call(PRLIMIT64, 0, FILE, 0, 8, 0, 0));
    show("too many descriptors", limit(0, DESCRIPTORS, 1, NONE, 0));
    show("set", limit(0, FILE, 5000, 6000, &old));
    show("old", old.soft == NONE && old.hard == NONE);
    show("soft", soft(FILE));
    show("hard", call(GETRLIMIT, FILE, (number)&old, 0, 0, 0, 0) ? -1 : (number)old.hard);
    show("of the own number", call(PRLIMIT64, call(GETPID, 0, 0, 0, 0, 0, 0), FILE, 0, (number)&old, 0, 0));
    struct limit next = {100, NONE};
    show("setrlimit", call(SETRLIMIT, FILE, (number)&next, 0, 0, 0, 0));
    int status, ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        char byte;
        call(CLOSE, ends[1], 0, 0, 0, 0, 0);
        call(READ, ends[0], (number)&byte, 1, 0, 0, 0);
        exit((int)soft(FILE));
    }
    show("of a child", limit(child, FILE, 200, NONE, &old));
    show("its old one", (number)old.soft);
    call(CLOSE, ends[1], 0, 0, 0, 0, 0);
    wait_for(child, &status);
    show("what it has then", status >> 8);
    show("of one that is not there any more", limit(child, FILE, 200, NONE, 0));
    show("the own one stays", soft(FILE));
    limit(0, FILE, NONE, NONE, 0);
    limit(0, DESCRIPTORS, 5, 4096, 0);
    number file;
    for (file = 0; (file = call(DUP, 1, 0, 0, 0, 0, 0)) >= 0;)
        ;
    show("descriptors", file);
    show("dup3", call(DUP3, 1, 5, 0, 0, 0, 0));
    limit(0, DESCRIPTORS, 1024, 4096, 0);
}

static void files(void) {
    static char bytes[3000];
    handle(SIGXFSZ);
    limit(0, FILE, 4000, NONE, 0);
    number file = call(OPENAT, AT_FDCWD, (number) "/tmp/limited", RDWR | CREAT | TRUNC, 0600, 0, 0);
    show("write", call(WRITE, file, (number)bytes, 3000, 0, 0, 0));
    show("as much as may be", call(WRITE, file, (number)bytes, 3000, 0, 0, 0));
    show("nothing came", came);
    show("no more", call(WRITE, file, (number)bytes, 1, 0, 0, 0));
    show("came", came);
    show("code", code);
    show("nothing at all", call(WRITE, file, (number)bytes, 0, 0, 0, 0));
    show("beyond", call(PWRITE64, file, (number)bytes, 10, 5000, 0, 0));
    show("before", call(PWRITE64, file, (number)bytes, 10, 3995, 0, 0));
    came = 0;
    show("truncate to", call(FTRUNCATE, file, 4000, 0, 0, 0, 0));
    show("truncate", call(FTRUNCATE, file, 4001, 0, 0, 0, 0));
    show("came", came);
    show("fallocate", call(FALLOCATE, file, 0, 3000, 1001, 0, 0));
    show("came", came);
    came = 0;
    number append = call(OPENAT, AT_FDCWD, (number) "/tmp/limited", WRONLY | APPEND, 0, 0, 0);
    show("append", call(WRITE, append, (number)bytes, 1, 0, 0, 0));
    show("came", came);
    came = 0;
    call(LSEEK, file, 0, 0, 0, 0, 0);
    number other = call(OPENAT, AT_FDCWD, (number) "/tmp/copied", WRONLY | CREAT | TRUNC, 0600, 0, 0);
    limit(0, FILE, 1000, NONE, 0);
    show("sendfile", call(SENDFILE, other, file, 0, 3000, 0, 0));
    show("again", call(SENDFILE, other, file, 0, 3000, 0, 0));
    show("came", came);
    came = 0;
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    show("a pipe has no length", call(WRITE, ends[1], (number)bytes, 3000, 0, 0, 0));
    show("shorter", call(TRUNCATE, (number) "/tmp/limited", 2000, 0, 0, 0, 0));
    show("nothing came", came);
    limit(0, FILE, NONE, NONE, 0);
}

/* Recurses until so many bytes of the stack are used. */
static int deep(size bytes) {
    volatile char part[1024];
    part[0] = (char)bytes;
    return bytes < sizeof part ? part[0] : deep(bytes - sizeof part) + part[0];
}

static void memory(void) {
    const size MEGABYTE = 1 << 20;
    int status;
    number break_at = call(BRK, 0, 0, 0, 0, 0, 0);
    limit(0, DATA, 4 * MEGABYTE, NONE, 0);
    show("data", map(0, 3 * MEGABYTE, PROT_READ | PROT_WRITE, PRIVATE));
    show("more", map(0, 2 * MEGABYTE, PROT_READ | PROT_WRITE, PRIVATE));
    show("what nobody writes", map(0, 2 * MEGABYTE, PROT_READ, PRIVATE));
    show("what is shared", map(0, 2 * MEGABYTE, PROT_READ | PROT_WRITE, SHARED));
    show("brk", call(BRK, break_at + 2 * (number)MEGABYTE, 0, 0, 0, 0, 0) == break_at);
    limit(0, DATA, NONE, NONE, 0);
    show("brk", call(BRK, break_at + 2 * (number)MEGABYTE, 0, 0, 0, 0, 0) == break_at);
    limit(0, ALL, 64 * MEGABYTE, NONE, 0);
    number place = call(MMAP, 0, 32 * MEGABYTE, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS, -1, 0);
    show("half of all", place > 0);
    show("too much", map(0, 32 * MEGABYTE, PROT_NONE, PRIVATE));
    show("in place of it", map(place, 32 * MEGABYTE, PROT_READ | PROT_WRITE, PRIVATE | FIXED));
    show("longer", call(MREMAP, place, 32 * MEGABYTE, 64 * MEGABYTE, MAY_MOVE, 0, 0));
    show("shorter", call(MREMAP, place, 32 * MEGABYTE, 8 * MEGABYTE, 0, 0, 0) == place);
    show("now there is room", map(0, 32 * MEGABYTE, PROT_NONE, PRIVATE));
    number child = fork();
    if (child == 0)
        exit(map(0, 32 * MEGABYTE, PROT_NONE, PRIVATE) == -12 ? 0 : 1);
    wait_for(child, &status);
    show("a child has the limit", status);
    limit(0, ALL, NONE, NONE, 0);
    for (int megabytes = 1; megabytes <= 3; megabytes += 2) {
        child = fork();
        if (child == 0) {
            limit(0, STACK, 2 * MEGABYTE, NONE, 0);
            deep(megabytes * MEGABYTE);
            exit(0);
        }
        wait_for(child, &status);
        show("a deep stack", status);
    }
}

struct interval {
    number interval_seconds, interval_micros, seconds, micros;
};

static number set(number which, number interval, number first, struct interval *old) {
    struct interval new = {0, interval * 1000, 0, first * 1000};
    return call(SETITIMER, which, (number)&new, (number)old, 0, 0, 0);
}

static void intervals(void) {
    struct interval old = {1, 1, 1, 1};
    handle(SIGVTALRM);
    handle(SIGPROF);
    show("which", set(3, 0, 10, 0));
    show("which", call(GETITIMER, 3, (number)&old, 0, 0, 0, 0));
    show("virtual", set(VIRTUAL, 0, 40, &old));
    show("none before", old.seconds | old.micros | old.interval_micros);
    struct time time = {0, 100000000};
    call(NANOSLEEP, (number)&time, 0, 0, 0, 0, 0);
    show("asleep", came);
    show("get", call(GETITIMER, VIRTUAL, (number)&old, 0, 0, 0, 0));
    show("most is left", old.micros > 20000 && old.micros <= 44000);
    work(80);
    show("came", came);
    show("code", code);
    call(GETITIMER, VIRTUAL, (number)&old, 0, 0, 0, 0);
    show("over", old.seconds | old.micros);
    came = 0;
    show("profile", set(PROFILE, 30, 30, 0));
    int status;
    number child = fork();
    if (child == 0) {
        call(GETITIMER, PROFILE, (number)&old, 0, 0, 0, 0);
        exit((old.seconds | old.micros | old.interval_micros) != 0);
    }
    wait_for(child, &status);
    show("a child has none", status);
    work(200);
    show("stop", set(PROFILE, 0, 0, &old));
    show("interval", old.interval_micros);
    int times = 0;
    for (; came; came /= 100)
        times++;
    show("several times", times >= 3);
}

struct event {
    number value;
    int signal, notify, thread, rest[11];
};

/* Returns the clock that counts how long a process runs. */
static number clock_of(number process) { return -process * 8 - 6; }

static void clocks(void) {
    int id = -1, other = -1;
    struct event event = {5, SIGUSR1, 0, 0, {0}};
    number times[4] = {0, 0, 0, 30000000}, left[4] = {1, 1, 1, 1};
    handle(SIGUSR1);
    came = 0;
    show("of the process", call(TIMER_CREATE, OF_PROCESS, (number)&event, (number)&id, 0, 0, 0));
    show("of the thread", call(TIMER_CREATE, OF_THREAD, (number)&event, (number)&other, 0, 0, 0));
    int nobody = -1;
    show("of nobody", call(TIMER_CREATE, clock_of(12345), (number)&event, (number)&nobody, 0, 0, 0));
    show("its number", nobody);
    show("of a file", call(TIMER_CREATE, clock_of(1) | 1, (number)&event, (number)&nobody, 0, 0, 0));
    show("a coarse one", call(TIMER_CREATE, 6, (number)&event, (number)&nobody, 0, 0, 0));
    show("set", call(TIMER_SETTIME, id, 0, (number)times, (number)left, 0, 0));
    show("was", left[2] | left[3]);
    struct time time = {0, 100000000};
    call(NANOSLEEP, (number)&time, 0, 0, 0, 0, 0);
    show("asleep", came);
    call(TIMER_GETTIME, id, (number)left, 0, 0, 0, 0);
    show("most is left", left[3] > 15000000 && left[3] <= 34000000);
    work(60);
    show("came", came);
    show("code", code);
    came = 0;
    times[3] = nanoseconds(OF_THREAD) + 20000000;
    times[2] = times[3] / 1000000000;
    times[3] %= 1000000000;
    show("at a time", call(TIMER_SETTIME, other, 1, (number)times, 0, 0, 0));
    work(50);
    show("came", came);
    show("delete", call(TIMER_DELETE, other, 0, 0, 0, 0, 0));
    show("sleep of the own thread", call(CLOCK_NANOSLEEP, OF_THREAD, 0, (number)&time, 0, 0, 0));
    show("and by its number", call(CLOCK_NANOSLEEP, -2, 0, (number)&time, 0, 0, 0));
    show("no clock", call(CLOCK_NANOSLEEP, clock_of(12345), 0, (number)&time, 0, 0, 0));
    number child = fork();
    if (child == 0) {
        work(10000);
        exit(1);
    }
    int status;
    time.nanoseconds = 50000000;
    number clock = clock_of(child);
    show("while a child runs", call(CLOCK_NANOSLEEP, clock, 0, (number)&time, 0, 0, 0));
    show("it has run", nanoseconds(clock) >= 50000000 && nanoseconds(clock) < 150000000);
    time.nanoseconds = 10000000;
    show("a time of the past", call(CLOCK_NANOSLEEP, clock, 1, (number)&time, 0, 0, 0));
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    wait_for(child, &status);
}

static void processor(void) {
    int status;
    number child = fork();
    if (child == 0) {
        handle(SIGXCPU);
        came = 0;
        limit(0, CPU, 1, 3, 0);
        while (came < 2424)
            work(10);
        exit((int)(nanoseconds(OF_PROCESS) / 1000000000 * 10 + soft(CPU)));
    }
    wait_for(child, &status);
    show("told twice", status);
    child = fork();
    if (child == 0) {
        limit(0, CPU, 1, 1, 0);
        work(10000);
        exit(1);
    }
    wait_for(child, &status);
    show("and ended", status);
    child = fork();
    if (child == 0) {
        limit(0, CPU, 1, 5, 0);
        work(10000);
        exit(1);
    }
    wait_for(child, &status);
    show("told and not asked", status);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    setting();
    files();
    memory();
    intervals();
    clocks();
    processor();
    return 0;
}
