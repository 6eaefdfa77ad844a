/* ops/index.h -- picking elements by index tensors (int64 or int32). An index out of range is an
 * error: at once on cpu, at the next synchronisation elsewhere. */
#ifndef TERN_OPS_INDEX_H
#define TERN_OPS_INDEX_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* Entries index (n) of dim. */
TERN_API tern_tensor *tern_index_select(tern_tensor *x, int dim, tern_tensor *index);
/* out[i][j][k] = x[i][index[i][j][k]][k] for dim 1, and so on; index has as many dims as x. */
TERN_API tern_tensor *tern_gather(tern_tensor *x, int dim, tern_tensor *index);
/* x[index] along dim 0: (*index, *x[1:]); negative indices count from the end. */
TERN_API tern_tensor *tern_index(tern_tensor *x, tern_tensor *index);

TERN_END_DECLS
#endif
