/* matrix_trial.h -- small problems that a kernel on a matrix unit is tried with: whole numbers,
 * whose sums are exact in any order and in all types, so that one in a wrong lane is seen. They
 * have edges, and more than one step of the depth. */
#ifndef TERN_DEVICE_MATRIX_TRIAL_H
#define TERN_DEVICE_MATRIX_TRIAL_H
#include "device/matrix_kernel.h"

/* Three arrays, in memory of the device's own: two are given, one comes out and is compared. */
typedef struct tern_matrix_trial {
    tern_dtype dtype;
    bool wide; /* the last is float32 */
    size_t n[3];
    int *given[2], *expected; /* expected: of the last */
    void *numbers;            /* of the largest */
    tern_buffer buffer[3];
} tern_matrix_trial;

/* With dtype, wide and n; the end comes whatever this returns. */
tern_status tern_matrix_trial_begin(tern_place *place, tern_matrix_trial *t);
tern_status tern_matrix_trial_compare(tern_place *place, tern_matrix_trial *t, bool *right);
void tern_matrix_trial_end(tern_place *place, tern_matrix_trial *t);

/* What a kernel of gemm_matrix.cl is built for. */
typedef struct tern_gemm_variant {
    tern_dtype dtype;
    int way;
    int layout; /* tern_gemm_layout */
    int odd;    /* MATRIX_ODD */
    int rows, columns, depth;
    bool wide, narrow;
} tern_gemm_variant;

/* MATRIX_ODD of a product in this layout. */
int tern_gemm_odd(const tern_gemm *g, int layout);
/* How a backend does products by kernels of gemm_matrix.cl. */
typedef struct tern_gemm_backend {
    tern_matrix_prepare_own *prepare;
    tern_status (*launch)(tern_place *place, void *kernel, const tern_gemm_variant *of,
                          const tern_gemm *g);
    bool has_epilogues; /* MATRIX_EPILOGUES */
} tern_gemm_backend;
/* The kernel that is built for that; NULL where it is not to be had. */
tern_status tern_gemm_find(tern_place *place, const tern_gemm_backend *backend,
                           const tern_gemm_variant *of, void **kernel);
/* Whether it gives the sums of a product that is a little larger than a tile. */
tern_status tern_gemm_try(tern_place *place, const tern_gemm_backend *backend, void *kernel,
                          const tern_gemm_variant *of, bool *right);

#endif
