/* sort.c -- sort, argsort, topk: the sorted indices, and the values at them.
 *
 * Each slice along dim becomes a row of integer keys with the order of its elements (order.h). The
 * sort is a stable merge sort: blocks of 16 are sorted by insertion, then runs of doubling length
 * are merged, where each lane finds the inputs of its part of the result by bisection. Values are
 * gathered by the indices, so their gradient is gather's; topk is the first part of a sort. */
#include "ops/sort/sort.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

enum { BLOCK = 16, SPAN = 32 }; /* equal to those in sort.cl */

/* ---- rows -------------------------------------------------------------------------------- */

/* Returns the dtype of the keys of elements of dtype. */
static tern_dtype key_type(tern_dtype dtype)
{
    return tern_dtype_size(dtype) == 8 ? TERN_I64 : TERN_I32;
}

static tern_status launch_keys(const tern_tensor *keys, const tern_tensor *x,
                               const tern_sides *sides, int32_t flip)
{
    static const tern_kernel_ref kernel = {"sort", "sort_keys"};
    return TERN_LAUNCH(x->storage->place, &kernel, x->dtype, tern_items(x->numel),
                       tern_arg_out(keys), tern_arg_in(x), tern_arg_i64(sides->outer),
                       tern_arg_i64(sides->n), tern_arg_i64(sides->inner), tern_arg_i32(flip));
}

static tern_status launch_blocks(const tern_sorted *to, const tern_tensor *keys)
{
    static const tern_kernel_ref kernel = {"sort", "sort_blocks"};
    int64_t blocks = to->rows * ((to->n + BLOCK - 1) / BLOCK);
    return TERN_LAUNCH(keys->storage->place, &kernel, keys->dtype, tern_items_of(blocks, 4 * BLOCK),
                       tern_arg_out(to->keys), tern_arg_out(to->places), tern_arg_in(keys),
                       tern_arg_i64(to->rows), tern_arg_i64(to->n));
}

static tern_status launch_merge(const tern_sorted *to, const tern_sorted *from, int64_t width)
{
    static const tern_kernel_ref kernel = {"sort", "sort_merge"};
    int64_t spans = to->rows * ((to->n + SPAN - 1) / SPAN);
    return TERN_LAUNCH(to->keys->storage->place, &kernel, to->keys->dtype,
                       tern_items_of(spans, 4 * SPAN), tern_arg_out(to->keys),
                       tern_arg_out(to->places), tern_arg_in(from->keys), tern_arg_in(from->places),
                       tern_arg_i64(to->rows), tern_arg_i64(to->n), tern_arg_i64(width));
}

void tern_sorted_free(tern_sorted *s)
{
    tern_release(s->keys);
    tern_release(s->places);
    s->keys = s->places = NULL;
}

/* Allocates buffers of the size of x: keys, and with `places` their indices. */
static tern_status make_rows(tern_sorted *s, const tern_tensor *x, bool places)
{
    tern_shape shape = {1, {x->numel}};
    tern_place *place = x->storage->place;
    s->keys = tern_tensor_new(&shape, key_type(x->dtype), place, "tern_sort");
    s->places = places ? tern_tensor_new(&shape, TERN_I64, place, "tern_sort") : NULL;
    return s->keys && (s->places || !places) ? TERN_OK : tern_last_status();
}

/* Merges alternate between two pairs of buffers. */
tern_status tern_sort_rows(tern_sorted *s, const tern_tensor *x, const tern_sides *sides,
                           int32_t flip)
{
    int64_t rows = sides->outer * sides->inner, n = sides->n;
    tern_sorted other = {.rows = rows, .n = n};
    *s = other;
    tern_status status = make_rows(s, x, true);
    if (status == TERN_OK)
        status = make_rows(&other, x, n > BLOCK);
    if (status == TERN_OK)
        status = launch_keys(other.keys, x, sides, flip);
    if (status == TERN_OK)
        status = launch_blocks(s, other.keys);
    for (int64_t width = BLOCK; status == TERN_OK && width < n; width *= 2) {
        status = launch_merge(&other, s, width);
        tern_sorted swap = *s;
        *s = other;
        other = swap;
    }
    tern_sorted_free(&other);
    if (status != TERN_OK)
        tern_sorted_free(s);
    return status;
}

