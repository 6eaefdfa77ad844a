/* kept.c -- keeps results of nodes that read no input of the model from call to call: those of
 * constants for good, those of parameters and buffers until one of these is written or replaced. */
#include "io/onnx/graph.h"
#include "base/lock.h"
#include "base/memory.h"
#include "tensor/scope.h"
#include "tensor/storage.h"
#include "tensor/trace.h"
#include <string.h>

/* ---- building -------------------------------------------------------------------------------- */

/* Returns whether an operation gives the same results in every call. */
static bool is_repeatable(const char *type)
{
    static const char *const types[] = {"Bernoulli", "Dropout", "BatchNormalization", "Multinomial",
                                        "Random"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strncmp(types[i], type, strlen(types[i])))
            return false;
    return true;
}

static onnx_origin origin_of(const onnx_value *value)
{
    return value->source == ONNX_CONSTANT ? ONNX_OF_CONSTANTS
           : value->source == ONNX_MEMBER ? ONNX_OF_MEMBERS
                                          : value->origin;
}

onnx_origin onnx_origin_of(const onnx_graph *g, const onnx_node *node)
{
    onnx_origin origin = ONNX_OF_CONSTANTS;
    if (node->n_bodies || !is_repeatable(node->proto->op_type))
        return ONNX_OF_INPUTS;
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (node->in[i] >= 0 && origin_of(&g->values[node->in[i]]) < origin)
            origin = origin_of(&g->values[node->in[i]]);
    return origin;
}

void onnx_set_origin(onnx_graph *g, onnx_node *node, onnx_origin origin)
{
    node->origin = origin;
    for (size_t i = 0; i < node->proto->n_output; i++)
        if (node->out[i] >= 0)
            g->values[node->out[i]].origin = origin;
    for (size_t i = 0; origin == ONNX_OF_MEMBERS && i < node->proto->n_input; i++)
        if (node->in[i] >= 0 && g->values[node->in[i]].source == ONNX_MEMBER)
            g->values[node->in[i]].is_watched = true;
}

void onnx_add_derived(onnx_graph *g, const onnx_body *body, onnx_node *node)
{
    node->derived = g->n_values;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        onnx_value *of = node->in[i] >= 0 ? &g->values[node->in[i]] : NULL;
        const onnx_origin origin = of ? origin_of(of) : ONNX_OF_INPUTS;
        if (of && of->source == ONNX_MEMBER)
            of->is_watched = true;
        g->values[g->n_values++] =
            (onnx_value){.name = "", .source = ONNX_COMPUTED, .body = body, .origin = origin};
    }
}

