/* elementwise.c -- the operations and public functions of every row of elementwise.def, special.def
 * and logic.def.
 *
 * A row gives an operation's formula and the formulas of its gradients. The forward pass is one
 * kernel compiled from the row. The backward pass of y = f(x) is another kernel, compiled from the
 * gradient's formula. The backward pass of other operations, and gradients of gradients, evaluate
 * the formula with public operations (expression.c). "Row" means such a row in this file. */
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/expression.h"
#include "tensor/fuse/fuse.h"
#include "tensor/memory_format.h"
#include "tensor/tensor.h"
#include <math.h>
#include <string.h>
#include <tern/autograd.h>
#include <tern/ops.h>

static const tern_row_attributes *attributes_of(const tern_call *call)
{
    return call->attributes;
}

/* Refuses numbers y that integer operations do not support: a divisor of 0 and a negative
 * exponent. */
static tern_status check_number(const tern_call *call)
{
    const tern_row *row = call->op->data;
    int64_t number = tern_scalar_to_int(attributes_of(call)->a);
    bool divides = row->rule == TERN_RULE_DIVISION && number == 0;
    if (!divides && !(row->rule == TERN_RULE_POWER && number < 0))
        return TERN_OK;
    char function[TERN_FUNCTION_BYTES];
    tern_call_name(call, function);
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s", function,
                     divides ? "ZeroDivisionError"
                             : "Integers to negative integer powers are not allowed.");
}

/* Refuses finite bounds of clamp that a narrower floating type would make infinite. */
static tern_status check_bounds(const tern_call *call)
{
    const tern_row *row = call->op->data;
    const tern_row_attributes *at = attributes_of(call);
    const tern_dtype dtype = call->in[0]->dtype;
    for (int i = 0; i < (call->op == row->scalar_op ? 1 : 2); i++) {
        double bound = tern_scalar_to_real(i ? at->b : at->a);
        if (isinf(bound) || !(fabs(bound) > tern_dtype_rows[dtype].greatest))
            continue;
        char function[TERN_FUNCTION_BYTES];
        tern_call_name(call, function);
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: value cannot be converted to type %s without overflow: %g", function,
                         tern_dtype_name(dtype), bound);
    }
    return TERN_OK;
}

static bool has_bounds(const tern_call *call)
{
    const tern_row *row = call->op->data;
    return row->rule == TERN_RULE_BOUNDS || row->rule == TERN_RULE_ORDERED ||
           (call->op == row->scalar_op && strncmp(row->name, "clamp_", 6) == 0);
}

/* Refuses integer divisors of 0 before anything is written. */
static tern_status check_divisors(const tern_call *call)
{
    static const tern_kernel_ref kernel = {"index_scatter", "divisors"};
    const int code = TERN_FAULT_DIVISION | (call->in_place ? TERN_FAULT_IN_PLACE : 0);
    tern_arg fault;
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *y = tern_contiguous(tern_detach(call->in[1]));
        status = y ? tern_fault_arg(call->place, &fault) : tern_last_status();
        if (status == TERN_OK)
            status =
                TERN_LAUNCH(call->place, &kernel, y->dtype, tern_items(y->numel), tern_arg_in(y),
                            fault, tern_arg_i64(y->numel), tern_arg_fault(code));
    }
    return status == TERN_OK ? tern_fault_check(call->place) : status;
}

/* Refuses numbers a and b that a function of one tensor does not support. */
static tern_status check_numbers(const tern_call *call)
{
    const tern_row *row = call->op->data;
    const tern_row_attributes *at = attributes_of(call);
    double a = tern_scalar_to_real(at->a), b = tern_scalar_to_real(at->b);
    if (row->rule == TERN_RULE_ORDERED   ? !(a > b)
        : row->rule == TERN_RULE_DIVISOR ? a != 0
                                         : a >= 0 && a < INFINITY)
        return TERN_OK;
    char function[TERN_FUNCTION_BYTES];
    tern_call_name(call, function);
    if (row->rule == TERN_RULE_ORDERED)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: min_val cannot be greater than max_val, got %g and %g", function, a,
                         b);
    if (row->rule == TERN_RULE_DIVISOR)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: ZeroDivisionError: alpha cannot be 0", function);
    return tern_fail(TERN_ERR_ARGUMENT,
                     "%s: lambda must be finite and greater or equal to 0, but found to be %g.",
                     function, a);
}

