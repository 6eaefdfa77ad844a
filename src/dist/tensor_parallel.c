/* tensor_parallel.c -- linear layers and embeddings that are cut among a group's ranks: the module
 * keeps its name and place, its parameters become this rank's parts, and its forward runs between
 * two communications of activations. */
#include "base/memory.h"
#include "base/lock.h"
#include "base/option.h"
#include "base/text.h"
#include "dist/dist.h"
#include "nn/module.h"
#include "tensor/ranks.h"
#include <math.h>
#include <string.h>
#include <tern/dist/tensor_parallel.h>
#include <tern/ops.h>

/* ---- the ranks with the other parts of a parameter ------------------------------------------- */

static tern_status reduce(tern_ranks *ranks, double *values, int n, bool greatest)
{
    return tern_dist_reduce_scalars(((tern_dist_cut *)(void *)ranks)->group, "numbers of all parts",
                                    values, n, greatest);
}

tern_cut tern_dist_read_cut(const tern_dist_cut *p, tern_shape *whole)
{
    whole->dims[p->dim] = p->size;
    return (tern_cut){.dim = p->dim,
                      .part = tern_dist_get_rank(p->group),
                      .parts = tern_dist_get_world_size(p->group),
                      .group = p->group};
}

static int cuts(const tern_ranks *ranks, const tern_tensor *x, tern_cut cut[TERN_MOST_CUTS],
                tern_shape *whole)
{
    *whole = tern_shape_of(x);
    cut[0] = tern_dist_read_cut((const tern_dist_cut *)(const void *)ranks, whole);
    return 1;
}

static tern_dist_cut *parts_of(tern_dist_group *group, int dim, int64_t size)
{
    static tern_mutex lock = TERN_MUTEX_INIT;
    static tern_dist_cut *all;
    tern_mutex_lock(&lock);
    tern_dist_cut *p = all;
    while (p && (p->group != group || p->dim != dim || p->size != size))
        p = p->next;
    if (!p && (p = tern_alloc(sizeof *p))) {
        *p = (tern_dist_cut){.of = {.ranks = {.reduce = reduce,
                                              .sums = &p->of.ranks,
                                              .all = true,
                                              .cuts = cuts,
                                              .check_consistency = tern_dist_check_consistency,
                                              .first = tern_dist_first},
                                    .n = 1},
                             .group = group,
                             .dim = dim,
                             .size = size,
                             .next = all};
        for (const tern_dist_cut *q = all; q; q = q->next)
            if (q->group == group)
                p->of.ranks.sums = q->of.ranks.sums;
        all = p;
    }
    if (p)
        p->of.ranks.rank = tern_dist_get_rank(NULL);
    tern_mutex_unlock(&lock);
    return p;
}

const tern_dist_cut *tern_dist_cut_of(const tern_ranks *ranks)
{
    return ranks && ranks->reduce == reduce ? (const tern_dist_cut *)(const void *)ranks : NULL;
}

static bool is_in(const tern_dist_group *group, int rank)
{
    for (int i = 0; group && i < group->size; i++)
        if (group->members[i] == rank)
            return true;
    return !group;
}

tern_status tern_dist_check_cut(const char *function, const char *path, const tern_tensor *x,
                                const tern_dist_group *group)
{
    const tern_dist_cut *cut = tern_dist_cut_of(tern_ranks_of(x));
    const int self = tern_dist_get_rank(NULL), ranks = tern_dist_get_world_size(NULL);
    for (int r = 0; cut && r < ranks; r++)
        if (r != self && is_in(group, r) && is_in(cut->group, r))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: rank %d is in the group and has another part of '%s': give the "
                             "group of those with the same parts (tern_dist_init_device_mesh)",
                             function, r, path);
    return TERN_OK;
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* Returns how many of `size` elements this rank has, and sets *first to their first. */
static int64_t part_of(int64_t size, tern_dist_group *group, int64_t *first)
{
    return tern_rows_of_rank(size, tern_dist_get_rank(group), tern_dist_get_world_size(group),
                             first);
}

static bool is_cut_so(const tern_tensor *x, const tern_dist_group *group, int dim)
{
    const tern_dist_cut *p = tern_dist_cut_of(tern_ranks_of(x));
    return p && p->group == group && p->dim == dim;
}

/* Replaces the parameter's data by this rank's part of the first rank's data. Does nothing if the
 * parameter has been cut already because another module shares it. With dim -1 the whole data are
 * broadcast. */
