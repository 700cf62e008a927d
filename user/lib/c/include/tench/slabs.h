/*
 * Slabs, version 1.
 *
 * Memory in the manner of seL4's untyped objects, given in bundles. Purpose: docs/manual/policies.md.
 *
 * A process with the power `memory` sets slabs up; from then on every process can request bundles. The memory server
 * makes the objects, chooses the slab by its policy, and keeps a ledger that can be compared with the kernel's
 * account.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_SLABS_H
#define TENCH_SLABS_H

#include <tench/message.h>

/* Maximum number of slabs of each lifetime. */
#define TENCH_SLABS_MAX_SLABS 31
/* Maximum number of descriptors in a bundle, which has at most 256 objects. */
#define TENCH_SLABS_MAX_DESCRIPTORS 32
/* Bytes of a trace in one reply. */
#define TENCH_SLABS_TRACE_BYTES (UINT64_C(63)*UINT64_C(8))

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_slabs_failure(int code)
{
    return tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_slabs_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && true ? TENCH_MALFORMED : code;
}

/* Sums over all slabs, after a request. */
struct tench_slabs_figures {
    /* Bytes in live objects. */
    uint64_t live;
    /* Live objects. */
    uint64_t objects;
    /* Bytes lost to the watermark rule. */
    uint64_t watermark_loss;
    /* Bytes lost to alignment. */
    uint64_t align_loss;
    /* Slab resets since the policy was set. */
    uint64_t resets;
    /* Retypes that failed since then. */
    uint64_t failed_retypes;
    /* Bundles that found no room since then. */
    uint64_t out_of_memory;
    /* Bytes of the bundles that were granted since then. */
    uint64_t requested;
    /* Free bytes below the highest object of each slab. */
    uint64_t gaps;
};

static inline void tench_slabs_figures_put(struct tench_message *message, const struct tench_slabs_figures *value)
{
    tench_put(message, (uint64_t)value->live);
    tench_put(message, (uint64_t)value->objects);
    tench_put(message, (uint64_t)value->watermark_loss);
    tench_put(message, (uint64_t)value->align_loss);
    tench_put(message, (uint64_t)value->resets);
    tench_put(message, (uint64_t)value->failed_retypes);
    tench_put(message, (uint64_t)value->out_of_memory);
    tench_put(message, (uint64_t)value->requested);
    tench_put(message, (uint64_t)value->gaps);
}

static inline void tench_slabs_figures_take(struct tench_reader *reader, struct tench_slabs_figures *value)
{
    value->live = tench_take(reader);
    value->objects = tench_take(reader);
    value->watermark_loss = tench_take(reader);
    value->align_loss = tench_take(reader);
    value->resets = tench_take(reader);
    value->failed_retypes = tench_take(reader);
    value->out_of_memory = tench_take(reader);
    value->requested = tench_take(reader);
    value->gaps = tench_take(reader);
}

/* The server's ledger entry of a slab. */
struct tench_slabs_ledger_entry {
    /* Physical address. */
    uint64_t address;
    /* Log2 of its size in bytes. */
    uint32_t size_bits;
    /* Bytes below the watermark. */
    uint64_t watermark;
    /* Live objects. */
    uint64_t objects;
    /* Bytes in them. */
    uint64_t live;
    /* Bytes lost to alignment. */
    uint64_t align_loss;
    /* Bytes lost to the watermark rule. */
    uint64_t watermark_loss;
    /* Number of times that it became empty. */
    uint64_t resets;
};

static inline void tench_slabs_ledger_entry_put(struct tench_message *message, const struct tench_slabs_ledger_entry *value)
{
    tench_put(message, (uint64_t)value->address);
    tench_put(message, (uint64_t)value->size_bits);
    tench_put(message, (uint64_t)value->watermark);
    tench_put(message, (uint64_t)value->objects);
    tench_put(message, (uint64_t)value->live);
    tench_put(message, (uint64_t)value->align_loss);
    tench_put(message, (uint64_t)value->watermark_loss);
    tench_put(message, (uint64_t)value->resets);
}

static inline void tench_slabs_ledger_entry_take(struct tench_reader *reader, struct tench_slabs_ledger_entry *value)
{
    value->address = tench_take(reader);
    value->size_bits = (uint32_t)tench_take_at_most(reader, UINT32_MAX);
    value->watermark = tench_take(reader);
    value->objects = tench_take(reader);
    value->live = tench_take(reader);
    value->align_loss = tench_take(reader);
    value->watermark_loss = tench_take(reader);
    value->resets = tench_take(reader);
}