/* The result has the broadcast shape of all inputs, and the dtype of x or bool. Promotion has
 * already converted the inputs to one dtype. */
static tern_status row_infer(tern_call *call)
{
    const tern_row *row = call->op->data;
    tern_tensor *x = call->in[0];
    tern_result *r = &call->result[0];
    call->n_out = 1;
    bool logical = row->kind == TERN_ROW_COMPARE || row->kind == TERN_ROW_PREDICATE;
    bool mixed = call->n_in == 2 && call->in[1]->dtype != x->dtype;
    r->dtype = logical ? TERN_BOOL : mixed ? TERN_F32 : x->dtype;
    tern_read_shape(x, &r->shape);
    if (call->op == row->scalar_op && !tern_dtype_is_floating_point(x->dtype))
        TERN_TRY(check_number(call));
    if (row->rule >= TERN_RULE_ORDERED && row->rule <= TERN_RULE_SIZE)
        TERN_TRY(check_numbers(call));
    if (has_bounds(call) && tern_dtype_is_floating_point(x->dtype))
        TERN_TRY(check_bounds(call));
    for (int i = 1; i < call->n_in; i++) {
        if (call->n_in == 2 && tern_same_shape(x, call->in[i]))
            break;
        tern_shape mine = r->shape, other = tern_shape_of(call->in[i]);
        char function[TERN_FUNCTION_BYTES];
        tern_call_name(call, function);
        TERN_TRY(tern_shape_broadcast(&mine, &other, &r->shape, function));
    }
    call->channels_last = tern_keeps_channels_last(call->in, call->n_in, &r->shape);
    return TERN_OK;
}

/* Returns a parameter of a kernel in dtype. For an integer dtype, an infinite bound, such as
 * clamp's default, becomes the smallest or largest number of the dtype. */
static tern_arg number_arg(tern_dtype dtype, tern_scalar number)
{
    bool beyond = number.kind == TERN_SCALAR_REAL && isinf(number.value.real);
    if (!beyond || tern_dtype_is_floating_point(dtype))
        return tern_arg_scalar(dtype, number);
    bool negative = number.value.real < 0;
    if (tern_dtype_rows[dtype].math == TERN_I64)
        return tern_arg_i64(negative ? INT64_MIN : INT64_MAX);
    return tern_arg_i32(negative ? INT32_MIN : INT32_MAX);
}

/* Computes v = f(x, y, z). Ternary kernels read any strides, so a broadcast input needs no copy. */
static tern_status ternary_forward(tern_call *call)
{
    const tern_row *row = call->op->data;
    tern_tensor *t[4] = {call->out[0], call->in[0], call->in[1], call->in[2]};
    tern_nd_index w;
    if (t[0]->numel == 0)
        return TERN_OK;
    tern_nd_index_make(&w, &call->result[0].shape, t, 4);
    for (int k = 0; k < 4 && w.form == TERN_ND_UNIT; k++)
        w.step[k] = 1;
    return TERN_LAUNCH(call->place, &row->kernel, t[0]->dtype, tern_nd_index_grid(&w),
                       tern_arg_out(t[0]), tern_arg_in(t[1]), tern_arg_in(t[2]), tern_arg_in(t[3]),
                       TERN_ARG_STRUCT(tern_nd_index, &w),
                       number_arg(t[0]->dtype, attributes_of(call)->a));
}

/* ---- float32 and half precision, as residuals under autocast, in one launch ----------------- */

