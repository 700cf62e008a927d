/*
 * POSIX threads. Functions return 0 or an error number of <errno.h>.
 *
 * Locks are fair: threads get them in the order in which they ask. Without contention they make no system call. Mutexes and
 * condition variables in memory from <tench/shared.h> are shared by all processes that have the memory; others belong to one
 * process, and PTHREAD_PROCESS_SHARED changes neither. Read-write locks and barriers always belong to one process. Cancellation
 * does not exist. Variables that are declared with _Thread_local or __thread work; destructors and thread-local variables of the
 * main thread end with the process.
 */
#ifndef PTHREAD_H
#define PTHREAD_H

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <time.h>

/* Threads. A number is never given twice. */
typedef unsigned long pthread_t;
typedef struct {
    size_t stack;
    unsigned detached;
} pthread_attr_t;

#define PTHREAD_CREATE_JOINABLE 0
#define PTHREAD_CREATE_DETACHED 1
#define PTHREAD_STACK_MIN 16384

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);
int pthread_join(pthread_t thread, void **result);
int pthread_detach(pthread_t thread);
pthread_t pthread_self(void);
int pthread_equal(pthread_t one, pthread_t other);
_Noreturn void pthread_exit(void *result);
int pthread_setname_np(pthread_t thread, const char *name); /* the running thread alone */
int pthread_attr_init(pthread_attr_t *attributes);
int pthread_attr_destroy(pthread_attr_t *attributes);
int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t bytes);
int pthread_attr_setdetachstate(pthread_attr_t *attributes, int detached);

#define PTHREAD_PROCESS_PRIVATE 0
#define PTHREAD_PROCESS_SHARED 1

/*
 * Mutexes. A normal mutex may be unlocked by another thread than its owner, unless it is shared. Unlocking a mutex that is not
 * locked fails with EPERM. If the owner of a shared mutex ends, a robust mutex goes to the next thread, whose call returns
 * EOWNERDEAD. That thread must call pthread_mutex_consistent before it unlocks the mutex; otherwise all later calls return
 * ENOTRECOVERABLE. A mutex that is not robust stays locked. Mutexes that are not shared cannot be robust (ENOTSUP).
 */
typedef struct {
    unsigned long words[8];
} pthread_mutex_t;
typedef struct {
    int kind;
} pthread_mutexattr_t;

#define PTHREAD_MUTEX_NORMAL 0
#define PTHREAD_MUTEX_ERRORCHECK 1
#define PTHREAD_MUTEX_RECURSIVE 2
#define PTHREAD_MUTEX_DEFAULT PTHREAD_MUTEX_NORMAL
#define PTHREAD_MUTEX_STALLED 0
#define PTHREAD_MUTEX_ROBUST 1
#define PTHREAD_MUTEX_INITIALIZER { { PTHREAD_MUTEX_NORMAL } }
#define PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP { { PTHREAD_MUTEX_ERRORCHECK } }
#define PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP { { PTHREAD_MUTEX_RECURSIVE } }

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_trylock(pthread_mutex_t *mutex);
int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time);
int pthread_mutex_unlock(pthread_mutex_t *mutex);
int pthread_mutexattr_init(pthread_mutexattr_t *attributes);
int pthread_mutexattr_destroy(pthread_mutexattr_t *attributes);
int pthread_mutexattr_settype(pthread_mutexattr_t *attributes, int kind);
int pthread_mutexattr_gettype(const pthread_mutexattr_t *attributes, int *kind);
int pthread_mutexattr_setpshared(pthread_mutexattr_t *attributes, int shared);
int pthread_mutexattr_getpshared(const pthread_mutexattr_t *attributes, int *shared);
int pthread_mutexattr_setrobust(pthread_mutexattr_t *attributes, int robust);
int pthread_mutexattr_getrobust(const pthread_mutexattr_t *attributes, int *robust);
int pthread_mutex_consistent(pthread_mutex_t *mutex);

/* Condition variables. The mutex of a shared one must lie in the same shared memory; waiting fails with EINVAL otherwise. */
typedef struct {
    unsigned long words[5];
} pthread_cond_t;
typedef struct {
    int clock;
} pthread_condattr_t;

#define PTHREAD_COND_INITIALIZER { { 0 } }

int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
int pthread_cond_destroy(pthread_cond_t *condition);
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time);
int pthread_cond_signal(pthread_cond_t *condition);
int pthread_cond_broadcast(pthread_cond_t *condition);
int pthread_condattr_init(pthread_condattr_t *attributes);
int pthread_condattr_destroy(pthread_condattr_t *attributes);
int pthread_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock);
int pthread_condattr_setpshared(pthread_condattr_t *attributes, int shared);
int pthread_condattr_getpshared(const pthread_condattr_t *attributes, int *shared);

/* Read-write locks. A thread that reads must not ask to read once more: a writer may wait in between. */
typedef struct {
    unsigned long words[7];
} pthread_rwlock_t;
typedef struct {
    int unused;
} pthread_rwlockattr_t;

#define PTHREAD_RWLOCK_INITIALIZER { { 0 } }

int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes);
int pthread_rwlock_destroy(pthread_rwlock_t *lock);
int pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock);
int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *time);
int pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int pthread_rwlock_trywrlock(pthread_rwlock_t *lock);
int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *time);
int pthread_rwlock_unlock(pthread_rwlock_t *lock);
int pthread_rwlockattr_init(pthread_rwlockattr_t *attributes);
int pthread_rwlockattr_destroy(pthread_rwlockattr_t *attributes);
int pthread_rwlockattr_setpshared(pthread_rwlockattr_t *attributes, int shared);

/* Barriers. */
typedef struct {
    unsigned long words[6];
} pthread_barrier_t;
typedef struct {
    int unused;
} pthread_barrierattr_t;

#define PTHREAD_BARRIER_SERIAL_THREAD (-1)

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned count);
int pthread_barrier_destroy(pthread_barrier_t *barrier);
int pthread_barrier_wait(pthread_barrier_t *barrier);
int pthread_barrierattr_init(pthread_barrierattr_t *attributes);
int pthread_barrierattr_destroy(pthread_barrierattr_t *attributes);
int pthread_barrierattr_setpshared(pthread_barrierattr_t *attributes, int shared);

/* What happens once. */
typedef struct {
    unsigned long words[3];
} pthread_once_t;

#define PTHREAD_ONCE_INIT { { 0 } }

int pthread_once(pthread_once_t *once, void (*function)(void));

/* Pointers of which each thread has its own. */
typedef unsigned pthread_key_t;

#define PTHREAD_KEYS_MAX 128
#define PTHREAD_DESTRUCTOR_ITERATIONS 4

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int pthread_key_delete(pthread_key_t key);
int pthread_setspecific(pthread_key_t key, const void *value);
void *pthread_getspecific(pthread_key_t key);

#endif
