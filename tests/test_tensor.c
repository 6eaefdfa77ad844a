/* test_tensor.c -- making tensors, asking them, owning them. */
#include "support.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

#define SHAPE TERN_SHAPE
#define REFUSED(call, status, words)                                                               \
    do {                                                                                           \
        assert_null(call);                                                                         \
        assert_error(status, words);                                                               \
    } while (0)

static bool has_f64(const char *device)
{
    tern_device_info info = {0};
    assert_ok(tern_device_get_info(device, &info));
    return info.has_f64;
}

/* ---- making ------------------------------------------------------------------------------ */

static void default_types_follow_the_values(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        const struct {
            tern_tensor *x;
            tern_dtype dtype;
        } made[] = {
            {tern_empty(SHAPE(2), TERN_DTYPE_DEFAULT, device), TERN_F32},
            {tern_zeros(SHAPE(2), TERN_DTYPE_DEFAULT, device), TERN_F32},
            {tern_ones(SHAPE(2), TERN_DTYPE_DEFAULT, device), TERN_F32},
            {tern_full(SHAPE(2), TERN_SCALAR(1), TERN_DTYPE_DEFAULT, device), TERN_I64},
            {tern_full(SHAPE(2), TERN_SCALAR(1.0), TERN_DTYPE_DEFAULT, device), TERN_F32},
            {tern_full(SHAPE(2), TERN_SCALAR((bool)1), TERN_DTYPE_DEFAULT, device), TERN_BOOL},
            {tern_tensor_scalar(TERN_SCALAR(1), TERN_DTYPE_DEFAULT, device), TERN_I64},
            {tern_arange(0, 3, 1, TERN_DTYPE_DEFAULT, device), TERN_I64},
            {tern_arange(0, 3, 0.5, TERN_DTYPE_DEFAULT, device), TERN_F32},
            {tern_linspace(0, 3, 4, TERN_DTYPE_DEFAULT, device), TERN_F32},
            {tern_eye(2, 2, TERN_DTYPE_DEFAULT, device), TERN_F32},
            {tern_from_data((float[]){1, 2}, SHAPE(2), TERN_DTYPE_DEFAULT, device), TERN_F32},
        };
        for (size_t i = 0; i < sizeof made / sizeof *made; i++)
            assert_int_equal(tern_dtype_of(made[i].x), made[i].dtype);
    }
}

static void made_tensors_hold_their_values_in_every_type(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int t = TERN_F32; t <= TERN_F8_E5M2; t++)
        TERN_SCOPE {
            tern_dtype dtype = (tern_dtype)t;
            if (dtype == TERN_F64 && !has_f64(device))
                continue;
            assert_values(tern_zeros(SHAPE(3), dtype, device), 0, 0, 0);
            assert_values(tern_ones(SHAPE(3), dtype, device), 1, 1, 1);
            assert_values(tern_full(SHAPE(2), TERN_SCALAR((bool)1), dtype, device), 1, 1);
            assert_values(tern_eye(2, 3, dtype, device), 1, 0, 0, 0, 1, 0);
            assert_values(tern_eye(3, 2, dtype, device), 1, 0, 0, 1, 0, 0);
            tern_tensor *x = tern_ones(SHAPE(2), dtype, device);
            assert_int_equal(tern_dtype_of(tern_zeros_like(x)), dtype);
            assert_values(tern_full_like(x, TERN_SCALAR(1)), 1, 1);
            assert_values(tern_new_zeros(x, SHAPE(1)), 0);
            assert_shape(tern_new_empty(x, SHAPE(0, 4)), 0, 4);
            assert_values(tern_new_ones(x, TERN_SHAPE_SCALAR), 1);
            assert_values(tern_new_full(x, SHAPE(1, 1), TERN_SCALAR(1.0)), 1);
            if (dtype == TERN_BOOL)
                continue;
            assert_values(tern_full(SHAPE(2), TERN_SCALAR(7.0), dtype, device), 7, 7);
            assert_values(tern_arange(1, 7, 2, dtype, device), 1, 3, 5);
            assert_values(tern_linspace(0, 9, 4, dtype, device), 0, 3, 6, 9);
        }
}

