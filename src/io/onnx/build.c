/* build.c -- builds the bodies, nodes and values of a graph and of the graphs among the attributes
 * of nodes. */
#include "io/onnx/build.h"
#include "io/onnx/operations.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

/* ---- values by name -------------------------------------------------------------------------- */

static size_t hash(const char *name)
{
    size_t h = 1469598103934665603u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

int onnx_find_value(const onnx_builder *b, const char *name)
{
    int found = -1;
    for (size_t i = hash(name);; i++) {
        int v = b->table[i % b->size] - 1;
        if (v < 0)
            return found;
        if (v > found && !strcmp(b->g->values[v].name, name))
            found = v;
    }
}

/* Adds a value to the current body. Returns its index, or -1 after an error if the body already has
 * that name. */
static int define(onnx_builder *b, const char *name, onnx_source source)
{
    if (onnx_find_value(b, name) >= b->first) {
        tern_fail(TERN_ERR_IO, "tern_onnx_load: %s: '%.80s' is defined twice", b->g->path, name);
        return -1;
    }
    size_t i = hash(name);
    while (b->table[i % b->size])
        i++;
    b->table[i % b->size] = b->g->n_values + 1;
    b->g->values[b->g->n_values] = (onnx_value){.name = name, .source = source, .body = b->body};
    return b->g->n_values++;
}

/* Removes the names of the values of a body, from `first` on, from the hash table. Removing the
 * last name first restores the table to its earlier state. */
static void forget(onnx_builder *b, const onnx_body *body, int first)
{
    for (int v = b->g->n_values; v > first; v--) {
        if (b->g->values[v - 1].body != body || !*b->g->values[v - 1].name)
            continue; /* value of an inner body, removed already, or derived */
        size_t i = hash(b->g->values[v - 1].name);
        while (b->table[i % b->size] != v)
            i++;
        b->table[i % b->size] = 0;
    }
}

/* Returns the number of values of a graph and of the graphs among the attributes of its nodes. */
static size_t count_values(const Onnx__GraphProto *graph)
{
    size_t n = graph->n_initializer + graph->n_input;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        n += node->n_output;
        const onnx_operation *operation =
            node->op_type ? onnx_find_operation(node->domain, node->op_type) : NULL;
        if (operation && operation->keeps)
            n += node->n_input;
        for (size_t k = 0; k < node->n_attribute; k++)
            if (node->attribute[k]->g)
                n += count_values(node->attribute[k]->g);
    }
    return n;
}

/* ---- nodes of constants ---------------------------------------------------------------------- */

/* Returns whether the results of an operation are no larger than its inputs, so that it can run
 * when a model is loaded. */
static bool is_small(const char *type)
{
    static const char *const types[] = {
        "Abs",       "Add",   "And",    "Cast",    "Ceil",      "Concat",  "Constant",  "Div",
        "Equal",     "Floor", "Gather", "Greater", "Identity",  "Less",    "Max",       "Min",
        "Mul",       "Neg",   "Not",    "Or",      "ReduceMax", "Reshape", "Shape",     "ReduceMin",
        "ReduceSum", "Size",  "Slice",  "Squeeze", "Sub",       "Where",   "Unsqueeze", "Xor"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i], type))
            return true;
    return false;
}

/* Returns whether a node of constants runs when the model is loaded: if its inputs and results are
 * small. */
static bool is_folded(const onnx_graph *g, const onnx_node *node)
{
    enum { SMALL = 1024 };
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const onnx_value *value = node->in[i] >= 0 ? &g->values[node->in[i]] : NULL;
        if (value && (value->source != ONNX_CONSTANT || tern_numel(value->constant) > SMALL))
            return false;
    }
    return is_small(node->proto->op_type);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static tern_status check_node(const onnx_graph *g, const Onnx__NodeProto *p)
{
    const char *domain = p->domain ? p->domain : "";
    if (!p->op_type)
        return tern_fail(TERN_ERR_IO, "tern_onnx_load: %s has a node without a type", g->path);
    if (!onnx_find_operation(domain, p->op_type))
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_onnx_load: node '%.80s' of %s is %.40s%s%.80s of operator set %lld, "
                         "which tern does not have",
                         p->name ? p->name : "", g->path, domain, *domain ? "." : "", p->op_type,
                         (long long)g->opset);
    return TERN_OK;
}

