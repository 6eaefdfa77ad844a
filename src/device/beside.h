/* beside.h -- launches of one kernel that a recording runs side by side, as one command. */
#ifndef TERN_DEVICE_BESIDE_H
#define TERN_DEVICE_BESIDE_H
#include "device/recording.h"

/* The launches that may run with command i where the last of them is, by their numbers; how many,
 * 1 where there are no others, 0 where command i is none of these kernels. */
int tern_beside_find(const tern_graph *graph, int64_t i, int64_t members[TERN_CHAIN_ROWS]);

#endif
