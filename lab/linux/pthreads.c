/* What POSIX threads cost a program that is linked with a C library, in instructions: prints `figure: NAME_WHERE
   INSTRUCTIONS` for each kind of synchronisation, where WHERE is the argument. The machine must count instructions as
   nanoseconds, so that its counter counts them. Every thread increments one counter, whose value is checked. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Turns of each thread: some that do not count, and those that do. */
enum { WARM = 4, TURNS = 32, MOST = 64, UNCONTENDED = 10000, CREATED = 200 };

/* Threads that take turns, or that meet, and what they wait with; it lies in memory that processes can share. */
struct ring {
    int threads, is_shared, turn;
    volatile long counter;
    pthread_mutex_t lock, turns[MOST];
    pthread_cond_t conditions[MOST];
    sem_t semaphores[MOST];
    pthread_barrier_t barrier;
    /* When the first thread's turns begin to count and end, and the counter then. */
    uint64_t times[2];
    long counts[2];
};

/* A way to synchronise: what is prepared, and what a thread does in each turn. */
struct kind {
    const char *name;
    void (*prepare)(struct ring *);
    void (*turn)(struct ring *, int own);
};

static struct ring *ring;
static const struct kind *kind;

static uint64_t now(void) {
    uint64_t value;
    __asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}

static uint64_t instructions_per_tick(void) {
    uint64_t frequency;
    __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
    return 1000000000 / frequency;
}

/* Ends the program if a function of the C library has failed. */
static void check(int error, const char *what) {
    if (error == 0)
        return;
    printf("note: %s failed: %s\n", what, strerror(error));
    exit(1);
}

#define CHECK(call) check((call), #call)
/* The same of a function that says by -1 that it has failed, and in `errno` why. */
#define CHECK_ERRNO(call) check((call) < 0 ? errno : 0, #call)

static void lock(pthread_mutex_t *mutex) { CHECK(pthread_mutex_lock(mutex)); }
static void unlock(pthread_mutex_t *mutex) { CHECK(pthread_mutex_unlock(mutex)); }

