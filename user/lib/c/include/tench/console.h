/*
 * Console, version 1.
 *
 * The terminal: output, input, and ownership.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_CONSOLE_H
#define TENCH_CONSOLE_H

#include <tench/message.h>

/* Maximum number of bytes of text in one message. */
#define TENCH_CONSOLE_MAX_TEXT 448

/* Treatment of typed characters. */
enum tench_console_mode {
    /*
     * Lines: echo; backspace, Ctrl-U and Ctrl-W edit; Ctrl-C interrupts; Ctrl-D ends the input; Ctrl-Z suspends,
     * if a notification is set for it.
     */
    TENCH_CONSOLE_MODE_CANONICAL = 1,
    /* Every byte goes to the reader as it comes, without echo. */
    TENCH_CONSOLE_MODE_RAW = 2,
};

/* Whether it is one of them. */
static inline bool tench_console_mode_is(uint64_t code)
{
    switch (code) {
    case TENCH_CONSOLE_MODE_CANONICAL:
    case TENCH_CONSOLE_MODE_RAW:
        return true;
    default:
        return false;
    }
}

/* Why a request was refused. */
enum tench_console_error {
    /* Ctrl-C was typed while the thread waited for input. */
    TENCH_CONSOLE_ERROR_INTERRUPTED = 1,
    /* Too many threads wait. */
    TENCH_CONSOLE_ERROR_FULL = 2,
    /* The terminal is another process's; or nobody's, and the process lacks the power to take it. */
    TENCH_CONSOLE_ERROR_NOT_YOURS = 3,
    /* Nothing was typed in time. */
    TENCH_CONSOLE_ERROR_TIMED_OUT = 4,
};

/* Whether it is one of them. */
static inline bool tench_console_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_CONSOLE_ERROR_INTERRUPTED:
    case TENCH_CONSOLE_ERROR_FULL:
    case TENCH_CONSOLE_ERROR_NOT_YOURS:
    case TENCH_CONSOLE_ERROR_TIMED_OUT:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_console_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_CONSOLE_ERROR_INTERRUPTED:
        return "Ctrl-C was typed";
    case TENCH_CONSOLE_ERROR_FULL:
        return "too many threads wait at the console; try again later";
    case TENCH_CONSOLE_ERROR_NOT_YOURS:
        return "the terminal is another process's, or nobody's and this one has no power to take it";
    case TENCH_CONSOLE_ERROR_TIMED_OUT:
        return "nothing was typed in time";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_console_failure(int code)
{
    const char *text = code > 0 ? tench_console_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_console_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_console_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

#define TENCH_CONSOLE_LABEL_PUT UINT64_C(0x281100010001)

/*
 * Writes text. `\n` becomes `\r\n` on the line. The reply comes when the text is in the server's buffer, that is,
 * when there is room for it. Without the power `terminal`, the only control characters that reach the terminal are
 * `\n`, `\t`, `\r` and backspace; the others are shown, as `^[` for instance, and invalid UTF-8 as U+FFFD. A
 * character may be split over several writes.
 * Errors: `Full`.
 */
static inline int tench_console_put(tench_cap server, const void *text, size_t text_length)
{
    if (text_length > TENCH_CONSOLE_MAX_TEXT)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_PUT);
    tench_put_text(message, text, text_length);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CONSOLE_LABEL_GET UINT64_C(0x281100010002)

/* What tench_console_get returns. */
struct tench_console_get_reply {
    uint8_t value[TENCH_CONSOLE_MAX_TEXT];
    size_t value_length;
};

/*
 * Reads at most this many bytes, when there are some: in canonical mode one line with its `\n` (or what fits of
 * it), in raw mode what has come, at least one byte. The end of the input, Ctrl-D on an empty line, is a reply of
 * 0 bytes. While a foreground process is set, others wait.
 * Errors: `Interrupted` (Ctrl-C in canonical mode), `Full`.
 */
static inline int tench_console_get(tench_cap server, size_t max, struct tench_console_get_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_GET);
    tench_put(message, (uint64_t)max);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value_length = tench_take_bytes(reader, reply->value, TENCH_CONSOLE_MAX_TEXT);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CONSOLE_LABEL_SET_MODE UINT64_C(0x281100010003)

/*
 * Sets the mode. Typed text that has not been read stays, but a Ctrl-C or Ctrl-Z in it that was typed in raw mode
 * has its canonical effect once that is the mode.
 * Errors: `NotYours` (the terminal is another process's; or nobody's, and the caller lacks the power `terminal`).
 */
static inline int tench_console_set_mode(tench_cap server, enum tench_console_mode mode)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_SET_MODE);
    tench_put(message, (uint64_t)mode);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CONSOLE_LABEL_STATE UINT64_C(0x281100010004)

