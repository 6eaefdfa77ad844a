/* stopwatch.h -- how long devices take for what they were given. */
#ifndef TERN_DIST_STOPWATCH_H
#define TERN_DIST_STOPWATCH_H
#include <pthread.h>
#include <tern/error.h>

/* One device's part of a step. */
typedef struct tern_stopwatch {
    const char *device;  /* NULL: it was given nothing */
    double began, ended; /* seconds */
    pthread_t thread;
    bool waits;
    tern_status status;
    char message[256];
} tern_stopwatch;

/* Before the device is given its part. */
void tern_stopwatch_begin(tern_stopwatch *s, const char *device);
/* After it: the end is noted when the device is done, by a thread that waits, as other work goes on. */
void tern_stopwatch_given(tern_stopwatch *s);
/* Seconds that each of n took, 0 where that is not known; parts of one device follow each other. Waits for all. What
 * devices failed with is recorded. */
tern_status tern_stopwatch_read(tern_stopwatch *all, int n, double *seconds);

#endif
