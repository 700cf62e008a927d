/* Processes that make random calls, of Linux and of Tench, with random arguments, registers and contents of memory, and
   their parent, which ends what is left of them and finds itself as it was.

   hostile [SEED CALLS]: the children together make at least so many calls; each that has ended, or makes none any more,
   gets a successor. It ends with 0 if the parent is as it was. */

#include "system.h"

enum { PTRACE = 117, PRCTL = 167 };
enum { CHILDREN = 6, CALLS = 1500, WNOHANG = 1, ROUNDS = 200, PATIENCE = 4, REAL = 0 };

static uint64_t state = 88172645463325252;

static uint64_t random_word(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static char data[3 * 4096];

/* The numbers of calls that the children have made, which they share with their parent. */
static volatile number *made;

/* A child by its number among those that there are at a time. */
struct child {
    number process, seen, rounds;
};

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

/* Sends a signal to the parent, or traces it: who may do that may end it. */
static int is_left_out(number what, number first, number second) {
    if (what == PTRACE)
        return (int)second == 1;
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

/* A system call of Linux with random registers, and one time in eight with a random stack pointer. */
static void linux_call(number what, number first, number second) {
    register number x8 __asm__("x8") = what;
    register number x0 __asm__("x0") = first;
    register number x1 __asm__("x1") = second;
    register number x2 __asm__("x2") = argument();
    register number x3 __asm__("x3") = argument();
    register number x4 __asm__("x4") = argument();
    register number x5 __asm__("x5") = argument();
    register number x6 __asm__("x6") = argument();
    register number x7 __asm__("x7") = argument();
    register number x9 __asm__("x9") = random_word() & 7 ? 0 : argument();
    __asm__ volatile("mov x10, sp\n"
                     "cbz x9, 1f\n"
                     "mov sp, x9\n"
                     "1: svc #0\n"
                     "mov sp, x10\n"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x4), "+r"(x5), "+r"(x6), "+r"(x7), "+r"(x8), "+r"(x9)
                     :: "x10", "memory");
}

enum { SET_ENTRANCE = 0x54656e63, MESSAGE = 7, HAS_DEADLINE = 1 << 12 };

/* Sends a call as a message to the personality, possibly without waiting for the reply. */
static void send(number what, number first, number second) {
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    register number x0 __asm__("x0") = 1;
    register number x1 __asm__("x1") = MESSAGE | (random_word() % 4 ? HAS_DEADLINE : 0);
    register number x2 __asm__("x2") = what;
    register number x3 __asm__("x3") = first;
    register number x4 __asm__("x4") = second;
    register number x5 __asm__("x5") = argument();
    register number x6 __asm__("x6") = argument();
    register number x7 __asm__("x7") = argument();
    register number x8 __asm__("x8") = argument();
    register number x10 __asm__("x10") = 0;
    register number x12 __asm__("x12") = now + (random_word() & 0xffff);
    __asm__ volatile("svc #1"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x4), "+r"(x5), "+r"(x6), "+r"(x7), "+r"(x8), "+r"(x10),
                       "+r"(x12)::"x9", "x11", "x13", "x14", "x15", "x16", "x17", "memory");
}

/* Whether a call does nothing but end its caller, or have it wait for ever: it is made less often. */
static int only_stops(number what) {
    return what == EXIT || what == EXIT_GROUP || what == 139 || what == RT_SIGSUSPEND;
}

static void count_it(int signal) { (void)signal; }

/* Prepares a child that goes on: a timer interrupts its waits. */
static void prepare(void) {
    call(SETSID, 0, 0, 0, 0, 0, 0);
    for (number file = 0; file < 3; file++)
        call(CLOSE, file, 0, 0, 0, 0, 0);
    struct {
        void (*handler)(int);
        size flags, restorer, mask;
    } action = {count_it, 0, 0, 0};
    call(RT_SIGACTION, SIGALRM, (number)&action, 0, 8, 0, 0);
    number interval[4] = {0, 2000, 0, 2000};
    call(SETITIMER, REAL, (number)interval, 0, 0, 0, 0);
    /* Most children can send their calls. Some set a handler of upcalls, mostly at an address that cannot handle anything. */
    if (random_word() % 4)
        call(PRCTL, SET_ENTRANCE, 1, 0, 0, 0, 0);
    if (random_word() % 16 == 0)
        call(PRCTL, SET_ENTRANCE, 2, argument(), 0, 0, 0);
}

