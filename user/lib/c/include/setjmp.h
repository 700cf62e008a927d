/* Jumps out of nested calls, within a thread. The mode in which the processor rounds is not restored. */
#ifndef SETJMP_H
#define SETJMP_H

typedef unsigned long jmp_buf[21];

int setjmp(jmp_buf place) __attribute__((returns_twice));
_Noreturn void longjmp(jmp_buf place, int value);
#define setjmp(place) setjmp(place)

#endif
