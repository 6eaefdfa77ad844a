/* test_corners.c -- NaN, infinities, signed zeros, denormals, wrapping integers, promotion:
 * PyTorch's answers (golden/corners.txt for every row at once). */
#include "rows.h"

static void every_row_answers_as_pytorch_at_the_corners(void **state)
{
    (void)state;
    test_golden *golden = test_golden_open("corners");
    int checked = 0;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        TERN_SCOPE {
            const row *r = &rows[i];
            if (!test_golden_has(golden, r->name))
                continue;
            tern_tensor *x = test_golden_tensor(golden, "x", device);
            row_arguments p = {.y = x, .a = tern_scalar_real(0.25), .b = tern_scalar_real(2.5)};
            if (r->kind == BINARY_ROW || r->kind == COMPARE_ROW)
                x = test_view(x, TERN_SHAPE(18, 1), TERN_SHAPE(1, 1), 0);
            tern_tensor *z = r->call(x, p);
            /* Absolute, because both cancel in the tails of gelu. */
            test_close(z, test_golden_tensor(golden, r->name, "cpu"),
                       (test_tolerance){.rel = 2e-6, .abs = 5e-7}, r->name, __FILE__, __LINE__);
            checked++;
        }
    assert_in_range(checked, 40, 10000);
    test_golden_close(golden);
}

/* Zeros keep their sign: 1 / z tells which one it is. */
static void signed_zeros(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *z = TENSOR(device, TERN_F32, TERN_SHAPE(2), 0.0, -0.0);
        assert_values(tern_reciprocal(tern_relu(z)), INFINITY, -INFINITY);
        assert_values(tern_reciprocal(tern_neg(z)), -INFINITY, INFINITY);
        assert_values(tern_reciprocal(tern_abs(z)), INFINITY, INFINITY);
        assert_values(tern_reciprocal(tern_sqrt(z)), INFINITY, -INFINITY);
        assert_values(tern_reciprocal(tern_tanh(z)), INFINITY, -INFINITY);
        assert_values(tern_reciprocal(tern_sin(z)), INFINITY, -INFINITY);
        assert_values(tern_eq(z, tern_neg(z)), 1, 1);
    }
}

typedef struct corner {
    const char *name;
    tern_tensor *(*function)(tern_tensor *);
    double x, gradient;
} corner;

static tern_tensor *clamp_upside_down(tern_tensor *x)
{
    return tern_clamp(x, 2, 1);
}

static const corner corners[] = {
    {"relu at 0", tern_relu, 0, 0},
    {"relu at -0", tern_relu, -0.0, 0},
    {"relu at NaN", tern_relu, NAN, 1},
    {"relu at 2", tern_relu, 2, 1},
    {"abs at 0", tern_abs, 0, 0},
    {"abs at -2", tern_abs, -2, -1},
    {"sign at 3", tern_sign, 3, 0},
    {"sqrt at 0", tern_sqrt, 0, INFINITY},
    {"sigmoid at -1000", tern_sigmoid, -1000, 0},
    {"tanh at 1000", tern_tanh, 1000, 0},
    {"gelu at 0", tern_gelu, 0, 0.5},
    {"silu at 0", tern_silu, 0, 0.5},
    {"clamp low > high", clamp_upside_down, 1.5, 0},
};

static void gradients_at_the_corners(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
        TERN_SCOPE {
            const corner *c = &corners[i];
            tern_tensor *x = test_tensor(device, TERN_F32, TERN_SHAPE_SCALAR, &c->x);
            tern_requires_grad_(x, true);
            assert_ok(tern_backward(c->function(x)));
            double got = tern_item(tern_grad(x));
            if (got != c->gradient)
                fail_msg("%s: gradient %g, expected %g", c->name, got, c->gradient);
        }
}

static void ties_share_the_gradient_of_maximum(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 2, 3);
        tern_tensor *y = TENSOR(device, TERN_F32, TERN_SHAPE(3), 2, 2, 2);
        tern_requires_grad_(x, true);
        tern_requires_grad_(y, true);
        tern_tensor *ones = tern_ones_like(x);
        assert_ok(
            tern_backward_with(tern_maximum(x, y), &(tern_backward_options){.gradient = ones}));
        assert_values(tern_grad(x), 0, 0.5, 1);
        assert_values(tern_grad(y), 1, 0.5, 0);
    }
}

static void integers_wrap(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *u = TENSOR(device, TERN_U8, TERN_SHAPE(2), 200, 1);
        tern_tensor *v = TENSOR(device, TERN_U8, TERN_SHAPE(2), 100, 2);
        assert_values(tern_add(u, v), 44, 3);
        assert_values(tern_sub(v, u), 156, 1);
        assert_values(tern_mul(u, v), 32, 2);
        assert_values(tern_neg(u), 56, 255);
        tern_tensor *i = TENSOR(device, TERN_I32, TERN_SHAPE(2), 2147483647, -2147483648.0);
        assert_values(tern_add_scalar(i, TERN_SCALAR(1)), -2147483648.0, -2147483647);
        assert_values(tern_neg(i), -2147483647, -2147483648.0);
        tern_tensor *l = tern_full(TERN_SHAPE(1), TERN_SCALAR(INT64_MAX), TERN_I64, device);
        assert_int_equal(tern_item_int(l), INT64_MAX);
        assert_int_equal(tern_item_int(tern_add_scalar(l, TERN_SCALAR(1))), INT64_MIN);
    }
}

static void integers_divide_as_floats(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = TENSOR(device, TERN_I64, TERN_SHAPE(3), 1, 0, -3);
        tern_tensor *y = TENSOR(device, TERN_I64, TERN_SHAPE(3), 0, 0, 2);
        assert_values(tern_div(x, y), INFINITY, NAN, -1.5);
        assert_values(tern_sqrt(TENSOR(device, TERN_I32, TERN_SHAPE(2), 4, 9)), 2, 3);
    }
}

