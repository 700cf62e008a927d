/* Does what a program must not do: fault KIND. docs/manual/servers.md says what each kind of fault means. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where programs can have memory, and this one has none. */
#define NEVER 0x400000000000
/* Bytes of a block that goes back to the system as soon as it is freed. */
#define LARGE (4 << 20)
/* Bytes of stack that each call uses. */
#define FRAME 1024

static const char constant[] = "constant";
static int data[4];

/* The compiler must not know what an address is: it would not do what is asked. */
static volatile char *at(uintptr_t address)
{
    volatile uintptr_t hidden = address;
    return (volatile char *)hidden;
}

static void write_to_null(void)
{
    *at(0) = 1;
}

static int descend(int depth)
{
    volatile char frame[FRAME];
    frame[0] = (char)depth;
    /* No stack is so deep. */
    return depth < 0 ? 0 : descend(depth + 1) + frame[0];
}

static void use_too_much_stack(void)
{
    descend(0);
}

static void read_where_nothing_is(void)
{
    (void)*at(NEVER);
}

static void read_what_was_freed(void)
{
    char *block = malloc(LARGE);
    if (block == NULL) {
        printf("fault: not enough memory for a block to free\n");
        exit(EXIT_FAILURE);
    }
    uintptr_t address = (uintptr_t)block + LARGE / 2;
    *at(address) = 1;
    free(block);
    (void)*at(address);
}

static void write_to_code(void)
{
    *at((uintptr_t)&write_to_code) = 1;
}

static void write_to_constants(void)
{
    *at((uintptr_t)constant) = 1;
}

static void jump_to_data(void)
{
    ((void (*)(void))at((uintptr_t)data))();
}

static void execute_nonsense(void)
{
    __asm__ volatile("udf #0");
}

static void call_another_system(void)
{
    __asm__ volatile("svc #0" ::: "memory");
}

static const struct {
    const char *kind;
    void (*trigger)(void);
} triggers[] = {
    {"null", write_to_null},
    {"stack", use_too_much_stack},
    {"never", read_where_nothing_is},
    {"freed", read_what_was_freed},
    {"code", write_to_code},
    {"constant", write_to_constants},
    {"data", jump_to_data},
    {"undefined", execute_nonsense},
    {"foreign", call_another_system},
};

#define COUNT (sizeof triggers / sizeof triggers[0])

static void usage(void)
{
    printf("usage: fault KIND, where KIND is");
    for (size_t i = 0; i < COUNT; i++)
        printf("%s%s", i == 0 ? " " : i + 1 < COUNT ? ", " : " or ", triggers[i].kind);
    printf("\n");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage();
        return EXIT_SUCCESS;
    }
    if (argc != 2) {
        usage();
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(argv[1], triggers[i].kind) == 0) {
            triggers[i].trigger();
            printf("fault: nothing happened\n");
            return EXIT_FAILURE;
        }
    }
    printf("fault: \"%s\" is no kind of fault; ", argv[1]);
    usage();
    return EXIT_FAILURE;
}
