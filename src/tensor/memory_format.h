/* memory_format.h -- images (N, C, *) whose channels lie next to each other in memory:
 * torch.channels_last. */
#ifndef TERN_SRC_MEMORY_FORMAT_H
#define TERN_SRC_MEMORY_FORMAT_H
#include "tensor/fields.h"

/* Whether x, of 4 or 5 dims, lies so and not in row-major order as well. Of NULL: no. */
bool tern_is_channels_last(const tern_tensor *x);
/* Whether its dims come in that order in memory, with gaps or without, as those of a part of such
 * an image do. */
bool tern_runs_channels_last(const tern_tensor *x);
/* Let x, which is dense, new and not written yet, lie so; fewer dims stay in rows. */
void tern_make_channels_last(tern_tensor *x);
/* What an elementwise result of that shape is: as the first input of the shape that is not
 * expanded. */
bool tern_keeps_channels_last(tern_tensor *const *in, int n, const tern_shape *shape);

/* Whether x, of other's dims, lies as it does: in rows or channels_last. x in either, or as other,
 * itself where it is. */
bool tern_lies_as(const tern_tensor *x, const tern_tensor *other);
tern_tensor *tern_in_format(tern_tensor *x, bool last);
tern_tensor *tern_lie_as(tern_tensor *x, const tern_tensor *other);
/* x in rows, for operations that have no other format; its gradient lies as x (src/ops/copy). */
tern_tensor *tern_rows_of(tern_tensor *x);

#endif
