/* attention_matrix.h -- attention and its gradients on matrix units (attention_matrix.cl), for the
 * backends of devices with matrix units: chooses the kernels of a call and their arguments, and
 * tries each kernel before it is used. */
#ifndef TERN_DEVICE_ATTENTION_MATRIX_H
#define TERN_DEVICE_ATTENTION_MATRIX_H
#include "device/device.h"
#include "device/matrix_kernel.h"

enum { TERN_ATTENTION_ARGS = 15 };

/* A backend's kernels, and its function that launches one. The caller holds a lock of the
 * backend. */
typedef struct tern_attention_backend {
    tern_matrix_kernels *kernels;
    tern_status (*launch)(tern_place *place, const tern_matrix_kernel *kernel, int64_t groups,
                          const tern_arg *args, int n);
} tern_attention_backend;

/* Sets *taken to whether matrix units compute a, whose way is not TERN_MATRIX_NONE; its kernels are
 * then compiled and tried. Sets *scratch to the bytes of scratch memory that the run needs. */
tern_status tern_attention_matrix_plan(tern_place *place, const tern_attention_backend *backend,
                                       const tern_attention *a, size_t *scratch, bool *taken);
tern_status tern_attention_matrix_run(tern_place *place, const tern_attention_backend *backend,
                                      const tern_attention *a);

/* Computes a forward pass or a gradient of 64 queries and keys of this width with run(user), in
 * device memory, and sets *right to whether the result is exact (attention_problem.c). */
tern_status tern_attention_try(tern_place *place, tern_dtype dtype, bool gradient, int width,
                               tern_status (*run)(void *user, const tern_attention *a), void *user,
                               bool *right);

/* Returns the bits of n / 4 in half precision; n has at most 8 bits. */
uint16_t tern_half_of_quarters(int n, tern_dtype dtype);

#endif
