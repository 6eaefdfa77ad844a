/* parts.h -- what the files of this folder take from each other. */
#ifndef TERN_TENSOR_FUSE_PARTS_H
#define TERN_TENSOR_FUSE_PARTS_H
#include "tensor/fuse/pass.h"

static inline const tern_fusion *tern_fusion_of(const tern_node *node)
{
    static const tern_fusion none;
    return node->op->fusion ? node->op->fusion : &none;
}

static inline bool tern_is_half(tern_dtype dtype)
{
    return dtype == TERN_F16 || dtype == TERN_BF16;
}

/* ---- seed.c ---- */
/* The gradient that node's loss made with its value, given away; NULL: it made none, or it is not for this pass. */
tern_tensor *tern_seed_gradient(const tern_walk *w, const tern_node *node, const bool *needs);
/* Gives the seed up: the next pass gets the same memory, if nobody else has it. */
void tern_seed_free(tern_walk *w);

/* ---- accumulate.c ---- */
/* Fill f->sum and what backward reads of it. */
void tern_accumulate_offer(tern_walk *w, const tern_node *node, tern_fused_gradient *f);
/* The sum, which is in g->din[0], takes the place of what it was made with. */
void tern_accumulate_take(const tern_gradient *g);

/* ---- precision.c ---- */
/* The type of half precision that the gradient of node's input 0 is wanted in too; TERN_DTYPE_DEFAULT: none. */
tern_dtype tern_half_copy_wanted(const tern_walk *w, const tern_node *node);
/* The inputs that are casts of float32 leaves to half precision, a bit each: their gradients may be of the leaf's type. */
uint32_t tern_f32_grads_wanted(const tern_walk *w, const tern_node *node);
/* The edge of input i, or that of the cast before it. */
const tern_edge *tern_edge_past_cast(const tern_node *node, int i, uint32_t f32_grads);

/* ---- grad_out.c ---- */
/* Where gradients of node's inputs may be written; after they were. */
void tern_grad_outs_offer(tern_walk *w, const tern_node *node, tern_fused_gradient *f);
void tern_grad_outs_take(const tern_gradient *g);

/* ---- claim.c ---- */
/* Whether this pass is the one that writes the gradient of a leaf in place, until the leaf is finished. */
bool tern_fuse_claim(const tern_walk *w, tern_arrival *a);

/* ---- batched.c ---- */
tern_status tern_batch_node(tern_walk *w, tern_node *node, bool *batched);
void tern_batched_drop(tern_walk *w);

/* ---- deferred.c ---- */
/* Whether the gradient of node, which is relu or a cast, went on as it is to the node before it. */
bool tern_defer_gradient(const tern_walk *w, tern_node *node);

#endif
