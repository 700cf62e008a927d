/* Bytes that move between pipes, other files and memory. */

#include "system.h"

enum { VMSPLICE = 75, SPLICE = 76, TEE = 77 };
enum { NONBLOCK_FLAG = 2, NONBLOCK = 04000, F_SETFL = 4, STREAM = 1, UNIX = 1 };

static char bytes[70000];

static number splice(number from, size *from_at, number to, size *to_at, size length, number flags) {
    return call(SPLICE, from, (number)from_at, to, (number)to_at, length, flags);
}

static number tee(number from, number to, size length, number flags) { return call(TEE, from, to, length, flags, 0, 0); }

static void put(int file, const char *text) { call(WRITE, file, (number)text, length(text), 0, 0, 0); }

static void take(const char *what, int file) {
    static char text[65];
    number count = call(READ, file, (number)text, 64, 0, 0, 0);
    text[count > 0 ? count : 0] = 0;
    print(what), print(": "), print(text), print("\n");
}

static int make(const char *path, number flags) {
    return (int)call(OPENAT, AT_FDCWD, (number)path, flags | CREAT, 0600, 0, 0);
}

static void refused(void) {
    int a[2], b[2], file = make("/tmp/spliced", RDWR | TRUNC);
    size at = 0, bad = ~0ul;
    call(PIPE2, (number)a, 0, 0, 0, 0, 0);
    call(PIPE2, (number)b, 0, 0, 0, 0, 0);
    put(a[1], "abc");
    show("nothing", splice(77, 0, 78, 0, 0, 0));
    show("flags", splice(a[0], 0, b[1], 0, 1, 16));
    show("no file", splice(77, 0, b[1], 0, 1, 0));
    show("no other file", splice(a[0], 0, 77, 0, 1, 0));
    show("offset of a pipe", splice(a[0], &at, b[1], 0, 1, 0));
    show("of the other", splice(a[0], 0, b[1], &at, 1, 0));
    show("wrong way", splice(a[1], 0, b[0], 0, 1, 0));
    show("to itself", splice(a[0], 0, a[1], 0, 1, 0));
    show("no pipe", splice(file, 0, file, 0, 1, 0));
    show("bad offset", splice(file, &bad, a[1], 0, 1, 0));
    show("bad address", call(SPLICE, file, 8, a[1], 0, 1, 0));
    show("a directory", splice(call(OPENAT, AT_FDCWD, (number) "/tmp", RDONLY, 0, 0, 0), 0, a[1], 0, 1, 0));
    int append = make("/tmp/spliced", WRONLY | APPEND);
    show("appending", splice(a[0], 0, append, 0, 1, 0));
    int reads = make("/tmp/spliced", RDONLY);
    show("a file that is only read", splice(a[0], 0, reads, 0, 1, 0));
    show("tee: flags", tee(a[0], b[1], 1, 16));
    show("tee: nothing", tee(77, 78, 0, 0));
    show("tee: no file", tee(77, b[1], 1, 0));
    show("tee: no pipe", tee(a[0], file, 1, 0));
    show("tee: to itself", tee(a[0], a[1], 1, 0));
    show("tee: wrong way", tee(a[1], b[0], 1, 0));
    size vector[2] = {(size) "xyz", 3};
    show("vmsplice: flags", call(VMSPLICE, a[1], (number)vector, 1, 16, 0, 0));
    show("vmsplice: no file", call(VMSPLICE, 77, (number)vector, 1, 0, 0, 0));
    show("vmsplice: no pipe", call(VMSPLICE, file, (number)vector, 1, 0, 0, 0));
    show("vmsplice: too many", call(VMSPLICE, a[1], (number)vector, 1025, 0, 0, 0));
    show("vmsplice: none", call(VMSPLICE, a[1], (number)vector, 0, 0, 0, 0));
    take("nothing is lost", a[0]);
}

