/* test_forms.c -- kernels that have a form of their own for dense, short or turned tensors:
 * whatever form is taken, by the size and the place in memory, the result is
 * what the cpu computes. */
#include "support.h"
#include <stdlib.h>

/* Elements low, low + step, ... below a limit, in turn; exact in every dtype that is used here. */
static tern_tensor *numbers(const char *device, tern_dtype dtype, tern_shape shape, int step)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++)
        n *= shape.dims[d];
    tern_tensor *x = tern_arange(0, (double)n, 1, TERN_I64, "cpu");
    x = tern_remainder_scalar(tern_mul_scalar(x, TERN_SCALAR(step)), TERN_SCALAR(97));
    return tern_to(tern_to_dtype(tern_view(tern_sub_scalar(x, TERN_SCALAR(48)), shape), dtype),
                   device);
}

/* What the rows' kernels are: x + y, x > y, -x, x > a, relu's gradient, lerp, another type. */
static tern_tensor *compute(int which, tern_tensor *x, tern_tensor *y)
{
    tern_tensor *leaf;
    switch (which) {
    case 0:
        return tern_add(x, y);
    case 1:
        return tern_gt(x, y);
    case 2:
        return tern_neg(x);
    case 3:
        return tern_gt_scalar(x, TERN_SCALAR(3));
    case 4:
        leaf = tern_requires_grad_(tern_detach(x), true);
        assert_ok(tern_backward_with(tern_relu(leaf),
                                     &(tern_backward_options){.gradient = tern_add(x, x)}));
        return tern_grad(leaf);
    case 5:
        return tern_lerp(x, y, x);
    default:
        return tern_to_dtype(x, tern_dtype_of(x) == TERN_BF16 ? TERN_F32 : TERN_BF16);
    }
}
enum { COMPUTED = 7 };

static void all_of(const char *device, tern_tensor *x, tern_tensor *y, tern_tensor *x_cpu,
                   tern_tensor *y_cpu)
{
    bool few = tern_dtype_of(x) == TERN_BF16 && !test_thorough(device); /* the first and the last */
    for (int i = 0; i < COMPUTED; i += few ? COMPUTED - 1 : 1)
        TERN_SCOPE {
            assert_same(compute(i, x, y), compute(i, x_cpu, y_cpu));
        }
}

static const tern_dtype floats[] = {TERN_F32, TERN_F16, TERN_BF16, TERN_F64};

static void dense_elements_of_any_number_and_place(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 3, 4, 7, 8, 64, 1030};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < (test_thorough(device) ? 4 : 3) && test_has(device, floats[t]); t++)
        for (int i = 0; i < 7; i++)
            for (int64_t at = 0; at < 5; at++)
                TERN_SCOPE {
                    tern_shape whole = TERN_SHAPE(counts[i] + 8);
                    tern_tensor *x = numbers("cpu", floats[t], whole, 7);
                    tern_tensor *y = numbers("cpu", floats[t], whole, 11);
                    tern_tensor *dx = tern_to(x, device), *dy = tern_to(y, device);
                    int64_t n = counts[i];
                    all_of(device, tern_narrow(dx, 0, at, n), tern_narrow(dy, 0, at / 2 * 2, n),
                           tern_narrow(x, 0, at, n), tern_narrow(y, 0, at / 2 * 2, n));
                    /* in place: the elements around stay */
                    tern_add_(tern_narrow(dx, 0, at, n), tern_narrow(dy, 0, at, n));
                    tern_add_(tern_narrow(x, 0, at, n), tern_narrow(y, 0, at, n));
                    assert_same(dx, x);
                }
}

/* x of (6, n) in rows of a stride, y that repeats along one of them, or both. */
static void rows_that_repeat_or_have_gaps(void **state)
{
    (void)state;
    static const struct {
        int64_t n, stride, at;
    } rows[] = {{12, 12, 0}, {10, 10, 0}, {12, 16, 0}, {12, 13, 0}, {12, 16, 1}, {64, 64, 4}};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 6; i++)
            for (int form = 0; form < 4; form++)
                TERN_SCOPE {
                    tern_tensor *in[2][2];
                    for (int c = 0; c < 2; c++) {
                        const char *on = c ? "cpu" : device;
                        tern_tensor *x =
                            numbers(on, floats[t], TERN_SHAPE(6, rows[i].stride + 2), 7);
                        tern_tensor *y = numbers(on, floats[t], TERN_SHAPE(6, rows[i].n), 11);
                        x = test_view(x, TERN_SHAPE(6, rows[i].n), TERN_SHAPE(rows[i].stride, 1),
                                      rows[i].at);
                        y = form & 1 ? tern_narrow(y, 0, 2, 1) : y;
                        y = form & 2 ? tern_narrow(y, 1, 3, 1) : y;
                        in[c][0] = x;
                        in[c][1] = y;
                    }
                    all_of(device, in[0][0], in[0][1], in[1][0], in[1][1]);
                    assert_same(tern_add(in[0][1], in[0][0]), tern_add(in[1][1], in[1][0]));
                }
}

