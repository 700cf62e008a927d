/* What programs that make threads share. */

#pragma once

#include "system.h"

enum { FS = 0x200, FILES = 0x400, SIGHAND = 0x800, THREAD = 0x10000, SYSVSEM = 0x40000, SETTLS = 0x80000 };
enum { PARENT_SETTID = 0x100000, CHILD_CLEARTID = 0x200000, CHILD_SETTID = 0x1000000 };
enum { ALL = CLONE_VM | FS | FILES | SIGHAND | THREAD | SYSVSEM };

/* Runs a function in a new thread, which ends with it. */
number start_thread(void (*function)(number), number argument, void *stack, number flags, volatile int *parent_id,
                    void *thread_pointer, volatile int *child_id);
__asm__(".global start_thread\n"
        "start_thread: stp x0, x1, [x2, #-16]!\n"
        "mov x0, x3\n mov x1, x2\n mov x2, x4\n mov x3, x5\n mov x4, x6\n mov x8, #220\n svc #0\n"
        "cbz x0, 1f\n ret\n"
        "1: mov x29, #0\n ldp x1, x0, [sp], #16\n blr x1\n mov x0, #0\n mov x8, #93\n svc #0\n");
