/*
 * A program that uses nothing for which the library would need memory: `stack KIB [x…]` uses that much of its stack,
 * and then looks at its arguments. Ends with 0, or says in which line it found what.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("stack: line %d: not so: %s\n", __LINE__, #condition);                                              \
            return EXIT_FAILURE;                                                                                       \
        }                                                                                                              \
    } while (0)

/* An index that the compiler does not know: otherwise it would keep no more of a frame than it needs. */
static volatile unsigned anywhere;

/* Uses some KiB of the stack, in frames of one. */
static unsigned descend(unsigned depth)
{
    char frame[1024 - 64];
    frame[anywhere] = (char)depth;
    return depth == 0 ? 0 : descend(depth - 1) + 1 + (frame[anywhere] != (char)depth);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2 && argv[argc] == NULL);
    unsigned depth = 0;
    for (const char *digit = argv[1]; *digit != 0; digit++)
        depth = 10 * depth + (unsigned)(*digit - '0');
    CHECK(descend(depth) == depth);
    for (int i = 2; i < argc; i++) {
        CHECK(strcmp(argv[i], "x") == 0);
        argv[i][0] = 'y';
    }
    for (int i = 2; i < argc; i++)
        CHECK(strcmp(argv[i], "y") == 0);
    return EXIT_SUCCESS;
}
