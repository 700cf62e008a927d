/* System calls of Linux and a few ways to print, for programs without a C library. */

#pragma once

#include <stdint.h>

typedef long number;
typedef unsigned long size;

static inline number call(number what, number a, number b, number c, number d, number e, number f) {
    register number x8 __asm__("x8") = what;
    register number x0 __asm__("x0") = a;
    register number x1 __asm__("x1") = b;
    register number x2 __asm__("x2") = c;
    register number x3 __asm__("x3") = d;
    register number x4 __asm__("x4") = e;
    register number x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

enum {
    GETCWD = 17, EVENTFD2 = 19, EPOLL_CREATE1 = 20, EPOLL_CTL = 21, EPOLL_PWAIT = 22, DUP = 23, DUP3 = 24,
    FCNTL = 25, IOCTL = 29, MKNODAT = 33, MKDIRAT = 34, UNLINKAT = 35, SYMLINKAT = 36, LINKAT = 37, RENAMEAT = 38,
    FTRUNCATE = 46, FALLOCATE = 47, FACCESSAT = 48, CHDIR = 49, FCHMOD = 52, OPENAT = 56, CLOSE = 57, PIPE2 = 59,
    GETDENTS64 = 61, LSEEK = 62, READ = 63, WRITE = 64, READV = 65, WRITEV = 66, PREAD64 = 67, PWRITE64 = 68,
    PREADV = 69, PWRITEV = 70, SENDFILE = 71, PSELECT6 = 72, PPOLL = 73, SIGNALFD4 = 74, READLINKAT = 78,
    NEWFSTATAT = 79, FSTAT = 80, TIMERFD_CREATE = 85, TIMERFD_SETTIME = 86, TIMERFD_GETTIME = 87, EXIT = 93,
    EXIT_GROUP = 94, WAITID = 95, SET_TID_ADDRESS = 96, FUTEX = 98, SET_ROBUST_LIST = 99, GET_ROBUST_LIST = 100,
    NANOSLEEP = 101, GETITIMER = 102, SETITIMER = 103, TIMER_CREATE = 107, TIMER_GETTIME = 108,
    TIMER_GETOVERRUN = 109, TIMER_SETTIME = 110, TIMER_DELETE = 111, CLOCK_SETTIME = 112, CLOCK_GETTIME = 113,
    CLOCK_NANOSLEEP = 115, SCHED_SETPARAM = 118, SCHED_SETSCHEDULER = 119, SCHED_GETSCHEDULER = 120, SCHED_GETPARAM = 121,
    SCHED_SETAFFINITY = 122, SCHED_GETAFFINITY = 123, SCHED_YIELD = 124, SCHED_GET_PRIORITY_MAX = 125,
    SCHED_GET_PRIORITY_MIN = 126, SCHED_RR_GET_INTERVAL = 127, KILL = 129, TKILL = 130, TGKILL = 131,
    SIGALTSTACK = 132, RT_SIGSUSPEND = 133, RT_SIGACTION = 134, RT_SIGPROCMASK = 135, RT_SIGPENDING = 136,
    RT_SIGTIMEDWAIT = 137, RT_SIGQUEUEINFO = 138, TIMES = 153, SETPGID = 154, GETPGID = 155, GETSID = 156,
    SETSID = 157, GETRUSAGE = 165, UMASK = 166, GETPID = 172, GETPPID = 173, GETTID = 178, SOCKETPAIR = 199,
    BRK = 214, MUNMAP = 215, MREMAP = 216, CLONE = 220, EXECVE = 221, MMAP = 222, MPROTECT = 226, MADVISE = 233,
    RT_TGSIGQUEUEINFO = 240, WAIT4 = 260, MEMFD_CREATE = 279, EXECVEAT = 281, PREADV2 = 286, PWRITEV2 = 287,
};

enum { CLONE_VM = 0x100, CLONE_VFORK = 0x4000 };
enum {
    SIGHUP = 1, SIGINT = 2, SIGILL = 4, SIGBUS = 7, SIGKILL = 9, SIGUSR1 = 10, SIGSEGV = 11, SIGUSR2 = 12,
    SIGPIPE = 13, SIGALRM = 14, SIGTERM = 15, SIGCHLD = 17, SIGCONT = 18, SIGSTOP = 19, SIGTSTP = 20, SIGWINCH = 28,
};

enum { AT_FDCWD = -100 };
enum { RDONLY = 0, WRONLY = 1, RDWR = 2, CREAT = 0100, EXCL = 0200, TRUNC = 01000, APPEND = 02000, DIRECTORY = 040000 };
enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4 };
enum { SHARED = 1, PRIVATE = 2, FIXED = 0x10, ANONYMOUS = 0x20 };

static inline size length(const char *text) {
    size n = 0;
    while (text[n])
        n++;
    return n;
}

static inline void print(const char *text) { call(WRITE, 1, (number)text, length(text), 0, 0, 0); }

static inline void print_number(number value) {
    char text[24], *at = text + sizeof text;
    size rest = value < 0 ? -(size)value : (size)value;
    *--at = 0;
    do
        *--at = '0' + rest % 10;
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    print(at);
}

/* Prints what something is, and its value. */
static inline void show(const char *what, number value) {
    print(what);
    print(": ");
    print_number(value);
    print("\n");
}

static inline int equal(const void *one, const void *other, size count) {
    const char *a = one, *b = other;
    for (size i = 0; i < count; i++)
        if (a[i] != b[i])
            return 0;
    return 1;
}

static inline void exit(int code) { call(EXIT_GROUP, code, 0, 0, 0, 0, 0); }

static inline number fork(void) { return call(CLONE, SIGCHLD, 0, 0, 0, 0, 0); }

static inline number wait_for(number child, int *status) { return call(WAIT4, child, (number)status, 0, 0, 0, 0); }

/* The compiler may call these. */
void *memset(void *to, int byte, size count) {
    for (volatile char *at = to; count--; at++)
        *at = (char)byte;
    return to;
}

void *memcpy(void *to, const void *from, size count) {
    volatile char *at = to;
    for (const char *source = from; count--;)
        *at++ = *source++;
    return to;
}

int program(number count, char **arguments);

__asm__(".global _start\n_start: mov x29, #0\nmov x30, #0\nmov x0, sp\nb begin\n");

__attribute__((used)) static void begin(number *stack) {
    call(EXIT_GROUP, program(stack[0], (char **)(stack + 1)), 0, 0, 0, 0, 0);
}
