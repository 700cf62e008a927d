/* Attacks on the others in an instance, and on what serves them: users who want more than they may have, sets that watch
   each other in millions of ways, operations whose memory, context or process goes away meanwhile, filters as long as may
   be, dead owners. */

#include "threads.h"
#include "operations.h"
#include "sysv.h"
#include "users.h"

enum { SECCOMP = 277, SYSLOG = 116, CHROOT = 51 };
enum { GETFL = 3, SETFL = 4, SETOWN = 8, SETSIG = 10, NOTIFY = 1026, ASYNC = 020000, NONBLOCK = 04000 };
enum { ADD = 1, READABLE = 1, FOLLOW = 0x400, SET_PDEATHSIG = 1, GET_PDEATHSIG = 2, ALLOW = 0x7fff0000, ERROR = 0x50000 };
enum { PIECE = 100000, CHAIN = 500, WIDTH = 60, LEVELS = 4, PAGE = 4096, DEPTH = 2000 };

static char stacks[4][16384] __attribute__((aligned(16)));
static char *own_path;

static number open(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0600, 0, 0); }
static number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static number flags(number file, number command, number argument) { return call(FCNTL, file, command, argument, 0, 0, 0); }
static number set(void) { return call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0); }

static number watch(number set, number file) {
    struct { unsigned events, rest; number data; } event = {READABLE, 0, file};
    return call(EPOLL_CTL, set, ADD, file, (number)&event, 0, 0);
}

static number poll(number file) {
    struct { int file; short events, found; } record = {(int)file, READABLE, 0};
    number time[2] = {0, 0};
    return call(PPOLL, (number)&record, 1, (number)time, 0, 8, 0);
}

/* Writes a number behind the beginning of a path. */
static const char *path_to(const char *begin, number value, const char *end) {
    static char path[64];
    char digits[12], *at = path, *digit = digits;
    while (*begin)
        *at++ = *begin++;
    do
        *digit++ = '0' + value % 10;
    while (value /= 10);
    while (digit > digits)
        *at++ = *--digit;
    while (*end)
        *at++ = *end++;
    *at = 0;
    return path;
}

/* Files that somebody with more rights has opened, and passes on. */
static number passed[4];

static void open_again(void) {
    become(1000);
    prctl(SET_DUMPABLE, 1, 0);
    static const char *const names[] = {"a file of root's", "a pipe", "a file in memory", "a directory"};
    for (int i = 0; i < 4; i++) {
        print("  "), print(names[i]), print("\n");
        number again = open(path_to("/proc/self/fd/", passed[i], ""), i == 3 ? RDONLY : RDWR);
        show("    opened again", again < 0 ? again : 0);
        show("    linked", call(LINKAT, AT_FDCWD, (number)path_to("/proc/self/fd/", passed[i], ""), AT_FDCWD,
                                (number) "/tmp/linked", FOLLOW, 0));
        show("    its mode", call(FCHMOD, passed[i], 0777, 0, 0, 0, 0));
        show("    its length", call(FTRUNCATE, passed[i], 0, 0, 0, 0, 0));
    }
    show("  below", call(OPENAT, passed[3], (number) "inside", RDONLY, 0, 0, 0) >= 0);
}

static void pass_files(void) {
    int ends[2];
    call(MKDIRAT, AT_FDCWD, (number) "/tmp/private", 0700, 0, 0, 0);
    call(FCHMOD, open("/tmp/private/inside", RDWR | CREAT), 0644, 0, 0, 0, 0);
    open("/tmp/secret", RDWR | CREAT);
    passed[0] = open("/tmp/secret", RDONLY), passed[3] = open("/tmp/private", RDONLY | DIRECTORY);
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    passed[1] = ends[0];
    call(CLOSE, call(MEMFD_CREATE, (number) "x", 0, 0, 0, 0, 0), 0, 0, 0, 0, 0);
    passed[2] = call(MEMFD_CREATE, (number) "x", 0, 0, 0, 0, 0);
    call(FCHMOD, passed[2], 0600, 0, 0, 0, 0);
    apart("what was passed on", open_again);
}

/* Objects of System V that others may read. */
static number segment, semaphores, queue;

