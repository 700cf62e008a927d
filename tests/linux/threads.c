/* Threads: making and ending them, waiting for words, signals for one of them, and what a process with several does. */

#include "threads.h"

enum { WAIT = 0, WAKE = 1, REQUEUE = 3, CMP_REQUEUE = 4, WAKE_OP = 5, LOCK_PI = 6, UNLOCK_PI = 7, TRYLOCK_PI = 8 };
enum { WAIT_BITSET = 9, WAKE_BITSET = 10, OWN = 0x80, REALTIME = 0x100 };
enum { BLOCK = 0, UNBLOCK = 1, SETMASK = 2, SIGINFO = 4, RESTART = 0x10000000 };
enum { STACK = 16384, MOST = 8 };

struct time {
    number seconds, nanoseconds;
};

static char stacks[MOST][STACK] __attribute__((aligned(16)));
static volatile int ends[MOST];
static volatile int word, other, steps, order[16];

static number futex(volatile int *at, number operation, number value, number time, volatile int *second, number third) {
    return call(FUTEX, (number)at, operation, value, time, (number)second, third);
}

static number tid(void) { return call(GETTID, 0, 0, 0, 0, 0, 0); }
static number pid(void) { return call(GETPID, 0, 0, 0, 0, 0, 0); }
static void yield(void) { call(SCHED_YIELD, 0, 0, 0, 0, 0, 0); }

/* Starts a thread with a number, whose end `join` awaits. */
static number start(int which, void (*function)(number), number argument) {
    ends[which] = 1;
    return start_thread(function, argument, stacks[which] + STACK, ALL | PARENT_SETTID | CHILD_CLEARTID, &ends[which], 0,
                        &ends[which]);
}

static void join(int which) {
    int value;
    while ((value = ends[which]))
        futex(&ends[which], WAIT, value, 0, 0, 0);
}

/* Lets others run until so many steps have been taken. */
static void until(int wanted) {
    for (int i = 0; i < 100000 && steps < wanted; i++)
        yield();
}

static void nothing(number argument) { (void)argument; }

static void note(number argument) {
    order[steps++] = (int)argument;
}

static volatile number found[4];

static void look(number argument) {
    found[0] = argument;
    found[1] = tid();
    found[2] = pid();
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(found[3]));
}

static void making(void) {
    char *stack = stacks[0] + STACK;
    show("without memory", start_thread(nothing, 0, stack, SIGHAND | SIGCHLD, 0, 0, 0));
    show("without handlers", start_thread(nothing, 0, stack, THREAD | CLONE_VM, 0, 0, 0));
    volatile int id = 0, cleared = 1;
    number thread = start_thread(look, 7, stack, ALL | SETTLS | PARENT_SETTID | CHILD_SETTID | CHILD_CLEARTID, &id,
                                 (void *)0x1234, &cleared);
    show("made", thread > 0 && id == thread);
    while (cleared)
        futex(&cleared, WAIT, cleared, 0, 0, 0);
    show("argument", found[0]);
    show("its number", found[1] == thread && thread != pid());
    show("its process", found[2] == pid());
    show("thread pointer", found[3]);
    show("the first has the process's number", tid() == pid());
    number gone = 0;
    for (int i = 0; i < 1000 && !gone; i++, yield())
        gone = call(TGKILL, pid(), thread, 0, 0, 0, 0);
    show("it has ended", gone);
    for (int which = 0; which < MOST; which++)
        start(which, note, which);
    for (int which = 0; which < MOST; which++)
        join(which);
    int sum = 0;
    for (int which = 0; which < MOST; which++)
        sum += order[which];
    show("sum of all", sum);
    show("wait4 knows no threads", wait_for(-1, 0));
}

static volatile number results[MOST];

static void wait_on_word(number which) {
    steps++;
    results[which] = futex(&word, WAIT | OWN, 5, 0, 0, 0);
    order[steps++] = (int)which;
}

static void wait_for_bits(number which) {
    steps++;
    results[which] = futex(&word, WAIT_BITSET | OWN, 5, 0, 0, 1 << which);
    order[steps++] = (int)which;
}

static void start_waiting(int count, void (*function)(number)) {
    word = 5;
    steps = 0;
    for (int which = 0; which < count; which++) {
        start(which, function, which);
        until(which + 1);
        yield();
    }
}

static void show_order(int from, int count) {
    print("order:");
    for (int i = from; i < from + count; i++) {
        print(" ");
        print_number(order[i]);
    }
    print("\n");
}

