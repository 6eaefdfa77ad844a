/* linear_cross_entropy.c -- cross entropy of a linear layer's logits, computed in chunks of rows to
 * save memory. */
#include "base/memory.h"
#include "ops/loss/loss.h"
#include <string.h>
#include <tern/autograd.h>

static const char *const name = "tern_linear_cross_entropy";

enum { X, WEIGHT, BIAS, TARGET, CLASSES, INPUTS };

/* Returns the loss of the given rows. Half precision logits are cast to float32 before rows are
 * summed. */
static tern_tensor *loss_of(tern_tensor *const *in, tern_cross_entropy_options o)
{
    o.weight = in[CLASSES] ? tern_loss_wide(in[CLASSES]) : NULL;
    tern_tensor *logits = tern_loss_wide(tern_linear(in[X], in[WEIGHT], in[BIAS]));
    return in[CLASSES] && !o.weight ? NULL : tern_cross_entropy(logits, in[TARGET], &o);
}

static tern_status chunk_loss(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)n, (void)k;
    const tern_cross_entropy_options *o = data;
    out[0] = loss_of(in, *o);
    return out[0] ? TERN_OK : tern_last_status();
}

/* With fewer rows a chunk would be limited by reading the weight, which every chunk reads as a
 * whole. */
enum { LEAST_ROWS = 64 };

static bool is_trained(const tern_tensor *weight)
{
    return tern_is_grad_enabled() && tern_requires_grad(weight);
}

/* Returns the number of rows of a chunk, whose logits take about as much memory as x: the rows of x
 * times width / V. If the weight requires a gradient, which is computed with each chunk, the logits
 * may take as much memory as that gradient. */
static int64_t rows_of_chunk(const tern_tensor *x, const tern_tensor *weight)
{
    int64_t width = x->shape[1] > 0 ? x->shape[1] : 1, rows = x->shape[0], chunk = LEAST_ROWS;
    int64_t parts = (weight->shape[0] + width - 1) / width;
    while (chunk < rows / (parts > 0 ? parts : 1) ||
           (is_trained(weight) && chunk < rows && chunk <= width / 2))
        chunk *= 2;
    return chunk;
}

static tern_tensor *one_chunk(tern_tensor *const *in, int64_t from, int64_t n,
                              const tern_cross_entropy_options *o)
{
    const tern_checkpoint_options how = {.free_data = tern_free};
    tern_tensor *part[INPUTS] = {tern_narrow(in[X], 0, from, n), in[WEIGHT], in[BIAS],
                                 tern_narrow(in[TARGET], 0, from, n), in[CLASSES]};
    tern_tensor *loss = NULL;
    tern_cross_entropy_options *copy = part[X] && part[TARGET] ? tern_alloc(sizeof *copy) : NULL;
    if (!copy)
        return NULL;
    *copy = *o;
    return tern_checkpoint(chunk_loss, copy, part, INPUTS, &loss, 1, &how) == TERN_OK ? loss : NULL;
}

/* Returns the divisor of the mean: the number of targets that are not ignored, or the sum of the
 * weights of their classes. */
static tern_tensor *total(tern_tensor *target, tern_tensor *classes, int64_t ignored)
{
    tern_tensor *counts = tern_to_dtype(tern_ne_scalar(target, tern_scalar_int(ignored)), TERN_F32);
    if (counts && classes) {
        tern_tensor *index = tern_clamp_min_scalar(target, tern_scalar_int(0));
        counts = tern_mul(counts, tern_index_select(tern_loss_wide(classes), 0, index));
    }
    return counts ? tern_sum(counts) : NULL;
}

