/* clip_grad.c -- scales all gradients to a maximum norm, or clamps every element
 * (torch.nn.utils.clip_grad_norm_, clip_grad_value_). */
#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "optim/optimizer.h"
#include "tensor/ranks.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/graph.h>
#include <tern/optim.h>

static const tern_foreach_kernel times = TERN_FOREACH_KERNEL("foreach", "times");

/* The gradients of one device and dtype whose parameters are cut among the same ranks, which are
 * NULL for whole parameters. `dense` has contiguous copies, or the gradients themselves. */
typedef struct bundle {
    tern_ranks *ranks;
    tern_tensor **grad, **dense;
    int count;
    tern_foreach *table;
    tern_foreach_call call;
    tern_foreach_ready ready;
} bundle;

/* All gradients of a module, in bundles. */
typedef struct gathering {
    bundle *bundles;
    tern_ranks **ranks; /* distinct ranks of parameters, also of those without a gradient here */
    int n, n_ranks, parameters;
} gathering;

static void note_ranks(gathering *all, tern_ranks *ranks)
{
    int k = 0;
    while (k < all->n_ranks && all->ranks[k] != ranks)
        k++;
    if (ranks && k == all->n_ranks)
        all->ranks[all->n_ranks++] = ranks;
}

/* Adds a parameter's gradient to the bundle of its device, dtype and ranks. */
static tern_status gather(const char *path, tern_tensor *x, void *user)
{
    gathering *all = user;
    tern_tensor *grad = tern_grad(x);
    tern_ranks *ranks = tern_sums_of(x);
    int k = 0;
    (void)path;
    note_ranks(all, ranks);
    if (!grad || tern_numel(grad) == 0)
        return TERN_OK;
    while (k < all->n && (all->bundles[k].ranks != ranks ||
                          tern_device(all->bundles[k].grad[0]) != tern_device(grad) ||
                          tern_dtype_of(all->bundles[k].grad[0]) != tern_dtype_of(grad)))
        k++;
    bundle *b = &all->bundles[k];
    if (k == all->n) {
        b->grad = tern_alloc(sizeof *b->grad * 2 * (size_t)all->parameters);
        if (!b->grad)
            return TERN_ERR_MEMORY;
        b->dense = b->grad + all->parameters;
        b->ranks = ranks;
        all->n++;
    }
    b->grad[b->count] = grad;
    b->dense[b->count] = tern_optim_in_format(grad, tern_optim_format(grad));
    return b->dense[b->count++] ? TERN_OK : tern_last_status();
}

/* Sums are in float32 or float64: squares of half precision would overflow. */
static tern_dtype sum_type(const bundle *b)
{
    return tern_dtype_of(b->grad[0]) == TERN_F64 ? TERN_F64 : TERN_F32;
}

/* Prepares a kernel that writes the gradients, with a number (1) as argument. */
static tern_status prepare(bundle *b, const tern_foreach_kernel *kernel, tern_tensor *number,
                           const char *function)
{
    b->call = (tern_foreach_call){.kernel = kernel,
                                  .function = function,
                                  .column = {b->dense, b->dense},
                                  .target = b->grad,
                                  .shared = {number},
                                  .writes = true};
    return number ? tern_foreach_prepare(b->table, &b->call, &b->ready) : tern_last_status();
}

static tern_status run_all(const gathering *all)
{
    for (int k = 0; k < all->n; k++) {
        const bundle *b = &all->bundles[k];
        TERN_TRY(tern_foreach_run(b->table, &b->call, &b->ready));
    }
    return TERN_OK;
}

static tern_tensor *number_for(const bundle *b, double value)
{
    return tern_full(TERN_SHAPE(1), tern_scalar_real(value), sum_type(b), tern_device(b->grad[0]));
}

/* Returns the norms of the gradients, one for each; for order 2 the norms of their chunks, in one
 * launch. */
static tern_tensor *norms_of(bundle *b, double p)
{
    static const tern_foreach_kernel kernel = TERN_FOREACH_KERNEL("foreach", "norms");
    tern_tensor *each[b->count];
    b->table = tern_foreach_new(b->dense, b->count); /* the launch that scales uses the table too */
    if (!b->table)
        return NULL;
    if (p == 2) {
        const tern_shape shape = TERN_SHAPE(tern_foreach_chunks(b->table));
        tern_tensor *norms = tern_empty(shape, sum_type(b), tern_device(b->grad[0]));
        tern_foreach_call call = {.kernel = &kernel, .column = {b->dense, b->dense}, .each = norms};
        return norms && tern_foreach_launch(b->table, &call) == TERN_OK ? norms : NULL;
    }
    for (int i = 0; i < b->count; i++)
        each[i] = tern_norm(tern_to_dtype(b->dense[i], sum_type(b)), p);
    return tern_stack(each, b->count, 0);
}

