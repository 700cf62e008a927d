/* Signals: handlers, what is blocked, what is interrupted, stops. */

#include "system.h"

enum { IGNORE = 1, BLOCK = 0, UNBLOCK = 1, SETMASK = 2 };
enum { SIGINFO = 4, ONSTACK = 0x08000000, RESTART = 0x10000000, NODEFER = 0x40000000 };
enum { RESETHAND = (int)0x80000000 };
enum { WNOHANG = 1, WUNTRACED = 2, WCONTINUED = 8 };

struct action {
    void *handler;
    size flags;
    void *restorer;
    size mask;
};

struct time {
    number seconds, nanoseconds;
};

static volatile int came, last_code, nested, deepest, raised;
static volatile number last_sender, last_address, stack_pointer;

static void count_it(int signal, int *info, void *context) {
    (void)context;
    came = came * 100 + signal;
    last_code = info[2];
    last_sender = info[4];
    last_address = *(number *)(info + 4);
    stack_pointer = (number)__builtin_frame_address(0);
}

static size only(int signal) { return 1ul << (signal - 1); }

static number handle(int signal, void *handler, number flags, size mask) {
    struct action action = {handler, (size)(unsigned)flags | SIGINFO, 0, mask};
    return call(RT_SIGACTION, signal, (number)&action, 0, 8, 0, 0);
}

static number mask(number how, size set) { return call(RT_SIGPROCMASK, how, (number)&set, 0, 8, 0, 0); }
static number pid(void) { return call(GETPID, 0, 0, 0, 0, 0, 0); }
static number raise(int signal) { return call(KILL, pid(), signal, 0, 0, 0, 0); }

static int taken(void) {
    int value = came;
    came = 0;
    return value;
}

static void handlers(void) {
    show("handle", handle(SIGUSR1, count_it, 0, 0));
    show("kill", raise(SIGUSR1));
    show("came", taken());
    show("code", last_code);
    show("sender is the process", last_sender == pid());
    show("tgkill", call(TGKILL, pid(), pid(), SIGUSR1, 0, 0, 0));
    show("came", taken());
    show("code", last_code);
    show("kill cannot be handled", handle(SIGKILL, count_it, 0, 0));
    show("signal 65", handle(65, count_it, 0, 0));
    show("signal 0", call(KILL, pid(), 0, 0, 0, 0, 0));
    show("kill with signal 65", call(KILL, pid(), 65, 0, 0, 0, 0));
    show("nobody there", call(KILL, 30000, SIGUSR1, 0, 0, 0, 0));
    struct action action;
    call(RT_SIGACTION, SIGUSR1, 0, (number)&action, 8, 0, 0);
    show("the action is read", action.handler == (void *)count_it && action.flags == SIGINFO);
    show("size", call(RT_SIGACTION, SIGUSR1, 0, (number)&action, 4, 0, 0));
    handle(SIGUSR1, count_it, RESETHAND, 0);
    raise(SIGUSR1);
    call(RT_SIGACTION, SIGUSR1, 0, (number)&action, 8, 0, 0);
    show("once only", action.handler == 0 && taken() == SIGUSR1);
}

static void blocking(void) {
    size set = 0;
    handle(SIGUSR1, count_it, 0, 0);
    handle(SIGUSR2, count_it, 0, 0);
    handle(34, count_it, 0, 0);
    show("block", mask(BLOCK, only(SIGUSR1) | only(SIGUSR2) | only(34) | only(SIGKILL)));
    raise(SIGUSR2);
    raise(SIGUSR2);
    raise(SIGUSR1);
    raise(34);
    raise(34);
    show("came", taken());
    call(RT_SIGPENDING, (number)&set, 8, 0, 0, 0, 0);
    show("pending", set == (only(SIGUSR1) | only(SIGUSR2) | only(34)));
    show("unblock", mask(UNBLOCK, only(SIGUSR1)));
    show("came", taken());
    mask(UNBLOCK, only(34));
    show("each real-time signal", taken());
    struct time none = {0, 0};
    int info[32];
    set = only(SIGUSR2);
    show("take it", call(RT_SIGTIMEDWAIT, (number)&set, (number)info, (number)&none, 8, 0, 0));
    show("which", info[0]);
    show("no more", call(RT_SIGTIMEDWAIT, (number)&set, (number)info, (number)&none, 8, 0, 0));
    show("how", call(RT_SIGPROCMASK, 5, (number)&set, 0, 8, 0, 0));
    mask(SETMASK, ~0ul);
    call(RT_SIGPROCMASK, 0, 0, (number)&set, 8, 0, 0);
    show("two cannot be blocked", set == ~(only(SIGKILL) | only(SIGSTOP)));
    mask(SETMASK, 0);
}

