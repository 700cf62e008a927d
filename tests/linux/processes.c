/* Processes: making them, waiting for them, what they inherit, groups and sessions. */

#include "system.h"

enum { WNOHANG = 1, WEXITED = 4, WNOWAIT = 0x1000000 };

/* The child of vfork uses the memory of its parent, which waits. */
static volatile int shared;

static void vfork_shares_memory(void) {
    shared = 1;
    number child = call(CLONE, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0);
    if (child == 0) {
        shared = 2;
        exit(9);
    }
    show("written by the child of vfork", shared);
    int status = 0;
    wait_for(child, &status);
    show("its status", status);
}

static void fork_copies_memory(void) {
    shared = 1;
    number child = fork();
    if (child == 0) {
        shared++;
        exit(shared);
    }
    int status = 0;
    show("waited for the child", wait_for(child, &status) == child);
    show("its status", status);
    show("own memory", shared);
}

static void shared_memory_stays_shared(void) {
    volatile int *word = (int *)call(MMAP, 0, 4096, PROT_READ | PROT_WRITE, SHARED | ANONYMOUS, -1, 0);
    *word = 5;
    number child = fork();
    if (child == 0) {
        *word = 6;
        exit(0);
    }
    wait_for(child, 0);
    show("shared memory", *word);
    call(MUNMAP, (number)word, 4096, 0, 0, 0, 0);
}

static void floating_point_is_copied(void) {
    register double value __asm__("d9");
    __asm__ volatile("fmov d9, #3.0" : "=w"(value));
    number child = fork();
    double here;
    __asm__ volatile("fmov %d0, d9" : "=w"(here));
    if (child == 0)
        exit((int)here);
    int status = 0;
    wait_for(child, &status);
    show("floating point in the child", status >> 8);
}

static void position_is_shared(void) {
    number file = call(OPENAT, AT_FDCWD, (number) "/tmp/position", RDWR | CREAT | TRUNC, 0600, 0, 0);
    call(WRITE, file, (number) "abcdef", 6, 0, 0, 0);
    call(LSEEK, file, 0, 0, 0, 0, 0);
    number child = fork();
    char byte;
    if (child == 0) {
        call(READ, file, (number)&byte, 1, 0, 0, 0);
        call(CLOSE, file, 0, 0, 0, 0, 0);
        exit(0);
    }
    wait_for(child, 0);
    call(READ, file, (number)&byte, 1, 0, 0, 0);
    show("the child's reading moved the position", byte == 'b');
    call(UNLINKAT, AT_FDCWD, (number) "/tmp/position", 0, 0, 0, 0);
}

static void waiting(void) {
    int status;
    show("wait without children", wait_for(-1, 0));
    show("wait for a stranger", wait_for(30000, 0));
    show("unknown option", call(WAIT4, -1, 0, 0x100, 0, 0, 0));
    number children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0)
            exit(i + 1);
    }
    show("wait for the third", wait_for(children[2], &status) == children[2]);
    show("status", status);
    int sum = 0;
    for (int i = 0; i < 2; i++) {
        wait_for(-1, &status);
        sum += status >> 8;
    }
    show("the two others", sum);
    show("no more", wait_for(-1, 0));
}

static void waitid(void) {
    int info[32];
    for (int i = 0; i < 32; i++)
        info[i] = 0;
    number child = fork();
    if (child == 0)
        exit(77);
    show("waitid keeps the child", call(WAITID, 1, child, (number)info, WEXITED | WNOWAIT, 0, 0));
    show("signal", info[0]);
    show("code", info[2]);
    show("it is the child", info[4] == child);
    show("value", info[6]);
    show("waitid takes it", call(WAITID, 1, child, (number)info, WEXITED, 0, 0));
    show("waitid once more", call(WAITID, 1, child, (number)info, WEXITED, 0, 0));
    show("nothing asked for", call(WAITID, 0, 0, (number)info, 0, 0, 0));
}