static tern_status check(tern_tensor *const *in)
{
    const tern_tensor *x = in[X], *w = in[WEIGHT], *t = in[TARGET];
    if (x->ndim != 2 || w->ndim != 2 || x->shape[1] != w->shape[1])
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: input (N, in) and linear_weight (C, in), not %s and %s", name,
                         TERN_TENSOR_TEXT(x), TERN_TENSOR_TEXT(w));
    if (t->ndim != 1 || t->shape[0] != x->shape[0])
        return tern_fail(TERN_ERR_SHAPE, "%s: target (N) of %lld rows, not %s", name,
                         (long long)x->shape[0], TERN_TENSOR_TEXT(t));
    if (t->dtype != TERN_I64)
        return tern_fail(TERN_ERR_DTYPE, "%s: expected scalar type int64 but found %s (target)",
                         name, tern_dtype_name(t->dtype));
    return TERN_OK;
}

static tern_tensor *in_chunks(tern_tensor *const *in, const tern_cross_entropy_options *o,
                              tern_tensor **all, int64_t chunk)
{
    int64_t rows = in[X]->shape[0];
    int n = 0;
    for (int64_t from = 0; from < rows || !n; from += chunk) {
        all[n] = one_chunk(in, from, rows - from < chunk ? rows - from : chunk, o);
        if (!all[n])
            return NULL;
        if (o->reduction == TERN_REDUCTION_SUM && n)
            all[0] = tern_add(all[0], all[n]);
        else
            n++;
    }
    return n > 1 ? tern_cat(all, n, 0) : all[0];
}

/* ---- with a gradient beside the loss ------------------------------------------------------
 * If only x requires a gradient, as with a frozen output layer, dx for dout = 1 is no larger than
 * x: it is computed together with each chunk's loss, and no logits are computed twice. */

typedef struct ahead {
    tern_cross_entropy_options o; /* reduction is the sum */
    int64_t chunk;
    bool there[INPUTS];
} ahead;

static bool is_ahead(tern_tensor *const *in, tern_reduction reduction)
{
    bool others = false;
    for (int i = WEIGHT; i < INPUTS; i++)
        others = others || (in[i] && tern_requires_grad(in[i]));
    return reduction == TERN_REDUCTION_SUM && tern_is_grad_enabled() && !others &&
           tern_requires_grad(in[X]) && !tern_thread.mode.frame && !tern_thread.mode.trace;
}

/* Adds the loss of rows from .. from + n - 1 to `loss`, and sets these rows of dx to its
 * gradient. */
static tern_status add_chunk(ahead *a, tern_tensor *const *in, int64_t from, int64_t n,
                             tern_tensor *loss, tern_tensor *dx)
{
    tern_tensor *one = NULL, *d = NULL, *part[INPUTS];
    memcpy(part, in, sizeof part);
    part[X] = tern_requires_grad_(tern_narrow(tern_detach(in[X]), 0, from, n), true);
    part[TARGET] = tern_narrow(in[TARGET], 0, from, n);
    TERN_ENABLE_GRAD
    if (part[X] && part[TARGET] && chunk_loss(&a->o, part, INPUTS, &one, 1) == TERN_OK)
        tern_autograd_grad(&one, 1, part, 1, &d, NULL);
    return d && tern_copy_(tern_narrow(dx, 0, from, n), d) && tern_add_(loss, one)
               ? TERN_OK
               : tern_last_status();
}

static tern_status ahead_forward(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                                 int k)
{
    ahead *a = tern_function_data(f);
    const int64_t rows = in[X]->shape[0];
    tern_tensor *dx = tern_empty_like(in[X]);
    (void)k;
    out[0] = tern_zeros((tern_shape){0}, in[X]->dtype == TERN_F64 ? TERN_F64 : TERN_F32,
                        tern_device(in[X]));
    if (!dx || !out[0])
        return tern_last_status();
    for (int64_t from = 0; from < rows; from += a->chunk)
        TERN_SCOPE
            TERN_TRY(add_chunk(a, in, from, rows - from < a->chunk ? rows - from : a->chunk, out[0],
                               dx));
    TERN_TRY(tern_function_save(f, dx));
    for (int i = 0; i < n; i++)
        if ((a->there[i] = in[i] != NULL))
            TERN_TRY(tern_function_save(f, in[i]));
    return TERN_OK;
}

