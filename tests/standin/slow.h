/* slow.h -- convolutions that take longer than they have to, for tests of what measures them. */
#ifndef STANDIN_SLOW_H
#define STANDIN_SLOW_H
#include <time.h>

enum { SLOW_PASSES = 3, SLOW_ALGORITHMS = 16 };
static int slow[SLOW_PASSES][SLOW_ALGORITHMS];

/* Each run of an algorithm of a pass (y, x, weight) waits so many milliseconds first. */
EXPORT void standin_slow_convolution(int pass, int algorithm, int milliseconds);
void standin_slow_convolution(int pass, int algorithm, int milliseconds)
{
    slow[pass][algorithm] = milliseconds;
}

static void wait_for(void *milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000L * *(int *)milliseconds}, NULL);
}
#endif
