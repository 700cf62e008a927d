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
    /* Its monitor did not answer in time, and does not. If it does later, the core runs again. */
    TENCH_MONITOR_STATE_SILENT = 6,
    /* Its monitor wrote what no monitor writes; nothing of it is believed any more. */
    TENCH_MONITOR_STATE_BROKEN = 7,
    /* This core has no channel to it. */
    TENCH_MONITOR_STATE_UNCONNECTED = 8,
    /* It is off, as the firmware says: it has stopped, or it was never started. */
    TENCH_MONITOR_STATE_STOPPED = 9,
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
    case TENCH_MONITOR_STATE_STOPPED:
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
    case TENCH_MONITOR_STATE_STOPPED:
        return "stopped";
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
    /* The core's monitor does not answer; what it was asked may have been done or not. */
    TENCH_MONITOR_ERROR_SILENT = 7,
    /* The core has stopped. */
    TENCH_MONITOR_ERROR_STOPPED = 8,
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
    /* What a process with a limit would start on another core would count in no limit. */
    TENCH_MONITOR_ERROR_LIMITED = 41,
    /* The process is `init`, `mem`, `procs` or the monitor of its core. */
    TENCH_MONITOR_ERROR_ESSENTIAL = 40,
    /* Only memory, endpoints and notifications can be sent. */
    TENCH_MONITOR_ERROR_NOT_SENDABLE = 64,
    /* Memory of devices stays on its core. */
    TENCH_MONITOR_ERROR_DEVICE_MEMORY = 65,
    /* Too much lies at that core that was sent by the caller and not taken, or that nobody expects. */
    TENCH_MONITOR_ERROR_MAILBOX_FULL = 66,
    /* The object is being taken back, or was. */
    TENCH_MONITOR_ERROR_BEING_REVOKED = 67,
    /* The memory is lent already. */
    TENCH_MONITOR_ERROR_LENT = 68,
    /* Something was made of the memory, or somebody uses it. */
    TENCH_MONITOR_ERROR_IN_USE = 69,
    /* It belongs to another core. */
    TENCH_MONITOR_ERROR_BORROWED = 70,
    /* A table of the monitors is full. */
    TENCH_MONITOR_ERROR_TOO_MANY_OBJECTS = 71,
    /* A core that was needed has stopped. */
    TENCH_MONITOR_ERROR_CORE_LOST = 72,
    /* The kernel of one of the cores refused. */
    TENCH_MONITOR_ERROR_REFUSED = 73,
    /* Nothing of another core's is there. */
    TENCH_MONITOR_ERROR_NOT_FOREIGN = 74,
    /* The memory server gave the caller no such block. */
    TENCH_MONITOR_ERROR_NO_SUCH_BLOCK = 77,
    /* A core is asked for memory that needs all that it has free. */
    TENCH_MONITOR_ERROR_NOTHING_TO_SPARE = 75,
    /* A core is asked for memory by one that has as much free, or by itself. */
    TENCH_MONITOR_ERROR_NO_RICHER = 76,
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
    case TENCH_MONITOR_ERROR_SILENT:
    case TENCH_MONITOR_ERROR_STOPPED:
    case TENCH_MONITOR_ERROR_NO_SUCH_PROCESS:
    case TENCH_MONITOR_ERROR_WRONG_STATE:
    case TENCH_MONITOR_ERROR_NO_SUCH_PROGRAM:
    case TENCH_MONITOR_ERROR_BAD_PROGRAM:
    case TENCH_MONITOR_ERROR_OUT_OF_MEMORY:
    case TENCH_MONITOR_ERROR_TOO_MANY_PROCESSES:
    case TENCH_MONITOR_ERROR_TEXT_TOO_LONG:
    case TENCH_MONITOR_ERROR_NOT_ALLOWED:
    case TENCH_MONITOR_ERROR_LIMITED:
    case TENCH_MONITOR_ERROR_ESSENTIAL:
    case TENCH_MONITOR_ERROR_NOT_SENDABLE:
    case TENCH_MONITOR_ERROR_DEVICE_MEMORY:
    case TENCH_MONITOR_ERROR_MAILBOX_FULL:
    case TENCH_MONITOR_ERROR_BEING_REVOKED:
    case TENCH_MONITOR_ERROR_LENT:
    case TENCH_MONITOR_ERROR_IN_USE:
    case TENCH_MONITOR_ERROR_BORROWED:
    case TENCH_MONITOR_ERROR_TOO_MANY_OBJECTS:
    case TENCH_MONITOR_ERROR_CORE_LOST:
    case TENCH_MONITOR_ERROR_REFUSED:
    case TENCH_MONITOR_ERROR_NOT_FOREIGN:
    case TENCH_MONITOR_ERROR_NO_SUCH_BLOCK:
    case TENCH_MONITOR_ERROR_NOTHING_TO_SPARE:
    case TENCH_MONITOR_ERROR_NO_RICHER:
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
    case TENCH_MONITOR_ERROR_SILENT:
        return "that core does not answer";
    case TENCH_MONITOR_ERROR_STOPPED:
        return "that core has stopped";
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
        return "this takes a power that you do not have; `caps` shows which you have";
    case TENCH_MONITOR_ERROR_LIMITED:
        return "your memory is limited, which counts on your own core alone: who has no limit can start that there, with a limit";
    case TENCH_MONITOR_ERROR_ESSENTIAL:
        return "nothing would go on without it";
    case TENCH_MONITOR_ERROR_NOT_SENDABLE:
        return "only frames, untyped memory, endpoints to call and notifications to signal can be sent to a process";
    case TENCH_MONITOR_ERROR_DEVICE_MEMORY:
        return "memory of devices stays on its core";
    case TENCH_MONITOR_ERROR_MAILBOX_FULL:
        return "too much was sent there that nobody has taken; try again later";
    case TENCH_MONITOR_ERROR_BEING_REVOKED:
        return "it is being taken back from other cores";
    case TENCH_MONITOR_ERROR_LENT:
        return "the memory is lent to a core already";
    case TENCH_MONITOR_ERROR_IN_USE:
        return "something was made of the memory; delete that first";
    case TENCH_MONITOR_ERROR_BORROWED:
        return "it belongs to another core, and only there can this be asked";
    case TENCH_MONITOR_ERROR_TOO_MANY_OBJECTS:
        return "too many objects are on other cores; take some back first";
    case TENCH_MONITOR_ERROR_CORE_LOST:
        return "a core that was needed has stopped";
    case TENCH_MONITOR_ERROR_REFUSED:
        return "the kernel of one of the cores refused";
    case TENCH_MONITOR_ERROR_NOT_FOREIGN:
        return "nothing of another core's begins there";
    case TENCH_MONITOR_ERROR_NO_SUCH_BLOCK:
        return "you have no block with that number from the memory server";
    case TENCH_MONITOR_ERROR_NOTHING_TO_SPARE:
        return "that core gives nothing: it keeps 32 MiB free for itself, and has less than 1 MiB more";
    case TENCH_MONITOR_ERROR_NO_RICHER:
        return "that core gives nothing: it would have less free memory than this one then";
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

