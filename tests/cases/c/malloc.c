/* Tries malloc and its relatives where they can go wrong: malloc WHAT. Ends with 0, or says in which line it found what. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("malloc: line %d: not so: %s (errno %d)\n", __LINE__, #condition, errno);                           \
            return EXIT_FAILURE;                                                                                       \
        }                                                                                                              \
    } while (0)

/* The compiler knows malloc and leaves out what it thinks is of no use; it must not know which size is meant. */
static size_t hidden(size_t size)
{
    volatile size_t value = size;
    return value;
}

/* Whether all bytes are as they were written. */
static int is_filled(const unsigned char *block, size_t size, unsigned char byte)
{
    for (size_t i = 0; i < size; i++) {
        if (block[i] != byte)
            return 0;
    }
    return 1;
}

static int no_bytes(void)
{
    void *blocks[] = {malloc(hidden(0)), calloc(hidden(0), 8), calloc(8, hidden(0)), aligned_alloc(64, hidden(0))};
    for (int i = 0; i < 4; i++) {
        CHECK(blocks[i] != NULL);
        for (int j = 0; j < i; j++)
            CHECK(blocks[i] != blocks[j]);
    }
    for (int i = 0; i < 4; i++) {
        blocks[i] = realloc(blocks[i], hidden(0));
        CHECK(blocks[i] != NULL);
        blocks[i] = realloc(blocks[i], hidden(100));
        CHECK(blocks[i] != NULL);
        memset(blocks[i], i, 100);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(is_filled(blocks[i], 100, (unsigned char)i));
        free(blocks[i]);
    }
    free(NULL);
    return EXIT_SUCCESS;
}

static int overflow(void)
{
    static const size_t counts[][2] = {{SIZE_MAX, 2}, {2, SIZE_MAX}, {(size_t)1 << 32, (size_t)1 << 32}, {SIZE_MAX / 2, 3}};
    for (int i = 0; i < 4; i++) {
        errno = 0;
        CHECK(calloc(hidden(counts[i][0]), hidden(counts[i][1])) == NULL);
        CHECK(errno == ENOMEM);
    }
    errno = 0;
    CHECK(malloc(hidden(SIZE_MAX)) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(malloc(hidden(SIZE_MAX - 15)) == NULL && errno == ENOMEM);
    char *block = malloc(hidden(16));
    CHECK(block != NULL);
    memset(block, 7, 16);
    errno = 0;
    CHECK(realloc(block, hidden(SIZE_MAX)) == NULL && errno == ENOMEM);
    CHECK(is_filled((unsigned char *)block, 16, 7));
    free(block);
    return EXIT_SUCCESS;
}

static int alignment(void)
{
    static const size_t refused[] = {0, 3, 24, 4097, SIZE_MAX};
    for (int i = 0; i < 5; i++) {
        errno = 0;
        CHECK(aligned_alloc(hidden(refused[i]), 8) == NULL && errno == EINVAL);
    }
    for (size_t alignment = 1; alignment <= 1 << 21; alignment *= 2) {
        unsigned char *block = aligned_alloc(hidden(alignment), hidden(300));
        CHECK(block != NULL && (uintptr_t)block % alignment == 0);
        memset(block, 9, 300);
        block = realloc(block, hidden(5000));
        CHECK(block != NULL && is_filled(block, 300, 9));
        free(block);
    }
    return EXIT_SUCCESS;
}

/* Blocks of the test below, each of which begins with the one before. */
struct block {
    struct block *before;
    size_t size;
    unsigned char bytes[];
};

/* Takes blocks of a size until there is no memory, and uses all of each. */
static struct block *take_all(size_t size, uint64_t *taken)
{
    struct block *last = NULL;
    unsigned char number = 0;
    for (*taken = 0;; *taken += size) {
        errno = 0;
        struct block *block = malloc(size);
        if (block == NULL)
            return last;
        block->before = last;
        block->size = size;
        memset(block->bytes, ++number, size - sizeof *block);
        last = block;
    }
}

/* The parent has given a quota of 4 MiB. Whatever the size, memory ends with a refusal, and nothing else. */
static int exhaustion(void)
{
    static const size_t sizes[] = {100, 5000, 70000, 300000, 600000, 100};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t taken, heap = tench_heap_size();
        struct block *last = take_all(hidden(sizes[i]), &taken);
        CHECK(errno == ENOMEM);
        /* A part is the program's, and a part is lost to blocks of this size. */
        CHECK(taken > 1400000);
        unsigned char number = (unsigned char)(taken / sizes[i]);
        while (last != NULL) {
            CHECK(last->size == sizes[i]);
            CHECK(is_filled(last->bytes, sizes[i] - sizeof *last, number--));
            struct block *before = last->before;
            free(last);
            last = before;
        }
        CHECK(number == 0);
        /* It has shrunk, or has what it had. */
        CHECK(tench_heap_size() < 2000000 || tench_heap_size() <= heap);
    }
    /* What can never be is refused at once, and more than there is, too. */
    errno = 0;
    CHECK(malloc(hidden((size_t)64 << 20)) == NULL && errno == ENOMEM);
    return EXIT_SUCCESS;
}

static const struct {
    const char *what;
    int (*test)(void);
} tests[] = {{"no-bytes", no_bytes}, {"overflow", overflow}, {"alignment", alignment}, {"exhaustion", exhaustion}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof tests / sizeof tests[0]; i++) {
        if (strcmp(argv[1], tests[i].what) == 0)
            return tests[i].test();
    }
    printf("usage: malloc no-bytes|overflow|alignment|exhaustion\n");
    return EXIT_FAILURE;
}
