/* test_norm_group.c -- norms of groups, instances, rows and channels, and parameters made of
 * others: PyTorch's numbers, gradients, modules. */
#include "support.h"
#include <math.h>
#include <stdio.h>

/* The golden tensor "<name><suffix>" is x. */
static void golden(test_golden *file, const char *name, const char *suffix, const tern_tensor *x)
{
    test_golden_compare(file, name, suffix, x, 1e-11);
}

/* ---- functions: in {x, w, b} (x alone: no_affine) ------------------------------------------ */

static tern_tensor *group(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_group_norm(in[0], 2, in[1], in[2], 1e-3);
}
static tern_tensor *group_plain(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_group_norm(in[0], 4, NULL, NULL, 1e-5);
}
static tern_tensor *instance(tern_tensor *const *in, void *user)
{
    tern_tensor *const *running = user;
    return tern_instance_norm(in[0], running[0], running[1], in[1], in[2], true, 0.3, 1e-3);
}
static tern_tensor *instance_plain(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_instance_norm(in[0], NULL, NULL, NULL, NULL, true, 0.1, 1e-5);
}
static tern_tensor *instance_eval(tern_tensor *const *in, void *user)
{
    tern_tensor *const *running = user;
    return tern_instance_norm(in[0], running[0], running[1], in[1], in[2], false, 0.1, 1e-5);
}
static tern_tensor *response(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_local_response_norm(in[0], 3, 0.5, 0.6, 2);
}
static tern_tensor *response_even(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_local_response_norm(in[0], 2, 1e-4, 0.75, 1);
}
static tern_tensor *normalize2(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_normalize(in[0], 2, -1, 1e-12);
}
static tern_tensor *normalize1(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_normalize(in[0], 1, -1, 1e-12);
}
static tern_tensor *normalize3(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_normalize(in[0], 3, -1, 1e-12);
}

static const struct {
    const char *name;
    test_function function;
    int inputs;
} norms[] = {
    {"group", group, 3},
    {"instance", instance, 3},
    {"response", response, 1},
    {"group.plain", group_plain, 1}, /* and the rest: other sizes of the same kernels */
    {"instance.plain", instance_plain, 1},
    {"instance.eval", instance_eval, 3},
    {"response.even", response_even, 1},
    {"normalize2", normalize2, 1},
    {"normalize1", normalize1, 1},
    {"normalize3", normalize3, 1},
};
enum { NORMS = sizeof norms / sizeof *norms, FEW_NORMS = 3 };

static void norms_are_pytorch_s(void **state)
{
    (void)state;
    static const char *const inputs[] = {"x", "w", "b"}, *const slopes[] = {".dx", ".dw", ".db"};
    test_golden *file = test_golden_open("norm_group");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < (test_thorough(device) ? NORMS : FEW_NORMS); i++)
        TERN_SCOPE {
            tern_tensor *in[3], *running[] = {test_golden_tensor(file, "mean", device),
                                              test_golden_tensor(file, "var", device)};
            for (int k = 0; k < 3; k++)
                in[k] = tern_requires_grad_(test_golden_tensor(file, inputs[k], device), true);
            tern_tensor *y = norms[i].function(in, running);
            golden(file, norms[i].name, "", y);
            assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
            for (int k = 0; k < norms[i].inputs; k++)
                golden(file, norms[i].name, slopes[k], tern_grad(in[k]));
            if (norms[i].function == instance) {
                golden(file, "instance", ".mean", running[0]);
                golden(file, "instance", ".var", running[1]);
            }
        }
    test_golden_close(file);
}

/* ---- RMS norm, by its formula -------------------------------------------------------------- */

static tern_tensor *rms_formula(tern_tensor *x, tern_tensor *w, double eps)
{
    tern_tensor *mean = tern_mean_dim(tern_square(x), TERN_DIMS(-1), true);
    tern_tensor *y = tern_mul(x, tern_rsqrt(tern_add_scalar(mean, tern_scalar_real(eps))));
    return w ? tern_mul(y, w) : y;
}
static tern_tensor *rms(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_rms_norm(in[0], TERN_SHAPE(5), in[1], 0.1);
}

