/* item.h -- frees what a thread has of its own while it makes an item of a data set
 * (base/thread.h). */
#ifndef TERN_DEVICE_ITEM_H
#define TERN_DEVICE_ITEM_H
#include "base/thread.h"

/* Frees the block that a random stream has on a device. */
void tern_random_stream_end(tern_random_stream *stream);
/* Gives the blocks that the thread kept to the cache. */
void tern_kept_blocks_end(tern_kept_blocks *kept);

#endif
