/* step.c -- tern_step: a function of the program that is run, recorded and replayed. */
#include "base/callback.h"
#include "base/debug.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/warning.h"
#include "nn/module.h"
#include "tensor/scope.h"
#include "tensor/storage.h"
#include <string.h>
#include <tern/step.h>

enum { MOST_TENSORS = 64 };

/* The guard of a recording: everything that the function's behaviour depends on. Guards are
 * compared as bytes, so their padding is zero. */
typedef struct guard {
    int n, k;
    struct {
        bool there;
        bool channels_last;
        tern_dtype dtype;
        int ndim;
        int64_t dims[TERN_MAX_DIMS];
        const char *device; /* an interned string */
    } in[MOST_TENSORS];
    bool grad_enabled;
    const char *default_device;
    tern_dtype autocast[TERN_AUTOCAST_KINDS];
    uint64_t modes; /* hash of the training modes of the module and all below */
    int64_t variant;
} guard;

/* The function's recording for one guard. */
typedef struct recording {
    struct recording *next;
    guard guard;
    int ran;
    char reason[512];  /* why the function can't be recorded, or "" if no reason is known */
    tern_graph *graph; /* recorded graph, or NULL */
    tern_tensor *in[MOST_TENSORS], *out[MOST_TENSORS];
} recording;

struct tern_step {
    tern_step_function function;
    void *user;
    tern_step_options options;
    int depth; /* calls of the function under way, which use the recordings */
    recording *first;
    tern_step_stats stats;
};

/* ---- creation and freeing -------------------------------------------------------------------- */

tern_step *tern_step_new(tern_step_function function, void *user, const tern_step_options *options)
{
    const tern_step_options o = tern_read_step(options);
    if (!function) {
        tern_fail_argument_null("tern_step_new", "function");
        return NULL;
    }
    if (o.warmup < 0 || o.max_recordings < 0) {
        tern_fail(TERN_ERR_ARGUMENT, "tern_step_new: %s must not be negative, got %d",
                  o.warmup < 0 ? "warmup" : "max_recordings",
                  o.warmup < 0 ? o.warmup : o.max_recordings);
        return NULL;
    }
    if (o.device && !tern_device_canonical(o.device))
        return NULL;
    tern_step *step = tern_alloc(sizeof *step);
    if (step)
        *step = (tern_step){.function = function, .user = user, .options = o};
    return step;
}

static void end_graph(recording *r)
{
    for (int i = 0; i < MOST_TENSORS; i++) {
        tern_release(r->in[i]);
        tern_release(r->out[i]);
        r->in[i] = r->out[i] = NULL;
    }
    tern_graph_free(r->graph);
    r->graph = NULL;
}

static void clear(tern_step *step)
{
    while (step->first) {
        recording *r = step->first;
        step->first = r->next;
        end_graph(r);
        tern_free(r);
    }
    step->stats.reason = NULL;
}

tern_status tern_step_reset(tern_step *step)
{
    if (!step)
        return tern_fail_argument_null("tern_step_reset", "step");
    if (step->depth)
        return tern_fail(TERN_ERR_STATE,
                         "tern_step_reset: the step's function is running; expected "
                         "a call after tern_step_run returns");
    clear(step);
    return TERN_OK;
}

void tern_step_free(tern_step *step)
{
    if (!step)
        return;
    clear(step);
    tern_free(step);
}

tern_step_stats tern_step_get_stats(const tern_step *step)
{
    tern_step_stats stats = {0};
    if (!step) {
        tern_fail_argument_null("tern_step_get_stats", "step");
        return stats;
    }
    stats = step->stats;
    for (const recording *r = step->first; r; r = r->next)
        stats.recordings += r->graph != NULL;
    return stats;
}

/* ---- guards ------------------------------------------------------------------------------ */

static tern_status note_mode(tern_module *m, void *user)
{
    uint64_t *hash = user;
    *hash = *hash * UINT64_C(0x9e3779b97f4a7c15) + m->training + 1;
    return TERN_OK;
}

static bool is_channels_last(const tern_tensor *x)
{
    return !tern_is_contiguous(x) && (tern_is_contiguous_format(x, TERN_CHANNELS_LAST) ||
                                      tern_is_contiguous_format(x, TERN_CHANNELS_LAST_3D));
}

