/* Sockets within a machine: pairs, names, messages with open files, and waits. */

#include "sockets.h"

struct name {
    unsigned short family;
    char path[108];
};

static struct name named(const char *path) {
    struct name name = {UNIX, {0}};
    memcpy(name.path, path, length(path) + 1);
    return name;
}

/* The length of a name of which so many bytes count. */
static number size_of(const struct name *name) { return 2 + (name->path[0] ? (number)length(name->path) + 1 : 4); }

static void show_name(const char *what, number which, number file) {
    struct name name = {99, {0}};
    unsigned count = sizeof name;
    number error = call(which, file, (number)&name, (number)&count, 0, 0, 0);
    show(what, error);
    if (error == 0) {
        show("  its length", count);
        show("  its family", count >= 2 ? name.family : -1);
        if (count > 2 && name.path[0])
            print(name.path), print("\n");
    }
}

static void creation(void) {
    int ends[2];
    char status[128];
    show("no family", make(77, STREAM));
    show("no type", make(UNIX, 77));
    show("no protocol", call(SOCKET, UNIX, STREAM, 5, 0, 0, 0));
    show("another's protocol", call(SOCKET, INET, STREAM, 17, 0, 0, 0));
    show("flag", make(UNIX, STREAM | 0x100));
    show("pair of another family", call(SOCKETPAIR, INET, STREAM, 0, (number)ends, 0, 0));
    show("pair nowhere", call(SOCKETPAIR, UNIX, STREAM, 0, 8, 0, 0));
    show("pair", pair(STREAM | CLOEXEC | NONBLOCK, ends));
    show("status", call(FCNTL, ends[0], 3, 0, 0, 0, 0) & 07777);
    show("closes", call(FCNTL, ends[1], 1, 0, 0, 0, 0));
    call(FSTAT, ends[0], (number)status, 0, 0, 0, 0);
    show("mode", *(int *)(status + 16));
    show("seek", call(LSEEK, ends[0], 0, 0, 0, 0, 0));
    show("at an offset", call(PREAD64, ends[0], (number)text, 1, 0, 0, 0));
    show("at an offset", call(PWRITE64, ends[0], (number)text, 1, 0, 0, 0));
    show("truncate", call(FTRUNCATE, ends[0], 0, 0, 0, 0, 0));
    show("nothing there", get(ends[0], 1));
    show("poll", poll(ends[0]));
    int yes = 1, no = 0;
    show("wait", call(IOCTL, ends[0], FIONBIO, (number)&no, 0, 0, 0));
    show("status", call(FCNTL, ends[0], 3, 0, 0, 0, 0) & 07777);
    show("do not", call(IOCTL, ends[0], FIONBIO, (number)&yes, 0, 0, 0));
    show("listens", listen(ends[0], 1));
    show("connects", connect(ends[0], &(struct name){UNIX, "/tmp/none"}, 12));
    show_name("name", GETSOCKNAME, ends[0]);
    show_name("peer", GETPEERNAME, ends[0]);
    show("type", option(ends[0], SOL_SOCKET, SO_TYPE));
    show("domain", option(ends[0], SOL_SOCKET, SO_DOMAIN));
    show("protocol", option(ends[0], SOL_SOCKET, SO_PROTOCOL));
    show("listening", option(ends[0], SOL_SOCKET, SO_ACCEPTCONN));
    show("error", option(ends[0], SOL_SOCKET, SO_ERROR));
    show("option", option(ends[0], SOL_SOCKET, 999));
    show("level", option(ends[0], 6, 1));
    show("option", set_option(ends[0], SOL_SOCKET, 999, &yes, 4));
    show("short", set_option(ends[0], SOL_SOCKET, SO_REUSEADDR, &yes, 3));
    show("nowhere", set_option(ends[0], SOL_SOCKET, SO_REUSEADDR, (void *)8, 4));
    show("reuse", set_option(ends[0], SOL_SOCKET, SO_REUSEADDR, &yes, 4));
    show("reuse", option(ends[0], SOL_SOCKET, SO_REUSEADDR));
    close(ends[0]);
    close(ends[1]);
}

