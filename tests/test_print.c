/* test_print.c -- tensors as text, letter for letter as PyTorch prints them (golden/print.txt). */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define T(TYPE, SHAPE, ...) TENSOR(device, TERN_##TYPE, SHAPE, __VA_ARGS__)
#define S                   TERN_SHAPE

/* 0, 1, 2, ... less a third of their number. */
static tern_tensor *numbers(const char *device, tern_shape shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++)
        n *= shape.dims[d];
    tern_tensor *x = tern_arange(0, (double)n, 1, TERN_F32, device);
    return tern_view(tern_sub_scalar(x, TERN_SCALAR(n / 3)), shape);
}

static tern_tensor *grad(tern_tensor *x)
{
    return tern_requires_grad_(x, true);
}

static tern_tensor *times(tern_tensor *x, int64_t factor)
{
    return tern_mul_scalar(x, TERN_SCALAR(factor));
}

static tern_tensor *count(const char *device, int n, tern_dtype dtype)
{
    return tern_arange(0, n, 1, dtype, device);
}

static tern_tensor *ends(const char *device)
{
    const int64_t values[3] = {INT64_MIN, INT64_MAX, 0};
    return tern_from_data(values, S(3), TERN_I64, device);
}

static tern_tensor *hidden(const char *device)
{
    tern_tensor *x = tern_ones(S(1201), TERN_F32, device);
    tern_fill_(tern_narrow(x, 0, 600, 1), TERN_SCALAR(1e-9));
    return x;
}

static tern_tensor *copy_slices(const char *device)
{
    tern_tensor *y = times(grad(tern_zeros(S(2), TERN_F32, device)), 1);
    tern_fill_(tern_select(y, 0, 0), TERN_SCALAR(5));
    return y;
}

#define CASES(X)                                                                                   \
    X("scalar", T(F32, TERN_SHAPE_SCALAR, 3))                                                      \
    X("scalar_fraction", T(F32, TERN_SHAPE_SCALAR, -0.125))                                        \
    X("scalar_int", T(I64, TERN_SHAPE_SCALAR, 7))                                                  \
    X("scalar_bool", T(BOOL, TERN_SHAPE_SCALAR, 1))                                                \
    X("scalar_nan", T(F32, TERN_SHAPE_SCALAR, NAN))                                                \
    X("scalar_large", T(F32, TERN_SHAPE_SCALAR, 1e9))                                              \
    X("whole", T(F32, S(3), 1, 2, -30))                                                            \
    X("fixed", T(F32, S(3), 1.5, -20.25, 300))                                                     \
    X("zeros", tern_zeros(S(2, 2), TERN_F32, device))                                              \
    X("minus_zero", T(F32, S(3), -0.0, 0, 1))                                                      \
    X("ratio_1000", T(F32, S(2), 1, 1000))                                                         \
    X("ratio_1001", T(F32, S(2), 1, 1001))                                                         \
    X("scientific", T(F32, S(4), 1e-5, 1, 0, -2.5))                                                \
    X("scientific_wide", T(F32, S(3), 1e-20, 1e20, -3e38))                                         \
    X("large_whole", T(F32, S(2), 123456789, 123456790))                                           \
    X("at_1e8", T(F32, S(2), 1e8, 5e7))                                                            \
    X("least_1e-4", T(F32, S(2), 1e-4, 2e-4))                                                      \
    X("least_below_1e-4", T(F32, S(2), 0.99e-4, 2e-4))                                             \
    X("not_finite", T(F32, S(4), NAN, INFINITY, -INFINITY, 1))                                     \
    X("not_finite_fixed", T(F32, S(4), NAN, INFINITY, -INFINITY, 0.5))                             \
    X("only_not_finite", T(F32, S(3), -NAN, -INFINITY, 0))                                         \
    X("not_finite_scientific", T(F32, S(3), NAN, 1e-8, -INFINITY))                                 \
    X("halves", T(F16, S(3), 1, 0.1, 65504))                                                       \
    X("bfloats", T(BF16, S(3), 1, 0.1, -2))                                                        \
    X("ints", T(I64, S(2, 2), 1, -20, 300, 4))                                                     \
    X("int_ends", ends(device))                                                                    \
    X("int32", T(I32, S(2), 1, 2))                                                                 \
    X("bytes", T(U8, S(2), 0, 255))                                                                \
    X("bools", T(BOOL, S(2, 2), 1, 0, 0, 0))                                                       \
    X("empty", tern_zeros(S(0), TERN_F32, device))                                                 \
    X("empty_2d", tern_zeros(S(0, 3), TERN_F32, device))                                           \
    X("empty_int", tern_zeros(S(2, 0), TERN_I64, device))                                          \
    X("empty_bool", tern_zeros(S(0), TERN_BOOL, device))                                           \
    X("lines", numbers(device, S(40)))                                                             \
    X("lines_fixed", tern_div_scalar(numbers(device, S(3, 25)), TERN_SCALAR(8)))                   \
    X("lines_int", count(device, 100, TERN_I64))                                                   \
    X("threshold", numbers(device, S(1000)))                                                       \
    X("summary", numbers(device, S(1001)))                                                         \
    X("summary_2d", numbers(device, S(40, 40)))                                                    \
    X("summary_3d", tern_div_scalar(numbers(device, S(10, 2, 60)), TERN_SCALAR(4)))                \
    X("summary_rows", numbers(device, S(300, 4)))                                                  \
    X("summary_columns", numbers(device, S(4, 300)))                                               \
    X("summary_7d", numbers(device, S(2, 7, 1, 1, 9, 1, 9)))                                       \
    X("summary_hides_extremes", hidden(device))                                                    \
    X("summary_int", count(device, 5000, TERN_I64))                                                \
    X("dims_3", numbers(device, S(2, 3, 2)))                                                       \
    X("dims_4", numbers(device, S(2, 2, 1, 3)))                                                    \
    X("transposed", tern_t(numbers(device, S(3, 4))))                                              \
    X("leaf", grad(T(F32, S(2), 1, 2)))                                                            \
    X("mul", tern_mul(grad(T(F32, S(2), 1, 2)), T(F32, TERN_SHAPE_SCALAR, 2)))                     \
    X("as_strided", tern_as_strided(grad(T(F32, S(2), 1, 2)), S(1), S(1), 1))                      \
    X("copy_slices", copy_slices(device))                                                          \
    X("suffix_wraps", tern_mul(grad(count(device, 19, TERN_F32)), T(F32, S(1), 1)))                \
    X("suffix_fits", tern_mul(grad(count(device, 13, TERN_F32)), T(F32, S(1), 1)))                 \
    X("suffix_after_lines", grad(count(device, 40, TERN_F32)))

