/* Sessions and jobs at pseudo-terminals: who has one, which signals keys are, who stops, and what a hang-up does. */

#include "pty.h"

static volatile int came;

static void note(int signal) { came = came * 100 + signal; }

static void handle(int signal, void *handler, number flags) {
    void *action[4] = {handler, (void *)flags, 0, 0};
    call(RT_SIGACTION, signal, (number)action, 0, 8, 0, 0);
}

/* Waits until signals have come, and shows them. */
static void show_signals(const char *what) {
    for (int i = 0; i < 500 && came == 0; i++)
        sleep(10);
    sleep(20);
    show(what, came);
    came = 0;
}

static number setsid(void) { return call(SETSID, 0, 0, 0, 0, 0, 0); }
static number setpgid(void) { return call(SETPGID, 0, 0, 0, 0, 0, 0); }
static int pid(void) { return (int)call(GETPID, 0, 0, 0, 0, 0, 0); }

/* Runs something in a session of its own. */
static void in_session(const char *what, void (*run)(number, const char *)) {
    static char path[32];
    number master = open_master();
    memcpy(path, path_of(master), 32);
    int status = 0;
    number child = fork();
    if (child == 0) {
        show(what, setsid() == pid());
        run(master, path);
        exit(0);
    }
    wait_for(child, &status);
    show("  its end", status);
    close(master);
}

static void session(number master, const char *path) {
    int value = 0, own = pid();
    show("no terminal", open("/dev/tty", RDWR));
    number slave = open(path, RDWR | NOCTTY);
    show("opened without", open("/dev/tty", RDWR));
    show("session", control(slave, GET_SESSION, &value));
    show("group", control(slave, GET_GROUP, &value));
    value = own;
    show("set the group", control(slave, SET_GROUP, &value));
    show("session at the master", control(master, GET_SESSION, &value));
    show("group at the master", control(master, GET_GROUP, &value));
    show("  none", value);
    close(slave);
    slave = open(path, WRONLY);
    show("opened to be written only", open("/dev/tty", RDWR));
    close(slave);
    slave = open(path, RDWR);
    number terminal = open("/dev/tty", RDWR);
    show("opened", terminal > 0);
    show("session", control(slave, GET_SESSION, &value));
    show("  is the own", value == own);
    show("group", control(terminal, GET_GROUP, &value));
    show("  is the own", value == own);
    control(master, GET_GROUP, &value);
    show("  also at the master", value == own);
    value = 7777;
    show("no such group", control(slave, SET_GROUP, &value));
    value = 1;
    show("a group elsewhere", control(slave, SET_GROUP, &value));
    value = -1;
    show("a group below zero", control(slave, SET_GROUP, &value));
    put(terminal, "by its other name\n");
    show_read("master", master, 19);
    show("take it again", control(slave, TAKE, 0));
    number other = open_master(), second = open(path_of(other), RDWR);
    show("a second terminal", control(second, GET_SESSION, &value));
    show("take it", control(second, TAKE, 0));
    int status;
    number child = fork();
    if (child == 0) {
        show("a child takes it", control(slave, TAKE, 0));
        show("a child leaves it", control(slave, LEAVE, 0));
        show("  no terminal", open("/dev/tty", RDWR));
        show("  session", control(slave, GET_SESSION, &value));
        setsid();
        show("another session takes it", control(slave, TAKE, 0));
        show("  takes the second", control(second, TAKE, 0));
        exit(0);
    }
    wait_for(child, &status);
    show("the second again", control(other, GET_SESSION, &value));
    child = fork();
    if (child == 0) {
        setsid();
        show("a session that steals it", control(slave, TAKE, (void *)1));
        exit(0);
    }
    wait_for(child, &status);
    show("the session has lost it", open("/dev/tty", RDWR));
    show("take it", control(slave, TAKE, 0));
    handle(SIGHUP, (void *)note, 0), handle(SIGCONT, (void *)note, 0);
    show("leave it", control(slave, LEAVE, 0));
    show_signals("signals");
    show("no terminal", open("/dev/tty", RDWR));
    show("no session", control(master, GET_SESSION, &value));
    show("leave it again", control(slave, LEAVE, 0));
    show("it still works", put(slave, "x"));
}

