/* user.h -- the user's own kernels on the cpu: what their files share. */
#ifndef TERN_DEVICE_CPU_USER_H
#define TERN_DEVICE_CPU_USER_H
#include "device/backend.h"
#include "device/user_source.h"
#include <stddef.h>
#include "user_group.h"

typedef struct tern_cpu_user {
    char name[128];
    tern_user_source source;
    void *library;                                           /* NULL: see elsewhere and kernel */
    void (*item)(const tern_user_group *group, size_t item); /* if the kernel has barriers */
    void (*items)(const tern_user_group *group);             /* a whole group, if it has none */
    tern_place *elsewhere; /* an OpenCL device on this processor */
    void *kernel;          /* the kernel on that device */
} tern_cpu_user;

/* user.c, user_run.c */
tern_status tern_cpu_user_compile(tern_place *place, const char *source, const char *name,
                                  void **kernel);
void tern_cpu_user_free(tern_place *place, void *kernel);
tern_status tern_cpu_user_launch(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                                 const tern_arg *args, int n);

/* user_elsewhere.c: used if there is no compiler. */
tern_status tern_cpu_elsewhere_compile(tern_cpu_user *k, const char *source, const char *name);
tern_status tern_cpu_elsewhere_launch(tern_cpu_user *k, const tern_kernel_grid *grid,
                                      const tern_arg *args, int n);
void tern_cpu_elsewhere_free(tern_cpu_user *k);

#endif
