/* gemm.h -- what both sides of the comparison of matrix products share: shapes, numbers, answers.
 *
 * A request on stdin: "M N K TA TB SECONDS"; the answer: GFLOP/s, the sum of the result and the sum
 * of its absolute values. */
#ifndef BENCH_GEMM_H
#define BENCH_GEMM_H
#include "clock.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { PIPELINED = 8 };

typedef struct gemm_shape {
    int m, n, k, ta, tb;
} gemm_shape;

/* The same numbers in [-1, 1) on both sides. */
static inline float *gemm_numbers(int64_t n, uint32_t seed)
{
    float *x = malloc((size_t)n * sizeof *x + 1);
    for (int64_t i = 0; x && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-23f - 1;
    }
    return x;
}

static inline void gemm_answer(const gemm_shape *s, double seconds, const float *c)
{
    double sum = 0, size = 0;
    for (int64_t i = 0; i < (int64_t)s->m * s->n; i++) {
        sum += c[i];
        size += fabs(c[i]);
    }
    printf("%.4g %.9g %.9g\n", 2e-9 * s->m * s->n * s->k / seconds, sum, size);
    fflush(stdout);
}

static inline int gemm_request(gemm_shape *s, double *seconds)
{
    return scanf("%d %d %d %d %d %lf", &s->m, &s->n, &s->k, &s->ta, &s->tb, seconds) == 6;
}
#endif
