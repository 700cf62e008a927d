/* Shared memory of System V: keys, identifiers, attachments over fork, exec and exit, and its end. */

#include "sysv.h"

enum { LOCK = 11, UNLOCK, SHM_STAT, SHM_INFO, SHM_STAT_ANY };
enum { RDONLY_MEMORY = 010000, ROUNDS = 020000, REPLACES = 040000, EXECUTES = 0100000, HUGE = 04000 };
enum { PAGE = 4096 };

struct segment {
    struct permissions permissions;
    size size;
    number attached, detached, changed;
    int maker, last;
    size attachments;
    number unused[2];
};

static number made(number key, number size, number flags) { return call(SHMGET, key, size, flags, 0, 0, 0); }
static number attach(number id, number address, number flags) { return call(SHMAT, id, address, flags, 0, 0, 0); }
static number detach(number address) { return call(SHMDT, address, 0, 0, 0, 0, 0); }
static number control(number id, number what, void *buffer) { return call(SHMCTL, id, what, (number)buffer, 0, 0, 0); }
static number finish(number id) { return control(id, REMOVE, 0); }

static number attachments(number id) {
    struct segment segment;
    number result = control(id, STAT, &segment);
    return result < 0 ? result : (number)segment.attachments;
}

static void show_segment(number id) {
    struct segment segment = {{0}, 0, 0, 0, 0, 0, 0, 0, {0}};
    number result = control(id, STAT, &segment);
    show("status", result);
    if (result < 0)
        return;
    show_permissions(&segment.permissions);
    show("  size", segment.size);
    show_time("  attached", segment.attached);
    show_time("  detached", segment.detached);
    show_time("  changed", segment.changed);
    show("  maker", segment.maker == own());
    show("  last", segment.last == 0 ? 0 : segment.last == own() ? 1 : 2);
    show("  attachments", segment.attachments);
}

static void keys(void) {
    number first = made(0, 10, 0600);
    show("private", first);
    show("another", made(0, 10, 0600));
    show("no key", made(77, 10, 0));
    number third = made(77, PAGE + 1, CREATE | 0640);
    show("key", third);
    show("found", made(77, 0, 0) == third);
    show("found smaller", made(77, 5, 0777) == third);
    show("larger", made(77, PAGE + 2, 0));
    show("in its last page", made(77, 2 * PAGE, CREATE));
    show("exclusive", made(77, 10, CREATE | EXCLUSIVE));
    show("exclusive larger", made(77, 1 << 20, CREATE | EXCLUSIVE));
    show("exclusive alone", made(77, 10, EXCLUSIVE) == third);
    show("nothing", made(78, 0, CREATE));
    show("too large", made(78, -1, CREATE));
    show("too large for a file", made(78, (number)(1ul << 63), CREATE));
    show("huge", made(78, 10, CREATE | HUGE | 0600));
    show("huge of a bad size", made(78, 10, CREATE | HUGE | 5 << 26 | 0600));
    show_segment(third);
    show_file("/proc/sysvipc/shm");
    show("removed", finish(first));
    show("removed again", finish(first));
    show_segment(first);
    show("removed", finish(first + 1));
    show("by its key", made(77, 0, 0) == third);
    show("removed", finish(third));
    show("its key", made(77, 0, 0));
    number last = 0;
    for (int i = 0; i < 100; i++) {
        last = made(0, 1, 0600);
        finish(last);
    }
    show("after many", last);
    show("a negative one", finish(-1));
    show("with another number", finish(last + 32768));
}

static void commands(void) {
    number id = made(5, 3 * PAGE, CREATE | 0604);
    struct segment segment;
    number limits[9], use[6];
    show("negative command", control(id, -1, &segment));
    show("unknown command", control(id, 99, &segment));
    show("unknown", control(4000, STAT, &segment));
    show("nowhere", control(id, STAT, (void *)8));
    show("by index", control(id % 32768, SHM_STAT, &segment) == id);
    show("any by index", control(id % 32768, SHM_STAT_ANY, &segment) == id);
    show("bad index", control(4000, SHM_STAT, &segment));
    show("limits", control(0, INFO, limits));
    for (int i = 0; i < 5; i++)
        show("  limit", limits[i]);
    show("limits nowhere", control(0, INFO, (void *)8));
    number address = attach(id, 0, 0);
    *(char *)address = 1;
    show("use", control(0, SHM_INFO, use));
    show("  segments", use[0]);
    show("  pages", use[1]);
    show("  resident", use[2]);
    detach(address);
    show("lock", control(id, LOCK, 0));
    control(id, STAT, &segment);
    show("mode", segment.permissions.mode);
    show("unlock", control(id, UNLOCK, 0));
    control(id, STAT, &segment);
    show("mode", segment.permissions.mode);
    segment.permissions.mode = 07421;
    segment.permissions.user = 12;
    segment.permissions.group = 13;
    segment.permissions.key = 99;
    segment.size = 1;
    show("set", control(id, SET, &segment));
    show("set nowhere", control(id, SET, (void *)8));
    show_segment(id);
    segment.permissions.user = -1;
    show("to nobody", control(id, SET, &segment));
    show("removed", finish(id));
    show("unknown is set", control(id, SET, &segment));
    show("unknown is locked", control(id, LOCK, 0));
}

