/* Files in memory without a path: what they are, their seals, and programs in them. */

#include "system.h"

enum { CLOEXEC = 1, ALLOW_SEALING = 2 };
enum { F_GETFD = 1, F_GETFL = 3, ADD_SEALS = 1033, GET_SEALS = 1034 };
enum { SEAL = 1, SHRINK = 2, GROW = 4, NO_WRITE = 8, FUTURE_WRITE = 16 };
enum { KEEP_SIZE = 1, PUNCH_HOLE = 2, PATH_ONLY = 010000000, NOFOLLOW = 0x100, EMPTY_PATH = 0x1000 };
enum { PAGE = 4096, EXECFN = 31 };

static char bytes[3 * PAGE], text[2 * PAGE];

static number make(const char *name, number flags) { return call(MEMFD_CREATE, (number)name, flags, 0, 0, 0, 0); }
static number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static number control(number file, number command, number argument) {
    return call(FCNTL, file, command, argument, 0, 0, 0);
}
static number seal(number file, number seals) { return control(file, ADD_SEALS, seals); }
static number resize(number file, number size) { return call(FTRUNCATE, file, size, 0, 0, 0, 0); }
static number put(number file, number offset, number count) {
    return call(PWRITE64, file, (number)bytes, count, offset, 0, 0);
}
static number map(number file, number rights, number how) { return call(MMAP, 0, 2 * PAGE, rights, how, file, 0); }
static number unmap(number place) { return call(MUNMAP, place, 2 * PAGE, 0, 0, 0, 0); }

/* Maps a file, and removes that again. Prints whether that was possible, or the error. */
static void try_to_map(const char *what, number file, number rights, number how) {
    number place = map(file, rights, how);
    show(what, place < 0 && place > -4096 ? place : 0);
    if (place > 0)
        unmap(place);
}

static number text_of(number file, char *into) {
    *into = 0;
    for (char *to = into, *from = "/proc/self/fd/"; (*to++ = *from++);)
        *to = 0;
    char *end = into + length(into);
    if (file >= 10)
        *end++ = (char)('0' + file / 10);
    *end++ = (char)('0' + file % 10);
    *end = 0;
    return (number)into;
}

static number reopen(number file, number flags) {
    char path[32];
    return call(OPENAT, AT_FDCWD, text_of(file, path), flags, 0, 0, 0);
}

static void show_link(number file) {
    char path[32], link[300];
    number count = call(READLINKAT, AT_FDCWD, text_of(file, path), (number)link, sizeof link - 1, 0, 0);
    link[count < 0 ? 0 : count] = 0;
    print(link);
    print("\n");
}

/* Prints the name of what is mapped at a place. */
static void show_mapped(number place) {
    number file = call(OPENAT, AT_FDCWD, (number)"/proc/self/maps", RDONLY, 0, 0, 0), count, all = 0;
    while ((count = call(READ, file, (number)(text + all), (number)sizeof text - all - 1, 0, 0, 0)) > 0)
        all += count;
    text[all] = 0;
    close(file);
    for (char *line = text; *line;) {
        char *end = line, *name = 0;
        number start = 0;
        for (; *end != '-'; end++)
            start = start * 16 + (*end <= '9' ? *end - '0' : *end - 'a' + 10);
        for (; *end != '\n'; end++)
            if (*end == '/' && !name)
                name = end;
        *end = 0;
        if (start == place)
            print(name ? name : "nothing"), print("\n");
        line = end + 1;
    }
}

static void what_it_is(void) {
    char name[252];
    memset(name, 'n', sizeof name);
    name[251] = 0;
    show("too long", make(name + 1, 0));
    show("as long as can be", close(make(name + 2, 0)));
    show("unknown flag", make("one", 0x10));
    show("unknown flag, no name", make((char *)8, 0x10));
    show("no name", make((char *)8, 0));
    number file = make("one", CLOEXEC), other = make("", ALLOW_SEALING);
    show("closed by exec", control(file, F_GETFD, 0));
    show("not closed by exec", control(other, F_GETFD, 0));
    show("flags", control(file, F_GETFL, 0));
    unsigned status[32];
    call(FSTAT, file, (number)status, 0, 0, 0, 0);
    show("mode", status[4]);
    show("links", status[5]);
    show("length", status[12]);
    show("write", call(WRITE, file, (number)"hello", 5, 0, 0, 0));
    show("position", call(LSEEK, file, 0, 1, 0, 0, 0));
    show("read", call(PREAD64, file, (number)bytes, 10, 1, 0, 0));
    show_link(file);
    show_link(other);
    number place = map(file, PROT_READ, PRIVATE);
    show_mapped(place);
    close(file);
    show("still there", ((char *)place)[4]);
    show_mapped(place);
    unmap(place);
    number linked = call(LINKAT, other, (number)"", AT_FDCWD, (number)"/tmp/linked", 0, 0);
    show("link without flag", linked);
    number child = fork();
    if (child == 0) {
        call(WRITE, other, (number)"from a child", 12, 0, 0, 0);
        exit(0);
    }
    wait_for(child, 0);
    show("a child's bytes", call(PREAD64, other, (number)bytes, 20, 0, 0, 0));
    number again = reopen(other, RDWR | TRUNC);
    show("opened anew, position", call(LSEEK, again, 0, 1, 0, 0, 0));
    show("cut off", call(LSEEK, other, 0, 2, 0, 0, 0));
    close(again), close(other);
}

