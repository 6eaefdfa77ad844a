/* row_partition.h -- the number of rows of a batch for each device. */
#ifndef TERN_DIST_ROW_PARTITION_H
#define TERN_DIST_ROW_PARTITION_H
#include <stdint.h>

/* Sets rows[i], i < n, as torch.chunk does: ceil(total / n) each while rows remain. */
void tern_row_partition_equal(int64_t total, int n, int64_t *rows);
/* Sets rows[i], i < n, in proportion to weights, rounded by largest remainders. If there are enough
 * rows, each device with a weight gets at least one. */
void tern_row_partition_weighted(int64_t total, const double *weights, int n, int64_t *rows);
/* Moves the weights, whose sum is 1, towards those with which all devices take equally long: half
 * of the way in looks 1 to 5, then a tenth. seconds[i] is the time of device i for its rows, or 0
 * if unknown, which leaves its weight unchanged. */
void tern_row_partition_balance(double *weights, const int64_t *rows, const double *seconds, int n,
                                int64_t look);

#endif