/* Returns the name of the branch that an If takes if its condition is constant, and NULL
 * otherwise. */
static const char *known_branch(const onnx_graph *g, const onnx_node *node)
{
    if (strcmp(node->operation->name, "If") || node->proto->n_input < 1 || node->in[0] < 0)
        return NULL;
    const onnx_value *value = &g->values[node->in[0]];
    bool holds = false;
    if (value->source != ONNX_CONSTANT || tern_dtype_of(value->constant) != TERN_BOOL ||
        tern_numel(value->constant) != 1 ||
        tern_copy_to_host(value->constant, (void *)&holds, sizeof holds) != TERN_OK)
        return NULL;
    return holds ? "then_branch" : "else_branch";
}

static tern_status build_body(onnx_builder *b, const Onnx__GraphProto *proto, onnx_body *body);

/* Builds the graphs among the attributes of a node, each with its own names. */
static tern_status add_bodies(onnx_builder *b, onnx_node *node)
{
    const Onnx__NodeProto *p = node->proto;
    const char *branch = known_branch(b->g, node);
    int n = 0;
    for (size_t i = 0; i < p->n_attribute; i++)
        n += p->attribute[i]->g != NULL;
    if (n == 0)
        return TERN_OK;
    node->bodies = tern_alloc(sizeof *node->bodies * (size_t)n);
    if (!node->bodies)
        return TERN_ERR_MEMORY;
    const int first = b->first;
    onnx_body *around = b->body;
    for (size_t i = 0; i < p->n_attribute; i++) {
        const Onnx__AttributeProto *a = p->attribute[i];
        if (!a->g || (branch && a->name && strcmp(a->name, branch)))
            continue;
        b->first = b->g->n_values;
        onnx_body *body = &node->bodies[node->n_bodies++];
        tern_status status = build_body(b, a->g, body);
        forget(b, body, b->first);
        b->first = first;
        b->body = around;
        TERN_TRY(status);
    }
    return TERN_OK;
}

static tern_status add_values(onnx_builder *b, onnx_node *node)
{
    const Onnx__NodeProto *p = node->proto;
    for (size_t i = 0; i < p->n_input; i++) {
        node->in[i] = *p->input[i] ? onnx_find_value(b, p->input[i]) : -1;
        if (*p->input[i] && node->in[i] < 0)
            return tern_fail(
                TERN_ERR_IO,
                "tern_onnx_load: node '%.80s' of %s takes '%.80s', which nothing before it "
                "gives",
                p->name ? p->name : "", b->g->path, p->input[i]);
    }
    TERN_TRY(add_bodies(b, node));
    for (size_t i = 0; i < p->n_output; i++) {
        node->out[i] = *p->output[i] ? define(b, p->output[i], ONNX_COMPUTED) : -1;
        if (*p->output[i] && node->out[i] < 0)
            return TERN_ERR_IO;
    }
    return TERN_OK;
}

/* Frees the bytes of a Constant node, whose tensor is in its value. */
static void drop_bytes(onnx_graph *g, const onnx_node *node)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (node->proto->attribute[i]->t)
            onnx_free_bytes(&g->budget, &node->proto->attribute[i]->t->raw_data);
}

