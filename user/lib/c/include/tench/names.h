/*
 * Names, version 2.
 *
 * Endpoints by name. Names that contain a `/` are open to everybody, first come, first served; by convention, a
 * program's names begin with its own: `chess/board`. Names without a `/` are the system's: only processes with the
 * power `names` register them, so that no other process can take the name of a server that is being restarted.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_NAMES_H
#define TENCH_NAMES_H

#include <tench/message.h>

/* Maximum length of a name in bytes. */
#define TENCH_NAMES_MAX_NAME 255

/* Why a request was refused. */
enum tench_names_error {
    /* A name is empty, or contains control characters. */
    TENCH_NAMES_ERROR_BAD_NAME = 1,
    /* Another process has registered this name. */
    TENCH_NAMES_ERROR_TAKEN = 2,
    /* The table of names or of waiting threads is full, or the process's family has more entries than are free. */
    TENCH_NAMES_ERROR_FULL = 3,
    /* This name is not registered. */
    TENCH_NAMES_ERROR_UNKNOWN = 4,
    /* Another process has registered this name. */
    TENCH_NAMES_ERROR_NOT_YOURS = 5,
    /* The name is the system's, and the process may not register such names. */
    TENCH_NAMES_ERROR_NOT_ALLOWED = 6,
};

/* Whether it is one of them. */
static inline bool tench_names_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_NAMES_ERROR_BAD_NAME:
    case TENCH_NAMES_ERROR_TAKEN:
    case TENCH_NAMES_ERROR_FULL:
    case TENCH_NAMES_ERROR_UNKNOWN:
    case TENCH_NAMES_ERROR_NOT_YOURS:
    case TENCH_NAMES_ERROR_NOT_ALLOWED:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_names_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_NAMES_ERROR_BAD_NAME:
        return "a name has 1 to 255 bytes of UTF-8 without control characters";
    case TENCH_NAMES_ERROR_TAKEN:
        return "the name is taken; choose another";
    case TENCH_NAMES_ERROR_FULL:
        return "the name server is full, or you have more names than are free; unregister a name first";
    case TENCH_NAMES_ERROR_UNKNOWN:
        return "nobody has registered this name";
    case TENCH_NAMES_ERROR_NOT_YOURS:
        return "another process registered this name; only that one can unregister it";
    case TENCH_NAMES_ERROR_NOT_ALLOWED:
        return "names without a / are the system's; register one with a /, such as PROGRAM/NAME";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_names_failure(int code)
{
    const char *text = code > 0 ? tench_names_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_names_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_names_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

#define TENCH_NAMES_LABEL_REGISTER UINT64_C(0xb27a00020001)

/*
 * Registers an endpoint under a name. A client that looks the name up gets a copy of this capability, so it
 * usually permits only calls. If the capability has no badge, the copy's badge is the number and the family of the
 * client: so a server knows its clients. If moreover the name is the system's, the badge also contains the
 * client's powers. If the process has registered the name before, the new endpoint replaces the old one.
 * Errors: `BadName`, `NotAllowed` (a name of the system's, without the power `names`), `Taken` (by another
 * process), `Full` (no name is free, or the process's family has more than are free).
 */
static inline int tench_names_register(tench_cap server, const char *name, size_t name_length, tench_cap endpoint)
{
    if (name_length > TENCH_NAMES_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_NAMES_LABEL_REGISTER);
    tench_put_text(message, name, name_length);
    tench_lend(message, endpoint);
    int code = tench_names_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_NAMES_LABEL_LOOK_UP UINT64_C(0xb27a00020002)

/*
 * Returns the endpoint registered under a name; the capability goes to the empty slot on offer.
 * Errors: `BadName`, `Unknown`.
 */
static inline int tench_names_look_up(tench_cap server, const char *name, size_t name_length, tench_cap slot)
{
    if (name_length > TENCH_NAMES_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_NAMES_LABEL_LOOK_UP);
    tench_put_text(message, name, name_length);
    tench_offer(message, slot);
    int code = tench_names_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_NAMES_LABEL_WAIT_FOR UINT64_C(0xb27a00020003)

/*
 * Returns the endpoint registered under a name, and waits for that if need be.
 * Errors: `BadName`, `Full` (no more threads can wait, or more threads of the family wait than waits are free).
 */
static inline int tench_names_wait_for(tench_cap server, const char *name, size_t name_length, tench_cap slot)
{
    if (name_length > TENCH_NAMES_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_NAMES_LABEL_WAIT_FOR);
    tench_put_text(message, name, name_length);
    tench_offer(message, slot);
    int code = tench_names_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_NAMES_LABEL_UNREGISTER UINT64_C(0xb27a00020004)

/*
 * Removes a name that this process registered.
 * Errors: `BadName`, `Unknown`, `NotYours`.
 */
static inline int tench_names_unregister(tench_cap server, const char *name, size_t name_length)
{
    if (name_length > TENCH_NAMES_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_NAMES_LABEL_UNREGISTER);
    tench_put_text(message, name, name_length);
    int code = tench_names_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_NAMES_LABEL_NEXT UINT64_C(0xb27a00020005)

/* What tench_names_next returns. */
struct tench_names_next_reply {
    char first[TENCH_NAMES_MAX_NAME + 1];
    size_t first_length;
    uint64_t second;
};

/*
 * Returns the first name after another in alphabetical order (for the first of all: after the empty name) and the
 * process that registered it.
 * Errors: `Unknown` when there is none.
 */
static inline int tench_names_next(tench_cap server, const char *name, size_t name_length,
    struct tench_names_next_reply *reply)
{
    if (name_length > TENCH_NAMES_MAX_NAME)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_NAMES_LABEL_NEXT);
    tench_put_text(message, name, name_length);
    int code = tench_names_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->first_length = tench_take_bytes(reader, reply->first, TENCH_NAMES_MAX_NAME);
    reply->first[reply->first_length] = '\0';
    reply->second = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_NAMES_LABEL_PROCESS_ENDED UINT64_C(0xb27a00020006)

/* What tench_names_process_ended returns. */
struct tench_names_process_ended_reply {
    bool value_present;
    uint64_t value;
};

/*
 * Reports that a process has ended: its names and waits are removed. Returns another process of the same core, if
 * the server must know whether that one runs: one that has registered its first name. If that process has ended,
 * this is to be reported in the same way; otherwise with `process_lives`.
 */
static inline int tench_names_process_ended(tench_cap server, uint64_t process,
    struct tench_names_process_ended_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_NAMES_LABEL_PROCESS_ENDED);
    tench_put(message, (uint64_t)process);
    int code = tench_names_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value_present = (bool)tench_take_at_most(reader, 1);
    if (reply->value_present) {
        reply->value = tench_take(reader);
    } else {
        tench_take_zeros(reader, 1);
    }
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_NAMES_LABEL_PROCESS_LIVES UINT64_C(0xb27a00020007)

/* What tench_names_process_lives returns. */
struct tench_names_process_lives_reply {
    bool value_present;
    uint64_t value;
};

/* Reports that a process runs and keeps its names. Returns the same as `process_ended`. */
static inline int tench_names_process_lives(tench_cap server, uint64_t process,
    struct tench_names_process_lives_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_NAMES_LABEL_PROCESS_LIVES);
    tench_put(message, (uint64_t)process);
    int code = tench_names_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value_present = (bool)tench_take_at_most(reader, 1);
    if (reply->value_present) {
        reply->value = tench_take(reader);
    } else {
        tench_take_zeros(reader, 1);
    }
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
