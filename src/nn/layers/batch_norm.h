/* batch_norm.h -- finding the batch norms of a module, and making their running statistics anew. */
#ifndef TERN_NN_BATCH_NORM_H
#define TERN_NN_BATCH_NORM_H
#include <tern/nn.h>

/* Whether m is a batch norm with running statistics. */
bool tern_batch_norm_tracks(tern_module *m);
/* Its running statistics are the mean over all batches since they were reset, or (off) as its
 * options say again. */
void tern_batch_norm_average(tern_module *m, bool on);

/* y of a batch in training of which others have parts, and its running statistics. */
typedef tern_tensor *(*tern_batch_norm_over)(void *others, tern_tensor *x, tern_tensor *mean,
                                             tern_tensor *var, tern_tensor *weight,
                                             tern_tensor *bias, double momentum, double eps);
/* A batch norm that computes so, of any number of dims; others must outlive it. */
tern_module *tern_batch_norm_with(const char *name, int64_t features,
                                  const tern_batch_norm_options *options, tern_batch_norm_over over,
                                  void *others);
/* The same with the settings and tensors of m; NULL, and no error, where m is no batch norm. */
tern_module *tern_batch_norm_like(const char *name, tern_module *m, tern_batch_norm_over over,
                                  void *others);

#endif
