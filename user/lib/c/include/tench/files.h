/*
 * Files, version 3.
 *
 * Pipes and files. The returned capabilities are ends of byte streams, for requests of the interface
 * [stream](stream.md); they belong to the caller, and are closed when it ends.
 *
 * Every process may read everything, make files and directories in `/tmp` and in directories that were made with the
 * power `files`, and change what it made itself: write, remove, rename. Anything else needs the power `files`, and
 * files of the boot archive cannot be changed at all.
 *
 * Written by the interface compiler (./tench interfaces); docs/manual/interfaces.md says how it is used.
 */
#ifndef TENCH_FILES_H
#define TENCH_FILES_H

#include <tench/message.h>

/* Maximum length of a path in bytes. */
#define TENCH_FILES_MAX_PATH 240

/* Mode in which a file is opened. */
enum tench_files_how {
    /* Reading, from its beginning. */
    TENCH_FILES_HOW_READ = 1,
    /* Writing, from its beginning; the file is created, or emptied. */
    TENCH_FILES_HOW_WRITE = 2,
    /* Writing, each time at its end; the file is created if it does not exist. */
    TENCH_FILES_HOW_APPEND = 3,
    /* Reading and writing, from its beginning. */
    TENCH_FILES_HOW_UPDATE = 4,
    /* Reading and writing a file that does not exist yet. */
    TENCH_FILES_HOW_CREATE_NEW = 5,
};

/* Whether it is one of them. */
static inline bool tench_files_how_is(uint64_t code)
{
    switch (code) {
    case TENCH_FILES_HOW_READ:
    case TENCH_FILES_HOW_WRITE:
    case TENCH_FILES_HOW_APPEND:
    case TENCH_FILES_HOW_UPDATE:
    case TENCH_FILES_HOW_CREATE_NEW:
        return true;
    default:
        return false;
    }
}

/* Kind of a node. */
enum tench_files_kind {
    /* A file that can be written. */
    TENCH_FILES_KIND_FILE = 1,
    /* A file of the boot archive, which can only be read. */
    TENCH_FILES_KIND_ARCHIVE_FILE = 2,
    /* A directory. */
    TENCH_FILES_KIND_DIRECTORY = 3,
};

/* Whether it is one of them. */
static inline bool tench_files_kind_is(uint64_t code)
{
    switch (code) {
    case TENCH_FILES_KIND_FILE:
    case TENCH_FILES_KIND_ARCHIVE_FILE:
    case TENCH_FILES_KIND_DIRECTORY:
        return true;
    default:
        return false;
    }
}

/* Why a request was refused. */
enum tench_files_error {
    /* The path is empty, or a name in it contains control characters. */
    TENCH_FILES_ERROR_BAD_PATH = 1,
    /* There is no such file or directory. */
    TENCH_FILES_ERROR_NO_SUCH_FILE = 2,
    /* A file is where the path needs a directory. */
    TENCH_FILES_ERROR_NOT_A_DIRECTORY = 3,
    /* A directory is where a file is needed. */
    TENCH_FILES_ERROR_IS_DIRECTORY = 4,
    /* The file or directory is one of the boot archive. */
    TENCH_FILES_ERROR_READ_ONLY = 5,
    /* A file or directory exists there already. */
    TENCH_FILES_ERROR_EXISTS = 6,
    /* The directory is not empty. */
    TENCH_FILES_ERROR_NOT_EMPTY = 7,
    /* A directory would lie in itself. */
    TENCH_FILES_ERROR_INTO_ITSELF = 8,
    /* The directory has no entry after that one. */
    TENCH_FILES_ERROR_NO_MORE_ENTRIES = 9,
    /* The memory for files is used up. */
    TENCH_FILES_ERROR_NO_SPACE = 10,
    /* Too many ends of streams are open, of this process or of all. */
    TENCH_FILES_ERROR_FULL = 11,
    /* Another process made it, or the directory is not everybody's. */
    TENCH_FILES_ERROR_NOT_ALLOWED = 12,
};

