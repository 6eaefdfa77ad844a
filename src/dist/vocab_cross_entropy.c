/* vocab_cross_entropy.c -- cross entropy of logits whose classes are cut among the ranks of a
 * group.
 *
 *   loss = log z - p,   z = sum e^(x - m) over all classes, p = x_target - m, m the greatest
 *                       logit of all ranks
 *   smoothed: loss = log z - (1 - s) p - s / C sum (x - m)
 *
 * One all-reduce adds the ranks' parts of z, p and the sum of logits. Autograd computes the
 * gradient, which needs no communication. */
#include "base/option.h"
#include "dist/dist.h"
#include <math.h>
#include <tern/dist/tensor_parallel.h>
#include <tern/ops.h>

static const char function[] = "tern_vocab_parallel_cross_entropy";
typedef tern_vocab_parallel_cross_entropy_options options;

static tern_status check(const tern_tensor *logits, const tern_tensor *target, const options *o)
{
    const tern_tensor *x[] = {logits, target};
    for (int i = 0; i < 2; i++)
        if (!x[i])
            return tern_fail_argument_null(function, i ? "target" : "logits");
    bool fit = tern_dim(logits) >= 1 && tern_dim(target) == tern_dim(logits) - 1;
    for (int d = 0; fit && d < tern_dim(target); d++)
        fit = tern_size(target, d) == tern_size(logits, d);
    if (!fit)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: expected target of the shape of logits without their last dim",
                         function);
    if (tern_dtype_of(target) != TERN_I64 || !tern_dtype_is_floating_point(tern_dtype_of(logits)))
        return tern_fail(
            TERN_ERR_DTYPE, "%s: expected real logits and int64 target, but got %s, %s", function,
            tern_dtype_name(tern_dtype_of(logits)), tern_dtype_name(tern_dtype_of(target)));
    if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: label_smoothing must be between 0.0 and 1.0. Got: %g", function,
                         o->label_smoothing);
    return tern_dist_get_rank(o->group) >= 0
               ? TERN_OK
               : tern_fail(TERN_ERR_ARGUMENT, "%s: this process is not in the group", function);
}

/* Sets *first to this rank's first class and *classes to the number of all classes. Fails if this
 * rank should not have `here` of them. */
static tern_status find_classes(int64_t here, const options *o, int64_t *first, int64_t *classes)
{
    const int64_t ranks = tern_dist_get_world_size(o->group), rank = tern_dist_get_rank(o->group);
    *classes = o->classes ? o->classes : here * ranks;
    const int64_t each = (*classes + ranks - 1) / ranks;
    *first = each * rank < *classes ? each * rank : *classes;
    const int64_t own = *classes - *first < each ? *classes - *first : each;
    if (own == here)
        return TERN_OK;
    return tern_fail(TERN_ERR_SHAPE, "%s: rank %lld of %lld has %lld of %lld classes, not %lld",
                     function, (long long)rank, (long long)ranks, (long long)here,
                     (long long)*classes, (long long)own);
}

/* Returns x less the greatest logit of all ranks, which counts as a constant in the gradient. */
static tern_tensor *less_greatest(tern_tensor *x, const options *o)
{
    const tern_dist_options all = {
        .op = TERN_DIST_MAX, .group = o->group, .label = "cross entropy"};
    tern_tensor *most = NULL;
    TERN_NO_GRAD {
        tern_shape shape = tern_shape_of(x);
        shape.dims[shape.ndim - 1] = 1;
        most = tern_size(x, -1) ? tern_clone(tern_amax(x, TERN_SHAPE(-1), true))
                                : tern_full(shape, tern_scalar_real(-INFINITY), tern_dtype_of(x),
                                            tern_device(x));
    }
    if (!most || tern_dist_all_reduce(most, &all) != TERN_OK)
        return NULL;
    return tern_sub(x, most);
}

/* Returns this rank's parts of z, p and the sum of logits: (*, 3). */
static tern_tensor *own_parts(tern_tensor *x, tern_tensor *target, int64_t first)
{
    const int64_t here = tern_size(x, -1);
    tern_tensor *z = tern_sum_dim(tern_exp(x), TERN_SHAPE(-1), false);
    tern_tensor *sum = tern_sum_dim(x, TERN_SHAPE(-1), false), *p = sum;
    if (here) {
        tern_tensor *at = tern_sub_scalar(target, tern_scalar_int(first));
        tern_tensor *is_here = tern_logical_and(tern_ge_scalar(at, tern_scalar_int(0)),
                                                tern_lt_scalar(at, tern_scalar_int(here)));
        tern_tensor *index = tern_unsqueeze(tern_mul(at, is_here), -1);
        p = tern_mul(tern_squeeze_dim(tern_gather(x, -1, index), -1),
                     tern_to_dtype(is_here, tern_dtype_of(x)));
    }
    return tern_stack((tern_tensor *[]){z, p, sum}, 3, -1);
}

static tern_tensor *reduced(tern_tensor *loss, tern_tensor *target, const options *o)
{
    tern_tensor *counts = tern_ne_scalar(target, tern_scalar_int(o->ignore_index.value));
    counts = tern_to_dtype(counts, loss ? tern_dtype_of(loss) : TERN_F32);
    loss = tern_mul(loss, counts);
    if (o->reduction == TERN_REDUCTION_NONE)
        return loss;
    tern_tensor *sum = tern_sum(loss);
    return o->reduction == TERN_REDUCTION_SUM ? sum : tern_div(sum, tern_sum(counts));
}

tern_tensor *tern_vocab_parallel_cross_entropy(tern_tensor *logits, tern_tensor *target,
                                               const options *given)
{
    TERN_NAMED_IN_ERRORS;
    const options o = tern_read_vocab_parallel_cross_entropy(given);
    int64_t first, classes;
    if (check(logits, target, &o) != TERN_OK ||
        find_classes(tern_size(logits, -1), &o, &first, &classes) != TERN_OK)
        return NULL;
    const tern_dtype dtype = tern_dtype_of(logits);
    tern_tensor *x = tern_to_dtype(logits, dtype == TERN_F64 ? TERN_F64 : TERN_F32);
    x = x ? less_greatest(x, &o) : NULL;
    tern_tensor *all = x ? own_parts(x, target, first) : NULL;
    all = all ? tern_dist_reduce_from_group(all, o.group) : NULL;
    if (!all)
        return NULL;
    const double s = o.label_smoothing;
    tern_tensor *p = tern_mul_scalar(tern_select(all, -1, 1), tern_scalar_real(1 - s));
    tern_tensor *loss = tern_sub(tern_log(tern_select(all, -1, 0)), p);
    if (s > 0)
        loss = tern_sub(
            loss, tern_mul_scalar(tern_select(all, -1, 2), tern_scalar_real(s / (double)classes)));
    return tern_to_dtype(reduced(loss, target, &o), dtype);
}
