/* A process that traces others: stops at calls, signals, events and breakpoints, registers, memory, and what is refused. */

#include "system.h"

enum { PTRACE = 117, PRCTL = 167 };
enum { TRACEME, PEEK = 1, POKE = 4, CONT = 7, STEP = 9, ATTACH = 16, DETACH, SYSCALL = 24, SETOPTIONS = 0x4200, GETEVENTMSG,
       GETSIGINFO, SETSIGINFO, GETREGSET, SETREGSET, SEIZE, INTERRUPT, LISTEN, GETSIGMASK = 0x420a, SETSIGMASK,
       SYSCALL_INFO = 0x420e };
enum { MARK_CALLS = 1, FORKS = 2, VFORKS = 4, CLONES = 8, EXECS = 16, VFORK_DONE = 32, EXITS = 64, ALL = 0x40000000, NOHANG = 1 };
enum { SIGTRAP = 5 };

struct vector { void *base; size length; };
struct registers { uint64_t x[31], sp, pc, state; };

static number trace(number request, number id, number address, number data) {
    return call(PTRACE, request, id, address, data, 0, 0);
}

static number own;

/* Shows numbers of processes as differences. */
static number relative(number id) { return id > 0 ? id - own : id; }

static int wait_word(number id, number options) {
    int status = 0;
    number found = call(WAIT4, id, (number)&status, options | ALL, 0, 0, 0);
    show("who", relative(found));
    show("  word", status);
    return status;
}

static struct registers read_registers(number id) {
    struct registers all = {0};
    struct vector vector = {&all, sizeof all};
    number error = trace(GETREGSET, id, 1, (number)&vector);
    if (error || vector.length != sizeof all)
        show("registers", error), show("length", (number)vector.length);
    return all;
}

static void write_registers(number id, struct registers all) {
    struct vector vector = {&all, sizeof all};
    number error = trace(SETREGSET, id, 1, (number)&vector);
    if (error)
        show("write registers", error);
}

static void show_info(number id) {
    int info[32] = {0};
    show("info", trace(GETSIGINFO, id, 0, (number)info));
    show("  signal", info[0]), show("  code", info[2]);
}

static void show_call(number id) {
    struct { unsigned char kind, pad[3]; unsigned architecture; uint64_t pc, sp, words[7]; } record = {0};
    show("call", trace(SYSCALL_INFO, id, sizeof record, (number)&record));
    show("  kind", record.kind), show("  architecture", record.architecture & 0xff);
    if (record.kind)
        show("  first", (number)record.words[0] == own ? 0 : (number)record.words[0]), show("  second", record.kind == 1 ? (number)record.words[1] : 0);
}

/* Starts a child that lets itself be traced and stops. */
static number traced(void (*body)(void)) {
    number child = fork();
    if (child == 0) {
        if (trace(TRACEME, 0, 0, 0))
            exit(90);
        call(KILL, call(GETPID, 0, 0, 0, 0, 0, 0), SIGSTOP, 0, 0, 0, 0);
        body();
        exit(0);
    }
    wait_word(child, 0);
    return child;
}

static void make_calls(void) {
    number parent = call(GETPPID, 5, 6, 0, 0, 0, 0);
    if (parent != 7700)
        exit(1);
    exit(call(GETTID, 0, 0, 0, 0, 0, 0) == 7800 ? 3 : 2);
}

/* Each call stops twice; the tracer changes one's number and both results. */
static void calls(void) {
    number child = traced(make_calls);
    show("options", trace(SETOPTIONS, child, 0, 1 << 30));
    show("options", trace(SETOPTIONS, child, 0, MARK_CALLS));
    for (int at = 0; at < 5; at++) {
        show("go on", trace(SYSCALL, child, 0, 0));
        wait_word(child, 0);
        struct registers all = read_registers(child);
        show("number", (number)all.x[8]), show("x7", (number)all.x[7]);
        show("x0", (number)all.x[0] == own ? 0 : (number)all.x[0]);
        show_call(child);
        if (at == 1)
            all.x[0] = 7700, write_registers(child, all);
        if (at == 2) {
            int none = -1;
            struct vector vector = {&none, sizeof none};
            show("no call", trace(SETREGSET, child, 0x404, (number)&vector));
            all.x[0] = 7800, write_registers(child, all);
        }
    }
    show("go on", trace(CONT, child, 0, 0));
    wait_word(child, 0);
}

static volatile int handled;
static void count(int signal) { handled += signal; }

