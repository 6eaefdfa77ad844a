/* index.c -- x[i, j, ...]: a tensor read (index) or written (index_put) by several index tensors at
 * once.
 *
 * The index tensors are combined to one flat index into the indexed dims, which are moved next to
 * each other and merged to one dim: the operation then reads (or writes) entries of that dim. */
#include "ops/index/gather.h"
#include "ops/elementwise/nd_index.h"
#include "ops/index/nonzero.h"
#include "ops/index/scatter.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* An index tensor of the list. */
typedef struct part {
    tern_tensor *index; /* int64; for a mask the positions where it is true */
    int dim, dims;      /* first indexed dim, number of dims (above 1 for a mask) */
    int64_t size;       /* product of the sizes of these dims */
} part;

typedef struct plan {
    part parts[TERN_MAX_DIMS];
    int n;
    tern_shape index_shape; /* shape of all index tensors after broadcasting */
    int64_t count;
    uint32_t mask;     /* bit d: dim d is indexed */
    int first;         /* position of the merged dim in the result */
    tern_shape order;  /* dims of x, permuted so that indexed dims are adjacent */
    tern_shape merged; /* shape of x in that order, indexed dims merged */
    tern_shape result; /* shape of the indexed elements */
    tern_tensor *flat; /* the flat index, (count) */
} plan;

/* Converts a mask to the list of positions where it is true, counted in the dims that the mask
 * covers, merged to one. */
static tern_status mask_part(part *p, const tern_tensor *x, tern_tensor *mask, int at,
                             const char *function)
{
    p->dims = mask->ndim;
    for (int d = 0; d < mask->ndim; d++) {
        if (p->dim + d >= x->ndim || mask->shape[d] != x->shape[p->dim + d])
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: The shape of the mask %s at index %d does not match the shape of "
                             "the indexed tensor %s at index %d",
                             function, TERN_TENSOR_TEXT(mask), at, TERN_TENSOR_TEXT(x), p->dim + d);
    }
    p->index = tern_nonzero_places(mask);
    return p->index ? TERN_OK : tern_last_status();
}

static tern_status too_many(const tern_tensor *x, const char *function)
{
    return tern_fail(TERN_ERR_SHAPE, "%s: too many indices for tensor of dimension %d", function,
                     x->ndim);
}

/* Reads the list of index tensors, converting masks to positions; NULL keeps a dim unchanged. */
static tern_status read_list(plan *p, const tern_tensor *x, tern_tensor *const *indices, int n,
                             const char *function)
{
    int dim = 0;
    for (int i = 0; i < n; i++) {
        tern_tensor *index = indices[i];
        bool mask = index && (index->dtype == TERN_BOOL || index->dtype == TERN_U8);
        int covers = mask ? index->ndim : 1;
        if (dim >= x->ndim || (!mask && dim + covers > x->ndim) || covers == 0)
            return too_many(x, function);
        if (index) {
            part *now = &p->parts[p->n++];
            *now = (part){.dim = dim, .dims = covers, .size = 1};
            now->index = mask ? NULL : tern_index_tensor(index, function);
            if (mask)
                TERN_TRY(mask_part(now, x, index, i, function));
            if (!now->index)
                return tern_last_status();
            for (int d = dim; d < dim + covers; d++) {
                now->size *= x->shape[d];
                p->mask |= 1u << d;
            }
        }
        dim += covers;
    }
    return TERN_OK;
}

/* Broadcasts the index tensors against each other, which gives the shape of the indices. */
static tern_status broadcast_parts(plan *p, const char *function)
{
    p->index_shape = tern_shape_of(p->parts[0].index);
    for (int i = 1; i < p->n; i++) {
        tern_shape own = tern_shape_of(p->parts[i].index), both = {0};
        bool fits = true;
        int ndim = own.ndim > p->index_shape.ndim ? own.ndim : p->index_shape.ndim;
        for (int d = 0; d < ndim; d++) {
            int a = d - (ndim - own.ndim), b = d - (ndim - p->index_shape.ndim);
            int64_t na = a < 0 ? 1 : own.dims[a], nb = b < 0 ? 1 : p->index_shape.dims[b];
            fits = fits && (na == nb || na == 1 || nb == 1);
            both.dims[both.ndim++] = na == 1 ? nb : na;
        }
        if (!fits)
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: shape mismatch: indexing tensors could not be broadcast together "
                             "with shapes %s, %s",
                             function, TERN_SHAPE_TEXT(&p->index_shape), TERN_SHAPE_TEXT(&own));
        p->index_shape = both;
    }
    p->count = tern_shape_numel(&p->index_shape, function);
    return p->count < 0 ? tern_last_status() : TERN_OK;
}

