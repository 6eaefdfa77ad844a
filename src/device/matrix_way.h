/* matrix_way.h -- the kinds of matrix units (MATRIX_WAY) of cl_kernels/matrix.h, with the same
 * numbers. */
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
/* Return the number of lanes of a sub-group, and the depth of a large tile of gemm_matrix.cl. */
int tern_matrix_lanes(int way);
int tern_matrix_depth(int way);
/* Returns the way for a device that reports the way `claimed`, or PLAIN if it has no matrix unit:
 * NONE for PLAIN and for dtypes other than half precision; TERN_MATRIX in the environment changes
 * this. */
int tern_matrix_wanted(int claimed, tern_dtype dtype);

#endif