/* The kernel's account of a slab. */
struct tench_slabs_kernel_account {
    /* Bytes below the watermark. */
    uint64_t watermark;
    /* Live objects. */
    uint64_t objects;
    /* Bytes in them. */
    uint64_t live;
};

static inline void tench_slabs_kernel_account_put(struct tench_message *message, const struct tench_slabs_kernel_account *value)
{
    tench_put(message, (uint64_t)value->watermark);
    tench_put(message, (uint64_t)value->objects);
    tench_put(message, (uint64_t)value->live);
}

static inline void tench_slabs_kernel_account_take(struct tench_reader *reader, struct tench_slabs_kernel_account *value)
{
    value->watermark = tench_take(reader);
    value->objects = tench_take(reader);
    value->live = tench_take(reader);
}

/* A bundle that was granted. */
struct tench_slabs_bundle {
    /* Number of the bundle, by which it is freed. */
    uint64_t number;
    /* Sums over the slabs afterwards. */
    struct tench_slabs_figures figures;
};

static inline void tench_slabs_bundle_put(struct tench_message *message, const struct tench_slabs_bundle *value)
{
    tench_put(message, (uint64_t)value->number);
    tench_slabs_figures_put(message, &value->figures);
}

static inline void tench_slabs_bundle_take(struct tench_reader *reader, struct tench_slabs_bundle *value)
{
    value->number = tench_take(reader);
    tench_slabs_figures_take(reader, &value->figures);
}

#define TENCH_SLABS_LABEL_SET_UP UINT64_C(0xd37400010001)

/* What tench_slabs_set_up returns. */
struct tench_slabs_set_up_reply {
    uint64_t value;
};

/*
 * Sets slabs up, of these sizes (log2), for dynamic and for static objects. Returns their number.
 * Errors: `OutOfMemory`, `BadSize`, `SlabsInUse` (there are some).
 */
static inline int tench_slabs_set_up(tench_cap server, const uint8_t *dynamic, size_t dynamic_count,
    const uint8_t *statics, size_t statics_count, struct tench_slabs_set_up_reply *reply)
{
    if (dynamic_count > TENCH_SLABS_MAX_SLABS)
        return TENCH_TOO_LONG;
    if (statics_count > TENCH_SLABS_MAX_SLABS)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_SET_UP);
    tench_put(message, dynamic_count);
    for (size_t i0 = 0; i0 < dynamic_count; i0++) {
        tench_put(message, (uint64_t)dynamic[i0]);
    }
    tench_put(message, statics_count);
    for (size_t i0 = 0; i0 < statics_count; i0++) {
        tench_put(message, (uint64_t)statics[i0]);
    }
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_TAKE_DOWN UINT64_C(0xd37400010002)

/*
 * Frees the memory of the slabs.
 * Errors: `NoSlabs`, `SlabsInUse` (objects exist in them).
 */
static inline int tench_slabs_take_down(tench_cap server)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_TAKE_DOWN);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_GRANT UINT64_C(0xd37400010003)

/* What tench_slabs_grant returns. */
struct tench_slabs_grant_reply {
    struct tench_slabs_bundle value;
};

/*
 * Grants a bundle, whole or not at all: descriptors as words ([`Descriptor`](crate::slabs::Descriptor)), dynamic
 * objects or static ones. The objects stay with the server. The sums in the reply are 0 without the power
 * `memory`.
 * Errors: `OutOfMemory`, `BadSize`, `NoSlabs`, `TooManyBlocks`, `QuotaExceeded`.
 */
static inline int tench_slabs_grant(tench_cap server, bool is_static, const uint64_t *descriptors,
    size_t descriptors_count, struct tench_slabs_grant_reply *reply)
{
    if (descriptors_count > TENCH_SLABS_MAX_DESCRIPTORS)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_GRANT);
    tench_put(message, (uint64_t)is_static);
    tench_put(message, descriptors_count);
    for (size_t i0 = 0; i0 < descriptors_count; i0++) {
        tench_put(message, (uint64_t)descriptors[i0]);
    }
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_slabs_bundle_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_GRANT_TO UINT64_C(0xd37400010004)

/* What tench_slabs_grant_to returns. */
struct tench_slabs_grant_to_reply {
    struct tench_slabs_bundle value;
};

/*
 * Grants a bundle as `grant` does, and copies the objects' capabilities to adjacent slots of a CSpace, from this
 * one on.
 * Errors: as `grant`, and `NoSuchSlot`.
 */
