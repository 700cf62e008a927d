/* Filters of system calls, `pagemap`, misaligned accesses, and the short records of terminals' modes. */

#include "system.h"

enum { PRCTL = 167, SETRESUID = 147, GETUID = 174, SECCOMP = 277 };
enum { GET_SECCOMP = 21, SET_SECCOMP = 22, SET_NO_NEW_PRIVS = 38 };
enum { ALLOW = 0x7fff0000, ERROR = 0x50000, TRAP = 0x30000, TRACE = 0x7ff00000, END_IT = 0, END_ALL = (int)0x80000000 };
enum { LOAD = 0x20, IF = 0x15, RETURN = 6 };
enum { SIGSYS = 31, SIGINFO = 4, NODEFER = 0x40000000 };

struct instruction {
    uint16_t code;
    uint8_t then, otherwise;
    uint32_t operand;
};

struct program {
    uint16_t length;
    const struct instruction *instructions;
};

static number filter(const struct instruction *instructions, int length, number flags) {
    struct program program = {length, instructions};
    return call(SECCOMP, 1, flags, (number)&program, 0, 0, 0);
}

/* Sets a filter that returns this result for `getuid` and allows all other calls. */
static number filter_call(unsigned result) {
    struct instruction all[] = {{LOAD, 0, 0, 0}, {IF, 0, 1, GETUID}, {RETURN, 0, 0, result}, {RETURN, 0, 0, ALLOW}};
    return filter(all, 4, 0);
}

static number uid(number argument) { return call(GETUID, argument, 2, 3, 4, 5, 6); }

static volatile number seen[8];

static void handle(int signal, int *info, void *context) {
    (void)context;
    seen[0] = signal;
    seen[1] = info[1];
    seen[2] = info[2];
    seen[3] = info[6];
    seen[4] = (unsigned)info[7];
    seen[5] = ((size *)info)[2] != 0;
    if (signal == SIGBUS) {
        show("  code", info[2]);
        show("  the address", ((size *)info)[2] & 15);
        exit(3);
    }
}

__asm__("give_back: mov x8, #139\nsvc #0\n");
void give_back(void);

static void catch(int signal) {
    struct {
        void *handler;
        size flags;
        void *back;
        size mask;
    } action = {handle, SIGINFO | 0x04000000, give_back, 0};
    call(RT_SIGACTION, signal, (number)&action, 0, 8, 0, 0);
}

/* Runs a function in a child, and shows the child's status. */
static void child(const char *what, void (*does)(void)) {
    int status = 0;
    print(what), print("\n");
    number id = fork();
    if (id == 0) {
        does();
        exit(0);
    }
    wait_for(id, &status);
    show("  ended", status);
}

static void fails(void) {
    show("  mode", call(PRCTL, GET_SECCOMP, 0, 0, 0, 0, 0));
    show("  filter", filter_call(ERROR | 17));
    show("  call", uid(1));
    show("  mode", call(PRCTL, GET_SECCOMP, 0, 0, 0, 0, 0));
    show("  another", filter_call(ERROR | 5000));
    show("  the younger one", uid(1));
    show("  allowed", filter_call(ALLOW));
    show("  as before", uid(1));
    int status;
    number id = fork();
    if (id == 0)
        exit((int)-uid(1) & 0xff);
    wait_for(id, &status);
    show("  a child has them", status >> 8);
    show("  traced by nobody", filter_call(TRACE));
    show("  the stricter one", uid(1));
    show("  strict", call(PRCTL, SET_SECCOMP, 1, 0, 0, 0, 0));
    struct instruction all[] = {{LOAD, 0, 0, 16}, {IF, 0, 1, 77}, {RETURN, 0, 0, ERROR | 1}, {RETURN, 0, 0, ALLOW}};
    show("  by arguments", filter(all, 4, 0));
    show("  these", call(UMASK, 77, 0, 0, 0, 0, 0));
    show("  not these", call(UMASK, 18, 0, 0, 0, 0, 0) >= 0);
}

static void untraced(void) {
    show("  filter", filter_call(TRACE));
    show("  call", uid(1));
}

static void traps(void) {
    catch(SIGSYS);
    show("  filter", filter_call(TRAP | 99));
    show("  the argument stays", uid(1234));
    show("  signal", seen[0]);
    show("  error", seen[1]);
    show("  code", seen[2]);
    show("  call", seen[3]);
    show("  architecture", seen[4]);
    show("  from somewhere", seen[5]);
}

