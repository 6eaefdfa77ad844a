/* test_matmul.c -- matmul, mm, bmm and linear against sums in double precision, for every
 * combination of ranks, for strided inputs and all types; gradients; errors. */
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include "support.h"
#include <stdlib.h>
#include <string.h>

/* ---- a reference: torch.matmul by its definition ----------------------------------------- */

typedef struct reference {
    tern_shape shape;
    double *values;
} reference;

/* Element (batch position, i, j) of x, whose stack broadcasts; a vector is a row or a column. */
static double element(const double *values, tern_shape s, const int64_t *at, int stack, int64_t i,
                      int64_t j, bool is_left)
{
    int own = s.ndim > 2 ? s.ndim - 2 : 0;
    int64_t index = 0;
    for (int d = 0; d < own; d++) {
        int64_t position = at[stack - own + d];
        index = index * s.dims[d] + (s.dims[d] == 1 ? 0 : position);
    }
    if (s.ndim == 1)
        return values[is_left ? j : i];
    return values[(index * s.dims[s.ndim - 2] + i) * s.dims[s.ndim - 1] + j];
}

static reference multiply(tern_tensor *a, tern_tensor *b)
{
    tern_shape sa = tern_shape_of(a), sb = tern_shape_of(b), stack = {0};
    int na = sa.ndim > 2 ? sa.ndim - 2 : 0, nb = sb.ndim > 2 ? sb.ndim - 2 : 0;
    stack.ndim = na > nb ? na : nb;
    int64_t count = 1;
    for (int d = 0; d < stack.ndim; d++) {
        int ia = d - (stack.ndim - na), ib = d - (stack.ndim - nb);
        int64_t da = ia < 0 ? 1 : sa.dims[ia], db = ib < 0 ? 1 : sb.dims[ib];
        stack.dims[d] = da == 1 ? db : da;
        count *= stack.dims[d];
    }
    int64_t m = sa.ndim > 1 ? sa.dims[sa.ndim - 2] : 1, k = sa.dims[sa.ndim - 1];
    int64_t n = sb.ndim > 1 ? sb.dims[sb.ndim - 1] : 1;
    reference r = {stack, malloc((size_t)(count * m * n + 1) * sizeof(double))};
    double *va = test_read(a), *vb = test_read(b), *out = r.values;
    for (int64_t c = 0; c < count; c++) {
        int64_t at[TERN_MAX_DIMS], rest = c;
        for (int d = stack.ndim - 1; d >= 0; d--) {
            at[d] = rest % stack.dims[d];
            rest /= stack.dims[d];
        }
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t p = 0; p < k; p++)
                    sum += element(va, sa, at, stack.ndim, i, p, true) *
                           element(vb, sb, at, stack.ndim, p, j, false);
                *out++ = sum;
            }
    }
    if (sa.ndim > 1)
        r.shape.dims[r.shape.ndim++] = m;
    if (sb.ndim > 1)
        r.shape.dims[r.shape.ndim++] = n;
    free(va);
    free(vb);
    return r;
}

static double tolerance_of(tern_dtype dtype)
{
    return dtype == TERN_F64 ? 1e-13 : dtype == TERN_F32 ? 2e-5 : dtype == TERN_F16 ? 4e-3 : 3e-2;
}

static void check_product(tern_tensor *a, tern_tensor *b)
{
    reference r = multiply(a, b);
    double tolerance = tolerance_of(tern_dtype_of(a));
    TERN_SCOPE {
        tern_tensor *c = tern_matmul(a, b);
        tern_tensor *expected = test_tensor(tern_device(a), tern_dtype_of(a), r.shape, r.values);
        assert_close(c, expected, .abs = tolerance, .rel = tolerance);
    }
    free(r.values);
}

static tern_tensor *uniform(const char *device, tern_dtype dtype, tern_shape shape)
{
    static uint64_t seed;
    return test_uniform(device, dtype, shape, -1, 1, ++seed);
}

/* ---- values ------------------------------------------------------------------------------ */

static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};

