/* rows.h -- the elementwise rows for tests: every row with a reference in double or int64_t and its
 * calls.
 *
 * The reference is the row's own expression, compiled by the host with libm; a function of the
 * dialect that libm lacks is defined here. */
#ifndef TERN_TESTS_ROWS_H
#define TERN_TESTS_ROWS_H
#include "ops/elementwise/elementwise.h"
#include "support.h"
#include <math.h>
#include <stdlib.h>

/* What the rows' expressions may name. */
static inline double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static inline double row_logit(double x)
{
    return log(x / (1 - x));
}
static inline double row_sinc(double x)
{
    return x == 0 ? 1 : sin(0x1.921fb54442d18p1 * x) / (0x1.921fb54442d18p1 * x);
}
static inline double row_remainder(double x, double y)
{
    return x - floor(x / y) * y;
}
/* The integral of erf's derivative, turned over by bisection. */
static inline double row_erfinv(double x)
{
    double low = -6, high = 6;
    for (int i = 0; i < 80; i++)
        *(erf((low + high) / 2) < x ? &low : &high) = (low + high) / 2;
    return low;
}
/* For x > 0, from its series beyond 30. */
static inline double row_digamma(double x)
{
    double sum = 0;
    for (; x < 30; x++)
        sum -= 1 / x;
    double z = 1 / (x * x);
    return sum + log(x) - 0.5 / x - z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z / 240)));
}
/* The sum of 1 / (x + k)^2, its rest by an asymptotic series. */
static inline double row_trigamma(double x)
{
    double sum = 0;
    for (int k = 0; k < 200; k++, x++)
        sum += 1 / (x * x);
    return sum + 1 / x + 0.5 / (x * x) + 1 / (6 * x * x * x) - 1 / (30 * x * x * x * x * x);
}
#undef signbit
#define signbit(x)         ((x) < 0)
#define abs(x)             fabs(x)
#define round(x)           rint(x)
#define logit(x)           row_logit(x)
#define sinc(x)            row_sinc(x)
#define remainder(x, y)    row_remainder(x, y)
#define erfinv(x)          row_erfinv(x)
#define exp_below(x)       exp(x)
#define normal_cdf(x)      (0.5 * erfc(-0.7071067811865476 * (x)))
#define digamma(x)         row_digamma(x)
#define trigamma(x)        row_trigamma(x)
#define floor_divide(x, y) floor((double)(x) / (double)(y))
#define trunc_divide(x, y) trunc((double)(x) / (double)(y))
#define shift_left(x, y)   ((x) << (y))
#define shift_right(x, y)  ((x) >> (y))
#define C(x)               x

typedef enum row_kind { UNARY_ROW, BINARY_ROW, TERNARY_ROW, COMPARE_ROW, PREDICATE_ROW } row_kind;
typedef enum row_types { FLOATS, NUMBERS, WHOLES, INTS, ALL, BOOLS = ALL } row_types;

/* Parameters of a call: y of BINARY and COMPARE, y and z of TERNARY; a, b of the others. */
typedef struct row_arguments {
    tern_tensor *y;
    tern_scalar a, b;
} row_arguments;

typedef struct row {
    const char *name;
    row_kind kind;
    row_types types;
    double low, high;
    double (*real)(double x, double y, double a, double b);         /* NULL for INTS */
    int64_t (*integer)(int64_t x, int64_t y, int64_t a, int64_t b); /* NULL for FLOATS */
    tern_tensor *(*call)(tern_tensor *x, row_arguments p);
    tern_tensor *(*in_place)(tern_tensor *x, row_arguments p); /* NULL: there is none */
    tern_tensor *(*scalar)(tern_tensor *x, tern_scalar y);     /* BINARY and COMPARE */
    tern_tensor *(*scalar_in_place)(tern_tensor *x, tern_scalar y);
} row;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wparentheses"

/* References, by the types a row has. */
#define REAL_(NAME, Y)                                                                             \
    static double NAME##_real(double x, double y, double a, double b)                              \
    {                                                                                              \
        const double z = y; /* TERNARY rows are called with y twice */                             \
        (void)z;                                                                                   \
        return Y;                                                                                  \
    }
#define INTEGER_(NAME, Y)                                                                          \
    static int64_t NAME##_integer(int64_t x, int64_t y, int64_t a, int64_t b)                      \
    {                                                                                              \
        const int64_t z = y;                                                                       \
        (void)z;                                                                                   \
        return Y;                                                                                  \
    }
#define NO_REAL_(NAME)             enum { NAME##_real = 0 };
#define NO_INTEGER_(NAME)          enum { NAME##_integer = 0 };
#define REFERENCE_FLOATS(NAME, Y)  REAL_(NAME, Y) NO_INTEGER_(NAME)
#define REFERENCE_NUMBERS(NAME, Y) REAL_(NAME, Y) INTEGER_(NAME, Y)
#define REFERENCE_WHOLES(NAME, Y)  NO_REAL_(NAME) INTEGER_(NAME, Y)
#define REFERENCE_INTS(NAME, Y)    NO_REAL_(NAME) INTEGER_(NAME, Y)
#define REFERENCE_ALL(NAME, Y)     REAL_(NAME, Y) INTEGER_(NAME, Y)
#define REFERENCE_BOOLS            REFERENCE_ALL

