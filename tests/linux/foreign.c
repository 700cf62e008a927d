/* Memory of other processes, which pages are there, and barriers. */

#include "system.h"

enum { MINCORE = 232, PROCESS_VM_READV = 270, PROCESS_VM_WRITEV = 271, MEMBARRIER = 283 };
enum { PAGE = 4096 };

struct vector {
    const void *address;
    size length;
};

static number barrier(number command, number flags) { return call(MEMBARRIER, command, flags, 0, 0, 0, 0); }

static number copy(number how, number id, struct vector *own, number count, struct vector *other, number others, number flags) {
    return call(how, id, (number)own, count, (number)other, others, flags);
}

static void memories(void) {
    static char text[] = "the parent's", more[PAGE * 2];
    int ends[2], back[2], status;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    call(PIPE2, (number)back, 0, 0, 0, 0, 0);
    number id = fork();
    if (id == 0) {
        static const char own[] = "the child's.";
        for (int i = 0; i < 13; i++)
            text[i] = own[i];
        call(WRITE, back[1], (number)text, 1, 0, 0, 0);
        call(READ, ends[0], (number)text + 12, 1, 0, 0, 0);
        text[12] = 0;
        print("in the child: "), print(text), print("\n");
        exit(0);
    }
    call(READ, back[0], (number)more, 1, 0, 0, 0);
    char into[16] = {0}, rest[16] = {0};
    struct vector own[3] = {{into, 4}, {rest, 0}, {rest, 8}}, other[2] = {{text, 7}, {text + 8, 100}};
    show("read", copy(PROCESS_VM_READV, id, own, 3, other, 2, 0));
    print(into), print("|"), print(rest), print("\n");
    struct vector word[1] = {{"THE", 3}}, there[1] = {{text, 3}};
    show("write", copy(PROCESS_VM_WRITEV, id, word, 1, there, 1, 0));
    show("flags", copy(PROCESS_VM_READV, id, own, 1, other, 1, 1));
    show("too many", copy(PROCESS_VM_READV, id, own, 1025, other, 1, 0));
    show("none", copy(PROCESS_VM_READV, 12345, own, 0, other, 1, 0));
    show("none there", copy(PROCESS_VM_READV, 12345, own, 1, other, 0, 0));
    show("nobody", copy(PROCESS_VM_READV, 12345, own, 1, other, 1, 0));
    struct vector bad[2] = {{text, 3}, {(void *)8, 3}};
    show("bad address of the own", copy(PROCESS_VM_READV, id, bad + 1, 1, other, 1, 0));
    show("bad address there", copy(PROCESS_VM_READV, id, own, 1, bad + 1, 1, 0));
    struct vector ten[1] = {{more, 10}};
    show("half of it", copy(PROCESS_VM_READV, id, ten, 1, bad, 2, 0));
    show("bad vectors", copy(PROCESS_VM_READV, id, (struct vector *)8, 1, other, 1, 0));
    struct vector here[1] = {{text, 12}};
    show("of oneself", copy(PROCESS_VM_READV, call(GETPID, 0, 0, 0, 0, 0, 0), ten, 1, here, 1, 0));
    show("which is other memory", more[4] == 'p');
    call(WRITE, ends[1], (number) "", 1, 0, 0, 0);
    wait_for(id, &status);
    show("of one that has ended", copy(PROCESS_VM_READV, id, own, 1, other, 1, 0));
}

static void pages(void) {
    char there[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    number place = call(MMAP, 0, 4 * PAGE, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS, -1, 0);
    ((volatile char *)place)[PAGE] = 1;
    show("pages", call(MINCORE, place, 3 * PAGE + 1, (number)there, 0, 0, 0));
    show("there", there[0] * 1000 + there[1] * 100 + there[2] * 10 + there[3]);
    show("no more was written", there[4]);
    show("address", call(MINCORE, place + 1, PAGE, (number)there, 0, 0, 0));
    show("bad place", call(MINCORE, place, PAGE, 8, 0, 0, 0));
    call(MUNMAP, place + 2 * PAGE, PAGE, 0, 0, 0, 0);
    show("nothing there", call(MINCORE, place, 4 * PAGE, (number)there, 0, 0, 0));
    show("none", call(MINCORE, place, 0, (number)there, 0, 0, 0));
    number file = call(OPENAT, AT_FDCWD, (number) "/tmp/pages", RDWR | CREAT | TRUNC, 0600, 0, 0);
    call(PWRITE64, file, (number) "x", 1, PAGE, 0, 0);
    number mapped = call(MMAP, 0, 2 * PAGE, PROT_READ, SHARED, file, 0);
    call(MINCORE, mapped, 2 * PAGE, (number)there, 0, 0, 0);
    show("of a file", there[0] * 10 + there[1]);
}

static void barriers(void) {
    show("some", (barrier(0, 0) & 127) == 127);
    show("flags", barrier(0, 2));
    show("command", barrier(3, 0));
    show("all", barrier(1, 0));
    show("not registered", barrier(8, 0));
    show("register", barrier(16, 0));
    show("own", barrier(8, 0));
    show("for code", barrier(32, 0));
    show("register", barrier(64, 0));
    show("for code", barrier(32, 0));
    show("fast", barrier(2, 0));
    show("register", barrier(4, 0));
    int status;
    number id = fork();
    if (id == 0)
        exit((int)-barrier(8, 0));
    wait_for(id, &status);
    show("a child", status >> 8);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    memories();
    pages();
    barriers();
    return 0;
}
