/* elementwise.c -- turns every row of elementwise.def into operations and public functions. */
#include "ops/elementwise.h"
#include <stdio.h>
#include <string.h>
#include <tern/ops.h>

static const tern_row_attributes *attributes_of(const tern_call *call)
{
    return call->attributes;
}

static bool row_has(const tern_row *row, tern_dtype dtype)
{
    switch (row->types) {
    case TERN_ROW_FLOATS:
        return tern_dtype_is_floating_point(dtype);
    case TERN_ROW_NUMBERS:
        return dtype != TERN_BOOL;
    case TERN_ROW_INTS:
        return !tern_dtype_is_floating_point(dtype);
    case TERN_ROW_BOOLS:
    case TERN_ROW_ALL:
        break;
    }
    return true;
}

static tern_status refuse_dtype(const tern_row *row, tern_dtype dtype)
{
    if (dtype == TERN_BOOL && strcmp(row->name, "sub") == 0)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_sub: Subtraction, the `-` operator, with two bool tensors is not "
                         "supported. Use tern_bitwise_xor or tern_logical_xor instead.");
    if (dtype == TERN_BOOL && strcmp(row->name, "neg") == 0)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_neg: Negation, the `-` operator, on a bool tensor is not supported. "
                         "If you are trying to invert a mask, use tern_logical_not instead.");
    return tern_fail(TERN_ERR_DTYPE, "tern_%s: not implemented for %s", row->name,
                     tern_dtype_name(dtype));
}

static tern_status row_infer(tern_call *call)
{
    const tern_row *row = call->op->data;
    tern_tensor *x = call->in[0];
    tern_result *r = &call->result[0];
    call->n_out = 1;
    if (!row_has(row, x->dtype))
        return refuse_dtype(row, x->dtype);
    bool logical = row->kind == TERN_ROW_COMPARE || row->kind == TERN_ROW_PREDICATE;
    r->dtype = logical ? TERN_BOOL : x->dtype;
    tern_read_shape(x, &r->shape);
    if (call->n_in == 1 || tern_same_shape(x, call->in[1]))
        return TERN_OK;
    tern_shape other = tern_shape_of(call->in[1]);
    char function[64];
    snprintf(function, sizeof function, "tern_%s", row->name);
    tern_shape mine = r->shape;
    return tern_shape_broadcast(&mine, &other, &r->shape, function);
}

static tern_status row_forward(tern_call *call)
{
    const tern_row *row = call->op->data;
    tern_tensor *t[3] = {call->out[0], call->in[0], call->n_in > 1 ? call->in[1] : NULL};
    const tern_row_attributes *at = attributes_of(call);
    tern_dtype dtype = call->in[0]->dtype;
    tern_walk w;
    if (call->out[0]->numel == 0)
        return TERN_OK;
    tern_shape shape;
    tern_tensor *strided;
    tern_read_shape(call->out[0], &shape);
    TERN_TRY(tern_walk_rows(&w, &shape, t, call->n_in + 1, &strided));
    tern_status status;
    if (call->n_in == 2) {
        const tern_arg args[] = {tern_arg_tensor(t[0]), tern_arg_tensor(t[1]),
                                 tern_arg_tensor(t[2]), tern_arg_struct(&w, sizeof w)};
        status = tern_launch(call->place, &row->kernel, dtype, tern_walk_grid(&w), args, 4);
    } else {
        bool scalar = call->op == row->scalar_op;
        const tern_arg args[] = {tern_arg_tensor(t[0]), tern_arg_tensor(t[1]),
                                 tern_arg_struct(&w, sizeof w), tern_arg_scalar(dtype, at->a),
                                 tern_arg_scalar(dtype, at->b)};
        int n = row->kind == TERN_ROW_UNARY ? 5 : scalar ? 4 : 3;
        status = tern_launch(call->place, scalar ? &row->scalar_kernel : &row->kernel, dtype,
                             tern_walk_grid(&w), args, n);
    }
    TERN_TRY(status);
    return tern_walk_finish(t[0], strided);
}

/* A scalar takes part in promotion by its kind only: a real with integers gives float32, an integer
 * with bools int64. */
