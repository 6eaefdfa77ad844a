/* ops/logic.h -- comparisons, predicates, and operations on bits. The first comment of
 * ops/elementwise.h holds here too: it explains types, errors and the trailing _.
 *
 * Comparisons and predicates return bools and have no gradient. Operations on bits take integers
 * and bools. */
#ifndef TERN_OPS_LOGIC_H
#define TERN_OPS_LOGIC_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- comparisons ----------------------------------------------------------------------------- */

TERN_API tern_tensor *tern_eq(tern_tensor *x, tern_tensor *y); /* whether x == y, elementwise */
TERN_API tern_tensor *tern_eq_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_ne(tern_tensor *x, tern_tensor *y);       /* x != y; true for NaN */
TERN_API tern_tensor *tern_ne_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_lt(tern_tensor *x, tern_tensor *y); /* whether x < y, elementwise */
TERN_API tern_tensor *tern_lt_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_le(tern_tensor *x, tern_tensor *y); /* whether x <= y, elementwise */
TERN_API tern_tensor *tern_le_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_gt(tern_tensor *x, tern_tensor *y); /* whether x > y, elementwise */
TERN_API tern_tensor *tern_gt_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_ge(tern_tensor *x, tern_tensor *y); /* whether x >= y, elementwise */
TERN_API tern_tensor *tern_ge_scalar(tern_tensor *x, tern_scalar y); /* y is a number */

/* ---- logic: an element that is not 0 is true ------------------------------------------------- */

TERN_API tern_tensor *tern_logical_and(tern_tensor *x, tern_tensor *y); /* whether both are true */
TERN_API tern_tensor *tern_logical_and_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_logical_or(tern_tensor *x, tern_tensor *y); /* whether one is true */
TERN_API tern_tensor *tern_logical_or_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
/* whether exactly one is true */
TERN_API tern_tensor *tern_logical_xor(tern_tensor *x, tern_tensor *y);
TERN_API tern_tensor *tern_logical_xor_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_logical_not(tern_tensor *x);                       /* whether x is 0 */

/* ---- predicates ------------------------------------------------------------------------------ */

TERN_API tern_tensor *tern_isnan(tern_tensor *x);    /* whether x is NaN */
TERN_API tern_tensor *tern_isfinite(tern_tensor *x); /* whether x is neither infinite nor NaN */
TERN_API tern_tensor *tern_isinf(tern_tensor *x);    /* whether x is infinite */
TERN_API tern_tensor *tern_isposinf(tern_tensor *x); /* whether x is INFINITY */
TERN_API tern_tensor *tern_isneginf(tern_tensor *x); /* whether x is -INFINITY */
TERN_API tern_tensor *tern_signbit(tern_tensor *x);  /* whether x is below 0, or -0.0 */

/* ---- comparing tensors ----------------------------------------------------------------------- */

/* Returns, for each element, whether |x - y| <= atol + rtol |y| or x equals y; with equal_nan NaN
 * equals NaN. PyTorch's defaults: rtol 1e-5, atol 1e-8. */
TERN_API tern_tensor *tern_isclose(tern_tensor *x, tern_tensor *y, double rtol, double atol,
                                   bool equal_nan);
/* Returns whether tern_isclose is true for all elements. Waits for the device. After an error the
 * result is false. */
TERN_API bool tern_allclose(tern_tensor *x, tern_tensor *y, double rtol, double atol,
                            bool equal_nan);
/* Returns whether x and y have the same shape and the same elements. Waits for the device. After an
 * error the result is false. */
TERN_API bool tern_equal(tern_tensor *x, tern_tensor *y);
/* Returns, for each element of x, whether it is one of the elements of y, or with invert whether it
 * is not. Not for bool. */
TERN_API tern_tensor *tern_isin(tern_tensor *x, tern_tensor *y, bool invert);

/* ---- bits ------------------------------------------------------------------------------------ */

