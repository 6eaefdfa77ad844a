/* gradcheck.c -- gradients against central differences, once and twice. */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The formula of a gradient is the same everywhere, so that on devices, where each difference is launches of its own, so many
 * elements of an input are tried. */
enum { MAX_INPUTS = 8, ELEMENTS = 3 };

typedef struct check {
    test_function function;
    test_gradcheck_options options;
    tern_tensor *const *in;
    int n;
    const char *what, *file;
    int line;
} check;

static void stop(const check *c, const char *why)
{
    print_error("gradcheck of %s: %s: %s\n", c->what, why, tern_last_error());
    tern_clear_error();
    _fail(c->file, c->line);
}

/* Numbers with nothing in common, so that errors don't cancel: the "loss" is their dot product with
 * what is checked. */
static tern_tensor *weights_like(const tern_tensor *x, uint64_t seed)
{
    return test_uniform(tern_device(x), tern_dtype_of(x), tern_shape_of(x), 0.5, 1.5, seed);
}

static double dot(const tern_tensor *x, uint64_t seed)
{
    tern_tensor *w = weights_like(x, seed);
    double *a = test_read(x), *b = test_read(w), sum = 0;
    for (int64_t i = 0; i < tern_numel(x); i++)
        sum += a[i] * b[i];
    free(a);
    free(b);
    return sum;
}

/* Gradients of the weighted sum of function(in) with respect to the inputs that require one. */
static void first_order(const check *c, tern_tensor *const *in, bool create_graph,
                        tern_tensor **grads)
{
    tern_tensor *y = c->function(in, c->options.user);
    if (!y)
        stop(c, "the function failed");
    tern_tensor *wanted[MAX_INPUTS], *found[MAX_INPUTS], *dy = weights_like(y, 77);
    int wants = 0;
    for (int i = 0; i < c->n; i++)
        if (in[i] && tern_requires_grad(in[i]))
            wanted[wants++] = in[i];
    if (tern_autograd_grad(&y, 1, wanted, wants, found,
                           &(tern_autograd_grad_options){.gradients = &dy,
                                                         .create_graph = create_graph,
                                                         .allow_unused = true}) != TERN_OK)
        stop(c, "backward failed");
    for (int i = 0, k = 0; i < c->n; i++)
        grads[i] = in[i] && tern_requires_grad(in[i]) ? found[k++] : NULL;
}

/* The loss of the first order: <function(in), w>; of the second: the sum of <gradient i, w_i>. */
static double loss(const check *c, tern_tensor *const *in, bool second)
{
    if (!second) {
        tern_tensor *y = c->function(in, c->options.user);
        if (!y)
            stop(c, "the function failed");
        return dot(y, 77);
    }
    tern_tensor *grads[MAX_INPUTS];
    double sum = 0;
    first_order(c, in, false, grads);
    for (int i = 0; i < c->n; i++)
        if (grads[i])
            sum += dot(grads[i], 100 + (uint64_t)i);
    return sum;
}

/* The derivative of the loss by element k of input i. */
static double difference(const check *c, int i, const double *values, int64_t k, bool second)
{
    tern_tensor *moved[MAX_INPUTS];
    tern_tensor *x = c->in[i];
    double result[2] = {0}, at[2] = {0};
    double *shifted = malloc(((size_t)tern_numel(x) + 1) * sizeof *shifted);
    assert_non_null(shifted);
    for (int side = 0; side < 2; side++)
        TERN_SCOPE {
            memcpy(shifted, values, (size_t)tern_numel(x) * sizeof *shifted);
            shifted[k] += side ? c->options.step : -c->options.step;
            for (int j = 0; j < c->n; j++)
                moved[j] = c->in[j];
            moved[i] = test_tensor(tern_device(x), tern_dtype_of(x), tern_shape_of(x), shifted);
            tern_requires_grad_(moved[i], true);
            double *rounded = test_read(moved[i]); /* f32 does not hold every step exactly */
            at[side] = rounded[k];
            free(rounded);
            result[side] = loss(c, moved, second);
        }
    free(shifted);
    return (result[1] - result[0]) / (at[1] - at[0]);
}

static void compare(const check *c, int i, const tern_tensor *grad, bool second)
{
    tern_tensor *x = c->in[i];
    double *values = test_read(x), *found = grad ? test_read(grad) : NULL;
    if (grad && !tern_same_shape(grad, x))
        stop(c, "a gradient has another shape than its input");
    const int64_t n = tern_numel(x), most = test_thorough(tern_device(x)) ? n : ELEMENTS;
    for (int64_t j = 0; j < n && j < most; j++) {
        const int64_t k = n <= most ? j : (2 * j + 1) * n / (2 * most);
        double expected = difference(c, i, values, k, second);
        double got = found ? found[k] : 0;
        if (isfinite(expected) && fabs(got - expected) <= c->options.abs * (1 + fabs(expected)))
            continue;
        print_error("gradcheck of %s: %s gradient of input %d, element %lld (value %g): %.10g, but "
                    "differences give %.10g\n",
                    c->what, second ? "second" : "first", i, (long long)k, values[k], got,
                    expected);
        _fail(c->file, c->line);
    }
    free(values);
    free(found);
}

static void check_second(const check *c)
{
    tern_tensor *grads[MAX_INPUTS], *outputs[MAX_INPUTS], *weights[MAX_INPUTS];
    tern_tensor *wanted[MAX_INPUTS], *found[MAX_INPUTS];
    int index[MAX_INPUTS], outs = 0, wants = 0;
    first_order(c, c->in, true, grads);
    for (int i = 0; i < c->n; i++) {
        if (!c->in[i] || !tern_requires_grad(c->in[i]))
            continue;
        index[wants] = i;
        wanted[wants++] = c->in[i];
        if (!grads[i] || !tern_requires_grad(grads[i]))
            continue; /* constant: its own gradient is zero */
        outputs[outs] = grads[i];
        weights[outs++] = weights_like(grads[i], 100 + (uint64_t)i);
    }
    for (int i = 0; i < wants; i++)
        found[i] = NULL;
    if (outs && tern_autograd_grad(outputs, outs, wanted, wants, found,
                                   &(tern_autograd_grad_options){.gradients = weights,
                                                                 .allow_unused = true}) != TERN_OK)
        stop(c, "the second backward failed");
    for (int i = 0; i < wants; i++)
        compare(c, index[i], found[i], true);
}

void test_gradcheck(test_function function, tern_tensor *const *in, int n,
                    test_gradcheck_options options, const char *what, const char *file, int line)
{
    check c = {function, options, in, n, what, file, line};
    bool f64 = true;
    assert_in_range(n, 1, MAX_INPUTS);
    for (int i = 0; i < n; i++)
        f64 = f64 && (!in[i] || !tern_requires_grad(in[i]) || tern_dtype_of(in[i]) == TERN_F64);
    if (c.options.step == 0)
        c.options.step = f64 ? 1e-6 : 1e-2;
    if (c.options.abs == 0)
        c.options.abs = f64 ? 1e-6 : 2e-2;
    TERN_SCOPE {
        tern_tensor *grads[MAX_INPUTS];
        first_order(&c, in, false, grads);
        int checked = 0;
        for (int i = 0; i < n; i++)
            if (in[i] && tern_requires_grad(in[i])) {
                compare(&c, i, grads[i], false);
                checked++;
            }
        if (!checked)
            stop(&c, "no input requires a gradient");
        if (options.second)
            check_second(&c);
    }
}
