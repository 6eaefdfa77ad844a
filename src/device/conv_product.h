/* conv_product.h -- convolutions and their gradients as matrix products, for kernels that gather
 * one operand from the image (convolution_tiles.cl, convolution_vector.cl,
 * convolution_matrix.cl). */
#ifndef TERN_DEVICE_CONV_PRODUCT_H
#define TERN_DEVICE_CONV_PRODUCT_H
#include <stdbool.h>
#include <stdint.h>
struct tern_conv_shape;
struct tern_conv_tiles;

/* The memory layout of operands. unit: the number of channels of one tap that are contiguous along
 * k; the channels are padded with zeros to a multiple of unit. It is 1 for the gradient of a
 * weight, and if k is in the order of im2col columns, all taps of one channel after the other. */
typedef struct tern_conv_layout {
    bool channels_last;
    int32_t unit;
} tern_conv_layout;

/* Sets *t to a product of a pass (TERN_CONV_Y, _X, _WEIGHT), without parts, has_bias and adds.
 * TERN_CONV_X has a product for each phase (tern_conv_phases), the other passes have one, with
 * phase 0. t->width is 8 if the sizes allow it. */
void tern_conv_product(struct tern_conv_tiles *t, const struct tern_conv_shape *s, int pass,
                       tern_conv_layout layout, const int64_t phase[3]);
/* Sets n to the number of phases along each dim: for TERN_CONV_X the stride, at most the size of
 * the image; 1 for the other passes. */
void tern_conv_phases(const struct tern_conv_shape *s, int pass, int64_t n[3]);
/* Returns the largest unit, a power of two from `least` to `most`, with which the padding is at
 * most 1/8 of the channels; `least` if there is none. */
int32_t tern_conv_unit(int64_t channels, int32_t least, int32_t most);

#endif
