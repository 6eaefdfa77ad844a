/* members.c -- decides which tensors of an ONNX file are parameters and buffers of the module. */
#include "io/onnx/build.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

/* ---- initializers ---------------------------------------------------------------------------- */

/* Returns whether an operation is quantized. Its scales and zero points are not parameters. */
static bool is_quantized(const char *type)
{
    return strstr(type, "Quantize") || !strncmp(type, "QLinear", 7);
}

/* Returns whether input k of an operation is typically a weight. */
static bool takes_weight(const char *type, size_t k)
{
    static const char *const types[] = {"Conv",
                                        "ConvTranspose",
                                        "Gemm",
                                        "MatMul",
                                        "BatchNormalization",
                                        "LSTM",
                                        "GRU",
                                        "RNN",
                                        "PRelu",
                                        "LayerNormalization",
                                        "Gather",
                                        "InstanceNormalization"};
    bool first = !strcmp(type, "Gather") || !strcmp(type, "MatMul") || !strcmp(type, "Gemm");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i], type))
            return strcmp(type, "Gather") ? k > 0 || first : k == 0;
    return false;
}

/* Records how the nodes of a graph, and of the graphs inside it, use the values that exist. */
static void note_uses(onnx_builder *b, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        const onnx_operation *op =
            node->op_type ? onnx_find_operation(node->domain, node->op_type) : NULL;
        for (size_t k = 0; op && k < node->n_input; k++) {
            int v = onnx_find_value(b, node->input[k]);
            if (v < 0 || (k < 32 && (op->on_host >> k & 1)) || is_quantized(op->name))
                continue;
            b->uses[v] |= ONNX_IS_USED;
            if (!strcmp(op->name, "BatchNormalization") && k >= 3)
                b->uses[v] |= ONNX_IS_STATISTICS;
            if (takes_weight(op->name, k))
                b->uses[v] |= ONNX_IS_WEIGHT;
        }
        for (size_t k = 0; k < node->n_attribute; k++)
            if (node->attribute[k]->g)
                note_uses(b, node->attribute[k]->g);
    }
}

/* Returns the module at a path without its last part, adding missing modules. Sets *last to the
 * last part. Writes to `path`. */
static tern_module *parent_of(tern_module *root, char *path, const char **last)
{
    char *dot;
    while ((dot = strchr(path, '.'))) {
        *dot = 0;
        tern_module *child = NULL;
        for (int i = 0; !child && i < tern_nn_children_count(root); i++)
            if (!strcmp(tern_nn_child_name_at(root, i), path))
                child = tern_nn_child_at(root, i);
        if (!child)
            child = tern_nn_add(root, path, tern_nn_module("Module", NULL, NULL));
        if (!child)
            return NULL;
        root = child;
        path = dot + 1;
    }
    *last = path;
    return root;
}

/* Returns the path of a name, which the caller frees. A module name can't be empty, so '_' replaces
 * empty parts. */
static char *path_of(const char *name)
{
    size_t n = strlen(name);
    char *path = tern_alloc(2 * n + 2), *at = path;
    for (size_t i = 0; path && i <= n; i++) {
        bool ends = name[i] == '.' || !name[i];
        if (ends && (at == path || at[-1] == '.'))
            *at++ = '_';
        *at++ = name[i];
    }
    return path;
}

/* Returns a path that no member has, or NULL after an error. Bodies can have tensors of the same
 * name; the second one becomes NAME_2 and so on. */
static char *free_path(onnx_builder *b, int v)
{
    enum { DIGITS = 16 };
    onnx_value *values = b->g->values;
    char *path = path_of(values[v].name);
    int first = path ? tern_keys_find(&b->paths, path) : -1;
    if (first >= 0) {
        const size_t bytes = strlen(path) + DIGITS;
        char *numbered = tern_alloc(bytes);
        do {
            if (numbered)
                snprintf(numbered, bytes, "%s_%d", path, ++values[first].n_same + 1);
        } while (numbered && tern_keys_find(&b->paths, numbered) >= 0);
        tern_free(path);
        path = numbered;
    }
    if (path && tern_keys_add(&b->paths, path, v) != TERN_OK) {
        tern_free(path);
        return NULL;
    }
    return path;
}

static tern_status add_member(onnx_builder *b, int v, tern_tensor *x, bool is_buffer)
{
    onnx_value *value = &b->g->values[v];
    const char *last = NULL;
    tern_module *module = b->module;
    value->path = free_path(b, v);
    char *parts = value->path ? tern_copy_text(value->path) : NULL;
    if (!parts)
        return TERN_ERR_MEMORY;
    uint64_t failures = tern_failures();
    tern_module *parent = parent_of(module, parts, &last);
    if (parent && is_buffer)
        tern_nn_add_buffer(parent, last, x);
    else if (parent)
        tern_nn_add_parameter(parent, last, x);
    tern_free(parts);
    value->source = ONNX_MEMBER;
    value->is_buffer = is_buffer;
    return tern_failed_since(failures);
}

