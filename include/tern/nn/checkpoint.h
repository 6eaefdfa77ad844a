/* nn/checkpoint.h -- activation checkpoints for modules: backward computes the forward again, so
 * that its intermediate results are not stored (tern_checkpoint). */
#ifndef TERN_NN_CHECKPOINT_H
#define TERN_NN_CHECKPOINT_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Does what tern_nn_forward does, in a checkpoint. m must still exist in backward. */
TERN_API tern_tensor *tern_checkpoint_forward(tern_module *m, tern_tensor *x);
/* Does what tern_nn_call does, in a checkpoint. m must still exist in backward. */
TERN_API tern_status tern_checkpoint_call(tern_module *m, tern_tensor *const *in, int n,
                                          tern_tensor **out, int k);

typedef struct tern_checkpoint_sequential_options {
    bool no_preserve_rng_state;
    uint64_t reserved[4];
} tern_checkpoint_sequential_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_checkpoint_sequential_options tern_checkpoint_sequential_defaults(void);

/* Runs the children of m, a Sequential, in `segments` segments of equal size, each of which is a
 * checkpoint except for the last: only the tensors between segments are stored
 * (torch.utils.checkpoint.checkpoint_sequential). Errors: TERN_ERR_ARGUMENT unless segments is in 1
 * .. the number of children. */
TERN_API tern_tensor *tern_checkpoint_sequential(tern_module *m, int segments, tern_tensor *x,
                                                 const tern_checkpoint_sequential_options *options);

TERN_END_DECLS
#endif