static bool mixes_halves(const tern_call *call)
{
    if (call->n_in != 2 || !tern_place_is_grouped(call->place) || tern_thread.mode.trace)
        return false;
    const tern_tensor *x = call->in[0], *y = call->in[1];
    return ((x->dtype == TERN_F32 && tern_dtype_is_half(y->dtype)) ||
            (y->dtype == TERN_F32 && tern_dtype_is_half(x->dtype))) &&
           x->contiguous && y->contiguous && tern_same_shape(x, y) && x->numel > 0;
}

static tern_status add_mixed(tern_call *call)
{
    const tern_tensor *x = call->in[0], *y = call->in[1],
                      *half = tern_dtype_is_half(x->dtype) ? x : y;
    return TERN_LAUNCH(call->place, &tern_kernel_add_mixed, half->dtype, tern_items(half->numel),
                       tern_arg_out(call->out[0]), tern_arg_in(half == x ? y : x),
                       tern_arg_in(half), tern_arg_i64(half->numel));
}

static const tern_row sub_row, mul_row;
/* Returns the kernel of a row for tensors. Recordings recognize those of add, sub and mul
 * (device.h). */
static const tern_kernel_ref *kernel_of(const tern_row *row)
{
    return row->rule == TERN_RULE_SUM ? &tern_kernel_add
           : row == &sub_row          ? &tern_kernel_sub
           : row == &mul_row          ? &tern_kernel_mul
                                      : &row->kernel;
}

/* Computes y = f(x; a, b), z = f(x, y) or z = f(x, a). These kernels load vectors such as float4
 * along the last dim, so tern_nd_index_rows first copies inputs with another stride along that
 * dim. */
static tern_status row_forward(tern_call *call)
{
    const tern_row *row = call->op->data;
    const tern_kernel_ref *kernel = kernel_of(row);
    tern_tensor *t[3] = {call->out[0], call->in[0], call->n_in > 1 ? call->in[1] : NULL};
    const tern_row_attributes *at = attributes_of(call);
    tern_dtype dtype = call->in[0]->dtype;
    tern_nd_index w;
    if (call->out[0]->numel == 0)
        return TERN_OK;
    if (call->n_in == 2 && t[1]->dtype != t[2]->dtype)
        return add_mixed(call);
    if (row->rule == TERN_RULE_DIVISION && call->n_in == 2 && !tern_dtype_is_floating_point(dtype))
        TERN_TRY(check_divisors(call));
    tern_shape shape;
    tern_tensor *strided;
    tern_read_shape(call->out[0], &shape);
    TERN_TRY(tern_nd_index_rows(&w, &shape, t, call->n_in + 1, &strided));
    tern_status status;
    tern_arg out = tern_arg_out(t[0]), x = tern_arg_in(t[1]);
    tern_arg nd = TERN_ARG_STRUCT(tern_nd_index, &w);
    tern_grid grid = tern_nd_index_grid(&w);
    if (call->n_in == 2)
        status = TERN_LAUNCH(call->place, kernel, dtype, grid, out, x, tern_arg_in(t[2]), nd);
    else if (row->kind == TERN_ROW_UNARY)
        status = TERN_LAUNCH(call->place, kernel, dtype, grid, out, x, nd, number_arg(dtype, at->a),
                             number_arg(dtype, at->b));
    else if (call->op == row->scalar_op)
        status = TERN_LAUNCH(call->place, &row->scalar_kernel, dtype, grid, out, x, nd,
                             number_arg(dtype, at->a));
    else
        status = TERN_LAUNCH(call->place, kernel, dtype, grid, out, x, nd);
    TERN_TRY(status);
    return tern_nd_index_finish(t[0], strided);
}

/* A scalar takes part in promotion by its kind only: a real with integers gives the default dtype,
 * an integer with bools int64. */