static void use_objects(void) {
    become(1000);
    number buffer[32] = {0};
    show("  to write", call(SHMAT, segment, 0, 0, 0, 0, 0));
    number place = call(SHMAT, segment, 0, 010000, 0, 0, 0);
    show("  to read", place > 0);
    show("  what is there", *(volatile char *)place);
    show("  to write after all", call(MPROTECT, place, PAGE, PROT_READ | PROT_WRITE, 0, 0, 0));
    number moved = call(MREMAP, place, PAGE, PAGE, 3, place + 64 * PAGE, 0);
    show("  moved", moved == place + 64 * PAGE);
    show("  and then", call(MPROTECT, moved, PAGE, PROT_READ | PROT_WRITE, 0, 0, 0));
    show("  read into", call(READ, open("/dev/zero", RDONLY), moved, 1, 0, 0, 0));
    show("  removed", call(SHMCTL, segment, REMOVE, 0, 0, 0, 0));
    show("  given away", call(SHMCTL, segment, SET, (number)buffer, 0, 0, 0));
    show("  locked", call(SHMCTL, segment, 11, 0, 0, 0, 0));
    short operation[3] = {0, 1, 010000};
    show("  raised", call(SEMOP, semaphores, (number)operation, 1, 0, 0, 0));
    show("  set", call(SEMCTL, semaphores, 0, 16, 1, 0, 0));
    show("  value", call(SEMCTL, semaphores, 0, 12, 0, 0, 0));
    show("  removed", call(SEMCTL, semaphores, 0, REMOVE, 0, 0, 0));
    number message[2] = {1, 0};
    show("  sent", call(MSGSND, queue, (number)message, 1, NOWAIT, 0, 0));
    show("  received", call(MSGRCV, queue, (number)message, 8, 0, NOWAIT, 0));
    call(MSGCTL, queue, STAT, (number)buffer, 0, 0, 0);
    buffer[11] = 1 << 30;
    show("  made longer", call(MSGCTL, queue, SET, (number)buffer, 0, 0, 0));
    show("  removed", call(MSGCTL, queue, REMOVE, 0, 0, 0, 0));
}

static void own_queue(void) {
    number buffer[32] = {0};
    become(1000);
    number id = call(MSGGET, 0, CREATE | 0600, 0, 0, 0, 0);
    call(MSGCTL, id, STAT, (number)buffer, 0, 0, 0);
    buffer[11] = 16385;
    show("  longer", call(MSGCTL, id, SET, (number)buffer, 0, 0, 0));
    buffer[11] = 16384;
    show("  as long", call(MSGCTL, id, SET, (number)buffer, 0, 0, 0));
    call(MSGCTL, id, REMOVE, 0, 0, 0, 0);
}

static void objects(void) {
    segment = call(SHMGET, 0, PAGE, CREATE | 0644, 0, 0, 0);
    *(char *)call(SHMAT, segment, 0, 0, 0, 0, 0) = 42;
    semaphores = call(SEMGET, 0, 2, CREATE | 0644, 0, 0, 0), queue = call(MSGGET, 0, CREATE | 0644, 0, 0, 0, 0);
    apart("root's objects of System V", use_objects);
    apart("a queue of one's own", own_queue);
}

/* Has a child hold a semaphore, a segment and a message that it waits to send, and kills it. */
static void dead_owner(void) {
    print("-- a dead owner\n");
    short raise[3] = {1, 1, 0}, take[3] = {1, -1, 010000};
    call(SEMOP, semaphores, (number)raise, 1, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        call(SEMOP, semaphores, (number)take, 1, 0, 0, 0);
        static struct { number kind; char text[8192]; } message = {1, ""};
        while (1)
            call(MSGSND, queue, (number)&message, 8192, 0, 0, 0);
    }
    pause(50);
    show("  held", call(SEMCTL, semaphores, 1, 12, 0, 0, 0));
    number other = fork();
    if (other == 0) {
        take[2] = 0;
        exit(call(SEMOP, semaphores, (number)take, 1, 0, 0, 0) == 0 ? 7 : 8);
    }
    pause(50);
    show("  waits", call(SEMCTL, semaphores, 1, 14, 0, 0, 0));
    int status = 0;
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    wait_for(child, &status), show("  killed", status);
    wait_for(other, &status), show("  goes on", status);
    number buffer[32] = {0};
    call(MSGCTL, queue, STAT, (number)buffer, 0, 0, 0);
    show("  messages", buffer[10]);
    show("  removed", call(MSGCTL, queue, REMOVE, 0, 0, 0, 0) + call(SEMCTL, semaphores, 0, REMOVE, 0, 0, 0));
    show("  removed", call(SHMCTL, segment, REMOVE, 0, 0, 0, 0));
}

