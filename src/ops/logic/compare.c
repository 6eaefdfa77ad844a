/* compare.c -- isclose, equal, isin and bitwise_not; the rest are rows of logic.def. */
#include "ops/sort/sort.h"
#include "tensor/op.h"
#include <tern/autograd.h>
#include <tern/ops.h>

/* |x - y| <= atol + rtol |y|. Equality is tested first because inf - inf is NaN; a finite distance
 * is required because an infinite y would allow any distance. */
tern_tensor *tern_isclose(tern_tensor *x, tern_tensor *y, double rtol, double atol, bool equal_nan)
{
    TERN_NAMED_IN_ERRORS;
    if (!(rtol >= 0 && atol >= 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_isclose: rtol and atol must be greater than or equal to zero, "
                              "but got %g and %g",
                              rtol, atol);
    tern_tensor *close = tern_eq(x, y);
    if (equal_nan)
        close = tern_logical_or(close, tern_logical_and(tern_isnan(x), tern_isnan(y)));
    bool bools = x && y && tern_dtype_of(x) == TERN_BOOL && tern_dtype_of(y) == TERN_BOOL;
    if (bools || (rtol == 0 && atol == 0))
        return close;
    tern_tensor *distance = tern_abs(tern_sub(x, y));
    tern_tensor *allowed = tern_add_scalar(tern_mul_scalar(tern_abs(y), tern_scalar_real(rtol)),
                                           tern_scalar_real(atol));
    return tern_logical_or(close,
                           tern_logical_and(tern_isfinite(distance), tern_le(distance, allowed)));
}

/* Returns whether all elements of a tensor of bools are true. */
static bool holds(tern_tensor *bools)
{
    return bools && tern_item_int(tern_all(bools)) != 0;
}

/* Reads the reduction over isclose on the host. */
bool tern_allclose(tern_tensor *x, tern_tensor *y, double rtol, double atol, bool equal_nan)
{
    TERN_NAMED_IN_ERRORS;
    bool close = false;
    TERN_SCOPE {
        TERN_NO_GRAD {
            close = holds(tern_isclose(x, y, rtol, atol, equal_nan));
        }
    }
    return close;
}

/* Returns whether shapes and elements are equal. NaN is unequal to itself, as in PyTorch. */
bool tern_equal(tern_tensor *x, tern_tensor *y)
{
    TERN_NAMED_IN_ERRORS;
    bool equal = false;
    if (x && y && !tern_same_shape(x, y))
        return false;
    TERN_SCOPE {
        TERN_NO_GRAD {
            equal = holds(tern_eq(x, y));
        }
    }
    return equal;
}

/* Returns whether each element of x is in y: y is sorted and x is searched in it by bisection, in
 * O((n + m) log m) without an n x m table. The search gives the index of the first element not less
 * than x, or n for a larger x, so the index is clamped and the element there is compared. */
tern_tensor *tern_isin(tern_tensor *x, tern_tensor *y, bool invert)
{
    TERN_NAMED_IN_ERRORS;
    tern_values_indices sorted;
    if (!x || !y) {
        tern_fail_argument_null(__func__, x ? "y" : "x");
        return NULL;
    }
    if (x->dtype == TERN_BOOL || y->dtype == TERN_BOOL)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_isin: Unsupported input type encountered for isin(): Bool");
    tern_tensor *found = NULL;
    TERN_NO_GRAD {
        tern_dtype dtype = tern_promote_types(x->dtype, y->dtype);
        x = tern_to_dtype(x, dtype);
        y = tern_flatten(tern_to_dtype(y, dtype), 0, -1);
        if (x && y && y->numel == 0)
            found = tern_zeros(tern_shape_of(x), TERN_BOOL, tern_device(x));
        else if (x && y && tern_sort(y, 0, false, &sorted) == TERN_OK) {
            tern_tensor *at = tern_search_sorted_values(sorted.values, x);
            at = tern_clamp(at, 0, (double)(y->numel - 1));
            found = tern_eq(tern_take(sorted.values, at), x);
        }
    }
    return found && invert ? tern_logical_not(found) : found;
}

/* ~x = x xor -1; for bools x xor true. */
tern_tensor *tern_bitwise_not(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    bool is_bool = x && tern_dtype_of(x) == TERN_BOOL;
    return tern_bitwise_xor_scalar(x, is_bool ? tern_scalar_bool(true) : tern_scalar_int(-1));
}
