/* test_packed.c -- weights of 8 and 4 bits: products and numbers beside those of their formula. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

typedef struct sizes {
    int64_t rows, out, in, groups;
} sizes;
static const sizes cases[] = {{1, 5, 8, 1}, {3, 7, 66, 3},   {2, 33, 256, 2}, {17, 4, 384, 3},
                              {1, 1, 2, 1}, {4, 300, 64, 1}, {0, 3, 4, 2},    {1, 64, 1536, 12}};
enum { CASES = sizeof cases / sizeof *cases };
enum { SIGNED, UNSIGNED, NIBBLES, KINDS };

static tern_tensor *random_codes(const sizes *s, int kind)
{
    int64_t columns = kind == NIBBLES ? s->in / 2 : s->in;
    tern_tensor *x = tern_randint(0, 256, TERN_SHAPE(s->out, columns), TERN_I32, "cpu");
    return kind == SIGNED ? tern_to_dtype(tern_sub_scalar(x, tern_scalar_int(128)), TERN_I8)
                          : tern_to_dtype(x, TERN_U8);
}

/* (code - zero) scale of element i of row o, in double. */
static double element(const sizes *s, int kind, const double *codes, const double *scales,
                      const double *zeros, int64_t o, int64_t i)
{
    int64_t n = s->in / s->groups, g = i / n, k = i % n;
    double zero = zeros              ? zeros[o * s->groups + g]
                  : kind == SIGNED   ? 0
                  : kind == UNSIGNED ? 128
                                     : 8;
    double code;
    if (kind == NIBBLES) {
        int byte = (int)codes[o * s->in / 2 + g * (n / 2) + k % (n / 2)];
        code = k < n / 2 ? byte & 15 : byte >> 4;
    } else
        code = codes[o * s->in + i];
    return (code - zero) * scales[o * s->groups + g];
}

static void compare(const sizes *s, int kind, tern_dtype dtype, bool zeroed, const char *device)
{
    tern_tensor *codes = random_codes(s, kind);
    tern_tensor *scales = tern_rand(TERN_SHAPE(s->out, s->groups), TERN_F32, "cpu");
    tern_tensor *zeros =
        zeroed ? tern_mul(tern_rand(TERN_SHAPE(s->out, s->groups), TERN_F32, "cpu"), 16.0) : NULL;
    tern_tensor *x = tern_to_dtype(tern_randn(TERN_SHAPE(s->rows, s->in), TERN_F32, "cpu"), dtype);
    double *c = test_read(tern_to_dtype(codes, TERN_I32)), *f = test_read(scales);
    double *z = zeros ? test_read(zeros) : NULL, *in = test_read(x);
    tern_tensor *there[] = {tern_to(codes, device), tern_to(scales, device),
                            zeros ? tern_to(zeros, device) : NULL};
    tern_tensor *w = tern_unpack_weight(there[0], there[1], there[2], s->in);
    tern_tensor *y = tern_linear_packed(tern_to(x, device), there[0], there[1], there[2]);
    assert_shape(w, s->out, s->in);
    assert_shape(y, s->rows, s->out);
    assert_int_equal(tern_dtype_of(y), dtype);
    double *weights = test_read(w), *products = test_read(y);
    double half = dtype == TERN_F32 ? 0 : dtype == TERN_F16 ? 0x1p-11 : 0x1p-8;
    for (int64_t o = 0; o < s->out; o++)
        for (int64_t r = 0; r < (s->rows ? s->rows : 1); r++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < s->in; i++) {
                double expected = element(s, kind, c, f, z, o, i);
                assert_true(fabs(weights[o * s->in + i] - expected) <= 1e-6 * 256);
                sum += s->rows ? expected * in[r * s->in + i] : 0;
                size += s->rows ? fabs(expected * in[r * s->in + i]) : 0;
            }
            if (s->rows)
                assert_true(fabs(products[r * s->out + o] - sum) <= size * 1e-6 + fabs(sum) * half);
        }
    free(c);
    free(f);
    free(z);
    free(in);
    free(weights);
    free(products);
}

static void products_and_weights_are_those_of_the_formula(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_F16};
    (void)state;
    tern_manual_seed(1);
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i++)
        for (int kind = 0; kind < KINDS; kind++)
            TERN_SCOPE
                compare(&cases[i], kind, dtypes[(i + kind) % 3], (i + kind) % 2, device);
}

/* What lies otherwise gives the same. */
static void strides_do_not_matter(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const sizes s = {2, 6, 16, 2};
        tern_tensor *codes = tern_to(random_codes(&s, UNSIGNED), device);
        tern_tensor *scales = tern_rand(TERN_SHAPE(6, 2), TERN_F32, device);
        tern_tensor *x = tern_randn(TERN_SHAPE(3, 2, 16), TERN_F32, device);
        tern_tensor *y = tern_linear_packed(x, codes, scales, NULL);
        assert_shape(y, 3, 2, 6);
        tern_tensor *turned = tern_transpose(tern_contiguous(tern_transpose(codes, 0, 1)), 0, 1);
        tern_tensor *wide = tern_transpose(tern_contiguous(tern_transpose(scales, 0, 1)), 0, 1);
        assert_same(tern_linear_packed(x, turned, wide, NULL), y);
    }
}

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 8), TERN_F32, "cpu");
        tern_tensor *codes = tern_zeros(TERN_SHAPE(3, 8), TERN_U8, "cpu");
        tern_tensor *scales = tern_ones(TERN_SHAPE(3, 2), TERN_F32, "cpu");
        assert_null(tern_linear_packed(x, tern_to_dtype(codes, TERN_I32), scales, NULL));
        assert_error(TERN_ERR_DTYPE, "codes are int8 or uint8");
        assert_null(tern_linear_packed(tern_to_dtype(x, TERN_I32), codes, scales, NULL));
        assert_error(TERN_ERR_DTYPE, "not int32 of 2 dims");
        assert_null(
            tern_linear_packed(x, codes, tern_ones(TERN_SHAPE(3, 3), TERN_F32, "cpu"), NULL));
        assert_error(TERN_ERR_SHAPE, "a weight of 8 inputs");
        assert_null(tern_linear_packed(x, tern_narrow(codes, 1, 0, 5), scales, NULL));
        assert_error(TERN_ERR_SHAPE, "a weight of 8 inputs");
        tern_tensor *half = tern_narrow(codes, 1, 0, 4);
        assert_null(tern_unpack_weight(tern_to_dtype(half, TERN_I8), scales, NULL, 8));
        assert_error(TERN_ERR_SHAPE, "a weight of 8 inputs");
        assert_null(
            tern_unpack_weight(half, tern_ones(TERN_SHAPE(3, 8), TERN_F32, "cpu"), NULL, 8));
        assert_error(TERN_ERR_SHAPE, "a weight of 8 inputs");
        assert_null(tern_linear_packed(NULL, codes, scales, NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(products_and_weights_are_those_of_the_formula),
        TEST(strides_do_not_matter),
        TEST(what_does_not_go_together_is_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
