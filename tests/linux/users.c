/* Users and groups of a process, the capabilities that follow from them, and what depends on these beside files. */

#include "sockets.h"
#include "users.h"

enum {
    PRLIMIT64 = 261, SETPRIORITY = 140, GETPRIORITY = 141, MQ_OPEN = 180, MQ_UNLINK = 181,
    REALTIME = 0, FCHOWNAT = 54, FCHMODAT = 53, SIGQUEUE = RT_SIGQUEUEINFO,
};

static void show_four(const char *name, const unsigned *ids) {
    print(name);
    for (int i = 0; i < 4; i++)
        print(" "), print_number(ids[i]);
    print("\n");
}

/* Shows the real, effective and saved user and group, and those for files. */
static void show_ids(void) {
    unsigned user[4], group[4];
    call(GETRESUID, (number)&user[0], (number)&user[1], (number)&user[2], 0, 0, 0);
    call(GETRESGID, (number)&group[0], (number)&group[1], (number)&group[2], 0, 0, 0);
    user[3] = call(SETFSUID, -1, 0, 0, 0, 0, 0);
    group[3] = call(SETFSGID, -1, 0, 0, 0, 0, 0);
    show_four("  users", user);
    show_four("  groups", group);
}

static void show_capabilities(void) {
    sets both[2];
    get_sets(both);
    show("  effective", both[0].effective), show("  permitted", both[0].permitted);
    show("  inheritable", both[0].inheritable), show("  high", both[1].effective);
}

/* Makes a call about users or groups, and shows what they are then. */
static void try(const char *name, number what, number a, number b, number c) {
    print(name), print(" "), print_number(a), print(" "), print_number(b), print(" "), print_number(c);
    show(" gives", call(what, a, b, c, 0, 0, 0));
    show_ids();
}

static void as_root(void) {
    show_ids(), show_capabilities();
    show("own numbers", call(GETUID, 0, 0, 0, 0, 0, 0) + call(GETEUID, 0, 0, 0, 0, 0, 0));
    try("setreuid", SETREUID, 1, 2, 0), show_capabilities();
    try("setreuid", SETREUID, 0, 0, 0);
    try("setreuid", SETREUID, 2, -1, 0);
    try("setreuid", SETREUID, -1, 1, 0);
}

static void set_all(void) {
    try("setresuid", SETRESUID, 1, 2, 3), show_capabilities();
    try("setresuid", SETRESUID, 4, -1, -1);
    try("setresuid", SETRESUID, -1, 4, -1);
    try("setresuid", SETRESUID, -1, -1, 4);
    try("setresuid", SETRESUID, 3, 1, 2);
    try("setresuid", SETRESUID, -1, -1, -1);
    try("setuid", SETUID, 1, 0, 0);
    try("setuid", SETUID, 2, 0, 0);
    try("setuid", SETUID, 3, 0, 0);
    try("setuid", SETUID, -1, 0, 0);
    try("setreuid", SETREUID, 2, -1, 0);
    try("setreuid", SETREUID, -1, 3, 0);
    try("setfsuid", SETFSUID, 7, 0, 0);
    try("setfsuid", SETFSUID, 3, 0, 0);
    try("setgid", SETGID, 5, 0, 0);
    show("own real", call(GETUID, 0, 0, 0, 0, 0, 0)), show("own effective", call(GETEUID, 0, 0, 0, 0, 0, 0));
}

