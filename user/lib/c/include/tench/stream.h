/*
 * Stream, version 1.
 *
 * One end of a byte stream: of a pipe, or an open file.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_STREAM_H
#define TENCH_STREAM_H

#include <tench/message.h>

/* Bytes in one message. */
#define TENCH_STREAM_MAX_DATA 480

/* Kind of a stream. */
enum tench_stream_kind {
    /* A pipe. */
    TENCH_STREAM_KIND_PIPE = 1,
    /* A file. */
    TENCH_STREAM_KIND_FILE = 2,
    /* A terminal. */
    TENCH_STREAM_KIND_TERMINAL = 3,
};

/* Whether it is one of them. */
static inline bool tench_stream_kind_is(uint64_t code)
{
    switch (code) {
    case TENCH_STREAM_KIND_PIPE:
    case TENCH_STREAM_KIND_FILE:
    case TENCH_STREAM_KIND_TERMINAL:
        return true;
    default:
        return false;
    }
}

/* Why a request was refused. */
enum tench_stream_error {
    /* The end has been closed, or the process to which it belonged has ended. */
    TENCH_STREAM_ERROR_CLOSED = 1,
    /* Nobody can read what would be written. */
    TENCH_STREAM_ERROR_BROKEN = 2,
    /* The end is for writing. */
    TENCH_STREAM_ERROR_NOT_FOR_READING = 3,
    /* The end is for reading, or the file is one of the boot archive. */
    TENCH_STREAM_ERROR_NOT_FOR_WRITING = 4,
    /* The memory for files is used up; nothing was written. */
    TENCH_STREAM_ERROR_NO_SPACE = 5,
    /* Files do not become so large. */
    TENCH_STREAM_ERROR_TOO_LARGE = 6,
    /* Too many requests wait, or there are too many ends, of this process or of all. */
    TENCH_STREAM_ERROR_FULL = 7,
    /* A pipe has no position and no size that could be set. */
    TENCH_STREAM_ERROR_NOT_A_FILE = 8,
};

