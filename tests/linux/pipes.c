/* Pipes, with names and without, and waiting for them. */

#include "system.h"

enum { NONBLOCK = 04000, CLOEXEC = 02000000 };
enum { POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16 };
enum { IGNORE = 1 };

struct polled {
    int file;
    short events, result;
};

struct time {
    number seconds, nanoseconds;
};

static char block[70000];

static number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static number read(number file, number count) { return call(READ, file, (number)block, count, 0, 0, 0); }
static number write(number file, number count) { return call(WRITE, file, (number)block, count, 0, 0, 0); }
static number open(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0600, 0, 0); }

static number poll(int file, short events, short *result, number milliseconds) {
    struct polled record = {file, events, -1};
    struct time time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    number ready = call(PPOLL, (number)&record, 1, milliseconds < 0 ? 0 : (number)&time, 0, 0, 0);
    *result = record.result;
    return ready;
}

static void show_poll(const char *what, int file, short events) {
    short result;
    number ready = poll(file, events, &result, 0);
    show(what, ready);
    show("  events", result);
}

static void one_process(void) {
    int ends[2];
    show("unknown flags", call(PIPE2, (number)ends, 1, 0, 0, 0, 0));
    show("nowhere", call(PIPE2, 8, 0, 0, 0, 0, 0));
    show("pipe", call(PIPE2, (number)ends, NONBLOCK, 0, 0, 0, 0));
    show("ends", ends[0] * 10 + ends[1]);
    show("seek", call(LSEEK, ends[0], 0, 0, 0, 0, 0));
    show("read at an offset", call(PREAD64, ends[0], (number)block, 1, 0, 0, 0));
    show("read the writing end", read(ends[1], 1));
    show("write the reading end", write(ends[0], 1));
    show("read what is empty", read(ends[0], 1));
    show("read nothing", read(ends[0], 0));
    show_poll("poll the empty one", ends[0], POLLIN);
    show_poll("poll to write", ends[1], POLLOUT);
    show("write", write(ends[1], 10));
    int length = 0;
    show("how many can be read", call(IOCTL, ends[0], 0x541b, (number)&length, 0, 0, 0) + length);
    show_poll("poll the full one", ends[0], POLLIN | POLLOUT);
    show("read a part", read(ends[0], 4));
    show("read the rest", read(ends[0], 100));
    show("write more than fits", write(ends[1], 70000));
    show("write once more", write(ends[1], 1));
    show_poll("poll to write", ends[1], POLLOUT);
    show("make room", read(ends[0], 4096));
    show("write", write(ends[1], 4096));
    show("close", close(ends[1]));
    show("read", read(ends[0], 70000));
    show("read the end", read(ends[0], 1));
    show_poll("poll the end", ends[0], POLLIN);
    show("close", close(ends[0]));
    show("read what is closed", read(ends[0], 1));
}

static void nobody_reads(void) {
    int ends[2], status;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    close(ends[0]);
    number child = fork();
    if (child == 0) {
        write(ends[1], 1);
        exit(0);
    }
    wait_for(child, &status);
    show("writing what nobody reads ends by", status);
    number action[4] = {IGNORE, 0, 0, 0};
    call(RT_SIGACTION, SIGPIPE, (number)action, 0, 8, 0, 0);
    show("or fails", write(ends[1], 1));
    show_poll("poll it", ends[1], POLLOUT);
    close(ends[1]);
}

/* The child writes more than fits; the parent reads slowly. */
static void writers_wait(void) {
    int ends[2], status;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        close(ends[0]);
        for (size i = 0; i < sizeof block; i++)
            block[i] = (char)(i % 251);
        struct {
            char *base;
            size length;
        } parts[2] = {{block, 50000}, {block + 50000, 20000}};
        number all = call(WRITEV, ends[1], (number)parts, 2, 0, 0, 0);
        all += write(ends[1], sizeof block);
        exit(all == 2 * sizeof block ? 0 : 1);
    }
    close(ends[1]);
    number all = 0, wrong = 0, count;
    while ((count = read(ends[0], 777)) > 0) {
        for (number i = 0; i < count; i++, all++)
            wrong += block[i] != (char)(all % 70000 % 251);
    }
    wait_for(child, &status);
    show("read", all);
    show("wrong bytes", wrong);
    show("the writer ended with", status);
    close(ends[0]);
}

