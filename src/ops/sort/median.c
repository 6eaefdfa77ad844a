/* median.c -- an element of each sorted row by its rank: kthvalue, median, nanmedian, mode.
 *
 * Of n sorted elements the median is the one at (n - 1) / 2, the lower of two. NaN sorts last, so a
 * row has a NaN exactly if its last element is one, and nanmedian takes the median of the elements
 * before the first NaN. mode is the most frequent element. The kernel finds indices; the values are
 * gathered from x, with gather's gradient. */
#include "ops/sort/sort.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* The element to choose, as in sort.cl. */
typedef enum choice { NTH, MEDIAN, NANMEDIAN, MODE } choice;

typedef struct choose_attributes {
    int64_t k; /* rank for NTH, from 0 */
    int dim;
} choose_attributes;

/* Input: x. Output: an index for each row, with size 1 along dim. */
static tern_status choose_infer(tern_call *call)
{
    const choose_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = TERN_I64, .shape = tern_shape_of(x)};
    if (x->ndim == 0)
        return TERN_OK;
    if (x->shape[at->dim] == 0)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: %s(): Expected reduction dim %d to have non-zero size.",
                         call->op->name, call->op->name, at->dim);
    call->result[0].shape.dims[at->dim] = 1;
    return TERN_OK;
}

static tern_status launch_choose(const tern_tensor *y, const tern_sorted *s, int64_t k, choice what)
{
    static const tern_kernel_ref kernel = {"sort", "sort_choose"};
    return TERN_LAUNCH(y->storage->place, &kernel, s->keys->dtype,
                       tern_items_of(s->rows, what == MODE ? s->n : 8), tern_arg_out(y),
                       tern_arg_in(s->keys), tern_arg_in(s->places), tern_arg_i64(s->rows),
                       tern_arg_i64(s->n), tern_arg_i64(k), tern_arg_i32((int32_t)what));
}

/* The median of a dtype without NaN is the element at (n - 1) / 2. */
static tern_status choose_forward(tern_call *call)
{
    const choose_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0], *y = call->out[0];
    tern_shape shape = tern_shape_of(x);
    tern_sides sides = tern_sides_of(&shape, at->dim);
    choice what = (choice)call->op->variant;
    int64_t k = at->k;
    if (y->numel == 0)
        return TERN_OK;
    if (!tern_dtype_is_floating_point(x->dtype) && (what == MEDIAN || what == NANMEDIAN)) {
        what = NTH; /* the dtype has no NaN */
        k = (sides.n - 1) / 2;
    }
    tern_sorted s;
    TERN_TRY(tern_sort_rows(&s, x, &sides, 0));
    tern_status status = launch_choose(y, &s, k, what);
    tern_sorted_free(&s);
    return status;
}

#define CHOOSE_OP(NAME, WHAT, TAKES)                                                               \
    static const tern_op NAME##_op = {.name = #NAME,                                               \
                                      .takes = TAKES,                                              \
                                      .not_differentiable = true,                                  \
                                      .variant = WHAT,                                             \
                                      .infer = choose_infer,                                       \
                                      .forward = choose_forward}
CHOOSE_OP(kthvalue, NTH, TERN_TAKES_NUMBERS);
CHOOSE_OP(median, MEDIAN, TERN_TAKES_NUMBERS);
CHOOSE_OP(nanmedian, NANMEDIAN, TERN_TAKES_NUMBERS);
CHOOSE_OP(mode, MODE, TERN_TAKES_ALL);

