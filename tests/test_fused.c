/* test_fused.c -- what devices with work-groups do in fewer launches: the same numbers as on the cpu, one by one. */
#include "support.h"
#include <math.h>
#include <stdio.h>

static tern_tensor *leaf(const char *device, tern_dtype dtype, tern_shape shape, uint64_t seed)
{
    return tern_requires_grad_(test_uniform(device, dtype, shape, -1, 1, seed), true);
}

static void close_to(tern_tensor *const *a, tern_tensor *const *b, int n, double near)
{
    for (int i = 0; i < n; i++)
        assert_close(a[i], b[i], .abs = near, .rel = near);
}

/* ---- gradients that meet --------------------------------------------------------------------- */

enum { NORM_PLAIN, NORM_NO_BIAS, NORM_NO_MEAN, NORMS };

static tern_tensor *seen; /* by the hook, on the gradient of what two ways come from */
static tern_tensor *see(tern_tensor *gradient, void *user)
{
    (void)user;
    seen = tern_keep(tern_clone(gradient));
    return NULL;
}

static tern_tensor *norm(int kind, tern_tensor *x, int64_t n, tern_tensor *w, tern_tensor *b)
{
    return kind == NORM_NO_MEAN ? tern_rms_norm(x, TERN_SHAPE(n), w, 0.1)
                                : tern_layer_norm(x, TERN_SHAPE(n), w, b, 0.1);
}

/* The gradients of x, w, b in h = 2 x, norm(h) + h, and of h where a hook sees it. */
static void residual(const char *device, tern_dtype dtype, int kind, int64_t rows, int64_t n,
                     tern_tensor **out)
{
    tern_tensor *x = leaf(device, dtype, TERN_SHAPE(rows, n), 1);
    tern_tensor *w = leaf(device, dtype, TERN_SHAPE(n), 2);
    tern_tensor *b = kind == NORM_PLAIN ? leaf(device, dtype, TERN_SHAPE(n), 3) : NULL;
    tern_tensor *h = tern_mul_scalar(x, TERN_SCALAR(2));
    tern_register_hook(h, see, NULL);
    tern_tensor *y = tern_add(tern_cos(h), norm(kind, h, n, w, b));
    tern_tensor *dy = test_uniform(device, dtype, TERN_SHAPE(rows, n), -1, 1, 4);
    assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
    out[0] = tern_grad(x);
    out[1] = tern_grad(w);
    out[2] = b ? tern_grad(b) : tern_grad(w);
    out[3] = seen;
}

static void a_norm_adds_to_what_came_before(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {7, 5}, {9, 300}, {70, 33}, {5, 1024}, {3, 1030}};
    static const tern_dtype types[] = {TERN_F32, TERN_F64, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < (test_thorough(device) ? 3 : 1); t++)
        for (int i = 0; i < 6; i++)
            for (int kind = 0; kind < NORMS; kind++)
                TERN_SCOPE {
                    tern_tensor *here[4], *there[4];
                    residual(device, types[t], kind, sizes[i][0], sizes[i][1], here);
                    residual("cpu", types[t], kind, sizes[i][0], sizes[i][1], there);
                    close_to(here, there, 4, t == 0 ? 2e-5 : t == 1 ? 1e-12 : 3e-2);
                    tern_release(here[3]);
                    tern_release(there[3]);
                }
}

/* ---- cross entropy --------------------------------------------------------------------------- */

/* Loss and gradient, the latter of `times` the loss. */
static void entropy(const char *device, tern_dtype dtype, const int64_t *size, double times,
                    const tern_cross_entropy_options *o, tern_tensor **out)
{
    tern_tensor *x = leaf(device, dtype, TERN_SHAPE(size[0], size[1]), 5);
    tern_tensor *target = tern_arange(0, (double)size[0], 1, TERN_I64, device);
    target = tern_remainder_scalar(tern_mul_scalar(target, tern_scalar_int(7)),
                                   tern_scalar_int(size[1]));
    out[0] = tern_cross_entropy(tern_mul_scalar(x, TERN_SCALAR(4)), target, o);
    tern_tensor *loss = times == 1 ? out[0] : tern_mul_scalar(out[0], TERN_SCALAR(times));
    assert_ok(tern_backward(loss));
    out[1] = tern_grad(x);
}