static void set_groups(void) {
    try("setresgid", SETRESGID, 1, 2, 3);
    try("setgid", SETGID, 9, 0, 0);
    try("setregid", SETREGID, 8, 7, 0);
    try("setfsgid", SETFSGID, 6, 0, 0);
    try("setresgid", SETRESGID, 1, 2, 3);
    show("own real", call(GETGID, 0, 0, 0, 0, 0, 0)), show("own effective", call(GETEGID, 0, 0, 0, 0, 0, 0));
    unsigned groups[3] = {30, 10, 20}, found[3] = {0, 0, 0};
    show("setgroups", call(SETGROUPS, 3, (number)groups, 0, 0, 0, 0));
    try("setuid", SETUID, 4, 0, 0), show_capabilities();
    show("setgroups", call(SETGROUPS, 0, 0, 0, 0, 0, 0));
    show("setgroups of too many", call(SETGROUPS, 100000, 0, 0, 0, 0, 0));
    show("getgroups", call(GETGROUPS, 3, (number)found, 0, 0, 0, 0));
    show("first", found[0]), show("last", found[2]);
    try("setgid", SETGID, 2, 0, 0);
    try("setgid", SETGID, 3, 0, 0);
    try("setregid", SETREGID, 3, 1, 0);
    try("setresgid", SETRESGID, 3, 3, 9);
    try("setfsgid", SETFSGID, 1, 0, 0);
    try("setfsgid", SETFSGID, 30, 0, 0);
}

static void file_user(void) {
    try("setfsuid", SETFSUID, 5, 0, 0), show_capabilities();
    try("setfsuid", SETFSUID, 0, 0, 0), show_capabilities();
    try("seteuid", SETREUID, -1, 5, 0), show_capabilities();
    try("seteuid", SETREUID, -1, 0, 0), show_capabilities();
    show("dumpable", prctl(GET_DUMPABLE, 0, 0));
}

static void keeps(void) {
    show("keeps", prctl(GET_KEEPCAPS, 0, 0));
    show("keep wrongly", prctl(SET_KEEPCAPS, 2, 0));
    show("keep", prctl(SET_KEEPCAPS, 1, 0));
    show("keeps", prctl(GET_KEEPCAPS, 0, 0)), show("bits", prctl(GET_SECUREBITS, 0, 0));
    try("setresuid", SETRESUID, 5, 5, 5), show_capabilities();
    show("raise", keep(CAP_SETUID | CAP_SETPCAP, -1, 0)), show_capabilities();
    try("setresuid", SETRESUID, 6, 6, 6);
    show("unknown bits", prctl(SET_SECUREBITS, 0x1000, 0));
    show("lock", prctl(SET_SECUREBITS, 0x20, 0));
    show("unlock", prctl(SET_SECUREBITS, 0, 0));
    show("keep what is locked", prctl(SET_KEEPCAPS, 1, 0));
    show("bits", prctl(GET_SECUREBITS, 0, 0));
}

static void no_fixup(void) {
    show("no fixup", prctl(SET_SECUREBITS, 4, 0));
    try("setresuid", SETRESUID, 5, 5, 5), show_capabilities();
    show("drop", keep(CAP_SETUID, CAP_SETUID | CAP_SETPCAP, 0));
    show("bits without the capability", prctl(SET_SECUREBITS, 0, 0));
    show("drop a bound without it", prctl(CAPBSET_DROP, 3, 0));
}

static void bounds(void) {
    show("read", prctl(CAPBSET_READ, 5, 0)), show("read none", prctl(CAPBSET_READ, 41, 0));
    show("drop", prctl(CAPBSET_DROP, 5, 0)), show("drop none", prctl(CAPBSET_DROP, 41, 0));
    show("read", prctl(CAPBSET_READ, 5, 0));
    show("inherit", keep(-1, -1, CAP_KILL)), show("inherit another", keep(-1, -1, CAP_CHOWN));
    show("ambient", prctl(CAP_AMBIENT, 1, 0)), show("raise", prctl(CAP_AMBIENT, 2, 0));
    show("raise what is not inheritable", prctl(CAP_AMBIENT, 2, 1)), show("ambient", prctl(CAP_AMBIENT, 1, 0));
    show("lower", prctl(CAP_AMBIENT, 3, 0)), show("ambient", prctl(CAP_AMBIENT, 1, 0));
    show("none", prctl(CAP_AMBIENT, 2, 41)), show("unknown", prctl(CAP_AMBIENT, 7, 0));
    show("clear", prctl(CAP_AMBIENT, 4, 0)), show("clear one", prctl(CAP_AMBIENT, 4, 1));
}

