/* Semaphores. One in memory from <tench/shared.h> is shared by all processes that have the memory; others belong to one process,
 * and sem_init's second argument changes neither. Waiters are served in the order in which they came. Functions return 0, or -1
 * with the error in errno. */
#ifndef SEMAPHORE_H
#define SEMAPHORE_H

#include <time.h>

#define SEM_VALUE_MAX 0x7fffffff

typedef struct {
    unsigned long words[5];
} sem_t;

int sem_init(sem_t *semaphore, int shared, unsigned value);
int sem_destroy(sem_t *semaphore);
int sem_wait(sem_t *semaphore);
int sem_trywait(sem_t *semaphore);
int sem_timedwait(sem_t *semaphore, const struct timespec *time);
int sem_post(sem_t *semaphore);
int sem_getvalue(sem_t *semaphore, int *value);

#endif