static tern_dtype with_scalar(const tern_call *call, tern_dtype common)
{
    tern_scalar_kind kind = attributes_of(call)->a.kind;
    if (kind == TERN_SCALAR_REAL && !tern_dtype_is_floating_point(common))
        return TERN_F32;
    if (kind == TERN_SCALAR_INT && common == TERN_BOOL)
        return TERN_I64;
    return common;
}

static tern_dtype to_bool(const tern_call *call, tern_dtype common)
{
    (void)call;
    (void)common;
    return TERN_BOOL;
}

/* ---- gradients --------------------------------------------------------------------------- */

static uint32_t row_saves(const tern_call *call)
{
    const tern_row *row = call->op->data;
    const char *dy = call->n_in > 1 ? row->dy : "";
    const char *out = row->kind == TERN_ROW_UNARY ? "y" : "z";
    bool wants_dx = call->in[0]->requires_grad,
         wants_dy = call->n_in > 1 && call->in[1]->requires_grad;
    uint32_t saves = 0;
    if ((wants_dx && tern_expression_uses(row->dx, "x")) ||
        (wants_dy && tern_expression_uses(dy, "x")))
        saves |= TERN_SAVE_IN(0);
    if (call->n_in > 1 && ((wants_dx && tern_expression_uses(row->dx, "y")) ||
                           (wants_dy && tern_expression_uses(dy, "y"))))
        saves |= TERN_SAVE_IN(1);
    if ((wants_dx && tern_expression_uses(row->dx, out)) ||
        (wants_dy && tern_expression_uses(dy, out)))
        saves |= TERN_SAVE_OUT(0);
    return saves;
}

/* The row's own gradient kernel; x or y that the expression does not mention is dy again. */
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
    tern_walk w;
    tern_shape shape = tern_shape_of(dx);
    tern_tensor *strided;
    TERN_TRY(tern_walk_rows(&w, &shape, t, 4, &strided));
    tern_arg args[] = {tern_arg_tensor(t[0]),
                       tern_arg_tensor(t[1]),
                       tern_arg_tensor(t[2]),
                       tern_arg_tensor(t[3]),
                       tern_arg_struct(&w, sizeof w),
                       tern_arg_scalar(dy->dtype, at->a),
                       tern_arg_scalar(dy->dtype, at->b)};
    return tern_launch(dy->storage->place, &row->gradient_kernel, dy->dtype, tern_walk_grid(&w),
                       args, 7);
}

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
    g->din[0] = tern_expression(row->dx, variables, 5);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static tern_status binary_backward(tern_gradient *g)
{
    const tern_row *row = g->op->data;
    const tern_row_attributes *at = g->attributes;
    const tern_variable variables[] = {
        {"dz", g->dout[0], 0},
        {"x", g->in[0], 0},
        {"y", g->n_in > 1 ? g->in[1] : NULL, tern_scalar_to_real(at->a)},
        {"z", g->out[0], 0}};
    if (g->needs[0] && !(g->din[0] = tern_expression(row->dx, variables, 4)))
        return tern_last_status();
    if (g->n_in > 1 && g->needs[1] && !(g->din[1] = tern_expression(row->dy, variables, 4)))
        return tern_last_status();
    return TERN_OK;
}

/* ---- rows -------------------------------------------------------------------------------- */

#define NONE_ATTRIBUTES ((tern_row_attributes){0})

#define UNARY_(NAME, TYPES, LOW, HIGH, Y, DX)                                                      \
    static const tern_op NAME##_op;                                                                \
    static const tern_row NAME##_row = {                                                           \
        .name = #NAME,                                                                             \
        .kind = TERN_ROW_UNARY,                                                                    \
        .types = TERN_ROW_##TYPES,                                                                 \
        .low = LOW,                                                                                \
        .high = HIGH,                                                                              \
        .value = #Y,                                                                               \
        .dx = #DX,                                                                                 \
        .kernel = {"elementwise", #NAME},                                                          \
        .gradient_kernel = {"elementwise", #NAME "_gradient"},                                     \
        .op = &NAME##_op,                                                                          \
    };                                                                                             \
    static const tern_op NAME##_op = {                                                             \
        .name = #NAME,                                                                             \
        .promotion = TERN_ROW_##TYPES == TERN_ROW_FLOATS ? TERN_PROMOTE_FLOAT : TERN_PROMOTE_SAME, \
        .data = &NAME##_row,                                                                       \
        .choose_saves = row_saves,                                                                 \
        .infer = row_infer,                                                                        \
        .forward = row_forward,                                                                    \
        .backward = unary_backward,                                                                \
    };