static void rms_norm_is_its_formula(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F64, TERN_F32, TERN_F16, TERN_BF16};
    static const double bounds[] = {1e-13, 1e-5, 5e-3, 4e-2};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < (test_thorough(device) ? 4 : 1); i++)
        for (int eps = test_thorough(device) ? -1 : 1; eps <= 1; eps++)
            TERN_SCOPE {
                tern_tensor *x = test_uniform(device, dtypes[i], TERN_SHAPE(7, 33), -2, 2, 1);
                tern_tensor *w = test_uniform(device, dtypes[i], TERN_SHAPE(33), 0.5, 2, 2);
                tern_tensor *slopes[2][2], *y[2];
                for (int wide = 0; wide < 2; wide++) {
                    tern_tensor *in[] = {wide ? tern_to_dtype(x, TERN_F64) : x,
                                         wide ? tern_to_dtype(w, TERN_F64) : w};
                    for (int k = 0; k < 2; k++)
                        in[k] = tern_requires_grad_(tern_clone(tern_detach(in[k])), true);
                    y[wide] = wide ? rms_formula(in[0], in[1], eps < 0 ? 0 : eps)
                                   : tern_rms_norm(in[0], TERN_SHAPE(33), in[1], eps);
                    assert_ok(
                        tern_backward(tern_sum(tern_square(tern_to_dtype(y[wide], TERN_F64)))));
                    for (int k = 0; k < 2; k++)
                        slopes[wide][k] = tern_grad(in[k]);
                }
                double bound = bounds[i];
                assert_int_equal(tern_dtype_of(y[0]), dtypes[i]);
                if (eps < 0 && dtypes[i] != TERN_F64)
                    continue; /* the type's own epsilon is far from the formula's 0 */
                assert_close(tern_to_dtype(y[0], TERN_F64), y[1], .abs = bound, .rel = bound);
                for (int k = 0; k < 2; k++)
                    assert_close(tern_to_dtype(slopes[0][k], TERN_F64), slopes[1][k],
                                 .abs = 30 * bound, .rel = bound);
            }
}

static void an_rms_norm_of_zeros_has_the_type_s_epsilon(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        /* mean x^2 = 2^-23 = eps: x / sqrt(2 eps) = sqrt(1/2) */
        double v = sqrt(0x1p-23);
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(1, 2), v, -v);
        assert_values_close(tern_rms_norm(x, TERN_SHAPE(2), NULL, -1), 1e-6, sqrt(0.5), -sqrt(0.5));
        tern_tensor *none = tern_zeros(TERN_SHAPE(0, 2), TERN_F32, device);
        assert_shape(tern_rms_norm(none, TERN_SHAPE(2), NULL, 1e-5), 0, 2);
    }
}

/* ---- gradients ------------------------------------------------------------------------------ */

static void gradients_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        for (int i = 0; i < NORMS && test_thorough(device); i++)
            TERN_SCOPE {
                tern_tensor *in[] = {test_uniform(device, TERN_F64, TERN_SHAPE(1, 4, 3), 0.5, 2, 5),
                                     test_uniform(device, TERN_F64, TERN_SHAPE(4), 0.5, 2, 6),
                                     test_uniform(device, TERN_F64, TERN_SHAPE(4), -1, 1, 7)};
                tern_tensor *none[] = {NULL, NULL};
                tern_tensor *running[] = {test_uniform(device, TERN_F64, TERN_SHAPE(4), -1, 1, 8),
                                          test_uniform(device, TERN_F64, TERN_SHAPE(4), 0.5, 2, 9)};
                for (int k = 0; k < norms[i].inputs; k++)
                    tern_requires_grad_(in[k], true);
                gradcheck(norms[i].function, in, 3,
                          .user = norms[i].function == instance_eval ? running : none,
                          .second = true);
            }
        TERN_SCOPE {
            tern_tensor *in[] = {test_uniform(device, TERN_F64, TERN_SHAPE(2, 5), -2, 2, 5),
                                 test_uniform(device, TERN_F64, TERN_SHAPE(5), 0.5, 2, 6)};
            for (int k = 0; k < 2; k++)
                tern_requires_grad_(in[k], true);
            gradcheck(rms, in, 2, .second = true);
        }
    }
}

static void nothing_in_is_nothing_out(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(TERN_SHAPE(0, 4, 3), TERN_F32, device);
        tern_tensor *four = tern_ones(TERN_SHAPE(4), TERN_F32, device);
        assert_shape(tern_group_norm(x, 2, four, four, 1e-5), 0, 4, 3);
        assert_shape(tern_instance_norm(x, four, four, four, four, true, 0.1, 1e-5), 0, 4, 3);
        assert_values(four, 1, 1, 1, 1);
        assert_shape(tern_local_response_norm(x, 2, 1, 1, 1), 0, 4, 3);
    }
}

