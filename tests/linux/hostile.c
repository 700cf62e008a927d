/* Makes random calls, of Linux and of Tench, with random arguments, and says that it is still there. */

#include "system.h"

enum { CALLS = 3000, OUTPUT = 40 };

static uint64_t state = 88172645463325252;

static uint64_t random_word(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static char data[3 * 4096];

/* A number that means something more often than not. */
static number argument(void) {
    uint64_t word = random_word();
    switch (word >> 60) {
    case 0 ... 3: return word & 7;
    case 4 ... 6: return (number)data + (word & 0x3fff);
    case 7: return -(word & 0xff);
    case 8: return (number)1 << (word & 63);
    case 9: return word & 0xffff;
    case 10: return (number)"/tmp/x";
    case 11: return (number)"/dev/full";
    default: return word;
    }
}

/* Ends the program, waits, or takes the output away. */
static int is_left_out(number what, number first) {
    switch (what) {
    case 93: case 94: case 101: case 115: case 129: case 130: case 131: return 1;
    case CLOSE: return first == OUTPUT;
    default: return what == 436;
    }
}

/* A system call of Tench with these registers. */
static void tench(number what) {
    register number x10 __asm__("x10") = what;
    register number x0 __asm__("x0") = argument();
    register number x1 __asm__("x1") = argument();
    register number x2 __asm__("x2") = argument();
    register number x3 __asm__("x3") = argument();
    register number x4 __asm__("x4") = argument();
    __asm__ volatile("svc #1"
                     : "+r"(x10), "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x4)::"x5", "x6", "x7", "x8", "x9", "x11",
                       "x12", "x13", "x14", "x15", "x16", "x17", "memory");
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    call(DUP3, 1, OUTPUT, 0, 0, 0, 0);
    for (number file = 0; file < 3; file++)
        call(CLOSE, file, 0, 0, 0, 0, 0);
    number succeeded = 0;
    for (number i = 0; i < CALLS; i++) {
        number what = random_word() % 300, first = argument();
        if (!is_left_out(what, first))
            succeeded += call(what, first, argument(), argument(), argument(), argument(), argument()) >= 0;
        tench(random_word() % 128);
    }
    call(DUP3, OUTPUT, 1, 0, 0, 0, 0);
    show("some calls succeeded", succeeded > CALLS / 50);
    return 0;
}
