/* attention.h -- the two forms of attention: fused, and composed of other operations. */
#ifndef TERN_SRC_OPS_ATTENTION_H
#define TERN_SRC_OPS_ATTENTION_H
#include "device/device.h"
#include "tensor/op.h"

typedef struct tern_attention_attributes {
    double scale, dropout, softcap;
    int64_t window; /* 0: no window */
    bool causal, lower_right;
    bool inner; /* results have the memory layout (N, T, heads, width), as the inputs */
} tern_attention_attributes;

/* Query i attends to the keys from i - before to i + after. Without a limit these are so large that
 * they include all keys. */
typedef struct tern_attention_band {
    int64_t before, after;
} tern_attention_band;

/* Returns the band of causality and the window. With lower_right the last query is aligned with the
 * last key, so that query i is at key i + keys - queries. */
static inline tern_attention_band tern_attention_band_of(const tern_attention_attributes *at,
                                                         int64_t queries, int64_t keys)
{
    int64_t all = queries + keys, shift = at->lower_right ? keys - queries : 0;
    int64_t side = at->window && at->window < all ? at->window - 1 : all;
    return (tern_attention_band){.before = side - shift, .after = (at->causal ? 0 : side) + shift};
}

/* The fused form. Inputs are q (..., L, E), k (..., S, E) and v (..., S, Ev), not empty, with the
 * same leading dims, at most two, and a mask that broadcasts to (..., L, S), or NULL. The mask gets
 * no gradient. */
extern const tern_op tern_attention_fused;
/* The composed form, for all shapes that broadcast, differentiable to any order. */
tern_tensor *tern_attention_composed(tern_tensor *query, tern_tensor *key, tern_tensor *value,
                                     tern_tensor *mask, const tern_attention_attributes *at);
/* Computes the gradients of the fused form by differentiable operations. */
tern_status tern_attention_composed_gradient(tern_gradient *g);

#endif
