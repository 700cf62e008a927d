/* A program that another one loads, and what it finds in the tree of files in which it lies. */

#include "../system.h"

static char written[] = "as linked";

static void status(const char *path) {
    uint8_t record[128];
    number error = call(NEWFSTATAT, AT_FDCWD, (number)path, (number)record, 0, 0, 0);
    print(path);
    show(", error", error);
    if (!error) {
        show("  permissions", *(uint32_t *)(record + 16) & 07777);
        show("  names", *(uint32_t *)(record + 20));
        show("  bytes", *(number *)(record + 48));
    }
}

int program(number count, char **arguments) {
    show("arguments", count);
    print(arguments[count - 1]);
    print("\n");
    show("variables", equal(written, "as linked", 10));
    written[0] = 'A';
    show("can be written", equal(written, "As linked", 10));
    status("/etc/both");
    status("/bin/../../etc/same");
    status("/bin/../etc/same");
    status("/usr/bin/nothing");
    char target[16] = {0};
    show("link", call(READLINKAT, AT_FDCWD, (number)"/bin", (number)target, sizeof target - 1, 0, 0));
    print(target);
    print("\n");
    number file = call(OPENAT, AT_FDCWD, (number)"/etc/both", RDWR, 0, 0, 0);
    char *mapped = (char *)call(MMAP, 0, 4096, PROT_READ, PRIVATE, file, 0);
    print(mapped);
    show("write", call(WRITE, file, (number)"new", 3, 0, 0, 0));
    print(mapped);
    return 3;
}
