/* Permissions of files: what users may do with files of others, and what they change. */

#include "sockets.h"
#include "users.h"

enum {
    FCHMODAT = 53, FCHOWNAT = 54, FCHOWN = 55, TRUNCATE = 45, FCHDIR = 50, UTIMENSAT = 88, RENAMEAT2 = 276,
    INOTIFY_INIT1 = 26, INOTIFY_ADD_WATCH = 27, STATFS = 43,
};
enum { FIFO = 0010000, CHARACTER = 0020000, REGULAR = 0100000, NO_FOLLOW = 0x100, REMOVEDIR = 0x200, FOLLOW = 0x400, EMPTY_PATH = 0x1000 };
enum { NOATIME = 01000000, O_PATH = 010000000, NOW = 0x3fffffff, OMIT = 0x3ffffffe };

static number make_directory(const char *path, number mode) { return call(MKDIRAT, AT_FDCWD, (number)path, mode, 0, 0, 0); }
static number chmod(const char *path, number mode) { return call(FCHMODAT, AT_FDCWD, (number)path, mode, 0, 0, 0); }
static number chown(const char *path, number user, number group) {
    return call(FCHOWNAT, AT_FDCWD, (number)path, user, group, NO_FOLLOW, 0);
}
static number rename(const char *from, const char *to) { return call(RENAMEAT, AT_FDCWD, (number)from, AT_FDCWD, (number)to, 0, 0); }
static number link(const char *from, const char *to) { return call(LINKAT, AT_FDCWD, (number)from, AT_FDCWD, (number)to, 0, 0); }
static number symlink(const char *to, const char *path) { return call(SYMLINKAT, (number)to, AT_FDCWD, (number)path, 0, 0, 0); }
static number unlink(const char *path) { return call(UNLINKAT, AT_FDCWD, (number)path, 0, 0, 0, 0); }
static number rmdir(const char *path) { return call(UNLINKAT, AT_FDCWD, (number)path, REMOVEDIR, 0, 0, 0); }
static number may(const char *path, number what) { return call(FACCESSAT, AT_FDCWD, (number)path, what, 0, 0, 0); }

/* Returns 0 in place of a descriptor, which it closes. */
static number opens(const char *path, number flags, number mode) {
    number file = call(OPENAT, AT_FDCWD, (number)path, flags, mode, 0, 0);
    if (file < 0)
        return file;
    call(CLOSE, file, 0, 0, 0, 0, 0);
    return 0;
}

static number file(const char *path, number user, number group, number mode) {
    number result = opens(path, CREAT | RDWR, 0600);
    chown(path, user, group);
    return result + chmod(path, mode);
}

static number directory(const char *path, number user, number group, number mode) {
    number result = make_directory(path, 0700);
    chown(path, user, group);
    return result + chmod(path, mode);
}

/* Shows the mode and the owner of a file. */
static void status(const char *path) {
    unsigned record[32];
    number result = call(NEWFSTATAT, AT_FDCWD, (number)path, (number)record, NO_FOLLOW, 0, 0);
    print("  "), print(path);
    if (result < 0)
        return show(" ", result);
    show(" mode", record[4]), show("    user", record[6]), show("    group", record[7]);
}

static void classes(void) {
    file("own", 5, 0, 0070), file("group", 0, 5, 0604), file("further", 0, 30, 0640), file("others", 0, 0, 0606), file("all", 0, 0, 0777);
    unsigned groups[] = {30, 40};
    call(SETGROUPS, 2, (number)groups, 0, 0, 0, 0);
    call(SETRESGID, 5, 5, 5, 0, 0, 0), call(SETRESUID, 5, 5, 5, 0, 0, 0);
    static const char *const names[] = {"own", "group", "further", "others", "all", "missing"};
    for (int i = 0; i < 6; i++) {
        print(names[i]), print("\n");
        show("  read", opens(names[i], RDONLY, 0)), show("  write", opens(names[i], WRONLY, 0)), show("  both", opens(names[i], RDWR, 0));
        show("  cut", opens(names[i], RDONLY | TRUNC, 0)), show("  truncate", call(TRUNCATE, (number)names[i], 0, 0, 0, 0, 0));
        show("  access", may(names[i], 4)), show("  write", may(names[i], 2)), show("  execute", may(names[i], 1)), show("  there", may(names[i], 0));
        show("  path", opens(names[i], O_PATH, 0)), show("  no time", opens(names[i], RDONLY | NOATIME, 0));
        show("  make", opens(names[i], CREAT | RDWR, 0)), show("  new", opens(names[i], CREAT | EXCL | RDWR, 0));
    }
}

