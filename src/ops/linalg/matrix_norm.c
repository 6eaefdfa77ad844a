/* matrix_norm.c -- norms of matrices: of singular values, or of the sums of rows or columns. */
#include "ops/linalg/linalg.h"
#include <math.h>
#include <tern/ops.h>

/* Reads the two dims, wrapped; if no dims are given, the last two. */
static tern_status read_dims(const tern_tensor *x, const tern_shape *dims, int at[2],
                             const char *function)
{
    if (!x)
        return tern_fail_argument_null(function, "x");
    if (!tern_dtype_is_floating_point(x->dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: Expected a floating point or complex tensor as input. Got %s",
                         function, tern_dtype_name(x->dtype));
    if (x->ndim < 2)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: The input tensor A must have at least 2 dimensions, not %d", function,
                         x->ndim);
    if (dims->ndim != 0 && dims->ndim != 2)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: dim must be a 2-tuple. Got %s", function,
                         TERN_SHAPE_TEXT(dims));
    for (int i = 0; i < 2; i++)
        TERN_TRY(tern_wrap_dim(dims->ndim ? (int)dims->dims[i] : i - 2, x->ndim, &at[i], function));
    if (at[0] == at[1])
        return tern_fail(TERN_ERR_ARGUMENT, "%s: dims must be different. Got %s", function,
                         TERN_SHAPE_TEXT(dims));
    return TERN_OK;
}

/* Returns the singular values (*, k) of the matrices in the two dims. */
static tern_tensor *values_of(tern_tensor *x, const int at[2], const char *function)
{
    if (tern_dtype_size(x->dtype) == 2)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: Low precision dtypes not supported. Got %s",
                              function, tern_dtype_name(x->dtype));
    return tern_linalg_svdvals(tern_movedim(x, TERN_DIMS(at[0], at[1]), TERN_DIMS(-2, -1)));
}

/* Returns y without the two dims, or with keepdim with size 1 for each. */
static tern_tensor *kept(tern_tensor *y, const int at[2], bool keepdim)
{
    int low = at[0] < at[1] ? at[0] : at[1], high = at[0] < at[1] ? at[1] : at[0];
    return keepdim ? tern_unsqueeze(tern_unsqueeze(y, low), high) : y;
}

static tern_tensor *nuclear(tern_tensor *x, const tern_shape *dims, bool keepdim,
                            const char *function)
{
    int at[2];
    if (read_dims(x, dims, at, function) != TERN_OK)
        return NULL;
    tern_tensor *values = values_of(x, at, function);
    return values ? kept(tern_sum_dim(values, TERN_DIMS(-1), false), at, keepdim) : NULL;
}

tern_tensor *tern_nuclear_norm(tern_tensor *x, tern_shape dims, bool keepdim)
{
    TERN_COMPOSED("nuclear_norm", FLOAT32, &x);
    return nuclear(x, &dims, keepdim, "tern_nuclear_norm");
}

tern_tensor *tern_linalg_matrix_norm(tern_tensor *x, tern_matrix_norm_ord ord, tern_shape dims,
                                     bool keepdim)
{
    static const char function[] = "tern_linalg_matrix_norm";
    TERN_COMPOSED("linalg_matrix_norm", FLOAT32, &x);
    int at[2];
    if (tern_check_enum(function, "ord", (int)ord, TERN_MATRIX_NORM_NUC, "tern_matrix_norm_ord") !=
        TERN_OK)
        return NULL;
    if (ord == TERN_MATRIX_NORM_NUC)
        return nuclear(x, &dims, keepdim, function);
    if (read_dims(x, &dims, at, function) != TERN_OK)
        return NULL;
    return tern_linalg_vector_norm(x, 2, TERN_DIMS(at[0], at[1]), keepdim);
}

/* Returns the maximum or minimum over one dim; the maximum of an empty dim is 0. */
static tern_tensor *most(tern_tensor *x, bool largest, int dim)
{
    if (x && largest && x->shape[dim < 0 ? x->ndim + dim : dim] == 0)
        return tern_sum_dim(x, TERN_DIMS(dim), false);
    return largest ? tern_amax(x, TERN_DIMS(dim), false) : tern_amin(x, TERN_DIMS(dim), false);
}

/* ord 2, -2: the largest, smallest singular value; 1, -1: sums of columns; inf, -inf: of rows. */
tern_tensor *tern_linalg_matrix_norm_scalar(tern_tensor *x, double ord, tern_shape dims,
                                            bool keepdim)
{
    static const char function[] = "tern_linalg_matrix_norm";
    TERN_COMPOSED("linalg_matrix_norm", FLOAT32, &x);
    int at[2];
    if (read_dims(x, &dims, at, function) != TERN_OK)
        return NULL;
    double size = fabs(ord);
    if (size != 1 && size != 2 && !isinf(size))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: Order %g not supported.", function, ord);
    if (size == 2) {
        tern_tensor *values = values_of(x, at, function);
        return values ? kept(most(values, ord > 0, -1), at, keepdim) : NULL;
    }
    int summed = size == 1 ? at[0] : at[1], other = size == 1 ? at[1] : at[0];
    tern_tensor *sums = tern_linalg_vector_norm(x, 1, TERN_DIMS(summed), false);
    return sums ? kept(most(sums, ord > 0, other > summed ? other - 1 : other), at, keepdim) : NULL;
}