/* the bits that both have */
TERN_API tern_tensor *tern_bitwise_and(tern_tensor *x, tern_tensor *y);
/* y is a number */
TERN_API tern_tensor *tern_bitwise_and_scalar(tern_tensor *x, tern_scalar y);
/* in place */
TERN_API tern_tensor *tern_bitwise_and_(tern_tensor *x, tern_tensor *y);
/* y is a number; in place */
TERN_API tern_tensor *tern_bitwise_and_scalar_(tern_tensor *x, tern_scalar y);

TERN_API tern_tensor *tern_bitwise_or(tern_tensor *x, tern_tensor *y); /* the bits of either */
TERN_API tern_tensor *tern_bitwise_or_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_bitwise_or_(tern_tensor *x, tern_tensor *y);      /* in place */
TERN_API tern_tensor *tern_bitwise_or_scalar_(tern_tensor *x,
                                              tern_scalar y); /* y is a number; in place */

/* the bits that exactly one has */
TERN_API tern_tensor *tern_bitwise_xor(tern_tensor *x, tern_tensor *y);
/* y is a number */
TERN_API tern_tensor *tern_bitwise_xor_scalar(tern_tensor *x, tern_scalar y);
/* in place */
TERN_API tern_tensor *tern_bitwise_xor_(tern_tensor *x, tern_tensor *y);
/* y is a number; in place */
TERN_API tern_tensor *tern_bitwise_xor_scalar_(tern_tensor *x, tern_scalar y);

TERN_API tern_tensor *tern_bitwise_not(tern_tensor *x); /* every bit inverted; of bool: not */

/* x 2^y for integers. A shift by a negative number, or by the width of the type or more, gives
 * 0. */
TERN_API tern_tensor *tern_bitwise_left_shift(tern_tensor *x, tern_tensor *y);
/* y is a number */
TERN_API tern_tensor *tern_bitwise_left_shift_scalar(tern_tensor *x, tern_scalar y);
/* in place */
TERN_API tern_tensor *tern_bitwise_left_shift_(tern_tensor *x, tern_tensor *y);
/* y is a number; in place */
TERN_API tern_tensor *tern_bitwise_left_shift_scalar_(tern_tensor *x, tern_scalar y);

/* x / 2^y rounded down, for integers. A shift by a negative number, or by the width of the type or
 * more, gives 0, or -1 if x is negative. */
TERN_API tern_tensor *tern_bitwise_right_shift(tern_tensor *x, tern_tensor *y);
/* y is a number */
TERN_API tern_tensor *tern_bitwise_right_shift_scalar(tern_tensor *x, tern_scalar y);
/* in place */
TERN_API tern_tensor *tern_bitwise_right_shift_(tern_tensor *x, tern_tensor *y);
/* y is a number; in place */
TERN_API tern_tensor *tern_bitwise_right_shift_scalar_(tern_tensor *x, tern_scalar y);

/* ---- aliases that PyTorch has ---------------------------------------------------------------- */

TERN_API tern_tensor *tern_greater(tern_tensor *x, tern_tensor *y);             /* gt */
TERN_API tern_tensor *tern_greater_scalar(tern_tensor *x, tern_scalar y);       /* y is a number */
TERN_API tern_tensor *tern_greater_equal(tern_tensor *x, tern_tensor *y);       /* ge */
TERN_API tern_tensor *tern_greater_equal_scalar(tern_tensor *x, tern_scalar y); /* y is a number */
TERN_API tern_tensor *tern_less(tern_tensor *x, tern_tensor *y);                /* lt */
TERN_API tern_tensor *tern_less_scalar(tern_tensor *x, tern_scalar y);          /* y is a number */
TERN_API tern_tensor *tern_less_equal(tern_tensor *x, tern_tensor *y);          /* le */
TERN_API tern_tensor *tern_less_equal_scalar(tern_tensor *x, tern_scalar y);    /* y is a number */
TERN_API tern_tensor *tern_not_equal(tern_tensor *x, tern_tensor *y);           /* ne */
TERN_API tern_tensor *tern_not_equal_scalar(tern_tensor *x, tern_scalar y);     /* y is a number */

TERN_END_DECLS
#endif
