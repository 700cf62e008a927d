/* Linux's asynchronous I/O: contexts, operations, results, and each error. */

#include "operations.h"

enum { PREAD = 0, PWRITE = 1, FSYNC = 2, FDSYNC = 3, READ_VECTORS = 7, WRITE_VECTORS = 8 };
enum { COUNTED = 1 };

struct result {
    uint64_t data;
    struct operation *of;
    int64_t result, second;
};

struct vector {
    void *address;
    size length;
};

static struct operation all[200];
static struct operation *list[200];
static struct result found[200];

static number submit(size context, number count) { return call(IO_SUBMIT, context, count, (number)list, 0, 0, 0); }

static number take(size context, number least, number most, number time) {
    return call(IO_GETEVENTS, context, least, most, (number)found, time, 0);
}

static number sync(size context) { return take(context, 1, 200, 0); }

/* Submits one operation, and shows what the call returns and the operation's result. */
static void one(const char *what, size context, struct operation operation) {
    static struct operation place;
    place = operation;
    list[0] = &place;
    number taken = submit(context, 1);
    show(what, taken);
    if (taken != 1)
        return;
    show("  results", sync(context));
    show("  data", found[0].data);
    show("  the operation", found[0].of == &place);
    show("  result", found[0].result);
    show("  second", found[0].second);
    show("  key", place.key);
}

static struct operation make(number kind, number file, const void *place, size length, number offset) {
    return (struct operation){7, 9, 0, kind, 0, file, (size)place, length, offset, 0, 0, 0};
}

static void contexts(void) {
    size context = 0, other = 1;
    show("none", call(IO_SETUP, 0, (number)&context, 0, 0, 0, 0));
    show("nowhere", call(IO_SETUP, 1, 8, 0, 0, 0, 0));
    show("not empty", call(IO_SETUP, 1, (number)&other, 0, 0, 0, 0));
    other = 0;
    show("far too many", call(IO_SETUP, 0x10000000, (number)&other, 0, 0, 0, 0));
    show("too many", call(IO_SETUP, 65537, (number)&other, 0, 0, 0, 0));
    show("make", call(IO_SETUP, 8, (number)&context, 0, 0, 0, 0));
    show("another", call(IO_SETUP, 8, (number)&other, 0, 0, 0, 0));
    show("another one", context != other && other != 0);
    show("submit nothing", submit(context, 0));
    show("fewer than nothing", submit(context, -1));
    show("to nobody", submit(8, 1));
    show("read of nobody", take(8, 0, 1, 0));
    show("more than there may be", take(context, 2, 1, 0));
    show("less than nothing", take(context, -1, 1, 0));
    show("nothing to wait for", take(context, 0, 1, 0));
    number none[2] = {0, 0}, soon[2] = {0, 1000000};
    show("not waiting", take(context, 1, 1, (number)none));
    show("waiting a little", take(context, 1, 1, (number)soon));
    show("bad time", take(context, 1, 1, 8));
    show("end", call(IO_DESTROY, other, 0, 0, 0, 0, 0));
    show("end again", call(IO_DESTROY, other, 0, 0, 0, 0, 0));
    int status;
    number child = fork();
    if (child == 0)
        exit((int)-submit(context, 0));
    wait_for(child, &status);
    show("in a child", status >> 8);
    show("end", call(IO_DESTROY, context, 0, 0, 0, 0, 0));
}

static void files(size context, number file) {
    char text[16] = "0123456789", rest[16] = {0};
    one("write", context, make(PWRITE, file, text, 10, 5));
    one("read", context, make(PREAD, file, rest, 16, 7));
    print(rest), print("\n");
    struct vector vectors[2] = {{rest, 2}, {rest + 8, 3}};
    one("read to vectors", context, make(READ_VECTORS, file, vectors, 2, 5));
    print(rest), print("|"), print(rest + 8), print("\n");
    one("write from vectors", context, make(WRITE_VECTORS, file, vectors, 2, 0));
    one("sync", context, make(FSYNC, file, 0, 0, 0));
    one("sync data", context, make(FDSYNC, file, 0, 0, 0));
    one("sync with a place", context, make(FSYNC, file, text, 0, 0));
    one("end of the file", context, make(PREAD, file, rest, 4, 100));
    one("bad place", context, make(PREAD, file, (void *)8, 4, 0));
    one("impossible place", context, make(PREAD, file, (void *)-8, 4, 0));
    one("bad vectors", context, make(READ_VECTORS, file, (void *)8, 1, 0));
    one("too many vectors", context, make(READ_VECTORS, file, vectors, 2000, 0));
    one("before the file", context, make(PREAD, file, rest, 4, -1));
    one("negative length", context, make(PWRITE, file, text, (size)-1, 0));
    one("unknown kind", context, make(99, file, text, 1, 0));
    one("no file", context, make(PREAD, 99, rest, 4, 0));
    struct operation operation = make(PREAD, file, rest, 4, 0);
    operation.reserved = 1;
    one("reserved", context, operation);
    operation.reserved = 0, operation.how = 0x40000000;
    one("unknown flags", context, operation);
    number directory = call(OPENAT, AT_FDCWD, (number)"/tmp", RDONLY, 0, 0, 0);
    one("directory", context, make(PREAD, directory, rest, 4, 0));
    number reading = call(OPENAT, AT_FDCWD, (number)"/tmp/operations", RDONLY, 0, 0, 0);
    one("write what is read", context, make(PWRITE, reading, text, 4, 0));
    number writing = call(OPENAT, AT_FDCWD, (number)"/tmp/operations", WRONLY, 0, 0, 0);
    one("read what is written", context, make(PREAD, writing, rest, 4, 0));
    number zero = call(OPENAT, AT_FDCWD, (number)"/dev/null", RDWR, 0, 0, 0);
    one("null", context, make(PREAD, zero, rest, 4, 0));
    one("to null", context, make(PWRITE, zero, text, 4, 0));
    one("sync null", context, make(FSYNC, zero, 0, 0, 0));
}

