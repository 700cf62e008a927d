/* Roots of processes: `chroot`, and what paths mean then. */

#include "system.h"

enum { CHROOT = 51, FCHDIR = 50, SETRESUID = 147 };

static number at(number what, const char *path) { return call(what, (number)path, 0, 0, 0, 0, 0); }

static number make(const char *path) { return call(MKDIRAT, AT_FDCWD, (number)path, 0755, 0, 0, 0); }

static number open(const char *path, number flags) {
    return call(OPENAT, AT_FDCWD, (number)path, flags, 0644, 0, 0);
}

static void where(const char *what) {
    static char path[256];
    number length = call(GETCWD, (number)path, sizeof path, 0, 0, 0, 0);
    print(what), print(": ");
    if (length > 0)
        print(path), print("\n");
    else
        print_number(length), print("\n");
}

static void leads(const char *what, const char *path) {
    static char text[256];
    number length = call(READLINKAT, AT_FDCWD, (number)path, (number)text, sizeof text - 1, 0, 0);
    text[length > 0 ? length : 0] = 0;
    show(what, length);
    print(text), print("\n");
}

static void inside(number outside) {
    show("enter", at(CHROOT, "/tmp/root"));
    where("where");
    show("a file", open("/file", RDONLY) >= 0);
    show("not the same", open("/tmp/root/file", RDONLY));
    show("above", open("/../../file", RDONLY) >= 0);
    show("a link from the root", open("/link", RDONLY) >= 0);
    show("what was here", open("../file", RDONLY));
    show("to the root", at(CHDIR, "/"));
    where("where");
    show("above it", at(CHDIR, ".."));
    where("still");
    show("below", at(CHDIR, "/below"));
    where("where");
    show("deeper", at(CHROOT, "."));
    where("where");
    show("deeper still", at(CHROOT, "/none"));
    show("out by a directory", call(FCHDIR, outside, 0, 0, 0, 0, 0));
    where("outside");
    show("and up", at(CHDIR, ".."));
    where("outside");
    show("the old root", at(CHROOT, "."));
    where("where");
    show("all files", open("/tmp/root/file", RDONLY) >= 0);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    int status;
    make("/tmp/root"), make("/tmp/root/below"), make("/tmp/root/secret");
    call(CLOSE, open("/tmp/root/file", WRONLY | CREAT), 0, 0, 0, 0, 0);
    call(SYMLINKAT, (number)"/file", AT_FDCWD, (number)"/tmp/root/link", 0, 0, 0);
    show("no path", at(CHROOT, ""));
    show("nothing", at(CHROOT, "/tmp/none"));
    show("a file", at(CHROOT, "/tmp/root/file"));
    show("nowhere", call(CHROOT, 8, 0, 0, 0, 0, 0));
    at(CHDIR, "/tmp");
    number outside = open("/tmp", RDONLY | DIRECTORY);
    number child = fork();
    if (child == 0) {
        inside(outside);
        exit(0);
    }
    wait_for(child, &status);
    where("the parent is");
    leads("its root", "/proc/self/root");
    child = fork();
    if (child == 0) {
        show("enter", at(CHROOT, "/tmp/root"));
        number own = fork();
        if (own == 0) {
            show("a child has it", open("/file", RDONLY) >= 0);
            exit(0);
        }
        wait_for(own, &status);
        call(FCHMOD, open("/secret", RDONLY | DIRECTORY), 0700, 0, 0, 0, 0);
        call(SETRESUID, 1000, 1000, 1000, 0, 0, 0);
        show("without the capability", at(CHROOT, "/below"));
        show("what may not be searched", at(CHROOT, "/secret"));
        exit(0);
    }
    wait_for(child, &status);
    call(UNLINKAT, AT_FDCWD, (number)"/tmp/root/file", 0, 0, 0, 0);
    show("end", status);
    return 0;
}
