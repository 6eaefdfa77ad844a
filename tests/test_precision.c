/* test_precision.c -- sums of many numbers far from zero: reductions, means, variances, norms,
 * losses and their gradients in float32 and half precision, against the same in float64. */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 2, COLUMNS = 100003 };

/* One function of x (ROWS, COLUMNS) and of another tensor y of its shape. */
typedef tern_tensor *(*function)(tern_tensor *x, tern_tensor *y);

#define OF(NAME, EXPRESSION)                                                                       \
    static tern_tensor *NAME(tern_tensor *x, tern_tensor *y)                                       \
    {                                                                                              \
        (void)y;                                                                                   \
        return EXPRESSION;                                                                         \
    }
#define LAST TERN_DIMS(-1)
OF(mean, tern_mean_dim(x, LAST, false))
OF(mean_columns, tern_mean_dim(tern_t(x), TERN_DIMS(0), false))
OF(mean_all, tern_mean(x))
OF(nanmean, tern_nanmean_dim(x, LAST, false))
OF(var, tern_var_dim(x, LAST, 1, false))
OF(var_columns, tern_var_dim(tern_t(x), TERN_DIMS(0), 1, false))
OF(std, tern_std_dim(x, LAST, 1, false))
OF(norm, tern_norm_dim(x, 2, LAST, false))
OF(logsumexp, tern_logsumexp(x, LAST, false))
OF(cumsum, tern_cumsum(tern_div_scalar(x, TERN_SCALAR(COLUMNS)), 1))
OF(cumsum_columns, tern_cumsum(tern_t(tern_div_scalar(x, TERN_SCALAR(COLUMNS))), 0))
OF(logcumsumexp, tern_logcumsumexp(x, 1))
OF(softmax, tern_mul_scalar(tern_softmax(x, -1), TERN_SCALAR(1000)))
OF(layer_norm, tern_layer_norm(x, TERN_SHAPE(COLUMNS), NULL, NULL, 1e-5))
OF(rms_norm, tern_rms_norm(x, TERN_SHAPE(COLUMNS), NULL, 1e-5))
OF(group_norm, tern_group_norm(tern_unsqueeze(x, 0), 1, NULL, NULL, 1e-5))
OF(mse_loss, tern_mse_loss(x, y, NULL))
OF(l1_loss, tern_l1_loss(x, y, NULL))
OF(smooth_l1_loss, tern_smooth_l1_loss(x, y, NULL))
OF(cosine, tern_cosine_similarity(x, y, 1, 1e-8))
OF(distance, tern_pairwise_distance(x, y, 2, 1e-6, false))

/* Each with the errors of PyTorch 2.15's own result and gradient in float32, float16 and bfloat16,
 * relative to the largest element (on the cpu, of numbers drawn likewise): what the function's
 * condition and the type allow. INFINITY where PyTorch's does not fit into the type. */
static const struct {
    const char *name;
    function f;
    double peer[3][2];
} functions[] = {
    /* clang-format off */
    {"mean", mean, {{4e-8, 4e-8}, {2e-5, 1.4e-3}, {2e-5, 1.4e-3}}},
    {"mean_columns", mean_columns, {{4e-8, 4e-8}, {2e-5, 1.4e-3}, {2e-5, 1.4e-3}}},
    {"mean_all", mean_all, {{4e-8, 4e-8}, {2e-5, 1.4e-3}, {2e-5, 1.4e-3}}},
    {"nanmean", nanmean, {{4e-8, 4e-8}, {0, 0}, {5e-3, 1.4e-3}}},
    {"var", var, {{3e-8, 4e-6}, {1.8e-4, 2.1e-3}, {2.4e-3, 3.2e-3}}},
    {"var_columns", var_columns, {{3e-8, 4e-6}, {1.8e-4, 2.1e-3}, {2.4e-3, 3.2e-3}}},
    {"std", std, {{5.1e-8, 4.1e-6}, {3.6e-4, 2.4e-3}, {2.9e-3, 3.1e-3}}},
    {"norm", norm, {{9.5e-8, 1.3e-7}, {2.7e-4, 5.2e-4}, {2.7e-4, 1.5e-3}}},
    {"logsumexp", logsumexp, {{1.9e-8, 2.2e-6}, {1.3e-4, 0.015}, {1.8e-3, 0.22}}},
    {"cumsum", cumsum, {{3.8e-8, 7.8e-8}, {3.5e-4, INFINITY}, {3e-3, 5.2e-3}}},
    {"cumsum_columns", cumsum_columns, {{3.8e-8, 9.1e-8}, {3.5e-4, INFINITY}, {3e-3, 6e-3}}},
    {"logcumsumexp", logcumsumexp, {{3.4e-8, 3.1e-6}, {3.7e-4, 0.023}, {2.2e-3, 0.24}}},
    {"softmax", softmax, {{6.6e-7, 6.5e-6}, {1.3e-3, 6.2e-3}, {3.2e-3, 0.035}}},
    {"layer_norm", layer_norm, {{7e-6, 1.1e-3}, {2.8e-4, 0.031}, {2e-3, 0.06}}},
    {"rms_norm", rms_norm, {{1e-7, 1.5e-6}, {4.6e-4, 2.2e-3}, {2.8e-3, 0.017}}},
    {"group_norm", group_norm, {{2.4e-6, 5.8e-5}, {2.8e-4, 3.7e-3}, {3.7e-4, 0.015}}},
    {"mse_loss", mse_loss, {{2.3e-8, 8.4e-8}, {1e-5, 2.1e-3}, {2.1e-3, 1.4e-3}}},
    {"l1_loss", l1_loss, {{1.9e-8, 3.9e-8}, {2.5e-4, 1.4e-3}, {6.5e-4, 1.4e-3}}},
    {"smooth_l1_loss", smooth_l1_loss, {{4.1e-10, 8.4e-8}, {3.5e-4, 5.8e-3}, {7.4e-4, 1.4e-3}}},
    {"cosine_similarity", cosine, {{5e-7, 6.7e-6}, {1.7e-4, INFINITY}, {3.7e-3, 0.12}}},
    {"pairwise_distance", distance, {{3.3e-7, 2.8e-7}, {4.4e-4, 5.5e-4}, {1.2e-3, 2e-3}}}};
