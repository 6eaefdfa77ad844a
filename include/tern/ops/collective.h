/* ops/collective.h -- reductions and copies across several devices of one process.
 *
 * The devices may be of different kinds, and a device may be listed twice. Between "cuda" devices
 * data are transferred by NCCL where it is installed, in the order of each device's commands and
 * without waiting. For other devices the data go through pinned memory of the host, and all devices
 * are read at the same time. Any dtype can be copied. All dtypes but the 8-bit floats can be
 * summed: float16 and bfloat16 are summed in float32 (except by NCCL), and the sum of bools is
 * "or". Inside a capture every function here fails with TERN_ERR_STATE. */
#ifndef TERN_OPS_COLLECTIVE_H
#define TERN_OPS_COLLECTIVE_H
#include <tern/dist.h>
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- in place, one tensor on each device, without gradients -------------------------------------
 * Each list has n contiguous tensors of one shape and dtype. Errors, after which nothing has
 * changed: TERN_ERR_ARGUMENT if n is 0 or a tensor is not contiguous, TERN_ERR_SHAPE and
 * TERN_ERR_DTYPE if the tensors differ. */

/* Sets each of x[0] to x[n - 1] to the sum of all (torch.cuda.nccl.all_reduce), as gradients of a
 * model's replicas are summed. Where some devices are not "cuda", NCCL first sums those that are,
 * and x[0]'s device adds the rest in the order of the list. */
TERN_API tern_status tern_all_reduce_(tern_tensor *const *x, int n);
/* Does the same with another reduction: sum, mean (the sum divided by n), product, minimum,
 * maximum, or a bitwise operation. The mean takes floating point types only, bitwise operations
 * integers and bools only, and no reduction takes 8-bit floats (TERN_ERR_DTYPE); tern_dist_op has
 * the rules for bools. A NaN in one of the tensors gives NaN, except in NCCL's minimum and
 * maximum. */
TERN_API tern_status tern_all_reduce_with_(tern_tensor *const *x, int n, tern_dist_op op);
/* Copies x[root] to all others of x (torch.cuda.nccl.broadcast). */
TERN_API tern_status tern_broadcast_(tern_tensor *const *x, int n, int root);
/* Copies x[0] to x[n - 1], one after the other, into each out[i], which has n times as many
 * elements (torch.cuda.nccl.all_gather). */
TERN_API tern_status tern_all_gather_(tern_tensor *const *out, tern_tensor *const *x, int n);
/* Sums x[0] to x[n - 1] and writes the i-th of n equal parts of the sum to out[i], which has 1/n of
 * the elements (torch.cuda.nccl.reduce_scatter). */
TERN_API tern_status tern_reduce_scatter_(tern_tensor *const *out, tern_tensor *const *x, int n);
/* Does the same with another reduction, as tern_all_reduce_with_. */
TERN_API tern_status tern_reduce_scatter_with_(tern_tensor *const *out, tern_tensor *const *x,
                                               int n, tern_dist_op op);

/* ---- with new tensors and gradients (torch.cuda.comm, torch.nn.parallel) ------------------------
 * Results belong to the innermost scope. A tensor that is already on its device is not copied. */

/* Copies each of k tensors to n devices: out[j n + i] is x[j] on devices[i]
 * (torch.cuda.comm.broadcast_coalesced; broadcast for k 1). In backward the gradients of x[j] are
 * summed on its device, as tern_comm_reduce_add does. All x are on one device. */
TERN_API tern_status tern_comm_broadcast(tern_tensor *const *x, int k, const char *const *devices,
                                         int n, tern_tensor **out);
/* Returns the sum of n tensors of one shape and dtype on device; NULL means the device of x[0]. */
TERN_API tern_tensor *tern_comm_reduce_add(tern_tensor *const *x, int n, const char *device);
/* Splits x along dim, and writes to out[i] the i-th part, on devices[i]. sizes has the size of each
 * part, and they add up to the size of x; a part of size 0 is NULL in out. sizes NULL splits as
 * torch.chunk does: into equal parts, of which the last may be smaller or absent. Errors:
 * TERN_ERR_SHAPE if the sizes do not add up. */
TERN_API tern_status tern_comm_scatter(tern_tensor *x, const char *const *devices, int n,
                                       const int64_t *sizes, int dim, tern_tensor **out);
/* Returns the tensors concatenated along dim on device; NULL means the device of x[0]. Scalars are
 * joined to a vector. */
TERN_API tern_tensor *tern_comm_gather(tern_tensor *const *x, int n, int dim, const char *device);

TERN_END_DECLS
#endif
