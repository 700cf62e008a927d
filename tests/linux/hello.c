/* The shortest program that does something: three calls. */

#include "system.h"

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    call(OPENAT, AT_FDCWD, (number)"/etc/missing", RDONLY, 0, 0, 0);
    print("hello\n");
    return 0;
}
