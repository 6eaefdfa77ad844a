/* comm_watch.h -- observers of backward passes that cross from device to device. */
#ifndef TERN_SRC_OPS_COMM_WATCH_H
#define TERN_SRC_OPS_COMM_WATCH_H
#include <stdatomic.h>
#include <stdbool.h>

/* An observer of backward passes through the tensors that a thread copied to several devices and
 * gathered from them. `back` is called when gradients are copied to a device, and, with `returned`,
 * when the gradients have come back from all devices and the backward has no other work left. The
 * functions that the thread recorded hold references. */
typedef struct tern_comm_watch {
    atomic_int refs;
    void (*back)(struct tern_comm_watch *w, bool returned);
    void (*free)(struct tern_comm_watch *w);
} tern_comm_watch;
/* Returns a new reference to the observer of this thread, or NULL if it has none. */
tern_comm_watch *tern_comm_watch_now(void);
/* Sets the observer of this thread to w (NULL: none) and returns the previous one. */
tern_comm_watch *tern_comm_watched_by(tern_comm_watch *w);
void tern_comm_watch_release(tern_comm_watch *w);

#endif