/* Moves indexed dims to the front if they are not adjacent, as in PyTorch. */
static tern_status lay_out(plan *p, const tern_tensor *x, const char *function)
{
    int low = 0, high = x->ndim - 1;
    while (!(p->mask >> low & 1))
        low++;
    while (!(p->mask >> high & 1))
        high--;
    bool together = (p->mask >> low) + 1 == 1u << (high - low + 1);
    p->first = together ? low : 0;
    int64_t size = 1;
    if (x->ndim - __builtin_popcount(p->mask) + p->index_shape.ndim > TERN_MAX_DIMS)
        return too_many(x, function);
    for (int d = 0; d < x->ndim; d++)
        size *= p->mask >> d & 1 ? x->shape[d] : 1;
    for (int pass = 0; pass < 3; pass++) { /* dims before, indexed, after */
        for (int d = 0; d < x->ndim; d++) {
            bool indexed = p->mask >> d & 1, in_front = !indexed && together && d < low;
            if (pass != (indexed ? 1 : in_front ? 0 : 2))
                continue;
            p->order.dims[p->order.ndim++] = d;
            if (!indexed) {
                p->merged.dims[p->merged.ndim++] = x->shape[d];
                p->result.dims[p->result.ndim++] = x->shape[d];
            }
        }
        if (pass != 1)
            continue;
        p->merged.dims[p->merged.ndim++] = size;
        for (int d = 0; d < p->index_shape.ndim; d++)
            p->result.dims[p->result.ndim++] = p->index_shape.dims[d];
    }
    return TERN_OK;
}

/* Computes flat = ((i0) n1 + i1) n2 + i2 ...; negative indices count from the end. */
static tern_status flatten_parts(plan *p, tern_place *place)
{
    static const tern_kernel_ref kernel = {"index_scatter", "linear_index"};
    tern_arg fault;
    if (p->n == 1) {
        p->flat = tern_flatten(p->parts[0].index, 0, -1);
        return p->flat ? TERN_OK : tern_last_status();
    }
    tern_tensor *flat = tern_zeros(p->index_shape, TERN_I64, tern_place_text(place));
    for (int i = 0; i < p->n && flat && p->count > 0; i++) {
        tern_tensor *t[2] = {flat, p->parts[i].index};
        tern_nd_index w;
        tern_nd_index_make(&w, &p->index_shape, t, 2);
        TERN_TRY(tern_fault_arg(place, &fault));
        TERN_TRY(TERN_LAUNCH(place, &kernel, TERN_I64, tern_nd_index_grid(&w), tern_arg_out(t[0]),
                             tern_arg_in(t[1]), fault, TERN_ARG_STRUCT(tern_nd_index, &w),
                             tern_arg_i64(p->parts[i].size),
                             tern_arg_fault(TERN_FAULT_ALONG(p->parts[i].dim))));
        TERN_TRY(tern_fault_check(place));
    }
    p->flat = tern_flatten(flat, 0, -1);
    return p->flat ? TERN_OK : tern_last_status();
}

/* Makes the parts of the plan that need no index values: index tensors, shapes, order of dims. */
static tern_status make_plan(plan *p, const tern_tensor *x, tern_tensor *const *indices, int n,
                             const char *function)
{
    tern_place *place = x->storage->place;
    *p = (plan){.n = 0};
    for (int i = 0; i < n; i++)
        if (indices[i] && indices[i]->storage->place != place)
            return tern_fail(TERN_ERR_DEVICE,
                             "%s: indices should be on the same device as the indexed tensor (%s), "
                             "but one is on %s",
                             function, tern_place_text(place), tern_device(indices[i]));
    TERN_TRY(read_list(p, x, indices, n, function));
    if (p->n == 0)
        return TERN_OK;
    TERN_TRY(broadcast_parts(p, function));
    for (int i = 0; i < p->n && p->count > 0; i++)
        if (p->parts[i].size == 0)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: index is out of bounds for dimension %d with size 0", function,
                             p->parts[i].dim);
    return lay_out(p, x, function);
}

static bool check(const tern_tensor *x, tern_tensor *const *indices, int n, const char *function)
{
    if (!x || (!indices && n > 0)) {
        tern_fail_argument_null(function, x ? "indices" : "x");
        return false;
    }
    return true;
}

/* Returns whether the list is one mask without dims, which counts as a mask of size 1. */
static bool is_scalar_mask(tern_tensor *const *indices, int n)
{
    return n == 1 && indices[0] && indices[0]->ndim == 0 &&
           (indices[0]->dtype == TERN_BOOL || indices[0]->dtype == TERN_U8);
}

tern_tensor *tern_index_list(tern_tensor *x, tern_tensor *const *indices, int n)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
    plan p;
    if (!check(x, indices, n, function))
        return NULL;
    if (is_scalar_mask(indices, n)) {
        tern_tensor *mask = tern_unsqueeze(indices[0], 0);
        return mask ? tern_index_list(tern_unsqueeze(x, 0), &mask, 1) : NULL;
    }
    if (make_plan(&p, x, indices, n, function) != TERN_OK)
        return NULL;
    if (p.n == 0)
        return tern_clone(x);
    tern_tensor *merged = tern_reshape(tern_permute(x, p.order), p.merged);
    if (!merged)
        return NULL;
    if (merged->shape[p.first] == 0 && p.count > 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: index is out of bounds for dimension with size 0", function);
    if (flatten_parts(&p, x->storage->place) != TERN_OK)
        return NULL;
    return tern_index_entries(merged, p.flat, p.first, p.result, TERN_FAULT_ALONG(p.parts[0].dim));
}

