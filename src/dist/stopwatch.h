/* stopwatch.h -- how long devices take for their parts of a step. */
#ifndef TERN_DIST_STOPWATCH_H
#define TERN_DIST_STOPWATCH_H
#include "ops/collective/comm_watch.h"
#include "base/os.h"
#include <stdint.h>
#include <tern/error.h>

/* One device's part of the way to the results, or of the way back. */
typedef struct tern_stopwatch {
    const char *device;  /* NULL: it was given nothing */
    double began, ended; /* seconds */
    tern_os_thread thread;
    bool waits;
    atomic_bool given;
    uint64_t launches;
    tern_status status;
    char message[256];
} tern_stopwatch;

/* Of n devices, whose gradients it sees as the watch of what is sent to them; refs is 1. */
typedef struct tern_step_watch {
    tern_comm_watch comm; /* first */
    int n;
    bool back, returned;   /* the backward pass is at these parts; is behind them */
    tern_stopwatch part[]; /* of each device, then the same on the way back */
} tern_step_watch;

/* NULL: no memory. */
tern_step_watch *tern_step_watch_new(int n);
/* Before the device is given its part; a thread looks when it is done with that, as other work goes
 * on. */
void tern_stopwatch_begin(tern_stopwatch *s, const char *device);
/* After it. */
void tern_stopwatch_given(tern_stopwatch *s);
/* Seconds that each of n took for both ways, all parts of a device together; 0 where that is not
 * known. Waits for all. What devices failed with is recorded. */
tern_status tern_step_watch_read(tern_step_watch *w, double *seconds);

#endif
