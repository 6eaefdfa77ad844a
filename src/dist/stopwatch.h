/* stopwatch.h -- the time that each device takes for its part of a step. */
#ifndef TERN_DIST_STOPWATCH_H
#define TERN_DIST_STOPWATCH_H
#include "ops/collective/comm_watch.h"
#include "base/os.h"
#include <stdint.h>
#include <tern/error.h>

/* The time of one device's part of a forward, or of a backward pass. */
typedef struct tern_stopwatch {
    const char *device;  /* NULL if the device has no part */
    double began, ended; /* seconds */
    tern_os_thread thread;
    bool waits;
    atomic_bool given;
    uint64_t launches;
    tern_status status;
    char message[256];
} tern_stopwatch;

/* The times of a step on n devices. As the tern_comm_watch of what the forward sends, it sees the
 * gradients; refs is 1. */
typedef struct tern_step_watch {
    tern_comm_watch comm; /* must be the first member */
    int n;
    bool back, returned;   /* the backward pass has reached these devices; has left them */
    tern_stopwatch part[]; /* n for the forward, then n for the backward pass */
} tern_step_watch;

/* Returns a watch for n devices, or NULL without memory. */
tern_step_watch *tern_step_watch_new(int n);
/* Called before the device is given its part. A thread finds out when the device is done, while the
 * host goes on. */
void tern_stopwatch_begin(tern_stopwatch *s, const char *device);
/* Called after all of its part was given. */
void tern_stopwatch_given(tern_stopwatch *s);
/* Sets seconds[i] to the time of device i, of n, for the forward and the backward pass, over all
 * parts of that device, or to 0 if unknown. Waits for all devices, and records their errors. */
tern_status tern_step_watch_read(tern_step_watch *w, double *seconds);

#endif
