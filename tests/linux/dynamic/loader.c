/* A program that is to load the rest of another one: it says what it found, and goes on with the other. */

#include "../system.h"

int program(number count, char **arguments) {
    (void)count;
    char **at = arguments;
    while (*at)
        at++;
    at++;
    while (*at)
        at++;
    number headers = 0, base = 0, entry = 0;
    for (number *pair = (number *)(at + 1); pair[0]; pair += 2)
        if (pair[0] == 3)
            headers = pair[1];
        else if (pair[0] == 7)
            base = pair[1];
        else if (pair[0] == 9)
            entry = pair[1];
    show("the loader begins like a program", equal((char *)base, "\177ELF", 4));
    number own = (number)&program;
    show("and has this function", base < own && own < base + 0x10000);
    show("program headers begin with themselves", *(uint32_t *)headers == 6);
    __asm__ volatile("mov sp, %0\nbr %1\n" ::"r"(arguments - 1), "r"(entry));
    __builtin_unreachable();
}
