/*
 * Mem, version 3.
 *
 * Blocks of physical memory.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_MEM_H
#define TENCH_MEM_H

#include <tench/message.h>

/* Log2 of the smallest block. Smaller requests are rounded up. */
#define TENCH_MEM_MIN_BLOCK_BITS 12
/* Maximum number of extents in one reply. */
#define TENCH_MEM_MAX_EXTENTS 15

/* Why a request was refused. */
enum tench_mem_error {
    /* No policy has this code. */
    TENCH_MEM_ERROR_NO_SUCH_POLICY = 1,
    /* No block can have this size. */
    TENCH_MEM_ERROR_BAD_SIZE = 2,
    /* No free block is large enough. */
    TENCH_MEM_ERROR_OUT_OF_MEMORY = 3,
    /* The account's quota does not allow it. */
    TENCH_MEM_ERROR_QUOTA_EXCEEDED = 4,
    /* The server's table of blocks is full. */
    TENCH_MEM_ERROR_TOO_MANY_BLOCKS = 5,
    /* There is no such block, or it is not yours. */
    TENCH_MEM_ERROR_NO_SUCH_BLOCK = 6,
    /* There is no such account. */
    TENCH_MEM_ERROR_NO_SUCH_ACCOUNT = 7,
    /* The range ends before it begins. */
    TENCH_MEM_ERROR_BAD_RANGE = 8,
    /* The kernel refused an operation that the server's ledger permits. */
    TENCH_MEM_ERROR_INTERNAL = 9,
    /* A block is to be divided, and an object in it lies across its middle. */
    TENCH_MEM_ERROR_NOT_DIVIDED = 10,
    /* There are no slabs. */
    TENCH_MEM_ERROR_NO_SLABS = 11,
    /* There is no slab with this number. */
    TENCH_MEM_ERROR_NO_SUCH_SLAB = 12,
    /* There are slabs already, or objects exist in them. */
    TENCH_MEM_ERROR_SLABS_IN_USE = 13,
    /* There is no such bundle, or it is not yours. */
    TENCH_MEM_ERROR_NO_SUCH_BUNDLE = 14,
    /* The objects' capabilities could not be put where the client wants them. */
    TENCH_MEM_ERROR_NO_SUCH_SLOT = 15,
    /* Other cores have something that was made of the block. */
    TENCH_MEM_ERROR_ABROAD = 16,
    /* Choosing addresses needs the power `memory`. */
    TENCH_MEM_ERROR_NOT_ALLOWED = 17,
    /* There would be more limits above the account than the server follows. */
    TENCH_MEM_ERROR_TOO_DEEP = 18,
    /* A part is done, and there is more to do. */
    TENCH_MEM_ERROR_UNFINISHED = 19,
    /* The process that the capability was given to has ended. */
    TENCH_MEM_ERROR_ENDED = 20,
};