static void nest(int signal, int *info, void *context) {
    (void)info;
    (void)context;
    nested++;
    if (nested > deepest)
        deepest = nested;
    if (raised++ < 3)
        raise(signal);
    nested--;
}

static void nesting(void) {
    handle(SIGUSR1, nest, 0, 0);
    raise(SIGUSR1);
    show("a handler is not interrupted by its own signal", deepest);
    deepest = raised = 0;
    handle(SIGUSR1, nest, NODEFER, 0);
    raise(SIGUSR1);
    show("unless it wants that", deepest);
}

static void registers_stay(void) {
    handle(SIGUSR1, count_it, 0, 0);
    register number kept __asm__("x20") = 1234;
    register double value __asm__("d8");
    __asm__ volatile("fmov d8, #5.0" : "=w"(value));
    __asm__ volatile("" : "+r"(kept));
    raise(SIGUSR1);
    __asm__ volatile("" : "+r"(kept));
    number whole;
    __asm__ volatile("fcvtzs %0, d8" : "=r"(whole));
    show("registers stay", kept * 10 + whole);
    taken();
}

static char other_stack[16384];

static void other_stacks(void) {
    struct {
        void *base;
        int flags;
        size length;
    } stack = {other_stack, 0, 1000}, old;
    show("too small a stack", call(SIGALTSTACK, (number)&stack, 0, 0, 0, 0, 0));
    stack.length = sizeof other_stack;
    show("stack", call(SIGALTSTACK, (number)&stack, 0, 0, 0, 0, 0));
    handle(SIGUSR1, count_it, ONSTACK, 0);
    raise(SIGUSR1);
    show("the handler ran there", stack_pointer > (number)other_stack && stack_pointer < (number)other_stack + 16384);
    handle(SIGUSR1, count_it, 0, 0);
    raise(SIGUSR1);
    show("and here", stack_pointer > (number)other_stack && stack_pointer < (number)other_stack + 16384);
    call(SIGALTSTACK, 0, (number)&old, 0, 0, 0, 0);
    show("it is as it was", old.base == other_stack && old.flags == 0 && old.length == 16384);
    stack.flags = 2;
    call(SIGALTSTACK, (number)&stack, 0, 0, 0, 0, 0);
    taken();
}

static volatile number *bad;

static void mend(int signal, int *info, void *context) {
    (void)context;
    came = came * 100 + signal;
    last_code = info[2];
    last_address = *(number *)(info + 4);
    call(MPROTECT, (number)bad, 4096, PROT_READ | PROT_WRITE, 0, 0, 0);
    call(MMAP, (number)bad, 4096, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS | FIXED, -1, 0);
}

static void skip(int signal, int *info, void *context) {
    (void)info;
    came = came * 100 + signal;
    /* The program counter. */
    ((number *)((char *)context + 176))[33] += 4;
}

static void faults(void) {
    bad = (number *)0x20000000;
    handle(SIGSEGV, mend, 0, 0);
    *bad = 7;
    show("nothing was mapped", taken());
    show("code", last_code);
    show("address", last_address == 0x20000000);
    show("the store was made", *bad);
    call(MPROTECT, (number)bad, 4096, PROT_READ, 0, 0, 0);
    *bad = 8;
    show("not writable", taken());
    show("code", last_code);
    show("the store was made", *bad);
    handle(SIGILL, skip, 0, 0);
    __asm__ volatile(".inst 0");
    show("no instruction", taken());
    int status;
    number child = fork();
    if (child == 0) {
        mask(BLOCK, only(SIGSEGV));
        *(volatile int *)8 = 1;
        exit(0);
    }
    wait_for(child, &status);
    show("a fault cannot be blocked", status);
    call(MUNMAP, (number)bad, 4096, 0, 0, 0, 0);
}

/* A child that sends signals after a while. */
static number later(int signal, int count) {
    number parent = pid();
    number child = fork();
    if (child == 0) {
        for (int i = 0; i < count; i++) {
            struct time time = {0, 3000000};
            call(NANOSLEEP, (number)&time, 0, 0, 0, 0, 0);
            call(KILL, parent, signal, 0, 0, 0, 0);
        }
        exit(0);
    }
    return child;
}

