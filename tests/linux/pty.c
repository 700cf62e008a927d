/* Pseudo-terminals: both sides, and what remains when one is gone. */

#include "pty.h"

static int count_slaves(void) {
    static char entries[65536];
    number directory = open("/dev/pts", RDONLY | DIRECTORY), count, entry = 0;
    while ((count = call(GETDENTS64, directory, (number)entries, sizeof entries, 0, 0, 0)) > 0)
        for (number at = 0; at < count; at += *(unsigned short *)(entries + at + 16))
            entry++;
    close(directory);
    return (int)entry;
}

static void show_file(const char *path) {
    static unsigned record[32];
    print(path);
    show(" status", call(NEWFSTATAT, AT_FDCWD, (number)path, (number)record, 0, 0, 0));
    show("  mode", record[4]);
    show("  group", record[7]);
    show("  device", *(number *)(record + 8));
}

static void names(void) {
    show_file("/dev/ptmx");
    number master = open("/dev/ptmx", RDWR);
    int is_locked = 7, value;
    show("number", number_of(master));
    show_file("/dev/pts/0");
    show("is locked", control(master, IS_LOCKED, &is_locked));
    show("  so it is", is_locked);
    show("locked slave", open("/dev/pts/0", RDWR));
    show("locked peer", control(master, PEER, (void *)(RDWR | NOCTTY)));
    show("unlock", lock(master, 0));
    control(master, IS_LOCKED, &is_locked);
    show("  now", is_locked);
    number slave = open("/dev/pts/0", RDWR | NOCTTY), peer = control(master, PEER, (void *)(RDWR | NOCTTY | CLOEXEC));
    show("slave and peer", slave > 0 && peer > 0);
    show("  closed on exec", call(FCNTL, peer, 1, 0, 0, 0, 0));
    static char link[64];
    static char own[] = "/proc/self/fd/X";
    own[14] = (char)('0' + peer);
    show("the peer's path", call(READLINKAT, AT_FDCWD, (number)own, (number)link, 64, 0, 0));
    print(link);
    print("\n");
    number other = open("/dev/ptmx", RDWR);
    show("another", number_of(other));
    show("entries", count_slaves());
    show("number of a slave", control(slave, GET_NUMBER, &value));
    show("unknown at the slave", control(slave, 0x54ff, &value));
    show("unknown at the master", control(master, 0x54ff, &value));
    show("position", call(LSEEK, slave, 0, 0, 0, 0, 0));
    show("read at an offset", call(PREAD64, master, (number)link, 1, 0, 0, 0));
    number record[16];
    call(STATFS, (number)"/dev/pts", (number)record, 0, 0, 0, 0);
    show("file system", record[0]);
    show("unlink", call(UNLINKAT, AT_FDCWD, (number)"/dev/pts/0", 0, 0, 0, 0));
    show("unlink nothing", call(UNLINKAT, AT_FDCWD, (number)"/dev/pts/7", 0, 0, 0, 0));
    show("make a directory", call(MKDIRAT, AT_FDCWD, (number)"/dev/pts/x", 0755, 0, 0, 0));
    show("make a file", open("/dev/pts/x", RDWR | CREAT));
    show("link", call(LINKAT, AT_FDCWD, (number)"/dev/pts/0", AT_FDCWD, (number)"/tmp/pts", 0, 0));
    show("rename", call(RENAMEAT, AT_FDCWD, (number)"/dev/pts/0", AT_FDCWD, (number)"/tmp/pts", 0, 0));
    show("rename there", call(RENAMEAT, AT_FDCWD, (number)"/dev/pts/0", AT_FDCWD, (number)"/dev/pts/3", 0, 0));
    show("remove the directory", call(UNLINKAT, AT_FDCWD, (number)"/dev/pts", 0x200, 0, 0, 0));
    show("elsewhere", call(MKNODAT, AT_FDCWD, (number)"/tmp/slave", 020600, 136 << 8, 0, 0));
    show("  opened", open("/tmp/slave", RDWR | NOCTTY));
    show("change permissions", call(53, AT_FDCWD, (number)"/dev/pts/0", 0600, 0, 0, 0));
    show_file("/dev/pts/0");
    show("close", close(master));
    show("it is gone", open("/dev/pts/0", RDWR));
    show("number while the slave is open", number_of(master = open("/dev/ptmx", RDWR)));
    close(master);
    close(slave), close(peer);
    show("number afterwards", number_of(master = open("/dev/ptmx", RDWR)));
    close(master), close(other);
    show("entries", count_slaves());
}

