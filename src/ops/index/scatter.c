/* scatter.c -- writing by an index tensor: the operation of scatter, index_add, put and index_put;
 * and scatter_add.
 *
 * y = x with y[.., index[.., i, ..], ..] = src[.., i, ..], or += and so on. The gradient of src is
 * dy read at index; the gradient of x is dy, with zeros where src replaced x. */
#include "ops/index/scatter.h"
#include "ops/copy/copy.h"
#include "ops/elementwise/nd_index.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/autograd.h>
#include <tern/ops.h>

typedef struct scatter_attributes {
    int32_t dim, mode, fault;
    bool wrap, rows; /* rows: index is a vector along dim */
} scatter_attributes;

static tern_status scatter_infer(tern_call *call)
{
    const scatter_attributes *at = call->attributes;
    tern_dtype dtype = call->in[0]->dtype;
    call->n_out = 1;
    call->result[0].dtype = dtype;
    call->result[0].shape = tern_shape_of(call->in[0]);
    return tern_dtype_is_stored(dtype) && at->mode != TERN_SCATTER_SET
               ? tern_fail_dtype("tern_scatter", dtype)
               : TERN_OK;
}

/* Returns x in `shape`, both without dim; with `repeated` all strides are 0. */
static tern_tensor *across(const tern_tensor *x, const tern_shape *shape, int dim, bool repeated)
{
    tern_shape rest = {.ndim = 0};
    int64_t stride[TERN_MAX_DIMS] = {0};
    for (int d = 0; d < shape->ndim; d++)
        if (d != dim) {
            stride[rest.ndim] = repeated ? 0 : x->stride[d];
            rest.dims[rest.ndim++] = shape->dims[d];
        }
    return tern_tensor_alias(x, &rest, stride, x->offset);
}

/* Launches a thread for each position of index in all dims but dim; the thread loops along dim. */
static tern_status launch(tern_tensor *y, const tern_tensor *index, const tern_tensor *src,
                          const scatter_attributes *at)
{
    static const tern_kernel_ref kernel = {"index_scatter", "scatter"};
    tern_shape shape = tern_shape_of(at->rows ? src : index), rest = shape;
    tern_place *place = y->storage->place;
    tern_arg fault;
    rest.ndim = rest.ndim > 0 ? rest.ndim - 1 : 0;
    memmove(rest.dims + at->dim, rest.dims + at->dim + 1,
            sizeof *rest.dims * (size_t)(TERN_MAX_DIMS - at->dim - 1));
    tern_tensor *t[3] = {across(y, &shape, at->dim, false), across(src, &shape, at->dim, false),
                         across(index, &shape, at->dim, at->rows)};
    tern_status status = t[0] && t[1] && t[2] ? tern_fault_arg(place, &fault) : tern_last_status();
    if (status == TERN_OK) {
        tern_scatter_shape s = {.count = shape.ndim ? shape.dims[at->dim] : 1,
                                .size = y->ndim ? y->shape[at->dim] : 1,
                                .step = {y->ndim ? y->stride[at->dim] : 1,
                                         src->ndim ? src->stride[at->dim] : 0,
                                         index->ndim ? index->stride[at->rows ? 0 : at->dim] : 0},
                                .mode = at->mode,
                                .wrap = at->wrap,
                                .code = tern_fault_named(at->fault),
                                .ordered = tern_are_deterministic_algorithms_enabled()};
        tern_nd_index_make(&s.nd, &rest, t, 3);
        int64_t items = s.nd.rows * s.nd.inner * s.count;
        tern_dtype as = tern_dtype_is_stored(y->dtype) ? tern_mover(y->dtype) : y->dtype;
        status = TERN_LAUNCH(place, &kernel, as, tern_items(items),
                             tern_arg_as(TERN_ROLE_OUT, as, y), tern_arg_as(TERN_ROLE_IN, as, src),
                             tern_arg_in(index), fault, TERN_ARG_STRUCT(tern_scatter_shape, &s));
    }
    for (int i = 0; i < 3; i++)
        tern_release(t[i]);
    return status == TERN_OK ? tern_fault_check(place) : status;
}