static tern_status choose(const tern_op *op, tern_tensor *x, int64_t k, int dim, bool keepdim,
                          tern_values_indices *out, const char *function)
{
    choose_attributes at = {0};
    if (!x || !out)
        return tern_fail_argument_null(function, x ? "out" : "x");
    TERN_TRY(tern_wrap_dim(dim, x->ndim, &at.dim, function));
    int64_t n = x->ndim ? x->shape[at.dim] : 1;
    if (op == &kthvalue_op && n > 0 && (k < 1 || k > n))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_kthvalue: kthvalue(): selected number k out of range for dimension "
                         "%d (k %lld, size %lld)",
                         at.dim, (long long)k, (long long)n);
    at.k = n > 0 ? k - 1 : 0;
    tern_tensor *dense = tern_contiguous(x);
    tern_tensor *indices = tern_apply(op, &dense, 1, &at, sizeof at);
    tern_values_indices both = {tern_gather(x, at.dim, indices), indices};
    if (!keepdim && x->ndim > 0) {
        both.values = tern_squeeze_dim(both.values, at.dim);
        both.indices = tern_squeeze_dim(indices, at.dim);
    }
    if (!both.values || !both.indices)
        return tern_last_status();
    *out = both;
    return TERN_OK;
}

tern_status tern_kthvalue(tern_tensor *x, int64_t k, int dim, bool keepdim,
                          tern_values_indices *out)
{
    TERN_NAMED_IN_ERRORS;
    return choose(&kthvalue_op, x, k, dim, keepdim, out, __func__);
}

tern_status tern_mode(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out)
{
    TERN_NAMED_IN_ERRORS;
    return choose(&mode_op, x, 1, dim, keepdim, out, __func__);
}

/* Returns one of the values of x; its gradient is divided evenly among the elements equal to it. */
static tern_status even_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0] =
        (tern_result){.dtype = call->in[1]->dtype, .shape = tern_shape_of(call->in[1])};
    return TERN_OK;
}

static tern_status even_forward(tern_call *call)
{
    return tern_copy_elements(call->out[0], call->in[1]);
}

static tern_status even_backward(tern_gradient *g)
{
    tern_tensor *x = g->in[0], *y = g->in[1];
    tern_tensor *both_nan = tern_logical_and(tern_isnan(x), tern_isnan(y));
    tern_tensor *ties = tern_to_dtype(tern_logical_or(tern_eq(x, y), both_nan), x->dtype);
    g->din[0] = tern_mul(ties, tern_div(g->dout[0], tern_sum(ties)));
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op even_op = {.name = "median",
                                .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1),
                                .infer = even_infer,
                                .forward = even_forward,
                                .backward = even_backward};

/* Returns PyTorch's median of an empty tensor: NaN, the smallest integer of the dtype, or true. */
static tern_scalar of_nothing(tern_dtype dtype)
{
    return tern_dtype_is_floating_point(dtype)
               ? tern_scalar_real(NAN)
               : tern_scalar_int(dtype == TERN_I64   ? INT64_MIN
                                 : dtype == TERN_I32 ? INT32_MIN
                                                     : dtype == TERN_BOOL);
}

static tern_tensor *of_all(const tern_op *op, tern_tensor *x, const char *function)
{
    tern_values_indices both = {0};
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    if (x->numel == 0) {
        tern_tensor *y =
            tern_full(TERN_SHAPE_SCALAR, of_nothing(x->dtype), x->dtype, tern_device(x));
        return tern_requires_grad(x) ? tern_add(y, tern_sum(x)) : y; /* keeps the graph of x */
    }
    tern_tensor *flat = tern_detach(x->ndim > 1 ? tern_flatten(x, 0, -1) : x);
    if (!flat || choose(op, flat, 1, 0, false, &both, function) != TERN_OK)
        return NULL;
    return tern_apply(&even_op, (tern_tensor *[]){x, both.values}, 2, NULL, 0);
}

#define MEDIAN_FUNCTIONS(NAME)                                                                     \
    tern_tensor *tern_##NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return of_all(&NAME##_op, x, "tern_" #NAME);                                               \
    }                                                                                              \
    tern_status tern_##NAME##_dim(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out) \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return choose(&NAME##_op, x, 1, dim, keepdim, out, "tern_" #NAME "_dim");                  \
    }
MEDIAN_FUNCTIONS(median)
MEDIAN_FUNCTIONS(nanmedian)
