/* Fills an instance's memory, and lets then something happen of which thousands learn at once: sets that watch a pipe,
   files that send signals, and entries that learn of changes in a directory. Whoever is told fails or ends, but not the
   instance.

   crowd: it ends with 0 if the instance goes on. */

#include "operations.h"

enum { PRLIMIT64 = 261, DESCRIPTORS = 7, ADD = 1, READABLE = 1, SETFL = 4, SETOWN = 8, NOTIFY = 1026, ASYNC = 020000 };
enum { SETS = 700, COPIES = 30, FILES = 2000, OPERATIONS = 65536, PART = 1 << 16 };

static number open(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0600, 0, 0); }
static number set(void) { return call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0); }
static number control(number file, number what, number argument) { return call(FCNTL, file, what, argument, 0, 0, 0); }

static number watch(number set, number file) {
    struct { unsigned events, rest; number data; } event = {READABLE, 0, file};
    return call(EPOLL_CTL, set, ADD, file, (number)&event, 0, 0);
}

static char part[PART];

/* Writes a file until there is no memory. */
static void fill(void) {
    number file = open("/tmp/full", RDWR | CREAT), written = 0;
    for (size size = sizeof part; size > 0; size /= 2)
        for (number count; (count = call(WRITE, file, (number)part, size, 0, 0, 0)) > 0;)
            written += count;
    show("filled", written > 0);
}

static void empty(void) { call(FTRUNCATE, open("/tmp/full", RDWR), 0, 0, 0, 0, 0); }

static int ends[2];

static void sets(void) {
    static number copies[COPIES];
    number entries = 0;
    for (int i = 0; i < COPIES; i++)
        copies[i] = call(DUP, ends[0], 0, 0, 0, 0, 0);
    for (int i = 0, full = 0; i < SETS && !full; i++) {
        number one = set();
        for (int copy = 0; copy < COPIES && !full; copy++)
            full = watch(one, copies[copy]) != 0, entries += !full;
    }
    show("entries", entries > 0);
}

static void files(void) {
    for (int i = 0; i < FILES; i++) {
        number file = open("/tmp/fifo", RDWR);
        control(file, SETOWN, call(GETPID, 0, 0, 0, 0, 0, 0)), control(file, SETFL, ASYNC);
    }
}

static void directories(void) {
    for (int i = 0; i < FILES; i++)
        control(open("/tmp", RDONLY | DIRECTORY), NOTIFY, 0x8000003f);
}

static size context;
static struct operation none;
static struct operation *list[1024];

static void submit(void) {
    number sum = 0, count;
    none = (struct operation){.kind = 1, .file = (int)open("/dev/null", RDWR), .place = (number)part, .length = 1};
    for (int i = 0; i < 1024; i++)
        list[i] = &none;
    while ((count = call(IO_SUBMIT, context, 1024, (number)list, 0, 0, 0)) > 0)
        sum += count;
    show("submitted", sum > 0);
}

/* Says who ends first if memory is short. */
static void score(const char *text) {
    number file = open("/proc/self/oom_score_adj", RDWR);
    call(WRITE, file, (number)text, length(text), 0, 0, 0), call(CLOSE, file, 0, 0, 0, 0, 0);
}

/* Does something in a child, since that may end for it. */
static void apart(const char *what, void prepare(void), void happens(void)) {
    int status = 0;
    print(what), print("\n");
    number child = fork();
    if (child == 0) {
        number limit[2] = {4096, 4096};
        score("1000");
        call(PRLIMIT64, 0, DESCRIPTORS, (number)limit, 0, 0, 0);
        call(RT_SIGPROCMASK, 0, (number) & (size){1ul << 28}, 0, 8, 0, 0);
        prepare();
        fill();
        happens();
        exit(0);
    }
    wait_for(child, &status);
    show("it ended by", status & 127);
    empty();
}

static void write_pipe(void) { show("written", call(WRITE, ends[1], (number) "x", 1, 0, 0, 0)); }
static void write_fifo(void) { show("written", call(WRITE, open("/tmp/fifo", RDWR), (number) "x", 1, 0, 0, 0)); }
static void change_directory(void) { show("changed", call(FACCESSAT, AT_FDCWD, (number) "/tmp/full", 0, 0, 0, 0)), call(MKDIRAT, AT_FDCWD, (number) "/tmp/new", 0700, 0, 0, 0); }

/* A program that says that it has as many segments as can be said. */
static void make_program(void) {
    static const unsigned char head[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 2, [18] = 183, [20] = 1, [52] = 64, [54] = 56, [56] = 255, [57] = 255};
    number file = open("/tmp/program", RDWR | CREAT);
    call(WRITE, file, (number)head, sizeof head, 0, 0, 0);
    call(FTRUNCATE, file, 5 << 20, 0, 0, 0, 0), call(FCHMOD, file, 0755, 0, 0, 0, 0);
    call(CLOSE, file, 0, 0, 0, 0, 0);
}

static void run_program(void) { show("run", call(EXECVE, (number) "/tmp/program", 0, 0, 0, 0, 0)); }

static void make_context(void) { show("context", call(IO_SETUP, OPERATIONS, (number)&context, 0, 0, 0, 0)); }

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    score("-1000");
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    call(MKNODAT, AT_FDCWD, (number) "/tmp/fifo", 010600, 0, 0, 0);
    apart("a program", make_program, run_program);
    apart("operations", make_context, submit);
    apart("files with owners", files, write_fifo);
    apart("directories", directories, change_directory);
    apart("sets", sets, write_pipe);
    print("it goes on\n");
    return 0;
}