/* Returns the norm of order p of n non-negative numbers. The numbers are divided by the largest (p
 * < 0: smallest) first, as powers could overflow. */
static double norm_of_numbers(const double *x, int64_t n, double p)
{
    double most = 0, least = INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return NAN;
        most = fmax(most, x[i]);
        least = fmin(least, x[i]);
    }
    const double by = p == 0 ? 1 : p < 0 ? least : most;
    if (isinf(p) || by == 0 || isinf(by))
        return by;
    for (int64_t i = 0; i < n; i++)
        sum += p == 0 ? x[i] != 0 : pow(x[i] / by, p);
    return p == 0 ? sum : by * pow(sum, 1 / p);
}

/* Sets *norm to the norm of a bundle, read by the host. */
static tern_status norm_of_bundle(bundle *b, double p, double *norm)
{
    tern_tensor *norms = tern_to_dtype(tern_to(norms_of(b, p), "cpu"), TERN_F64);
    if (!norms)
        return tern_last_status();
    const int64_t n = tern_numel(norms);
    double *values = tern_alloc(sizeof *values * (size_t)n);
    tern_status status =
        values ? tern_copy_to_host(norms, values, sizeof *values * (size_t)n) : TERN_ERR_MEMORY;
    *norm = status == TERN_OK ? norm_of_numbers(values, n, p) : NAN;
    tern_free(values);
    return status;
}

/* Sets *total to the p-th power of the norm of the bundles with these ranks; to the norm itself if
 * p is 0 or infinite, or no parameter is cut. */
static tern_status power_of_norms(gathering *all, const tern_ranks *ranks, double p, double *total)
{
    double norms[all->n + 1];
    int n = 0;
    for (int k = 0; k < all->n; k++)
        if (all->bundles[k].ranks == ranks)
            TERN_TRY(norm_of_bundle(&all->bundles[k], p, &norms[n++]));
    *total = p == -INFINITY && all->n_ranks ? INFINITY : 0; /* if no gradient is here, other ranks
                                                               may have some */
    if (n)
        *total = norm_of_numbers(norms, n, p);
    if (n && all->n_ranks && isfinite(p) && p != 0)
        *total = pow(*total, p);
    return TERN_OK;
}

/* Sets *norm to the norm of all gradients: of the whole ones, and of parts, summed over each set of
 * ranks. If no parameter is cut, no power is taken. The smallest element is computed as the largest
 * with the opposite sign. */
static tern_status norm_of_all(gathering *all, double p, double *norm)
{
    const bool powers = isfinite(p) && p != 0;
    const double sign = p == -INFINITY ? -1 : 1;
    double whole = 0;
    bool any = all->n > 0; /* without any gradient the norm is 0 for every order */
    TERN_TRY(power_of_norms(all, NULL, p, &whole));
    whole *= sign;
    for (int r = 0; r < all->n_ranks; r++) {
        tern_ranks *ranks = all->ranks[r];
        double of[2] = {0, all->n > 0}, part;
        TERN_TRY(power_of_norms(all, ranks, p, of));
        of[0] *= sign;
        TERN_TRY(ranks->reduce(ranks, of, 2, isinf(p)));
        part = of[0];
        any = any || of[1] > 0;
        whole = isinf(p) ? (part > whole || isnan(part) ? part : whole) : whole + part;
    }
    *norm = !any ? 0 : powers && all->n_ranks ? pow(whole, 1 / p) : whole * sign;
    return TERN_OK;
}

/* Clips while the step is recorded. The norm stays on the device, and each replay clips by its own
 * norm. */
static tern_status clip_recorded(gathering *all, double max_norm, double p)
{
    tern_tensor *norms[all->n + 1];
    tern_dtype type = TERN_F32;
    for (int k = 0; k < all->n; k++) {
        bundle *b = &all->bundles[k];
        norms[k] = tern_norm(norms_of(b, p), p);
        type = sum_type(b) == TERN_F64 ? TERN_F64 : type;
    }
    for (int k = 0; k < all->n; k++)
        norms[k] = tern_to_dtype(norms[k], type);
    tern_tensor *norm = all->n ? tern_norm(tern_stack(norms, all->n, 0), p) : NULL;
    tern_tensor *factor =
        tern_rdiv_scalar(tern_add_scalar(norm, tern_scalar_real(1e-6)), tern_scalar_real(max_norm));
    factor = tern_reshape(tern_clamp(factor, -INFINITY, 1), TERN_SHAPE(1));
    for (int k = 0; k < all->n; k++) {
        bundle *b = &all->bundles[k];
        TERN_TRY(prepare(b, &times, tern_to_dtype(factor, sum_type(b)), "tern_nn_clip_grad_norm_"));
    }
    return run_all(all);
}

