/* Message queues: descriptors, priorities, waits with and without an end, and what is told of messages. */

#include "system.h"

enum { MQ_OPEN = 180, MQ_UNLINK, MQ_TIMEDSEND, MQ_TIMEDRECEIVE, MQ_NOTIFY, MQ_GETSETATTR };
enum { NONBLOCK = 04000, CLOEXEC = 02000000 };
enum { GETFD = 1, GETFL = 3 };
enum { REALTIME = 0, POLLIN = 1, POLLOUT = 4 };
enum { BY_SIGNAL = 0, BY_NOTHING = 1, SET_ONLY = 2 };

struct attributes {
    number flags, messages, bytes, count, rest[4];
};

struct event {
    number value;
    int signal, how;
    char rest[48];
};

static number open_queue(const char *name, number flags, struct attributes *attributes) {
    return call(MQ_OPEN, (number)name, flags, 0640, (number)attributes, 0, 0);
}

static number made(const char *name, number flags, number messages, number bytes) {
    struct attributes attributes = {0, messages, bytes, 0, {0}};
    return open_queue(name, flags | CREAT, &attributes);
}

static number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static number forget(const char *name) { return call(MQ_UNLINK, (number)name, 0, 0, 0, 0, 0); }

static number send(number queue, const char *text, number priority) {
    return call(MQ_TIMEDSEND, queue, (number)text, length(text), priority, 0, 0);
}

static number receive(number queue, const char *what) {
    char bytes[65] = {0};
    unsigned priority = 0;
    number result = call(MQ_TIMEDRECEIVE, queue, (number)bytes, 64, (number)&priority, 0, 0);
    print(what);
    print(" ");
    if (result >= 0) {
        bytes[result] = 0;
        print(bytes);
        print(" ");
        print_number(priority);
        print(" ");
    }
    show("result", result);
    return result;
}

/* Lets a time be so many milliseconds from now. */
static void from_now(number *time, number milliseconds) {
    call(CLOCK_GETTIME, REALTIME, (number)time, 0, 0, 0, 0);
    time[1] += milliseconds * 1000000;
    time[0] += time[1] / 1000000000;
    time[1] %= 1000000000;
}

static void pause(number milliseconds) {
    number time[2] = {0, milliseconds * 1000000};
    call(NANOSLEEP, (number)time, 0, 0, 0, 0, 0);
}

static void show_attributes(number queue) {
    struct attributes now = {0};
    show("attributes", call(MQ_GETSETATTR, queue, 0, (number)&now, 0, 0, 0));
    show("  flags", now.flags);
    show("  messages", now.messages);
    show("  bytes", now.bytes);
    show("  count", now.count);
}

static void names(void) {
    show("none", open_queue("a", RDWR, 0));
    show("empty", open_queue("", RDWR | CREAT, 0));
    show("dot", open_queue(".", RDWR | CREAT, 0));
    show("slash", open_queue("/a", RDWR | CREAT, 0));
    show("nowhere", call(MQ_OPEN, 8, RDWR, 0, 0, 0, 0));
    show("no attributes there", call(MQ_OPEN, (number) "a", RDWR | CREAT, 0600, 8, 0, 0));
    show("no messages", made("a", RDWR, 0, 10));
    show("no bytes", made("a", RDWR, 10, 0));
    show("too many", made("a", RDWR, 65537, 1));
    show("too much", made("a", RDWR, 60000, 60000));
    number queue = made("a", RDWR, 3, 64);
    show("made", queue);
    show("made again", made("a", RDWR | EXCL, 3, 64));
    show("bad access", open_queue("a", 3, 0));
    show("closes on exec", call(FCNTL, queue, GETFD, 0, 0, 0, 0));
    show("flags", call(FCNTL, queue, GETFL, 0, 0, 0, 0));
    int status[32] = {0};
    show("status", call(FSTAT, queue, (number)status, 0, 0, 0, 0));
    show("mode", status[4]);
    show("unlink", forget("a"));
    show("unlink again", forget("a"));
    show("the name is free", open_queue("a", RDWR, 0));
    show("and the queue is there", send(queue, "one", 1));
    receive(queue, "received");
    close(queue);
}

static void messages(void) {
    number queue = made("b", RDWR | NONBLOCK, 3, 64), reader = open_queue("b", RDONLY, 0);
    number writer = open_queue("b", WRONLY, 0);
    show_attributes(queue);
    show("low", send(queue, "low", 0));
    show("high", send(queue, "high", 9));
    show("high too", send(writer, "high too", 9));
    show("full", send(queue, "more", 0));
    show("too long", call(MQ_TIMEDSEND, queue, (number) "", 65, 0, 0, 0));
    show("too urgent", send(queue, "more", 32768));
    show("no message", call(MQ_TIMEDSEND, queue, 8, 3, 0, 0, 0));
    show("to a reader", send(reader, "x", 0));
    receive(writer, "from a writer");
    show("short buffer", call(MQ_TIMEDRECEIVE, queue, (number)&queue, 8, 0, 0, 0));
    show("no queue", send(1, "x", 0));
    show("nothing", send(99, "x", 0));
    receive(queue, "first");
    receive(reader, "second");
    receive(queue, "third");
    receive(queue, "empty");
    struct attributes waits = {0}, wrong = {1, 0, 0, 0, {0}};
    show("wrong flag", call(MQ_GETSETATTR, queue, (number)&wrong, 0, 0, 0, 0));
    show("lets it wait", call(MQ_GETSETATTR, queue, (number)&waits, (number)&wrong, 0, 0, 0));
    show("did not", wrong.flags);
    show_attributes(queue);
    close(queue), close(reader), close(writer), forget("b");
}

