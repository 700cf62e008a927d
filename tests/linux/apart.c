/* Processes that know Tench and take their own CSpaces apart: each gets the capability to send its calls, copies it, moves
   the only node into itself, and ends. The program ends with 0 if all of them could do so, or with 1. */

#include "system.h"

enum { PRCTL = 167, SET_ENTRANCE = 0x54656e63, MESSAGES = 1, OWN_CSPACE = 0, COPY = 32, NODE_REMOVE = 39 };
enum { CHILDREN = 4000, FREE = 16 };

/* A system call of Tench. Returns its result: 0, or an error. */
static number tench(number what, number a, number b, number c, number d) {
    register number x10 __asm__("x10") = what;
    register number x0 __asm__("x0") = a;
    register number x1 __asm__("x1") = b;
    register number x2 __asm__("x2") = c;
    register number x3 __asm__("x3") = d;
    __asm__ volatile("svc #1"
                     : "+r"(x10), "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
                     :: "x4", "x5", "x6", "x7", "x8", "x9", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "memory");
    return x0;
}

/* Returns 0 if the CSpace could be taken apart, and the capability is no longer there. */
static number take_apart(void) {
    number endpoint = call(PRCTL, SET_ENTRANCE, MESSAGES, 0, 0, 0, 0);
    if (endpoint <= 0)
        return 1;
    for (number slot = 0; slot < FREE; slot++)
        if (slot != 0 && slot != endpoint && tench(COPY, OWN_CSPACE, endpoint, OWN_CSPACE, slot) != 0)
            return 2;
    if (tench(NODE_REMOVE, OWN_CSPACE, 0, FREE, 0) != 0)
        return 3;
    return tench(COPY, OWN_CSPACE, endpoint, OWN_CSPACE, FREE) == 0 ? 4 : 0;
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    for (number child = 1; child <= CHILDREN; child++) {
        number process = fork();
        if (process == 0)
            exit(take_apart());
        int status;
        if (process < 0 || wait_for(process, &status) != process || status != 0)
            return 1;
    }
    return 0;
}
