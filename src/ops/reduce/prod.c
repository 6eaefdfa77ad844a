/* prod.c -- products over a dim or over all elements. */
#include "ops/scan/scan.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

enum { PART = 16384, MOST_PARTS = 512, SMALL = 64, MANY = 4096 };

typedef struct prod_attributes {
    int dim;
    bool keepdim;
} prod_attributes;

static tern_sides sides_of(const tern_tensor *x, int dim)
{
    tern_shape shape = tern_shape_of(x);
    return tern_sides_of(&shape, dim);
}

static tern_status prod_infer(tern_call *call)
{
    const prod_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    call->n_out = 1;
    tern_result *r = &call->result[0];
    r->dtype = x->dtype;
    r->shape.ndim = 0;
    for (int d = 0; d < x->ndim; d++)
        if (d != at->dim)
            r->shape.dims[r->shape.ndim++] = x->shape[d];
        else if (at->keepdim)
            r->shape.dims[r->shape.ndim++] = 1;
    return TERN_OK;
}

static tern_status launch_rows(const tern_tensor *y, const tern_tensor *x, int64_t outer, int64_t n,
                               int64_t parts)
{
    static const tern_kernel_ref kernel = {"scan", "prod_rows"};
    int64_t len = (n + parts - 1) / parts;
    return TERN_LAUNCH(y->storage->place, &kernel, y->dtype, tern_groups(outer * parts, len),
                       tern_arg_out(y), tern_arg_in(x), tern_arg_i64(outer), tern_arg_i64(n),
                       tern_arg_i64(parts), tern_arg_i64(len));
}

static tern_status launch_columns(const tern_tensor *y, const tern_tensor *x, const tern_sides *s)
{
    static const tern_kernel_ref kernel = {"scan", "prod_columns"};
    return TERN_LAUNCH(y->storage->place, &kernel, y->dtype,
                       tern_items_of(s->outer * s->inner, s->n), tern_arg_out(y), tern_arg_in(x),
                       tern_arg_i64(s->outer), tern_arg_i64(s->n), tern_arg_i64(s->inner));
}

static tern_status prod_forward(tern_call *call)
{
    const prod_attributes *at = call->attributes;
    tern_tensor *x = call->in[0], *y = call->out[0];
    tern_sides s = sides_of(x, at->dim);
    if (y->numel == 0)
        return TERN_OK;
    if (x->numel == 0)
        return tern_fill_(y, tern_scalar_int(1)) ? TERN_OK : tern_last_status();
    if (s.inner > 1)
        return launch_columns(y, x, &s);
    int64_t parts = s.outer < SMALL ? s.n / PART : 1;
    parts = parts < 1 ? 1 : parts > MOST_PARTS ? MOST_PARTS : parts;
    if (parts == 1)
        return launch_rows(y, x, s.outer, s.n, 1);
    int64_t len = (s.n + parts - 1) / parts;
    parts = (s.n + len - 1) / len; /* no part is empty */
    tern_shape shape = {1, {s.outer * parts}};
    tern_tensor *partial = tern_tensor_new(&shape, x->dtype, call->place, "tern_prod");
    tern_status status =
        partial ? launch_rows(partial, x, s.outer, s.n, parts) : tern_last_status();
    if (status == TERN_OK)
        status = launch_rows(y, partial, s.outer, parts, 1);
    tern_release(partial);
    return status;
}

/* dx[k] is dy times the product of all elements before k and of all elements after k. */
static tern_status prod_backward(tern_gradient *g)
{
    const prod_attributes *at = g->attributes;
    tern_tensor *x = g->in[0], *dy = g->dout[0];
    if (g->in_shape[0].ndim > 0 && !at->keepdim)
        dy = tern_unsqueeze(dy, at->dim);
    tern_tensor *others = tern_mul(tern_exclusive_cumprod(x, at->dim, false),
                                   tern_exclusive_cumprod(x, at->dim, true));
    g->din[0] = tern_mul(others, dy);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op prod_op = {.name = "prod",
                                .names = TERN_NAMES(TERN_FIELD(prod_attributes, "dim", dim)),
                                .cast = TERN_CAST_FLOAT32,
                                .saves = TERN_SAVE_IN(0),
                                .infer = prod_infer,
                                .forward = prod_forward,
                                .backward = prod_backward};

/* Returns the product over dim. A few long slices are first made dense rows, which are split into
 * parts. */
static tern_tensor *prod(tern_tensor *x, int dim, bool keepdim)
{
    prod_attributes at = {dim, keepdim};
    TERN_CAST_FOR(&prod_op, &x);
    if (!x)
        return NULL;
    tern_sides s = sides_of(x, dim);
    tern_dtype dtype = tern_dtype_is_floating_point(x->dtype) ? x->dtype : TERN_I64;
    bool transposed = s.inner > 1 && s.outer * s.inner < MANY && s.n > MANY;
    x = tern_to_dtype(x, tern_kept_in(dtype));
    if (transposed) {
        x = tern_transpose(x, dim, -1);
        at.dim = x ? x->ndim - 1 : dim;
        at.keepdim = true;
    }
    x = tern_contiguous(x);
    tern_tensor *y = tern_apply(&prod_op, &x, 1, &at, sizeof at);
    if (transposed) {
        y = tern_transpose(y, dim, -1);
        y = keepdim ? y : tern_squeeze_dim(y, dim);
        y = tern_contiguous(y);
    }
    return tern_to_dtype(y, dtype);
}

tern_tensor *tern_prod(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    x = x->ndim > 1 ? tern_flatten(x, 0, -1) : x;
    return x ? prod(x, 0, false) : NULL;
}

tern_tensor *tern_prod_dim(tern_tensor *x, int dim, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    if (tern_wrap_dim(dim, x->ndim, &d, __func__) != TERN_OK)
        return NULL;
    return prod(x, d, keepdim);
}
