/*
 * GroupClient, version 1.
 *
 * The members of a group.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_GROUP_H
#define TENCH_GROUP_H

#include <tench/message.h>


/* Why a request was refused. */
enum tench_group_error {
    /* The group has 64 members, or had some that ended without leaving. */
    TENCH_GROUP_ERROR_FULL = 1,
    /* There is no such member any more. */
    TENCH_GROUP_ERROR_NO_SUCH_MEMBER = 2,
};

/* Whether it is one of them. */
static inline bool tench_group_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_GROUP_ERROR_FULL:
    case TENCH_GROUP_ERROR_NO_SUCH_MEMBER:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_group_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_GROUP_ERROR_FULL:
        return "the group is full; make another";
    case TENCH_GROUP_ERROR_NO_SUCH_MEMBER:
        return "no such member; it has left or ended";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_group_failure(int code)
{
    const char *text = code > 0 ? tench_group_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_group_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_group_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

#define TENCH_GROUP_LABEL_JOIN UINT64_C(0x5eb00010001)

/* What tench_group_join returns. */
struct tench_group_join_reply {
    uint64_t value;
};

/*
 * Becomes a member, which is woken by this notification. Returns the member's number.
 * Errors: `Full`.
 */
static inline int tench_group_join(tench_cap server, tench_cap notification, struct tench_group_join_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_GROUP_LABEL_JOIN);
    tench_lend(message, notification);
    int code = tench_group_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_GROUP_LABEL_MEMBER UINT64_C(0x5eb00010002)

/*
 * The notification of a member.
 * Errors: `NoSuchMember`.
 */
static inline int tench_group_member(tench_cap server, uint64_t number, tench_cap slot)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_GROUP_LABEL_MEMBER);
    tench_put(message, (uint64_t)number);
    tench_offer(message, slot);
    int code = tench_group_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_GROUP_LABEL_LEAVE UINT64_C(0x5eb00010003)

/*
 * A member leaves: it holds nothing and waits for nothing, and its number may be given to another.
 * Errors: `NoSuchMember`.
 */
static inline int tench_group_leave(tench_cap server, uint64_t number)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_GROUP_LABEL_LEAVE);
    tench_put(message, (uint64_t)number);
    int code = tench_group_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_GROUP_LABEL_STOP UINT64_C(0x5eb00010004)

/* Stops serving, once this has its reply. */
static inline int tench_group_stop(tench_cap server)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_GROUP_LABEL_STOP);
    int code = tench_group_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
