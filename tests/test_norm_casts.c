/* test_norm_casts.c -- casts to half precision behind layer norm, whose gradient goes on to a sum of float32 and halves: the
 * same numbers as on the cpu, one by one, in fewer launches where devices have work-groups. */
#include "support.h"
#include "device/device.h"
#include <string.h>

static tern_tensor *leaf(const char *device, tern_dtype dtype, tern_shape shape, uint64_t seed)
{
    return tern_requires_grad_(test_uniform(device, dtype, shape, -1, 1, seed), true);
}

static tern_tensor *seen; /* by the hook */
static tern_tensor *see(tern_tensor *gradient, void *user)
{
    (void)user;
    seen = tern_keep(tern_clone(gradient));
    return NULL;
}

static tern_tensor *norm(bool rms, tern_tensor *x, int64_t n, tern_tensor *w, tern_tensor *b)
{
    return rms ? tern_rms_norm(x, TERN_SHAPE(n), w, 0.1)
               : tern_layer_norm(x, TERN_SHAPE(n), w, b, 0.1);
}

enum {
    CAST,
    CAST_HOOKED,
    CAST_RETAINED,
    CAST_BESIDE,
    CAST_FROZEN,
    CAST_TWO_NORMS,
    CAST_SUM_HOOKED,
    CASTS
};

/* Of h = 2 x + z, of float32 and half, and y = norm(h) in half precision: the gradients of x, z, w and b, and what a hook or
 * the tensor itself had of norm(h)'s or h's. How many kernels the way back took. */
static uint64_t cast_norm(const char *device, tern_dtype half, int use, bool rms, int64_t rows,
                          int64_t n, tern_tensor **out)
{
    tern_tensor *x = leaf(device, TERN_F32, TERN_SHAPE(rows, n), 1);
    tern_tensor *z = leaf(device, half, TERN_SHAPE(rows, n), 5);
    tern_tensor *w = leaf(device, TERN_F32, TERN_SHAPE(n), 2),
                *b = leaf(device, TERN_F32, TERN_SHAPE(n), 3);
    tern_tensor *c = test_uniform(device, half, TERN_SHAPE(rows, n), -1, 1, 6);
    if (use == CAST_FROZEN)
        tern_requires_grad_(w, false);
    tern_tensor *h = tern_add(tern_mul_scalar(x, TERN_SCALAR(2)), tern_neg(z));
    tern_tensor *wide = norm(rms, h, n, w, use == CAST_FROZEN ? NULL : b);
    seen = NULL;
    if (use == CAST_HOOKED || use == CAST_SUM_HOOKED)
        tern_register_hook(use == CAST_HOOKED ? wide : h, see, NULL);
    if (use == CAST_RETAINED)
        tern_retain_grad(wide);
    tern_tensor *y = tern_mul(tern_to_dtype(wide, half), c);
    tern_tensor *sum = tern_add(tern_cos(h), y);
    if (use == CAST_BESIDE)
        sum = tern_add(sum, tern_sin(wide));
    if (use == CAST_TWO_NORMS)
        sum = tern_add(sum, tern_mul(tern_to_dtype(norm(false, h, n, b, w), half), c));
    tern_tensor *dy = test_uniform(device, TERN_F32, TERN_SHAPE(rows, n), -1, 1, 4);
    const uint64_t before = launches(device);
    assert_ok(tern_backward_with(sum, &(tern_backward_options){.gradient = dy}));
    const uint64_t kernels = launches(device) - before;
    assert_int_equal(tern_dtype_of(tern_grad(z)), half);
    out[0] = tern_grad(x);
    out[1] = tern_to_dtype(tern_grad(z), TERN_F32);
    out[2] = use == CAST_FROZEN ? out[0] : tern_grad(w);
    out[3] = use == CAST_FROZEN || rms ? out[0] : tern_grad(b);
    out[4] = use == CAST_RETAINED ? tern_grad(wide) : seen ? seen : out[0];
    assert_int_equal(tern_dtype_of(out[4]), TERN_F32);
    return kernels;
}