static const struct {
    tern_shape a, b;
} ranks[] = {
    {{1, {5}}, {1, {5}}},
    {{1, {1}}, {1, {1}}},
    {{2, {3, 5}}, {1, {5}}},
    {{1, {5}}, {2, {5, 4}}},
    {{2, {3, 5}}, {2, {5, 4}}},
    {{2, {1, 5}}, {2, {5, 1}}},
    {{2, {5, 1}}, {2, {1, 4}}},
    {{3, {2, 3, 5}}, {1, {5}}},
    {{1, {5}}, {3, {2, 5, 4}}},
    {{3, {2, 3, 5}}, {2, {5, 4}}},
    {{2, {3, 5}}, {3, {2, 5, 4}}},
    {{3, {2, 3, 5}}, {3, {2, 5, 4}}},
    {{3, {1, 3, 5}}, {3, {2, 5, 4}}},
    {{3, {2, 3, 5}}, {3, {1, 5, 4}}},
    {{4, {2, 3, 4, 5}}, {4, {2, 3, 5, 2}}},
    {{4, {2, 1, 4, 5}}, {4, {1, 3, 5, 2}}},
    {{4, {2, 3, 4, 5}}, {3, {3, 5, 2}}},
    {{4, {2, 3, 4, 5}}, {1, {5}}},
    {{1, {5}}, {4, {2, 3, 5, 2}}},
    {{5, {2, 1, 2, 3, 5}}, {5, {1, 3, 2, 5, 4}}},
    {{6, {2, 1, 2, 1, 3, 5}}, {6, {1, 3, 1, 2, 5, 4}}},
    {{2, {17, 33}}, {2, {33, 19}}},
    {{2, {9, 300}}, {2, {300, 10}}},
    {{2, {100, 10}}, {2, {10, 1}}},
    {{2, {1, 100}}, {2, {100, 10}}},
    {{2, {70, 600}}, {1, {600}}},
    {{1, {600}}, {2, {600, 70}}},
    {{2, {65, 80}}, {2, {80, 67}}},
    {{3, {7, 64, 32}}, {3, {7, 32, 64}}},
    {{2, {130, 270}}, {2, {270, 300}}},
};

static void values_agree_for_every_combination_of_ranks_and_types(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
            TERN_SCOPE {
                check_product(uniform(device, dtypes[d], ranks[i].a),
                              uniform(device, dtypes[d], ranks[i].b));
            }
}

/* ---- layouts: a tensor of the same elements that lies otherwise -------------------------- */

/* x's elements with the dims in memory in another order, and gaps. */
static tern_tensor *lie(tern_tensor *x, const int *order, int64_t gap)
{
    tern_shape shape = tern_shape_of(x), memory = {0};
    int64_t stride[TERN_MAX_DIMS], step = gap;
    for (int i = shape.ndim - 1; i >= 0; i--) {
        stride[order[i]] = step;
        step *= shape.dims[order[i]] + (gap > 1);
    }
    memory.ndim = 1;
    memory.dims[0] = step + 3;
    tern_tensor *whole = tern_full(memory, TERN_SCALAR(99.0), tern_dtype_of(x), tern_device(x));
    tern_tensor *y = tern_scoped(tern_tensor_alias(whole, &shape, stride, 3));
    assert_non_null(y);
    assert_ok(tern_copy_elements(y, x));
    return y;
}

static const int orders[][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {1, 0, 2, 3},
                                {2, 0, 1, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}};

static void strided_inputs_give_what_dense_ones_give(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
            for (size_t j = 0; j < sizeof orders / sizeof *orders; j++)
                TERN_SCOPE {
                    tern_tensor *a = uniform(device, dtypes[d], TERN_SHAPE(2, 3, 5, 7));
                    tern_tensor *b = uniform(device, dtypes[d], TERN_SHAPE(2, 3, 7, 4));
                    double tolerance = tolerance_of(dtypes[d]);
                    for (int64_t gap = 1; gap < 3; gap++)
                        assert_close(tern_matmul(lie(a, orders[i], gap), lie(b, orders[j], gap)),
                                     tern_matmul(a, b), .abs = tolerance, .rel = tolerance);
                }
}

static void expanded_inputs_are_repeated(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        static const int64_t strides[][3] = {{0, 4, 1}, {0, 0, 1}, {0, 1, 0}, {4, 0, 0}, {0, 0, 0}};
        tern_shape shape = TERN_SHAPE(2, 3, 4);
        tern_tensor *base = uniform(device, TERN_F32, TERN_SHAPE(16));
        tern_tensor *other = uniform(device, TERN_F32, TERN_SHAPE(2, 4, 5));
        for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
            TERN_SCOPE {
                tern_tensor *x = tern_scoped(tern_tensor_alias(base, &shape, strides[i], 0));
                tern_tensor *left = tern_matmul(x, other);
                assert_close(left, tern_matmul(tern_contiguous(x), other), .abs = 1e-6);
            }
    }
}

