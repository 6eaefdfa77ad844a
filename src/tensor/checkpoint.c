/* checkpoint.c -- tern_checkpoint: recomputes in backward what a function computed in forward,
 * instead of saving it.
 *
 * In the first run, nodes store a number in place of each saved tensor, in order. When the backward
 * pass reaches one of these nodes, the frame runs the function again. The nodes of the second run
 * pass the tensors that they would save to the frame, in the same order, and are then freed. The
 * inputs of a checkpoint inside another one get numbers of the outer frame in the same way. */
#include "base/callback.h"
#include "tensor/frame.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>

enum { MOST_DEVICES = 64 };

/* ---- the second run ---------------------------------------------------------------------- */

static tern_status nothing(tern_call *call)
{
    (void)call;
    return TERN_OK;
}

/* The operation of an input's node in the second run. No backward pass reaches it. */
static const tern_op input_op = {.name = "checkpoint_input", .infer = nothing};

/* Returns an input for the second run, which is a leaf or requires a gradient as before. */
static tern_tensor *input_again(const tern_frame_input *h, tern_tensor *x)
{
    if (h->is_leaf && h->requires_grad)
        return x;
    tern_tensor *again = tern_scoped(tern_tensor_detached(x));
    if (!again || !h->requires_grad)
        return again;
    tern_node *node = tern_node_new(&input_op, x->storage->place, 0, 1, NULL, 0);
    if (!node)
        return NULL;
    node->output[0] = (tern_node_output){.dtype = x->dtype, .differentiable = true};
    tern_status status = tern_node_attach(node, 0, again);
    tern_node_release(node);
    return status == TERN_OK ? again : NULL;
}

static tern_status run_again(tern_frame *f);

/* Sets *out to the frame's tensor i, owned by the caller; runs the function again if needed. */
static tern_status hand_out(tern_frame *f, int64_t i, tern_saved *out)
{
    if (!f->done)
        TERN_TRY(run_again(f));
    *out = f->kept[i];
    f->kept[i].tensor = NULL;
    return TERN_OK;
}

/* Sets `in` to the inputs, some of the outer frame; the open scope owns them. */
static tern_status fetch_inputs(tern_frame *f, tern_tensor **in)
{
    for (int i = 0; i < f->n; i++) {
        tern_frame_input *h = &f->in[i];
        in[i] = NULL;
        if (h->number >= 0) {
            tern_saved saved;
            TERN_TRY(hand_out(f->outer, h->number, &saved));
            h->tensor = saved.tensor;
            h->version = saved.version;
            h->number = -1;
        }
        if (!h->tensor)
            continue;
        if (tern_tensor_version(h->tensor) != h->version)
            return tern_fail(TERN_ERR_STATE,
                             "tern_checkpoint: input %d [%s %s] has been modified by an inplace "
                             "operation since: it is at version %lld; expected version %lld "
                             "instead",
                             i, tern_dtype_name(h->tensor->dtype), TERN_TENSOR_TEXT(h->tensor),
                             (long long)tern_tensor_version(h->tensor), (long long)h->version);
        in[i] = input_again(h, h->tensor);
        if (!in[i])
            return tern_last_status();
    }
    return TERN_OK;
}

/* Returns whether random numbers were drawn after `since`. */
static bool has_drawn(const tern_rng_note *since, int n)
{
    tern_rng_note now[MOST_DEVICES];
    bool drawn = false;
    for (int i = n ? tern_rng_note_all(now, n) : 0; i-- > 0;)
        drawn |= now[i].place == since[i].place && now[i].state.offset != since[i].state.offset;
    return drawn;
}