/* What a capability comes with. */
struct tench_monitor_letter {
    /* The process that sent it, of whichever core. */
    uint64_t from;
    /* What it is for. */
    uint64_t word;
};

static inline void tench_monitor_letter_put(struct tench_message *message, const struct tench_monitor_letter *value)
{
    tench_put(message, (uint64_t)value->from);
    tench_put(message, (uint64_t)value->word);
}

static inline void tench_monitor_letter_take(struct tench_reader *reader, struct tench_monitor_letter *value)
{
    value->from = tench_take(reader);
    value->word = tench_take(reader);
}

/* What a monitor keeps books of. */
struct tench_monitor_exchanged {
    /* Objects of this core that others have. */
    uint64_t exports;
    /* Objects of other cores that this one has. */
    uint64_t copies;
    /* Capabilities that were sent to processes of this core, and not taken. */
    uint64_t letters;
    /* What other monitors said and none says. */
    uint64_t faults;
    /* Capabilities to endpoints and notifications that other cores have, as they were sent. */
    uint64_t endpoints;
    /* The same of other cores that this one has. */
    uint64_t proxies;
};

static inline void tench_monitor_exchanged_put(struct tench_message *message, const struct tench_monitor_exchanged *value)
{
    tench_put(message, (uint64_t)value->exports);
    tench_put(message, (uint64_t)value->copies);
    tench_put(message, (uint64_t)value->letters);
    tench_put(message, (uint64_t)value->faults);
    tench_put(message, (uint64_t)value->endpoints);
    tench_put(message, (uint64_t)value->proxies);
}

