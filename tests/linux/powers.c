/* What a program does with the capabilities with which it sends its calls: it copies, moves, removes and deletes them, sends
   what is no call, and gives up waiting. Its instance, and what else it does itself, goes on. With Linux, which gives it
   none, nothing of that happens.

   powers [COUNT]: so many children take their capabilities away from those who gave them. */

#include "threads.h"

enum { PRCTL = 167, SET_ENTRANCE = 0x54656e63, EXCEPTIONS = 0, MESSAGES, UPCALLS, TAG = 7, HAS_DEADLINE = 1 << 12 };
enum { CALL = 0, UPCALL_RETURN = 3, TRY_SEND = 4, SEND = 9, COPY = 32, MINT = 33, MOVE = 34, DELETE = 35, REVOKE = 36 };
enum { IDENTIFY = 37, INSTALL = 38, REMOVE = 39, LAST = 112, OWN = 1, HERE = 9, AGAIN = -512 };

struct registers {
    number x[13];
};

/* A system call of Tench, which leaves the other registers. */
static number tench(number what, struct registers *all) {
    register number x0 __asm__("x0") = all->x[0];
    register number x1 __asm__("x1") = all->x[1];
    register number x2 __asm__("x2") = all->x[2];
    register number x3 __asm__("x3") = all->x[3];
    register number x4 __asm__("x4") = all->x[4];
    register number x5 __asm__("x5") = all->x[5];
    register number x6 __asm__("x6") = all->x[6];
    register number x7 __asm__("x7") = all->x[7];
    register number x8 __asm__("x8") = all->x[8];
    register number x10 __asm__("x10") = what;
    register number x12 __asm__("x12") = all->x[12];
    __asm__ volatile("svc #1"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x4), "+r"(x5), "+r"(x6), "+r"(x7), "+r"(x8), "+r"(x10),
                       "+r"(x12)::"x9", "x11", "x13", "x14", "x15", "x16", "x17", "x18", "cc", "memory");
    all->x[1] = x1, all->x[2] = x2, all->x[3] = x3, all->x[4] = x4;
    return x0;
}

static number tench5(number what, number a, number b, number c, number d, number e) {
    return tench(what, &(struct registers){{a, b, c, d, e, 0, 0, 0, 0, 0, 0, 0, 0}});
}

/* Sends a call in some way, and does not wait longer than for a moment. Returns the result, or what has become of it. */
static number send(number how, number tag, number what, number a, number b, number c) {
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    struct registers all = {{OWN, tag, what, a, b, c, 0, 0, 0, 0, 0, 0, (number)(now + 50000)}};
    number error = tench(how, &all);
    return error ? -10000 - error : all.x[1] == 0x10001 ? all.x[2] : AGAIN;
}

static number entrance(number way, number entry) { return call(PRCTL, SET_ENTRANCE, way, entry, 0, 0, 0); }

static int failed;

static void check(const char *what, number holds) {
    if (!holds)
        print("FAILED: "), print(what), print("\n"), failed = 1;
}

/* The calls that come as exceptions go on, whatever the capability. */
static void still_serves(const char *what) { check(what, call(GETPID, 0, 0, 0, 0, 0, 0) > 0); }

/* Runs a part in a child, which ends with a status. */
static void part(const char *what, void (*does)(void), int expected) {
    int status = 0;
    number child = fork();
    if (child == 0) {
        failed = 0;
        check("messages", entrance(MESSAGES, 0) == OWN);
        does();
        exit(failed);
    }
    check("a child", child > 0);
    wait_for(child, &status);
    if (status != expected)
        show("status", status);
    check(what, status == expected);
}

static void operations(void) {
    for (number what = 0; what < LAST; what++)
        for (number first = 0; first < 3; first++)
            for (number second = 0; second < 6; second++) {
                if (what == CALL || what == SEND)
                    continue;
                tench5(what, first, second, 0, HERE, second);
                tench5(what, first, OWN, first, second, 0);
            }
    still_serves("after all operations");
}

static void copies(void) {
    number pid = call(GETPID, 0, 0, 0, 0, 0, 0);
    for (number to = 2; to < 256; to++)
        check("a copy", tench5(COPY, 0, OWN, 0, to, 0) == 0);
    check("no more than there is room for", tench5(COPY, 0, OWN, 0, 256, 0) != 0);
    check("no other badge", tench5(DELETE, 0, 2, 0, 0, 0) == 0);
    struct registers mint = {{0, OWN, 0, 2, 15, 4711, 0, 0, 0, 0, 0, 0, 0}};
    check("nobody else's calls", tench(MINT, &mint) != 0);
    check("it sends", send(CALL, TAG, GETPID, 0, 0, 0) == pid);
    tench5(REVOKE, 0, OWN, 0, 0, 0);
    check("and it still sends", send(CALL, TAG, GETPID, 0, 0, 0) == pid);
    for (number to = 2; to < 256; to++)
        tench5(DELETE, 0, to, 0, 0, 0);
    check("moved", tench5(MOVE, 0, OWN, 0, 77, 0) == 0);
    check("nothing is there", send(CALL, TAG, GETPID, 0, 0, 0) < -10000);
    check("back", tench5(MOVE, 0, 77, 0, OWN, 0) == 0);
    check("it sends again", send(CALL, TAG, GETPID, 0, 0, 0) == pid);
    check("deleted", tench5(DELETE, 0, OWN, 0, 0, 0) == 0);
    still_serves("without it");
    check("asked for again", entrance(EXCEPTIONS, 0) == 0 && entrance(MESSAGES, 0) == 1);
    check("it sends once more", send(CALL, TAG, GETPID, 0, 0, 0) == pid);
}

