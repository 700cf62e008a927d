/* TCP and UDP over the loopback interface. */

#include "sockets.h"

struct name {
    unsigned short family, port;
    unsigned char rest[24];
};

/* Returns an address of this machine; the port's bytes are those in memory. */
static struct name local(number family, unsigned port) {
    struct name name = {(unsigned short)family, (unsigned short)port, {0}};
    if (family == INET)
        name.rest[0] = 127, name.rest[3] = 1;
    else
        name.rest[4 + 15] = 1;
    return name;
}

static number size_of(number family) { return family == INET ? 16 : 28; }

/* Returns the port that a socket or its peer has. */
static unsigned port(number which, number file) {
    struct name name = {0, 0, {0}};
    unsigned count = sizeof name;
    number error = call(which, file, (number)&name, (number)&count, 0, 0, 0);
    return error < 0 ? 0 : name.port;
}

static void show_place(const char *what, number which, number file) {
    struct name name = {99, 0, {0}};
    unsigned count = sizeof name;
    number error = call(which, file, (number)&name, (number)&count, 0, 0, 0);
    show(what, error);
    if (error)
        return;
    show("  its length", count);
    show("  its family", name.family);
    show("  its port", name.port != 0);
    struct name here = local(name.family, 0);
    show("  is this machine", equal(name.rest, here.rest, (size)count - 4));
}

/* Returns a listening socket. */
static number server(number family) {
    struct name name = local(family, 0);
    number file = make(family, STREAM);
    if (bind(file, &name, size_of(family)) || listen(file, 4))
        show("no server", file);
    return file;
}

static number client(number family, unsigned to, number kind) {
    struct name name = local(family, to);
    number file = make(family, kind);
    number error = connect(file, &name, size_of(family));
    return error ? error : file;
}

static void streams(number family) {
    struct name name = local(family, 0);
    number listener = make(family, STREAM), yes = 1;
    show("poll", poll(listener));
    show("read", get(listener, 1));
    show("accept", accept(listener, 0));
    show("short", bind(listener, &name, size_of(family) - 1 - 4 * (family == INET6)));
    show("bad", bind(listener, (void *)8, size_of(family)));
    show("family", bind(listener, &(struct name){UNIX, 1, {0}}, size_of(family)));
    show("bind", bind(listener, &name, size_of(family)));
    show_place("name", GETSOCKNAME, listener);
    show("bind again", bind(listener, &name, size_of(family)));
    name.port = (unsigned short)port(GETSOCKNAME, listener);
    show("refused", client(family, name.port, STREAM));
    show("listen", listen(listener, 4));
    show("poll", poll(listener));
    number other = make(family, STREAM);
    show("in use", bind(other, &name, size_of(family)));
    set_option(other, SOL_SOCKET, SO_REUSEADDR, &yes, 4);
    show("in use by a listener", bind(other, &name, size_of(family)));
    close(other);
    number one = client(family, name.port, STREAM);
    show("connect", one > 0);
    show("again", connect(one, &name, size_of(family)));
    rest(5);
    show("poll", poll(listener));
    number taken = accept(listener, NONBLOCK | CLOEXEC);
    show("accept", taken > 0);
    show("status", call(FCNTL, taken, 3, 0, 0, 0, 0) & 04000);
    show("listening", option(listener, SOL_SOCKET, SO_ACCEPTCONN));
    show_place("name", GETSOCKNAME, taken);
    show_place("peer", GETPEERNAME, taken);
    show("the same port", port(GETPEERNAME, taken) == port(GETSOCKNAME, one));
    show("the listener's port", port(GETPEERNAME, one) == name.port && port(GETSOCKNAME, taken) == name.port);
    show_place("listener's peer", GETPEERNAME, listener);
    show("nothing", receive(taken, 1, 0));
    show("poll", poll(taken));
    show("send", put(one, "hello, world", 12));
    rest(5);
    unsigned count = 0;
    call(IOCTL, taken, FIONREAD, (number)&count, 0, 0, 0);
    show("to read", count);
    show_text("peek", receive(taken, 4, PEEK));
    show_text("all", receive(taken, 12, WAITALL));
    show("no delay", set_option(one, 6, 1, &yes, 4));
    show("no delay", option(one, 6, 1));
    show("keep alive", set_option(one, SOL_SOCKET, SO_KEEPALIVE, &yes, 4));
    show("keep alive", option(one, SOL_SOCKET, SO_KEEPALIVE));
    show("idle", set_option(one, 6, 4, &(int){50}, 4));
    show("idle", option(one, 6, 4));
    show("unknown", option(one, 6, 999));
    show("protocol", option(one, SOL_SOCKET, SO_PROTOCOL));
    show("control messages", call(SENDMSG, one, (number)&(struct message){0}, 0, 0, 0, 0));
    show("shut", shut(one, 1));
    rest(5);
    show("poll", poll(taken));
    show("poll", poll(one));
    show("end", receive(taken, 1, 0));
    show("write", send(one, "x", 1, NOSIGNAL));
    show("back", put(taken, "back", 4));
    rest(5);
    show_text("read", get(one, 10));
    close(taken);
    rest(5);
    show("poll", poll(one));
    show("end", get(one, 10));
    close(one);
    one = client(family, name.port, STREAM), taken = accept(listener, 0);
    put(one, "unread", 6);
    rest(5);
    close(taken);
    rest(5);
    show("reset", poll(one));
    show("error", option(one, SOL_SOCKET, SO_ERROR));
    show("error again", option(one, SOL_SOCKET, SO_ERROR));
    show("read", get(one, 10));
    close(one);
    one = client(family, name.port, STREAM), taken = accept(listener, 0);
    set_option(taken, SOL_SOCKET, SO_LINGER, &(int[2]){1, 0}, 8);
    close(taken);
    rest(5);
    show("reset by a linger", get(one, 10));
    show("once", get(one, 10));
    show("write", send(one, "x", 1, NOSIGNAL));
    close(one);
    one = client(family, name.port, STREAM), taken = accept(listener, 0);
    close(taken);
    rest(5);
    show("write", send(one, "x", 1, NOSIGNAL));
    rest(5);
    show("write", send(one, "x", 1, NOSIGNAL));
    close(one);
    one = client(family, name.port, STREAM);
    close(listener);
    rest(5);
    show("closed with its listener", poll(one));
    show("read", get(one, 10));
    close(one);
    listener = make(family, STREAM);
    set_option(listener, SOL_SOCKET, SO_REUSEADDR, &yes, 4);
    show("bind once more", bind(listener, &name, size_of(family)));
    close(listener);
}