/* Each call with a file that is no socket, and with none. */
static void no_sockets(void) {
    static const short calls[] = {BIND, LISTEN, ACCEPT, CONNECT, GETSOCKNAME, GETPEERNAME, SENDTO, RECVFROM, SETSOCKOPT, GETSOCKOPT,
                                  SHUTDOWN, SENDMSG, RECVMSG, ACCEPT4, RECVMMSG, SENDMMSG};
    number file = call(OPENAT, AT_FDCWD, (number)"/dev/null", RDWR, 0, 0, 0);
    for (size i = 0; i < sizeof calls / sizeof *calls; i++) {
        show("no socket", call(calls[i], file, (number)text, 0, 0, 0, 0));
        show("no descriptor", call(calls[i], 99, (number)text, 0, 0, 0, 0));
    }
    close(file);
}

static void bytes(void) {
    int ends[2];
    unsigned count = 0;
    pair(STREAM, ends);
    show("write", put(ends[0], "hello, world", 12));
    call(IOCTL, ends[1], FIONREAD, (number)&count, 0, 0, 0);
    show("to read", count);
    show_text("peek", receive(ends[1], 5, PEEK));
    show_text("read", get(ends[1], 5));
    struct vector two[2] = {{text, 3}, {text + 10, 20}};
    show("readv", call(READV, ends[1], (number)two, 2, 0, 0, 0));
    show_text("first", 3);
    show("nothing", receive(ends[1], 1, DONTWAIT));
    show("nothing of nothing", get(ends[1], 0));
    show("writev", call(WRITEV, ends[1], (number)&(struct vector[2]){{"ab", 2}, {"cd", 2}}, 2, 0, 0, 0));
    show_text("read", get(ends[0], 100));
    show("bad", put(ends[0], (void *)8, 4));
    put(ends[0], "x", 1);
    show("bad", call(READ, ends[1], 8, 4, 0, 0, 0));
    show_text("is it there", receive(ends[1], 4, DONTWAIT));
    if (fork() == 0) {
        rest(20), put(ends[0], "one", 3);
        rest(20), put(ends[0], "two", 3);
        exit(0);
    }
    show_text("all", receive(ends[1], 6, WAITALL));
    wait_status();
    number file = call(OPENAT, AT_FDCWD, (number)"/tmp/file", RDWR | CREAT, 0600, 0, 0);
    put(file, "contents", 8);
    size offset = 3;
    show("sendfile", call(SENDFILE, ends[0], file, (number)&offset, 100, 0, 0));
    show("offset", (number)offset);
    show_text("read", get(ends[1], 100));
    close(file);
    call(UNLINKAT, AT_FDCWD, (number)"/tmp/file", 0, 0, 0, 0);
    show("no direction", shut(ends[0], 3));
    put(ends[0], "last", 4);
    show("shut", shut(ends[0], 1));
    show("poll", poll(ends[0]));
    show("poll", poll(ends[1]));
    show_text("read", get(ends[1], 100));
    show("end", get(ends[1], 100));
    show("write", send(ends[0], "x", 1, NOSIGNAL));
    show("the other way", put(ends[1], "back", 4));
    show_text("read", get(ends[0], 100));
    put(ends[1], "lost", 4);
    close(ends[0]);
    show("poll", poll(ends[1]));
    show("reset", get(ends[1], 100));
    show("end", get(ends[1], 100));
    show("broken", send(ends[1], "x", 1, NOSIGNAL));
    signals = 0;
    handle(SIGPIPE, count_signal, 0);
    show("broken", put(ends[1], "x", 1));
    show("signals", signals);
    handle(SIGPIPE, 0, 0);
    close(ends[1]);
}