/* ---- modules -------------------------------------------------------------------------------- */

static void modules_print_as_in_pytorch(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(
        tern_nn_group_norm(2, 4, NULL),
        tern_nn_group_norm(3, 6, &(tern_group_norm_options){.eps = 0.5, .no_affine = true}),
        tern_nn_instance_norm1d(3, NULL),
        tern_nn_instance_norm2d(
            3, &(tern_instance_norm_options){.affine = true, .momentum = 0.5, .no_bias = true}),
        tern_nn_instance_norm3d(3, &(tern_instance_norm_options){.track_running_stats = true}),
        tern_nn_local_response_norm(2, NULL),
        tern_nn_local_response_norm(5, &(tern_local_response_norm_options){.alpha = 1, .k = 2.5}),
        tern_nn_rms_norm(TERN_SHAPE(8), NULL),
        tern_nn_rms_norm(TERN_SHAPE(2, 8),
                         &(tern_rms_norm_options){.eps = 1e-6, .no_elementwise_affine = true}));
    char *text = tern_nn_to_text(m);
    assert_string_equal(text, "Sequential(\n"
                              "  (0): GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)\n"
                              "  (1): GroupNorm(3, 6, eps=0.5, affine=False, bias=False)\n"
                              "  (2): InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=False, "
                              "bias=False, track_running_stats=False)\n"
                              "  (3): InstanceNorm2d(3, eps=1e-05, momentum=0.5, affine=True, "
                              "bias=False, track_running_stats=False)\n"
                              "  (4): InstanceNorm3d(3, eps=1e-05, momentum=0.1, affine=False, "
                              "bias=False, track_running_stats=True)\n"
                              "  (5): LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)\n"
                              "  (6): LocalResponseNorm(5, alpha=1.0, beta=0.75, k=2.5)\n"
                              "  (7): RMSNorm((8,), eps=None, elementwise_affine=True)\n"
                              "  (8): RMSNorm((2, 8), eps=1e-06, elementwise_affine=False)\n"
                              ")");
    tern_free_text(text);
    tern_nn_free(m);
}

static void running_statistics_are_written_both_or_not_at_all(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 3, 4), -1, 1, 1);
        tern_tensor *mean = tern_zeros(TERN_SHAPE(3), TERN_F32, device);
        tern_tensor *var = test_expand(tern_ones(TERN_SHAPE(1), TERN_F32, device), TERN_SHAPE(3));
        assert_null(tern_instance_norm(x, mean, var, NULL, NULL, true, 0.1, 1e-5));
        assert_error(TERN_ERR_ARGUMENT, "refers to a single memory location");
        assert_values(mean, 0, 0, 0);
        assert_null(tern_batch_norm(x, mean, var, NULL, NULL, true, 0.1, 1e-5));
        assert_error(TERN_ERR_ARGUMENT, "refers to a single memory location");
        assert_values(mean, 0, 0, 0);
    }
}

static void instance_norm_modules_keep_running_statistics(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_instance_norm1d(
            1, &(tern_instance_norm_options){.track_running_stats = true, .device = device});
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 1, 2), 1, 3, 10, 30);
        assert_values_close(tern_nn_forward(m, x), 1e-4, -1, 1, -1, 1);
        assert_values_close(tern_nn_buffer(m, "running_mean"), 1e-5, 0.1 * 11);
        assert_values_close(tern_nn_buffer(m, "running_var"), 1e-5, 0.9 + 0.1 * 101);
        /* Without a batch, and by the running statistics. */
        tern_tensor *one = TENSOR(device, TERN_F32, TERN_SHAPE(1, 2), 1.1, 1.1 + sqrt(11));
        assert_values_close(tern_nn_forward(tern_nn_eval(m), one), 1e-5, 0, 1);
        assert_shape(tern_nn_forward(m, one), 1, 2);
        tern_nn_free(m);
    }
}

static void modules_compute_what_functions_do(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 4, 6), -2, 2, 3);
        tern_module *group = tern_nn_group_norm(2, 4, &(tern_group_norm_options){.device = device});
        tern_module *rms =
            tern_nn_rms_norm(TERN_SHAPE(6), &(tern_rms_norm_options){.device = device});
        tern_module *response = tern_nn_local_response_norm(
            2, &(tern_local_response_norm_options){.k = TERN_ZERO, .alpha = 1});
        assert_int_equal(tern_nn_numel(group), 8);
        assert_int_equal(tern_nn_numel(rms), 6);
        assert_same(tern_nn_forward(group, x), tern_group_norm(x, 2, NULL, NULL, 1e-5));
        assert_close(tern_nn_forward(rms, x), tern_rms_norm(x, TERN_SHAPE(6), NULL, -1), .ulp = 1);
        assert_same(tern_nn_forward(response, x), tern_local_response_norm(x, 2, 1, 0.75, 0));
        tern_nn_free(group);
        tern_nn_free(rms);
        tern_nn_free(response);
    }
}

