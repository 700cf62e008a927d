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

/* Maximum size of a program's name and arguments together, with the zero bytes, in bytes. */
#define TENCH_MONITOR_MAX_STRINGS 448
/* Maximum number of bytes of a process's name that are reported. */
#define TENCH_MONITOR_MAX_NAME 255

/* State of a process. */
enum tench_monitor_condition {
    /* The process has not started yet. */
    TENCH_MONITOR_CONDITION_PREPARING = 0,
    /* Started and not ended. */
    TENCH_MONITOR_CONDITION_RUNNING = 1,
    /* None of the process's threads runs. */
    TENCH_MONITOR_CONDITION_SUSPENDED = 2,
    /* The process has ended by itself; `detail` is its exit code. */
    TENCH_MONITOR_CONDITION_EXITED = 3,
    /* The process was killed. */
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

/* State of a core. */
enum tench_monitor_state {
    /* The core is this one. */
    TENCH_MONITOR_STATE_HERE = 1,
    /* The core's kernel was started; its monitor has not replied yet. */
    TENCH_MONITOR_STATE_STARTING = 2,
    /* The core's monitor replies. */
    TENCH_MONITOR_STATE_RUNNING = 3,
    /* The firmware refused to start it. */
    TENCH_MONITOR_STATE_REFUSED = 4,
    /* There was no memory for it. */
    TENCH_MONITOR_STATE_NO_MEMORY = 5,
    /* The core's monitor did not reply in time, and does not. If it replies later, the core runs again. */
    TENCH_MONITOR_STATE_SILENT = 6,
    /* The core's monitor violated the protocol; its messages are no longer trusted. */
    TENCH_MONITOR_STATE_BROKEN = 7,
    /* This core has no channel to it. */
    TENCH_MONITOR_STATE_UNCONNECTED = 8,
    /* The core is off, as the firmware says: it has stopped, or it was never started. */
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
    /* Too many requests wait for replies of that core. */
    TENCH_MONITOR_ERROR_FULL = 3,
    /* The channel is closed, because the other monitor violated the protocol. */
    TENCH_MONITOR_ERROR_BROKEN = 4,
    /* The program's name is missing, or a string is not terminated or not UTF-8. */
    TENCH_MONITOR_ERROR_BAD_STRINGS = 5,
    /* The core's servers replied with something impossible. */
    TENCH_MONITOR_ERROR_INTERNAL = 6,
    /* The core's monitor does not reply; the request may have been carried out or not. */
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
    /* A process with a memory limit cannot start anything on another core, where its limit would not count. */
    TENCH_MONITOR_ERROR_LIMITED = 41,
    /* The process is `init`, `mem`, `procs` or the monitor of its core. */
    TENCH_MONITOR_ERROR_ESSENTIAL = 40,
    /* Only memory, endpoints and notifications can be sent. */
    TENCH_MONITOR_ERROR_NOT_SENDABLE = 64,
    /* Memory of devices stays on its core. */
    TENCH_MONITOR_ERROR_DEVICE_MEMORY = 65,
    /* Too many capabilities sent by the caller have not been taken at that core, or came unexpectedly. */
    TENCH_MONITOR_ERROR_MAILBOX_FULL = 66,
    /* The object is being revoked, or was. */
    TENCH_MONITOR_ERROR_BEING_REVOKED = 67,
    /* The memory is lent already. */
    TENCH_MONITOR_ERROR_LENT = 68,
    /* Something was made of the memory, or it is in use. */
    TENCH_MONITOR_ERROR_IN_USE = 69,
    /* The object belongs to another core. */
    TENCH_MONITOR_ERROR_BORROWED = 70,
    /* A table of the monitors is full. */
    TENCH_MONITOR_ERROR_TOO_MANY_OBJECTS = 71,
    /* A core that was needed has stopped. */
    TENCH_MONITOR_ERROR_CORE_LOST = 72,
    /* The kernel of one of the cores refused. */
    TENCH_MONITOR_ERROR_REFUSED = 73,
    /* There is no object of another core. */
    TENCH_MONITOR_ERROR_NOT_FOREIGN = 74,
    /* The caller has no such block from the memory server. */
    TENCH_MONITOR_ERROR_NO_SUCH_BLOCK = 77,
    /* The requested core has too little free memory to give any. */
    TENCH_MONITOR_ERROR_NOTHING_TO_SPARE = 75,
    /* The requesting core has as much free memory as the requested one, or is the same. */
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
        return "that core does not reply";
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

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_monitor_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_monitor_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

/* Sender and purpose of a received capability. */
struct tench_monitor_transfer {
    /* The process that sent it, of whichever core. */
    uint64_t from;
    /* Word that tells its purpose. */
    uint64_t word;
};

static inline void tench_monitor_transfer_put(struct tench_message *message, const struct tench_monitor_transfer *value)
{
    tench_put(message, (uint64_t)value->from);
    tench_put(message, (uint64_t)value->word);
}

static inline void tench_monitor_transfer_take(struct tench_reader *reader, struct tench_monitor_transfer *value)
{
    value->from = tench_take(reader);
    value->word = tench_take(reader);
}

/* Counts in a monitor's ledger. */
struct tench_monitor_exchanged {
    /* Objects of this core that were exported to others. */
    uint64_t exports;
    /* Objects of other cores that were imported. */
    uint64_t copies;
    /* Capabilities that were sent to processes of this core, and not taken. */
    uint64_t transfers;
    /* Protocol violations by other monitors. */
    uint64_t faults;
    /* Capabilities to endpoints and notifications that other cores hold, as they were sent. */
    uint64_t endpoints;
    /* Capabilities to endpoints and notifications of other cores that this one holds. */
    uint64_t proxies;
};

static inline void tench_monitor_exchanged_put(struct tench_message *message, const struct tench_monitor_exchanged *value)
{
    tench_put(message, (uint64_t)value->exports);
    tench_put(message, (uint64_t)value->copies);
    tench_put(message, (uint64_t)value->transfers);
    tench_put(message, (uint64_t)value->faults);
    tench_put(message, (uint64_t)value->endpoints);
    tench_put(message, (uint64_t)value->proxies);
}

static inline void tench_monitor_exchanged_take(struct tench_reader *reader, struct tench_monitor_exchanged *value)
{
    value->exports = tench_take(reader);
    value->copies = tench_take(reader);
    value->transfers = tench_take(reader);
    value->faults = tench_take(reader);
    value->endpoints = tench_take(reader);
    value->proxies = tench_take(reader);
}

/* A process, on whichever core. */
struct tench_monitor_process {
    /* Number of the process. */
    uint64_t process;
    /* Number of its parent, on whichever core. */
    uint64_t parent;
    /* State of the process. */
    enum tench_monitor_condition state;
    /* Exit code or number of a kind of fault, in the states that have one. */
    uint64_t detail;
    /* Priority of its main thread. */
    uint64_t priority;
    /* Ticks of processor time. */
    uint64_t ticks;
    /* Size of its program in bytes. */
    uint64_t size;
    /* Memory that it uses, in bytes; 0 if it has none any more. */
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
    /* State of the core. */
    enum tench_monitor_state state;
    /* Bytes of memory that it was given; 0 for the first core, which gives it. */
    uint64_t memory;
    /* Ticks of the system counter from its start until its monitor replied; 0 if it has not. */
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

/* What tench_monitor_cores returns. */
struct tench_monitor_cores_reply {
    uint64_t first;
    uint64_t second;
};

/* Returns how many cores the machine has, and the number of this one. */
static inline int tench_monitor_cores(tench_cap server, struct tench_monitor_cores_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_CORES);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->first = tench_take(reader);
    reply->second = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_CORE UINT64_C(0x6cb500010002)

/* What tench_monitor_core returns. */
struct tench_monitor_core_reply {
    struct tench_monitor_core value;
};

/*
 * Returns the state of a core.
 * Errors: `NoSuchCore`.
 */
static inline int tench_monitor_core(tench_cap server, uint64_t core, struct tench_monitor_core_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_CORE);
    tench_put(message, (uint64_t)core);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_core_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_PING UINT64_C(0x6cb500010003)

/* What tench_monitor_ping returns. */
struct tench_monitor_ping_reply {
    uint64_t value;
};

/*
 * Sends a message to the monitor of another core, and waits for its reply. Returns how many ticks of the system
 * counter that took.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`.
 */
static inline int tench_monitor_ping(tench_cap server, uint64_t core, struct tench_monitor_ping_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_PING);
    tench_put(message, (uint64_t)core);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_SPAWN UINT64_C(0x6cb500010004)

/* What tench_monitor_spawn returns. */
struct tench_monitor_spawn_reply {
    uint64_t value;
};

/*
 * Starts a program on a core, with nothing but arguments. `strings` are the program's path or base name and its
 * arguments, each terminated by a zero byte. Returns the process's number, which is unique on all cores. Its
 * parent is the caller, of whichever core.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `BadStrings`; `NoSuchProgram`,
 * `BadProgram`, `OutOfMemory`, `TooManyProcesses`, `TextTooLong` as on the caller's own core.
 */
static inline int tench_monitor_spawn(tench_cap server, uint64_t core, const void *strings, size_t strings_length,
    struct tench_monitor_spawn_reply *reply)
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
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_WAIT UINT64_C(0x6cb500010005)

/* What tench_monitor_wait returns. */
struct tench_monitor_wait_reply {
    struct tench_monitor_process value;
};

/*
 * Waits until a process has ended, on whichever core. Returns its status.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `NoSuchProcess`.
 */
static inline int tench_monitor_wait(tench_cap server, uint64_t process, struct tench_monitor_wait_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_WAIT);
    tench_put(message, (uint64_t)process);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_process_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_KILL UINT64_C(0x6cb500010006)

/*
 * Kills a process, on whichever core. A process may kill its descendants; one that may manage others of its own
 * core may kill those of all cores.
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

/* What tench_monitor_next returns. */
struct tench_monitor_next_reply {
    struct tench_monitor_process value;
};

/*
 * Returns the status of the process with the next higher number. Those of one core are numbered consecutively; the
 * search ends with the last of the core to which `after` belongs, so a list of all begins anew with each core's
 * [`pid_base`].
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `NoSuchProcess` when there is none.
 */
static inline int tench_monitor_next(tench_cap server, uint64_t after, struct tench_monitor_next_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_NEXT);
    tench_put(message, (uint64_t)after);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_process_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_MEMORY UINT64_C(0x6cb500010008)

/* What tench_monitor_memory returns. */
struct tench_monitor_memory_reply {
    struct tench_monitor_memory value;
};

/*
 * Returns how much memory a core's memory server has, in bytes, and how much of that is free.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`.
 */
static inline int tench_monitor_memory(tench_cap server, uint64_t core, struct tench_monitor_memory_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_MEMORY);
    tench_put(message, (uint64_t)core);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_memory_take(reader, &reply->value);
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
 * Resumes a suspended process, on whichever core.
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

/* What tench_monitor_status returns. */
struct tench_monitor_status_reply {
    struct tench_monitor_process value;
};

/*
 * Returns the status of a process, on whichever core.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`.
 */
static inline int tench_monitor_status(tench_cap server, uint64_t process, struct tench_monitor_status_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_STATUS);
    tench_put(message, (uint64_t)process);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_process_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_KILL_ALL UINT64_C(0x6cb50001000c)

/* What tench_monitor_kill_all returns. */
struct tench_monitor_kill_all_reply {
    uint64_t value;
};

/*
 * Kills every process of this path or base name on a core, including those that are started meanwhile, and returns
 * how many. A process that ends by itself is no error. If one may not be killed, the others still are, and then
 * that error is returned.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NotAllowed`, `Essential`, `BadStrings`.
 */
static inline int tench_monitor_kill_all(tench_cap server, uint64_t core, const char *name, size_t name_length,
    struct tench_monitor_kill_all_reply *reply)
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
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_INTERRUPT UINT64_C(0x6cb50001000d)

/* What tench_monitor_interrupt returns. */
struct tench_monitor_interrupt_reply {
    bool value;
};

/*
 * Ends a process as Ctrl-C does, on whichever core: one that wants to end by itself is told so, once; any other is
 * killed, and so is that one the next time. Returns whether it was killed.
 * Errors: as `kill`.
 */
static inline int tench_monitor_interrupt(tench_cap server, uint64_t process,
    struct tench_monitor_interrupt_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_INTERRUPT);
    tench_put(message, (uint64_t)process);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = (bool)tench_take_at_most(reader, 1);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_LOAD UINT64_C(0x6cb50001000e)

/* What tench_monitor_load returns. */
struct tench_monitor_load_reply {
    uint64_t value;
};

/*
 * Returns how many processes run on a core, neither suspended nor ended; `init` and those that it has started do
 * not count.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`.
 */
static inline int tench_monitor_load(tench_cap server, uint64_t core, struct tench_monitor_load_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_LOAD);
    tench_put(message, (uint64_t)core);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_FIND UINT64_C(0x6cb50001000f)

/* What tench_monitor_find returns. */
struct tench_monitor_find_reply {
    uint64_t value;
};

/*
 * Returns the process of this path or base name with the next higher number that has not ended. The search ends
 * with the last of the core to which `after` belongs.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `BadStrings`, `NoSuchProcess` when there is none.
 */
static inline int tench_monitor_find(tench_cap server, const char *name, size_t name_length, uint64_t after,
    struct tench_monitor_find_reply *reply)
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
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_GIVE UINT64_C(0x6cb500010014)

/*
 * Sends a copy of a capability to a frame, an endpoint or a notification to a process of any core, with a word
 * that tells its purpose. The reply comes when the copy is in the receiver's mailbox, or on its way there, for the
 * process to `take`. The copy has the rights of the caller's; on another core, an endpoint can be called and sent
 * to, not received at, and a notification be signalled, not waited for.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`; `NotSendable`, `DeviceMemory`,
 * `MailboxFull`, `BeingRevoked`, `TooManyObjects`, `CoreLost`, `Refused`; `NotAllowed` for a caller that is no
 * process.
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
 * Lends unused untyped memory to a process of any core, which may make any objects of it. The capability leaves
 * the caller, even if the request is refused: the memory is again part of what it was made of when it has come
 * back (`recall`).
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

/* What tench_monitor_take returns. */
struct tench_monitor_take_reply {
    struct tench_monitor_transfer value;
};

/*
 * Waits for the next capability that was sent to the caller. Returns the sending process, and the word.
 * Errors: `Full` (too many threads wait), `NotAllowed` for a caller that is no process.
 */
static inline int tench_monitor_take(tench_cap server, tench_cap slot, struct tench_monitor_take_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_TAKE);
    tench_offer(message, slot);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_transfer_take(reader, &reply->value);
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_REVOKE UINT64_C(0x6cb500010017)

/*
 * Revokes, from all other cores, the object of a capability, for the process that has sent it there and cannot
 * revoke or delete it in the kernel because there are remote copies. The reply comes when no other core has a
 * copy, nor anything that was made of one.
 * Errors: `NotSendable`, `Borrowed` (it is another core's), `NotAllowed` (another process has sent it; the owner
 * of the memory has it revoked by trying to revoke it in the kernel), `Full`.
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
 * Revokes, from all other cores, what the caller has sent or lent there of its block of this number from the
 * memory server. The reply comes when nothing is left of it there.
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
 * Gives the object that begins at a physical address back to the core that it came from, after its capabilities
 * here were deleted. It goes back after a moment in any case.
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

/* What tench_monitor_exchanged returns. */
struct tench_monitor_exchanged_reply {
    struct tench_monitor_exchanged value;
};

/*
 * Returns the counts in this core's monitor's ledger: exported objects, imported objects, capabilities that were
 * sent and not taken, protocol violations by other monitors, and endpoints and notifications that are used from
 * other cores.
 */
static inline int tench_monitor_exchanged(tench_cap server, struct tench_monitor_exchanged_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_EXCHANGED);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_monitor_exchanged_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_GROW UINT64_C(0x6cb50001001b)

/* What tench_monitor_grow returns. */
struct tench_monitor_grow_reply {
    uint64_t value;
};

/*
 * Requests memory from another core, which is given for good: about this many bytes, a power of two of at least 1
 * MiB. A core gives only what leaves it as much free memory as the requester has then, and 32 MiB. Returns how
 * many bytes were given; this core's memory server has them a moment later.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`; `NothingToSpare`, `NoRicher` if that core gives nothing,
 * `OutOfMemory` if it has nothing in one piece; `CoreLost`, `Refused`.
 */
static inline int tench_monitor_grow(tench_cap server, uint64_t from, uint64_t bytes,
    struct tench_monitor_grow_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MONITOR_LABEL_GROW);
    tench_put(message, (uint64_t)from);
    tench_put(message, (uint64_t)bytes);
    int code = tench_monitor_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MONITOR_LABEL_PROCESSES UINT64_C(0x6cb50001001c)

/*
 * Returns a capability to the process server of any core, with the same meaning as for that core's own processes:
 * it identifies the caller, and what the caller prepares there and starts has it as its parent. Process builders
 * are discarded when the caller has deleted the capability. The capability goes to the empty slot on offer.
 * Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`; `NotAllowed` for a caller that is no process.
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
