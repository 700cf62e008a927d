/* Calls about shared memory, semaphores and message queues of System V, and what their tests have in common. */

#pragma once

#include "system.h"

enum { MSGGET = 186, MSGCTL, MSGRCV, MSGSND, SEMGET, SEMCTL, SEMTIMEDOP, SEMOP, SHMGET, SHMCTL, SHMAT, SHMDT };
enum { CREATE = 01000, EXCLUSIVE = 02000, NOWAIT = 04000 };
enum { REMOVE, SET, STAT, INFO };
enum { REALTIME = 0 };

struct permissions {
    int key;
    unsigned user, group, maker_user, maker_group, mode;
    unsigned short sequence, rest;
    unsigned more;
    number unused[2];
};

static number now(void) {
    number time[2];
    call(CLOCK_GETTIME, REALTIME, (number)time, 0, 0, 0, 0);
    return time[0];
}

static void pause(number milliseconds) {
    number time[2] = {0, milliseconds * 1000000};
    call(NANOSLEEP, (number)time, 0, 0, 0, 0, 0);
}

static number own(void) { return call(GETPID, 0, 0, 0, 0, 0, 0); }

static inline void show_permissions(const struct permissions *permissions) {
    show("  key", permissions->key);
    show("  user", permissions->user);
    show("  group", permissions->group);
    show("  maker", permissions->maker_user);
    show("  maker's group", permissions->maker_group);
    show("  mode", permissions->mode);
    show("  sequence", permissions->sequence);
}

/* Shows that a time is that of the last seconds, or 0. */
static inline void show_time(const char *what, number time) {
    number passed = now() - time;
    show(what, time == 0 ? 0 : passed >= 0 && passed < 100 ? 1 : -1);
}

/* Shows a text word by word, without what differs from one time to the next: dates, and numbers of processes. */
static inline void show_words(const char *text, number process) {
    int column = 0;
    while (*text) {
        number value = 0, is_number = 1;
        const char *start = text;
        while (*text == ' ')
            text++;
        if (text != start)
            print(" ");
        char word[64];
        size count = 0;
        for (; *text && *text != ' ' && *text != '\n' && count < sizeof word - 1; text++) {
            is_number &= *text >= '0' && *text <= '9';
            value = value * 10 + *text - '0';
            word[count++] = *text;
        }
        word[count] = 0;
        int may_be_process = column >= 4 && column <= 6;
        column++;
        print(is_number && may_be_process && value == process ? "OWN"
              : is_number && value > 1000000000 && count == 10 ? "DATE"
                                                              : word);
        if (*text == '\n') {
            print("\n");
            column = 0;
            text++;
        }
    }
}

static inline void show_file(const char *path) {
    static char text[4096];
    number file = call(OPENAT, AT_FDCWD, (number)path, RDONLY, 0, 0, 0);
    number count = call(READ, file, (number)text, sizeof text - 1, 0, 0, 0);
    call(CLOSE, file, 0, 0, 0, 0, 0);
    print(path);
    show("", count > 0);
    text[count > 0 ? count : 0] = 0;
    show_words(text, own());
}

static volatile int handled;

static inline void handle(int signal) { handled = signal; }

/* Lets a signal be handled, and calls be made again after that that can. */
static inline void handle_signal(int signal) {
    number action[4] = {(number)handle, 0x10000000, 0, 0};
    call(RT_SIGACTION, signal, (number)action, 0, 8, 0, 0);
}
