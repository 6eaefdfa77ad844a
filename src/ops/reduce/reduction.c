/* reduction.c -- the reduced dims of a tensor as (outer, n, inner), and the split of n into parts
 * for many threads.
 *
 * A reduction is over a set of dims, but a kernel reduces one dim, n. If the reduced dims are
 * adjacent in memory they are merged into n, and the dims outside and inside of them into outer and
 * inner; otherwise a copy moves them to the end. With inner = 1 the slices are dense rows. With
 * inner > 1 they are columns, and a work-group reduces a tile of columns. */
#include "ops/reduce/reduction.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

enum { TILE = 256, PART_WORK = 16384, ENOUGH_GROUPS = 64, MANY_GROUPS = 512 };

tern_status tern_dims_mask(const tern_shape *dims, int ndim, uint32_t *mask, const char *function)
{
    *mask = 0;
    if (dims->ndim < 0 || dims->ndim > TERN_MAX_DIMS)
        return tern_fail(TERN_ERR_SHAPE, "%s: a list of %d dims", function, dims->ndim);
    for (int i = 0; i < dims->ndim; i++) {
        int d;
        TERN_TRY(tern_wrap_dim(dims->dims[i], ndim, &d, function));
        if (*mask >> d & 1)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: dim %d appears multiple times in the list of dims", function, d);
        *mask |= 1u << d;
    }
    if (dims->ndim == 0 || ndim == 0)
        *mask = (1u << ndim) - 1;
    return TERN_OK;
}

/* Returns the shape of the result of a reduction. */
tern_shape tern_masked_shape(const tern_shape *shape, uint32_t mask, bool keepdim)
{
    tern_shape out = {0};
    for (int d = 0; d < shape->ndim; d++) {
        if (!(mask >> d & 1))
            out.dims[out.ndim++] = shape->dims[d];
        else if (keepdim)
            out.dims[out.ndim++] = 1;
    }
    return out;
}

tern_status tern_reduction_of(const tern_tensor *x, const tern_shape *dims, bool keepdim,
                              uint32_t *mask, tern_shape *shape, const char *function)
{
    if (!x)
        return tern_fail_argument_null(function, "x");
    TERN_TRY(tern_dims_mask(dims, x->ndim, mask, function));
    tern_shape whole = tern_shape_of(x);
    *shape = tern_masked_shape(&whole, *mask, keepdim);
    return TERN_OK;
}

int64_t tern_masked_count(const tern_shape *shape, uint32_t mask)
{
    int64_t n = 1;
    for (int d = 0; d < shape->ndim; d++)
        if (mask >> d & 1)
            n *= shape->dims[d];
    return n;
}

/* ---- the order of the elements ----------------------------------------------------------- */

/* Sets `order` to the dims of x whose size is not 1, by decreasing stride, which is the order of
 * the elements in memory. Returns their number. */
static int order_in_memory(const tern_tensor *x, int *order)
{
    int count = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (x->shape[d] == 1)
            continue;
        int at = count++;
        for (; at > 0 && x->stride[order[at - 1]] < x->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return count;
}

/* Returns whether x can be reduced without a copy, and if so sets r's sizes. x must fill its memory
 * in this order without gaps, with the other dims in their own order and the masked dims adjacent
 * (and, if indices are wanted, in their own order too). */
static bool needs_no_copy(tern_reduction_view *r, const tern_tensor *x, uint32_t mask, bool places,
                          const int *order, int count)
{
    int64_t step = 1;
    int last[2] = {x->ndim, x->ndim},
        seen = 0; /* 0: inside of the masked dims, 1: in them, 2: outside */
    r->outer = r->n = r->inner = 1;
    for (int i = count - 1; i >= 0; i--) {
        int d = order[i];
        bool masked = mask >> d & 1;
        bool ordered = d < last[masked] || (masked && !places);
        if (x->stride[d] != step || (masked && seen == 2) || !ordered)
            return false;
        step *= x->shape[d];
        seen = masked ? 1 : seen == 1 ? 2 : seen;
        last[masked] = d;
        *(masked ? &r->n : seen == 2 ? &r->outer : &r->inner) *= x->shape[d];
    }
    return true;
}

/* Returns a dense copy of x with the masked dims last. */
static tern_tensor *masked_last(const tern_tensor *x, uint32_t mask)
{
    tern_shape shape = {0};
    int64_t stride[TERN_MAX_DIMS];
    for (uint32_t masked = 0; masked < 2; masked++)
        for (int d = 0; d < x->ndim; d++)
            if ((mask >> d & 1) == masked) {
                stride[shape.ndim] = x->stride[d];
                shape.dims[shape.ndim++] = x->shape[d];
            }
    tern_tensor *transposed = tern_tensor_alias(x, &shape, stride, x->offset);
    tern_tensor *copy =
        transposed ? tern_tensor_new(&shape, x->dtype, x->storage->place, "tern") : NULL;
    if (copy && tern_copy_elements(copy, transposed) != TERN_OK) {
        tern_release(copy);
        copy = NULL;
    }
    tern_release(transposed);
    return copy;
}

/* Splits n into parts of at least PART_WORK elements, so that there are enough work-groups for
 * every device. */
static void cut(tern_reduction_view *r)
{
    int64_t tiles = 1, width = 1;
    r->abreast = 1;
    if (r->inner > 1) {
        r->abreast = r->inner * 2 <= TILE ? TILE / r->inner : 1;
        tiles = (r->inner * r->abreast + TILE - 1) / TILE;
        width = r->inner < TILE ? r->inner : TILE;
    }
    int64_t groups = r->outer * tiles, each = r->n * width;
    r->parts = 1;
    if (groups < ENOUGH_GROUPS && each >= 2 * PART_WORK) {
        int64_t most = MANY_GROUPS / groups;
        r->parts = each / PART_WORK < most ? each / PART_WORK : most;
    }
    r->len = (r->n + r->parts - 1) / r->parts;
    r->len = (r->len + r->abreast - 1) / r->abreast * r->abreast;
    r->parts = (r->n + r->len - 1) / r->len;
    r->groups = r->outer * r->parts * tiles;
}

tern_status tern_reduction_begin(tern_reduction_view *r, tern_tensor *x, uint32_t mask, bool places)
{
    int order[TERN_MAX_DIMS];
    r->x = x;
    r->copy = NULL;
    int count = order_in_memory(x, order);
    if (!needs_no_copy(r, x, mask, places, order, count)) {
        tern_shape shape = tern_shape_of(x);
        if (!(r->x = r->copy = masked_last(x, mask)))
            return tern_last_status();
        r->n = tern_masked_count(&shape, mask);
        r->outer = x->numel / r->n;
        r->inner = 1;
    }
    cut(r);
    return TERN_OK;
}

void tern_reduction_end(tern_reduction_view *r)
{
    tern_release(r->copy);
    r->copy = NULL;
}

/* Returns the view of the partial results, (outer, parts, inner), which one launch reduces. */
tern_reduction_view tern_reduction_rest(const tern_reduction_view *r, tern_tensor *partial)
{
    tern_reduction_view rest = {.outer = r->outer, .n = r->parts, .inner = r->inner, .x = partial};
    cut(&rest);
    rest.parts = 1; /* there are few partial results */
    rest.len = rest.n;
    int64_t tiles = rest.inner == 1 ? 1 : (rest.inner * rest.abreast + TILE - 1) / TILE;
    rest.groups = rest.outer * tiles;
    return rest;
}