static void make_mutex(pthread_mutex_t *mutex, int is_shared, int protocol) {
    pthread_mutexattr_t attributes;
    CHECK(pthread_mutexattr_init(&attributes));
    CHECK(pthread_mutexattr_setpshared(&attributes, is_shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    CHECK(pthread_mutexattr_setprotocol(&attributes, protocol));
    CHECK(pthread_mutex_init(mutex, &attributes));
}

static int next(const struct ring *r, int own) { return (own + 1) % r->threads; }

static void prepare_lock(struct ring *r) { make_mutex(&r->lock, r->is_shared, PTHREAD_PRIO_NONE); }
static void prepare_inheriting(struct ring *r) { make_mutex(&r->lock, r->is_shared, PTHREAD_PRIO_INHERIT); }

static void increment(struct ring *r) {
    lock(&r->lock);
    r->counter++;
    unlock(&r->lock);
}

/* Each thread waits for its turn with a mutex that the one before it unlocks. */
static void prepare_mutexes(struct ring *r) {
    prepare_lock(r);
    for (int i = 0; i < r->threads; i++) {
        make_mutex(&r->turns[i], r->is_shared, PTHREAD_PRIO_NONE);
        if (i > 0)
            lock(&r->turns[i]);
    }
}

static void turn_by_mutex(struct ring *r, int own) {
    lock(&r->turns[own]);
    increment(r);
    unlock(&r->turns[next(r, own)]);
}

static void prepare_semaphores(struct ring *r) {
    prepare_lock(r);
    for (int i = 0; i < r->threads; i++)
        CHECK_ERRNO(sem_init(&r->semaphores[i], r->is_shared, i == 0));
}

static void turn_by_semaphore(struct ring *r, int own) {
    CHECK_ERRNO(sem_wait(&r->semaphores[own]));
    increment(r);
    CHECK_ERRNO(sem_post(&r->semaphores[next(r, own)]));
}

static void prepare_conditions(struct ring *r) {
    pthread_condattr_t attributes;
    prepare_lock(r);
    CHECK(pthread_condattr_init(&attributes));
    CHECK(pthread_condattr_setpshared(&attributes, r->is_shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    for (int i = 0; i < r->threads; i++)
        CHECK(pthread_cond_init(&r->conditions[i], &attributes));
}

static void turn_by_condition(struct ring *r, int own) {
    lock(&r->lock);
    while (r->turn != own)
        CHECK(pthread_cond_wait(&r->conditions[own], &r->lock));
    r->counter++;
    r->turn = next(r, own);
    CHECK(pthread_cond_signal(&r->conditions[r->turn]));
    unlock(&r->lock);
}

static void prepare_barrier(struct ring *r) { CHECK(pthread_barrier_init(&r->barrier, 0, (unsigned)r->threads)); }

/* All threads meet; the first one counts for all. */
static void turn_by_barrier(struct ring *r, int own) {
    int error = pthread_barrier_wait(&r->barrier);
    check(error == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : error, "pthread_barrier_wait");
    if (own == 0)
        r->counter += r->threads;
}

/* Nobody takes turns: each holds the lock while it gives way to the others, which then wait for the lock, and gives way
   to those that have waited. */
static void contend(struct ring *r, int own) {
    (void)own;
    lock(&r->lock);
    long seen = r->counter;
    sched_yield();
    r->counter = seen + 1;
    unlock(&r->lock);
    sched_yield();
}

static const struct kind
    mutexes = {"mutex", prepare_mutexes, turn_by_mutex},
    semaphores = {"semaphore", prepare_semaphores, turn_by_semaphore},
    conditions = {"condition", prepare_conditions, turn_by_condition},
    barrier = {"barrier", prepare_barrier, turn_by_barrier},
    contended = {"contended", prepare_lock, contend},
    inheriting = {"inheriting", prepare_inheriting, contend};

static void *take_turns(void *argument) {
    int own = (int)(intptr_t)argument;
    for (int turn = 0; turn < WARM + TURNS; turn++) {
        if (own == 0 && turn == WARM)
            ring->counts[0] = ring->counter, ring->times[0] = now();
        kind->turn(ring, own);
    }
    if (own == 0)
        ring->times[1] = now(), ring->counts[1] = ring->counter;
    return 0;
}

/* Starts the threads with every `step`-th number from `first` on, and waits until they have ended. */
static void run_threads(int first, int step) {
    pthread_t threads[MOST];
    for (int i = first; i < ring->threads; i += step)
        CHECK(pthread_create(&threads[i], 0, take_turns, (void *)(intptr_t)i));
    for (int i = first; i < ring->threads; i += step)
        CHECK(pthread_join(threads[i], 0));
}

static void print(const char *name, int threads, const char *where, uint64_t ticks, uint64_t rounds, uint64_t less) {
    uint64_t instructions = (ticks * instructions_per_tick() + rounds / 2) / rounds - less;
    if (threads)
        printf("figure: %s_%d_%s %lu\n", name, threads, where, (unsigned long)instructions);
    else
        printf("figure: %s_%s %lu\n", name, where, (unsigned long)instructions);
}

/* Measures what an increment costs that many threads; if they are shared, half of them are another process's. */
static void measure(const struct kind *of, int threads, int is_shared, const char *where) {
    memset(ring, 0, sizeof *ring);
    ring->threads = threads, ring->is_shared = is_shared;
    kind = of;
    kind->prepare(ring);
    if (is_shared) {
        pid_t child = fork();
        CHECK_ERRNO(child);
        if (child == 0) {
            run_threads(1, 2);
            _exit(0);
        }
        run_threads(0, 2);
        int status = 0;
        CHECK_ERRNO(waitpid(child, &status, 0));
        check(status == 0 ? 0 : ECHILD, "the other process");
    } else
        run_threads(0, 1);
    if (ring->counter != (long)threads * (WARM + TURNS)) {
        printf("note: %s: %d threads have counted to %ld\n", kind->name, threads, ring->counter);
        exit(1);
    }
    char name[32];
    snprintf(name, sizeof name, "%s%s", is_shared ? "shared_" : "", kind->name);
    print(name, threads, where, ring->times[1] - ring->times[0], (uint64_t)(ring->counts[1] - ring->counts[0]), 0);
}

/* The ticks of `rounds` times `what`. */
#define TICKS(rounds, what)                                                                                            \
    ({                                                                                                                 \
        uint64_t begin = now();                                                                                        \
        for (int round = 0; round < (rounds); round++) {                                                               \
            what;                                                                                                      \
            __asm__ volatile("" ::: "memory");                                                                         \
        }                                                                                                              \
        now() - begin;                                                                                                 \
    })

/* What costs nothing of the system: nobody else wants the lock or the semaphore. */
static void measure_uncontended(const char *where) {
    uint64_t empty = (TICKS(UNCONTENDED, ) * instructions_per_tick() + UNCONTENDED / 2) / UNCONTENDED, ticks;
    pthread_mutex_t mutex;
    make_mutex(&mutex, 0, PTHREAD_PRIO_NONE);
    ticks = TICKS(UNCONTENDED, (pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex)));
    print("mutex_uncontended", 0, where, ticks, UNCONTENDED, empty);
    make_mutex(&mutex, 0, PTHREAD_PRIO_INHERIT);
    ticks = TICKS(UNCONTENDED, (pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex)));
    print("inheriting_uncontended", 0, where, ticks, UNCONTENDED, empty);
    sem_t semaphore;
    CHECK_ERRNO(sem_init(&semaphore, 0, 1));
    ticks = TICKS(UNCONTENDED, (sem_wait(&semaphore), sem_post(&semaphore)));
    print("semaphore_uncontended", 0, where, ticks, UNCONTENDED, empty);
}

static void *nothing(void *argument) { return argument; }

/* What a thread costs that does nothing, until it is joined, if so many are created before the first is joined. */
static void measure_create_join(int threads, const char *where) {
    uint64_t ticks = 0;
    for (int is_counted = 0; is_counted < 2; is_counted++)
        ticks = TICKS(CREATED / threads, {
            pthread_t all[MOST];
            for (int i = 0; i < threads; i++)
                CHECK(pthread_create(&all[i], 0, nothing, 0));
            for (int i = 0; i < threads; i++)
                CHECK(pthread_join(all[i], 0));
        });
    print("create_join", threads, where, ticks, (uint64_t)(CREATED / threads * threads), 0);
}

int main(int count, char **arguments) {
    static const int of_the_reference[] = {2, 3, 4, 5, 6, 7, 8, 9, 16, 32, 64}, few[] = {2, 8, 64};
    static const struct kind *const kinds[] = {&semaphores, &conditions, &barrier, &contended, &inheriting};
    if (count != 2) {
        fprintf(stderr, "%s: there are %d arguments; exactly one is allowed, the word that ends the figures' names, "
                        "such as `linux`\n", arguments[0], count - 1);
        return 2;
    }
    const char *where = arguments[1];
    ring = mmap(0, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(ring == MAP_FAILED ? errno : 0, "mmap");
    measure_uncontended(where);
    for (size_t i = 0; i < sizeof of_the_reference / sizeof *of_the_reference; i++)
        measure(&mutexes, of_the_reference[i], 0, where);
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++)
            measure(kinds[j], few[i], 0, where);
        measure(&mutexes, few[i], 1, where);
        measure(&semaphores, few[i], 1, where);
        measure(&conditions, few[i], 1, where);
        measure_create_join(few[i] == 2 ? 1 : few[i], where);
    }
    return 0;
}
