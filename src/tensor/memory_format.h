/* memory_format.h -- torch.channels_last: images (N, C, *) whose channels are adjacent in
 * memory. */
#ifndef TERN_SRC_MEMORY_FORMAT_H
#define TERN_SRC_MEMORY_FORMAT_H
#include "tensor/fields.h"

/* Returns whether x has 4 or 5 dims and channels_last strides that are not row-major too; false for
 * NULL. */
bool tern_is_channels_last(const tern_tensor *x);
/* Returns whether the strides of x are in the order of channels_last, with gaps or without, as
 * those of a slice of a channels_last image are. */
bool tern_runs_channels_last(const tern_tensor *x);
/* Sets the strides of x, which is dense, new and not written yet, to channels_last. A tensor of
 * fewer dims stays row-major. */
void tern_make_channels_last(tern_tensor *x);
/* Returns whether an elementwise result of that shape is channels_last: whether the first input of
 * that shape that is not expanded is. */
bool tern_keeps_channels_last(tern_tensor *const *in, int n, const tern_shape *shape);

/* The first function returns whether x, which has as many dims as other, has the memory format of
 * other: row-major or channels_last. The others return x in channels_last (last) or row-major
 * format, and in the format of other; x itself if it has that format already. */
bool tern_lies_as(const tern_tensor *x, const tern_tensor *other);
tern_tensor *tern_in_format(tern_tensor *x, bool last);
tern_tensor *tern_lie_as(tern_tensor *x, const tern_tensor *other);
/* Returns x in row-major format, for operations that support no other; the gradient has the format
 * of x (src/ops/copy). */
tern_tensor *tern_rows_of(tern_tensor *x);

#endif