static void interruptions(void) {
    int ends[2];
    char byte;
    struct time time = {100, 0}, left = {0, 0};
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    handle(SIGUSR1, count_it, 0, 0);
    number child = later(SIGUSR1, 1);
    show("read is interrupted", call(READ, ends[0], (number)&byte, 1, 0, 0, 0));
    show("came", taken());
    wait_for(child, 0);
    child = later(SIGUSR1, 1);
    show("sleep is interrupted", call(NANOSLEEP, (number)&time, (number)&left, 0, 0, 0, 0));
    show("time is left", left.seconds == 99 && taken() == SIGUSR1);
    wait_for(child, 0);
    handle(SIGUSR1, count_it, RESTART, 0);
    child = fork();
    if (child == 0) {
        struct time moment = {0, 3000000};
        call(NANOSLEEP, (number)&moment, 0, 0, 0, 0, 0);
        call(KILL, call(GETPPID, 0, 0, 0, 0, 0, 0), SIGUSR1, 0, 0, 0, 0);
        call(NANOSLEEP, (number)&moment, 0, 0, 0, 0, 0);
        call(WRITE, ends[1], (number) "x", 1, 0, 0, 0);
        exit(0);
    }
    show("read goes on", call(READ, ends[0], (number)&byte, 1, 0, 0, 0));
    show("came", taken());
    show("wait goes on", wait_for(child, 0) == child);
    mask(BLOCK, only(SIGUSR1));
    child = later(SIGUSR1, 1);
    size none = 0, set = 0;
    show("suspend", call(RT_SIGSUSPEND, (number)&none, 8, 0, 0, 0, 0));
    show("came", taken());
    call(RT_SIGPROCMASK, 0, 0, (number)&set, 8, 0, 0);
    show("blocked again", set == only(SIGUSR1));
    mask(SETMASK, 0);
    wait_for(child, 0);
    struct {
        number interval[2], first[2];
    } timer = {{0, 0}, {0, 200000}}, rest;
    handle(SIGALRM, count_it, 0, 0);
    show("timer", call(SETITIMER, 0, (number)&timer, 0, 0, 0, 0));
    show("sleep until then", call(NANOSLEEP, (number)&time, 0, 0, 0, 0, 0));
    show("came", taken());
    call(GETITIMER, 0, (number)&rest, 0, 0, 0, 0);
    show("it is over", rest.first[0] + rest.first[1]);
    call(CLOSE, ends[0], 0, 0, 0, 0, 0);
    call(CLOSE, ends[1], 0, 0, 0, 0, 0);
}

static void children(void) {
    handle(SIGCHLD, count_it, 0, 0);
    number child = fork();
    if (child == 0)
        exit(3);
    while (!came)
        call(SCHED_YIELD, 0, 0, 0, 0, 0, 0);
    show("a child's end", taken());
    show("code", last_code);
    show("it is the child's", last_sender == child);
    wait_for(child, 0);
    struct action ignored = {(void *)IGNORE, 0, 0, 0}, standard = {0, 0, 0, 0};
    call(RT_SIGACTION, SIGCHLD, (number)&ignored, 0, 8, 0, 0);
    child = fork();
    if (child == 0)
        exit(3);
    show("children that nobody wants", wait_for(child, 0));
    call(RT_SIGACTION, SIGCHLD, (number)&standard, 0, 8, 0, 0);
}

static void stops(void) {
    int status = 0;
    struct time moment = {0, 5000000};
    number child = fork();
    if (child == 0) {
        for (;;)
            call(SCHED_YIELD, 0, 0, 0, 0, 0, 0);
    }
    call(KILL, child, SIGTSTP, 0, 0, 0, 0);
    call(NANOSLEEP, (number)&moment, 0, 0, 0, 0, 0);
    show("nobody would let it go on", call(WAIT4, child, (number)&status, WUNTRACED | WNOHANG, 0, 0, 0));
    call(SETPGID, child, child, 0, 0, 0, 0);
    show("stop", call(KILL, child, SIGSTOP, 0, 0, 0, 0));
    show("it stopped", call(WAIT4, child, (number)&status, WUNTRACED, 0, 0, 0) == child);
    show("status", status);
    show("nothing new", call(WAIT4, child, (number)&status, WUNTRACED | WNOHANG, 0, 0, 0));
    show("go on", call(KILL, child, SIGCONT, 0, 0, 0, 0));
    show("it goes on", call(WAIT4, child, (number)&status, WCONTINUED, 0, 0, 0) == child);
    show("status", status);
    call(KILL, child, SIGTSTP, 0, 0, 0, 0);
    call(WAIT4, child, (number)&status, WUNTRACED, 0, 0, 0);
    show("status", status);
    show("end it while it is stopped", call(KILL, child, SIGTERM, 0, 0, 0, 0));
    show("it does not end yet", call(WAIT4, child, (number)&status, WNOHANG, 0, 0, 0));
    call(KILL, child, SIGCONT, 0, 0, 0, 0);
    wait_for(child, &status);
    show("now it does", status);
    child = fork();
    if (child == 0) {
        struct time time = {1000, 0};
        call(NANOSLEEP, (number)&time, 0, 0, 0, 0, 0);
        exit(0);
    }
    call(KILL, child, SIGSTOP, 0, 0, 0, 0);
    call(WAIT4, child, (number)&status, WUNTRACED, 0, 0, 0);
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    wait_for(child, &status);
    show("kill ends a stopped one", status);
}