static tern_status cut(tern_module *m, const char *name, int dim, tern_dist_group *group)
{
    const uint64_t failures = tern_failures();
    const tern_dist_options o = {.group = group, .label = "tensor parallel"};
    tern_tensor *x = tern_nn_parameter(m, name);
    tern_status status = TERN_OK;
    if (!x || is_cut_so(x, group, dim))
        return TERN_OK;
    if (tern_ranks_of(x))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_parallelize_module: '%s' of %s is cut already, in another way",
                         name, m->name);
    tern_dist_cut *p = dim < 0 ? NULL : parts_of(group, dim, tern_size(x, dim));
    if (dim >= 0 && !p)
        return TERN_ERR_MEMORY;
    TERN_SCOPE {
        TERN_NO_GRAD {
            int64_t first;
            const int64_t n = dim < 0 ? 0 : part_of(tern_size(x, dim), group, &first);
            tern_tensor *whole = tern_clone(tern_detach(x));
            if (whole)
                status = tern_dist_broadcast(whole, group ? group->members[0] : 0, &o);
            tern_tensor *own = dim < 0 ? whole : tern_clone(tern_narrow(whole, dim, first, n));
            if (status == TERN_OK && own)
                tern_set_data_(x, own);
            if (status == TERN_OK)
                status = tern_failed_since(failures);
        }
    }
    return status == TERN_OK && p ? tern_set_ranks(x, &p->of.ranks) : status;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* The module's data. */
typedef struct layer {
    tern_parallel_style style;
    bool looks_up; /* the module is an Embedding */
    tern_parallel_options o;
    int64_t first, rows; /* this rank's rows of an embedding's table */
    int64_t padding;     /* index among these of the row without gradient, or -1 if it is not
                            here */
} layer;

static int sequence_of(const layer *l)
{
    return (int)l->o.sequence_dim.value;
}

static tern_tensor *enter(const layer *l, tern_tensor *x)
{
    const bool gathers = l->o.input == TERN_LAYOUT_SEQUENCE;
    if (l->looks_up)
        return gathers ? tern_dist_gather_from_group(x, sequence_of(l), l->o.group) : x;
    if (gathers)
        return tern_dist_all_gather_to_group(x, sequence_of(l), l->o.group);
    if (l->style == TERN_PARALLEL_COLWISE)
        return tern_dist_copy_to_group(x, l->o.group);
    return l->o.input == TERN_LAYOUT_REPLICATE ? tern_dist_scatter_to_group(x, -1, l->o.group) : x;
}

static tern_tensor *leave(const layer *l, tern_tensor *y)
{
    if (l->style == TERN_PARALLEL_COLWISE)
        return l->o.output == TERN_LAYOUT_REPLICATE ? tern_dist_gather_from_group(y, -1, l->o.group)
                                                    : y;
    if (l->o.output == TERN_LAYOUT_SEQUENCE)
        return tern_dist_reduce_scatter_from_group(y, sequence_of(l), l->o.group);
    return tern_dist_reduce_from_group(y, l->o.group);
}

/* Returns rows of this rank's part of the table, and zeros for words of other ranks' rows. */
static tern_tensor *look_up(const layer *l, tern_tensor *weight, tern_tensor *words)
{
    const tern_embedding_function_options o = {
        .padding_idx = {.value = l->padding, .set = l->padding >= 0}};
    if (l->style == TERN_PARALLEL_COLWISE)
        return tern_embedding(words, weight, &o);
    tern_shape shape = tern_shape_of(words);
    if (l->rows == 0) { /* the sum of no rows lets all ranks take part in the backward pass */
        shape.dims[shape.ndim++] = tern_size(weight, 1);
        return tern_expand(tern_sum_dim(weight, TERN_SHAPE(0), false), shape);
    }
    tern_tensor *at = tern_sub_scalar(words, tern_scalar_int(l->first));
    tern_tensor *here = tern_logical_and(tern_ge_scalar(at, tern_scalar_int(0)),
                                         tern_lt_scalar(at, tern_scalar_int(l->rows)));
    tern_tensor *rows = tern_embedding(tern_mul(at, here), weight, &o);
    return tern_mul(rows, tern_to_dtype(tern_unsqueeze(here, -1), tern_dtype_of(weight)));
}

/* A bias that is added after a sum is whole on each rank. With a sequence layout its gradient is
 * that of this rank's part of the sequence, so copy_to_group sums it in the backward pass. */
static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    const layer *l = tern_nn_data(self);
    tern_tensor *weight = tern_nn_parameter(self, "weight");
    x = enter(l, x);
    if (l->looks_up)
        return leave(l, look_up(l, weight, x));
    tern_tensor *bias = tern_nn_parameter(self, "bias");
    if (l->style == TERN_PARALLEL_COLWISE || !bias)
        return leave(l, tern_linear(x, weight, bias));
    if (l->o.output == TERN_LAYOUT_SEQUENCE)
        bias = tern_dist_copy_to_group(bias, l->o.group);
    return tern_add(leave(l, tern_linear(x, weight, NULL)), bias);
}

