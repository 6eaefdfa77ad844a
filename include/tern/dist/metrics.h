/* dist/metrics.h -- metrics over the data of all ranks. */
#ifndef TERN_DIST_METRICS_H
#define TERN_DIST_METRICS_H
#include <tern/dist.h>
#include <tern/metrics.h>

TERN_BEGIN_DECLS

/* Returns the metric over the batches of all ranks, the same on each. All ranks call it. The states
 * of this rank do not change, so that updates can continue (torchmetrics does this in every compute
 * of a job). Ranks may have had different numbers of batches, or none. Sums, maxima and minima are
 * reduced; kept predictions are concatenated in the order of the ranks; states without such a rule
 * (running metrics) are those of this rank. In a job of one process it is tern_metric_compute.
 * Errors: those of tern_metric_compute; TERN_ERR_PEER. */
TERN_API tern_tensor *tern_dist_metric_compute(tern_metric *metric,
                                               const tern_dist_options *options);

TERN_END_DECLS
#endif
