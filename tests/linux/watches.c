/* Watched files: which events come of what, with which names and cookies, and where queues end. */

#include "system.h"

enum {
    ACCESS = 1, MODIFY = 2, ATTRIB = 4, CLOSE_WRITE = 8, CLOSE_NOWRITE = 0x10, OPEN = 0x20, MOVED_FROM = 0x40,
    MOVED_TO = 0x80, CREATED = 0x100, DELETED = 0x200, DELETE_SELF = 0x400, MOVE_SELF = 0x800, ALL = 0xfff,
    OVERFLOW = 0x4000, IGNORED = 0x8000, ONLYDIR = 1 << 24, DONT_FOLLOW = 1 << 25, EXCL_UNLINK = 1 << 26,
    MASK_CREATE = 1 << 28, MASK_ADD = 1 << 29, ISDIR = 1 << 30,
};
static const number ONESHOT = 0x80000000;
enum { NONBLOCK = 04000, CLOEXEC = 02000000, PATH_ONLY = 010000000, FIONREAD = 0x541b, REMOVEDIR = 0x200, EMPTY_PATH = 0x1000 };
enum { FIFO = 010000, MOST = 16384, COPY_FILE_RANGE = 285 };
enum {
    INOTIFY_INIT1 = 26, INOTIFY_ADD_WATCH = 27, INOTIFY_RM_WATCH = 28, TRUNCATE = 45, FCHMODAT = 53, FCHOWNAT = 54,
    UTIMENSAT = 88, SOCKET = 198, BIND = 200, RENAMEAT2 = 276,
};

struct event { int watch; unsigned mask, cookie, length; char name[]; };

static char buffer[65536] __attribute__((aligned(8)));
static number instance;

static number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static number open(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0600, 0, 0); }
static number make(number flags) { return call(INOTIFY_INIT1, flags, 0, 0, 0, 0, 0); }
static number add(const char *path, number mask) {
    return call(INOTIFY_ADD_WATCH, instance, (number)path, mask, 0, 0, 0);
}
static number drop(number watch) { return call(INOTIFY_RM_WATCH, instance, watch, 0, 0, 0, 0); }
static number make_directory(const char *path) { return call(MKDIRAT, AT_FDCWD, (number)path, 0700, 0, 0, 0); }
static number unlink(const char *path, number flags) { return call(UNLINKAT, AT_FDCWD, (number)path, flags, 0, 0, 0); }
static number rename(const char *from, const char *to, number flags) {
    return call(RENAMEAT2, AT_FDCWD, (number)from, AT_FDCWD, (number)to, flags, 0);
}
static number readable(void) {
    int count = -1;
    number result = call(IOCTL, instance, FIONREAD, (number)&count, 0, 0, 0);
    return result < 0 ? result : count;
}

static void show_mask(unsigned mask) {
    static const char *const names[] = {
        "access", "modify", "attrib", "close-write", "close-nowrite", "open", "moved-from", "moved-to", "create",
        "delete", "delete-self", "move-self", "?", "unmount", "overflow", "ignored",
    };
    for (int bit = 0; bit < 16; bit++)
        if (mask & 1u << bit)
            print(" "), print(names[bit]);
    if (mask & ISDIR)
        print(" directory");
    if (mask & ~(ISDIR | 0xffffu))
        print(" and more");
}

/* Prints all events. Cookies are counted from the first one. */
static void show_events(const char *what) {
    static unsigned first;
    print(what);
    print("\n");
    number count;
    while ((count = call(READ, instance, (number)buffer, sizeof buffer, 0, 0, 0)) > 0)
        for (char *at = buffer; at < buffer + count;) {
            struct event *event = (struct event *)at;
            print("  "), print_number(event->watch), show_mask(event->mask);
            if (event->cookie) {
                first = first ? first : event->cookie;
                print(" cookie "), print_number(event->cookie - first);
            }
            if (event->length)
                print(" "), print(event->name), print(" in "), print_number(event->length);
            print("\n");
            at += sizeof *event + event->length;
        }
    if (count != -11)
        show("  error", count);
}

