/* row_partition.c -- the number of rows of a batch for each device: equal, by weights, by measured
 * speed. */
#include "dist/row_partition.h"
#include <math.h>

void tern_row_partition_equal(int64_t total, int n, int64_t *rows)
{
    const int64_t each = (total + n - 1) / n;
    for (int i = 0; i < n; i++) {
        rows[i] = total < each ? total : each;
        total -= rows[i];
    }
}

/* Gives each device with a weight at least one row, taken from the device with most rows. */
static void at_least_one(int64_t total, const double *weights, int n, int64_t *rows)
{
    int wanted = 0;
    for (int i = 0; i < n; i++)
        wanted += weights[i] > 0;
    for (int i = 0; i < n && wanted <= total; i++) {
        int most = 0;
        if (rows[i] > 0 || weights[i] <= 0)
            continue;
        for (int k = 1; k < n; k++)
            if (rows[k] > rows[most])
                most = k;
        rows[most]--;
        rows[i]++;
    }
}

void tern_row_partition_weighted(int64_t total, const double *weights, int n, int64_t *rows)
{
    double sum = 0;
    int64_t left = total;
    for (int i = 0; i < n; i++)
        sum += weights[i];
    for (int i = 0; i < n; i++) {
        rows[i] = (int64_t)floor((double)total * (weights[i] / sum));
        left -= rows[i];
    }
    /* The remaining rows go to the devices whose counts are furthest below their shares, at most
     * one row each. */
    for (; left > 0; left--) {
        int next = -1;
        double most = 0;
        for (int i = 0; i < n; i++) {
            double below = (double)total * (weights[i] / sum) - (double)rows[i];
            if (weights[i] > 0 && (next < 0 || below > most)) {
                next = i;
                most = below;
            }
        }
        rows[next]++;
    }
    at_least_one(total, weights, n, rows);
}

/* Weights stay if the time is within 3 % of the best: other counts are other shapes, for which
 * devices may compile or tune again. */
void tern_row_partition_balance(double *weights, const int64_t *rows, const double *seconds, int n,
                                int64_t look)
{
    const double way = look <= 5 ? 0.5 : 0.1;
    double speed[n], sum = 0, known = 0, total = 0, longest = 0;
    for (int i = 0; i < n; i++) {
        speed[i] = rows[i] > 0 && seconds[i] > 0 ? (double)rows[i] / seconds[i] : 0;
        sum += speed[i];
        if (speed[i] <= 0)
            continue;
        known += weights[i];
        total += (double)rows[i];
        longest = fmax(longest, seconds[i]);
    }
    if (longest * sum <= 1.03 * total)
        return;
    for (int i = 0; i < n; i++)
        if (speed[i] > 0)
            weights[i] += way * (known * speed[i] / sum - weights[i]);
}
