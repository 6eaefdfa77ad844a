/* comm_watch.h -- who is told of backward passes that cross from device to device. */
#ifndef TERN_SRC_OPS_COMM_WATCH_H
#define TERN_SRC_OPS_COMM_WATCH_H
#include <stdatomic.h>
#include <stdbool.h>

/* Who is told when gradients go back through what a thread sent to several devices (home: they come
 * from there, once nothing else is left to do) and through what it gathered (they go there). What
 * it sent holds it. */
typedef struct tern_comm_watch {
    atomic_int refs;
    void (*back)(struct tern_comm_watch *w, bool home);
    void (*free)(struct tern_comm_watch *w);
} tern_comm_watch;
/* The one of what this thread sends, with another reference; NULL. */
tern_comm_watch *tern_comm_watch_now(void);
/* From now on w, NULL for nobody, sees what this thread sends; the one before. */
tern_comm_watch *tern_comm_watched_by(tern_comm_watch *w);
void tern_comm_watch_release(tern_comm_watch *w);

#endif
