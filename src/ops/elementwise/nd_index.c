/* nd_index.c -- the tern_nd_index of some tensors, by which elementwise kernels compute addresses.
 *
 * The index has the broadcast shape and the strides of every tensor, with dims merged where all
 * tensors allow it. The last dim is called its row here, as in a matrix: there are rows * inner
 * elements. */
#include "ops/elementwise/nd_index.h"
#include "device/index32.h"
#include "tensor/memory_format.h"

/* Returns the code path of the kernels: every tensor contiguous along the rows (UNIT), the first or
 * the second input constant along the rows, as y is in x + y[:, None] (FLAT_A, FLAT_B), or any
 * strides. */
static i16 form_of(const tern_nd_index *w, int n)
{
    bool unit[TERN_ND_TENSORS] = {true, true, true, true};
    for (int k = 0; k < n; k++)
        unit[k] = w->inner == 1 || w->step[k] == 1;
    bool all = unit[0] && unit[1] && unit[2] && unit[3];
    if (all)
        return TERN_ND_UNIT;
    if (n == 3 && unit[0] && unit[1] && w->step[2] == 0)
        return TERN_ND_FLAT_B;
    if (n == 3 && unit[0] && unit[2] && w->step[1] == 0)
        return TERN_ND_FLAT_A;
    return TERN_ND_STRIDED;
}

void tern_nd_index_make(tern_nd_index *w, const tern_shape *shape, tern_tensor *const *t, int n)
{
    bool dense = true;
    for (int k = 0; k < n && dense; k++)
        dense = t[k]->contiguous && t[k]->ndim == shape->ndim && t[k]->numel == t[0]->numel;
    w->rows = 1;
    w->ndim = 0;
    if (dense) { /* the most frequent case: one row */
        w->inner = t[0]->numel;
        for (int k = 0; k < n; k++)
            w->step[k] = 1;
        w->form = TERN_ND_UNIT;
        w->fours = TERN_ND_ALL_FOURS;
        return;
    }
    bool last = t[0]->ndim == shape->ndim && tern_runs_channels_last(t[0]);
    /* From the innermost dim in memory outwards: the first dim whose size is not 1 becomes the
     * row. Each further dim is merged with the next inner dim if for every tensor its stride is
     * the inner stride times the inner size. A view that is dense except for one dim so has two
     * dims. */
    int64_t size[TERN_MAX_DIMS];
    int64_t step[TERN_MAX_DIMS][TERN_ND_TENSORS];
    int dims = 0;
    for (int i = shape->ndim - 1; i >= 0; i--) {
        int d = last ? tern_channels_last_dim(i, shape->ndim) : i;
        if (shape->dims[d] == 1)
            continue;
        bool joins = dims > 0;
        for (int k = 0; k < n && joins; k++)
            joins =
                tern_nd_index_stride(t[k], shape->ndim, d) == step[dims - 1][k] * size[dims - 1];
        if (joins) {
            size[dims - 1] *= shape->dims[d];
            continue;
        }
        size[dims] = shape->dims[d];
        for (int k = 0; k < n; k++)
            step[dims][k] = tern_nd_index_stride(t[k], shape->ndim, d);
        dims++;
    }
    w->inner = dims ? size[0] : 1;
    for (int k = 0; k < n; k++)
        w->step[k] = dims ? step[0][k] : 1;
    w->ndim = dims > 1 ? dims - 1 : 0;
    for (int i = 0; i < w->ndim; i++) { /* outermost first */
        int from = dims - 1 - i;
        w->dim[i] = size[from];
        w->rows *= size[from];
        for (int k = 0; k < n; k++)
            w->stride[k][i] = step[from][k];
    }
    w->form = form_of(w, n);
    tern_nd_index_derive(w, n);
}

/* ---- transposed copies ------------------------------------------------------------------- */

/* Returns the dim of the index along which tensor k is contiguous: ndim means the row, -1 none. */
static int unit_dim(const tern_nd_index *w, int k)
{
    if (w->step[k] == 1)
        return w->ndim;
    for (int d = w->ndim - 1; d >= 0; d--)
        if (w->stride[k][d] == 1)
            return d;
    return -1;
}

/* A copy whose source and result are contiguous along different dims is a batch of (m, n) matrices
 * to transpose. The kernel copies tile by tile, so that both the reads and the writes of a tile are
 * contiguous. The remaining dims are a batch of matrices, the planes. If either dim is less than
 * half a tile, most of the tile would be idle. */
bool tern_transposition_make(tern_transposition *t, const tern_nd_index *w)
{
    enum { LEAST = TERN_TRANSPOSE_TILE / 2 };
    int along[2] = {unit_dim(w, 0), unit_dim(w, 1)};
    if (w->form != TERN_ND_STRIDED || along[0] < 0 || along[1] < 0 || along[0] == along[1])
        return false;
    t->planes = (tern_nd_index){.rows = 1};
    for (int d = 0; d <= w->ndim; d++) {
        i64 size = d < w->ndim ? w->dim[d] : w->inner;
        i64 to = d < w->ndim ? w->stride[0][d] : w->step[0];
        i64 from = d < w->ndim ? w->stride[1][d] : w->step[1];
        if (d == along[0]) {
            t->m = size;
            t->x_step = from;
        } else if (d == along[1]) {
            t->n = size;
            t->y_step = to;
        } else {
            int at = t->planes.ndim++;
            t->planes.rows *= size;
            t->planes.dim[at] = size;
            t->planes.stride[0][at] = to;
            t->planes.stride[1][at] = from;
        }
    }
    tern_nd_index_derive(&t->planes, 2);
    i64 all = t->n | t->m | t->x_step | t->y_step | 8;
    for (int k = 0; k < 2; k++)
        for (int d = 0; d < t->planes.ndim; d++)
            all |= t->planes.stride[k][d];
    t->together = all & -all; /* the lowest bit */
    return t->n >= LEAST && t->m >= LEAST;
}
