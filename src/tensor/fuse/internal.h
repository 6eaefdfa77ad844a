/* internal.h -- the functions of this folder that its files call of each other. */
#ifndef TERN_TENSOR_FUSE_INTERNAL_H
#define TERN_TENSOR_FUSE_INTERNAL_H
#include "tensor/fuse/pass.h"

static inline const tern_fusion *tern_fusion_of(const tern_node *node)
{
    static const tern_fusion none;
    return node->op->fusion ? node->op->fusion : &none;
}

/* ---- seed.c ---- */
/* Returns the gradient that node's loss computed with its value, and gives it away; NULL where
 * there is none, or none for this pass. */
tern_tensor *tern_seed_gradient(const tern_backward_pass *w, const tern_node *node,
                                const bool *needs);
/* Releases the seed. The next pass gets the same memory, if nobody else has it. */
void tern_seed_free(tern_backward_pass *w);

/* ---- accumulate.c ---- */
/* Fills f->sum and what backward reads of it. */
void tern_accumulate_offer(tern_backward_pass *w, const tern_node *node, tern_fused_gradient *f);
/* Puts the sum, g->din[0], in the place of the gradient that it was added to. */
void tern_accumulate_take(const tern_gradient *g);

/* ---- precision.c ---- */
/* Returns the type of half precision in which the gradient of node's input 0 is wanted too;
 * TERN_DTYPE_DEFAULT for none. */
tern_dtype tern_half_copy_wanted(const tern_backward_pass *w, const tern_node *node);
/* Returns a bit for each input that is a cast of a float32 leaf to half precision: its gradient may
 * be of the leaf's type. */
uint32_t tern_f32_grads_wanted(const tern_backward_pass *w, const tern_node *node);
/* Returns the edge of input i, or that of the cast before input i if its bit is set. */
const tern_edge *tern_edge_past_cast(const tern_node *node, int i, uint32_t f32_grads);

/* ---- grad_out.c ---- */
/* Fills f->grad_out, where gradients of node's inputs may be written; counts the writes. */
void tern_grad_outs_offer(tern_backward_pass *w, const tern_node *node, tern_fused_gradient *f);
void tern_grad_outs_take(const tern_gradient *g);

/* ---- claim.c ---- */
/* Returns whether this pass is the one that writes the gradient of a leaf in place, until the leaf
 * is finished. */
bool tern_fuse_claim(const tern_backward_pass *w, tern_arrival *a);

/* ---- batched.c ---- */
/* Sets *batched where node waits for the end of the pass; releases the nodes that wait. */
tern_status tern_batch_node(tern_backward_pass *w, tern_node *node, bool *batched);
void tern_batched_drop(tern_backward_pass *w);

/* ---- again.c ---- */
/* A result of fewer bytes is kept. Tests set it. */
extern int64_t tern_again_from;
/* Returns what input 0 of node is to be made again of; NULL where it is there. */
tern_packed *tern_again_offer(const tern_node *node);

/* ---- overwrite.c ---- */
/* Returns whether node's backward may write over its input 0. */
bool tern_overwrite_offer(const tern_backward_pass *w, const tern_node *node);

/* ---- deferred.c ---- */
/* Returns whether the gradient of node, which is relu or a cast, went on as it is. */
bool tern_defer_gradient(const tern_backward_pass *w, tern_node *node);

#endif