static void pipes(void) {
    int a[2], b[2];
    call(PIPE2, (number)a, 0, 0, 0, 0, 0);
    call(PIPE2, (number)b, 0, 0, 0, 0, 0);
    put(a[1], "hello, world");
    show("tee", tee(a[0], b[1], 5, 0));
    show("splice", splice(a[0], 0, b[1], 0, 7, 0));
    take("what has come", b[0]);
    take("what is left", a[0]);
    show("would wait", splice(a[0], 0, b[1], 0, 7, NONBLOCK_FLAG));
    show("tee would wait", tee(a[0], b[1], 7, NONBLOCK_FLAG));
    call(FCNTL, b[1], F_SETFL, NONBLOCK, 0, 0, 0);
    show("a file that does not wait", splice(a[0], 0, b[1], 0, 7, 0));
    show("full", call(WRITE, b[1], (number)bytes, 65536, 0, 0, 0));
    put(a[1], "more");
    show("no room", splice(a[0], 0, b[1], 0, 7, 0));
    show("no room for tee", tee(a[0], b[1], 7, 0));
    call(FCNTL, b[1], F_SETFL, 0, 0, 0, 0);
    int status;
    number child = fork();
    if (child == 0) {
        number count = splice(a[0], 0, b[1], 0, 7, 0);
        exit((int)count);
    }
    call(NANOSLEEP, (number)(number[]){0, 10000000}, 0, 0, 0, 0, 0);
    show("room", call(READ, b[0], (number)bytes, 65536, 0, 0, 0));
    wait_for(child, &status);
    show("a child has waited", status >> 8);
    take("what it has moved", b[0]);
    child = fork();
    if (child == 0)
        exit((int)splice(a[0], 0, b[1], 0, 100, 0));
    call(NANOSLEEP, (number)(number[]){0, 10000000}, 0, 0, 0, 0, 0);
    put(a[1], "at last");
    wait_for(child, &status);
    show("a child has waited for bytes", status >> 8);
    take("what it has moved", b[0]);
    call(CLOSE, a[1], 0, 0, 0, 0, 0);
    show("the end", splice(a[0], 0, b[1], 0, 7, 0));
    show("the end for tee", tee(a[0], b[1], 7, 0));
    call(CLOSE, b[0], 0, 0, 0, 0, 0);
    child = fork();
    if (child == 0) {
        int c[2];
        call(PIPE2, (number)c, 0, 0, 0, 0, 0);
        put(c[1], "x");
        splice(c[0], 0, b[1], 0, 1, 0);
        exit(0);
    }
    wait_for(child, &status);
    show("nobody reads", status);
}

static void files(void) {
    int a[2], ends[2], file = make("/tmp/spliced", RDWR | TRUNC);
    size at = 2;
    call(PIPE2, (number)a, 0, 0, 0, 0, 0);
    put(file, "0123456789");
    show("from an offset", splice(file, &at, a[1], 0, 4, 0));
    show("which has moved", (number)at);
    show("the position has not", call(LSEEK, file, 0, 1, 0, 0, 0));
    at = 8;
    show("behind the end", splice(a[0], 0, file, &at, 3, 0));
    show("offset", (number)at);
    call(LSEEK, file, 0, 0, 0, 0, 0);
    show("to the position", splice(a[0], 0, file, 0, 100, 0));
    show("position", call(LSEEK, file, 0, 1, 0, 0, 0));
    take("the file from there", file);
    show("the end of the file", splice(file, 0, a[1], 0, 4, 0));
    call(FTRUNCATE, file, 100000, 0, 0, 0, 0);
    call(LSEEK, file, 0, 0, 0, 0, 0);
    show("as much as fits", splice(file, 0, a[1], 0, 100000, 0));
    show("no room", splice(file, 0, a[1], 0, 1, NONBLOCK_FLAG));
    int null = (int)call(OPENAT, AT_FDCWD, (number) "/dev/null", RDWR, 0, 0, 0);
    show("to nowhere", splice(a[0], 0, null, 0, 65536, 0));
    show("would wait", splice(a[0], 0, null, 0, 1, NONBLOCK_FLAG));
    show("from nowhere", splice(null, 0, a[1], 0, 1, 0));
    const char *devices[] = {"/dev/zero", "/dev/full", "/dev/urandom", "/proc/self/comm", "/proc/version"};
    for (int i = 0; i < 5; i++) {
        int from = (int)call(OPENAT, AT_FDCWD, (number)devices[i], RDONLY, 0, 0, 0);
        show(devices[i], splice(from, 0, a[1], 0, 3, 0));
        if (i < 3)
            show("to it", splice(a[0], 0, call(OPENAT, AT_FDCWD, (number)devices[i], WRONLY, 0, 0, 0), 0, 3, NONBLOCK_FLAG));
    }
    splice(a[0], 0, null, 0, 100, NONBLOCK_FLAG);
    call(SOCKETPAIR, UNIX, STREAM, 0, (number)ends, 0, 0);
    put(a[1], "to a socket");
    show("to a socket", splice(a[0], 0, ends[0], 0, 100, 0));
    take("there", ends[1]);
    put(ends[1], "from a socket");
    show("from a socket", splice(ends[0], 0, a[1], 0, 100, 0));
    take("here", a[0]);
    show("offset of a socket", splice(ends[0], &at, a[1], 0, 100, 0));
    size vectors[4] = {(size) "vec", 3, (size) "tors", 4};
    show("from memory", call(VMSPLICE, a[1], (number)vectors, 2, 0, 0, 0));
    static char first[3], second[65];
    size into[4] = {(size)first, 2, (size)second, 64};
    show("to memory", call(VMSPLICE, a[0], (number)into, 2, 0, 0, 0));
    print(first), print(" "), print(second), print("\n");
    size bad[2] = {8, 4};
    show("from a bad address", call(VMSPLICE, a[1], (number)bad, 1, 0, 0, 0));
    show("to memory would wait", call(VMSPLICE, a[0], (number)into, 2, NONBLOCK_FLAG, 0, 0));
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    refused();
    pipes();
    files();
    return 0;
}
