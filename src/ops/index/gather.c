/* gather.c -- gather and index_select: reading by an index tensor, and its gradient, a sum.
 *
 * With x viewed as (outer, size, inner) around dim:
 *   index_select: y[o][i][k] = x[o][index[i]][k]
 *   gather:       y[o][i][k] = x[o][index[o][i][k]][k]
 * The gradient adds dy[o][i][k] to the element of dx whose value is y[o][i][k]; the gradient of the
 * gradient reads again. */
#include "ops/index/gather.h"
#include "ops/copy/copy.h"
#include "ops/elementwise/nd_index.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* Returns the number of entries of index along dim. */
static int64_t count_of(const tern_tensor *index, const tern_gather_attributes *at)
{
    return at->each ? index->shape[at->dim] : index->numel;
}

/* ---- forward: inputs x, index ------------------------------------------------------------ */

tern_status tern_gather_infer(tern_call *call)
{
    const tern_gather_attributes *at = call->attributes;
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype, .shape = at->shape};
    return TERN_OK;
}

tern_status tern_gather_forward(tern_call *call)
{
    static const tern_kernel_ref gather = {"index", "gather"};
    const tern_gather_attributes *at = call->attributes;
    tern_tensor *x = call->in[0], *index = call->in[1], *y = call->out[0];
    tern_sides s = tern_sides_of(&at->x_shape, at->dim);
    int64_t count = count_of(index, at);
    tern_arg fault;
    if (y->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_fault_arg(call->place, &fault));
    tern_dtype mover = tern_mover(x->dtype);
    tern_arg to = tern_arg_as(TERN_ROLE_OUT, mover, y);
    tern_arg from =
        tern_arg_as(x->numel ? TERN_ROLE_IN : TERN_ROLE_UNUSED, mover, x->numel ? x : y);
    if (at->each)
        TERN_TRY(TERN_LAUNCH(call->place, &gather, mover, tern_items(y->numel), to, from,
                             tern_arg_in(index), fault, tern_arg_i64(s.outer), tern_arg_i64(count),
                             tern_arg_i64(s.inner), tern_arg_i64(s.n), tern_arg_fault(at->fault)));
    else
        TERN_TRY(TERN_LAUNCH(call->place, &tern_beside_kernels[TERN_BESIDE_INDEX_SELECT], mover,
                             tern_items(y->numel), to, from, tern_arg_in(index), fault,
                             tern_arg_i64(s.outer), tern_arg_i64(count), tern_arg_i64(s.inner),
                             tern_arg_i64(s.n), tern_arg_i32(at->wrap), tern_arg_fault(at->fault)));
    return tern_fault_check(call->place);
}

/* ---- gradient: inputs dy, index; adds dy to the entries of dx at index --------------------- */

static tern_status gradient_infer(tern_call *call)
{
    const tern_gather_attributes *at = call->attributes;
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype, .shape = at->x_shape};
    return TERN_OK;
}