static tern_dtype with_scalar(const tern_call *call, tern_dtype common)
{
    tern_scalar_kind kind = attributes_of(call)->a.kind;
    if (kind == TERN_SCALAR_REAL && !tern_dtype_is_floating_point(common))
        return tern_default_real();
    if (kind == TERN_SCALAR_INT && common == TERN_BOOL)
        return TERN_I64;
    return common;
}

/* For x - y: bools stay bools, so that the check of the dtype refuses them as PyTorch does. */
static tern_dtype with_scalar_but_bools(const tern_call *call, tern_dtype common)
{
    return common == TERN_BOOL ? common : with_scalar(call, common);
}

/* Returns whether the bound is a fraction, for which an integer tensor must become floating
 * point. */
static bool is_fraction(tern_scalar number)
{
    double v = number.value.real;
    return number.kind == TERN_SCALAR_REAL && !isinf(v) && v != floor(v);
}

/* clamp of integers stays integer if both bounds are integers or infinite. */
static tern_dtype with_bounds(const tern_call *call, tern_dtype common)
{
    const tern_row_attributes *at = attributes_of(call);
    bool real = is_fraction(at->a) || is_fraction(at->b);
    return real && !tern_dtype_is_floating_point(common) ? tern_default_real() : common;
}

/* square of bools is int64, unlike the product of two bools. */
static tern_dtype with_integers(const tern_call *call, tern_dtype common)
{
    (void)call;
    return common == TERN_BOOL ? TERN_I64 : common;
}

/* ---- gradients --------------------------------------------------------------------------- */

/* Returns which tensors the backward pass needs, from the gradients' formulas: an input or the
 * output is saved only if the gradient of an input that requires one mentions it. */
static uint32_t row_saves(const tern_call *call)
{
    static const char *const inputs[] = {"x", "y", "z"};
    const tern_row *row = call->op->data;
    const char *gradients[] = {row->dx, row->dy, row->dz};
    const char *out = row->kind == TERN_ROW_UNARY ? "y" : row->kind == TERN_ROW_TERNARY ? "v" : "z";
    uint32_t saves = 0;
    for (int g = 0; g < call->n_in; g++) {
        if (!call->in[g]->requires_grad)
            continue;
        for (int i = 0; i < call->n_in; i++)
            if (tern_expression_uses(gradients[g], inputs[i]))
                saves |= TERN_SAVE_IN(i);
        if (tern_expression_uses(gradients[g], out))
            saves |= TERN_SAVE_OUT(0);
    }
    return saves;
}

/* Calls a function of a gradient's formula, such as exp(x), which is another row. */
static tern_tensor *call_row(const char *name, size_t length, tern_tensor **in, int n);

/* Computes dx = dy f'(x) in one kernel. If the formula does not mention x or y, that tensor was not
 * saved, and dy is passed in its place: the kernel does not load it. */
static tern_status unary_kernel(tern_gradient *g, const tern_row *row)
{
    tern_tensor *dy = g->dout[0];
    tern_tensor *dx = tern_empty_like(dy);
    tern_tensor *t[4] = {dx, g->in[0] ? g->in[0] : dy, g->out[0] ? g->out[0] : dy, dy};
    const tern_row_attributes *at = g->attributes;
    g->din[0] = dx;
    if (!dx)
        return tern_last_status();
    if (dx->numel == 0)
        return TERN_OK;
    const tern_tensor *saved = g->in[0] ? g->in[0] : g->out[0];
    bool by_saved = saved && (row->rule == TERN_RULE_RECTIFIER || tern_repeats(dy));
    if (tern_runs_channels_last(by_saved ? saved : dy)) /* in PyTorch's order of operands */
        tern_make_channels_last(dx);
    tern_nd_index w;
    tern_shape shape = tern_shape_of(dx);
    tern_tensor *strided;
    TERN_TRY(tern_nd_index_rows(&w, &shape, t, 4, &strided));
    TERN_TRY(TERN_LAUNCH(dy->storage->place, &row->gradient_kernel, dy->dtype,
                         tern_nd_index_grid(&w), tern_arg_out(t[0]),
                         g->in[0] ? tern_arg_in(t[1]) : tern_arg_unused(t[1]),
                         g->out[0] ? tern_arg_in(t[2]) : tern_arg_unused(t[2]), tern_arg_in(t[3]),
                         TERN_ARG_STRUCT(tern_nd_index, &w), tern_arg_scalar(dy->dtype, at->a),
                         tern_arg_scalar(dy->dtype, at->b)));
    return tern_nd_index_finish(t[0], strided);
}