static void waits(void) {
    number queue = made("c", RDWR, 1, 64), time[2] = {0, -1}, went[2], came[2];
    char bytes[64];
    show("bad time", call(MQ_TIMEDRECEIVE, queue, (number)bytes, 64, 0, (number)time, 0));
    time[1] = 0;
    show("past", call(MQ_TIMEDRECEIVE, queue, (number)bytes, 64, 0, (number)time, 0));
    from_now(time, 200);
    from_now(went, 0);
    show("for a while", call(MQ_TIMEDRECEIVE, queue, (number)bytes, 64, 0, (number)time, 0));
    from_now(came, 0);
    show("passed", (came[0] - went[0]) * 1000 + (came[1] - went[1]) / 1000000 >= 199);
    send(queue, "one", 0);
    from_now(time, 50);
    show("full", call(MQ_TIMEDSEND, queue, (number)bytes, 1, 0, (number)time, 0));
    number child = fork();
    if (child == 0) {
        show("room", send(queue, "two", 0));
        exit(0);
    }
    pause(50);
    receive(queue, "first");
    wait_for(child, 0);
    receive(queue, "second");
    child = fork();
    if (child == 0) {
        receive(queue, "awaited");
        exit(0);
    }
    pause(50);
    struct event event = {7, SIGUSR1, BY_SIGNAL, {0}};
    number set = 1 << (SIGUSR1 - 1);
    call(RT_SIGPROCMASK, SET_ONLY, (number)&set, 0, 8, 0, 0);
    show("notify", call(MQ_NOTIFY, queue, (number)&event, 0, 0, 0, 0));
    send(queue, "three", 0);
    wait_for(child, 0);
    number pending = 0;
    call(RT_SIGPENDING, (number)&pending, 8, 0, 0, 0, 0);
    show("nobody is told of what is awaited", pending & set);
    struct {
        int file;
        short events, found;
    } poll = {(int)queue, POLLIN | POLLOUT, 0};
    number no_time[2] = {0, 0};
    show("poll", call(PPOLL, (number)&poll, 1, (number)no_time, 0, 0, 0));
    show("events", poll.found);
    show("no notice", call(MQ_NOTIFY, queue, 0, 0, 0, 0, 0));
    send(queue, "four", 0);
    show("poll", call(PPOLL, (number)&poll, 1, (number)no_time, 0, 0, 0));
    show("events", poll.found);
    close(queue), forget("c");
}

static void notices(void) {
    number queue = made("d", RDWR | NONBLOCK, 2, 64);
    struct event event = {42, SIGUSR2, BY_SIGNAL, {0}}, bad = {0, 99, BY_SIGNAL, {0}}, unknown = {0, 1, 9, {0}};
    struct event nothing = {0, 0, BY_NOTHING, {0}};
    number set = 1 << (SIGUSR2 - 1), pending = 0, no_time[2] = {0, 0};
    call(RT_SIGPROCMASK, SET_ONLY, (number)&set, 0, 8, 0, 0);
    show("bad signal", call(MQ_NOTIFY, queue, (number)&bad, 0, 0, 0, 0));
    show("unknown way", call(MQ_NOTIFY, queue, (number)&unknown, 0, 0, 0, 0));
    show("no queue", call(MQ_NOTIFY, 0, (number)&event, 0, 0, 0, 0));
    show("notify", call(MQ_NOTIFY, queue, (number)&event, 0, 0, 0, 0));
    show("again", call(MQ_NOTIFY, queue, (number)&nothing, 0, 0, 0, 0));
    number child = fork();
    if (child == 0) {
        show("another", call(MQ_NOTIFY, queue, (number)&event, 0, 0, 0, 0));
        show("its end", call(MQ_NOTIFY, queue, 0, 0, 0, 0, 0));
        show("sends", send(queue, "x", 0));
        exit(0);
    }
    wait_for(child, 0);
    int info[32] = {0};
    show("signal", call(RT_SIGTIMEDWAIT, (number)&set, (number)info, (number)no_time, 8, 0, 0));
    show("code", info[2]);
    show("of the child", info[4] == child);
    show("value", info[6]);
    show("once only", call(MQ_NOTIFY, queue, (number)&event, 0, 0, 0, 0));
    send(queue, "y", 0);
    call(RT_SIGPENDING, (number)&pending, 8, 0, 0, 0, 0);
    show("it was not empty", pending & set);
    number other = open_queue("d", RDONLY, 0);
    close(other);
    show("closed", call(MQ_NOTIFY, queue, (number)&nothing, 0, 0, 0, 0));
    close(queue), forget("d");
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    names();
    messages();
    waits();
    notices();
    return 0;
}
