/* Files, directories and descriptors. The numbers are what Linux returns. */

#include "system.h"

static number open(const char *path, number flags) { return call(OPENAT, AT_FDCWD, (number)path, flags, 0644, 0, 0); }
static number close(number file) { return call(CLOSE, file, 0, 0, 0, 0, 0); }
static number write(number file, const char *text) { return call(WRITE, file, (number)text, length(text), 0, 0, 0); }
static number seek(number file, number to, number from) { return call(LSEEK, file, to, from, 0, 0, 0); }

static void show_content(number file) {
    char text[64];
    seek(file, 0, 0);
    number count = call(READ, file, (number)text, sizeof text - 1, 0, 0, 0);
    text[count < 0 ? 0 : count] = 0;
    show("read", count);
    print(text);
    print("\n");
}

/* Bytes that are not all there, in memory or in the file. */
static void transfer_at_edges(void) {
    enum { PAGE = 4096, LARGEST = 0x7fffffffffffffff };
    char *last = (char *)call(MMAP, 0, 2 * PAGE, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS, -1, 0) + PAGE - 4;
    call(MUNMAP, (number)last + 4, PAGE, 0, 0, 0, 0);
    char *nowhere = last + 4;
    number file = open("/tmp/edges", RDWR | CREAT | TRUNC);
    show("write nothing behind the end", call(PWRITE64, file, (number)last, 0, 100, 0, 0));
    show("length", call(LSEEK, file, 0, 2, 0, 0, 0));
    show("write from nowhere", call(WRITE, file, (number)nowhere, 5, 0, 0, 0));
    show("length", call(LSEEK, file, 0, 2, 0, 0, 0));
    last[0] = 'e', last[1] = 'd', last[2] = 'g', last[3] = 'e';
    show("write up to the edge", call(WRITE, file, (number)last, 9, 0, 0, 0));
    struct { char *at; number length; } vectors[] = {{last, 2}, {nowhere, 3}, {last, 1}};
    show("write two and from nowhere", call(WRITEV, file, (number)vectors, 3, 0, 0, 0));
    show("position", call(LSEEK, file, 0, 1, 0, 0, 0));
    show("write from nowhere first", call(WRITEV, file, (number)(vectors + 1), 2, 0, 0, 0));
    show("write at the largest offset", call(PWRITE64, file, (number)last, 4, LARGEST, 0, 0));
    show("length", call(LSEEK, file, 0, 2, 0, 0, 0));
    show("read to nowhere at the end", call(READ, file, (number)nowhere, 5, 0, 0, 0));
    show("read to nowhere", call(PREAD64, file, (number)nowhere, 5, 1, 0, 0));
    call(LSEEK, file, 1, 0, 0, 0, 0);
    show("read up to the edge", call(READ, file, (number)last, 9, 0, 0, 0));
    show("position", call(LSEEK, file, 0, 1, 0, 0, 0));
    show("bytes", last[0] << 24 | last[1] << 16 | last[2] << 8 | last[3]);
    number zero = open("/dev/zero", RDWR), null = open("/dev/null", RDWR);
    show("zeros up to the edge", call(READ, zero, (number)last - 4, 9, 0, 0, 0));
    show("zeros to nowhere", call(READ, zero, (number)nowhere, 9, 0, 0, 0));
    show("nothing from nowhere", call(WRITE, null, (number)nowhere, 5, 0, 0, 0));
    show("into zeros from nowhere", call(WRITE, zero, (number)nowhere, 5, 0, 0, 0));
    number full = open("/dev/full", RDWR);
    show("into what is full from nowhere", call(WRITE, full, (number)nowhere, 5, 0, 0, 0));
    show("map beyond the largest offset", call(MMAP, 0, 2 * PAGE, PROT_READ, PRIVATE, file, -PAGE));
    call(FTRUNCATE, file, LARGEST, 0, 0, 0, 0);
    show("read two at the largest offset", call(PREADV, file, (number)vectors, 2, LARGEST - 3, 0, 0));
    show("nothing from where nobody is", call(WRITE, null, -1, 5, 0, 0, 0));
    show("protect", call(MPROTECT, (number)last & -PAGE, PAGE, PROT_READ, 0, 0, 0));
    show("zeros to what is read-only", call(READ, zero, (number)last, 4, 0, 0, 0));
    show("allow again", call(MPROTECT, (number)last & -PAGE, PAGE, PROT_READ | PROT_WRITE, 0, 0, 0));
    show("the file to it", call(PREAD64, file, (number)last, 4, 0, 0, 0));
    number appended = open("/tmp/edges", WRONLY | APPEND);
    show("append at the largest offset", call(WRITE, appended, (number)last, 1, 0, 0, 0));
    show("unlink", call(UNLINKAT, AT_FDCWD, (number)"/tmp/edges", 0, 0, 0, 0));
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    show("umask", call(UMASK, 022, 0, 0, 0, 0, 0) >= 0);
    show("mkdir", call(MKDIRAT, AT_FDCWD, (number)"/tmp/d", 0777, 0, 0, 0));
    show("mkdir again", call(MKDIRAT, AT_FDCWD, (number)"/tmp/d", 0777, 0, 0, 0));
    show("chdir", call(CHDIR, (number)"/tmp/d", 0, 0, 0, 0, 0));
    char path[64];
    show("getcwd", call(GETCWD, (number)path, sizeof path, 0, 0, 0, 0));
    print(path);
    print("\n");
    show("getcwd, too short", call(GETCWD, (number)path, 3, 0, 0, 0, 0));
    show("open what is missing", open("file", RDWR));
    number file = open("file", RDWR | CREAT | EXCL);
    show("open", file);
    show("open again", open("file", RDWR | CREAT | EXCL));
    show("write", write(file, "hello, world"));
    show_content(file);
    show("seek before the beginning", seek(file, -20, 1));
    show("seek beyond the end", seek(file, 3, 2));
    show("write there", write(file, "!"));
    show("pwrite", call(PWRITE64, file, (number)"HE", 2, 0, 0, 0));
    number vectors[] = {(number)path, 5, (number)(path + 10), 50};
    show("seek", seek(file, 0, 0));
    show("readv", call(READV, file, (number)vectors, 2, 0, 0, 0));
    show("as written", equal(path, "HEllo", 5) && equal(path + 10, ", world\0\0\0!", 11));
    show("too many vectors", call(READV, file, (number)vectors, 1025, 0, 0, 0));
    show("read to nowhere", call(PREAD64, file, 8, 4, 0, 0, 0));
    show("read nothing to nowhere", call(PREAD64, file, 8, 0, 0, 0, 0));
    show("write from nowhere", call(WRITE, file, 8, 4, 0, 0, 0));
    show("truncate", call(FTRUNCATE, file, 5, 0, 0, 0, 0));
    show_content(file);
    number copy = call(DUP, file, 0, 0, 0, 0, 0);
    show("dup", copy);
    show("one position for both", seek(copy, 0, 1));
    show("dup3", call(DUP3, file, 9, 0, 0, 0, 0));
    show("dup3 to itself", call(DUP3, 9, 9, 0, 0, 0, 0));
    show("flags", call(FCNTL, 9, 3, 0, 0, 0, 0) & 3);
    show("close", close(file) | close(copy) | close(9));
    show("close again", close(file));
    file = open("file", WRONLY | APPEND);
    show("read what is write-only", call(READ, file, (number)path, 1, 0, 0, 0));
    show("append", write(file, "+"));
    show("close", close(file));
    file = open("file", RDONLY);
    show("write what is read-only", write(file, "-"));
    show_content(file);
    unsigned char status[128];
    show("fstat", call(FSTAT, file, (number)status, 0, 0, 0, 0));
    show("mode", *(uint32_t *)(status + 16));
    show("links", *(uint32_t *)(status + 20));
    show("length", *(number *)(status + 48));
    show("close", close(file));
    show("link", call(LINKAT, AT_FDCWD, (number)"file", AT_FDCWD, (number)"other", 0, 0));
    show("symlink", call(SYMLINKAT, (number)"other", AT_FDCWD, (number)"link", 0, 0, 0));
    show("readlink", call(READLINKAT, AT_FDCWD, (number)"link", (number)path, 3, 0, 0));
    show("stat", call(NEWFSTATAT, AT_FDCWD, (number)"link", (number)status, 0, 0, 0));
    show("links", *(uint32_t *)(status + 20));
    show("stat of the link", call(NEWFSTATAT, AT_FDCWD, (number)"link", (number)status, 0x100, 0, 0));
    show("mode", *(uint32_t *)(status + 16));
    show("rename", call(RENAMEAT, AT_FDCWD, (number)"file", AT_FDCWD, (number)"link", 0, 0));
    show("rename of a directory into itself", call(RENAMEAT, AT_FDCWD, (number)"/tmp/d", AT_FDCWD, (number)"x", 0, 0));
    number directory = open(".", RDONLY | DIRECTORY);
    char entries[512];
    number bytes = call(GETDENTS64, directory, (number)entries, sizeof entries, 0, 0, 0);
    number names = 0;
    for (number at = 0; at < bytes; at += *(uint16_t *)(entries + at + 16))
        names++;
    show("entries", names);
    show("at the end", call(GETDENTS64, directory, (number)entries, sizeof entries, 0, 0, 0));
    show("read a directory", call(READ, directory, (number)entries, 1, 0, 0, 0));
    show("write a directory", open(".", RDWR));
    show("a file is no directory", open("other", DIRECTORY));
    show("nor has it entries", open("other/x", RDONLY));
    show("unlink", call(UNLINKAT, AT_FDCWD, (number)"link", 0, 0, 0, 0));
    show("rmdir of what is not empty", call(UNLINKAT, AT_FDCWD, (number)"/tmp/d", 0x200, 0, 0, 0));
    show("unlink", call(UNLINKAT, AT_FDCWD, (number)"other", 0, 0, 0, 0));
    show("rmdir", call(UNLINKAT, AT_FDCWD, (number)"/tmp/d", 0x200, 0, 0, 0));
    show("getcwd of what was removed", call(GETCWD, (number)path, sizeof path, 0, 0, 0, 0));
    show("make something there", call(MKDIRAT, AT_FDCWD, (number)"e", 0777, 0, 0, 0));
    number zero = open("/dev/zero", RDWR), full = open("/dev/full", RDWR), null = open("/dev/null", RDWR);
    path[0] = 1;
    show("read zeros", call(READ, zero, (number)path, 5, 0, 0, 0) + path[0]);
    show("read the end", call(READ, null, (number)path, 5, 0, 0, 0));
    show("write to what is full", write(full, "x"));
    show("write to nothing", write(null, "x"));
    show("no such call", call(1000, 0, 0, 0, 0, 0, 0));
    transfer_at_edges();
    return 0;
}