/* The child ends only when its parent closes the pipe. */
static void nobody_waits_with_nohang(void) {
    int ends[2], status = -1;
    char byte;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        call(CLOSE, ends[1], 0, 0, 0, 0, 0);
        exit(call(READ, ends[0], (number)&byte, 1, 0, 0, 0));
    }
    show("it still runs", call(WAIT4, child, (number)&status, WNOHANG, 0, 0, 0));
    show("status is not written", status);
    call(CLOSE, ends[1], 0, 0, 0, 0, 0);
    wait_for(child, &status);
    show("it ended", status);
    call(CLOSE, ends[0], 0, 0, 0, 0, 0);
}

static void groups(void) {
    int ends[2];
    char byte;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        call(CLOSE, ends[1], 0, 0, 0, 0, 0);
        call(READ, ends[0], (number)&byte, 1, 0, 0, 0);
        exit(0);
    }
    show("child's group is the own", call(GETPGID, child, 0, 0, 0, 0, 0) == call(GETPGID, 0, 0, 0, 0, 0, 0));
    show("a group that does not exist", call(SETPGID, child, 30000, 0, 0, 0, 0));
    show("a group of its own", call(SETPGID, child, child, 0, 0, 0, 0));
    show("that is its number", call(GETPGID, child, 0, 0, 0, 0, 0) == child);
    show("a negative group", call(SETPGID, child, -5, 0, 0, 0, 0));
    show("a stranger", call(SETPGID, 30000, 0, 0, 0, 0, 0));
    show("group of a stranger", call(GETPGID, 30000, 0, 0, 0, 0, 0));
    show("wait for the own group", call(WAIT4, 0, 0, WNOHANG, 0, 0, 0));
    show("wait for its group", call(WAIT4, -child, 0, WNOHANG, 0, 0, 0));
    call(CLOSE, ends[1], 0, 0, 0, 0, 0);
    wait_for(child, 0);
    show("group of one who is gone", call(GETPGID, child, 0, 0, 0, 0, 0));
    child = fork();
    if (child == 0) {
        number session = call(SETSID, 0, 0, 0, 0, 0, 0);
        number again = call(SETSID, 0, 0, 0, 0, 0, 0);
        number me = call(GETPID, 0, 0, 0, 0, 0, 0);
        exit((session == me && call(GETSID, 0, 0, 0, 0, 0, 0) == me) + 2 * (again == -1) +
             4 * (call(SETPGID, 0, 0, 0, 0, 0, 0) == -1));
    }
    int status = 0;
    wait_for(child, &status);
    show("a session of its own", status >> 8);
}

/* A grandchild whose parent has ended gets another parent. */
static void orphans(void) {
    int ends[2];
    number parent = 0;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        number me = call(GETPID, 0, 0, 0, 0, 0, 0);
        if (fork() == 0) {
            while (call(GETPPID, 0, 0, 0, 0, 0, 0) == me)
                call(SCHED_YIELD, 0, 0, 0, 0, 0, 0);
            parent = call(GETPPID, 0, 0, 0, 0, 0, 0);
            call(WRITE, ends[1], (number)&parent, sizeof parent, 0, 0, 0);
            exit(0);
        }
        exit(0);
    }
    wait_for(child, 0);
    call(CLOSE, ends[1], 0, 0, 0, 0, 0);
    call(READ, ends[0], (number)&parent, sizeof parent, 0, 0, 0);
    show("an orphan's parent", parent);
    call(CLOSE, ends[0], 0, 0, 0, 0, 0);
}

static void bad_flags(void) {
    show("shared handlers without shared memory", call(CLONE, 0x800 | SIGCHLD, 0, 0, 0, 0, 0));
    show("a thread without shared handlers", call(CLONE, 0x10000 | SIGCHLD, 0, 0, 0, 0, 0));
}

int program(number count, char **arguments) {
    (void)count;
    (void)arguments;
    fork_copies_memory();
    vfork_shares_memory();
    shared_memory_stays_shared();
    floating_point_is_copied();
    position_is_shared();
    waiting();
    waitid();
    nobody_waits_with_nohang();
    groups();
    bad_flags();
    orphans();
    return 0;
}