/* Rows for one group, for groups that count targets, and for those that are told. */
static void a_loss_makes_its_gradient(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 2}, {64, 10}, {40, 600}, {300, 65}, {4200, 3}};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 5; i++)
        for (int form = 0; form < 8; form++)
            TERN_SCOPE {
                tern_cross_entropy_options o = {.label_smoothing = form & 1 ? 0.2 : 0,
                                                .ignore_index = TERN_SOME(1),
                                                .reduction = form & 2 ? TERN_REDUCTION_SUM
                                                                      : TERN_REDUCTION_MEAN};
                tern_tensor *here[2], *there[2];
                entropy(device, TERN_F32, sizes[i], form & 4 ? 3 : 1, &o, here);
                entropy("cpu", TERN_F32, sizes[i], form & 4 ? 3 : 1, &o, there);
                close_to(here, there, 2, 2e-5);
            }
}

/* Of half precision logits as they are: the same as of a copy in float32, where autocast is on. */
static void logits_in_half_precision_are_read_as_they_are(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_BF16, TERN_F16};
    static const tern_reduction reductions[] = {TERN_REDUCTION_MEAN, TERN_REDUCTION_SUM,
                                                TERN_REDUCTION_NONE};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < 2; t++)
        for (int r = 0; r < 3; r++)
            for (int64_t rows = 20; rows <= 400; rows += 380)
                TERN_SCOPE {
                    tern_cross_entropy_options o = {.reduction = reductions[r]};
                    tern_tensor *target = tern_zeros(TERN_SHAPE(rows), TERN_I64, device);
                    tern_tensor *grads[2], *losses[2];
                    for (int by_hand = 0; by_hand < 2; by_hand++) {
                        tern_tensor *x = leaf(device, types[t], TERN_SHAPE(rows, 40), 6), *y = NULL;
                        if (by_hand)
                            y = tern_cross_entropy(tern_to_dtype(x, TERN_F32), target, &o);
                        else
                            TERN_AUTOCAST (device, types[t])
                                y = tern_cross_entropy(x, target, &o);
                        assert_int_equal(tern_dtype_of(y), TERN_F32);
                        assert_ok(tern_backward(tern_sum(y)));
                        losses[by_hand] = y;
                        grads[by_hand] = tern_grad(x);
                    }
                    close_to(losses, losses + 1, 1, 1e-6);
                    close_to(grads, grads + 1, 1, 1e-2);
                }
}

/* ---- attention ------------------------------------------------------------------------------- */

/* The gradient of x, whose thirds are q, k and v, in the order of `turn`. */
static tern_tensor *attend(const char *device, tern_dtype dtype, int turn, int needs)
{
    enum { N = 2, T = 9, HEADS = 3, WIDTH = 8 };
    tern_tensor *x = leaf(device, dtype, TERN_SHAPE(N, T, 3 * HEADS * WIDTH), 7), *part[3];
    part[2] = NULL;
    tern_split(tern_mul_scalar(x, TERN_SCALAR(2)), HEADS * WIDTH, 2, part, 3);
    for (int i = 0; i < 3; i++) {
        part[i] = needs >> i & 1 ? part[i] : tern_detach(part[i]);
        part[i] = tern_transpose(tern_view(part[i], TERN_SHAPE(N, T, HEADS, WIDTH)), 1, 2);
    }
    tern_tensor *y = tern_scaled_dot_product_attention(
        part[turn], part[(turn + 1) % 3], part[(turn + 2) % 3],
        &(tern_scaled_dot_product_attention_options){.is_causal = true});
    tern_tensor *dy = test_uniform(device, dtype, TERN_SHAPE(N, HEADS, T, WIDTH), -1, 1, 8);
    assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
    return tern_grad(x);
}