static void mistakes(void) {
    show("unknown flag", make(1));
    number file = open("/tmp", RDONLY), path = 0;
    instance = make(NONBLOCK | CLOEXEC);
    show("closed by exec", call(FCNTL, instance, 1, 0, 0, 0, 0));
    show("flags", call(FCNTL, instance, 3, 0, 0, 0, 0));
    show("no events", add("/tmp", 0));
    show("unknown events", add("/tmp", 0x1000));
    show("unknown flag beside", add("/tmp", 1 << 27 | OPEN));
    show("only flags", add("/tmp", ONLYDIR));
    show("both ways", add("/tmp", MASK_ADD | MASK_CREATE | OPEN));
    show("missing", add("/tmp/missing", OPEN));
    show("empty", add("", OPEN));
    show("no path", add((char *)8, OPEN));
    open("/tmp/file", RDWR | CREAT);
    show("no directory", add("/tmp/file", OPEN | ONLYDIR));
    call(SYMLINKAT, (number)"/tmp", AT_FDCWD, (number)"/tmp/link", 0, 0, 0);
    show("a link as directory", add("/tmp/link", OPEN | ONLYDIR | DONT_FOLLOW));
    number real = instance;
    instance = 99;
    show("no descriptor", add("/tmp", OPEN));
    show("no descriptor, no events", add("/tmp", 0));
    show("no descriptor, both ways", add("/tmp", MASK_ADD | MASK_CREATE | OPEN));
    show("remove from no descriptor", drop(1));
    instance = file;
    show("a directory", add("/tmp", OPEN));
    show("a directory, both ways", add("/tmp", MASK_ADD | MASK_CREATE | OPEN));
    show("a directory, missing", add("/tmp/missing", OPEN));
    show("remove from a directory", drop(1));
    instance = real;
    show("remove nothing", drop(1));
    show("created", add("/tmp/file", OPEN | MASK_CREATE));
    show("created again", add("/tmp/file", OPEN | MASK_CREATE));
    show("again", add("/tmp/file", MODIFY));
    show("by a link", add("/tmp/link/file", ATTRIB | MASK_ADD));
    show("removed", drop(1));
    show("removed again", drop(1));
    show("the next number", add("/tmp/file", OPEN));
    show("readable", readable());
    show("read too little", call(READ, instance, (number)buffer, 15, 0, 0, 0));
    show("read to nowhere", call(READ, instance, 8, 100, 0, 0, 0));
    show("readable", readable());
    show("read", call(READ, instance, (number)buffer, 100, 0, 0, 0));
    show("write", call(WRITE, instance, (number)buffer, 16, 0, 0, 0));
    show("position", call(LSEEK, instance, 5, 0, 0, 0, 0));
    show("unknown command", call(IOCTL, instance, 1, 0, 0, 0, 0));
    show("count to nowhere", call(IOCTL, instance, FIONREAD, 8, 0, 0, 0));
    path = open("/proc/self/fd", RDONLY);
    close(file), close(path), close(instance);
}

