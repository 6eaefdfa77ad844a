/* sync_batch_norm.c -- batch norm over the rows of all ranks.
 *
 *   T = sum n,   mean = sum n mean_r / T,   T var = sum (M2_r + n (mean_r - mean)^2),
 *              M2_r = sum (x - mean_r)^2
 *   dx = w rstd (dy - sum dy / T - h sum(dy h) / T),   h = (x - mean) rstd
 *
 * The first line's sums are over ranks. Each rank computes them from all-gathered statistics in the
 * order of ranks, so that all have the same bits. */
#include "base/memory.h"
#include "base/option.h"
#include "dist/dist.h"
#include "nn/layers/batch_norm.h"
#include "nn/module.h"
#include <string.h>
#include <tern/dist/sync_batch_norm.h>
#include <tern/ops.h>

/* Data kept from the forward for the backward pass. */
typedef struct batch {
    tern_dist_group *group;
    double eps, total; /* total is the number of elements of a channel on all ranks */
} batch;

enum { X, WEIGHT, BIAS, INPUTS };
enum { Y, MEAN, VAR, OUTPUTS };             /* VAR: unbiased variance, as running_var */
enum { SAVED_X, SAVED_MEAN, SAVED_SCALES }; /* rows of SAVED_SCALES: rstd, rstd * weight */

static tern_dtype wide(const tern_tensor *x)
{
    return tern_dtype_of(x) == TERN_F64 ? TERN_F64 : TERN_F32;
}

/* Sets *dims to all dims except the channels', and *each to a shape that broadcasts one number a
 * channel over x. */
