/* attention_problem.c -- an attention problem whose numbers are exact in half precision, in any
 * order of summation. A query has the same score for two keys and a far lower one for all others,
 * so its two weights are 1/2, its result is the mean of two values, and gradients are multiples of
 * 1/4. A number in a wrong lane changes the result. */
#include "device/attention_matrix.h"
#include "device/place.h"
#include "types_host.h"
#include "shapes.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, HALF = ROWS / 2, WIDEST = TERN_ATTENTION_MATRIX_WIDEST, FLOATS = 2 * ROWS };
/* The matrices, one after the other in memory, behind deltas and sums. */
enum { Q, K, V, OUT, DOUT, DQ, DK, DV, MATRICES };

uint16_t tern_half_of_quarters(int n, tern_dtype dtype)
{
    const int digits = dtype == TERN_F16 ? 10 : 7, bias = dtype == TERN_F16 ? 15 : 127;
    int size = abs(n), exponent = 0;
    if (!size)
        return 0;
    while (size >> (exponent + 1))
        exponent++;
    int bits = (size << digits >> exponent) & ((1 << digits) - 1);
    return (uint16_t)((n < 0) << 15 | (exponent - 2 + bias) << digits | bits);
}

typedef struct problem {
    tern_dtype dtype;
    int width;
    float sums[FLOATS];                    /* deltas, then sums */
    int quarters[MATRICES][ROWS * WIDEST]; /* the exact matrices, in units of 1/4 */
    uint16_t memory[MATRICES * ROWS * WIDEST];
} problem;

/* pair_of writes the two keys of query i; place_of returns the column of a key that is not 0. If
 * the width is 32, two keys share a column. */
static void pair_of(const problem *p, int i, int pair[2])
{
    pair[0] = (5 * i + 3) % HALF;
    pair[1] = HALF + (p->width > HALF ? (7 * pair[0] + 1) % HALF : pair[0]);
}
static int place_of(const problem *p, int key)
{
    int columns = p->width / HALF;
    return key % HALF * columns + key / HALF % columns;
}
/* Returns a pseudo-random number: -1, 0 or 1. */
static int number(int i, int k, uint32_t seed)
{
    uint32_t h = ((uint32_t)i * 64u + (uint32_t)k + seed) * 2654435761u;
    return (int)((h >> 20) % 3) - 1;
}

/* Computes the result and the gradients of query i, whose two weights are 1/2: dp - delta is half
 * the difference of the two dp. */
static void solve(problem *p, int i)
{
    const int w = p->width;
    int pair[2], dp[2] = {0, 0};
    pair_of(p, i, pair);
    for (int c = 0; c < w; c++) {
        const int dout = p->quarters[DOUT][i * w + c] / 4;
        for (int k = 0; k < 2; k++) {
            const int v = p->quarters[V][pair[k] * w + c] / 4;
            p->quarters[OUT][i * w + c] += 2 * v;
            p->quarters[DV][pair[k] * w + c] += 2 * dout;
            dp[k] += dout * v;
        }
    }
    for (int k = 0; k < 2; k++) {
        const int ds = dp[k] - dp[1 - k]; /* in quarters; the scale is 2, elements of keys are 8 */
        for (int c = 0; c < w; c++) {
            p->quarters[DQ][i * w + c] += 2 * ds * (p->quarters[K][pair[k] * w + c] / 4);
            p->quarters[DK][pair[k] * w + c] += 2 * ds * (p->quarters[Q][i * w + c] / 4);
        }
    }
}

static void make(problem *p, bool gradient)
{
    const int w = p->width;
    for (int i = 0; i < ROWS; i++) {
        int pair[2];
        pair_of(p, i, pair);
        for (int c = 0; c < w; c++) {
            p->quarters[V][i * w + c] = 4 * number(i, c, 1);
            p->quarters[DOUT][i * w + c] = 4 * number(i, c, 9973);
        }
        p->quarters[K][i * w + place_of(p, i)] = 4 * 8;
        for (int k = 0; k < 2; k++)
            p->quarters[Q][i * w + place_of(p, pair[k])] = 4 * 8;
    }
    for (int i = 0; i < ROWS; i++) {
        solve(p, i);
        p->sums[ROWS + i] = 128 + 0.69314718f; /* 2 q k and the log of two weights */
    }
    for (int m = 0; m < MATRICES; m++)
        for (int e = 0; e < ROWS * w; e++)
            p->memory[m * ROWS * w + e] = (m == OUT && !gradient) || m > DOUT
                                              ? 0xffff
                                              : tern_half_of_quarters(p->quarters[m][e], p->dtype);
}

static bool is_right(const problem *p, int from, int to)
{
    for (int m = from; m <= to; m++)
        for (int e = 0; e < ROWS * p->width; e++) {
            uint16_t got = p->memory[m * ROWS * p->width + e];
            uint16_t want = tern_half_of_quarters(p->quarters[m][e], p->dtype);
            if (got != want && ((got | want) & 0x7fff)) /* 0 may have either sign */
                return false;
        }
    return true;
}

static tern_status run_in(tern_place *place, problem *p, const tern_buffer *buffer, bool gradient,
                          tern_status (*run)(void *user, const tern_attention *a), void *user)
{
    const tern_backend *b = place->backend;
    const size_t bytes = sizeof *p->memory * MATRICES * ROWS * (size_t)p->width;
    const tern_attention_block block = {.count = {1, 1}, .queries = ROWS, .keys = ROWS};
    tern_attention a = {.dtype = p->dtype, .block = &block, .width = p->width, .scale = 2};
    tern_matrix *all[] = {&a.q, &a.k, &a.v, &a.out, &a.dout, &a.dq, &a.dk, &a.dv};
    for (int m = 0; m < MATRICES; m++)
        *all[m] = (tern_matrix){
            .buffer = buffer, .at = 2 * FLOATS + m * ROWS * p->width, .row = p->width, .col = 1};
    a.value_width = p->width;
    a.kept = 1;
    a.gradient = gradient;
    a.sums = tern_arg_buffer(gradient ? TERN_ROLE_IN : TERN_ROLE_OUT, TERN_F32, buffer, ROWS);
    a.scratch = buffer;
    TERN_TRY(b->write(place, buffer, 0, p->sums, sizeof p->sums));
    TERN_TRY(b->write(place, buffer, sizeof p->sums, p->memory, bytes));
    TERN_TRY(run(user, &a));
    return b->read(place, buffer, sizeof p->sums, p->memory, bytes);
}

tern_status tern_attention_try(tern_place *place, tern_dtype dtype, bool gradient, int width,
                               tern_status (*run)(void *user, const tern_attention *a), void *user,
                               bool *right)
{
    problem *p = tern_alloc(sizeof *p);
    tern_buffer buffer = {.bytes = sizeof p->sums + 2 * MATRICES * ROWS * (size_t)width};
    if (!p)
        return TERN_ERR_MEMORY;
    p->dtype = dtype;
    p->width = width;
    make(p, gradient);
    tern_status status = tern_place_alloc(place, &buffer);
    if (status == TERN_OK) {
        status = run_in(place, p, &buffer, gradient, run, user);
        place->backend->free(place, &buffer);
    }
    *right = status == TERN_OK && is_right(p, gradient ? DQ : OUT, gradient ? DV : OUT);
    tern_free(p);
    return status;
}