static tern_status scatter_forward(tern_call *call)
{
    tern_tensor *x = call->in[0], *index = call->in[1], *src = call->in[2], *y = call->out[0];
    if (y != x)
        TERN_TRY(tern_copy_elements(y, x));
    if (y->numel == 0 && index->numel > 0 && src->numel > 0)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_scatter: index is out of bounds for a tensor of shape %s",
                         TERN_TENSOR_TEXT(y));
    if (y->numel == 0 || index->numel == 0 || src->numel == 0)
        return TERN_OK;
    return launch(y, index, src, call->attributes);
}

/* The gradient of src is dy at index; the gradient of x is dy, with zeros where src replaced x. */
static tern_status scatter_backward(tern_gradient *g)
{
    const scatter_attributes *at = g->attributes;
    tern_tensor *dy = g->dout[0], *index = g->in[1];
    if (at->mode != TERN_SCATTER_SET && at->mode != TERN_SCATTER_ADD)
        return tern_fail(TERN_ERR_UNSUPPORTED, "tern_scatter: the derivative is not implemented");
    tern_tensor *wrapped = index;
    if (at->wrap) {
        int64_t size = g->in_shape[0].ndim ? g->in_shape[0].dims[at->dim] : 1;
        tern_tensor *below = tern_lt_scalar(index, tern_scalar_int(0));
        wrapped = tern_where(below, tern_add_scalar(index, tern_scalar_int(size)), index);
    }
    if (tern_shape_numel(&g->in_shape[2], "tern_scatter") == 0) { /* nothing was written */
        g->din[0] = g->needs[0] ? dy : NULL;
        return TERN_OK; /* the backward pass creates the zero gradient of src */
    }
    if (g->needs[2])
        g->din[2] =
            at->rows ? tern_index_select(dy, at->dim, wrapped) : tern_gather(dy, at->dim, wrapped);
    if (g->needs[0] && at->mode == TERN_SCATTER_ADD)
        g->din[0] = dy;
    else if (g->needs[0]) {
        tern_shape shape = g->in_shape[2];
        tern_shape ones = {.ndim = shape.ndim, .dims = {1}};
        for (int d = 0; d < ones.ndim; d++)
            ones.dims[d] = 1;
        tern_tensor *zero = tern_expand(tern_new_zeros(dy, ones), shape);
        tern_scatter_way way = {at->dim, TERN_SCATTER_SET, at->fault, at->wrap, false};
        g->din[0] = zero ? at->rows ? tern_scatter_rows(dy, index, zero, &way)
                                    : tern_scatter_into(dy, index, zero, &way)
                         : NULL;
    }
    bool all = (!g->needs[0] || g->din[0]) && (!g->needs[2] || g->din[2]);
    return all ? TERN_OK : tern_last_status();
}

static const tern_op scatter_op = {.name = "scatter",
                                   .names =
                                       TERN_NAMES(TERN_FIELD(scatter_attributes, "dim", dim),
                                                  TERN_FIELD(scatter_attributes, "mode", mode),
                                                  TERN_FIELD(scatter_attributes, "rows", rows)),
                                   .stored = TERN_STORED_MOVED,
                                   .saves = TERN_SAVE_IN(1),
                                   .infer = scatter_infer,
                                   .forward = scatter_forward,
                                   .backward = scatter_backward};

static tern_tensor *apply(tern_tensor *x, tern_tensor *index, tern_tensor *src,
                          const tern_scatter_way *way, bool rows)
{
    scatter_attributes at = {way->dim, way->mode, way->fault, way->wrap, rows};
    tern_tensor *in[] = {x, index, src};
    return way->in_place ? tern_apply_in_place(&scatter_op, in, 3, &at, sizeof at)
                         : tern_apply(&scatter_op, in, 3, &at, sizeof at);
}

tern_tensor *tern_scatter_into(tern_tensor *x, tern_tensor *index, tern_tensor *src,
                               const tern_scatter_way *way)
{
    return x && index && src ? apply(x, index, src, way, false) : NULL;
}

tern_tensor *tern_scatter_rows(tern_tensor *x, tern_tensor *index, tern_tensor *src,
                               const tern_scatter_way *way)
{
    return x && index && src ? apply(x, index, src, way, true) : NULL;
}

tern_tensor *tern_scatter_nothing(tern_tensor *x, tern_tensor *src, bool in_place)
{
    tern_scatter_way way = {.in_place = in_place};
    if (!tern_is_grad_enabled() || !(x->requires_grad || src->requires_grad))
        return in_place ? x : tern_clone(x);
    return tern_scatter_rows(x, tern_zeros(TERN_SHAPE(0), TERN_I64, tern_device(x)),
                             tern_narrow(tern_flatten(src, 0, -1), 0, 0, 0), &way);
}

