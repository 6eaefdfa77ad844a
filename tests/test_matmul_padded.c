/* test_matmul_padded.c -- large products of half precision of odd dims, which CUDA computes by padded copies:
 * forward and gradients as they are on the cpu. */
#include "support.h"
#include "tensor/leaf.h"
#include "tensor/storage.h"
#include <math.h>
#include <string.h>

/* Rows of the left factor: as many as CUDA goes by copies for. */
static int64_t rows_on(const char *device)
{
    return strncmp(device, "cuda", 4) == 0 ? 257 : 3;
}

/* Memory of matrices with padded rows that is given out next is full of NaN. */
static void fill_free_memory(const char *device, int64_t rows, int64_t in, int64_t out)
{
    const int64_t sizes[][2] = {{out, in}, {4 * rows, out}, {4 * rows, in}};
    TERN_SCOPE
        for (int k = 0; k < 12; k++) {
            const int64_t *s = sizes[k % 3];
            const tern_shape padded = TERN_SHAPE((s[0] + 7) / 8 * 8, (s[1] + 7) / 8 * 8);
            assert_non_null(tern_full(padded, NAN, TERN_BF16, device));
        }
}

/* On the cpu they lie one behind the other; on a device each may begin at the next multiple of 8. */
static bool rows_are_dense_or_padded(const tern_tensor *y, const char *device)
{
    const int64_t columns = tern_size(y, -1), step = tern_stride(y, -2);
    return tern_is_contiguous(y) ||
           (strcmp(device, "cpu") != 0 && tern_stride(y, -1) == 1 && step == (columns + 7) / 8 * 8);
}

/* Of numbers whose sums are exact. */
static void large_products_of_odd_rows_are_exact(void **state)
{
    static const int64_t cases[][2] = {{128, 8193}, {1027, 1025}};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            const tern_dtype dtype = i ? TERN_F16 : TERN_BF16;
            const int64_t in = cases[i][0], out = cases[i][1], rows = rows_on(device);
            tern_tensor *y[2], *dx[2], *dw[2];
            fill_free_memory(device, rows, in, out);
            for (int d = 0; d < 2; d++) {
                const char *where = d ? "cpu" : device;
                tern_tensor *of[3];
                const tern_shape shapes[] = {TERN_SHAPE(4, rows, in), TERN_SHAPE(out, in),
                                             TERN_SHAPE(4, rows, out)};
                for (int k = 0; k < 3; k++) {
                    tern_tensor *x =
                        test_uniform(where, TERN_F32, shapes[k], -1, 1, 7 + (uint64_t)k);
                    of[k] = tern_detach(tern_to_dtype(tern_round(x), d ? TERN_F64 : dtype));
                }
                tern_requires_grad_(of[0], true);
                tern_requires_grad_(of[1], true);
                y[d] = tern_linear(of[0], of[1], NULL);
                assert_true(rows_are_dense_or_padded(y[d], where));
                assert_ok(tern_backward_with(y[d], &(tern_backward_options){.gradient = of[2]}));
                y[d] = tern_to(tern_to_dtype(tern_detach(y[d]), dtype), "cpu");
                dx[d] = tern_to(tern_to_dtype(tern_grad(of[0]), dtype), "cpu");
                dw[d] = tern_to(tern_to_dtype(tern_grad(of[1]), dtype), "cpu");
            }
            assert_close(y[0], y[1], .abs = 0);
            assert_close(dx[0], dx[1], .abs = 0);
            assert_close(dw[0], dw[1], .abs = 0);
        }
}

/* The gradient of such logits, which cross entropy makes with padded rows, and its products. */
static void a_loss_of_odd_rows_has_the_cpus_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            const int64_t rows = rows_on(device);
            const tern_shape shapes[] = {TERN_SHAPE(4, rows, 128), TERN_SHAPE(8193, 128)};
            tern_tensor *got[2][2];
            for (int d = 0; d < 2; d++) {
                const char *where = d ? "cpu" : device;
                tern_tensor *of[2], *logits, *loss;
                tern_tensor *target = tern_arange(0, 4 * rows, 1, TERN_I64, where);
                for (int k = 0; k < 2; k++)
                    of[k] = tern_requires_grad_(
                        test_uniform(where, TERN_F32, shapes[k], -1, 1, 3 + (uint64_t)k), true);
                TERN_AUTOCAST (where, TERN_BF16) {
                    logits = tern_linear(of[0], of[1], NULL);
                    logits =
                        i ? tern_mul(logits, 0.5) : logits; /* what is between takes them too */
                    fill_free_memory(where, rows, 128, 8193);
                    loss =
                        tern_cross_entropy(tern_view(logits, TERN_SHAPE(-1, 8193)), target, NULL);
                }
                assert_ok(tern_backward(loss));
                for (int k = 0; k < 2; k++)
                    got[d][k] = tern_to(tern_grad(of[k]), "cpu");
            }
            for (int k = 0; k < 2; k++) {
                const double most = tern_item(tern_max(tern_abs(got[1][k])));
                assert_close(got[0][k], got[1][k], .abs = 1e-2 * most, .rel = 2e-2);
            }
        }
}

/* A weight's gradient that is to lie in a bucket leaves the gradients that follow it there. */
static void a_product_into_a_bucket_writes_nothing_behind_it(void **state)
{
    enum { OUT = 8193, IN = 128, MORE = 7 * IN };
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            const int64_t rows = rows_on(device);
            tern_tensor *bucket = tern_full(TERN_SHAPE(OUT * IN + MORE), 3, TERN_BF16, device);
            tern_tensor *x = tern_ones(TERN_SHAPE(4 * rows, IN), TERN_BF16, device);
            tern_tensor *w = tern_zeros(TERN_SHAPE(OUT, IN), TERN_BF16, device);
            tern_tensor *view = tern_storage_view(bucket, TERN_SHAPE(OUT, IN), NULL, 0);
            tern_requires_grad_(w, true);
            assert_ok(tern_set_grad_bucket_view(w, view));
            tern_tensor *y = tern_linear(x, w, NULL);
            tern_tensor *dy = tern_ones(TERN_SHAPE(4 * rows, OUT), TERN_BF16, device);
            if (i) /* with padded rows */
                assert_ok(tern_backward(tern_sum(y)));
            else
                assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
            assert_ptr_equal(tern_grad(w), view);
            assert_true(
                tern_equal(view, tern_full(TERN_SHAPE(OUT, IN), 4 * rows, TERN_BF16, device)));
            assert_true(tern_item(tern_all(tern_eq(tern_narrow(bucket, 0, OUT * IN, MORE), 3))) !=
                        0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(large_products_of_odd_rows_are_exact),
        TEST(a_loss_of_odd_rows_has_the_cpus_gradients),
        TEST(a_product_into_a_bucket_writes_nothing_behind_it),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