static void files(void) {
    instance = make(NONBLOCK);
    make_directory("/tmp/d");
    show("directory", add("/tmp/d", ALL));
    number file = open("/tmp/d/new", RDWR | CREAT);
    show("file", add("/tmp/d/new", ALL));
    show_events("made");
    call(WRITE, file, (number)"hello", 5, 0, 0, 0);
    call(WRITE, file, (number)"hello", 5, 0, 0, 0);
    call(WRITE, file, (number)"hello", 0, 0, 0, 0);
    show_events("written twice");
    call(LSEEK, file, 0, 0, 0, 0, 0);
    call(READ, file, (number)buffer, 100, 0, 0, 0);
    call(READ, file, (number)buffer, 100, 0, 0, 0);
    show_events("read");
    struct { void *base; size length; } part = {buffer, 10};
    call(READV, file, (number)&part, 1, 0, 0, 0);
    show_events("read at the end in parts");
    call(PREAD64, file, (number)buffer, 5, 0, 0, 0);
    call(PWRITE64, file, (number)buffer, 5, 0, 0, 0);
    call(PWRITEV, file, (number)&part, 1, 0, 0, 0);
    show_events("read and written at an offset");
    call(FTRUNCATE, file, 3, 0, 0, 0, 0);
    call(TRUNCATE, (number)"/tmp/d/new", 3, 0, 0, 0, 0);
    call(FALLOCATE, file, 0, 0, 100, 0, 0);
    show_events("lengths");
    call(FCHMOD, file, 0640, 0, 0, 0, 0);
    show_events("rights");
    call(FCHMODAT, AT_FDCWD, (number)"/tmp/d/new", 0600, 0, 0, 0);
    call(FCHOWNAT, AT_FDCWD, (number)"/tmp/d/new", 0, 0, 0, 0);
    show_events("rights and owner by path");
    call(FCHOWNAT, AT_FDCWD, (number)"/tmp/d/new", -1, -1, 0, 0);
    show_events("no owner");
    number times[4] = {1, 0, 2, 0}, keep = 0x3ffffffe;
    call(UTIMENSAT, AT_FDCWD, (number)"/tmp/d/new", (number)times, 0, 0, 0);
    show_events("times");
    times[1] = keep;
    call(UTIMENSAT, AT_FDCWD, (number)"/tmp/d/new", (number)times, 0, 0, 0);
    times[1] = 0, times[3] = keep;
    call(UTIMENSAT, file, 0, (number)times, 0, 0, 0);
    show_events("one time each");
    times[1] = keep;
    call(UTIMENSAT, file, 0, (number)times, 0, 0, 0);
    show_events("no time");
    number other = open("/tmp/d/new", RDONLY), copy = call(DUP, other, 0, 0, 0, 0, 0);
    close(other);
    show_events("opened to be read, and a copy is closed");
    close(copy);
    close(open("/tmp/d/new", PATH_ONLY));
    show_events("closed, and opened as a path");
    close(open("/tmp/d/new", WRONLY | TRUNC));
    show_events("cut off");
    number to = open("/tmp/other", RDWR | CREAT);
    call(PWRITE64, file, (number)"hello", 5, 0, 0, 0);
    call(LSEEK, file, 0, 0, 0, 0, 0);
    call(SENDFILE, to, file, 0, 5, 0, 0);
    show_events("copied");
    number beside = open("/tmp/d/beside", RDWR | CREAT), at = 0;
    show_events("another one");
    call(COPY_FILE_RANGE, file, (number)&at, beside, 0, 5, 0);
    show_events("copied from one to the other");
    at = 0;
    call(SENDFILE, beside, file, (number)&at, 5, 0, 0);
    show_events("sent from one to the other");
    close(beside), unlink("/tmp/d/beside", 0);
    show_events("closed and unlinked");
    call(LINKAT, AT_FDCWD, (number)"/tmp/d/new", AT_FDCWD, (number)"/tmp/d/two", 0, 0);
    show_events("linked");
    close(open("/tmp/d/two", RDONLY));
    show_events("opened by its other name");
    unlink("/tmp/d/two", 0);
    show_events("unlinked");
    close(file), close(to);
    show_events("closed");
    unlink("/tmp/d/new", 0);
    show_events("removed");
    show("its watch", drop(2));
    close(instance);
}

