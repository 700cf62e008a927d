/* Signals of open files with information about the event (`F_SETSIG`), and signals about changed directories (`F_NOTIFY`). */

#include "system.h"

enum { ACCESS = 1, MODIFY = 2, CREATED = 4, DELETED = 8, RENAMED = 0x10, ATTRIB = 0x20 };
static const number MULTISHOT = 0x80000000, ALL = 0x8000003f;
enum { GETFL = 3, SETFL = 4, SETOWN = 8, GETOWN = 9, SETSIG = 10, GETSIG = 11, NOTIFY = 1026 };
enum { ASYNC = 020000, NONBLOCK = 04000, PATH_ONLY = 010000000, REMOVEDIR = 0x200, EXCHANGE = 2 };
enum { FCHMODAT = 53, RENAMEAT2 = 276, TRUNCATE = 45, BLOCK = 0, SIGIO = 29, SIGNAL = 40 };

struct information {
    int signal, error, code, pad;
    long band;
    int descriptor, rest[25];
};

static char buffer[1024] __attribute__((aligned(8)));

static number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static number open(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0600, 0, 0); }
static number control(number file, number command, number argument) {
    return call(FCNTL, file, command, argument, 0, 0, 0);
}
static number make_directory(const char *path) { return call(MKDIRAT, AT_FDCWD, (number)path, 0700, 0, 0, 0); }
static number unlink(const char *path, number flags) { return call(UNLINKAT, AT_FDCWD, (number)path, flags, 0, 0, 0); }
static number rename(const char *from, const char *to, number flags) {
    return call(RENAMEAT2, AT_FDCWD, (number)from, AT_FDCWD, (number)to, flags, 0);
}
static number change_mode(const char *path) { return call(FCHMODAT, AT_FDCWD, (number)path, 0700, 0, 0, 0); }
static number write_to(number file) { return call(WRITE, file, (number)"text", 4, 0, 0, 0); }
static number read_from(number file) { return call(READ, file, (number)buffer, 4, 0, 0, 0); }

/* Prints all pending signals. */
static void signals(const char *after) {
    static const number no_time[2];
    size all = ~0ul;
    struct information found;
    print(after), print(":");
    while (call(RT_SIGTIMEDWAIT, (number)&all, (number)&found, (number)no_time, 8, 0, 0) > 0) {
        print(" signal "), print_number(found.signal), print(" code "), print_number(found.code);
        if (found.code != 0x80)
            print(" band "), print_number(found.band), print(" descriptor "), print_number(found.descriptor);
        print(";");
    }
    print("\n");
}

/* Changes a directory in every way, and prints the signals after each change. */
static void changes(void) {
    number file = open("/tmp/d/file", CREAT | RDWR);
    signals("created");
    write_to(file), signals("written");
    call(LSEEK, file, 0, 0, 0, 0, 0);
    read_from(file), signals("read");
    read_from(file), signals("read at the end");
    call(FTRUNCATE, file, 2, 0, 0, 0, 0), signals("cut");
    call(FCHMOD, file, 0600, 0, 0, 0, 0), signals("mode");
    close(file), signals("closed");
    close(open("/tmp/d/file", RDWR | TRUNC)), signals("opened anew");
    rename("/tmp/d/file", "/tmp/d/other", 0), signals("renamed");
    rename("/tmp/d/other", "/tmp/e/other", 0), signals("moved away");
    rename("/tmp/e/other", "/tmp/d/back", 0), signals("moved back");
    call(LINKAT, AT_FDCWD, (number)"/tmp/d/back", AT_FDCWD, (number)"/tmp/d/link", 0, 0), signals("linked");
    rename("/tmp/d/back", "/tmp/d/link", EXCHANGE), signals("exchanged to itself");
    unlink("/tmp/d/back", 0), signals("removed");
    make_directory("/tmp/d/inner"), signals("directory");
    rename("/tmp/d/inner", "/tmp/d/link", EXCHANGE), signals("exchanged");
    rename("/tmp/d/inner", "/tmp/d/link", EXCHANGE), signals("exchanged back");
    change_mode("/tmp/d/inner"), signals("its mode");
    close(open("/tmp/d/inner/file", CREAT | RDWR)), signals("a file in it");
    unlink("/tmp/d/inner/file", 0), signals("removed in it");
    unlink("/tmp/d/inner", REMOVEDIR), signals("directory removed");
    unlink("/tmp/d/link", 0), signals("all removed");
    change_mode("/tmp/d"), signals("mode of the directory itself");
    number directory = open("/tmp/d", RDONLY);
    call(GETDENTS64, directory, (number)buffer, sizeof buffer, 0, 0, 0), signals("listed");
    call(GETDENTS64, directory, (number)buffer, sizeof buffer, 0, 0, 0), signals("listed at the end");
    close(directory);
}

static void touch(const char *what) {
    close(open("/tmp/d/touched", CREAT | RDWR)), unlink("/tmp/d/touched", 0);
    signals(what);
}