static void places(void) {
    number id = made(0, 3 * PAGE - 5, 0600), other = made(0, PAGE, 0600);
    volatile char *at = (char *)attach(id, 0, 0);
    show("zero", at[3 * PAGE - 1]);
    at[10] = 7;
    at[3 * PAGE - 1] = 9;
    show_segment(id);
    number place = (number)at + 16 * PAGE;
    show("unknown", attach(4000, 0, 0));
    show("negative", attach(-1, 0, 0));
    show("part of a page", attach(id, place + 5, 0));
    show("rounded", attach(id, place + 5, ROUNDS) == place);
    show("same bytes", ((volatile char *)place)[10]);
    show("taken", attach(id, place, 0));
    show("taken in part", attach(id, place - 2 * PAGE, 0));
    show("replaced", attach(id, place, REPLACES) == place);
    show("replaced nowhere", attach(id, 0, REPLACES));
    show("replaced in the first page", attach(id, 5, REPLACES | ROUNDS));
    show("beyond the end", attach(id, 1l << 60, 0));
    show("around the end", attach(id, -PAGE, 0));
    show("attachments", attachments(id));
    number reader = attach(id, 0, RDONLY_MEMORY);
    show("read only", ((volatile char *)reader)[10]);
    number zeros = call(OPENAT, AT_FDCWD, (number) "/dev/zero", RDONLY, 0, 0, 0);
    show("written", call(READ, zeros, reader, 1, 0, 0, 0));
    show("to be written", call(MPROTECT, reader, PAGE, PROT_READ | PROT_WRITE, 0, 0, 0));
    show("let go", detach(reader));
    reader = attach(id, 0, RDONLY_MEMORY | EXECUTES);
    show("to be executed", reader > 0);
    detach(reader);
    show("divided", call(MPROTECT, place + PAGE, PAGE, PROT_READ, 0, 0, 0));
    show("attachments", attachments(id));
    show("undivided", call(MPROTECT, place + PAGE, PAGE, PROT_READ | PROT_WRITE, 0, 0, 0));
    show("attachments", attachments(id));
    show("a part gone", call(MUNMAP, place, PAGE, 0, 0, 0, 0));
    show("attachments", attachments(id));
    show("another in its place", attach(other, place, 0) == place);
    show("let go", detach(place));
    show("attachments of it", attachments(other));
    show("attachments", attachments(id));
    show("not its start", detach((number)at + PAGE));
    show("part of a page", detach((number)at + 1));
    show("nothing there", detach(place));
    show("not attached", detach((number)&id & -PAGE));
    number moved = call(MREMAP, (number)at, 3 * PAGE, 3 * PAGE, 3, place, 0);
    show("moved", moved == place);
    show("attachments", attachments(id));
    show("its bytes", ((volatile char *)moved)[10]);
    show("where it was", detach((number)at));
    show("let go", detach(moved));
    show("attachments", attachments(id));
    moved = attach(id, place, 0);
    show("shorter", call(MREMAP, moved, 3 * PAGE, PAGE, 0, 0, 0) == moved);
    show("longer", call(MREMAP, moved, PAGE, 3 * PAGE, 0, 0, 0) == moved);
    show("attachments", attachments(id));
    show("kept bytes", ((volatile char *)moved)[3 * PAGE - 1]);
    detach(moved);
    show_segment(id);
    finish(id), finish(other);
}

static void children(char **arguments) {
    number id = made(0, PAGE, 0600);
    volatile int *at = (int *)attach(id, 0, 0);
    at[0] = 1;
    number child = fork();
    if (child == 0) {
        at[1] = at[0] + 1;
        at[2] = (int)attachments(id);
        exit(0);
    }
    wait_for(child, 0);
    show("the child's", at[1]);
    show("attachments then", at[2]);
    show_segment(id);
    child = fork();
    if (child == 0) {
        char text[] = {'a' + id % 20, 'a' + id / 20 % 20, 0};
        char *given[] = {arguments[0], text, 0};
        call(EXECVE, (number)arguments[0], (number)given, 0, 0, 0, 0);
        exit(1);
    }
    int status;
    wait_for(child, &status);
    show("attachments in another program", status >> 8);
    child = fork();
    if (child == 0) {
        call(KILL, own(), SIGKILL, 0, 0, 0, 0);
        exit(0);
    }
    wait_for(child, 0);
    show("killed", attachments(id));
    show("removed", finish(id));
    show_segment(id);
    show("and again", finish(id));
    number second = attach(id, 0, 0);
    show("attached all the same", second > 0);
    show("its bytes", ((volatile int *)second)[0]);
    child = fork();
    if (child == 0) {
        pause(50);
        at[3] = (int)attachments(id);
        exit(0);
    }
    show("let go", detach((number)at));
    show("let go", detach(second));
    show("the child has it", attachments(id));
    wait_for(child, 0);
    show("nobody has it", attachments(id));
    id = made(0, PAGE, 0600);
    at = (int *)attach(id, 0, 0);
    finish(id);
    show("unmapped", call(MUNMAP, (number)at, PAGE, 0, 0, 0, 0));
    show("nobody has it", attachments(id));
}

int program(number count, char **arguments) {
    if (count > 1) {
        number id = arguments[1][0] - 'a' + (arguments[1][1] - 'a') * 20;
        struct segment segment;
        // Identifiers have a number above the index, which is the parent's; the index is enough.
        number result = control(id, SHM_STAT_ANY, &segment);
        return result < 0 ? 99 : (int)segment.attachments;
    }
    show_file("/proc/sys/kernel/shmmax");
    show_file("/proc/sys/kernel/shmall");
    show_file("/proc/sys/kernel/shmmni");
    keys();
    commands();
    places();
    children(arguments);
    show_file("/proc/sysvipc/shm");
    return 0;
}
