/* attention.h -- attention in blocks, and what it shares with the composite form. */
#ifndef TERN_OPS_ATTENTION_H
#define TERN_OPS_ATTENTION_H
#include "tensor/op.h"

typedef struct tern_attention_attributes {
    double scale, dropout;
    bool causal;
} tern_attention_attributes;

/* Inputs q (..., L, E), k (..., S, E), v (..., S, Ev) with the same two or fewer dims in front and
 * nothing empty, and a mask that broadcasts to (..., L, S) or NULL, which gets no gradient. */
extern const tern_op tern_attention_fused;
/* Its gradients by differentiable operations, for gradients of gradients. */
tern_status tern_attention_differentiable_gradient(tern_gradient *g);

#endif
