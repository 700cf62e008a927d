/* Message queues of System V: types, waits, limits, copies, and their end. */

#include "sysv.h"

enum { MSG_STAT = 11, MSG_INFO, MSG_STAT_ANY };
enum { NOERROR = 010000, EXCEPT = 020000, COPY = 040000 };

struct queue {
    struct permissions permissions;
    number sent, received, changed;
    size bytes, count, most;
    int sender, receiver;
    number unused[2];
};

struct message {
    number type;
    char text[8192];
};

static number made(number key, number flags) { return call(MSGGET, key, flags, 0, 0, 0, 0); }
static number control(number id, number what, void *buffer) { return call(MSGCTL, id, what, (number)buffer, 0, 0, 0); }
static number finish(number id) { return control(id, REMOVE, 0); }

static number send(number id, number type, const char *text, number flags) {
    struct message message = {.type = type};
    memcpy(message.text, text, length(text));
    return call(MSGSND, id, (number)&message, length(text), flags, 0, 0);
}

static number send_bytes(number id, number count, number flags) {
    static struct message message = {.type = 1};
    return call(MSGSND, id, (number)&message, count, flags, 0, 0);
}

static number receive(const char *what, number id, number most, number type, number flags) {
    static struct message message;
    memset(&message, 'x', 32);
    number result = call(MSGRCV, id, (number)&message, most, type, flags, 0);
    print(what);
    if (result >= 0) {
        message.text[result < 20 ? result : 20] = 0;
        print(" ");
        print(message.text);
        print(" of ");
        print_number(message.type);
    }
    show("", result);
    return result;
}

static void show_queue(number id) {
    struct queue queue;
    number result = control(id, STAT, &queue);
    show("status", result);
    if (result < 0)
        return;
    show_permissions(&queue.permissions);
    show_time("  sent", queue.sent);
    show_time("  received", queue.received);
    show_time("  changed", queue.changed);
    show("  bytes", queue.bytes);
    show("  count", queue.count);
    show("  most", queue.most);
    show("  sender", queue.sender == 0 ? 0 : queue.sender == own() ? 1 : 2);
    show("  receiver", queue.receiver == 0 ? 0 : queue.receiver == own() ? 1 : 2);
}

static void keys(void) {
    number id = made(7, CREATE | 0640);
    show("made", id);
    show("found", made(7, 0) == id);
    show("exclusive", made(7, CREATE | EXCLUSIVE));
    show("no key", made(8, 0));
    show_queue(id);
    send(id, 3, "abc", 0);
    send(id, 3, "de", 0);
    show_file("/proc/sysvipc/msg");
    show_file("/proc/sys/kernel/msgmax");
    show_file("/proc/sys/kernel/msgmnb");
    show_file("/proc/sys/kernel/msgmni");
    show("removed", finish(id));
    show("removed again", finish(id));
    show("to the removed", send(id, 1, "x", 0));
    receive("from the removed", id, 8, 0, NOWAIT);
    show_file("/proc/sysvipc/msg");
}

static void commands(void) {
    number id = made(0, 0600);
    struct queue queue;
    int limits[8];
    show("unknown command", control(id, 99, &queue));
    show("negative command", control(id, -1, &queue));
    show("negative", control(-1, STAT, &queue));
    show("unknown", control(5000, STAT, &queue));
    show("nowhere", control(id, STAT, (void *)8));
    show("by index", control(id % 32768, MSG_STAT, &queue) == id);
    show("any by index", control(id % 32768, MSG_STAT_ANY, &queue) == id);
    show("bad index", control(5000, MSG_STAT, &queue));
    show("limits", control(0, INFO, limits) >= 0);
    for (int i = 0; i < 8; i++)
        show("  limit", i == 7 ? limits[i] & 0xffff : limits[i]);
    send(id, 1, "hello", 0);
    send(id, 1, "you", 0);
    show("use", control(0, MSG_INFO, limits) >= 0);
    show("  queues", limits[0]);
    show("  messages", limits[1]);
    show("  bytes", limits[6]);
    show("limits nowhere", control(0, INFO, (void *)8));
    control(id, STAT, &queue);
    queue.permissions.mode = 07421, queue.permissions.user = 12, queue.permissions.group = 13;
    queue.most = 4, queue.count = 99;
    show("set", control(id, SET, &queue));
    show("set nowhere", control(id, SET, (void *)8));
    show_queue(id);
    show("full", send(id, 1, "", NOWAIT));
    queue.most = 9;
    control(id, SET, &queue);
    show("one more", send(id, 1, "x", NOWAIT));
    show("no more", send(id, 1, "x", NOWAIT));
    show("an empty one", send(id, 1, "", NOWAIT));
    queue.most = 4;
    control(id, SET, &queue);
    show("too many", send(id, 1, "", NOWAIT));
    queue.most = 1 << 20;
    show("much", control(id, SET, &queue));
    for (int i = 0; i < 4; i++)
        show("long", send_bytes(id, 8192, NOWAIT));
    queue.permissions.user = -1;
    show("to nobody", control(id, SET, &queue));
    finish(id);
}