static void privileges(void) {
    show("has", prctl(GET_NO_NEW_PRIVS, 0, 0)), show("set to 0", prctl(SET_NO_NEW_PRIVS, 0, 0));
    show("more arguments", prctl(SET_NO_NEW_PRIVS, 1, 1)), show("set", prctl(SET_NO_NEW_PRIVS, 1, 0));
    show("has", prctl(GET_NO_NEW_PRIVS, 0, 0)), show("has, with arguments", prctl(GET_NO_NEW_PRIVS, 1, 0));
    show("dumpable", prctl(GET_DUMPABLE, 0, 0)), show("not", prctl(SET_DUMPABLE, 0, 0));
    show("dumpable", prctl(GET_DUMPABLE, 0, 0)), show("2", prctl(SET_DUMPABLE, 2, 0));
    show("by uid", (become(5), prctl(GET_DUMPABLE, 0, 0)));
    show("again", (prctl(SET_DUMPABLE, 1, 0), prctl(GET_DUMPABLE, 0, 0)));
}

/* A child that waits for signals as a user, with another real one. */
static number other(number real, number effective, number saved) {
    int ends[2];
    char byte;
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    number child = fork();
    if (child == 0) {
        call(SETRESUID, real, effective, saved, 0, 0, 0);
        call(WRITE, ends[1], (number)"x", 1, 0, 0, 0);
        for (;;)
            call(PPOLL, 0, 0, 0, 0, 0, 0);
    }
    call(READ, ends[0], (number)&byte, 1, 0, 0, 0);
    return child;
}

static void others_processes(void) {
    static unsigned info[32];
    number same = other(5, 5, 5), real = other(5, 6, 6), effective = other(6, 5, 6), saved = other(6, 6, 5), root = other(0, 0, 0);
    number own = call(GETPID, 0, 0, 0, 0, 0, 0);
    become(5);
    show("same", call(KILL, same, 0, 0, 0, 0, 0)), show("real", call(KILL, real, 0, 0, 0, 0, 0));
    show("effective", call(KILL, effective, 0, 0, 0, 0, 0)), show("saved", call(KILL, saved, 0, 0, 0, 0, 0));
    show("root", call(KILL, root, 0, 0, 0, 0, 0)), show("own", call(KILL, own, 0, 0, 0, 0, 0));
    show("nobody", call(KILL, 30000, 0, 0, 0, 0, 0)), show("go on", call(KILL, root, SIGCONT, 0, 0, 0, 0));
    show("tkill", call(TKILL, root, 0, 0, 0, 0, 0)), show("tgkill", call(TGKILL, root, root, SIGTERM, 0, 0, 0));
    info[2] = -1, info[4] = own, info[5] = 5;
    show("queue", call(RT_SIGQUEUEINFO, root, SIGTERM, (number)info, 0, 0, 0));
    show("queue own", call(RT_SIGQUEUEINFO, same, 0, (number)info, 0, 0, 0));
    show("a wrong signal", call(KILL, same, 100, 0, 0, 0, 0));
    show("nice", call(SETPRIORITY, 0, same, 5, 0, 0, 0)), show("nicer", call(SETPRIORITY, 0, same, 7, 0, 0, 0));
    show("less nice", call(SETPRIORITY, 0, same, 6, 0, 0, 0)), show("root's", call(SETPRIORITY, 0, root, 6, 0, 0, 0));
    show("who is so really", call(SETPRIORITY, 0, real, 5, 0, 0, 0)), show("acts so", call(SETPRIORITY, 0, effective, 5, 0, 0, 0));
    show("was so", call(SETPRIORITY, 0, saved, 5, 0, 0, 0)), show("own", call(SETPRIORITY, 0, 0, -1, 0, 0, 0));
    show("of user 5", call(GETPRIORITY, 2, 5, 0, 0, 0, 0)), show("of user 6", call(GETPRIORITY, 2, 6, 0, 0, 0, 0));
    show("of user 77", call(GETPRIORITY, 2, 77, 0, 0, 0, 0)), show("of the own", call(GETPRIORITY, 2, 0, 0, 0, 0, 0));
    show("all of user 6", call(SETPRIORITY, 2, 6, 9, 0, 0, 0));
    int priority = 1, none = 0;
    show("real time", call(SCHED_SETSCHEDULER, 0, 1, (number)&priority, 0, 0, 0));
    show("batch", call(SCHED_SETSCHEDULER, same, 3, (number)&none, 0, 0, 0));
    show("idle", call(SCHED_SETSCHEDULER, same, 5, (number)&none, 0, 0, 0));
    show("not idle", call(SCHED_SETSCHEDULER, same, 0, (number)&none, 0, 0, 0));
    show("root's", call(SCHED_SETSCHEDULER, root, 3, (number)&none, 0, 0, 0));
    show("parameter", call(SCHED_SETPARAM, root, (number)&none, 0, 0, 0, 0));
    show("policy", call(SCHED_GETSCHEDULER, root, 0, 0, 0, 0, 0));
    number set = 1, limits[2] = {0, 0}, more[2] = {100, 2000000000};
    show("processors", call(SCHED_SETAFFINITY, root, 8, (number)&set, 0, 0, 0));
    show("of the same", call(SCHED_SETAFFINITY, same, 8, (number)&set, 0, 0, 0));
    show("limits", call(PRLIMIT64, root, 7, 0, (number)limits, 0, 0)), show("of the real", call(PRLIMIT64, real, 7, 0, (number)limits, 0, 0));
    show("of another group", call(PRLIMIT64, same, 7, 0, (number)limits, 0, 0)), show("of nobody", call(PRLIMIT64, 30000, 7, 0, (number)limits, 0, 0));
    show("own", call(PRLIMIT64, 0, 7, 0, (number)limits, 0, 0)), show("more", call(PRLIMIT64, 0, 7, (number)more, 0, 0, 0));
    show("time", call(CLOCK_SETTIME, REALTIME, (number)more, 0, 0, 0, 0));
    show("end", call(KILL, same, SIGKILL, 0, 0, 0, 0) + call(KILL, real, SIGKILL, 0, 0, 0, 0) + call(KILL, saved, SIGKILL, 0, 0, 0, 0));
    show("others stay", call(KILL, effective, SIGKILL, 0, 0, 0, 0)), show("root stays", call(KILL, root, SIGKILL, 0, 0, 0, 0));
}

