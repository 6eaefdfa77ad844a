/* test_short_rows.c -- rows of up to 256 elements, which kernels have builds of their own for, of
 * every size of team: softmax, norms, cross entropy, sums, means and variances with their
 * gradients, of rows that begin anywhere. */
#include "support.h"
#include <stdio.h>
#include <string.h>

enum {
    UP_TO_LAYER_NORM = 3,
    ENTROPY = 6,
    WEIGHTED = 8,
    EACH = 9,
    WITH_PARAMETERS = 10,
    KINDS = 12,
    MOST = 4
};

/* What is done with x (rows, n); w and b are (n), target (rows). */
static tern_tensor *apply(int kind, tern_tensor *x, tern_tensor *w, tern_tensor *b,
                          tern_tensor *target)
{
    const tern_shape row = TERN_SHAPE(tern_size(w, 0));
    switch (kind) {
    case 0:
        return tern_softmax(x, 1);
    case 1:
        return tern_log_softmax(x, 1);
    case 2:
    case WITH_PARAMETERS:
        return tern_layer_norm(x, row, w, b, 0.1);
    case 3:
    case WITH_PARAMETERS + 1:
        return tern_rms_norm(x, row, w, 0.1);
    case 4:
        return tern_sum_dim(x, TERN_DIMS(1), false);
    case 5:
        return tern_mean_dim(x, TERN_DIMS(1), true);
    case 7:
        return tern_var_dim(x, TERN_DIMS(1), 0, false);
    case WEIGHTED:
    case EACH:
        return tern_cross_entropy(
            x, target,
            &(tern_cross_entropy_options){.weight = tern_add_scalar(tern_abs(w), TERN_SCALAR(0.5)),
                                          .label_smoothing = tern_size(w, 0) % 2 ? 0.1 : 0,
                                          .reduction = kind == EACH ? TERN_REDUCTION_NONE
                                                                    : TERN_REDUCTION_MEAN,
                                          .ignore_index = {true, 1}});
    default:
        return tern_cross_entropy(
            x, target,
            &(tern_cross_entropy_options){.label_smoothing = 0.1, .ignore_index = {true, 1}});
    }
}

/* Elements of `all` from `shift` on, of this shape. */
static tern_tensor *part_of(tern_tensor *all, tern_shape shape, int64_t shift)
{
    const tern_shape stride = shape.ndim == 2 ? TERN_SHAPE(shape.dims[1], 1) : TERN_SHAPE(1);
    return test_view(all, shape, stride, shift);
}

static tern_shape shape_of(const tern_tensor *x)
{
    return tern_dim(x) == 0   ? TERN_SHAPE_SCALAR
           : tern_dim(x) == 1 ? TERN_SHAPE(tern_size(x, 0))
                              : TERN_SHAPE(tern_size(x, 0), tern_size(x, 1));
}

/* y, and with it dx, dw and db, of this kind, in float64 on the cpu; dy is what this dtype holds.
 * Returns how many there are. */
static int run(int kind, tern_dtype dtype, tern_tensor *const in[3], tern_tensor *target,
               tern_tensor *out[MOST])
{
    const int n = kind == WITH_PARAMETERS ? 4 : kind > WITH_PARAMETERS ? 3 : 2;
    for (int i = 0; i < n - 1; i++)
        tern_requires_grad_(in[i], true);
    tern_tensor *y = apply(kind, in[0], in[1], in[2], target);
    tern_tensor *weight =
        tern_to(test_uniform("cpu", dtype, shape_of(y), -1, 1, 9), tern_device(y));
    weight = tern_to_dtype(weight, tern_dtype_of(y));
    assert_ok(tern_backward(kind == ENTROPY ? y : tern_sum(tern_mul(y, weight))));
    for (int i = 0; i < n; i++)
        out[i] = tern_to_dtype(tern_to(i ? tern_grad(in[i - 1]) : tern_detach(y), "cpu"), TERN_F64);
    return n;
}

/* What y (0), dx (1), dw or db of this kind is about. */
static double size_of(int kind, int i, int64_t rows, int64_t n)
{
    const bool is_share = kind == 0 || (kind >= 5 && kind < WITH_PARAMETERS && i == 1);
    return is_share ? 1.0 / (double)(kind == ENTROPY || kind == WEIGHTED ? rows * n : n) : 1;
}

