/* nn/checkpoint.h -- modules that compute again in backward instead of keeping what they computed;
 * see tern_checkpoint. */
#ifndef TERN_NN_CHECKPOINT_H
#define TERN_NN_CHECKPOINT_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* tern_nn_forward and tern_nn_call of m, which must be there in backward, in a checkpoint. */
TERN_API tern_tensor *tern_checkpoint_forward(tern_module *m, tern_tensor *x);
/* tern_nn_call of m in one. */
TERN_API tern_status tern_checkpoint_call(tern_module *m, tern_tensor *const *in, int n,
                                          tern_tensor **out, int k);

typedef struct tern_checkpoint_sequential_options {
    bool no_preserve_rng_state;
    uint64_t reserved[4];
} tern_checkpoint_sequential_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_checkpoint_sequential_options tern_checkpoint_sequential_defaults(void);

/* The children of m (a Sequential) one after the other in equal segments, each but the last a
 * checkpoint: what is kept is what goes from one to the next. Errors: TERN_ERR_ARGUMENT for
 * segments outside of 1 .. the number of children. */
TERN_API tern_tensor *tern_checkpoint_sequential(tern_module *m, int segments, tern_tensor *x,
                                                 const tern_checkpoint_sequential_options *options);

TERN_END_DECLS
#endif