static void packed_attention_has_packed_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int half = 0; half < 2; half++)
        for (int turn = 0; turn < 2; turn++)
            for (int needs = 1; needs < 8; needs += 2)
                TERN_SCOPE {
                    tern_dtype dtype = half ? TERN_BF16 : TERN_F32;
                    double near = half ? 3e-2 : 2e-5;
                    assert_close(attend(device, dtype, turn, needs),
                                 attend("cpu", dtype, turn, needs), .abs = near, .rel = near);
                }
}

/* ---- weights under autocast -------------------------------------------------------------------- */

static tern_module *layers(const char *device)
{
    const tern_linear_options o = {.device = device};
    return tern_nn_sequential(tern_nn_linear(5, 7, &o), tern_nn_tanh(), tern_nn_linear(7, 300, &o),
                              tern_nn_tanh(), tern_nn_linear(300, 3, &o));
}

/* The result and all gradients of a run, under autocast; how many kernels it took. */
static uint64_t run(tern_module *m, const char *device, tern_dtype dtype, tern_tensor **out)
{
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(4, 5), -1, 1, 9), *y = NULL;
    const uint64_t before = launches(device);
    tern_nn_zero_grad(m);
    TERN_AUTOCAST (device, dtype)
        y = tern_nn_forward(m, x);
    assert_int_equal(tern_dtype_of(y), dtype);
    assert_ok(tern_backward(tern_sum(tern_to_dtype(y, TERN_F32))));
    const uint64_t kernels = launches(device) - before;
    out[0] = tern_clone(y);
    const char *const names[] = {"0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"};
    for (int i = 0; i < 6; i++) {
        tern_tensor *grad = tern_grad(tern_nn_parameter(m, names[i]));
        assert_int_equal(tern_dtype_of(grad), TERN_F32);
        out[1 + i] = tern_clone(grad);
    }
    return kernels;
}

static void weights_are_cast_together(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_BF16, TERN_F16};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < 2; t++) {
        tern_module *m = layers(device);
        TERN_SCOPE {
            tern_tensor *first[7], *then[7];
            uint64_t singly = run(m, device, types[t], first);
            for (int again = 0; again < 3; again++) {
                uint64_t together = run(m, device, types[t], then);
                assert_true(together <= singly);
                for (int i = 0; i < 7; i++)
                    assert_same(first[i], then[i]);
            }
            /* another weight, and one that is written: both are cast as they are */
            tern_nn_set_parameter(m, "0.weight", tern_zeros(TERN_SHAPE(7, 5), TERN_F32, device));
            TERN_NO_GRAD
                tern_zero_(tern_nn_parameter(m, "4.weight"));
            run(m, device, types[t], then);
            assert_values(tern_sum(tern_abs(then[1 + 2])), 0);
            run(m, device, types[t], first);
            for (int i = 0; i < 7; i++)
                assert_same(first[i], then[i]);
        }
        tern_nn_free(m);
    }
}

/* The graph outlives the module, and its weights. */
static void casts_outlive_their_module(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t live = tern_live_tensors();
        TERN_SCOPE {
            tern_module *m = layers(device);
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(4, 5), -1, 1, 9), *y = NULL;
            tern_requires_grad_(x, true);
            for (int i = 0; i < 3; i++)
                TERN_AUTOCAST (device, TERN_BF16)
                    y = tern_nn_forward(m, x);
            tern_tensor *w = tern_keep(tern_nn_parameter(m, "2.weight"));
            tern_nn_free(m);
            assert_ok(tern_backward(tern_sum(tern_to_dtype(y, TERN_F32))));
            assert_true(tern_grad(x) && tern_grad(w));
            tern_release(w);
        }
        tern_clear_autocast_cache();
        assert_int_equal(tern_live_tensors(), live);
    }
}

/* ---- convolutions that add ---------------------------------------------------------------------- */

