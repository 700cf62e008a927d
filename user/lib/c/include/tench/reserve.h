/*
 * Reserve, version 1.
 *
 * Reserved shares of the processor. A reservation is for jobs that are released at least a period apart, one at a
 * time, and use no more than a budget each. It gives their scheduling context the budget, and a priority above all
 * programs without a reservation, after the server has made sure that its jobs, and those of all existing
 * reservations, have their budgets within their deadlines. Times are nanoseconds; shares are millionths of the
 * processor. All requests need the power `reserve`, because a reservation takes time from all others, and gives a
 * priority above the caller's ceiling.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_RESERVE_H
#define TENCH_RESERVE_H

#include <tench/message.h>

/* The whole processor, in the unit of shares. */
#define TENCH_RESERVE_WHOLE 1000000
/* Maximum share of all reservations. The rest is for servers and for threads without a reservation. */
#define TENCH_RESERVE_RESERVABLE 800000
/* Shortest budget in nanoseconds. */
#define TENCH_RESERVE_SHORTEST_BUDGET 20000
/* Shortest period in nanoseconds. */
#define TENCH_RESERVE_SHORTEST_PERIOD 500000
/* Longest period in nanoseconds. */
#define TENCH_RESERVE_LONGEST_PERIOD 10000000000
/* Maximum number of reservations. */
#define TENCH_RESERVE_MAX_RESERVATIONS 32
/* Lowest priority of reservations; they have this and those up to [`LAST_PRIORITY`]. */
#define TENCH_RESERVE_FIRST_PRIORITY 131
/* Highest priority of reservations. */
#define TENCH_RESERVE_LAST_PRIORITY 180

/* Why a request was refused. */
enum tench_reserve_error {
    /* The budget is shorter than the shortest. */
    TENCH_RESERVE_ERROR_BUDGET_TOO_SHORT = 1,
    /* The budget does not fit into the deadline, or into what that leaves of the period. */
    TENCH_RESERVE_ERROR_BUDGET_TOO_LONG = 2,
    /* The period is shorter than the shortest. */
    TENCH_RESERVE_ERROR_PERIOD_TOO_SHORT = 3,
    /* The period is longer than the longest. */
    TENCH_RESERVE_ERROR_PERIOD_TOO_LONG = 4,
    /* The deadline leaves too little of the period. */
    TENCH_RESERVE_ERROR_DEADLINE_TOO_LONG = 5,
    /* The share is not free. */
    TENCH_RESERVE_ERROR_OVERCOMMITTED = 6,
    /* A client may not have more than it leaves to others. */
    TENCH_RESERVE_ERROR_EXCESSIVE = 7,
    /* A deadline would be missed. */
    TENCH_RESERVE_ERROR_UNSCHEDULABLE = 8,
    /* No entry is free, or the client has more than are free. */
    TENCH_RESERVE_ERROR_FULL = 9,
    /* The scheduling context's capability lacks a right, or the kernel refuses. */
    TENCH_RESERVE_ERROR_BAD_CONTEXT = 10,
    /* There is a reservation for the context. */
    TENCH_RESERVE_ERROR_RESERVED = 11,
    /* No such reservation. */
    TENCH_RESERVE_ERROR_UNKNOWN = 12,
    /* The reservation is another process's. */
    TENCH_RESERVE_ERROR_NOT_YOURS = 13,
};