/* ---- conversion of modules ------------------------------------------------------------------- */

static const char *const functions[] = {[TERN_PARALLEL_COLWISE] = "tern_nn_colwise_parallel",
                                        [TERN_PARALLEL_ROWWISE] = "tern_nn_rowwise_parallel",
                                        [TERN_PARALLEL_SEQUENCE] = "tern_nn_sequence_parallel"};

static tern_status check(const tern_module *m, const layer *l)
{
    const char *function = functions[l->style];
    const tern_parallel_layout in = l->o.input, out = l->o.output;
    const bool colwise = l->style == TERN_PARALLEL_COLWISE;
    if (!l->looks_up && strcmp(m->name, "Linear") != 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expected a Linear or an Embedding, but got %s",
                         function, m->name);
    if (tern_dist_get_rank(l->o.group) < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: this process is not in the group", function);
    TERN_TRY(
        tern_check_enum(function, "input", (int)in, TERN_LAYOUT_SEQUENCE, "tern_parallel_layout"));
    TERN_TRY(tern_check_enum(function, "output", (int)out, TERN_LAYOUT_SEQUENCE,
                             "tern_parallel_layout"));
    const bool shard_in = in == TERN_LAYOUT_SHARD, sequence_in = in == TERN_LAYOUT_SEQUENCE;
    if ((shard_in && (colwise || l->looks_up)) || (sequence_in && !colwise && !l->looks_up) ||
        (colwise ? out == TERN_LAYOUT_SEQUENCE : out == TERN_LAYOUT_SHARD))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: a %s has no layouts %d, %d", function, m->name,
                         (int)in, (int)out);
    return TERN_OK;
}

/* Reads the Embedding's options: padding_idx becomes a row of this rank's part. */
static tern_status read_table(tern_module *m, layer *l)
{
    const tern_embedding_function_options *o = tern_nn_data(m);
    tern_tensor *weight = tern_nn_parameter(m, "weight");
    if (o->scale_grad_by_freq || !isnan(o->max_norm))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: max_norm and scale_grad_by_freq look at all words",
                         functions[l->style]);
    if (l->style == TERN_PARALLEL_ROWWISE && is_cut_so(weight, l->o.group, 0))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: the table is cut already: put its row before that of the module that "
                         "shares it",
                         functions[l->style]);
    l->rows = tern_size(weight, 0);
    if (l->style == TERN_PARALLEL_ROWWISE)
        l->rows = part_of(tern_size(weight, 0), l->o.group, &l->first);
    l->padding = o->padding_idx.set ? o->padding_idx.value - l->first : -1;
    if (l->padding >= l->rows)
        l->padding = -1;
    return TERN_OK;
}

/* Replaces the module's name, data and forward. */
static tern_status become(tern_module *m, const layer *l)
{
    static const char *const names[][2] = {
        [TERN_PARALLEL_COLWISE] = {"ColwiseParallelLinear", "ColwiseParallelEmbedding"},
        [TERN_PARALLEL_ROWWISE] = {"RowwiseParallelLinear", "RowwiseParallelEmbedding"}};
    layer *own = tern_alloc(sizeof *own);
    char *name = tern_copy_text(names[l->style][l->looks_up]);
    if (!own || !name) {
        tern_free(own);
        tern_free(name);
        return TERN_ERR_MEMORY;
    }
    *own = *l;
    if (m->free_data)
        m->free_data(m->data);
    tern_free(m->name);
    m->name = name;
    m->data = own;
    m->data_bytes = sizeof *own;
    m->forward = forward;
    tern_nn_on_free(m, tern_free);
    const tern_shape shape = tern_shape_of(tern_nn_parameter(m, "weight"));
    return tern_nn_set_extra(m, "%lld, %lld here, rank %d of %d", (long long)shape.dims[0],
                             (long long)shape.dims[1], tern_dist_get_rank(l->o.group),
                             tern_dist_get_world_size(l->o.group));
}

