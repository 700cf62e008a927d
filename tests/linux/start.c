/* What a program finds when it starts. */

#include "system.h"

int program(number count, char **arguments) {
    show("arguments", count);
    for (number i = 0; i < count; i++) {
        print(arguments[i]);
        print("\n");
    }
    show("end of the arguments", (number)arguments[count]);
    show("alignment of the stack", (number)(arguments - 1) % 16);
    char **at = arguments + count + 1;
    while (*at)
        at++;
    number pages = 0, headers = 0, entry = 0, random = 0, user = -1, name = 0;
    for (number *pair = (number *)(at + 1); pair[0]; pair += 2)
        switch (pair[0]) {
        case 3: headers = pair[1]; break;
        case 6: pages = pair[1]; break;
        case 9: entry = pair[1]; break;
        case 11: user = pair[1]; break;
        case 25: random = pair[1]; break;
        case 31: name = pair[1]; break;
        }
    extern char _start;
    show("page size", pages);
    show("entry is right", entry == (number)&_start);
    show("program headers begin with a loaded segment or a table", *(uint32_t *)headers == 1 || *(uint32_t *)headers == 6);
    show("user is somebody", user >= 0);
    show("random bytes are readable", (*(volatile char *)random, 1));
    show("name ends with the program's", equal((char *)name + length((char *)name) - 5, "start", 5));
    static char zeros[20000];
    number sum = 0;
    for (size i = 0; i < sizeof zeros; i++)
        sum += zeros[i];
    show("zeros", sum);
    return 7;
}