tern_tensor *tern_index(tern_tensor *x, tern_tensor *index)
{
    TERN_NAMED_IN_ERRORS;
    tern_shape shape;
    if (!x || !index) {
        tern_fail_argument_null(__func__, x ? "index" : "x");
        return NULL;
    }
    if (index->dtype == TERN_BOOL || index->dtype == TERN_U8) /* a mask */
        return tern_index_list(x, &index, 1);
    if (index->dtype != TERN_I64 && index->dtype != TERN_I32)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_index: tensors used as indices must be int64 or int32, not %s",
                              tern_dtype_name(index->dtype));
    if (x->ndim == 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_index: too many indices for tensor of dimension 0");
    if (tern_index_shape(x, index, &shape, __func__) != TERN_OK)
        return NULL;
    return tern_index_entries(x, index, 0, shape, TERN_FAULT_ALONG(0));
}

/* ---- index_put --------------------------------------------------------------------------- */

/* Returns values expanded to the shape of the merged tensor, with count for the indexed dim. */
static tern_tensor *spread_values(const plan *p, tern_tensor *values, const char *function)
{
    tern_shape own = tern_shape_of(values), whole = p->merged;
    bool fits = own.ndim <= p->result.ndim;
    for (int d = 0; d < own.ndim && fits; d++) {
        int64_t n = p->result.dims[d + p->result.ndim - own.ndim];
        fits = own.dims[d] == 1 || own.dims[d] == n;
    }
    if (!fits)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: shape mismatch: value tensor of shape %s cannot be broadcast to "
                              "indexing result of shape %s",
                              function, TERN_TENSOR_TEXT(values), TERN_SHAPE_TEXT(&p->result));
    whole.dims[p->first] = p->count;
    return tern_reshape(tern_expand(values, p->result), whole);
}

/* Writes through the merged tensor where that is a view of x; otherwise permutes the copy back. */
static tern_tensor *index_put(tern_tensor *x, tern_tensor *const *indices, int n,
                              tern_tensor *values, bool accumulate, bool in_place)
{
    static const char function[] = "tern_index_put";
    plan p;
    if (!check(x, indices, n, function))
        return NULL;
    if (!values) {
        tern_fail_argument_null(function, "values");
        return NULL;
    }
    if (x->dtype != values->dtype)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "%s: Index put requires the source and destination dtypes match, got "
                              "%s for the destination and %s for the source.",
                              function, tern_dtype_name(x->dtype), tern_dtype_name(values->dtype));
    if (is_scalar_mask(indices, n)) {
        tern_tensor *mask = tern_unsqueeze(indices[0], 0);
        tern_tensor *y =
            mask ? index_put(tern_unsqueeze(x, 0), &mask, 1, values, accumulate, in_place) : NULL;
        return !y ? NULL : in_place ? x : tern_squeeze_dim(y, 0);
    }
    if (make_plan(&p, x, indices, n, function) != TERN_OK)
        return NULL;
    if (p.n == 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: expected at least one index tensor",
                              function);
    if (!(values = spread_values(&p, values, function)) ||
        flatten_parts(&p, x->storage->place) != TERN_OK)
        return NULL;
    tern_tensor *moved = tern_permute(x, p.order), *merged = tern_reshape(moved, p.merged);
    bool through = in_place && merged && merged->storage == x->storage;
    tern_scatter_way way = {.dim = p.first,
                            .mode = accumulate ? TERN_SCATTER_ADD : TERN_SCATTER_SET,
                            .fault = TERN_FAULT_ALONG(p.parts[0].dim),
                            .wrap = true,
                            .in_place = through};
    if (merged)
        merged = tern_scatter_rows(merged, p.flat, values, &way);
    if (!merged || through)
        return merged ? x : NULL;
    tern_shape back = {.ndim = x->ndim}; /* inverse permutation of order */
    for (int d = 0; d < x->ndim; d++)
        back.dims[p.order.dims[d]] = d;
    tern_tensor *y = tern_permute(tern_reshape(merged, tern_shape_of(moved)), back);
    if (y && (!y->contiguous || y->storage == x->storage))
        y = tern_clone(y);
    return in_place && y ? tern_copy_(x, y) : y;
}

tern_tensor *tern_index_put(tern_tensor *x, tern_tensor *const *indices, int n, tern_tensor *values,
                            bool accumulate)
{
    TERN_COMPOSED("index_put", WIDEST, &x, &values);
    return index_put(x, indices, n, values, accumulate, false);
}

tern_tensor *tern_index_put_(tern_tensor *x, tern_tensor *const *indices, int n,
                             tern_tensor *values, bool accumulate)
{
    TERN_NAMED_IN_ERRORS;
    return index_put(x, indices, n, values, accumulate, true);
}
