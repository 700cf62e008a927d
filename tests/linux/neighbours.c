/* A program that runs in two instances at the same time, which know nothing of each other: both have the same numbers of
   processes, the same port, the same names of sockets and the same files, and each finds only what it has put there
   itself. It ends with 0, or with the line at which it found something else.

   neighbours TOKEN ROUNDS [last]: with `last`, it ends while a child of its own waits, and another one calculates. */

#include "sockets.h"

static const unsigned char ADDRESS[16] = {INET, 0, 31, 145, 127, 0, 0, 1};
static const unsigned char ABSTRACT[] = {UNIX, 0, 0, 'n', 'e', 'x', 't'};
static const unsigned char NAMED[] = {UNIX, 0, '/', 't', 'm', 'p', '/', 'n', 'e', 'x', 't', 0};
enum { SERVERS = 3, ESRCH = -3, EEXIST = -17, EADDRINUSE = -98 };

static const char *token;
static number servers[SERVERS];
static volatile int *shared;

static void need(int holds, int line) {
    if (!holds)
        exit(line);
}
#define NEED(condition) need(condition, __LINE__)

static number pid(void) { return call(GETPID, 0, 0, 0, 0, 0, 0); }
static number open_file(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0600, 0, 0); }

static const unsigned char *name(int which, number *count) {
    const unsigned char *all[SERVERS] = {ADDRESS, ABSTRACT, NAMED};
    const number counts[SERVERS] = {sizeof ADDRESS, sizeof ABSTRACT, sizeof NAMED};
    *count = counts[which];
    return all[which];
}

static number make_for(int which) { return make(which ? UNIX : INET, STREAM); }

/* Listens everywhere, where nobody may be, and writes a file, which may not be there. */
static void settle(void) {
    for (int which = 0; which < SERVERS; which++) {
        number count, other = make_for(which);
        const unsigned char *where = name(which, &count);
        servers[which] = make_for(which);
        NEED(bind(servers[which], where, count) == 0 && listen(servers[which], 4) == 0);
        NEED(bind(other, where, count) == EADDRINUSE && close(other) == 0);
    }
    number file = open_file("/tmp/own", RDWR | CREAT | EXCL);
    NEED(put(file, token, length(token)) == (number)length(token) && close(file) == 0);
    NEED(open_file("/tmp/own", RDWR | CREAT | EXCL) == EEXIST);
}

static void need_token(number file) {
    NEED(get(file, 100) == (number)length(token) && equal(text, token, length(token)) && close(file) == 0);
}

/* Reads everything that the parent tells. */
static void ask(void) {
    for (int which = 0; which < SERVERS; which++) {
        number count, file = make_for(which);
        const unsigned char *where = name(which, &count);
        NEED(connect(file, where, count) == 0);
        need_token(file);
    }
    need_token(open_file("/tmp/own", RDONLY));
    NEED(call(GETPPID, 0, 0, 0, 0, 0, 0) == 1);
    ++*shared;
    exit(0);
}

/* Returns how many processes there are. */
static int processes(void) {
    number directory = open_file("/proc", RDONLY | DIRECTORY), count;
    int all = 0;
    while ((count = call(GETDENTS64, directory, (number)text, sizeof text, 0, 0, 0)) > 0)
        for (number at = 0; at < count; at += *(unsigned short *)(text + at + 16))
            all += text[at + 19] >= '0' && text[at + 19] <= '9';
    NEED(count == 0 && close(directory) == 0);
    return all;
}

/* Has a child ask, and tells it who this is. */
static void play(int round) {
    number child = fork();
    if (child == 0)
        ask();
    NEED(child == 2 + round && processes() == 2);
    for (int which = 0; which < SERVERS; which++) {
        number file = accept(servers[which], 0);
        NEED(file >= 0 && put(file, token, length(token)) == (number)length(token) && close(file) == 0);
    }
    int status = -1;
    NEED(wait_for(child, &status) == child && status == 0 && *shared == round + 1 && processes() == 1);
    // All that there are but this one: none.
    NEED(call(KILL, -1, SIGKILL, 0, 0, 0, 0) == ESRCH && call(KILL, child, 0, 0, 0, 0, 0) == ESRCH);
}

int program(number count, char **arguments) {
    NEED(count > 2 && pid() == 1 && call(GETPPID, 0, 0, 0, 0, 0, 0) == 0);
    token = arguments[1];
    int rounds = 0;
    for (const char *digit = arguments[2]; *digit; digit++)
        rounds = 10 * rounds + *digit - '0';
    shared = (volatile int *)call(MMAP, 0, 4096, PROT_READ | PROT_WRITE, SHARED | ANONYMOUS, -1, 0);
    settle();
    for (int round = 0; round < rounds; round++)
        play(round);
    for (int child = 0; count > 3 && child < 2; child++)
        if (fork() == 0)
            for (;;)
                if (child)
                    rest(1000);
    return 0;
}