static void pipes(size context) {
    int ends[2];
    char text[8] = "abcdef", rest[8] = {0};
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    one("to a pipe", context, make(PWRITE, ends[1], text, 6, 0));
    one("from a pipe", context, make(PREAD, ends[0], rest, 8, 0));
    print(rest), print("\n");
    one("from the wrong end", context, make(PREAD, ends[1], rest, 8, 0));
    one("sync a pipe", context, make(FSYNC, ends[1], 0, 0, 0));
    call(CLOSE, ends[0], 0, 0, 0, 0, 0);
    one("to nobody", context, make(PWRITE, ends[1], text, 6, 0));
}

static void counters(size context, number file) {
    char text[4] = "abc";
    uint64_t count = 0;
    number counter = call(EVENTFD2, 0, 04000, 0, 0, 0, 0);
    struct operation operation = make(PWRITE, file, text, 3, 0);
    operation.flags = COUNTED, operation.counter = counter;
    for (int i = 0; i < 3; i++)
        all[i] = operation, list[i] = &all[i];
    show("three", submit(context, 3));
    show("counted", call(READ, counter, (number)&count, 8, 0, 0, 0));
    show("so many", count);
    show("some of them", take(context, 1, 2, 0));
    show("the others", take(context, 1, 2, 0));
    operation.counter = file;
    one("no counter", context, operation);
    operation.counter = 99;
    one("nothing", context, operation);
}

static void several(size context, number file) {
    char text[4] = "abc";
    for (int i = 0; i < 200; i++)
        all[i] = make(PWRITE, file, text, 3, 0), all[i].data = i, list[i] = &all[i];
    list[2] = (void *)8;
    show("until one cannot be read", submit(context, 4));
    list[2] = &all[2], all[2].kind = 99;
    show("until one is unknown", submit(context, 4));
    all[2].kind = PWRITE;
    show("four results", take(context, 4, 10, 0));
    show("in order", found[0].data == 0 && found[1].data == 1 && found[2].data == 0);
    show("no list", call(IO_SUBMIT, context, 1, 8, 0, 0, 0));
    show("more than there is room for", submit(context, 200));
    show("no room", submit(context, 1));
    show("nowhere", call(IO_GETEVENTS, context, 1, 1, 8, 0, 0));
    show("all", take(context, 1, 200, 0));
    show("room again", submit(context, 1));
    show("one", sync(context));
    show("cancel what is done", call(IO_CANCEL, context, (number)&all[0], (number)found, 0, 0, 0));
    all[0].key = 1;
    show("cancel what is none", call(IO_CANCEL, context, (number)&all[0], (number)found, 0, 0, 0));
    show("cancel nothing", call(IO_CANCEL, context, 8, (number)found, 0, 0, 0));
    all[0].key = 0;
    show("cancel of nobody", call(IO_CANCEL, 8, (number)&all[0], (number)found, 0, 0, 0));
}

static void masks(size context) {
    size set = 1 << (SIGUSR1 - 1);
    struct {
        size *set, size;
    } mask = {&set, 8}, bad = {&set, 4};
    number soon[2] = {0, 1000000};
    number time = (number)soon;
    show("with a mask", call(IO_PGETEVENTS, context, 1, 1, (number)found, time, (number)&mask));
    show("with a bad one", call(IO_PGETEVENTS, context, 1, 1, (number)found, time, (number)&bad));
    show("with none", call(IO_PGETEVENTS, context, 1, 1, (number)found, time, 0));
    show("with one nowhere", call(IO_PGETEVENTS, context, 1, 1, (number)found, time, 8));
    size blocked = 1;
    call(RT_SIGPROCMASK, 0, 0, (number)&blocked, 8, 0, 0);
    show("blocked afterwards", blocked);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    size context = 0;
    contexts();
    show("make", call(IO_SETUP, 4, (number)&context, 0, 0, 0, 0));
    number file = call(OPENAT, AT_FDCWD, (number)"/tmp/operations", RDWR | CREAT | TRUNC, 0600, 0, 0);
    files(context, file);
    size pipe = 1 << (SIGPIPE - 1);
    call(RT_SIGPROCMASK, 0, (number)&pipe, 0, 8, 0, 0);
    pipes(context);
    call(RT_SIGTIMEDWAIT, (number)&pipe, 0, 0, 8, 0, 0);
    call(RT_SIGPROCMASK, 1, (number)&pipe, 0, 8, 0, 0);
    counters(context, file);
    several(context, file);
    masks(context);
    char text[16] = {0};
    number limit = call(OPENAT, AT_FDCWD, (number)"/proc/sys/fs/aio-max-nr", RDONLY, 0, 0, 0);
    call(READ, limit, (number)text, 15, 0, 0, 0);
    print("most: "), print(text);
    return 0;
}
