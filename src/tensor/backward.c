/* backward.c -- the backward pass: runs nodes by descending serial number, without recursion. */
#include "base/callback.h"
#include "base/profile.h"
#include "tensor/from_ops.h"
#include "tensor/fuse/pass.h"
#include "tensor/history.h"
#include "tensor/leaf.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>

/* ---- gradients arriving ------------------------------------------------------------------ */

/* Adds a node that has received a gradient to the heap of nodes to run. */
static tern_status queue(tern_backward_pass *w, tern_node *node)
{
    if (w->heap.counts && node->pass == w->number)
        return TERN_OK; /* the node is added when its last gradient has arrived */
    return tern_heap_push(&w->heap, node);
}

static tern_status arrive(tern_backward_pass *w, const tern_edge *edge, tern_tensor *grad)
{
    if (edge->leaf)
        return tern_pass_to_leaf(w, edge->leaf, grad);
    if (!edge->node)
        return TERN_OK;
    tern_node_output *out = &edge->node->output[edge->output];
    TERN_TRY(tern_fuse_settle(edge->node, out));
    TERN_TRY(tern_pass_gather(&out->dout, grad));
    return queue(w, edge->node);
}

/* ---- running one node -------------------------------------------------------------------- */

static tern_status fetch_saved(tern_node *node, bool create)
{
    if (node->frame)
        TERN_TRY(tern_frame_unpack(node));
    TERN_TRY(tern_node_unpack(node, create));
    return tern_node_check_saved(node);
}

/* Recomputes the node's own result if it was not saved and its gradient was not deferred. */
static tern_status fetch_relu(tern_node *node)
{
    tern_saved *s = node->n_out > 0 ? &node->saved[node->n_in] : NULL;
    if (!s || s->tensor || !s->packed || !s->packed->maker)
        return TERN_OK;
    s->tensor = tern_keep(tern_fuse_relu_again(node->edge[0].node));
    s->version = 0;
    return s->tensor ? TERN_OK : tern_last_status();
}

/* The gradients of the node's outputs are complete: calls their hooks, retains the gradients that
 * the program wants to keep, and collects those that tern_autograd_grad asks for. */
static tern_status finish_outputs(tern_backward_pass *w, tern_node *node)
{
    for (int i = 0; i < node->n_out; i++) {
        tern_node_output *out = &node->output[i];
        if (!out->dout)
            continue;
        if (out->hooks || out->retainer || w->n_wanted)
            TERN_TRY(tern_fuse_settle(node, out));
        if (out->hooks)
            TERN_TRY(tern_pass_hooks(w, &out->hooks, &out->dout));
        if (out->retainer && !w->wanted)
            TERN_TRY(tern_pass_retain(w, out->retainer, out->dout));
        for (int k = 0; k < w->n_wanted; k++) {
            const tern_history *h = w->wanted[k]->history;
            if (h && h->node == node && h->output == i)
                TERN_TRY(tern_pass_gather(&w->caught[k], out->dout));
        }
    }
    return TERN_OK;
}

/* If the operation's backward returns no gradient of input i, the gradient is zeros, so that hooks,
 * weight decay and the nodes before this one get a gradient, as in PyTorch. */
static tern_tensor *left_out(const tern_node *node, int i)
{
    const tern_edge *edge = &node->edge[i];
    tern_dtype dtype = edge->leaf ? edge->leaf->dtype : edge->node->output[edge->output].dtype;
    tern_tensor *x =
        tern_scoped(tern_tensor_new(&node->in_shape[i], dtype, node->place, node->op->name));
    return x && tern_zero_elements(x) == TERN_OK ? x : NULL;
}

/* A function of the program may omit a gradient on purpose, and a gradient that was added to an
 * existing one (accumulated) is already in its place. */
static bool may_be_left_out(const tern_node *node, const tern_gradient *g, int i)
{
    return tern_is_function(node->op) || (i == 0 && tern_is_accumulated(g));
}