static void messages(number kind) {
    int ends[2];
    pair(kind, ends);
    show("send", put(ends[0], "first", 5));
    show("send", call(WRITEV, ends[0], (number)&(struct vector[2]){{"sec", 3}, {"ond", 3}}, 2, 0, 0, 0));
    show("nothing", put(ends[0], "", 0));
    show("send", send(ends[0], "third", 5, 0));
    show_text("peek", receive(ends[1], 3, PEEK));
    show_text("cut", receive(ends[1], 3, MSG_TRUNC));
    struct vector two[2] = {{text, 3}, {text + 3, 2}};
    show("readv", call(READV, ends[1], (number)two, 2, 0, 0, 0));
    show_text("what", 5);
    show_text("empty", receive(ends[1], 10, DONTWAIT));
    show_text("third", receive(ends[1], 10, DONTWAIT));
    show("nothing", receive(ends[1], 10, DONTWAIT));
    struct vector parts[2] = {{text, 2}, {text + 2, 2}};
    put(ends[0], "ab", 2), put(ends[0], "cd", 2);
    show("one message in two places", call(READV, ends[1], (number)parts, 2, 0, 0, 0));
    get(ends[1], 2);
    static char large[100000];
    memset(large, 'l', sizeof large);
    show("large", put(ends[0], large, sizeof large));
    show("large", call(READ, ends[1], (number)large, sizeof large, 0, 0, 0));
    show("too large", send(ends[0], text, 1 << 20, 0));
    show("bad", put(ends[0], (void *)8, 4));
    show("shut", shut(ends[0], 2));
    show("send", send(ends[0], "x", 1, NOSIGNAL));
    show("receive", receive(ends[0], 10, DONTWAIT));
    show("receive", receive(ends[1], 10, DONTWAIT));
    show("poll", poll(ends[1]));
    close(ends[0]);
    show("poll", poll(ends[1]));
    show("send", send(ends[1], "x", 1, NOSIGNAL));
    show("receive", receive(ends[1], 10, DONTWAIT));
    close(ends[1]);
}

