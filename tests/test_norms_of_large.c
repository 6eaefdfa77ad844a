/* test_norms_of_large.c -- norms of float32 numbers whose squares are beyond the type, or vanish: what float64 gives, and
 * gradients likewise; rows beside them, ordinary, of NaN and of infinity, are as ever. */
#include "support.h"
#include <math.h>

static tern_tensor *layer_norm(tern_tensor *x)
{
    return tern_layer_norm(x, TERN_SHAPE(tern_size(x, -1)), NULL, NULL, 1e-5);
}
static tern_tensor *layer_norm_sure(tern_tensor *x)
{
    return tern_layer_norm(x, TERN_SHAPE(tern_size(x, -1)), NULL, NULL, 0);
}
static tern_tensor *rms_norm(tern_tensor *x)
{
    return tern_rms_norm(x, TERN_SHAPE(tern_size(x, -1)), NULL, 1e-5);
}
static tern_tensor *rms_norm_sure(tern_tensor *x)
{
    return tern_rms_norm(x, TERN_SHAPE(tern_size(x, -1)), NULL, 0);
}
static tern_tensor *group_norm(tern_tensor *x)
{
    return tern_group_norm(tern_unsqueeze(x, 1), 1, NULL, NULL, 1e-5);
}
static tern_tensor *instance_norm(tern_tensor *x)
{
    return tern_instance_norm(tern_unsqueeze(x, 0), NULL, NULL, NULL, NULL, true, 0.1, 1e-5);
}
static tern_tensor *batch_norm(tern_tensor *x)
{
    return tern_batch_norm(tern_t(x), NULL, NULL, NULL, NULL, true, 0.1, 1e-5);
}
static tern_tensor *batch_norm_lines(tern_tensor *x)
{
    return tern_batch_norm(tern_unsqueeze(x, 0), NULL, NULL, NULL, NULL, true, 0.1, 1e-5);
}
static tern_tensor *normalize(tern_tensor *x)
{
    return tern_normalize(x, 2, -1, 1e-12);
}
static tern_tensor *norm(tern_tensor *x)
{
    return tern_norm_dim(x, 2, TERN_DIMS(-1), false);
}
static tern_tensor *norm_down(tern_tensor *x)
{
    return tern_norm_dim(tern_t(x), 2, TERN_DIMS(0), true);
}
static tern_tensor *vector_norm(tern_tensor *x)
{
    return tern_linalg_vector_norm(x, 2, TERN_DIMS(1), false);
}
static tern_tensor *distance(tern_tensor *x)
{
    return tern_cdist(tern_unsqueeze(x, 1), tern_zeros_like(tern_unsqueeze(x, 1)), 2);
}

#define NORM_OF_ORDER(NAME, P)                                                                     \
    static tern_tensor *NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        return tern_norm_dim(x, P, TERN_DIMS(-1), false);                                          \
    }
NORM_OF_ORDER(norm_of_order_3, 3)
NORM_OF_ORDER(norm_of_order_1_5, 1.5)
NORM_OF_ORDER(norm_of_order_5, 5)
NORM_OF_ORDER(norm_of_order_minus_2, -2)
NORM_OF_ORDER(norm_of_order_minus_5, -5)
static tern_tensor *distance_of_order_3(tern_tensor *x)
{
    return tern_cdist(tern_unsqueeze(x, 1), tern_zeros_like(tern_unsqueeze(x, 1)), 3);
}
static tern_tensor *pairwise(tern_tensor *x)
{
    return tern_pairwise_distance(x, tern_neg(x), 2, 1e-6, false);
}
static tern_tensor *one_distance(tern_tensor *x)
{
    return tern_dist(x, tern_neg(x), 2);
}
static tern_tensor *frobenius(tern_tensor *x)
{
    return tern_linalg_matrix_norm(x, TERN_MATRIX_NORM_FRO, TERN_DIMS(0, 1), false);
}
static tern_tensor *renorm(tern_tensor *x)
{
    return tern_renorm(x, 2, 0, 1);
}
static tern_tensor *normalize_3(tern_tensor *x)
{
    return tern_normalize(x, 3, -1, 1e-12);
}
static tern_tensor *deviation(tern_tensor *x)
{
    return tern_std_dim(x, TERN_DIMS(-1), 1, false);
}
static tern_tensor *deviation_down(tern_tensor *x)
{
    return tern_std_dim(tern_t(x), TERN_DIMS(0), 0, true);
}
static tern_tensor *cosine(tern_tensor *x)
{
    return tern_cosine_similarity(x, tern_roll(x, TERN_DIMS(1), TERN_DIMS(1)), 1, 1e-8);
}
static tern_tensor *weight_norm(tern_tensor *x)
{
    return tern_weight_norm(x, tern_ones_like(tern_narrow(x, 1, 0, 1)), 0);
}

