/* conv_product.h -- convolutions and their gradients as matrix products, for kernels that gather
 * one operand from the image (convolution_tiles.cl, convolution_vector.cl,
 * convolution_matrix.cl). */
#ifndef TERN_DEVICE_CONV_PRODUCT_H
#define TERN_DEVICE_CONV_PRODUCT_H
#include <stdbool.h>
#include <stdint.h>
struct tern_conv_shape;
struct tern_conv_tiles;

/* How operands lie: channels_last or in rows; unit: channels at one tap that are together in the
 * depth, which is filled with zeros to a multiple of it. 1 for the gradient of a weight, and where
 * the depth is that of columns in memory, every tap of a channel after the other. */
typedef struct tern_conv_layout {
    bool channels_last;
    int32_t unit;
} tern_conv_layout;

/* One pass (TERN_CONV_Y, _X, _WEIGHT) as products, but for parts, has_bias and adds. dx has one for
 * each phase (tern_conv_phases), the others for zeros alone. width is 8 where sizes allow it. */
void tern_conv_product(struct tern_conv_tiles *t, const struct tern_conv_shape *s, int pass,
                       tern_conv_layout layout, const int64_t phase[3]);
/* Phases of dx along each dim: those of the stride that are in the image; 1 of the other passes. */
void tern_conv_phases(const struct tern_conv_shape *s, int pass, int64_t n[3]);
/* The largest unit, a power of two from `least` to `most`, that fills little with zeros. */
int32_t tern_conv_unit(int64_t channels, int32_t least, int32_t most);

#endif
