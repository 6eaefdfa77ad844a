/* tensor_parallel.h -- a small language model whose layers ranks share out, beside the whole one. */
#ifndef TESTS_DIST_TENSOR_PARALLEL_H
#define TESTS_DIST_TENSOR_PARALLEL_H
#include "ranks.h"
#include <math.h>

enum { WORDS = 11, WIDTH = 8, HIDDEN = 12, BATCH = 2, LENGTH = 4 };
static int rank, ranks;
static const char *device = "cpu";

static inline double apart(tern_tensor *x, tern_tensor *y)
{
    return tern_numel(x) ? tern_item(tern_max(tern_abs(tern_sub(x, y)))) : 0;
}

static inline tern_tensor *made(tern_shape shape)
{
    return tern_to(tern_randn(shape, TERN_F32, "cpu"), device);
}

/* This rank's part of dim, as tern_chunk cuts. */
static inline tern_tensor *part_of(tern_tensor *x, int dim, tern_dist_group *group)
{
    const int64_t n = tern_dist_get_world_size(group), size = tern_size(x, dim);
    const int64_t each = (size + n - 1) / n, at = each * tern_dist_get_rank(group);
    const int64_t first = at < size ? at : size;
    return tern_narrow(x, dim, first, size - first < each ? size - first : each);
}

/* ---- a language model -------------------------------------------------------------------------------- */

/* words -> table -> [norm, up, tanh, down] -> norm -> classes, which the table gives too where it is tied. */
static inline tern_module *net(bool tied)
{
    const tern_linear_options o = {.device = device}, no_bias = {.no_bias = true, .device = device};
    const tern_embedding_options e = {.padding_idx = TERN_SOME(1), .device = device};
    const tern_layer_norm_options n = {.device = device};
    tern_manual_seed(tied ? 3 : 4);
    tern_module *m = tern_nn_sequential(
        tern_nn_embedding(WORDS, WIDTH, &e),
        tern_nn_sequential(tern_nn_layer_norm(TERN_SHAPE(WIDTH), &n),
                           tern_nn_linear(WIDTH, HIDDEN, &o), tern_nn_tanh(),
                           tern_nn_linear(HIDDEN, WIDTH, &o)),
        tern_nn_layer_norm(TERN_SHAPE(WIDTH), &n), tern_nn_linear(WIDTH, WORDS, &no_bias));
    if (tied)
        tern_nn_set_parameter(m, "3.weight", tern_nn_parameter(m, "0.weight"));
    return m;
}

/* The sequence is whole, or each rank has a part of it where the norms are. */
static inline void share_out(tern_module *m, bool sequence, tern_dist_group *group)
{
    const tern_parallel_layout part = sequence ? TERN_LAYOUT_SEQUENCE : TERN_LAYOUT_DEFAULT;
    const tern_parallel_plan plan[] = {{"0", TERN_PARALLEL_ROWWISE, TERN_LAYOUT_DEFAULT, part},
                                       {"*.1", TERN_PARALLEL_COLWISE, part, TERN_LAYOUT_DEFAULT},
                                       {"*.3", TERN_PARALLEL_ROWWISE, TERN_LAYOUT_DEFAULT, part},
                                       {"3", TERN_PARALLEL_COLWISE, part, TERN_LAYOUT_DEFAULT},
                                       {"1.0", TERN_PARALLEL_SEQUENCE, 0, 0},
                                       {"2", TERN_PARALLEL_SEQUENCE, 0, 0}};
    CHECK(tern_nn_parallelize_module(m, plan, sequence ? 6 : 4,
                                     &(tern_parallel_options){.group = group}) == TERN_OK,
          "shared out");
}

static const struct {
    const char *path;
    int dim; /* that is cut; -1: none is */
} parameters[] = {{"0.weight", 0},   {"1.0.weight", -1}, {"1.0.bias", -1},
                  {"1.1.weight", 0}, {"1.1.bias", 0},    {"1.3.weight", 1},
                  {"1.3.bias", -1},  {"2.weight", -1},   {"3.weight", 0}};

/* rows_of: the group of tern_dist_fully_shard, which has rows of these parts; NULL: they are whole. */
static inline void same_numbers(tern_module *m, tern_module *whole, tern_dist_group *group,
                                tern_dist_group *rows_of, bool gradients, int step)
{
    for (int i = 0; i < 9; i++) {
        tern_tensor *x = tern_nn_parameter(m, parameters[i].path),
                    *y = tern_nn_parameter(whole, parameters[i].path);
        if (gradients) {
            x = tern_grad(x);
            y = tern_grad(y);
        }
        CHECK(x && y, "%s", parameters[i].path);
        if (parameters[i].dim >= 0)
            y = part_of(tern_detach(y), parameters[i].dim, group);
        if (rows_of)
            y = part_of(tern_detach(y), 0, rows_of);
        CHECK(tern_same_shape(x, y), "shape of %s", parameters[i].path);
        CHECK(apart(tern_detach(x), tern_detach(y)) < 2e-5, "%s of %s after step %d: %g",
              gradients ? "gradient" : "value", parameters[i].path, step,
              apart(tern_detach(x), tern_detach(y)));
    }
}

#endif
