/* Time and events as C has them. Ends with 0, or says in which line it found what. */

#include <stdio.h>
#include <stdlib.h>
#include <tench.h>
#include <time.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("time: line %d: not so: %s\n", __LINE__, #condition);                                               \
            return EXIT_FAILURE;                                                                                       \
        }                                                                                                              \
    } while (0)

/* Nanoseconds that nothing here takes, however busy the machine is. */
#define LONG 10000000000u

int main(void)
{
    static const uint64_t delays[] = {0, 1, 17, 1000, 100000, 2000000};
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        uint64_t before = tench_time();
        tench_delay(delays[i]);
        uint64_t after = tench_time();
        CHECK(after >= before + delays[i] && after < before + delays[i] + LONG);
        tench_delay_until(after + delays[i]);
        CHECK(tench_time() >= after + delays[i]);
    }
    uint64_t before = tench_time();
    tench_delay_until(0);
    tench_delay_until(before);
    CHECK(tench_time() < before + LONG);

    uint32_t event = tench_notification();
    uint64_t bits = 77;
    CHECK(event != 0);
    CHECK(tench_await_event(event, tench_time() + 50000, &bits) == TENCH_TIMED_OUT && bits == 77);
    CHECK(tench_await_event(event, 1, &bits) == TENCH_TIMED_OUT);
    CHECK(tench_signal(event) == 0);
    CHECK(tench_await_event(event, 0, &bits) == 0 && bits == 1);
    CHECK(tench_signal(event) == 0);
    /* What is there already is taken, whatever the time. */
    CHECK(tench_await_event(event, 1, NULL) == 0);
    CHECK(tench_await_event(0, 0, NULL) < 0 && tench_signal(0) < 0);

    /* Nobody knows the date here, so both clocks count from the start. */
    struct timespec monotonic, real;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &monotonic) == 0 && clock_gettime(CLOCK_REALTIME, &real) == 0);
    CHECK(real.tv_sec - monotonic.tv_sec >= 0 && real.tv_sec - monotonic.tv_sec < (time_t)(LONG / 1000000000));
    return EXIT_SUCCESS;
}