static void directories(void) {
    instance = make(NONBLOCK);
    show("directory", add("/tmp/d", ALL));
    make_directory("/tmp/d/sub");
    call(SYMLINKAT, (number)"sub", AT_FDCWD, (number)"/tmp/d/soft", 0, 0, 0);
    call(MKNODAT, AT_FDCWD, (number)"/tmp/d/fifo", FIFO | 0600, 0, 0, 0);
    struct { short family; char path[20]; } address = {1, "/tmp/d/socket"};
    number socket = call(SOCKET, 1, 1, 0, 0, 0, 0);
    call(BIND, socket, (number)&address, sizeof address, 0, 0, 0);
    close(socket);
    show_events("made");
    show("below", add("/tmp/d/sub", ALL));
    show("by the link", add("/tmp/d/soft", ALL));
    show("the link", add("/tmp/d/soft", ALL | DONT_FOLLOW));
    number sub = open("/tmp/d/sub", RDONLY | DIRECTORY);
    call(GETDENTS64, sub, (number)buffer, sizeof buffer, 0, 0, 0);
    call(GETDENTS64, sub, (number)buffer, sizeof buffer, 0, 0, 0);
    close(sub);
    show_events("listed");
    close(open("/tmp/d/sub/.", RDONLY));
    show_events("opened by a dot");
    number fifo = open("/tmp/d/fifo", RDWR);
    call(WRITE, fifo, (number)"a", 1, 0, 0, 0);
    call(READ, fifo, (number)buffer, 1, 0, 0, 0);
    close(fifo);
    show_events("a pipe");
    call(FCHMODAT, AT_FDCWD, (number)"/tmp/d/sub", 0755, 0, 0, 0);
    show_events("rights");
    close(open("/tmp/d/sub/deep", RDWR | CREAT));
    show_events("a file below");
    call(CHDIR, (number)"/tmp/d/sub", 0, 0, 0, 0, 0);
    unlink("/tmp/d/sub/deep", 0);
    unlink("/tmp/d/sub", REMOVEDIR);
    show_events("removed, but somebody works there");
    call(CHDIR, (number)"/", 0, 0, 0, 0, 0);
    show_events("nobody does");
    unlink("/tmp/d/soft", 0), unlink("/tmp/d/fifo", 0), unlink("/tmp/d/socket", 0);
    show_events("all is removed");
    close(instance);
}

static void moves(void) {
    instance = make(NONBLOCK);
    make_directory("/tmp/e");
    show("from", add("/tmp/d", ALL)), show("to", add("/tmp/e", ALL));
    number file = open("/tmp/d/one", RDWR | CREAT);
    close(open("/tmp/e/old", RDWR | CREAT));
    show("file", add("/tmp/d/one", ALL)), show("old", add("/tmp/e/old", ALL));
    show_events("before");
    rename("/tmp/d/one", "/tmp/d/two", 0);
    show_events("in a directory");
    rename("/tmp/d/two", "/tmp/e/three", 0);
    show_events("to another");
    call(WRITE, file, (number)"a", 1, 0, 0, 0);
    show_events("written there");
    rename("/tmp/e/three", "/tmp/e/old", 0);
    show_events("in place of another");
    rename("/tmp/e/old", "/tmp/e/old", 0);
    show_events("to itself");
    make_directory("/tmp/d/sub"), make_directory("/tmp/d/empty");
    show("sub", add("/tmp/d/sub", ALL)), show("empty", add("/tmp/d/empty", ALL));
    show_events("made");
    rename("/tmp/d/sub", "/tmp/e/old", 2);
    show_events("exchanged");
    rename("/tmp/e/old", "/tmp/d/empty", 0);
    show_events("in place of an empty one");
    rename("/tmp/d/sub", "/tmp/d/sub2", 1);
    show_events("kept");
    show("exists", rename("/tmp/d/sub2", "/tmp/d/empty", 1));
    show_events("not moved");
    unlink("/tmp/d/sub2", 0);
    show_events("removed while it is open");
    call(WRITE, file, (number)"a", 1, 0, 0, 0);
    show_events("written");
    close(file);
    show_events("closed");
    unlink("/tmp/d/empty", REMOVEDIR), unlink("/tmp/e", REMOVEDIR);
    show_events("directories");
    close(instance);
}