static const struct {
    const char *name;
    tern_tensor *(*f)(tern_tensor *x);
    bool small;      /* of numbers whose squares vanish, too */
    bool normalises; /* results are about 1, and not of the numbers' own size */
} functions[] = {{"layer_norm", layer_norm, false, true},
                 {"layer_norm eps 0", layer_norm_sure, true, true},
                 {"rms_norm", rms_norm, false, true},
                 {"rms_norm eps 0", rms_norm_sure, true, true},
                 {"group_norm", group_norm, false, true},
                 {"instance_norm", instance_norm, false, true},
                 {"batch_norm of rows", batch_norm, false, true},
                 {"batch_norm of lines", batch_norm_lines, false, true},
                 {"normalize", normalize, false, true},
                 {"norm", norm, true, false},
                 {"norm down columns", norm_down, true, false},
                 {"vector_norm", vector_norm, true, false},
                 {"cdist", distance, true, false},
                 {"norm of order 3", norm_of_order_3, true, false},
                 {"norm of order 1.5", norm_of_order_1_5, true, false},
                 {"norm of order 5", norm_of_order_5, true, false},
                 {"norm of order -2", norm_of_order_minus_2, true, false},
                 {"cdist of order 3", distance_of_order_3, true, false},
                 {"pairwise_distance", pairwise, false, false},
                 {"dist", one_distance, false, false},
                 {"matrix_norm", frobenius, false, false},
                 {"renorm", renorm, false, true},
                 {"normalize of order 3", normalize_3, false, true},
                 {"std", deviation, true, false},
                 {"std down columns", deviation_down, true, false},
                 {"cosine_similarity", cosine, false, true},
                 {"weight_norm", weight_norm, true, true}};

/* Rows: one of the size, then ordinary ones. */
static tern_tensor *rows_of(const char *device, double size, int64_t n)
{
    tern_tensor *x = test_uniform("cpu", TERN_F64, TERN_SHAPE(3, n), -2, 2, 5);
    tern_tensor *scale = TENSOR("cpu", TERN_F64, TERN_SHAPE(3, 1), size, 1, size);
    return tern_to(tern_to_dtype(tern_mul(x, scale), TERN_F32), device);
}

static void compare_with(const char *name, tern_tensor *(*f)(tern_tensor *), bool normalises,
                         tern_tensor *x, tern_tensor *got)
{
    tern_tensor *want = f(tern_to_dtype(tern_to(x, "cpu"), TERN_F64));
    if (!got)
        fail_msg("%s: %s", name, tern_last_error());
    tern_tensor *difference = tern_sub(tern_to_dtype(tern_to(got, "cpu"), TERN_F64), want);
    tern_tensor *size = tern_abs(want);
    /* A normalised number next to 0 is the difference of two that are nearly equal: it is compared with those about 1. */
    if (normalises)
        size = tern_clamp_min_scalar(size, TERN_SCALAR(0.01));
    tern_tensor *off = tern_max(tern_abs(tern_div(difference, size)));
    if (!(tern_item(off) < 2e-4))
        fail_msg("%s: off by %g of float64's value", name, tern_item(off));
}

static void compare(const char *name, tern_tensor *(*f)(tern_tensor *), bool normalises,
                    tern_tensor *x)
{
    compare_with(name, f, normalises, x, f(x));
}

static void norms_of_large_numbers_are_those_of_float64(void **state)
{
    (void)state;
    static const double sizes[] = {1e30, 1e20, 1e36};
    static const int64_t lengths[] = {4, 7, 100, 1000, 5000};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int s = 0; s < (test_thorough(device) ? 3 : 1); s++)
            for (int k = 0; k < 5; k++)
                TERN_SCOPE
                    compare(functions[i].name, functions[i].f, functions[i].normalises,
                            rows_of(device, sizes[s], lengths[k]));
}

static void norms_of_small_numbers_are_those_of_float64(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int64_t n = 4; functions[i].small && n < 2000; n *= 19)
            TERN_SCOPE
                compare(functions[i].name, functions[i].f, functions[i].normalises,
                        rows_of(device, 1e-30, n));
}

