/* test_linear_relu.c -- Linear, ReLU (or GELU by tanh) and Linear of a Sequential, which CUDA's products take at once: results and gradients as
 * on the cpu, in each dtype, and that nothing else than the three is taken so. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

typedef struct sizes {
    tern_shape x;
    int64_t hidden, out;
} sizes;

static const sizes cases[] = {{{2, {37, 24}}, 40, 16},
                              {{3, {4, 9, 16}}, 130, 8},
                              {{2, {64, 64}}, 64, 64},
                              {{2, {3, 8}}, 16, 8},
                              {{2, {5, 3}}, 7, 2}};
enum { CASES = sizeof cases / sizeof *cases, PARAMETERS = 4 };

/* What is between them. GELU alone is not by tanh, which products do not have. */
typedef enum activation { RELU, GELU_TANH, GELU, ACTIVATIONS } activation;
static tern_module *activation_of(activation a)
{
    tern_gelu_options o = {.approximate = a == GELU_TANH ? TERN_APPROXIMATE_TANH : 0};
    return a == RELU ? tern_nn_relu() : tern_nn_gelu(&o);
}

typedef struct result {
    tern_tensor *y, *dx, *gradient[PARAMETERS];
} result;

/* Numbers whose sums are exact in any order, so that all devices agree about what is above zero. */
static tern_tensor *eighths(const char *device, tern_dtype dtype, tern_shape shape, double most,
                            uint64_t seed)
{
    tern_tensor *x = test_uniform(device, TERN_F32, shape, -8 * most, 8 * most, seed);
    return tern_to_dtype(tern_mul(tern_round(x), 0.125), dtype);
}

static tern_module *network(const sizes *s, const char *device, tern_dtype dtype, bool biased,
                            activation between)
{
    tern_linear_options o = {.device = device, .dtype = dtype, .no_bias = !biased};
    int64_t in = s->x.dims[s->x.ndim - 1];
    tern_module *m = tern_nn_sequential(tern_nn_linear(in, s->hidden, &o), activation_of(between),
                                        tern_nn_linear(s->hidden, s->out, &o));
    static const char *const names[] = {"0.weight", "0.bias", "2.weight", "2.bias"};
    for (int i = 0; i < PARAMETERS; i++) {
        if (!biased && i % 2)
            continue;
        tern_tensor *p = tern_nn_parameter(m, names[i]);
        TERN_NO_GRAD
            tern_copy_(p, eighths(device, dtype, tern_shape_of(p), 0.3, (unsigned)i + 3));
    }
    return m;
}

static result run(const sizes *s, const char *device, tern_dtype dtype, bool biased,
                  activation between)
{
    static const char *const names[] = {"0.weight", "0.bias", "2.weight", "2.bias"};
    tern_module *m = network(s, device, dtype, biased, between);
    tern_tensor *x = eighths(device, dtype, s->x, 1, 1);
    x = tern_requires_grad_(tern_detach(x), true);
    result r = {.y = tern_nn_forward(m, x)};
    assert_ok(tern_backward(tern_sum(tern_mul(r.y, r.y))));
    r.dx = tern_keep(tern_grad(x));
    for (int i = 0; i < PARAMETERS; i++)
        r.gradient[i] =
            biased || i % 2 == 0 ? tern_clone(tern_grad(tern_nn_parameter(m, names[i]))) : NULL;
    tern_nn_free(m);
    return r;
}

static void compare(const sizes *s, const char *device, tern_dtype dtype, bool biased,
                    activation between)
{
    double error = dtype == TERN_F32   ? 2e-5
                   : dtype == TERN_F64 ? 1e-12
                   : dtype == TERN_F16 ? 2e-2
                                       : 1e-1;
    result here = run(s, device, dtype, biased, between),
           there = run(s, "cpu", dtype, biased, between);
    test_tolerance t = {.abs = error * 8, .rel = error};
    test_close(tern_to(here.y, "cpu"), there.y, t, "y", __FILE__, __LINE__);
    test_close(tern_to(here.dx, "cpu"), there.dx, t, "dx", __FILE__, __LINE__);
    for (int i = 0; i < PARAMETERS; i++)
        if (here.gradient[i])
            test_close(tern_to(here.gradient[i], "cpu"), there.gradient[i], t, "a gradient",
                       __FILE__, __LINE__);
    tern_release(here.dx);
    tern_release(there.dx);
}

static void three_layers_are_as_on_the_cpu(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i++)
        for (int d = 0; d < 4; d++)
            for (int a = 0; a < ACTIVATIONS; a++)
                TERN_SCOPE {
                    tern_device_info info;
                    assert_ok(tern_device_get_info(device, &info));
                    if (dtypes[d] == TERN_F64 && !info.has_f64)
                        continue;
                    compare(&cases[i], device, dtypes[d], true, (activation)a);
                    compare(&cases[i], device, dtypes[d], false, (activation)a);
                }
}

