/* user.h -- kernels of the program's own on the cpu: what its files share. */
#ifndef TERN_DEVICE_CPU_USER_H
#define TERN_DEVICE_CPU_USER_H
#include "device/backend.h"
#include "device/user_source.h"
#include <stddef.h>
#include "user_group.h"

typedef struct tern_cpu_user {
    char name[128];
    tern_user_source source;
    void *library;                                           /* NULL: it runs elsewhere */
    void (*item)(const tern_user_group *group, size_t item); /* where there are barriers */
    void (*items)(const tern_user_group *group);             /* all of a group, where not */
    tern_place *elsewhere; /* an OpenCL device of the processor, */
    void *kernel;          /* and the kernel there */
} tern_cpu_user;

/* user.c, user_run.c */
tern_status tern_cpu_user_compile(tern_place *place, const char *source, const char *name,
                                  void **kernel);
void tern_cpu_user_free(tern_place *place, void *kernel);
tern_status tern_cpu_user_launch(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                                 const tern_arg *args, int n);

/* user_elsewhere.c: where there is no compiler. */
tern_status tern_cpu_elsewhere_compile(tern_cpu_user *k, const char *source, const char *name);
tern_status tern_cpu_elsewhere_launch(tern_cpu_user *k, const tern_kernel_grid *grid,
                                      const tern_arg *args, int n);
void tern_cpu_elsewhere_free(tern_cpu_user *k);

#endif