static void search(void) {
    directory("closed", 0, 0, 0700), file("closed/file", 0, 0, 0666), directory("listed", 0, 0, 0744), file("listed/file", 0, 0, 0666);
    directory("found", 0, 0, 0711), file("found/file", 0, 0, 0666), symlink("closed/file", "way"), directory("closed/below", 5, 5, 0777);
    number inside = call(OPENAT, AT_FDCWD, (number)"closed/below", DIRECTORY, 0, 0, 0);
    become(5);
    static const char *const paths[] = {"closed/file", "closed/none", "listed/file", "listed/none", "found/file", "found/none", "way", "closed/../found/file", "closed/.", "listed", "listed/"};
    for (int i = 0; i < 11; i++)
        print(paths[i]), show(" opens", opens(paths[i], RDONLY, 0));
    char text[64];
    show("a link", call(READLINKAT, AT_FDCWD, (number)"closed/file", (number)text, 64, 0, 0));
    show("the link", call(READLINKAT, AT_FDCWD, (number)"way", (number)text, 64, 0, 0));
    show("directory", opens("closed", DIRECTORY, 0)), show("listed", opens("listed", DIRECTORY, 0)), show("found", opens("found", DIRECTORY, 0));
    show("go to closed", call(CHDIR, (number)"closed", 0, 0, 0, 0, 0)), show("go to listed", call(CHDIR, (number)"listed", 0, 0, 0, 0, 0));
    show("in it", call(OPENAT, inside, (number)".", RDONLY, 0, 0, 0) >= 0), show("above", call(OPENAT, inside, (number)"../file", RDONLY, 0, 0, 0));
    show("go in", call(FCHDIR, inside, 0, 0, 0, 0, 0)), show("made", opens("new", CREAT | RDWR, 0600)), show("up", call(CHDIR, (number)"..", 0, 0, 0, 0, 0));
    show("file system", call(STATFS, (number)"../file", (number)text, 0, 0, 0, 0));
}

static void make_all(const char *in) {
    print(in), print("\n");
    call(CHDIR, (number)in, 0, 0, 0, 0, 0);
    show("  file", opens("a", CREAT | RDWR, 0600)), show("  directory", make_directory("b", 0700)), show("  link", symlink("x", "c"));
    show("  pipe", call(MKNODAT, AT_FDCWD, (number)"d", FIFO | 0600, 0, 0, 0)), show("  device", call(MKNODAT, AT_FDCWD, (number)"e", CHARACTER | 0600, 0x103, 0, 0));
    show("  node", call(MKNODAT, AT_FDCWD, (number)"f", REGULAR | 0600, 0, 0, 0)), show("  name", link("/tmp/t/mine", "g"));
    show("  what is there", make_directory("there", 0700)), show("  with a slash", symlink("x", "h/")), show("  move", rename("there", "moved"));
    show("  replace", rename("there", "other")), show("  exchange", call(RENAMEAT2, AT_FDCWD, (number)"there", AT_FDCWD, (number)"other", 2, 0));
    show("  remove", unlink("there")), show("  remove none", unlink("none")), show("  a directory", unlink("below")), show("  rmdir", rmdir("below"));
    show("  a file", rmdir("other")), show("  dot", rmdir(".")), show("  up", unlink(".."));
    show("  down", rename("/tmp/t/mine", "mine")), show("  with below", rename("below", "/tmp/t/open/below"));
    show("  foreign", rename("/tmp/t/foreign", "foreign"));
    call(CHDIR, (number)"/tmp/t", 0, 0, 0, 0, 0);
}

