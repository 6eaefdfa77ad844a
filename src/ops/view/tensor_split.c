/* tensor_split.c -- a tensor split along a dim at indices, or into slices. */
#include "base/checked.h"
#include "tensor/op.h"
#include <tern/ops.h>

static bool has_dim(const tern_tensor *x, int dim, int *wrapped, const char *function)
{
    if (!x) {
        tern_fail_argument_null(function, "x");
        return false;
    }
    if (x->ndim == 0) {
        tern_fail(TERN_ERR_SHAPE,
                  "%s: expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
                  function);
        return false;
    }
    return tern_wrap_dim(dim, x->ndim, wrapped, function) == TERN_OK;
}

static bool fits(int64_t n, tern_tensor *const *pieces, int capacity, const char *function)
{
    if (!pieces || n <= capacity)
        return true;
    tern_fail(TERN_ERR_ARGUMENT, "%s: %lld pieces do not fit into %d places", function,
              (long long)n, capacity);
    return false;
}

/* Returns whether n fits the int of the return value. */
static bool is_counted(int64_t n, const char *function)
{
    if (n <= INT32_MAX)
        return true;
    tern_fail(TERN_ERR_ARGUMENT, "%s: %lld pieces are more than an int counts", function,
              (long long)n);
    return false;
}

int tern_unbind(tern_tensor *x, int dim, tern_tensor **pieces, int capacity)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    if (!has_dim(x, dim, &d, __func__) || !is_counted(x->shape[d], __func__) ||
        !fits(x->shape[d], pieces, capacity, __func__))
        return -1;
    int n = (int)x->shape[d];
    if (n == 0 || !pieces)
        return n;
    if (tern_split(x, 1, d, pieces, capacity) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (!(pieces[i] = tern_squeeze_dim(pieces[i], d)))
            return -1;
    return n;
}

int tern_split_with_sizes(tern_tensor *x, const int64_t *sizes, int n, int dim,
                          tern_tensor **pieces, int capacity)
{
    static const char function[] = "tern_split_with_sizes";
    int d;
    int64_t sum = 0;
    if (!sizes && n > 0) {
        tern_fail_argument_null(function, "sizes");
        return -1;
    }
    if (!has_dim(x, dim, &d, function) || !fits(n, pieces, capacity, function))
        return -1;
    for (int i = 0; i < n; i++) {
        if (sizes[i] < 0) {
            tern_fail(TERN_ERR_ARGUMENT,
                      "%s: split_with_sizes expects split_sizes have only non-negative entries, "
                      "but got %lld at %d",
                      function, (long long)sizes[i], i);
            return -1;
        }
        sum = tern_size_add(sum, sizes[i]);
    }
    if (sum != x->shape[d]) {
        tern_fail(TERN_ERR_ARGUMENT,
                  "%s: split_with_sizes expects split_sizes to sum exactly to %lld (input "
                  "tensor's size at dimension %d), but they sum to %lld",
                  function, (long long)x->shape[d], d, (long long)sum);
        return -1;
    }
    int64_t start = 0;
    for (int i = 0; i < n && pieces; start += sizes[i++])
        if (!(pieces[i] = tern_narrow(x, d, start, sizes[i])))
            return -1;
    return n;
}

/* ---- tensor_split: into sections of nearly equal size, or at indices --------------------- */

static int sections_of(tern_tensor *x, int64_t sections, int dim, tern_tensor **pieces,
                       int capacity, const char *function)
{
    int d;
    if (!has_dim(x, dim, &d, function))
        return -1;
    if (sections <= 0 || sections > INT32_MAX) {
        tern_fail(TERN_ERR_ARGUMENT, "%s: number of sections must be larger than 0, got %lld",
                  function, (long long)sections);
        return -1;
    }
    if (!fits(sections, pieces, capacity, function))
        return -1;
    int64_t each = x->shape[d] / sections, longer = x->shape[d] % sections, start = 0;
    for (int64_t i = 0; i < sections && pieces; i++) {
        int64_t size = each + (i < longer);
        if (!(pieces[i] = tern_narrow(x, d, start, size)))
            return -1;
        start += size;
    }
    return (int)sections;
}

static int cut_at(tern_tensor *x, const int64_t *indices, int n, int dim, tern_tensor **pieces,
                  int capacity, const char *function)
{
    int d;
    if (!indices && n > 0) {
        tern_fail_argument_null(function, "indices");
        return -1;
    }
    if (!has_dim(x, dim, &d, function) || !fits(n + 1, pieces, capacity, function))
        return -1;
    int64_t start = 0;
    for (int i = 0; i <= n && pieces; i++) {
        int64_t end = i < n ? indices[i] : TERN_SLICE_END;
        if (!(pieces[i] = tern_slice(x, d, start, end, 1)))
            return -1;
        start = end;
    }
    return n + 1;
}

int tern_tensor_split(tern_tensor *x, int64_t sections, int dim, tern_tensor **pieces, int capacity)
{
    return sections_of(x, sections, dim, pieces, capacity, "tern_tensor_split");
}

int tern_tensor_split_at(tern_tensor *x, const int64_t *indices, int n, int dim,
                         tern_tensor **pieces, int capacity)
{
    TERN_NAMED_IN_ERRORS;
    return cut_at(x, indices, n, dim, pieces, capacity, __func__);
}

/* ---- hsplit, vsplit, dsplit -------------------------------------------------------------- */

/* Returns whether x has the number of dims that torch.<name> requires. */
static bool has_dims(const tern_tensor *x, int least, const char *name)
{
    if (!x || x->ndim >= least)
        return true;
    tern_fail(TERN_ERR_SHAPE,
              "tern_%s: torch.%s requires a tensor with at least %d dimension%s, but got a tensor "
              "with %d dimensions!",
              name, name, least, least > 1 ? "s" : "", x->ndim);
    return false;
}

static bool divides(const tern_tensor *x, int64_t sections, int d, const char *name)
{
    if (!x || sections < 0 || (sections > 0 && x->shape[d] % sections == 0))
        return true;
    tern_fail(TERN_ERR_ARGUMENT,
              "tern_%s: torch.%s attempted to split along dimension %d, but the size of the "
              "dimension %lld is not divisible by the split_size %lld!",
              name, name, d, (long long)x->shape[d], (long long)sections);
    return false;
}

#define NAMED_SPLIT(NAME, LEAST, DIM)                                                              \
    int tern_##NAME(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity)          \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        if (!has_dims(x, LEAST, #NAME) || !divides(x, sections, DIM, #NAME))                       \
            return -1;                                                                             \
        return sections_of(x, sections, DIM, pieces, capacity, "tern_" #NAME);                     \
    }                                                                                              \
    int tern_##NAME##_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,      \
                         int capacity)                                                             \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        if (!has_dims(x, LEAST, #NAME))                                                            \
            return -1;                                                                             \
        return cut_at(x, indices, n, DIM, pieces, capacity, "tern_" #NAME "_at");                  \
    }
NAMED_SPLIT(hsplit, 1, (x && x->ndim > 1 ? 1 : 0))
NAMED_SPLIT(vsplit, 2, 0)
NAMED_SPLIT(dsplit, 3, 2)
