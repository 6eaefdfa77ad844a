/* stopwatch.c -- how long devices take for what they were given. */
#include "dist/stopwatch.h"
#include "base/error.h"
#include <string.h>
#include <tern/device.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void tern_stopwatch_begin(tern_stopwatch *s, const char *device)
{
    *s = (tern_stopwatch){.device = device, .began = now()};
}

static void *wait_for_device(void *of)
{
    tern_stopwatch *s = of;
    s->status = tern_synchronize(s->device);
    s->ended = now();
    if (s->status != TERN_OK)
        strncpy(s->message, tern_last_error(), sizeof s->message - 1);
    return NULL;
}

/* What the cpu was given is done. */
void tern_stopwatch_given(tern_stopwatch *s)
{
    s->ended = now();
    s->waits =
        strcmp(s->device, "cpu") != 0 && pthread_create(&s->thread, NULL, wait_for_device, s) == 0;
}

tern_status tern_stopwatch_read(tern_stopwatch *all, int n, double *seconds)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < n; i++) {
        tern_stopwatch *s = &all[i];
        double began = s->began;
        seconds[i] = 0;
        if (!s->device)
            continue;
        if (s->waits)
            pthread_join(s->thread, NULL);
        if (s->status != TERN_OK && status == TERN_OK)
            status = tern_fail(s->status, "%s", s->message);
        for (int k = 0; k < i; k++)
            if (all[k].device && strcmp(all[k].device, s->device) == 0 && all[k].ended > began)
                began = all[k].ended;
        if (s->ended > began)
            seconds[i] = s->ended - began;
    }
    return status;
}