/* A row with what is not finite, and what the others make of their zeros: no product takes NaN for 0, or a gradient where the sum is 0. */
static void rows_with_nan_and_zeros_are_as_on_the_cpu(void **state)
{
    static const double odd[] = {(double)NAN, (double)INFINITY, 0};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2 * ACTIVATIONS * 3; i++)
        TERN_SCOPE {
            const tern_dtype dtype = i % 2 ? TERN_BF16 : TERN_F32;
            const sizes *s = &cases[0];
            tern_tensor *y[2], *dx[2], *db[2];
            for (int d = 0; d < 2; d++) {
                const char *where = d ? "cpu" : device;
                tern_module *m = network(s, where, dtype, true, (activation)(i / 2 % ACTIVATIONS));
                TERN_NO_GRAD
                    tern_fill_(tern_nn_parameter(m, "0.bias"), 0);
                tern_tensor *x = eighths(where, dtype, s->x, 1, 1);
                tern_fill_(tern_select(x, 0, 5), odd[i / 2 / ACTIVATIONS]);
                x = tern_requires_grad_(tern_detach(x), true);
                y[d] = tern_nn_forward(m, x);
                assert_ok(tern_backward(tern_sum(y[d])));
                y[d] = tern_to(tern_detach(y[d]), "cpu");
                dx[d] = tern_to(tern_grad(x), "cpu");
                db[d] = tern_to(tern_grad(tern_nn_parameter(m, "0.bias")), "cpu");
                tern_nn_free(m);
            }
            const double error = dtype == TERN_F32 ? 2e-5 : 1e-1;
            assert_close(y[0], y[1], .abs = 8 * error, .rel = error);
            assert_close(dx[0], dx[1], .abs = 8 * error, .rel = error);
            assert_close(db[0], db[1], .abs = 8 * error, .rel = error);
        }
}

/* On cuda the three are one operation, with gelu in half precision alone, and by tanh alone; with a hook, or somebody who wants the gradient of
 * a part, they are not. */
static void what_is_not_for_one_product_stays_apart(void **state)
{
    const struct {
        activation between;
        tern_dtype dtype;
        const char *name;
    } rows[] = {{RELU, TERN_F32, "linear_relu_linear"},
                {RELU, TERN_BF16, "linear_relu_linear"},
                {GELU_TANH, TERN_F32, NULL},
                {GELU_TANH, TERN_F16, "linear_gelu_linear"},
                {GELU_TANH, TERN_BF16, "linear_gelu_linear"},
                {GELU, TERN_F32, NULL},
                {GELU, TERN_BF16, NULL}};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            tern_module *m = network(&cases[0], device, rows[i].dtype, true, rows[i].between);
            tern_tensor *x = test_uniform(device, rows[i].dtype, cases[0].x, -1, 1, 1);
            bool cuda = strncmp(device, "cuda", 4) == 0;
            assert_string_equal(tern_grad_fn(tern_nn_forward(m, x)),
                                cuda && rows[i].name ? rows[i].name : "linear");
            tern_requires_grad_(tern_nn_parameter(m, "0.weight"), false);
            assert_string_equal(tern_grad_fn(tern_nn_forward(m, x)), "linear");
            tern_nn_free(m);
        }
}

static void second_derivatives_go_through(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int a = 0; a < ACTIVATIONS; a++)
        TERN_SCOPE {
            const sizes *s = &cases[a == GELU ? 3 : 4]; /* cuDNN's are multiples of 8 */
            tern_tensor *twice[2];
            tern_dtype dtype = a == RELU ? TERN_F32 : TERN_F16;
            double error = a == RELU ? 1e-4 : 2e-2;
            for (int i = 0; i < 2; i++) {
                const char *where = i ? "cpu" : device;
                tern_module *m = network(s, where, dtype, true, (activation)a);
                tern_tensor *x = test_uniform(where, dtype, s->x, -1, 1, 1), *dx = NULL;
                x = tern_requires_grad_(tern_detach(x), true);
                tern_tensor *y = tern_nn_forward(m, x);
                tern_tensor *loss = tern_sum(tern_mul(y, tern_mul(y, y)));
                assert_ok(tern_autograd_grad(&loss, 1, &x, 1, &dx,
                                             &(tern_autograd_grad_options){.create_graph = true}));
                assert_ok(tern_backward(tern_sum(tern_mul(dx, dx))));
                twice[i] = tern_to(tern_grad(x), "cpu");
                tern_nn_free(m);
            }
            assert_close(twice[0], twice[1], .abs = 10 * error, .rel = error);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(three_layers_are_as_on_the_cpu),
        TEST(rows_with_nan_and_zeros_are_as_on_the_cpu),
        TEST(what_is_not_for_one_product_stays_apart),
        TEST(second_derivatives_go_through),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