/* grad *= max_norm / (norm + 1e-6) if that factor is below 1. */
static tern_status clip(tern_module *module, gathering *all, double max_norm,
                        const tern_clip_grad_norm_options *o, double *norm)
{
    const double p = o->norm_type;
    TERN_TRY(tern_nn_each_parameter(module, gather, all));
    if (tern_is_capturing() && all->n && !all->n_ranks && !o->error_if_nonfinite)
        return clip_recorded(all, max_norm, p);
    TERN_TRY(norm_of_all(all, p, norm));
    if (o->error_if_nonfinite && !isfinite(*norm))
        return tern_fail(TERN_ERR_STATE,
                         "tern_nn_clip_grad_norm_: The total norm of order %s for gradients from "
                         "`parameters` is non-finite, so it cannot be clipped. To disable this "
                         "error and scale the gradients by the non-finite norm anyway, set "
                         "`error_if_nonfinite=False`",
                         TERN_NUMBER_TEXT(p));
    double factor = max_norm / (*norm + 1e-6);
    if (factor >= 1)
        return TERN_OK;
    for (int k = 0; k < all->n; k++)
        TERN_TRY(prepare(&all->bundles[k], &times, number_for(&all->bundles[k], factor),
                         "tern_nn_clip_grad_norm_"));
    return run_all(all);
}

static tern_status begin(gathering *all, int64_t parameters)
{
    const size_t n = (size_t)parameters + 1;
    *all = (gathering){.parameters = (int)n,
                       .bundles = tern_alloc(sizeof *all->bundles * n),
                       .ranks = tern_alloc(sizeof *all->ranks * n)};
    return all->bundles && all->ranks ? TERN_OK : TERN_ERR_MEMORY;
}

static void free_all(gathering *all)
{
    tern_free(all->ranks);
    for (int k = 0; k < all->n; k++) {
        tern_foreach_free(all->bundles[k].table);
        tern_free(all->bundles[k].grad);
    }
    tern_free(all->bundles);
}

double tern_nn_clip_grad_norm_with_(tern_module *module, double max_norm,
                                    const tern_clip_grad_norm_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_clip_grad_norm_options o = tern_read_clip_grad_norm(options);
    double norm = NAN;
    if (!module) {
        tern_fail_argument_null(__func__, "module");
        return NAN;
    }
    int64_t n = tern_nn_parameter_count(module);
    if (n < 0)
        return NAN;
    gathering all;
    tern_status status = begin(&all, n);
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD
                status = clip(module, &all, max_norm, &o, &norm);
    free_all(&all);
    return status == TERN_OK ? norm : NAN;
}

double tern_nn_clip_grad_norm_(tern_module *module, double max_norm)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_clip_grad_norm_with_(module, max_norm, NULL);
}

/* ---- by value ---------------------------------------------------------------------------- */

/* grad = min(max(grad, -limit), limit). The kernel has no half precision form: those gradients are
 * clamped in float32 copies. */
static tern_status clip_value(bundle *b, double limit)
{
    static const tern_foreach_kernel kernel = TERN_FOREACH_KERNEL("foreach", "clip");
    for (int i = 0; i < b->count; i++)
        if (!(b->dense[i] = tern_to_dtype(b->dense[i], sum_type(b))))
            return tern_last_status();
    b->table = tern_foreach_new(b->dense, b->count);
    return b->table ? prepare(b, &kernel, number_for(b, limit), "tern_nn_clip_grad_value_")
                    : tern_last_status();
}

static tern_status clip_values(tern_module *module, gathering *all, double limit)
{
    TERN_TRY(tern_nn_each_parameter(module, gather, all));
    for (int k = 0; k < all->n; k++)
        TERN_TRY(clip_value(&all->bundles[k], limit));
    return run_all(all);
}

tern_status tern_nn_clip_grad_value_(tern_module *module, double limit)
{
    if (!module)
        return tern_fail_argument_null("tern_nn_clip_grad_value_", "module");
    int64_t n = tern_nn_parameter_count(module);
    if (n < 0)
        return tern_last_status();
    gathering all;
    tern_status status = begin(&all, n);
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD
                status = clip_values(module, &all, limit);
    free_all(&all);
    return status;
}
