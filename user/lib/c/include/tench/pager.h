/*
 * PagerClient, version 1.
 *
 * Pages for regions of its clients.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_PAGER_H
#define TENCH_PAGER_H

#include <tench/message.h>


/* Why a request or a fault was refused. */
enum tench_pager_error {
    /* The region is not aligned, or attached already. */
    TENCH_PAGER_ERROR_BAD_REGION = 2,
    /* There is no such region. */
    TENCH_PAGER_ERROR_NO_SUCH_REGION = 4,
    /* The region to fill is not empty. */
    TENCH_PAGER_ERROR_NOT_EMPTY = 5,
    /* The pager does not share that client's pages with this one. */
    TENCH_PAGER_ERROR_NOT_ALLOWED = 6,
    /* A fault outside of what the pager provides. */
    TENCH_PAGER_ERROR_NOT_MINE = 7,
    /* The pager has no free page, or none for this client. */
    TENCH_PAGER_ERROR_OUT_OF_PAGES = 8,
    /* The kernel refused a mapping. */
    TENCH_PAGER_ERROR_REFUSED = 9,
    /* The pager serves no more regions of this client. */
    TENCH_PAGER_ERROR_TOO_MANY_REGIONS = 10,
};

/* Whether it is one of them. */
static inline bool tench_pager_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_PAGER_ERROR_BAD_REGION:
    case TENCH_PAGER_ERROR_NO_SUCH_REGION:
    case TENCH_PAGER_ERROR_NOT_EMPTY:
    case TENCH_PAGER_ERROR_NOT_ALLOWED:
    case TENCH_PAGER_ERROR_NOT_MINE:
    case TENCH_PAGER_ERROR_OUT_OF_PAGES:
    case TENCH_PAGER_ERROR_REFUSED:
    case TENCH_PAGER_ERROR_TOO_MANY_REGIONS:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_pager_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_PAGER_ERROR_BAD_REGION:
        return "a region begins at a multiple of 2 MiB, and is attached once";
    case TENCH_PAGER_ERROR_NO_SUCH_REGION:
        return "no such region; attach it first";
    case TENCH_PAGER_ERROR_NOT_EMPTY:
        return "the region has pages already; share into a new one";
    case TENCH_PAGER_ERROR_NOT_ALLOWED:
        return "this client may not see that one's pages";
    case TENCH_PAGER_ERROR_NOT_MINE:
        return "the address lies in no region of this client, or an instruction was fetched there";
    case TENCH_PAGER_ERROR_OUT_OF_PAGES:
        return "the pager has no free page for this client; detach a region";
    case TENCH_PAGER_ERROR_REFUSED:
        return "the kernel refused the mapping; the client's page table is gone or in use";
    case TENCH_PAGER_ERROR_TOO_MANY_REGIONS:
        return "the pager serves no more regions of this client; detach one";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_pager_failure(int code)
{
    const char *text = code > 0 ? tench_pager_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_pager_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_pager_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

/* Counts of a pager's work: pages, and faults that were refused. */
struct tench_pager_statistics {
    /* Zeroed pages. */
    uint64_t fresh;
    /* Pages copied, because another client shows them. */
    uint64_t copied;
    /* Pages written in place, because nobody else shows them any more. */
    uint64_t kept;
    /* Pages that one more client shows. */
    uint64_t joined;
    /* Faults that were refused. */
    uint64_t refused;
    /* Pages that are free. */
    uint64_t free;
};

static inline void tench_pager_statistics_put(struct tench_message *message, const struct tench_pager_statistics *value)
{
    tench_put(message, (uint64_t)value->fresh);
    tench_put(message, (uint64_t)value->copied);
    tench_put(message, (uint64_t)value->kept);
    tench_put(message, (uint64_t)value->joined);
    tench_put(message, (uint64_t)value->refused);
    tench_put(message, (uint64_t)value->free);
}

static inline void tench_pager_statistics_take(struct tench_reader *reader, struct tench_pager_statistics *value)
{
    value->fresh = tench_take(reader);
    value->copied = tench_take(reader);
    value->kept = tench_take(reader);
    value->joined = tench_take(reader);
    value->refused = tench_take(reader);
    value->free = tench_take(reader);
}

#define TENCH_PAGER_LABEL_ATTACH UINT64_C(0x8eb00010001)

/*
 * Attaches the region at an address, a multiple of 2 MiB, which the page table of level 3 shows that comes along.
 * Errors: `BadRegion`, `TooManyRegions`.
 */
static inline int tench_pager_attach(tench_cap server, uint64_t address, tench_cap table)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PAGER_LABEL_ATTACH);
    tench_put(message, (uint64_t)address);
    tench_lend(message, table);
    int code = tench_pager_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PAGER_LABEL_DETACH UINT64_C(0x8eb00010002)

/*
 * Detaches a region. Its pages are gone, except where another region shows them.
 * Errors: `NoSuchRegion`.
 */
static inline int tench_pager_detach(tench_cap server, uint64_t address)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PAGER_LABEL_DETACH);
    tench_put(message, (uint64_t)address);
    int code = tench_pager_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PAGER_LABEL_FORK UINT64_C(0x8eb00010003)

/* What tench_pager_fork returns. */
struct tench_pager_fork_reply {
    uint64_t value;
};

/*
 * Lets the region at an address, which is attached and empty, show what another client's region at that address
 * shows now. Returns the number of pages.
 * Errors: `NoSuchRegion`, `NotEmpty`, `NotAllowed`, `Refused`.
 */
static inline int tench_pager_fork(tench_cap server, uint64_t address, uint64_t from,
    struct tench_pager_fork_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PAGER_LABEL_FORK);
    tench_put(message, (uint64_t)address);
    tench_put(message, (uint64_t)from);
    int code = tench_pager_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PAGER_LABEL_FORGET UINT64_C(0x8eb00010004)

/* Forgets a client that has ended: detaches all its regions. */
static inline int tench_pager_forget(tench_cap server, uint64_t client)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PAGER_LABEL_FORGET);
    tench_put(message, (uint64_t)client);
    int code = tench_pager_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PAGER_LABEL_STATISTICS UINT64_C(0x8eb00010005)

/* What tench_pager_statistics returns. */
struct tench_pager_statistics_reply {
    struct tench_pager_statistics value;
};

/* Returns the pager's counts so far. */
static inline int tench_pager_statistics(tench_cap server, struct tench_pager_statistics_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PAGER_LABEL_STATISTICS);
    int code = tench_pager_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_pager_statistics_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_PAGER_LABEL_STOP UINT64_C(0x8eb00010006)

/* Stops serving, once this has its reply. */
static inline int tench_pager_stop(tench_cap server)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_PAGER_LABEL_STOP);
    int code = tench_pager_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