#define CALL_(NAME, function, ...)                                                                 \
    static tern_tensor *NAME(tern_tensor *x, row_arguments p)                                      \
    {                                                                                              \
        return function(x, ##__VA_ARGS__);                                                         \
    }
#define UNARY_CALLS_(NAME, TYPES, Y, ...)                                                          \
    REFERENCE_##TYPES(NAME, Y) CALL_(NAME##_call, tern_##NAME, ##__VA_ARGS__)                      \
        CALL_(NAME##_in_place, tern_##NAME##_, ##__VA_ARGS__)

#define UNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX) UNARY_CALLS_(NAME, TYPES, Y)
#define UNARY_REAL1(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                     \
    UNARY_CALLS_(NAME, TYPES, Y, tern_scalar_to_real(p.a))
#define UNARY_REAL2(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                     \
    UNARY_CALLS_(NAME, TYPES, Y, tern_scalar_to_real(p.a), tern_scalar_to_real(p.b))
#define UNARY_SCALAR(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX) UNARY_CALLS_(NAME, TYPES, Y, p.a)
#define BINARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY)                                      \
    REFERENCE_##TYPES(NAME, Z) CALL_(NAME##_call, tern_##NAME, p.y)                                \
        CALL_(NAME##_in_place, tern_##NAME##_, p.y)
#define TERNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ)                                 \
    REFERENCE_##TYPES(NAME, V) CALL_(NAME##_call, tern_##NAME, p.y, p.y)                           \
        CALL_(NAME##_in_place, tern_##NAME##_, p.y, p.y)
#define TERNARY_SCALAR(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ)                          \
    REFERENCE_##TYPES(NAME, V) CALL_(NAME##_call, tern_##NAME, p.y, p.y, p.a)                      \
        CALL_(NAME##_in_place, tern_##NAME##_, p.y, p.y, p.a)
#define COMPARE(NAME, TYPES, RULE, Z)                                                              \
    REFERENCE_##TYPES(NAME, Z) CALL_(NAME##_call, tern_##NAME, p.y)
#define PREDICATE(NAME, TYPES, Z) REFERENCE_##TYPES(NAME, Z) CALL_(NAME##_call, tern_##NAME)

#include "elementwise.def"
#include "special.def"
#include "logic.def"

#pragma GCC diagnostic pop
#undef UNARY
#undef UNARY_REAL1
#undef UNARY_REAL2
#undef UNARY_SCALAR
#undef BINARY
#undef TERNARY
#undef TERNARY_SCALAR
#undef COMPARE
#undef PREDICATE

#define UNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                           \
    {#NAME,          UNARY_ROW,   TYPES,           LOW,  HIGH, NAME##_real,                        \
     NAME##_integer, NAME##_call, NAME##_in_place, NULL, NULL},
#define UNARY_REAL1  UNARY
#define UNARY_REAL2  UNARY
#define UNARY_SCALAR UNARY
#define BINARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY)                                      \
    {#NAME,                                                                                        \
     BINARY_ROW,                                                                                   \
     TYPES,                                                                                        \
     LOW,                                                                                          \
     HIGH,                                                                                         \
     NAME##_real,                                                                                  \
     NAME##_integer,                                                                               \
     NAME##_call,                                                                                  \
     NAME##_in_place,                                                                              \
     tern_##NAME##_scalar,                                                                         \
     tern_##NAME##_scalar_},
#define TERNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ)                                 \
    {#NAME,          TERNARY_ROW, TYPES,           LOW,  HIGH, NAME##_real,                        \
     NAME##_integer, NAME##_call, NAME##_in_place, NULL, NULL},
#define TERNARY_SCALAR TERNARY
#define COMPARE(NAME, TYPES, RULE, Z)                                                              \
    {#NAME, COMPARE_ROW,          TYPES, -3, 3, NAME##_real, NAME##_integer, NAME##_call,          \
     NULL,  tern_##NAME##_scalar, NULL},
#define PREDICATE(NAME, TYPES, Z)                                                                  \
    {#NAME,          PREDICATE_ROW, TYPES, -3,   3,   NAME##_real,                                 \
     NAME##_integer, NAME##_call,   NULL,  NULL, NULL},
static const row rows[] = {
#include "elementwise.def"
#include "special.def"
#include "logic.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static inline bool row_has(const row *r, tern_dtype dtype)
{
    switch (r->types) {
    case FLOATS:
        return tern_dtype_is_floating_point(dtype);
    case NUMBERS:
        return dtype != TERN_BOOL;
    case WHOLES:
        return !tern_dtype_is_floating_point(dtype) && dtype != TERN_BOOL;
    case INTS:
        return !tern_dtype_is_floating_point(dtype);
    case ALL:
        break;
    }
    return true;
}

#endif
