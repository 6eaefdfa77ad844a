/* cpu.h -- what the files of the cpu backend share. */
#ifndef TERN_DEVICE_CPU_CPU_H
#define TERN_DEVICE_CPU_CPU_H
#include "device/backend.h"
#include "device/cpu/host_tables.h"

extern const tern_backend tern_cpu_backend;

/* The best instruction set that kernels were compiled for and this processor has; NULL for none. */
const char *tern_cpu_level(void);
/* tern_backend.resolve; *kernel is a tern_cpu_kernel. */
tern_status tern_cpu_resolve(tern_place *place, const char *file, const char *name,
                             tern_dtype dtype, void **kernel);
void tern_cpu_free_kernels(void);
tern_status tern_cpu_gemm(tern_place *place, const tern_gemm *gemm);
/* Kernel `name` of product_kernels.c; *slot keeps what was found, and held against its parameters, for
 * the next call. */
tern_status tern_cpu_product_kernel(tern_place *place, _Atomic(void *) *slot, const char *name,
                                    tern_dtype dtype, const tern_arg *args, int n, void **kernel);
/* oneDNN's convolutions, where it is linked, and attention. */
extern const tern_vendor tern_cpu_vendor;
tern_status tern_cpu_convolution(tern_place *place, const tern_convolution *c, bool *taken);

#endif
