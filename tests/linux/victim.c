/* A program that does everything in turn, and may be ended at any moment: by the end of its instance, by a signal, or by
   its own end, while processes, threads, files and sockets of its are still there. It ends with 0, or with the line at
   which something went wrong; with the argument `signal` by SIGSEGV, and with `stay` not by itself. */

#include "sockets.h"
#include "threads.h"

enum { PAGES = 64, PAGE = 4096, STACK = 16384, REAL = 0 };

static char stack[2][STACK] __attribute__((aligned(16)));
static volatile int ends[2], word;

static void need(int holds, int line) {
    if (!holds)
        exit(line);
}
#define NEED(condition) need(condition, __LINE__)

static char *map(size bytes, number flags, number file) {
    number at = call(MMAP, 0, (number)bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    NEED(at > 0);
    return (char *)at;
}

static void touch(char *at) {
    for (int page = 0; page < PAGES; page++)
        at[page * PAGE] = (char)page;
}

/* Maps memory of its own, shared memory, and a file. */
static void memory(void) {
    touch(map(PAGES * PAGE, PRIVATE | ANONYMOUS, -1));
    touch(map(PAGES * PAGE, SHARED | ANONYMOUS, -1));
    number file = call(OPENAT, AT_FDCWD, (number)"/tmp/mapped", RDWR | CREAT, 0600, 0, 0);
    NEED(file >= 0 && call(FTRUNCATE, file, PAGES * PAGE, 0, 0, 0, 0) == 0);
    touch(map(PAGES * PAGE, SHARED, file));
    NEED(call(PWRITE64, file, (number)text, sizeof text, 0, 0, 0) == sizeof text);
    // The file stays open and mapped, but has no name any more.
    NEED(call(UNLINKAT, AT_FDCWD, (number)"/tmp/mapped", 0, 0, 0, 0) == 0);
}

static void wait_for_ever(number argument) {
    (void)argument;
    for (;;)
        call(FUTEX, (number)&word, 0, word, 0, 0, 0);
}

static void add(number argument) { word += (int)argument; }

/* Starts a thread that ends, and one that waits until its process ends. */
static void threads(void) {
    void (*functions[2])(number) = {add, wait_for_ever};
    for (int i = 0; i < 2; i++) {
        ends[i] = 1;
        number flags = ALL | PARENT_SETTID | CHILD_CLEARTID;
        NEED(start_thread(functions[i], 7, stack[i] + STACK, flags, &ends[i], 0, &ends[i]) > 0);
    }
    while (ends[0])
        call(FUTEX, (number)&ends[0], 0, ends[0], 0, 0, 0);
    NEED(word == 7);
}

/* Has a child write to a pipe, and leaves it behind as a zombie. */
static void pipes(void) {
    int ends_of_pipe[2];
    NEED(call(PIPE2, (number)ends_of_pipe, 0, 0, 0, 0, 0) == 0);
    number child = fork();
    if (child == 0) {
        put(ends_of_pipe[1], text, sizeof text);
        exit(0);
    }
    NEED(child > 0 && close(ends_of_pipe[1]) == 0);
    number all = 0, count;
    while ((count = get(ends_of_pipe[0], 1000)) > 0)
        all += count;
    NEED(count == 0 && all == sizeof text);
}

/* Leaves a child that waits and one that calculates now and then, and ends another by a signal. */
static void children(void) {
    for (int i = 0; i < 3; i++) {
        number child = fork();
        if (child == 0) {
            touch(map(PAGES * PAGE, PRIVATE | ANONYMOUS, -1));
            for (;; rest(1))
                for (int steps = i ? 0 : 20000; steps > 0; steps--)
                    word++;
        }
        NEED(child > 0);
        int status = 0;
        if (i == 2)
            NEED(call(KILL, child, SIGTERM, 0, 0, 0, 0) == 0 && wait_for(child, &status) == child && status == SIGTERM);
    }
}

/* Sends a file that nobody receives, connects to a port, and leaves a connection that nobody accepts. */
static void sockets(void) {
    int two[2];
    NEED(pair(STREAM, two) == 0);
    struct vector part = {"x", 1};
    struct control control = {16 + 8, SOL_SOCKET, SCM_RIGHTS, {two[0], two[1]}};
    struct message message = {0, 0, &part, 1, &control, control.length, 0};
    NEED(call(SENDMSG, two[0], (number)&message, 0, 0, 0, 0) == 1);
    unsigned char name[16] = {INET, 0, 31, 144, 127, 0, 0, 1};
    number server = make(INET, STREAM), client = make(INET, STREAM);
    NEED(bind(server, name, sizeof name) == 0 && listen(server, 4) == 0 && connect(client, name, sizeof name) == 0);
    NEED(put(client, text, sizeof text) == sizeof text);
    unsigned char path[] = {UNIX, 0, '/', 't', 'm', 'p', '/', 's', 0};
    number other = make(UNIX, STREAM);
    NEED(bind(other, path, sizeof path) == 0 && listen(other, 4) == 0 && connect(make(UNIX, STREAM), path, sizeof path) == 0);
}

/* Makes a file and a directory where there is a mount, and keeps the file open, which has no name then. */
static void outside(void) {
    enum { REMOVEDIR = 0x200 };
    if (call(FACCESSAT, AT_FDCWD, (number)"/mnt", 0, 0, 0, 0) != 0)
        return;
    char copy[sizeof text];
    number file = call(OPENAT, AT_FDCWD, (number)"/mnt/victim", RDWR | CREAT | EXCL, 0600, 0, 0);
    NEED(file >= 0 && put(file, text, sizeof text) == sizeof text);
    NEED(call(PREAD64, file, (number)copy, sizeof copy, 0, 0, 0) == sizeof copy);
    NEED(call(MKDIRAT, AT_FDCWD, (number)"/mnt/victims", 0700, 0, 0, 0) == 0);
    number from = (number)"/mnt/victim", to = (number)"/mnt/victims/v";
    NEED(call(RENAMEAT, AT_FDCWD, from, AT_FDCWD, to, 0, 0) == 0 && call(UNLINKAT, AT_FDCWD, to, 0, 0, 0, 0) == 0);
    NEED(call(UNLINKAT, AT_FDCWD, (number)"/mnt/victims", REMOVEDIR, 0, 0, 0) == 0);
}

/* Handles signals of its own and of a timer. */
static void alarms(void) {
    handle(SIGUSR1, count_signal, 0);
    handle(SIGALRM, count_signal, 0);
    NEED(call(KILL, call(GETPID, 0, 0, 0, 0, 0, 0), SIGUSR1, 0, 0, 0, 0) == 0);
    number interval[4] = {0, 0, 0, 1000};
    NEED(call(SETITIMER, REAL, (number)interval, 0, 0, 0, 0) == 0);
    while (signals < 2)
        rest(1);
}

int program(number count, char **arguments) {
    memory();
    threads();
    pipes();
    children();
    sockets();
    outside();
    alarms();
    int how = count > 1 ? arguments[1][1] : 0;
    if (how == 'i')
        *(volatile int *)16 = 1;
    while (how == 't')
        rest(100);
    return 0;
}
