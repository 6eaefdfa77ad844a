/* gemm.h -- the ways to a matrix product on an OpenCL device. */
#ifndef TERN_DEVICE_OPENCL_GEMM_H
#define TERN_DEVICE_OPENCL_GEMM_H
#include "device/opencl/opencl.h"

/* A product with one level of batch: matrix i of A starts at at[0] + i * stride[0], of B [1], C
 * [2]. */
typedef struct tern_cl_product {
    const tern_gemm *of;
    int64_t count, at[3], stride[3];
} tern_cl_product;

/* What a device keeps for products; behind lock. */
typedef struct tern_cl_gemm_state {
    pthread_mutex_t lock;
    tern_cl_kernel *vector[3][TERN_BOOL + 1]; /* gemm, gemm_dot, gemm_sum for each dtype */
    tern_buffer scratch;                      /* for products cut along k */
    void *portable[TERN_BOOL + 1], *bias[TERN_BOOL + 1];
} tern_cl_gemm_state;

/* gemm_vector.cl, for CPU-type devices. */
bool tern_cl_vector_fits(tern_place *place);
tern_status tern_cl_vector_gemm(tern_place *place, tern_cl_gemm_state *state,
                                const tern_cl_product *product);

/* CLBlast, opened at run time; for f32 and f64 only, as its f16 sums are in f16. */
bool tern_cl_clblast_can(const tern_gemm *gemm);
/* With beta given apart: the bias may be in C already. */
tern_status tern_cl_clblast_gemm(tern_place *place, const tern_cl_product *product, double beta);

#endif
