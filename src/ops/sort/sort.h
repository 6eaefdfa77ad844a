/* sort.h -- sorted rows, for what reads them. */
#ifndef TERN_SRC_OPS_SORT_SRC_H
#define TERN_SRC_OPS_SORT_SRC_H
#include "tensor/op.h"

/* A dense x seen as (outer, n, inner): rows of n keys in rising order (i32 or i64) and the places
 * that they had, one for each of outer and inner. */
typedef struct tern_sorted {
    tern_tensor *keys, *places;
    int64_t rows, n;
} tern_sorted;
/* Fill s, to be emptied by tern_sorted_free; flip -1 sorts the other way. x is not empty. */
tern_status tern_sort_rows(tern_sorted *s, const tern_tensor *x, const tern_sides *sides,
                           int32_t flip);
void tern_sorted_free(tern_sorted *s);
/* searchsorted, from the left, in what tern_sort gave, where NaN is the largest number. */
tern_tensor *tern_search_sorted_values(tern_tensor *sorted, tern_tensor *values);

#endif