static inline int tench_slabs_grant_to(tench_cap server, bool is_static, tench_cap first, const uint64_t *descriptors,
    size_t descriptors_count, tench_cap cspace, struct tench_slabs_grant_to_reply *reply)
{
    if (descriptors_count > TENCH_SLABS_MAX_DESCRIPTORS)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_GRANT_TO);
    tench_put(message, (uint64_t)is_static);
    tench_put(message, (uint64_t)first);
    tench_put(message, descriptors_count);
    for (size_t i0 = 0; i0 < descriptors_count; i0++) {
        tench_put(message, (uint64_t)descriptors[i0]);
    }
    tench_lend(message, cspace);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_slabs_bundle_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_FREE UINT64_C(0xd37400010005)

/* What tench_slabs_free returns. */
struct tench_slabs_free_reply {
    struct tench_slabs_figures value;
};

/*
 * Frees a bundle: its objects are deleted. Returns the same as `grant`.
 * Errors: `NoSlabs`, `NoSuchBundle`.
 */
static inline int tench_slabs_free(tench_cap server, uint64_t number, struct tench_slabs_free_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_FREE);
    tench_put(message, (uint64_t)number);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_slabs_figures_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_LEDGER UINT64_C(0xd37400010006)

/* What tench_slabs_ledger returns. */
struct tench_slabs_ledger_reply {
    struct tench_slabs_ledger_entry value;
};

/*
 * Returns the server's ledger entry of a slab.
 * Errors: `NoSlabs`, `NoSuchSlab`.
 */
static inline int tench_slabs_ledger(tench_cap server, uint64_t number, struct tench_slabs_ledger_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_LEDGER);
    tench_put(message, (uint64_t)number);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_slabs_ledger_entry_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_KERNEL UINT64_C(0xd37400010007)

/* What tench_slabs_kernel returns. */
struct tench_slabs_kernel_reply {
    struct tench_slabs_kernel_account value;
};

/*
 * Returns the kernel's account of a slab.
 * Errors: `NoSlabs`, `NoSuchSlab`.
 */
static inline int tench_slabs_kernel(tench_cap server, uint64_t number, struct tench_slabs_kernel_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_KERNEL);
    tench_put(message, (uint64_t)number);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_slabs_kernel_account_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_POLICY UINT64_C(0xd37400010008)

/* What tench_slabs_policy returns. */
struct tench_slabs_policy_reply {
    uint64_t first;
    bool second;
};

/*
 * Returns the policy's code, and whether the watermark rule is lifted.
 * Errors: `NoSlabs`.
 */
static inline int tench_slabs_policy(tench_cap server, struct tench_slabs_policy_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_POLICY);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->first = tench_take(reader);
    reply->second = (bool)tench_take_at_most(reader, 1);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_SET_POLICY UINT64_C(0xd37400010009)

/*
 * Changes the policy, and resets the counters.
 * Errors: `NoSlabs`, `NoSuchPolicy`, `SlabsInUse` (lifting the rule, or not, while objects exist).
 */
static inline int tench_slabs_set_policy(tench_cap server, uint64_t code_, bool lifted)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_SET_POLICY);
    tench_put(message, (uint64_t)code_);
    tench_put(message, (uint64_t)lifted);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_RECORD UINT64_C(0xd3740001000a)

/* What tench_slabs_record returns. */
struct tench_slabs_record_reply {
    uint64_t value;
};

/*
 * Starts a new recording of requests as a trace, or stops it. Returns the number of bytes recorded.
 * Errors: `OutOfMemory`.
 */
static inline int tench_slabs_record(tench_cap server, bool on, struct tench_slabs_record_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_RECORD);
    tench_put(message, (uint64_t)on);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_READ_PART UINT64_C(0xd3740001000b)

/* What tench_slabs_read_part returns. */
struct tench_slabs_read_part_reply {
    uint8_t value[TENCH_SLABS_TRACE_BYTES];
    size_t value_length;
};

/* Returns a part of the recording, from an offset in bytes on. */
static inline int tench_slabs_read_part(tench_cap server, uint64_t offset, struct tench_slabs_read_part_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_READ_PART);
    tench_put(message, (uint64_t)offset);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value_length = tench_take_bytes(reader, reply->value, TENCH_SLABS_TRACE_BYTES);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_SLABS_LABEL_FIGURES UINT64_C(0xd3740001000c)

/* What tench_slabs_figures returns. */
struct tench_slabs_figures_reply {
    struct tench_slabs_figures value;
};

/*
 * Returns sums over all slabs.
 * Errors: `NoSlabs`.
 */
static inline int tench_slabs_figures(tench_cap server, struct tench_slabs_figures_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_SLABS_LABEL_FIGURES);
    int code = tench_slabs_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_slabs_figures_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
