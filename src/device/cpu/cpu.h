/* cpu.h -- what the files of the cpu backend share. */
#ifndef TERN_DEVICE_CPU_CPU_H
#define TERN_DEVICE_CPU_CPU_H
#include "device/backend.h"
#include "device/chain.h"
#include "device/cpu/host_tables.h"
#include "device/cpu/product.h"

extern const tern_backend tern_cpu_backend;

/* Returns the best instruction set that both the library and this processor have, or NULL. */
const char *tern_cpu_level(void);
/* tern_backend.resolve; *kernel is a tern_cpu_kernel. */
tern_status tern_cpu_resolve(tern_place *place, const char *file, const char *name,
                             tern_dtype dtype, void **kernel);
/* tern_backend.chain; *compiled is a tern_cpu_kernel. */
tern_status tern_cpu_chain(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                           void **compiled);
void tern_cpu_free_kernels(void);
/* TERN_CPU_PER_OPERATION: multiplications that cost as much as one elementwise operation. */
enum { TERN_CPU_PER_OPERATION = 16 };

/* Returns the address of an argument's first element, or NULL if it has no buffer. */
static inline void *tern_cpu_at(const tern_arg *a)
{
    return a->buffer ? (char *)a->buffer->host + (size_t)a->at * a->bytes : NULL;
}

/* Returns x for the host's kernels; an element has `element` bytes. */
static inline tern_host_matrix tern_cpu_matrix(const tern_matrix *x, size_t element)
{
    return (tern_host_matrix){(char *)x->buffer->host + (size_t)x->at * element,
                              x->row,
                              x->col,
                              {x->batch[0], x->batch[1]}};
}

tern_status tern_cpu_gemm(tern_place *place, const tern_gemm *gemm);
/* Runs a kernel in `parts` parts on the threads of the pool. */
void tern_cpu_run_parts(const tern_cpu_kernel *kernel, void *const *args, int parts);
/* Runs kernel `name` of product_kernels.c, whose parameter is a struct of product.h, in parts.
 * *slot keeps the kernel, once it is resolved and its parameter checked, for the next call. */
tern_status tern_cpu_run_product(tern_place *place, _Atomic(void *) *slot, const char *name,
                                 tern_dtype dtype, void *problem, int parts);
/* The cpu's convolutions, by oneDNN where that is found, and attention. */
extern const tern_vendor tern_cpu_vendor;
tern_status tern_cpu_convolution(tern_place *place, const tern_convolution *c, bool *taken);
/* Computes the convolution by one of the next three functions. *taken is false if none takes it, or
 * if numbers are not finite: infinities and NaN have to be where the sums as written have them. */
tern_status tern_cpu_conv_own(tern_place *place, const tern_convolution *c, bool *taken);
/* Convolutions of few input channels, and gradients of their weights; *taken is false for
 * others. */
tern_status tern_cpu_conv_channels(tern_place *place, const tern_convolution *c, bool *taken);
/* Returns how many levels above x86-64-v3 this processor has kernels for; -1 without that level,
 * which alone has the kernels of the next two functions. Arm's one level has them, too: 0. */
int tern_cpu_above_v3(void);
/* Convolutions whose y has half the rows and columns of x, and both gradients. */
tern_status tern_cpu_conv_stride2(tern_place *place, const tern_convolution *c, bool *taken);
/* Convolutions of 3 x 3 taps and stride 1, and both gradients. *finite becomes false if a number of
 * y or dx is not finite. */
tern_status tern_cpu_conv_winograd(tern_place *place, const tern_convolution *c, bool *taken,
                                   bool *finite);
/* Sets out to the sum of the first `numbers` elements of each part's scratch. */
void tern_cpu_sum_parts(const float *scratch, int64_t part_scratch, int parts, int64_t numbers,
                        float *out);

#endif