static void changes(void) {
    static const struct { const char *name; number user, mode; } all[] = {{"open", 0, 0777}, {"shut", 0, 0755}, {"unsearched", 5, 0600}, {"sticky", 0, 01777}, {"own-sticky", 5, 01755}};
    directory("/tmp/t/foreign", 0, 0, 0755);
    for (int i = 0; i < 5; i++) {
        directory(all[i].name, all[i].user, 0, all[i].mode), call(CHDIR, (number)all[i].name, 0, 0, 0, 0, 0);
        file("there", 0, 0, 0600), file("other", 0, 0, 0600), directory("below", 0, 0, 0755);
        call(CHDIR, (number)"/tmp/t", 0, 0, 0, 0, 0);
    }
    file("mine", 5, 5, 0600);
    become(5);
    for (int i = 0; i < 5; i++)
        make_all(all[i].name);
}

static void sticky(void) {
    directory("sticky", 0, 0, 01777), call(CHDIR, (number)"sticky", 0, 0, 0, 0, 0);
    file("mine", 5, 5, 0600), file("yours", 6, 6, 0666), directory("my", 5, 5, 0700), directory("your", 6, 6, 0777);
    symlink("yours", "to-yours"), chown("to-yours", 6, 6), symlink("mine", "to-mine"), chown("to-mine", 5, 5), symlink("mine", "of-root");
    show("root follows", opens("to-mine", RDONLY, 0));
    become(5);
    show("follow one's own", opens("to-mine", RDONLY, 0)), show("another's", opens("to-yours", RDONLY, 0)), show("the directory owner's", opens("of-root", RDONLY, 0));
    show("read the link", call(READLINKAT, AT_FDCWD, (number)"to-yours", (number)text, 64, 0, 0));
    show("name another's", link("yours", "a")), show("that I may write", chmod("yours", 0)), show("one's own", link("mine", "b"));
    show("move another's", rename("yours", "x")), show("over another's", rename("mine", "yours")), show("over one's own", rename("b", "mine"));
    show("remove", unlink("yours")), show("rmdir", rmdir("your")), show("rmdir mine", rmdir("my"));
    show("exchange", call(RENAMEAT2, AT_FDCWD, (number)"mine", AT_FDCWD, (number)"yours", 2, 0)), show("remove mine", unlink("mine"));
}

static void links(void) {
    directory("open", 0, 0, 0777), file("secret", 0, 0, 0600), file("readable", 0, 0, 0644), file("shared", 0, 0, 0666), file("set", 0, 0, 04777), file("set-group", 0, 0, 02777);
    file("own", 5, 5, 0), call(MKNODAT, AT_FDCWD, (number)"pipe", FIFO | 0666, 0, 0, 0), chmod("pipe", 0666), symlink("secret", "way"), file("locked", 0, 0, 02767);
    become(5);
    static const char *const names[] = {"secret", "readable", "shared", "set", "set-group", "own", "pipe", "way", "locked", "open"};
    for (int i = 0; i < 10; i++)
        print(names[i]), show(" gets a name", link(names[i], "open/new")), unlink("open/new");
    show("there", link("secret", "shared")), show("closed", link("own", "new"));
}