static void names(number kind) {
    struct name path = named("/tmp/socket"), hidden = {UNIX, {0, 'a', 'b', 'c'}};
    char status[128];
    number one = make(UNIX, kind), other = make(UNIX, kind);
    show("connect to none", connect(other, &path, size_of(&path)));
    show("bind", bind(one, &path, size_of(&path)));
    show("bind again", bind(one, &hidden, size_of(&hidden)));
    show("in use", bind(other, &path, size_of(&path)));
    show("short", bind(other, &path, 1));
    show("long", bind(other, &path, sizeof path + 10));
    show("negative", bind(other, &path, -1));
    show("bad", bind(other, (void *)8, 16));
    show("family", bind(other, &(struct name){INET, {0}}, 16));
    show("no directory", bind(other, &(struct name){UNIX, "/none/x"}, 10));
    call(NEWFSTATAT, AT_FDCWD, (number)path.path, (number)status, 0, 0, 0);
    show("mode", *(int *)(status + 16));
    show("open", call(OPENAT, AT_FDCWD, (number)path.path, RDWR, 0, 0, 0));
    show_name("name", GETSOCKNAME, one);
    show_name("peer", GETPEERNAME, one);
    show_name("no name", GETSOCKNAME, other);
    show("connect", connect(other, &path, size_of(&path)));
    show("listen", listen(one, 2));
    show("accept", accept(other, 0));
    show("flags", accept(one, 1));
    show("poll", poll(one));
    show("connect", connect(other, &path, size_of(&path)));
    show("poll", poll(one));
    show("connect again", connect(other, &path, size_of(&path)));
    show("to no socket", connect(other, &(struct name){UNIX, "/dev/null"}, 12));
    if (kind != DGRAM) {
        number taken = accept(one, CLOEXEC);
        show("accept", taken > 0);
        show("closes", call(FCNTL, taken, 1, 0, 0, 0, 0));
        show_name("name", GETSOCKNAME, taken);
        show_name("peer", GETPEERNAME, taken);
        show_name("peer", GETPEERNAME, other);
        show("send", send(taken, "hi", 2, 0));
        close(taken);
        show_text("receive", get(other, 10));
        show("end", get(other, 10));
        show("full", (close(other), other = make(UNIX, kind | NONBLOCK), connect(other, &path, size_of(&path))));
        show("listening", option(one, SOL_SOCKET, SO_ACCEPTCONN));
        show("write", put(one, "x", 1));
        show("read", get(one, 1));
    } else {
        show("send", send(other, "hi", 2, 0));
        struct name from = {99, {0}};
        unsigned count = sizeof from;
        show_text("receive", call(RECVFROM, one, (number)text, 10, 0, (number)&from, (number)&count));
        show("from nobody", count);
        show("automatic", bind(other, &path, 2));
        show("send", call(SENDTO, other, (number)"to", 2, 0, (number)&path, size_of(&path)));
        count = sizeof from;
        show_text("receive", call(RECVFROM, one, (number)text, 10, 0, (number)&from, (number)&count));
        show("from", count);
        show("no peer", connect(other, &(struct name){UNSPEC, {0}}, 2));
        show("send", send(other, "hi", 2, 0));
    }
    close(other);
    other = make(UNIX, kind);
    show("unlink", call(UNLINKAT, AT_FDCWD, (number)path.path, 0, 0, 0, 0));
    show("gone", connect(other, &path, size_of(&path)));
    show("bind the path", bind(other, &path, size_of(&path)));
    show_name("name of the first", GETSOCKNAME, one);
    close(other);
    other = make(UNIX, kind);
    show("refused", connect(other, &path, size_of(&path)));
    call(UNLINKAT, AT_FDCWD, (number)path.path, 0, 0, 0, 0);
    close(one);
    one = make(UNIX, kind);
    show("hidden", bind(one, &hidden, size_of(&hidden)));
    show_name("name", GETSOCKNAME, one);
    show("in use", bind(other, &hidden, size_of(&hidden)));
    listen(one, 1);
    show("connect", connect(other, &hidden, size_of(&hidden)));
    show("another length", connect(make(UNIX, kind), &hidden, size_of(&hidden) + 1));
    close(one);
    show("poll", poll(other));
    close(other);
    one = make(UNIX, kind);
    show("free again", bind(one, &hidden, size_of(&hidden)));
    close(one);
}

static number send_control(number file, struct control *control, number size, number flags) {
    struct vector vector = {"m", 1};
    struct message message = {0, 0, &vector, 1, control, (unsigned long)size, 0};
    return call(SENDMSG, file, (number)&message, flags, 0, 0, 0);
}

/* Receives a message with so much room for control messages. Returns the first descriptor in it. */
static number take_control(const char *what, number file, number room, number flags) {
    static struct control control[4];
    memset(control, 0, sizeof control);
    struct vector vector = {text, sizeof text};
    struct message message = {0, 0, &vector, 1, control, (unsigned long)room, 77};
    show(what, call(RECVMSG, file, (number)&message, flags, 0, 0, 0));
    show("  flags", message.flags);
    show("  control", (number)message.control_length);
    if (message.control_length >= 16) {
        show("  length", (number)control->length);
        show("  level", control->level);
        show("  type", control->type);
        if (control->type == SCM_CREDENTIALS)
            show("  ids", control->data[1] | control->data[2]);
    }
    return message.control_length > 16 && control->type == SCM_RIGHTS ? control->data[0] : -1;
}