tern_status tern_gather_add_gradient(tern_tensor *dx, const tern_tensor *dy,
                                     const tern_tensor *index, const tern_gather_attributes *at)
{
    tern_sides s = tern_sides_of(&at->x_shape, at->dim);
    if (dy->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(dx->storage->place, &tern_beside_kernels[TERN_BESIDE_SCATTER_ADD], dy->dtype,
                       tern_items(dy->numel), tern_arg_out(dx), tern_arg_in(dy), tern_arg_in(index),
                       tern_arg_i64(s.outer), tern_arg_i64(count_of(index, at)),
                       tern_arg_i64(s.inner), tern_arg_i64(s.n), tern_arg_i32(at->wrap),
                       tern_arg_i32(at->each), tern_arg_i64(at->skip),
                       tern_arg_i32(tern_are_deterministic_algorithms_enabled()));
}

/* Adds dy into dx in the dtype of dx, or for half precision and short integers in float32 first. */
static tern_status add_into(tern_tensor *dx, const tern_tensor *dy, const tern_tensor *index,
                            const tern_gather_attributes *at)
{
    TERN_TRY(tern_zero_elements(dx));
    return tern_gather_add_gradient(dx, dy, index, at);
}

/* Half precision and integers are summed in float32 and rounded once. */
static tern_status gradient_forward(tern_call *call)
{
    const tern_gather_attributes *at = call->attributes;
    tern_tensor *dy = call->in[0], *index = call->in[1], *dx = call->out[0];
    if (dx->numel == 0)
        return TERN_OK;
    if (dx->dtype == TERN_F32 || dx->dtype == TERN_F64)
        return add_into(dx, dy, index, at);
    tern_tensor *wide = tern_tensor_new(&at->x_shape, TERN_F32, call->place, "tern_index");
    tern_status status = wide ? add_into(wide, dy, index, at) : tern_last_status();
    if (status == TERN_OK)
        status = tern_copy_elements(dx, wide);
    tern_release(wide);
    return status;
}

/* The gradient of the gradient reads by index; entries with the skipped index get 0. */
static tern_status gradient_backward(tern_gradient *g);

static const tern_op gradient_op = {.name = "index_gradient",
                                    .saves = TERN_SAVE_IN(1),
                                    .infer = gradient_infer,
                                    .forward = gradient_forward,
                                    .backward = gradient_backward};

tern_tensor *tern_gather_gradient(tern_tensor *dy, tern_tensor *index,
                                  const tern_gather_attributes *at)
{
    return tern_apply(&gradient_op, (tern_tensor *[]){tern_contiguous(dy), index}, 2, at,
                      sizeof *at);
}

static tern_status gather_backward(tern_gradient *g)
{
    g->din[0] = tern_gather_gradient(g->dout[0], g->in[1], g->attributes);
    return g->din[0] ? TERN_OK : tern_last_status();
}

#define GATHER_OP(NAME)                                                                            \
    static const tern_op NAME##_op = {                                                             \
        .name = #NAME,                                                                             \
        .names = TERN_NAMES(TERN_FIELD(tern_gather_attributes, "dim", dim),                        \
                            TERN_FIELD(tern_gather_attributes, "each", each)),                     \
        .stored = TERN_STORED_MOVED,                                                               \
        .saves = TERN_SAVE_IN(1),                                                                  \
        .infer = tern_gather_infer,                                                                \
        .forward = tern_gather_forward,                                                            \
        .backward = gather_backward}
GATHER_OP(index_select);
GATHER_OP(index);
GATHER_OP(gather);

static tern_tensor *apply(const tern_op *op, tern_tensor *x, tern_tensor *index,
                          const tern_gather_attributes *at)
{
    x = tern_contiguous(x);
    index = tern_contiguous(tern_to_dtype(index, TERN_I64));
    return tern_apply(op, (tern_tensor *[]){x, index}, 2, at, sizeof *at);
}

tern_tensor *tern_index_entries(tern_tensor *x, tern_tensor *index, int dim, tern_shape shape,
                                int fault)
{
    tern_gather_attributes at = {
        .skip = -1, .fault = fault, .wrap = true, .dim = dim, .shape = shape};
    if (!x || !index)
        return NULL;
    at.x_shape = tern_shape_of(x);
    return apply(&index_op, x, index, &at);
}

static tern_status gradient_backward(tern_gradient *g)
{
    const tern_gather_attributes *at = g->attributes;
    tern_tensor *index = g->in[1];
    tern_tensor *dy = apply(at->each ? &gather_op : &index_op, g->dout[0], index, at);
    if (at->skip >= 0) {
        tern_tensor *stays = tern_ne_scalar(index, tern_scalar_int(at->skip));
        dy = tern_mul(dy, tern_unsqueeze(stays, -1));
    }
    g->din[0] = dy;
    return dy ? TERN_OK : tern_last_status();
}

tern_status tern_index_shape(const tern_tensor *x, const tern_tensor *index, tern_shape *shape,
                             const char *function)
{
    *shape = tern_shape_of(index);
    if (index->ndim + x->ndim - 1 > TERN_MAX_DIMS)
        return tern_fail(TERN_ERR_SHAPE, "%s: the result would have %d dims, the most are %d",
                         function, index->ndim + x->ndim - 1, TERN_MAX_DIMS);
    for (int d = 1; d < x->ndim; d++)
        shape->dims[shape->ndim++] = x->shape[d];
    return TERN_OK;
}

/* ---- public functions -------------------------------------------------------------------- */

static tern_status both_there(const tern_tensor *x, const char *name, const tern_tensor *index,
                              const char *function)
{
    if (!x || !index)
        return tern_fail_argument_null(function, x ? "index" : name);
    return TERN_OK;
}

