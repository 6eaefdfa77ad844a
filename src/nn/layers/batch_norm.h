/* batch_norm.h -- internals of batch norms: finding them in a module, recomputing their running
 * statistics, and replacing their forward function. */
#ifndef TERN_NN_BATCH_NORM_H
#define TERN_NN_BATCH_NORM_H
#include <tern/nn.h>

/* Returns whether m is a batch norm with running statistics. */
bool tern_batch_norm_tracks(tern_module *m);
/* If `on` is true, the running statistics of m become the mean over all batches since they were
 * reset. If not, they follow the options of m again. */
void tern_batch_norm_average(tern_module *m, bool on);

/* Returns x normalized in training, when other processes have further parts of the batch, and
 * updates the running statistics. */
typedef tern_tensor *(*tern_batch_norm_over)(void *others, tern_tensor *x, tern_tensor *mean,
                                             tern_tensor *var, tern_tensor *weight,
                                             tern_tensor *bias, double momentum, double eps);
/* Returns a batch norm for inputs of any number of dims that calls `over` in training. `others`
 * must outlive it. */
tern_module *tern_batch_norm_with(const char *name, int64_t features,
                                  const tern_batch_norm_options *options, tern_batch_norm_over over,
                                  void *others);
/* Returns such a batch norm with the settings and tensors of m, or NULL without an error if m is
 * not a batch norm. */
tern_module *tern_batch_norm_like(const char *name, tern_module *m, tern_batch_norm_over over,
                                  void *others);

#endif