static tern_status run_with(tern_frame *f, tern_tensor *const *in)
{
    tern_tensor *out[f->k + 1];
    for (int i = 0; i < f->k; i++)
        out[i] = NULL;
    tern_thread_mode outer = tern_thread_enter();
    tern_autocast_kinds autocast = tern_thread.autocast;
    tern_rng_note now[MOST_DEVICES], other[MOST_DEVICES];
    int n_now = f->preserve_rng ? tern_rng_note_all(now, MOST_DEVICES) : 0;
    int n_other = tern_rng_put_back(f->rng, f->n_rng) ? 0 : tern_rng_note_all(other, MOST_DEVICES);
    tern_thread.mode.no_grad = false;
    tern_thread.mode.frame = f;
    tern_thread.mode.cast = f->cast;
    tern_thread.autocast = f->autocast;
    f->running = f->again = true;
    const tern_callback before = tern_callback_begin();
    tern_thread.running.backward = NULL;
    tern_status status = f->call(f->data, in, f->n, out, f->k);
    if (status == TERN_OK)
        status = tern_failed_since(before.failures);
    status = TERN_CALLBACK_END(&before, status,
                               "tern_checkpoint: the function failed when it ran again");
    f->running = f->again = false;
    tern_thread.autocast = autocast;
    tern_thread_leave(&outer);
    if (status == TERN_OK && has_drawn(other, n_other))
        status =
            tern_fail(TERN_ERR_STATE,
                      "tern_checkpoint: random numbers of a function that ran first in another "
                      "recording, or in none, can't be had again: record both, or set "
                      "no_preserve_rng_state");
    tern_rng_put_back(now, n_now);
    return status;
}

static tern_status run_again(tern_frame *f)
{
    tern_status status = TERN_OK;
    if (f->running)
        return tern_fail(TERN_ERR_STATE, "tern_checkpoint: the function asks for gradients of what "
                                         "it computes, which is not there while it runs");
    TERN_SCOPE {
        tern_tensor *in[f->n + 1];
        status = fetch_inputs(f, in);
        if (status == TERN_OK)
            status = run_with(f, in);
    }
    if (status == TERN_OK && f->n_kept != f->let_go)
        status = tern_fail(
            TERN_ERR_STATE,
            "tern_checkpoint: A different number of tensors was saved during the original forward "
            "and recomputation. Number of tensors saved during forward: %lld. Number of tensors "
            "saved during recomputation: %lld",
            (long long)f->let_go, (long long)f->n_kept);
    if (status != TERN_OK) {
        tern_frame_forget_kept(f);
        return status;
    }
    f->done = true;
    tern_frame_forget_inputs(f);
    return TERN_OK;
}

/* Attaches the node of a saved input to x, so that second derivatives pass through it. */
static tern_status connect(const tern_node *node, int slot, tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    if (slot >= node->n_in)
        return TERN_OK;
    if (!tern_shape_equal(&shape, &node->in_shape[slot]))
        return tern_fail(TERN_ERR_STATE,
                         "tern_checkpoint: Recomputed values have different metadata than during "
                         "the forward pass: input %d of %s has shape %s, it had %s",
                         slot, node->op->name, TERN_SHAPE_TEXT(&shape),
                         TERN_SHAPE_TEXT(&node->in_shape[slot]));
    const tern_edge *edge = &node->edge[slot];
    return edge->node ? tern_node_attach(edge->node, edge->output, x) : TERN_OK;
}

tern_status tern_frame_unpack(tern_node *node)
{
    for (int i = 0; i < node->n_in + node->n_out; i++) {
        tern_saved *s = &node->saved[i];
        if (s->tensor || s->version >= 0)
            continue;
        TERN_TRY(hand_out(node->frame, -1 - s->version, s));
        if (!s->tensor)
            return tern_fail(TERN_ERR_STATE, "tern_checkpoint: %s was asked for twice",
                             node->op->name);
        TERN_TRY(connect(node, i, s->tensor));
    }
    tern_frame_release(node->frame);
    node->frame = NULL;
    return TERN_OK;
}

/* ---- the first run ----------------------------------------------------------------------- */

static tern_status hold(tern_frame *f, int i, tern_tensor *x)
{
    tern_frame_input *h = &f->in[i];
    *h = (tern_frame_input){.number = -1};
    if (!x)
        return TERN_OK;
    h->requires_grad = tern_requires_grad(x);
    h->is_leaf = tern_is_leaf(x);
    h->version = tern_tensor_version(x);
    if (h->requires_grad && h->is_leaf) {
        h->tensor = tern_keep(x);
        return TERN_OK;
    }
    if (f->outer) {
        h->number = tern_frame_number(f->outer, tern_keep(x));
        return h->number < 0 ? TERN_ERR_MEMORY : TERN_OK;
    }
    h->tensor = tern_tensor_detached(x);
    return h->tensor ? TERN_OK : TERN_ERR_MEMORY;
}

