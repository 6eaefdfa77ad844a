/* index.c -- picking by index tensors: embedding, index_select, index, gather. */
#include "ops/embedding/embedding.h"
#include "ops/index/pick.h"
#include <tern/ops.h>

/* Everything here is one of two operations. take: y[o][i][k] = x[o][index[i]][k]; gather:
 * y[o][i][k] = x[o][index[o][i][k]][k]. Both dense, index int64. */
typedef struct pick_attributes {
    tern_shape shape;   /* of the result */
    tern_shape x_shape; /* of what is picked from, along dim */
    int64_t skip;       /* this index gives no gradient; -1: none */
    int32_t dim, code;  /* code: of the fault */
    bool wrap, each;    /* negative indices count from the end; gather */
    bool by_frequency;  /* gradients are divided by how often their index is there */
} pick_attributes;

/* x_shape around dim. */
typedef struct sides {
    int64_t outer, size, inner;
} sides;

static sides sides_of(const pick_attributes *at)
{
    sides s = {1, 1, 1};
    for (int d = 0; d < at->x_shape.ndim; d++)
        *(d < at->dim ? &s.outer : d == at->dim ? &s.size : &s.inner) *= at->x_shape.dims[d];
    return s;
}

/* Entries of index along dim. */
static int64_t count_of(const tern_tensor *index, const pick_attributes *at)
{
    return at->each ? index->shape[at->dim] : index->numel;
}

/* ---- forward: inputs x, index ------------------------------------------------------------ */

static tern_status pick_infer(tern_call *call)
{
    const pick_attributes *at = call->attributes;
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype, .shape = at->shape};
    return TERN_OK;
}

static tern_status pick_forward(tern_call *call)
{
    static const tern_kernel_ref take = {"index", "take"}, gather = {"index", "gather"};
    const pick_attributes *at = call->attributes;
    tern_tensor *x = call->in[0], *index = call->in[1], *y = call->out[0];
    sides s = sides_of(at);
    int64_t count = count_of(index, at);
    tern_arg fault;
    if (y->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_fault_arg(call->place, &fault));
    tern_arg args[] = {tern_arg_tensor(y),     tern_arg_tensor(x->numel ? x : y),
                       tern_arg_tensor(index), fault,
                       tern_arg_i64(s.outer),  tern_arg_i64(count),
                       tern_arg_i64(s.inner),  tern_arg_i64(s.size),
                       tern_arg_i32(at->wrap), tern_arg_i32(at->code)};
    if (at->each)
        args[8] = args[9];
    TERN_TRY(tern_launch(call->place, at->each ? &gather : &take, x->dtype, tern_items(y->numel),
                         args, at->each ? 9 : 10));
    return tern_fault_check(call->place);
}

/* ---- gradient: inputs dy, index; adds up where index points ------------------------------ */

static tern_status scatter_infer(tern_call *call)
{
    const pick_attributes *at = call->attributes;
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype, .shape = at->x_shape};
    return TERN_OK;
}

/* dx in its own type, or in f32 first for the short ones. */
static tern_status scatter_into(tern_tensor *dx, const tern_tensor *dy, const tern_tensor *index,
                                const pick_attributes *at)
{
    static const tern_kernel_ref kernel = {"index", "scatter_add"};
    sides s = sides_of(at);
    TERN_TRY(
        tern_block_zero(dx->storage->block, 0, (size_t)dx->numel * tern_dtype_size(dx->dtype)));
    if (dy->numel == 0)
        return TERN_OK;
    tern_arg args[] = {tern_arg_tensor(dx),
                       tern_arg_tensor(dy),
                       tern_arg_tensor(index),
                       tern_arg_i64(s.outer),
                       tern_arg_i64(count_of(index, at)),
                       tern_arg_i64(s.inner),
                       tern_arg_i64(s.size),
                       tern_arg_i32(at->wrap),
                       tern_arg_i32(at->each),
                       tern_arg_i64(at->skip),
                       tern_arg_i32(tern_are_deterministic_algorithms_enabled())};
    return tern_launch(dx->storage->place, &kernel, dy->dtype, tern_items(dy->numel), args, 11);
}

static tern_status scatter_forward(tern_call *call)
{
    const pick_attributes *at = call->attributes;
    tern_tensor *dy = call->in[0], *index = call->in[1], *dx = call->out[0];
    if (dx->numel == 0)
        return TERN_OK;
    if (dx->dtype == TERN_F32 || dx->dtype == TERN_F64)
        return scatter_into(dx, dy, index, at);
    tern_tensor *wide = tern_tensor_new(&at->x_shape, TERN_F32, call->place, "tern_index");
    tern_status status = wide ? scatter_into(wide, dy, index, at) : tern_last_status();
    if (status == TERN_OK)
        status = tern_hook_copy(dx, wide);
    tern_release(wide);
    return status;
}

/* The gradient of the gradient picks again; what was skipped stays out. */
static tern_status scatter_backward(tern_gradient *g);

static const tern_op scatter_op = {.name = "index_gradient",
                                   .saves = TERN_SAVE_IN(1),
                                   .infer = scatter_infer,
                                   .forward = scatter_forward,
                                   .backward = scatter_backward};

static tern_status pick_backward(tern_gradient *g)
{
    const pick_attributes *at = g->attributes;
    tern_tensor *dy = g->dout[0];
    if (at->by_frequency) {
        tern_dtype dtype = dy->dtype == TERN_F64 ? TERN_F64 : TERN_F32;
        tern_tensor *n = tern_embedding_frequency(g->in[1], at->x_shape.dims[0], dtype);
        n = n ? tern_unsqueeze(n, -1) : NULL;
        dy = n ? tern_to_dtype(tern_div(dy, n), dy->dtype) : NULL;
    }
    dy = tern_contiguous(dy);
    g->din[0] = tern_apply(&scatter_op, (tern_tensor *[]){dy, g->in[1]}, 2, g->attributes,
                           sizeof(pick_attributes));
    return g->din[0] ? TERN_OK : tern_last_status();
}

