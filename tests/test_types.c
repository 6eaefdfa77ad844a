/* test_types.c -- element types: which one results, and conversions between them. */
#include "support.h"
#include <math.h>

#define SHAPE TERN_SHAPE

static bool has_f64(const char *device)
{
    tern_device_info info = {0};
    assert_ok(tern_device_get_info(device, &info));
    return info.has_f64;
}

/* ---- promotion --------------------------------------------------------------------------- */

/* In the order of the enum: f32 f64 f16 bf16 i32 i64 u8 bool, as torch.promote_types and, for a
 * tensor of the row's type with a 0-dim one of the column's, torch.result_type. */
static const int promoted[8][8] = {
    {1, 2, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2, 2, 2}, {1, 2, 3, 1, 3, 3, 3, 3},
    {1, 2, 1, 4, 4, 4, 4, 4}, {1, 2, 3, 4, 5, 6, 5, 5}, {1, 2, 3, 4, 6, 6, 6, 6},
    {1, 2, 3, 4, 5, 6, 7, 7}, {1, 2, 3, 4, 5, 6, 7, 8},
};
static const int with_scalar[8][8] = {
    {1, 1, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2, 2, 2}, {3, 3, 3, 3, 3, 3, 3, 3},
    {4, 4, 4, 4, 4, 4, 4, 4}, {1, 2, 3, 4, 5, 5, 5, 5}, {1, 2, 3, 4, 6, 6, 6, 6},
    {1, 2, 3, 4, 7, 7, 7, 7}, {1, 2, 3, 4, 5, 6, 7, 8},
};
/* With a bool, an integer, a real number. */
static const int with_number[8][3] = {
    {1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}, {5, 5, 1}, {6, 6, 1}, {7, 7, 1}, {8, 6, 1},
};

static void every_pair_of_types_promotes_as_in_pytorch(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++)
            TERN_SCOPE {
                tern_dtype x_type = (tern_dtype)(a + 1), y_type = (tern_dtype)(b + 1);
                assert_int_equal(tern_promote_types(x_type, y_type), promoted[a][b]);
                if (!has_f64(device) && (x_type == TERN_F64 || y_type == TERN_F64))
                    continue;
                tern_tensor *x = tern_ones(SHAPE(2), x_type, device);
                tern_tensor *x0 = tern_ones(TERN_SHAPE_SCALAR, x_type, device);
                tern_tensor *y = tern_ones(SHAPE(1), y_type, device);
                tern_tensor *y0 = tern_ones(TERN_SHAPE_SCALAR, y_type, device);
                assert_int_equal(tern_dtype_of(tern_mul(x, y)), promoted[a][b]);
                assert_int_equal(tern_dtype_of(tern_mul(x0, y0)), promoted[a][b]);
                assert_int_equal(tern_dtype_of(tern_mul(x, y0)), with_scalar[a][b]);
                assert_int_equal(tern_dtype_of(tern_mul(y0, x)), with_scalar[a][b]);
            }
}

static void numbers_promote_as_in_pytorch(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int a = 0; a < 8; a++)
        for (int dims = 0; dims < 2; dims++)
            TERN_SCOPE {
                tern_dtype type = (tern_dtype)(a + 1);
                if (!has_f64(device) && type == TERN_F64)
                    continue;
                tern_tensor *x = tern_ones(dims ? SHAPE(2) : TERN_SHAPE_SCALAR, type, device);
                tern_tensor *with_bool = tern_mul_scalar(x, TERN_SCALAR((bool)1));
                assert_int_equal(tern_dtype_of(with_bool), with_number[a][0]);
                tern_tensor *with_int = tern_mul_scalar(x, TERN_SCALAR(2));
                assert_int_equal(tern_dtype_of(with_int), with_number[a][1]);
                tern_tensor *with_real = tern_mul_scalar(x, TERN_SCALAR(0.5));
                assert_int_equal(tern_dtype_of(with_real), with_number[a][2]);
            }
}

static void unknown_types_have_no_name_and_no_size(void **state)
{
    (void)state;
    for (int t = -1; t < 19; t++) {
        bool known = t >= TERN_F32 && t <= TERN_F8_E5M2;
        assert_true((strcmp(tern_dtype_name((tern_dtype)t), "?") != 0) == known);
        assert_true((tern_dtype_size((tern_dtype)t) != 0) == known);
        assert_int_equal(tern_dtype_is_floating_point((tern_dtype)t),
                         (t >= TERN_F32 && t <= TERN_BF16) ||
                             (t >= TERN_F8_E4M3FN && t <= TERN_F8_E5M2));
    }
    assert_int_equal(tern_promote_types(TERN_F32, (tern_dtype)0), TERN_DTYPE_DEFAULT);
}

/* ---- converting -------------------------------------------------------------------------- */

enum { CORNERS = 15 };
static const double corners[CORNERS] = {NAN,   INFINITY, -INFINITY,    1e20,         -1e20,
                                        300,   -1,       2.9,          -2.9,         0.5,
                                        255.5, -0.0,     2147483648.0, 4294967296.0, 1e10};