static void rights(number kind) {
    int ends[2], pipe[2];
    pair(kind, ends);
    call(PIPE2, (number)pipe, 0, 0, 0, 0, 0);
    struct control one = {20, SOL_SOCKET, SCM_RIGHTS, {pipe[1]}};
    struct control three = {28, SOL_SOCKET, SCM_RIGHTS, {pipe[0], pipe[1], pipe[0]}};
    if (fork() == 0) {
        close(pipe[0]), close(pipe[1]);
        number file = take_control("child", ends[1], 24, 0);
        show("child writes", put(file, "through", 7));
        exit(0);
    }
    show("send", send_control(ends[0], &one, 20, 0));
    wait_status();
    close(pipe[1]);
    show_text("from the child", get(pipe[0], 10));
    show("end", get(pipe[0], 10));
    call(PIPE2, (number)pipe, 0, 0, 0, 0, 0);
    three.data[0] = three.data[2] = pipe[0], three.data[1] = one.data[0] = pipe[1];
    show("send three", send_control(ends[0], &three, 32, 0));
    close(take_control("room for two", ends[1], 24, CMSG_CLOEXEC));
    send_control(ends[0], &three, 32, 0);
    take_control("room for none", ends[1], 16, 0);
    send_control(ends[0], &three, 32, 0);
    take_control("too little for a header", ends[1], 15, 0);
    send_control(ends[0], &one, 20, 0);
    take_control("no room", ends[1], 0, 0);
    send_control(ends[0], &one, 20, 0);
    show("read", get(ends[1], 10));
    send_control(ends[0], &one, 20, 0);
    close(take_control("peek", ends[1], 24, PEEK));
    number file = take_control("then take", ends[1], 24, 0);
    show("same pipe", put(file, "p", 1));
    close(file);
    one.data[0] = 99;
    show("no descriptor", send_control(ends[0], &one, 20, 0));
    one.length = 15;
    show("short", send_control(ends[0], &one, 20, 0));
    one.length = 40;
    show("long", send_control(ends[0], &one, 20, 0));
    one = (struct control){20, SOL_SOCKET, 77, {pipe[0]}};
    show("type", send_control(ends[0], &one, 20, 0));
    one = (struct control){20, 77, SCM_RIGHTS, {pipe[0]}};
    show("level", send_control(ends[0], &one, 20, 0));
    show_text("what came", receive(ends[1], 10, DONTWAIT));
    show("nowhere", send_control(ends[0], (void *)8, 20, 0));
    one = (struct control){20, SOL_SOCKET, SCM_RIGHTS, {pipe[1]}};
    get(pipe[0], 1);
    show("on the way", send_control(ends[0], &one, 20, 0));
    close(pipe[1]);
    show("open still", poll(pipe[0]));
    close(ends[1]);
    show("closed with it", poll(pipe[0]));
    close(ends[0]);
    pair(kind, ends);
    one.data[0] = ends[0];
    show("itself", send_control(ends[0], &one, 20, 0));
    one.data[0] = ends[1];
    show("the other", send_control(ends[0], &one, 20, 0));
    close(ends[0]), close(ends[1]), close(pipe[0]);
}

static void credentials(void) {
    int ends[2], yes = 1;
    pair(DGRAM, ends);
    struct control own = {28, SOL_SOCKET, SCM_CREDENTIALS, {(int)call(GETPID, 0, 0, 0, 0, 0, 0), 0, 0}};
    show("pass", set_option(ends[1], SOL_SOCKET, SO_PASSCRED, &yes, 4));
    show("send", send(ends[0], "m", 1, 0));
    take_control("told", ends[1], 32, 0);
    show("send", send_control(ends[0], &own, 32, 0));
    take_control("told", ends[1], 32, 0);
    send(ends[0], "m", 1, 0);
    take_control("little room", ends[1], 20, 0);
    own.data[0] = 9999;
    show("nobody", send_control(ends[0], &own, 32, 0));
    own.length = 24;
    show("short", send_control(ends[0], &own, 32, 0));
    close(ends[0]), close(ends[1]);
    pair(STREAM, ends);
    int peer[3] = {0, 7, 7}, count = sizeof peer;
    show("peer", call(GETSOCKOPT, ends[0], SOL_SOCKET, SO_PEERCRED, (number)peer, (number)&count, 0));
    show("process", peer[0] == call(GETPID, 0, 0, 0, 0, 0, 0));
    show("ids", peer[1] | peer[2]);
    close(ends[0]), close(ends[1]);
}