tern_tensor *tern_index_select(tern_tensor *x, int dim, tern_tensor *index)
{
    TERN_NAMED_IN_ERRORS;
    tern_gather_attributes at = {.skip = -1, .fault = TERN_FAULT_INDEX_SELECT};
    int d;
    if (both_there(x, "x", index, __func__) != TERN_OK ||
        tern_wrap_dim(dim, x->ndim, &d, __func__) != TERN_OK)
        return NULL;
    if (index->ndim > 1)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_index_select: index_select(): Index is supposed to be a vector, "
            "not %s",
            TERN_TENSOR_TEXT(index));
    if (index->dtype != TERN_I64 && index->dtype != TERN_I32)
        return tern_fail_null(
            TERN_ERR_DTYPE,
            "tern_index_select: index_select(): Expected dtype int32 or int64 for "
            "index, got %s",
            tern_dtype_name(index->dtype));
    at.dim = d;
    at.x_shape = at.shape = tern_shape_of(x);
    if (x->ndim > 0)
        at.shape.dims[d] = index->numel;
    else if (index->numel != 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_index_select: Index to scalar can have only 1 value, got %lld",
                              (long long)index->numel);
    return apply(&index_select_op, x, index, &at);
}

/* Returns the part of x that index covers: index may be smaller in dims other than dim. */
static tern_tensor *spanned(tern_tensor *x, const tern_tensor *index, int dim)
{
    tern_tensor *part = x;
    for (int d = 0; part && d < x->ndim; d++) {
        if (d == dim || index->shape[d] == x->shape[d])
            continue;
        if (index->shape[d] > x->shape[d])
            return tern_fail_null(
                TERN_ERR_SHAPE,
                "tern_gather: Size does not match at dimension %d expected index %s "
                "to be smaller than self %s apart from dimension %d",
                d, TERN_TENSOR_TEXT(index), TERN_TENSOR_TEXT(x), dim);
        part = tern_narrow(part, d, 0, index->shape[d]);
    }
    return part;
}

tern_tensor *tern_gather(tern_tensor *x, int dim, tern_tensor *index)
{
    tern_gather_attributes at = {.skip = -1, .each = true};
    int d;
    if (both_there(x, "x", index, "tern_gather") != TERN_OK ||
        tern_wrap_dim(dim, x->ndim, &d, "tern_gather") != TERN_OK)
        return NULL;
    if (index->dtype != TERN_I64 && index->dtype != TERN_I32 && index->numel > 0)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_gather: gather(): Expected dtype int32/int64 for index, got %s",
                              tern_dtype_name(index->dtype)); /* an empty index: any dtype */
    if (index->numel > 0 && (index->ndim ? index->ndim : 1) != (x->ndim ? x->ndim : 1))
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_gather: Index tensor must have the same number of dimensions as "
            "input tensor (%d and %d)",
            index->ndim, x->ndim);
    if (x->ndim == 0 || index->ndim == 0) {
        tern_tensor *some = tern_gather(tern_atleast_1d(x), 0, tern_atleast_1d(index));
        return tern_view(some, tern_shape_of(index));
    }
    if (!(x = spanned(x, index, d)))
        return NULL;
    at.fault = TERN_FAULT_ALONG(d);
    at.dim = d;
    at.x_shape = tern_shape_of(x);
    at.shape = tern_shape_of(index);
    return apply(&gather_op, x, index, &at);
}

tern_tensor *tern_take_along_dim(tern_tensor *x, tern_tensor *index, tern_optional_int dim)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    if (!x || !index) {
        tern_fail_argument_null(__func__, x ? "index" : "x");
        return NULL;
    }
    if (index->dtype != TERN_I64)
        return tern_fail_null(
            TERN_ERR_DTYPE,
            "tern_take_along_dim: torch.take_along_dim(): dtype of indices should "
            "be Long but got %s",
            tern_dtype_name(index->dtype));
    if (!dim.set)
        return tern_gather(tern_flatten(x, 0, -1), 0, tern_flatten(index, 0, -1));
    if (x->ndim != index->ndim)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_take_along_dim: torch.take_along_dim(): input and indices "
            "should have the same number of dimensions, but got %d dimensions for "
            "input, and %d dimensions for indices",
            x->ndim, index->ndim);
    if (tern_wrap_dim(dim.value, x->ndim, &d, __func__) != TERN_OK)
        return NULL;
    /* Dims other than dim broadcast. */
    tern_shape own = tern_shape_of(x), at = tern_shape_of(index), both;
    if (x->ndim)
        own.dims[d] = at.dims[d] = 1;
    if (tern_shape_broadcast(&own, &at, &both, __func__) != TERN_OK)
        return NULL;
    own = at = both;
    if (x->ndim) {
        own.dims[d] = x->shape[d];
        at.dims[d] = index->shape[d];
    }
    int64_t size = x->ndim ? x->shape[d] : 1;
    if (size > 0) /* indices wrap around in both directions */
        index = tern_remainder_scalar(index, tern_scalar_int(size));
    return tern_gather(tern_expand(x, own), d, tern_expand(index, at));
}
