/* load.c -- tern_onnx_load: a module of a file. */
#include "io/onnx/graph.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tern/io/onnx.h>
#include <unistd.h>

bool tern_onnx_is_available(void)
{
    return onnx_protobuf_open(false);
}

/* ---- the file -------------------------------------------------------------------------------- */

static uint8_t *read_file(const char *path, size_t *n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat is;
    uint8_t *bytes = NULL;
    *n = 0;
    if (fd < 0 || fstat(fd, &is) || !S_ISREG(is.st_mode)) {
        tern_fail(TERN_ERR_IO, "tern_onnx_load: %s: %s", path,
                  fd < 0 ? strerror(errno) : "not a regular file");
    } else if (is.st_size > INT32_MAX) {
        tern_fail(TERN_ERR_IO, "tern_onnx_load: %s has %lld bytes, and protobuf's limit is 2 GiB",
                  path, (long long)is.st_size);
    } else if ((bytes = tern_alloc((size_t)is.st_size + 1))) {
        while (*n < (size_t)is.st_size) {
            ssize_t got = read(fd, bytes + *n, (size_t)is.st_size - *n);
            if (got > 0)
                *n += (size_t)got;
            else if (got == 0 || errno != EINTR)
                break;
        }
        if (*n != (size_t)is.st_size) {
            tern_fail(TERN_ERR_IO, "tern_onnx_load: %s became shorter while it was read", path);
            tern_free(bytes);
            bytes = NULL;
        }
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}

/* ---- values by name -------------------------------------------------------------------------- */

typedef struct names {
    onnx_graph *g;
    int *table; /* of `size`: a value and one more, 0 where none is */
    size_t size;
} names;

static size_t hash(const char *name)
{
    size_t h = 1469598103934665603u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

/* The value of a name; -1: there is none. */
static int find(const names *n, const char *name)
{
    for (size_t i = hash(name);; i++) {
        int v = n->table[i % n->size];
        if (!v)
            return -1;
        if (!strcmp(n->g->values[v - 1].name, name))
            return v - 1;
    }
}

/* A new value; -1 and an error if the name is taken. */
static int define(names *n, const char *name, onnx_source source)
{
    if (find(n, name) >= 0) {
        tern_fail(TERN_ERR_IO, "tern_onnx_load: %s: '%.80s' is defined twice", n->g->path, name);
        return -1;
    }
    size_t i = hash(name);
    while (n->table[i % n->size])
        i++;
    n->table[i % n->size] = n->g->n_values + 1;
    n->g->values[n->g->n_values] = (onnx_value){.name = name, .source = source};
    return n->g->n_values++;
}

/* ---- initializers ---------------------------------------------------------------------------- */

/* What the nodes make of a value: whether some node computes with it, and whether as statistics. */
static void uses(const names *n, bool *computed, bool *statistics)
{
    const Onnx__GraphProto *graph = n->g->model->graph;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        const onnx_operation *op = onnx_find_operation(node->op_type);
        for (size_t k = 0; op && k < node->n_input; k++) {
            int v = find(n, node->input[k]);
            if (v < 0 || (k < 32 && (op->on_host >> k & 1)))
                continue;
            computed[v] = true;
            if (!strcmp(op->name, "BatchNormalization") && k >= 3)
                statistics[v] = true;
        }
    }
}

/* The module at all but the last part of a path, made where it is not there; *last: that part. */
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

/* The path of a name: empty parts, which no module can have, become '_'. */
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

static tern_status add_member(tern_module *module, onnx_value *value, tern_tensor *x,
                              bool is_buffer)
{
    const char *last = NULL;
    value->path = path_of(value->name);
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

static tern_status add_initializers(tern_module *module, onnx_graph *g, const bool *computed,
                                    const bool *statistics, int first)
{
    Onnx__GraphProto *graph = g->model->graph;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        onnx_value *value = &g->values[first + (int)i];
        tern_status status = TERN_OK;
        TERN_SCOPE {
            uint64_t failures = tern_failures();
            tern_tensor *x = onnx_tensor(graph->initializer[i], g->path);
            if (!x)
                status = tern_failed_since(failures);
            else if (tern_dtype_is_floating_point(tern_dtype_of(x)) && computed[first + (int)i])
                status = add_member(module, value, x, statistics[first + (int)i]);
            else
                value->constant = tern_keep(x);
        }
        TERN_TRY(status);
        onnx_free_bytes(&g->budget, &graph->initializer[i]->raw_data);
    }
    return TERN_OK;
}

/* ---- weights in Constant nodes, as some exporters write them ----------------------------------- */

/* The tensor of reals, of more than one, that a Constant node holds; NULL: it is none. tern's own exporter writes so what is
 * no parameter. */
static Onnx__TensorProto *constant_of(const onnx_graph *g, const Onnx__NodeProto *p)
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

/* Whether input k of an operation is a weight by its nature. */
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

/* Which values are a weight of some node. */
static void weights(const names *n, bool *weight)
{
    const Onnx__GraphProto *graph = n->g->model->graph;
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++) {
            int v = find(n, graph->node[i]->input[k]);
            if (v >= 0 && takes_weight(graph->node[i]->op_type, k))
                weight[v] = true;
        }
}