static void compare(const char *device, tern_dtype dtype, int64_t rows, int64_t n, int64_t shift,
                    int kinds)
{
    const tern_shape sizes[] = {TERN_SHAPE(rows, n), TERN_SHAPE(n), TERN_SHAPE(n)};
    const double near = dtype == TERN_F64   ? 1e-12
                        : dtype == TERN_F32 ? 1e-5
                        : dtype == TERN_F16 ? 4e-3
                                            : 3e-2;
    static const char *const names[MOST] = {"y", "dx", "dw", "db"};
    for (int kind = 0; kind < kinds; kind++)
        TERN_SCOPE {
            tern_tensor *in[3], *reference[3], *out[MOST], *expected[MOST];
            for (int i = 0; i < 3; i++) {
                tern_tensor *all =
                    test_uniform(device, dtype, TERN_SHAPE(rows * n + 16), -3, 3, (uint64_t)i);
                in[i] = part_of(all, sizes[i], shift);
                reference[i] = tern_to_dtype(tern_to(tern_contiguous(in[i]), "cpu"), TERN_F64);
            }
            tern_tensor *target = tern_to_dtype(
                test_uniform("cpu", TERN_F32, TERN_SHAPE(rows), 0, (double)n, 7), TERN_I64);
            const int n_out = run(kind, dtype, in, tern_to(target, device), out);
            run(kind, dtype, reference, target, expected);
            for (int i = 0; i < n_out; i++) {
                char what[96];
                snprintf(what, sizeof what, "%s %d of (%d, %d) of %s, %d behind", names[i], kind,
                         (int)rows, (int)n, tern_dtype_name(dtype), (int)shift);
                const double abs = near * size_of(kind, i, rows, n);
                test_close(out[i], expected[i], (test_tolerance){.abs = abs, .rel = near}, what,
                           __FILE__, __LINE__);
            }
        }
}

/* How many programs softmax of so long rows brings. */
static uint64_t programs_of(const char *device, int64_t n)
{
    uint64_t counts[2];
    TERN_SCOPE {
        tern_tensor *x = tern_to(test_uniform("cpu", TERN_F32, TERN_SHAPE(7, n), -3, 3, 1), device);
        for (int i = 0; i < 2; i++) {
            tern_memory_stats stats = {0};
            assert_non_null(i ? tern_softmax(x, 1) : x);
            assert_ok(tern_memory_get_stats(device, &stats));
            counts[i] = stats.programs_built + stats.programs_loaded;
        }
    }
    return counts[1] - counts[0];
}

/* Devices whose kernels come with indices of 32 bits have one for each size of team, and one for
 * what is longer. Before all else that makes programs here. */
static void each_team_has_a_program(void **state)
{
    (void)state;
    static const int64_t lengths[] = {300, 20, 40, 100, 256};
    FOR_EACH_DEVICE(device)
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < 5; i++) {
            const bool has_teams = test_gpu_form(device) || strncmp(device, "cuda", 4) == 0;
            const uint64_t expected =
                again == 0 && (i == 0 ? strcmp(device, "cpu") != 0 : has_teams);
            assert_int_equal(programs_of(device, lengths[i] + again), expected);
        }
}

/* Lengths on both sides of each size of team, of whole vectors and of others. */
static void rows_of_every_team(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1,  2,  5,   8,   17,  31,  32,  33,  48,  64, 65,
                                      72, 99, 128, 130, 197, 200, 255, 256, 257, 264};
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_F16, TERN_F64};
    FOR_EACH_DEVICE(device)
    {
        /* Two of the teams, in bfloat16; the first of them only softmax and layer norm, with what comes between. */
        const bool few = test_compiles_cpp(device);
        const bool is_slow = test_on_pocl(device) || test_on_standin(device);
        const int64_t rows = test_thorough(device) || !is_slow ? 301 : 101;
        for (int d = few; d < (test_thorough(device) ? 4 : 2); d++)
            for (size_t i = few ? 4 : 0;
                 i < sizeof lengths / sizeof *lengths && test_has(device, dtypes[d]);
                 i += few ? 9 : 1)
                compare(device, dtypes[d], rows, lengths[i], (int64_t)i % 4 == 3 ? 8 : 0,
                        few && i == 4                     ? UP_TO_LAYER_NORM
                        : i % 2 == 1 || lengths[i] == 256 ? KINDS
                                                          : WITH_PARAMETERS);
    }
}

/* Rows that begin between vectors: those of an odd length, and tensors within others. */
static void rows_that_begin_anywhere(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int64_t shift = 1; shift < 8; shift += test_thorough(device) ? 1 : 3) {
        compare(device, TERN_BF16, 67, 64, shift, KINDS);
        if (!test_compiles_cpp(device))
            compare(device, TERN_F32, 67, 250, shift, KINDS);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(each_team_has_a_program),
    TEST(rows_of_every_team),
    TEST(rows_that_begin_anywhere),
};
TEST_MAIN(tests)
