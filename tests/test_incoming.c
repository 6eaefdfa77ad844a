/* test_incoming.c -- layers whose gradients have ways of their own: those by an incoming gradient that is a slice, transposed
 * or repeated (as it comes from a sum) are those by the same numbers one after the other, few and many. */
#include "support.h"
#include <stdio.h>
#include <string.h>

static tern_tensor *input(const char *device, tern_dtype dtype, tern_shape shape)
{
    return tern_requires_grad_(tern_detach(test_uniform(device, dtype, shape, -1, 1, 3)), true);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static const char *where; /* modules are made there, of that type */
static tern_dtype of;

static tern_module *linear(bool no_bias, int64_t in, int64_t out)
{
    return tern_nn_linear(in, out,
                          &(tern_linear_options){.device = where, .dtype = of, .no_bias = no_bias});
}
static tern_module *biased(int64_t n)
{
    return linear(false, n, n + 2);
}
static tern_module *unbiased(int64_t n)
{
    return linear(true, n, n + 2);
}
static tern_module *pair(int64_t n)
{
    return tern_nn_sequential(linear(false, n, 2 * n), tern_nn_relu(), linear(false, 2 * n, n));
}
static tern_module *convolution(int64_t n)
{
    return tern_nn_conv2d(
        n, n + 1, TERN_SHAPE(3, 3),
        &(tern_conv_options){.padding = TERN_SHAPE(1), .device = where, .dtype = of});
}
static tern_module *pointwise(int64_t n)
{
    return tern_nn_conv2d(n, n + 1, TERN_SHAPE(1, 1),
                          &(tern_conv_options){.device = where, .dtype = of});
}
static tern_module *transposed(int64_t n)
{
    return tern_nn_conv_transpose2d(
        n, n + 1, TERN_SHAPE(2, 2),
        &(tern_conv_transpose_options){.stride = TERN_SHAPE(2), .device = where, .dtype = of});
}
static tern_module *layer_norm(int64_t n)
{
    return tern_nn_layer_norm(TERN_SHAPE(n),
                              &(tern_layer_norm_options){.device = where, .dtype = of});
}
static tern_module *group_norm(int64_t n)
{
    return tern_nn_group_norm(2, n, &(tern_group_norm_options){.device = where, .dtype = of});
}
static tern_module *batch_norm(int64_t n)
{
    return tern_nn_batch_norm2d(n, &(tern_batch_norm_options){.device = where, .dtype = of});
}
static tern_module *max_pool(int64_t n)
{
    (void)n;
    return tern_nn_max_pool2d(TERN_SHAPE(2, 2), NULL);
}

/* x is (many, n), or (2, n, many, 6) of images. */
static const struct {
    const char *name;
    tern_module *(*make)(int64_t n);
    bool images;
} layers[] = {{"linear", biased, false},
              {"linear without a bias", unbiased, false},
              {"linear, relu, linear", pair, false},
              {"conv2d", convolution, true},
              {"conv2d of one pixel", pointwise, true},
              {"conv_transpose2d", transposed, true},
              {"layer_norm", layer_norm, false},
              {"group_norm", group_norm, true},
              {"batch_norm2d", batch_norm, true},
              {"max_pool2d", max_pool, true}};
enum { LAYERS = sizeof layers / sizeof *layers, MOST = 5 };

/* ---- ways ------------------------------------------------------------------------------------ */

typedef enum way { SLICE, TRANSPOSED, ROW, NUMBER, WAYS } way;
static const char *const way_names[] = {"a slice", "transposed", "a repeated row",
                                        "a repeated number"};

/* Of y's shape, lying in that way. */
static tern_tensor *incoming(const tern_tensor *y, way w)
{
    tern_shape shape = tern_shape_of(y);
    const int last = shape.ndim - 1;
    if (w == NUMBER || w == ROW)
        return tern_expand(test_uniform(where, of,
                                        w == ROW ? TERN_SHAPE(shape.dims[last]) : TERN_SHAPE(1), -1,
                                        1, 5),
                           shape);
    if (w == SLICE) {
        shape.dims[last] += 5;
        return tern_narrow(test_uniform(where, of, shape, -1, 1, 5), last, 2, shape.dims[last] - 5);
    }
    const int64_t n = shape.dims[0];
    shape.dims[0] = shape.dims[last];
    shape.dims[last] = n;
    return tern_transpose(test_uniform(where, of, shape, -1, 1, 5), 0, last);
}

/* Of x and the parameters. */
static int gradients(tern_module *m, tern_tensor *x, way w, bool dense, tern_tensor **grad)
{
    tern_tensor *parameters[MOST];
    const int n = (int)tern_nn_parameters(m, parameters, MOST);
    tern_nn_zero_grad(m);
    tern_set_grad(x, NULL);
    tern_tensor *y = tern_nn_forward(m, x), *dy = incoming(y, w);
    dy = dense ? tern_clone(dy) : dy;
    assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
    for (int i = 0; i < n; i++)
        grad[i] = tern_clone(tern_grad(parameters[i]));
    grad[n] = tern_clone(tern_grad(x));
    return n + 1;
}

static void check(int layer, int64_t n, int64_t many)
{
    const double tolerance = of == TERN_F32 ? 1e-4 : 5e-2;
    tern_module *m = layers[layer].make(n);
    tern_tensor *x =
        input(where, of, layers[layer].images ? TERN_SHAPE(2, n, many, 6) : TERN_SHAPE(many, n));
    for (way w = 0; w < WAYS; w++)
        TERN_SCOPE {
            tern_tensor *got[MOST + 1], *expected[MOST + 1];
            char what[128];
            const int count = gradients(m, x, w, false, got);
            gradients(m, x, w, true, expected);
            for (int i = 0; i < count; i++) {
                snprintf(what, sizeof what, "%s of %d, %s: gradient %d", layers[layer].name,
                         (int)many, way_names[w], i);
                test_close(got[i], expected[i],
                           (test_tolerance){.abs = tolerance, .rel = tolerance}, what, __FILE__,
                           __LINE__);
            }
        }
    tern_nn_free(m);
}

static void gradients_do_not_depend_on_how_the_incoming_one_lies(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int d = 0; d < (strncmp(device, "opencl", 6) != 0 || test_thorough(device) ? 2 : 1); d++)
        for (int layer = 0; layer < LAYERS; layer++)
            for (int many = 0; many < 2; many++)
                TERN_SCOPE {
                    where = device;
                    of = dtypes[d];
                    check(layer, many ? 48 : 4, many ? (layers[layer].images ? 12 : 130) : 4);
                }
}