static void modes(void) {
    file("own", 5, 5, 0644), file("foreign", 0, 0, 0666), file("of-group", 5, 9, 0644), directory("dir", 5, 9, 0755), directory("mine", 5, 5, 0755);
    number known = call(OPENAT, AT_FDCWD, (number)"own", RDWR, 0, 0, 0), other = call(OPENAT, AT_FDCWD, (number)"foreign", RDWR, 0, 0, 0);
    number path = call(OPENAT, AT_FDCWD, (number)"own", O_PATH, 0, 0, 0);
    unsigned groups[] = {30};
    call(SETGROUPS, 1, (number)groups, 0, 0, 0, 0), call(SETRESGID, 5, 5, 5, 0, 0, 0), call(SETRESUID, 5, 5, 5, 0, 0, 0);
    show("chmod own", chmod("own", 07777)), status("own"), show("foreign", chmod("foreign", 0777));
    show("of a group", chmod("of-group", 06755)), status("of-group"), show("directory", chmod("dir", 03755)), status("dir");
    show("mine", chmod("mine", 02755)), status("mine");
    show("fchmod", call(FCHMOD, known, 0600, 0, 0, 0, 0)), show("foreign", call(FCHMOD, other, 0600, 0, 0, 0, 0)), show("path", call(FCHMOD, path, 0600, 0, 0, 0, 0));
    show("give away", chown("own", 6, -1)), show("to oneself", chown("own", 5, 5)), show("to a group", chown("own", -1, 30)), show("to another", chown("own", -1, 9));
    status("own"), show("keep all", chown("foreign", -1, -1)), show("keep the group", chown("foreign", -1, 0)), show("keep the user", chown("foreign", 0, -1));
    chmod("own", 06777), show("bits", chown("own", -1, 5)), status("own");
    chmod("own", 06767), show("without execution", chown("own", -1, 30)), status("own");
    show("fchown", call(FCHOWN, known, -1, 5, 0, 0, 0)), show("path", call(FCHOWN, path, -1, 5, 0, 0, 0));
    number omit[] = {0, OMIT, 0, OMIT}, now[] = {0, NOW, 0, NOW}, one[] = {0, NOW, 0, OMIT}, set[] = {1, 2, 3, 4};
    static const char *const names[] = {"own", "foreign", "of-root", "missing"};
    for (int i = 0; i < 4; i++) {
        print(names[i]), print("\n");
        show("  now", call(UTIMENSAT, AT_FDCWD, (number)names[i], 0, 0, 0, 0)), show("  both", call(UTIMENSAT, AT_FDCWD, (number)names[i], (number)now, 0, 0, 0));
        show("  one", call(UTIMENSAT, AT_FDCWD, (number)names[i], (number)one, 0, 0, 0)), show("  set", call(UTIMENSAT, AT_FDCWD, (number)names[i], (number)set, 0, 0, 0));
        show("  neither", call(UTIMENSAT, AT_FDCWD, (number)names[i], (number)omit, 0, 0, 0));
    }
}

static void bits(const char *name) {
    file(name, 5, 5, 06777);
    number to = call(OPENAT, AT_FDCWD, (number)name, RDWR, 0, 0, 0);
    show("write", call(WRITE, to, (number)"x", 1, 0, 0, 0)), status(name);
    file(name, 5, 5, 06777), show("ftruncate", call(FTRUNCATE, to, 0, 0, 0, 0, 0)), status(name);
    file(name, 5, 5, 06767), show("no execution", call(PWRITE64, to, (number)"x", 1, 0, 0, 0)), status(name);
    file(name, 5, 9, 06767), show("another group", call(PWRITE64, to, (number)"x", 1, 0, 0, 0)), status(name);
}

static void root_bits(void) {
    bits("root"), file("root", 5, 5, 06777), chown("root", 6, 6), status("root"), directory("dir", 5, 5, 06777), chown("dir", 6, 6), status("dir");
}

static void file_bits(void) {
    file("bits", 0, 0, 06777);
    keep(CAP_CHOWN | CAP_FOWNER | CAP_DAC_OVERRIDE, -1, 0), bits("kept");
    show("open", opens("bits", RDWR | TRUNC, 0)), status("bits");
}

static void owners(void) {
    directory("set", 0, 9, 02777), directory("plain", 0, 9, 0777);
    static const char *const places[] = {"plain", "set"};
    become(5), call(UMASK, 0, 0, 0, 0, 0, 0);
    for (int i = 0; i < 2; i++) {
        call(CHDIR, (number)places[i], 0, 0, 0, 0, 0);
        opens("file", CREAT | RDWR, 0666), make_directory("below", 0777), symlink("x", "link"), call(MKNODAT, AT_FDCWD, (number)"pipe", FIFO | 0600, 0, 0, 0);
        opens("bits", CREAT | RDWR, 06777), opens("no-bits", CREAT | RDWR, 02767), make_directory("below/2", 0700);
        static const char *const names[] = {"file", "below", "link", "pipe", "bits", "no-bits", "below/2"};
        for (int j = 0; j < 7; j++)
            status(names[j]);
        call(CHDIR, (number)"/tmp/t", 0, 0, 0, 0, 0);
    }
    int ends[2];
    unsigned record[32];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0), call(FSTAT, ends[0], (number)record, 0, 0, 0, 0);
    show("pipe", record[6] * 100 + record[7]);
    call(FSTAT, make(UNIX, STREAM), (number)record, 0, 0, 0, 0), show("socket", record[6] * 100 + record[7]);
    call(FSTAT, call(MEMFD_CREATE, (number)"x", 0, 0, 0, 0, 0), (number)record, 0, 0, 0, 0), show("memory", record[6] * 100 + record[7]);
}