static void attempts(void) {
    number listener = server(INET), one = make(INET, STREAM | NONBLOCK), two = make(INET, STREAM | NONBLOCK);
    struct name name = local(INET, port(GETSOCKNAME, listener)), none = local(INET, 1);
    show("in progress", connect(one, &name, 16));
    rest(5);
    show("poll", poll(one));
    show("error", option(one, SOL_SOCKET, SO_ERROR));
    show("again", connect(one, &name, 16));
    show("and again", connect(one, &name, 16));
    show("refused later", connect(two, &none, 16));
    rest(5);
    show("poll", poll(two));
    show("error", option(two, SOL_SOCKET, SO_ERROR));
    show("error", option(two, SOL_SOCKET, SO_ERROR));
    close(two);
    two = make(INET, STREAM | NONBLOCK);
    connect(two, &none, 16);
    rest(5);
    show("refused", connect(two, &none, 16));
    close(two), close(one);
    show("another family", connect(make(INET, STREAM), &(struct name){INET6, 1, {0}}, 28));
    number taken = accept(listener, 0);
    close(taken);
    /* Two processes take connections of one listener. */
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            taken = accept(listener, 0);
            number count = get(taken, 10);
            put(taken, text, count);
            exit(i);
        }
    number both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = client(INET, name.port, STREAM);
        put(both[i], i ? "second" : "first", i ? 6 : 5);
    }
    for (int i = 0; i < 2; i++)
        show_text("echo", get(both[i], 10)), show("end", get(both[i], 10)), close(both[i]);
    show("both", wait_status() + wait_status());
    /* Much, both ways. */
    static char many[1 << 18];
    if (fork() == 0) {
        taken = accept(listener, 0);
        number count;
        while ((count = call(READ, taken, (number)many, sizeof many, 0, 0, 0)) > 0)
            put(taken, many, count);
        exit((int)count);
    }
    one = client(INET, name.port, STREAM);
    if (fork() == 0) {
        for (int i = 0; i < (int)sizeof many; i++)
            many[i] = (char)(i % 97);
        show("sent", put(one, many, sizeof many));
        shut(one, 1);
        exit(0);
    }
    number sum = 0, total = 0, count;
    static char back[5000];
    while ((count = call(READ, one, (number)back, sizeof back, 0, 0, 0)) > 0)
        for (number i = 0; i < count; i++, total++)
            sum += back[i] == (char)(total % 97);
    wait_status(), wait_status();
    show("came back", total);
    show("rightly", sum);
    close(one);
    number limit[2] = {0, 20000};
    set_option(listener, SOL_SOCKET, SO_RCVTIMEO, limit, 16);
    show("accept in time", accept(listener, 0));
    close(listener);
}