static void sequences_end_where_pytorchs_do(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        assert_values(tern_arange(5, 0, -2, TERN_I64, device), 5, 3, 1);
        assert_shape(tern_arange(3, 3, 1, TERN_I64, device), 0);
        assert_values(tern_arange(0.5, 3, 1, TERN_I64, device), 0, 1, 2);
        assert_values(tern_arange(0.5, 3.9, 1.5, TERN_I64, device), 0, 1, 2);
        assert_values(tern_arange(0.5, 3.9, 1.5, TERN_I32, device), 0, 1, 2);
        assert_shape(tern_arange(1, 2, 0.1, TERN_F32, device), 10);
        assert_values_close(tern_arange(0, 3, 0.7, TERN_F32, device), 1e-6, 0, 0.7, 1.4, 2.1, 2.8);
        assert_values(tern_arange(9007199254740990, 9007199254740992, 1, TERN_I64, device),
                      9007199254740990, 9007199254740991);
        tern_device_info info = {0};
        assert_ok(tern_device_get_info(device, &info));
        if (info.largest_allocation == 0 || info.largest_allocation > 4 * 16777219) {
            tern_tensor *far = tern_arange(0, 16777219, 1, TERN_F32, device);
            assert_values(tern_narrow(far, 0, -2, 2), 16777216, 16777218);
        }
        assert_values(tern_linspace(1, 0, 1, TERN_F32, device), 1);
        assert_shape(tern_linspace(1, 0, 0, TERN_F32, device), 0);
        assert_values(tern_linspace(0, 1, 5, TERN_F32, device), 0, 0.25, 0.5, 0.75, 1);
        assert_values(tern_linspace(0, 10, 4, TERN_I64, device), 0, 3, 6, 10);
        assert_values(tern_linspace(-5, 2, 6, TERN_I32, device), -5, -3, -2, 0, 0, 2);
        assert_values(tern_linspace(5, -2, 6, TERN_I32, device), 5, 3, 2, 0, 0, -2);
    }
    REFUSED(tern_arange(0, 1, 0, TERN_F32, "cpu"), TERN_ERR_ARGUMENT, "step must be nonzero");
    REFUSED(tern_arange(0, 5, -1, TERN_F32, "cpu"), TERN_ERR_ARGUMENT,
            "upper bound and larger bound inconsistent with step sign");
    REFUSED(tern_arange(0, (double)NAN, 1, TERN_F32, "cpu"), TERN_ERR_ARGUMENT,
            "unsupported range: 0 -> nan");
    REFUSED(tern_arange(0, 3, 0.5, TERN_I64, "cpu"), TERN_ERR_ARGUMENT, "step must be nonzero");
    REFUSED(tern_linspace(0, 1, -1, TERN_F32, "cpu"), TERN_ERR_ARGUMENT,
            "number of steps must be non-negative");
    REFUSED(tern_eye(-1, 2, TERN_F32, "cpu"), TERN_ERR_SHAPE,
            "n must be greater or equal to 0, got -1");
}

/* Few that the host knows may be written from there, and many be a kernel's: with the same bits, nothing beside them touched,
 * and anew in each replay. */
static void few_numbers_are_made_as_many_are(void **state)
{
    (void)state;
    const tern_scalar values[] = {TERN_SCALAR(0.1), TERN_SCALAR(-0.0),
                                  TERN_SCALAR(9007199254740993), TERN_SCALAR(-1e-42),
                                  tern_scalar_real(-INFINITY)};
    const int64_t counts[] = {1, 511, 512, 513};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < 4 * sizeof values / sizeof *values; i++)
        TERN_SCOPE {
            int64_t n = counts[i % 4];
            tern_tensor *memory[2], *y = NULL, *z = NULL;
            for (int k = 0; k < 2; k++) {
                memory[k] = tern_neg(tern_ones(SHAPE(n + 4), TERN_F32, k ? "cpu" : device));
                assert_non_null(tern_fill_(tern_narrow(memory[k], 0, 3, n), values[i / 4]));
            }
            assert_same(memory[0], memory[1]);
            assert_same(tern_arange(-3e18, -3e18 + 4096.0 * (double)n, 4096, TERN_I64, device),
                        tern_arange(-3e18, -3e18 + 4096.0 * (double)n, 4096, TERN_I64, "cpu"));
            tern_graph *graph = tern_graph_new(device);
            TERN_CAPTURE (graph) {
                y = tern_add_(tern_ones(SHAPE(n), TERN_F32, device),
                              tern_narrow(memory[0], 0, 0, n));
                z = tern_arange(0, (double)n, 1, TERN_I64, device);
                tern_add_(z, z);
            }
            for (int k = 0; k < 2; k++)
                assert_ok(tern_graph_replay(graph));
            assert_values(tern_narrow(y, 0, 0, 1), 0);
            assert_values(tern_narrow(z, 0, n - 1, 1), (double)(2 * n - 2));
            tern_graph_free(graph);
        }
}

