/* An access where nothing is. */

#include "system.h"

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    print("before\n");
    *(volatile char *)16 = 1;
    print("after\n");
    return 0;
}
