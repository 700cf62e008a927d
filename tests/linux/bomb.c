/* A program that makes processes until there is no memory for more, each of which writes to pages of its own and makes
   some more. It ends with 0 once it could make no further one; all others end with it. It ends with 1 if that was at
   once, or never. */

#include "system.h"

enum { PAGES = 64, PAGE = 4096, LEAST = 20, MOST = 4000 };

static char data[PAGES * PAGE];

static void touch(void) {
    for (int page = 0; page < PAGES; page++)
        data[page * PAGE]++;
}

static void rest(void) {
    number moment[2] = {0, 1000000};
    call(NANOSLEEP, (number)moment, 0, 0, 0, 0, 0);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    for (int made = 0; made < MOST; made++) {
        number child = fork();
        if (child < 0)
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
    return 1;
}