static void keys(number master, const char *path) {
    number slave = open(path, RDWR);
    unsigned short sizes[4] = {10, 20, 0, 0};
    handle(SIGINT, (void *)note, 0), handle(SIGQUIT, (void *)note, 0), handle(SIGTSTP, (void *)note, 0);
    handle(SIGWINCH, (void *)note, 0);
    put(master, "\x03");
    show_signals("interrupt");
    put(master, "\x1c");
    show_signals("quit");
    put(master, "\x1a");
    show_signals("stop");
    show_read("echo", master, 6);
    show("window", control(master, SET_SIZE, sizes));
    show_signals("signal");
    show("the same", control(slave, SET_SIZE, sizes));
    sizes[0] = 0;
    control(slave, GET_SIZE, sizes);
    show("rows", sizes[0]);
    sizes[1] = 30;
    show("another", control(slave, SET_SIZE, sizes));
    show_signals("signal");
    show("by the master", control(master, RAISE, (void *)SIGINT));
    show_signals("signal");
    show("not any", control(master, RAISE, (void *)SIGKILL));
    put(slave, "before\n");
    show("stopped output", put(master, "\x13"));
    sleep(50);
    number flags = call(FCNTL, slave, 3, 0, 0, 0, 0);
    call(FCNTL, slave, 4, flags | NONBLOCK, 0, 0, 0);
    show("  write", put(slave, "x"));
    show("  events", poll(slave, OUT, 0));
    put(master, "\x11");
    show("  started", poll(slave, OUT, 5000));
    show_read("master", master, 8);
    int status;
    number child = fork();
    if (child == 0) {
        setpgid();
        handle(SIGINT, (void *)0, 0);
        put(slave, "r");
        sleep(60000);
        exit(1);
    }
    call(SETPGID, child, child, 0, 0, 0, 0);
    show_read("ready", master, 1);
    int group = (int)child;
    show("another group", control(slave, SET_GROUP, &group));
    put(master, "\x03");
    wait_for(child, &status);
    show("it is interrupted", status);
    show("nobody else", came);
}

/* Runs a job in the background, and shows how it stops or ends. */
static void job(const char *what, number slave, void (*run)(number)) {
    int status = 0;
    number child = fork();
    if (child == 0) {
        setpgid();
        run(slave);
        exit(0);
    }
    call(SETPGID, child, child, 0, 0, 0, 0);
    call(WAIT4, child, (number)&status, WUNTRACED, 0, 0, 0);
    show(what, status);
    if ((status & 0xff) == 0x7f) {
        call(KILL, child, SIGKILL, 0, 0, 0, 0);
        wait_for(child, &status);
    }
}

static void reads(number slave) { exit((int)-get(slave, (char[8]){0}, 8)); }
static void writes(number slave) { exit(put(slave, "x") == 1 ? 4 : 5); }
static void sets_modes(number slave) {
    struct modes modes;
    control(slave, GET_MODES, &modes);
    exit((int)-control(slave, SET_MODES, &modes));
}
static void sets_group(number slave) {
    int own = pid();
    exit((int)-control(slave, SET_GROUP, &own));
}
static void flushes(number slave) { exit((int)-control(slave, FLUSH, 0)); }
static void drains(number slave) { exit((int)-control(slave, BREAK, (void *)1)); }
static void ignores(number slave) {
    handle(SIGTTIN, (void *)1, 0), handle(SIGTTOU, (void *)1, 0);
    show("ignored, read", get(slave, (char[8]){0}, 8));
    change(slave, 0, STOPS_OUTPUT);
    show("  write", put(slave, "y"));
    sets_group(slave);
}
static void blocks(number slave) {
    size signals = 1ul << (SIGTTIN - 1) | 1ul << (SIGTTOU - 1);
    call(RT_SIGPROCMASK, BLOCK, (number)&signals, 0, 8, 0, 0);
    show("blocked, read", get(slave, (char[8]){0}, 8));
    sets_modes(slave);
}
static void handles(number slave) {
    handle(SIGTTIN, (void *)note, 0);
    show("handled, read", get(slave, (char[8]){0}, 8));
    exit(came);
}
static void orphaned(number slave) {
    int pipe[2];
    char byte = 0;
    call(PIPE2, (number)pipe, 0, 0, 0, 0, 0);
    if (fork() == 0) {
        if (fork() == 0) {
            setpgid();
            sleep(100);
            show("orphaned, read", get(slave, (char[8]){0}, 8));
            struct modes modes;
            control(slave, GET_MODES, &modes);
            show("  modes", control(slave, SET_MODES, &modes));
            int own = pid();
            show("  group", control(slave, SET_GROUP, &own));
            change(slave, 0, 0);
            put(pipe[1], "x");
        }
        exit(0);
    }
    close(pipe[1]);
    get(pipe[0], &byte, 1);
    exit(byte == 'x' ? 0 : 1);
}