static inline void tench_monitor_exchanged_take(struct tench_reader *reader, struct tench_monitor_exchanged *value)
{
    value->exports = tench_take(reader);
    value->copies = tench_take(reader);
    value->letters = tench_take(reader);
    value->faults = tench_take(reader);
    value->endpoints = tench_take(reader);
    value->proxies = tench_take(reader);
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
 * Sends a message to the monitor of another core, which answers it. Answers how many ticks of the system counter
 * that took.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`.
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
 * Starts a program on a core, with nothing but arguments. `strings` are the program's path or base name and its
 * arguments, each of which ends with a zero byte. Answers the process's number, which no process of any core has
 * besides. Its parent is the process that asks, of whichever core.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `BadStrings`; `NoSuchProgram`,
 * `BadProgram`, `OutOfMemory`, `TooManyProcesses`, `TextTooLong` as on the caller's own core.
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
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `NoSuchProcess`.
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
 * Kills a process, on whichever core. A process may kill its descendants, and one that manages others of its own
 * core those of all cores.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `NoSuchProcess`, `WrongState`,
 * `NotAllowed`, `Essential`.
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
 * What is known about the process with the next higher number. Those of one core are numbered one after another;
 * the search ends with the last of the core to which `after` belongs, so a list of all begins anew with each
 * core's [`first`].
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `NoSuchProcess` when there is none.
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
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`.
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
 * Kills every process of this path or base name on a core, also those that are started meanwhile, and answers how
 * many. That one ends by itself is no error; and if one may not be killed, the others are nevertheless, and that
 * is the answer.
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
 * Ends a process as Ctrl-C does, on whichever core: one that wants to end by itself is told so, once; any other is
 * killed, and so is that one the next time. Answers whether it was killed.
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
 * How many processes run on a core, neither suspended nor ended; `init` and those that it has started do not
 * count.
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
 * The living process of this path or base name with the next higher number. The search ends with the last of the
 * core to which `after` belongs.
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

#define TENCH_MONITOR_LABEL_GIVE UINT64_C(0x6cb500010014)

/*
 * Sends a copy of a capability to a frame, an endpoint or a notification to a process of any core, with a word
 * that says what it is for. Answered when it lies there, or is on its way there, for the process to `take`. The
 * copy allows what the caller's allows; on another core, an endpoint can be called and sent to, not received at,
 * and a notification be signalled, not waited for.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`; `NotSendable`, `DeviceMemory`,
 * `MailboxFull`, `BeingRevoked`, `TooManyObjects`, `CoreLost`, `Refused`; `NotAllowed` for who is no process.
 */
static inline int tench_monitor_give(tench_cap server, uint64_t process, uint64_t word, tench_cap capability)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_GIVE);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)word);
    tench_lend(message, capability);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_LEND UINT64_C(0x6cb500010015)

/*
 * Lends untyped memory of which nothing was made to a process of any core, which makes of it what it likes. The
 * capability leaves the caller, also if that is refused: the memory is again part of what it was made of, when it
 * has come back (`recall`).
 * Errors: as `give`, and `Lent`, `InUse`.
 */
static inline int tench_monitor_lend(tench_cap server, uint64_t process, uint64_t word, tench_cap memory)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_LEND);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)word);
    tench_give(message, memory);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_TAKE UINT64_C(0x6cb500010016)

