/* adaptive_softmax.c -- a softmax of very many classes (Grave et al. 2017): the frequent ones and a
 * class for each cluster of rarer ones in the head, the clusters behind it with smaller and smaller
 * projections:
 *
 *   log p(class) = log p_head(cluster) + log p_cluster(class)
 *
 * Training computes a cluster only for the samples whose target is in it. */
#include "base/checked.h"
#include "nn/layers/layer.h"
#include <math.h>

static const char *const name = "tern_nn_adaptive_log_softmax_with_loss";

typedef struct adaptive {
    int64_t classes;
    tern_shape ends; /* end of the head's classes and of each cluster's */
} adaptive;

static int clusters_of(const adaptive *a)
{
    return a->ends.ndim - 1;
}

/* Returns x, of shape (N), as (N, 1), for gather. */
static tern_tensor *as_column(tern_tensor *x)
{
    return tern_unsqueeze(x, 1);
}

/* Returns the log probabilities of the frequent classes and of the clusters. */
static tern_tensor *head_of(tern_module *self, tern_tensor *x)
{
    return tern_log_softmax(tern_nn_forward(tern_nn_child_at(self, 0), x), 1);
}

/* Returns the log probabilities of the classes of cluster i, given the cluster. */
static tern_tensor *cluster_of(tern_module *self, int i, tern_tensor *x)
{
    tern_module *tail = tern_nn_child_at(self, 1);
    return tern_log_softmax(tern_nn_forward(tern_nn_child_at(tail, i), x), 1);
}

/* ---- the loss -------------------------------------------------------------------------------- */

static tern_status check_call(tern_tensor *const *in, int n, int k)
{
    if (n != 2 || k < 1 || k > 2)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_nn_call: AdaptiveLogSoftmaxWithLoss takes input and target and gives "
            "one or two tensors, not %d and %d",
            n, k);
    if (!in[0] || !in[1])
        return tern_fail_argument_null(name, in[0] ? "target" : "input");
    int dims = tern_dim(in[1]);
    if (dims > 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: 0D or 1D target tensor expected, multi-target not supported", name);
    if (tern_dim(in[0]) != dims + 1)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: %dD target tensor expects %dD input tensors, but found inputs with %d "
            "dims",
            name, dims, dims + 1, tern_dim(in[0]));
    if (dims == 1 && tern_size(in[0], 0) != tern_size(in[1], 0))
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Input and target should have the same size in the batch dimension.",
                         name);
    return TERN_OK;
}

/* Returns the samples (matrix rows) whose target is in low to high - 1. */
static tern_tensor *rows_between(tern_tensor *target, int64_t low, int64_t high)
{
    tern_tensor *mask = tern_logical_and(tern_ge_scalar(target, tern_scalar_int(low)),
                                         tern_lt_scalar(target, tern_scalar_int(high)));
    tern_tensor *rows = tern_nonzero(mask);
    return rows ? tern_squeeze_dim(rows, 1) : NULL;
}

/* For each sample, the log probability within its cluster, and the class of the head whose log
 * probability is added. `used` is the number of samples processed. */
typedef struct parts {
    tern_tensor *output, *places;
    int64_t used;
} parts;

/* Processes the samples of the head (i = 0) or of cluster i - 1, and copies the results to the rows
 * of these samples. */
static tern_status add_part(tern_module *self, int i, tern_tensor *x, tern_tensor *target, parts *p)
{
    const uint64_t failures = tern_failures();
    const adaptive *a = tern_nn_data(self);
    int64_t low = i ? a->ends.dims[i - 1] : 0;
    tern_tensor *rows = rows_between(target, low, a->ends.dims[i]);
    if (!rows)
        return tern_last_status();
    p->used += tern_numel(rows);
    if (tern_numel(rows) == 0)
        return TERN_OK;
    tern_tensor *targets = tern_index_select(target, 0, rows);
    if (i == 0) {
        p->places = tern_index_copy(p->places, 0, rows, targets);
        return tern_failed_since(failures);
    }
    tern_tensor *probabilities = cluster_of(self, i - 1, tern_index_select(x, 0, rows));
    tern_tensor *here = as_column(tern_sub_scalar(targets, tern_scalar_int(low)));
    tern_tensor *chosen = tern_squeeze_dim(tern_gather(probabilities, 1, here), 1);
    p->places = tern_index_fill(p->places, 0, rows, tern_scalar_int(a->ends.dims[0] + i - 1));
    p->output = tern_index_copy(p->output, 0, rows, chosen);
    return tern_failed_since(failures);
}

/* Sets output = log p(target) for each sample and loss = -mean(output). */
static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const adaptive *a = tern_nn_data(self);
    TERN_TRY(check_call(in, n, k));
    bool batched = tern_dim(in[1]) == 1;
    tern_tensor *x = batched ? in[0] : tern_unsqueeze(in[0], 0);
    tern_tensor *target = tern_to_dtype(batched ? in[1] : tern_unsqueeze(in[1], 0), TERN_I64);
    int64_t rows = target ? tern_size(target, 0) : 0;
    parts p = {tern_new_zeros(x, TERN_SHAPE(rows)), tern_zeros_like(target), 0};
    for (int i = 0; i <= clusters_of(a); i++)
        TERN_TRY(add_part(self, i, x, target, &p));
    if (p.used != rows)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: Target values should be in [0, %lld], but values in range [%lld, "
                         "%lld] were found. ",
                         name, (long long)a->classes - 1,
                         (long long)tern_item_int(tern_min(target)),
                         (long long)tern_item_int(tern_max(target)));
    tern_tensor *output = tern_add(
        p.output, tern_squeeze_dim(tern_gather(head_of(self, x), 1, as_column(p.places)), 1));
    out[k - 1] = tern_mean(tern_neg(output));
    if (k == 2)
        out[0] = batched || !output ? output : tern_squeeze_dim(output, 0);
    return TERN_OK;
}