/* Whether it is one of them. */
static inline bool tench_mem_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_MEM_ERROR_NO_SUCH_POLICY:
    case TENCH_MEM_ERROR_BAD_SIZE:
    case TENCH_MEM_ERROR_OUT_OF_MEMORY:
    case TENCH_MEM_ERROR_QUOTA_EXCEEDED:
    case TENCH_MEM_ERROR_TOO_MANY_BLOCKS:
    case TENCH_MEM_ERROR_NO_SUCH_BLOCK:
    case TENCH_MEM_ERROR_NO_SUCH_ACCOUNT:
    case TENCH_MEM_ERROR_BAD_RANGE:
    case TENCH_MEM_ERROR_INTERNAL:
    case TENCH_MEM_ERROR_NOT_DIVIDED:
    case TENCH_MEM_ERROR_NO_SLABS:
    case TENCH_MEM_ERROR_NO_SUCH_SLAB:
    case TENCH_MEM_ERROR_SLABS_IN_USE:
    case TENCH_MEM_ERROR_NO_SUCH_BUNDLE:
    case TENCH_MEM_ERROR_NO_SUCH_SLOT:
    case TENCH_MEM_ERROR_ABROAD:
    case TENCH_MEM_ERROR_NOT_ALLOWED:
    case TENCH_MEM_ERROR_TOO_DEEP:
    case TENCH_MEM_ERROR_UNFINISHED:
    case TENCH_MEM_ERROR_ENDED:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_mem_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_MEM_ERROR_NO_SUCH_POLICY:
        return "no policy has this code; memctl policies lists them";
    case TENCH_MEM_ERROR_BAD_SIZE:
        return "no memory block can have this size; ask for 2^12 to 2^47 bytes";
    case TENCH_MEM_ERROR_OUT_OF_MEMORY:
        return "no free block is large enough; free memory or ask for smaller blocks";
    case TENCH_MEM_ERROR_QUOTA_EXCEEDED:
        return "the quota does not allow it; free memory or ask for a higher quota";
    case TENCH_MEM_ERROR_TOO_MANY_BLOCKS:
        return "the memory server's table is full; ask for fewer and larger blocks";
    case TENCH_MEM_ERROR_NO_SUCH_BLOCK:
        return "no such block, or another process allocated it; name the address that was returned";
    case TENCH_MEM_ERROR_NO_SUCH_ACCOUNT:
        return "no account with this number or a higher one";
    case TENCH_MEM_ERROR_BAD_RANGE:
        return "the range ends before it begins; name the lowest address and the first address above";
    case TENCH_MEM_ERROR_INTERNAL:
        return "the kernel contradicts the memory server's ledger; this is a defect";
    case TENCH_MEM_ERROR_NOT_DIVIDED:
        return "something lies across the block's middle; divide the untyped that you were given first";
    case TENCH_MEM_ERROR_NO_SLABS:
        return "no slabs are set up; memctl slabs sets some up";
    case TENCH_MEM_ERROR_NO_SUCH_SLAB:
        return "no slab with this number; memctl status lists them";
    case TENCH_MEM_ERROR_SLABS_IN_USE:
        return "the slabs are in use; end the programs that have objects in them, or take the slabs down first";
    case TENCH_MEM_ERROR_NO_SUCH_BUNDLE:
        return "no such bundle, or another process asked for it";
    case TENCH_MEM_ERROR_NO_SUCH_SLOT:
        return "the slots for the bundle's objects are not empty slots of one node of that CSpace";
    case TENCH_MEM_ERROR_ABROAD:
        return "other cores have something of this memory; take it back first";
    case TENCH_MEM_ERROR_NOT_ALLOWED:
        return "only those with the power memory choose addresses; ask for memory anywhere, or to be given the power";
    case TENCH_MEM_ERROR_TOO_DEEP:
        return "too many limits lie within each other; start the program with the limit that its parent has";
    case TENCH_MEM_ERROR_UNFINISHED:
        return "a part of it is done; ask again to go on";
    case TENCH_MEM_ERROR_ENDED:
        return "the process that this capability was made for has ended; use your own";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_mem_failure(int code)
{
    const char *text = code > 0 ? tench_mem_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_mem_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_mem_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

/* A block that was granted. */
struct tench_mem_granted {
    /* Number of the block, by which it is freed. */
    uint16_t number;
    /* Log2 of its size in bytes. */
    uint32_t size_bits;
};

static inline void tench_mem_granted_put(struct tench_message *message, const struct tench_mem_granted *value)
{
    tench_put(message, (uint64_t)value->number);
    tench_put(message, (uint64_t)value->size_bits);
}

static inline void tench_mem_granted_take(struct tench_reader *reader, struct tench_mem_granted *value)
{
    value->number = (uint16_t)tench_take_at_most(reader, UINT16_MAX);
    value->size_bits = (uint32_t)tench_take_at_most(reader, UINT32_MAX);
}

/* Sums over all memory. */
struct tench_mem_totals {
    /* Bytes in all. */
    uint64_t total;
    /* Free bytes. */
    uint64_t free;
    /* Bytes of the largest free extent. */
    uint64_t largest;
    /* Blocks in use. */
    uint64_t blocks;
    /* Number of accounts. */
    uint64_t accounts;
};

static inline void tench_mem_totals_put(struct tench_message *message, const struct tench_mem_totals *value)
{
    tench_put(message, (uint64_t)value->total);
    tench_put(message, (uint64_t)value->free);
    tench_put(message, (uint64_t)value->largest);
    tench_put(message, (uint64_t)value->blocks);
    tench_put(message, (uint64_t)value->accounts);
}

static inline void tench_mem_totals_take(struct tench_reader *reader, struct tench_mem_totals *value)
{
    value->total = tench_take(reader);
    value->free = tench_take(reader);
    value->largest = tench_take(reader);
    value->blocks = tench_take(reader);
    value->accounts = tench_take(reader);
}

/* A process's use of memory. */
struct tench_mem_account {
    /* The process. */
    uint64_t process;
    /* Bytes in use, without those of slabs. */
    uint64_t used;
    /* Bytes that may be in use, considering what the limits above this account leave now. */
    uint64_t quota;
    /* Blocks in use. */
    uint64_t blocks;
    /* Bytes of objects in slabs, which count to the quota, too. */
    uint64_t objects;
};

static inline void tench_mem_account_put(struct tench_message *message, const struct tench_mem_account *value)
{
    tench_put(message, (uint64_t)value->process);
    tench_put(message, (uint64_t)value->used);
    tench_put(message, (uint64_t)value->quota);
    tench_put(message, (uint64_t)value->blocks);
    tench_put(message, (uint64_t)value->objects);
}

static inline void tench_mem_account_take(struct tench_reader *reader, struct tench_mem_account *value)
{
    value->process = tench_take(reader);
    value->used = tench_take(reader);
    value->quota = tench_take(reader);
    value->blocks = tench_take(reader);
    value->objects = tench_take(reader);
}

/* Memory in use. */
struct tench_mem_in_use {
    /* Bytes. */
    uint64_t bytes;
    /* Blocks. */
    uint64_t blocks;
};

static inline void tench_mem_in_use_put(struct tench_message *message, const struct tench_mem_in_use *value)
{
    tench_put(message, (uint64_t)value->bytes);
    tench_put(message, (uint64_t)value->blocks);
}

static inline void tench_mem_in_use_take(struct tench_reader *reader, struct tench_mem_in_use *value)
{
    value->bytes = tench_take(reader);
    value->blocks = tench_take(reader);
}

/* Addresses permitted for a block. */
struct tench_mem_within {
    /* Log2 of the alignment; 0 stands for the block's size. */
    uint32_t align_bits;
    /* Lowest physical address. */
    uint64_t base;
    /* First physical address above; 0 stands for no limit. */
    uint64_t limit;
};

static inline void tench_mem_within_put(struct tench_message *message, const struct tench_mem_within *value)
{
    tench_put(message, (uint64_t)value->align_bits);
    tench_put(message, (uint64_t)value->base);
    tench_put(message, (uint64_t)value->limit);
}

static inline void tench_mem_within_take(struct tench_reader *reader, struct tench_mem_within *value)
{
    value->align_bits = (uint32_t)tench_take_at_most(reader, UINT32_MAX);
    value->base = tench_take(reader);
    value->limit = tench_take(reader);
}

/* A contiguous extent of physical memory. */
struct tench_mem_extent {
    /* Physical address. */
    uint64_t address;
    /* Bytes. */
    uint64_t size;
    /* The account that uses it; `None` if it is free. */
    bool account_present;
    uint64_t account;
};

static inline void tench_mem_extent_put(struct tench_message *message, const struct tench_mem_extent *value)
{
    tench_put(message, (uint64_t)value->address);
    tench_put(message, (uint64_t)value->size);
    tench_put(message, value->account_present);
    if (value->account_present) {
        tench_put(message, (uint64_t)value->account);
    } else {
        tench_put_zeros(message, 1);
    }
}

static inline void tench_mem_extent_take(struct tench_reader *reader, struct tench_mem_extent *value)
{
    value->address = tench_take(reader);
    value->size = tench_take(reader);
    value->account_present = (bool)tench_take_at_most(reader, 1);
    if (value->account_present) {
        value->account = tench_take(reader);
    } else {
        tench_take_zeros(reader, 1);
    }
}

/* The server's ledger beside the kernel's account. */
struct tench_mem_audit {
    /* Sums of the ledger. */
    struct tench_mem_in_use ledger;
    /* Sums of the kernel. */
    struct tench_mem_in_use kernel;
};

static inline void tench_mem_audit_put(struct tench_message *message, const struct tench_mem_audit *value)
{
    tench_mem_in_use_put(message, &value->ledger);
    tench_mem_in_use_put(message, &value->kernel);
}

static inline void tench_mem_audit_take(struct tench_reader *reader, struct tench_mem_audit *value)
{
    tench_mem_in_use_take(reader, &value->ledger);
    tench_mem_in_use_take(reader, &value->kernel);
}

#define TENCH_MEM_LABEL_GIVE UINT64_C(0x732c00030001)

/* What tench_mem_give returns. */
struct tench_mem_give_reply {
    struct tench_mem_granted value;
};

/*
 * Allocates a block of at least `1 << size_bits` bytes. Its number names it from now on. (Only the process server
 * can allocate on another account.) A range of addresses, or an alignment to more than its size, needs the power
 * `memory`.
 * Errors: `BadSize`, `BadRange`, `OutOfMemory`, `QuotaExceeded`, `TooManyBlocks`, `NotAllowed`, `Ended`.
 */
static inline int tench_mem_give(tench_cap server, uint32_t size_bits, const struct tench_mem_within *within,
    tench_cap slot, struct tench_mem_give_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_GIVE);
    tench_put(message, (uint64_t)size_bits);
    tench_mem_within_put(message, &(*within));
    tench_offer(message, slot);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_mem_granted_take(reader, &reply->value);
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_GIVE_FOR UINT64_C(0x732c00030002)

/* What tench_mem_give_for returns. */
struct tench_mem_give_for_reply {
    struct tench_mem_granted value;
};

/* Allocates a block on another account, whose owner is of this family. */
static inline int tench_mem_give_for(tench_cap server, uint64_t account, uint64_t family, uint32_t size_bits,
    tench_cap slot, struct tench_mem_give_for_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_GIVE_FOR);
    tench_put(message, (uint64_t)account);
    tench_put(message, (uint64_t)family);
    tench_put(message, (uint64_t)size_bits);
    tench_offer(message, slot);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_mem_granted_take(reader, &reply->value);
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_FREE_PART UINT64_C(0x732c00030003)

/* What tench_mem_free_part returns. */
struct tench_mem_free_part_reply {
    uint64_t value;
};

/*
 * Frees the block with this number: everything made from it is deleted. Returns the number of bytes freed. The
 * server does only a part at a time, so that it can serve others; the client's `free` repeats the request until it
 * is done.
 * Errors: `NoSuchBlock` (also for a block that another process allocated), `Abroad` (all that was made from it on
 * this core is deleted, and the block stays), `Unfinished`.
 */
static inline int tench_mem_free_part(tench_cap server, uint16_t number, struct tench_mem_free_part_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_FREE_PART);
    tench_put(message, (uint64_t)number);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_DIVIDE UINT64_C(0x732c00030004)

/* What tench_mem_divide returns. */
struct tench_mem_divide_reply {
    struct tench_mem_granted value;
};

/*
 * Divides a block into its halves, each a block of its own from now on, so that part of it can be freed while the
 * rest stays in use. Its owner must divide the untyped with `UntypedSplit` before. The lower half keeps the
 * number; returns the number of the upper half, and log2 of the size of each.
 * Errors: `NoSuchBlock`, `NotDivided`, `BadSize` (a half would be too small for a block), `TooManyBlocks`.
 */
static inline int tench_mem_divide(tench_cap server, uint16_t number, struct tench_mem_divide_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_DIVIDE);
    tench_put(message, (uint64_t)number);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_mem_granted_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_TOTALS UINT64_C(0x732c00030005)

/* What tench_mem_totals returns. */
struct tench_mem_totals_reply {
    struct tench_mem_totals value;
};

/*
 * Returns sums over all memory. Every caller gets the total and the free memory; the rest is 0 without the power
 * `memory`.
 */
static inline int tench_mem_totals(tench_cap server, struct tench_mem_totals_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_TOTALS);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_mem_totals_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_NEXT_ACCOUNT UINT64_C(0x732c00030006)

/* What tench_mem_next_account returns. */
struct tench_mem_next_account_reply {
    struct tench_mem_account value;
};

/*
 * Returns the account with the next higher number, of those that the caller may see: its own, or with the power
 * `memory` all.
 * Errors: `NoSuchAccount` when there is none.
 */
static inline int tench_mem_next_account(tench_cap server, uint64_t after, struct tench_mem_next_account_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_NEXT_ACCOUNT);
    tench_put(message, (uint64_t)after);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_mem_account_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_SET_QUOTA UINT64_C(0x732c00030007)

/*
 * Sets how many bytes a process may use, together with the accounts that are opened below its own from now on; its
 * account is opened if need be.
 * Errors: `OutOfMemory`, `TooManyBlocks`.
 */
static inline int tench_mem_set_quota(tench_cap server, uint64_t account, uint64_t bytes)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_SET_QUOTA);
    tench_put(message, (uint64_t)account);
    tench_put(message, (uint64_t)bytes);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_CLOSE_ACCOUNT_PART UINT64_C(0x732c00030008)