static void mistakes(void) {
    number file = open("/tmp/file", CREAT | RDWR), path = open("/tmp/d", PATH_ONLY), directory = open("/tmp/d", RDONLY);
    show("a file", control(file, NOTIFY, CREATED));
    show("nothing of a file", control(file, NOTIFY, 0));
    show("a path", control(path, NOTIFY, CREATED));
    show("no descriptor", control(99, NOTIFY, CREATED));
    show("unknown events", control(directory, NOTIFY, 0x40));
    show("unknown events of a file", control(file, NOTIFY, 0x40));
    show("only a flag", control(directory, NOTIFY, MULTISHOT));
    show("own", control(directory, GETOWN, 0) == call(GETPID, 0, 0, 0, 0, 0, 0));
    show("signal 64", control(directory, SETSIG, 64)), show("signal", control(directory, GETSIG, 0));
    show("signal 65", control(directory, SETSIG, 65)), show("signal -1", control(directory, SETSIG, -1));
    show("signal of a path", control(path, SETSIG, 1));
    show("signal", control(directory, GETSIG, 0));
    show("no signal", control(directory, SETSIG, 0)), show("signal", control(directory, GETSIG, 0));
    close(file), close(path), close(directory);
}

static void events(void) {
    static const char *const names[] = {"access", "modify", "create", "delete", "rename", "attrib"};
    for (int event = 0; event <= 6; event++) {
        number directory = open("/tmp/d", RDONLY);
        print(event < 6 ? names[event] : "all"), print(" ");
        control(directory, SETSIG, SIGNAL);
        show("asked", control(directory, NOTIFY, event < 6 ? MULTISHOT | 1 << event : ALL));
        changes();
        close(directory);
    }
    touch("closed");
}

static void choices(void) {
    number directory = open("/tmp/d", RDONLY), me = call(GETPID, 0, 0, 0, 0, 0, 0);
    show("once", control(directory, NOTIFY, CREATED));
    show("own", control(directory, GETOWN, 0) == me);
    touch("first"), touch("second");
    control(directory, SETSIG, SIGNAL);
    control(directory, NOTIFY, CREATED), control(directory, NOTIFY, DELETED);
    touch("both"), touch("none");
    control(directory, NOTIFY, CREATED | MULTISHOT), control(directory, NOTIFY, DELETED);
    touch("more"), touch("still");
    number copy = call(DUP, directory, 0, 0, 0, 0, 0);
    control(copy, NOTIFY, CREATED);
    touch("by the copy's descriptor");
    close(copy);
    touch("closed with the copy");
    control(directory, NOTIFY, CREATED | MULTISHOT);
    number other = open("/tmp/d", RDONLY);
    control(other, SETSIG, SIGNAL + 1), control(other, NOTIFY, DELETED | MULTISHOT);
    touch("two"), close(other), touch("one");
    control(directory, NOTIFY, 0), touch("not any more");
    control(directory, NOTIFY, CREATED | MULTISHOT);
    control(directory, SETSIG, SIGIO), touch("SIGIO itself");
    control(directory, SETSIG, SIGSEGV), touch("a signal with codes");
    control(directory, SETSIG, SIGUSR1), touch("one without");
    control(directory, SETOWN, 0), touch("nobody");
    show("owner", control(directory, GETOWN, 0));
    control(directory, NOTIFY, CREATED | MULTISHOT), show("own again", control(directory, GETOWN, 0) == me);
    number child = fork();
    if (child == 0) {
        touch("in the child");
        close(directory);
        exit(0);
    }
    wait_for(child, 0);
    touch("a child has closed it");
    close(directory), touch("closed");
}

static void others(void) {
    int ends[2];
    call(PIPE2, (number)ends, NONBLOCK, 0, 0, 0, 0);
    for (int end = 0; end < 2; end++) {
        control(ends[end], SETSIG, SIGNAL + end), control(ends[end], SETOWN, call(GETPID, 0, 0, 0, 0, 0, 0));
        show("signals", control(ends[end], SETFL, ASYNC | NONBLOCK));
    }
    write_to(ends[1]), signals("written");
    number copy = call(DUP, ends[0], 0, 0, 0, 0, 0);
    control(copy, SETFL, ASYNC | NONBLOCK), write_to(ends[1]), signals("the same descriptor");
    control(copy, SETFL, NONBLOCK), control(copy, SETFL, ASYNC | NONBLOCK), write_to(ends[1]);
    signals("the copy's descriptor");
    close(copy);
    control(ends[0], SETSIG, 0), write_to(ends[1]), signals("SIGIO");
    control(ends[0], SETSIG, SIGNAL);
    size set = 1ul << (SIGNAL - 1);
    number reader = call(SIGNALFD4, -1, (number)&set, 8, NONBLOCK, 0, 0);
    write_to(ends[1]);
    show("read", call(READ, reader, (number)buffer, 128, 0, 0, 0));
    show("signal", *(int *)buffer), show("code", *(int *)(buffer + 8));
    show("descriptor", *(int *)(buffer + 20)), show("band", *(int *)(buffer + 28));
    close(reader), close(ends[0]), close(ends[1]);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    size all = ~(1ul << (SIGCHLD - 1));
    call(RT_SIGPROCMASK, BLOCK, (number)&all, 0, 8, 0, 0);
    make_directory("/tmp/d"), make_directory("/tmp/e");
    print("mistakes\n"), mistakes();
    print("events\n"), events();
    print("choices\n"), choices();
    print("others\n"), others();
    return 0;
}
