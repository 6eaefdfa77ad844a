/* reduction.h -- a tensor as (outer, n, inner), whose n is reduced. */
#ifndef TERN_SRC_OPS_REDUCTION_H
#define TERN_SRC_OPS_REDUCTION_H
#include "tensor/op.h"

/* Sets *mask to the dims as bits. An empty list means all dims. */
tern_status tern_dims_mask(const tern_shape *dims, int ndim, uint32_t *mask, const char *function);
/* Sets *mask to the reduced dims as bits and *shape to the shape of the result. x = NULL is an
 * error. */
tern_status tern_reduction_of(const tern_tensor *x, const tern_shape *dims, bool keepdim,
                              uint32_t *mask, tern_shape *shape, const char *function);
/* Returns the shape without the masked dims, or with size 1 in their place if keepdim. */
tern_shape tern_masked_shape(const tern_shape *shape, uint32_t mask, bool keepdim);
/* Returns the number of elements along the masked dims. */
int64_t tern_masked_count(const tern_shape *shape, uint32_t mask);

typedef struct tern_reduction_view {
    int64_t outer, n, inner;
    int64_t parts, len; /* n is reduced in parts of len elements; the same parts on every device */
    int64_t abreast;    /* for columns: number of rows that are reduced side by side */
    int64_t groups;     /* number of work-groups of a launch: outer * parts * tiles */
    tern_tensor *x;     /* dense elements in the order (outer, n, inner) */
    tern_tensor *copy;  /* x if it is a copy, else NULL; released by tern_reduction_end */
} tern_reduction_view;

/* Sets *r to x with the masked dims as n, in any order unless `places` (indices along n) are
 * wanted. In the results outer and inner are the other dims in order. */
tern_status tern_reduction_begin(tern_reduction_view *r, tern_tensor *x, uint32_t mask,
                                 bool places);
void tern_reduction_end(tern_reduction_view *r);
/* Returns whether one thread for each slice is fastest. */
static inline bool tern_reduction_is_short(const tern_reduction_view *r)
{
    return r->inner == 1 && r->parts == 1 && r->n <= 16;
}
/* Returns the view of `partial`, the results of a launch over r, that remains to be reduced. */
tern_reduction_view tern_reduction_rest(const tern_reduction_view *r, tern_tensor *partial);

/* Returns x, which has the shape of a reduction of `shape` over mask (with or without keepdim),
 * repeated along the masked dims: a differentiable view. */
tern_tensor *tern_expand_masked(tern_tensor *x, const tern_shape *shape, uint32_t mask);
/* tern_reduction_sum computes out = the sum over n, divided by divisor; tern_reduction_deviations
 * the same sum of (x - mean)^2 (float32 and float64 only). */
tern_status tern_reduction_sum(tern_reduction_view *r, tern_tensor *out, double divisor);
tern_status tern_reduction_deviations(tern_reduction_view *r, tern_tensor *out,
                                      const tern_tensor *mean, double divisor);

/* Returns x summed to a shape that was broadcast to x's shape. */
tern_tensor *tern_sum_to(tern_tensor *x, const tern_shape *shape);
/* Sets *has_nan to whether an element of x is NaN. Waits for the device. */
tern_status tern_has_nan(tern_tensor *x, bool *has_nan);
/* Returns |difference|_p over the last dim. The gradient at ties and NaN is that of PyTorch's cdist
 * (vector_norm.c). */
tern_tensor *tern_norm_of_points(tern_tensor *difference, double p);
/* Returns x summed over the masked dims, with the given shape, which is with or without keepdim. */
tern_tensor *tern_sum_masked(tern_tensor *x, uint32_t mask, const tern_shape *shape);

#endif
