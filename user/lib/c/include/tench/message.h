/*
 * What the headers of all interfaces have in common: messages, and how they are sent. The headers beside this one are written
 * by the interface compiler; docs/manual/interfaces.md says what travels how.
 *
 * A function of an interface returns TENCH_DONE, an error of the interface (greater than 0, an enumeration of its header), a
 * reason why the request was refused before the server saw it (from TENCH_REJECTED on), TENCH_TOO_LONG or TENCH_MALFORMED, or
 * the negative number of an error of the kernel. tench_NAME_failure has a sentence for each.
 */
#ifndef TENCH_MESSAGE_H
#define TENCH_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words and capabilities of the longest message. */
#define TENCH_MESSAGE_WORDS 64
#define TENCH_MESSAGE_CAPS 4

/* A slot of the process's CSpace. Slot 0 is always empty. */
typedef uint32_t tench_cap;

/* All went well. */
#define TENCH_DONE 0
/* Why a request was refused before the server saw it. */
#define TENCH_REJECTED 0x10000
enum tench_rejection {
    TENCH_BAD_ARGUMENTS = TENCH_REJECTED,
    TENCH_NO_SUCH_METHOD,
    TENCH_OTHER_VERSION,
    TENCH_OTHER_INTERFACE,
    TENCH_NOT_ALLOWED,
    TENCH_BUSY,
    TENCH_NOT_ATTACHED,
    TENCH_NO_BUFFER,
    TENCH_OTHER_CORE,
    TENCH_UNREACHABLE,
};
/* A text or list is longer than the interface allows; nothing was sent. */
#define TENCH_TOO_LONG (-1000)
/* The reply is not one of the interface. */
#define TENCH_MALFORMED (-1001)

/* A request, and after tench_call the reply. */
struct tench_message {
    uint64_t label;      /* what is asked */
    uint32_t length;     /* how many words; more than there are says that too much was put */
    uint32_t cap_count;  /* how many capabilities */
    uint32_t given;      /* a bit for each capability that leaves its slot */
    uint32_t slot_count; /* how many empty slots are on offer */
    tench_cap caps[TENCH_MESSAGE_CAPS];
    tench_cap slots[TENCH_MESSAGE_CAPS];
    uint64_t words[TENCH_MESSAGE_WORDS];
};

/* Sends a message and waits for the reply, which takes its place. */
int tench_call(tench_cap server, struct tench_message *message);

/* Why there was no success, where the interface has no text of its own. The text stays. */
const char *tench_failure(int code);

/* An empty slot, or 0 if there is no memory for one. */
tench_cap tench_slot(void);
/* Deletes what lies in a slot, and gives the slot back. */
void tench_drop(tench_cap slot);

/* Servers that every process knows from the beginning. */
tench_cap tench_server_names(void);
tench_cap tench_server_procs(void);
tench_cap tench_server_console(void);

/* ── For the generated functions ─────────────────────────────────────────────────────────────────────────────────── */

static inline void tench_begin(struct tench_message *message, uint64_t label)
{
    message->label = label;
    message->length = message->cap_count = message->given = message->slot_count = 0;
}

static inline void tench_put(struct tench_message *message, uint64_t word)
{
    if (message->length < TENCH_MESSAGE_WORDS)
        message->words[message->length] = word;
    /* One more than fits is remembered, so that the message is refused. */
    if (message->length <= TENCH_MESSAGE_WORDS)
        message->length++;
}

static inline void tench_put_zeros(struct tench_message *message, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tench_put(message, 0);
}

/* Text is its length in bytes and then its bytes, eight to a word, the first in the lowest bits. */
static inline void tench_put_text(struct tench_message *message, const void *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    tench_put(message, length);
    for (size_t start = 0; start < length; start += 8) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8 && start + i < length; i++)
            word |= (uint64_t)bytes[start + i] << 8 * i;
        tench_put(message, word);
    }
}

static inline void tench_lend(struct tench_message *message, tench_cap cap)
{
    if (message->cap_count < TENCH_MESSAGE_CAPS)
        message->caps[message->cap_count] = cap;
    if (message->cap_count <= TENCH_MESSAGE_CAPS)
        message->cap_count++;
}

static inline void tench_give(struct tench_message *message, tench_cap cap)
{
    message->given |= UINT32_C(1) << message->cap_count;
    tench_lend(message, cap);
}

/* Where a capability of the reply is to go. */
static inline void tench_offer(struct tench_message *message, tench_cap slot)
{
    if (message->slot_count < TENCH_MESSAGE_CAPS)
        message->slots[message->slot_count++] = slot;
}

/* Reads a reply. */
struct tench_reader {
    const struct tench_message *message;
    uint32_t next;     /* word */
    uint32_t next_cap; /* capability */
    bool bad;          /* something was no value of its type */
};

static inline struct tench_reader tench_read(const struct tench_message *message)
{
    struct tench_reader reader = { message, 0, 0, false };
    return reader;
}

static inline uint64_t tench_take(struct tench_reader *reader)
{
    if (reader->bad || reader->next >= reader->message->length) {
        reader->bad = true;
        return 0;
    }
    return reader->message->words[reader->next++];
}

static inline uint64_t tench_take_at_most(struct tench_reader *reader, uint64_t max)
{
    uint64_t word = tench_take(reader);
    if (word > max)
        reader->bad = true;
    return reader->bad ? 0 : word;
}

/* Signed numbers travel extended by their sign. */
static inline int64_t tench_take_signed(struct tench_reader *reader, unsigned bits)
{
    int64_t word = (int64_t)tench_take(reader), limit = INT64_MAX >> (64 - bits);
    if (word > limit || word < -limit - 1)
        reader->bad = true;
    return reader->bad ? 0 : word;
}

static inline void tench_take_zeros(struct tench_reader *reader, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tench_take(reader) != 0)
            reader->bad = true;
}

/* Takes at most so many bytes, and returns how many. */
static inline size_t tench_take_bytes(struct tench_reader *reader, void *to, size_t max)
{
    unsigned char *bytes = (unsigned char *)to;
    size_t length = (size_t)tench_take_at_most(reader, max);
    for (size_t start = 0; start < length; start += 8) {
        uint64_t word = tench_take(reader);
        for (size_t i = 0; i < 8 && start + i < length; i++)
            bytes[start + i] = (unsigned char)(word >> 8 * i);
    }
    return reader->bad ? 0 : length;
}

static inline void tench_take_cap(struct tench_reader *reader)
{
    if (reader->next_cap++ >= reader->message->cap_count)
        reader->bad = true;
}

/* Whether everything was there, and nothing more. */
static inline bool tench_is_done(const struct tench_reader *reader)
{
    return !reader->bad && reader->next == reader->message->length && reader->next_cap == reader->message->cap_count;
}

#endif
