/* clock.h -- the time, and how often to do what is measured. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static inline double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds for one turn: repeat(user, n) does n of them and waits for the last; n grows until they
 * take half of `seconds` at least. */
static inline double clock_turn(void (*repeat)(void *user, long n), void *user, double seconds)
{
    for (long n = 1;;) {
        double start = clock_seconds();
        repeat(user, n);
        double spent = clock_seconds() - start;
        if (spent >= 0.5 * seconds)
            return spent / (double)n;
        long wanted = (long)(seconds / (spent > 1e-9 ? spent : 1e-9) * (double)n) + 1;
        n = wanted < 32 * n ? wanted : 32 * n;
    }
}

/* The most memory since this program began, in MiB (VmHWM): rusage counts who started it, too. */
static inline double clock_own_peak_memory(void)
{
    char line[256];
    double peak = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %lf", &peak);
    if (status)
        fclose(status);
    return peak / 1024;
}

/* The most memory this process had, in MiB. */
static inline double clock_peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}
#endif