static void killed(void) {
    catch(SIGSYS);
    filter_call(END_IT);
    uid(1);
}

static void killed_whole(void) {
    catch(SIGSYS);
    filter_call(END_ALL);
    uid(1);
}

static void killed_by_unknown(void) {
    filter_call(0x12340000);
    uid(1);
}

static void strict(void) {
    show("  strict", call(SECCOMP, 0, 0, 0, 0, 0, 0));
    print("  may write\n");
    call(93, 7, 0, 0, 0, 0, 0);
}

static void too_strict(void) {
    call(SECCOMP, 0, 0, 0, 0, 0, 0);
    uid(1);
}

static void powerless(void) {
    call(SETRESUID, 1000, 1000, 1000, 0, 0, 0);
    show("  without power", filter_call(ALLOW));
    call(PRCTL, SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
    show("  without new ones", filter_call(ALLOW));
}

static void mistakes(void) {
    struct instruction good = {RETURN, 0, 0, ALLOW};
    struct instruction bad[] = {{0x28, 0, 0, 0}, good}, last[] = {{LOAD, 0, 0, 0}}, far[] = {{IF, 1, 0, 0}, good};
    struct instruction place[] = {{LOAD, 0, 0, 64}, good}, odd[] = {{LOAD, 0, 0, 2}, good};
    struct instruction zero[] = {{0x34, 0, 0, 0}, good}, shift[] = {{0x64, 0, 0, 32}, good};
    struct instruction rest[] = {{0x94, 0, 0, 3}, good}, memory[] = {{0x60, 0, 0, 3}, good};
    struct instruction slot[] = {{0x02, 0, 0, 16}, good}, fine[] = {{0x02, 0, 0, 3}, {0x60, 0, 0, 3}, good};
    show("half words", filter(bad, 2, 0));
    show("no end", filter(last, 1, 0));
    show("too far", filter(far, 2, 0));
    show("beyond", filter(place, 2, 0));
    show("odd place", filter(odd, 2, 0));
    show("by zero", filter(zero, 2, 0));
    show("shift", filter(shift, 2, 0));
    show("remainder", filter(rest, 2, 0));
    show("not written", filter(memory, 2, 0));
    show("no such word", filter(slot, 2, 0));
    show("written", filter(fine, 3, 0));
    show("empty", filter(&good, 0, 0));
    show("too long", filter(&good, 4097, 0));
    show("flags", filter(&good, 1, 0x100));
    show("nowhere", filter((void *)8, 1, 0));
    show("no program", call(SECCOMP, 1, 0, 8, 0, 0, 0));
    show("operation", call(SECCOMP, 9, 0, 0, 0, 0, 0));
    show("strict with more", call(SECCOMP, 0, 0, 8, 0, 0, 0));
    show("strict with flags", call(SECCOMP, 0, 1, 0, 0, 0, 0));
    unsigned known[] = {ALLOW, ERROR, TRAP, TRACE, END_IT, END_ALL, 0x7ffc0000, 0x12340000};
    for (int i = 0; i < 8; i++)
        show("can be", call(SECCOMP, 2, 0, (number)&known[i], 0, 0, 0));
    show("nowhere", call(SECCOMP, 2, 0, 8, 0, 0, 0));
    uint16_t sizes[3] = {0};
    show("sizes", call(SECCOMP, 3, 0, (number)sizes, 0, 0, 0));
    show("of what is decided", sizes[2]);
    show("mode", call(PRCTL, SET_SECCOMP, 3, 0, 0, 0, 0));
}

static void pages(void) {
    enum { PAGE = 4096 };
    number file = call(OPENAT, AT_FDCWD, (number)"/proc/self/pagemap", RDONLY, 0, 0, 0);
    number place = call(MMAP, 0, 3 * PAGE, PROT_READ | PROT_WRITE, PRIVATE | ANONYMOUS, -1, 0);
    ((volatile char *)place)[PAGE] = 1;
    uint64_t words[3] = {1, 1, 1};
    number at = place / PAGE * 8;
    show("pages", call(PREAD64, file, (number)words, 24, at, 0, 0));
    show("not there", words[0] >> 56);
    show("there", words[1] >> 63);
    show("alone", words[1] >> 56 & 1);
    show("of no file", words[1] >> 61 & 1);
    show("not there", words[2] >> 56);
    show("odd place", call(PREAD64, file, (number)words, 8, at + 4, 0, 0));
    show("odd length", call(PREAD64, file, (number)words, 4, at, 0, 0));
    show("none", call(PREAD64, file, (number)words, 8, 0, 0, 0));
    show("nothing", words[0]);
    show("beyond all", call(PREAD64, file, (number)words, 8, (number)1 << 39, 0, 0));
    call(LSEEK, file, at, 0, 0, 0, 0);
    show("two", call(READ, file, (number)words, 16, 0, 0, 0));
    show("where it is", call(LSEEK, file, 0, 1, 0, 0, 0) - at);
    number shared = call(MMAP, 0, PAGE, PROT_READ | PROT_WRITE, SHARED | ANONYMOUS, -1, 0);
    *(volatile char *)shared = 1;
    call(PREAD64, file, (number)words, 8, shared / PAGE * 8, 0, 0);
    show("of an object", words[0] >> 61 & 1);
}

static void misaligned(void) {
    static char words[32] __attribute__((aligned(16)));
    catch(SIGBUS);
    unsigned value;
    __asm__ volatile("ldxr %w0, [%1]" : "=r"(value) : "r"(words + 1));
}

static void ask(const char *what, number file, number command, void *record) {
    show(what, call(IOCTL, file, command, (number)record, 0, 0, 0));
}

static void modes(void) {
    enum { GETS = 0x5401, SETS, GETA = 0x5405, SETA, SETAW, SETAF, GET_LOCKED = 0x5456, SET_LOCKED };
    number master = call(OPENAT, AT_FDCWD, (number)"/dev/ptmx", RDWR | 0400, 0, 0, 0);
    int unlocked = 0;
    call(IOCTL, master, 0x40045431, (number)&unlocked, 0, 0, 0);
    number slave = call(IOCTL, master, 0x5441, RDWR | 0400, 0, 0, 0);
    struct {
        uint16_t flags[4];
        uint8_t line, characters[8], rest;
    } old = {{0}, 0, {0}, 77};
    struct {
        uint32_t flags[4];
        uint8_t line, characters[19];
    } all, locked;
    ask("short", slave, GETA, &old);
    ask("long", slave, GETS, &all);
    for (int i = 0; i < 4; i++)
        show("flags", old.flags[i] == (all.flags[i] & 0xffff));
    show("characters", equal(old.characters, all.characters, 8));
    show("no more", old.rest);
    old.characters[3] = 5, old.flags[3] &= ~8;
    ask("set", slave, SETA, &old);
    ask("set and wait", slave, SETAW, &old);
    ask("set and flush", slave, SETAF, &old);
    ask("long", slave, GETS, &all);
    show("a character", all.characters[3]);
    show("no echo", all.flags[3] & 8);
    show("the upper half", all.flags[3] >> 16);
    ask("locked", slave, GET_LOCKED, &locked);
    show("nothing is", locked.flags[0] | locked.flags[3] | locked.characters[3]);
    locked.flags[3] = 8, locked.characters[3] = 1;
    ask("lock", slave, SET_LOCKED, &locked);
    all.flags[3] |= 8, all.characters[3] = 6, all.characters[2] = 9;
    ask("set", slave, SETS, &all);
    ask("long", slave, GETS, &all);
    show("still no echo", all.flags[3] & 8);
    show("the character stays", all.characters[3]);
    show("another", all.characters[2]);
    ask("by the master", master, GETA, &old);
    ask("nowhere", slave, GETA, (void *)8);
    ask("from nowhere", slave, SETA, (void *)8);
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    ask("a pipe", ends[0], GETA, &old);
}

int program(number count, char **arguments) {
    (void)count, (void)arguments;
    child("errors", fails);
    child("nobody traces", untraced);
    child("traps", traps);
    child("ended by a filter", killed);
    child("ended as a whole", killed_whole);
    child("ended by what is unknown", killed_by_unknown);
    child("strict", strict);
    child("too strict", too_strict);
    child("without power", powerless);
    mistakes();
    pages();
    child("misaligned", misaligned);
    modes();
    return 0;
}
