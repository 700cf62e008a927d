/* Memory: the heap, areas, files that are mapped. The numbers are what Linux returns. */

#include "system.h"

enum { PAGE = 4096 };

static number map(number where, number bytes, number protection, number flags, number file, number offset) {
    return call(MMAP, where, bytes, protection, flags, file, offset);
}

/* Shows whether an area was made. */
static void show_made(const char *what, number address) { show(what, address < 0 && address > -4096 ? address : 1); }

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    number heap = call(BRK, 0, 0, 0, 0, 0, 0);
    show("heap grows", call(BRK, heap + 3 * PAGE + 5, 0, 0, 0, 0, 0) - heap);
    volatile char *bytes = (char *)heap;
    bytes[3 * PAGE + 4] = 7;
    show("and is zero", bytes[0] + bytes[2 * PAGE]);
    show("heap shrinks", call(BRK, heap, 0, 0, 0, 0, 0) - heap);
    show("heap grows", call(BRK, heap + 4 * PAGE, 0, 0, 0, 0, 0) - heap);
    show("and is zero again", bytes[3 * PAGE + 4]);
    show("not below its beginning", call(BRK, heap - 1, 0, 0, 0, 0, 0) - heap);

    number area = map(0, 10 * PAGE, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS, -1, 0);
    show_made("an area", area);
    bytes = (char *)area;
    for (int i = 0; i < 10; i++)
        bytes[i * PAGE] = (char)(i + 1);
    show("protect", call(MPROTECT, area + PAGE, PAGE, PROT_READ, 0, 0, 0));
    number zero = call(OPENAT, AT_FDCWD, (number)"/dev/zero", RDONLY, 0, 0, 0);
    show("write there", call(READ, zero, area + PAGE, 1, 0, 0, 0));
    show("unmap a part", call(MUNMAP, area + 4 * PAGE, 2 * PAGE, 0, 0, 0, 0));
    show("read across the hole", call(MPROTECT, area + 3 * PAGE, 4 * PAGE, PROT_READ, 0, 0, 0));
    show("let go", call(MADVISE, area + 7 * PAGE, PAGE, 4, 0, 0, 0));
    show("zero again", bytes[7 * PAGE]);
    show("the rest is there", bytes[8 * PAGE] + bytes[3 * PAGE]);
    number longer = call(MREMAP, area + 8 * PAGE, 2 * PAGE, 100 * PAGE, 1, 0, 0);
    show_made("longer", longer);
    show("with its contents", ((char *)longer)[0] + ((char *)longer)[PAGE] + ((char *)longer)[99 * PAGE]);

    show_made("no length", map(0, 0, PROT_READ, PRIVATE | ANONYMOUS, -1, 0));
    show_made("neither shared nor private", map(0, PAGE, PROT_READ, ANONYMOUS, -1, 0));
    show_made("no descriptor", map(0, PAGE, PROT_READ, PRIVATE, 77, 0));
    show_made("no whole page", map(0, PAGE, PROT_READ, PRIVATE, 0, 1));
    show("no address of a page", call(MUNMAP, area + 1, PAGE, 0, 0, 0, 0));

    number file = call(OPENAT, AT_FDCWD, (number)"/tmp/m", RDWR | CREAT | TRUNC, 0600, 0, 0);
    show("file", file > 0);
    show("write", call(WRITE, file, (number)"abcdef", 6, 0, 0, 0));
    volatile char *private = (char *)map(0, PAGE, PROT_READ | PROT_WRITE, PRIVATE, file, 0);
    volatile char *shared = (char *)map(0, 2 * PAGE, PROT_READ | PROT_WRITE, SHARED, file, 0);
    show("both are the file", private[0] == 'a' && shared[5] == 'f' && shared[6] == 0);
    private[0] = 'P';
    shared[1] = 'S';
    char text[8] = {0};
    show("read", call(PREAD64, file, (number)text, 8, 0, 0, 0));
    show("only one is seen", equal(text, "aScdef", 6));
    show("private is private", private[0]);
    show("write to the file", call(PWRITE64, file, (number)"F", 1, 2, 0, 0));
    show("shared sees it", shared[2]);
    show("read to what is mapped", call(PREAD64, file, (number)(shared + 3), 1, 0, 0, 0) + shared[3]);
    show("beyond the file", call(WRITE, 1, (number)(shared + PAGE), 1, 0, 0, 0));
    number read_only = call(OPENAT, AT_FDCWD, (number)"/tmp/m", RDONLY, 0, 0, 0);
    show_made("shared and writable", map(0, PAGE, PROT_WRITE, SHARED, read_only, 0));
    show_made("private and writable", map(0, PAGE, PROT_WRITE, PRIVATE, read_only, 0));

    /* Instructions that return 42, written, then executed. */
    uint32_t *code = (uint32_t *)map(0, PAGE, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS, -1, 0);
    code[0] = 0x52800540;
    code[1] = 0xd65f03c0;
    show("may execute", call(MPROTECT, (number)code, PAGE, PROT_READ | PROT_EXEC, 0, 0, 0));
    __asm__ volatile("dc cvau, %0\n dsb ish\n ic ivau, %0\n dsb ish\n isb" ::"r"(code) : "memory");
    show("executed", ((int (*)(void))code)());
    return 0;
}
