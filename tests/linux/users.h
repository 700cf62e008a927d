/* Users and groups, for programs that become others. */

#pragma once

#include "system.h"

enum {
    SETREGID = 143, SETGID = 144, SETREUID = 145, SETUID = 146, SETRESUID = 147, GETRESUID = 148, SETRESGID = 149,
    GETRESGID = 150, SETFSUID = 151, SETFSGID = 152, GETGROUPS = 158, SETGROUPS = 159, PRCTL = 167, GETUID = 174,
    GETEUID = 175, GETGID = 176, GETEGID = 177, CAPGET = 90, CAPSET = 91, CAPABILITIES = 0x20080522,
};
enum {
    GET_DUMPABLE = 3, SET_DUMPABLE = 4, GET_KEEPCAPS = 7, SET_KEEPCAPS = 8, CAPBSET_READ = 23, CAPBSET_DROP = 24,
    GET_SECUREBITS = 27, SET_SECUREBITS = 28, SET_NO_NEW_PRIVS = 38, GET_NO_NEW_PRIVS = 39, CAP_AMBIENT = 47,
};
enum {
    CAP_CHOWN = 1 << 0, CAP_DAC_OVERRIDE = 1 << 1, CAP_DAC_READ_SEARCH = 1 << 2, CAP_FOWNER = 1 << 3, CAP_FSETID = 1 << 4,
    CAP_KILL = 1 << 5, CAP_SETGID = 1 << 6, CAP_SETUID = 1 << 7, CAP_SETPCAP = 1 << 8, CAP_BIND = 1 << 10,
    CAP_NICE = 1 << 23, CAP_RESOURCE = 1 << 24, CAP_TIME = 1 << 25, CAP_MKNOD = 1 << 27,
};

static inline number prctl(number what, number a, number b) { return call(PRCTL, what, a, b, 0, 0, 0); }

/* Becomes a user and the group of the same number, with no further groups. */
static inline void become(number user) {
    call(SETGROUPS, 0, 0, 0, 0, 0, 0);
    call(SETRESGID, user, user, user, 0, 0, 0);
    call(SETRESUID, user, user, user, 0, 0, 0);
}

typedef struct { unsigned effective, permitted, inheritable; } sets;

static inline number get_sets(sets *both) {
    unsigned header[2] = {CAPABILITIES, 0};
    return call(CAPGET, (number)header, (number)both, 0, 0, 0, 0);
}

/* Has only these capabilities from now on, of the first 32. */
static inline number keep(unsigned effective, unsigned permitted, unsigned inheritable) {
    unsigned header[2] = {CAPABILITIES, 0};
    sets both[2] = {{effective, permitted, inheritable}, {0, 0, 0}};
    return call(CAPSET, (number)header, (number)both, 0, 0, 0, 0);
}

/* Does something in a child, so that what it becomes has no consequences. */
static inline void apart(const char *what, void work(void)) {
    print("-- "), print(what), print("\n");
    number child = fork();
    if (child == 0) {
        work();
        exit(0);
    }
    int status = 0;
    wait_for(child, &status);
    if (status)
        show("  status", status);
}
