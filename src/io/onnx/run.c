/* run.c -- running an ONNX graph, node by node, with what operations read of their nodes. */
#include "io/onnx/graph.h"
#include "base/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what operations read -------------------------------------------------------------------- */

tern_status onnx_fail(const onnx_call *c, tern_status status, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return tern_fail(status, "tern_onnx: node '%.80s' (%s, opset %lld): %s",
                     c->proto->name ? c->proto->name : "", c->proto->op_type, (long long)c->opset,
                     text);
}

const Onnx__AttributeProto *onnx_attribute(const onnx_call *c, const char *name)
{
    for (size_t i = 0; i < c->proto->n_attribute; i++)
        if (c->proto->attribute[i]->name && !strcmp(c->proto->attribute[i]->name, name))
            return c->proto->attribute[i];
    return NULL;
}

int64_t onnx_int(const onnx_call *c, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = onnx_attribute(c, name);
    return a && a->has_i ? a->i : otherwise;
}

double onnx_real(const onnx_call *c, const char *name, double otherwise)
{
    const Onnx__AttributeProto *a = onnx_attribute(c, name);
    return a && a->has_f ? (double)a->f : otherwise;
}

bool onnx_text_is(const onnx_call *c, const char *name, const char *text, bool otherwise)
{
    const Onnx__AttributeProto *a = onnx_attribute(c, name);
    if (!a || !a->has_s)
        return otherwise;
    return a->s.len == strlen(text) && !memcmp(a->s.data, text, a->s.len);
}

int onnx_ints(const onnx_call *c, const char *name, int64_t list[ONNX_DIMS])
{
    const Onnx__AttributeProto *a = onnx_attribute(c, name);
    if (!a || a->n_ints > ONNX_DIMS)
        return -1;
    if (a->n_ints)
        memcpy(list, a->ints, a->n_ints * sizeof *list);
    return (int)a->n_ints;
}

tern_tensor *onnx_in(const onnx_call *c, int i)
{
    return i < c->n_in ? c->in[i] : NULL;
}

int onnx_input_ints(const onnx_call *c, int i, int64_t list[ONNX_DIMS])
{
    tern_tensor *x = onnx_in(c, i);
    if (!x)
        return -1;
    int64_t n = tern_numel(x);
    x = n <= ONNX_DIMS ? tern_to_dtype(tern_to(tern_detach(x), "cpu"), TERN_I64) : NULL;
    if (n > ONNX_DIMS)
        onnx_fail(c, TERN_ERR_UNSUPPORTED, "input %d has %lld numbers", i, (long long)n);
    return x && tern_copy_to_host(x, (void *)list, sizeof *list * (size_t)n) == TERN_OK ? (int)n
                                                                                        : -2;
}

int onnx_input_reals(const onnx_call *c, int i, double list[ONNX_DIMS])
{
    tern_tensor *x = onnx_in(c, i);
    if (!x)
        return -1;
    int64_t n = tern_numel(x);
    x = n <= ONNX_DIMS ? tern_to_dtype(tern_to(tern_detach(x), "cpu"), TERN_F64) : NULL;
    if (n > ONNX_DIMS)
        onnx_fail(c, TERN_ERR_UNSUPPORTED, "input %d has %lld numbers", i, (long long)n);
    return x && tern_copy_to_host(x, (void *)list, sizeof *list * (size_t)n) == TERN_OK ? (int)n
                                                                                        : -2;
}

int onnx_axes(const onnx_call *c, const char *name, int i, int64_t list[ONNX_DIMS])
{
    return onnx_in(c, i) ? onnx_input_ints(c, i, list) : onnx_ints(c, name, list);
}

tern_status onnx_give(onnx_call *c, tern_tensor *y)
{
    c->out[0] = y;
    return TERN_OK; /* why there is none has been recorded */
}

