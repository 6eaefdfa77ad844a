/* ema.c -- averages of a module's parameters over steps: exponential moving averages, or equal
 * weights as for stochastic weight averaging (torch.optim.swa_utils.AveragedModel).
 *
 * mean += (x - mean) weight, with weight = 1 - decay, or 1 / (n + 1) after n updates. */
#include "base/option.h"
#include "base/memory.h"
#include "base/text.h"
#include "optim/optimizer.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/optim.h>

/* A tensor of the module, and its mean over the updates so far. */
typedef struct average {
    tern_tensor *x, *mean;
    char *path; /* in the module */
    bool is_buffer;
} average;

struct tern_averaged_model {
    tern_averaged_model_options options;
    int64_t updates;
    average *averages; /* n averages */
    int n;
};

static tern_status add(tern_averaged_model *self, const char *path, tern_tensor *x, bool is_buffer)
{
    average *averages = tern_grow(self->averages, sizeof *averages * (size_t)(self->n + 1));
    if (!averages)
        return TERN_ERR_MEMORY;
    self->averages = averages;
    char *copy = tern_copy_text(path);
    tern_tensor *mean =
        copy ? tern_keep(tern_optim_in_format(tern_clone(tern_detach(x)), tern_optim_format(x)))
             : NULL;
    if (!mean) {
        tern_free(copy);
        return tern_last_status();
    }
    averages[self->n++] = (average){tern_keep(x), mean, copy, is_buffer};
    return TERN_OK;
}

static tern_status add_parameter(const char *path, tern_tensor *x, void *user)
{
    return add(user, path, x, false);
}

static tern_status add_buffer(const char *path, tern_tensor *x, void *user)
{
    return add(user, path, x, true);
}

tern_averaged_model *tern_swa_averaged_model(tern_module *module,
                                             const tern_averaged_model_options *options)
{
    tern_averaged_model_options o = tern_read_averaged_model(options);
    if (!module) {
        tern_fail_argument_null("tern_swa_averaged_model", "module");
        return NULL;
    }
    if (!(o.decay >= 0 && o.decay <= 1))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_swa_averaged_model: Invalid decay value %s provided. Please provide a "
            "value in [0,1] range.",
            TERN_NUMBER_TEXT(o.decay));
    tern_averaged_model *self = tern_alloc(sizeof *self);
    if (!self)
        return NULL;
    self->options = o;
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            status = tern_nn_each_parameter(module, add_parameter, self);
            if (status == TERN_OK)
                status = tern_nn_each_buffer(module, add_buffer, self);
        }
    if (status == TERN_OK)
        return self;
    tern_swa_free(self);
    return NULL;
}

void tern_swa_free(tern_averaged_model *self)
{
    if (!self)
        return;
    for (int i = 0; i < self->n; i++) {
        tern_release(self->averages[i].x);
        tern_release(self->averages[i].mean);
        tern_free(self->averages[i].path);
    }
    tern_free(self->averages);
    tern_free(self);
}

/* ---- updates ----------------------------------------------------------------------------- */

/* Returns whether a is averaged: floating point, and a buffer only if use_buffers is set. */
static bool is_averaged(const tern_averaged_model *self, const average *a)
{
    return tern_dtype_is_floating_point(tern_dtype_of(a->x)) &&
           (!a->is_buffer || self->options.use_buffers);
}

/* Returns whether one launch can take both: same device and dtype. */
static bool share_launch(const average *a, const average *b)
{
    return tern_device(a->x) == tern_device(b->x) && tern_dtype_of(a->x) == tern_dtype_of(b->x);
}

/* Returns x as the kernel's column: contiguous, half precision as float32. */
static tern_tensor *column_of(tern_tensor *x, const average *a)
{
    return tern_optim_in_format(tern_dtype_of(x) == TERN_F64 ? x : tern_to_dtype(x, TERN_F32),
                                tern_optim_format(a->mean));
}

/* The launch for the tensors of one device and dtype. */
typedef struct batch {
    tern_foreach *table;
    tern_foreach_call call;
    tern_foreach_ready ready;
} batch;

/* The batches of an update, and memory for their columns. */
typedef struct plan {
    batch *batches;
    int n, used;
    tern_tensor **means, **xs, **targets;
    bool *done;
} plan;

/* Prepares mean += (x - mean) weight in one launch, for all tensors of the device and dtype of
 * number `first`. Half precision means are updated in float32 copies. */