/*
 * Frees everything on an account, or a part of it. A missing account is no error. Blocks of which other cores have
 * a part move to the account `ABROAD`, until `reclaim` frees them.
 * Errors: `Unfinished`.
 */
static inline int tench_mem_close_account_part(tench_cap server, uint64_t account)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_CLOSE_ACCOUNT_PART);
    tench_put(message, (uint64_t)account);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_DESCRIBE UINT64_C(0x732c00030009)

/* What tench_mem_describe returns. */
struct tench_mem_describe_reply {
    struct tench_mem_extent value[TENCH_MEM_MAX_EXTENTS];
    size_t value_count;
};

/* Returns the extents from an address on, in order of addresses; none after the last. */
static inline int tench_mem_describe(tench_cap server, uint64_t from, struct tench_mem_describe_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_DESCRIBE);
    tench_put(message, (uint64_t)from);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value_count = (size_t)tench_take_at_most(reader, TENCH_MEM_MAX_EXTENTS);
    for (size_t i0 = 0; i0 < reply->value_count; i0++) {
        tench_mem_extent_take(reader, &reply->value[i0]);
    }
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_AUDIT UINT64_C(0x732c0003000a)

/* What tench_mem_audit returns. */
struct tench_mem_audit_reply {
    struct tench_mem_audit value;
};