static void bad_makings_are_refused(void **state)
{
    (void)state;
    tern_shape wild = {.ndim = 13};
    REFUSED(tern_zeros(wild, TERN_F32, "cpu"), TERN_ERR_SHAPE, "tern_zeros");
    wild.ndim = -1;
    REFUSED(tern_from_data("", wild, TERN_F32, "cpu"), TERN_ERR_SHAPE, "tern_from_data");
    REFUSED(tern_zeros(SHAPE(2, -3), TERN_F32, "cpu"), TERN_ERR_SHAPE,
            "Trying to create tensor with negative dimension -3: [2, -3]");
    REFUSED(tern_empty(SHAPE(2), (tern_dtype)16, "cpu"), TERN_ERR_DTYPE, "16 is not a dtype");
    REFUSED(tern_empty(SHAPE(2), (tern_dtype)-1, "cpu"), TERN_ERR_DTYPE, "-1 is not a dtype");
    REFUSED(tern_empty(SHAPE(2), TERN_F32, "gpu"), TERN_ERR_DEVICE, "tern_empty");
    REFUSED(tern_from_data(NULL, SHAPE(2), TERN_F32, "cpu"), TERN_ERR_ARGUMENT, "data");
    assert_shape(tern_from_data(NULL, SHAPE(0), TERN_F32, "cpu"), 0);
    REFUSED(tern_zeros_like(NULL), TERN_ERR_ARGUMENT, "tern_zeros_like: x");
    REFUSED(tern_new_full(NULL, SHAPE(1), TERN_SCALAR(1)), TERN_ERR_ARGUMENT, "tern_new_full: x");
    REFUSED(tern_to_dtype(tern_ones(SHAPE(1), TERN_F32, "cpu"), TERN_DTYPE_DEFAULT), TERN_ERR_DTYPE,
            "0 is not a dtype");
    REFUSED(tern_to_dtype(NULL, TERN_F32), TERN_ERR_ARGUMENT, "tern_to_dtype: x");
    REFUSED(tern_to(NULL, "cpu"), TERN_ERR_ARGUMENT, "tern_to: x");
}

static const struct {
    tern_dtype dtype;
    tern_scalar value;
    bool refused;
} fills[] = {
    {TERN_U8, {TERN_SCALAR_INT, {.integer = 255}}, false},
    {TERN_U8, {TERN_SCALAR_INT, {.integer = 256}}, true},
    {TERN_U8, {TERN_SCALAR_INT, {.integer = -255}}, false},
    {TERN_U8, {TERN_SCALAR_INT, {.integer = -256}}, true},
    {TERN_U8, {TERN_SCALAR_REAL, {.real = 255.9}}, true},
    {TERN_U8, {TERN_SCALAR_REAL, {.real = -0.5}}, true},
    {TERN_I32, {TERN_SCALAR_INT, {.integer = INT32_MAX}}, false},
    {TERN_I32, {TERN_SCALAR_INT, {.integer = INT32_MIN - 1LL}}, true},
    {TERN_I32, {TERN_SCALAR_REAL, {.real = 3.7}}, false},
    {TERN_I32, {TERN_SCALAR_REAL, {.real = (double)NAN}}, true},
    {TERN_I32, {TERN_SCALAR_REAL, {.real = (double)INFINITY}}, true},
    {TERN_I64, {TERN_SCALAR_INT, {.integer = INT64_MIN}}, false},
    {TERN_I64, {TERN_SCALAR_REAL, {.real = 1e19}}, true},
    {TERN_BOOL, {TERN_SCALAR_REAL, {.real = 0.5}}, false},
    {TERN_F16, {TERN_SCALAR_INT, {.integer = 65504}}, false},
    {TERN_F16, {TERN_SCALAR_REAL, {.real = 65519}}, true},
    {TERN_F16, {TERN_SCALAR_REAL, {.real = -(double)INFINITY}}, false},
    {TERN_F32, {TERN_SCALAR_REAL, {.real = 3.41e38}}, true},
    {TERN_F32, {TERN_SCALAR_REAL, {.real = (double)FLT_MAX}}, false},
    {TERN_BF16, {TERN_SCALAR_REAL, {.real = 1e39}}, true},
};

