/* Prints the first Fibonacci numbers: fibonacci [COUNT], 20 unless told otherwise. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last that fits into 64 bits is number 93. */
#define MAX_COUNT 94

int main(int argc, char **argv)
{
    long count = 20;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: fibonacci [COUNT], at most %d\n", MAX_COUNT);
        return EXIT_SUCCESS;
    }
    if (argc > 1) {
        char *end;
        count = strtol(argv[1], &end, 10);
        if (*end != '\0' || end == argv[1] || count < 0 || count > MAX_COUNT || argc > 2) {
            printf("usage: fibonacci [COUNT], at most %d\n", MAX_COUNT);
            return EXIT_FAILURE;
        }
    }
    if (tench_profile("fibonacci") != 0)
        printf("fibonacci: the slabs are full\n");
    uint64_t number = 0, next = 1;
    for (long i = 0; i < count; i++) {
        printf("fibonacci(%ld) = %lu\n", i, number);
        uint64_t sum = number + next;
        number = next;
        next = sum;
    }
    return EXIT_SUCCESS;
}
