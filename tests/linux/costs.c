/* What calls, faults and signals cost, in instructions: prints `figure: NAME_WHERE INSTRUCTIONS` for each, where WHERE
   is the argument. The machine must count instructions as nanoseconds, so that its counter counts them. What the system
   does not have is named in a note. */

#include "measure.h"

enum { SIGINFO = 4 };
/* Where the interrupted program counter is in what a signal's handler gets as its third argument. */
enum { PROGRAM_COUNTER = 440 };

COST(empty_loop, 0)

#define ROW(name) name
#include "costs.h"
#undef ROW

static number wait(number child) { return call(WAIT4, child, 0, 0, 0, 0, 0); }
static number protect(number at, number how) { return call(MPROTECT, at, PAGE, how, 0, 0, 0); }

/* A page becomes read-only and writable again, and is written. */
static number mprotect_touch(number rounds) {
    number area = map(1, PRIVATE);
    number writable = PROT_READ | PROT_WRITE;
    number ticks = TICKS(rounds, (protect(area, PROT_READ), protect(area, writable), *(volatile char *)area = 1));
    unmap(area, 1);
    return ticks;
}

static number touch(number area, number pages) { return TICKS(pages, *(volatile char *)(area + round * PAGE) = 1); }

static number anonymous_fault(number rounds) {
    number area = map(rounds, PRIVATE), ticks = touch(area, rounds);
    unmap(area, rounds);
    return ticks;
}

/* Pages that a parent and its child share: the child writes each and so gets a copy, or then the parent writes each,
   which is its own by then. */
static number copy_on_write(number rounds, int of_the_parent) {
    number area = map(rounds, PRIVATE), result = map(1, SHARED), ticks;
    touch(area, rounds);
    number child = fork();
    if (child == 0) {
        *(volatile number *)result = touch(area, rounds);
        call(EXIT_GROUP, 0, 0, 0, 0, 0, 0);
    }
    if (child > 0)
        wait(child);
    ticks = of_the_parent ? touch(area, rounds) : *(volatile number *)result;
    unmap(area, rounds);
    unmap(result, 1);
    return child < 0 ? child : ticks;
}

static number cow_copy(number rounds) { return copy_on_write(rounds, 0); }
static number cow_reuse(number rounds) { return copy_on_write(rounds, 1); }

static void handle(number signal, void *information, char *context) {
    (void)information;
    if (signal == SIGSEGV)
        *(uint64_t *)(context + PROGRAM_COUNTER) += 4;
}

/* A system that cannot say which signals wait has no handlers: a signal would end this program. */
static number handle_with(number signal, void (*handler)(number, void *, char *)) {
    number action[] = {(number)handler, SIGINFO, 0, 0}, waiting, error;
    error = call(RT_SIGPENDING, (number)&waiting, 8, 0, 0, 0, 0);
    return error < 0 ? error : call(RT_SIGACTION, signal, (number)action, 0, 8, 0, 0);
}

static number signal_self(number rounds) {
    number error = handle_with(SIGUSR1, handle);
    return error < 0 ? error : TICKS(rounds, call(KILL, self, SIGUSR1, 0, 0, 0, 0));
}

static number protection_fault(number rounds) {
    number error = handle_with(SIGSEGV, handle), area = map(1, PRIVATE);
    protect(area, PROT_READ);
    number ticks = error < 0 ? error : TICKS(rounds, __asm__ volatile("strb wzr, [%0]" ::"r"(area) : "memory"));
    unmap(area, 1);
    return ticks;
}

static number fork_exit(void) {
    number child = fork();
    if (child == 0)
        call(EXIT_GROUP, 0, 0, 0, 0, 0, 0);
    return child < 0 ? child : wait(child);
}