static void rows_with_gaps_are_not_copied(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *a = uniform(device, TERN_F32, TERN_SHAPE(2, 3, 5, 7));
        tern_tensor *b = uniform(device, TERN_F32, TERN_SHAPE(2, 3, 7, 4));
        tern_tensor *w = uniform(device, TERN_F32, TERN_SHAPE(7, 4));
        static const int turned[] = {0, 1, 3, 2}, split[] = {2, 0, 1, 3};
        tern_tensor *at = lie(a, turned, 1), *as = lie(a, split, 1), *bt = lie(b, turned, 1);
        uint64_t before = launches(device);
        assert_non_null(tern_matmul(at, b));
        assert_non_null(tern_matmul(as, bt));
        assert_non_null(tern_matmul(as, w));
        assert_int_equal(launches(device) - before, 3);
    }
}

static void sums_of_nothing_are_zero(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *c = tern_matmul(tern_ones(TERN_SHAPE(2, 0), 0, device),
                                     tern_ones(TERN_SHAPE(0, 3), 0, device));
        assert_values(c, 0, 0, 0, 0, 0, 0);
        assert_shape(tern_matmul(tern_ones(TERN_SHAPE(0, 2), 0, device),
                                 tern_ones(TERN_SHAPE(2, 3), 0, device)),
                     0, 3);
        assert_shape(tern_matmul(tern_ones(TERN_SHAPE(4, 0, 2), 0, device),
                                 tern_ones(TERN_SHAPE(2, 3), 0, device)),
                     4, 0, 3);
        assert_values(
            tern_matmul(tern_ones(TERN_SHAPE(0), 0, device), tern_ones(TERN_SHAPE(0), 0, device)),
            0);
        tern_tensor *bias = TENSOR(device, TERN_F32, TERN_SHAPE(2), 3, 4);
        assert_values(tern_linear(tern_ones(TERN_SHAPE(2, 0), 0, device),
                                  tern_ones(TERN_SHAPE(2, 0), 0, device), bias),
                      3, 4, 3, 4);
    }
}

/* ---- linear ------------------------------------------------------------------------------ */

static void linear_is_matmul_with_the_transpose_plus_bias(void **state)
{
    (void)state;
    static const tern_shape shapes[] = {
        {1, {10}}, {2, {100, 10}}, {3, {2, 3, 10}}, {4, {2, 1, 3, 10}}, {3, {3, 0, 10}}};
    static const int64_t widths[] = {1, 3, 64};
    FOR_EACH_DEVICE(device)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (size_t o = 0; o < sizeof widths / sizeof *widths; o++)
                TERN_SCOPE {
                    double tolerance = tolerance_of(dtypes[d]);
                    tern_tensor *x = uniform(device, dtypes[d], shapes[i]);
                    tern_tensor *w = uniform(device, dtypes[d], TERN_SHAPE(10, widths[o]));
                    tern_tensor *b = uniform(device, dtypes[d], TERN_SHAPE(widths[o]));
                    tern_shape across = TERN_SHAPE(widths[o], 10);
                    tern_tensor *wt =
                        tern_scoped(tern_tensor_alias(w, &across, (int64_t[]){1, widths[o]}, 0));
                    tern_tensor *y = tern_matmul(x, w);
                    uint64_t before = launches(device);
                    tern_tensor *plain = tern_linear(x, wt, NULL);
                    tern_tensor *biased = tern_linear(x, tern_contiguous(wt), b);
                    if (tern_numel(x) && widths[o] > 1) /* two products, one dense copy */
                        assert_int_equal(launches(device) - before, 3);
                    assert_close(plain, y, .abs = tolerance, .rel = tolerance);
                    assert_close(biased, tern_add(y, b), .abs = tolerance, .rel = tolerance);
                }
}

static void linear_takes_what_pytorch_takes(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1, 2, 3, 4);
        tern_tensor *row = TENSOR(device, TERN_F32, TERN_SHAPE(2), 10, 1);
        tern_tensor *w = TENSOR(device, TERN_F32, TERN_SHAPE(3, 2), 1, 0, 0, 1, 1, 1);
        tern_tensor *one = TENSOR(device, TERN_F32, TERN_SHAPE_SCALAR, 5);
        assert_values(tern_linear(x, row, NULL), 12, 34);
        assert_values(tern_linear(row, row, one), 106);
        assert_values(tern_linear(x, w, one), 6, 7, 8, 8, 9, 12);
        tern_tensor *rows = TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
        tern_tensor *y = tern_linear(x, w, tern_requires_grad_(rows, true));
        assert_values(y, 2, 4, 6, 7, 9, 13);
        assert_int_equal(tern_backward(tern_sum(y)), TERN_OK);
        assert_values(tern_grad(rows), 1, 1, 1, 1, 1, 1);
        assert_values(tern_linear(x, w, tern_narrow(rows, 0, 0, 1)), 2, 4, 6, 4, 6, 10);
        assert_null(tern_linear(x, w, tern_ones(TERN_SHAPE(3, 3), TERN_F32, device)));
        assert_error(TERN_ERR_SHAPE, "tern_linear: The expanded size of the tensor (2) must match");
    }
}