/* Where there is float64. */
#define F64_CASES(X)                                                                               \
    X("f64_exponents", T(F64, S(2), 1e-300, 1e300))                                                \
    X("doubles", T(F64, S(2, 2), 0.1, 0.2, 1.0 / 3, -7))                                           \
    X("empty_double", tern_zeros(S(1, 0, 2), TERN_F64, device))                                    \
    X("leaf_double", grad(T(F64, TERN_SHAPE_SCALAR, 2)))                                           \
    X("suffix_wraps_twice",                                                                        \
      tern_mul(grad(tern_arange(10, 28, 1, TERN_F64, device)), T(F64, S(1), 1)))

/* The whole golden file, to be freed. */
static char *golden_text(void)
{
    FILE *file = fopen(TEST_FOLDER "/golden/print.txt", "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void check(const char *golden, const char *name, const tern_tensor *x)
{
    char head[64];
    snprintf(head, sizeof head, "\n== %s\n", name);
    const char *wanted = strstr(golden, head);
    assert_non_null(wanted);
    wanted += strlen(head);
    const char *end = strstr(wanted, "\n== ");
    size_t n = end ? (size_t)(end - wanted) : strlen(wanted) - 1;
    char *text = tern_to_text(x);
    assert_no_error();
    if (strlen(text) != n || memcmp(text, wanted, n) != 0)
        fail_msg("%s is printed as\n%s\nbut PyTorch writes\n%.*s", name, text, (int)n, wanted);
    tern_free_text(text);
}

static void tensors_print_as_in_pytorch(void **state)
{
    (void)state;
    char *golden = golden_text();
    const char *device = "cpu";
#define X(NAME, TENSOR) check(golden, NAME, TENSOR);
    TERN_SCOPE {
        CASES(X)
        F64_CASES(X)
    }
#undef X
    free(golden);
}

static void other_devices_are_named(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        char wanted[128], *text;
        tern_tensor *x = numbers(device, S(2, 2));
        bool cpu = strcmp(tern_device(x), "cpu") == 0;
        snprintf(wanted, sizeof wanted, "tensor([[-1.,  0.],\n        [ 1.,  2.]]%s%s%s)",
                 cpu ? "" : ", device='", cpu ? "" : tern_device(x), cpu ? "" : "'");
        assert_string_equal(text = tern_to_text(x), wanted);
        tern_free_text(text);
        text = tern_to_text(tern_zeros(S(0), TERN_I32, device)); /* the device comes first */
        snprintf(wanted, sizeof wanted, "tensor([]%s%s%s, dtype=torch.int32)",
                 cpu ? "" : ", device='", cpu ? "" : tern_device(x), cpu ? "" : "'");
        assert_string_equal(text, wanted);
        tern_free_text(text);
        text = tern_to_text(numbers(device, S(3000))); /* only its edges are read */
        assert_non_null(strstr(text, "[-1000.,  -999.,  -998.,  ...,  1997.,  1998.,  1999.]"));
        tern_free_text(text);
    }
}

static void null_has_no_text(void **state)
{
    (void)state;
    assert_null(tern_to_text(NULL));
    assert_error(TERN_ERR_ARGUMENT, "tern_to_text: x");
    assert_int_equal(tern_print(NULL), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "tern_print: x");
    tern_free_text(NULL);
}

static void print_writes_a_line_to_stdout(void **state)
{
    (void)state;
    char line[64] = "";
    int ends[2], saved = dup(STDOUT_FILENO);
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    tern_status status = tern_print(tern_ones(S(2), TERN_I64, "cpu"));
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    assert_ok(status);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    assert_string_equal(line, "tensor([1, 1])\n");
    close(ends[0]);
    close(ends[1]);
    close(saved);
}

static const struct CMUnitTest tests[] = {
    TEST(tensors_print_as_in_pytorch),
    TEST(other_devices_are_named),
    TEST(null_has_no_text),
    TEST(print_writes_a_line_to_stdout),
};

TEST_MAIN(tests)