static number fork_exec(void) {
    char *arguments[] = {(char *)here, 0}, *variables[] = {0};
    number child = fork();
    if (child == 0) {
        call(EXECVE, (number)here, (number)arguments, (number)variables, 0, 0, 0);
        call(EXIT_GROUP, 1, 0, 0, 0, 0, 0);
    }
    return child < 0 ? child : wait(child);
}

COST(fork_exit_wait, fork_exit())
COST(fork_exec_wait, fork_exec())

/* A byte goes to a child and comes back. */
static number pipe_round_trip(number rounds) {
    int there[2], back[2];
    number error = call(PIPE2, (number)there, 0, 0, 0, 0, 0);
    if (error < 0)
        return error;
    call(PIPE2, (number)back, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        close(there[1]);
        while (call(READ, there[0], (number)page, 1, 0, 0, 0) == 1)
            call(WRITE, back[1], (number)page, 1, 0, 0, 0);
        call(EXIT_GROUP, 0, 0, 0, 0, 0, 0);
    }
    number ticks = child < 0 ? child
                             : TICKS(rounds, (call(WRITE, there[1], (number)page, 1, 0, 0, 0),
                                              call(READ, back[0], (number)page, 1, 0, 0, 0)));
    close(there[0]), close(there[1]), close(back[0]), close(back[1]);
    if (child > 0)
        wait(child);
    return ticks;
}

/* A byte goes to a child over a pair of sockets and comes back. */
static number unix_round_trip(number rounds) {
    int ends[2];
    number error = call(SOCKETPAIR, 1, 1, 0, (number)ends, 0, 0);
    if (error < 0)
        return error;
    number child = fork();
    if (child == 0) {
        close(ends[0]);
        while (call(READ, ends[1], (number)page, 1, 0, 0, 0) == 1)
            call(WRITE, ends[1], (number)page, 1, 0, 0, 0);
        call(EXIT_GROUP, 0, 0, 0, 0, 0, 0);
    }
    close(ends[1]);
    number ticks = child < 0 ? child
                             : TICKS(rounds, (call(WRITE, ends[0], (number)page, 1, 0, 0, 0),
                                              call(READ, ends[0], (number)page, 1, 0, 0, 0)));
    close(ends[0]);
    if (child > 0)
        wait(child);
    return ticks;
}

/* A thread that runs a function on a stack of its own, which begins below `stack`, and ends with it. */
number start_thread(void (*function)(void), char *stack, number flags, volatile int *id);
__asm__(".global start_thread\n"
        "start_thread: str x0, [x1, #-16]!\n"
        "mov x0, x2\n mov x2, x3\n mov x4, x3\n mov x3, #0\n mov x8, #220\n svc #0\n"
        "cbz x0, 1f\n ret\n"
        "1: mov x29, #0\n ldr x1, [sp], #16\n blr x1\n mov x0, #0\n mov x8, #93\n svc #0\n");

enum { THREAD = 0x50f00, PARENT_SETTID = 0x100000, CHILD_CLEARTID = 0x200000, FUTEX_WAIT = 128, FUTEX_WAKE = 129 };

static char stack[65536] __attribute__((aligned(16)));
static volatile int thread, turn, is_over;

static number start(void (*function)(void)) {
    return start_thread(function, stack + sizeof stack, THREAD | PARENT_SETTID | CHILD_CLEARTID, &thread);
}

static void join(void) {
    for (int id; (id = thread);)
        call(FUTEX, (number)&thread, 0, id, 0, 0, 0);
}

static void nothing(void) {}

static number start_join(void) {
    number error = start(nothing);
    if (error > 0)
        join();
    return error;
}

COST(thread_create_join, start_join())

/* Gives the turn to the other thread, and waits until it comes back. */
static void pass(int own) {
    turn = !own;
    call(FUTEX, (number)&turn, FUTEX_WAKE, 1, 0, 0, 0);
    while (turn != own && !is_over)
        call(FUTEX, (number)&turn, FUTEX_WAIT, !own, 0, 0, 0);
}

static void answer(void) {
    while (!is_over)
        pass(1);
}

