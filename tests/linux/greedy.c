/* A program that takes everything there is: files, descriptors, pipes and sockets with what fits into them, memory,
   processes. It says which error it got in the end for each, and gives all of it back. With the argument `touch`, a
   process writes to more memory than there is, and ends; its parent goes on. */

#include "sockets.h"

enum { SETRLIMIT = 164, CLOSE_RANGE = 436 };
enum { PAGE = 4096, MOST = 1000000, NOFILE = 7, NONBLOCKING = 04000 };

static number limits[2] = {1 << 20, 1 << 20};

static char name[] = "/tmp/g/0000000";

static void number_name(int count) {
    for (int digit = 0; digit < 7; digit++, count /= 10)
        name[sizeof name - 2 - digit] = (char)('0' + count % 10);
}

static void show_end(const char *what, int count, number error) {
    show(what, error);
    if (count < 2 || count == MOST)
        show("a strange number of them", count);
}

static void make_files(void) {
    int count = 0;
    number error = 0;
    call(MKDIRAT, AT_FDCWD, (number)"/tmp/g", 0700, 0, 0, 0);
    for (; count < MOST && error >= 0; count++) {
        number_name(count);
        error = call(MKDIRAT, AT_FDCWD, (number)name, 0700, 0, 0, 0);
    }
    show_end("directories", count, error);
    while (--count > 0) {
        number_name(count - 1);
        call(UNLINKAT, AT_FDCWD, (number)name, 0x200, 0, 0, 0);
    }
    show("and none is left", call(UNLINKAT, AT_FDCWD, (number)"/tmp/g", 0x200, 0, 0, 0));
}

static void make_ends(const char *what, int are_sockets) {
    int count = 0, ends[2], first = -1;
    number error = 0;
    for (; count < MOST && error >= 0; count++) {
        error = are_sockets ? call(SOCKETPAIR, 1, 1 | NONBLOCKING, 0, (number)ends, 0, 0)
                            : call(PIPE2, (number)ends, NONBLOCKING, 0, 0, 0, 0);
        if (error >= 0) {
            first = first < 0 ? ends[0] : first;
            while (call(WRITE, ends[1], (number)text, sizeof text, 0, 0, 0) > 0)
                ;
        }
    }
    show_end(what, count, error);
    show("and they are closed", call(CLOSE_RANGE, first, MOST, 0, 0, 0, 0));
}

static void map_memory(void) {
    int count = 0;
    number error = 0, first = 0;
    for (; count < MOST && error >= 0; count++) {
        // Neighbours have different rights, so that they stay apart.
        error = call(MMAP, 0, PAGE, count % 2 ? PROT_READ : PROT_NONE, PRIVATE | ANONYMOUS, -1, 0);
        first = error > 0 ? error : first;
    }
    show_end("areas", count, error);
    show("and they are unmapped", call(MUNMAP, first, (number)count * PAGE, 0, 0, 0, 0));
}

static void touch(void) {
    for (number size = 1l << 30;; size *= 2) {
        char *at = (char *)call(MMAP, 0, size, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS, -1, 0);
        for (number offset = 0; offset < size; offset += PAGE)
            at[offset] = 1;
    }
}

int program(number count, char **arguments) {
    call(SETRLIMIT, NOFILE, (number)limits, 0, 0, 0, 0);
    if (count > 1 && equal(arguments[1], "touch", 6)) {
        int status = 0;
        number child = fork();
        if (child == 0)
            touch();
        show("the child ended with", wait_for(child, &status) == child ? status : -1);
    }
    make_files();
    make_ends("pipes", 0);
    make_ends("sockets", 1);
    map_memory();
    return 0;
}