/* Makes calls, as which child of those that there are at a time. */
static void attack_for_ever(int which) {
    prepare();
    for (;;) {
        for (int words = random_word() % 16; words > 0; words--)
            ((uint64_t *)data)[random_word() % (sizeof data / 8)] = argument();
        number what = random_word() % 64 ? random_word() % 300 : argument(), first = argument(), second = argument();
        if (is_left_out(what, first, second) || (only_stops(what) && random_word() % 64))
            continue;
        made[which]++;
        if (random_word() % 2)
            linux_call(what, first, second);
        else
            send(what, first, second);
        if (random_word() % 4 == 0)
            tench(random_word() % 128);
    }
}

static void attack(void) {
    call(SETSID, 0, 0, 0, 0, 0, 0);
    for (number file = 0; file < 3; file++)
        call(CLOSE, file, 0, 0, 0, 0, 0);
    call(PRCTL, SET_ENTRANCE, 1, 0, 0, 0, 0);
    for (number i = 0; i < CALLS; i++) {
        number what = random_word() % 300, first = argument(), second = argument();
        if (!is_left_out(what, first, second) && random_word() % 4)
            call(what, first, second, argument(), argument(), argument(), argument());
        else if (!is_left_out(what, first, second))
            send(what, first, second);
        tench(random_word() % 128);
    }
    exit(0);
}

static void rest(void) {
    number moment[2] = {0, 5000000};
    call(NANOSLEEP, (number)moment, 0, 0, 0, 0, 0);
}

/* Returns how many have ended. */
static number reap(void) {
    number ended = 0;
    while (call(WAIT4, -1, 0, WNOHANG, 0, 0, 0) > 0)
        ended++;
    return ended;
}

/* Has children make so many calls together, and returns how many children have ended. */
static number make_calls(number wanted) {
    struct child children[CHILDREN] = {{0, 0, 0}};
    number ended = 0, sum = 0;
    made = (volatile number *)call(MMAP, 0, 4096, PROT_READ | PROT_WRITE, SHARED | ANONYMOUS, -1, 0);
    while (sum < wanted) {
        sum = 0;
        for (int which = 0; which < CHILDREN; which++) {
            struct child *child = &children[which];
            child->rounds = made[which] == child->seen ? child->rounds + 1 : 0;
            child->seen = made[which];
            sum += child->seen;
            if (child->process > 0 && child->rounds < PATIENCE)
                continue;
            if (child->process > 0)
                call(KILL, child->process, SIGKILL, 0, 0, 0, 0);
            state += which + 1;
            random_word();
            child->rounds = 0;
            child->process = fork();
            if (child->process == 0)
                attack_for_ever(which);
        }
        rest();
        ended += reap();
    }
    return ended;
}

/* Has each child make a number of calls and end, if nothing ends it before. */
static number make_few_calls(void) {
    for (int child = 0; child < CHILDREN; child++) {
        random_word();
        if (fork() == 0)
            attack();
        state += child;
    }
    number ended = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ended += reap();
        rest();
    }
    return ended;
}

static number parse(const char *text) {
    number value = 0;
    for (; *text; text++)
        value = 10 * value + *text - '0';
    return value;
}

int program(number count, char **arguments) {
    if (count > 2)
        state ^= (uint64_t)parse(arguments[1]) << 32;
    number ended = count > 2 ? make_calls(parse(arguments[2])) : make_few_calls();
    call(KILL, -1, SIGKILL, 0, 0, 0, 0);
    number result;
    while ((result = wait_for(-1, 0)) > 0)
        ended++;
    show("nobody is left", result);
    show("all have ended", ended >= CHILDREN);
    size sum = 0;
    for (size i = 0; i < sizeof data; i++)
        sum += data[i];
    show("own memory is as it was", sum);
    number descriptors = call(FCNTL, 0, 1, 0, 0, 0, 0) + call(FCNTL, 3, 1, 0, 0, 0, 0);
    show("own descriptors are as they were", descriptors);
    return result != -10 || ended < CHILDREN || sum || descriptors != -9;
}
