/*
 * POSIX threads from C: each function tries one thing, and the program prints a line for each, then the number of failures,
 * which is also its exit code.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            printf("FAILED  line %d: %s\n", __LINE__, #condition); \
            failures++; \
        } \
    } while (0)

/* A point in time some milliseconds from now. */
static struct timespec in_milliseconds(long milliseconds)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += milliseconds * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static const struct timespec never = { 0, 1000000000 };

/* ── Threads ─────────────────────────────────────────────────────────────────────────────────────────────────────────── */

static void *identity(void *argument)
{
    return argument;
}

static void *leave(void *argument)
{
    pthread_exit(argument);
}

static void *own_number(void *place)
{
    *(pthread_t *)place = pthread_self();
    CHECK(pthread_join(pthread_self(), NULL) == EDEADLK);
    return NULL;
}

static void threads(void)
{
    pthread_t thread, seen;
    void *result;
    CHECK(pthread_create(&thread, NULL, identity, &failures) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == &failures);
    CHECK(pthread_join(thread, &result) == ESRCH);
    CHECK(pthread_create(&thread, NULL, leave, &thread) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == &thread);
    CHECK(pthread_create(&thread, NULL, own_number, &seen) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && pthread_equal(thread, seen));
    CHECK(!pthread_equal(thread, pthread_self()));
    CHECK(pthread_create(&thread, NULL, identity, NULL) == 0 && pthread_detach(thread) == 0);
    CHECK(pthread_detach(12345) == ESRCH && pthread_join(pthread_self(), NULL) == EDEADLK);

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, 1) == EINVAL);
    CHECK(pthread_attr_setstacksize(&attributes, 1 << 16) == 0);
    CHECK(pthread_attr_setdetachstate(&attributes, 7) == EINVAL);
    CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    CHECK(pthread_create(&thread, &attributes, identity, NULL) == 0);
    result = NULL;
    int error = pthread_join(thread, &result);
    CHECK(error == EINVAL || error == ESRCH);
    pthread_attr_destroy(&attributes);
}

/* ── Mutexes ─────────────────────────────────────────────────────────────────────────────────────────────────────────── */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *count(void *argument)
{
    (void)argument;
    for (int round = 0; round < 500; round++) {
        pthread_mutex_lock(&mutex);
        long before = counter;
        if (round % 50 == 0)
            sched_yield();
        counter = before + 1;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *foreign_unlock(void *other)
{
    CHECK(pthread_mutex_unlock(other) == EPERM);
    CHECK(pthread_mutex_trylock(other) == EBUSY);
    return NULL;
}

static void mutexes(void)
{
    pthread_t thread[16];
    for (int index = 0; index < 16; index++)
        CHECK(pthread_create(&thread[index], NULL, count, NULL) == 0);
    for (int index = 0; index < 16; index++)
        CHECK(pthread_join(thread[index], NULL) == 0);
    CHECK(counter == 16 * 500);

    struct timespec soon = in_milliseconds(2);
    CHECK(pthread_mutex_unlock(&mutex) == EPERM);
    CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_trylock(&mutex) == EBUSY);
    CHECK(pthread_mutex_timedlock(&mutex, &soon) == ETIMEDOUT);
    CHECK(pthread_mutex_timedlock(&mutex, &never) == EINVAL);
    CHECK(pthread_mutex_destroy(&mutex) == EBUSY);
    CHECK(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_destroy(&mutex) == 0);

    pthread_mutexattr_t attributes;
    pthread_mutex_t checking, recursive;
    pthread_mutexattr_init(&attributes);
    CHECK(pthread_mutexattr_settype(&attributes, 9) == EINVAL);
    CHECK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == ENOTSUP);
    CHECK(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK) == 0);
    CHECK(pthread_mutex_init(&checking, &attributes) == 0);
    CHECK(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) == 0);
    CHECK(pthread_mutex_init(&recursive, &attributes) == 0);
    CHECK(pthread_mutex_lock(&checking) == 0 && pthread_mutex_lock(&checking) == EDEADLK);
    CHECK(pthread_create(&thread[0], NULL, foreign_unlock, &checking) == 0);
    CHECK(pthread_join(thread[0], NULL) == 0);
    CHECK(pthread_mutex_unlock(&checking) == 0 && pthread_mutex_unlock(&checking) == EPERM);
    CHECK(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_lock(&recursive) == 0);
    CHECK(pthread_mutex_unlock(&recursive) == 0);
    CHECK(pthread_create(&thread[0], NULL, foreign_unlock, &recursive) == 0);
    CHECK(pthread_join(thread[0], NULL) == 0);
    CHECK(pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == EPERM);
}

/* ── Turns: R2's benchmark of a shared counter ───────────────────────────────────────────────────────────────────────── */

#define THREADS 9
#define LAST 180

static pthread_mutex_t turn[THREADS];
static int number, order_is_right = 1;