/* What tench_console_state returns. */
struct tench_console_state_reply {
    enum tench_console_mode first;
    uint64_t second;
    bool third;
};

/*
 * Returns the mode, the foreground process (0: none), and whether the output so far, of all processes, ends in the
 * middle of a line.
 */
static inline int tench_console_state(tench_cap server, struct tench_console_state_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_STATE);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->first = (enum tench_console_mode)tench_take(reader);
    if (!tench_console_mode_is((uint64_t)reply->first))
        reader->bad = true;
    reply->second = tench_take(reader);
    reply->third = (bool)tench_take_at_most(reader, 1);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CONSOLE_LABEL_SET_READER UINT64_C(0x281100010005)

/*
 * Sets which process reads (0: every one); Ctrl-C interrupts reads and has no other effect. The caller owns the
 * terminal from then on. When the process that reads has ended, the owner reads.
 * Errors: `NotYours` (the terminal is another process's; or nobody's, and the caller lacks the power `terminal`).
 */
static inline int tench_console_set_reader(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_SET_READER);
    tench_put(message, (uint64_t)process);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CONSOLE_LABEL_SET_READER_AND_SIGNAL UINT64_C(0x281100010006)

/*
 * Sets which process reads, as `set_reader` does; in canonical mode Ctrl-C also signals this notification.
 * Errors: `NotYours`.
 */
static inline int tench_console_set_reader_and_signal(tench_cap server, uint64_t process, tench_cap interrupt)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_SET_READER_AND_SIGNAL);
    tench_put(message, (uint64_t)process);
    tench_lend(message, interrupt);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CONSOLE_LABEL_PROCESS_ENDED UINT64_C(0x281100010007)

/* Reports that a process has ended: its waits are removed, and what it owned is free. */
static inline int tench_console_process_ended(tench_cap server, uint64_t process)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_PROCESS_ENDED);
    tench_put(message, (uint64_t)process);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CONSOLE_LABEL_DRAIN UINT64_C(0x281100010008)

/*
 * Waits until everything written so far has been sent on the line.
 * Errors: `Full`.
 */
static inline int tench_console_drain(tench_cap server)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_DRAIN);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CONSOLE_LABEL_GET_UNTIL UINT64_C(0x281100010009)

/* What tench_console_get_until returns. */
struct tench_console_get_until_reply {
    uint8_t value[TENCH_CONSOLE_MAX_TEXT];
    size_t value_length;
};

/*
 * Reads as `get` does, and waits until this time at most. The reply may come later if the server is busy with
 * other requests at that time.
 * Errors: `TimedOut`, `Interrupted`, `Full`.
 */
static inline int tench_console_get_until(tench_cap server, size_t max, uint64_t deadline,
    struct tench_console_get_until_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_GET_UNTIL);
    tench_put(message, (uint64_t)max);
    tench_put(message, (uint64_t)deadline);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    reply->value_length = tench_take_bytes(reader, reply->value, TENCH_CONSOLE_MAX_TEXT);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_CONSOLE_LABEL_SET_SUSPEND_SIGNAL UINT64_C(0x28110001000a)

/*
 * Sets the notification that Ctrl-Z signals in canonical mode, until the next change of the process that reads;
 * without one it is an ordinary character.
 * Errors: `NotYours`.
 */
static inline int tench_console_set_suspend_signal(tench_cap server, tench_cap suspend)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_CONSOLE_LABEL_SET_SUSPEND_SIGNAL);
    tench_lend(message, suspend);
    int code = tench_console_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#endif
