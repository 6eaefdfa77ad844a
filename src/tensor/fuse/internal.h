/* internal.h -- the functions that the files of this folder call of each other. */
#ifndef TERN_TENSOR_FUSE_INTERNAL_H
#define TERN_TENSOR_FUSE_INTERNAL_H
#include "tensor/fuse/pass.h"

static inline const tern_fusion *tern_fusion_of(const tern_node *node)
{
    static const tern_fusion none;
    return node->op->fusion ? node->op->fusion : &none;
}

/* ---- seed.c ---- */
/* Returns the gradient that node, a loss, computed in forward; the node owns it. NULL: there is
 * none, or this pass cannot use it. */
tern_tensor *tern_seed_gradient(const tern_backward_pass *w, const tern_node *node,
                                const bool *needs);
/* Releases the seed. The next pass reuses its memory, if nothing else uses it. */
void tern_seed_free(tern_backward_pass *w);

/* ---- accumulate.c ---- */
/* Sets f->sum, f->accumulate_into and f->accumulates_in_place. */
void tern_accumulate_offer(tern_backward_pass *w, const tern_node *node, tern_fused_gradient *f);
/* Replaces the gradient to which backward added by the sum, g->din[0]. */
void tern_accumulate_take(const tern_gradient *g);

/* ---- precision.c ---- */
/* Returns the type of half precision in which the gradient of node's input 0 is needed too;
 * TERN_DTYPE_DEFAULT if in none. */
tern_dtype tern_half_copy_wanted(const tern_backward_pass *w, const tern_node *node);
/* Returns a bit for each input that is a cast of a float32 leaf to half precision: its gradient may
 * be of the leaf's type. */
uint32_t tern_f32_grads_wanted(const tern_backward_pass *w, const tern_node *node);
/* Returns the edge of input i, or that of the cast before input i if its bit is set. */
const tern_edge *tern_edge_past_cast(const tern_node *node, int i, uint32_t f32_grads);

/* ---- grad_out.c ---- */
/* The first sets f->grad_out, the tensors to which gradients of node's inputs may be written; the
 * second counts the writes to them. */
void tern_grad_outs_offer(tern_backward_pass *w, const tern_node *node, tern_fused_gradient *f);
void tern_grad_outs_take(const tern_gradient *g);

/* ---- claim.c ---- */
/* Claims the leaf of a for this pass, which alone then writes the leaf's gradient in place until
 * the leaf is finished. Returns whether it did. */
bool tern_fuse_claim(const tern_backward_pass *w, tern_arrival *a);

/* ---- batched.c ---- */
/* The first sets *batched to whether node waits for the end of the pass, the second releases the
 * nodes that wait. */
tern_status tern_batch_node(tern_backward_pass *w, tern_node *node, bool *batched);
void tern_batched_drop(tern_backward_pass *w);

/* ---- again.c ---- */
/* A result of fewer bytes is saved, not recomputed. Tests set this number. */
extern int64_t tern_again_from;
/* Returns the saved tensor from which input 0 of node is to be recomputed; NULL if input 0 is
 * saved. */
tern_packed *tern_again_offer(const tern_node *node);

/* ---- overwrite.c ---- */
/* Returns whether node's backward may write over its input 0. */
bool tern_overwrite_offer(const tern_backward_pass *w, const tern_node *node);

/* ---- deferred.c ---- */
/* Passes the gradient of node, which is relu or a cast, on unchanged. Returns whether it did. */
bool tern_defer_gradient(const tern_backward_pass *w, tern_node *node);

#endif