/* Whether it is one of them. */
static inline bool tench_files_error_is(uint64_t code)
{
    switch (code) {
    case TENCH_FILES_ERROR_BAD_PATH:
    case TENCH_FILES_ERROR_NO_SUCH_FILE:
    case TENCH_FILES_ERROR_NOT_A_DIRECTORY:
    case TENCH_FILES_ERROR_IS_DIRECTORY:
    case TENCH_FILES_ERROR_READ_ONLY:
    case TENCH_FILES_ERROR_EXISTS:
    case TENCH_FILES_ERROR_NOT_EMPTY:
    case TENCH_FILES_ERROR_INTO_ITSELF:
    case TENCH_FILES_ERROR_NO_MORE_ENTRIES:
    case TENCH_FILES_ERROR_NO_SPACE:
    case TENCH_FILES_ERROR_FULL:
    case TENCH_FILES_ERROR_NOT_ALLOWED:
        return true;
    default:
        return false;
    }
}

/* It in words; NULL if it is none of them. */
static inline const char *tench_files_error_text(uint64_t code)
{
    switch (code) {
    case TENCH_FILES_ERROR_BAD_PATH:
        return "this is no path: it has 1 to 240 bytes of UTF-8 without control characters";
    case TENCH_FILES_ERROR_NO_SUCH_FILE:
        return "there is no such file or directory";
    case TENCH_FILES_ERROR_NOT_A_DIRECTORY:
        return "a file lies where the path needs a directory";
    case TENCH_FILES_ERROR_IS_DIRECTORY:
        return "this is a directory";
    case TENCH_FILES_ERROR_READ_ONLY:
        return "files and directories of the boot archive can only be read; write to another path, such as /tmp";
    case TENCH_FILES_ERROR_EXISTS:
        return "something lies there already";
    case TENCH_FILES_ERROR_NOT_EMPTY:
        return "the directory is not empty; remove what lies in it first";
    case TENCH_FILES_ERROR_INTO_ITSELF:
        return "a directory cannot be moved into itself";
    case TENCH_FILES_ERROR_NO_MORE_ENTRIES:
        return "the directory has no more entries";
    case TENCH_FILES_ERROR_NO_SPACE:
        return "no space is left for files; remove one";
    case TENCH_FILES_ERROR_FULL:
        return "too many pipes and files are open; close one";
    case TENCH_FILES_ERROR_NOT_ALLOWED:
        return "only its maker, or a program started with the power files, may change this; write under /tmp";
    default:
        return NULL;
    }
}

/* Why a request had no success, in words. The text stays. */
static inline const char *tench_files_failure(int code)
{
    const char *text = code > 0 ? tench_files_error_text((uint64_t)code) : NULL;
    return text != NULL ? text : tench_failure(code);
}

/* Calls. An error that the interface does not have is no reply. */
static inline int tench_files_call(tench_cap server, struct tench_message *message)
{
    int code = tench_call(server, message);
    return code > 0 && code < TENCH_REJECTED && !tench_files_error_is((uint64_t)code) ? TENCH_MALFORMED : code;
}

/* Status of a file or directory. */
struct tench_files_status {
    /* Kind of the node. */
    uint64_t kind;
    /* Size of a file in bytes; number of entries of a directory. */
    uint64_t size;
    /* A number that is unique as long as the node exists. */
    uint64_t identity;
};

static inline void tench_files_status_put(struct tench_message *message, const struct tench_files_status *value)
{
    tench_put(message, (uint64_t)value->kind);
    tench_put(message, (uint64_t)value->size);
    tench_put(message, (uint64_t)value->identity);
}

static inline void tench_files_status_take(struct tench_reader *reader, struct tench_files_status *value)
{
    value->kind = tench_take(reader);
    value->size = tench_take(reader);
    value->identity = tench_take(reader);
}

/* Resources of the file server in use, and their maximum. */
struct tench_files_usage {
    /* Bytes of memory with contents of files. */
    uint64_t bytes;
    /* Maximum of `bytes`, if the machine has as much memory. */
    uint64_t most_bytes;
    /* Files and directories that can be written, including those that have no name any more. */
    uint64_t nodes;
    /* Pipes. */
    uint64_t pipes;
    /* Capabilities to ends of pipes and files. */
    uint64_t ends;
    /* Waiting requests. */
    uint64_t waiting;
};