static tern_module *share_out(tern_module *m, tern_parallel_style style,
                              const tern_parallel_options *options)
{
    layer l = {.style = style, .o = tern_read_parallel(options), .padding = -1};
    TERN_MODULE_GIVEN(m, functions[style]);
    if (!m)
        return tern_fail_argument_null(functions[style], "m"), NULL;
    l.looks_up = strcmp(m->name, "Embedding") == 0;
    if (check(m, &l) != TERN_OK || (l.looks_up && read_table(m, &l) != TERN_OK))
        return NULL;
    /* dim 0 of a weight is the outputs of a Linear, but the inputs (words) of an Embedding */
    const bool colwise = style == TERN_PARALLEL_COLWISE;
    if (cut(m, "weight", colwise == l.looks_up, l.o.group) != TERN_OK ||
        (!l.looks_up && cut(m, "bias", colwise ? 0 : -1, l.o.group) != TERN_OK) ||
        become(m, &l) != TERN_OK)
        return NULL;
    return m;
}

tern_module *tern_nn_colwise_parallel(tern_module *m, const tern_parallel_options *options)
{
    return share_out(m, TERN_PARALLEL_COLWISE, options);
}

tern_module *tern_nn_rowwise_parallel(tern_module *m, const tern_parallel_options *options)
{
    return share_out(m, TERN_PARALLEL_ROWWISE, options);
}

/* ---- sequence parallel ----------------------------------------------------------------------- */

static tern_tensor *sum_gradient(tern_tensor *grad, void *group)
{
    const tern_dist_options o = {.group = group, .label = "gradients of a sequence's parts"};
    tern_tensor *sum = NULL;
    TERN_NO_GRAD
        sum = tern_clone(grad);
    return sum && tern_dist_all_reduce(sum, &o) == TERN_OK ? sum : NULL;
}

static tern_status add_up(const char *path, tern_tensor *x, void *group)
{
    (void)path;
    return tern_register_hook(x, sum_gradient, group) > 0 ? TERN_OK : TERN_ERR_STATE;
}

static tern_status make_alike(const char *path, tern_tensor *x, void *group)
{
    const tern_dist_options o = {.group = group, .label = "tensor parallel"};
    (void)path;
    return tern_dist_broadcast(x, o.group ? o.group->members[0] : 0, &o);
}

tern_module *tern_nn_sequence_parallel(tern_module *m, const tern_parallel_options *options)
{
    const tern_parallel_options o = tern_read_parallel(options);
    TERN_MODULE_GIVEN(m, functions[TERN_PARALLEL_SEQUENCE]);
    if (!m)
        return tern_fail_argument_null(functions[TERN_PARALLEL_SEQUENCE], "m"), NULL;
    if (tern_nn_each_parameter(m, make_alike, o.group) != TERN_OK ||
        (tern_dist_get_world_size(o.group) > 1 &&
         tern_nn_each_parameter(m, add_up, o.group) != TERN_OK))
        return NULL;
    return m;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Returns whether each name of the path equals that of the pattern, in which * equals any name. */
static bool fits(const char *pattern, const char *path)
{
    for (;;) {
        const size_t a = strcspn(pattern, "."), b = strcspn(path, ".");
        if (!(a == 1 && *pattern == '*') && (a != b || strncmp(pattern, path, a) != 0))
            return false;
        if (!pattern[a] || !path[b])
            return pattern[a] == path[b];
        pattern += a + 1;
        path += b + 1;
    }
}

typedef struct planned {
    const tern_parallel_plan *row;
    tern_parallel_options o;
    int found;
} planned;

static tern_status visit(const char *path, tern_module *m, void *user)
{
    static tern_module *(*const styles[])(tern_module * m, const tern_parallel_options *o) = {
        tern_nn_colwise_parallel, tern_nn_rowwise_parallel, tern_nn_sequence_parallel};
    planned *p = user;
    const uint64_t failures = tern_failures();
    if (!fits(p->row->path, path))
        return TERN_OK;
    p->found++;
    return styles[p->row->style](m, &p->o) ? TERN_OK : tern_failed_since(failures);
}

tern_status tern_nn_parallelize_module(tern_module *m, const tern_parallel_plan *plan, int n,
                                       const tern_parallel_options *options)
{
    static const char function[] = "tern_nn_parallelize_module";
    planned p = {.o = tern_read_parallel(options)};
    TERN_MODULE_GIVEN(m, function);
    if (!m || (!plan && n))
        return tern_fail_argument_null(function, m ? "plan" : "m");
    for (int i = 0; i < n; i++) {
        p.row = &plan[i];
        p.found = 0;
        p.o.input = plan[i].input;
        p.o.output = plan[i].output;
        TERN_TRY(tern_check_enum(function, "style", (int)plan[i].style, TERN_PARALLEL_SEQUENCE,
                                 "tern_parallel_style"));
        if (!plan[i].path)
            return tern_fail_argument_null(function, "a path");
        TERN_TRY(tern_nn_each_module(m, visit, &p));
        if (!p.found)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: no module is at '%s'", function, plan[i].path);
    }
    return TERN_OK;
}
