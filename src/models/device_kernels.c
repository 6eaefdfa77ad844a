/* device_kernels.c -- kernels of this library, compiled once for each device and cached. */
#include "models/device_kernels.h"
#include "base/lock.h"
#include "models/model.h"
#include <stdbool.h>

static bool compile(models_kernels *all, int i, const char *device)
{
    all->on[i].device = device;
    for (int k = 0; k < MODELS_KERNELS && all->names[k]; k++)
        if (!(all->on[i].kernel[k] = tern_kernel_compile(device, all->source, all->names[k]))) {
            if (k)
                tern_kernel_free(all->on[i].kernel[0]);
            return false;
        }
    return true;
}

tern_kernel *const *models_kernels_on(models_kernels *all, const char *device)
{
    tern_mutex_lock(&all->lock);
    int i = 0;
    while (i < all->n && all->on[i].device != device)
        i++;
    if (i == MODELS_DEVICES)
        tern_fail(TERN_ERR_UNSUPPORTED, "%s: kernels of more than %d devices are not kept", device,
                  MODELS_DEVICES);
    else if (i == all->n && compile(all, i, device))
        all->n++;
    const bool is_there = i < all->n;
    tern_mutex_unlock(&all->lock);
    return is_there ? all->on[i].kernel : NULL;
}
