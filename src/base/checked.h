/* checked.h -- arithmetic of sizes that does not wrap.
 *
 * Sums, products and quotients of sizes for infer functions. A result out of the range of int64_t
 * becomes INT64_MAX or INT64_MIN and stays that through further operations, so that a formula needs
 * no checks in between. A tensor of such a size is refused when it is created
 * (tern_shape_numel). */
#ifndef TERN_BASE_CHECKED_H
#define TERN_BASE_CHECKED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether a is out of the range of int64_t. */
static inline bool tern_size_is_lost(int64_t a)
{
    return a == INT64_MAX || a == INT64_MIN;
}

static inline int64_t tern_size_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (tern_size_is_lost(a) || tern_size_is_lost(b))
        return tern_size_is_lost(a) ? a : b;
    return __builtin_add_overflow(a, b, &sum) ? (a > 0 ? INT64_MAX : INT64_MIN) : sum;
}

static inline int64_t tern_size_sub(int64_t a, int64_t b)
{
    if (tern_size_is_lost(b))
        return tern_size_is_lost(a) ? a : b > 0 ? INT64_MIN : INT64_MAX;
    return tern_size_add(a, -b);
}

static inline int64_t tern_size_mul(int64_t a, int64_t b)
{
    int64_t product;
    if (a == 0 || b == 0)
        return 0;
    if (tern_size_is_lost(a) || tern_size_is_lost(b) || __builtin_mul_overflow(a, b, &product))
        return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
    return product;
}

/* Returns a rounded towards zero; INT64_MIN for NaN. */
static inline int64_t tern_size_of_real(double a)
{
    return a >= 9223372036854775807.0   ? INT64_MAX
           : a > -9223372036854775808.0 ? (int64_t)a
                                        : INT64_MIN;
}

/* Returns a / b rounded down; b > 0. */
static inline int64_t tern_size_div(int64_t a, int64_t b)
{
    return tern_size_is_lost(a) ? a : a / b - (a % b < 0);
}

/* Returns the bytes of n elements; SIZE_MAX if they are too many, so that the allocation fails. */
static inline size_t tern_size_bytes(int64_t n, size_t each)
{
    size_t bytes;
    return n < 0 || __builtin_mul_overflow((size_t)n, each, &bytes) ? SIZE_MAX : bytes;
}

#endif