/* Whether it is one of them. */
static inline bool tench_stream_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_STREAM_ERROR_CLOSED:
    case TENCH_STREAM_ERROR_BROKEN:
    case TENCH_STREAM_ERROR_NOT_FOR_READING:
    case TENCH_STREAM_ERROR_NOT_FOR_WRITING:
    case TENCH_STREAM_ERROR_NO_SPACE:
    case TENCH_STREAM_ERROR_TOO_LARGE:
    case TENCH_STREAM_ERROR_FULL:
    case TENCH_STREAM_ERROR_NOT_A_FILE:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_stream_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_STREAM_ERROR_CLOSED:
        return "this end of the stream is closed";
    case TENCH_STREAM_ERROR_BROKEN:
        return "nobody reads from the pipe any more";
    case TENCH_STREAM_ERROR_NOT_FOR_READING:
        return "this end of the stream is for writing only";
    case TENCH_STREAM_ERROR_NOT_FOR_WRITING:
        return "this end of the stream is for reading only";
    case TENCH_STREAM_ERROR_NO_SPACE:
        return "no space is left for files; remove one";
    case TENCH_STREAM_ERROR_TOO_LARGE:
        return "a file has at most 2^31 bytes";
    case TENCH_STREAM_ERROR_FULL:
        return "too many requests wait for streams, or too many are open; close one";
    case TENCH_STREAM_ERROR_NOT_A_FILE:
        return "this is a pipe, which has no position and no size";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_stream_failure(int code)
{
    const char *text = code > 0 ? tench_stream_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_stream_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_stream_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

/* Properties of an end. */
struct tench_stream_info {
    /* Kind of the stream. */
    uint64_t kind;
    /* Set if this end can be read. */
    bool readable;
    /* Set if this end can be written. */
    bool writable;
    /* Bytes of the file, or bytes in the pipe that nobody has read. */
    uint64_t size;
    /* Where in the file the next byte is read or written; of a pipe 0. */
    uint64_t position;
};

static inline void tench_stream_info_put(struct tench_message *message, const struct tench_stream_info *value)
{
    tench_put(message, (uint64_t)value->kind);
    tench_put(message, (uint64_t)value->readable);
    tench_put(message, (uint64_t)value->writable);
    tench_put(message, (uint64_t)value->size);
    tench_put(message, (uint64_t)value->position);
}

static inline void tench_stream_info_take(struct tench_reader *reader, struct tench_stream_info *value)
{
    value->kind = tench_take(reader);
    value->readable = (bool)tench_take_at_most(reader, 1);
    value->writable = (bool)tench_take_at_most(reader, 1);
    value->size = tench_take(reader);
    value->position = tench_take(reader);
}

#define TENCH_STREAM_LABEL_READ UINT64_C(0x420700010001)

/* What tench_stream_read returns. */
struct tench_stream_read_reply {
    uint8_t value[TENCH_STREAM_MAX_DATA];
    size_t value_length;
};

/*
 * Reads at most so many bytes, when there are some: of a pipe, waits until somebody has written. Those who wait
 * get bytes in the order in which they came. No bytes are the end: of a file, or of a pipe into which nobody can
 * write any more.
 * Errors: `Closed`, `NotForReading`, `Full`.
 */
static inline int tench_stream_read(tench_cap server, size_t max, struct tench_stream_read_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_STREAM_LABEL_READ);
    tench_put(message, (uint64_t)max);
    int code = tench_stream_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value_length = tench_take_bytes(reader, reply->value, TENCH_STREAM_MAX_DATA);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_STREAM_LABEL_WRITE UINT64_C(0x420700010002)

/*
 * Writes bytes, all of them and together: what others write to the same pipe comes before or behind. Returns when
 * they are in the pipe's buffer or in the file. Those who wait for room get it in the order in which they came.
 * Errors: `Closed`, `NotForWriting`, `Broken`, `NoSpace`, `TooLarge`, `Full`.
 */
static inline int tench_stream_write(tench_cap server, const void *data, size_t data_length)
{
    if (data_length > TENCH_STREAM_MAX_DATA)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_STREAM_LABEL_WRITE);
    tench_put_text(message, data, data_length);
    int code = tench_stream_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_STREAM_LABEL_SHARE UINT64_C(0x420700010003)

/*
 * Another capability to the same end, which belongs to this process: it is closed when that process ends, whoever
 * holds the capability. This is how a process passes a stream to one that it starts. The capability goes to the
 * empty slot.
 * Errors: `Closed`, `Full`.
 */
static inline int tench_stream_share(tench_cap server, uint64_t process, tench_cap slot)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_STREAM_LABEL_SHARE);
    tench_put(message, (uint64_t)process);
    tench_offer(message, slot);
    int code = tench_stream_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_STREAM_LABEL_CLOSE UINT64_C(0x420700010004)

/*
 * Closes this capability; it is of no more use then. Whoever waits with it is refused with `Closed`.
 * Errors: `Closed`.
 */
static inline int tench_stream_close(tench_cap server)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_STREAM_LABEL_CLOSE);
    int code = tench_stream_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_STREAM_LABEL_INFO UINT64_C(0x420700010005)

/* What tench_stream_info returns. */
struct tench_stream_info_reply {
    struct tench_stream_info value;
};

/*
 * Returns the properties of this end.
 * Errors: `Closed`.
 */
static inline int tench_stream_info(tench_cap server, struct tench_stream_info_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_STREAM_LABEL_INFO);
    int code = tench_stream_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_stream_info_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_STREAM_LABEL_SEEK UINT64_C(0x420700010006)

/*
 * Sets where in the file to read or write next, in bytes from its beginning; it may lie behind the end.
 * Errors: `Closed`, `NotAFile`.
 */
static inline int tench_stream_seek(tench_cap server, uint64_t position)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_STREAM_LABEL_SEEK);
    tench_put(message, (uint64_t)position);
    int code = tench_stream_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_STREAM_LABEL_TRUNCATE UINT64_C(0x420700010007)

/*
 * Sets the file's size in bytes: what lies behind is gone, what comes in addition is zeros.
 * Errors: `Closed`, `NotAFile`, `NotForWriting`, `TooLarge`.
 */
static inline int tench_stream_truncate(tench_cap server, uint64_t size)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_STREAM_LABEL_TRUNCATE);
    tench_put(message, (uint64_t)size);
    int code = tench_stream_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