#define I32_MIN -2147483648.0
#define I64_MIN -9223372036854775808.0
/* What PyTorch on x86 makes of them. */
static const double as_i32[CORNERS] = {I32_MIN, I32_MIN, I32_MIN, I32_MIN, I32_MIN,
                                       300,     -1,      2,       -2,      0,
                                       255,     0,       I32_MIN, I32_MIN, I32_MIN};
static const double as_i64[CORNERS] = {
    I64_MIN, I64_MIN, I64_MIN, I64_MIN, I64_MIN,      300,          -1,  2,
    -2,      0,       255,     0,       2147483648.0, 4294967296.0, 1e10};
static const double as_u8[CORNERS] = {0, 0, 0, 0, 0, 44, 255, 2, 254, 0, 255, 0, 0, 0, 0};
static const double as_bool[CORNERS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1};

static void reals_become_integers_as_in_pytorch(void **state)
{
    (void)state;
    static const struct {
        tern_dtype to;
        const double *values;
    } wanted[] = {{TERN_I32, as_i32}, {TERN_I64, as_i64}, {TERN_U8, as_u8}, {TERN_BOOL, as_bool}};
    FOR_EACH_DEVICE(device)
    for (int from = TERN_F32; from <= TERN_F16; from++)
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            TERN_SCOPE {
                if (from == TERN_F64 && !has_f64(device))
                    continue;
                /* the last three are infinite in float16 */
                tern_shape shape = SHAPE(from == TERN_F16 ? CORNERS - 3 : CORNERS);
                tern_tensor *x = test_tensor(device, (tern_dtype)from, shape, corners);
                tern_tensor *y = tern_to_dtype(x, wanted[i].to);
                assert_same(y, test_tensor(device, wanted[i].to, shape, wanted[i].values));
                if (from == TERN_F64)
                    continue;
                tern_tensor *strided = tern_narrow(x, 0, 1, 11);
                strided = tern_slice(strided, 0, 0, TERN_SLICE_END, 2);
                tern_tensor *z = tern_slice(tern_narrow(y, 0, 1, 11), 0, 0, TERN_SLICE_END, 2);
                assert_same(tern_to_dtype(strided, wanted[i].to), tern_contiguous(z));
            }
}

static void integers_become_narrower_ones_and_reals(void **state)
{
    (void)state;
    const int64_t values[6] = {300, -1, (INT64_C(1) << 40) + 5, INT64_MIN, 16777217, 0};
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_from_data(values, SHAPE(6), TERN_I64, device);
        assert_values(tern_to_dtype(x, TERN_I32), 300, -1, 5, 0, 16777217, 0);
        assert_values(tern_to_dtype(x, TERN_U8), 44, 255, 5, 0, 1, 0);
        assert_values(tern_to_dtype(x, TERN_BOOL), 1, 1, 1, 1, 1, 0);
        assert_values(tern_to_dtype(x, TERN_F32), 300, -1, 1099511627776.0, I64_MIN, 16777216, 0);
        assert_values(tern_to_dtype(x, TERN_F16), 300, -1, INFINITY, -INFINITY, INFINITY, 0);
        assert_values(tern_to_dtype(x, TERN_BF16), 300, -1, 1099511627776.0, I64_MIN, 16777216, 0);
        int64_t back[6];
        assert_ok(tern_copy_to_host(tern_to(x, "cpu"), back, sizeof back));
        assert_memory_equal(back, values, sizeof back);
    }
}

static void conversion_is_differentiable_in_the_source_type(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_F32, SHAPE(2), 1, 2);
        tern_requires_grad_(x, true);
        tern_tensor *h = tern_to_dtype(x, TERN_F16);
        assert_ok(tern_backward(tern_sum(tern_to_dtype(tern_mul(h, h), TERN_F32))));
        assert_int_equal(tern_dtype_of(tern_grad(x)), TERN_F32);
        assert_values(tern_grad(x), 2, 4);
        assert_false(tern_requires_grad(tern_to_dtype(x, TERN_I64)));
    }
}

static void a_bias_of_another_type_is_refused_whatever_its_dims(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 3), TERN_F32, device);
        for (int ndim = 1; ndim < 3; ndim++) {
            const tern_shape shape = {ndim, {3, 3}};
            assert_null(tern_linear(x, x, tern_ones(shape, TERN_F16, device)));
            assert_error(TERN_ERR_DTYPE, "must have the same dtype, but got float32 and float16");
        }
    }
}

static const struct CMUnitTest tests[] = {
    TEST(every_pair_of_types_promotes_as_in_pytorch),
    TEST(numbers_promote_as_in_pytorch),
    TEST(a_bias_of_another_type_is_refused_whatever_its_dims),
    TEST(unknown_types_have_no_name_and_no_size),
    TEST(reals_become_integers_as_in_pytorch),
    TEST(integers_become_narrower_ones_and_reals),
    TEST(conversion_is_differentiable_in_the_source_type),
};

TEST_MAIN(tests)
