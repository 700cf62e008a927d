/* Descriptors of processes. */

#include "system.h"

enum { PIDFD_SEND_SIGNAL = 424, PIDFD_OPEN = 434 };
enum { BY_HANDLE = 3, NOHANG = 1, EXITED = 4, KEEP = 0x1000000, NONBLOCK = 04000, POLLIN = 1, F_GETFD = 1, F_GETFL = 3 };

struct poll {
    int file;
    short wanted, came;
};

static number open_process(number id, number flags) { return call(PIDFD_OPEN, id, flags, 0, 0, 0, 0); }

static number send(number handle, int signal, const void *record, number flags) {
    return call(PIDFD_SEND_SIGNAL, handle, signal, (number)record, flags, 0, 0);
}

static number await(number handle, int *record, number options) {
    return call(WAITID, BY_HANDLE, handle, (number)record, options, 0, 0);
}

static number poll(number handle, number milliseconds) {
    struct poll poll = {(int)handle, POLLIN, 0};
    number time[2] = {0, milliseconds * 1000000};
    number count = call(PPOLL, (number)&poll, 1, (number)time, 0, 8, 0);
    return count < 0 ? count : count * 100 + poll.came;
}

static number child(int milliseconds, int code) {
    number id = fork();
    if (id == 0) {
        number time[2] = {0, (number)milliseconds * 1000000};
        call(NANOSLEEP, (number)time, 0, 0, 0, 0, 0);
        exit(code);
    }
    return id;
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    number own = call(GETPID, 0, 0, 0, 0, 0, 0);
    show("flags", open_process(own, 1));
    show("number", open_process(0, 0));
    show("negative number", open_process(-1, 0));
    show("nobody", open_process(12345, 0));
    number handle = open_process(own, 0);
    show("it is closed by another program", call(FCNTL, handle, F_GETFD, 0, 0, 0, 0));
    show("mode", call(FCNTL, handle, F_GETFL, 0, 0, 0, 0) & 04003);
    char text[64] = {0};
    static char path[] = "/proc/self/fd/0";
    path[14] = (char)('0' + handle);
    call(READLINKAT, AT_FDCWD, (number)path, (number)text, 63, 0, 0);
    print("name: "), print(text), print("\n");
    int events = (int)call(EVENTFD2, 0, 0, 0, 0, 0, 0);
    path[14] = (char)('0' + events);
    call(READLINKAT, AT_FDCWD, (number)path, (number)text, 63, 0, 0);
    print("of another kind: "), print(text), print("\n");
    show("read", call(READ, handle, (number)text, 10, 0, 0, 0));
    show("write", call(WRITE, handle, (number)text, 10, 0, 0, 0));
    show("alive", send(handle, 0, 0, 0));
    show("signal", send(handle, 65, 0, 0));
    show("flags", send(handle, 0, 0, 1));
    show("no file", send(77, 0, 0, 0));
    show("no process", send(events, 0, 0, 0));
    number directory = call(OPENAT, AT_FDCWD, (number) "/proc/self", RDONLY | DIRECTORY, 0, 0, 0);
    show("by the directory in /proc", send(directory, 0, 0, 0));
    show("by another directory", send(call(OPENAT, AT_FDCWD, (number) "/proc", RDONLY | DIRECTORY, 0, 0, 0), 0, 0, 0));
    int record[32] = {SIGTERM, 0, -1};
    show("which is no handle to wait for", await(directory, record, EXITED));
    show("other signal", send(handle, SIGUSR1, record, 0));
    show("bad address", send(handle, SIGTERM, (void *)8, 0));
    show("has not ended", poll(handle, 1));
    show("wait for oneself", await(handle, record, EXITED));
    show("wait for no process", await(events, record, EXITED));
    show("wait for no file", await(77, record, EXITED));
    number id = child(30, 7);
    handle = open_process(id, 0);
    show("not yet", await(handle, record, EXITED | NOHANG));
    show("poll", poll(handle, 100));
    show("keep", await(handle, record, EXITED | KEEP));
    show("the child", record[4] == id);
    show("code", record[2] * 1000 + record[6]);
    show("it can still be told something", send(handle, SIGTERM, 0, 0));
    show("take", await(handle, record, EXITED));
    show("again", await(handle, record, EXITED));
    show("nobody is there any more", send(handle, SIGTERM, 0, 0));
    show("it has ended", poll(handle, 1));
    id = child(1000, 7);
    handle = open_process(id, NONBLOCK);
    show("does not wait", await(handle, record, EXITED));
    record[0] = SIGTERM, record[2] = -1;
    show("with a value, to another", send(handle, SIGTERM, record, 0));
    show("poll", poll(handle, 100));
    show("take", await(handle, record, EXITED));
    show("ended by", record[6]);
    return 0;
}
