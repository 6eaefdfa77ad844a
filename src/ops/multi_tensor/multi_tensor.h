/* multi_tensor.h -- kernels over many tensors at once: one launch for all of a device and dtype,
 * or, on OpenCL devices whose memory has no addresses, for every TERN_MULTI_FEW of them.
 *
 * The one header of ops/ that layers to the right include: what it does is no operation on tensors
 * that a user could want, and the public headers have no kernels of the library's own. */
#ifndef TERN_SRC_OPS_MULTI_TENSOR_H
#define TERN_SRC_OPS_MULTI_TENSOR_H
#include "device/device.h"
#include "types_host.h"
#include "shapes.h"

/* The layout of n tensors, cut into chunks, and the table of addresses on their device. */
typedef struct tern_multi tern_multi;

/* For tensors of these sizes on the device of the first; n > 0. NULL after an error. */
tern_multi *tern_multi_new(tern_tensor *const *tensors, int n);
void tern_multi_free(tern_multi *table);
/* How many chunks there are in all, and the first one of tensor i. */
int64_t tern_multi_chunks(const tern_multi *table);
int64_t tern_multi_first_chunk(const tern_multi *table, int i);

/* A run of a kernel over columns of tensors: column[k][i] goes with tensor i. Columns 0 and 1 are
 * of one dtype; tensor i is left out where column[1][i] is NULL. All are dense. Arguments of `many`
 * are rows, chunks, each, shared ..., found, faults, the number of chunks, flags. Where the device's
 * memory has no addresses `few` runs for TERN_MULTI_FEW tensors at a time, which are its arguments
 * then. */
enum { TERN_MULTI_SHARED = 4 };
typedef struct tern_multi_call {
    const tern_kernel_ref *many, *few;
    tern_tensor *const *column[5];          /* NULL: not there */
    tern_tensor *each;                      /* an element for each chunk, written; NULL: left out */
    tern_tensor *shared[TERN_MULTI_SHARED]; /* those that are there, read */
    tern_tensor *found;                     /* of one element, written; NULL: left out */
    int32_t flags;
    bool writes; /* column 0 is written: versions rise */
} tern_multi_call;
tern_status tern_multi_launch(tern_multi *table, const tern_multi_call *call);

/* Beside them, torch._amp_update_scale_: the scale of mixed precision (float32, one element) after
 * a step; tracker (int64) counts those in a row for which *found (float32) was 0 (loss_scale.c). */
tern_status tern_loss_scale_update(tern_tensor *scale, tern_tensor *tracker, tern_tensor *found,
                                   double growth, double backoff, int64_t interval);

#endif