static void real(void) {
    file("of-root", 0, 0, 0600), file("of-five", 5, 5, 0600), directory("closed", 0, 0, 0700), file("closed/file", 0, 0, 0666), file("program", 0, 0, 0700);
    call(SETRESGID, 5, 0, 0, 0, 0, 0), call(SETRESUID, 5, 0, 0, 0, 0, 0);
    show("root's", may("of-root", 4)), show("five's", may("of-five", 6)), show("in a closed one", may("closed/file", 4)), show("but opens", opens("closed/file", RDONLY, 0));
    show("program", may("program", 1)), show("unknown", may("program", 8));
    call(SETRESUID, 0, 5, 0, 0, 0, 0);
    show("root's", may("of-root", 4)), show("opens", opens("of-root", RDONLY, 0)), show("program", may("program", 1)), show("no program", may("of-root", 1));
}

static void with(const char *name, unsigned set) {
    print(name), print("\n");
    call(SETFSGID, 5, 0, 0, 0, 0, 0), call(SETFSUID, 5, 0, 0, 0, 0, 0), keep(set, -1, 0);
    show("  read", opens("secret", RDONLY, 0)), show("  write", opens("secret", WRONLY, 0)), show("  search", may("closed/file", 0) + opens("closed/file", RDONLY, 0));
    show("  list", opens("closed", DIRECTORY, 0)), show("  make", opens("closed/new", CREAT | RDWR, 0600)), show("  chmod", chmod("secret", 0600));
    show("  chown", chown("secret", 0, 0)), show("  device", call(MKNODAT, AT_FDCWD, (number)"device", CHARACTER | 0600, 0x103, 0, 0));
    show("  remove", unlink("sticky/one")), show("  no time", opens("readable", RDONLY | NOATIME, 0)), show("  group bit", chmod("group", 02777)), status("group");
}

static void none(void) { with("none", 0); }
static void override(void) { with("DAC_OVERRIDE", CAP_DAC_OVERRIDE); }
static void read_search(void) { with("DAC_READ_SEARCH", CAP_DAC_READ_SEARCH); }
static void owner(void) { with("FOWNER", CAP_FOWNER); }
static void set_id(void) { with("FSETID", CAP_FSETID); }
static void change_owner(void) { with("CHOWN", CAP_CHOWN); }
static void make_devices(void) { with("MKNOD", CAP_MKNOD); }

static void powers(void) {
    static void (*const all[])(void) = {none, override, read_search, owner, set_id, change_owner, make_devices};
    for (int i = 0; i < 7; i++) {
        file("secret", 0, 0, 0600), directory("closed", 0, 0, 0700), file("closed/file", 0, 0, 0600), unlink("closed/new"), unlink("device");
        directory("sticky", 0, 0, 01777), file("sticky/one", 0, 0, 0600), file("readable", 0, 0, 0644), file("group", 5, 9, 0777), chmod(".", 0777);
        apart("with", all[i]);
    }
}

