/* test_rare_layers.c -- fractional pools and the adaptive softmax against PyTorch's. */
#include "pattern.h"
#include "support.h"
#include <stdio.h>

static tern_tensor *golden(test_golden *file, const char *row, const char *part, tern_dtype dtype,
                           const char *device)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", row, part);
    return tern_to(tern_to_dtype(test_golden_tensor(file, name, "cpu"), dtype), device);
}

/* ---- fractional pools ---------------------------------------------------------------------- */

static const struct pool_row {
    const char *name;
    tern_shape shape, window;
    tern_fractional_max_pool_options options;
} pools[] = {
    {"pool2", {4, {2, 3, 7, 9}}, {2, {2, 3}}, {.output_size = {2, {4, 5}}}},
    {"pool2_alone", {3, {3, 8, 6}}, {1, {3}}, {.output_ratio = {0.5, 0.4}}},
    {"pool2_one", {4, {1, 2, 5, 5}}, {1, {2}}, {.output_size = {2, {1, 4}}}},
    {"pool3", {5, {2, 2, 5, 6, 7}}, {3, {2, 1, 3}}, {.output_size = {3, {3, 4, 2}}}},
};
enum { POOLS = sizeof pools / sizeof *pools };

static tern_module *module_of(const struct pool_row *row, const tern_fractional_max_pool_options *o)
{
    return strncmp(row->name, "pool3", 5) == 0 ? tern_nn_fractional_max_pool3d(row->window, o)
                                               : tern_nn_fractional_max_pool2d(row->window, o);
}

static void fractional_pools_are_pytorch_s(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("rare_layers");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < POOLS; i++)
        TERN_SCOPE {
            const struct pool_row *row = &pools[i];
            tern_fractional_max_pool_options o = row->options;
            o.random_samples = golden(file, row->name, ".samples", TERN_F32, device);
            tern_tensor *x =
                tern_requires_grad_(pattern(device, TERN_F32, row->shape, 37, 101), true);
            tern_tensor *y[2];
            tern_module *m = module_of(row, &o);
            assert_ok(tern_nn_call(m, &x, 1, y, 2));
            assert_same(y[0], golden(file, row->name, "", TERN_F32, device));
            assert_same(y[1], golden(file, row->name, ".places", TERN_I64, device));
            tern_tensor *weights = pattern(device, TERN_F32, tern_shape_of(y[0]), 3, 5);
            assert_ok(tern_backward(tern_sum(tern_mul(tern_nn_forward(m, x), weights))));
            assert_close(tern_grad(x), golden(file, row->name, ".dx", TERN_F32, device),
                         .abs = 1e-6);
            tern_nn_free(m);
        }
    test_golden_close(file);
}

static void fractional_windows_are_drawn_anew(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(4, 8, 9, 9), -1, 1, 1);
        tern_fractional_max_pool_options o = {.output_size = TERN_DIMS(5)};
        tern_tensor *y[3];
        for (int i = 0; i < 3; i++) {
            tern_manual_seed(i == 2 ? 0 : (uint64_t)i);
            y[i] = tern_fractional_max_pool2d(x, TERN_DIMS(2), &o);
        }
        assert_shape(y[0], 4, 8, 5, 5);
        assert_same(y[0], y[2]);
        assert_false(tern_equal(y[0], y[1]));
        tern_tensor *half = tern_to_dtype(x, TERN_F16), *whole = tern_to_dtype(half, TERN_F32);
        o.random_samples = tern_rand(TERN_SHAPE(4, 8, 2), TERN_F16, device);
        y[0] = tern_fractional_max_pool2d(half, TERN_DIMS(2), &o);
        o.random_samples = tern_to_dtype(o.random_samples, TERN_F32);
        y[1] = tern_fractional_max_pool2d(whole, TERN_DIMS(2), &o);
        assert_same(tern_to_dtype(y[0], TERN_F32), y[1]);
    }
}

static tern_tensor *pool_of(tern_tensor *const *in, void *user)
{
    return tern_fractional_max_pool2d(in[0], TERN_DIMS(2), user);
}

