/* The first process on Linux itself: it runs one program, says how that ended, and powers the machine off. The host
   tool puts the program's path and its arguments into the file /arguments, each with a zero byte behind it. */

#include "../system.h"

enum { MOUNT = 40, REBOOT = 142, SOCKET = 198 };
enum { INET = 2, DATAGRAMS = 2, SET_FLAGS = 0x8914, UP = 1 };
enum { DRAIN = 0x5409, TAKE_TERMINAL = 0x540e };
enum { MAGIC = 0xfee1dead, MAGIC_TOO = 672274793, POWER_OFF = 0x4321fedc };
enum { LONGEST = 1 << 16, MOST = 1024 };

static void power_off(void) {
    /* What was printed would be lost with the machine. */
    call(IOCTL, 1, DRAIN, 1, 0, 0, 0);
    call(REBOOT, MAGIC, MAGIC_TOO, POWER_OFF, 0, 0, 0);
}

static void fail(const char *what, number error) {
    print("linux-peer: cannot ");
    show(what, error);
    power_off();
}

static void mount(const char *kind, const char *where, const char *options) {
    call(MKDIRAT, AT_FDCWD, (number)where, 0755, 0, 0, 0);
    number error = call(MOUNT, (number)kind, (number)where, (number)kind, 0, (number)options, 0);
    if (error < 0)
        fail(where, error);
}

/* Brings the loopback interface up, as it always is on Tench. */
static void raise_loopback(void) {
    struct {
        char name[16];
        short flags, rest[11];
    } request = {"lo", UP, {0}};
    number file = call(SOCKET, INET, DATAGRAMS, 0, 0, 0, 0);
    number error = call(IOCTL, file, SET_FLAGS, (number)&request, 0, 0, 0);
    if (error < 0)
        fail("bring the loopback interface up", error);
    call(CLOSE, file, 0, 0, 0, 0, 0);
}

/* Reads the program's arguments. */
static void read_arguments(char **arguments) {
    static char text[LONGEST];
    number file = call(OPENAT, AT_FDCWD, (number)"/arguments", RDONLY, 0, 0, 0);
    number bytes = call(READ, file, (number)text, LONGEST, 0, 0, 0), count = 0;
    if (bytes <= 0)
        fail("read /arguments", bytes);
    for (number at = 0; at < bytes && count < MOST; at += length(text + at) + 1)
        arguments[count++] = text + at;
    call(CLOSE, file, 0, 0, 0, 0, 0);
    call(UNLINKAT, AT_FDCWD, (number)"/arguments", 0, 0, 0, 0);
}

/* Runs the program in a session of its own. The environment is that which Tench's `linux` gives. */
static void run(char **arguments) {
    static char *variables[] = {
        "HOME=/root", "TERM=linux", "PWD=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 0,
    };
    static char path[4096] = "/";
    char *at = path + (arguments[0][0] != '/');
    memcpy(at, arguments[0], length(arguments[0]) + 1);
    call(SETSID, 0, 0, 0, 0, 0, 0);
    call(IOCTL, 0, TAKE_TERMINAL, 0, 0, 0, 0);
    print("linux-peer: begins\n");
    fail("execute the program", call(EXECVE, (number)path, (number)arguments, (number)variables, 0, 0, 0));
}

int program(number count, char **ignored) {
    (void)count, (void)ignored;
    mount("devtmpfs", "/dev", "");
    mount("proc", "/proc", "");
    mount("sysfs", "/sys", "");
    mount("tmpfs", "/tmp", "mode=1777");
    mount("devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=000");
    raise_loopback();
    call(MKDIRAT, AT_FDCWD, (number)"/etc", 0755, 0, 0, 0);
    call(MKDIRAT, AT_FDCWD, (number)"/root", 0755, 0, 0, 0);
    static char *arguments[MOST + 1];
    read_arguments(arguments);
    number child = call(CLONE, SIGCHLD, 0, 0, 0, 0, 0);
    if (child == 0)
        run(arguments);
    int status = 0;
    number ended;
    do
        ended = call(WAIT4, -1, (number)&status, 0, 0, 0, 0);
    while (ended >= 0 && ended != child);
    if (ended < 0)
        fail("wait for the program", ended);
    show("linux-peer: exited with", status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff);
    power_off();
    return 1;
}
