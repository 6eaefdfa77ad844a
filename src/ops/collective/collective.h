/* collective.h -- copies, broadcasts and sums of tensors on several devices of one process. None of
 * them is recorded in the graph. */
#ifndef TERN_OPS_COLLECTIVE_COLLECTIVE_H
#define TERN_OPS_COLLECTIVE_COLLECTIVE_H
#include "tensor/op.h"
#include <tern/dist.h>

/* Sets out[i] to x[i] on device to[i], dense, or to x[i] itself if that is so already. Devices are
 * read in parallel, through pinned memory where they cannot copy to each other; the function does
 * not wait for the writes. */
tern_status tern_move_each(tern_tensor *const *x, tern_place *const *to, int n, tern_tensor **out);
/* Copies each of the k tensors x[j] to each of the n devices to[i]: into out[j n + i] if that is a
 * dense tensor on the device, else sets out[j n + i] to a new tensor, or to x[j] if that is on the
 * device. Devices of one vendor receive it through the vendor's library. */
tern_status tern_send_all(tern_tensor *const *x, int k, tern_place *const *to, int n,
                          tern_tensor **out);
/* Returns the reduction by op of all x[i], of one shape and dtype, on device `to`, in list order,
 * except that the vendor's library reduces the tensors on devices of one vendor. Half precision is
 * accumulated in float32. The result is a new tensor. */
tern_tensor *tern_sum_at(tern_tensor *const *x, int n, tern_dist_op op, tern_place *to);
/* The inputs and the result of one of k reductions, of at most `most` tensors each, by an op from
 * tern_base_op; all inputs are read before the first is waited for. tern_sum_each replaces x, and
 * sets out to a new tensor, NULL if n is 0. */
typedef struct tern_addends {
    tern_tensor *const *x, *out;
    int n;
} tern_addends;
tern_status tern_sum_each(tern_addends *sums, int k, int most, tern_dist_op op, tern_place *to);
/* Returns TERN_ERR_DTYPE if tensors of dtype cannot be reduced by op. */
tern_status tern_check_sum(const char *function, tern_dtype dtype, tern_dist_op op);
/* Returns op, or for bools the corresponding bitwise op. */
tern_dist_op tern_base_op(tern_dtype dtype, tern_dist_op op);
/* Checks that x is a list of tensors of one shape and dtype, with `dense` that all are dense. */
tern_status tern_check_list(const char *function, tern_tensor *const *x, int n, bool dense);

#endif