static tern_status fill_guard(const tern_step *step, tern_tensor *const *in, int n, int k, guard *g)
{
    memset(g, 0, sizeof *g);
    g->n = n;
    g->k = k;
    for (int i = 0; i < n; i++) {
        if (!in[i])
            continue;
        const tern_shape shape = tern_shape_of(in[i]);
        g->in[i].there = true;
        g->in[i].channels_last = is_channels_last(in[i]);
        g->in[i].dtype = tern_dtype_of(in[i]);
        g->in[i].device = tern_device(in[i]);
        g->in[i].ndim = shape.ndim;
        for (int d = 0; d < shape.ndim; d++)
            g->in[i].dims[d] = shape.dims[d];
    }
    g->grad_enabled = tern_is_grad_enabled();
    g->default_device = tern_default_device();
    for (int i = 0; i < TERN_AUTOCAST_KINDS; i++)
        g->autocast[i] = tern_thread.autocast.kind[i].dtype;
    g->variant = step->options.variant ? *step->options.variant : 0;
    return step->options.module ? tern_nn_apply(step->options.module, note_mode, &g->modes)
                                : TERN_OK;
}

static recording *find(const tern_step *step, const guard *g)
{
    recording *r = step->first;
    while (r && memcmp(&r->guard, g, sizeof *g) != 0)
        r = r->next;
    return r;
}

/* Returns why the step can't be recorded or replayed now, or NULL if it can. */
static const char *obstacle(const tern_step *step, tern_tensor *const *in, int n)
{
    if (step->options.eager)
        return "options.eager is set";
    if (tern_is_capturing())
        return "another recording goes on";
    if (tern_debugging || tern_is_anomaly_enabled())
        return "each operation is checked (debug mode or anomaly detection)";
    for (int i = 0; i < n; i++)
        if (in[i] && tern_requires_grad(in[i]))
            return "an input requires a gradient";
    return NULL;
}

/* ---- running ----------------------------------------------------------------------------- */

static tern_status check_results(tern_tensor **out, int k, uint64_t failures)
{
    for (int i = 0; i < k; i++)
        if (!out[i])
            return tern_failed_since(failures) != TERN_OK
                       ? tern_failed_since(failures)
                       : tern_fail(TERN_ERR_ARGUMENT,
                                   "tern_step_run: the function gave no tensor (output %d of %d is "
                                   "NULL)",
                                   i, k);
    return TERN_OK;
}

/* Calls the function on these inputs. The caller owns the results, which have no history; they are
 * NULL after an error. */
static tern_status call(tern_step *step, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    for (int i = 0; i < k; i++)
        out[i] = NULL;
    tern_status status = TERN_OK;
    TERN_SCOPE {
        const tern_callback before = tern_callback_begin();
        step->depth++;
        status = step->function(step->user, in, n, out, k);
        step->depth--;
        if (status == TERN_OK)
            status = tern_failed_since(before.failures);
        if (status == TERN_OK)
            status = check_results(out, k, before.failures);
        status = TERN_CALLBACK_END(&before, status, "tern_step_run: the function failed");
        for (int i = 0; i < k; i++) {
            out[i] = status == TERN_OK ? tern_keep(tern_detach(out[i])) : NULL;
            if (status == TERN_OK && !out[i])
                status = tern_last_status();
        }
        for (int i = 0; i < k && status != TERN_OK; i++) {
            tern_release(out[i]);
            out[i] = NULL;
        }
    }
    return status;
}

/* Returns a copy in the memory format of x, which tern_clone does not keep. */
static tern_tensor *copy_of(tern_tensor *x)
{
    if (!x || !is_channels_last(x))
        return tern_clone(x);
    return tern_movedim(tern_clone(tern_movedim(x, TERN_DIMS(1), TERN_DIMS(-1))), TERN_DIMS(-1),
                        TERN_DIMS(1));
}

static tern_status give(tern_tensor *const *kept, tern_tensor **out, int k, bool copies)
{
    for (int i = 0; i < k; i++)
        if (!(out[i] = copies ? copy_of(kept[i]) : tern_scoped(tern_keep(kept[i]))))
            return tern_last_status();
    return TERN_OK;
}