/* What tench_monitor_take answers. */
struct tench_monitor_take_answer {
    struct tench_monitor_letter value;
};

/*
 * Waits for the next capability that was sent to the caller. Answers which process sent it, and the word.
 * Errors: `Full` (too many threads wait), `NotAllowed` for who is no process.
 */
static inline int tench_monitor_take(tench_cap server, tench_cap slot, struct tench_monitor_take_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_TAKE);
    tench_offer(message, slot);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_letter_take(reader, &answer->value);
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_REVOKE UINT64_C(0x6cb500010017)

/*
 * Takes back what a capability is to from all other cores, for whoever has sent it there and is refused by the
 * kernel to revoke or delete it because there are foreign copies. Answered when no other core has a copy, nor
 * anything that was made of one.
 * Errors: `NotSendable`, `Borrowed` (it is another core's), `NotAllowed` (somebody else has sent it; whose memory
 * it is has it taken back by trying to revoke it), `Full`.
 */
static inline int tench_monitor_revoke(tench_cap server, tench_cap capability)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_REVOKE);
    tench_lend(message, capability);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_RECALL UINT64_C(0x6cb500010018)

/*
 * Takes back from all other cores what the caller has sent or lent there of a block that the memory server gave
 * it, and that has this number. Answered when nothing is left of it there.
 * Errors: `Full`, `NoSuchBlock`.
 */
static inline int tench_monitor_recall(tench_cap server, uint16_t block)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_RECALL);
    tench_put(message, (uint64_t)block);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_GIVE_BACK UINT64_C(0x6cb500010019)

/*
 * Gives what begins at a physical address back to the core that it came from, whose capabilities here were
 * deleted. It goes back after a moment in any case.
 * Errors: `NotForeign`, `InUse`.
 */
static inline int tench_monitor_give_back(tench_cap server, uint64_t address)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_GIVE_BACK);
    tench_put(message, (uint64_t)address);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_EXCHANGED UINT64_C(0x6cb50001001a)

/* What tench_monitor_exchanged answers. */
struct tench_monitor_exchanged_answer {
    struct tench_monitor_exchanged value;
};

/*
 * What this core's monitor keeps books of: objects of this core that others have, objects of others that this one
 * has, capabilities that were sent and not taken, how often another monitor said what none says, and endpoints and
 * notifications that are used from other cores.
 */
static inline int tench_monitor_exchanged(tench_cap server, struct tench_monitor_exchanged_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_EXCHANGED);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_exchanged_take(reader, &answer->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_GROW UINT64_C(0x6cb50001001b)

/* What tench_monitor_grow answers. */
struct tench_monitor_grow_answer {
    uint64_t value;
};

/*
 * Asks another core for memory, which is given for good: about so many bytes, a power of two of at least 1 MiB. A
 * core gives only what leaves it as much free memory as the one that asks has then, and 32 MiB. Answers how many
 * bytes were given; this core's memory server has them a moment later.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`; `NothingToSpare`, `NoRicher` if that core gives nothing,
 * `OutOfMemory` if it has nothing in one piece; `CoreLost`, `Refused`.
 */
static inline int tench_monitor_grow(tench_cap server, uint64_t from, uint64_t bytes,
    struct tench_monitor_grow_answer *answer)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_GROW);
    tench_put(message, (uint64_t)from);
    tench_put(message, (uint64_t)bytes);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    answer->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_PROCESSES UINT64_C(0x6cb50001001c)

/*
 * The process server of any core, as it is for processes of its own: it sees who asks, and what the caller
 * prepares there and starts has it as its parent. What is prepared is given up when the caller has deleted the
 * capability. The capability goes to the empty slot.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`; `NotAllowed` for who is no process.
 */
static inline int tench_monitor_processes(tench_cap server, uint64_t core, tench_cap slot)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_PROCESSES);
    tench_put(message, (uint64_t)core);
    tench_offer(message, slot);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
