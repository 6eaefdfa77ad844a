/* run.c -- running an ONNX graph, node by node. */
#include "io/onnx/graph.h"
#include "base/memory.h"
#include "tensor/scope.h"
#include "tensor/storage.h"
#include <string.h>

/* ---- slots ----------------------------------------------------------------------------------- */

onnx_slot onnx_hold(onnx_slot slot)
{
    if (slot.x)
        tern_keep(slot.x);
    if (slot.list)
        slot.list->refs++;
    return slot;
}

void onnx_drop(onnx_slot *slot)
{
    tern_release(slot->x);
    if (slot->list && --slot->list->refs == 0) {
        for (int i = 0; i < slot->list->n; i++)
            tern_release(slot->list->items[i]);
        tern_free(slot->list);
    }
    *slot = (onnx_slot){NULL, NULL};
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Returns whether the host reads the values of input i, on whichever device it is. */
static bool is_on_host(const onnx_node *node, int i)
{
    return node->n_bodies || (i < 32 && (node->operation->on_host >> i & 1));
}

/* Returns the device on which a node runs: that of an input that is not on the cpu, if there is
 * one. Constants and sizes, which are on the cpu, are copied there, except for inputs that the host
 * reads. */
static tern_status gather(const onnx_node *node, tern_tensor **in, int n)
{
    const char *device = NULL;
    for (int i = 0; i < n; i++)
        if (in[i] && !is_on_host(node, i) && strcmp(tern_device(in[i]), "cpu"))
            device = tern_device(in[i]);
    uint64_t failures = tern_failures();
    for (int i = 0; device && i < n; i++)
        if (in[i] && !is_on_host(node, i) && tern_device(in[i]) != device)
            in[i] = tern_to(in[i], device);
    return tern_failed_since(failures);
}

/* The inputs and outputs of a call, in `small` or, if there are many, in allocated memory. */
typedef struct call_memory {
    void *small[64], **all;
} call_memory;

static bool enter(onnx_running *r, const onnx_node *node, call_memory *m, onnx_call *c)
{
    const size_t n_in = node->proto->n_input, n_out = node->proto->n_output, n = 2 * (n_in + n_out);
    m->all = n <= sizeof m->small / sizeof *m->small ? m->small : tern_alloc(sizeof(void *) * n);
    if (!m->all)
        return false;
    memset((void *)m->all, 0, sizeof(void *) * n);
    *c = (onnx_call){.proto = node->proto,
                     .in = (tern_tensor **)m->all,
                     .out = (tern_tensor **)m->all + n_in,
                     .lists_in = (onnx_sequence **)m->all + n_in + n_out,
                     .lists_out = (onnx_sequence **)m->all + 2 * n_in + n_out,
                     .n_in = (int)n_in,
                     .n_out = (int)n_out,
                     .opset = r->graph->opset,
                     .training = r->training,
                     .running = r,
                     .node = node};
    for (size_t i = 0; i < n_in; i++)
        if (node->in[i] >= 0) {
            c->in[i] = r->slots[node->in[i]].x;
            c->lists_in[i] = r->slots[node->in[i]].list;
        }
    return true;
}

static tern_status compute(onnx_call *c)
{
    const onnx_operation *op = c->node->operation;
    TERN_TRY(gather(c->node, c->in, c->n_in));
    uint64_t failures = tern_failures();
    int needed = op->unary ? 1 : op->binary ? 2 : 0;
    for (int i = 0; i < needed; i++)
        if (!onnx_in(c, i))
            return onnx_fail(c, TERN_ERR_ARGUMENT, "lacks input %d", i);
    if (c->n_out < 1)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "has no output");
    if (c->opset < 7 && (op->binary || !strcmp(op->name, "Pow")))
        TERN_TRY(onnx_align(c));
    if (op->unary)
        c->out[0] = op->unary(c->in[0]);
    else if (op->binary)
        c->out[0] = op->binary(c->in[0], c->in[1]);
    else
        TERN_TRY(op->run(c));
    TERN_TRY(tern_failed_since(failures));
    for (int i = 0; i < c->n_out; i++)
        if (c->node->out[i] >= 0 && !c->out[i] && !c->lists_out[i])
            return onnx_fail(c, TERN_ERR_UNSUPPORTED, "output %d is not computed", i);
    return TERN_OK;
}

/* Stores the node's results in slots, each with a reference. */
static tern_status run_node(onnx_running *r, const onnx_node *node)
{
    call_memory memory;
    onnx_call c;
    if (!enter(r, node, &memory, &c))
        return TERN_ERR_MEMORY;
    tern_scope_block scope = tern_call_scope_enter(node->operation->name);
    tern_status status = compute(&c);
    for (int i = 0; i < c.n_out; i++) {
        onnx_slot given = {NULL, c.lists_out[i]};
        if (status == TERN_OK && node->out[i] >= 0) {
            onnx_slot *slot = &r->slots[node->out[i]];
            onnx_drop(slot);
            *slot = (onnx_slot){c.lists_out[i] ? NULL : tern_keep(c.out[i]), c.lists_out[i]};
        } else
            onnx_drop(&given);
    }
    tern_call_scope_leave(&scope, NULL, 0);
    if (memory.all != memory.small)
        tern_free(memory.all);
    return status;
}

static tern_status run_nodes(onnx_running *r, const onnx_body *body)
{
    for (int i = 0; i < body->n_nodes; i++) {
        const onnx_node *node = &body->nodes[i];
        if (!onnx_kept_take(r, node)) {
            TERN_TRY(run_node(r, node));
            onnx_kept_give(r, node);
        }
        for (int k = 0; k < node->n_dead; k++)
            onnx_drop(&r->slots[node->dead[k]]);
    }
    return TERN_OK;
}

