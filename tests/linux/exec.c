/* A program that runs itself again, with other arguments, and finds what stays and what does not. */

#include "system.h"

enum { CLOEXEC = 02000000 };

int program(number count, char **arguments) {
    if (count > 1 && equal(arguments[1], "again", 6)) {
        char **variables = arguments + count + 1;
        show("arguments", count);
        show("the variable is there", equal(variables[0], "KEY=value", 10) && !variables[1]);
        show("one descriptor is closed, the other open", call(CLOSE, 3, 0, 0, 0, 0, 0) == -9 && call(CLOSE, 4, 0, 0, 0, 0, 0) == 0);
        show("memory is new", call(MUNMAP, 0x10000000, 4096, 0, 0, 0, 0) == 0 && call(WRITE, 1, 0x10000000, 1, 0, 0, 0) == -14);
        return 5;
    }
    call(OPENAT, AT_FDCWD, (number)"/dev/null", RDWR | CLOEXEC, 0, 0, 0);
    call(OPENAT, AT_FDCWD, (number)"/dev/null", RDWR, 0, 0, 0);
    call(MMAP, 0x10000000, 4096, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS | FIXED, -1, 0);
    *(volatile char *)0x10000000 = 1;
    char *again[] = {arguments[0], "again", 0}, *variables[] = {"KEY=value", 0};
    show("no such file", call(EXECVE, (number)"/missing", (number)again, (number)variables, 0, 0, 0));
    show("no program", call(EXECVE, (number)"/dev/null", (number)again, (number)variables, 0, 0, 0));
    show("no strings", call(EXECVE, (number)arguments[0], 8, (number)variables, 0, 0, 0));
    show("no path", call(EXECVE, 8, (number)again, (number)variables, 0, 0, 0));
    print("now\n");
    call(EXECVE, (number)arguments[0], (number)again, (number)variables, 0, 0, 0);
    print("not reached\n");
    return 1;
}
