/* reduction.h -- a tensor seen as (outer, n, inner) with the middle to be reduced. */
#ifndef TERN_SRC_OPS_REDUCTION_H
#define TERN_SRC_OPS_REDUCTION_H
#include "tensor/op.h"

/* Dims as bits; an empty list means all. */
tern_status tern_dims_mask(const tern_shape *dims, int ndim, uint32_t *mask, const char *function);
/* What reducing x (NULL is an error) over dims has: they as bits, and the shape of the result. */
tern_status tern_reduction_of(const tern_tensor *x, const tern_shape *dims, bool keepdim,
                              uint32_t *mask, tern_shape *shape, const char *function);
/* The shape without the masked dims, or with 1 in their place. */
tern_shape tern_masked_shape(const tern_shape *shape, uint32_t mask, bool keepdim);
/* Elements along the masked dims. */
int64_t tern_masked_count(const tern_shape *shape, uint32_t mask);

typedef struct tern_reduction_view {
    int64_t outer, n, inner;
    int64_t parts, len; /* n is reduced in parts of len elements, in the same way on every device */
    int64_t abreast;    /* columns: how many rows are taken side by side */
    int64_t groups;     /* of a launch: outer * parts * tiles */
    tern_tensor *x;     /* dense elements in that order */
    tern_tensor *copy;  /* x, where it had to be copied; released by tern_reduction_end */
} tern_reduction_view;

/* The masked dims of x as the middle, in any order unless places along it are asked for. In the
 * results outer and inner are the other dims in order. */
tern_status tern_reduction_begin(tern_reduction_view *r, tern_tensor *x, uint32_t mask,
                                 bool places);
void tern_reduction_end(tern_reduction_view *r);
/* Whether one lane a slice is best. */
static inline bool tern_reduction_is_short(const tern_reduction_view *r)
{
    return r->inner == 1 && r->parts == 1 && r->n <= 16;
}
/* What is left to reduce after a launch over r, whose results are in partial. */
tern_reduction_view tern_reduction_rest(const tern_reduction_view *r, tern_tensor *partial);

/* x of the shape that reducing shape over mask gives (any keepdim), repeated along the masked dims;
 * a differentiable view. */
tern_tensor *tern_expand_masked(tern_tensor *x, const tern_shape *shape, uint32_t mask);
/* out = the sum over the middle, divided; that of (x - mean) squared (float32 and float64 only). */
tern_status tern_reduction_sum(tern_reduction_view *r, tern_tensor *out, double divisor);
tern_status tern_reduction_deviations(tern_reduction_view *r, tern_tensor *out,
                                      const tern_tensor *mean, double divisor);

/* x summed to a shape that x was broadcast from. */
tern_tensor *tern_sum_to(tern_tensor *x, const tern_shape *shape);
/* Whether an element of x is NaN; waits for the device. */
tern_status tern_has_nan(tern_tensor *x, bool *has_nan);
/* |difference|_p over the last dim. Its gradient at ties and NaN is that of PyTorch's cdist
 * (vector_norm.c). */
tern_tensor *tern_norm_of_points(tern_tensor *difference, double p);
/* x summed over the masked dims, as shape, which differs from x's in dims of size 1 at most. */
tern_tensor *tern_sum_masked(tern_tensor *x, uint32_t mask, const tern_shape *shape);

#endif