static inline void tench_files_usage_put(struct tench_message *message, const struct tench_files_usage *value)
{
    tench_put(message, (uint64_t)value->bytes);
    tench_put(message, (uint64_t)value->most_bytes);
    tench_put(message, (uint64_t)value->nodes);
    tench_put(message, (uint64_t)value->pipes);
    tench_put(message, (uint64_t)value->ends);
    tench_put(message, (uint64_t)value->waiting);
}

static inline void tench_files_usage_take(struct tench_reader *reader, struct tench_files_usage *value)
{
    value->bytes = tench_take(reader);
    value->most_bytes = tench_take(reader);
    value->nodes = tench_take(reader);
    value->pipes = tench_take(reader);
    value->ends = tench_take(reader);
    value->waiting = tench_take(reader);
}

#define TENCH_FILES_LABEL_PIPE UINT64_C(0xfc2d00030001)

/*
 * Makes a pipe. Returns the end to read from, and the end to write to. The capabilities go to the empty slots on
 * offer.
 * Errors: `Full`.
 */
static inline int tench_files_pipe(tench_cap server, tench_cap slot, tench_cap slot_2)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_PIPE);
    tench_offer(message, slot);
    tench_offer(message, slot_2);
    int code = tench_files_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_take_cap(reader);
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_FILES_LABEL_OPEN UINT64_C(0xfc2d00030002)

/*
 * Opens a file. The capability goes to the empty slot on offer.
 * Errors: `BadPath`, `NoSuchFile`, `NotADirectory` (on the way), `IsDirectory`, `ReadOnly` (to write a file of the
 * boot archive), `NotAllowed`, `Exists` (`CreateNew`), `NoSpace`, `Full`.
 */
static inline int tench_files_open(tench_cap server, const char *path, size_t path_length, enum tench_files_how how,
    tench_cap slot)
{
    if (path_length > TENCH_FILES_MAX_PATH)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_OPEN);
    tench_put_text(message, path, path_length);
    tench_put(message, (uint64_t)how);
    tench_offer(message, slot);
    int code = tench_files_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_take_cap(reader);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_FILES_LABEL_STATUS UINT64_C(0xfc2d00030003)

/* What tench_files_status returns. */
struct tench_files_status_reply {
    struct tench_files_status value;
};

/*
 * Returns the status of the file or directory at a path.
 * Errors: `BadPath`, `NoSuchFile`, `NotADirectory`.
 */
static inline int tench_files_status(tench_cap server, const char *path, size_t path_length,
    struct tench_files_status_reply *reply)
{
    if (path_length > TENCH_FILES_MAX_PATH)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_STATUS);
    tench_put_text(message, path, path_length);
    int code = tench_files_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_files_status_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_FILES_LABEL_NEXT UINT64_C(0xfc2d00030004)

/* What tench_files_next returns. */
struct tench_files_next_reply {
    struct tench_files_status first;
    char second[TENCH_FILES_MAX_PATH + 1];
    size_t second_length;
};

/*
 * Returns the entry of a directory with the first name after another in the order of their bytes (for the first of
 * all: after the empty name), and its name.
 * Errors: `BadPath`, `NoSuchFile`, `NotADirectory`, `NoMoreEntries`.
 */
static inline int tench_files_next(tench_cap server, const char *directory, size_t directory_length, const char *after,
    size_t after_length, struct tench_files_next_reply *reply)
{
    if (directory_length > TENCH_FILES_MAX_PATH)
        return TENCH_TOO_LONG;
    if (after_length > TENCH_FILES_MAX_PATH)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_NEXT);
    tench_put_text(message, directory, directory_length);
    tench_put_text(message, after, after_length);
    int code = tench_files_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_files_status_take(reader, &reply->first);
    reply->second_length = tench_take_bytes(reader, reply->second, TENCH_FILES_MAX_PATH);
    reply->second[reply->second_length] = '\0';
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_FILES_LABEL_MAKE_DIRECTORY UINT64_C(0xfc2d00030005)