static tern_status run(tern_step *step, recording *r, tern_tensor *const *in, int n,
                       tern_tensor **out, int k)
{
    TERN_TRY(call(step, in, n, out, k));
    step->stats.ran++;
    if (r)
        r->ran++;
    tern_status status = TERN_OK;
    for (int i = 0; i < k; i++)
        if (!tern_scoped(out[i]))
            status = tern_last_status();
    return status;
}

/* ---- recording --------------------------------------------------------------------------- */

static tern_status note_device(const char *path, tern_tensor *x, void *user)
{
    const char **device = user;
    (void)path;
    *device = *device ? *device : tern_device(x);
    return TERN_OK;
}

static const char *device_of(const tern_step *step, tern_tensor *const *in, int n)
{
    const char *device = step->options.device;
    if (!device && step->options.module)
        tern_nn_each_parameter(step->options.module, note_device, &device);
    for (int i = 0; i < n && !device; i++)
        device = in[i] ? tern_device(in[i]) : NULL;
    return tern_device_canonical(device ? device : tern_default_device());
}

/* Makes the tensors from which the recording reads the inputs, on its device. */
static tern_status make_inputs(recording *r, tern_tensor *const *in, int n, const char *device)
{
    TERN_NO_GRAD {
        for (int i = 0; i < n; i++)
            if (in[i] && !(r->in[i] = tern_keep(copy_of(tern_to(in[i], device)))))
                return tern_last_status();
    }
    return TERN_OK;
}

/* Records the function on the recording's own inputs. */
static tern_status capture(tern_step *step, recording *r, int n, int k, const char *device)
{
    int64_t versions[MOST_TENSORS];
    for (int i = 0; i < n; i++)
        versions[i] = r->in[i] ? tern_version(r->in[i]) : 0;
    TERN_TRY(tern_graph_capture_begin(r->graph));
    tern_status status = call(step, r->in, n, r->out, k);
    const bool elsewhere = tern_storage_ran_elsewhere();
    const tern_status ended = tern_graph_capture_end(r->graph);
    status = status == TERN_OK ? ended : status;
    if (status == TERN_OK && elsewhere)
        status = tern_fail(TERN_ERR_UNSUPPORTED,
                           "tern_step_run: the function computes on other devices than %s, which "
                           "is not recorded",
                           device);
    for (int i = 0; i < n && status == TERN_OK; i++)
        if (r->in[i] && tern_version(r->in[i]) != versions[i])
            status = tern_fail(TERN_ERR_UNSUPPORTED,
                               "tern_step_run: the function writes to input %d, and a recording "
                               "reads a copy of it",
                               i);
    return status;
}

/* The parameters without a gradient before an attempt to record, which may give them one. */
typedef struct gradients {
    tern_tensor **x; /* the parameters, by references */
    int64_t n;
} gradients;

static tern_status note_gradients(const tern_step *step, gradients *without)
{
    tern_module *m = step->options.module;
    const int64_t n = m ? tern_nn_parameters(m, NULL, 0) : 0;
    if (n <= 0)
        return TERN_OK;
    tern_tensor **all = tern_alloc(sizeof *all * (size_t)n);
    if (!all)
        return tern_last_status();
    tern_nn_parameters(m, all, n);
    for (int64_t i = 0; i < n; i++)
        if (!tern_grad(all[i]))
            all[without->n++] = tern_keep(all[i]);
    without->x = all;
    return TERN_OK;
}

static void end_gradients(gradients *without, bool clears)
{
    for (int64_t i = 0; i < without->n; i++) {
        if (clears)
            tern_set_grad(without->x[i], NULL);
        tern_release(without->x[i]);
    }
    tern_free(without->x);
}

static tern_status try_to_record(tern_step *step, recording *r, tern_tensor *const *in, int n,
                                 int k)
{
    tern_status status;
    TERN_SCOPE {
        const char *device = device_of(step, in, n);
        r->graph = device ? tern_graph_new(device) : NULL;
        status = r->graph ? make_inputs(r, in, n, device) : tern_last_status();
        if (status == TERN_OK)
            status = capture(step, r, n, k, device);
    }
    return status;
}