tern_status onnx_run_body(onnx_running *r, const onnx_body *body, const onnx_slot *in, int n,
                          onnx_slot *out, int k)
{
    for (int i = 0; i < body->n_inputs && i < n; i++) {
        onnx_slot given = onnx_hold(in[i]);
        onnx_drop(&r->slots[body->inputs[i]]);
        r->slots[body->inputs[i]] = given;
    }
    tern_status status = run_nodes(r, body);
    for (int i = 0; status == TERN_OK && i < k && i < body->n_outputs; i++)
        out[i] = onnx_hold(r->slots[body->outputs[i]]);
    for (int i = 0; i < body->n_inputs; i++)
        onnx_drop(&r->slots[body->inputs[i]]);
    for (int i = 0; i < body->n_nodes; i++)
        for (size_t o = 0; o < body->nodes[i].proto->n_output; o++)
            if (body->nodes[i].out[o] >= 0)
                onnx_drop(&r->slots[body->nodes[i].out[o]]);
    return status;
}

/* ---- the module's call ----------------------------------------------------------------------- */

static tern_status begin(onnx_running *r, tern_tensor *const *in, int n)
{
    onnx_graph *g = r->graph;
    if (n != g->body.n_inputs)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: %s has %d inputs, but got %d", g->path,
                         g->body.n_inputs, n);
    uint64_t failures = tern_failures();
    for (int v = 0; v < g->n_values; v++) {
        const onnx_value *value = &g->values[v];
        switch (value->source) {
        case ONNX_INPUT:
            r->slots[v].x = in[value->input];
            break;
        case ONNX_CONSTANT:
            r->slots[v].x = value->constant;
            break;
        case ONNX_MEMBER:
            r->slots[v].x = value->is_buffer ? tern_nn_buffer(r->module, value->path)
                                             : tern_nn_parameter(r->module, value->path);
            break;
        case ONNX_COMPUTED:
            break;
        }
    }
    return tern_failed_since(failures);
}

/* Returns whether y or its memory belongs to the module or to the caller, and not to this call
 * alone. */
static bool is_another(const onnx_running *r, const tern_tensor *y, tern_tensor *const *out, int n)
{
    for (int j = 0; j < n; j++)
        if (out[j] == y)
            return true;
    for (int v = 0; v < r->graph->n_values; v++) {
        const bool computed = r->graph->values[v].source == ONNX_COMPUTED;
        const tern_tensor *x = computed ? r->taken[v] : r->slots[v].x;
        if (x && tern_storage_is_one(x, y))
            return true;
    }
    return false;
}

/* Returns the results, which belong to the enclosing scope. */
static tern_status end(onnx_running *r, tern_tensor **out, int k)
{
    for (int i = 0; i < k; i++) {
        tern_tensor *y = r->slots[r->graph->body.outputs[i]].x;
        if (!y)
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "tern_nn_call: output '%.80s' of %s is a sequence",
                             r->graph->values[r->graph->body.outputs[i]].name, r->graph->path);
        out[i] = is_another(r, y, out, i) ? tern_clone(y) : tern_scoped(tern_keep(y));
        if (!out[i])
            return TERN_ERR_MEMORY;
    }
    return TERN_OK;
}

tern_status onnx_run(tern_module *module, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    onnx_graph *g = tern_nn_data(module);
    if (k > g->body.n_outputs)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: %s has %d outputs, but got %d", g->path,
                         g->body.n_outputs, k);
    onnx_running r = {.module = module,
                      .graph = g,
                      .slots = tern_alloc(sizeof(onnx_slot) * (size_t)(g->n_values + 1)),
                      .taken = tern_alloc(sizeof(tern_tensor *) * (size_t)(g->n_values + 1)),
                      .training = tern_nn_is_training(module)};
    tern_status status = r.slots && r.taken ? begin(&r, in, n) : TERN_ERR_MEMORY;
    if (status == TERN_OK) {
        onnx_kept_begin(&r, in, n);
        status = run_nodes(&r, &g->body);
    }
    if (status == TERN_OK)
        status = end(&r, out, k);
    for (int v = 0; v < g->n_values && r.slots; v++)
        if (g->values[v].source == ONNX_COMPUTED)
            onnx_drop(&r.slots[v]);
    for (int v = 0; v < g->n_values && r.taken; v++)
        tern_release(r.taken[v]);
    tern_free(r.slots);
    tern_free(r.taken);
    return status;
}

tern_status onnx_fold(onnx_graph *g, const onnx_node *node, onnx_slot *slots)
{
    onnx_running r = {.graph = g, .slots = slots};
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (node->in[i] >= 0)
            slots[node->in[i]].x = g->values[node->in[i]].constant;
    tern_status status = run_node(&r, node);
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (node->in[i] >= 0)
            slots[node->in[i]].x = NULL;
    for (size_t i = 0; i < node->proto->n_output; i++)
        if (node->out[i] >= 0 && status == TERN_OK) {
            g->values[node->out[i]].source = ONNX_CONSTANT;
            g->values[node->out[i]].constant = slots[node->out[i]].x;
            slots[node->out[i]].x = NULL;
        }
    return status;
}

void onnx_free_graph(void *data)
{
    onnx_graph *g = data;
    if (!g)
        return;
    onnx_free_body(&g->body);
    for (int v = 0; v < g->n_values; v++) {
        tern_free(g->values[v].path);
        tern_release(g->values[v].constant);
    }
    onnx_kept_free(g);
    tern_free(g->values);
    tern_free(g->path);
    tern_mutex_destroy(&g->lock);
    onnx_free_model(&g->budget, g->model);
    tern_free(g);
}
