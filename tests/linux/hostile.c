/* Processes that make random calls, of Linux and of Tench, with random arguments, and their parent, which ends what is
   left of them and finds itself as it was. */

#include "system.h"

enum { CHILDREN = 6, CALLS = 1500, WNOHANG = 1 };

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

/* Sends a signal to the parent: who may do that may end it. */
static int is_left_out(number what, number first, number second) {
    int signals = what == KILL || what == TKILL || what == TGKILL || what == RT_SIGQUEUEINFO;
    return signals && ((int)first <= 1 || (int)second == 1);
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

static void attack(void) {
    call(SETSID, 0, 0, 0, 0, 0, 0);
    for (number file = 0; file < 3; file++)
        call(CLOSE, file, 0, 0, 0, 0, 0);
    for (number i = 0; i < CALLS; i++) {
        number what = random_word() % 300, first = argument(), second = argument();
        if (!is_left_out(what, first, second))
            call(what, first, second, argument(), argument(), argument(), argument());
        tench(random_word() % 128);
    }
    exit(0);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    struct {
        number seconds, nanoseconds;
    } moment = {0, 5000000};
    for (int child = 0; child < CHILDREN; child++) {
        random_word();
        if (fork() == 0)
            attack();
        state += child;
    }
    number ended = 0, result;
    for (int round = 0; round < 200; round++) {
        while ((result = call(WAIT4, -1, 0, WNOHANG, 0, 0, 0)) > 0)
            ended++;
        call(NANOSLEEP, (number)&moment, 0, 0, 0, 0, 0);
    }
    call(KILL, -1, SIGKILL, 0, 0, 0, 0);
    while ((result = wait_for(-1, 0)) > 0)
        ended++;
    show("nobody is left", result);
    show("all have ended", ended >= CHILDREN);
    size sum = 0;
    for (size i = 0; i < sizeof data; i++)
        sum += data[i];
    show("own memory is as it was", sum);
    show("own descriptors are as they were", call(FCNTL, 0, 1, 0, 0, 0, 0) + call(FCNTL, 3, 1, 0, 0, 0, 0));
    return 0;
}
