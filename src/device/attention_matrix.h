/* attention_matrix.h -- attention and its gradients on matrix units, attention_matrix.cl, for the
 * backends of devices that have some: which kernels a call takes, with which arguments, and a trial
 * of each before it is used. */
#ifndef TERN_DEVICE_ATTENTION_MATRIX_H
#define TERN_DEVICE_ATTENTION_MATRIX_H
#include "device/device.h"
#include "device/matrix_kernel.h"

enum { TERN_ATTENTION_ARGS = 15 };

/* What a backend does with the kernels of a call, which holds a lock of its own. */
typedef struct tern_attention_backend {
    tern_matrix_kernels *kernels;
    tern_status (*launch)(tern_place *place, const tern_matrix_kernel *kernel, int64_t groups,
                          const tern_arg *args, int n);
} tern_attention_backend;

/* Whether a is for matrix units of its way, which is not NONE: its kernels are built and tried
 * then. scratch: bytes that the run is to be given. */
tern_status tern_attention_matrix_plan(tern_place *place, const tern_attention_backend *backend,
                                       const tern_attention *a, size_t *scratch, bool *taken);
tern_status tern_attention_matrix_run(tern_place *place, const tern_attention_backend *backend,
                                      const tern_attention *a);

/* attention_problem.c: a forward pass or a gradient of 64 queries and keys of this width in memory
 * of the device that run(user) does; whether all of it came out. */
tern_status tern_attention_try(tern_place *place, tern_dtype dtype, bool gradient, int width,
                               tern_status (*run)(void *user, const tern_attention *a), void *user,
                               bool *right);

/* The half that is n / 4, a number of at most 8 bits. */
uint16_t tern_half_of_quarters(int n, tern_dtype dtype);

#endif