static void data(void) {
    static char bytes[64];
    number master = open_master(), slave = open(path_of(master), RDWR | NOCTTY);
    struct modes modes;
    unsigned short sizes[4] = {0};
    int count = -1;
    show("modes", control(slave, GET_MODES, &modes));
    show("  input", modes.input);
    show("  output", modes.output);
    show("  control", modes.control);
    show("  local", modes.local);
    show("modes at the master", control(master, GET_MODES, &modes));
    show("  local", modes.local);
    control(slave, GET_SIZE, sizes);
    show("rows", sizes[0]);
    show("a line", put(master, "hello\n"));
    show_read("slave", slave, 6);
    show_read("echo", master, 7);
    show("an answer", put(slave, "one\ntwo"));
    show_read("master", master, 8);
    show("half a line", put(master, "abc"));
    show("slave's events", poll(slave, IN | OUT, 0));
    show_read("echo", master, 3);
    show("erased and ended", put(master, "\x7f\n"));
    show_read("slave", slave, 3);
    show_read("echo", master, 5);
    put(master, "end\x04");
    show_read("a part of a line", slave, 3);
    show_read("  echo", master, 3);
    put(master, "\x04");
    show("slave's events at the end", poll(slave, IN, 5000));
    show("  read", get(slave, bytes, 64));
    put(master, "1234\n56\n");
    show_read("echo", master, 10);
    control(slave, READABLE, &count);
    show("readable", count);
    control(slave, UNSENT, &count);
    show("unsent", count);
    show("flush input", control(slave, FLUSH, 0));
    show("slave's events", poll(slave, IN | OUT, 0));
    show("flush what", control(slave, FLUSH, (void *)3));
    show("drain", control(slave, BREAK, (void *)1));
    put(slave, "xyz");
    show("master's events", poll(master, IN | OUT, 5000));
    control(master, READABLE, &count);
    show("readable", count);
    show("flush the master", control(master, FLUSH, 0));
    show("master's events", poll(master, IN | OUT, 0));
    change(master, LINES | ECHO, 0);
    put(master, "raw");
    show_read("slave", slave, 3);
    close(slave), close(master);
}

static void waiting(void) {
    static char bytes[8192];
    number master = open("/dev/ptmx", RDWR | NOCTTY | NONBLOCK);
    lock(master, 0);
    number slave = open(path_of(master), RDWR | NOCTTY | NONBLOCK);
    show("nothing at the slave", get(slave, bytes, 1));
    show("nothing at the master", get(master, bytes, 1));
    show("nothing to write", put(master, ""));
    change(slave, LINES | ECHO, 0);
    number total = 0, part;
    while ((part = call(WRITE, master, (number)bytes, 1000, 0, 0, 0)) > 0 && total < 1000000)
        total += part;
    show("the slave is full", part);
    show("  of some", total >= 4096 && total < 100000);
    number taken = 0;
    while (taken < total && poll(slave, IN, 5000) == IN)
        if ((part = get(slave, bytes, sizeof bytes)) > 0)
            taken += part;
    show("  all of it can be read", taken == total);
    show("  and there is room", poll(master, OUT, 5000));
    total = 0;
    while ((part = call(WRITE, slave, (number)bytes, 1000, 0, 0, 0)) > 0 && total < 1000000)
        total += part;
    show("the master is full", part);
    show("  of some", total >= 4096 && total < 100000);
    taken = 0;
    while (taken < total && poll(master, IN, 5000) == IN)
        if ((part = get(master, bytes, sizeof bytes)) > 0)
            taken += part;
    show("  all of it can be read", taken == total);
    show("  and there is room", poll(slave, OUT, 5000));
    close(slave), close(master);
}

/* Lets a child write much at one side, and reads it at the other. */
static void stream(const char *what, number from, number to) {
    static char bytes[100000];
    int status = 0, is_right = 1;
    number child = fork(), count = 0;
    if (child == 0) {
        for (number i = 0; i < 100000; i++)
            bytes[i] = (char)('a' + i % 26);
        exit(call(WRITE, from, (number)bytes, 100000, 0, 0, 0) == 100000 ? 5 : 6);
    }
    while (count < 100000 && poll(to, IN, 5000) & IN) {
        number part = get(to, bytes, 5000);
        for (number i = 0; i < part; i++, count++)
            is_right &= bytes[i] == 'a' + count % 26;
    }
    wait_for(child, &status);
    show(what, count);
    show("  in order", is_right);
    show("  the writer", status >> 8);
}