#define UNARY_FUNCTIONS_(NAME, PARAMETERS, A, B)                                                   \
    tern_tensor *tern_##NAME PARAMETERS                                                            \
    {                                                                                              \
        const tern_row_attributes at = {A, B};                                                     \
        return tern_apply(&NAME##_op, (tern_tensor *[]){x}, 1, &at, sizeof at);                    \
    }                                                                                              \
    tern_tensor *tern_##NAME##_ PARAMETERS                                                         \
    {                                                                                              \
        const tern_row_attributes at = {A, B};                                                     \
        return tern_apply_in_place(&NAME##_op, (tern_tensor *[]){x}, 1, &at, sizeof at);           \
    }
#define NOUGHT tern_scalar_int(0)
#define UNARY(NAME, TYPES, LOW, HIGH, Y, DX)                                                       \
    UNARY_(NAME, TYPES, LOW, HIGH, Y, DX)                                                          \
    UNARY_FUNCTIONS_(NAME, (tern_tensor * x), NOUGHT, NOUGHT)
#define UNARY_REAL1(NAME, TYPES, LOW, HIGH, Y, DX)                                                 \
    UNARY_(NAME, TYPES, LOW, HIGH, Y, DX)                                                          \
    UNARY_FUNCTIONS_(NAME, (tern_tensor * x, double a), tern_scalar_real(a), NOUGHT)
#define UNARY_REAL2(NAME, TYPES, LOW, HIGH, Y, DX)                                                 \
    UNARY_(NAME, TYPES, LOW, HIGH, Y, DX)                                                          \
    UNARY_FUNCTIONS_(NAME, (tern_tensor * x, double a, double b), tern_scalar_real(a),             \
                     tern_scalar_real(b))
#define UNARY_SCALAR(NAME, TYPES, LOW, HIGH, Y, DX)                                                \
    UNARY_(NAME, TYPES, LOW, HIGH, Y, DX)                                                          \
    UNARY_FUNCTIONS_(NAME, (tern_tensor * x, tern_scalar a), a, NOUGHT)

#define ROW_OP_(OP, NAME, TYPES, PROMOTE, NOGRAD)                                                  \
    static const tern_op OP = {                                                                    \
        .name = #NAME,                                                                             \
        .promotion = TERN_ROW_##TYPES == TERN_ROW_FLOATS ? TERN_PROMOTE_FLOAT : TERN_PROMOTE_SAME, \
        .promote = TERN_ROW_##TYPES == TERN_ROW_BOOLS ? to_bool : (PROMOTE),                       \
        .not_differentiable = NOGRAD,                                                              \
        .data = &NAME##_row,                                                                       \
        .choose_saves = row_saves,                                                                 \
        .infer = row_infer,                                                                        \
        .forward = row_forward,                                                                    \
        .backward = binary_backward,                                                               \
    };
#define BINARY_ROW_(NAME, KIND, TYPES, LOW, HIGH, Z, DX, DY)                                       \
    static const tern_op NAME##_op, NAME##_scalar_op;                                              \
    static const tern_row NAME##_row = {                                                           \
        .name = #NAME,                                                                             \
        .kind = KIND,                                                                              \
        .types = TERN_ROW_##TYPES,                                                                 \
        .low = LOW,                                                                                \
        .high = HIGH,                                                                              \
        .value = #Z,                                                                               \
        .dx = DX,                                                                                  \
        .dy = DY,                                                                                  \
        .kernel = {"elementwise", #NAME},                                                          \
        .scalar_kernel = {"elementwise", #NAME "_scalar"},                                         \
        .op = &NAME##_op,                                                                          \
        .scalar_op = &NAME##_scalar_op,                                                            \
    };                                                                                             \
    ROW_OP_(NAME##_op, NAME, TYPES, NULL, (KIND) != TERN_ROW_BINARY)                               \
    ROW_OP_(NAME##_scalar_op, NAME, TYPES, with_scalar, (KIND) != TERN_ROW_BINARY)                 \
    tern_tensor *tern_##NAME(tern_tensor *x, tern_tensor *y)                                       \
    {                                                                                              \
        return tern_apply(&NAME##_op, (tern_tensor *[]){x, y}, 2, &NONE_ATTRIBUTES,                \
                          sizeof(tern_row_attributes));                                            \
    }                                                                                              \
    tern_tensor *tern_##NAME##_scalar(tern_tensor *x, tern_scalar y)                               \
    {                                                                                              \
        const tern_row_attributes at = {.a = y};                                                   \
        return tern_apply(&NAME##_scalar_op, (tern_tensor *[]){x}, 1, &at, sizeof at);             \
    }
#define BINARY(NAME, TYPES, LOW, HIGH, Z, DX, DY)                                                  \
    BINARY_ROW_(NAME, TERN_ROW_BINARY, TYPES, LOW, HIGH, Z, #DX, #DY)                              \
    tern_tensor *tern_##NAME##_(tern_tensor *x, tern_tensor *y)                                    \
    {                                                                                              \
        return tern_apply_in_place(&NAME##_op, (tern_tensor *[]){x, y}, 2, &NONE_ATTRIBUTES,       \
                                   sizeof(tern_row_attributes));                                   \
    }                                                                                              \
    tern_tensor *tern_##NAME##_scalar_(tern_tensor *x, tern_scalar y)                              \
    {                                                                                              \
        const tern_row_attributes at = {.a = y};                                                   \
        return tern_apply_in_place(&NAME##_scalar_op, (tern_tensor *[]){x}, 1, &at, sizeof at);    \
    }
#define COMPARE(NAME, TYPES, Z) BINARY_ROW_(NAME, TERN_ROW_COMPARE, TYPES, -3, 3, Z, "", "")
#define PREDICATE(NAME, TYPES, Z)                                                                  \
    static const tern_op NAME##_op;                                                                \
    static const tern_row NAME##_row = {                                                           \
        .name = #NAME,                                                                             \
        .kind = TERN_ROW_PREDICATE,                                                                \
        .types = TERN_ROW_##TYPES,                                                                 \
        .value = #Z,                                                                               \
        .dx = "",                                                                                  \
        .dy = "",                                                                                  \
        .kernel = {"elementwise", #NAME},                                                          \
        .op = &NAME##_op,                                                                          \
    };                                                                                             \
    ROW_OP_(NAME##_op, NAME, TYPES, NULL, true)                                                    \
    tern_tensor *tern_##NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        return tern_apply(&NAME##_op, (tern_tensor *[]){x}, 1, &NONE_ATTRIBUTES,                   \
                          sizeof(tern_row_attributes));                                            \
    }

#include "elementwise.def"

#undef UNARY
#undef UNARY_REAL1
#undef UNARY_REAL2
#undef UNARY_SCALAR
#undef BINARY
#undef COMPARE
#undef PREDICATE

static const tern_row *const rows[] = {
#define UNARY(NAME, TYPES, LOW, HIGH, Y, DX)      &NAME##_row,
#define UNARY_REAL1                               UNARY
#define UNARY_REAL2                               UNARY
#define UNARY_SCALAR                              UNARY
#define BINARY(NAME, TYPES, LOW, HIGH, Z, DX, DY) &NAME##_row,
#define COMPARE(NAME, TYPES, Z)                   &NAME##_row,
#define PREDICATE(NAME, TYPES, Z)                 &NAME##_row,
#include "elementwise.def"
};

const tern_row *tern_row_at(int i)
{
    return i >= 0 && i < (int)(sizeof rows / sizeof *rows) ? rows[i] : NULL;
}

const tern_row *tern_row_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i]->name) == length && memcmp(rows[i]->name, name, length) == 0)
            return rows[i];
    return NULL;
}

tern_tensor *tern_hook_add(tern_tensor *a, tern_tensor *b)
{
    return tern_add(a, b);
}

tern_tensor *tern_hook_add_in_place(tern_tensor *a, tern_tensor *b)
{
    return tern_add_(a, b);
}