/* ---- parameters made of others -------------------------------------------------------------- */

static tern_status append(const char *path, tern_tensor *x, void *user)
{
    char *names = user;
    (void)x;
    strcat(strcat(names, " "), path);
    return TERN_OK;
}

static void weight_norm_is_pytorch_s(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int dim;
    } rows[] = {{"weight0", 0}, {"weight1", 1}, {"weightNone", -1}};
    test_golden *file = test_golden_open("norm_group");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < (test_thorough(device) ? 3 : 1); i++)
        TERN_SCOPE {
            char w_name[32];
            snprintf(w_name, sizeof w_name, "%s.w", rows[i].name);
            tern_tensor *w = test_golden_tensor(file, w_name, device);
            tern_module *m = tern_nn_linear(
                4, 3, &(tern_linear_options){.no_bias = true, .dtype = TERN_F64, .device = device});
            tern_set_data_(tern_nn_parameter(m, "weight"), w);
            assert_ptr_equal(tern_nn_weight_norm(m, NULL, rows[i].dim), m);
            char names[64] = "";
            assert_ok(tern_nn_each_parameter(m, append, names));
            assert_string_equal(names, " weight_g weight_v");
            tern_tensor *g = tern_nn_parameter(m, "weight_g");
            TERN_NO_GRAD
                tern_mul_scalar_(g, TERN_SCALAR(1.5));
            tern_tensor *x = tern_transpose(test_golden_tensor(file, "x", device), 1, 3);
            for (int pass = 0; pass < 2; pass++) { /* twice: the history is the last forward's */
                tern_nn_zero_grad(m);
                tern_tensor *y = tern_nn_forward(m, x);
                assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
            }
            golden(file, rows[i].name, ".dg", tern_grad(g));
            golden(file, rows[i].name, ".dv", tern_grad(tern_nn_parameter(m, "weight_v")));
            tern_tensor *expected =
                tern_mul_scalar(test_golden_tensor(file, w_name, device), TERN_SCALAR(1.5));
            assert_close(tern_nn_parameter(m, "weight"), expected, .rel = 1e-12);
            assert_ptr_equal(tern_nn_remove_weight_norm(m, "weight"), m);
            tern_tensor *weight = tern_nn_parameter(m, "weight");
            assert_close(weight, expected, .rel = 1e-12);
            assert_true(tern_is_leaf(weight) && tern_requires_grad(weight));
            assert_int_equal(tern_nn_parameter_count(m), 1);
            tern_nn_free(m);
        }
    test_golden_close(file);
}

static tern_tensor *own_weight(tern_module *m, tern_tensor *x)
{
    (void)x;
    return tern_nn_parameter(m, "weight");
}

static void spectral_norm_is_pytorch_s(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("norm_group");
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_module("Filter", own_weight, NULL);
        tern_nn_add_parameter(m, "weight", test_golden_tensor(file, "spectral.w", device));
        tern_nn_spectral_norm(m, "weight", &(tern_spectral_norm_options){.n_power_iterations = 2});
        tern_set_data_(tern_nn_buffer(m, "weight_u"),
                       test_golden_tensor(file, "spectral.u", device));
        tern_set_data_(tern_nn_buffer(m, "weight_v"),
                       test_golden_tensor(file, "spectral.v", device));
        tern_tensor *out = NULL; /* a forward that fails is no iteration */
        tern_nn_call(m, NULL, 0, &out, 1);
        assert_error(TERN_ERR_ARGUMENT, "takes one tensor and gives one, not 0 and 1");
        tern_tensor *w = tern_nn_forward(m, tern_nn_parameter(m, "weight_orig"));
        golden(file, "spectral", "", w);
        golden(file, "spectral", ".u2", tern_nn_buffer(m, "weight_u"));
        assert_ok(tern_backward(tern_sum(tern_mul(w, test_golden_weight(w)))));
        golden(file, "spectral", ".dw", tern_grad(tern_nn_parameter(m, "weight_orig")));
        tern_nn_remove_spectral_norm(m, NULL);
        golden(file, "spectral", ".eval", tern_nn_parameter(m, "weight"));
        assert_int_equal(tern_nn_parameter_count(m), 1);
        tern_nn_free(m);
    }
    test_golden_close(file);
}