/* ---- gradients --------------------------------------------------------------------------- */

static tern_tensor *call_matmul(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_matmul(in[0], in[1]);
}

static tern_tensor *call_linear(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_linear(in[0], in[1], in[2]);
}

static tern_tensor *leaf(const char *device, tern_shape shape)
{
    tern_device_info info = {0};
    assert_ok(tern_device_get_info(device, &info));
    return tern_requires_grad_(uniform(device, info.has_f64 ? TERN_F64 : TERN_F32, shape), true);
}

static void first_and_second_gradients_for_every_combination_of_ranks(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < 21; i++)
        TERN_SCOPE {
            tern_tensor *in[] = {leaf(device, ranks[i].a), leaf(device, ranks[i].b)};
            gradcheck(call_matmul, in, 2, .second = i < 13);
            tern_requires_grad_(in[i % 2], false);
            gradcheck(call_matmul, in, 2, .second = true);
        }
}

static void first_and_second_gradients_of_linear(void **state)
{
    (void)state;
    static const tern_shape shapes[][2] = {{{1, {4}}, {2, {3, 4}}},
                                           {{2, {5, 4}}, {2, {3, 4}}},
                                           {{2, {5, 4}}, {2, {1, 4}}},
                                           {{3, {2, 3, 4}}, {2, {3, 4}}},
                                           {{2, {5, 4}}, {1, {4}}}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int bias = 0; bias < 3; bias++)
            TERN_SCOPE {
                tern_shape w = shapes[i][1];
                tern_shape b = TERN_SHAPE(w.ndim == 1 || bias == 1 ? 1 : w.dims[0]);
                tern_tensor *in[] = {leaf(device, shapes[i][0]), leaf(device, w),
                                     bias ? leaf(device, b) : NULL};
                gradcheck(call_linear, in, 3, .second = true);
            }
}

static void a_stack_times_one_matrix_has_its_gradient_in_one_product(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = uniform(device, TERN_F32, TERN_SHAPE(4, 6, 5));
        tern_tensor *w = tern_requires_grad_(uniform(device, TERN_F32, TERN_SHAPE(3, 5)), true);
        tern_tensor *y = tern_linear(x, w, NULL), *dy = uniform(device, TERN_F32, tern_shape_of(y));
        uint64_t before = launches(device);
        assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
        assert_int_equal(launches(device) - before, 1);
        assert_shape(tern_grad(w), 3, 5);
    }
}

/* ---- mistakes ---------------------------------------------------------------------------- */

typedef tern_tensor *(*product)(tern_tensor *a, tern_tensor *b);

static tern_tensor *linear_of_two(tern_tensor *a, tern_tensor *b)
{
    return tern_linear(a, b, NULL);
}

