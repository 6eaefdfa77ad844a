/* ulp_rows.h -- what test_ulp.c holds rows to, where it is not 2 ulp of the row's own formula in
 * double. */
#ifndef TERN_TESTS_ULP_ROWS_H
#define TERN_TESTS_ULP_ROWS_H
#include "rows.h"

typedef double (*ulp_function)(double x, double y);

/* 0 and NULL: a bound of 2, the row's formula, nothing but the result's own last place, a = 1/4. */
typedef struct ulp_row {
    const char *name;
    double bound;
    ulp_function reference; /* where the formula in double is not good enough */
    ulp_function scale;     /* its last place counts where it is larger than the result's */
    double number;          /* a */
    const char *reason;     /* for a bound above 2, and for a scale */
} ulp_row;

static const double ULP_PI = 0x1.921fb54442d18p1;

/* sin and cos of pi x: x less an even number is exact. */
static inline double ulp_sinpi(double x)
{
    double r = x - 2 * rint(x / 2);
    return fabs(r) > 0.5 ? sin(ULP_PI * (copysign(1, r) - r)) : sin(ULP_PI * r);
}
static inline double ulp_sinc(double x, double y)
{
    (void)y;
    return x == 0 ? 1 : isinf(x) ? NAN : ulp_sinpi(x) / (ULP_PI * x);
}

static inline double ulp_erfinv(double x, double y)
{
    (void)y;
    double a = fabs(x), low = -6, high = 6;
    if (!(a < 1))
        return a == 1 ? copysign(INFINITY, x) : NAN;
    if (a < 1e-3)
        return x * sqrt(ULP_PI) / 2 * (1 + ULP_PI / 12 * x * x);
    for (int i = 0; i < 60; i++)
        *(erf((low + high) / 2) < x ? &low : &high) = (low + high) / 2;
    return low;
}

static inline double ulp_cotangent(double x)
{
    return ULP_PI / tan(ULP_PI * (x - rint(x)));
}
static inline double ulp_digamma(double x, double y)
{
    (void)y;
    if (x == 0)
        return copysign(INFINITY, -x);
    if (x < 0)
        return x == rint(x) ? NAN : row_digamma(1 - x) - ulp_cotangent(x);
    return isinf(x) ? x : row_digamma(x);
}
static inline double ulp_digamma_terms(double x, double y)
{
    (void)y;
    return x < 0 && x != rint(x) ? fmax(fabs(ulp_cotangent(x)), log(10 - x)) : log(10 + fabs(x));
}
static inline double ulp_trigamma(double x, double y)
{
    (void)y;
    double sine = ulp_sinpi(x);
    if (isinf(x))
        return x > 0 ? 0 : NAN;
    if (x >= 0.5)
        return x < 1e8 ? row_trigamma(x) : 1 / x + 0.5 / (x * x);
    return ULP_PI * ULP_PI / (sine * sine) - row_trigamma(1 - x);
}
/* Left of 0, log(pi / |x sin(pi x)|) and lgamma(-x) are taken from each other. */
static inline double ulp_lgamma_terms(double x, double y)
{
    (void)y;
    return x < 0 && x != rint(x)
               ? fmax(lgamma(-x), fmax(log(ULP_PI), fabs(log(fabs(x * ulp_sinpi(x))))))
               : 0;
}