/* A power of each order is that of the largest, or smallest, and no other's of the row. */
static void norms_of_numbers_of_unlike_sizes_are_those_of_float64(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(3, 3), 1e36, -1e16, 3e17, -1e-30, 1,
                                2e-30, 1e15, -1e7, 2e7);
        compare("order 2", norm, false, x);
        compare("order 3", norm_of_order_3, false, x);
        compare("order -2", norm_of_order_minus_2, false, x);
        compare("order -5", norm_of_order_minus_5, false, x);
    }
}

/* Deviations of a ten-thousandth of the mean: what is rounded in scaling shows in them. */
static void deviations_from_large_and_small_means_are_those_of_float64(void **state)
{
    (void)state;
    static const double sizes[] = {1e36, 1e30, 1e-10, 1e-20, 1e-30};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t n = 5; n < 10000; n *= 31)
            TERN_SCOPE {
                tern_tensor *x = test_uniform("cpu", TERN_F64, TERN_SHAPE(2, n), -1e-4, 1e-4, 7);
                x = tern_mul_scalar(tern_add_scalar(x, TERN_SCALAR(1)), TERN_SCALAR(sizes[i]));
                x = tern_to(tern_to_dtype(x, TERN_F32), device);
                compare("std", deviation, false, x);
                compare("std down columns", deviation_down, false, x);
            }
}

/* The gradient of a sum of weighted results, against float64's. */
static tern_tensor *gradient(tern_tensor *(*f)(tern_tensor *), tern_tensor *x)
{
    x = tern_requires_grad_(tern_clone(x), true);
    tern_tensor *y = f(x), *g = NULL;
    tern_tensor *w =
        tern_reshape(tern_arange(1, (double)tern_numel(y) + 1, 1, tern_dtype_of(y), tern_device(y)),
                     tern_shape_of(y));
    tern_tensor *sum = tern_sum(tern_mul(y, w));
    assert_ok(tern_autograd_grad(&sum, 1, &x, 1, &g, NULL));
    return tern_to_dtype(tern_to(g, "cpu"), TERN_F64);
}

static void gradients_of_large_numbers_are_those_of_float64(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].f !=
            norm_of_order_minus_2) /* whose powers are 0 and infinite, as PyTorch's */
            TERN_SCOPE {
                tern_tensor *x = rows_of(device, 1e20, 6);
                tern_tensor *got = gradient(functions[i].f, x);
                tern_tensor *want =
                    gradient(functions[i].f, tern_to_dtype(tern_to(x, "cpu"), TERN_F64));
                /* each row beside its own largest */
                tern_tensor *most = tern_amax(tern_abs(want), TERN_DIMS(-1), true);
                double off = tern_item(tern_max(tern_abs(tern_div(tern_sub(got, want), most))));
                if (!(off < 1e-3))
                    fail_msg("%s: the gradient is off by %g of float64's", functions[i].name, off);
            }
}

/* The same in a recording: what is told there from values on the host has no say. */
static tern_tensor *recorded(tern_tensor *(*f)(tern_tensor *), tern_tensor *x)
{
    tern_graph *graph = tern_graph_new(tern_device(x));
    tern_tensor *got = NULL;
    TERN_CAPTURE (graph)
        got = f(x);
    assert_ok(tern_graph_replay(graph));
    tern_graph_free(graph);
    return got;
}

static void recorded_norms_are_those_of_float64(void **state)
{
    (void)state;
    static const double sizes[] = {1e30, 1, 1e-30};
    static const int64_t lengths[] = {7, 1000};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int s = 0; s < (functions[i].small ? 3 : 2); s++)
            for (int k = 0; k < 2; k++)
                TERN_SCOPE {
                    tern_tensor *x = rows_of(device, sizes[s], lengths[k]);
                    compare_with(functions[i].name, functions[i].f, functions[i].normalises, x,
                                 recorded(functions[i].f, x));
                }
}

typedef struct clipping {
    tern_module *m;
    tern_tensor *weight, *bias;
} clipping;

/* Gradients of a size, ones beside them. */
static clipping gradients_of(const char *device, tern_dtype dtype, double size)
{
    clipping c = {.m = tern_nn_to_dtype(tern_nn_to(tern_nn_linear(400, 300, NULL), device), dtype)};
    c.weight = tern_nn_parameter(c.m, "weight");
    c.bias = tern_nn_parameter(c.m, "bias");
    assert_ok(tern_set_grad(c.weight, tern_full_like(c.weight, TERN_SCALAR(size))));
    assert_ok(tern_set_grad(c.bias, tern_full_like(c.bias, TERN_SCALAR(size < 1 ? 0 : 1))));
    return c;
}