/* Messages that are no calls, and calls without an answer. */
static void messages(void) {
    number pid = call(GETPID, 0, 0, 0, 0, 0, 0);
    for (number tag = 0; tag < 16; tag++)
        send(CALL, tag | HAS_DEADLINE, GETPID, 0, 0, 0);
    for (number label = 1; label; label = (number)((size)label << 1))
        send(CALL, (number)((size)label << 16) | TAG | HAS_DEADLINE, GETPID, 0, 0, 0), send(CALL, TAG, label, 0, 0, 0);
    send(CALL, TAG | 1 << 14, GETPID, 0, 0, 0), send(CALL, TAG | 1 << 15, GETPID, 0, 0, 0);
    for (number count = 1; count < 5; count++)
        send(CALL, TAG | count << 8 | HAS_DEADLINE, GETPID, 0, 0, 0);
    for (int i = 0; i < 20; i++) {
        send(SEND, TAG, GETPID, 0, 0, 0), send(TRY_SEND, TAG, GETPID, 0, 0, 0);
        still_serves("a message without an answer");
    }
    check("an answer", send(CALL, TAG, GETPID, 0, 0, 0) == pid);
}

static int ends[2];

/* Calls that wait, of which the program does not. */
static void abandoned(void) {
    number moment[2] = {0, 300000000};
    char byte;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    for (int i = 0; i < 20; i++) {
        check("it gives up", send(CALL, TAG | HAS_DEADLINE, READ, ends[0], (number)&byte, 1) < -10000);
        send(TRY_SEND, TAG, READ, ends[0], (number)&byte, 1);
        send(TRY_SEND, TAG, NANOSLEEP, (number)moment, 0, 0), send(SEND, TAG, RT_SIGSUSPEND, (number)moment, 8, 0);
        *(volatile char *)moment;
    }
    check("nobody takes a byte any more", call(WRITE, ends[1], (number) "x", 1, 0, 0, 0) == 1);
    check("but who reads", call(READ, ends[0], (number)&byte, 1, 0, 0, 0) == 1);
    send(TRY_SEND, TAG, EXIT_GROUP, 0, 0, 0);
    for (;;)
        ;
}

static char stacks[4][16384] __attribute__((aligned(16)));
static volatile int *spinning;

/* A process that has given up waiting does not run while it is stopped. */
static void runs_on(void) {
    char byte;
    entrance(MESSAGES, 0);
    /* Whoever touches a page for the first time waits no more, either. */
    ++*spinning;
    send(TRY_SEND, TAG, READ, ends[0], (number)&byte, 1);
    for (;;)
        ++*spinning;
}

static void sleep(number milliseconds) {
    number time[2] = {0, milliseconds * 1000000};
    call(NANOSLEEP, (number)time, 0, 0, 0, 0, 0);
}

static void stopped(void) {
    int status;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    spinning = (volatile int *)call(MMAP, 0, 4096, PROT_READ | PROT_WRITE, SHARED | ANONYMOUS, -1, 0);
    number child = fork();
    if (child == 0)
        runs_on();
    sleep(20);
    call(KILL, child, SIGSTOP, 0, 0, 0, 0);
    sleep(20);
    int before = *spinning;
    sleep(50);
    check("it is stopped", *spinning == before && before > 0);
    call(KILL, child, SIGCONT, 0, 0, 0, 0);
    sleep(50);
    check("it goes on", *spinning != before);
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    wait_for(child, &status);
}

/* Threads that send while their process dies, or runs another program. */
static void send_for_ever(number argument) {
    entrance(argument ? MESSAGES : EXCEPTIONS, 0);
    for (;;)
        send(CALL, TAG | HAS_DEADLINE, SCHED_YIELD, 0, 0, 0), send(TRY_SEND, TAG, GETPID, 0, 0, 0);
}

static void dying(void) {
    for (int thread = 1; thread < 4; thread++)
        start_thread(send_for_ever, thread, stacks[thread], ALL, 0, 0, 0);
    sleep(5);
}

static char *own_path;

static void another_program(void) {
    dying();
    char *arguments[] = {own_path, "0", 0};
    entrance(UPCALLS, 0);
    call(EXECVE, (number)own_path, (number)arguments, 0, 0, 0, 0);
    exit(1);
}

/* Upcalls: handlers that are nowhere, returns without an upcall, registers that are none, the page itself. */
static volatile int signals;

