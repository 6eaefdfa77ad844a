/* test_math.c -- the dialect's elementary functions against libm in double and long double: the
 * largest error in units of the last place, over floats of every magnitude and sign. */
#define _GNU_SOURCE
#include "prelude_host.h"
#include "math.cl"
#include "math_special.cl"
#include "math64.cl"
#include "math64_special.cl"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { STRIDE32 = 16411, SAMPLES64 = 150000 }; /* a prime: all exponents, all low bits */

static long double sigmoidl(long double x)
{
    return 1 / (1 + expl(-x));
}

/* musl's acoshl gives numbers below 1, where there is no such number. */
static long double reference_acosh(long double x)
{
    return x < 1 ? NAN : acoshl(x);
}

/* X(name, reference, bound for f32, bound for f64, low, high): the interval that is held to the
 * bounds; lgamma is left out where it crosses zero, since relative error has no bound there. */
#define FUNCTIONS(X)                                                                               \
    X(exp, expl, 1, 1, -INFINITY, INFINITY)                                                        \
    X(exp_below, expl, 1.5, 1, -87, 88)                                                            \
    X(exp2, exp2l, 1, 1, -INFINITY, INFINITY)                                                      \
    X(expm1, expm1l, 1.5, 1.5, -INFINITY, INFINITY)                                                \
    X(log, logl, 1, 1, -INFINITY, INFINITY)                                                        \
    X(log2, log2l, 1, 1, -INFINITY, INFINITY)                                                      \
    X(log10, log10l, 1, 1, -INFINITY, INFINITY)                                                    \
    X(log1p, log1pl, 1, 1, -INFINITY, INFINITY)                                                    \
    X(sin, sinl, 1.5, 1.5, -INFINITY, INFINITY)                                                    \
    X(cos, cosl, 1.5, 1.5, -INFINITY, INFINITY)                                                    \
    X(tan, tanl, 2, 2.5, -INFINITY, INFINITY)                                                      \
    X(sinh, sinhl, 2, 2, -INFINITY, INFINITY)                                                      \
    X(cosh, coshl, 1.5, 1.5, -INFINITY, INFINITY)                                                  \
    X(tanh, tanhl, 1.5, 1.5, -INFINITY, INFINITY)                                                  \
    X(sigmoid, sigmoidl, 1.5, 1.5, -INFINITY, INFINITY)                                            \
    X(erf, erfl, 1.5, 1.5, -INFINITY, INFINITY)                                                    \
    X(erfc, erfcl, 1.5, 2, -INFINITY, INFINITY)                                                    \
    X(asin, asinl, 1, 1, -INFINITY, INFINITY)                                                      \
    X(acos, acosl, 1, 1, -INFINITY, INFINITY)                                                      \
    X(atan, atanl, 1.5, 2, -INFINITY, INFINITY)                                                    \
    X(asinh, asinhl, 2, 2, -INFINITY, INFINITY)                                                    \
    X(acosh, reference_acosh, 2, 2, -INFINITY, INFINITY)                                           \
    X(atanh, atanhl, 2, 2, -INFINITY, INFINITY)                                                    \
    X(lgamma, lgammal, 2.1, 2, 3, INFINITY)                                                        \
    X(floor, floorl, 0, 0, -INFINITY, INFINITY)                                                    \
    X(ceil, ceill, 0, 0, -INFINITY, INFINITY)                                                      \
    X(trunc, truncl, 0, 0, -INFINITY, INFINITY)                                                    \
    X(round, rintl, 0, 0, -INFINITY, INFINITY)

typedef struct function {
    const char *name;
    f32 (*f)(f32);
    f64 (*d)(f64);
    long double (*reference)(long double);
    double bound32, bound64, low, high;
} function;

#define X(NAME, REF, B32, B64, LOW, HIGH)                                                          \
    static f32 NAME##32(f32 x)                                                                     \
    {                                                                                              \
        return tern_##NAME##_f32(x);                                                               \
    }                                                                                              \
    static f64 NAME##64(f64 x)                                                                     \
    {                                                                                              \
        return tern_##NAME##_f64(x);                                                               \
    }
FUNCTIONS(X)
#undef X
static const function functions[] = {
#define X(NAME, REF, B32, B64, LOW, HIGH) {#NAME, NAME##32, NAME##64, REF, B32, B64, LOW, HIGH},
    FUNCTIONS(X)
#undef X
};