static void fractional_pools_have_second_gradients_and_refuse_what_does_not_fit(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_fractional_max_pool_options o = {.output_size = TERN_DIMS(3, 4)};
        o.random_samples = TENSOR(device, TERN_F64, TERN_SHAPE(1, 2, 2), 0.1, 0.9, 0.5, 0.3);
        tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(1, 2, 5, 6), -1, 1, 4);
        gradcheck(pool_of, (tern_tensor *[]){tern_requires_grad_(x, true)}, 1, .user = &o,
                  .second = true);
        tern_tensor *first = tern_fractional_max_pool2d(x, TERN_DIMS(2), &o);
        o.random_samples =
            TENSOR(device, TERN_F64, TERN_SHAPE(2, 2, 2), 0.1, 0.9, 0.5, 0.3, 0, 0, 0, 0);
        assert_same(tern_fractional_max_pool2d(x, TERN_DIMS(2), &o), first);
        assert_same(tern_fractional_max_pool2d(tern_squeeze_dim(x, 0), TERN_DIMS(2), &o),
                    tern_squeeze_dim(first, 0));
        tern_tensor *y = test_uniform(device, TERN_F32, TERN_SHAPE(2, 5, 5), -1, 1, 4);
        assert_null(tern_fractional_max_pool2d(y, TERN_DIMS(2), NULL));
        assert_error(TERN_ERR_ARGUMENT,
                     "requires specifying either an output_size or an output_ratio");
        tern_fractional_max_pool_options large = {.output_size = TERN_DIMS(5, 2)};
        assert_null(tern_fractional_max_pool2d(y, TERN_DIMS(2), &large));
        assert_error(TERN_ERR_ARGUMENT, "pool height 2 too large relative to input height 5");
        o.random_samples = tern_zeros(TERN_SHAPE(1, 2, 2), TERN_F32, device);
        assert_null(tern_fractional_max_pool2d(tern_to_dtype(y, TERN_F64), TERN_DIMS(2), &o));
        assert_error(TERN_ERR_DTYPE, "expected scalar type float64 but found float32");
        o.random_samples = tern_zeros(TERN_SHAPE(1, 1, 2), TERN_F32, device);
        assert_null(tern_fractional_max_pool2d(y, TERN_DIMS(2), &o));
        assert_error(TERN_ERR_SHAPE, "Expect _random_samples");
        assert_null(tern_fractional_max_pool2d(tern_zeros(TERN_SHAPE(1, 2, 0, 5), TERN_F32, device),
                                               TERN_DIMS(2), &o));
        assert_error(TERN_ERR_SHAPE, "but got [1, 2, 0, 5] with dimension 2 being empty.");
        assert_null(tern_nn_fractional_max_pool3d(TERN_DIMS(2), NULL));
        assert_error(TERN_ERR_ARGUMENT, "requires specifying either an output size, or a pooling");
        large.output_ratio[0] = 0.5;
        assert_null(tern_nn_fractional_max_pool2d(TERN_DIMS(2), &large));
        assert_error(TERN_ERR_ARGUMENT, "only one of output_size and output_ratio may be");
        large = (tern_fractional_max_pool_options){.output_ratio = {0.5, 1.5}};
        assert_null(tern_nn_fractional_max_pool2d(TERN_DIMS(2), &large));
        assert_error(TERN_ERR_ARGUMENT, "output_ratio must be between 0 and 1");
    }
}

/* ---- adaptive softmax ---------------------------------------------------------------------- */

typedef struct run {
    test_golden *file;
    const char *device;
    int parameters, with_gradient;
} run;

static tern_status fill(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    const run *r = user;
    tern_tensor *values = pattern(r->device, TERN_F32, tern_shape_of(x), 5, 9);
    return tern_set_data_(x, tern_div_scalar(values, TERN_SCALAR(4))) ? TERN_OK
                                                                      : tern_last_status();
}

static tern_status compare(const char *path, tern_tensor *x, void *user)
{
    run *r = user;
    char name[64];
    snprintf(name, sizeof name, "softmax.%s", path);
    r->parameters++;
    if (!tern_grad(x))
        return TERN_OK;
    r->with_gradient++;
    assert_close(tern_grad(x), golden(r->file, name, "", TERN_F32, r->device), .abs = 1e-5);
    return TERN_OK;
}

static tern_module *adaptive(const char *device)
{
    return tern_nn_adaptive_log_softmax_with_loss(
        6, 20, TERN_DIMS(4, 9, 15),
        &(tern_adaptive_log_softmax_with_loss_options){
            .div_value = 1.5, .head_bias = true, .device = device});
}