static void count_it(int signal) { (void)signal, signals++; }

/* The handler makes calls that need registers as exceptions, and sends all others. A child begins in its middle. */
char *page;
void handle_upcall(void);
__asm__(".global handle_upcall\n"
        "handle_upcall: adrp x9, page\nldr x9, [x9, :lo12:page]\nadd x9, x9, #584\nldr x8, [x9, #64]\n"
        "cmp x8, #220\nb.eq 1f\ncmp x8, #221\nb.eq 1f\ncmp x8, #139\nb.eq 1f\n"
        "mov x2, x8\nldp x3, x4, [x9]\nldp x5, x6, [x9, #16]\nldp x7, x8, [x9, #32]\n"
        "mov x0, #1\nmov x1, #7\nmov x10, #0\nsvc #1\nb 2f\n"
        "1: ldp x0, x1, [x9]\nldp x2, x3, [x9, #16]\nldp x4, x5, [x9, #32]\nsvc #0\n"
        "mov x2, x0\ncmp x8, #220\nb.ne 2f\ncbz x0, in_child\n"
        "2: adrp x9, page\nldr x9, [x9, :lo12:page]\nstr x2, [x9, #584]\nmov x10, #3\nsvc #1\nudf #0\n");

static number parent;

/* Ends a child that an upcall has made: it sends its parent a signal, and changes its copy of the page. */
__attribute__((used)) void in_child(void) {
    sleep(10);
    call(KILL, parent, SIGUSR1, 0, 0, 0, 0);
    for (size i = 0; i < 4096; i++)
        page[i] = 0x5a;
    exit(4);
}

static void upcalls(void) {
    number pid = call(GETPID, 0, 0, 0, 0, 0, 0);
    number action[4] = {(number)count_it, 0x10000000, 0, 0};
    page = (char *)entrance(UPCALLS, (number)handle_upcall);
    check("a page", (number)page > 0);
    check("a call", call(GETPID, 0, 0, 0, 0, 0, 0) == pid);
    /* A signal within a call that the handler sends, and one that comes while it waits. */
    call(RT_SIGACTION, SIGUSR1, (number)action, 0, 8, 0, 0);
    check("a signal", call(KILL, pid, SIGUSR1, 0, 0, 0, 0) == 0 && signals == 1);
    int status = 0;
    parent = pid;
    number child = fork();
    check("a child", child > 0);
    while ((child = wait_for(-1, &status)) == AGAIN)
        ;
    check("that has a copy of the page", status == 4 << 8 && signals == 2);
    check("a call", call(GETPID, 0, 0, 0, 0, 0, 0) == pid);
    call(MUNMAP, (number)page, 4096, 0, 0, 0, 0);
    call(GETPID, 0, 0, 0, 0, 0, 0);
    exit(1);
}

static void wild_upcalls(void) {
    static const number entries[] = {1, 2, 8, 0x10000, -8, -1, 1l << 47, (number)(1ul << 63)};
    for (size i = 0; i < sizeof entries / sizeof *entries; i++) {
        number child = fork();
        if (child == 0) {
            char *here = (char *)entrance(UPCALLS, entries[i]);
            for (size at = 0; at < 4096; at++)
                here[at] = (char)(at * 7 + i);
            if (i % 2)
                tench5(UPCALL_RETURN, 0, 0, 0, 0, 0);
            call(GETPID, 0, 0, 0, 0, 0, 0);
            exit(0);
        }
        wait_for(child, 0);
    }
    still_serves("after wild upcalls");
}

/* Takes the node out of the own CSpace, by which only its memory could be found, and ends. */
static void take_away(void) {
    tench5(REMOVE, 0, 0, HERE, 0, 0);
    check("it cannot send", send(CALL, TAG, GETPID, 0, 0, 0) < -10000);
    still_serves("without a node");
}

static void thieves(number count) {
    for (number i = 0; i < count && !failed; i++) {
        number child = call(CLONE, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0);
        if (child == 0) {
            entrance(MESSAGES, 0);
            take_away();
            call(EXIT_GROUP, 0, 0, 0, 0, 0, 0);
        }
        check("a child", child > 0);
        wait_for(child, 0);
    }
}

int program(number count, char **arguments) {
    number thefts = 50;
    own_path = arguments[0];
    if (count > 1)
        for (thefts = 0; *arguments[1]; arguments[1]++)
            thefts = 10 * thefts + *arguments[1] - '0';
    if (thefts == 0)
        return 0;
    if (entrance(MESSAGES, 0) == 1) {
        entrance(EXCEPTIONS, 0);
        part("operations", operations, 0), part("copies", copies, 0), part("messages", messages, 0);
        part("abandoned calls", abandoned, 0), part("stopped", stopped, 0), part("dying", dying, 0);
        part("another program", another_program, 0);
        /* The handler's page is gone at the end. */
        part("upcalls", upcalls, SIGSEGV);
        part("wild upcalls", wild_upcalls, 0);
        thieves(thefts);
    }
    print(failed ? "something has failed\n" : "it goes on\n");
    return failed;
}
