/* Says hello, and what it was called with. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: hello [WORD...]\n");
        return EXIT_SUCCESS;
    }
    if (tench_profile("hello") != 0)
        printf("hello: the slabs are full\n");
    printf("hello");
    for (int i = 1; i < argc; i++)
        printf(" %s", argv[i]);
    printf("\n");
    return EXIT_SUCCESS;
}