static void streams(void) {
    number master = open_master(), slave = open(path_of(master), RDWR | NOCTTY);
    change(slave, LINES | ECHO, 0);
    stream("to the slave", master, slave);
    stream("to the master", slave, master);
    close(slave), close(master);
}

struct event {
    unsigned events;
    size data;
};

static void show_events(const char *what, number set) {
    struct event events[4];
    number count = call(EPOLL_PWAIT, set, (number)events, 4, 0, 0, 8);
    print(what);
    show(", events", count);
    for (number i = 0; i < count; i++) {
        show("  file", (number)events[i].data);
        show("  events", events[i].events);
    }
}

static void ends(void) {
    static char bytes[64];
    number master = open_master(), set = call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0);
    show("before the slave was open", poll(master, IN | OUT, 0));
    show("typed before", put(master, "early\n"));
    number slave = open(path_of(master), RDWR | NOCTTY);
    show_read("slave", slave, 6);
    show_read("echo", master, 7);
    struct event at_master = {IN | OUT | EDGE, 1}, at_slave = {IN | OUT, 2};
    call(EPOLL_CTL, set, ADD, master, (number)&at_master, 0, 0);
    call(EPOLL_CTL, set, ADD, slave, (number)&at_slave, 0, 0);
    show_events("at first", set);
    put(slave, "x");
    poll(master, IN, 5000);
    show_events("written", set);
    show_events("again", set);
    put(slave, "last");
    close(slave);
    show("the slave is closed", poll(master, IN | OUT, 5000));
    show_read("what is left", master, 5);
    show("read", get(master, bytes, 64));
    show("events", poll(master, IN | OUT, 0));
    show("write", put(master, "late\n"));
    slave = open(path_of(master), RDWR | NOCTTY);
    show("open again", poll(master, OUT | HUNG, 0));
    show_read("slave", slave, 5);
    show_read("echo", master, 6);
    int pipe[2], status, count;
    call(PIPE2, (number)pipe, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        close(master);
        put(pipe[1], "r");
        exit((int)-get(slave, bytes, 64));
    }
    get(pipe[0], bytes, 1);
    sleep(100);
    show("close the master", close(master));
    wait_for(child, &status);
    show("who was reading", status >> 8);
    show("read", get(slave, bytes, 64));
    show("write", put(slave, "x"));
    show("control", control(slave, GET_SIZE, bytes));
    show("set the group", control(slave, SET_GROUP, bytes));
    show("readable", control(slave, READABLE, &count));
    show("events", poll(slave, IN | OUT, 0));
    show("status", call(FSTAT, slave, (number)(char[128]){0}, 0, 0, 0, 0));
    close(slave), close(set), close(pipe[0]), close(pipe[1]);
    /* A writer that waits learns of it, too. */
    master = open_master(), slave = open(path_of(master), RDWR | NOCTTY);
    child = fork();
    if (child == 0) {
        static char much[100000];
        close(master);
        number done = call(WRITE, slave, (number)much, sizeof much, 0, 0, 0);
        exit(done > 0 && done < 100000 ? 1 : (int)-done);
    }
    sleep(100);
    close(master);
    wait_for(child, &status);
    show("who was writing", status >> 8);
    close(slave);
}

/* Many at once, which nobody closes. */
static void many(void) {
    int status;
    number child = fork();
    if (child == 0) {
        int last = -1;
        for (int i = 0; i < 100; i++) {
            number master = open_master();
            if (i % 3 == 0)
                open(path_of(master), RDWR | NOCTTY);
            put(master, "nobody reads this\n");
            last = number_of(master);
        }
        show("the last", last);
        show("entries", count_slaves());
        exit(0);
    }
    wait_for(child, &status);
    show("entries afterwards", count_slaves());
    number master = open_master();
    show("the first is free", number_of(master));
    close(master);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    names();
    data();
    waiting();
    streams();
    ends();
    many();
    return 0;
}