static void get_signals(void) {
    struct { void (*handler)(int); size flags, restorer, mask; } action = {count, 0, 0, 0};
    call(RT_SIGACTION, SIGUSR1, (number)&action, 0, 8, 0, 0);
    number self = call(GETPID, 0, 0, 0, 0, 0, 0);
    for (int at = 0; at < 3; at++)
        call(KILL, self, SIGUSR1, 0, 0, 0, 0);
    call(KILL, self, SIGCHLD, 0, 0, 0, 0);
    call(KILL, self, SIGCONT, 0, 0, 0, 0);
    exit(handled);
}

static void signals(void) {
    number child = traced(get_signals);
    trace(CONT, child, 0, 0);
    const number chosen[] = {SIGUSR1, 0, SIGUSR1, SIGCHLD, SIGCONT};
    for (int at = 0; at < 5; at++) {
        wait_word(child, 0);
        show_info(child);
        uint64_t mask = 0;
        show("mask", trace(GETSIGMASK, child, 8, (number)&mask)), show("  is", (number)mask);
        show("go on", trace(CONT, child, 0, chosen[at]));
    }
    wait_word(child, 0);
    child = traced(get_signals);
    show("no signal", trace(CONT, child, 0, 65));
    show("killed", trace(CONT, child, 0, SIGKILL));
    wait_word(child, 0);
}

__attribute__((noinline)) static int answer(void) { return 5; }
static int (*volatile asked)(void) = answer;
static volatile long shared_word = 9;

static void ask(void) {
    number before = asked();
    call(KILL, call(GETPID, 0, 0, 0, 0, 0, 0), SIGSTOP, 0, 0, 0, 0);
    exit(before * 10 + asked() + (shared_word == 11) * 100);
}

/* Code and data of a child change, and those of the tracer do not. */
static void memory(void) {
    number child = traced(ask);
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    uint64_t word = 0;
    show("peek", trace(PEEK, child, (number)&shared_word, (number)&word)), show("  is", (number)word);
    show("poke", trace(POKE, child, (number)&shared_word, 11));
    show("nowhere", trace(PEEK, child, 64, (number)&word)), show("nowhere", trace(POKE, child, 64, 0));
    /* mov w0, #7; ret */
    show("code", trace(POKE, child, (number)answer, (number)0xd65f03c0528000e0));
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    show("own", answer()), show("own", shared_word);
    /* brk #0; ret */
    child = traced(ask);
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    show("code", trace(POKE, child, (number)answer, (number)0xd65f03c0d4200000));
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    show_info(child);
    struct registers all = read_registers(child);
    show("at the breakpoint", all.pc == (uint64_t)answer);
    all.pc += 4, all.x[0] = 8, write_registers(child, all);
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
}

static void make_children(void) {
    number child = fork();
    if (child == 0)
        exit(4);
    wait_for(child, 0);
    child = call(CLONE, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0);
    if (child == 0)
        exit(5);
    wait_for(child, 0);
    exit(6);
}

/* Shows the events of a process and of its children, each of which goes on when it has stopped. */
static void events(void) {
    number child = traced(make_children), made = 0;
    show("options", trace(SETOPTIONS, child, 0, FORKS | VFORKS | CLONES | VFORK_DONE | EXITS));
    trace(CONT, child, 0, 0);
    for (int at = 0; at < 11; at++) {
        number from = made ? made : child;
        int word = wait_word(from, 0);
        if ((word & 0xff) != 0x7f) {
            made = 0;
            continue;
        }
        number message = 0;
        trace(GETEVENTMSG, from, 0, (number)&message);
        int event = word >> 16;
        show("message", event == 6 ? message : relative(message));
        if (event == 1 || event == 2) {
            wait_word(message, 0);
            trace(CONT, message, 0, 0);
            made = message;
            trace(CONT, child, 0, 0);
        } else
            trace(CONT, from, 0, word >> 8 == SIGCHLD ? SIGCHLD : 0);
    }
}

static char *self_path;
static void execute(void) {
    char *arguments[] = {self_path, "child", 0}, *environment[] = {0};
    call(EXECVE, (number)self_path, (number)arguments, (number)environment, 0, 0, 0);
    exit(9);
}

static void programs(void) {
    number child = traced(execute);
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    show_info(child);
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    child = traced(execute);
    show("options", trace(SETOPTIONS, child, 0, EXECS));
    for (int at = 0; at < 4; at++) {
        trace(SYSCALL, child, 0, 0);
        wait_word(child, 0);
        show("number", (number)read_registers(child).x[8]);
    }
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
}

static number pipe_ends[2];
static void read_pipe(void) {
    int ends[2] = {(int)pipe_ends[0], (int)pipe_ends[1]};
    char byte;
    number got = call(READ, ends[0], (number)&byte, 1, 0, 0, 0);
    exit(got == 1 ? byte : 50);
}

