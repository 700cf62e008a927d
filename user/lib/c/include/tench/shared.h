/*
 * Memory that several processes share, and starting programs with capabilities to it.
 *
 * A mutex, condition variable or semaphore in such memory is shared by all processes that have the memory, whatever its
 * attributes say. At most TENCH_SHARED_THREADS threads can use such objects in one memory at a time: each counts from its first
 * use until it ends. Functions fail with EAGAIN in any further thread. The threads of a process that is killed count for ever.
 * The process that made the memory must live until no thread begins to use it any more. Read-write locks and barriers cannot lie
 * in such memory.
 */
#ifndef TENCH_SHARED_H
#define TENCH_SHARED_H

#include <stddef.h>
#include <stdint.h>

#define TENCH_SHARED_THREADS 64

/* Returns zeroed memory of at least `size` bytes, at most 512 MiB; or null with EINVAL or ENOMEM. It stays until the process
 * ends. */
void *tench_shared_make(size_t size);
/* Stores the slots of the two capabilities with which others join: a frame's and an endpoint's. Returns 0, or -1 with EINVAL if
 * this is no such memory. */
int tench_shared_capabilities(const void *memory, uint32_t capabilities[2]);
/* Returns the memory of another process, given these capabilities; or null with EINVAL if they are of another kind, or with
 * ENOMEM. */
void *tench_shared_join(uint32_t frame, uint32_t endpoint);

/*
 * Starts a program of the boot archive with its arguments (after the program's name; ended by null; or null if there are none) and
 * copies of the capabilities in these slots. Returns the process's number; or 0 with ENOENT, ENOMEM, EAGAIN, or with EINVAL if a
 * capability or the text is invalid.
 */
uint64_t tench_run(const char *program, char *const arguments[], const uint32_t *capabilities, unsigned count);
/* Waits until a process has ended, and stores its exit code, or -1 if it was killed; `code` may be null. Returns 0, or -1 with
 * ESRCH if there is no such process. */
int tench_wait(uint64_t process, int *code);
/* Returns the slot of a capability that the program was given at its start, or 0 if it was given fewer. The first has index 0. */
uint32_t tench_given(unsigned index);

#endif