static void fills_that_overflow_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        TERN_SCOPE {
            tern_tensor *x = tern_zeros(SHAPE(2), fills[i].dtype, device);
            tern_tensor *y = tern_fill_(x, fills[i].value);
            assert_true((y == NULL) == fills[i].refused);
            if (!y) {
                assert_error(TERN_ERR_ARGUMENT, "value cannot be converted to type");
                assert_values(x, 0, 0);
            }
        }
}

static void zero_sizes_and_no_dims(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *none = tern_zeros(SHAPE(2, 0, 3), TERN_I64, device);
        assert_int_equal(tern_numel(none), 0);
        assert_true(tern_is_contiguous(none));
        assert_ok(tern_copy_to_host(none, NULL, 0));
        assert_shape(tern_add(none, none), 2, 0, 3);
        assert_shape(tern_to_dtype(none, TERN_F32), 2, 0, 3);
        assert_shape(tern_clone(none), 2, 0, 3);
        assert_ptr_equal(tern_fill_(none, TERN_SCALAR(3)), none);
        tern_tensor *scalar = tern_tensor_scalar(TERN_SCALAR(2.5), TERN_F32, device);
        assert_int_equal(tern_dim(scalar), 0);
        assert_int_equal(tern_numel(scalar), 1);
        assert_int_equal(tern_size(scalar, -1), 1);
        assert_true(tern_item(tern_add(scalar, scalar)) == 5);
        tern_tensor *deep = tern_ones(SHAPE(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2), TERN_F32, device);
        tern_tensor *other = tern_ones(SHAPE(2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1), TERN_F32, device);
        tern_tensor *sum = tern_add(deep, other);
        assert_int_equal(tern_numel(sum), 4096);
        assert_true(tern_item(tern_sum(sum)) == 8192);
    }
}

/* ---- asking ------------------------------------------------------------------------------ */

static void one_element_tensors_have_a_value(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t big = INT64_MAX;
        tern_tensor *x = tern_from_data(&big, SHAPE(1, 1), TERN_I64, device);
        assert_true(tern_item_int(x) == INT64_MAX);
        assert_true(tern_item_int(TENSOR(device, TERN_F32, SHAPE(1), -2.75)) == -2);
        assert_true(tern_item(TENSOR(device, TERN_BOOL, SHAPE(1), 1)) == 1);
        assert_true(tern_item(TENSOR(device, TERN_F16, SHAPE(1), 0x1p-24)) == 0x1p-24);
        assert_true(tern_item(TENSOR(device, TERN_BF16, SHAPE(1), -3)) == -3);
        assert_true(isnan(tern_item(TENSOR(device, TERN_F32, SHAPE(1), NAN))));
        tern_tensor *many = TENSOR(device, TERN_F32, SHAPE(2, 2), 1, 2, 3, 4);
        assert_true(tern_item(tern_select(tern_select(many, 0, 1), 0, 0)) == 3);
        assert_true(isnan(tern_item(many)));
        assert_error(TERN_ERR_SHAPE, "only one element tensors can be converted to");
        assert_int_equal(tern_item_int(tern_zeros(SHAPE(0), TERN_F32, device)), 0);
        assert_error(TERN_ERR_SHAPE, "only one element tensors can be converted to");
        assert_true(isnan(tern_item(NULL)));
        assert_error(TERN_ERR_ARGUMENT, "tern_item: x");
    }
}

static void host_memory_is_shown_on_the_cpu_only(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_F32, SHAPE(2, 2), 1, 2, 3, 4);
        bool cpu = strcmp(device, "cpu") == 0;
        float *data = tern_data(tern_select(x, 0, 1));
        assert_true((data != NULL) == cpu);
        if (cpu) {
            assert_true(data[0] == 3);
            data[0] = 5;
            assert_values(x, 1, 2, 5, 4);
        } else {
            assert_error(TERN_ERR_DEVICE, "only cpu tensors have a host address");
        }
    }
    assert_null(tern_data(tern_zeros(SHAPE(0), TERN_F32, "cpu")));
    assert_no_error();
    REFUSED(tern_data(NULL), TERN_ERR_ARGUMENT, "tern_data: x");
}

static void copies_to_the_host_are_dense(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        float host[6] = {0};
        tern_tensor *x = TENSOR(device, TERN_F32, SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
        assert_ok(tern_copy_to_host(tern_t(x), host, sizeof host));
        assert_memory_equal(host, ((float[]){1, 4, 2, 5, 3, 6}), sizeof host);
        assert_int_equal(tern_copy_to_host(x, host, 20), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "a float32 tensor of shape [2, 3] has 24 bytes, not 20");
        assert_int_equal(tern_copy_to_host(x, NULL, 24), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "tern_copy_to_host: data");
    }
}