static void sockets(void) {
    struct { unsigned short family; char path[8]; } open = {UNIX, "open"}, shut = {UNIX, "shut"}, plain = {UNIX, "plain"}, closed = {UNIX, "no/a"}, new = {UNIX, "new"};
    number one = make(UNIX, STREAM), two = make(UNIX, STREAM);
    show("bind", bind(one, &open, 10) + bind(two, &shut, 10) + listen(one, 5) + listen(two, 5)), chmod("open", 0622), chmod("shut", 0644);
    file("plain", 0, 0, 0644), directory("no", 0, 0, 0700);
    chmod(".", 0755), become(5);
    show("open", connect(make(UNIX, STREAM), &open, 10)), show("shut", connect(make(UNIX, STREAM), &shut, 10)), show("plain", connect(make(UNIX, STREAM), &plain, 10));
    show("closed", connect(make(UNIX, STREAM), &closed, 10)), show("bind", bind(make(UNIX, STREAM), &new, 10)), show("bind in a closed one", bind(make(UNIX, STREAM), &closed, 10));
}

static void others(void) {
    file("unreadable", 0, 0, 0622), file("readable", 0, 0, 0644), call(MKNODAT, AT_FDCWD, (number)"pipe", FIFO | 0600, 0, 0, 0), directory("closed", 0, 0, 0711);
    number root = fork();
    if (root == 0)
        for (;;)
            call(PPOLL, 0, 0, 0, 0, 0, 0);
    become(5);
    number watches = call(INOTIFY_INIT1, 0, 0, 0, 0, 0, 0);
    show("watch", call(INOTIFY_ADD_WATCH, watches, (number)"readable", 2, 0, 0, 0)), show("unreadable", call(INOTIFY_ADD_WATCH, watches, (number)"unreadable", 2, 0, 0, 0));
    show("directory", call(INOTIFY_ADD_WATCH, watches, (number)"closed", 2, 0, 0, 0)), show("pipe", opens("pipe", RDONLY | 04000, 0));
    show("null", opens("/dev/null", RDWR, 0)), show("zero", opens("/dev/zero", RDONLY, 0)), show("master", opens("/dev/ptmx", RDWR, 0));
    show("own status", opens("/proc/self/status", RDONLY, 0)), show("setting", opens("/proc/sys/kernel/hostname", WRONLY, 0));
    show("own memory", opens("/proc/self/maps", RDONLY, 0)), show("own environment", opens("/proc/self/environ", RDONLY, 0));
    call(PRCTL, 4, 1, 0, 0, 0, 0);
    show("own environment", opens("/proc/self/environ", RDONLY, 0)), status("/proc/self/environ"), status("/proc/self/fd");
    char path[64] = "/proc/", digits[24], *at = digits + sizeof digits, *end = path + 6;
    for (number rest = root; rest; rest /= 10)
        *--at = '0' + rest % 10;
    while (at < digits + sizeof digits)
        *end++ = *at++;
    static const char *const names[] = {"/status", "/stat", "/cmdline", "/maps", "/environ", "/auxv", "/smaps", "/comm", "/fd", "/fd/0", "/fd/77", "/cwd", "/cwd/tmp", "/exe", "/root", "/limits"};
    for (int i = 0; i < 16; i++) {
        memcpy(end, names[i], length(names[i]) + 1);
        print(names[i]), show(" opens", opens(path, RDONLY, 0));
        if (i > 8)
            show("  leads", call(READLINKAT, AT_FDCWD, (number)path, (number)text, 200, 0, 0) < 0 ? -1 : 1);
    }
    memcpy(end, "/comm", 6), show("write", opens(path, WRONLY, 0));
    memcpy(end, "/oom_score_adj", 15), show("write", opens(path, WRONLY, 0));
}

static void in_directory(const char *what, void work(void)) {
    call(UMASK, 022, 0, 0, 0, 0, 0), make_directory("/tmp/t", 0755), chmod("/tmp/t", 0755), call(CHDIR, (number)"/tmp/t", 0, 0, 0, 0, 0);
    apart(what, work);
    static char moved[] = "/tmp/t-a";
    rename("/tmp/t", moved), moved[7]++;
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    in_directory("classes", classes), in_directory("search", search), in_directory("changes", changes), in_directory("sticky", sticky), in_directory("links", links), in_directory("modes", modes);
    in_directory("root's bits", root_bits), in_directory("bits", file_bits), in_directory("owners", owners), in_directory("real users", real), in_directory("powers", powers);
    in_directory("sockets", sockets), in_directory("others", others);
    return 0;
}
