/* UDP-Lite, header fields of IPv6 messages, capacities of pipes, and the host and domain names. */

#include "sockets.h"

enum { UDP = 17, UDPLITE = 136, IPV6 = 41, SEND_COVERAGE = 10, RECEIVE_COVERAGE = 11 };
enum { UNICAST_HOPS = 16, RECEIVE_HOPS = 51, HOPS = 52, RECEIVE_CLASS = 66, CLASS = 67 };
enum { SET_SIZE = 1031, GET_SIZE = 1032, UNAME = 160, SETHOSTNAME = 161, SETDOMAINNAME = 162, SETRESUID = 147 };

struct name {
    unsigned short family, port;
    unsigned char rest[24];
};

/* Returns a socket that is bound to a port of the loopback interface, and stores its address. */
static number at_port(number family, number protocol, struct name *name) {
    unsigned count = family == INET ? 16 : 28;
    number file = call(SOCKET, family, DGRAM | NONBLOCK, protocol, 0, 0, 0);
    *name = (struct name){(unsigned short)family, 0, {0}};
    if (family == INET)
        name->rest[0] = 127, name->rest[3] = 1;
    else
        name->rest[4 + 15] = 1;
    number error = bind(file, name, count);
    if (error)
        show("bind", error);
    call(GETSOCKNAME, file, (number)name, (number)&count, 0, 0, 0);
    return file;
}

static void lite(number family) {
    struct name first, second, same;
    number one = at_port(family, UDPLITE, &first), two = at_port(family, UDPLITE, &second);
    number size = family == INET ? 16 : 28, value;
    show("protocol", option(one, SOL_SOCKET, SO_PROTOCOL)), show("type", option(one, SOL_SOCKET, SO_TYPE));
    show("connect", connect(one, &second, size));
    show("send", put(one, "lite", 4));
    show_text("receive", get(two, 10));
    /* UDP's ports are other than UDP-Lite's. */
    number other = call(SOCKET, family, DGRAM | NONBLOCK, UDP, 0, 0, 0);
    same = second;
    show("the same port of UDP", bind(other, &same, size));
    show("send", put(one, "again", 5));
    show("of UDP", get(other, 10));
    show_text("receive", get(two, 10));
    show("again", bind(call(SOCKET, family, DGRAM, UDPLITE, 0, 0, 0), &same, size));
    for (number name = SEND_COVERAGE; name <= RECEIVE_COVERAGE + 1; name++) {
        show("coverage", option(one, UDPLITE, name));
        for (number i = 0; i < 4; i++) {
            value = (number[]){1, 20, 70000, 0}[i];
            show("set", set_option(one, UDPLITE, name, &value, 4));
            show("coverage", option(one, UDPLITE, name));
        }
    }
    show("of UDP", option(other, UDPLITE, SEND_COVERAGE));
    show("stream", call(SOCKET, family, STREAM, UDPLITE, 0, 0, 0));
    close(one), close(two), close(other);
}

/* Sends a message with control messages for the hop limit and the traffic class, except where they are -2. */
static number send_with(number file, int hops, int class) {
    struct vector vector = {"way", 3};
    struct control records[2] = {{20, IPV6, HOPS, {hops}}, {20, IPV6, CLASS, {class}}};
    size first = hops == -2, count = (hops != -2) + (class != -2);
    char control[64];
    for (size i = 0; i < count; i++)
        memcpy(control + 24 * i, &records[first + i], 24);
    struct message message = {0, 0, &vector, 1, control, 24 * count, 0};
    return call(SENDMSG, file, (number)&message, 0, 0, 0, 0);
}

/* Receives a message with this much room for control messages, and shows those. */
static void show_way(number file, size room) {
    struct vector vector = {text, 100};
    char control[64] = {0};
    struct message message = {0, 0, &vector, 1, control, room, 0};
    show("receive", call(RECVMSG, file, (number)&message, 0, 0, 0, 0));
    show("  length", (number)message.control_length), show("  flags", message.flags);
    for (size at = 0; at + 16 <= message.control_length;) {
        struct control *record = (struct control *)(control + at);
        show("  size", (number)record->length), show("  level", record->level), show("  type", record->type);
        if (record->length == 20)
            show("  value", record->data[0]);
        at += (record->length + 7) & ~7ul;
    }
}