static tern_status prepare_batch(const tern_averaged_model *self, int first, plan *p, double weight)
{
    static const tern_foreach_kernel kernel = TERN_FOREACH_KERNEL("foreach", "average");
    tern_tensor **means = p->means + p->used, **xs = p->xs + p->used;
    batch *b = &p->batches[p->n++];
    int n = 0;
    for (int i = first; i < self->n; i++) {
        const average *a = &self->averages[i];
        if (p->done[i] || !is_averaged(self, a) || !share_launch(a, &self->averages[first]))
            continue;
        p->done[i] = true;
        p->targets[p->used + n] = a->mean;
        means[n] = column_of(a->mean, a);
        xs[n] = column_of(tern_detach(a->x), a);
        if (!means[n] || !xs[n])
            return tern_last_status();
        n++;
    }
    tern_tensor *factor = tern_full(TERN_SHAPE(1), tern_scalar_real(weight),
                                    tern_dtype_of(means[0]), tern_device(means[0]));
    b->table = factor ? tern_foreach_new(means, n) : NULL;
    b->call = (tern_foreach_call){.kernel = &kernel,
                                  .function = "tern_swa_update",
                                  .column = {means, xs},
                                  .target = p->targets + p->used,
                                  .shared = {factor},
                                  .writes = true};
    p->used += n;
    return b->table ? tern_foreach_prepare(b->table, &b->call, &b->ready) : tern_last_status();
}

/* Moves the mean to the device and dtype of its parameter, which a call of tern_nn_to may have
 * changed. */
static tern_status move_mean(average *a)
{
    if (tern_device(a->mean) == tern_device(a->x) && tern_dtype_of(a->mean) == tern_dtype_of(a->x))
        return TERN_OK;
    tern_tensor *moved =
        tern_keep(tern_to_dtype(tern_to(a->mean, tern_device(a->x)), tern_dtype_of(a->x)));
    if (!moved)
        return tern_last_status();
    tern_release(a->mean);
    a->mean = moved;
    return TERN_OK;
}

/* Makes one update: copies buffers that are not averaged, then launches all batches, or none after
 * an error. */
static tern_status update(tern_averaged_model *self, plan *p)
{
    double n = (double)self->updates;
    double weight = self->options.equal ? 1 / (n + 1) : 1 - self->options.decay;
    if (self->updates == 0)
        weight = 1; /* the first average is the parameters themselves */
    for (int i = 0; i < self->n; i++) {
        average *a = &self->averages[i];
        TERN_TRY(move_mean(a));
        if (!is_averaged(self, a) && !tern_copy_(a->mean, tern_detach(a->x)))
            return tern_last_status();
    }
    for (int i = 0; i < self->n; i++)
        if (!p->done[i] && is_averaged(self, &self->averages[i]))
            TERN_TRY(prepare_batch(self, i, p, weight));
    for (int k = 0; k < p->n; k++)
        TERN_TRY(tern_foreach_run(p->batches[k].table, &p->batches[k].call, &p->batches[k].ready));
    self->updates++;
    return TERN_OK;
}

static tern_status make_plan(plan *p, size_t n)
{
    *p = (plan){.batches = tern_alloc(sizeof *p->batches * n),
                .means = tern_alloc(sizeof *p->means * 3 * n),
                .done = tern_alloc(sizeof *p->done * n)};
    if (!p->batches || !p->means || !p->done)
        return TERN_ERR_MEMORY;
    p->xs = p->means + n;
    p->targets = p->xs + n;
    return TERN_OK;
}

static void free_plan(plan *p)
{
    for (int k = 0; k < p->n; k++)
        tern_foreach_free(p->batches[k].table);
    tern_free(p->batches);
    tern_free(p->means);
    tern_free(p->done);
}

tern_status tern_swa_update(tern_averaged_model *self)
{
    if (!self)
        return tern_fail_argument_null("tern_swa_update", "ema");
    TERN_TRY(tern_last_status());
    plan p;
    tern_status status = make_plan(&p, (size_t)self->n + 1);
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD
                status = update(self, &p);
    free_plan(&p);
    return status;
}

/* Exchanges x and its mean, to evaluate with the averages and train on with the parameters. */
static tern_status swap(average *a)
{
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = tern_clone(tern_detach(a->x));
            if (!x || !tern_copy_(a->x, a->mean) || !tern_copy_(a->mean, x))
                status = tern_last_status();
        }
    return status;
}