/* clang-format on */

/* The largest difference, as a part of the largest element of what is right. */
static double error_of(const tern_tensor *x, const tern_tensor *right)
{
    double *a = test_read(x), *b = test_read(right), error = 0, scale = 0;
    for (int64_t i = 0; i < tern_numel(right); i++) {
        double difference = fabs(a[i] - b[i]);
        error = difference <= error ? error : difference;
        scale = fmax(scale, fabs(b[i]));
    }
    free(a);
    free(b);
    return error / (scale > 0 ? scale : 1);
}

static tern_tensor *with_gradient(function f, tern_tensor *x, tern_tensor *y, tern_tensor **dx)
{
    x = tern_requires_grad_(tern_detach(x), true);
    tern_tensor *result = f(x, y);
    tern_tensor *weight = tern_linspace(1, 2, tern_numel(result), TERN_F64, "cpu");
    weight = tern_to_dtype(tern_reshape(weight, tern_shape_of(result)), tern_dtype_of(result));
    weight = tern_to(weight, tern_device(result));
    assert_ok(tern_autograd_grad(&result, 1, &x, 1, dx,
                                 &(tern_autograd_grad_options){.gradients = &weight}));
    return result;
}

static void long_sums_are_right(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    static const double epsilon[] = {0x1p-23, 0x1p-10, 0x1p-7};
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int wrong = 0;
        for (int d = 0; d < 3; d++)
            for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
                TERN_SCOPE {
                    tern_tensor *x =
                        test_uniform("cpu", dtypes[d], TERN_SHAPE(ROWS, COLUMNS), 99, 101, 7);
                    tern_tensor *y =
                        test_uniform("cpu", dtypes[d], TERN_SHAPE(ROWS, COLUMNS), 97, 103, 8);
                    tern_tensor *dx, *exact_dx;
                    tern_tensor *exact = with_gradient(functions[i].f, tern_to_dtype(x, TERN_F64),
                                                       tern_to_dtype(y, TERN_F64), &exact_dx);
                    tern_tensor *got =
                        with_gradient(functions[i].f, tern_to(x, device), tern_to(y, device), &dx);
                    double error = error_of(got, exact), of_dx = error_of(dx, exact_dx);
                    const double *peer = functions[i].peer[d];
                    double limit = fmax(2 * peer[0], 4 * epsilon[d]);
                    double dx_limit = fmax(2 * peer[1], 4 * epsilon[d]);
                    if (!(error <= limit) || !(of_dx <= dx_limit || isinf(dx_limit))) {
                        print_error(
                            "%s of %s on %s: error %.2g (at most %.2g), of the gradient %.2g "
                            "(at most %.2g)\n",
                            functions[i].name, tern_dtype_name(dtypes[d]), device, error, limit,
                            of_dx, dx_limit);
                        wrong++;
                    }
                }
        assert_int_equal(wrong, 0);
    }
}

static const struct CMUnitTest tests[] = {TEST(long_sums_are_right)};
TEST_MAIN(tests)