static void the_adaptive_softmax_is_pytorch_s(void **state)
{
    (void)state;
    run r = {.file = test_golden_open("rare_layers")};
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = adaptive(device);
        r.device = device;
        r.parameters = r.with_gradient = 0;
        assert_ok(tern_nn_each_parameter(m, fill, &r));
        tern_tensor *x = pattern(device, TERN_F32, TERN_SHAPE(7, 6), 7, 31);
        tern_tensor *target = TENSOR(device, TERN_I64, TERN_SHAPE(7), 0, 19, 5, 3, 15, 8, 4);
        tern_tensor *in[] = {tern_requires_grad_(x, true), target}, *out[2];
        assert_ok(tern_nn_call(m, in, 2, out, 2));
        assert_close(out[0], golden(r.file, "softmax", "", TERN_F32, device), .abs = 1e-5);
        assert_close(out[1], golden(r.file, "softmax", ".loss", TERN_F32, device), .abs = 1e-5);
        assert_ok(tern_backward(tern_nn_loss(m, x, target)));
        assert_close(tern_grad(x), golden(r.file, "softmax", ".dx", TERN_F32, device), .abs = 1e-5);
        assert_ok(tern_nn_each_parameter(m, compare, &r));
        assert_int_equal(r.parameters, 8);
        assert_int_equal(r.with_gradient, 6); /* no target is in the second cluster */
        assert_close(tern_nn_adaptive_log_softmax_log_prob(m, x),
                     golden(r.file, "softmax", ".log_prob", TERN_F32, device), .abs = 1e-5);
        assert_same(tern_nn_adaptive_log_softmax_predict(m, x),
                    golden(r.file, "softmax", ".predict", TERN_I64, device));
        tern_tensor *one[] = {tern_select(x, 0, 1), tern_select(target, 0, 1)};
        assert_ok(tern_nn_call(m, one, 2, out, 2));
        assert_int_equal(tern_dim(out[0]), 0);
        tern_nn_free(m);
    }
    test_golden_close(r.file);
}

static void the_adaptive_softmax_prints_and_refuses_as_in_pytorch(void **state)
{
    (void)state;
    tern_module *m = adaptive("cpu");
    char *text = tern_nn_to_text(m);
    assert_string_equal(text, "AdaptiveLogSoftmaxWithLoss(\n"
                              "  (head): Linear(in_features=6, out_features=7, bias=True)\n"
                              "  (tail): ModuleList(\n"
                              "    (0): Sequential(\n"
                              "      (0): Linear(in_features=6, out_features=4, bias=False)\n"
                              "      (1): Linear(in_features=4, out_features=5, bias=False)\n"
                              "    )\n"
                              "    (1): Sequential(\n"
                              "      (0): Linear(in_features=6, out_features=2, bias=False)\n"
                              "      (1): Linear(in_features=2, out_features=6, bias=False)\n"
                              "    )\n"
                              "    (2): Sequential(\n"
                              "      (0): Linear(in_features=6, out_features=1, bias=False)\n"
                              "      (1): Linear(in_features=1, out_features=5, bias=False)\n"
                              "    )\n"
                              "  )\n"
                              ")");
    tern_free_text(text);
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(TERN_SHAPE(2, 6), TERN_F32, "cpu");
        assert_null(tern_nn_loss(m, x, TENSOR("cpu", TERN_I64, TERN_SHAPE(2), 3, 20)));
        assert_error(TERN_ERR_ARGUMENT, "Target values should be in [0, 19], but values in range "
                                        "[3, 20] were found. ");
        assert_null(tern_nn_loss(m, x, TENSOR("cpu", TERN_I64, TERN_SHAPE(1), 3)));
        assert_error(TERN_ERR_SHAPE, "should have the same size in the batch dimension.");
        assert_null(tern_nn_loss(m, x, tern_tensor_scalar(TERN_SCALAR(3), TERN_I64, "cpu")));
        assert_error(TERN_ERR_SHAPE, "0D target tensor expects 1D input tensors");
        assert_null(tern_nn_adaptive_log_softmax_log_prob(tern_nn_child(m, "head"), x));
        assert_error(TERN_ERR_ARGUMENT, "Linear is no AdaptiveLogSoftmaxWithLoss");
    }
    tern_nn_free(m);
    assert_null(tern_nn_adaptive_log_softmax_with_loss(6, 20, TERN_DIMS(4, 4), NULL));
    assert_error(TERN_ERR_ARGUMENT, "cutoffs should be a sequence of unique, positive integers");
    assert_null(tern_nn_adaptive_log_softmax_with_loss(6, 20, TERN_DIMS(4, 20), NULL));
    assert_error(TERN_ERR_ARGUMENT, "each value is between 1 and n_classes-1");
}

static const struct CMUnitTest tests[] = {
    TEST(fractional_pools_are_pytorch_s),
    TEST(fractional_windows_are_drawn_anew),
    TEST(fractional_pools_have_second_gradients_and_refuse_what_does_not_fit),
    TEST(the_adaptive_softmax_is_pytorch_s),
    TEST(the_adaptive_softmax_prints_and_refuses_as_in_pytorch),
};
TEST_MAIN(tests)
