/* attention_tiles.h -- the fused form as kernels of tiles and by a vendor's routine, for
 * attention_fused.c. */
#ifndef TERN_SRC_OPS_ATTENTION_TILES_H
#define TERN_SRC_OPS_ATTENTION_TILES_H
#include "ops/attention/attention.h"

#define TERN_ATTENTION_NAME "tern_scaled_dot_product_attention"

/* (N, heads, T, width) as (N, T, heads, width). */
static inline tern_shape tern_attention_swapped(tern_shape s)
{
    int64_t heads = s.dims[1];
    s.dims[1] = s.dims[2];
    s.dims[2] = heads;
    return s;
}

/* Whether the device has work-groups for them and the widths are in their reach. */
bool tern_attention_tiles_fit(tern_tensor *const *in);
/* Whether they are wider, and the device's own routine may take attention and its gradients. */
bool tern_attention_is_wide(tern_tensor *const *in);
/* The whole forward and gradient of that operation; block is the problem's sizes and mask. */
struct tern_attention_block;
tern_status tern_attention_tiles_forward(tern_call *call, const struct tern_attention_block *block);
tern_status tern_attention_tiles_gradient(tern_call *call,
                                          const struct tern_attention_block *block);

/* x as an operand of products (attention_vendor.c); leading dims are batch strides. */
tern_matrix tern_attention_matrix(const tern_tensor *x);
/* All of it, or of its gradients where out is there, by the device's own routine
 * (attention_vendor.c), where it has one and no weights are kept. */
tern_status tern_attention_vendor_forward(tern_call *call, const struct tern_attention_block *block,
                                          bool *taken);
tern_status tern_attention_vendor_gradient(tern_call *call,
                                           const struct tern_attention_block *block, bool *taken);

/* Whether q, k and v lie side by side, as one product makes all three: so do their gradients then,
 * (N, T, 3, heads, width), which the way back takes for the product's without a copy. The result of
 * the gradient's operation, and its parts. */
bool tern_attention_is_packed(tern_tensor *const *in, const tern_attention_attributes *at);
tern_status tern_attention_packed_infer(tern_call *call);
void tern_attention_unpack(tern_tensor *din[3]);

#endif
