/*
 * Clock, version 2.
 *
 * Time and delays. Time is counted in ticks of the system counter since the machine was started.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_CLOCK_H
#define TENCH_CLOCK_H

#include <tench/message.h>

/* Number of [`Event::Tick`] in a second. */
#define TENCH_CLOCK_TICKS_PER_SECOND 100

/* An event that can be awaited. */
enum tench_clock_event {
    /* The next multiple of 10 milliseconds. */
    TENCH_CLOCK_EVENT_TICK = 1,
};

/* Whether it is one of them. */
static inline bool tench_clock_event_is(uint64_t code)
{
    switch (code) {
    case TENCH_CLOCK_EVENT_TICK:
        return true;
    default:
        return false;
    }
}

/* Why a request was refused. */
enum tench_clock_error {
    /* Too many threads wait. */
    TENCH_CLOCK_ERROR_FULL = 1,
};

/* Whether it is one of them. */
static inline bool tench_clock_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_CLOCK_ERROR_FULL:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_clock_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_CLOCK_ERROR_FULL:
        return "too many threads wait at the clock server; try again later";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_clock_failure(int code)
{
    const char *text = code > 0 ? tench_clock_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_clock_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_clock_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

#define TENCH_CLOCK_LABEL_TIME UINT64_C(0x3ba200020001)

/* What tench_clock_time returns. */
struct tench_clock_time_reply {
    uint64_t first;
    uint64_t second;
    uint64_t third;
};

/* Returns the time, the ticks per second, and the time in nanoseconds. */
static inline int tench_clock_time(tench_cap server, struct tench_clock_time_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CLOCK_LABEL_TIME);
    int code = tench_clock_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->first = tench_take(reader);
    reply->second = tench_take(reader);
    reply->third = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CLOCK_LABEL_DELAY UINT64_C(0x3ba200020002)

/* What tench_clock_delay returns. */
struct tench_clock_delay_reply {
    uint64_t value;
};

/*
 * Waits for a number of ticks. Returns the time.
 * Errors: `Full`.
 */
static inline int tench_clock_delay(tench_cap server, uint64_t ticks, struct tench_clock_delay_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CLOCK_LABEL_DELAY);
    tench_put(message, (uint64_t)ticks);
    int code = tench_clock_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CLOCK_LABEL_DELAY_UNTIL UINT64_C(0x3ba200020003)

/* What tench_clock_delay_until returns. */
struct tench_clock_delay_until_reply {
    uint64_t value;
};

/*
 * Waits until a time. Returns the time, at once if it is past.
 * Errors: `Full`.
 */
static inline int tench_clock_delay_until(tench_cap server, uint64_t time, struct tench_clock_delay_until_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CLOCK_LABEL_DELAY_UNTIL);
    tench_put(message, (uint64_t)time);
    int code = tench_clock_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CLOCK_LABEL_AWAIT_EVENT UINT64_C(0x3ba200020004)

/* What tench_clock_await_event returns. */
struct tench_clock_await_event_reply {
    uint64_t value;
};

/*
 * Waits for the next event of a kind. Returns the time.
 * Errors: `Full`.
 */
static inline int tench_clock_await_event(tench_cap server, enum tench_clock_event event,
    struct tench_clock_await_event_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CLOCK_LABEL_AWAIT_EVENT);
    tench_put(message, (uint64_t)event);
    int code = tench_clock_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CLOCK_LABEL_PROCESS_ENDED UINT64_C(0x3ba200020005)

/* What tench_clock_process_ended returns. */
struct tench_clock_process_ended_reply {
    bool value;
};

/* Reports that a process has ended: some of its waits are removed. Returns whether there are more. */
static inline int tench_clock_process_ended(tench_cap server, uint64_t process,
    struct tench_clock_process_ended_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CLOCK_LABEL_PROCESS_ENDED);
    tench_put(message, (uint64_t)process);
    int code = tench_clock_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = (bool)tench_take_at_most(reader, 1);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