/* Signals that cannot be blocked, by way of files. */
static number victim;

static void kill_by_files(void) {
    int ends[2];
    number here = open("/tmp", RDONLY | DIRECTORY);
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    become(1000);
    show("  owner", flags(ends[0], SETOWN, victim));
    show("  signal", flags(ends[0], SETSIG, SIGKILL));
    show("  none such", flags(ends[0], SETSIG, 65)), show("  nor that", flags(ends[0], SETSIG, -1));
    show("  flags", flags(ends[0], SETFL, ASYNC));
    call(WRITE, ends[1], (number) "x", 1, 0, 0, 0);
    show("  of the directory", flags(here, SETOWN, victim));
    show("  signal", flags(here, SETSIG, SIGKILL));
    show("  notices", flags(here, NOTIFY, 0x8000003f));
    close(open("/tmp/noticed", RDWR | CREAT));
    pause(20);
    show("  itself", flags(ends[0], SETOWN, own()));
    call(WRITE, ends[1], (number) "x", 1, 0, 0, 0);
    pause(20);
    print("  it lives\n");
}

static void files_kill(void) {
    victim = fork();
    if (victim == 0)
        for (;;)
            pause(900);
    apart("SIGKILL by files", kill_by_files);
    int status = 0;
    show("  nobody else has ended", call(WAIT4, victim, (number)&status, 1, 0, 0, 0));
    call(KILL, victim, SIGKILL, 0, 0, 0, 0);
    wait_for(victim, &status);
}

/* The signal at the end of a parent is forgotten by who becomes more than it. */
static void become_more(void) {
    number file = open(own_path, RDONLY), copy = open("/tmp/more", RDWR | CREAT);
    static char bytes[65536];
    for (number count; (count = call(READ, file, (number)bytes, sizeof bytes, 0, 0, 0)) > 0;)
        call(WRITE, copy, (number)bytes, count, 0, 0, 0);
    call(FCHMOD, copy, 04755, 0, 0, 0, 0);
    close(copy);
    become(1000);
    show("  wants a signal", prctl(SET_PDEATHSIG, SIGKILL, 0)), show("  none such", prctl(SET_PDEATHSIG, 65, 0));
    char *arguments[] = {"/tmp/more", "more", 0};
    show("  runs it", call(EXECVE, (number)arguments[0], (number)arguments, 0, 0, 0, 0));
}

static void is_more(void) {
    int signal = -1;
    prctl(GET_PDEATHSIG, (number)&signal, 0);
    show("  user", call(GETUID, 0, 0, 0, 0, 0, 0)), show("  as", call(GETEUID, 0, 0, 0, 0, 0, 0));
    show("  signal", signal), show("  can be looked into", prctl(GET_DUMPABLE, 0, 0));
}

/* Things that only some may do, by somebody who has nothing. */
static void have_nothing(void) {
    static unsigned groups[2] = {0, 4};
    char text[64];
    become(1000);
    show("  groups", call(SETGROUPS, 2, (number)groups, 0, 0, 0, 0));
    show("  all capabilities", keep(-1, -1, 0)), show("  to inherit", keep(0, 0, 1));
    show("  bounds", prctl(CAPBSET_DROP, 0, 0)), show("  secure bits", prctl(SET_SECUREBITS, 0, 0));
    show("  ambient", call(PRCTL, CAP_AMBIENT, 2, 0, 0, 0, 0));
    show("  root", call(CHROOT, (number) "/tmp", 0, 0, 0, 0, 0));
    show("  the log", call(SYSLOG, 3, (number)text, sizeof text, 0, 0, 0));
    show("  its size", call(SYSLOG, 10, 0, 0, 0, 0, 0)), show("  cleared", call(SYSLOG, 5, 0, 0, 0, 0, 0));
    number map = open(path_to("/proc/", 1, "/pagemap"), RDONLY);
    show("  another's pages", map < 0 ? map : 0);
    show("  its own", call(PREAD64, open("/proc/self/pagemap", RDONLY), (number)text, 8, (number)text / PAGE * 8, 0, 0));
    show("  part of a word", call(PREAD64, open("/proc/self/pagemap", RDONLY), (number)text, 7, 0, 0, 0));
    show("  beyond all", call(PREAD64, open("/proc/self/pagemap", RDONLY), (number)text, 8, 1l << 60, 0, 0));
    struct { unsigned short length; void *at; } none = {1, text};
    show("  a filter", call(SECCOMP, 1, 0, (number)&none, 0, 0, 0));
}