static void questions_about_nothing_answer_with_an_error(void **state)
{
    (void)state;
    tern_tensor *x = tern_ones(SHAPE(2, 3), TERN_F32, "cpu");
    assert_int_equal(tern_dim(NULL), -1);
    assert_error(TERN_ERR_ARGUMENT, "tern_dim: x");
    assert_int_equal(tern_numel(NULL), -1);
    assert_error(TERN_ERR_ARGUMENT, "tern_numel: x");
    assert_int_equal(tern_size(x, 2), -1);
    assert_error(TERN_ERR_ARGUMENT, "Dimension out of range (expected to be in range of [-2, 1], "
                                    "but got 2)");
    assert_int_equal(tern_stride(x, -3), -1);
    assert_error(TERN_ERR_ARGUMENT, "tern_stride");
    assert_null(tern_device(NULL));
    assert_false(tern_same_shape(NULL, x));
    assert_no_error();
}

static void versions_count_writes_through_every_view(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_zeros(SHAPE(4), TERN_F32, device), *v = tern_narrow(x, 0, 1, 2);
        assert_int_equal(tern_version(x), 0);
        tern_fill_(v, TERN_SCALAR(2));
        tern_add_(x, x);
        tern_copy_(tern_detach(v), tern_narrow(x, 0, 0, 1));
        assert_int_equal(tern_version(x), 3);
        assert_int_equal(tern_version(v), 3);
        assert_int_equal(tern_version(tern_clone(x)), 0);
        assert_values(x, 0, 0, 0, 0);
        assert_null(tern_add_(v, tern_ones(SHAPE(3), TERN_F32, device)));
        assert_error(TERN_ERR_SHAPE,
                     "The size of tensor a (2) must match the size of tensor b (3)");
        assert_int_equal(tern_version(x), 3);
    }
}

/* ---- ownership ------------------------------------------------------------------------------- */

static tern_tensor *leaves_by_return(const char *device)
{
    TERN_SCOPE {
        tern_tensor *x = tern_ones(SHAPE(2), TERN_F32, device);
        for (int i = 0; i < 10; i++)
            x = tern_add(x, x);
        return tern_escape(tern_sum(x));
    }
    return NULL;
}

static int leaves_by_goto(const char *device)
{
    TERN_SCOPE {
        TERN_SCOPE {
            tern_ones(SHAPE(2), TERN_F32, device);
            goto out;
        }
    }
    return 0;
out:
    return 1;
}

static void nothing_stays_alive(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_scope_clear();
        int64_t before = tern_live_tensors();
        tern_tensor *kept = NULL;
        TERN_SCOPE {
            tern_tensor *y = leaves_by_return(device), *pieces[5];
            assert_true(tern_item(y) == 2048);
            assert_int_equal(tern_live_tensors(), before + 1);
            assert_int_equal(leaves_by_goto(device), 1);
            assert_int_equal(tern_live_tensors(), before + 1);
            tern_tensor *a = tern_requires_grad_(tern_ones(SHAPE(5), TERN_F32, device), true);
            tern_tensor *b = tern_mul(a, a), *old = tern_narrow(b, 0, 1, 3);
            tern_exp_(tern_narrow(b, 0, 0, 2));
            assert_int_equal(tern_split(b, 1, 0, pieces, 5), 5);
            assert_ok(tern_backward(tern_sum(tern_add(old, tern_cat(pieces + 1, 3, 0)))));
            kept = tern_keep(tern_grad(a));
        }
        assert_int_equal(tern_live_tensors(), before + 1);
        tern_release(kept);
        assert_int_equal(tern_live_tensors(), before);
        tern_release(NULL);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(default_types_follow_the_values),
    TEST(made_tensors_hold_their_values_in_every_type),
    TEST(sequences_end_where_pytorchs_do),
    TEST(few_numbers_are_made_as_many_are),
    TEST(bad_makings_are_refused),
    TEST(fills_that_overflow_are_refused),
    TEST(zero_sizes_and_no_dims),
    TEST(one_element_tensors_have_a_value),
    TEST(host_memory_is_shown_on_the_cpu_only),
    TEST(copies_to_the_host_are_dense),
    TEST(questions_about_nothing_answer_with_an_error),
    TEST(versions_count_writes_through_every_view),
    TEST(nothing_stays_alive),
};

TEST_MAIN(tests)