tern_status onnx_watch(onnx_graph *g)
{
    int n = 0;
    for (int v = 0; v < g->n_values; v++)
        n += g->values[v].is_watched;
    g->watched = tern_alloc(sizeof *g->watched * (size_t)(n + 1));
    if (!g->watched)
        return TERN_ERR_MEMORY;
    for (int v = 0; v < g->n_values; v++)
        if (g->values[v].is_watched)
            g->watched[g->n_watched++].value = v;
    return TERN_OK;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static void drop(tern_tensor **kept)
{
    tern_release(*kept);
    *kept = NULL;
}

/* Drops the kept results of members and records the current tensors and versions of the watched
 * members. */
static void forget(onnx_graph *g, const onnx_running *r)
{
    for (int v = 0; v < g->n_values; v++)
        if (g->values[v].origin == ONNX_OF_MEMBERS)
            drop(&g->kept[v]);
    for (int i = 0; i < g->n_watched; i++) {
        onnx_watched *w = &g->watched[i];
        tern_tensor *x = tern_keep(r->slots[w->value].x);
        tern_release(w->x); /* the reference was held so that no other tensor could have its
                               address */
        w->x = x;
        w->version = tern_version(x);
    }
    g->replays = tern_storage_replays();
    g->generation++;
}

/* Returns whether autocast is on for a device on which nodes may run: the cpu for constants, those
 * of the inputs and those of the members. */
static bool casts(const onnx_running *r, tern_tensor *const *in, int n)
{
    bool on = tern_is_autocast_enabled("cpu");
    for (int i = 0; i < n && !on; i++)
        on = in[i] && tern_is_autocast_enabled(tern_device(in[i]));
    for (int i = 0; i < r->graph->n_watched && !on; i++) {
        const tern_tensor *x = r->slots[r->graph->watched[i].value].x;
        on = x && tern_is_autocast_enabled(tern_device(x));
    }
    return on;
}

void onnx_kept_begin(onnx_running *r, tern_tensor *const *in, int n)
{
    onnx_graph *g = r->graph;
    r->keeps = ONNX_OF_INPUTS;
    if (tern_is_tracing() || casts(r, in, n))
        return;
    r->keeps = ONNX_OF_CONSTANTS;
    r->is_recorded = tern_is_capturing();
    if (r->is_recorded)
        return;
    const bool records = tern_is_grad_enabled();
    bool same = true;
    for (int i = 0; i < g->n_watched; i++) {
        const tern_tensor *x = r->slots[g->watched[i].value].x;
        if (!x || (records && tern_requires_grad(x)) || !tern_storage_counts_writes(x))
            return;
    }
    r->keeps = ONNX_OF_MEMBERS;
    tern_mutex_lock(&g->lock);
    same = g->replays == tern_storage_replays();
    for (int i = 0; same && i < g->n_watched; i++) {
        const onnx_watched *w = &g->watched[i];
        same = r->slots[w->value].x == w->x && tern_version(w->x) == w->version;
    }
    if (!same)
        forget(g, r);
    r->generation = g->generation;
    tern_mutex_unlock(&g->lock);
}

/* Returns whether this call keeps and reuses results of that origin. */
static bool keeps(const onnx_running *r, onnx_origin origin)
{
    return origin != ONNX_OF_INPUTS && r->keeps != ONNX_OF_INPUTS && origin >= r->keeps;
}

/* Returns whether kept results of that origin were computed from the members that this call uses.
 * The caller holds the lock. */
static bool is_current(const onnx_running *r, onnx_origin origin)
{
    return origin == ONNX_OF_CONSTANTS || r->generation == r->graph->generation;
}

/* Records that this call uses x, a kept result, so that x is not returned as a tensor of this call
 * alone. */
static void share(onnx_running *r, int v, tern_tensor *x)
{
    if (!r->taken[v])
        r->taken[v] = tern_keep(x);
}

bool onnx_kept_take(onnx_running *r, const onnx_node *node)
{
    onnx_graph *g = r->graph;
    const int n = (int)node->proto->n_output;
    if (!keeps(r, node->origin))
        return false;
    tern_mutex_lock(&g->lock);
    bool there = is_current(r, node->origin);
    for (int i = 0; there && i < n; i++)
        there = node->out[i] < 0 || g->kept[node->out[i]];
    for (int i = 0; there && i < n; i++)
        if (node->out[i] >= 0) {
            onnx_drop(&r->slots[node->out[i]]);
            r->slots[node->out[i]] = (onnx_slot){.x = tern_keep(g->kept[node->out[i]])};
            share(r, node->out[i], g->kept[node->out[i]]);
        }
    tern_mutex_unlock(&g->lock);
    return there;
}

/* Keeps x as the value v for later calls, unless the call is being captured or the members have
 * changed. */
static void keep(onnx_running *r, int v, onnx_origin origin, tern_tensor *x)
{
    onnx_graph *g = r->graph;
    if (r->is_recorded)
        return;
    tern_mutex_lock(&g->lock);
    if (is_current(r, origin) && !g->kept[v]) {
        g->kept[v] = tern_keep(x);
        share(r, v, x);
    }
    tern_mutex_unlock(&g->lock);
}

void onnx_kept_give(onnx_running *r, const onnx_node *node)
{
    for (size_t i = 0; keeps(r, node->origin) && i < node->proto->n_output; i++)
        if (node->out[i] >= 0 && r->slots[node->out[i]].x)
            keep(r, node->out[i], node->origin, r->slots[node->out[i]].x);
}

bool onnx_is_constant(const onnx_call *c, int i)
{
    return i >= c->n_in || !c->in[i] ||
           origin_of(&c->running->graph->values[c->node->in[i]]) == ONNX_OF_CONSTANTS;
}

tern_tensor *onnx_derived(const onnx_call *c, int i, onnx_derivation make, const void *how)
{
    onnx_running *r = c->running;
    onnx_graph *g = r->graph;
    tern_tensor *y = NULL;
    const int v = i < c->n_in && c->in[i] && c->node->derived >= 0 ? c->node->derived + i : -1;
    const onnx_origin origin = v < 0 ? ONNX_OF_INPUTS : g->values[v].origin;
    if (!keeps(r, origin))
        return make(onnx_in(c, i), how);
    tern_mutex_lock(&g->lock);
    if (is_current(r, origin) && g->kept[v] && tern_device(g->kept[v]) == tern_device(c->in[i]))
        share(r, v, y = tern_keep(g->kept[v]));
    tern_mutex_unlock(&g->lock);
    if (y)
        return tern_scoped(y);
    if ((y = make(onnx_in(c, i), how)))
        keep(r, v, origin, y);
    return y;
}

void onnx_kept_free(onnx_graph *g)
{
    for (int v = 0; v < g->n_values && g->kept; v++)
        drop(&g->kept[v]);
    for (int i = 0; i < g->n_watched; i++)
        tern_release(g->watched[i].x);
    tern_free(g->kept);
    tern_free(g->watched);
}
