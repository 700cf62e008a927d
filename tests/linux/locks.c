/* Locks of files: of ranges, by processes and by open files, and of whole files. */

#include "system.h"

enum { FLOCK = 32 };
enum { GETLK = 5, SETLK = 6, SETLKW = 7, OFD_GETLK = 36, OFD_SETLK = 37, OFD_SETLKW = 38 };
enum { READ_LOCK = 0, WRITE_LOCK = 1, UNLOCK = 2 };
enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 };
enum { PATH_ONLY = 010000000 };

static const char *const name = "/tmp/locked";

struct lock {
    short type, whence;
    number start, length;
    int process;
};

static const number highest = 0x7fffffffffffffff;

static number open(number flags) { return call(OPENAT, AT_FDCWD, (number)name, flags, 0600, 0, 0); }
static number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static number flock(number file, number how) { return call(FLOCK, file, how, 0, 0, 0, 0); }

static void pause(number milliseconds) {
    number time[2] = {0, milliseconds * 1000000};
    call(NANOSLEEP, (number)time, 0, 0, 0, 0, 0);
}

static number control(number file, number command, short type, number start, number length) {
    struct lock lock = {type, 0, start, length, 0};
    return call(FCNTL, file, command, (number)&lock, 0, 0, 0);
}

static number set(number file, short type, number start, number length) {
    return control(file, SETLK, type, start, length);
}

/* Prints the first lock that is in the way from a byte on, as `command` says. */
static number show_next(number file, number command, number from, number own) {
    struct lock lock = {WRITE_LOCK, 0, from, 0, 0};
    number result = call(FCNTL, file, command, (number)&lock, 0, 0, 0);
    if (result < 0 || lock.type == UNLOCK) {
        show(result < 0 ? "  fails" : "  nothing from", result < 0 ? result : lock.start);
        return -1;
    }
    print(lock.type == READ_LOCK ? "  shared " : "  exclusive ");
    print_number(lock.start);
    print(" + ");
    print_number(lock.length);
    print(lock.process == -1 ? " of a file\n" : lock.process == own ? " of the parent\n" : " of another\n");
    return lock.length ? lock.start + lock.length : -1;
}

/* Prints all locks of the parent, as a child sees them. */
static void show_all(const char *what) {
    print(what);
    print("\n");
    number parent = call(GETPID, 0, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        number file = open(RDWR), from = 0;
        while (from >= 0)
            from = show_next(file, GETLK, from, parent);
        exit(0);
    }
    wait_for(child, 0);
}

/* Ends a child, and prints how. */
static void show_end(const char *what, number child) {
    int status = -1;
    wait_for(child, &status);
    show(what, status >> 8);
}

static number special(number file, number command, struct lock lock) {
    return call(FCNTL, file, command, (number)&lock, 0, 0, 0);
}

static void mistakes(void) {
    number file = open(RDWR | CREAT), reader = open(RDONLY), writer = open(WRONLY), path = open(PATH_ONLY);
    call(FTRUNCATE, file, 1000, 0, 0, 0, 0);
    call(LSEEK, file, 100, 0, 0, 0, 0);
    show("no descriptor", set(99, WRITE_LOCK, 0, 1));
    show("a path", set(path, READ_LOCK, 0, 1));
    show("no record", call(FCNTL, file, SETLK, 8, 0, 0, 0));
    show("unknown type", set(file, 3, 0, 1));
    show("ask for no lock", control(file, GETLK, UNLOCK, 0, 1));
    show("unknown whence", special(file, SETLK, (struct lock){WRITE_LOCK, 3, 0, 1, 0}));
    show("before the file", set(file, WRITE_LOCK, -1, 1));
    show("length before the file", set(file, WRITE_LOCK, 5, -6));
    show("nothing before the file", set(file, WRITE_LOCK, 0, -1));
    show("from the position", special(file, SETLK, (struct lock){WRITE_LOCK, 1, -101, 1, 0}));
    show("from the end", special(file, SETLK, (struct lock){WRITE_LOCK, 2, -1001, 1, 0}));
    show("behind all", special(file, SETLK, (struct lock){WRITE_LOCK, 1, highest, 1, 0}));
    show("ends behind all", set(file, WRITE_LOCK, highest, 2));
    show("type and end are wrong", set(file, 3, highest, 2));
    show("ask so", control(file, GETLK, 3, highest, 2));
    show("the last byte", set(file, WRITE_LOCK, highest, 1));
    show("shared by a writer", set(writer, READ_LOCK, 0, 1));
    show("exclusive by a reader", set(reader, WRITE_LOCK, 0, 1));
    show("unlock by a reader", set(reader, UNLOCK, 0, 1));
    show("ask by a reader", control(reader, GETLK, WRITE_LOCK, 0, 1));
    show("a file's with a process", special(file, OFD_SETLK, (struct lock){WRITE_LOCK, 0, 0, 1, 1}));
    show("ask for a file's with a process", special(file, OFD_GETLK, (struct lock){WRITE_LOCK, 0, 0, 1, 1}));
    show("a reader's with a process", special(reader, OFD_SETLK, (struct lock){WRITE_LOCK, 0, 0, 1, 1}));
    show("whole: no descriptor", flock(99, LOCK_SH));
    show("whole: a path", flock(path, LOCK_SH));
    show("whole: no operation", flock(file, 0));
    show("whole: two operations", flock(file, LOCK_SH | LOCK_EX));
    show("whole: no operation, no descriptor", flock(99, 16));
    show("whole: of a reader", flock(reader, LOCK_EX | LOCK_NB));
    close(reader), close(writer), close(path), close(file);
}

