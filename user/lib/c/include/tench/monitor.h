/*
 * Monitor, version 1.
 *
 * The cores of the machine, each with a kernel and a monitor of its own.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_MONITOR_H
#define TENCH_MONITOR_H

#include <tench/message.h>

/* Bytes of a program's name and arguments together, with the zero bytes. */
#define TENCH_MONITOR_MAX_STRINGS 448
/* Bytes of a process's name that are told. */
#define TENCH_MONITOR_MAX_NAME 255

/* What became of a process. */
enum tench_monitor_condition {
    /* Not started yet. */
    TENCH_MONITOR_CONDITION_PREPARING = 0,
    /* Started and not ended. */
    TENCH_MONITOR_CONDITION_RUNNING = 1,
    /* None of its threads runs. */
    TENCH_MONITOR_CONDITION_SUSPENDED = 2,
    /* It has ended by itself; its exit code belongs to the state. */
    TENCH_MONITOR_CONDITION_EXITED = 3,
    /* Somebody killed it. */
    TENCH_MONITOR_CONDITION_KILLED = 4,
    /* A fault ended it. */
    TENCH_MONITOR_CONDITION_FAULTED = 5,
};

/* Whether it is one of them. */
static inline bool tench_monitor_condition_is(uint64_t code)
{
    switch (code) {
    case TENCH_MONITOR_CONDITION_PREPARING:
    case TENCH_MONITOR_CONDITION_RUNNING:
    case TENCH_MONITOR_CONDITION_SUSPENDED:
    case TENCH_MONITOR_CONDITION_EXITED:
    case TENCH_MONITOR_CONDITION_KILLED:
    case TENCH_MONITOR_CONDITION_FAULTED:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_monitor_condition_text(uint64_t code)
{
    switch (code) {
    case TENCH_MONITOR_CONDITION_PREPARING:
        return "preparing";
    case TENCH_MONITOR_CONDITION_RUNNING:
        return "running";
    case TENCH_MONITOR_CONDITION_SUSPENDED:
        return "suspended";
    case TENCH_MONITOR_CONDITION_EXITED:
        return "exited";
    case TENCH_MONITOR_CONDITION_KILLED:
        return "killed";
    case TENCH_MONITOR_CONDITION_FAULTED:
        return "faulted";
    default:
        return NULL;
    }
}

/* How far a core is. */
enum tench_monitor_state {
    /* It is this one. */
    TENCH_MONITOR_STATE_HERE = 1,
    /* Its kernel was started; its monitor has not answered yet. */
    TENCH_MONITOR_STATE_STARTING = 2,
    /* Its monitor answers. */
    TENCH_MONITOR_STATE_RUNNING = 3,
    /* The firmware refused to start it. */
    TENCH_MONITOR_STATE_REFUSED = 4,
    /* There was no memory for it. */
    TENCH_MONITOR_STATE_NO_MEMORY = 5,
    /* Its monitor did not answer in time. */
    TENCH_MONITOR_STATE_SILENT = 6,
    /* Its monitor wrote what no monitor writes; nothing of it is believed any more. */
    TENCH_MONITOR_STATE_BROKEN = 7,
    /* This core has no channel to it. */
    TENCH_MONITOR_STATE_UNCONNECTED = 8,
};

/* Whether it is one of them. */
static inline bool tench_monitor_state_is(uint64_t code)
{
    switch (code) {
    case TENCH_MONITOR_STATE_HERE:
    case TENCH_MONITOR_STATE_STARTING:
    case TENCH_MONITOR_STATE_RUNNING:
    case TENCH_MONITOR_STATE_REFUSED:
    case TENCH_MONITOR_STATE_NO_MEMORY:
    case TENCH_MONITOR_STATE_SILENT:
    case TENCH_MONITOR_STATE_BROKEN:
    case TENCH_MONITOR_STATE_UNCONNECTED:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_monitor_state_text(uint64_t code)
{
    switch (code) {
    case TENCH_MONITOR_STATE_HERE:
        return "here";
    case TENCH_MONITOR_STATE_STARTING:
        return "starting";
    case TENCH_MONITOR_STATE_RUNNING:
        return "running";
    case TENCH_MONITOR_STATE_REFUSED:
        return "refused by the firmware";
    case TENCH_MONITOR_STATE_NO_MEMORY:
        return "no memory";
    case TENCH_MONITOR_STATE_SILENT:
        return "silent";
    case TENCH_MONITOR_STATE_BROKEN:
        return "broken channel";
    case TENCH_MONITOR_STATE_UNCONNECTED:
        return "not connected";
    default:
        return NULL;
    }
}

/* Why a request was refused. */
enum tench_monitor_error {
    /* The machine has no such core. */
    TENCH_MONITOR_ERROR_NO_SUCH_CORE = 1,
    /* There is no channel to this core. */
    TENCH_MONITOR_ERROR_NOT_CONNECTED = 2,
    /* Too many requests wait for answers of that core. */
    TENCH_MONITOR_ERROR_FULL = 3,
    /* The channel is closed, because its other side wrote what no monitor writes. */
    TENCH_MONITOR_ERROR_BROKEN = 4,
    /* The program's name is missing, or a string does not end or is no UTF-8. */
    TENCH_MONITOR_ERROR_BAD_STRINGS = 5,
    /* That core's servers answered what they never answer. */
    TENCH_MONITOR_ERROR_INTERNAL = 6,
    /* There is no such process. */
    TENCH_MONITOR_ERROR_NO_SUCH_PROCESS = 32,
    /* The process is not in a state for this. */
    TENCH_MONITOR_ERROR_WRONG_STATE = 33,
    /* The archive has no such program. */
    TENCH_MONITOR_ERROR_NO_SUCH_PROGRAM = 34,
    /* The program's file cannot be loaded. */
    TENCH_MONITOR_ERROR_BAD_PROGRAM = 35,
    /* There is not enough memory. */
    TENCH_MONITOR_ERROR_OUT_OF_MEMORY = 36,
    /* The table of processes is full. */
    TENCH_MONITOR_ERROR_TOO_MANY_PROCESSES = 37,
    /* Arguments are too long. */
    TENCH_MONITOR_ERROR_TEXT_TOO_LONG = 38,
    /* The caller has not started the process. */
    TENCH_MONITOR_ERROR_NOT_ALLOWED = 39,
    /* The process is `init`, `mem`, `procs` or the monitor of its core. */
    TENCH_MONITOR_ERROR_ESSENTIAL = 40,
};

/* Whether it is one of them. */
static inline bool tench_monitor_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_MONITOR_ERROR_NO_SUCH_CORE:
    case TENCH_MONITOR_ERROR_NOT_CONNECTED:
    case TENCH_MONITOR_ERROR_FULL:
    case TENCH_MONITOR_ERROR_BROKEN:
    case TENCH_MONITOR_ERROR_BAD_STRINGS:
    case TENCH_MONITOR_ERROR_INTERNAL:
    case TENCH_MONITOR_ERROR_NO_SUCH_PROCESS:
    case TENCH_MONITOR_ERROR_WRONG_STATE:
    case TENCH_MONITOR_ERROR_NO_SUCH_PROGRAM:
    case TENCH_MONITOR_ERROR_BAD_PROGRAM:
    case TENCH_MONITOR_ERROR_OUT_OF_MEMORY:
    case TENCH_MONITOR_ERROR_TOO_MANY_PROCESSES:
    case TENCH_MONITOR_ERROR_TEXT_TOO_LONG:
    case TENCH_MONITOR_ERROR_NOT_ALLOWED:
    case TENCH_MONITOR_ERROR_ESSENTIAL:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_monitor_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_MONITOR_ERROR_NO_SUCH_CORE:
        return "the machine has no such core; cores are counted from 0";
    case TENCH_MONITOR_ERROR_NOT_CONNECTED:
        return "this core's monitor has no channel to that one; ask from the first core";
    case TENCH_MONITOR_ERROR_FULL:
        return "too many requests wait for that core; try again later";
    case TENCH_MONITOR_ERROR_BROKEN:
        return "that core's monitor wrote something impossible, and its channel is closed";
    case TENCH_MONITOR_ERROR_BAD_STRINGS:
        return "a program's name and arguments are strings of UTF-8 that end with zero bytes";
    case TENCH_MONITOR_ERROR_INTERNAL:
        return "that core's process server refused what should be possible";
    case TENCH_MONITOR_ERROR_NO_SUCH_PROCESS:
        return "no such process; `ps` lists them";
    case TENCH_MONITOR_ERROR_WRONG_STATE:
        return "the process's state does not allow this";
    case TENCH_MONITOR_ERROR_NO_SUCH_PROGRAM:
        return "no such program in the boot archive";
    case TENCH_MONITOR_ERROR_BAD_PROGRAM:
        return "the program cannot be loaded";
    case TENCH_MONITOR_ERROR_OUT_OF_MEMORY:
        return "not enough memory";
    case TENCH_MONITOR_ERROR_TOO_MANY_PROCESSES:
        return "the table of processes is full";
    case TENCH_MONITOR_ERROR_TEXT_TOO_LONG:
        return "the text is too long";
    case TENCH_MONITOR_ERROR_NOT_ALLOWED:
        return "not one of your processes, and you may not manage others";
    case TENCH_MONITOR_ERROR_ESSENTIAL:
        return "nothing would go on without it";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_monitor_failure(int code)
{
    const char *text = code > 0 ? tench_monitor_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no answer. */
static inline int tench_monitor_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_monitor_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

/* A process, on whichever core. */
struct tench_monitor_process {
    /* Its number. */
    uint64_t process;
    /* The process that started it, on whichever core. */
    uint64_t parent;
    /* What it does. */
    enum tench_monitor_condition state;
    /* What belongs to the state: exit code, or number of a kind of fault. */
    uint64_t detail;
    /* Priority of its main thread. */
    uint64_t priority;
    /* Ticks of processor time. */
    uint64_t ticks;
    /* Bytes of its program. */
    uint64_t size;
    /* Bytes of memory that it costs; 0 if it has none any more. */
    uint64_t memory;
    /* The path or name by which it was started. */
    char name[TENCH_MONITOR_MAX_NAME + 1];
    size_t name_length;
};

static inline void tench_monitor_process_put(struct tench_message *message, const struct tench_monitor_process *value)
{
    tench_put(message, (uint64_t)value->process);
    tench_put(message, (uint64_t)value->parent);
    tench_put(message, (uint64_t)value->state);
    tench_put(message, (uint64_t)value->detail);
    tench_put(message, (uint64_t)value->priority);
    tench_put(message, (uint64_t)value->ticks);
    tench_put(message, (uint64_t)value->size);
    tench_put(message, (uint64_t)value->memory);
    tench_put_text(message, value->name, value->name_length < TENCH_MONITOR_MAX_NAME ? value->name_length : TENCH_MONITOR_MAX_NAME);
}

static inline void tench_monitor_process_take(struct tench_reader *reader, struct tench_monitor_process *value)
{
    value->process = tench_take(reader);
    value->parent = tench_take(reader);
    value->state = (enum tench_monitor_condition)tench_take(reader);
    if (!tench_monitor_condition_is((uint64_t)value->state))
        reader->bad = true;
    value->detail = tench_take(reader);
    value->priority = tench_take(reader);
    value->ticks = tench_take(reader);
    value->size = tench_take(reader);
    value->memory = tench_take(reader);
    value->name_length = tench_take_bytes(reader, value->name, TENCH_MONITOR_MAX_NAME);
    value->name[value->name_length] = '\0';
}

/* A core's memory. */
struct tench_monitor_memory {
    /* Bytes in all. */
    uint64_t total;
    /* Free bytes. */
    uint64_t free;
};

static inline void tench_monitor_memory_put(struct tench_message *message, const struct tench_monitor_memory *value)
{
    tench_put(message, (uint64_t)value->total);
    tench_put(message, (uint64_t)value->free);
}

static inline void tench_monitor_memory_take(struct tench_reader *reader, struct tench_monitor_memory *value)
{
    value->total = tench_take(reader);
    value->free = tench_take(reader);
}

/* A core. */
struct tench_monitor_core {
    /* How far it is. */
    enum tench_monitor_state state;
    /* Bytes of memory that it was given; 0 for the core that gives it. */
    uint64_t memory;
    /* Ticks of the system counter from its start until its monitor answered; 0 if it has not. */
    uint64_t start;
};

static inline void tench_monitor_core_put(struct tench_message *message, const struct tench_monitor_core *value)
{
    tench_put(message, (uint64_t)value->state);
    tench_put(message, (uint64_t)value->memory);
    tench_put(message, (uint64_t)value->start);
}

static inline void tench_monitor_core_take(struct tench_reader *reader, struct tench_monitor_core *value)
{
    value->state = (enum tench_monitor_state)tench_take(reader);
    if (!tench_monitor_state_is((uint64_t)value->state))
        reader->bad = true;
    value->memory = tench_take(reader);
    value->start = tench_take(reader);
}

#define TENCH_MONITOR_LABEL_CORES UINT64_C(0x6cb500010001)

/* What tench_monitor_cores answers. */
struct tench_monitor_cores_answer {
    uint64_t first;
    uint64_t second;
};

/* How many cores the machine has, and which of them this is. */
static inline int tench_monitor_cores(tench_cap server, struct tench_monitor_cores_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_CORES);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    answer->first = tench_take(reader);
    answer->second = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_CORE UINT64_C(0x6cb500010002)

/* What tench_monitor_core answers. */
struct tench_monitor_core_answer {
    struct tench_monitor_core value;
};

/*
 * What is known of a core.
 * Errors: `NoSuchCore`.
 */
static inline int tench_monitor_core(tench_cap server, uint64_t core, struct tench_monitor_core_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_CORE);
    tench_put(message, (uint64_t)core);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_core_take(reader, &answer->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_PING UINT64_C(0x6cb500010003)

/* What tench_monitor_ping answers. */
struct tench_monitor_ping_answer {
    uint64_t value;
};

/*
 * Sends a message to the monitor of another core, which answers it. Answers how many ticks of the system counter that took.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`.
 */
static inline int tench_monitor_ping(tench_cap server, uint64_t core, struct tench_monitor_ping_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_PING);
    tench_put(message, (uint64_t)core);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    answer->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_SPAWN UINT64_C(0x6cb500010004)

/* What tench_monitor_spawn answers. */
struct tench_monitor_spawn_answer {
    uint64_t value;
};

/*
 * Starts a program on a core, with nothing but arguments. `strings` are the program's path or base name and its arguments, each of
 * which ends with a zero byte. Answers the process's number, which no process of any core has besides. Its parent is the
 * process that asks, of whichever core.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `BadStrings`; `NoSuchProgram`, `BadProgram`, `OutOfMemory`,
 * `TooManyProcesses`, `TextTooLong` as on the caller's own core.
 */
static inline int tench_monitor_spawn(tench_cap server, uint64_t core, const void *strings, size_t strings_length,
    struct tench_monitor_spawn_answer *answer)
{
    if (strings_length > TENCH_MONITOR_MAX_STRINGS)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_SPAWN);
    tench_put(message, (uint64_t)core);
    tench_put_text(message, strings, strings_length);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    answer->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_WAIT UINT64_C(0x6cb500010005)

/* What tench_monitor_wait answers. */
struct tench_monitor_wait_answer {
    struct tench_monitor_process value;
};

/*
 * Waits until a process has ended, on whichever core. Answers what became of it.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`.
 */
static inline int tench_monitor_wait(tench_cap server, uint64_t process, struct tench_monitor_wait_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_WAIT);
    tench_put(message, (uint64_t)process);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_process_take(reader, &answer->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_KILL UINT64_C(0x6cb500010006)

/*
 * Kills a process, on whichever core. A process may kill its descendants, and one that manages others of its own core those of
 * all cores.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`, `WrongState`, `NotAllowed`, `Essential`.
 */
static inline int tench_monitor_kill(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_KILL);
    tench_put(message, (uint64_t)process);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_NEXT UINT64_C(0x6cb500010007)

/* What tench_monitor_next answers. */
struct tench_monitor_next_answer {
    struct tench_monitor_process value;
};

/*
 * What is known about the process with the next higher number. Those of one core are numbered one after another; the search ends
 * with the last of the core to which `after` belongs, so a list of all begins anew with each core's [`first`].
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess` when there is none.
 */
static inline int tench_monitor_next(tench_cap server, uint64_t after, struct tench_monitor_next_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_NEXT);
    tench_put(message, (uint64_t)after);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_process_take(reader, &answer->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_MEMORY UINT64_C(0x6cb500010008)

/* What tench_monitor_memory answers. */
struct tench_monitor_memory_answer {
    struct tench_monitor_memory value;
};

/*
 * How much memory a core's memory server has, in bytes, and how much of that is free.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`.
 */
static inline int tench_monitor_memory(tench_cap server, uint64_t core, struct tench_monitor_memory_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_MEMORY);
    tench_put(message, (uint64_t)core);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_memory_take(reader, &answer->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_SUSPEND UINT64_C(0x6cb500010009)

/*
 * Suspends a process, on whichever core: none of its threads runs, nor any that it makes.
 * Errors: as `kill`.
 */
static inline int tench_monitor_suspend(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_SUSPEND);
    tench_put(message, (uint64_t)process);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_RESUME UINT64_C(0x6cb50001000a)

/*
 * Lets a suspended process go on, on whichever core.
 * Errors: as `kill`.
 */
static inline int tench_monitor_resume(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_RESUME);
    tench_put(message, (uint64_t)process);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_STATUS UINT64_C(0x6cb50001000b)

/* What tench_monitor_status answers. */
struct tench_monitor_status_answer {
    struct tench_monitor_process value;
};

/*
 * What is known about a process, on whichever core.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`.
 */
static inline int tench_monitor_status(tench_cap server, uint64_t process, struct tench_monitor_status_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_STATUS);
    tench_put(message, (uint64_t)process);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_process_take(reader, &answer->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_KILL_ALL UINT64_C(0x6cb50001000c)

/* What tench_monitor_kill_all answers. */
struct tench_monitor_kill_all_answer {
    uint64_t value;
};

/*
 * Kills every process of this path or base name on a core, also those that are started meanwhile, and answers how many. That one
 * ends by itself is no error; and if one may not be killed, the others are nevertheless, and that is the answer.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NotAllowed`, `Essential`, `BadStrings`.
 */
static inline int tench_monitor_kill_all(tench_cap server, uint64_t core, const char *name, size_t name_length,
    struct tench_monitor_kill_all_answer *answer)
{
    if (name_length > TENCH_MONITOR_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_KILL_ALL);
    tench_put(message, (uint64_t)core);
    tench_put_text(message, name, name_length);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    answer->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_INTERRUPT UINT64_C(0x6cb50001000d)

/* What tench_monitor_interrupt answers. */
struct tench_monitor_interrupt_answer {
    bool value;
};

/*
 * Ends a process as Ctrl-C does, on whichever core: one that wants to end by itself is told so, once; any other is killed, and so
 * is that one the next time. Answers whether it was killed.
 * Errors: as `kill`.
 */
static inline int tench_monitor_interrupt(tench_cap server, uint64_t process,
    struct tench_monitor_interrupt_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_INTERRUPT);
    tench_put(message, (uint64_t)process);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    answer->value = (bool)tench_take_at_most(reader, 1);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_LOAD UINT64_C(0x6cb50001000e)

/* What tench_monitor_load answers. */
struct tench_monitor_load_answer {
    uint64_t value;
};

/*
 * How many processes run on a core, neither suspended nor ended; `init` and those that it has started do not count.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`.
 */
static inline int tench_monitor_load(tench_cap server, uint64_t core, struct tench_monitor_load_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_LOAD);
    tench_put(message, (uint64_t)core);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    answer->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_FIND UINT64_C(0x6cb50001000f)

/* What tench_monitor_find answers. */
struct tench_monitor_find_answer {
    uint64_t value;
};

/*
 * The living process of this path or base name with the next higher number. The search ends with the last of the core to which
 * `after` belongs.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `BadStrings`, `NoSuchProcess` when there is none.
 */
static inline int tench_monitor_find(tench_cap server, const char *name, size_t name_length, uint64_t after,
    struct tench_monitor_find_answer *answer)
{
    if (name_length > TENCH_MONITOR_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_FIND);
    tench_put_text(message, name, name_length);
    tench_put(message, (uint64_t)after);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    answer->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