/* Returns the sums over all blocks in use, by the server's ledger and by the kernel. They are equal. */
static inline int tench_mem_audit(tench_cap server, struct tench_mem_audit_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_AUDIT);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_mem_audit_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_ABROAD UINT64_C(0x732c0003000b)

/* What tench_mem_abroad returns. */
struct tench_mem_abroad_reply {
    struct tench_mem_granted value;
};

/*
 * Returns the block with the next higher number that has no owner on this core, but of which other cores had a
 * part.
 * Errors: `NoSuchBlock` when there is none.
 */
static inline int tench_mem_abroad(tench_cap server, uint16_t after, struct tench_mem_abroad_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_ABROAD);
    tench_put(message, (uint64_t)after);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_mem_granted_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_RECLAIM_PART UINT64_C(0x732c0003000c)

/* What tench_mem_reclaim_part returns. */
struct tench_mem_reclaim_part_reply {
    uint64_t value;
};

/*
 * Frees such a block, when no other core has a part of it any more, or does a part of that. Returns the bytes.
 * Errors: `NoSuchBlock`, `Abroad`, `Unfinished`.
 */
static inline int tench_mem_reclaim_part(tench_cap server, uint16_t number, struct tench_mem_reclaim_part_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_RECLAIM_PART);
    tench_put(message, (uint64_t)number);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = tench_take(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_ADD UINT64_C(0x732c0003000d)

/*
 * Adds unused memory that another core has given. It is the server's from now on.
 * Errors: `BadSize` (too small, or the table of regions is full), `TooManyBlocks`, `Internal`.
 */
static inline int tench_mem_add(tench_cap server, tench_cap memory)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_ADD);
    tench_give(message, memory);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_OPEN_ACCOUNT UINT64_C(0x732c0003000e)