static void ranges(void) {
    number file = open(RDWR);
    show("lock", set(file, WRITE_LOCK, 10, 10));
    show_all("one lock");
    set(file, WRITE_LOCK, 20, 5);
    set(file, WRITE_LOCK, 0, 5);
    show_all("a neighbour, and one beside");
    set(file, READ_LOCK, 15, 3);
    show_all("shared in the middle");
    set(file, UNLOCK, 12, 10);
    show_all("a gap");
    set(file, READ_LOCK, 0, 0);
    show_all("all is shared");
    set(file, UNLOCK, 50, 1);
    show_all("but one byte");
    special(file, SETLK, (struct lock){WRITE_LOCK, 2, -1, -10, 0});
    call(LSEEK, file, 70, 0, 0, 0, 0);
    special(file, SETLK, (struct lock){UNLOCK, 1, 0, -5, 0});
    show_all("from the end, and from the position");
    show("unlock all", set(file, UNLOCK, 0, 0));
    show_all("nothing");
    show("unlock nothing", set(file, UNLOCK, 5, 5));
    number other = open(RDONLY);
    set(file, WRITE_LOCK, 1, 2);
    number copy = call(DUP, file, 0, 0, 0, 0, 0);
    show_all("before");
    close(copy);
    show_all("a copy was closed");
    set(file, WRITE_LOCK, 1, 2);
    close(other);
    show_all("another descriptor was closed");
    set(file, WRITE_LOCK, 1, 2);
    close(open(PATH_ONLY));
    show_all("a path was closed");
    call(DUP3, 1, file, 0, 0, 0, 0);
    show_all("something else took the number");
    close(file);
}

static void processes(void) {
    number file = open(RDWR);
    set(file, READ_LOCK, 0, 10);
    number child = fork();
    if (child == 0) {
        show("shared, too", set(file, READ_LOCK, 5, 10));
        show("upgrade", set(file, WRITE_LOCK, 5, 10));
        show("upgrade the rest", set(file, WRITE_LOCK, 10, 5));
        show("unlock what the parent has", set(file, UNLOCK, 0, 10));
        show("it has it still", set(file, WRITE_LOCK, 0, 1));
        close(file);
        exit(3);
    }
    show_end("child", child);
    show_all("the parent's are left");
    child = fork();
    if (child == 0) {
        set(file, READ_LOCK, 100, 1);
        set(file, WRITE_LOCK, 20, 1);
        show("what a child's end leaves", 0);
        exit(0);
    }
    show_end("child", child);
    show("all", set(file, WRITE_LOCK, 0, 0));
    close(file);
}

static void open_files(void) {
    number file = open(RDWR), other = open(RDWR), own = call(GETPID, 0, 0, 0, 0, 0, 0);
    show("a file's", control(file, OFD_SETLK, WRITE_LOCK, 0, 10));
    show("the same process's", set(other, WRITE_LOCK, 5, 1));
    show("of the same file", set(file, WRITE_LOCK, 5, 1));
    show("another file's", control(other, OFD_SETLK, READ_LOCK, 9, 5));
    show_next(other, OFD_GETLK, 0, own);
    show_next(file, OFD_GETLK, 0, own);
    show_next(file, GETLK, 0, own);
    show("a process's beside", set(file, WRITE_LOCK, 10, 1));
    show_next(file, OFD_GETLK, 0, own);
    number copy = call(DUP, file, 0, 0, 0, 0, 0);
    close(file);
    show("its copy has it", control(other, OFD_SETLK, READ_LOCK, 9, 5));
    show_next(other, GETLK, 10, own);
    number child = fork();
    if (child == 0)
        exit((int)-control(copy, OFD_SETLK, WRITE_LOCK, 5, 10));
    show_end("a child has it, too", child);
    show_next(other, OFD_GETLK, 0, own);
    close(copy);
    show_next(other, OFD_GETLK, 0, own);
    close(other);
}

