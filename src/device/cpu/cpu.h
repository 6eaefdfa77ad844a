/* cpu.h -- what the files of the cpu backend share. */
#ifndef TERN_DEVICE_CPU_CPU_H
#define TERN_DEVICE_CPU_CPU_H
#include "device/backend.h"
#include "device/chain.h"
#include "device/cpu/host_tables.h"
#include "device/cpu/product.h"

extern const tern_backend tern_cpu_backend;

/* The best instruction set that kernels were compiled for and this processor has; NULL for none. */
const char *tern_cpu_level(void);
/* tern_backend.resolve; *kernel is a tern_cpu_kernel. */
tern_status tern_cpu_resolve(tern_place *place, const char *file, const char *name,
                             tern_dtype dtype, void **kernel);
/* tern_backend.chain; *compiled is a tern_cpu_kernel. */
tern_status tern_cpu_chain(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                           void **compiled);
void tern_cpu_free_kernels(void);
/* Multiplications that cost as much as one of an elementwise kernel's operations. */
enum { TERN_CPU_PER_OPERATION = 16 };

/* Where an argument's elements begin; NULL without a buffer. */
static inline void *tern_cpu_at(const tern_arg *a)
{
    return a->buffer ? (char *)a->buffer->host + (size_t)a->at * a->bytes : NULL;
}

/* Matrices of elements of so many bytes, as the host's kernels take them. */
static inline tern_host_matrix tern_cpu_matrix(const tern_matrix *x, size_t element)
{
    return (tern_host_matrix){(char *)x->buffer->host + (size_t)x->at * element,
                              x->row,
                              x->col,
                              {x->batch[0], x->batch[1]}};
}

tern_status tern_cpu_gemm(tern_place *place, const tern_gemm *gemm);
/* Run a kernel in so many parts, on the threads of the pool. */
void tern_cpu_run_parts(const tern_cpu_kernel *kernel, void *const *args, int parts);
/* The same of kernel `name` of product_kernels.c, whose parameter is a struct of product.h; *slot
 * keeps what was found, and held against its parameter, for the next call. */
tern_status tern_cpu_run_product(tern_place *place, _Atomic(void *) *slot, const char *name,
                                 tern_dtype dtype, void *problem, int parts);
/* oneDNN's convolutions, where it is found, and attention. */
extern const tern_vendor tern_cpu_vendor;
tern_status tern_cpu_convolution(tern_place *place, const tern_convolution *c, bool *taken);
/* By one of the next three, where it is one of theirs: *taken. Infinite and other numbers that are
 * none are where the sums as they are written have them. */
tern_status tern_cpu_conv_own(tern_place *place, const tern_convolution *c, bool *taken);
/* Convolutions of few input channels, and gradients of their weights; *taken where it is one. */
tern_status tern_cpu_conv_channels(tern_place *place, const tern_convolution *c, bool *taken);
/* How many levels above x86-64-v3 this processor has kernels for; -1 where it can't run those of
 * that one, which alone has those of the next two. Arm's one level has them, too: 0. */
int tern_cpu_above_v3(void);
/* Those whose y has half the rows and columns of x, and both gradients. */
tern_status tern_cpu_conv_stride2(tern_place *place, const tern_convolution *c, bool *taken);
/* Those of 3 x 3 taps and stride 1, and both gradients; *finite becomes false where a number of y
 * or dx is not. */
tern_status tern_cpu_conv_winograd(tern_place *place, const tern_convolution *c, bool *taken,
                                   bool *finite);
/* The first `numbers` of each part's scratch, added up. */
void tern_cpu_sum_parts(const float *scratch, int64_t part_scratch, int parts, int64_t numbers,
                        float *out);

#endif