static void several(void) {
    int ends[2];
    struct {
        struct message message;
        unsigned done;
    } all[4];
    struct vector parts[4] = {{"1", 1}, {"22", 2}, {"333", 3}, {"4444", 4}};
    pair(DGRAM, ends);
    memset(all, 0, sizeof all);
    for (int i = 0; i < 4; i++)
        all[i].message.vectors = parts + i, all[i].message.count = 1;
    show("sendmmsg", call(SENDMMSG, ends[0], (number)all, 3, 0, 0, 0));
    show("lengths", all[0].done * 100 + all[1].done * 10 + all[2].done);
    static char places[4][8];
    for (int i = 0; i < 4; i++)
        parts[i] = (struct vector){places[i], 8};
    show("recvmmsg", call(RECVMMSG, ends[1], (number)all, 4, DONTWAIT, 0, 0));
    show("lengths", all[0].done * 100 + all[1].done * 10 + all[2].done);
    show("third", equal(places[2], "333", 3));
    show("none", call(RECVMMSG, ends[1], (number)all, 4, DONTWAIT, 0, 0));
    show("bad", call(RECVMMSG, ends[1], 8, 4, DONTWAIT, 0, 0));
    put(ends[0], "1", 1);
    show("for one", call(RECVMMSG, ends[1], (number)all, 4, 0x10000, 0, 0));
    if (fork() == 0) {
        for (int i = 0; i < 4; i++)
            rest(10), put(ends[0], "xyz", i);
        exit(0);
    }
    show("until all are there", call(RECVMMSG, ends[1], (number)all, 4, 0, 0, 0));
    show("lengths", all[1].done * 100 + all[2].done * 10 + all[3].done);
    wait_status();
    all[0].message.count = 1025;
    show("vectors", call(SENDMSG, ends[0], (number)all, 0, 0, 0, 0));
    show("vectors", call(RECVMSG, ends[0], (number)all, DONTWAIT, 0, 0, 0));
    show("bad", call(SENDMSG, ends[0], 8, 0, 0, 0, 0));
    close(ends[0]), close(ends[1]);
}

static void waits(void) {
    int ends[2];
    number limit[2] = {0, 30000}, own = call(GETPID, 0, 0, 0, 0, 0, 0);
    pair(STREAM, ends);
    show("limit", set_option(ends[0], SOL_SOCKET, SO_RCVTIMEO, limit, 16));
    show("time", get(ends[0], 1));
    limit[1] = 1000000;
    show("no time", set_option(ends[0], SOL_SOCKET, SO_RCVTIMEO, limit, 16));
    handle(SIGUSR1, count_signal, 0x10000000);
    signals = 0;
    limit[0] = 5, limit[1] = 0;
    set_option(ends[0], SOL_SOCKET, SO_RCVTIMEO, limit, 16);
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            rest(20), call(KILL, own, SIGUSR1, 0, 0, 0, 0);
            rest(20), put(i == 0 ? ends[1] : ends[0], "w", 1);
            exit(0);
        }
        show(i == 0 ? "interrupted with a limit" : i == 1 ? "made again" : "interrupted", get(i == 0 ? ends[0] : ends[1], 1));
        if (i != 1)
            wait_status(), show_text("then", get(i == 0 ? ends[0] : ends[1], 1));
        else
            wait_status(), handle(SIGUSR1, count_signal, 0);
    }
    show("signals", signals);
    if (fork() == 0) {
        static char part[3000];
        number sum = 0, count;
        close(ends[0]);
        while ((count = call(READ, ends[1], (number)part, sizeof part, 0, 0, 0)) > 0)
            for (number i = 0; i < count; i++)
                sum = sum * 31 % 1000003 + part[i];
        show("sum", sum);
        exit(0);
    }
    static char many[1 << 20];
    for (int i = 0; i < (int)sizeof many; i++)
        many[i] = (char)(i % 91);
    show("a megabyte", put(ends[0], many, sizeof many));
    shut(ends[0], 1), close(ends[1]);
    wait_status();
    close(ends[0]);
    pair(STREAM | NONBLOCK, ends);
    number sent = 0, count;
    while ((count = put(ends[0], many, 4096)) > 0)
        sent += count;
    show("full", count);
    show("some", sent > 32768);
    show("poll", poll(ends[0]));
    while (get(ends[1], sizeof text) > 0)
        ;
    show("poll", poll(ends[0]));
    close(ends[0]), close(ends[1]);
    int child;
    pair(STREAM, ends);
    if ((child = (int)fork()) == 0) {
        handle(SIGPIPE, 0, 0);
        close(ends[1]);
        rest(30);
        put(ends[0], "x", 1);
        exit(0);
    }
    close(ends[0]), close(ends[1]);
    show("ended by SIGPIPE", wait_status());
}

