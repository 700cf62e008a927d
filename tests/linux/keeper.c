/* A program that keeps the terminal as well as it can: it ignores every signal, sets modes of all kinds again and again,
   reads what is typed, and prints what terminals take for commands; so does its child. It does not end. */

#include "system.h"

enum { GET_MODES = 0x5401, SET_MODES = 0x5402, SET_GROUP = 0x5410, CONTROLLING = 0x540e, SET_SIZE = 0x5414, NONBLOCK = 04000 };

static void keep(unsigned state) {
    unsigned modes[15];
    for (;;) {
        call(IOCTL, 0, GET_MODES, (number)modes, 0, 0, 0);
        for (int word = 0; word < 9; word++) {
            state = state * 1664525 + 1013904223;
            modes[word] ^= state >> (state >> 28);
        }
        int group = (int)state % 4;
        call(IOCTL, 0, SET_MODES + (state >> 30) % 3, (number)modes, 0, 0, 0);
        call(IOCTL, 0, SET_GROUP, (number)&group, 0, 0, 0);
        call(IOCTL, 0, SET_SIZE, (number)modes, 0, 0, 0);
        call(IOCTL, 0, CONTROLLING, 1, 0, 0, 0);
        call(READ, 0, (number)modes, sizeof modes, 0, 0, 0);
        number moment[2] = {0, 100000};
        call(NANOSLEEP, (number)moment, 0, 0, 0, 0, 0);
    }
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    size ignore[4] = {1, 0, 0, 0};
    for (int signal = 1; signal <= 64; signal++)
        call(RT_SIGACTION, signal, (number)ignore, 0, 8, 0, 0);
    call(FCNTL, 0, 4, NONBLOCK, 0, 0, 0);
    keep(fork() ? 1 : 2);
    return 0;
}