static void *take_turns(void *argument)
{
    long own = (long)argument;
    for (;;) {
        pthread_mutex_lock(&turn[own]);
        pthread_mutex_lock(&mutex);
        int done = number >= LAST;
        if (!done && number % THREADS != own)
            order_is_right = 0;
        if (!done)
            number++;
        pthread_mutex_unlock(&mutex);
        pthread_mutex_unlock(&turn[(own + 1) % THREADS]);
        if (done)
            return NULL;
    }
}

static void turns(void)
{
    pthread_t thread[THREADS];
    for (long index = 0; index < THREADS; index++) {
        pthread_mutex_init(&turn[index], NULL);
        if (index > 0)
            pthread_mutex_lock(&turn[index]);
    }
    for (long index = 1; index < THREADS; index++)
        CHECK(pthread_create(&thread[index], NULL, take_turns, (void *)index) == 0);
    take_turns((void *)0);
    for (int index = 1; index < THREADS; index++)
        CHECK(pthread_join(thread[index], NULL) == 0);
    CHECK(number == LAST && order_is_right);
}

/* ── Conditions ──────────────────────────────────────────────────────────────────────────────────────────────────────── */

static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int queue[64], first, last;

static void *consume(void *argument)
{
    long sum = 0;
    (void)argument;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (first == last)
            pthread_cond_wait(&filled, &mutex);
        int item = queue[first++ % 64];
        pthread_mutex_unlock(&mutex);
        if (item == 0)
            return (void *)sum;
        sum += item;
    }
}

static void conditions(void)
{
    pthread_t thread[3];
    void *result;
    long sum = 0;
    for (int index = 0; index < 3; index++)
        CHECK(pthread_create(&thread[index], NULL, consume, NULL) == 0);
    for (int item = 1; item <= 50; item++) {
        pthread_mutex_lock(&mutex);
        queue[last++ % 64] = item;
        pthread_mutex_unlock(&mutex);
        pthread_cond_signal(&filled);
        if (item % 10 == 0)
            sched_yield();
    }
    pthread_mutex_lock(&mutex);
    for (int index = 0; index < 3; index++)
        queue[last++ % 64] = 0;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&mutex);
    for (int index = 0; index < 3; index++) {
        CHECK(pthread_join(thread[index], &result) == 0);
        sum += (long)result;
    }
    CHECK(sum == 50 * 51 / 2);

    struct timespec soon = in_milliseconds(2);
    CHECK(pthread_cond_timedwait(&filled, &mutex, &soon) == EPERM);
    pthread_mutex_lock(&mutex);
    CHECK(pthread_cond_timedwait(&filled, &mutex, &never) == EINVAL);
    CHECK(pthread_cond_timedwait(&filled, &mutex, &soon) == ETIMEDOUT);
    CHECK(pthread_mutex_trylock(&mutex) == EBUSY);
    pthread_mutex_unlock(&mutex);
    CHECK(pthread_cond_destroy(&filled) == 0);
}

/* ── Read-write locks ────────────────────────────────────────────────────────────────────────────────────────────────── */

static pthread_rwlock_t book = PTHREAD_RWLOCK_INITIALIZER;
static int left_page, right_page, torn;

static void *read_or_write(void *argument)
{
    for (int round = 0; round < 100; round++) {
        if (argument != NULL) {
            pthread_rwlock_wrlock(&book);
            left_page++;
            sched_yield();
            right_page++;
        } else {
            pthread_rwlock_rdlock(&book);
            if (left_page != right_page)
                torn = 1;
        }
        pthread_rwlock_unlock(&book);
    }
    return NULL;
}

static void read_write_locks(void)
{
    pthread_t thread[6];
    struct timespec soon;
    for (int index = 0; index < 6; index++)
        CHECK(pthread_create(&thread[index], NULL, read_or_write, index < 2 ? &torn : NULL) == 0);
    for (int index = 0; index < 6; index++)
        CHECK(pthread_join(thread[index], NULL) == 0);
    CHECK(!torn && left_page == 200 && right_page == 200);
    CHECK(pthread_rwlock_unlock(&book) == EPERM);
    CHECK(pthread_rwlock_rdlock(&book) == 0 && pthread_rwlock_tryrdlock(&book) == 0);
    soon = in_milliseconds(2);
    CHECK(pthread_rwlock_trywrlock(&book) == EBUSY && pthread_rwlock_timedwrlock(&book, &soon) == ETIMEDOUT);
    CHECK(pthread_rwlock_unlock(&book) == 0 && pthread_rwlock_unlock(&book) == 0);
    CHECK(pthread_rwlock_wrlock(&book) == 0 && pthread_rwlock_wrlock(&book) == EDEADLK);
    CHECK(pthread_rwlock_tryrdlock(&book) == EBUSY && pthread_rwlock_destroy(&book) == EBUSY);
    CHECK(pthread_rwlock_unlock(&book) == 0 && pthread_rwlock_destroy(&book) == 0);
}