#define PICK_OP(NAME)                                                                              \
    static const tern_op NAME##_op = {.name = #NAME,                                               \
                                      .saves = TERN_SAVE_IN(1),                                    \
                                      .infer = pick_infer,                                         \
                                      .forward = pick_forward,                                     \
                                      .backward = pick_backward}
PICK_OP(embedding);
PICK_OP(index_select);
PICK_OP(index);
PICK_OP(gather);

static tern_tensor *pick(const tern_op *op, tern_tensor *x, tern_tensor *index,
                         const pick_attributes *at)
{
    x = tern_contiguous(x);
    index = tern_contiguous(tern_to_dtype(index, TERN_I64));
    return tern_apply(op, (tern_tensor *[]){x, index}, 2, at, sizeof *at);
}

tern_tensor *tern_pick(tern_tensor *x, tern_tensor *index, int dim, tern_shape shape, int fault)
{
    pick_attributes at = {.skip = -1, .code = fault, .wrap = true, .dim = dim, .shape = shape};
    if (!x || !index)
        return NULL;
    at.x_shape = tern_shape_of(x);
    return pick(&index_op, x, index, &at);
}

tern_tensor *tern_spread_rows(tern_tensor *dy, tern_tensor *index, const tern_shape *shape,
                              int64_t skip)
{
    pick_attributes at = {.skip = skip, .code = TERN_FAULT_EMBEDDING, .x_shape = *shape};
    if (!dy)
        return NULL;
    at.shape = tern_shape_of(dy);
    return tern_apply(&scatter_op, (tern_tensor *[]){tern_contiguous(dy), index}, 2, &at,
                      sizeof at);
}

static tern_status scatter_backward(tern_gradient *g)
{
    const pick_attributes *at = g->attributes;
    tern_tensor *index = g->in[1];
    tern_tensor *dy = pick(at->each ? &gather_op : &index_op, g->dout[0], index, at);
    if (at->skip >= 0) {
        tern_tensor *stays = tern_ne_scalar(index, tern_scalar_int(at->skip));
        dy = tern_mul(dy, tern_unsqueeze(stays, -1));
    }
    g->din[0] = dy;
    return dy ? TERN_OK : tern_last_status();
}

/* ---- public functions -------------------------------------------------------------------- */

static tern_status both_there(const tern_tensor *x, const char *name, const tern_tensor *index,
                              const char *function)
{
    if (!x || !index)
        return tern_fail_argument_null(function, x ? "index" : name);
    return TERN_OK;
}

static bool is_index(const tern_tensor *index)
{
    return index->dtype == TERN_I64 || index->dtype == TERN_I32;
}

/* index's dims, then x's after the first. */
static tern_status joined_shape(const tern_tensor *x, const tern_tensor *index, tern_shape *shape,
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

tern_tensor *tern_pick_embedding(tern_tensor *weight, tern_tensor *indices, int64_t skip,
                                 bool by_frequency)
{
    pick_attributes at = {.skip = skip, .code = TERN_FAULT_EMBEDDING, .by_frequency = by_frequency};
    at.x_shape = tern_shape_of(weight);
    if (joined_shape(weight, indices, &at.shape, "tern_embedding") != TERN_OK)
        return NULL;
    return pick(&embedding_op, weight, indices, &at);
}

tern_tensor *tern_index_select(tern_tensor *x, int dim, tern_tensor *index)
{
    pick_attributes at = {.skip = -1, .code = TERN_FAULT_INDEX_SELECT};
    int d;
    if (both_there(x, "x", index, "tern_index_select") != TERN_OK ||
        tern_wrap_dim(dim, x->ndim, &d, "tern_index_select") != TERN_OK)
        return NULL;
    if (index->ndim > 1)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_index_select: index_select(): Index is supposed to be a vector, "
            "not %s",
            TERN_TENSOR_TEXT(index));
    if (!is_index(index))
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
    return pick(&index_select_op, x, index, &at);
}

tern_tensor *tern_index(tern_tensor *x, tern_tensor *index)
{
    pick_attributes at = {.skip = -1, .code = TERN_FAULT_ALONG(0), .wrap = true};
    if (both_there(x, "x", index, "tern_index") != TERN_OK)
        return NULL;
    if (index->dtype == TERN_BOOL || index->dtype == TERN_U8) /* a mask */
        return tern_index_list(x, &index, 1);
    if (!is_index(index))
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_index: tensors used as indices must be int64 or int32, not %s",
                              tern_dtype_name(index->dtype));
    if (x->ndim == 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_index: too many indices for tensor of dimension 0");
    at.x_shape = tern_shape_of(x);
    if (joined_shape(x, index, &at.shape, "tern_index") != TERN_OK)
        return NULL;
    return pick(&index_op, x, index, &at);
}

/* The part of x that index spans: it may be smaller in other dims than dim. */
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
    pick_attributes at = {.skip = -1, .each = true};
    int d;
    if (both_there(x, "x", index, "tern_gather") != TERN_OK ||
        tern_wrap_dim(dim, x->ndim, &d, "tern_gather") != TERN_OK)
        return NULL;
    if (index->dtype != TERN_I64 && index->numel > 0) /* an empty one may be of any type */
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_gather: gather(): Expected dtype int64 for index, got %s",
                              tern_dtype_name(index->dtype));
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
    at.code = TERN_FAULT_ALONG(d);
    at.dim = d;
    at.x_shape = tern_shape_of(x);
    at.shape = tern_shape_of(index);
    return pick(&gather_op, x, index, &at);
}