static void groups_of_processes(void) {
    number root = other(0, 0, 0), same = other(5, 5, 5);
    call(SETPGID, root, root, 0, 0, 0, 0), call(SETPGID, same, root, 0, 0, 0, 0);
    number third = other(0, 0, 0);
    call(SETPGID, third, third, 0, 0, 0, 0);
    become(5);
    show("one of two", call(KILL, -root, 0, 0, 0, 0, 0)), show("none of one", call(KILL, -third, 0, 0, 0, 0, 0));
    show("no group", call(KILL, -30000, 0, 0, 0, 0, 0)), show("priorities", call(SETPRIORITY, 1, root, 3, 0, 0, 0));
}

static void sends(void) {
    int ends[2], got[3] = {0, 0, 0}, one = 1;
    unsigned count = 12;
    call(SETRESUID, 5, 6, 7, 0, 0, 0);
    pair(DGRAM, ends);
    call(GETSOCKOPT, ends[0], SOL_SOCKET, SO_PEERCRED, (number)got, (number)&count, 0);
    show("peer's user", got[1]), show("group", got[2]);
    call(SETSOCKOPT, ends[1], SOL_SOCKET, SO_PASSCRED, (number)&one, 4, 0);
    int claims[][2] = {{5, 0}, {6, 0}, {7, 0}, {0, 0}, {5, 1}};
    for (int i = -1; i < 5; i++) {
        struct vector vector = {"x", 1};
        struct control control = {28, SOL_SOCKET, SCM_CREDENTIALS, {call(GETPID, 0, 0, 0, 0, 0, 0), 0, 0}};
        struct message message = {0, 0, &vector, 1, 0, 0, 0};
        if (i >= 0)
            control.data[1] = claims[i][0], control.data[2] = claims[i][1], message.control = &control, message.control_length = sizeof control - 12;
        number sent = call(SENDMSG, ends[0], (number)&message, 0, 0, 0, 0);
        show("send", sent);
        if (sent < 0)
            continue;
        char byte;
        struct vector into = {&byte, 1};
        struct message answer = {0, 0, &into, 1, &control, sizeof control, 0};
        call(RECVMSG, ends[1], (number)&answer, 0, 0, 0, 0);
        show("  user", control.data[1]), show("  group", control.data[2]);
    }
    struct control other = {28, SOL_SOCKET, SCM_CREDENTIALS, {1, 5, 0}};
    struct vector vector = {"x", 1};
    struct message message = {0, 0, &vector, 1, &other, sizeof other - 12, 0};
    show("for another process", call(SENDMSG, ends[0], (number)&message, 0, 0, 0, 0));
}

