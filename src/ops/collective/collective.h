/* collective.h -- tensors of several devices of one process: moved, sent to all, added up. No part
 * of the graph. */
#ifndef TERN_OPS_COLLECTIVE_COLLECTIVE_H
#define TERN_OPS_COLLECTIVE_COLLECTIVE_H
#include "tensor/op.h"
#include <tern/dist.h>

/* out[i] = x[i] on to[i], dense, x[i] itself where it is that. Devices are read side by side, by
 * way of pinned memory where they can't copy to each other; nobody waits for what is written. */
tern_status tern_move_each(tern_tensor *const *x, tern_place *const *to, int n, tern_tensor **out);
/* Each x[j], of k, on each to[i], of n: into out[j n + i] where that is a dense tensor there, else
 * out[j n + i] becomes a new one, or x[j] where it is there. Devices of one vendor get it through
 * its library. */
tern_status tern_send_all(tern_tensor *const *x, int k, tern_place *const *to, int n,
                          tern_tensor **out);
/* The sum of x[i], or what op is, of one shape and dtype, on to, in their order, with that of
 * devices of one vendor made by its library; halves are combined in float32. A tensor of its
 * own. */
tern_tensor *tern_sum_at(tern_tensor *const *x, int n, tern_dist_op op, tern_place *to);
/* k of them, of at most `most` tensors each, where op is plain; all are read before the first is
 * waited for. x is written, and out: a tensor of its own, NULL of none. */
typedef struct tern_addends {
    tern_tensor *const *x, *out;
    int n;
} tern_addends;
tern_status tern_sum_each(tern_addends *sums, int k, int most, tern_dist_op op, tern_place *to);
/* TERN_ERR_DTYPE where it can't be combined so. */
tern_status tern_check_sum(const char *function, tern_dtype dtype, tern_dist_op op);
/* Of bools one of bits. */
tern_dist_op tern_base_op(tern_dtype dtype, tern_dist_op op);
/* All that a list of tensors must be; dense too where that is asked for. */
tern_status tern_check_list(const char *function, tern_tensor *const *x, int n, bool dense);

#endif