/* ---- gradients of another shape -------------------------------------------------------------- */

enum { SHAPES = 7 };

/* Shapes that are not y's, some of as many elements, some that would broadcast. */
static tern_shape other_shape(const tern_tensor *y, int which)
{
    tern_shape s = tern_shape_of(y);
    const int last = s.ndim - 1;
    const int64_t n = s.dims[last];
    switch (which) {
    case 0: /* a column less */
        s.dims[last] = n - 1;
        return s;
    case 1: /* a row more */
        s.dims[0]++;
        return s;
    case 2: /* the elements in one row */
        return TERN_SHAPE(tern_numel(y));
    case 3: /* a dim more */
        memmove(s.dims + 1, s.dims, sizeof *s.dims * (size_t)s.ndim++);
        s.dims[0] = 1;
        return s;
    case 4: /* one column */
        s.dims[last] = 1;
        return s;
    case 5: /* none */
        s.dims[0] = 0;
        return s;
    default: /* a number */
        return (tern_shape){0};
    }
}

static tern_tensor *replace(tern_tensor *grad, void *user)
{
    return tern_ones(*(const tern_shape *)user, tern_dtype_of(grad), tern_device(grad));
}

/* Each is refused, given to either function or by a hook, and no parameter has a gradient then. */
static void refuse(int layer)
{
    tern_module *m = layers[layer].make(4);
    tern_tensor *x =
        input(where, of, layers[layer].images ? TERN_SHAPE(2, 4, 4, 6) : TERN_SHAPE(5, 4));
    tern_tensor *parameters[MOST];
    const int n = (int)tern_nn_parameters(m, parameters, MOST);
    for (int i = 0; i < SHAPES; i++)
        TERN_SCOPE {
            tern_tensor *y = tern_nn_forward(m, x), *dx;
            tern_shape shape = other_shape(y, i);
            tern_tensor *dy = tern_ones(shape, of, where);
            assert_non_null(dy);
            assert_error(tern_backward_with(y, &(tern_backward_options){.gradient = dy}),
                         "tern_backward_with: ");
            assert_error(tern_autograd_grad(&y, 1, &x, 1, &dx,
                                            &(tern_autograd_grad_options){.gradients = &dy}),
                         "tern_autograd_grad: ");
            tern_tensor *z = tern_mul(y, 2);
            assert_true(tern_register_hook(y, replace, &shape) > 0);
            assert_error(tern_backward(tern_sum(z)), "tern_backward: ");
            assert_null(tern_grad(x));
            for (int k = 0; k < n; k++)
                assert_null(tern_grad(parameters[k]));
        }
    tern_nn_free(m);
}

static void gradients_of_another_shape_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int layer = 0; layer < LAYERS; layer++)
        TERN_SCOPE {
            where = device;
            of = TERN_F32;
            refuse(layer);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gradients_do_not_depend_on_how_the_incoming_one_lies),
        TEST(gradients_of_another_shape_are_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