static tern_status note_generators(tern_frame *f, const tern_checkpoint_options *o)
{
    tern_rng_note now[MOST_DEVICES];
    f->preserve_rng = !o->no_preserve_rng_state;
    f->n_rng = f->preserve_rng ? tern_rng_note_all(now, MOST_DEVICES) : 0;
    f->rng = tern_alloc(sizeof *f->rng * (size_t)(f->n_rng + 1));
    for (int i = 0; f->rng && i < f->n_rng; i++)
        f->rng[i] = now[i];
    return f->rng ? TERN_OK : TERN_ERR_MEMORY;
}

static tern_frame *new_frame(tern_checkpoint_function function, void *data, tern_tensor *const *in,
                             int n, int k, const tern_checkpoint_options *o)
{
    tern_frame *f = tern_alloc(sizeof *f);
    tern_frame_input *inputs = f ? tern_alloc(sizeof *inputs * (size_t)(n + 1)) : NULL;
    if (!inputs) {
        tern_free(f);
        if (o->free_data)
            o->free_data(data);
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->call = function;
    f->data = data;
    f->free_data = o->free_data;
    f->in = inputs;
    f->k = k;
    f->cast = tern_thread.mode.cast;
    f->autocast = tern_thread.autocast;
    if ((f->outer = tern_thread.mode.frame))
        atomic_fetch_add_explicit(&f->outer->refs, 1, memory_order_relaxed);
    tern_status status = note_generators(f, o);
    for (; status == TERN_OK && f->n < n; f->n++)
        status = hold(f, f->n, in[f->n]);
    if (status == TERN_OK)
        return f;
    tern_frame_release(f);
    return NULL;
}

static tern_status check_results(tern_tensor *const *out, int k)
{
    for (int i = 0; i < k; i++)
        if (!out[i])
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_checkpoint: the function gave no tensor (output %d of %d is "
                             "NULL)",
                             i, k);
    return TERN_OK;
}

static tern_status run_first(tern_frame *f, tern_tensor *const *in, tern_tensor **out)
{
    const tern_callback before = tern_callback_begin();
    tern_status status = TERN_OK;
    f->running = true;
    TERN_SCOPE {
        tern_thread.mode.frame = f;
        status = f->call(f->data, in, f->n, out, f->k);
        tern_thread.mode.frame = f->outer;
        if (status == TERN_OK)
            status = tern_failed_since(before.failures);
        if (status == TERN_OK)
            status = check_results(out, f->k);
        for (int i = 0; status == TERN_OK && i < f->k; i++)
            tern_keep(out[i]); /* a reference that outlives this scope */
    }
    f->running = false;
    for (int i = 0; i < f->k; i++)
        out[i] = status == TERN_OK ? tern_scoped(out[i]) : NULL;
    status = TERN_CALLBACK_END(&before, status, "tern_checkpoint: the function failed");
    return status == TERN_OK ? tern_failed_since(before.failures) : status;
}

tern_status tern_checkpoint(tern_checkpoint_function function, void *data, tern_tensor *const *in,
                            int n, tern_tensor **out, int k, const tern_checkpoint_options *options)
{
    static const tern_checkpoint_options none;
    const tern_checkpoint_options *o = options ? options : &none;
    if (!function || n < 0 || k < 0 || (!in && n > 0) || (!out && k > 0)) {
        if (o->free_data)
            o->free_data(data); /* free_data is called after every failure */
        return tern_fail_argument_null("tern_checkpoint", !function      ? "function"
                                                          : !in && n > 0 ? "in"
                                                                         : "out");
    }
    for (int i = 0; i < k; i++)
        out[i] = NULL;
    if (!tern_is_grad_enabled()) {
        tern_status status = function(data, in, n, out, k);
        if (o->free_data)
            o->free_data(data);
        return status == TERN_OK ? check_results(out, k) : status;
    }
    tern_frame *f = new_frame(function, data, in, n, k, o);
    if (!f)
        return tern_last_status();
    tern_status status = run_first(f, in, out);
    tern_frame_release(f);
    return status == TERN_OK ? TERN_OK : tern_fail(status, "tern_checkpoint: the function failed");
}