/* |got - want| in units of the last place of want, for a format of that many mantissa bits and that
 * smallest exponent. Both NaN, or the same infinity: 0. */
static double ulps(long double got, long double want, int bits, int smallest, long double overflow)
{
    int exponent;
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : INFINITY;
    if (fabsl(want) >= overflow) /* rounds to an infinity */
        want = want > 0 ? INFINITY : -INFINITY;
    if (isinf(got) && isinf(want) && (got > 0) == (want > 0))
        return 0;
    if (isinf(want) || isinf(got)) /* one step before the end is an error of one */
        return fabsl(isinf(want) ? got : want) >= overflow * (1 - ldexpl(1, -bits)) ? 1 : INFINITY;
    frexpl(want, &exponent);
    if (want == 0 || exponent < smallest)
        exponent = smallest;
    return (double)(fabsl(got - want) / ldexpl(1, exponent - bits));
}

static void f32_functions_stay_within_their_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        double worst = 0;
        float at = 0;
        for (uint64_t u = 0; u < (uint64_t)1 << 32; u += STRIDE32) {
            float x = f32_from_bits((u32)u);
            if ((double)x < f->low || (double)x > f->high)
                continue;
            double e =
                ulps((long double)f->f(x), f->reference((long double)x), 24, -125, 0x1.ffffffp127L);
            if (e > worst) {
                worst = e;
                at = x;
            }
        }
        printf("  %-8s f32 %6.3f ulp at %.9g\n", f->name, worst, (double)at);
        assert_true(worst <= f->bound32);
    }
}

static void f64_functions_stay_within_their_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        double worst = 0, at = 0;
        uint64_t bits = 0x9E3779B97F4A7C15;
        for (int k = 0; k < SAMPLES64; k++) {
            bits = bits * 6364136223846793005u + 1442695040888963407u;
            double x = f64_from_bits(bits);
            if (k % 2) /* half of them of ordinary size */
                x = (double)(int64_t)bits / 0x1p59;
            if (x < f->low || x > f->high)
                continue;
            double e = ulps((long double)f->d(x), f->reference((long double)x), 53, -1021,
                            0x1.fffffffffffff8p1023L);
            if (e > worst) {
                worst = e;
                at = x;
            }
        }
        printf("  %-8s f64 %6.3f ulp at %.17g\n", f->name, worst, at);
        assert_true(worst <= f->bound64);
    }
}

static void powers_keep_every_special_case(void **state)
{
    static const float values[] = {0, -0.0f, 1,      -1,    2,        -2,        0.5f, -0.5f,
                                   3, -3,    1e-40f, 1e38f, INFINITY, -INFINITY, NAN,  16777216};
    (void)state;
    int n = sizeof values / sizeof *values;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double e = ulps((long double)tern_pow_f32(values[i], values[j]),
                            powl((long double)values[i], (long double)values[j]), 24, -125,
                            0x1.ffffffp127L);
            assert_true(e <= 2);
            e = ulps((long double)tern_pow_f64((double)values[i], (double)values[j]),
                     powl((long double)values[i], (long double)values[j]), 53, -1021,
                     0x1.fffffffffffff8p1023L);
            assert_true(e <= 2);
        }
}

static void halves_convert_exactly(void **state)
{
    (void)state;
    for (u32 h = 0; h < 65536; h++) {
        f32 f = tern_f16_to_f32((u16)h);
        int nan = (h & 0x7c00) == 0x7c00 && (h & 0x3ff);
        assert_true(nan ? f != f : tern_f32_to_f16(f) == h);
    }
    assert_int_equal(tern_f32_to_f16(65520.0f), 0x7c00); /* ties to even: infinity */
    assert_int_equal(tern_f32_to_f16(65519.0f), 0x7bff);
    assert_int_equal(tern_f32_to_f16(0x1p-25f), 0); /* half of the smallest: to even */
    assert_int_equal(tern_f32_to_f16(0x1.8p-25f), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_functions_stay_within_their_bounds),
        cmocka_unit_test(f64_functions_stay_within_their_bounds),
        cmocka_unit_test(powers_keep_every_special_case),
        cmocka_unit_test(halves_convert_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