/* The gradients of x and of the weight in h = 2 x, conv(h) + cos(h), where a hook sees h's or not. */
static void convolve(const char *device, bool hooked, bool turned, tern_tensor **out)
{
    tern_tensor *x = leaf(device, TERN_F32, TERN_SHAPE(2, 4, 6, 6), 17);
    tern_tensor *w = leaf(device, TERN_F32, TERN_SHAPE(4, 4, 3, 3), 18);
    tern_tensor *h = tern_mul_scalar(x, TERN_SCALAR(2));
    if (hooked)
        tern_register_hook(h, see, NULL);
    const tern_conv_function_options o = {.padding = TERN_DIMS(1)};
    tern_tensor *weight = turned ? tern_transpose(w, 2, 3) : w;
    tern_tensor *y = tern_conv2d(h, weight, NULL, &o);
    y = tern_add(y, tern_add(tern_cos(h), tern_conv2d(h, weight, NULL, &o)));
    tern_tensor *dy = test_uniform(device, TERN_F32, TERN_SHAPE(2, 4, 6, 6), -1, 1, 19);
    assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
    out[0] = tern_grad(x);
    out[1] = tern_grad(w);
    out[2] = hooked ? seen : out[0];
}

static void a_convolution_adds_to_what_came_before(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int form = 0; form < 4; form++)
        TERN_SCOPE {
            tern_tensor *here[3], *there[3];
            convolve(device, form & 1, form & 2, here);
            convolve("cpu", form & 1, form & 2, there);
            close_to(here, there, 3, 2e-5);
            if (form & 1) {
                tern_release(here[2]);
                tern_release(there[2]);
            }
        }
}

/* ---- float32 and halves ------------------------------------------------------------------------ */

/* The sum, as PyTorch's promotion has it, and the gradients, each of its input's type. */
static void sums_of_float32_and_halves(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_BF16, TERN_F16};
    static const int64_t sizes[] = {1, 3, 64, 4099};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 4; i++)
            for (int form = 0; form < 4; form++)
                TERN_SCOPE {
                    tern_tensor *x = leaf(device, TERN_F32, TERN_SHAPE(sizes[i] + 1), 20);
                    tern_tensor *y = leaf(device, types[t], TERN_SHAPE(sizes[i] + 1), 21);
                    int64_t first = form & 1; /* where no quad begins */
                    tern_tensor *a = tern_narrow(x, 0, first, sizes[i]);
                    tern_tensor *b = tern_narrow(y, 0, first, sizes[i]);
                    tern_tensor *z = form & 2 ? tern_add(a, b) : tern_add(b, a);
                    assert_int_equal(tern_dtype_of(z), TERN_F32);
                    assert_same(z, tern_add(a, tern_to_dtype(b, TERN_F32)));
                    assert_ok(tern_backward(tern_sum(tern_square(z))));
                    assert_int_equal(tern_dtype_of(tern_grad(y)), types[t]);
                    tern_tensor *slope = tern_mul_scalar(tern_detach(z), TERN_SCALAR(2));
                    assert_same(tern_narrow(tern_grad(x), 0, first, sizes[i]), slope);
                    assert_same(tern_narrow(tern_grad(y), 0, first, sizes[i]),
                                tern_to_dtype(slope, types[t]));
                    tern_tensor *w = tern_clone(tern_detach(a)), *v = tern_clone(tern_detach(b));
                    assert_same(tern_add_(w, b), z);
                    assert_same(tern_add_(v, a), tern_to_dtype(z, types[t]));
                }
}

static const struct CMUnitTest tests[] = {
    TEST(sums_of_float32_and_halves),
    TEST(a_convolution_adds_to_what_came_before),
    TEST(weights_are_cast_together),
    TEST(casts_outlive_their_module),
    TEST(a_norm_adds_to_what_came_before),
    TEST(a_loss_makes_its_gradient),
    TEST(logits_in_half_precision_are_read_as_they_are),
    TEST(packed_attention_has_packed_gradients),
};
TEST_MAIN(tests)
