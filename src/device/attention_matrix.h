/* attention_matrix.h -- attention and its gradients on matrix units, attention_matrix.cl, for the
 * backends of devices that have some: which kernels a call takes, with which arguments, and a trial
 * of each before it is used. */
#ifndef TERN_DEVICE_ATTENTION_MATRIX_H
#define TERN_DEVICE_ATTENTION_MATRIX_H
#include "device/device.h"
#include "device/matrix_way.h"

enum { TERN_ATTENTION_ARGS = 15 };

/* A kernel: the beginning of its text distinguishes it from others. */
typedef struct tern_attention_kernel {
    struct tern_attention_kernel *next;
    const char *file, *title;
    char name[40], defines[256];
    int way;
    size_t group;
    void *made; /* the backend's; NULL: it does not build */
    enum { TERN_ATTENTION_NOT_TRIED, TERN_ATTENTION_RIGHT, TERN_ATTENTION_WRONG } state;
} tern_attention_kernel;

/* What a backend does with one. */
typedef struct tern_attention_backend {
    tern_status (*build)(tern_place *place, tern_attention_kernel *kernel);
    tern_status (*launch)(tern_place *place, const tern_attention_kernel *kernel, int64_t groups,
                          const tern_arg *args, int n);
    void (*free)(void *made);
} tern_attention_backend;

/* The kernels of a device; who calls holds a lock of its own. */
typedef struct tern_attention_kernels {
    const tern_attention_backend *backend;
    tern_attention_kernel *first;
} tern_attention_kernels;

/* Whether a is for matrix units of its way, which is not NONE: its kernels are built then, and
 * what they gave of a problem whose numbers are exact was right, where the way is not PLAIN. What
 * does not build or is wrong is warned of once. scratch: bytes that the run is to be given. */
tern_status tern_attention_matrix_plan(tern_place *place, tern_attention_kernels *kernels,
                                       const tern_attention *a, size_t *scratch, bool *taken);
tern_status tern_attention_matrix_run(tern_place *place, tern_attention_kernels *kernels,
                                      const tern_attention *a);
void tern_attention_matrix_free(tern_attention_kernels *kernels);

/* attention_problem.c: a forward pass or a gradient of 64 queries and keys of this width in memory
 * of the device that run(user) does; whether all of it came out. */
tern_status tern_attention_try(tern_place *place, tern_dtype dtype, bool gradient, int width,
                               tern_status (*run)(void *user, const tern_attention *a), void *user,
                               bool *right);

/* The half that is n / 4, a number of at most 8 bits. */
uint16_t tern_half_of_quarters(int n, tern_dtype dtype);

#endif
