/*
 * Memory that several processes share, and programs that are started with capabilities to it.
 *
 * A mutex, condition variable or semaphore in such memory is for the threads of all processes that share it, whatever its
 * attributes say: at most TENCH_SHARED_THREADS threads, counted from their first use until they end. The memory that a thread cannot
 * be admitted to lets its locks fail with EAGAIN. Of a process that is killed, the numbers of its threads stay in use. The process
 * that has made the memory must live as long as others begin to use it. Read-write locks and barriers cannot lie there.
 */
#ifndef TENCH_SHARED_H
#define TENCH_SHARED_H

#include <stddef.h>
#include <stdint.h>

#define TENCH_SHARED_THREADS 64

/* Zeroed memory of at least this size, at most 512 MiB; null with EINVAL or ENOMEM. It stays until the process ends. */
void *tench_shared_make(size_t size);
/* The slots of the two capabilities by which others join: a frame's and an endpoint's. -1 with EINVAL if it is no such memory. */
int tench_shared_capabilities(const void *memory, uint32_t capabilities[2]);
/* The memory of another process, by these capabilities; null with EINVAL if they are others, or with ENOMEM. */
void *tench_shared_join(uint32_t frame, uint32_t endpoint);

/*
 * Starts a program of the boot archive with arguments after its name, of which the last is null (or none: null), and copies of the
 * capabilities in these slots. The process's number, or 0 with ENOENT, ENOMEM, EAGAIN, or EINVAL (a capability or the text).
 */
uint64_t tench_run(const char *program, char *const arguments[], const uint32_t *capabilities, unsigned count);
/* Waits until a process has ended. Its exit code, or -1 if it was killed; `code` may be null. -1 with ESRCH if there is none. */
int tench_wait(uint64_t process, int *code);
/* The slot of a capability that the program was given at its start, counted from 0; 0 if there were not so many. */
uint32_t tench_given(unsigned index);

#endif