/* A child that waits is interrupted, stops with a signal, listens, and goes on. */
static void seizing(void) {
    int ends[2];
    call(PIPE2, (number)ends, 0, 0, 0, 0, 0);
    pipe_ends[0] = ends[0], pipe_ends[1] = ends[1];
    number child = fork();
    if (child == 0)
        read_pipe();
    show("seize with an address", trace(SEIZE, child, 1, 0));
    show("seize", trace(SEIZE, child, 0, MARK_CALLS));
    show("again", trace(SEIZE, child, 0, 0));
    show("while it runs", trace(CONT, child, 0, 0));
    /* It waits. */
    number moment[2] = {0, 20000000};
    call(NANOSLEEP, (number)moment, 0, 0, 0, 0, 0);
    show("interrupt", trace(INTERRUPT, child, 0, 0));
    wait_word(child, 0);
    show_info(child);
    show_call(child);
    trace(SYSCALL, child, 0, 0);
    wait_word(child, 0);
    show_call(child);
    trace(SYSCALL, child, 0, 0);
    call(NANOSLEEP, (number)moment, 0, 0, 0, 0, 0);
    call(KILL, child, SIGTSTP, 0, 0, 0, 0);
    wait_word(child, 0);
    show("interrupted", (number)read_registers(child).x[0]);
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    show("stop", trace(CONT, child, 0, SIGSTOP));
    wait_word(child, 0);
    show("listen", trace(LISTEN, child, 0, 0));
    show("while it listens", trace(CONT, child, 0, 0));
    call(KILL, child, SIGCONT, 0, 0, 0, 0);
    wait_word(child, 0);
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    show("detach", trace(DETACH, child, 0, SIGCONT));
    show("detached", trace(INTERRUPT, child, 0, 0));
    call(WRITE, ends[1], (number)"A", 1, 0, 0, 0);
    wait_word(child, 0);
    call(CLOSE, ends[0], 0, 0, 0, 0, 0), call(CLOSE, ends[1], 0, 0, 0, 0, 0);
}

static void refusals(void) {
    show("itself", trace(ATTACH, own, 0, 0));
    show("nobody", trace(ATTACH, 9999, 0, 0));
    show("untraced", trace(CONT, own, 0, 0));
    number child = fork();
    if (child == 0)
        for (;;)
            call(NANOSLEEP, (number)(number[]){1, 0}, 0, 0, 0, 0, 0);
    show("attach", trace(ATTACH, child, 0, 0));
    wait_word(child, 0);
    show("attach again", trace(ATTACH, child, 0, 0));
    show("unknown", trace(9999, child, 0, 0));
    show("interrupt", trace(INTERRUPT, child, 0, 0));
    show("listen", trace(LISTEN, child, 0, 0));
    uint64_t words[2] = {0, 0};
    struct vector vector = {words, 12};
    show("part of a word", trace(GETREGSET, child, 1, (number)&vector));
    vector.length = 16;
    show("two words", trace(GETREGSET, child, 1, (number)&vector)), show("  length", (number)vector.length);
    show("no set", trace(GETREGSET, child, 77, (number)&vector));
    show("no mask", trace(GETSIGMASK, child, 4, (number)words));
    char float_registers[600];
    vector = (struct vector){float_registers, 600};
    show("float", trace(GETREGSET, child, 2, (number)&vector)), show("  length", (number)vector.length);
    int user = fork();
    if (user == 0) {
        call(146, 5, 0, 0, 0, 0, 0);
        exit((int)-trace(ATTACH, own, 0, 0));
    }
    wait_word(user, 0);
    show("nothing new", wait_word(child, NOHANG));
    call(KILL, child, SIGKILL, 0, 0, 0, 0);
    wait_word(child, 0);
    show("ended", trace(CONT, child, 0, 0));
}

/* A loop, a call, and a load that faults at first, at labels that the tracer knows. */
__asm__(".text\n.balign 4\n.globl stepped\nstepped:\nmov x1, #2\n1: subs x1, x1, #1\nb.ne 1b\n"
        "mov x8, #173\nsvc #0\nldr x2, [x3]\nmov x0, x2\nret\n");
number stepped(number, number, number, volatile long *);

static void step(number child, number signal) {
    show("step", trace(STEP, child, 0, signal));
    wait_word(child, 0);
    show_info(child);
}

static void take_steps(void) {
    struct { void (*handler)(int); size flags, restorer, mask; } action = {count, 0, 0, 0};
    call(RT_SIGACTION, SIGUSR1, (number)&action, 0, 8, 0, 0);
    number self = call(GETPID, 0, 0, 0, 0, 0, 0);
    /* A page that nobody has touched. */
    volatile long *page = (volatile long *)call(MMAP, 0, 4096, 3, 0x22, -1, 0);
    number loaded = stepped(0, 0, 0, page);
    call(KILL, self, SIGUSR1, 0, 0, 0, 0);
    /* Its end sends no signal, which would come at any time. */
    number child = call(CLONE, 0, 0, 0, 0, 0, 0);
    if (child == 0)
        exit(4);
    int status = 0;
    call(WAIT4, child, (number)&status, ALL, 0, 0, 0);
    char *none[] = {0}, *arguments[] = {self_path, "again", 0};
    if (loaded == 0 && handled == SIGUSR1 && status == 4 << 8)
        call(EXECVE, (number)self_path, (number)arguments, (number)none, 0, 0, 0);
    exit(1);
}

