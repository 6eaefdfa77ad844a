/* sort.h -- sorted rows, for operations that read them. */
#ifndef TERN_SRC_OPS_SORT_SRC_H
#define TERN_SRC_OPS_SORT_SRC_H
#include "tensor/op.h"

/* The sorted rows of a dense x, viewed as (outer, n, inner): for each of outer and inner, n keys in
 * ascending order (i32 or i64) and their indices in the unsorted row. */
typedef struct tern_sorted {
    tern_tensor *keys, *places;
    int64_t rows, n;
} tern_sorted;
/* Fills s, which tern_sorted_free frees; flip -1 sorts in descending order. x is not empty. */
tern_status tern_sort_rows(tern_sorted *s, const tern_tensor *x, const tern_sides *sides,
                           int32_t flip);
void tern_sorted_free(tern_sorted *s);
/* Returns the result of searchsorted, from the left, in values sorted by tern_sort, where NaN is
 * the largest number. */
tern_tensor *tern_search_sorted_values(tern_tensor *sorted, tern_tensor *values);

#endif