/* ---- log probabilities of all classes -------------------------------------------------------- */

/* Returns whether m is an adaptive softmax and x a batch for it. Records an error if not. */
static bool check_adaptive(const tern_module *m, const tern_tensor *x, const char *function)
{
    if (!m || !x)
        tern_fail_argument_null(function, m ? "x" : "m");
    else if (!tern_layer_calls(m, call))
        tern_fail(TERN_ERR_ARGUMENT, "%s: %s is no AdaptiveLogSoftmaxWithLoss", function,
                  tern_nn_name(m));
    else if (tern_dim(x) != 2)
        tern_fail(TERN_ERR_SHAPE, "%s: expected 2D input (got %dD input)", function, tern_dim(x));
    else
        return true;
    return false;
}

/* Returns the log probabilities of all classes, (N, n_classes). */
static tern_tensor *log_prob(tern_module *m, tern_tensor *x)
{
    const adaptive *a = tern_nn_data(m);
    int64_t shortlist = a->ends.dims[0];
    tern_tensor *head = head_of(m, x), *all[TERN_MAX_DIMS];
    all[0] = tern_narrow(head, 1, 0, shortlist);
    for (int i = 0; i < clusters_of(a); i++)
        all[1 + i] = tern_add(cluster_of(m, i, x), tern_narrow(head, 1, shortlist + i, 1));
    return tern_cat(all, 1 + clusters_of(a), 1);
}

tern_tensor *tern_nn_adaptive_log_softmax_log_prob(tern_module *m, tern_tensor *x)
{
    return check_adaptive(m, x, "tern_nn_adaptive_log_softmax_log_prob") ? log_prob(m, x) : NULL;
}

tern_tensor *tern_nn_adaptive_log_softmax_predict(tern_module *m, tern_tensor *x)
{
    if (!check_adaptive(m, x, "tern_nn_adaptive_log_softmax_predict"))
        return NULL;
    return tern_argmax_dim(log_prob(m, x), 1, false);
}

/* ---- constructor ----------------------------------------------------------------------------- */

static tern_status check(int64_t classes, const tern_shape *cutoffs)
{
    int64_t last = 0;
    bool fits = cutoffs->ndim > 0 && cutoffs->ndim < TERN_MAX_DIMS;
    for (int i = 0; fits && i < cutoffs->ndim; i++) {
        fits = cutoffs->dims[i] > last && cutoffs->dims[i] < classes;
        last = cutoffs->dims[i];
    }
    return fits ? TERN_OK
                : tern_fail(TERN_ERR_ARGUMENT,
                            "%s: cutoffs should be a sequence of unique, positive integers sorted "
                            "in an increasing order, where each value is between 1 and n_classes-1",
                            name);
}

static tern_module *linear(int64_t in, int64_t out, bool bias,
                           const tern_adaptive_log_softmax_with_loss_options *o)
{
    return tern_nn_linear(
        in, out, &(tern_linear_options){.no_bias = !bias, .dtype = o->dtype, .device = o->device});
}

/* Adds a linear head and, for cluster i, two linear layers with in_features / div_value^(i + 1)
 * features between them, so that rare classes have few parameters. */
static tern_status add_children(tern_module *m, int64_t in_features, const adaptive *a,
                                const tern_adaptive_log_softmax_with_loss_options *o)
{
    const uint64_t failures = tern_failures();
    const double divisor = o->div_value;
    tern_module *tail = NULL;
    if (tern_nn_add(m, "head",
                    linear(in_features, a->ends.dims[0] + clusters_of(a), o->head_bias, o)))
        tail = tern_nn_add(m, "tail", tern_nn_module_list_of(NULL, 0));
    for (int i = 0; tail && i < clusters_of(a); i++) {
        int64_t width = tern_size_of_real(floor((double)in_features / pow(divisor, i + 1)));
        tern_module *both[] = {linear(in_features, width, false, o),
                               linear(width, a->ends.dims[i + 1] - a->ends.dims[i], false, o)};
        tern_nn_append(tail, tern_nn_sequential_of(both, 2));
    }
    return tern_failed_since(failures);
}

tern_module *tern_nn_adaptive_log_softmax_with_loss(
    int64_t in_features, int64_t n_classes, tern_shape cutoffs,
    const tern_adaptive_log_softmax_with_loss_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_adaptive_log_softmax_with_loss_options o =
        tern_read_adaptive_log_softmax_with_loss(options);
    adaptive a = {.classes = n_classes, .ends = cutoffs};
    if (check(n_classes, &cutoffs) != TERN_OK)
        return NULL;
    a.ends.dims[a.ends.ndim++] = n_classes;
    tern_module *m = tern_layer_loss("AdaptiveLogSoftmaxWithLoss", call, &a, sizeof a);
    return tern_layer_if(m, m ? add_children(m, in_features, &a, &o) : tern_last_status());
}