static void mistakes(void) {
    number file = make("none", 0), other = make("seals", ALLOW_SEALING), pipe[2];
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    pipe[0] = ends[0], pipe[1] = ends[1];
    number plain = call(OPENAT, AT_FDCWD, (number)"/tmp/plain", RDWR | CREAT, 0600, 0, 0);
    number path = reopen(other, PATH_ONLY), reader = reopen(other, RDONLY);
    show("seals of one that allows none", control(file, GET_SEALS, 0));
    show("seals of one that allows some", control(other, GET_SEALS, 0));
    show("of a file with a path", control(plain, GET_SEALS, 0));
    show("of a pipe", control(pipe[0], GET_SEALS, 0));
    show("of a path", control(path, GET_SEALS, 0));
    show("of nothing", control(99, GET_SEALS, 0));
    show("add to one that allows none", seal(file, GROW));
    show("add to a file with a path", seal(plain, GROW));
    show("add to a pipe's end to read", seal(pipe[0], GROW));
    show("add to a pipe's end to write", seal(pipe[1], GROW));
    show("add to a path", seal(path, GROW));
    show("add to a reader", seal(reader, GROW));
    show("add unknown to a reader", seal(reader, 64));
    show("add unknown", seal(other, 64));
    show("add unknown to one that allows none", seal(file, 64));
    show("add unknown to a pipe", seal(pipe[1], 64));
    show("add with upper bits", seal(other, 0x100000000));
    show("add with upper bits to a reader", seal(reader, 0x100000000));
    show("nothing was added", control(reader, GET_SEALS, 0));
    show("add nothing", seal(other, 0));
    show("add", seal(other, SEAL));
    show("add again", seal(other, SEAL));
    show("seals", control(reader, GET_SEALS, 0));
    close(file), close(other), close(pipe[0]), close(pipe[1]), close(plain), close(path), close(reader);
}

static number copy(number to, number count) {
    number from = make("source", 0);
    put(from, 0, 2 * PAGE);
    number result = call(SENDFILE, to, from, 0, count, 0, 0);
    close(from);
    return result;
}

static void lengths(void) {
    number file = make("lengths", ALLOW_SEALING);
    put(file, 0, PAGE + 100);
    show("no shrinking", seal(file, SHRINK));
    show("shorter", resize(file, 5));
    show("as long", resize(file, PAGE + 100));
    show("longer", resize(file, PAGE + 101));
    show("opened and cut off", reopen(file, RDWR | TRUNC));
    show("punched", call(FALLOCATE, file, PUNCH_HOLE | KEEP_SIZE, 0, 10, 0, 0));
    show("no growing", seal(file, GROW));
    show("both", control(file, GET_SEALS, 0));
    show("longer", resize(file, PAGE + 102));
    show("as long", resize(file, PAGE + 101));
    show("write within", put(file, 0, PAGE + 101));
    show("write beyond", put(file, 0, PAGE + 102));
    show("write beyond in the last page", put(file, PAGE + 50, 100));
    show("write from the end", put(file, PAGE + 101, 1));
    show("write nothing there", put(file, PAGE + 101, 0));
    show("write far beyond", put(file, 5 * PAGE, 1));
    show("write from nowhere", call(PWRITE64, file, 8, 1, 5 * PAGE, 0, 0));
    show("append", (control(file, 4, APPEND), call(WRITE, file, (number)bytes, 1, 0, 0, 0)));
    control(file, 4, 0);
    struct { void *base; size length; } parts[3] = {{bytes, 0}, {bytes, 10}, {bytes, 2 * PAGE}};
    show("write parts", call(PWRITEV, file, (number)parts, 3, 0, 0, 0));
    show("write parts beyond", call(PWRITEV, file, (number)parts, 3, PAGE, 0, 0));
    show("copy", (call(LSEEK, file, 0, 0, 0, 0, 0), copy(file, 2 * PAGE)));
    show("position", call(LSEEK, file, 0, 1, 0, 0, 0));
    show("copy more", copy(file, 2 * PAGE));
    show("room beyond", call(FALLOCATE, file, 0, PAGE, PAGE, 0, 0));
    show("room beyond, kept", call(FALLOCATE, file, KEEP_SIZE, PAGE, PAGE, 0, 0));
    show("room within", call(FALLOCATE, file, 0, PAGE, 100, 0, 0));
    show("length", call(LSEEK, file, 0, 2, 0, 0, 0));
    close(file);
}

