/* memory_format.h -- images (N, C, *) whose channels lie next to each other in memory: torch.channels_last. */
#ifndef TERN_SRC_MEMORY_FORMAT_H
#define TERN_SRC_MEMORY_FORMAT_H
#include "tensor/tensor.h"

/* Whether x, of 4 or 5 dims, lies so and not in row-major order as well. Of NULL: no. */
bool tern_is_channels_last(const tern_tensor *x);
/* Let x, which is dense, new and not written yet, lie so; fewer dims stay in rows. */
void tern_make_channels_last(tern_tensor *x);
/* What an elementwise result of that shape is: as the first input of the shape. */
bool tern_keeps_channels_last(tern_tensor *const *in, int n, const tern_shape *shape);

#endif