/*
 * Opens the account of a process below that of another one, its parent: from now on its use counts for every limit
 * above it, and this limit applies to it and all that are opened below it. A limit that is no lower than the next
 * above is none of its own (`NO_QUOTA`). Accounts below the parent stay below its limit when the parent has ended.
 * Errors: `OutOfMemory`, `TooManyBlocks`, `TooDeep`.
 */
static inline int tench_mem_open_account(tench_cap server, uint64_t account, uint64_t parent, uint64_t bytes)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_OPEN_ACCOUNT);
    tench_put(message, (uint64_t)account);
    tench_put(message, (uint64_t)parent);
    tench_put(message, (uint64_t)bytes);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_NUMBER UINT64_C(0x732c0003000f)

/* What tench_mem_number returns. */
struct tench_mem_number_reply {
    uint16_t value;
};

/*
 * Returns the number of the caller's block at a physical address.
 * Errors: `NoSuchBlock`.
 */
static inline int tench_mem_number(tench_cap server, uint64_t address, struct tench_mem_number_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_NUMBER);
    tench_put(message, (uint64_t)address);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value = (uint16_t)tench_take_at_most(reader, UINT16_MAX);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_MEM_LABEL_FIND UINT64_C(0x732c00030010)

/* What tench_mem_find returns. */
struct tench_mem_find_reply {
    struct tench_mem_extent value;
};

/*
 * Returns the address and size of a process's block.
 * Errors: `NoSuchBlock`.
 */
static inline int tench_mem_find(tench_cap server, uint64_t holder, uint16_t number, struct tench_mem_find_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_MEM_LABEL_FIND);
    tench_put(message, (uint64_t)holder);
    tench_put(message, (uint64_t)number);
    int code = tench_mem_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_mem_extent_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