static void choices(void) {
    instance = make(NONBLOCK);
    show("once", add("/tmp/d", OPEN | ONESHOT));
    close(open("/tmp/d", RDONLY)), close(open("/tmp/d", RDONLY));
    show_events("twice");
    number file = open("/tmp/d/file", RDWR | CREAT);
    show("without removed ones", add("/tmp/d", MODIFY | DELETED | EXCL_UNLINK));
    show("file", add("/tmp/d/file", MODIFY | EXCL_UNLINK));
    call(WRITE, file, (number)"a", 1, 0, 0, 0);
    unlink("/tmp/d/file", 0);
    call(WRITE, file, (number)"a", 1, 0, 0, 0);
    show_events("excluded");
    show("with them", add("/tmp/d", MODIFY | CLOSE_WRITE));
    call(WRITE, file, (number)"a", 1, 0, 0, 0);
    close(file);
    show_events("not excluded");
    show("more", add("/tmp/d", OPEN | MASK_ADD));
    close(open("/tmp/d", RDONLY));
    show_events("added");
    show("other", add("/tmp/d", CREATED));
    close(open("/tmp/d", RDONLY));
    show_events("replaced");
    char name[300] = "/tmp/d/";
    for (int i = 0; i < 255; i++)
        name[7 + i] = 'n';
    for (int i = 255; i > 0; i = i == 255 ? 16 : i == 16 ? 15 : i == 15 ? 1 : 0) {
        name[7 + i] = 0;
        close(open(name, RDWR | CREAT | EXCL)), unlink(name, 0);
    }
    show("readable", readable());
    show("half", call(READ, instance, (number)buffer, 272 + 31 + 16, 0, 0, 0));
    show("rest", call(READ, instance, (number)buffer, sizeof buffer, 0, 0, 0));
    close(instance);
}

static void overflow(void) {
    instance = make(NONBLOCK);
    add("/tmp/d", OPEN | CLOSE_NOWRITE);
    for (int i = 0; i < MOST / 2; i++)
        close(open("/tmp/d", RDONLY));
    show("full", readable());
    close(open("/tmp/d", RDONLY));
    show("lost", readable());
    drop(1);
    show("and so the end", readable());
    number all = 0, count, last = 0;
    while ((count = call(READ, instance, (number)buffer, sizeof buffer, 0, 0, 0)) > 0) {
        all += count;
        last = ((struct event *)(buffer + count - 16))->mask;
    }
    show("read", all), show("last", last);
    add("/tmp/d", OPEN);
    close(open("/tmp/d", RDONLY));
    show_events("goes on");
    close(instance);
    number made = 0, result;
    while ((result = make(0)) >= 0)
        made++;
    show("instances", made), show("error", result);
    for (number i = 0; i < made; i++)
        close(result = 3 + i);
}

static void waiting(void) {
    instance = make(0);
    add("/tmp/d", CREATED | DELETED);
    struct { int file; short events, found; } poll = {(int)instance, 1, 0};
    number none[2] = {0, 0};
    show("nothing yet", call(PPOLL, (number)&poll, 1, (number)none, 0, 8, 0));
    number child = fork();
    if (child == 0) {
        number pause[2] = {0, 20000000};
        call(NANOSLEEP, (number)pause, 0, 0, 0, 0, 0);
        make_directory("/tmp/d/child");
        call(NANOSLEEP, (number)pause, 0, 0, 0, 0, 0);
        unlink("/tmp/d/child", REMOVEDIR);
        exit(0);
    }
    show("something", call(PPOLL, (number)&poll, 1, 0, 0, 8, 0)), show("found", poll.found);
    show("read", call(READ, instance, (number)buffer, sizeof buffer, 0, 0, 0));
    show("mask", ((struct event *)buffer)->mask);
    show("waited", call(READ, instance, (number)buffer, sizeof buffer, 0, 0, 0));
    show("mask", ((struct event *)buffer)->mask);
    wait_for(child, 0);
    number epoll = call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0);
    struct { unsigned events, pad; number data; } wanted = {1, 0, 7}, found = {0, 0, 0};
    show("watch the watch", call(EPOLL_CTL, epoll, 1, instance, (number)&wanted, 0, 0));
    show("nothing", call(EPOLL_PWAIT, epoll, (number)&found, 1, 0, 0, 8));
    make_directory("/tmp/d/child");
    show("something", call(EPOLL_PWAIT, epoll, (number)&found, 1, -1, 0, 8)), show("data", found.data);
    call(READ, instance, (number)buffer, sizeof buffer, 0, 0, 0);
    show("nothing", call(EPOLL_PWAIT, epoll, (number)&found, 1, 0, 0, 8));
    unlink("/tmp/d/child", REMOVEDIR);
    close(epoll), close(instance);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    print("mistakes\n"), mistakes();
    print("files\n"), files();
    print("directories\n"), directories();
    print("moves\n"), moves();
    print("choices\n"), choices();
    print("waiting\n"), waiting();
    print("overflow\n"), overflow();
    return 0;
}