/* Sets that watch each other: a pile without end, begun above, and one in which millions of ways lead down. */
static void piles(void) {
    number last = set(), count = 1, refused = 0;
    while (count < CHAIN && !refused) {
        number next = set();
        refused = watch(last, next);
        last = next, count += !refused;
    }
    show("  refused", refused), show("  deep", count);
}

static void ways(void) {
    int ends[2];
    char byte;
    number levels[LEVELS][WIDTH];
    call(PIPE2, (number)ends, NONBLOCK, 0, 0, 0, 0);
    for (int level = 0; level < LEVELS; level++)
        for (int i = 0; i < WIDTH; i++) {
            levels[level][i] = set();
            for (int below = 0; below < (level ? WIDTH : 1); below++)
                watch(levels[level][i], level ? levels[level - 1][below] : ends[0]);
        }
    number top = levels[LEVELS - 1][0];
    for (int round = 0; round < 20; round++) {
        call(WRITE, ends[1], (number) "x", 1, 0, 0, 0);
        poll(top);
        call(READ, ends[0], (number)&byte, 1, 0, 0, 0);
        if (poll(top))
            print("  something is there\n");
    }
}

/* Asynchronous I/O on a full pipe, whose context, ring or process goes away while an operation waits. */
static size context;
static volatile number submitted, taken;
static int full[2], rest[2];
static char piece[PIECE];
static struct operation writes[2];

static void submit_two(number argument) {
    struct operation *list[2] = {&writes[0], &writes[1]};
    (void)argument;
    submitted = call(IO_SUBMIT, context, 2, (number)list, 0, 0, 0);
}

static void take_all(number argument) {
    static number results[4][4];
    (void)argument;
    taken = call(IO_GETEVENTS, context, 4, 4, (number)results, 0, 0);
}

/* Lets a thread wait for results, and perhaps another one, which submits operations of which the first fills a pipe. */
static void begin_to_wait(int submits) {
    context = 0, submitted = taken = 99;
    call(PIPE2, (number)full, 0, 0, 0, 0, 0), call(PIPE2, (number)rest, 0, 0, 0, 0, 0);
    show("  context", call(IO_SETUP, 16, (number)&context, 0, 0, 0, 0));
    writes[0] = (struct operation){.kind = 1, .file = full[1], .place = (number)piece, .length = PIECE};
    writes[1] = (struct operation){.kind = 1, .file = rest[1], .place = (number)piece, .length = 3};
    if (submits)
        start_thread(submit_two, 0, stacks[1], ALL, 0, 0, 0);
    start_thread(take_all, 0, stacks[2], ALL, 0, 0, 0);
    pause(20);
}

static number drain(number file) {
    static char bytes[PIECE];
    number sum = 0, count;
    flags(file, SETFL, NONBLOCK);
    while ((count = call(READ, file, (number)bytes, sizeof bytes, 0, 0, 0)) > 0)
        sum += count, pause(10);
    return sum;
}

static void ring_goes_away(void) {
    begin_to_wait(1);
    show("  unmapped", call(MUNMAP, context & -PAGE, PAGE, 0, 0, 0, 0));
    writes[0].file = rest[1], writes[0].length = 1;
    show("  the first", drain(full[0]) > 65000), show("  the second", drain(rest[0]) > 0);
}

static void context_goes_away(void) {
    begin_to_wait(0);
    show("  destroyed", call(IO_DESTROY, context, 0, 0, 0, 0, 0));
    pause(20);
    show("  results", taken);
    show("  again", call(IO_DESTROY, context, 0, 0, 0, 0, 0));
}

