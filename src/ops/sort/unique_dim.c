/* unique_dim.c -- unique along a dim: the distinct entries, in lexicographic order.
 *
 * Each column of elements is replaced by the ranks 0, 1, ... of its distinct elements. Two columns
 * of ranks a, b are combined to keys a n + b, whose ranks are those of the pairs; repeated halving
 * leaves one column, which is the inverse, after sorting 2 n k elements in total. */
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>
#include <tern/ops.h>

/* Returns the number of the run of equal elements for each element of the sorted rows (k, n), not
 * empty, from 0. */
static tern_tensor *runs_of(tern_tensor *changes, int64_t rows)
{
    tern_tensor *first = changes ? tern_new_zeros(changes, TERN_SHAPE(rows, 1)) : NULL;
    return first ? tern_cumsum(tern_cat((tern_tensor *[]){first, changes}, 2, -1), -1) : NULL;
}

/* Returns the rank of each element of (k, n) in its row, int64; equal elements have one rank. */
static tern_tensor *ranks_of(tern_tensor *x)
{
    tern_values_indices sorted;
    if (!x || tern_sort(x, -1, false, &sorted) != TERN_OK)
        return NULL;
    int64_t rows = x->shape[0], n = x->shape[1];
    tern_tensor *changes = tern_ne(tern_narrow(sorted.values, 1, 1, n - 1), /**/
                                   tern_narrow(sorted.values, 1, 0, n - 1));
    tern_tensor *runs = runs_of(changes, rows);
    return runs ? tern_scatter(runs, 1, sorted.indices, runs, TERN_REDUCE_NONE) : NULL;
}

/* Returns the rank of each of the n entries, in lexicographic order of the columns of (k, n). */
static tern_tensor *ranks_of_entries(tern_tensor *x)
{
    tern_tensor *ranks = ranks_of(x);
    while (ranks && ranks->shape[0] > 1) {
        int64_t k = ranks->shape[0], pairs = k / 2, n = ranks->shape[1];
        tern_tensor *both =
            tern_reshape(tern_narrow(ranks, 0, 0, 2 * pairs), TERN_SHAPE(pairs, 2, n));
        tern_tensor *last = k % 2 ? tern_narrow(ranks, 0, k - 1, 1) : NULL;
        tern_tensor *keys = tern_add(tern_mul_scalar(tern_select(both, 1, 0), tern_scalar_int(n)),
                                     tern_select(both, 1, 1));
        ranks = last || k % 2 == 0 ? ranks_of(keys) : NULL;
        if (last && ranks)
            ranks = tern_cat((tern_tensor *[]){ranks, last}, 2, 0);
    }
    return ranks ? tern_select(ranks, 0, 0) : NULL;
}

/* Returns the number of the run of each entry, comparing adjacent entries only. */
static tern_tensor *runs_of_entries(tern_tensor *x)
{
    int64_t n = x->shape[1];
    tern_tensor *changes = tern_ne(tern_narrow(x, 1, 1, n - 1), tern_narrow(x, 1, 0, n - 1));
    tern_tensor *runs = runs_of(tern_any_dim(changes, 0, true), 1);
    return runs ? tern_select(runs, 0, 0) : NULL;
}

static tern_status unique_of_none(tern_tensor *x, tern_unique_result *out)
{
    tern_unique_result r = {
        .output = tern_clone(x),
        .inverse = tern_empty(TERN_SHAPE(0), TERN_I64, tern_device(x)),
        .counts = tern_empty(TERN_SHAPE(0), TERN_I64, tern_device(x)),
    };
    if (!r.output || !r.inverse || !r.counts)
        return tern_last_status();
    *out = r;
    return TERN_OK;
}

static tern_status check(const tern_tensor *x, int dim, const char *function)
{
    int empty = 0;
    for (int d = 0; d < x->ndim; d++)
        empty += x->shape[d] == 0;
    if (empty > 1 || (empty == 1 && x->shape[dim] > 0))
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: There are 0 sized dimensions, and they aren't selected, so unique "
                         "cannot be applied (dim %d of %s)",
                         function, dim, TERN_TENSOR_TEXT(x));
    return TERN_OK;
}

/* inverse is the index of the result for each entry. Entries sorted by inverse begin a run at the
 * first of equal entries. */
static tern_status results_of(tern_tensor *x, int dim, tern_tensor *inverse,
                              tern_unique_result *out)
{
    tern_values_indices order;
    if (!inverse)
        return tern_last_status();
    TERN_TRY(tern_sort(inverse, 0, false, &order));
    int64_t last;
    TERN_TRY(
        tern_hidden_read(tern_select(order.values, 0, -1), &last, sizeof last, "tern_unique_dim"));
    tern_tensor *numbers = tern_arange(0, (double)last + 1, 1, TERN_I64, tern_device(x));
    tern_tensor *starts = tern_searchsorted(order.values, numbers, TERN_SIDE_LEFT);
    tern_tensor *ends = tern_searchsorted(order.values, numbers, TERN_SIDE_RIGHT);
    tern_unique_result r = {
        .output = tern_index_select(x, dim, tern_index_select(order.indices, 0, starts)),
        .inverse = inverse,
        .counts = tern_sub(ends, starts),
    };
    if (!r.output || !r.counts)
        return tern_last_status();
    *out = r;
    return TERN_OK;
}

static tern_status unique_dim(tern_tensor *x, int dim, bool sorted, tern_unique_result *out,
                              const char *function)
{
    tern_status status = TERN_OK;
    if (!x || !out)
        return tern_fail_argument_null(function, x ? "out" : "x");
    if (x->ndim == 0)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Dimension specified as %d but tensor has no dimensions", function,
                         dim);
    TERN_TRY(tern_wrap_dim(dim, x->ndim, &dim, function));
    TERN_TRY(check(x, dim, function));
    TERN_NO_GRAD {
        if (x->numel == 0) {
            status = unique_of_none(x, out);
        } else {
            int64_t n = x->shape[dim];
            tern_tensor *entries = tern_movedim(x, TERN_DIMS(dim), TERN_DIMS(-1));
            entries = entries ? tern_reshape(entries, TERN_SHAPE(x->numel / n, n)) : NULL;
            tern_tensor *inverse = !entries ? NULL
                                   : sorted ? ranks_of_entries(entries)
                                            : runs_of_entries(entries);
            status = results_of(x, dim, inverse, out);
        }
    }
    return status;
}

tern_status tern_unique_dim(tern_tensor *x, int dim, tern_unique_result *out)
{
    TERN_NAMED_IN_ERRORS;
    return unique_dim(x, dim, true, out, __func__);
}

tern_status tern_unique_consecutive_dim(tern_tensor *x, int dim, tern_unique_result *out)
{
    TERN_NAMED_IN_ERRORS;
    return unique_dim(x, dim, false, out, __func__);
}