static void words(void) {
    struct time none = {0, 0}, some = {0, 2000000}, bad = {0, 1000000000}, negative = {-1, 0};
    word = 5;
    show("another value", futex(&word, WAIT | OWN, 4, 0, 0, 0));
    show("address", futex((int *)((char *)&word + 1), WAIT | OWN, 5, 0, 0, 0));
    show("nowhere", futex((int *)8, WAIT | OWN, 5, 0, 0, 0));
    show("wake nowhere", futex((int *)8, WAKE | OWN, 5, 0, 0, 0));
    show("wake another's nowhere", futex((int *)8, WAKE, 5, 0, 0, 0) < 0);
    show("time", futex(&word, WAIT | OWN, 5, (number)&bad, 0, 0));
    show("negative time", futex(&word, WAIT | OWN, 5, (number)&negative, 0, 0));
    show("time nowhere", futex(&word, WAIT | OWN, 5, 8, 0, 0));
    show("no time", futex(&word, WAIT | OWN, 5, (number)&none, 0, 0));
    show("some time", futex(&word, WAIT | OWN, 5, (number)&some, 0, 0));
    show("a time of the past", futex(&word, WAIT_BITSET | OWN, 5, (number)&some, 0, -1));
    show("the other clock", futex(&word, WAIT_BITSET | OWN | REALTIME, 5, (number)&some, 0, -1));
    show("no bits", futex(&word, WAIT_BITSET | OWN, 5, 0, 0, 0));
    show("wake no bits", futex(&word, WAKE_BITSET | OWN, 5, 0, 0, 0));
    show("clock of a wake", futex(&word, WAKE | OWN | REALTIME, 5, 0, 0, 0));
    show("operation", futex(&word, 77, 5, 0, 0, 0));
    show("nobody waits", futex(&word, WAKE | OWN, 100, 0, 0, 0));
    start_waiting(4, wait_on_word);
    show("wake one", futex(&word, WAKE | OWN, 1, 0, 0, 0));
    until(5);
    show("wake two", futex(&word, WAKE | OWN, 2, 0, 0, 0));
    until(7);
    show("wake all", futex(&word, WAKE | OWN, 0x7fffffff, 0, 0, 0));
    for (int which = 0; which < 4; which++)
        join(which);
    show_order(4, 4);
    show("result", results[0] | results[1] | results[2] | results[3]);
    start_waiting(4, wait_for_bits);
    show("bits 2", futex(&word, WAKE_BITSET | OWN, 10, 0, 0, 4));
    until(5);
    show("bits 0 and 3", futex(&word, WAKE_BITSET | OWN, 10, 0, 0, 9));
    until(7);
    show("the rest", futex(&word, WAKE | OWN, 10, 0, 0, 0));
    for (int which = 0; which < 4; which++)
        join(which);
    show_order(4, 4);
}

static void moving(void) {
    start_waiting(5, wait_on_word);
    other = 0;
    show("another value", futex(&word, CMP_REQUEUE | OWN, 1, 2, &other, 4));
    show("negative", futex(&word, CMP_REQUEUE | OWN, -1, 2, &other, 5));
    show("one woken, two moved", futex(&word, CMP_REQUEUE | OWN, 1, 2, &other, 5));
    until(6);
    show("at the other", futex(&other, WAKE | OWN, 10, 0, 0, 0));
    until(8);
    show("none woken, one moved", futex(&word, REQUEUE | OWN, 0, 1, &other, 0));
    /* Adds 3 to the other word, which was 0, and wakes there, too, since it was less than 1. */
    show("wake and add", futex(&word, WAKE_OP | OWN, 1, 1, &other, 1 << 28 | 2 << 24 | 3 << 12 | 1));
    show("the other word", other);
    for (int which = 0; which < 5; which++)
        join(which);
    other = 6;
    futex(&word, WAKE_OP | OWN, 1, 1, &other, (2 | 8) << 28 | 1 << 24 | 4 << 12 | 1);
    show("with a shifted bit", other);
    futex(&word, WAKE_OP | OWN, 1, 1, &other, 3 << 28 | 1 << 24 | 6 << 12 | 1);
    show("without two bits", other);
    show("unknown operation", futex(&word, WAKE_OP | OWN, 1, 1, &other, 7 << 28));
}

static void take_lock(number which) {
    steps++;
    results[which] = futex(&word, LOCK_PI | OWN, 0, 0, 0, 0);
    order[steps++] = (int)which;
    found[which] = (word & 0x3fffffff) == tid();
    futex(&word, UNLOCK_PI | OWN, 0, 0, 0, 0);
}