static void jobs(number master, const char *path) {
    number slave = open(path, RDWR);
    job("a reader", slave, reads);
    job("a writer", slave, writes);
    show_read("  master", master, 1);
    job("who sets modes", slave, sets_modes);
    job("who sets the group", slave, sets_group);
    job("who flushes", slave, flushes);
    job("who drains", slave, drains);
    job("who handles it", slave, handles);
    job("who blocks it", slave, blocks);
    job("orphans", slave, orphaned);
    change(slave, 0, STOPS_OUTPUT);
    job("a writer where output stops", slave, writes);
    change(slave, STOPS_OUTPUT, 0);
    job("who ignores it", slave, ignores);
    int own = pid();
    handle(SIGTTOU, (void *)1, 0);
    show("in the foreground again", control(slave, SET_GROUP, &own));
    /* One that stops, and goes on in the foreground. */
    int status;
    number child = fork();
    if (child == 0) {
        setpgid();
        show_read("it goes on", slave, 3);
        exit(0);
    }
    call(SETPGID, child, child, 0, 0, 0, 0);
    put(master, "go\n");
    call(WAIT4, child, (number)&status, WUNTRACED, 0, 0, 0);
    show("stopped", status);
    int group = (int)child;
    control(slave, SET_GROUP, &group);
    call(KILL, -child, SIGCONT, 0, 0, 0, 0);
    wait_for(child, &status);
    show("ended", status);
}

/* What happens to a session when its master is closed. */
static void hang_up(void) {
    number master = open_master(), slave;
    int ready[2], status;
    char byte;
    call(PIPE2, (number)ready, 0, 0, 0, 0, 0);
    number leader = fork();
    if (leader == 0) {
        setsid();
        slave = open(path_of(master), RDWR);
        close(master);
        handle(SIGHUP, (void *)note, 0), handle(SIGCONT, (void *)note, 0);
        number child = fork();
        if (child == 0) {
            setpgid();
            handle(SIGTTOU, (void *)1, 0);
            int own = pid();
            control(slave, SET_GROUP, &own);
            put(ready[1], "c");
            show_signals("the foreground, when the leader ends");
            show("  read", get(slave, &byte, 1));
            put(ready[1], "d");
            exit(0);
        }
        show_signals("the leader, when the master closes");
        show("  no terminal", open("/dev/tty", RDWR));
        show("  read", get(slave, &byte, 1));
        exit(3);
    }
    get(ready[0], &byte, 1);
    close(master);
    wait_for(leader, &status);
    show("the leader ends", status >> 8);
    get(ready[0], &byte, 1);
    show("and the foreground", byte);
    /* A leader that reads is ended. */
    master = open_master();
    leader = fork();
    if (leader == 0) {
        setsid();
        slave = open(path_of(master), RDWR);
        close(master);
        put(ready[1], "c");
        get(slave, &byte, 1);
        sleep(5000);
        exit(4);
    }
    get(ready[0], &byte, 1);
    sleep(50);
    close(master);
    wait_for(leader, &status);
    show("who does not handle it", status);
    /* The leader ends while its terminal stays. */
    master = open_master();
    leader = fork();
    if (leader == 0) {
        setsid();
        slave = open(path_of(master), RDWR);
        if (fork() == 0) {
            handle(SIGHUP, (void *)note, 0), handle(SIGCONT, (void *)note, 0);
            put(ready[1], "c");
            show_signals("the foreground of a leader that ends");
            show("  no terminal", open("/dev/tty", RDWR));
            show("  it still works", put(slave, "x"));
            put(ready[1], "d");
            exit(0);
        }
        get(ready[0], &byte, 1);
        exit(0);
    }
    wait_for(leader, &status);
    get(ready[0], &byte, 1);
    show_read("master", master, 1);
    close(master), close(ready[0]), close(ready[1]);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    in_session("a session", session);
    in_session("keys", keys);
    in_session("jobs", jobs);
    hang_up();
    return 0;
}