static void ports(void) {
    unsigned char low[16] = {INET, 0, 0, 80, 127, 0, 0, 1}, high[16] = {INET, 0, 9, 80, 127, 0, 0, 1}, far[16] = {INET, 0, 0, 80, 9, 9, 9, 9};
    become(5);
    number file = make(INET, STREAM);
    show("low", bind(file, low, 16)), show("far", bind(file, far, 16)), show("high", bind(file, high, 16));
}

static void message_queues(void) {
    number large[8] = {0, 20, 100}, wide[8] = {0, 5, 10000};
    call(UMASK, 0, 0, 0, 0, 0, 0);
    show("make", call(MQ_OPEN, (number)"of-root", CREAT | RDWR, 0640, 0, 0, 0) >= 0);
    show("open to all", call(MQ_OPEN, (number)"shared", CREAT | RDWR, 0604, 0, 0, 0) >= 0);
    become(5);
    show("read", call(MQ_OPEN, (number)"of-root", RDONLY, 0, 0, 0, 0)), show("write", call(MQ_OPEN, (number)"shared", WRONLY, 0, 0, 0, 0));
    show("read what is shared", call(MQ_OPEN, (number)"shared", RDONLY, 0, 0, 0, 0) >= 0);
    show("make what is there", call(MQ_OPEN, (number)"of-root", CREAT | EXCL | RDONLY, 0600, 0, 0, 0));
    show("remove", call(MQ_UNLINK, (number)"shared", 0, 0, 0, 0, 0));
    show("many", call(MQ_OPEN, (number)"many", CREAT | RDWR, 0600, (number)large, 0, 0));
    show("wide", call(MQ_OPEN, (number)"wide", CREAT | RDWR, 0600, (number)wide, 0, 0));
    show("own", call(MQ_OPEN, (number)"own", CREAT | RDWR, 0, 0, 0, 0) >= 0);
    show("own again", call(MQ_OPEN, (number)"own", RDONLY, 0, 0, 0, 0));
    show("remove own", call(MQ_UNLINK, (number)"own", 0, 0, 0, 0, 0));
}

static char **own;

/* Shows what the program finds when it was run by somebody. */
static int again(number *stack) {
    show_ids(), show_capabilities();
    for (number *pair = stack; pair[0]; pair += 2)
        if ((pair[0] >= 11 && pair[0] <= 14) || pair[0] == 23)
            print_number(pair[0]), show(" in the vector", pair[1]);
    show("dumpable", prctl(GET_DUMPABLE, 0, 0)), show("keeps", prctl(GET_KEEPCAPS, 0, 0));
    return 0;
}

static void run(const char *path) {
    char *arguments[] = {(char *)path, "again", 0}, *variables[] = {0};
    show("not run", call(EXECVE, (number)path, (number)arguments, (number)variables, 0, 0, 0));
}