/* Gradients whose squares are beyond the type, or vanish, are scaled to the norm that is asked for, recorded too. */
static void clipped(const char *device, tern_dtype dtype, double size, double p, bool records)
{
    tern_clip_grad_norm_options o = {.norm_type = p};
    clipping c = gradients_of(device, dtype, size);
    const double ones = size < 1 ? 0 : 300 * pow(size, -p);
    const double norm = isinf(p) ? size : size * pow(120000 + ones, 1 / p),
                 limit = norm > 2 ? 2 : norm / 4;
    tern_graph *graph = records ? tern_graph_new(device) : NULL;
    double got = norm;
    if (records) {
        TERN_CAPTURE (graph)
            tern_nn_clip_grad_norm_with_(c.m, limit, &o);
        assert_ok(tern_graph_replay(graph));
    } else {
        got = tern_nn_clip_grad_norm_with_(c.m, limit, &o);
    }
    const double off = dtype == TERN_BF16 ? 0.01 : 1e-4;
    if (!(fabs(got / norm - 1) < off))
        fail_msg("%s of %g, order %g: the norm is %g, not %g", tern_dtype_name(dtype), size, p, got,
                 norm);
    /* 1e-6 is added to the norm, as in PyTorch */
    const double want = size * limit / (norm + 1e-6);
    const double first =
        tern_item(tern_select(tern_flatten(tern_detach(tern_grad(c.weight)), 0, -1), 0, 77));
    if (!(fabs(first - want) <= off * want))
        fail_msg("%s of %g, order %g%s: a gradient is %g, not %g", tern_dtype_name(dtype), size, p,
                 records ? ", recorded" : "", first, want);
    tern_graph_free(graph);
    tern_nn_free(c.m);
}

static void gradients_of_large_and_small_numbers_are_clipped_by_their_norm(void **state)
{
    (void)state;
    static const double orders[] = {2, 3, INFINITY};
    static const struct {
        tern_dtype dtype;
        double size;
    } rows[] = {{TERN_F32, 1e30},  {TERN_F32, 1},     {TERN_F32, 1e-12}, {TERN_BF16, 1e30},
                {TERN_F64, 1e200}, {TERN_F64, 1e-20}, {TERN_F64, 1e30}};
    FOR_EACH_DEVICE(device)
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; i < 3; i++)
            for (int records = 0; records < 2; records++)
                TERN_SCOPE
                    clipped(device, rows[r].dtype, rows[r].size, orders[i], records != 0);
}

/* Gradients of zeros, and those whose squares are small, need no launch more than others. */
static void clipping_launches_as_much_whatever_the_gradients_are(void **state)
{
    (void)state;
    static const double sizes[] = {1, 0, 1e-20, 1e30};
    FOR_EACH_DEVICE(device)
    {
        uint64_t first = 0;
        for (int i = 0; i < 4; i++)
            TERN_SCOPE {
                clipping c = gradients_of(device, TERN_F32, sizes[i]);
                const uint64_t before = launches(device);
                tern_nn_clip_grad_norm_(c.m, INFINITY);
                const uint64_t now = launches(device) - before;
                first = i ? first : now;
                if (now != first)
                    fail_msg("gradients of %g: %d launches, and %d of gradients of 1", sizes[i],
                             (int)now, (int)first);
                tern_nn_free(c.m);
            }
    }
}

static void what_is_infinite_or_nan_stays_so(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x =
            TENSOR(device, TERN_F32, TERN_SHAPE(4, 2), NAN, 1e30, INFINITY, 1, 0, 0, 3, 4);
        assert_values(norm(x), NAN, INFINITY, 0, 5);
        assert_values(rms_norm_sure(tern_narrow(x, 0, 0, 1)), NAN, NAN);
        assert_values(tern_isnan(rms_norm(tern_narrow(x, 0, 1, 1))), 1, 0);
        assert_values(layer_norm(tern_narrow(x, 0, 2, 1)), 0, 0);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(norms_of_large_numbers_are_those_of_float64),
    TEST(norms_of_small_numbers_are_those_of_float64),
    TEST(norms_of_numbers_of_unlike_sizes_are_those_of_float64),
    TEST(deviations_from_large_and_small_means_are_those_of_float64),
    TEST(gradients_of_large_numbers_are_those_of_float64),
    TEST(recorded_norms_are_those_of_float64),
    TEST(gradients_of_large_and_small_numbers_are_clipped_by_their_norm),
    TEST(clipping_launches_as_much_whatever_the_gradients_are),
    TEST(what_is_infinite_or_nan_stays_so)};
TEST_MAIN(tests)