static void casts_behind_a_norm_are_part_of_it(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{3, 1}, {7, 5}, {9, 300}, {70, 32}, {5, 1024}, {3, 1030}};
    static const tern_dtype types[] = {TERN_BF16, TERN_F16};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < 2; t++)
        for (int i = t; i < 6; i += 1 + 3 * t)
            for (int use = 0; use < CASTS; use++)
                for (int rms = 0; rms < 2; rms++)
                    TERN_SCOPE {
                        tern_tensor *here[5], *there[5];
                        uint64_t kernels =
                            cast_norm(device, types[t], use, rms, sizes[i][0], sizes[i][1], here);
                        tern_tensor *saw = seen;
                        cast_norm("cpu", types[t], use, rms, sizes[i][0], sizes[i][1], there);
                        assert_close(here[1], there[1], .abs = 1e-2, .rel = 1e-2);
                        here[1] = there[1];
                        for (int k = 0; k < 5; k++)
                            assert_close(here[k], there[k], .abs = 1e-4, .rel = 1e-4);
                        tern_release(seen);
                        tern_release(saw);
                        if (use == CAST_HOOKED && sizes[i][1] <= 1024) {
                            uint64_t fewer = cast_norm(device, types[t], CAST, rms, sizes[i][0],
                                                       sizes[i][1], there);
                            bool grouped = strncmp(device, "cuda", 4) == 0;
                            assert_true(grouped ? fewer + 1 < kernels : fewer <= kernels);
                        }
                    }
}

/* The norm that was cast makes the cast with its result from then on: where it is still what it was, and in that type. */
static void a_norm_makes_its_cast(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{3, 1}, {9, 300}, {3, 1030}};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        for (int rms = 0; rms < 2; rms++)
            TERN_SCOPE {
                const bool grouped = tern_place_is_grouped(tern_place_find(device, "test"));
                const int64_t n = sizes[i][1];
                tern_tensor *x = leaf(device, TERN_F32, TERN_SHAPE(sizes[i][0], n), 1);
                tern_tensor *w = leaf(device, TERN_F32, TERN_SHAPE(n), 2);
                tern_tensor *b = leaf(device, TERN_F32, TERN_SHAPE(n), 3);
                tern_tensor *wide = NULL, *half = NULL, *first = NULL;
                for (int run = 0; run < 3; run++) {
                    uint64_t before = launches(device);
                    wide = norm(rms, x, n, w, b);
                    half = tern_to_dtype(wide, TERN_BF16);
                    before = launches(device) - before; /* a weight before may have been there */
                    assert_true(before == 2 || grouped);
                    assert_true(before == 1 || !grouped || run == 0);
                    first = run ? first : half;
                    assert_same(half, first);
                    assert_same(half, tern_to_dtype(wide, TERN_BF16));
                    assert_ok(tern_backward(tern_sum(tern_mul(half, half))));
                }
                tern_tensor *other = tern_to_dtype(norm(rms, x, n, w, b), TERN_F16);
                assert_same(other, tern_to_dtype(wide, TERN_F16));
                wide = norm(rms, x, n, w, b);
                TERN_NO_GRAD
                    tern_mul_scalar_(wide, TERN_SCALAR(2));
                assert_close(tern_to_dtype(wide, TERN_F16), tern_mul_scalar(other, TERN_SCALAR(2)),
                             .abs = 1e-6);
                wide = norm(rms, x, n, w, b);
                assert_int_equal(tern_dtype_of(tern_relu(wide)), TERN_F32);
                assert_same(tern_relu(wide), tern_maximum(wide, tern_zeros_like(wide)));
            }
}

/* Of halves alone there is no other type to note the gradient in, though a sum is before the norm. */
static void halves_alone_have_one_gradient(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_BF16, TERN_F16};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < 2; t++)
        TERN_SCOPE {
            tern_tensor *dx[2];
            for (int there = 0; there < 2; there++) {
                const char *on = there ? "cpu" : device;
                tern_tensor *x = leaf(on, types[t], TERN_SHAPE(9, 20), 1),
                            *w = leaf(on, types[t], TERN_SHAPE(20), 2);
                tern_tensor *z = tern_add(tern_neg(x), tern_sin(x));
                tern_tensor *y = norm(false, z, 20, w, NULL);
                assert_ok(tern_backward(tern_sum(tern_mul(tern_cos(y), tern_sin(z)))));
                dx[there] = tern_grad(x);
            }
            assert_close(dx[0], dx[1], .abs = 5e-2, .rel = 5e-2);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(casts_behind_a_norm_are_part_of_it),
        TEST(a_norm_makes_its_cast),
        TEST(halves_alone_have_one_gradient),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
