/* row_partition.h -- how rows are shared out over devices. */
#ifndef TERN_DIST_ROW_PARTITION_H
#define TERN_DIST_ROW_PARTITION_H
#include <stdint.h>

/* rows[i], of n, as torch.chunk: ceil(total / n) as long as there are some. */
void tern_row_partition_equal(int64_t total, int n, int64_t *rows);
/* As weights are to each other, rounded by largest remainders; where there are enough rows, each
 * that has a weight gets one. */
void tern_row_partition_weighted(int64_t total, const double *weights, int n, int64_t *rows);
/* Weights, whose sum is 1, nearer to those with which all take as long, from what each took for its
 * rows (0 seconds: not known, its weight is taken to be right) at looks 1 to 5 half of the way,
 * then a tenth. */
void tern_row_partition_balance(double *weights, const int64_t *rows, const double *seconds, int n,
                                int64_t look);

#endif