static void locks(void) {
    word = 0;
    show("lock", futex(&word, LOCK_PI | OWN, 0, 0, 0, 0));
    show("owner", word == tid());
    show("again", futex(&word, LOCK_PI | OWN, 0, 0, 0, 0));
    show("try again", futex(&word, TRYLOCK_PI | OWN, 0, 0, 0, 0));
    show("unlock", futex(&word, UNLOCK_PI | OWN, 0, 0, 0, 0));
    show("free", word);
    show("unlock again", futex(&word, UNLOCK_PI | OWN, 0, 0, 0, 0));
    word = 0x3ffffff0;
    show("nobody's", futex(&word, LOCK_PI | OWN, 0, 0, 0, 0));
    word = 0;
    futex(&word, LOCK_PI | OWN, 0, 0, 0, 0);
    steps = 0;
    for (int which = 0; which < 3; which++) {
        start(which, take_lock, which);
        until(which + 1);
        yield();
    }
    show("somebody waits", (unsigned)word >> 31);
    show("pass on", futex(&word, UNLOCK_PI | OWN, 0, 0, 0, 0));
    for (int which = 0; which < 3; which++)
        join(which);
    show_order(3, 3);
    show("each has owned it", found[0] && found[1] && found[2]);
    show("free", word & 0x3fffffff);
}

struct lock {
    struct lock *next;
    int word;
};

static struct list {
    struct lock *next;
    number offset;
    struct lock *pending;
} list;

static struct lock one_lock, pending_lock, strange_lock;

static void end_with_locks(number argument) {
    (void)argument;
    int own = (int)tid();
    one_lock.next = &strange_lock;
    strange_lock.next = (struct lock *)&list;
    list = (struct list){&one_lock, sizeof(void *), &pending_lock};
    one_lock.word = own | (int)0x80000000;
    pending_lock.word = own;
    strange_lock.word = 3;
    found[0] = call(SET_ROBUST_LIST, (number)&list, 8, 0, 0, 0, 0);
    found[1] = call(SET_ROBUST_LIST, (number)&list, sizeof list, 0, 0, 0, 0);
    number head = 0, bytes = 0;
    found[2] = call(GET_ROBUST_LIST, 0, (number)&head, (number)&bytes, 0, 0, 0);
    found[3] = head == (number)&list && bytes == 24;
    steps = 1;
    until(2);
}

static void wait_for_lock(number argument) {
    (void)argument;
    int value = one_lock.word;
    steps = 2;
    results[1] = futex(&one_lock.word, WAIT, value, 0, 0, 0);
}

static void robust(void) {
    steps = 0;
    start(0, end_with_locks, 0);
    until(1);
    start(1, wait_for_lock, 0);
    join(0);
    join(1);
    show("list of 8 bytes", found[0]);
    show("list", found[1]);
    show("where it is", found[2] || !found[3]);
    show("its waiter", results[1]);
    show("lock", (unsigned)one_lock.word >> 30);
    show("lock that was being taken", (unsigned)pending_lock.word >> 30);
    show("another's", strange_lock.word);
}

struct action {
    void *handler;
    size flags;
    void *restorer;
    size mask;
};

static volatile number handled_by, handled;

static void count(int signal, int *info, void *context) {
    (void)signal, (void)info, (void)context;
    handled_by = tid();
    handled++;
}

static void handle(int signal, number flags) {
    struct action action = {count, SIGINFO | flags, 0, 0};
    call(RT_SIGACTION, signal, (number)&action, 0, 8, 0, 0);
}

static size only(int signal) { return 1ul << (signal - 1); }
static void mask(number how, size set) { call(RT_SIGPROCMASK, how, (number)&set, 0, 8, 0, 0); }

static void wait_for_signal(number which) {
    mask(UNBLOCK, only(SIGUSR1));
    steps++;
    results[which] = futex(&word, WAIT | OWN, 5, 0, 0, 0);
}

static void take_signal(number which) {
    size set = only(SIGUSR2);
    int info[32];
    steps++;
    results[which] = call(RT_SIGTIMEDWAIT, (number)&set, (number)info, 0, 8, 0, 0);
    found[0] = info[2];
}

static void signals(void) {
    handle(SIGUSR1, 0);
    mask(BLOCK, only(SIGUSR1) | only(SIGUSR2));
    word = 5;
    steps = 0;
    number thread = start(0, wait_for_signal, 0);
    until(1);
    yield();
    call(KILL, pid(), SIGUSR1, 0, 0, 0, 0);
    join(0);
    show("who does not block it", handled_by == thread);
    show("its call", results[0]);
    thread = start(0, take_signal, 0);
    until(2);
    yield();
    show("to a thread of another process", call(TGKILL, pid() + 1, thread, SIGUSR2, 0, 0, 0));
    show("to the thread", call(TGKILL, pid(), thread, SIGUSR2, 0, 0, 0));
    join(0);
    show("taken", results[0]);
    show("code", found[0]);
    call(TKILL, tid(), SIGUSR1, 0, 0, 0, 0);
    size pending = 0;
    call(RT_SIGPENDING, (number)&pending, 8, 0, 0, 0, 0);
    show("pending", (number)pending);
    handled = 0;
    mask(UNBLOCK, only(SIGUSR1) | only(SIGUSR2));
    show("handled by the first", handled == 1 && handled_by == tid());
    handle(SIGUSR1, RESTART);
    steps = 0;
    thread = start(0, wait_for_signal, 0);
    until(1);
    yield();
    call(TGKILL, pid(), thread, SIGUSR1, 0, 0, 0);
    for (int i = 0; i < 100 && handled < 2; i++)
        yield();
    show("handled by the thread", handled_by == thread);
    yield();
    show("which waits again", futex(&word, WAKE | OWN, 1, 0, 0, 0));
    join(0);
    show("its call", results[0]);
}

