/* matrix_way.h -- the ways of cl_kernels/matrix.h, by the numbers of MATRIX_WAY there. */
#ifndef TERN_DEVICE_MATRIX_WAY_H
#define TERN_DEVICE_MATRIX_WAY_H
#include <tern/tensor.h>

enum {
    TERN_MATRIX_NONE = -1,
    TERN_MATRIX_PLAIN,
    TERN_MATRIX_MMA,
    TERN_MATRIX_RDNA3,
    TERN_MATRIX_RDNA4,
    TERN_MATRIX_CDNA,
    TERN_MATRIX_XE8,
    TERN_MATRIX_XE16,
    TERN_MATRIX_WAYS
};
const char *tern_matrix_name(int way);
/* Lanes of a sub-group; the depth of a large tile of gemm_matrix.cl. */
int tern_matrix_lanes(int way);
int tern_matrix_depth(int way);
/* How a device goes that speaks of this way, PLAIN where it has no matrix unit: NONE for other
 * types than halves, and what TERN_MATRIX says. */
int tern_matrix_wanted(int claimed, tern_dtype dtype);

#endif
