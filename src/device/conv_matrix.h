/* conv_matrix.h -- convolutions of halves on matrix units, convolution_matrix.cl: what it is built
 * for, its launch and its trial, for every backend. */
#ifndef TERN_DEVICE_CONV_MATRIX_H
#define TERN_DEVICE_CONV_MATRIX_H
#include "device/conv_launch.h"
#include "device/matrix_kernel.h"

typedef struct tern_conv_variant {
    tern_dtype dtype;
    int way;
    int rows, columns, depth; /* of a tile of the result, as it lies in memory */
    bool channels_last;
    int odd;  /* bits: 1 of the image, 2 of the other operand */
    int pass; /* tern_conv_pass */
    int unit; /* CONV_UNIT */
} tern_conv_variant;

/* Whether c is of halves, and large enough for a matrix unit's tile; of channels_last also with one
 * tap, of rows where it needs columns. t: its product, of units of 1. */
bool tern_conv_fits_matrix(const tern_convolution *c, const struct tern_conv_tiles *t);
/* By tiles of this size; loads one by one take less of the depth. */
tern_conv_variant tern_conv_variant_of(const tern_convolution *c, int way, int rows, int columns,
                                       int depth);
/* The first product, cut into parts for a device of so many compute units; the bytes of sums. */
size_t tern_conv_matrix_plan(struct tern_conv_tiles *t, const tern_convolution *c,
                             const tern_conv_variant *v, int64_t compute_units);
static inline tern_conv_layout tern_conv_layout_of(const tern_conv_variant *v)
{
    return (tern_conv_layout){v->channels_last, v->unit};
}
/* A launch of tern_conv_launches: of the kernel that is built for v. */
tern_status tern_conv_matrix_launch(tern_place *place, void *kernel, const tern_conv_variant *v,
                                    const struct tern_conv_tiles *t, const tern_arg operands[5]);
/* The kernel that is built for v, and the one that adds up sums of parts in groups of so many; with
 * 0 there is none. Not usable: one of them is not to be had. */
tern_status tern_conv_matrix_find(tern_place *place, tern_matrix_prepare_own *prepare,
                                  const tern_conv_variant *v, int parts_group, void *kernels[2],
                                  bool *usable);
/* Whether the kernel gives the sums of a problem whose numbers are exact. */
tern_status tern_conv_matrix_try(tern_place *place, void *kernel, const tern_conv_variant *v,
                                 bool *right);

#endif
