/* batch_norm.h -- finding the batch norms of a module, and making their running statistics anew. */
#ifndef TERN_NN_BATCH_NORM_H
#define TERN_NN_BATCH_NORM_H
#include <tern/nn.h>

/* Whether m is a batch norm with running statistics. */
bool tern_batch_norm_tracks(tern_module *m);
/* Its running statistics are the mean over all batches since they were reset, or (off) as its
 * options say again. */
void tern_batch_norm_average(tern_module *m, bool on);

#endif
