/* gemm_plan.h -- which kernel of matmul_vector.cl computes a matrix product, and in how many
 * work-groups. */
#ifndef TERN_DEVICE_OPENCL_GEMM_PLAN_H
#define TERN_DEVICE_OPENCL_GEMM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* C_b (m, n) = alpha A_b (m, k) x B_b (k, n) + beta C_b for b < batch. Strides in elements; no
 * dimension is 0. */
typedef struct tern_cl_gemm_problem {
    int64_t m, n, k, batch;
    int64_t a_row, a_col;
    int64_t b_row, b_col;
    int width;         /* bytes of a vector: 64 with GEMM_WIDE, else 32 */
    int element;       /* bytes of the type computed in: 4 for float, f16 and bf16, 8 for double */
    int narrow;        /* 1 for f16 and bf16 */
    int compute_units; /* CL_DEVICE_MAX_COMPUTE_UNITS */
} tern_cl_gemm_problem;

/* A launch. The work-group size is always 1, 1, 1 and has to be passed: PoCL refuses NULL with
 * reqd_work_group_size. With parts > 1, k is cut: launch the kernel with the scratch buffer for C
 * (c_at = 0, c_row = n, c_batch = parts m n, c_part = m n, alpha = 1, beta = 0, no bias), then
 * gemm_sum with global size (batch, ceil(m / sum_rows), 1). */
typedef struct tern_cl_gemm_plan {
    bool dot; /* gemm_dot instead of gemm */
    size_t global[3];
    int64_t group_rows; /* rows and columns of C that one work-group computes */
    int64_t group_cols;
    int64_t k_part;   /* elements of k that one work-group sums */
    int64_t parts;    /* ceil(k / k_part) */
    int64_t sum_rows; /* group_rows of gemm_sum */
    size_t scratch;   /* elements (float or double) of the scratch buffer; 0: none needed */
} tern_cl_gemm_plan;

tern_cl_gemm_plan tern_cl_gemm_plan_make(const tern_cl_gemm_problem *problem);

#endif
