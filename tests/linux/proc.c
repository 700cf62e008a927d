/* /proc and /sys: what a process learns there about itself, others and the system. Only what is the same everywhere is
   printed. */

#include "system.h"

enum { FCHMODAT = 53, STATFS = 43, PRCTL = 167, FCHDIR = 50 };
enum { O_PATH = 010000000, NOFOLLOW = 0100000, SET_NAME = 15 };

static char text[65536];
static char path[128];

static number open(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0644, 0, 0); }
static void close(number file) { call(CLOSE, file, 0, 0, 0, 0, 0); }
static number readlink(const char *path) {
    number count = call(READLINKAT, AT_FDCWD, (number)path, (number)text, sizeof text - 1, 0, 0);
    text[count < 0 ? 0 : count] = 0;
    return count;
}

/* Reads the whole of a file in parts of some size. */
static number read_on(number file, number part) {
    number count = 0, got;
    while ((got = call(READ, file, (number)(text + count), part, 0, 0, 0)) > 0)
        count += got;
    text[count] = 0;
    return got < 0 ? got : count;
}

static number read(const char *path) {
    number file = open(path, RDONLY);
    if (file < 0)
        return file;
    number count = read_on(file, 4096);
    close(file);
    return count;
}

static number write(const char *path, const char *what) {
    number file = open(path, WRONLY);
    if (file < 0)
        return file;
    number count = call(WRITE, file, (number)what, length(what), 0, 0, 0);
    close(file);
    return count;
}

static number to_number(const char *from) {
    number value = 0;
    while (*from >= '0' && *from <= '9')
        value = 10 * value + *from++ - '0';
    return value;
}

static const char *decimal(number value) {
    static char digits[24];
    char *at = digits + sizeof digits - 1;
    do
        *--at = '0' + value % 10;
    while (value /= 10);
    return at;
}