static void writing(void) {
    number file = make("writing", ALLOW_SEALING);
    resize(file, 2 * PAGE);
    number place = map(file, PROT_READ | PROT_WRITE, SHARED);
    show("while it is mapped to be written", seal(file, NO_WRITE));
    unmap(place);
    place = map(file, PROT_READ, SHARED);
    show("while it could be written", seal(file, NO_WRITE));
    number child = fork();
    if (child == 0) {
        number pause[2] = {0, 30000000};
        call(NANOSLEEP, (number)pause, 0, 0, 0, 0, 0);
        exit(0);
    }
    unmap(place);
    show("while a child has it", seal(file, NO_WRITE));
    wait_for(child, 0);
    number reader = reopen(file, RDONLY);
    place = map(reader, PROT_READ, SHARED);
    number own = map(file, PROT_READ | PROT_WRITE, PRIVATE);
    show("while it is read, and copied", seal(file, NO_WRITE));
    show("seals", control(file, GET_SEALS, 0));
    *(volatile char *)own = 1;
    unmap(place), unmap(own);
    show("write", put(file, 0, 5));
    show("write nothing", put(file, 0, 0));
    show("write from nowhere", call(PWRITE64, file, 8, 5, 0, 0, 0));
    show("copy", copy(file, 5));
    show("punched", call(FALLOCATE, file, PUNCH_HOLE | KEEP_SIZE, 0, 10, 0, 0));
    show("room", call(FALLOCATE, file, 0, 0, 3 * PAGE, 0, 0));
    show("shorter", resize(file, 5));
    try_to_map("shared, to be written", file, PROT_READ | PROT_WRITE, SHARED);
    try_to_map("shared, to be read", file, PROT_READ, SHARED);
    try_to_map("shared, of a reader", reader, PROT_READ, SHARED);
    try_to_map("shared, of a reader, to be written", reader, PROT_READ | PROT_WRITE, SHARED);
    try_to_map("private, to be written", file, PROT_READ | PROT_WRITE, PRIVATE);
    place = map(reader, PROT_READ, SHARED);
    show("rights later", call(MPROTECT, place, PAGE, PROT_READ | PROT_WRITE, 0, 0, 0));
    unmap(place);
    number writer = reopen(file, WRONLY);
    show("opened to be written", writer > 0);
    show("and written", put(writer, 0, 1));
    close(file), close(reader), close(writer);
}

static void future_writing(void) {
    number file = make("future", ALLOW_SEALING);
    resize(file, 2 * PAGE);
    number place = map(file, PROT_READ | PROT_WRITE, SHARED);
    show("no writing from now on", seal(file, FUTURE_WRITE));
    *(volatile char *)place = 7;
    show("what is mapped can be written", call(PREAD64, file, (number)bytes, 1, 0, 0, 0) * 10 + bytes[0]);
    show("write", put(file, 0, 5));
    show("punched", call(FALLOCATE, file, PUNCH_HOLE | KEEP_SIZE, 0, 10, 0, 0));
    show("longer", resize(file, 3 * PAGE));
    try_to_map("shared, to be written", file, PROT_READ | PROT_WRITE, SHARED);
    try_to_map("private, to be written", file, PROT_READ | PROT_WRITE, PRIVATE);
    number other = map(file, PROT_READ, SHARED);
    show("rights later", call(MPROTECT, other, PAGE, PROT_READ | PROT_WRITE, 0, 0, 0));
    unmap(other);
    show("no writing at all", seal(file, NO_WRITE));
    unmap(place);
    show("no writing at all", seal(file, NO_WRITE));
    show("seals", control(file, GET_SEALS, 0));
    close(file);
}

/* Runs something by a descriptor in a child, and prints its status or error. */
static void run(const char *what, number directory, const char *path, number flags, char **arguments) {
    print(what);
    print("\n");
    number child = fork();
    if (child == 0) {
        char *variables[] = {"KEY=value", 0};
        show("  fails", call(EXECVEAT, directory, (number)path, (number)arguments, (number)variables, flags, 0));
        exit(1);
    }
    int status = 0;
    wait_for(child, &status);
    show("  status", status);
}

static number copy_to(const char *path, number to) {
    number from = call(OPENAT, AT_FDCWD, (number)path, RDONLY, 0, 0, 0);
    while (call(SENDFILE, to, from, 0, sizeof bytes, 0, 0) > 0) {
    }
    close(from);
    return to;
}

static number copy_of(const char *path, const char *name, number flags) { return copy_to(path, make(name, flags)); }