/* Does something with an open file. */
static number control(number file, number command, number argument) {
    return call(FCNTL, file, command, argument, 0, 0, 0);
}

/* Lets the owner of a file's description get a signal when it can be read, and not any more. */
static void own(const char *what, const int *ends) {
    enum { SETFL = 4, SETOWN = 8, ASYNC = 020000, FIOASYNC = 0x5452 };
    int on = 1;
    print(what);
    show(" has the owner", control(ends[0], SETOWN, pid()));
    call(WRITE, ends[1], (number) "x", 1, 0, 0, 0);
    show("nobody asked", taken());
    show("ask", call(IOCTL, ends[0], FIOASYNC, (number)&on, 0, 0, 0));
    show("flags", control(ends[0], 3, 0) & ASYNC);
    call(WRITE, ends[1], (number) "x", 1, 0, 0, 0);
    show("came", taken());
    show("code", last_code);
    show("do not ask", control(ends[0], SETFL, 0));
    call(WRITE, ends[1], (number) "x", 1, 0, 0, 0);
    show("came", taken());
    show("ask again", control(ends[0], SETFL, ASYNC));
    call(CLOSE, ends[1], 0, 0, 0, 0, 0);
    show("the other end is closed", taken());
    call(CLOSE, ends[0], 0, 0, 0, 0, 0);
}

static void owners(void) {
    enum { SIGIO = 29 };
    enum { SETOWN = 8, GETOWN = 9, SETSIG = 10, GETSIG = 11, SETOWN_EX = 15, GETOWN_EX = 16, FIOASYNC = 0x5452 };
    int ends[2], record[2], on = 1;
    handle(SIGIO, count_it, 0, 0);
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    show("owner", control(ends[0], GETOWN, 0));
    show("kind", control(ends[0], GETOWN_EX, (number)record) * 1000 + record[0] * 100 + record[1]);
    show("nobody", control(ends[0], SETOWN, 30000));
    show("no group", control(ends[0], SETOWN, -30000));
    show("group", control(ends[0], SETOWN, -call(GETPGID, 0, 0, 0, 0, 0, 0)));
    show("owner", control(ends[0], GETOWN, 0) == -call(GETPGID, 0, 0, 0, 0, 0, 0));
    for (int kind = 0; kind < 4; kind++) {
        record[0] = kind;
        record[1] = pid();
        show("owner of a kind", control(ends[0], SETOWN_EX, (number)record));
        control(ends[0], GETOWN_EX, (number)record);
        show("kind", record[0]);
    }
    show("signal", control(ends[0], GETSIG, 0));
    show("no such signal", control(ends[0], SETSIG, 65));
    show("nobody any more", control(ends[0], SETOWN, 0));
    show("owner", control(ends[0], GETOWN, 0));
    own("a pipe", ends);
    call(SOCKETPAIR, 1, 1, 0, (number)ends, 0, 0);
    own("a socket", ends);
    number counter = call(EVENTFD2, 0, 0, 0, 0, 0, 0);
    show("of a counter", call(IOCTL, counter, FIOASYNC, (number)&on, 0, 0, 0));
    show("nowhere", call(IOCTL, counter, FIOASYNC, 8, 0, 0, 0));
    on = 0;
    show("as it is", call(IOCTL, counter, FIOASYNC, (number)&on, 0, 0, 0));
    call(CLOSE, counter, 0, 0, 0, 0, 0);
}

int program(number count, char **arguments) {
    (void)count;
    (void)arguments;
    handlers();
    blocking();
    nesting();
    registers_stay();
    other_stacks();
    faults();
    interruptions();
    children();
    stops();
    owners();
    return 0;
}