/* Makes a tensor of the file a member if it is floating point and `computed` is true, and a
 * constant otherwise. */
static tern_status add_value(onnx_builder *b, int v, const Onnx__TensorProto *proto, bool computed)
{
    onnx_value *value = &b->g->values[v];
    tern_status status = TERN_OK;
    TERN_SCOPE {
        uint64_t failures = tern_failures();
        tern_tensor *x = onnx_tensor(proto, b->g->path);
        if (!x)
            status = tern_failed_since(failures);
        else if (tern_dtype_is_floating_point(tern_dtype_of(x)) && computed)
            status = add_member(b, v, x, (b->uses[v] & ONNX_IS_STATISTICS) != 0);
        else
            value->constant = tern_keep(x);
    }
    return status;
}

/* Returns the first node of a graph that reads a value, or NULL. Nodes of inner graphs are not
 * searched. */
static const Onnx__NodeProto *reader_of(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++)
            if (name && !strcmp(graph->node[i]->input[k], name))
                return graph->node[i];
    return NULL;
}

/* Fails if a node reads a tensor of strings; the message contains the node. */
static tern_status check_texts(const Onnx__GraphProto *graph, const Onnx__TensorProto *t)
{
    const Onnx__NodeProto *node =
        t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING ? reader_of(graph, t->name) : NULL;
    return !node ? TERN_OK
                 : tern_fail(TERN_ERR_DTYPE,
                             "tern_onnx_load: node '%.80s' (%s) reads '%.80s', which is of type "
                             "string, which tern does not compute with",
                             node->name ? node->name : "", node->op_type ? node->op_type : "",
                             t->name);
}

static tern_status add_initializers(onnx_builder *b, const Onnx__GraphProto *graph, int first)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const int v = first + (int)i;
        TERN_TRY(check_texts(graph, graph->initializer[i]));
        TERN_TRY(add_value(b, v, graph->initializer[i], b->uses[v] & ONNX_IS_USED));
        onnx_free_bytes(&b->g->budget, &graph->initializer[i]->raw_data);
        b->has_weights = b->has_weights || b->g->values[v].source == ONNX_MEMBER;
    }
    return TERN_OK;
}

/* ---- weights in Constant nodes, as some exporters write them --------------------------------- */

/* Models that tern exported return NULL here, since their Constant nodes are never parameters. */
Onnx__TensorProto *onnx_weight_in(const onnx_graph *g, const Onnx__NodeProto *p)
{
    const char *producer = g->model->producer_name;
    if (!p->op_type || strcmp(p->op_type, "Constant") || p->n_attribute != 1 || p->n_output != 1 ||
        !p->output[0] || !*p->output[0] || (producer && !strcmp(producer, "tern")))
        return NULL;
    const Onnx__AttributeProto *a = p->attribute[0];
    Onnx__TensorProto *t = a->name && !strcmp(a->name, "value") ? a->t : NULL;
    bool several = false, none = false;
    for (size_t i = 0; t && i < t->n_dims; i++) {
        several = several || t->dims[i] > 1;
        none = none || t->dims[i] < 1;
    }
    const int type = t ? t->data_type : 0;
    const bool real = type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
                      type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
                      type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
                      type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
    return real && several && !none ? t : NULL;
}

/* Returns whether a graph, or a graph inside it, has a float32 initializer with at least one
 * dim. */
static bool has_weights(const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (graph->initializer[i]->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
            graph->initializer[i]->n_dims > 0)
            return true;
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_attribute; k++)
            if (graph->node[i]->attribute[k]->g && has_weights(graph->node[i]->attribute[k]->g))
                return true;
    return false;
}

/* Makes Constant nodes parameters that an operation computes with. If an initializer is a
 * parameter, only Constant nodes that takes_weight() accepts become parameters. */
static tern_status add_constants(onnx_builder *b, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        Onnx__TensorProto *t = onnx_weight_in(b->g, graph->node[i]);
        const int v = t ? onnx_find_value(b, graph->node[i]->output[0]) : -1;
        if (v < 0)
            continue;
        const bool computed =
            (b->uses[v] & ONNX_IS_USED) && (!b->has_weights || (b->uses[v] & ONNX_IS_WEIGHT));
        TERN_TRY(add_value(b, v, t, computed));
        onnx_free_bytes(&b->g->budget, &t->raw_data);
    }
    return TERN_OK;
}

tern_status onnx_add_members(onnx_builder *b, const Onnx__GraphProto *proto, int first)
{
    note_uses(b, proto);
    TERN_TRY(add_initializers(b, proto, first));
    for (size_t i = 0; b->body == &b->g->body && !b->has_weights && i < proto->n_node; i++)
        for (size_t k = 0; k < proto->node[i]->n_attribute; k++)
            b->has_weights = b->has_weights || (proto->node[i]->attribute[k]->g &&
                                                has_weights(proto->node[i]->attribute[k]->g));
    return add_constants(b, proto);
}