int onnx_axis(int64_t axis, int dims)
{
    if (axis < -(int64_t)dims || axis > dims)
        return INT16_MAX; /* which is none */
    return (int)(axis < 0 ? axis + dims : axis);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Where a node runs: on the device of an input that is not on the cpu, if there is one. Constants
 * and sizes, which are on the cpu, go there, but for what the host reads. */
static tern_status gather(const onnx_node *node, tern_tensor **in, int n)
{
    const char *device = NULL;
    for (int i = 0; i < n; i++)
        if (in[i] && !(node->operation->on_host >> i & 1) && strcmp(tern_device(in[i]), "cpu"))
            device = tern_device(in[i]);
    uint64_t failures = tern_failures();
    for (int i = 0; device && i < n; i++)
        if (in[i] && !(node->operation->on_host >> i & 1) && tern_device(in[i]) != device)
            in[i] = tern_to(in[i], device);
    return tern_failed_since(failures);
}

static tern_status run_node(const onnx_graph *g, const onnx_node *node, tern_tensor **values,
                            bool training)
{
    enum { MOST = 64 };
    tern_tensor *in[MOST] = {NULL}, *out[MOST] = {NULL};
    onnx_call c = {.proto = node->proto,
                   .in = in,
                   .out = out,
                   .n_in = (int)node->proto->n_input,
                   .n_out = (int)node->proto->n_output,
                   .opset = g->opset,
                   .training = training};
    if (c.n_in > MOST || c.n_out > MOST)
        return onnx_fail(&c, TERN_ERR_UNSUPPORTED, "has more than %d inputs or outputs", MOST);
    for (int i = 0; i < c.n_in; i++)
        in[i] = node->in[i] < 0 ? NULL : values[node->in[i]];
    TERN_TRY(gather(node, in, c.n_in));
    const onnx_operation *op = node->operation;
    uint64_t failures = tern_failures();
    int needed = op->unary ? 1 : op->binary ? 2 : 0;
    for (int i = 0; i < needed; i++)
        if (!onnx_in(&c, i))
            return onnx_fail(&c, TERN_ERR_ARGUMENT, "lacks input %d", i);
    if (op->unary)
        out[0] = op->unary(in[0]);
    else if (op->binary)
        out[0] = op->binary(in[0], in[1]);
    else
        TERN_TRY(op->run(&c));
    TERN_TRY(tern_failed_since(failures));
    for (int i = 0; i < c.n_out; i++)
        if (node->out[i] >= 0) {
            if (!out[i])
                return onnx_fail(&c, TERN_ERR_UNSUPPORTED, "output %d is not computed", i);
            values[node->out[i]] = out[i];
        }
    return TERN_OK;
}

static tern_status begin(tern_module *module, const onnx_graph *g, tern_tensor *const *in, int n,
                         tern_tensor **values)
{
    if (n != g->n_inputs)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: %s has %d inputs, but got %d", g->path,
                         g->n_inputs, n);
    uint64_t failures = tern_failures();
    for (int v = 0; v < g->n_values; v++) {
        const onnx_value *value = &g->values[v];
        switch (value->source) {
        case ONNX_INPUT:
            values[v] = in[value->input];
            break;
        case ONNX_CONSTANT:
            values[v] = value->constant;
            break;
        case ONNX_MEMBER:
            values[v] = value->is_buffer ? tern_nn_buffer(module, value->path)
                                         : tern_nn_parameter(module, value->path);
            break;
        case ONNX_COMPUTED:
            break;
        }
    }
    return tern_failed_since(failures);
}

tern_status onnx_run(tern_module *module, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const onnx_graph *g = tern_nn_data(module);
    if (k > g->n_outputs)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: %s has %d outputs, but got %d", g->path,
                         g->n_outputs, k);
    tern_tensor **values = tern_alloc(sizeof(tern_tensor *) * (size_t)(g->n_values + 1));
    if (!values)
        return TERN_ERR_MEMORY;
    tern_status status = TERN_OK;
    TERN_SCOPE {
        status = begin(module, g, in, n, values);
        for (int i = 0; status == TERN_OK && i < g->n_nodes; i++)
            status = run_node(g, &g->nodes[i], values, tern_nn_is_training(module));
        for (int i = 0; status == TERN_OK && i < k; i++) {
            tern_tensor *y = values[g->outputs[i]];
            /* what belongs to the module or to the caller is not the scope's to give */
            bool own = g->values[g->outputs[i]].source == ONNX_COMPUTED;
            for (int j = 0; own && j < i; j++)
                own = out[j] != y;
            for (int v = 0; own && v < g->n_values; v++)
                own = g->values[v].source == ONNX_COMPUTED || values[v] != y;
            out[i] = tern_escape(own ? y : tern_clone(y));
            if (!out[i])
                status = TERN_ERR_MEMORY;
        }
    }
    tern_free(values);
    return status;
}

void onnx_free_graph(void *data)
{
    onnx_graph *g = data;
    if (!g)
        return;
    for (int i = 0; i < g->n_nodes; i++) {
        tern_free(g->nodes[i].in);
        tern_free(g->nodes[i].out);
    }
    for (int v = 0; v < g->n_values; v++) {
        tern_free(g->values[v].path);
        tern_release(g->values[v].constant);
    }
    tern_free(g->nodes);
    tern_free(g->values);
    tern_free(g->outputs);
    tern_free(g->path);
    onnx_free_model(&g->budget, g->model);
    tern_free(g);
}