/* Constants that are weights become parameters: all that are computed with where no initializer is a parameter, else those
 * that are a weight of an operation by its nature. */
static tern_status add_constants(tern_module *module, names *n, const bool *computed,
                                 const bool *statistics)
{
    onnx_graph *g = n->g;
    const Onnx__GraphProto *graph = g->model->graph;
    bool *weight = tern_alloc((size_t)g->n_values + 1), alone = true;
    tern_status status = weight ? TERN_OK : TERN_ERR_MEMORY;
    for (int v = 0; v < g->n_values; v++)
        alone = alone && g->values[v].source != ONNX_MEMBER;
    if (weight)
        weights(n, weight);
    for (size_t i = 0; i < graph->n_node && status == TERN_OK; i++) {
        Onnx__TensorProto *t = constant_of(g, graph->node[i]);
        int v = t ? find(n, graph->node[i]->output[0]) : -1;
        if (v < 0)
            continue;
        TERN_SCOPE {
            uint64_t failures = tern_failures();
            tern_tensor *x = onnx_tensor(t, g->path);
            if (!x)
                status = tern_failed_since(failures);
            else if (computed[v] && (alone || weight[v]))
                status = add_member(module, &g->values[v], x, statistics[v]);
            else
                g->values[v].constant = tern_keep(x);
        }
        onnx_free_bytes(&g->budget, &t->raw_data);
    }
    tern_free(weight);
    return status;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static tern_status check_node(const onnx_graph *g, const Onnx__NodeProto *p)
{
    const char *domain = p->domain ? p->domain : "";
    if (!p->op_type)
        return tern_fail(TERN_ERR_IO, "tern_onnx_load: %s has a node without a type", g->path);
    if ((*domain && strcmp(domain, "ai.onnx")) || !onnx_find_operation(p->op_type))
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_onnx_load: node '%.80s' of %s is %.40s%s%.80s of operator set %lld, "
                         "which tern does not have",
                         p->name ? p->name : "", g->path, domain, *domain ? "." : "", p->op_type,
                         (long long)g->opset);
    return TERN_OK;
}

static tern_status add_node(names *n, const Onnx__NodeProto *p)
{
    onnx_graph *g = n->g;
    onnx_node *node = &g->nodes[g->n_nodes++];
    *node = (onnx_node){.proto = p,
                        .operation = onnx_find_operation(p->op_type),
                        .in = tern_alloc(sizeof(int) * (p->n_input + 1)),
                        .out = tern_alloc(sizeof(int) * (p->n_output + 1))};
    if (!node->in || !node->out)
        return TERN_ERR_MEMORY;
    for (size_t i = 0; i < p->n_input; i++) {
        node->in[i] = *p->input[i] ? find(n, p->input[i]) : -1;
        if (*p->input[i] && node->in[i] < 0)
            return tern_fail(
                TERN_ERR_IO,
                "tern_onnx_load: node '%.80s' of %s takes '%.80s', which nothing before it "
                "gives",
                p->name ? p->name : "", g->path, p->input[i]);
    }
    for (size_t i = 0; i < p->n_output; i++) {
        node->out[i] = *p->output[i] ? define(n, p->output[i], ONNX_COMPUTED) : -1;
        if (*p->output[i] && node->out[i] < 0)
            return TERN_ERR_IO;
    }
    return TERN_OK;
}

