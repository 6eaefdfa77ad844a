/* ops/collective.h -- what several devices of one process do together.
 *
 * Devices may be of any kinds, and one may stand in a list twice. Between "cuda" devices data go
 * through NCCL where it is installed, in the order of each one's work and without waiting; to
 * others by way of pinned memory of the host, all devices being read side by side. Any dtype; sums
 * are of all but the 8-bit floats, of halves in float32 outside of NCCL, and of bools "or". Not
 * inside of a capture (TERN_ERR_STATE). */
#ifndef TERN_OPS_COLLECTIVE_H
#define TERN_OPS_COLLECTIVE_H
#include <tern/dist.h>
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- in place, each tensor on a device of its own, no part of the graph -------------------------
 * Lists are of n tensors, contiguous, of one shape and dtype. Errors, nothing being changed:
 * TERN_ERR_ARGUMENT without tensors or where one is not contiguous, TERN_ERR_SHAPE and
 * TERN_ERR_DTYPE where they differ. */

/* x[0] to x[n - 1] become their sum, as the gradients of a model's copies are
 * (torch.cuda.nccl.all_reduce). Where not all are "cuda" devices it is made on x[0]'s, in their
 * order, of what NCCL added before. */
TERN_API tern_status tern_all_reduce_(tern_tensor *const *x, int n);
/* The same for any op: sum, mean, product, least, greatest, bits. 8-bit floats have none, a mean
 * only floating point, bits only integers and bools (TERN_ERR_DTYPE); of bools as tern_dist_op
 * says. The mean is the sum over n. NaN of one is NaN, but for the least and the greatest of
 * NCCL. */
TERN_API tern_status tern_all_reduce_with_(tern_tensor *const *x, int n, tern_dist_op op);
/* All become x[root] (torch.cuda.nccl.broadcast). */
TERN_API tern_status tern_broadcast_(tern_tensor *const *x, int n, int root);
/* Each out[i], of n times as many elements, becomes all x, one after the other
 * (torch.cuda.nccl.all_gather). */
TERN_API tern_status tern_all_gather_(tern_tensor *const *out, tern_tensor *const *x, int n);
/* Each out[i] becomes part i, of n, of the sum of x, which have n times as many elements
 * (torch.cuda.nccl.reduce_scatter). */
TERN_API tern_status tern_reduce_scatter_(tern_tensor *const *out, tern_tensor *const *x, int n);
/* The same for any op, as above. */
TERN_API tern_status tern_reduce_scatter_with_(tern_tensor *const *out, tern_tensor *const *x,
                                               int n, tern_dist_op op);

/* ---- with results of their own, through which gradients go (torch.cuda.comm, torch.nn.parallel)
 * ---- Results belong to the scope; what is on its device already is not copied. */

/* out[j n + i] = x[j], of k, on devices[i], of n (broadcast_coalesced; with k 1 broadcast). The
 * gradients of each x are added up on its device, as by tern_comm_reduce_add. All x are on one
 * device. */
TERN_API tern_status tern_comm_broadcast(tern_tensor *const *x, int k, const char *const *devices,
                                         int n, tern_tensor **out);
/* The sum of n tensors, of one shape and dtype, on a device; NULL: the first one's. */
TERN_API tern_tensor *tern_comm_reduce_add(tern_tensor *const *x, int n, const char *device);
/* out[i] = a part of x along dim on devices[i], one behind the other. sizes: of each, their sum
 * being x's, 0 for none, whose result is NULL; NULL: as torch.chunk, equal ones, the last smaller
 * or none. TERN_ERR_SHAPE where they don't add up. */
TERN_API tern_status tern_comm_scatter(tern_tensor *x, const char *const *devices, int n,
                                       const int64_t *sizes, int dim, tern_tensor **out);
/* The tensors one behind the other along dim, on a device (NULL: the first one's); those without
 * dims as a vector. */
TERN_API tern_tensor *tern_comm_gather(tern_tensor *const *x, int n, int dim, const char *device);

TERN_END_DECLS
#endif
