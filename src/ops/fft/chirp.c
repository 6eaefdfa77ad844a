/* chirp.c -- Fourier transforms of lengths with large prime factors (Bluestein 1970): 2 j k = j^2 +
 * k^2 - (k - j)^2 turns the sum into a convolution with e^(-i pi j^2 / n), which is computed by
 * transforms of a power of two. */
#include "ops/fft/fft.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* Returns (a + i b)(c + i d) for complex numbers as pairs. */
static tern_tensor *product(tern_tensor *x, tern_tensor *y)
{
    tern_tensor *a = tern_select(x, -1, 0), *b = tern_select(x, -1, 1);
    tern_tensor *c = tern_select(y, -1, 0), *d = tern_select(y, -1, 1);
    tern_tensor *parts[] = {tern_sub(tern_mul(a, c), tern_mul(b, d)),
                            tern_add(tern_mul(a, d), tern_mul(b, c))};
    return tern_stack(parts, 2, -1);
}

/* Returns e^(sign i pi k^2 / n), (n, 2). */
static tern_tensor *chirp_of(const tern_tensor *like, int64_t n, int sign)
{
    static const tern_kernel_ref kernel = {"fft", "fft_chirp"};
    tern_tensor *chirp = tern_empty(TERN_SHAPE(n, 2), like->dtype, tern_device(like));
    if (!chirp || TERN_LAUNCH(chirp->storage->place, &kernel, chirp->dtype, tern_items_of(n, 40),
                              tern_arg_out(chirp), tern_arg_i64(n), tern_arg_i32(sign)) != TERN_OK)
        return NULL;
    return chirp;
}

/* Returns x with elements that stand for their mirror image too multiplied by 2: all but those at 0
 * and in the middle. */
static tern_tensor *doubled(tern_tensor *x, const tern_fft_rule *rule)
{
    int64_t count = x->shape[x->ndim - 2];
    tern_tensor *k = tern_arange(0, (double)count, 1, TERN_I64, tern_device(x));
    tern_tensor *once = tern_logical_or(
        tern_eq_scalar(k, tern_scalar_int(0)),
        tern_eq_scalar(tern_mul_scalar(k, tern_scalar_int(2)), tern_scalar_int(rule->n)));
    return tern_where(tern_unsqueeze(once, -1), x, tern_mul_scalar(x, tern_scalar_int(2)));
}

/* Returns the transform of rows of `have` pairs, padded with zeros, by factors. */
static tern_tensor *of_pairs(tern_tensor *x, int64_t length, int64_t have, int64_t want, int sign,
                             double scale)
{
    return tern_fft_by_factors(
        x, &(tern_fft_rule){.sign = sign, .n = length, .have = have, .want = want, .scale = scale});
}

/* Returns y[k] = c[k] sum_j (x[j] c[j]) conj(c[k - j]), where c is the chirp of the rule's sign. */
static tern_tensor *transform(tern_tensor *x, const tern_fft_rule *rule)
{
    int64_t n = rule->n, length = 1;
    while (length < 2 * n - 1)
        length *= 2;
    tern_tensor *chirp = chirp_of(x, n, rule->sign), *other = chirp_of(x, n, -rule->sign);
    if (!chirp || !other)
        return NULL;
    tern_tensor *back = tern_flip(tern_narrow(other, 0, 1, n - 1), TERN_DIMS(0));
    tern_tensor *none = tern_zeros(TERN_SHAPE(length - 2 * n + 1, 2), x->dtype, tern_device(x));
    tern_tensor *kernel = tern_cat((tern_tensor *[]){other, none, back}, 3, 0);
    tern_tensor *a = product(x, tern_narrow(chirp, 0, 0, rule->have));
    tern_tensor *spectrum = product(of_pairs(a, length, rule->have, length, -1, 1),
                                    of_pairs(kernel, length, length, length, -1, 1));
    tern_tensor *y =
        of_pairs(spectrum, length, length, rule->want, 1, rule->scale / (double)length);
    return product(y, tern_narrow(chirp, 0, 0, rule->want));
}

tern_tensor *tern_fft_by_chirp(tern_tensor *x, const tern_fft_rule *rule)
{
    tern_tensor *result = NULL;
    static const tern_op fft = {.name = "fft", .cast = TERN_CAST_FLOAT32};
    TERN_CAST_FOR(&fft, &x);
    TERN_SCOPE {
        tern_tensor *y = x;
        if (rule->in == TERN_FFT_REALS)
            y = tern_stack((tern_tensor *[]){y, tern_zeros_like(y)}, 2, -1);
        if (y && rule->in == TERN_FFT_HALF)
            y = doubled(y, rule);
        y = y ? transform(y, rule) : NULL;
        if (y && rule->out == TERN_FFT_REALS)
            y = tern_select(y, -1, 0);
        result = tern_escape(y);
    }
    return result;
}
