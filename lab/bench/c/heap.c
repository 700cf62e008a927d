/* What malloc asks of the system, for the experiment `heap`, which starts this program and says what the figures mean. */

#include <stdio.h>
#include <stdlib.h>

/* Allocations of a series. */
#define COUNT 1024

static void *allocations[COUNT];

/* Sizes, and what the figures of a series are called. The first is R0's. */
static const struct size {
    size_t bytes;
    const char *name;
} sizes[] = {{4, ""}, {1000, "x1000"}, {40000, "x40000"}};

/* Allocates and frees many blocks of a size. Returns whether there was memory. */
static int series(const struct size *size)
{
    uint64_t heap = tench_heap_size(), requests = tench_heap_requests(), blocks = tench_memory_requests();
    uint64_t start = tench_instructions();
    for (int i = 0; i < COUNT; i++)
        allocations[i] = malloc(size->bytes);
    uint64_t cost = tench_instructions() - start;
    uint64_t grown = tench_heap_size();
    requests = tench_heap_requests() - requests;
    blocks = tench_memory_requests() - blocks;
    for (int i = 0; i < COUNT; i++) {
        if (allocations[i] == NULL) {
            printf("heap: there is no memory for allocations of %zu bytes\n", size->bytes);
            return 0;
        }
    }
    start = tench_instructions();
    for (int i = 0; i < COUNT; i++)
        free(allocations[i]);
    uint64_t freeing = tench_instructions() - start;
    printf("figure: c_1024%s_requests %lu\n", size->name, requests);
    printf("figure: c_1024%s_blocks %lu\n", size->name, blocks);
    printf("figure: c_1024%s_kib %lu\n", size->name, (grown - heap) / 1024);
    printf("figure: c_1024%s_left_kib %lu\n", size->name, (tench_heap_size() - heap) / 1024);
    printf("figure: c_%zu %lu\n", size->bytes, cost / COUNT);
    printf("figure: free_c_%zu %lu\n", size->bytes, freeing / COUNT);
    return 1;
}

int main(void)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (!series(&sizes[i]))
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
