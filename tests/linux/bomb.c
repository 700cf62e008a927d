/* A program that makes processes until there is no memory for more, each of which writes to pages of its own and makes
   some more. It ends with 0 once it could make no further one, or one was killed for its memory; all others end with it.
   It ends with 1 if that was at once, and with 2 if it never came to that. */

#include "system.h"

enum { PAGES = 64, PAGE = 4096, LEAST = 20, MOST = 4000, NO_HANG = 1 };

static char data[PAGES * PAGE];

static void touch(void) {
    for (int page = 0; page < PAGES; page++)
        data[page * PAGE]++;
}

static void rest(void) {
    number moment[2] = {0, 1000000};
    call(NANOSLEEP, (number)moment, 0, 0, 0, 0, 0);
}

/* Returns whether a child has ended; none ends by itself. */
static int has_lost_one(void) {
    return call(WAIT4, -1, 0, NO_HANG, 0, 0, 0) > 0;
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    for (int made = 0; made < MOST; made++) {
        number child = fork();
        if (child < 0 || has_lost_one())
            return made < LEAST;
        if (child == 0) {
            touch();
            while (fork() < 0)
                rest();
            touch();
            for (;;)
                rest();
        }
    }
    return 2;
}
