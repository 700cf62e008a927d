/* What programs that use sockets share. */

#pragma once

#include "system.h"

enum {
    SOCKET = 198, BIND = 200, LISTEN = 201, ACCEPT = 202, CONNECT = 203, GETSOCKNAME = 204, GETPEERNAME = 205,
    SENDTO = 206, RECVFROM = 207, SETSOCKOPT = 208, GETSOCKOPT = 209, SHUTDOWN = 210, SENDMSG = 211, RECVMSG = 212, ACCEPT4 = 242,
    RECVMMSG = 243, SENDMMSG = 269,
};
enum { UNSPEC = 0, UNIX = 1, INET = 2, INET6 = 10, NETLINK = 16, STREAM = 1, DGRAM = 2, SEQPACKET = 5, CLOEXEC = 02000000, NONBLOCK = 04000 };
enum { PEEK = 2, CTRUNC = 8, MSG_TRUNC = 0x20, DONTWAIT = 0x40, WAITALL = 0x100, NOSIGNAL = 0x4000, CMSG_CLOEXEC = 0x40000000 };
enum {
    SOL_SOCKET = 1, SO_REUSEADDR = 2, SO_TYPE = 3, SO_ERROR = 4, SO_BROADCAST = 6, SO_SNDBUF = 7, SO_KEEPALIVE = 9, SO_LINGER = 13,
    SO_REUSEPORT = 15, SO_PASSCRED = 16, SO_PEERCRED = 17, SO_RCVLOWAT = 18, SO_RCVTIMEO = 20, SO_SNDTIMEO = 21, SO_ACCEPTCONN = 30,
    SO_PROTOCOL = 38, SO_DOMAIN = 39, SCM_RIGHTS = 1, SCM_CREDENTIALS = 2,
};
enum { FIONREAD = 0x541b, FIONBIO = 0x5421 };
enum { IN = 1, OUT = 4, ERR = 8, HUP = 0x10, RDHUP = 0x2000, EDGE = (int)(1u << 31) };

struct vector {
    const void *base;
    size length;
};

struct message {
    void *name;
    unsigned name_length;
    struct vector *vectors;
    size count;
    void *control;
    size control_length;
    unsigned flags;
};

struct control {
    size length;
    int level, type;
    int data[6];
};

struct poll {
    int descriptor;
    short events, found;
};

struct event {
    unsigned events;
    size data;
};

static char text[8192];

static inline number make(number family, number kind) { return call(SOCKET, family, kind, 0, 0, 0, 0); }
static inline number pair(number kind, int *ends) { return call(SOCKETPAIR, UNIX, kind, 0, (number)ends, 0, 0); }
static inline number bind(number file, const void *name, number count) { return call(BIND, file, (number)name, count, 0, 0, 0); }
static inline number listen(number file, number count) { return call(LISTEN, file, count, 0, 0, 0, 0); }
static inline number connect(number file, const void *name, number count) { return call(CONNECT, file, (number)name, count, 0, 0, 0); }
static inline number accept(number file, number flags) { return call(ACCEPT4, file, 0, 0, flags, 0, 0); }
static inline number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static inline number shut(number file, number how) { return call(SHUTDOWN, file, how, 0, 0, 0, 0); }
static inline number put(number file, const void *from, number count) { return call(WRITE, file, (number)from, count, 0, 0, 0); }
static inline number get(number file, number count) { return call(READ, file, (number)text, count, 0, 0, 0); }
static inline number send(number file, const void *from, number count, number flags) {
    return call(SENDTO, file, (number)from, count, flags, 0, 0);
}
static inline number receive(number file, number count, number flags) {
    return call(RECVFROM, file, (number)text, count, flags, 0, 0);
}
static inline number set_option(number file, number level, number name, const void *value, number count) {
    return call(SETSOCKOPT, file, level, name, (number)value, count, 0);
}

/* Returns an option's value, or an error. */
static inline number option(number file, number level, number name) {
    int value = -1, count = sizeof value;
    number error = call(GETSOCKOPT, file, level, name, (number)&value, (number)&count, 0);
    return error < 0 ? error : value;
}

static inline number poll(number file) {
    struct poll one = {(int)file, IN | OUT | RDHUP, 0};
    number time[2] = {0, 0};
    number result = call(PPOLL, (number)&one, 1, (number)time, 0, 0, 0);
    return result < 0 ? result : one.found;
}

/* Shows how many bytes came, and which. */
static inline void show_text(const char *what, number count) {
    print(what);
    print(": ");
    print_number(count);
    if (count > 0) {
        print(" ");
        call(WRITE, 1, (number)text, count < 40 ? count : 40, 0, 0, 0);
    }
    print("\n");
}

static inline void rest(number milliseconds) {
    number time[2] = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    call(NANOSLEEP, (number)time, 0, 0, 0, 0, 0);
}

static inline number wait_status(void) {
    int status = 0;
    wait_for(-1, &status);
    return status;
}

static int signals;
static inline void count_signal(int signal) { (void)signal, signals++; }

static inline void handle(number signal, void (*handler)(int), number flags) {
    struct {
        void (*handler)(int);
        size flags, restorer, mask;
    } action = {handler, (size)flags, 0, 0};
    call(RT_SIGACTION, signal, (number)&action, 0, 8, 0, 0);
}