static tern_status add_all(tern_module *module, names *n)
{
    onnx_graph *g = n->g;
    const Onnx__GraphProto *graph = g->model->graph;
    int first = g->n_values;
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (!graph->initializer[i]->name)
            return tern_fail(TERN_ERR_IO, "tern_onnx_load: %s: initializer %zu has no name",
                             g->path, i);
        else if (define(n, graph->initializer[i]->name, ONNX_CONSTANT) < 0)
            return TERN_ERR_IO;
    /* up to IR 3 initializers stand among the inputs too */
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *name = graph->input[i]->name ? graph->input[i]->name : "";
        if (find(n, name) >= 0)
            continue;
        const Onnx__TypeProto *type = graph->input[i]->type;
        if (type && type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            return tern_fail(TERN_ERR_UNSUPPORTED,
                             "tern_onnx_load: input '%.80s' of %s is no tensor", name, g->path);
        int v = define(n, name, ONNX_INPUT);
        g->values[v].input = g->n_inputs++;
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        TERN_TRY(check_node(g, graph->node[i]));
        if (constant_of(g, graph->node[i]) &&
            define(n, graph->node[i]->output[0], ONNX_CONSTANT) < 0)
            return TERN_ERR_IO;
    }
    bool *computed = tern_alloc((size_t)g->n_values + 1),
         *statistics = tern_alloc((size_t)g->n_values + 1);
    tern_status status = computed && statistics ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK) {
        uses(n, computed, statistics);
        status = add_initializers(module, g, computed, statistics, first);
    }
    if (status == TERN_OK)
        status = add_constants(module, n, computed, statistics);
    tern_free(computed);
    tern_free(statistics);
    for (size_t i = 0; status == TERN_OK && i < graph->n_node; i++)
        status = constant_of(g, graph->node[i]) ? TERN_OK : add_node(n, graph->node[i]);
    for (size_t i = 0; status == TERN_OK && i < graph->n_output; i++) {
        int v = graph->output[i]->name ? find(n, graph->output[i]->name) : -1;
        g->outputs[g->n_outputs++] = v;
        if (v < 0)
            status =
                tern_fail(TERN_ERR_IO, "tern_onnx_load: %s: nothing gives output %zu", g->path, i);
    }
    return status;
}

/* The operator set of the default domain, within what tern knows. */
static tern_status find_opset(onnx_graph *g)
{
    for (size_t i = 0; i < g->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = g->model->opset_import[i];
        if (!set->domain || !*set->domain || !strcmp(set->domain, "ai.onnx"))
            g->opset = set->version;
    }
    if (g->opset < 7 || g->opset > 28)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_onnx_load: %s is of operator set %lld, tern reads 7 to 28", g->path,
                         (long long)g->opset);
    return TERN_OK;
}

static tern_status build(tern_module *module, onnx_graph *g)
{
    const Onnx__GraphProto *graph = g->model->graph;
    if (!graph)
        return tern_fail(TERN_ERR_IO, "tern_onnx_load: %s is no ONNX model: it has no graph",
                         g->path);
    if (graph->n_sparse_initializer)
        return tern_fail(TERN_ERR_UNSUPPORTED, "tern_onnx_load: %s has sparse initializers",
                         g->path);
    TERN_TRY(find_opset(g));
    size_t n = graph->n_initializer + graph->n_input + 1;
    for (size_t i = 0; i < graph->n_node; i++)
        n += graph->node[i]->n_output;
    names all = {g, tern_alloc(sizeof(int) * 2 * n), 2 * n};
    g->values = tern_alloc(sizeof *g->values * n);
    g->nodes = tern_alloc(sizeof *g->nodes * (graph->n_node + 1));
    g->outputs = tern_alloc(sizeof *g->outputs * (graph->n_output + 1));
    tern_status status = TERN_ERR_MEMORY;
    if (all.table && g->values && g->nodes && g->outputs)
        status = add_all(module, &all);
    tern_free(all.table);
    return status;
}

tern_module *tern_onnx_load(const char *path)
{
    size_t n;
    if (!path) {
        tern_fail_argument_null("tern_onnx_load", "path");
        return NULL;
    }
    if (!onnx_protobuf_open(true))
        return NULL;
    uint8_t *bytes = read_file(path, &n);
    onnx_graph *g = bytes ? tern_alloc(sizeof *g) : NULL;
    if (g && (g->path = tern_copy_text(path)))
        g->model = onnx_unpack_model(&g->budget, bytes, n, path);
    tern_free(bytes);
    const char *name = g && g->model && g->model->graph ? g->model->graph->name : NULL;
    tern_module *module =
        g && g->model ? tern_nn_module_with_call(name && *name ? name : "ONNX", onnx_run, g) : NULL;
    if (!module || tern_nn_on_free(module, onnx_free_graph) != TERN_OK) {
        onnx_free_graph(g);
        return NULL;
    }
    if (build(module, g) == TERN_OK)
        return module;
    tern_nn_free(module);
    return NULL;
}
