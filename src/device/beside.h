/* beside.h -- launches of one kernel that a recording runs side by side, as one command. */
#ifndef TERN_DEVICE_BESIDE_H
#define TERN_DEVICE_BESIDE_H
#include "device/recording.h"

/* Sets members to the numbers of the launches, from command i on, that may run side by side at the
 * place of the last of them. Returns how many: 1 if there is only command i, 0 if command i is not
 * a launch of one of tern_beside_kernels. */
int tern_beside_find(const tern_graph *graph, int64_t i, int64_t members[TERN_CHAIN_ROWS]);

#endif
