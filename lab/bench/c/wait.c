/*
 * A process that is there and waits, for the experiment `spawn`. With an argument it ends at once instead, and its exit code
 * is the number of instructions, as far as that fits, with which the processor has come to main.
 */

#include <stdlib.h>
#include <tench.h>

int main(int argc, char *argv[])
{
    uint64_t begun = tench_instructions();
    (void)argv;
    if (argc > 1)
        return (int)(begun & 0x3fffffff);
    for (;;)
        sleep(UINT32_MAX);
}