/* A gradient that is differentiated again is computed for all rows at once. */
static tern_status ahead_backward(tern_function *f, tern_tensor *const *dout, int k,
                                  tern_tensor **din, int n)
{
    ahead *a = tern_function_data(f);
    tern_tensor *in[INPUTS], *loss;
    (void)k;
    memset(din, 0, sizeof *din * (size_t)n);
    if (!dout[0])
        return TERN_OK;
    if (!tern_is_grad_enabled()) {
        din[X] = tern_mul(tern_function_saved(f, 0), dout[0]);
        return din[X] ? TERN_OK : tern_last_status();
    }
    for (int i = 0, at = 1; i < INPUTS; i++)
        in[i] = a->there[i] ? tern_function_saved(f, at++) : NULL;
    TERN_TRY(chunk_loss(&a->o, in, INPUTS, &loss, 1));
    return tern_autograd_grad(
        &loss, 1, in, 1, din,
        &(tern_autograd_grad_options){.gradients = dout, .create_graph = true});
}

static const tern_function_type ahead_type = {
    "linear_cross_entropy", ahead_forward, ahead_backward, tern_free, {0}};

static tern_tensor *ahead_of(tern_tensor *const *in, const tern_cross_entropy_options *o,
                             int64_t chunk)
{
    ahead *a = tern_alloc(sizeof *a);
    tern_tensor *loss = NULL;
    if (!a)
        return NULL;
    *a = (ahead){.o = *o, .chunk = chunk};
    return tern_function_apply(&ahead_type, a, in, INPUTS, &loss, 1) == TERN_OK ? loss : NULL;
}

tern_tensor *tern_linear_cross_entropy(tern_tensor *input, tern_tensor *linear_weight,
                                       tern_tensor *target,
                                       const tern_linear_cross_entropy_options *options)
{
    tern_linear_cross_entropy_options o = tern_read_linear_cross_entropy(options);
    tern_tensor *in[] = {input, linear_weight, o.linear_bias, target, o.weight};
    if (tern_loss_check(input, target, o.reduction, name) != TERN_OK)
        return NULL;
    if (!linear_weight)
        return tern_fail_argument_null(name, "linear_weight"), NULL;
    if (check(in) != TERN_OK)
        return NULL;
    const bool mean = o.reduction == TERN_REDUCTION_MEAN;
    const tern_cross_entropy_options each = {.ignore_index = o.ignore_index,
                                             .label_smoothing = o.label_smoothing,
                                             .reduction = mean ? TERN_REDUCTION_SUM : o.reduction,
                                             .reserved = {TERN_OPTIONS_AS_WRITTEN}};
    int64_t chunk = o.chunk_size > 0 ? o.chunk_size : rows_of_chunk(input, linear_weight);
    bool at_once = is_ahead(in, each.reduction);
    /* The logits of a single chunk are kept for the backward pass if they take no more memory than
     * the weight's gradient. */
    bool kept = !at_once && !o.chunk_size && input->shape[0] <= chunk &&
                input->shape[0] <= input->shape[1] && is_trained(linear_weight);
    tern_tensor *loss = NULL, **all = NULL;
    if (kept) {
        loss = loss_of(in, each);
    } else if (at_once) {
        loss = ahead_of(in, &each, chunk);
    } else {
        all = tern_alloc(sizeof *all * (size_t)(input->shape[0] / chunk + 2));
        loss = all ? in_chunks(in, &each, all, chunk) : NULL;
    }
    tern_free(all);
    if (loss && mean)
        loss = tern_div(loss, total(target, o.weight, o.ignore_index.value));
    /* Under autocast the loss stays float32. */
    tern_dtype like = tern_thread.mode.cast && loss ? loss->dtype : input->dtype;
    return loss ? tern_to_dtype(loss, o.dtype ? o.dtype : like) : NULL;
}