static void finish_later(number code) {
    until(1);
    for (int i = 0; i < 100; i++)
        yield();
    print("the last thread\n");
    call(EXIT, code, 0, 0, 0, 0, 0);
}

static void run_program(number argument) {
    char *arguments[] = {(char *)argument, "again", 0}, *environment[] = {0};
    call(EXECVE, (number) "/proc/self/exe", (number)arguments, (number)environment, 0, 0, 0);
    call(EXECVE, argument, (number)arguments, (number)environment, 0, 0, 0);
}

static void fork_here(number argument) {
    (void)argument;
    number child = fork();
    if (child == 0)
        call(EXIT_GROUP, tid() == pid() ? 11 : 12, 0, 0, 0, 0, 0);
    int status = 0;
    found[0] = wait_for(child, &status) == child;
    found[1] = status;
}

static volatile int goes_on;

static void go_on_while_a_child_has_the_memory(number argument) {
    (void)argument;
    char *pages = (char *)call(MMAP, 0, 1 << 20, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS, -1, 0);
    for (int at = 0; at < 1 << 20; at += 4096)
        pages[at]++;
    steps = 1;
    while (!goes_on)
        yield();
}

static void processes(char *own) {
    int status;
    number child = fork();
    if (child == 0) {
        steps = 0;
        start(0, finish_later, 5);
        steps = 1;
        call(EXIT, 4, 0, 0, 0, 0, 0);
    }
    wait_for(child, &status);
    show("as its last thread", status);
    child = fork();
    if (child == 0) {
        start(0, run_program, (number)own);
        for (;;)
            yield();
    }
    wait_for(child, &status);
    show("another program", status);
    child = fork();
    if (child == 0) {
        start(0, wait_on_word, 0);
        call(KILL, pid(), SIGKILL, 0, 0, 0, 0);
    }
    wait_for(child, &status);
    show("killed", status);
    start(0, fork_here, 0);
    join(0);
    show("the child of a thread", found[0]);
    show("its status", found[1]);
    steps = goes_on = 0;
    start(0, go_on_while_a_child_has_the_memory, 0);
    char *arguments[] = {own, "child", 0}, *environment[] = {0};
    child = call(CLONE, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0);
    if (child == 0) {
        until(1);
        call(EXECVE, (number)own, (number)arguments, (number)environment, 0, 0, 0);
        call(EXIT_GROUP, 99, 0, 0, 0, 0, 0);
    }
    show("the thread has gone on", steps);
    wait_for(child, &status);
    show("the program's status", status);
    goes_on = 1;
    join(0);
}

static void wait_in_parent(number argument) {
    volatile int *shared = (volatile int *)argument;
    steps = 1;
    results[0] = futex(shared, WAIT, 9, 0, 0, 0);
}

static void across_processes(void) {
    volatile int *shared = (volatile int *)call(MMAP, 0, 4096, PROT_READ | PROT_WRITE, SHARED | ANONYMOUS, -1, 0);
    *shared = 9;
    steps = 0;
    start(0, wait_in_parent, (number)shared);
    until(1);
    yield();
    number child = fork();
    if (child == 0) {
        number woken = 0;
        for (int i = 0; i < 1000 && !woken; i++)
            woken = futex(shared, WAKE, 1, 0, 0, 0);
        exit((int)woken);
    }
    int status;
    wait_for(child, &status);
    join(0);
    show("woken by a child", status >> 8);
    show("result", results[0]);
}

static void counter(number argument) {
    for (int i = 0; i < 1000; i++) {
        int free = 0;
        if (!__atomic_compare_exchange_n(&word, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE))
                futex(&word, WAIT | OWN, 2, 0, 0, 0);
        other++;
        if (i % 16 == argument)
            yield();
        if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
            futex(&word, WAKE | OWN, 1, 0, 0, 0);
    }
}

int program(number count, char **arguments) {
    if (count > 1 && equal(arguments[1], "again", 6)) {
        show("the first thread again", tid() == pid());
        return 21;
    }
    if (count > 1)
        return 31;
    making();
    words();
    moving();
    locks();
    robust();
    signals();
    processes(arguments[0]);
    across_processes();
    word = other = 0;
    for (int which = 0; which < MOST; which++)
        start(which, counter, which);
    for (int which = 0; which < MOST; which++)
        join(which);
    show("counted", other);
    start(0, finish_later, 0);
    return 3;
}
