/* comm_watch.h -- observers of backward passes that cross from device to device. */
#ifndef TERN_SRC_OPS_COMM_WATCH_H
#define TERN_SRC_OPS_COMM_WATCH_H
#include <stdatomic.h>
#include <stdbool.h>

/* Hears of backward passes through what a thread sent to several devices and gathered from them:
 * `back` is called when gradients go to a device, and, with `returned`, when they have come back
 * from all of them and nothing else is left to do. What the thread sent holds a reference. */
typedef struct tern_comm_watch {
    atomic_int refs;
    void (*back)(struct tern_comm_watch *w, bool returned);
    void (*free)(struct tern_comm_watch *w);
} tern_comm_watch;
/* A new reference to the observer of what this thread sends; NULL without one. */
tern_comm_watch *tern_comm_watch_now(void);
/* Makes w (NULL: nobody) the observer of what this thread sends; returns the one before. */
tern_comm_watch *tern_comm_watched_by(tern_comm_watch *w);
void tern_comm_watch_release(tern_comm_watch *w);

#endif