static void show_events(const char *what, number set) {
    struct event events[4];
    number count = call(EPOLL_PWAIT, set, (number)events, 4, 0, 0, 8);
    show(what, count == 1 ? (number)events[0].events : count);
}

static void watching(void) {
    struct name name = {UNIX, {0, 'w', 'a', 't'}};
    int ends[2];
    number edge = call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0), level = call(EPOLL_CREATE1, 0, 0, 0, 0, 0, 0);
    pair(STREAM, ends);
    struct event wanted = {(unsigned)(IN | OUT | RDHUP | EDGE), 1};
    call(EPOLL_CTL, edge, 1, ends[0], (number)&wanted, 0, 0);
    wanted.events = IN | RDHUP;
    call(EPOLL_CTL, level, 1, ends[0], (number)&wanted, 0, 0);
    show_events("edge", edge), show_events("edge", edge), show_events("level", level);
    put(ends[1], "ab", 2);
    show_events("edge", edge), show_events("edge", edge), show_events("level", level), show_events("level", level);
    put(ends[1], "c", 1);
    show_events("edge", edge);
    get(ends[0], 1);
    show_events("part", level);
    get(ends[0], 10);
    show_events("empty", level);
    shut(ends[1], 1);
    show_events("shut", edge), show_events("shut", level);
    close(ends[1]);
    show_events("closed", edge), show_events("closed", level);
    close(ends[0]);
    number listener = make(UNIX, STREAM), client = make(UNIX, STREAM);
    wanted.events = IN | OUT;
    show("fresh", poll(listener));
    bind(listener, &name, 6), listen(listener, 5);
    call(EPOLL_CTL, level, 1, listener, (number)&wanted, 0, 0);
    show_events("listener", level);
    connect(client, &name, 6);
    show_events("connection", level);
    number taken = accept(listener, 0);
    show_events("none", level);
    if (fork() == 0) {
        rest(20);
        exit((int)connect(make(UNIX, STREAM), &name, 6));
    }
    close(taken);
    taken = accept(listener, 0);
    show("accept waits", taken > 0);
    show("status", wait_status());
    show("shut a listener", shut(listener, 0));
    show("accept", accept(listener, 0));
    show("connect", connect(make(UNIX, STREAM), &name, 6));
    close(listener), close(client), close(taken), close(edge), close(level);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    creation();
    no_sockets();
    bytes();
    print("datagrams\n"), messages(DGRAM);
    print("packets\n"), messages(SEQPACKET);
    print("names of streams\n"), names(STREAM);
    print("names of packets\n"), names(SEQPACKET);
    print("names of datagrams\n"), names(DGRAM);
    print("rights\n"), rights(STREAM);
    print("rights with datagrams\n"), rights(DGRAM);
    credentials();
    several();
    waits();
    watching();
    return 0;
}