/* Passes the gradients of the inputs to the nodes and leaves from which the inputs come. */
static tern_status pass_on(tern_backward_pass *w, const tern_node *node, const tern_gradient *g)
{
    tern_tensor **din = g->din;
    for (int i = 0; i < node->n_in; i++) {
        if (!g->needs[i] || (!din[i] && may_be_left_out(node, g, i)))
            continue;
        if (!din[i] && !(din[i] = left_out(node, i)))
            return tern_last_status();
        tern_shape shape;
        tern_read_shape(din[i], &shape);
        if (!tern_shape_equal(&shape, &node->in_shape[i]))
            din[i] = tern_from_ops->sum_to(din[i], &node->in_shape[i]);
        if (!din[i])
            return tern_last_status();
        const tern_edge *edge = tern_fuse_route(node, g, i);
        TERN_TRY(tern_fit_edge(&din[i], edge));
        TERN_TRY(arrive(w, edge, din[i]));
    }
    tern_fuse_routed(node, g);
    return TERN_OK;
}

static tern_status backward_of(tern_backward_pass *w, tern_node *node)
{
    int n_in = node->n_in, n_out = node->n_out;
    tern_tensor *in[n_in + 1], *out[n_out + 1], *dout[n_out + 1], *din[n_in + 1];
    bool needs[n_in + 1];
    for (int i = 0; i < n_in; i++) {
        in[i] = node->saved[i].tensor;
        din[i] = NULL;
        needs[i] = node->edge[i].node || node->edge[i].leaf;
    }
    for (int i = 0; i < n_out; i++) {
        dout[i] = node->output[i].dout;
        out[i] = node->saved[n_in + i].tensor;
        if (!out[i] || !w->create)
            continue;
        /* For second derivatives the output needs its history again. */
        out[i] = tern_scoped(tern_tensor_detached(out[i]));
        if (!out[i])
            return tern_last_status();
        if (node->output[i].differentiable)
            TERN_TRY(tern_node_attach(node, i, out[i]));
    }
    tern_gradient g = {.op = node->op,
                       .attributes = node->attributes,
                       .n_in = n_in,
                       .n_out = n_out,
                       .in = in,
                       .out = out,
                       .dout = dout,
                       .needs = needs,
                       .in_shape = node->in_shape,
                       .din = din,
                       .inner = node->inner,
                       .recorded = w->create};
    tern_fused_gradient fused;
    if (!tern_fuse_begin(w, node, &g, &fused))
        TERN_TRY(node->op->backward(&g));
    tern_fuse_end(&g);
    TERN_TRY(tern_failed_since(w->failures)); /* needed because NULL is also the value of a gradient
                                               * that does not exist */
    if (tern_thread.mode.anomaly.gradients)
        TERN_TRY(tern_anomaly_check_gradients(node, dout, din, needs));
    return pass_on(w, node, &g);
}

static bool is_end(const tern_backward_pass *w, const tern_node *node)
{
    for (int k = 0; w->ends && k < w->n_wanted; k++)
        if (w->wanted[k]->history && w->wanted[k]->history->node == node)
            return true;
    return false;
}

static tern_status run_node(tern_backward_pass *w, tern_node *node)
{
    tern_status status = TERN_OK;
    tern_thread.running.backward = node->inner ? node->inner->op->name : node->op->name;
    tern_thread.running.modules = node->modules;
    int64_t range =
        tern_profiling ? tern_range_begin(TERN_RANGE_BACKWARD, tern_node_name(node), 0) : 0;
    TERN_SCOPE {
        status = fetch_saved(node, w->create);
        if (status == TERN_OK && node->inner)
            status = fetch_saved(node->inner, w->create);
        if (status == TERN_OK)
            status = finish_outputs(w, node);
        bool deferred = false;
        tern_node *next = NULL;
        if (status == TERN_OK)
            status = tern_fuse_defer(w, node, &deferred, &next);
        if (status == TERN_OK && next)
            status = queue(w, next);
        const bool runs = status == TERN_OK && !deferred && !is_end(w, node);
        if (runs)
            status = fetch_relu(node);
        if (runs && status == TERN_OK)
            status = backward_of(w, node);
        tern_node_repack(node);
        if (node->inner)
            tern_node_repack(node->inner);
    }
    tern_range_end(range);
    return status;
}