/* Whether it is one of them. */
static inline bool tench_reserve_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_RESERVE_ERROR_BUDGET_TOO_SHORT:
    case TENCH_RESERVE_ERROR_BUDGET_TOO_LONG:
    case TENCH_RESERVE_ERROR_PERIOD_TOO_SHORT:
    case TENCH_RESERVE_ERROR_PERIOD_TOO_LONG:
    case TENCH_RESERVE_ERROR_DEADLINE_TOO_LONG:
    case TENCH_RESERVE_ERROR_OVERCOMMITTED:
    case TENCH_RESERVE_ERROR_EXCESSIVE:
    case TENCH_RESERVE_ERROR_UNSCHEDULABLE:
    case TENCH_RESERVE_ERROR_FULL:
    case TENCH_RESERVE_ERROR_BAD_CONTEXT:
    case TENCH_RESERVE_ERROR_RESERVED:
    case TENCH_RESERVE_ERROR_UNKNOWN:
    case TENCH_RESERVE_ERROR_NOT_YOURS:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_reserve_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_RESERVE_ERROR_BUDGET_TOO_SHORT:
        return "the budget is shorter than 20 microseconds";
    case TENCH_RESERVE_ERROR_BUDGET_TOO_LONG:
        return "the budget is longer than the deadline, or than what that leaves of the period; ask for less";
    case TENCH_RESERVE_ERROR_PERIOD_TOO_SHORT:
        return "the period is shorter than 500 microseconds";
    case TENCH_RESERVE_ERROR_PERIOD_TOO_LONG:
        return "the period is longer than 10 seconds";
    case TENCH_RESERVE_ERROR_DEADLINE_TOO_LONG:
        return "the deadline leaves less than 20 microseconds of the period";
    case TENCH_RESERVE_ERROR_OVERCOMMITTED:
        return "so large a share is not free; `possible` says what is";
    case TENCH_RESERVE_ERROR_EXCESSIVE:
        return "your family of processes would have more than it leaves to others; `possible` says what it may have";
    case TENCH_RESERVE_ERROR_UNSCHEDULABLE:
        return "a deadline could be missed; `possible` says which budget could be had";
    case TENCH_RESERVE_ERROR_FULL:
        return "there are too many reservations; release one";
    case TENCH_RESERVE_ERROR_BAD_CONTEXT:
        return "the scheduling context cannot be read and written, or the kernel refuses the budget";
    case TENCH_RESERVE_ERROR_RESERVED:
        return "the scheduling context has a reservation; release it first";
    case TENCH_RESERVE_ERROR_UNKNOWN:
        return "there is no reservation with this number";
    case TENCH_RESERVE_ERROR_NOT_YOURS:
        return "the reservation is another process's";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_reserve_failure(int code)
{
    const char *text = code > 0 ? tench_reserve_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_reserve_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_reserve_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

/* A reservation. */
struct tench_reserve_reservation {
    /* Number of the reservation, which is never used again. */
    uint64_t id;
    /* The process that requested it. */
    uint64_t process;
    /* Budget in each period, in nanoseconds. */
    uint64_t budget;
    /* The period in nanoseconds. */
    uint64_t period;
    /* Time from the release of a job within which it has had its budget, in nanoseconds. */
    uint64_t deadline;
    /* The share that it can use, rounded up: the budget in each period less the deadline. */
    uint64_t share;
    /* The priority that it gives. It changes when reservations with shorter or longer deadlines are added. */
    uint64_t priority;
    /*
     * Maximum time in nanoseconds from the release of a job until it has had its budget, with all existing
     * reservations.
     */
    uint64_t response;
    /* Processor time in nanoseconds that the scheduling context has used since it was made. */
    uint64_t used;
};

static inline void tench_reserve_reservation_put(struct tench_message *message, const struct tench_reserve_reservation *value)
{
    tench_put(message, (uint64_t)value->id);
    tench_put(message, (uint64_t)value->process);
    tench_put(message, (uint64_t)value->budget);
    tench_put(message, (uint64_t)value->period);
    tench_put(message, (uint64_t)value->deadline);
    tench_put(message, (uint64_t)value->share);
    tench_put(message, (uint64_t)value->priority);
    tench_put(message, (uint64_t)value->response);
    tench_put(message, (uint64_t)value->used);
}

static inline void tench_reserve_reservation_take(struct tench_reader *reader, struct tench_reserve_reservation *value)
{
    value->id = tench_take(reader);
    value->process = tench_take(reader);
    value->budget = tench_take(reader);
    value->period = tench_take(reader);
    value->deadline = tench_take(reader);
    value->share = tench_take(reader);
    value->priority = tench_take(reader);
    value->response = tench_take(reader);
    value->used = tench_take(reader);
}

/* A possible reservation. */
struct tench_reserve_possible {
    /* Share that is free for the caller. */
    uint64_t share;
    /* Longest budget in nanoseconds with which no deadline would be missed; 0 if there is none. */
    uint64_t budget;
};

static inline void tench_reserve_possible_put(struct tench_message *message, const struct tench_reserve_possible *value)
{
    tench_put(message, (uint64_t)value->share);
    tench_put(message, (uint64_t)value->budget);
}

static inline void tench_reserve_possible_take(struct tench_reader *reader, struct tench_reserve_possible *value)
{
    value->share = tench_take(reader);
    value->budget = tench_take(reader);
}

#define TENCH_RESERVE_LABEL_RESERVE UINT64_C(0xa13a00010001)

/* What tench_reserve_reserve returns. */
struct tench_reserve_reserve_reply {
    struct tench_reserve_reservation value;
};

/*
 * Reserves `budget` in each `period` for the threads that run on a scheduling context, of which the server keeps a
 * capability (`READ` and `WRITE`). A job has had its budget within `deadline` from its release; 0 stands for half
 * of the period. The kernel lets the context use the budget once in any interval as long as the period less the
 * deadline, so that a delayed job does not delay the next: that share counts, and the shorter the deadline, the
 * smaller it is. Returns the reservation; its times are those requested, the budget rounded up to ticks of the
 * system counter, the others down.
 * Errors: `BudgetTooShort`, `PeriodTooShort`, `PeriodTooLong`, `DeadlineTooLong` (it leaves no budget's time of
 * the period), `BudgetTooLong` (longer than the deadline, or than what that leaves of the period), `Overcommitted`
 * (the share is not free), `Excessive` (the process would have more than it leaves to others), `Unschedulable`
 * (the share is free, but a deadline would be missed), `Full`, `BadContext` (a right is missing, or the kernel
 * refuses), `Reserved` (the context has a reservation already).
 */
static inline int tench_reserve_reserve(tench_cap server, tench_cap context, uint64_t budget, uint64_t period,
    uint64_t deadline, struct tench_reserve_reserve_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_RESERVE_LABEL_RESERVE);
    tench_lend(message, context);
    tench_put(message, (uint64_t)budget);
    tench_put(message, (uint64_t)period);
    tench_put(message, (uint64_t)deadline);
    int code = tench_reserve_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_reserve_reservation_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_RESERVE_LABEL_RELEASE UINT64_C(0xa13a00010002)

/*
 * Ends a reservation. Its scheduling context gets back its previous priority and time slice, and has no budget. If
 * any of the budget was used, the share is free a period less the deadline later.
 * Errors: `Unknown`, `NotYours`.
 */
static inline int tench_reserve_release(tench_cap server, uint64_t id)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_RESERVE_LABEL_RELEASE);
    tench_put(message, (uint64_t)id);
    int code = tench_reserve_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_RESERVE_LABEL_NEXT UINT64_C(0xa13a00010003)