static void headers(void) {
    struct name here;
    int yes = 1, value;
    number to = at_port(INET6, UDP, &here), from = call(SOCKET, INET6, DGRAM, UDP, 0, 0, 0);
    connect(from, &here, 28);
    send_with(from, -2, -2), show_way(to, 64);
    show("want", set_option(to, IPV6, RECEIVE_HOPS, &yes, 4)), show("wanted", option(to, IPV6, RECEIVE_HOPS));
    send_with(from, -2, -2), show_way(to, 64);
    show("want", set_option(to, IPV6, RECEIVE_CLASS, &yes, 4)), show("wanted", option(to, IPV6, RECEIVE_CLASS));
    send_with(from, -2, -2), show_way(to, 64);
    show("with hops", send_with(from, 2, -2)), show_way(to, 64);
    show("with a class", send_with(from, -2, 8)), show_way(to, 64);
    show("with both", send_with(from, 3, 20)), show_way(to, 64);
    show("usual", send_with(from, -1, -1)), show_way(to, 64);
    show("too many", send_with(from, 256, -2)), show("too few", send_with(from, -3, -2));
    show("a class that is none", send_with(from, -2, 256));
    for (size room = 0; room < 48; room += 5)
        send_with(from, 3, 20), show_way(to, room);
    show("hops", option(from, IPV6, UNICAST_HOPS)), show("class", option(from, IPV6, CLASS));
    value = 9, show("set", set_option(from, IPV6, UNICAST_HOPS, &value, 4));
    value = 32, show("set", set_option(from, IPV6, CLASS, &value, 4));
    show("hops", option(from, IPV6, UNICAST_HOPS)), show("class", option(from, IPV6, CLASS));
    send_with(from, -2, -2), show_way(to, 64);
    value = 256, show("set", set_option(from, IPV6, UNICAST_HOPS, &value, 4));
    show("set", set_option(from, IPV6, CLASS, &value, 4));
    value = -1, show("set", set_option(from, IPV6, UNICAST_HOPS, &value, 4));
    show("set", set_option(from, IPV6, CLASS, &value, 4));
    show("hops", option(from, IPV6, UNICAST_HOPS)), show("class", option(from, IPV6, CLASS));
    close(to), close(from);
}

static void pipes(void) {
    int ends[2];
    call(PIPE2, (number)ends, NONBLOCK, 0, 0, 0, 0);
    show("size", call(FCNTL, ends[0], GET_SIZE, 0, 0, 0, 0));
    for (number i = 0; i < 6; i++) {
        number wanted = (number[]){1, 4097, 30000, 65536, 100000, 1 << 20}[i];
        show("resize", call(FCNTL, ends[i % 2], SET_SIZE, wanted, 0, 0, 0));
        show("size", call(FCNTL, ends[1], GET_SIZE, 0, 0, 0, 0));
    }
    number written = 0, count;
    while ((count = put(ends[1], text, sizeof text)) > 0)
        written += count;
    show("written", written);
    show("smaller", call(FCNTL, ends[1], SET_SIZE, 4096, 0, 0, 0));
    call(SETRESUID, -1, 7, -1, 0, 0, 0);
    show("too large", call(FCNTL, ends[1], SET_SIZE, (1 << 20) + 1, 0, 0, 0));
    call(SETRESUID, -1, 0, -1, 0, 0, 0);
    int file = (int)make(INET, DGRAM);
    show("no pipe", call(FCNTL, file, SET_SIZE, 4096, 0, 0, 0));
    close(file), close(ends[0]), close(ends[1]);
}

static char record[6][65];

static void names(void) {
    show("host", call(SETHOSTNAME, (number)"peer", 4, 0, 0, 0, 0));
    show("domain", call(SETDOMAINNAME, (number)"lab.example", 11, 0, 0, 0, 0));
    call(UNAME, (number)record, 0, 0, 0, 0, 0);
    print(record[1]), print(" "), print(record[5]), print("\n");
    number file = call(OPENAT, AT_FDCWD, (number)"/proc/sys/kernel/hostname", RDONLY, 0, 0, 0);
    show_text("in /proc", get(file, 64));
    show("too long", call(SETHOSTNAME, (number)text, 65, 0, 0, 0, 0));
    show("negative", call(SETHOSTNAME, (number)text, -1, 0, 0, 0, 0));
    show("nowhere", call(SETHOSTNAME, 8, 4, 0, 0, 0, 0));
    call(SETRESUID, -1, 7, -1, 0, 0, 0);
    show("another user", call(SETHOSTNAME, (number)"x", 1, 0, 0, 0, 0));
    show("another user", call(SETDOMAINNAME, (number)"x", 1, 0, 0, 0, 0));
    call(SETRESUID, -1, 0, -1, 0, 0, 0);
    show("empty", call(SETHOSTNAME, (number)text, 0, 0, 0, 0, 0));
    call(UNAME, (number)record, 0, 0, 0, 0, 0);
    show("its length", (number)length(record[1]));
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    lite(INET);
    lite(INET6);
    headers();
    pipes();
    names();
    return 0;
}
