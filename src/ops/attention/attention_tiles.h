/* attention_tiles.h -- the fused form by kernels over tiles and by a vendor's routine, for
 * attention_fused.c. */
#ifndef TERN_SRC_OPS_ATTENTION_TILES_H
#define TERN_SRC_OPS_ATTENTION_TILES_H
#include "ops/attention/attention.h"

#define TERN_ATTENTION_NAME "tern_scaled_dot_product_attention"

/* Returns the shape (N, heads, T, width) as (N, T, heads, width). */
static inline tern_shape tern_attention_swapped(tern_shape s)
{
    int64_t heads = s.dims[1];
    s.dims[1] = s.dims[2];
    s.dims[2] = heads;
    return s;
}

/* Returns whether the device has work-groups with local memory and the kernels over tiles support
 * the dtype and the widths. */
bool tern_attention_tiles_fit(tern_tensor *const *in);
/* Returns whether a width exceeds that of the kernels over tiles, and the vendor's routine of the
 * device may compute attention and its gradients. */
bool tern_attention_is_wide(tern_tensor *const *in);
/* Run the whole forward pass and the whole gradient by kernels over tiles. `block` has the sizes of
 * the problem and the mask. */
struct tern_attention_block;
tern_status tern_attention_tiles_forward(tern_call *call, const struct tern_attention_block *block);
tern_status tern_attention_tiles_gradient(tern_call *call,
                                          const struct tern_attention_block *block);

/* Returns x as an operand of products, with the leading dims as batch strides
 * (attention_vendor.c). */
tern_matrix tern_attention_matrix(const tern_tensor *x);
/* Run the whole forward pass, or the whole gradient if `out` was saved, by the vendor's routine
 * (attention_vendor.c). *taken is false if the device has none for this call, or if weights are to
 * be stored. */
tern_status tern_attention_vendor_forward(tern_call *call, const struct tern_attention_block *block,
                                          bool *taken);
tern_status tern_attention_vendor_gradient(tern_call *call,
                                           const struct tern_attention_block *block, bool *taken);

/* tern_attention_is_packed returns whether q, k and v are interleaved in memory as one product
 * computes all three. Their gradients then have the same layout, (N, T, 3, heads, width), which the
 * backward pass of that product takes without a copy. tern_attention_packed_infer infers this
 * result, and tern_attention_unpack replaces it by its three parts. */
bool tern_attention_is_packed(tern_tensor *const *in, const tern_attention_attributes *at);
tern_status tern_attention_packed_infer(tern_call *call);
void tern_attention_unpack(tern_tensor *din[3]);

#endif
