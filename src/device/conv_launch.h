/* conv_launch.h -- launches a convolution by kernels that gather from the image: its products
 * (conv_product.h), and the kernel that adds up partial sums. */
#ifndef TERN_DEVICE_CONV_LAUNCH_H
#define TERN_DEVICE_CONV_LAUNCH_H
#include "device/backend.h"
#include "device/conv_product.h"

/* tern_conv_is_narrow returns whether 32 bits are enough for indices and positions in the image;
 * tern_conv_needs_columns whether a product needs the image as columns (im2col): y and x do not
 * with one tap, stride 1 and no padding. */
bool tern_conv_is_narrow(const tern_convolution *c);
bool tern_conv_needs_columns(const tern_convolution *c);
/* Returns whether the tensor is aligned for loads of eight half precision elements; external memory
 * may have any alignment. */
bool tern_conv_lies_in_eights(const tern_arg *arg);
/* Sets *t to the product of a phase, with has_bias and adds. */
void tern_conv_product_of(struct tern_conv_tiles *t, const tern_convolution *c,
                          tern_conv_layout layout, const int64_t phase[3]);
/* Splits the product along k (split-K), in multiples of a tile's depth, if there are fewer than
 * `wanted` work-groups: sets t->parts, and returns the bytes of the partial sums, or 0. */
size_t tern_conv_cut(struct tern_conv_tiles *t, int64_t rows, int64_t columns, int64_t depth,
                     int64_t wanted);

/* A convolution is a launch for each product, whose operands are C, the partial sums, A, B and the
 * bias; and if there are parts, a launch of `sum`, kernel conv_parts of convolution_parts.h. */
typedef struct tern_conv_launches {
    tern_conv_layout layout;
    int32_t parts;
    int64_t depth; /* the depth of a tile; 0: there are no tiles */
    void *sum;     /* NULL: there are no parts, or `launch` adds them up */
    tern_status (*launch)(void *user, const struct tern_conv_tiles *t, const tern_arg operands[5]);
    void *user;
} tern_conv_launches;
tern_status tern_conv_launch(tern_place *place, const tern_convolution *c,
                             const tern_conv_launches *launches);

#endif