static const char *join(const char *a, const char *b, const char *c) {
    char *to = path;
    const char *parts[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        for (const char *from = parts[i]; *from;)
            *to++ = *from++;
    *to = 0;
    return path;
}

static int is(const char *expected) { return length(text) == length(expected) && equal(text, expected, length(expected)); }

static void print_path(const char *what, const char *of) {
    show(what, readlink(of));
    print(text);
    print("\n");
}

static number mode(const char *path, number flags) {
    static uint32_t status[32];
    number error = call(NEWFSTATAT, AT_FDCWD, (number)path, (number)status, flags, 0, 0);
    return error < 0 ? error : status[4];
}

/* Returns a field of a line that is divided by blanks. */
static const char *field(number index) {
    const char *at = text;
    while (index--)
        while (*at && *at++ != ' ')
            ;
    return at;
}

static number count_fields(void) {
    number count = 1;
    for (const char *at = text; *at; at++)
        count += *at == ' ';
    return count;
}

static void numbers(number own) {
    readlink("/proc/self");
    show("self is the own number", is(decimal(own)));
    readlink("/proc/thread-self");
    show("thread-self too", to_number(text) == own);
    show("stat", read("/proc/self/stat") > 0);
    show("fields", count_fields());
    show("number", to_number(text) == own);
    show("name", equal(field(1), "(proc) R ", 9));
    show("parent", to_number(field(3)) == call(GETPPID, 0, 0, 0, 0, 0, 0));
    show("group", to_number(field(4)) == call(GETPGID, 0, 0, 0, 0, 0, 0));
    show("session", to_number(field(5)) == call(GETSID, 0, 0, 0, 0, 0, 0));
    show("threads", to_number(field(19)));
    show("signal at the end", to_number(field(37)));
    show("statm", read("/proc/self/statm") > 0);
    show("fields", count_fields());
    show("stat of the thread", read("/proc/thread-self/stat") > 0);
    show("number", to_number(text) == own);
}

/* Prints the beginnings of lines, to the colon. */
static void print_names(void) {
    for (char *at = text; *at;) {
        char *end = at;
        while (*end && *end != ':' && *end != '\n')
            end++;
        char *next = end;
        while (*next && *next++ != '\n')
            ;
        while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        *end = 0;
        print(at);
        print(" ");
        at = next;
    }
    print("\n");
}

static void names(void) {
    show("status", read("/proc/self/status") > 0);
    print_names();
    read("/proc/cpuinfo");
    print_names();
    number count = read("/proc/self/limits");
    show("limits", count > 0);
    for (number at = 0, line = 0; at < count; line += text[at++] == '\n')
        if (line == 0 || line == 4 || line == 5)
            call(WRITE, 1, (number)(text + at), 1, 0, 0, 0);
    show("swaps", read("/proc/swaps"));
    print(text);
}

static void groups(void) {
    enum { GETGROUPS = 158, SETGROUPS = 159 };
    uint32_t ids[3] = {100, 0, 7};
    show("groups", call(GETGROUPS, 0, 0, 0, 0, 0, 0));
    show("set three", call(SETGROUPS, 3, (number)ids, 0, 0, 0, 0));
    show("groups", call(GETGROUPS, 0, 0, 0, 0, 0, 0));
    show("read them", call(GETGROUPS, 3, (number)ids, 0, 0, 0, 0));
    show("in order", ids[0] * 10000 + ids[1] * 1000 + ids[2]);
    show("room for too few", call(GETGROUPS, 2, (number)ids, 0, 0, 0, 0));
    show("less than none", call(GETGROUPS, -1, (number)ids, 0, 0, 0, 0));
    show("nowhere", call(GETGROUPS, 3, 8, 0, 0, 0, 0));
    read("/proc/self/status");
    for (const char *at = text; *at; at++)
        if (equal(at, "Groups:", 7))
            while (*at && *at != '\n')
                call(WRITE, 1, (number)at++, 1, 0, 0, 0);
    print("\n");
    show("too many", call(SETGROUPS, 65537, (number)ids, 0, 0, 0, 0));
    show("from nowhere", call(SETGROUPS, 1, 8, 0, 0, 0, 0));
    ids[0] = -1;
    show("no group", call(SETGROUPS, 1, (number)ids, 0, 0, 0, 0));
    show("set none", call(SETGROUPS, 0, 0, 0, 0, 0, 0));
    show("groups", call(GETGROUPS, 0, 0, 0, 0, 0, 0));
}

static void arguments(number count, char **own) {
    number bytes = read("/proc/self/cmdline");
    show("arguments", bytes == (own[count - 1] - own[0]) + (number)length(own[count - 1]) + 1);
    show("as here", equal(text, own[0], bytes));
    char **variables = own + count + 1;
    bytes = read("/proc/self/environ");
    show("environment", equal(text, variables[0], bytes));
    number *vector = (number *)variables;
    while (*vector++)
        ;
    bytes = read("/proc/self/auxv");
    show("auxiliary vector", bytes > 64 && bytes % 16 == 0 && equal(text, vector, bytes));
    print_path("program", "/proc/self/exe");
    print_path("directory", "/proc/self/cwd");
    print_path("root", "/proc/self/root");
    print_path("mounts", "/proc/mounts");
}

static void own_name(void) {
    number file = open("/proc/self/comm", RDWR);
    show("name", read_on(file, 3));
    print(text);
    show("write it", call(WRITE, file, (number) "a long name of 24 letters", 25, 0, 0, 0));
    show("read it", call(PREAD64, file, (number)text, 100, 0, 0, 0));
    call(PRCTL, SET_NAME, (number) "other", 0, 0, 0, 0);
    show("further on it is the old one", call(PREAD64, file, (number)text, 100, 4, 0, 0));
    show("at the beginning the new one", call(PREAD64, file, (number)text, 100, 0, 0, 0));
    show("back", call(LSEEK, file, 0, 0, 0, 0, 0));
    read_on(file, 1);
    print(text);
    show("to the end", call(LSEEK, file, 0, 2, 0, 0, 0));
    show("map", call(MMAP, 0, 4096, PROT_READ, PRIVATE, file, 0));
    close(file);
    show("score", read("/proc/self/oom_score_adj"));
    show("too much", write("/proc/self/oom_score_adj", "1001"));
    show("no number", write("/proc/self/oom_score_adj", "x"));
    show("enough", write("/proc/self/oom_score_adj", "77\n"));
    read("/proc/self/oom_score_adj");
    print(text);
    show("who has logged in", read("/proc/self/loginuid"));
    print(text);
    print("\n");
}

static void descriptors(void) {
    number file = open("/tmp/opened", RDWR | CREAT | TRUNC);
    const char *link = "/proc/self/fd/3";
    show("descriptor", file);
    call(WRITE, file, (number) "hello", 5, 0, 0, 0);
    print_path("open file", link);
    show("link's mode", mode(link, 0x100));
    show("file's mode", mode(link, 0));
    show("read it from its beginning", read(link));
    show("description", read("/proc/self/fdinfo/3") > 0);
    show("position", equal(text, "pos:\t5\nflags:\t0", 15));
    call(RENAMEAT, AT_FDCWD, (number) "/tmp/opened", AT_FDCWD, (number) "/tmp/renamed", 0, 0);
    print_path("renamed", link);
    call(UNLINKAT, AT_FDCWD, (number) "/tmp/renamed", 0, 0, 0, 0);
    print_path("removed", link);
    show("read it still", read(link));
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    show("pipe", readlink("/proc/self/fd/4") > 7 && equal(text, "pipe:[", 6));
    show("its mode", mode("/proc/self/fd/4", 0x100));
    show("other end's mode", mode("/proc/self/fd/5", 0x100));
    number again = open("/proc/self/fd/5", WRONLY);
    show("open it again", again);
    call(WRITE, again, (number) "abc", 3, 0, 0, 0);
    show("read", call(READ, ends[0], (number)text, 10, 0, 0, 0));
    number directory = open("/proc/self/fd", RDONLY | DIRECTORY);
    number bytes = call(GETDENTS64, directory, (number)text, sizeof text, 0, 0, 0);
    for (number at = 0; at < bytes; at += *(uint16_t *)(text + at + 16)) {
        print(text + at + 19);
        print(text[at + 18] == 10 ? "@ " : "/ ");
    }
    print("\n");
    for (number each = 3; each <= directory; each++)
        close(each);
    show("closed", readlink(link));
    show("no such number", readlink("/proc/self/fd/03"));
    number exe = open("/proc/self/exe", O_PATH | NOFOLLOW);
    show("link of a link", call(READLINKAT, exe, (number) "", (number)text, 100, 0, 0));
    close(exe);
    show("do not follow", open("/proc/self/exe", NOFOLLOW));
}

static void directories(number own) {
    show("chdir", call(CHDIR, (number) "/proc/self/task", 0, 0, 0, 0, 0));
    call(GETCWD, (number)text, sizeof text, 0, 0, 0, 0);
    show("getcwd", is(join("/proc/", decimal(own), "/task")));
    show("relative", read(join(decimal(own), "/comm", "")));
    show("up", read("../comm"));
    show("farther up", read("../../version") > 0);
    number process = open("/proc/self", O_PATH | DIRECTORY);
    show("stat from there", call(NEWFSTATAT, process, (number) "stat", (number)text, 0, 0, 0));
    close(process);
    number kind[16];
    show("statfs", call(STATFS, (number) "/proc/self", (number)kind, 0, 0, 0, 0));
    show("kind", kind[0]);
    call(STATFS, (number) "/sys", (number)kind, 0, 0, 0, 0);
    show("kind", kind[0]);
    call(CHDIR, (number) "/", 0, 0, 0, 0, 0);
    static const char *const files[] = {
        "/proc", "/proc/self", "/proc/1", "/proc/1/fd", "/proc/1/fdinfo", "/proc/1/task", "/proc/1/environ",
        "/proc/1/auxv", "/proc/1/status", "/proc/1/comm", "/proc/1/maps", "/proc/1/smaps",
        "/proc/1/smaps_rollup", "/proc/1/exe", "/proc/1/oom_score_adj", "/proc/cpuinfo",
        "/proc/mounts", "/proc/sys", "/proc/sys/kernel/ostype", "/sys", "/sys/devices/system/cpu/online",
    };
    for (size i = 0; i < sizeof files / sizeof *files; i++)
        show(files[i], mode(files[i], 0x100));
}

static void maps(void) {
    static char zeros[8];
    number place[] = {(number)maps, (number)zeros, (number)place};
    number count = read("/proc/self/maps");
    for (int which = 0; which < 3; which++)
        for (number at = 0; at < count; at++) {
            size start = 0, end = 0;
            for (size *value = &start; text[at] != ' '; at++)
                if (text[at] == '-')
                    value = &end;
                else
                    *value = *value * 16 + (text[at] <= '9' ? text[at] - '0' : text[at] - 'a' + 10);
            number rights = at + 1;
            while (text[at] != '\n')
                at++;
            if (start <= (size)place[which] && (size)place[which] < end) {
                call(WRITE, 1, (number)(text + rights), 4, 0, 0, 0);
                const char *names[] = {"/linux/proc\n", "", " [stack]\n"};
                number size = length(names[which]);
                show(" is there and has its name", equal(text + at + 1 - size, names[which], size));
            }
        }
}

/* Returns the line behind the one in which a position lies. */
static const char *next_line(const char *at) {
    while (*at && *at++ != '\n')
        ;
    return at;
}

/* Reads smaps, and returns where an address's area is described there. */
static const char *find_use(const void *address) {
    read("/proc/self/smaps");
    for (const char *at = text; *at; at = next_line(at)) {
        size start = 0, end = 0;
        const char *from = at;
        for (size *value = &start; *from != ' ' && *from != ':'; from++)
            if (*from == '-')
                value = &end;
            else
                *value = *value * 16 + (*from <= '9' ? *from - '0' : *from - 'a' + 10);
        if (*from == ' ' && start <= (size)address && (size)address < end)
            return next_line(at);
    }
    return "";
}

/* Prints what smaps says of an address's area: the lines whose names begin so, or all but what was touched lately. */
static void show_use(const char *what, const void *address, const char *name) {
    print(what);
    print("\n");
    for (const char *at = find_use(address); *at && *at >= 'A'; at = next_line(at)) {
        if (equal(at, name, length(name)) && !equal(at, "Referenced", 10))
            call(WRITE, 1, (number)at, next_line(at) - at, 0, 0, 0);
        if (equal(at, "VmFlags", 7))
            break;
    }
}

/* Returns pages with room around them, so that they are an area of their own. */
static char *lone_pages(number count) {
    char *at = (char *)call(MMAP, 0, (count + 2) * 4096, 0, PRIVATE | ANONYMOUS, -1, 0);
    call(MPROTECT, (number)at + 4096, count * 4096, PROT_READ | PROT_WRITE, 0, 0, 0);
    return at + 4096;
}

/* Returns what a line of smaps_rollup says. */
static number sum(const char *name) {
    read("/proc/self/smaps_rollup");
    for (const char *at = text; *at; at = next_line(at))
        if (equal(at, name, length(name))) {
            while (*at && (*at < '0' || *at > '9'))
                at++;
            return to_number(at);
        }
    return -1;
}

static void uses(void) {
    volatile char *own = lone_pages(4);
    own[0] = own[4096] = 1;
    show_use("own pages", (char *)own, "");
    number child = fork();
    if (child == 0) {
        show_use("pages that two processes have", (char *)own, "");
        own[0] = 2;
        show_use("one written", (char *)own, "");
        exit(0);
    }
    wait_for(child, 0);
    show_use("afterwards", (char *)own, "");
    number all = sum("Rss"), anonymous = sum("Anonymous"), in_memory = sum("Pss_Shmem");
    number file = open("/tmp/mapped", RDWR | CREAT | TRUNC);
    call(WRITE, file, (number)text, 3 * 4096, 0, 0, 0);
    volatile char *copy = (char *)call(MMAP, 0, 3 * 4096, PROT_READ | PROT_WRITE, PRIVATE, file, 0);
    copy[4096] = 1;
    show_use("a file's copy", (char *)copy, "Anonymous");
    show_use("its flags", (char *)copy, "VmFlags");
    volatile char *same = (char *)call(MMAP, 0, 3 * 4096, PROT_READ | PROT_WRITE, SHARED, file, 0);
    same[0] = 1;
    show_use("a file", (char *)same, "VmFlags");
    close(file);
    file = open("/tmp/mapped", RDONLY);
    show_use("a file to read", (char *)call(MMAP, 0, 4096, PROT_READ, SHARED, file, 0), "VmFlags");
    close(file);
    volatile char *shared = (char *)call(MMAP, 0, 4096, PROT_READ | PROT_WRITE, SHARED | ANONYMOUS, -1, 0);
    *shared = 1;
    show_use("shared memory", (char *)shared, "");
    show("sum", sum("Rss") >= all + 12 && sum("Anonymous") >= anonymous + 4 && sum("Pss_Shmem") >= in_memory + 8);
    show_use("code", (void *)uses, "VmFlags");
    show_use("stack", &file, "VmFlags");
    show("sums", read("/proc/self/smaps_rollup") > 0);
    const char *at = text;
    while (*at && *at != ' ')
        at++;
    call(WRITE, 1, (number)at, 22, 0, 0, 0);
    show(" as wide", next_line(text) - text == 82);
    const char *rest = next_line(text);
    memcpy(text, rest, length(rest) + 1);
    print_names();
    show("a thread's are the same", read("/proc/thread-self/smaps_rollup") > 0);
    call(UNLINKAT, AT_FDCWD, (number) "/tmp/mapped", 0, 0, 0, 0);
}

static void ended(void) {
    number child = fork();
    if (child == 0) {
        call(RT_SIGSUSPEND, (number)(uint64_t[]){0}, 8, 0, 0, 0, 0);
        exit(0);
    }
    number directory = open(join("/proc/", decimal(child), ""), RDONLY | DIRECTORY);
    number file = open(join("/proc/", decimal(child), "/stat"), RDONLY);
    show("another's name", write(join("/proc/", decimal(child), "/comm"), "x"));
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    call(WAITID, 1, child, 0, 4 | 0x1000000, 0, 0);
    read_on(file, 10);
    show("ended", *field(2) == 'Z');
    show("size", to_number(field(22)));
    show("how", to_number(field(51)));
    show("its arguments", read(join("/proc/", decimal(child), "/cmdline")));
    show("its program", readlink(join("/proc/", decimal(child), "/exe")));
    show("its maps", read(join("/proc/", decimal(child), "/maps")));
    show("what they use", read(join("/proc/", decimal(child), "/smaps")));
    show("the sum", read(join("/proc/", decimal(child), "/smaps_rollup")));
    wait_for(child, 0);
    show("gone", read(join("/proc/", decimal(child), "/stat")));
    show("its open file", call(PREAD64, file, (number)text, 10, 0, 0, 0));
    show("its open directory", call(GETDENTS64, directory, (number)text, 1000, 0, 0, 0));
    show("a file in there", call(OPENAT, directory, (number) "stat", 0, 0, 0, 0));
    close(file);
    close(directory);
}

static void changes(void) {
    show("write a file", write("/proc/cpuinfo", "x"));
    show("write one of a process", write("/proc/self/stat", "x"));
    show("write a setting", write("/proc/sys/kernel/osrelease", "x"));
    show("write in /sys", write("/sys/devices/system/cpu/online", "x"));
    show("make a file", open("/proc/new", WRONLY | CREAT));
    show("make a directory", call(MKDIRAT, AT_FDCWD, (number) "/proc/new", 0755, 0, 0, 0));
    show("remove a file", call(UNLINKAT, AT_FDCWD, (number) "/proc/cpuinfo", 0, 0, 0, 0));
    show("remove a process", call(UNLINKAT, AT_FDCWD, (number) "/proc/1", 0x200, 0, 0, 0));
    show("remove all", call(UNLINKAT, AT_FDCWD, (number) "/proc", 0x200, 0, 0, 0));
    show("move", call(RENAMEAT, AT_FDCWD, (number) "/proc/stat", AT_FDCWD, (number) "/proc/new", 0, 0));
    show("move out", call(RENAMEAT, AT_FDCWD, (number) "/proc/stat", AT_FDCWD, (number) "/tmp/new", 0, 0));
    show("link out", call(LINKAT, AT_FDCWD, (number) "/proc/stat", AT_FDCWD, (number) "/tmp/new", 0, 0));
    show("permissions", call(FCHMODAT, AT_FDCWD, (number) "/proc/self/stat", 0777, 0, 0, 0));
    show("may write a setting", call(FACCESSAT, AT_FDCWD, (number) "/proc/sys/kernel/osrelease", 2, 0, 0, 0));
    show("list a file", call(GETDENTS64, open("/proc/stat", RDONLY), (number)text, 100, 0, 0, 0));
    show("no such process", open("/proc/99999/stat", RDONLY));
    show("a number with a zero before it", open("/proc/01/stat", RDONLY));
}

static void settings(void) {
    static const char *const files[] = {
        "/proc/sys/kernel/ostype", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/ngroups_max",
        "/proc/sys/kernel/cap_last_cap", "/proc/sys/kernel/overflowuid", "/proc/sys/fs/nr_open",
        "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/present",
        "/proc/sys/kernel/random/entropy_avail", "/proc/sys/net/core/somaxconn",
    };
    for (size i = 0; i < sizeof files / sizeof *files; i++) {
        show(files[i], read(files[i]));
        print(text);
    }
    read("/proc/sys/kernel/osrelease");
    show("release", equal(text, "6.1.", 4));
    read("/proc/version");
    show("version", equal(text, "Linux version 6.1.", 18));
    show("identifier", read("/proc/sys/kernel/random/uuid"));
    char first[40];
    memcpy(first, text, 37);
    read("/proc/sys/kernel/random/uuid");
    show("another one", !equal(first, text, 37));
    show("of this start", read("/proc/sys/kernel/random/boot_id"));
    memcpy(first, text, 37);
    read("/proc/sys/kernel/random/boot_id");
    show("the same", equal(first, text, 37));
    show("pages", read("/sys/kernel/mm/transparent_hugepage/enabled"));
    show("processor", mode("/sys/devices/system/cpu/cpu0", 0));
    read("/proc/stat");
    show("cpu", equal(text, "cpu  ", 5));
    read("/proc/meminfo");
    show("memory", equal(text, "MemTotal:       ", 16));
}

int program(number count, char **own) {
    number id = call(GETPID, 0, 0, 0, 0, 0, 0);
    numbers(id);
    names();
    groups();
    arguments(count, own);
    own_name();
    descriptors();
    directories(id);
    maps();
    uses();
    ended();
    changes();
    settings();
    return 0;
}
