/* device_kernels.h -- kernels of this library's own, compiled once for each device and kept. */
#ifndef TERN_SRC_MODELS_DEVICE_KERNELS_H
#define TERN_SRC_MODELS_DEVICE_KERNELS_H
#include "base/lock.h"
#include <tern/kernel.h>

enum { MODELS_KERNELS = 2, MODELS_DEVICES = 64 };

/* Kernels of one source; a static variable with the source, the names and the lock set. */
typedef struct models_kernels {
    const char *source, *names[MODELS_KERNELS]; /* NULL: there is no second one */
    tern_mutex lock;
    struct {
        const char *device; /* a canonical string, of which there is one */
        tern_kernel *kernel[MODELS_KERNELS];
    } on[MODELS_DEVICES];
    int n;
} models_kernels;

/* The kernels on a device; NULL after an error. */
tern_kernel *const *models_kernels_on(models_kernels *all, const char *device);

#endif