static void dims_of(const tern_tensor *x, tern_shape *dims, tern_shape *each)
{
    *dims = *each = (tern_shape){.ndim = tern_dim(x) - 1, .dims = {0}};
    each->dims[0] = tern_size(x, 1);
    for (int d = 1; d < dims->ndim; d++) {
        each->dims[d] = 1;
        dims->dims[d] = d + 1;
    }
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Returns n, the means and the M2 of this rank's channels, concatenated. */
static tern_tensor *local_statistics(tern_tensor *x)
{
    tern_shape dims, each;
    const int64_t channels = tern_size(x, 1);
    if (tern_numel(x) == 0)
        return tern_zeros(TERN_SHAPE(2 * channels + 1), tern_dtype_of(x), tern_device(x));
    dims_of(x, &dims, &each);
    const double n = (double)(tern_numel(x) / channels);
    tern_tensor *mean = tern_mean_dim(x, dims, false);
    tern_tensor *apart = tern_sub(x, tern_view(mean, each));
    tern_tensor *parts[] = {
        tern_full(TERN_SHAPE(1), tern_scalar_real(n), tern_dtype_of(x), tern_device(x)), mean,
        tern_sum_dim(tern_square(apart), dims, false)};
    return tern_cat(parts, 3, 0);
}

/* Returns the sum over ranks (rows of x). */
static tern_tensor *over_ranks(tern_tensor *x)
{
    return tern_sum_dim(x, TERN_SHAPE(0), false);
}

/* Computes mean and var (C) from the statistics of all ranks; b->total is the number of elements of
 * each channel. */
static tern_status combine(batch *b, tern_tensor *local, int64_t channels, tern_tensor **mean,
                           tern_tensor **var)
{
    const uint64_t failures = tern_failures();
    const int ranks = tern_dist_get_world_size(b->group);
    const tern_dist_options o = {.group = b->group, .label = "sync_batch_norm"};
    TERN_TRY(tern_failed_since(failures));
    tern_tensor *all =
        tern_empty(TERN_SHAPE(ranks, 2 * channels + 1), tern_dtype_of(local), tern_device(local));
    TERN_TRY(tern_failed_since(failures));
    TERN_TRY(tern_dist_all_gather_into_tensor(all, local, &o));
    tern_tensor *n = tern_narrow(all, 1, 0, 1), *means = tern_narrow(all, 1, 1, channels);
    tern_tensor *m2 = tern_narrow(all, 1, 1 + channels, channels);
    b->total = tern_item(tern_sum(n));
    TERN_TRY(tern_failed_since(failures));
    if (b->total <= 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_nn_sync_batch_norm: Expected more than 1 value per channel when "
                         "training, got %g on all ranks",
                         b->total);
    const tern_scalar part = tern_scalar_real(1 / b->total);
    *mean = tern_mul_scalar(over_ranks(tern_mul(n, means)), part);
    m2 = tern_add(m2, tern_mul(n, tern_square(tern_sub(means, *mean))));
    *var = tern_mul_scalar(over_ranks(m2), part);
    return tern_failed_since(failures);
}

/* ---- autograd function ----------------------------------------------------------------------- */

static tern_status forward(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    const uint64_t failures = tern_failures();
    batch *b = tern_function_data(f);
    tern_tensor *x = in[X], *mean = NULL, *var = NULL;
    (void)n, (void)k;
    tern_tensor *local = local_statistics(tern_to_dtype(x, wide(x)));
    TERN_TRY(tern_failed_since(failures));
    TERN_TRY(combine(b, local, tern_size(x, 1), &mean, &var));
    out[Y] = tern_batch_norm(x, mean, var, in[WEIGHT], in[BIAS], false, 0, b->eps);
    out[MEAN] = mean;
    out[VAR] = tern_mul_scalar(var, tern_scalar_real(b->total / (b->total - 1)));
    tern_tensor *rstd = tern_rsqrt(tern_add_scalar(var, tern_scalar_real(b->eps)));
    tern_tensor *scales[] = {rstd, in[WEIGHT] ? tern_mul(rstd, in[WEIGHT]) : rstd};
    tern_tensor *both = tern_stack(scales, 2, 0);
    TERN_TRY(tern_failed_since(failures));
    for (int i = MEAN; i < OUTPUTS; i++)
        TERN_TRY(tern_function_mark_non_differentiable(f, i));
    TERN_TRY(tern_function_save(f, x));
    TERN_TRY(tern_function_save(f, mean));
    return tern_function_save(f, both);
}

/* One all-reduce adds the ranks' sums of dy and of dy h of each channel. */
static tern_status backward(tern_function *f, tern_tensor *const *grad_out, int k,
                            tern_tensor **grad_in, int n)
{
    const uint64_t failures = tern_failures();
    const batch *b = tern_function_data(f);
    const tern_dist_options o = {.group = b->group, .label = "sync_batch_norm, backward"};
    tern_tensor *given = tern_function_saved(f, SAVED_X), *x = tern_to_dtype(given, wide(given));
    tern_tensor *scales = tern_function_saved(f, SAVED_SCALES);
    tern_shape dims, each;
    (void)k, (void)n;
    if (tern_is_grad_enabled())
        return tern_fail(TERN_ERR_STATE, "tern_nn_sync_batch_norm: second derivatives don't go "
                                         "through other ranks");
    dims_of(x, &dims, &each);
    const int64_t channels = each.dims[0];
    tern_tensor *dy = grad_out[Y] ? tern_to_dtype(grad_out[Y], wide(x)) : tern_zeros_like(x);
    tern_tensor *h = tern_sub(x, tern_view(tern_function_saved(f, SAVED_MEAN), each));
    h = tern_mul(h, tern_view(tern_select(scales, 0, 0), each));
    grad_in[BIAS] = tern_sum_dim(dy, dims, false);
    grad_in[WEIGHT] = tern_sum_dim(tern_mul(dy, h), dims, false);
    tern_tensor *all = tern_cat((tern_tensor *[]){grad_in[BIAS], grad_in[WEIGHT]}, 2, 0);
    TERN_TRY(tern_failed_since(failures));
    TERN_TRY(tern_dist_all_reduce(all, &o));
    all = tern_mul_scalar(all, tern_scalar_real(1 / b->total));
    tern_tensor *dx = tern_sub(dy, tern_view(tern_narrow(all, 0, 0, channels), each));
    tern_tensor *shifted = tern_view(tern_narrow(all, 0, channels, channels), each);
    dx = tern_sub(dx, tern_mul(h, shifted));
    dx = tern_mul(dx, tern_view(tern_select(scales, 0, 1), each));
    grad_in[X] = tern_to_dtype(dx, tern_dtype_of(given));
    for (int i = WEIGHT; i < INPUTS; i++)
        if (!tern_function_needs_grad(f, i))
            grad_in[i] = NULL;
    return tern_failed_since(failures);
}

/* running = (1 - momentum) running + momentum x */
static tern_status follow(tern_tensor *running, tern_tensor *x, double momentum)
{
    const uint64_t failures = tern_failures();
    TERN_NO_GRAD {
        if (running && tern_mul_scalar_(running, tern_scalar_real(1 - momentum)))
            tern_add_(running, tern_to_dtype(tern_mul_scalar(x, tern_scalar_real(momentum)),
                                             tern_dtype_of(running)));
    }
    return tern_failed_since(failures);
}

static tern_tensor *over_all(void *group, tern_tensor *x, tern_tensor *mean, tern_tensor *var,
                             tern_tensor *weight, tern_tensor *bias, double momentum, double eps)
{
    static const tern_function_type type = {"SyncBatchNorm", forward, backward, tern_free, {0}};
    tern_tensor *in[INPUTS] = {x, weight, bias}, *out[OUTPUTS];
    if (tern_dist_get_world_size(group) <= 1)
        return tern_batch_norm(x, mean, var, weight, bias, true, momentum, eps);
    batch *b = tern_alloc(sizeof *b);
    if (!b)
        return NULL;
    *b = (batch){.group = group, .eps = eps};
    if (tern_function_apply(&type, b, in, INPUTS, out, OUTPUTS) != TERN_OK ||
        follow(mean, out[MEAN], momentum) != TERN_OK || follow(var, out[VAR], momentum) != TERN_OK)
        return NULL;
    return out[Y];
}

/* ---- modules --------------------------------------------------------------------------------- */

static const char name[] = "SyncBatchNorm";

tern_module *tern_nn_sync_batch_norm(int64_t num_features,
                                     const tern_sync_batch_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_sync_batch_norm_options o = tern_read_sync_batch_norm(options);
    const tern_batch_norm_options plain = {.eps = o.eps,
                                           .momentum = o.momentum,
                                           .cumulative = o.cumulative,
                                           .no_affine = o.no_affine,
                                           .no_bias = o.no_bias,
                                           .no_track_running_stats = o.no_track_running_stats,
                                           .dtype = o.dtype,
                                           .device = o.device,
                                           .reserved = {TERN_OPTIONS_AS_WRITTEN}};
    return tern_batch_norm_with(name, num_features, &plain, over_all, o.group);
}

static tern_module *converted(tern_module *m, tern_dist_group *group, tern_status *status)
{
    const uint64_t failures = tern_failures();
    tern_module *sync =
        strcmp(m->name, name) == 0 ? NULL : tern_batch_norm_like(name, m, over_all, group);
    *status = sync ? TERN_OK : tern_failed_since(failures);
    return sync;
}

/* Replaces children by converted modules of the same names. */
static tern_status convert_below(tern_module *m, tern_dist_group *group)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < m->count && status == TERN_OK; i++) {
        if (m->members[i].kind != MEMBER_CHILD || !m->members[i].child)
            continue;
        tern_module *sync = converted(m->members[i].child, group, &status);
        if (sync)
            status = tern_nn_set_child(m, m->members[i].name, sync) ? TERN_OK : TERN_ERR_STATE;
        else if (status == TERN_OK)
            status = convert_below(m->members[i].child, group);
    }
    return status;
}

tern_module *tern_nn_convert_sync_batch_norm(tern_module *m, tern_dist_group *group)
{
    static const char function[] = "tern_nn_convert_sync_batch_norm";
    tern_status status;
    TERN_MODULE_GIVEN(m, function);
    if (!m)
        return tern_fail_argument_null(function, "m"), NULL;
    tern_module *sync = converted(m, group, &status);
    if (!sync)
        return status == TERN_OK && convert_below(m, group) == TERN_OK ? m : NULL;
    if (m->parent) {
        tern_nn_free(sync);
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: the batch norm is in a module: convert that one", function);
    }
    tern_nn_free(m);
    return sync;
}
