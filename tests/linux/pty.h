/* Pseudo-terminals: commands, and a few ways to use both sides. */

#pragma once

#include "system.h"

enum { STATFS = 43 };
enum {
    GET_MODES = 0x5401, SET_MODES = 0x5402, BREAK = 0x5409, FLUSH = 0x540b, TAKE = 0x540e,
    GET_GROUP = 0x540f, SET_GROUP = 0x5410, UNSENT = 0x5411, GET_SIZE = 0x5413, SET_SIZE = 0x5414, READABLE = 0x541b,
    LEAVE = 0x5422, GET_SESSION = 0x5429, PEER = 0x5441, GET_NUMBER = (int)0x80045430u, LOCK = 0x40045431,
    RAISE = 0x40045436, IS_LOCKED = (int)0x80045439u,
};
enum { LINES = 2, ECHO = 8, STOPS_OUTPUT = 0400 };
enum { NOCTTY = 0400, NONBLOCK = 04000, CLOEXEC = 02000000 };
enum { IN = 1, OUT = 4, HUNG = 0x10, EDGE = (int)(1u << 31), ADD = 1 };
enum { SIGQUIT = 3, SIGTTIN = 21, SIGTTOU = 22, BLOCK = 0, WUNTRACED = 2 };

struct modes {
    unsigned input, output, control, local;
    unsigned char line, characters[19];
};

struct poll {
    int descriptor;
    short events, found;
};

static inline number open(const char *path, number flags) {
    return call(OPENAT, AT_FDCWD, (number)path, flags, 0600, 0, 0);
}
static inline number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static inline number control(number file, number command, const void *argument) {
    return call(IOCTL, file, command, (number)argument, 0, 0, 0);
}
static inline number get(number file, void *into, size count) {
    return call(READ, file, (number)into, (number)count, 0, 0, 0);
}
static inline number put(number file, const char *text) {
    return call(WRITE, file, (number)text, (number)length(text), 0, 0, 0);
}

/* Waits at most so many milliseconds. */
static inline number poll(number file, int events, number milliseconds) {
    struct poll one = {(int)file, (short)events, 0};
    number time[2] = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    number result = call(PPOLL, (number)&one, 1, (number)time, 0, 0, 0);
    return result < 0 ? result : one.found;
}

static inline void sleep(number milliseconds) {
    number time[2] = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    call(NANOSLEEP, (number)time, 0, 0, 0, 0, 0);
}

static inline void print_bytes(const char *bytes, number count) {
    for (number i = 0; i < count; i++) {
        char text[2] = {bytes[i], 0};
        if (bytes[i] == '\r')
            print("\\r");
        else if (bytes[i] == '\n')
            print("\\n");
        else
            print(text);
    }
}

/* Shows what can be read: so many bytes, in however many pieces. Output and echo take their time on Linux. */
static inline void show_read(const char *what, number file, number wanted) {
    static char bytes[4096];
    number count = 0;
    while (count < wanted && poll(file, IN, 5000) & IN) {
        number part = get(file, bytes + count, (size)(wanted - count));
        if (part <= 0) {
            show("  read", part);
            break;
        }
        count += part;
    }
    print(what);
    print(": ");
    print_bytes(bytes, count);
    print("\n");
}

static inline number lock(number master, int is_locked) { return control(master, LOCK, &is_locked); }

static inline int number_of(number master) {
    int value = -1;
    control(master, GET_NUMBER, &value);
    return value;
}

/* Writes the path of a slave. */
static inline char *path_of(number master) {
    static char path[32] = "/dev/pts/";
    char *at = path + 9;
    int value = number_of(master);
    if (value >= 100)
        *at++ = (char)('0' + value / 100);
    if (value >= 10)
        *at++ = (char)('0' + value / 10 % 10);
    *at++ = (char)('0' + value % 10);
    *at = 0;
    return path;
}

static inline number open_master(void) {
    number master = open("/dev/ptmx", RDWR | NOCTTY);
    lock(master, 0);
    return master;
}

static inline void change(number file, unsigned off, unsigned on) {
    struct modes modes;
    control(file, GET_MODES, &modes);
    modes.local = (modes.local & ~off) | on;
    control(file, SET_MODES, &modes);
}