static number script(const char *interpreter, number flags) {
    number file = make("script", flags);
    call(WRITE, file, (number)"#!", 2, 0, 0, 0);
    call(WRITE, file, (number)interpreter, length(interpreter), 0, 0, 0);
    call(WRITE, file, (number)" again\n", 7, 0, 0, 0);
    return file;
}

static void programs(const char *own) {
    static char absolute[64] = "/";
    memcpy(absolute + 1, own, length(own));
    char *again[] = {"zero", "again", 0};
    number file = copy_of(own, "program", 0), closed = copy_of(own, "closed", CLOEXEC);
    number bin = call(OPENAT, AT_FDCWD, (number)"/tmp", PATH_ONLY, 0, 0, 0);
    number itself = call(OPENAT, AT_FDCWD, (number)own, PATH_ONLY, 0, 0, 0);
    call(SYMLINKAT, (number)absolute, AT_FDCWD, (number)"/tmp/link", 0, 0, 0);
    run("by a descriptor", file, "", EMPTY_PATH, again);
    run("by one that is closed", closed, "", EMPTY_PATH, again);
    run("by a path's", itself, "", EMPTY_PATH, again);
    run("by a link in a directory", bin, "link", 0, again);
    run("a link that is not followed", bin, "link", NOFOLLOW, again);
    run("the process's own", AT_FDCWD, "/proc/self/exe", NOFOLLOW, again);
    run("a slash behind", bin, "link/", 0, again);
    run("without the flag", file, "", 0, again);
    run("a directory", bin, "", EMPTY_PATH, again);
    run("the working directory", AT_FDCWD, "", EMPTY_PATH, again);
    run("no descriptor", 99, "", EMPTY_PATH, again);
    run("no descriptor, unknown flag", 99, "", EMPTY_PATH | 1, again);
    run("no descriptor, unknown flag, no strings", 99, "", EMPTY_PATH | 1, (char **)8);
    run("no path", file, (char *)8, EMPTY_PATH, again);
    run("no descriptor, absolute", 99, absolute, 0, again);
    run("no directory", file, "link", 0, again);
    run("missing", bin, "missing", 0, again);
    number slash = copy_of(own, "a/b", 0);
    run("with a slash in its name", slash, "", EMPTY_PATH, again);
    call(UNLINKAT, AT_FDCWD, (number)"/tmp/link", 0, 0, 0, 0);
    number gone = copy_to(own, call(OPENAT, AT_FDCWD, (number)"/tmp/gone", WRONLY | CREAT, 0700, 0, 0));
    close(gone);
    gone = call(OPENAT, AT_FDCWD, (number)"/tmp/gone", RDONLY, 0, 0, 0);
    call(UNLINKAT, AT_FDCWD, (number)"/tmp/gone", 0, 0, 0, 0);
    run("that was removed", gone, "", EMPTY_PATH, again);
    number empty = make("empty", 0), closed_script = script(own, CLOEXEC), open_script = script(own, 0);
    run("no program", empty, "", EMPTY_PATH, again);
    run("a script", open_script, "", EMPTY_PATH, again);
    run("a script that is closed", closed_script, "", EMPTY_PATH, again);
    call(FCHMOD, file, 0600, 0, 0, 0, 0);
    run("that nobody may execute", file, "", EMPTY_PATH, again);
    close(file), close(closed), close(bin), close(itself), close(empty), close(closed_script), close(open_script), close(slash), close(gone);
}

/* Prints what the program finds that was run again. */
static int run_again(number count, char **arguments) {
    for (number i = 0; i < count; i++)
        print(i ? " " : "  arguments: "), print(arguments[i]);
    print("\n");
    number *vector = (number *)(arguments + count + 1);
    while (*vector++) {
    }
    for (; *vector; vector += 2)
        if (*vector == EXECFN)
            print("  told: "), print((char *)vector[1]), print("\n");
    number comm = call(OPENAT, AT_FDCWD, (number)"/proc/self/comm", RDONLY, 0, 0, 0);
    number read = call(READ, comm, (number)bytes, sizeof bytes, 0, 0, 0);
    print("  name: ");
    call(WRITE, 1, (number)bytes, read, 0, 0, 0);
    read = call(READLINKAT, AT_FDCWD, (number)"/proc/self/exe", (number)bytes, sizeof bytes - 1, 0, 0);
    bytes[read < 0 ? 0 : read] = 0;
    print("  is: "), print(bytes), print("\n");
    return 7;
}

int program(number count, char **arguments) {
    if (count > 1 && equal(arguments[1], "again", 6))
        return run_again(count, arguments);
    print("what it is\n"), what_it_is();
    print("mistakes\n"), mistakes();
    print("lengths\n"), lengths();
    print("writing\n"), writing();
    print("future writing\n"), future_writing();
    print("programs\n"), programs(arguments[0]);
    return 0;
}
