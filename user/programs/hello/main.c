/* Says hello, and what it was called with. */

#include <stdio.h>

int main(int argc, char **argv)
{
    if (tench_profile("hello") != 0)
        printf("hello: the slabs are full\n");
    printf("hello");
    for (int i = 1; i < argc; i++)
        printf(" %s", argv[i]);
    printf("\n");
    return 0;
}