/* ── Once, barriers, semaphores ──────────────────────────────────────────────────────────────────────────────────────── */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int initialised, serial, inside;

static void initialise(void)
{
    sched_yield();
    initialised++;
}

static void *meet(void *argument)
{
    (void)argument;
    pthread_once(&once, initialise);
    CHECK(initialised == 1);
    int result = pthread_barrier_wait(&barrier);
    if (result == PTHREAD_BARRIER_SERIAL_THREAD)
        serial++;
    else
        CHECK(result == 0);
    sem_wait(&semaphore);
    inside++;
    CHECK(inside <= 2);
    sched_yield();
    inside--;
    sem_post(&semaphore);
    return NULL;
}

static void meetings(void)
{
    pthread_t thread[5];
    int value;
    struct timespec soon;
    CHECK(pthread_barrier_init(&barrier, NULL, 0) == EINVAL);
    CHECK(pthread_barrier_init(&barrier, NULL, 5) == 0);
    CHECK(sem_init(&semaphore, 1, 0) == -1 && errno == ENOTSUP);
    CHECK(sem_init(&semaphore, 0, 0x80000000u) == -1 && errno == EINVAL);
    CHECK(sem_init(&semaphore, 0, 2) == 0);
    for (int index = 0; index < 5; index++)
        CHECK(pthread_create(&thread[index], NULL, meet, NULL) == 0);
    for (int index = 0; index < 5; index++)
        CHECK(pthread_join(thread[index], NULL) == 0);
    CHECK(serial == 1 && pthread_barrier_destroy(&barrier) == 0);
    CHECK(sem_getvalue(&semaphore, &value) == 0 && value == 2);
    CHECK(sem_wait(&semaphore) == 0 && sem_trywait(&semaphore) == 0);
    CHECK(sem_trywait(&semaphore) == -1 && errno == EAGAIN);
    soon = in_milliseconds(2);
    CHECK(sem_timedwait(&semaphore, &soon) == -1 && errno == ETIMEDOUT);
    CHECK(sem_timedwait(&semaphore, &never) == -1 && errno == EINVAL);
    CHECK(sem_destroy(&semaphore) == 0);
    CHECK(sem_init(&semaphore, 0, SEM_VALUE_MAX) == 0);
    CHECK(sem_post(&semaphore) == -1 && errno == EOVERFLOW);
}

/* ── Data of each thread ─────────────────────────────────────────────────────────────────────────────────────────────── */

static pthread_key_t key;
static int destroyed;
static _Thread_local int own = 7;
static __thread char buffer[100];
static _Thread_local struct {
    _Alignas(64) char line[64];
} aligned;

static void destroy(void *value)
{
    destroyed += *(int *)value;
    free(value);
}

static void *keep(void *argument)
{
    int *value = malloc(sizeof *value);
    *value = (int)(long)argument;
    CHECK(own == 7 && buffer[99] == 0 && pthread_getspecific(key) == NULL);
    CHECK((uintptr_t)&aligned % 64 == 0);
    own = *value;
    memset(buffer, *value, sizeof buffer);
    errno = *value;
    CHECK(pthread_setspecific(key, value) == 0);
    sched_yield();
    CHECK(own == *value && buffer[99] == *value && errno == *value && pthread_getspecific(key) == value);
    return NULL;
}

static void own_data(void)
{
    pthread_t thread[4];
    CHECK(pthread_key_create(&key, destroy) == 0);
    own = 100;
    for (long index = 0; index < 4; index++)
        CHECK(pthread_create(&thread[index], NULL, keep, (void *)(index + 1)) == 0);
    for (int index = 0; index < 4; index++)
        CHECK(pthread_join(thread[index], NULL) == 0);
    CHECK(destroyed == 1 + 2 + 3 + 4 && own == 100 && buffer[0] == 0);
    CHECK(pthread_key_delete(key) == 0 && pthread_key_delete(key) == EINVAL);
    CHECK(pthread_setspecific(key, &own) == EINVAL && pthread_getspecific(key) == NULL);
}

static void try(const char *name, void (*function)(void))
{
    int before = failures;
    function();
    printf("%s  %s\n", failures == before ? "ok    " : "FAILED", name);
}

static void *farewell(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&mutex);
    printf("the last thread\n");
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: pthreads [exit]\n");
        return EXIT_SUCCESS;
    }
    if (argc > 1 && strcmp(argv[1], "exit") == 0) {
        /* The process goes on until its last thread has ended. */
        pthread_create(&thread, NULL, farewell, NULL);
        pthread_exit(NULL);
    }
    try("threads begin, end, are joined and detached", threads);
    try("mutexes of every kind", mutexes);
    try("nine threads take turns", turns);
    try("conditions with and without a time", conditions);
    try("read-write locks", read_write_locks);
    try("once, barriers, semaphores", meetings);
    try("keys, thread-local variables, errno", own_data);
    printf("%d failures\n", failures);
    return failures;
}