tern_tensor *tern_index_tensor(tern_tensor *index, const char *function)
{
    if (!index)
        tern_fail_argument_null(function, "index");
    else if (index->dtype != TERN_I64 && index->dtype != TERN_I32)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: Expected dtype int64 for index, got %s",
                              function, tern_dtype_name(index->dtype));
    return index ? tern_to_dtype(index, TERN_I64) : NULL;
}

/* ---- arguments of scatter ---------------------------------------------------------------- */

bool tern_scatter_check(tern_tensor *x, int dim, tern_tensor **index, tern_tensor **src,
                        int *wrapped, const char *function)
{
    tern_tensor *i = *index, *s = *src;
    if (!x || !i || !s) {
        tern_fail_argument_null(function, !x ? "x" : !i ? "index" : "src");
        return false;
    }
    if (tern_wrap_dim(dim, x->ndim, wrapped, function) != TERN_OK)
        return false;
    int least = x->ndim ? x->ndim : 1;
    bool fits = (i->ndim ? i->ndim : 1) == least, both = fits && (s->ndim ? s->ndim : 1) == least;
    if (i->numel > 0 && !both) {
        tern_fail(TERN_ERR_SHAPE,
                  "%s: Index tensor must have the same number of dimensions as %s tensor (%s and "
                  "%s)",
                  function, fits ? "src" : "self", TERN_TENSOR_TEXT(i),
                  TERN_TENSOR_TEXT(fits ? s : x));
        return false;
    }
    if (x->dtype != s->dtype) {
        tern_fail(TERN_ERR_DTYPE, "%s: Expected self.dtype to be equal to src.dtype (%s and %s)",
                  function, tern_dtype_name(x->dtype), tern_dtype_name(s->dtype));
        return false;
    }
    if (i->dtype != TERN_I64 && i->dtype != TERN_I32 && i->numel > 0) {
        tern_fail(TERN_ERR_DTYPE, "%s: Expected dtype int32/int64 for index, got %s", function,
                  tern_dtype_name(i->dtype));
        return false;
    }
    i = tern_to_dtype(i, TERN_I64);
    *index = i ? tern_atleast_1d(i) : NULL;
    *src = tern_atleast_1d(s);
    for (int d = 0; *index && *src && i->numel > 0 && d < least; d++) {
        int64_t n = (*index)->shape[d], own = x->ndim ? x->shape[d] : 1;
        if ((d != *wrapped && n > own) || n > (*src)->shape[d]) {
            tern_fail(
                TERN_ERR_SHAPE,
                "%s: Expected index %s to be smaller than self %s apart from dimension %d and "
                "to be smaller size than src %s",
                function, TERN_TENSOR_TEXT(i), TERN_TENSOR_TEXT(x), *wrapped, TERN_TENSOR_TEXT(s));
            return false;
        }
        if (n < (*src)->shape[d])
            *src = tern_narrow(*src, d, 0, n);
    }
    return *index && *src;
}

tern_tensor *tern_scatter_as(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                             int mode, bool in_place, const char *function)
{
    tern_scatter_way way = {.mode = mode, .in_place = in_place};
    if (!tern_scatter_check(x, dim, &index, &src, &way.dim, function))
        return NULL;
    way.fault = TERN_FAULT_ALONG(way.dim);
    if (index->numel == 0)
        return tern_scatter_nothing(x, src, in_place);
    if (x->ndim > 0)
        return tern_scatter_into(x, index, src, &way);
    tern_tensor *y = tern_scatter_into(tern_unsqueeze(x, 0), index, src, &way);
    return !y ? NULL : in_place ? x : tern_view(y, tern_shape_of(x));
}

tern_tensor *tern_scatter_add(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src)
{
    TERN_COMPOSED("scatter_add", WIDEST, &x, &src);
    return tern_scatter_as(x, dim, index, src, TERN_SCATTER_ADD, false, "tern_scatter_add");
}

tern_tensor *tern_scatter_add_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src)
{
    TERN_NAMED_IN_ERRORS;
    return tern_scatter_as(x, dim, index, src, TERN_SCATTER_ADD, true, __func__);
}