/* Two threads wake each other in turn. */
static number futex_round_trip(number rounds) {
    is_over = turn = 0;
    number error = start(answer);
    if (error < 0)
        return error;
    number ticks = TICKS(rounds, pass(0));
    is_over = 1;
    turn = 1;
    call(FUTEX, (number)&turn, FUTEX_WAKE, 1, 0, 0, 0);
    join();
    return ticks;
}

static void yield_too(void) {
    while (!is_over)
        call(SCHED_YIELD, 0, 0, 0, 0, 0, 0);
}

/* One of two threads gives way to the other: half of a round. */
static number yield_switch(number rounds) {
    is_over = 0;
    number error = start(yield_too);
    if (error < 0)
        return error;
    number ticks = TICKS(rounds, call(SCHED_YIELD, 0, 0, 0, 0, 0, 0));
    is_over = 1;
    join();
    return ticks / 2;
}

enum { MUCH = 100 << 20 };

/* A process with 100 MiB in small pages makes a child: the call alone, or until the child has ended. */
static number fork_much(number rounds, int until_end) {
    number area = map(MUCH / PAGE, PRIVATE), ticks = 0;
    if (area < 0)
        return area;
    touch(area, MUCH / PAGE);
    for (number round = 0; round < rounds; round++) {
        uint64_t begin = now();
        number child = fork();
        if (child == 0)
            call(EXIT_GROUP, 0, 0, 0, 0, 0, 0);
        if (child < 0)
            return child;
        if (!until_end)
            ticks += (number)(now() - begin);
        wait(child);
        if (until_end)
            ticks += (number)(now() - begin);
    }
    unmap(area, MUCH / PAGE);
    return ticks;
}

static number fork_100m(number rounds) { return fork_much(rounds ? rounds : 1, 0); }
static number fork_100m_exit(number rounds) { return fork_much(rounds ? rounds : 1, 1); }

static const struct cost costs[] = {
    {"empty_loop", empty_loop, 10000},
    {"getppid", getppid, 10000},
    {"sigprocmask", sigprocmask, 10000},
    {"fcntl", fcntl, 10000},
    {"clock_gettime", clock_gettime, 10000},
    {"sched_yield", sched_yield, 10000},
    {"read_zero_1", read_zero_1, 10000},
    {"write_null_1", write_null_1, 10000},
    {"pread_tmpfs_1", pread_tmpfs_1, 10000},
    {"pread_tmpfs_4096", pread_tmpfs_4096, 10000},
    {"stat", stat, 5000},
    {"open_close", open_close, 5000},
    {"create_unlink", create_unlink, 2000},
    {"ppoll_1", ppoll_1, 5000},
    {"mmap_munmap", mmap_munmap, 2000},
    {"brk_pair", brk_pair, 2000},
    {"mprotect_touch", mprotect_touch, 2000},
    {"anonymous_fault", anonymous_fault, PAGES},
    {"signal_self", signal_self, 2000},
    {"protection_fault", protection_fault, 2000},
    {"fork_exit_wait", fork_exit_wait, 100},
    {"fork_exec_wait", fork_exec_wait, 100},
    {"cow_copy", cow_copy, PAGES},
    {"cow_reuse", cow_reuse, PAGES},
    {"pipe_round_trip", pipe_round_trip, 1000},
    {"unix_round_trip", unix_round_trip, 1000},
    {"epoll_0", epoll_0, 5000},
    {"thread_create_join", thread_create_join, 200},
    {"futex_round_trip", futex_round_trip, 1000},
    {"yield_switch", yield_switch, 5000},
    {"fork_100m", fork_100m, 4},
    {"fork_100m_exit", fork_100m_exit, 4},
};

int program(number count, char **arguments) {
    /* Those that fork_exec makes. */
    if (count < 2)
        return 0;
    prepare(arguments[0]);
    return MEASURE(costs, arguments[1]) != 0;
}