static void datagrams(number family) {
    struct name name = local(family, 0), from = {0, 0, {0}};
    number one = make(family, DGRAM), other = make(family, DGRAM);
    unsigned count = sizeof from;
    show("poll", poll(one));
    show("no peer", put(one, "x", 1));
    show("bind", bind(one, &name, size_of(family)));
    show_place("name", GETSOCKNAME, one);
    name.port = (unsigned short)port(GETSOCKNAME, one);
    show("in use", bind(other, &name, size_of(family)));
    show("send", call(SENDTO, other, (number)"hello", 5, 0, (number)&name, size_of(family)));
    show("send nothing", call(SENDTO, other, (number)"", 0, 0, (number)&name, size_of(family)));
    rest(5);
    show("poll", poll(one));
    int bytes = 0;
    call(IOCTL, one, FIONREAD, (number)&bytes, 0, 0, 0);
    show("next one's length", bytes);
    show_text("cut", call(RECVFROM, one, (number)text, 3, MSG_TRUNC, (number)&from, (number)&count));
    show("sender's length", count);
    show("sender's port", from.port == port(GETSOCKNAME, other));
    show("empty", receive(one, 10, 0));
    show("none", receive(one, 10, DONTWAIT));
    show("connect", connect(other, &name, size_of(family)));
    show_place("peer", GETPEERNAME, other);
    show("write", put(other, "abc", 3));
    show("write nothing", put(other, "", 0));
    rest(5);
    struct vector parts[2] = {{text, 2}, {text + 2, 1}};
    show("readv", call(READV, one, (number)parts, 2, 0, 0, 0));
    show("empty", receive(one, 10, DONTWAIT));
    static char large[70000];
    show("largest", send(other, large, 65507, 0));
    rest(5);
    show("largest", call(READ, one, (number)large, sizeof large, 0, 0, 0));
    show("too large", send(other, large, 65536, 0));
    show("too large", put(other, large, sizeof large));
    show("listen", listen(one, 1));
    show("accept", accept(one, 0));
    close(one);
    show("nobody", send(other, "x", 1, 0));
    rest(5);
    show("poll", poll(other));
    show("refused", send(other, "x", 1, 0));
    rest(5);
    show("refused", receive(other, 10, DONTWAIT));
    show("no more", receive(other, 10, DONTWAIT));
    show("shut", shut(other, 0));
    show("end", receive(other, 10, 0));
    show("no peer", connect(other, &(struct name){UNSPEC, 0, {0}}, 16));
    show("name is left", port(GETSOCKNAME, other) != 0);
    show_place("peer", GETPEERNAME, other);
    show("shut", shut(other, 2));
    close(other);
    one = make(family, DGRAM), other = make(family, DGRAM);
    name.port = 0;
    bind(one, &name, size_of(family));
    name.port = (unsigned short)port(GETSOCKNAME, one);
    if (fork() == 0) {
        rest(20);
        call(SENDTO, other, (number)"late", 4, 0, (number)&name, size_of(family));
        exit(0);
    }
    show_text("wait", receive(one, 10, 0));
    wait_status();
    close(one), close(other);
}

/* A socket of IPv6 that takes connections of IPv4, or not. */
static void both_families(void) {
    struct name any = {INET6, 0, {0}}, peer = {0, 0, {0}};
    number listener = make(INET6, STREAM);
    show("only", option(listener, 41, 26));
    show("bind", bind(listener, &any, 28));
    listen(listener, 1);
    any.port = (unsigned short)port(GETSOCKNAME, listener);
    number one = client(INET, any.port, STREAM);
    show("connect", one > 0);
    unsigned count = sizeof peer;
    number taken = call(ACCEPT, listener, (number)&peer, (number)&count, 0, 0, 0);
    show("accept", taken > 0);
    show("family", peer.family);
    show("mapped", peer.rest[4 + 10] == 255 && peer.rest[4 + 12] == 127);
    close(one), close(taken), close(listener);
    listener = make(INET6, STREAM);
    show("only", set_option(listener, 41, 26, &(int){1}, 4));
    any.port = 0;
    bind(listener, &any, 28), listen(listener, 1);
    show("refused", client(INET, port(GETSOCKNAME, listener), STREAM));
    close(listener);
}

static void interfaces(void) {
    struct {
        char name[16];
        union {
            struct name address;
            short flags;
            int index;
        };
    } request = {"lo", {{0, 0, {0}}}};
    number file = make(INET, DGRAM);
    show("address", call(IOCTL, file, 0x8915, (number)&request, 0, 0, 0));
    show("is this machine", request.address.rest[0] == 127 && request.address.rest[3] == 1);
    show("flags", call(IOCTL, file, 0x8913, (number)&request, 0, 0, 0));
    show("up, loopback", request.flags & 0x9);
    show("index", call(IOCTL, file, 0x8933, (number)&request, 0, 0, 0));
    show("which", request.index);
    request.name[0] = 'x';
    show("none", call(IOCTL, file, 0x8913, (number)&request, 0, 0, 0));
    show("none", call(IOCTL, file, 0x8933, (number)&request, 0, 0, 0));
    show("unknown", call(IOCTL, file, 0x8999, (number)&request, 0, 0, 0));
    close(file);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    print("streams\n"), streams(INET);
    print("streams of IPv6\n"), streams(INET6);
    print("attempts\n"), attempts();
    print("datagrams\n"), datagrams(INET);
    print("datagrams of IPv6\n"), datagrams(INET6);
    print("both\n"), both_families();
    print("interfaces\n"), interfaces();
    return 0;
}