/* Each row of a team's, a warp's and a group's length; the last group is not full. */
static void rows_of_any_length(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1,  3,  4,  5,   8,   9,   16,  17,
                                      31, 33, 64, 100, 257, 512, 513, 700};
    static const int64_t counts[] = {1, 2, 7, 33};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < (test_thorough(device) ? 4 : 1) && test_has(device, floats[t]); t++)
        for (int i = 0; i < 16; i++)
            for (int r = 0; r < 4; r++)
                TERN_SCOPE {
                    double near = t == 0 ? 1e-5 : t == 3 ? 1e-12 : 4e-3;
                    tern_tensor *results[2][8];
                    int64_t n = lengths[i];
                    for (int c = 0; c < 2; c++) {
                        const char *on = c ? "cpu" : device;
                        tern_shape shape = TERN_SHAPE(counts[r], n);
                        tern_tensor *x =
                            tern_div_scalar(numbers(on, floats[t], shape, 7), TERN_SCALAR(16));
                        tern_tensor *dy =
                            tern_div_scalar(numbers(on, floats[t], shape, 11), TERN_SCALAR(64));
                        tern_tensor *w = numbers(on, floats[t], TERN_SHAPE(n), 13),
                                    **to = results[c];
                        tern_values_indices peak;
                        w = tern_div_scalar(w, TERN_SCALAR(64));
                        for (int k = 0; k < 3; k++) {
                            tern_tensor *leaf = tern_requires_grad_(tern_clone(x), true);
                            to[2 * k] = k == 0   ? tern_softmax(leaf, -1)
                                        : k == 1 ? tern_log_softmax(leaf, -1)
                                                 : tern_layer_norm(leaf, TERN_SHAPE(n), w, w, 0.25);
                            assert_ok(tern_backward_with(to[2 * k],
                                                         &(tern_backward_options){.gradient = dy}));
                            to[2 * k + 1] = tern_grad(leaf);
                        }
                        to[6] = tern_sum_dim(x, TERN_DIMS(1), false);
                        assert_ok(tern_max_dim(x, 1, false, &peak));
                        to[7] = peak.indices;
                    }
                    for (int k = 0; k < 7; k++)
                        assert_close(results[0][k], results[1][k], .abs = near, .rel = near);
                    assert_same(results[0][7], results[1][7]);
                }
}

/* y[i][j][k] is x's element where dim `a` and `b` changed places, whatever the
 * order of the copy. */
static void copies_between_turned_tensors(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_F32,  TERN_F16, TERN_U8,  TERN_I64,
                                       TERN_BF16, TERN_I32, TERN_BOOL};
    static const int64_t shapes[][3] = {
        {2, 33, 47}, {3, 16, 16}, {1, 32, 64}, {40, 3, 35}, {2, 15, 40}};
    static const int turns[][2] = {{1, 2}, {0, 2}, {0, 1}};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < (test_thorough(device) ? 7 : 4); t++)
        for (int i = 0; i < 5; i++)
            for (int k = 0; k < 3; k++)
                TERN_SCOPE {
                    const int64_t *n = shapes[i];
                    int a = turns[k][0], b = turns[k][1];
                    tern_shape shape = TERN_SHAPE(n[0], n[1], n[2]);
                    tern_tensor *x = numbers(device, types[t], shape, 5);
                    tern_tensor *y = tern_transpose(x, a, b);
                    tern_tensor *back =
                        tern_copy_(tern_transpose(tern_zeros_like(x), a, b), tern_contiguous(y));
                    double *in = test_read(x), *out = test_read(tern_contiguous(y));
                    double *again = test_read(tern_transpose(back, a, b));
                    int64_t at[3], m[3] = {n[0], n[1], n[2]};
                    m[a] = n[b];
                    m[b] = n[a];
                    for (int64_t e = 0; e < n[0] * n[1] * n[2]; e++) {
                        at[0] = e / (n[1] * n[2]), at[1] = e / n[2] % n[1], at[2] = e % n[2];
                        int64_t swap = at[a];
                        at[a] = at[b];
                        at[b] = swap;
                        assert_true(in[e] == out[(at[0] * m[1] + at[1]) * m[2] + at[2]]);
                        assert_true(in[e] == again[e]);
                    }
                    free(in);
                    free(out);
                    free(again);
                }
}

static const struct CMUnitTest tests[] = {
    TEST(dense_elements_of_any_number_and_place),
    TEST(rows_that_repeat_or_have_gaps),
    TEST(rows_of_any_length),
    TEST(copies_between_turned_tensors),
};

TEST_MAIN(tests)