/* Goes on step by step to an address. */
static void step_to(number child, uint64_t address) {
    for (int at = 0; at < 3000 && read_registers(child).pc != address; at++) {
        trace(STEP, child, 0, 0);
        call(WAIT4, child, 0, ALL, 0, 0, 0);
    }
    show("there", read_registers(child).pc == address);
}

static void steps(void) {
    number child = traced(take_steps);
    step_to(child, (uint64_t)stepped);
    for (int at = 0; at < 9; at++) {
        step(child, 0);
        show("  at", (number)(read_registers(child).pc - (uint64_t)stepped));
    }
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    step(child, SIGUSR1);
    show("in the handler", read_registers(child).pc == (uint64_t)count);
    step(child, 0);
    show("after it", (number)(read_registers(child).pc - (uint64_t)count));
    /* To calls, and over them: a fork, whose child runs on, and a new program. */
    const number interesting[] = {CLONE, EXECVE};
    for (int at = 0; at < 2; at++) {
        int calls = 0;
        do {
            trace(SYSCALL, child, 0, 0);
            call(WAIT4, child, 0, ALL, 0, 0, 0);
        } while ((number)read_registers(child).x[8] != interesting[at] && ++calls < 50);
        show("calls", calls);
        step(child, 0);
        step(child, 0);
    }
    show("go on", trace(CONT, child, 0, 0));
    wait_word(child, 0);
    if (call(KILL, child, 0, 0, 0, 0, 0) == 0) {
        trace(CONT, child, 0, 0);
        wait_word(child, 0);
    }
}

/* The memory of a child, as a file: also where the child may only read. */
static void files_of_memory(void) {
    number child = traced(ask);
    char path[40] = "/proc/";
    int at = 6;
    for (number unit = 1000000; unit; unit /= 10)
        if (child >= unit)
            path[at++] = (char)('0' + child / unit % 10);
    for (const char *rest = "/mem"; *rest;)
        path[at++] = *rest++;
    number file = call(OPENAT, -100, (number)path, 2, 0, 0, 0);
    show("open", file >= 0);
    unsigned code = 0, other = 0x528000e0; /* mov w0, #7 */
    show("read", call(PREAD64, file, (number)&code, 4, (number)answer, 0, 0)), show("  same", code == *(unsigned *)answer);
    show("write", call(PWRITE64, file, (number)&other, 4, (number)answer, 0, 0));
    show("own code stays", asked());
    show("write data", call(PWRITE64, file, (number)&(long){11}, 8, (number)&shared_word, 0, 0));
    show("own data stays", shared_word);
    show("nothing there", call(PREAD64, file, (number)&code, 4, 0, 0, 0));
    show("nothing to write", call(PWRITE64, file, (number)&other, 4, 4096, 0, 0));
    show("end", call(LSEEK, file, 0, 2, 0, 0, 0));
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    trace(CONT, child, 0, 0);
    wait_word(child, 0);
    show("ended", call(PREAD64, file, (number)&code, 4, (number)answer, 0, 0));
    call(CLOSE, file, 0, 0, 0, 0, 0);
    file = call(OPENAT, -100, (number)"/proc/self/mem", 2, 0, 0, 0);
    show("own file", call(PWRITE64, file, (number)&(long){12}, 8, (number)&shared_word, 0, 0)), show("  is", shared_word);
    call(CLOSE, file, 0, 0, 0, 0, 0);
    int user = fork();
    if (user == 0) {
        call(146, 5, 0, 0, 0, 0, 0);
        exit((int)-call(OPENAT, -100, (number)"/proc/1/mem", 0, 0, 0, 0));
    }
    wait_word(user, 0);
}

int program(number argument_count, char **arguments) {
    if (argument_count > 1)
        return 7;
    self_path = arguments[0];
    own = call(GETPID, 0, 0, 0, 0, 0, 0);
    print("calls\n"), calls();
    print("signals\n"), signals();
    print("memory\n"), memory();
    print("events\n"), events();
    print("programs\n"), programs();
    print("seizing\n"), seizing();
    print("refusals\n"), refusals();
    print("steps\n"), steps();
    print("files of memory\n"), files_of_memory();
    return 0;
}
