/* Copying from one file to another without passing the bytes on. */

#include "system.h"

enum { COPY_FILE_RANGE = 285 };

static char text[64];

static number open(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0600, 0, 0); }

static number copy(number from, int64_t *at, number to, int64_t *into, size length, number flags) {
    return call(COPY_FILE_RANGE, from, (number)at, to, (number)into, (number)length, flags);
}

/* Prints what is in a file. */
static void show_file(const char *what, number file) {
    number count = call(PREAD64, file, (number)text, sizeof text - 1, 0, 0, 0);
    text[count > 0 ? count : 0] = 0;
    for (number i = 0; i < count; i++)
        if (text[i] == 0)
            text[i] = '.';
    print(what), print(": "), print(text), print("\n");
}

static void copies(number one, number two) {
    int64_t at = 2, into = 1;
    show("by positions", copy(one, 0, two, 0, 3, 0));
    show("position of the source", call(LSEEK, one, 0, 1, 0, 0, 0));
    show("position of the copy", call(LSEEK, two, 0, 1, 0, 0, 0));
    show_file("the copy", two);
    show("from an offset to another", copy(one, &at, two, &into, 4, 0));
    show("offset of the source", at);
    show("offset of the copy", into);
    show("position of the copy", call(LSEEK, two, 0, 1, 0, 0, 0));
    show_file("the copy", two);
    at = 8, into = 12;
    show("more than there is, behind the end", copy(one, &at, two, &into, 100, 0));
    show_file("the copy", two);
    at = 10;
    show("at the end", copy(one, &at, two, 0, 5, 0));
    at = 50;
    show("behind the end", copy(one, &at, two, 0, 5, 0));
    at = 0, into = 5;
    show("within a file", copy(one, &at, one, &into, 5, 0));
    show_file("the source", one);
}

static void mistakes(number one, number two) {
    int64_t at = 0, into = 3, negative = -1, far = 0x7fffffffffffffff;
    int ends[2];
    number other = open("/tmp", DIRECTORY), read_only = open("/tmp/one", RDONLY), add = open("/tmp/two", RDWR | APPEND);
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    show("overlap", copy(one, &at, one, &into, 5, 0));
    show("overlap behind the end", copy(one, &at, one, &into, 500, 0));
    show("no such flag", copy(one, &at, two, &into, 5, 1));
    show("no source", copy(77, &at, two, &into, 5, 0));
    show("no copy", copy(one, &at, 77, &into, 5, 0));
    show("no source, with a flag", copy(77, &at, two, &into, 5, 1));
    show("no offset there", copy(one, (int64_t *)8, two, &into, 5, 1));
    show("from a directory", copy(other, 0, two, 0, 5, 0));
    show("to a directory", copy(one, 0, other, 0, 5, 0));
    show("from a pipe", copy(ends[0], 0, two, 0, 5, 0));
    show("to a pipe", copy(one, 0, ends[1], 0, 5, 0));
    show("to a file that is only read", copy(one, 0, read_only, 0, 5, 0));
    show("to the end, whatever the offset", copy(one, 0, add, 0, 5, 0));
    show("a negative offset", copy(one, &negative, two, 0, 5, 0));
    show("a negative offset of the copy", copy(one, 0, two, &negative, 5, 0));
    show("a length beyond all", copy(one, &far, two, 0, (size)-1, 0));
    show("nothing", copy(one, &at, two, 0, 0, 0));
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    number one = open("/tmp/one", RDWR | CREAT | TRUNC), two = open("/tmp/two", RDWR | CREAT | TRUNC);
    call(WRITE, one, (number) "0123456789", 10, 0, 0, 0);
    call(LSEEK, one, 0, 0, 0, 0, 0);
    copies(one, two);
    mistakes(one, two);
    return 0;
}
