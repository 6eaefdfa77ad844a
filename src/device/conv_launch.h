/* conv_launch.h -- a convolution by kernels that gather from the image: which products are launched
 * (conv_product.h), and the sums of parts. */
#ifndef TERN_DEVICE_CONV_LAUNCH_H
#define TERN_DEVICE_CONV_LAUNCH_H
#include "device/backend.h"
#include "device/conv_product.h"

/* Whether indices and places of 32 bits are enough, and whether a product needs the image as
 * columns: it does not where there is one tap, with stride 1 and no padding. */
bool tern_conv_is_narrow(const tern_convolution *c);
bool tern_conv_needs_columns(const tern_convolution *c);
/* Whether eight halves are loaded at once from the beginning; an application's memory begins
 * anywhere. */
bool tern_conv_lies_in_eights(const tern_arg *arg);
/* The product of a phase, with bias and adds. */
void tern_conv_product_of(struct tern_conv_tiles *t, const tern_convolution *c,
                          tern_conv_layout layout, const int64_t phase[3]);
/* Few work-groups that sum for long are cut along k, in multiples of a tile's depth: sets parts,
 * for `wanted` groups, and returns the bytes of their sums. */
size_t tern_conv_cut(struct tern_conv_tiles *t, int64_t rows, int64_t columns, int64_t depth,
                     int64_t wanted);

/* A convolution is a launch for each product, of C, the sums of parts, A, B and the bias, and where
 * there are parts one of `sum`, conv_parts of convolution_parts.h. */
typedef struct tern_conv_launches {
    tern_conv_layout layout;
    int32_t parts;
    int64_t depth; /* of a tile; 0: not by tiles */
    void *sum;     /* NULL: there are no parts, or launch has added them up */
    tern_status (*launch)(void *user, const struct tern_conv_tiles *t, const tern_arg operands[5]);
    void *user;
} tern_conv_launches;
tern_status tern_conv_launch(tern_place *place, const tern_convolution *c,
                             const tern_conv_launches *launches);

#endif