static tern_status add_node(onnx_builder *b, const Onnx__NodeProto *p)
{
    onnx_graph *g = b->g;
    onnx_body *body = b->body;
    onnx_node *node = &body->nodes[body->n_nodes++];
    *node = (onnx_node){.proto = p,
                        .derived = -1,
                        .operation = onnx_find_operation(p->domain, p->op_type),
                        .in = tern_alloc(sizeof(int) * (p->n_input + 1)),
                        .out = tern_alloc(sizeof(int) * (p->n_output + 1))};
    if (!node->in || !node->out)
        return TERN_ERR_MEMORY;
    TERN_TRY(add_values(b, node));
    const onnx_origin origin = onnx_origin_of(g, node);
    if (origin == ONNX_OF_CONSTANTS && is_folded(g, node)) {
        TERN_TRY(onnx_fold(g, node, b->slots));
        drop_bytes(g, node);
        body->n_nodes--;
        onnx_free_node(node);
        return TERN_OK;
    }
    onnx_set_origin(g, node, origin);
    if (node->operation && node->operation->keeps)
        onnx_add_derived(g, body, node);
    return TERN_OK;
}

/* ---- last use of values ---------------------------------------------------------------------- */

/* Records node k as the last reader of each value of `body` that `inner`, or a node of a body
 * inside it, reads. */
static void note_reads(const onnx_graph *g, const onnx_body *body, const onnx_node *inner, int k,
                       int *last)
{
    for (size_t i = 0; i < inner->proto->n_input; i++)
        if (inner->in[i] >= 0 && g->values[inner->in[i]].body == body)
            last[inner->in[i]] = k;
    for (int i = 0; i < inner->n_bodies; i++) {
        const onnx_body *in = &inner->bodies[i];
        for (int j = 0; j < in->n_nodes; j++)
            note_reads(g, body, &in->nodes[j], k, last);
        for (int j = 0; j < in->n_outputs; j++)
            if (g->values[in->outputs[j]].body == body)
                last[in->outputs[j]] = k;
    }
}

static tern_status find_dead(onnx_builder *b, onnx_body *body)
{
    const onnx_graph *g = b->g;
    int *last = b->last, n = g->n_values;
    for (int v = b->first; v < n; v++)
        last[v] = -1;
    for (int k = 0; k < body->n_nodes; k++) {
        const onnx_node *node = &body->nodes[k];
        for (size_t i = 0; i < node->proto->n_output; i++)
            if (node->out[i] >= 0)
                last[node->out[i]] = k;
        note_reads(g, body, node, k, last);
    }
    for (int i = 0; i < body->n_outputs; i++)
        last[body->outputs[i]] = -1;
    for (int v = b->first; v < n; v++)
        if (last[v] >= 0 && g->values[v].source == ONNX_COMPUTED)
            body->nodes[last[v]].n_dead++;
    for (int k = 0; k < body->n_nodes; k++) {
        onnx_node *node = &body->nodes[k];
        if (node->n_dead && !(node->dead = tern_alloc(sizeof(int) * (size_t)node->n_dead)))
            return TERN_ERR_MEMORY;
        node->n_dead = 0;
    }
    for (int v = b->first; v < n; v++)
        if (last[v] >= 0 && g->values[v].source == ONNX_COMPUTED) {
            onnx_node *node = &body->nodes[last[v]];
            node->dead[node->n_dead++] = v;
        }
    return TERN_OK;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Adds the inputs of a body. Inputs of the model are inputs of the module; the node of an inner
 * body sets its inputs. */
static tern_status add_inputs(onnx_builder *b, const Onnx__GraphProto *proto, onnx_body *body)
{
    const bool outermost = body == &b->g->body;
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = proto->input[i]->name ? proto->input[i]->name : "";
        if (onnx_find_value(b, name) >= b->first) /* up to IR version 3 the inputs include the
                                                     initializers */
            continue;
        const Onnx__TypeProto *type = proto->input[i]->type;
        if (outermost && type && type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "tern_onnx_load: input '%.80s' of %s is no tensor", name, b->g->path);
        int v = define(b, name, outermost ? ONNX_INPUT : ONNX_COMPUTED);
        if (v < 0)
            return TERN_ERR_IO;
        b->g->values[v].input = body->n_inputs;
        body->inputs[body->n_inputs++] = v;
    }
    return TERN_OK;
}