/* Copies the program to a file with a mode and an owner. */
static void copy(const char *path, number user, number group, number mode) {
    static char bytes[4096];
    number from = call(OPENAT, AT_FDCWD, (number)own[0], RDONLY, 0, 0, 0), count;
    number to = call(OPENAT, AT_FDCWD, (number)path, CREAT | RDWR, 0700, 0, 0);
    while ((count = call(READ, from, (number)bytes, sizeof bytes, 0, 0, 0)) > 0)
        call(WRITE, to, (number)bytes, count, 0, 0, 0);
    call(CLOSE, from, 0, 0, 0, 0, 0), call(CLOSE, to, 0, 0, 0, 0, 0);
    call(FCHOWNAT, AT_FDCWD, (number)path, user, group, 0, 0), call(FCHMODAT, AT_FDCWD, (number)path, mode, 0, 0, 0);
}

static void as_five(void) { become(5), run("/tmp/plain"); }
static void set_user(void) { become(5), run("/tmp/of-root"); }
static void set_both(void) { become(5), run("/tmp/of-six"); }
static void set_group_only(void) { become(5), run("/tmp/group"); }
static void no_group(void) { become(5), run("/tmp/no-group"); }
static void not_readable(void) { become(5), run("/tmp/hidden"); }
static void not_allowed(void) { become(5), run("/tmp/forbidden"); }
static void root_not_allowed(void) { run("/tmp/nobody"); }
static void root_runs(void) { run("/tmp/of-six"); }
static void acts_as_five(void) { call(SETRESUID, 0, 5, 0, 0, 0, 0), run("/tmp/plain"); }
static void really_five(void) { call(SETRESUID, 5, 0, 0, 0, 0, 0), run("/tmp/plain"); }
static void bound(void) { become(5), prctl(SET_NO_NEW_PRIVS, 1, 0), run("/tmp/of-root"); }
static void kept(void) { prctl(SET_KEEPCAPS, 1, 0), become(5), run("/tmp/plain"); }
static void bounded(void) { prctl(CAPBSET_DROP, 5, 0), keep(1, 3, 0), run("/tmp/plain"); }
static void no_root(void) { prctl(SET_SECUREBITS, 1, 0), run("/tmp/plain"); }
static void ambient(void) {
    prctl(SET_SECUREBITS, 0x10, 0), become(5), keep(-1, -1, CAP_KILL | CAP_CHOWN), prctl(CAP_AMBIENT, 2, 5);
    run("/tmp/plain");
}
static void ambient_and_user(void) {
    prctl(SET_SECUREBITS, 0x10, 0), become(5), keep(-1, -1, CAP_KILL | CAP_CHOWN), prctl(CAP_AMBIENT, 2, 5);
    run("/tmp/of-six");
}

static void programs(void) {
    copy("/tmp/plain", 0, 0, 0755), copy("/tmp/of-root", 0, 0, 04755), copy("/tmp/of-six", 6, 7, 06755);
    copy("/tmp/group", 6, 7, 02755), copy("/tmp/no-group", 6, 7, 02745), copy("/tmp/hidden", 6, 6, 0711);
    copy("/tmp/forbidden", 6, 6, 0754), copy("/tmp/nobody", 6, 6, 0644);
    apart("a user", as_five), apart("set-user-ID of root", set_user), apart("both bits", set_both);
    apart("set-group-ID", set_group_only), apart("without group execution", no_group), apart("unreadable", not_readable);
    apart("not allowed", not_allowed), apart("nobody, not even root", root_not_allowed), apart("root, of another", root_runs);
    apart("acting as another", acts_as_five), apart("acting as root", really_five), apart("no new privileges", bound);
    apart("kept capabilities", kept), apart("bounded", bounded), apart("no root", no_root);
    apart("ambient", ambient), apart("ambient, but another user", ambient_and_user);
}

int program(number count, char **arguments) {
    own = arguments;
    if (count > 1 && equal(arguments[1], "again", 6)) {
        char **at = arguments + count + 1;
        while (*at)
            at++;
        return again((number *)(at + 1));
    }
    apart("root", as_root), apart("all three", set_all), apart("groups", set_groups), apart("for files", file_user);
    apart("kept", keeps), apart("no fixup", no_fixup), apart("bounds", bounds), apart("privileges", privileges);
    apart("signals", others_processes), apart("groups of processes", groups_of_processes), apart("credentials", sends);
    apart("ports", ports), apart("queues", message_queues);
    programs();
    return 0;
}
