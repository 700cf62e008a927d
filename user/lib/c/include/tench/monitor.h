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
};

/* Whether it is one of them. */
static inline bool tench_monitor_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_MONITOR_ERROR_NO_SUCH_CORE:
    case TENCH_MONITOR_ERROR_NOT_CONNECTED:
    case TENCH_MONITOR_ERROR_FULL:
    case TENCH_MONITOR_ERROR_BROKEN:
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

#endif
