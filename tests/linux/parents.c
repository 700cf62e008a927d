/* Signals at the end of a parent (`PR_SET_PDEATHSIG`): a process's, or the thread that made the child; and when the kernel forgets
them. */

#include "threads.h"

enum { PRCTL = 167, SET = 1, GET = 2, SETRESUID = 147, BLOCK = 0 };

struct time {
    number seconds, nanoseconds;
};

static char stack[16384] __attribute__((aligned(16)));
static volatile int ended;
static char **own;

static number control(number what, number argument) { return call(PRCTL, what, argument, 0, 0, 0, 0); }

static int named(void) {
    int signal = -1;
    control(GET, (number)&signal);
    return signal;
}

/* Waits for a signal, at most for some milliseconds. Returns the signal's number, and stores its sender. */
static number await(number milliseconds, int *from) {
    unsigned long set = 1ul << (SIGUSR1 - 1) | 1ul << (SIGUSR2 - 1);
    struct time time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    int info[32] = {0};
    number signal = call(RT_SIGTIMEDWAIT, (number)&set, (number)info, (number)&time, 8, 0, 0);
    *from = info[4];
    if (signal > 0)
        show("code", info[2]);
    return signal;
}

static void pause_for(number milliseconds) {
    struct time time = {0, milliseconds * 1000000};
    call(NANOSLEEP, (number)&time, 0, 0, 0, 0, 0);
}

/* Runs a function in a process whose parent ends soon, and waits for it. */
static void with_ending_parent(const char *what, void (*function)(number)) {
    int ends[2];
    char byte;
    print(what);
    print(":\n");
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    if (fork() == 0) {
        number parent = call(GETPID, 0, 0, 0, 0, 0, 0);
        if (fork() == 0) {
            function(parent);
            exit(0);
        }
        pause_for(20);
        exit(0);
    }
    call(CLOSE, ends[1], 0, 0, 0, 0, 0);
    call(READ, ends[0], (number)&byte, 1, 0, 0, 0);
    call(CLOSE, ends[0], 0, 0, 0, 0, 0);
    while (wait_for(-1, 0) > 0)
        ;
}

static void shows(number parent) {
    int from;
    show("signal", await(100, &from));
    show("it is the parent's", from == parent);
}

static void asks(number parent) {
    show("asked for", control(SET, SIGUSR1));
    show("named", named());
    shows(parent);
}

static void does_not_ask(number parent) { shows(parent); }

static void takes_back(number parent) {
    control(SET, SIGUSR1);
    control(SET, 0);
    shows(parent);
}

static void becomes_another(number parent) {
    control(SET, SIGUSR1);
    show("the same user", call(SETRESUID, 0, 0, 0, 0, 0, 0));
    show("named", named());
    show("another user", call(SETRESUID, 7, 7, 7, 0, 0, 0));
    show("named", named());
    show("asked for again", control(SET, SIGUSR2));
    shows(parent);
}

static void runs_another(number parent) {
    control(SET, SIGUSR2);
    own[1] = "again";
    own[2] = 0;
    call(EXECVE, (number)own[0], (number)own, 0, 0, 0, 0);
    show("no program", parent);
}

static void makes_a_child(number parent) {
    (void)parent;
    control(SET, SIGUSR1);
    if (fork() == 0) {
        show("a child's", named());
        exit(0);
    }
    wait_for(-1, 0);
}

static volatile int children;

/* Makes a child whose parent, this thread, ends while the process goes on. */
static void make(number argument) {
    number process = call(GETPID, 0, 0, 0, 0, 0, 0);
    (void)argument;
    if (fork() == 0) {
        control(SET, SIGUSR1);
        shows(process);
        show("the process is still the parent", call(GETPPID, 0, 0, 0, 0, 0, 0) == process);
        exit(0);
    }
    children++;
    pause_for(20);
}

/* Asks for the signal from another thread of a child that the first thread made. */
static void ask_elsewhere(number argument) {
    (void)argument;
    show("a thread's", named());
    control(SET, SIGUSR2);
}

static void run_thread(void (*function)(number)) {
    int value;
    ended = 1;
    start_thread(function, 0, stack + sizeof stack, ALL | PARENT_SETTID | CHILD_CLEARTID, &ended, 0, &ended);
    while ((value = ended))
        call(FUTEX, (number)&ended, 0, value, 0, 0, 0);
}

static void asks_elsewhere(number parent) {
    control(SET, SIGUSR1);
    run_thread(ask_elsewhere);
    show("the own", named());
    shows(parent);
}

int program(number count, char **arguments) {
    unsigned long set = 1ul << (SIGUSR1 - 1) | 1ul << (SIGUSR2 - 1);
    static char *words[3];
    words[0] = arguments[0];
    own = words;
    if (count > 1) {
        int from;
        show("named", named());
        show("signal", await(100, &from));
        return 0;
    }
    call(RT_SIGPROCMASK, BLOCK, (number)&set, 0, 8, 0, 0);
    show("at first", named());
    show("no signal", control(SET, 65));
    show("a negative signal", control(SET, -1));
    show("the last signal", control(SET, 64));
    show("named", named());
    show("none", control(SET, 0));
    show("nowhere", control(GET, 8));
    with_ending_parent("a child that asks", asks);
    with_ending_parent("one that does not", does_not_ask);
    with_ending_parent("one that takes it back", takes_back);
    with_ending_parent("one that becomes another user", becomes_another);
    with_ending_parent("one that runs another program", runs_another);
    with_ending_parent("one that has a child", makes_a_child);
    with_ending_parent("one with threads", asks_elsewhere);
    print("a child of a thread:\n");
    run_thread(make);
    wait_for(-1, 0);
    show("children", children);
    return 0;
}