static tern_status define_constants(onnx_builder *b, const Onnx__GraphProto *proto)
{
    for (size_t i = 0; i < proto->n_initializer; i++)
        if (!proto->initializer[i]->name)
            return tern_fail(TERN_ERR_IO, "tern_onnx_load: %s: initializer %zu has no name",
                             b->g->path, i);
        else if (define(b, proto->initializer[i]->name, ONNX_CONSTANT) < 0)
            return TERN_ERR_IO;
    return TERN_OK;
}

static tern_status build_body(onnx_builder *b, const Onnx__GraphProto *proto, onnx_body *body)
{
    onnx_graph *g = b->g;
    if (proto->n_sparse_initializer)
        return tern_fail(TERN_ERR_UNSUPPORTED, "tern_onnx_load: %s has sparse initializers",
                         g->path);
    *body = (onnx_body){.proto = proto,
                        .nodes = tern_alloc(sizeof *body->nodes * (proto->n_node + 1)),
                        .inputs = tern_alloc(sizeof(int) * (proto->n_input + 1)),
                        .outputs = tern_alloc(sizeof(int) * (proto->n_output + 1))};
    if (!body->nodes || !body->inputs || !body->outputs)
        return TERN_ERR_MEMORY;
    b->body = body;
    const int first = g->n_values;
    TERN_TRY(define_constants(b, proto));
    TERN_TRY(add_inputs(b, proto, body));
    for (size_t i = 0; i < proto->n_node; i++) {
        TERN_TRY(check_node(g, proto->node[i]));
        if (onnx_weight_in(g, proto->node[i]) &&
            define(b, proto->node[i]->output[0], ONNX_CONSTANT) < 0)
            return TERN_ERR_IO;
    }
    TERN_TRY(onnx_add_members(b, proto, first));
    for (size_t i = 0; i < proto->n_node; i++)
        if (!onnx_weight_in(g, proto->node[i]))
            TERN_TRY(add_node(b, proto->node[i]));
    for (size_t i = 0; i < proto->n_output; i++) {
        int v = proto->output[i]->name ? onnx_find_value(b, proto->output[i]->name) : -1;
        if (v < 0)
            return tern_fail(TERN_ERR_IO, "tern_onnx_load: %s: nothing gives output %zu", g->path,
                             i);
        body->outputs[body->n_outputs++] = v;
    }
    return find_dead(b, body);
}

tern_status onnx_build(tern_module *module, onnx_graph *g)
{
    const size_t n = count_values(g->model->graph) + 1;
    onnx_builder b = {.g = g,
                      .module = module,
                      .table = tern_alloc(sizeof(int) * 2 * n),
                      .size = 2 * n,
                      .last = tern_alloc(sizeof(int) * n),
                      .uses = tern_alloc(n),
                      .slots = tern_alloc(sizeof(onnx_slot) * n)};
    g->values = tern_alloc(sizeof *g->values * n);
    g->kept = tern_alloc(sizeof *g->kept * n);
    tern_status status = TERN_ERR_MEMORY;
    if (b.table && b.last && b.uses && b.slots && g->values && g->kept)
        status = build_body(&b, g->model->graph, &g->body);
    if (status == TERN_OK)
        status = onnx_watch(g);
    tern_free(b.table);
    tern_free(b.last);
    tern_free(b.uses);
    tern_free(b.slots);
    tern_keys_free(&b.paths);
    return status;
}

void onnx_free_node(onnx_node *node)
{
    for (int i = 0; i < node->n_bodies; i++)
        onnx_free_body(&node->bodies[i]);
    tern_free(node->bodies);
    tern_free(node->in);
    tern_free(node->out);
    tern_free(node->dead);
}

void onnx_free_body(onnx_body *body)
{
    for (int i = 0; i < body->n_nodes; i++)
        onnx_free_node(&body->nodes[i]);
    tern_free(body->nodes);
    tern_free(body->inputs);
    tern_free(body->outputs);
}