/* What tench_reserve_next returns. */
struct tench_reserve_next_reply {
    bool value_present;
    struct tench_reserve_reservation value;
};

/* Returns the reservation with the next higher number, or none after the last. */
static inline int tench_reserve_next(tench_cap server, uint64_t after, struct tench_reserve_next_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_RESERVE_LABEL_NEXT);
    tench_put(message, (uint64_t)after);
    int code = tench_reserve_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value_present = (bool)tench_take_at_most(reader, 1);
    if (reply->value_present) {
        tench_reserve_reservation_take(reader, &reply->value);
    } else {
        tench_take_zeros(reader, (1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1));
    }
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_RESERVE_LABEL_POSSIBLE UINT64_C(0xa13a00010004)

/* What tench_reserve_possible returns. */
struct tench_reserve_possible_reply {
    struct tench_reserve_possible value;
};

/*
 * Returns what the caller could reserve now with this period and deadline (0: half of the period).
 * Errors: `PeriodTooShort`, `PeriodTooLong`, `DeadlineTooLong`.
 */
static inline int tench_reserve_possible(tench_cap server, uint64_t period, uint64_t deadline,
    struct tench_reserve_possible_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_RESERVE_LABEL_POSSIBLE);
    tench_put(message, (uint64_t)period);
    tench_put(message, (uint64_t)deadline);
    int code = tench_reserve_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_reserve_possible_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
