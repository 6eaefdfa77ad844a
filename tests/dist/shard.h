/* shard.h -- a small model, sharded over ranks, beside the whole one. */
#ifndef TESTS_DIST_SHARD_H
#define TESTS_DIST_SHARD_H
#include "ranks.h"
#include <math.h>

enum { EACH = 3, WIDTH = 5 };
static int rank, ranks;
static const char *device = "cpu";
typedef tern_fully_shard_options options;

/* Rows of parameters that no number of ranks divides, and fewer than ranks. */
static inline tern_module *net(int seed, tern_dtype dtype)
{
    const tern_linear_options o = {.device = device, .dtype = dtype};
    tern_manual_seed((uint64_t)seed);
    return tern_nn_sequential(
        tern_nn_sequential(tern_nn_linear(WIDTH, 7, &o), tern_nn_tanh()),
        tern_nn_sequential(tern_nn_linear(7, 8, &o), tern_nn_tanh(), tern_nn_linear(8, 6, &o)),
        tern_nn_tanh(), tern_nn_linear(6, 2, &o));
}

/* Blocks, and what they are in. */
static inline void shard(tern_module *m, const options *o)
{
    CHECK(tern_dist_fully_shard(tern_nn_child_at(m, 0), o), "first");
    CHECK(tern_dist_fully_shard(tern_nn_child_at(m, 1), o), "second");
    CHECK(tern_dist_fully_shard(m, o) == m, "all");
}

/* The same on all ranks. */
static inline tern_tensor *numbers(int64_t rows, int64_t columns, tern_dtype dtype)
{
    tern_tensor *x = tern_randn(TERN_SHAPE(rows, columns), TERN_F32, "cpu");
    return tern_to(tern_to_dtype(x, dtype), device);
}

static inline double apart(tern_tensor *x, tern_tensor *y)
{
    if (tern_numel(x) == 0 && tern_numel(y) == 0)
        return 0;
    x = tern_to_dtype(tern_to(tern_detach(x), "cpu"), TERN_F64);
    y = tern_to_dtype(tern_to(tern_detach(y), "cpu"), TERN_F64);
    return tern_item(tern_max(tern_abs(tern_sub(x, y))));
}

/* This rank's rows of a whole tensor. */
static inline tern_tensor *rows_of(tern_tensor *whole)
{
    const int64_t rows = tern_size(whole, 0), each = (rows + ranks - 1) / ranks;
    const int64_t first = each * rank < rows ? each * rank : rows;
    return tern_narrow(tern_detach(whole), 0, first, rows - first < each ? rows - first : each);
}

typedef struct pair {
    tern_module *whole;
    double tolerance;
    const char *what;
    bool gradients;
} pair;

static inline tern_status same(const char *path, tern_tensor *x, void *user)
{
    const pair *p = user;
    tern_tensor *y = tern_nn_parameter(p->whole, path);
    CHECK(y, "%s", path);
    if (p->gradients) {
        tern_tensor *dx = tern_grad(x), *dy = tern_grad(y);
        CHECK(!dx == !dy, "%s: gradient of %s", p->what, path);
        CHECK(!dx || tern_same_shape(dx, x), "%s: shape of the gradient of %s", p->what, path);
        CHECK(!dx || apart(dx, rows_of(dy)) <= p->tolerance, "%s: gradient of %s", p->what, path);
    }
    CHECK(apart(x, rows_of(y)) <= p->tolerance, "%s: %s", p->what, path);
    return TERN_OK;
}

static inline void compare(tern_module *m, tern_module *whole, double tolerance, const char *what,
                           bool gradients)
{
    pair p = {whole, tolerance, what, gradients};
    CHECK(tern_nn_each_parameter(m, same, &p) == TERN_OK, "%s", what);
}

/* Forward and backward of this rank's rows in m, of all in whole. */
static inline void backward(tern_module *m, tern_module *whole, int seed, tern_dtype dtype)
{
    tern_manual_seed((uint64_t)seed);
    tern_tensor *x = numbers(EACH * ranks, WIDTH, dtype), *y = numbers(EACH * ranks, 2, dtype);
    tern_tensor *part = tern_narrow(x, 0, rank * EACH, EACH);
    tern_tensor *target = tern_narrow(y, 0, rank * EACH, EACH);
    tern_tensor *out = tern_nn_forward(m, part);
    CHECK(out, "forward");
    CHECK(tern_backward(tern_mse_loss(tern_to_dtype(out, dtype), target, NULL)) == TERN_OK,
          "backward");
    tern_backward(tern_mse_loss(tern_nn_forward(whole, x), y, NULL));
}

#endif