/* ---- indices: input x, output the first count indices along dim ------------------------ */

typedef struct sort_attributes {
    int64_t count;
    int dim;
    int32_t flip;
} sort_attributes;

static tern_status sort_infer(tern_call *call)
{
    const sort_attributes *at = call->attributes;
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = TERN_I64, .shape = tern_shape_of(call->in[0])};
    if (call->in[0]->ndim > 0)
        call->result[0].shape.dims[at->dim] = at->count;
    return TERN_OK;
}

static tern_status launch_places(const tern_tensor *y, const tern_sorted *s,
                                 const tern_sides *sides, int64_t count)
{
    static const tern_kernel_ref kernel = {"sort", "sort_places"};
    return TERN_LAUNCH(y->storage->place, &kernel, s->keys->dtype, tern_items(y->numel),
                       tern_arg_out(y), tern_arg_in(s->places), tern_arg_i64(sides->outer),
                       tern_arg_i64(sides->n), tern_arg_i64(sides->inner), tern_arg_i64(0),
                       tern_arg_i64(count));
}

static tern_status sort_forward(tern_call *call)
{
    const sort_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0], *y = call->out[0];
    tern_shape shape = tern_shape_of(x);
    tern_sides sides = tern_sides_of(&shape, at->dim);
    tern_sorted s;
    if (y->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_sort_rows(&s, x, &sides, at->flip));
    tern_status status = launch_places(y, &s, &sides, at->count);
    tern_sorted_free(&s);
    return status;
}

static const tern_op sort_op = {.name = "sort",
                                .names =
                                    TERN_NAMES(TERN_FIELD(sort_attributes, "k", count),
                                               TERN_FIELD(sort_attributes, "dim", dim),
                                               TERN_FIELD(sort_attributes, "descending", flip)),
                                .not_differentiable = true,
                                .infer = sort_infer,
                                .forward = sort_forward};

/* ---- public functions -------------------------------------------------------------------- */

/* Returns the first count sorted indices (-1: all). */
static tern_tensor *places(tern_tensor *x, int dim, int64_t count, bool descending)
{
    sort_attributes at = {count, dim, descending ? -1 : 0};
    if (count < 0)
        at.count = x->ndim ? x->shape[dim] : 1;
    x = tern_contiguous(x);
    return tern_apply(&sort_op, &x, 1, &at, sizeof at);
}

/* Sets values to x gathered at the indices, with gather's gradient. */
static tern_status with_values(tern_tensor *x, int dim, tern_tensor *indices,
                               tern_values_indices *out)
{
    tern_values_indices both = {tern_gather(x, dim, indices), indices};
    if (!both.values)
        return tern_last_status();
    *out = both;
    return TERN_OK;
}

tern_status tern_sort(tern_tensor *x, int dim, bool descending, tern_values_indices *out)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    if (!x || !out)
        return tern_fail_argument_null(__func__, x ? "out" : "x");
    TERN_TRY(tern_wrap_dim(dim, x->ndim, &d, __func__));
    return with_values(x, d, places(x, d, -1, descending), out);
}

tern_tensor *tern_argsort(tern_tensor *x, int dim, bool descending)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    if (tern_wrap_dim(dim, x->ndim, &d, __func__) != TERN_OK)
        return NULL;
    return places(x, d, -1, descending);
}

tern_tensor *tern_msort(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    tern_values_indices both;
    return tern_sort(x, 0, false, &both) == TERN_OK ? both.values : NULL;
}

tern_status tern_topk(tern_tensor *x, int64_t k, int dim, bool largest, bool sorted,
                      tern_values_indices *out)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    (void)sorted; /* always sorted */
    if (!x || !out)
        return tern_fail_argument_null(__func__, x ? "out" : "x");
    TERN_TRY(tern_wrap_dim(dim, x->ndim, &d, __func__));
    int64_t n = x->ndim ? x->shape[d] : 1;
    if (k < 0 || k > n)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_topk: selected index k out of range (k %lld, size %lld)",
                         (long long)k, (long long)n);
    if (x->dtype == TERN_BOOL)
        return tern_fail_dtype(__func__, x->dtype);
    if (x->ndim == 0)
        k = 1; /* a 0-dim tensor keeps its one element, as in PyTorch */
    return with_values(x, d, places(x, d, k, largest), out);
}