static inline double ulp_remainder(double x, double y)
{
    double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static inline double ulp_floor_divide(double x, double y)
{
    long double q = ((long double)x - (long double)fmod(x, y)) / (long double)y;
    double r = fmod(x, y);
    if (y == 0)
        return x / y;
    q = r != 0 && (r < 0) != (y < 0) ? q - 1 : q;
    return q == 0 ? copysign(0, x / y) : (double)rintl(q);
}
static inline double ulp_trunc_divide(double x, double y)
{
    return trunc((double)(float)(x / y));
}

/* musl's acosh gives numbers below 1. */
static inline double ulp_acosh(double x, double y)
{
    (void)y;
    return x < 1 ? NAN : acosh(x);
}

static inline double ulp_gelu(double x, double y)
{
    (void)y;
    return 0.5 * x * erfc(-0x1.6a09e667f3bcdp-1 * x);
}
static inline double ulp_x(double x, double y)
{
    (void)y;
    return x;
}
static inline double ulp_underflow(double x, double y)
{
    (void)y;
    return x * 0x1p-126;
}
static inline double ulp_larger(double x, double y)
{
    return fmax(fabs(x), fabs(y));
}
/* With products and differences rounded, since they overflow. */
static inline double ulp_addcmul(double x, double y)
{
    return x + (double)(float)(0.25 * y * y);
}
static inline double ulp_lerp(double x, double y)
{
    double step = (double)(float)(y - x);
    return fabs(y) < 0.5 ? x + y * step : y - (double)(float)(step * (1 - y));
}
static inline double ulp_lerp_number(double x, double y)
{
    return x + 0.25 * (double)(float)(y - x);
}
static inline double ulp_addcmul_terms(double x, double y)
{
    return fmax(fabs(x), 0.25 * y * y);
}
static inline double ulp_addcdiv_terms(double x, double y)
{
    (void)y;
    return fmax(fabs(x), 0.25);
}
static inline double ulp_lerp_terms(double x, double y)
{
    double weight = fabs(y) < 0.5 ? y : 1 - y;
    return fmax(ulp_larger(x, y), fabs(weight * (y - x)));
}

static const ulp_row ulp_rows[] = {
    {"sinc", 4, ulp_sinc, NULL, 0, "a rounded sine by a rounded product"},
    {"acosh", 0, ulp_acosh, NULL, 0, NULL},
    {"erfinv", 0, ulp_erfinv, NULL, 0, NULL},
    {"remainder", 0, ulp_remainder, NULL, 0, NULL},
    {"floor_divide", 0, ulp_floor_divide, NULL, 0, NULL},
    {"logit", 0, NULL, NULL, -1, NULL},
    {"trunc_divide", 0, ulp_trunc_divide, NULL, 0, "of the rounded quotient, as in PyTorch"},
    {"trigamma", 6, ulp_trigamma, NULL, 0, "left of 0, the square of a rounded sine"},
    {"digamma", 8, ulp_digamma, ulp_digamma_terms, 0,
     "of its largest term: a sum of twelve, which crosses zero"},
    {"lgamma", 3, NULL, ulp_lgamma_terms, 0,
     "of its largest term: left of 0 a sum of three, which crosses zero"},
    {"gelu", 0, ulp_gelu, ulp_x, 0, "of x: left of 0, 1 + erf is what is left of it"},
    {"gelu_tanh", 0, NULL, ulp_x, 0, "of x: left of 0, the argument of exp is rounded"},
    {"softplus", 3, NULL, NULL, 0, "the logarithm of a rounded exponential"},
    {"silu", 2.5, NULL, ulp_underflow, 0, "x sigmoid(x), which is rounded, and underflows first"},
    {"mish", 4, NULL, ulp_underflow, 0, "three functions after one another; the first underflows"},
    {"tanhshrink", 0, NULL, ulp_x, 0, "of x, from which tanh(x) is taken"},
    {"logaddexp", 2.5, NULL, ulp_larger, 0,
     "of the larger input; three functions after one another"},
    {"logaddexp2", 3, NULL, ulp_larger, 0,
     "of the larger input; three functions after one another"},
    {"addcmul", 0, ulp_addcmul, ulp_addcmul_terms, 0, "of the larger term of the sum"},
    {"addcdiv", 0, NULL, ulp_addcdiv_terms, 0, "of the larger term of the sum"},
    {"lerp", 0, ulp_lerp, ulp_lerp_terms, 0, "of its largest term: differences are rounded"},
    {"lerp_number", 0, ulp_lerp_number, ulp_larger, 0,
     "of the larger end: their difference is rounded"},
};

static inline const ulp_row *ulp_row_of(const char *name)
{
    for (size_t i = 0; i < sizeof ulp_rows / sizeof *ulp_rows; i++)
        if (strcmp(ulp_rows[i].name, name) == 0)
            return &ulp_rows[i];
    return NULL;
}

#endif
