/* conv_matrix.h -- half precision convolutions on matrix units (convolution_matrix.cl): variants of
 * the kernel, its launch and its trial, for every backend. */
#ifndef TERN_DEVICE_CONV_MATRIX_H
#define TERN_DEVICE_CONV_MATRIX_H
#include "device/conv_launch.h"
#include "device/matrix_kernel.h"

typedef struct tern_conv_variant {
    tern_dtype dtype;
    int way;
    int rows, columns, depth; /* the size of a tile of the result, as stored in memory */
    bool channels_last;
    int odd;  /* operands without aligned eights: bit 1: the image; bit 2: the other operand */
    int pass; /* tern_conv_pass */
    int unit; /* CONV_UNIT */
} tern_conv_variant;

/* Returns whether c is in half precision and large enough for a tile of a matrix unit; without
 * channels_last, c must also need columns (tern_conv_needs_columns). t: c's product with unit 1. */
bool tern_conv_fits_matrix(const tern_convolution *c, const struct tern_conv_tiles *t);
/* Returns the variant for c with tiles of this size; the depth is smaller if elements are loaded
 * one by one. */
tern_conv_variant tern_conv_variant_of(const tern_convolution *c, int way, int rows, int columns,
                                       int depth);
/* Sets *t to the first product, split into parts for a device with so many compute units; returns
 * the bytes of the partial sums. */
size_t tern_conv_matrix_plan(struct tern_conv_tiles *t, const tern_convolution *c,
                             const tern_conv_variant *v, int64_t compute_units);
static inline tern_conv_layout tern_conv_layout_of(const tern_conv_variant *v)
{
    return (tern_conv_layout){v->channels_last, v->unit};
}
/* Launches the kernel of variant v for one product, as tern_conv_launches.launch. */
tern_status tern_conv_matrix_launch(tern_place *place, void *kernel, const tern_conv_variant *v,
                                    const struct tern_conv_tiles *t, const tern_arg operands[5]);
/* Sets kernels[0] to the kernel of variant v, and kernels[1] to the kernel that adds up partial
 * sums, with work-groups of parts_group threads, or NULL if that is 0. *usable becomes false if one
 * of them does not compile or is wrong. */
tern_status tern_conv_matrix_find(tern_place *place, tern_matrix_prepare_own *prepare,
                                  const tern_conv_variant *v, int parts_group, void *kernels[2],
                                  bool *usable);
/* Sets *right to whether the kernel solves a problem with exact results. */
tern_status tern_conv_matrix_try(tern_place *place, void *kernel, const tern_conv_variant *v,
                                 bool *right);

#endif