static void types(void) {
    number id = made(0, 0600);
    show("no type", send(id, 0, "x", 0));
    show("negative type", send(id, -1, "x", 0));
    show("too long", send_bytes(id, 8193, 0));
    show("negative length", send_bytes(id, -1, 0));
    show("negative", send(-1, 1, "x", 0));
    show("unknown", send(5000, 1, "x", 0));
    show("no type in nothing", send(5000, 0, "x", 0));
    show("nowhere", call(MSGSND, id, 8, 3, 0, 0, 0));
    struct message *at = (struct message *)call(MMAP, 0, 8192, 3, PRIVATE | ANONYMOUS, -1, 0);
    call(MUNMAP, (number)at + 4096, 4096, 0, 0, 0, 0);
    at = (struct message *)((number)at + 4088);
    at->type = 1;
    show("text nowhere", call(MSGSND, id, (number)at, 3, 0, 0, 0));
    show("no text", call(MSGSND, id, (number)at, 0, 0, 0, 0));
    receive("empty", id, 0, 0, 0);
    receive("none", id, 8, 0, NOWAIT);
    receive("negative length", id, -1, 0, NOWAIT);
    receive("unknown", 5000, 8, 0, NOWAIT);
    receive("negative", -1, 8, 0, NOWAIT);
    number list[] = {5, 3, 9, 3, 5, 1, 7};
    const char *texts[] = {"five", "three", "nine", "three again", "five again", "one", "seven"};
    for (int i = 0; i < 7; i++)
        send(id, list[i], texts[i], 0);
    receive("copy of the first", id, 20, 0, COPY | NOWAIT);
    receive("copy of the fourth", id, 20, 3, COPY | NOWAIT);
    receive("copy of none", id, 20, 7, COPY | NOWAIT);
    receive("copy of a negative one", id, 20, -1, COPY | NOWAIT);
    receive("short copy", id, 3, 0, COPY | NOWAIT | NOERROR);
    receive("copy that waits", id, 20, 0, COPY);
    receive("copy but of", id, 20, 0, COPY | NOWAIT | EXCEPT);
    receive("short", id, 3, 0, NOWAIT);
    receive("cut", id, 3, 0, NOWAIT | NOERROR);
    receive("of 9", id, 20, 9, 0);
    receive("of 4", id, 20, 4, NOWAIT);
    receive("not of 3", id, 20, 3, EXCEPT);
    receive("any but zero", id, 20, 0, EXCEPT);
    receive("up to 2", id, 20, -2, 0);
    receive("up to 2 again", id, 20, -2, NOWAIT);
    send(id, 4, "four", 0);
    send(id, 3, "three at last", 0);
    receive("up to 5", id, 20, -5, 0);
    receive("up to 5 but", id, 20, -5, EXCEPT);
    receive("the lowest", id, 20, (number)(1ul << 63), 0);
    show("nowhere", call(MSGRCV, id, 8, 20, 0, NOWAIT, 0));
    receive("it is lost", id, 20, 0, NOWAIT);
    send(id, 1, "text", 0);
    show("text nowhere", call(MSGRCV, id, (number)at, 20, 0, NOWAIT, 0));
    show("its type", at->type);
    show_queue(id);
    finish(id);
}

static number receiver(const char *what, number id, number most, number type, number flags) {
    number child = fork();
    if (child == 0) {
        receive(what, id, most, type, flags);
        exit(0);
    }
    pause(30);
    return child;
}

static number sender(const char *what, number id, number type, const char *text) {
    number child = fork();
    if (child == 0) {
        show(what, send(id, type, text, 0));
        exit(0);
    }
    pause(30);
    return child;
}

static void waits(void) {
    number id = made(0, 0600);
    struct queue queue;
    number one = receiver("first, of 2", id, 20, 2, 0), two = receiver("second, any", id, 20, 0, 0);
    number three = receiver("third, short", id, 2, 3, 0), four = receiver("fourth, cut", id, 2, 3, NOERROR);
    show("sent", send(id, 5, "five", 0));
    wait_for(two, 0);
    control(id, STAT, &queue);
    show("received by the second", queue.receiver == two);
    show("sent", send(id, 3, "three", 0));
    wait_for(three, 0), wait_for(four, 0);
    show("sent", send(id, 2, "two", 0));
    wait_for(one, 0);
    show_queue(id);
    control(id, STAT, &queue);
    queue.most = 5;
    control(id, SET, &queue);
    show("sent", send(id, 1, "abcd", 0));
    one = sender("long one sent", id, 1, "long"), two = sender("short one sent", id, 1, "xy");
    three = sender("shortest one sent", id, 1, "z");
    wait_for(three, 0);
    receive("received", id, 20, 0, 0);
    wait_for(one, 0);
    receive("received", id, 20, 0, 0);
    receive("received", id, 20, 0, 0);
    wait_for(two, 0);
    receive("received", id, 20, 0, 0);
    send(id, 1, "abcde", 0);
    one = sender("sent into more room", id, 1, "fg");
    queue.most = 100;
    control(id, SET, &queue);
    wait_for(one, 0);
    show_queue(id);
    two = receiver("removed", id, 20, 8, 0);
    queue.most = 1;
    control(id, SET, &queue);
    one = sender("removed, too", id, 1, "fg");
    finish(id);
    wait_for(one, 0), wait_for(two, 0);
}

static void interruptions(void) {
    number id = made(0, 0600);
    number child = fork();
    if (child == 0) {
        handle_signal(SIGUSR1);
        receive("interrupted", id, 20, 2, 0);
        show("filled", send_bytes(id, 8192, 0) | send_bytes(id, 8192, 0));
        show("interrupted", send_bytes(id, 1, 0));
        show("handled", handled);
        exit(0);
    }
    for (int i = 0; i < 2; i++) {
        pause(50);
        call(KILL, child, SIGUSR1, 0, 0, 0, 0);
    }
    wait_for(child, 0);
    child = receiver("killed", id, 20, 2, 0);
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    wait_for(child, 0);
    receive("room", id, 8192, 0, 0);
    show("sent", send(id, 2, "two", 0));
    receive("still there", id, 20, 2, NOWAIT);
    show_queue(id);
    finish(id);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    keys();
    commands();
    types();
    waits();
    interruptions();
    return 0;
}
