/* matrix_trial.h -- small problems for the trial of a kernel on a matrix unit. Their numbers are
 * integers, whose sums are exact in any order and in all types, so a number in a wrong lane changes
 * the result. The problems have incomplete tiles and more than one step along k. */
#ifndef TERN_DEVICE_MATRIX_TRIAL_H
#define TERN_DEVICE_MATRIX_TRIAL_H
#include "device/matrix_kernel.h"

/* Three arrays in device memory of their own: two inputs, and a result that is compared. */
typedef struct tern_matrix_trial {
    tern_dtype dtype;
    bool wide; /* the result is float32 */
    size_t n[3];
    int *given[2], *expected; /* the inputs; the exact result */
    void *numbers;            /* host memory for the elements of the largest array */
    tern_buffer buffer[3];
} tern_matrix_trial;

/* Allocates the arrays and fills the inputs; the caller has set dtype, wide and n, and calls
 * tern_matrix_trial_end even after an error. */
tern_status tern_matrix_trial_begin(tern_place *place, tern_matrix_trial *t);
tern_status tern_matrix_trial_compare(tern_place *place, tern_matrix_trial *t, bool *right);
void tern_matrix_trial_end(tern_place *place, tern_matrix_trial *t);

/* The variant of a kernel of gemm_matrix.cl. */
typedef struct tern_gemm_variant {
    tern_dtype dtype;
    int way;
    int layout; /* tern_gemm_layout */
    int odd;    /* MATRIX_ODD */
    int rows, columns, depth;
    bool wide, narrow;
} tern_gemm_variant;

/* Returns MATRIX_ODD of a product in this layout. */
int tern_gemm_odd(const tern_gemm *g, int layout);
/* A backend's functions for products by kernels of gemm_matrix.cl. */
typedef struct tern_gemm_backend {
    tern_matrix_prepare_own *prepare;
    tern_status (*launch)(tern_place *place, void *kernel, const tern_gemm_variant *of,
                          const tern_gemm *g);
    bool has_epilogues; /* MATRIX_EPILOGUES */
} tern_gemm_backend;
/* Sets *kernel to the kernel of a variant; NULL if it does not compile or is wrong. */
tern_status tern_gemm_find(tern_place *place, const tern_gemm_backend *backend,
                           const tern_gemm_variant *of, void **kernel);
/* Sets *right to whether the kernel computes a product exactly that is a little larger than a
 * tile. */
tern_status tern_gemm_try(tern_place *place, const tern_gemm_backend *backend, void *kernel,
                          const tern_gemm_variant *of, bool *right);

#endif