static void whole(void) {
    number file = open(RDWR), other = open(RDONLY);
    show("exclusive", flock(file, LOCK_EX));
    show("again", flock(file, LOCK_EX));
    show("another", flock(other, LOCK_SH | LOCK_NB));
    show("a range is another sort", set(file, WRITE_LOCK, 0, 0));
    show("shared instead", flock(file, LOCK_SH));
    show("another", flock(other, LOCK_SH | LOCK_NB));
    show("exclusive fails, and loses the shared one", flock(other, LOCK_EX | LOCK_NB));
    show("which lets the first have it", flock(file, LOCK_EX | LOCK_NB));
    number child = fork();
    if (child == 0) {
        number own = open(RDWR);
        show("a child's own", flock(own, LOCK_SH | LOCK_NB));
        show("a child unlocks", flock(file, LOCK_UN));
        show("a child's own", flock(own, LOCK_SH | LOCK_NB));
        exit(0);
    }
    show_end("child", child);
    show("free again", flock(file, LOCK_EX | LOCK_NB));
    number copy = call(DUP, file, 0, 0, 0, 0, 0);
    close(file);
    show("a copy has it", flock(other, LOCK_EX | LOCK_NB));
    close(copy);
    show("nobody has it", flock(other, LOCK_EX | LOCK_NB));
    show("the one for which nobody asks", flock(other, 32));
    close(other);
}

static volatile int came;
static void count_it(int signal) { came += signal; }

static void handle(number flags) {
    struct {
        void *handler;
        size flags;
        void *restorer;
        size mask;
    } action = {(void *)count_it, (size)flags, 0, 0};
    call(RT_SIGACTION, SIGUSR1, (number)&action, 0, 8, 0, 0);
}

/* Lets a child wait for a lock in one of three ways. */
static number wait_in_a_child(int how) {
    number child = fork();
    if (child != 0) {
        pause(20);
        return child;
    }
    number file = open(RDWR);
    number result = how == 0 ? control(file, SETLKW, WRITE_LOCK, 5, 1)
        : how == 1 ? control(file, OFD_SETLKW, READ_LOCK, 5, 1) : flock(file, LOCK_EX);
    show("the child has waited", result * 100 + came);
    exit(0);
    return 0;
}

static void waiting(void) {
    for (int how = 0; how < 3; how++) {
        number file = open(RDWR);
        set(file, WRITE_LOCK, 0, 10);
        flock(file, LOCK_EX);
        number child = wait_in_a_child(how);
        set(file, UNLOCK, 0, 5);
        print("not yet\n");
        pause(5);
        print(how < 2 ? "now\n" : "shared\n");
        set(file, UNLOCK, 0, 7);
        flock(file, LOCK_SH);
        pause(5);
        print("all\n");
        flock(file, LOCK_UN);
        show_end("child", child);
        handle(how == 1 ? 0x10000000 : 0);
        set(file, WRITE_LOCK, 0, 10);
        flock(file, LOCK_EX);
        child = wait_in_a_child(how);
        call(KILL, child, SIGUSR1, 0, 0, 0, 0);
        pause(5);
        print("signalled\n");
        close(file);
        show_end("child", child);
        file = open(RDWR);
        set(file, WRITE_LOCK, 0, 10);
        flock(file, LOCK_EX);
        child = wait_in_a_child(how);
        call(KILL, child, SIGKILL, 0, 0, 0, 0);
        wait_for(child, 0);
        close(file);
        file = open(RDWR);
        show("nothing is left", set(file, WRITE_LOCK, 0, 0) + flock(file, LOCK_EX | LOCK_NB));
        close(file);
    }
}

/* One child holds 1 and wants 0, the other holds 2 and wants 1: the parent, which holds 0, must not wait for 2. */
static void deadlock(void) {
    number file = open(RDWR);
    set(file, WRITE_LOCK, 0, 1);
    number children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            set(file, WRITE_LOCK, i + 1, 1);
            exit((int)-control(file, SETLKW, WRITE_LOCK, i, 1));
        }
        pause(20);
    }
    show("without waiting", set(file, WRITE_LOCK, 2, 1));
    show("deadlock", control(file, SETLKW, READ_LOCK, 2, 1));
    set(file, UNLOCK, 0, 1);
    show_end("first child", children[0]);
    show_end("second child", children[1]);
    close(file);
}

int program(number count, char **arguments) {
    if (count > 1) {
        number file = open(RDWR);
        number child = fork();
        if (child == 0) {
            show("another program, whose child asks", set(file, WRITE_LOCK, 0, 1));
            show("a file's", control(file, OFD_SETLK, WRITE_LOCK, 1, 1));
            exit(0);
        }
        show_end("child", child);
        return 0;
    }
    mistakes();
    ranges();
    processes();
    open_files();
    whole();
    waiting();
    deadlock();
    number file = open(RDWR);
    set(file, WRITE_LOCK, 0, 1);
    control(file, OFD_SETLK, WRITE_LOCK, 1, 1);
    char *again[] = {arguments[0], "again", 0}, *variables[] = {0};
    call(EXECVE, (number)arguments[0], (number)again, (number)variables, 0, 0, 0);
    return 1;
}
