/* Points in time. All clocks show the time since the machine was started. */
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

int clock_gettime(clockid_t clock, struct timespec *now);
int nanosleep(const struct timespec *duration, struct timespec *left);

#endif
