/* Linux's own asynchronous I/O: the calls, and an operation as `io_submit` takes it. */

#pragma once

#include "system.h"

enum { IO_SETUP = 0, IO_DESTROY, IO_SUBMIT, IO_CANCEL, IO_GETEVENTS, IO_PGETEVENTS = 292 };

struct operation {
    uint64_t data;
    uint32_t key, how;
    uint16_t kind;
    int16_t priority;
    int32_t file;
    uint64_t place, length;
    int64_t offset;
    uint64_t reserved;
    uint32_t flags, counter;
};