static void conversions(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x =
            TENSOR(device, TERN_F32, TERN_SHAPE(6), NAN, INFINITY, 1e20, 300.7, -1.5, 0);
        tern_tensor *i = tern_to_dtype(x, TERN_I32);
        assert_values(i, INT32_MIN, INT32_MIN, INT32_MIN, 300, -1, 0);
        tern_tensor *tail = test_view(x, TERN_SHAPE(3), TERN_SHAPE(1), 3);
        assert_values(tern_to_dtype(tail, TERN_U8), 44, 255, 0);
        assert_values(tern_to_dtype(x, TERN_BOOL), 1, 1, 1, 1, 1, 0);
        tern_tensor *h =
            TENSOR(device, TERN_F32, TERN_SHAPE(4), 65519, 65520, 0x1p-25, 3 * 0x1p-26);
        assert_values(tern_to_dtype(h, TERN_F16), 65504, INFINITY, 0, 0x1p-24);
        assert_ptr_equal(tern_to_dtype(x, TERN_F32), x);
    }
}

static const struct {
    tern_dtype x;
    bool x_scalar;
    tern_dtype y;
    bool y_scalar;
    tern_dtype result;
} promotions[] = {
    {TERN_I32, false, TERN_F32, false, TERN_F32},  {TERN_U8, false, TERN_I64, true, TERN_U8},
    {TERN_U8, false, TERN_I64, false, TERN_I64},   {TERN_F16, false, TERN_F32, true, TERN_F16},
    {TERN_F16, false, TERN_BF16, false, TERN_F32}, {TERN_I64, false, TERN_F16, true, TERN_F16},
    {TERN_BOOL, false, TERN_U8, false, TERN_U8},   {TERN_BOOL, true, TERN_BOOL, false, TERN_BOOL},
    {TERN_I64, false, TERN_F16, false, TERN_F16},  {TERN_U8, true, TERN_I32, true, TERN_I32},
};

static void types_promote(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_shape one = TERN_SHAPE(1), none = TERN_SHAPE_SCALAR;
        for (size_t i = 0; i < sizeof promotions / sizeof *promotions; i++) {
            tern_tensor *x =
                tern_ones(promotions[i].x_scalar ? none : one, promotions[i].x, device);
            tern_tensor *y =
                tern_ones(promotions[i].y_scalar ? none : one, promotions[i].y, device);
            assert_int_equal(tern_dtype_of(tern_mul(x, y)), promotions[i].result);
            assert_int_equal(tern_dtype_of(tern_mul(y, x)), promotions[i].result);
        }
        tern_tensor *b = tern_ones(one, TERN_BOOL, device), *i = tern_ones(one, TERN_I32, device);
        assert_int_equal(tern_dtype_of(tern_add_scalar(b, TERN_SCALAR(2))), TERN_I64);
        assert_int_equal(tern_dtype_of(tern_add_scalar(i, TERN_SCALAR(2))), TERN_I32);
        assert_int_equal(tern_dtype_of(tern_add_scalar(i, TERN_SCALAR(2.0))), TERN_F32);
        assert_int_equal(tern_dtype_of(tern_exp(i)), TERN_F32);
    }
}

static void refusals_have_pytorchs_words(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *f = tern_ones(TERN_SHAPE(2, 3), TERN_F32, device);
        tern_tensor *g = tern_ones(TERN_SHAPE(2, 4), TERN_F32, device);
        tern_tensor *i = tern_ones(TERN_SHAPE(2, 3), TERN_I64, device);
        tern_tensor *b = tern_ones(TERN_SHAPE(2), TERN_BOOL, device);
        assert_null(tern_add(f, g));
        assert_error(TERN_ERR_SHAPE, "tern_add: The size of tensor a (3) must match the size of "
                                     "tensor b (4) at non-singleton dimension 1");
        assert_null(tern_add_(i, f));
        assert_error(TERN_ERR_DTYPE, "can't be cast to the desired output type");
        assert_null(tern_add_(test_view(f, TERN_SHAPE(3), TERN_SHAPE(1), 0), f));
        assert_error(TERN_ERR_SHAPE, "doesn't match the broadcast shape [2, 3]");
        assert_null(tern_sub(b, b));
        assert_error(TERN_ERR_DTYPE, "Subtraction, the `-` operator, with two bool tensors is not");
        assert_null(tern_neg(b));
        assert_error(TERN_ERR_DTYPE, "Negation, the `-` operator, on a bool tensor is not");
        assert_null(
            tern_add_(test_expand(tern_ones(TERN_SHAPE(1), TERN_F32, device), TERN_SHAPE(3)),
                      TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 2, 3)));
        assert_error(TERN_ERR_ARGUMENT,
                     "more than one element of the written-to tensor refers to a "
                     "single memory location");
        assert_values(f, 1, 1, 1, 1, 1, 1);
        if (strcmp(device, "cpu") == 0)
            continue;
        assert_null(tern_add(f, tern_ones(TERN_SHAPE(2, 3), TERN_F32, "cpu")));
        assert_error(TERN_ERR_DEVICE, "Expected all tensors to be on the same device, but found at "
                                      "least two devices, ");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(every_row_answers_as_pytorch_at_the_corners),
    TEST(signed_zeros),
    TEST(gradients_at_the_corners),
    TEST(ties_share_the_gradient_of_maximum),
    TEST(integers_wrap),
    TEST(integers_divide_as_floats),
    TEST(conversions),
    TEST(types_promote),
    TEST(refusals_have_pytorchs_words),
};
TEST_MAIN(tests)