static void mistakes_are_told_in_pytorchs_words(void **state)
{
    (void)state;
    static const struct {
        product call;
        tern_shape a, b;
        const char *message;
    } mistakes[] = {
        {tern_matmul,
         {0},
         {2, {2, 3}},
         "tern_matmul: both arguments to matmul need to be at least 1D, but they are 0D and 2D"},
        {tern_matmul,
         {1, {2}},
         {1, {3}},
         "tern_matmul: inconsistent tensor size, expected tensor [2] and src [3] to have the same "
         "number of elements, but got 2 and 3 elements respectively"},
        {tern_matmul, {2, {2, 3}}, {1, {4}}, "tern_matmul: size mismatch, got 2, 2x3,4"},
        {tern_matmul,
         {1, {3}},
         {2, {2, 3}},
         "mat1 and mat2 shapes cannot be multiplied (1x3 and 2x3)"},
        {tern_matmul,
         {2, {2, 3}},
         {2, {2, 3}},
         "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"},
        {tern_matmul,
         {3, {4, 2, 3}},
         {2, {2, 3}},
         "mat1 and mat2 shapes cannot be multiplied (8x3 and 2x3)"},
        {tern_matmul, {3, {4, 2, 3}}, {1, {2}}, "size mismatch, got 8, 8x3,2"},
        {tern_matmul,
         {3, {4, 2, 3}},
         {3, {4, 2, 3}},
         "Expected size for first two dimensions of batch2 tensor to be: [4, 3] but got: [4, 2]."},
        {tern_matmul,
         {3, {4, 2, 3}},
         {3, {5, 3, 3}},
         "The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension "
         "0"},
        {tern_mm, {3, {4, 2, 3}}, {2, {2, 3}}, "tern_mm: self must be a matrix"},
        {tern_mm, {2, {2, 3}}, {1, {2}}, "tern_mm: mat2 must be a matrix"},
        {tern_mm, {2, {2, 3}}, {2, {2, 3}}, "cannot be multiplied (2x3 and 2x3)"},
        {tern_bmm, {2, {2, 3}}, {2, {2, 3}}, "tern_bmm: batch1 must be a 3D tensor"},
        {tern_bmm, {3, {2, 3, 4}}, {2, {2, 3}}, "tern_bmm: batch2 must be a 3D tensor"},
        {tern_bmm,
         {3, {2, 3, 4}},
         {3, {3, 4, 5}},
         "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4]."},
        {linear_of_two,
         {2, {2, 5}},
         {2, {3, 4}},
         "tern_linear: mat1 and mat2 shapes cannot be multiplied (2x5 and 4x3)"},
        {linear_of_two,
         {3, {2, 5, 7}},
         {2, {3, 4}},
         "tern_linear: mat1 and mat2 shapes cannot be multiplied (10x7 and 4x3)"},
        {linear_of_two, {0}, {2, {3, 4}}, "need to be at least 1D, but they are 0D and 2D"},
        {linear_of_two, {2, {2, 4}}, {3, {2, 3, 4}}, "this one is 3D"},
    };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        TERN_SCOPE {
            assert_null(mistakes[i].call(tern_ones(mistakes[i].a, 0, device),
                                         tern_ones(mistakes[i].b, 0, device)));
            assert_error(TERN_ERR_SHAPE, mistakes[i].message);
        }
}

static void types_must_be_equal_and_not_bool(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *f32 = tern_ones(TERN_SHAPE(2, 2), TERN_F32, device);
        tern_tensor *f16 = tern_ones(TERN_SHAPE(2, 2), TERN_F16, device);
        tern_tensor *i64 = tern_ones(TERN_SHAPE(2, 2), TERN_I64, device);
        assert_null(tern_matmul(f32, f16));
        assert_error(TERN_ERR_DTYPE, "tern_matmul: mat1 and mat2 must have the same dtype, but got "
                                     "float32 and float16");
        assert_null(tern_mm(tern_to_dtype(i64, TERN_BOOL), tern_to_dtype(i64, TERN_BOOL)));
        assert_error(TERN_ERR_DTYPE, "not implemented for bool");
        assert_values(tern_mm(i64, i64), 2, 2, 2, 2);
        assert_values(tern_linear(i64, i64, tern_select(i64, 0, 0)), 3, 3, 3, 3);
        assert_null(tern_linear(f32, f32, tern_ones(TERN_SHAPE(2), TERN_F16, device)));
        assert_error(TERN_ERR_DTYPE, "float32 and float16");
        assert_null(tern_linear(f32, f32, tern_ones(TERN_SHAPE(3), TERN_F32, device)));
        assert_error(TERN_ERR_SHAPE, "The expanded size of the tensor (2) must match the existing "
                                     "size (3) at non-singleton dimension 1");
    }
}

static void null_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_ones(TERN_SHAPE(2, 2), 0, "cpu");
    const product calls[] = {tern_matmul, tern_mm, tern_bmm, linear_of_two};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        assert_null(calls[i](NULL, x));
        assert_error(TERN_ERR_ARGUMENT, "tern_");
        assert_null(calls[i](x, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_agree_for_every_combination_of_ranks_and_types),
        TEST(strided_inputs_give_what_dense_ones_give),
        TEST(expanded_inputs_are_repeated),
        TEST(rows_with_gaps_are_not_copied),
        TEST(sums_of_nothing_are_zero),
        TEST(linear_is_matmul_with_the_transpose_plus_bias),
        TEST(linear_takes_what_pytorch_takes),
        TEST(first_and_second_gradients_for_every_combination_of_ranks),
        TEST(first_and_second_gradients_of_linear),
        TEST(a_stack_times_one_matrix_has_its_gradient_in_one_product),
        TEST(mistakes_are_told_in_pytorchs_words),
        TEST(types_must_be_equal_and_not_bool),
        TEST(null_is_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