static void clear_douts(tern_node *node)
{
    for (int i = 0; i < node->n_out; i++) {
        tern_release(node->output[i].dout);
        node->output[i].dout = NULL;
        tern_fused_output_clear(&node->output[i].fused);
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

static void pass_free(tern_backward_pass *w)
{
    while (w->heap.count > 0) { /* after an error */
        tern_node *node = tern_heap_pop(&w->heap);
        clear_douts(node);
        tern_node_release(node);
    }
    tern_free(w->heap.node);
    tern_pass_end(w);
    tern_fuse_free(w);
}

/* A gradient has the dtype of its tensor, so autocast is off. A NaN is reported for the node, not
 * for the operations that its backward calls. */
static tern_status go_on(tern_backward_pass *w)
{
    tern_thread_mode outer __attribute__((cleanup(tern_thread_leave))) = tern_thread_enter();
    tern_thread.mode.no_grad = !w->create;
    tern_thread.mode.cast = NULL;
    tern_thread.mode.anomaly.results = false;
    w->failures = tern_failures();
    const tern_callback before = tern_callback_begin();
    tern_status status = tern_pass_count(w);
    while (w->heap.count > 0 && status == TERN_OK) {
        tern_node *node = tern_heap_pop(&w->heap);
        status = run_node(w, node);
        clear_douts(node);
        if (!w->retain && status == TERN_OK)
            tern_node_free_saved(node);
        if (status == TERN_OK)
            status = tern_pass_settle(w, node);
        tern_node_release(node);
    }
    if (status == TERN_OK)
        status = tern_fuse_run_batched(w);
    tern_callback_end(&before, status);
    return status == TERN_OK ? tern_pass_finish_leaves(w) : status;
}

bool tern_pass_catches(void)
{
    return tern_thread.wants_gradients;
}

static tern_status go(tern_backward_pass *w)
{
    tern_after_backward *ends = NULL, **outer = tern_thread.after_backward;
    const bool outer_wants = tern_thread.wants_gradients;
    tern_thread.after_backward = &ends;
    tern_thread.wants_gradients = w->wanted;
    tern_status status = go_on(w);
    tern_thread.after_backward = outer;
    tern_thread.wants_gradients = outer_wants;
    while (ends) {
        tern_after_backward *end = ends;
        ends = end->next;
        status = end->call(end, status);
    }
    return status;
}

/* Starts the pass at root with its gradient, or with 1 if gradient is NULL. */
static tern_status start(tern_backward_pass *w, tern_tensor *root, tern_tensor *gradient,
                         const char *function)
{
    if (!tern_given(root, function, "root"))
        return tern_last_status();
    if (gradient && !tern_given(gradient, function, "gradient"))
        return TERN_ERR_STATE;
    TERN_TRY(tern_refresh_view(root));
    if (!root->requires_grad)
        return tern_fail(TERN_ERR_STATE,
                         "%s: element 0 of tensors does not require grad and does not have a "
                         "grad_fn",
                         function);
    if (!gradient && root->numel != 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: grad can be implicitly created only for scalar outputs (shape %s)",
                         function, TERN_TENSOR_TEXT(root));
    if (gradient && !tern_same_shape(gradient, root))
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: Mismatch in shape: grad_output[0] has a shape of %s and output[0] has "
            "a shape of %s",
            function, TERN_TENSOR_TEXT(gradient), TERN_TENSOR_TEXT(root));
    if (!gradient && !(gradient = tern_fuse_seed(w, root)))
        return tern_last_status();
    TERN_TRY(tern_fit_gradient(&gradient, root->dtype, root->storage->place));
    tern_edge edge = tern_edge_to(root);
    tern_status status = arrive(w, &edge, gradient);
    tern_node_release(edge.node);
    tern_release(edge.leaf);
    return status;
}

tern_status tern_backward_with(tern_tensor *root, const tern_backward_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_backward_options o = options ? *options : (tern_backward_options){0};
    tern_backward_pass w = {.retain = o.retain_graph || o.create_graph, .create = o.create_graph};
    tern_status status = TERN_OK;
    tern_pass_begin(&w);
    TERN_SCOPE {
        status = start(&w, root, o.gradient, __func__);
    }
    if (status == TERN_OK)
        status = go(&w);
    pass_free(&w);
    return status;
}

tern_status tern_backward(tern_tensor *root)
{
    TERN_NAMED_IN_ERRORS;
    return tern_backward_with(root, NULL);
}

static tern_status grad_of_all(tern_backward_pass *w, tern_tensor *const *outputs, int n_outputs,
                               tern_tensor *const *gradients)
{
    for (int i = 0; i < w->n_wanted; i++) {
        if (!tern_given(w->wanted[i], "tern_autograd_grad", "an input"))
            return tern_last_status();
        TERN_TRY(tern_refresh_view(w->wanted[i]));
        if (!w->wanted[i]->requires_grad)
            return tern_fail(TERN_ERR_STATE,
                             "tern_autograd_grad: One of the differentiated Tensors "
                             "does not require grad");
    }
    tern_status status = TERN_OK;
    TERN_SCOPE {
        for (int i = 0; i < n_outputs && status == TERN_OK; i++)
            status = start(w, outputs[i], gradients ? gradients[i] : NULL, "tern_autograd_grad");
    }
    return status == TERN_OK ? go(w) : status;
}

static tern_status catch (tern_backward_pass *w, tern_tensor *const *outputs, int n_outputs,
                          tern_tensor *const *gradients, bool allow_unused)
{
    for (int i = 0; i < w->n_wanted; i++)
        w->caught[i] = NULL;
    tern_pass_begin(w);
    tern_status status = grad_of_all(w, outputs, n_outputs, gradients);
    pass_free(w);
    for (int i = 0; i < w->n_wanted; i++) {
        tern_tensor **grad = &w->caught[i];
        if (!*grad && !allow_unused && status == TERN_OK)
            status =
                tern_fail(TERN_ERR_STATE,
                          "tern_autograd_grad: One of the differentiated Tensors appears to "
                          "not have been used in the graph. Set allow_unused = true if this is "
                          "the desired behavior.");
        if (status != TERN_OK) {
            tern_release(*grad);
            *grad = NULL;
        } else if (*grad && !(*grad = tern_scoped(*grad))) {
            status = tern_last_status();
        }
    }
    return status;
}

tern_status tern_autograd_grad(tern_tensor *const *outputs, int n_outputs,
                               tern_tensor *const *inputs, int n_inputs, tern_tensor **grads,
                               const tern_autograd_grad_options *options)
{
    if (!outputs || !inputs || !grads || n_outputs < 1 || n_inputs < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_autograd_grad: expected outputs, inputs and room for grads");
    tern_autograd_grad_options o = options ? *options : (tern_autograd_grad_options){0};
    tern_backward_pass w = {.retain = o.retain_graph || o.create_graph,
                            .create = o.create_graph,
                            .wanted = inputs,
                            .caught = grads,
                            .n_wanted = n_inputs};
    return catch (&w, outputs, n_outputs, o.gradients, o.allow_unused);
}

tern_status tern_gradients_between(tern_tensor *const *outputs, tern_tensor *const *gradients,
                                   int n_outputs, tern_tensor *const *inputs, int n_inputs,
                                   tern_tensor **grads)
{
    tern_backward_pass w = {.retain = true,
                            .create = true,
                            .wanted = inputs,
                            .caught = grads,
                            .n_wanted = n_inputs,
                            .ends = true};
    return catch (&w, outputs, n_outputs, gradients, true);
}