/* Records the function. Returns whether r has a graph now. An error is only a warning: nothing was
 * run, and the function runs in each call. */
static bool record(tern_step *step, recording *r, tern_tensor *const *in, int n, int k)
{
    tern_error_hold hold;
    gradients without = {NULL, 0};
    if (tern_error_hold_begin(&hold) != TERN_OK) {
        step->stats.reason = "there is no memory to record it; the next call tries again";
        return false;
    }
    tern_status status = note_gradients(step, &without);
    if (status == TERN_OK)
        status = try_to_record(step, r, in, n, k);
    end_gradients(&without, status != TERN_OK);
    tern_error_hold_end(&hold, r->reason, sizeof r->reason);
    if (status == TERN_OK)
        return true;
    end_graph(r);
    tern_warn("step", "tern_step_run", "the function can't be recorded and runs in every call: %s",
              r->reason);
    return false;
}

static tern_status replay(tern_step *step, recording *r, tern_tensor *const *in, int n,
                          tern_tensor **out, int k)
{
    TERN_NO_GRAD {
        for (int i = 0; i < n; i++)
            if (in[i] && !tern_copy_(r->in[i], in[i]))
                return tern_last_status();
    }
    TERN_TRY(tern_graph_replay(r->graph));
    step->stats.replayed++;
    step->stats.launches = tern_graph_size(r->graph);
    TERN_NO_GRAD
        return give(r->out, out, k, !step->options.static_results);
    return TERN_OK;
}

/* Moves r to the front of the list, as the most recently used. */
static void move_up(tern_step *step, recording *r)
{
    recording **link = &step->first;
    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    r->next = step->first;
    step->first = r;
}

/* Returns the guard's recording, or a new one without a graph. Returns NULL if the step has
 * max_recordings already, or without memory. */
static recording *recording_of(tern_step *step, const guard *g)
{
    recording *r = find(step, g);
    if (r) {
        move_up(step, r);
        return r;
    }
    int n = 0;
    for (const recording *other = step->first; other; other = other->next)
        n++;
    if (n >= step->options.max_recordings) {
        tern_warn(
            "step", "tern_step_run",
            "there are inputs of more than %d kinds (shapes, types, modes): the function runs "
            "in every call for the others",
            step->options.max_recordings);
        return NULL;
    }
    r = tern_alloc(sizeof *r);
    if (!r)
        return NULL;
    memcpy(&r->guard, g, sizeof *g); /* copied with its padding, since find() compares bytes */
    r->next = step->first;
    step->first = r;
    return r;
}

static tern_status run_step(tern_step *step, tern_tensor *const *in, int n, tern_tensor **out,
                            int k)
{
    guard g;
    const char *why = obstacle(step, in, n);
    step->stats.reason = why;
    if (why)
        return run(step, NULL, in, n, out, k);
    TERN_TRY(fill_guard(step, in, n, k, &g));
    recording *r = recording_of(step, &g);
    if (!r)
        TERN_TRY(tern_last_status());
    if (r && r->ran >= step->options.warmup && !r->reason[0] &&
        (r->graph || record(step, r, in, n, k)))
        return replay(step, r, in, n, out, k);
    if (!r)
        step->stats.reason = "there are more kinds of inputs than max_recordings";
    else if (r->reason[0])
        step->stats.reason = r->reason;
    return run(step, r, in, n, out, k);
}

tern_status tern_step_run(tern_step *step, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    if (!step || (!in && n > 0) || (!out && k > 0))
        return tern_fail_argument_null("tern_step_run", !step          ? "step"
                                                        : !in && n > 0 ? "in"
                                                                       : "out");
    if (n < 0 || k < 0 || n > MOST_TENSORS || k > MOST_TENSORS)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_step_run: n and k must be from 0 to %d, got %d and %d", MOST_TENSORS,
                         n, k);
    for (int i = 0; i < k; i++)
        out[i] = NULL;
    TERN_TRY(tern_last_status());
    const tern_status status = run_step(step, in, n, out, k);
    for (int i = 0; i < k && status != TERN_OK; i++)
        out[i] = NULL;
    return status;
}