static void weight_norm_works_on_recurrent_networks(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_lstm(3, 4, NULL);
        tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(5, 2, 3), -1, 1, 1);
        tern_tensor *before = tern_nn_forward(m, x);
        assert_non_null(tern_nn_weight_norm(m, "weight_hh_l0", 0));
        assert_close(tern_nn_forward(m, x), before, .abs = 1e-6, .rel = 1e-5);
        assert_non_null(tern_nn_remove_weight_norm(m, "weight_hh_l0"));
        assert_close(tern_nn_forward(m, x), before, .abs = 1e-6, .rel = 1e-5);
        tern_nn_free(m);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(1, 4, 1), TERN_F32, "cpu");
    tern_tensor *three = tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu");
    tern_tensor *whole = tern_zeros(TERN_SHAPE(2, 4, 2), TERN_I64, "cpu");
    assert_null(tern_group_norm(x, 3, NULL, NULL, 1e-5));
    assert_error(TERN_ERR_SHAPE, "divisible by num_groups, but got input of shape [1, 4, 1] and "
                                 "num_groups=3");
    assert_null(tern_group_norm(x, 2, three, NULL, 1e-5));
    assert_error(TERN_ERR_SHAPE, "Expected weight to be a vector of size equal to the number of "
                                 "channels in input, but got weight of shape [3]");
    assert_null(tern_group_norm(whole, 2, NULL, NULL, 1e-5));
    assert_error(TERN_ERR_DTYPE, "not implemented for int64");
    assert_null(tern_instance_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5));
    assert_error(TERN_ERR_SHAPE, "Expected more than 1 spatial element when training, got input "
                                 "size [1, 4, 1]");
    assert_null(tern_instance_norm(x, NULL, NULL, NULL, NULL, false, 0.1, 1e-5));
    assert_error(TERN_ERR_ARGUMENT, "Expected running_mean and running_var to be defined");
    assert_null(tern_local_response_norm(three, 2, 1, 1, 1));
    assert_error(TERN_ERR_SHAPE, "Expected 3D or higher dimensionality input (got 1 dimensions)");
    assert_null(tern_local_response_norm(x, 0, 1, 1, 1));
    assert_error(TERN_ERR_ARGUMENT, "size");
    assert_null(tern_rms_norm(x, TERN_SHAPE(3), NULL, 1e-5));
    assert_error(TERN_ERR_SHAPE, "tern_rms_norm: Given normalized_shape=[3], expected input");
    assert_null(tern_normalize(NULL, 2, 1, 1e-12));
    assert_error(TERN_ERR_ARGUMENT, "NULL");
    assert_null(tern_nn_group_norm(3, 4, NULL));
    assert_error(TERN_ERR_ARGUMENT, "num_channels must be divisible by num_groups");

    tern_module *m = tern_nn_linear(2, 2, NULL);
    assert_null(tern_nn_weight_norm(m, NULL, 2));
    assert_error(TERN_ERR_ARGUMENT, "Dimension out of range: dim 2 of parameter 'weight'");
    assert_null(tern_nn_remove_weight_norm(m, NULL));
    assert_error(TERN_ERR_ARGUMENT, "there is none of 'weight' in Linear");
    assert_non_null(tern_nn_weight_norm(m, NULL, 0));
    assert_null(tern_nn_spectral_norm(m, NULL, NULL));
    assert_error(TERN_ERR_STATE, "Cannot register two hooks on the same parameter weight");
    tern_nn_free(m);
}

static const struct CMUnitTest tests[] = {
    TEST(norms_are_pytorch_s),
    TEST(rms_norm_is_its_formula),
    TEST(an_rms_norm_of_zeros_has_the_type_s_epsilon),
    TEST(gradients_are_the_differences),
    TEST(nothing_in_is_nothing_out),
    TEST(modules_print_as_in_pytorch),
    TEST(running_statistics_are_written_both_or_not_at_all),
    TEST(instance_norm_modules_keep_running_statistics),
    TEST(modules_compute_what_functions_do),
    TEST(weight_norm_is_pytorch_s),
    TEST(spectral_norm_is_pytorch_s),
    TEST(weight_norm_works_on_recurrent_networks),
    TEST(what_does_not_fit_is_refused),
};
TEST_MAIN(tests)