/*
 * Makes a directory. If it was made with the power `files`, everybody may make something in it; otherwise only its
 * maker.
 * Errors: `BadPath`, `NoSuchFile` (on the way), `NotADirectory`, `Exists`, `NotAllowed`, `NoSpace`.
 */
static inline int tench_files_make_directory(tench_cap server, const char *path, size_t path_length)
{
    if (path_length > TENCH_FILES_MAX_PATH)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_MAKE_DIRECTORY);
    tench_put_text(message, path, path_length);
    int code = tench_files_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_FILES_LABEL_REMOVE UINT64_C(0xfc2d00030006)

/*
 * Removes a file, or an empty directory. An open file stays without a name until it is closed.
 * Errors: `BadPath`, `NoSuchFile`, `NotADirectory`, `ReadOnly`, `NotAllowed`, `NotEmpty`.
 */
static inline int tench_files_remove(tench_cap server, const char *path, size_t path_length)
{
    if (path_length > TENCH_FILES_MAX_PATH)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_REMOVE);
    tench_put_text(message, path, path_length);
    int code = tench_files_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_FILES_LABEL_RENAME UINT64_C(0xfc2d00030007)

/*
 * Moves a file or directory to another path. A file that exists there is removed.
 * Errors: `BadPath`, `NoSuchFile`, `NotADirectory`, `IsDirectory` (a directory exists there), `ReadOnly`,
 * `NotAllowed`, `IntoItself`, `NoSpace`.
 */
static inline int tench_files_rename(tench_cap server, const char *from, size_t from_length, const char *to,
    size_t to_length)
{
    if (from_length > TENCH_FILES_MAX_PATH)
        return TENCH_TOO_LONG;
    if (to_length > TENCH_FILES_MAX_PATH)
        return TENCH_TOO_LONG;
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_RENAME);
    tench_put_text(message, from, from_length);
    tench_put_text(message, to, to_length);
    int code = tench_files_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_FILES_LABEL_USAGE UINT64_C(0xfc2d00030008)

/* What tench_files_usage returns. */
struct tench_files_usage_reply {
    struct tench_files_usage value;
};

/* Returns how much of each resource is in use. */
static inline int tench_files_usage(tench_cap server, struct tench_files_usage_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_USAGE);
    int code = tench_files_call(server, message);
    if (code != TENCH_DONE)
        return code;
    struct tench_reader rest = tench_read(message), *reader = &rest;
    tench_files_usage_take(reader, &reply->value);
    return tench_is_done(reader) ? TENCH_DONE : TENCH_MALFORMED;
}

#define TENCH_FILES_LABEL_PROCESS_ENDED UINT64_C(0xfc2d00030009)

/* What tench_files_process_ended returns. */
struct tench_files_process_ended_reply {
    bool value_present;
    uint64_t value;
};

/*
 * Reports that a process has ended: its ends of streams are closed, and its waits removed. `family` is its family
 * if no process of that runs any more, and otherwise 0: files of a family count to no quota when its last process
 * has ended. Returns another process of the same core, if the server must know whether that one runs: one that was
 * given an end by a process that has ended, or has opened its first. If that process has ended, this is to be
 * reported in the same way; otherwise with `process_lives`. One request closes a limited number of ends: if there
 * are more, it returns the process itself.
 */
static inline int tench_files_process_ended(tench_cap server, uint64_t process, uint64_t family,
    struct tench_files_process_ended_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_PROCESS_ENDED);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)family);
    int code = tench_files_call(server, message);
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

#define TENCH_FILES_LABEL_PROCESS_LIVES UINT64_C(0xfc2d0003000a)

/* What tench_files_process_lives returns. */
struct tench_files_process_lives_reply {
    bool value_present;
    uint64_t value;
};

/*
 * Reports that a process of a family runs and keeps what it was given, up to a limit. Returns the same as
 * `process_ended`.
 */
static inline int tench_files_process_lives(tench_cap server, uint64_t process, uint64_t family,
    struct tench_files_process_lives_reply *reply)
{
    struct tench_message space, *message = &space;
    tench_begin(message, TENCH_FILES_LABEL_PROCESS_LIVES);
    tench_put(message, (uint64_t)process);
    tench_put(message, (uint64_t)family);
    int code = tench_files_call(server, message);
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