/* Many children write short lines at once, none of which may be torn. */
static void short_writes_are_whole(void) {
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    for (int child = 0; child < 4; child++) {
        if (fork() == 0) {
            for (size i = 0; i < 1000; i++)
                block[i] = (char)('a' + child);
            for (int i = 0; i < 100; i++)
                write(ends[1], 1000);
            exit(0);
        }
    }
    close(ends[1]);
    number torn = 0, all = 0, count, filled = 0;
    while ((count = call(READ, ends[0], (number)(block + filled), 1000 - filled, 0, 0, 0)) > 0) {
        filled += count;
        all += count;
        if (filled == 1000) {
            for (size i = 1; i < 1000; i++)
                torn += block[i] != block[0];
            filled = 0;
        }
    }
    while (wait_for(-1, 0) > 0)
        ;
    show("read", all);
    show("torn", torn);
    close(ends[0]);
}

static void polling_waits(void) {
    int ends[2];
    short result;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    show("poll for a moment", poll(ends[0], POLLIN, &result, 5));
    number child = fork();
    if (child == 0) {
        struct time time = {0, 2000000};
        call(NANOSLEEP, (number)&time, 0, 0, 0, 0, 0);
        write(ends[1], 1);
        exit(0);
    }
    show("poll for ever", poll(ends[0], POLLIN, &result, -1));
    size set = 1ul << ends[0] | 1ul << ends[1], empty = 1ul << ends[0];
    show("select to read", call(PSELECT6, 10, (number)&set, 0, 0, 0, 0));
    show("  only the reading end", set == empty);
    read(ends[0], 1);
    struct time time = {0, 1000000};
    show("select in vain", call(PSELECT6, 10, (number)&set, 0, 0, (number)&time, 0));
    show("  nothing is left", set + time.seconds + time.nanoseconds);
    show("select what is not open", (set = 1ul << 9, call(PSELECT6, 10, (number)&set, 0, 0, (number)&time, 0)));
    wait_for(child, 0);
    close(ends[0]);
    close(ends[1]);
}

static void with_a_name(void) {
    show("make", call(MKNODAT, AT_FDCWD, (number) "/tmp/fifo", 010600, 0, 0, 0));
    show("open to write, without a reader", open("/tmp/fifo", WRONLY | NONBLOCK));
    number reader = open("/tmp/fifo", RDONLY | NONBLOCK);
    show("open to read, without a writer", reader);
    show("read without a writer", read(reader, 1));
    number writer = open("/tmp/fifo", WRONLY | NONBLOCK);
    show("open to write", writer);
    show("read from a writer", read(reader, 1));
    close(reader);
    close(writer);
    number child = fork();
    if (child == 0) {
        writer = open("/tmp/fifo", WRONLY);
        write(writer, 5);
        exit(0);
    }
    reader = open("/tmp/fifo", RDONLY);
    show("both have waited: read", read(reader, 100));
    wait_for(child, 0);
    show("read the end", read(reader, 100));
    close(reader);
    show("open both ways", (reader = open("/tmp/fifo", RDWR)));
    show("write and read", write(reader, 3) * 10 + read(reader, 100));
    close(reader);
    show("remove", call(UNLINKAT, AT_FDCWD, (number) "/tmp/fifo", 0, 0, 0, 0));
}

int program(number count, char **arguments) {
    (void)count;
    (void)arguments;
    one_process();
    nobody_reads();
    writers_wait();
    short_writes_are_whole();
    polling_waits();
    with_a_name();
    return 0;
}
