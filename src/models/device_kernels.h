/* device_kernels.h -- kernels of this library, compiled once for each device and cached. */
#ifndef TERN_SRC_MODELS_DEVICE_KERNELS_H
#define TERN_SRC_MODELS_DEVICE_KERNELS_H
#include "base/lock.h"
#include <tern/kernel.h>

enum { MODELS_KERNELS = 2, MODELS_DEVICES = 64 };

/* The kernels of one source, a static variable whose source, names and lock are initialized. */
typedef struct models_kernels {
    const char *source, *names[MODELS_KERNELS]; /* the second name may be NULL */
    tern_mutex lock;
    struct {
        const char *device; /* canonical device string; pointers are compared */
        tern_kernel *kernel[MODELS_KERNELS];
    } on[MODELS_DEVICES];
    int n;
} models_kernels;

/* Returns the kernels for a device, or NULL after an error. */
tern_kernel *const *models_kernels_on(models_kernels *all, const char *device);

#endif
