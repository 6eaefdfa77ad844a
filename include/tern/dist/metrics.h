/* dist/metrics.h -- metrics of what all ranks have seen. */
#ifndef TERN_DIST_METRICS_H
#define TERN_DIST_METRICS_H
#include <tern/dist.h>
#include <tern/metrics.h>

TERN_BEGIN_DECLS

/* The metric over the batches of all ranks, the same on each, which all of them call; what this
 * rank has gathered stays as it is, so that updates may go on (torchmetrics computes so whenever
 * there is a job). Ranks may have seen different numbers of batches, or none. Sums, maxima and
 * minima are reduced, predictions that are kept are put one behind the other in the order of ranks;
 * states that have no such rule (running metrics) are this rank's own. In a job of one process
 * tern_metric_compute. Errors: its own; TERN_ERR_PEER. */
TERN_API tern_tensor *tern_dist_metric_compute(tern_metric *metric,
                                               const tern_dist_options *options);

TERN_END_DECLS
#endif