tern_status tern_swa_swap(tern_averaged_model *self)
{
    if (!self)
        return tern_fail_argument_null("tern_swa_swap", "ema");
    for (int i = 0; i < self->n; i++)
        if (is_averaged(self, &self->averages[i])) {
            TERN_TRY(move_mean(&self->averages[i]));
            TERN_TRY(swap(&self->averages[i]));
        }
    return TERN_OK;
}

tern_tensor *tern_swa_average(const tern_averaged_model *self, const tern_tensor *x)
{
    for (int i = 0; self && i < self->n; i++)
        if (self->averages[i].x == x)
            return self->averages[i].mean;
    return tern_fail_null(TERN_ERR_ARGUMENT,
                          "tern_swa_average: not a parameter or buffer of the module");
}

/* ---- state ------------------------------------------------------------------------------- */

tern_tensor *tern_swa_parameter(const tern_averaged_model *self, int i)
{
    return self && i >= 0 && i < self->n ? self->averages[i].x : NULL;
}

static tern_status collect(const tern_averaged_model *self, tern_state_dict *dict)
{
    tern_tensor *n = tern_tensor_scalar(tern_scalar_int(self->updates), TERN_I64, "cpu");
    if (!n)
        return tern_last_status();
    TERN_TRY(tern_state_dict_set(dict, "n_averaged", n));
    for (int i = 0; i < self->n; i++) {
        tern_text path = {0};
        tern_text_add(&path, "module.%s", self->averages[i].path);
        tern_status status = path.failed
                                 ? TERN_ERR_MEMORY
                                 : tern_state_dict_set(dict, path.data, self->averages[i].mean);
        tern_text_free(&path);
        TERN_TRY(status);
    }
    return TERN_OK;
}

tern_state_dict *tern_swa_state_dict(const tern_averaged_model *self)
{
    if (!self) {
        tern_fail_argument_null("tern_swa_state_dict", "ema");
        return NULL;
    }
    tern_state_dict *dict = tern_state_dict_new();
    tern_status status = dict ? TERN_OK : TERN_ERR_MEMORY;
    if (dict)
        TERN_SCOPE
            status = collect(self, dict);
    if (status == TERN_OK)
        return dict;
    tern_state_dict_free(dict);
    return NULL;
}

/* Loads all averages from dict, which must have exactly the names of `own`. */
static tern_status load(tern_averaged_model *self, const tern_state_dict *dict,
                        const tern_state_dict *own)
{
    const uint64_t failures = tern_failures();
    for (int i = 0; i < tern_state_dict_count(own); i++) {
        const char *key = tern_state_dict_key_at(own, i);
        const tern_tensor *x = tern_state_dict_get(dict, key);
        if (!x || !tern_same_shape(x, tern_state_dict_at(own, i)))
            return tern_fail(TERN_ERR_STATE,
                             "tern_swa_load_state_dict: \"%s\" is missing, or has another shape",
                             key);
    }
    if (tern_state_dict_count(dict) != tern_state_dict_count(own))
        return tern_fail(TERN_ERR_STATE,
                         "tern_swa_load_state_dict: there are %d names, %d are expected",
                         tern_state_dict_count(dict), tern_state_dict_count(own));
    int64_t updates = tern_item_int(tern_state_dict_get(dict, "n_averaged"));
    TERN_TRY(tern_failed_since(failures));
    for (int i = 0; i < self->n; i++) /* own has the order of averages, after n_averaged */
        tern_copy_(self->averages[i].mean,
                   tern_state_dict_get(dict, tern_state_dict_key_at(own, i + 1)));
    TERN_TRY(tern_failed_since(failures));
    self->updates = updates;
    return TERN_OK;
}

tern_status tern_swa_load_state_dict(tern_averaged_model *self, const tern_state_dict *dict)
{
    if (!self || !dict)
        return tern_fail_argument_null("tern_swa_load_state_dict", self ? "dict" : "ema");
    tern_state_dict *own = tern_swa_state_dict(self);
    tern_status status = own ? TERN_OK : tern_last_status();
    if (own)
        TERN_SCOPE
            TERN_NO_GRAD
                status = load(self, dict, own);
    tern_state_dict_free(own);
    return status;
}
