/* Points in time: since 1970 (UTC), or since the machine was started, as both clocks show on a machine without a date. */
#ifndef TIME_H
#define TIME_H

typedef long time_t;
typedef int clockid_t;

struct timespec {
    time_t tv_sec;
    long tv_nsec;
};

#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1

time_t time(time_t *now);
int clock_gettime(clockid_t clock, struct timespec *now);
int nanosleep(const struct timespec *duration, struct timespec *left);

#endif