/* Computes dx from the formula: by the kernel, or by public operations for gradients of
 * gradients. */
static tern_status unary_backward(tern_gradient *g)
{
    const tern_row *row = g->op->data;
    const tern_row_attributes *at = g->attributes;
    if (!g->recorded)
        return unary_kernel(g, row);
    const tern_variable variables[] = {{"dy", g->dout[0], 0},
                                       {"x", g->in[0], 0},
                                       {"y", g->out[0], 0},
                                       {"a", NULL, tern_scalar_to_real(at->a)},
                                       {"b", NULL, tern_scalar_to_real(at->b)}};
    g->din[0] = tern_expression(row->dx, variables, 5, call_row);
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* Computes dx and dy from their formulas, in the broadcast shape; the caller sums them over the
 * dims that were broadcast. tie is the share of dz that x gets where x == y, as in max(x, y): half
 * with a tensor y, none with a number. */
static tern_status binary_backward(tern_gradient *g)
{
    const tern_row *row = g->op->data;
    const tern_row_attributes *at = g->attributes;
    const tern_variable variables[] = {
        {"dz", g->dout[0], 0},
        {"x", g->in[0], 0},
        {"y", g->n_in > 1 ? g->in[1] : NULL, tern_scalar_to_real(at->a)},
        {"z", g->out[0], 0},
        {"tie", NULL, g->n_in > 1 ? 0.5 : 0}};
    if (g->needs[0] && !(g->din[0] = tern_expression(row->dx, variables, 5, call_row)))
        return tern_last_status();
    if (g->n_in > 1 && g->needs[1] &&
        !(g->din[1] = tern_expression(row->dy, variables, 5, call_row)))
        return tern_last_status();
    return TERN_OK;
}

/* Computes dx, dy and dz from their formulas. */
static tern_status ternary_backward(tern_gradient *g)
{
    const tern_row *row = g->op->data;
    const tern_row_attributes *at = g->attributes;
    const char *gradients[] = {row->dx, row->dy, row->dz};
    const tern_variable variables[] = {
        {"dv", g->dout[0], 0}, {"x", g->in[0], 0},  {"y", g->in[1], 0},
        {"z", g->in[2], 0},    {"v", g->out[0], 0}, {"a", NULL, tern_scalar_to_real(at->a)}};
    for (int i = 0; i < 3; i++)
        if (g->needs[i] && !(g->din[i] = tern_expression(gradients[i], variables, 6, call_row)))
            return tern_last_status();
    return TERN_OK;
}

/* Returns whether the number y must be converted to x's dtype for a comparison: uint64 has its own
 * order, and float8 rounds y. */
static bool rounds(const tern_tensor *x, tern_scalar y)
{
    bool float8 = x->dtype == TERN_F8_E4M3FN || x->dtype == TERN_F8_E5M2;
    return float8 || (x->dtype == TERN_U64 && y.kind != TERN_SCALAR_REAL);
}

static tern_tensor *compare_number(const tern_row *row, tern_tensor *x, tern_scalar y)
{
    const tern_row_attributes at = {.a = y};
    if (!x || !rounds(x, y))
        return tern_apply(row->scalar_op, (tern_tensor *[]){x}, 1, &at, sizeof at);
    tern_tensor *number = tern_tensor_scalar(y, x->dtype, tern_device(x));
    return number ? tern_apply(row->op, (tern_tensor *[]){x, number}, 2, &at, sizeof at) : NULL;
}

/* ---- rows -------------------------------------------------------------------------------- */

#include "ops/elementwise/row_literals.h"

#define TERN_ROW_FAMILY tern_file_elementwise
#include "elementwise.def"
#undef TERN_ROW_FAMILY
#define TERN_ROW_FAMILY tern_file_special
#include "special.def"
#undef TERN_ROW_FAMILY
#define TERN_ROW_FAMILY tern_file_logic
#include "logic.def"

static tern_tensor *dx_of(const tern_row *row, tern_tensor *dy, tern_tensor *x, tern_tensor *y)
{
    static const tern_row_attributes none;
    tern_tensor *dx = NULL;
    tern_gradient g = {.op = row->op,
                       .attributes = &none,
                       .n_in = 1,
                       .n_out = 1,
                       .in = &x,
                       .out = &y,
                       .dout = &dy,
                       .din = &dx};
    return unary_kernel(&g, row) == TERN_OK ? dx : NULL;
}

tern_tensor *tern_relu_dx(tern_tensor *dy, tern_tensor *y)
{
    return dx_of(&relu_row, dy, NULL, y);
}

tern_tensor *tern_gelu_dx(tern_tensor *dy, tern_tensor *x, bool by_tanh)
{
    return dx_of(by_tanh ? &gelu_tanh_row : &gelu_row, dy, x, NULL);
}

#undef UNARY
#undef UNARY_REAL1
#undef UNARY_REAL2
#undef UNARY_SCALAR
#undef BINARY
#undef TERNARY
#undef TERNARY_SCALAR
#undef COMPARE
#undef PREDICATE

static const tern_row *const rows[] = {
#define UNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)           &NAME##_row,
#define UNARY_REAL1                                                UNARY
#define UNARY_REAL2                                                UNARY
#define UNARY_SCALAR                                               UNARY
#define BINARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY)      &NAME##_row,
#define TERNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ) &NAME##_row,
#define TERNARY_SCALAR                                             TERNARY
#define COMPARE(NAME, TYPES, RULE, Z)                              &NAME##_row,
#define PREDICATE(NAME, TYPES, Z)                                  &NAME##_row,
#include "elementwise.def"
#include "special.def"
#include "logic.def"
#include "tensor/tensor.h"
};

/* (1 + erf(x / sqrt 2)) / 2. */
static tern_tensor *normal_cdf(tern_tensor *x)
{
    tern_tensor *e = tern_erf(tern_mul_scalar(x, tern_scalar_real(0.7071067811865476)));
    e = tern_mul_scalar(e, tern_scalar_real(0.5));
    return tern_add_scalar(e, tern_scalar_real(0.5));
}

/* Functions of kernels that are not rows. */
static const struct {
    const char *name;
    tern_tensor *(*call)(tern_tensor *x);
} composed[] = {{"normal_cdf", normal_cdf}, {"exp_below", tern_exp}};

/* Calls the row with that name. A linear search suffices: few formulas call functions. */
static tern_tensor *call_row(const char *name, size_t length, tern_tensor **in, int n)
{
    const tern_row_attributes none = {0};
    for (size_t i = 0; i < sizeof composed / sizeof *composed; i++)
        if (strlen(composed[i].name) == length && memcmp(composed[i].name, name, length) == 0)
            return composed[i].call(in[0]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i]->name) == length && memcmp(rows[i]->name, name, length) == 0)
            return tern_apply(rows[i]->op, in, n, &none, sizeof none);
    if (strncmp(name, "tetragamma", length) == 0)
        return tern_polygamma(2, in[0]);
    return tern_fail_null(TERN_ERR_UNSUPPORTED, "tern_backward: cannot differentiate %.*s",
                          (int)length, name);
}