static void process_goes_away(void) {
    begin_to_wait(1);
    number child = fork();
    if (child == 0) {
        show("  the child's", call(IO_DESTROY, context, 0, 0, 0, 0, 0));
        exit(0);
    }
    wait_for(child, 0);
    char *arguments[] = {own_path, "nothing", 0};
    call(EXECVE, (number)own_path, (number)arguments, 0, 0, 0, 0);
}

static void thousands(void) {
    size all[200] = {0}, made = 0;
    for (int round = 0; round < 3; round++) {
        for (made = 0; made < 200 && call(IO_SETUP, 1000, (number)&all[made], 0, 0, 0, 0) == 0;)
            made++;
        show("  some", made > 10);
        while (made > 0)
            call(IO_DESTROY, all[--made], 0, 0, 0, 0, 0), all[made] = 0;
    }
}

/* Filters as long as may be, for several threads. */
struct instruction {
    uint16_t code;
    uint8_t then, otherwise;
    uint32_t operand;
};

static volatile int counter;

static void call_often(number argument) {
    (void)argument;
    for (int i = 0; i < 100; i++)
        call(GETPPID, 0, 0, 0, 0, 0, 0);
    __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
}

static void filters(void) {
    static struct instruction all[4096];
    struct { unsigned short length; void *at; } program = {4096, all};
    for (int i = 0; i < 4095; i++)
        all[i] = (struct instruction){0x20, 0, 0, 0};
    all[4095] = (struct instruction){6, 0, 0, ALLOW};
    number longest = 0, shortest = 0;
    while (call(SECCOMP, 1, 0, (number)&program, 0, 0, 0) == 0)
        longest++;
    program.length = 1, all[0] = all[4095];
    while (call(SECCOMP, 1, 0, (number)&program, 0, 0, 0) == 0)
        shortest++;
    show("  long ones", longest), show("  short ones", shortest > 0);
    for (int i = 0; i < 3; i++)
        start_thread(call_often, 0, stacks[i + 1], ALL, 0, 0, 0);
    while (counter < 3)
        call(SCHED_YIELD, 0, 0, 0, 0, 0, 0);
    print("  all have called\n");
}

static void many_filters(void) {
    static struct instruction allow = {6, 0, 0, ALLOW};
    struct { unsigned short length; void *at; } program = {1, &allow};
    static char text[4096];
    number count = 0;
    while (call(SECCOMP, 1, 0, (number)&program, 0, 0, 0) == 0)
        count++;
    show("  thousands", count > 3000);
    show("  they are told of", call(READ, open("/proc/self/status", RDONLY), (number)text, sizeof text, 0, 0, 0) > 100);
}

/* Directories in each other, deeper than any path can say. */
static void depths(void) {
    static char text[8192];
    number count = 0;
    call(MKDIRAT, AT_FDCWD, (number) "/tmp/deep", 0700, 0, 0, 0), call(CHDIR, (number) "/tmp/deep", 0, 0, 0, 0, 0);
    while (count < DEPTH && call(MKDIRAT, AT_FDCWD, (number) "directory", 0700, 0, 0, 0) == 0)
        call(CHDIR, (number) "directory", 0, 0, 0, 0, 0), count++;
    show("  deep", count), show("  path", call(GETCWD, (number)text, sizeof text, 0, 0, 0, 0));
    show("  into itself", call(RENAMEAT, AT_FDCWD, (number) "/tmp/deep", AT_FDCWD, (number) "here", 0, 0));
    number link = call(READLINKAT, AT_FDCWD, (number) "/proc/self/cwd", (number)text, sizeof text, 0, 0);
    show("  link", link < 0 ? link : 0);
}

static void nothing(void) { print("  another program\n"); }

int program(number count, char **arguments) {
    own_path = arguments[0];
    if (count > 1 && equal(arguments[1], "more", 5))
        return is_more(), 0;
    if (count > 1)
        return nothing(), 0;
    pass_files();
    objects(), dead_owner();
    files_kill();
    apart("what may be done by way of a program", become_more);
    apart("a user", have_nothing);
    apart("a pile of sets", piles), apart("ways between sets", ways);
    apart("a ring that is unmapped", ring_goes_away), apart("a context that is destroyed", context_goes_away);
    apart("another program", process_goes_away), apart("many contexts", thousands);
    apart("deep directories", depths);
    apart("long filters", filters), apart("many filters", many_filters);
    return 0;
}
