/* test_default_dtype.c -- what none was given for has the default dtype, which a program chooses. */
#include "support.h"
#include <string.h>

/* Each gives a tensor whose dtype is the default one. */
#define REALS(X)                                                                                   \
    X(tern_empty(shape, 0, device))                                                                \
    X(tern_zeros(shape, 0, device))                                                                \
    X(tern_ones(shape, 0, device))                                                                 \
    X(tern_full(shape, tern_scalar_real(1), 0, device))                                            \
    X(tern_tensor_scalar(tern_scalar_real(1), 0, device))                                          \
    X(tern_rand(shape, 0, device))                                                                 \
    X(tern_randn(shape, 0, device))                                                                \
    X(tern_eye(2, 2, 0, device))                                                                   \
    X(tern_linspace(0, 1, 3, 0, device))                                                           \
    X(tern_arange(0, 1, 0.5, 0, device))                                                           \
    X(tern_hann_window(4, true, 0, device))                                                        \
    X(tern_fft_fftfreq(4, 1, 0, device))                                                           \
    X(tern_sinusoidal_table(2, 4, 0, device))                                                      \
    X(tern_sin(whole))                                                                             \
    X(tern_div(whole, whole))                                                                      \
    X(tern_add_scalar(whole, tern_scalar_real(0.5)))                                               \
    X(tern_clamp(whole, 0.5, 2))                                                                   \
    X(tern_where_scalar(mask, whole, tern_scalar_real(0.5)))                                       \
    X(tern_where_scalars(mask, tern_scalar_real(1), tern_scalar_real(2)))                          \
    X(tern_nn_parameter(module, "weight"))

/* Those that it does not change. */
#define OTHERS(X)                                                                                  \
    X(TERN_I64, tern_full(shape, tern_scalar_int(1), 0, device))                                   \
    X(TERN_BOOL, tern_full(shape, tern_scalar_bool(true), 0, device))                              \
    X(TERN_F16, tern_add_scalar(half, tern_scalar_real(0.5)))                                      \
    X(TERN_F32, tern_add_scalar(single, tern_scalar_real(0.5)))                                    \
    X(TERN_I64, tern_add_scalar(whole, tern_scalar_int(1)))                                        \
    X(TERN_F32, tern_from_data((const void *)numbers, TERN_SHAPE(2), 0, device))                   \
    X(TERN_F32, tern_zeros(shape, TERN_F32, device))

static void expect(tern_tensor *x, tern_dtype dtype, const char *what)
{
    if (!x)
        fail_msg("%s: %s", what, tern_last_error());
    if (tern_dtype_of(x) != dtype)
        fail_msg("%s is %s instead of %s", what, tern_dtype_name(tern_dtype_of(x)),
                 tern_dtype_name(dtype));
}

static void what_has_no_dtype_has_the_default_one(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F64, TERN_F32, TERN_BF16, TERN_F16};
    static const float numbers[] = {1, 2};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++) {
        tern_device_info info = {0};
        assert_ok(tern_device_get_info(device, &info));
        bool is_cpu = strcmp(device, "cpu") == 0; /* compiles nothing */
        if ((dtypes[i] == TERN_F64 && !info.has_f64) || (i > 0 && !is_cpu))
            continue;
        TERN_SCOPE {
            tern_shape shape = TERN_SHAPE(2, 2);
            tern_tensor *whole = tern_full(shape, tern_scalar_int(1), TERN_I64, device);
            tern_tensor *mask = tern_ones(shape, TERN_BOOL, device);
            tern_tensor *half = tern_ones(shape, TERN_F16, device);
            tern_tensor *single = tern_ones(shape, TERN_F32, device);
            assert_ok(tern_set_default_dtype(dtypes[i]));
            assert_int_equal(tern_get_default_dtype(), dtypes[i]);
            tern_module *module = tern_nn_linear(2, 3, &(tern_linear_options){.device = device});
            assert_non_null(module);
#define CHECK(CALL) expect(CALL, dtypes[i], #CALL);
            REALS(CHECK)
#undef CHECK
#define CHECK(DTYPE, CALL) expect(CALL, DTYPE, #CALL);
            OTHERS(CHECK)
#undef CHECK
            tern_nn_free(module);
        }
    }
    assert_ok(tern_set_default_dtype(TERN_F32));
}

static void integers_are_refused(void **state)
{
    (void)state;
    static const tern_dtype wrong[] = {TERN_I64, TERN_BOOL, TERN_DTYPE_DEFAULT, (tern_dtype)77};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tern_set_default_dtype(wrong[i]), TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "only floating-point types are supported as the default type");
        assert_int_equal(tern_get_default_dtype(), TERN_F32);
    }
}

/* ---- result types ---------------------------------------------------------------------------- */

/* PyTorch's, of x (2) and y without dims. */
static void tensors_without_dims_count_by_their_kind(void **state)
{
    (void)state;
    static const struct {
        tern_dtype x, y, common;
    } rows[] = {
        {TERN_F32, TERN_F64, TERN_F32},  {TERN_F16, TERN_F32, TERN_F16},
        {TERN_I32, TERN_I64, TERN_I32},  {TERN_U8, TERN_I64, TERN_U8},
        {TERN_I64, TERN_F16, TERN_F16},  {TERN_BOOL, TERN_I32, TERN_I32},
        {TERN_BOOL, TERN_F64, TERN_F64}, {TERN_F16, TERN_BF16, TERN_F16},
        {TERN_F32, TERN_I64, TERN_F32},  {TERN_I32, TERN_BOOL, TERN_I32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(2), rows[i].x, "cpu");
            tern_tensor *y = tern_ones(TERN_SHAPE_SCALAR, rows[i].y, "cpu");
            tern_tensor *mask = tern_ones(TERN_SHAPE(2), TERN_BOOL, "cpu");
            assert_int_equal(tern_result_type(x, y), rows[i].common);
            assert_int_equal(tern_result_type(y, x), rows[i].common);
            expect(tern_where(mask, x, y), rows[i].common, "where");
            expect(tern_maximum(x, y), rows[i].common, "maximum");
        }
    assert_int_equal(tern_result_type(NULL, NULL), TERN_DTYPE_DEFAULT);
    assert_error(TERN_ERR_ARGUMENT, "tern_result_type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_has_no_dtype_has_the_default_one),
        TEST(integers_are_refused),
        TEST(tensors_without_dims_count_by_their_kind),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
