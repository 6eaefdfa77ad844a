/* export.c -- tern_onnx_export: runs a module once under a trace and writes the trace as a
 * graph. */
#include "io/onnx/export.h"
#include "base/memory.h"
#include "base/option.h"
#include "io/out.h"
#include "nn/module.h"
#include <stdlib.h>
#include <string.h>

static const char function[] = "tern_onnx_export";

/* ---- evaluation mode ------------------------------------------------------------------------- */

typedef struct modes {
    onnx_export *w;
    onnx_list was; /* pairs: a module, parents first, and the module again if it was in training
                      mode, else NULL */
} modes;

static tern_status note_mode(const char *path, tern_module *m, void *user)
{
    modes *list = user;
    (void)path;
    onnx_append(list->w, &list->was, m);
    onnx_append(list->w, &list->was, tern_nn_is_training(m) ? m : NULL);
    return list->w->status;
}

/* Restores the modes. tern_nn_train also sets the modules below, which come later in the list. */
static void restore_modes(modes *list)
{
    for (size_t i = 0; i + 1 < list->was.n; i += 2)
        tern_nn_train(list->was.items[i], list->was.items[i + 1] != NULL);
    tern_free(list->was.items);
}

/* ---- traces of the module -------------------------------------------------------------------- */

typedef struct members {
    onnx_export *w;
    tern_tracing *trace;
    onnx_list paths; /* paths of members in the first of the two traces */
} members;

static tern_status add_member(const char *path, tern_tensor *x, void *user)
{
    members *m = user;
    if (tern_trace_add(m->trace, x, TERN_TRACED_MEMBER) < 0)
        return TERN_ERR_MEMORY;
    if (m->trace == &m->w->trace)
        onnx_append(m->w, &m->paths, (char *)(uintptr_t)onnx_unique(m->w, path));
    return m->w->status;
}

/* Runs the module on the inputs under a trace. Sets results[k] to the indices of its results. */
static tern_status run(onnx_export *w, tern_tracing *trace, tern_tensor *const *in, int n,
                       int *results, int k, members *m)
{
    uint64_t failures = tern_failures();
    tern_tensor **out = onnx_alloc(w, sizeof *out * (size_t)k);
    if (!out)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < n; i++)
        if (tern_trace_add(trace, in[i], TERN_TRACED_INPUT) < 0)
            return TERN_ERR_MEMORY;
    m->trace = trace;
    TERN_TRY(tern_nn_each_parameter(w->module, add_member, m));
    TERN_TRY(tern_nn_each_buffer(w->module, add_member, m));
    tern_status status = TERN_OK;
    TERN_NO_GRAD {
        tern_trace_begin(trace);
        status = tern_nn_call(w->module, in, n, out, k);
        tern_trace_end(trace);
    }
    TERN_TRY(status);
    TERN_TRY(tern_failed_since(failures));
    for (int i = 0; i < k; i++)
        if ((results[i] = tern_trace_find(trace, out[i])) < 0)
            return tern_failed_since(failures);
    return tern_trace_check(trace, function);
}

/* Returns x with `rows` entries in its first dim, repeating the entries of x. */
static tern_tensor *with_rows(tern_tensor *x, int64_t rows)
{
    tern_tensor *index = tern_remainder_scalar(
        tern_arange(0, (double)rows, 1, TERN_I64, tern_device(x)), TERN_SCALAR(tern_size(x, 0)));
    return tern_index_select(x, 0, index);
}

/* Sets to[n] to the inputs, with `rows` entries where an input has the batch size of the first
 * input. */
static tern_status with_batch(onnx_export *w, tern_tensor *const *in, int n, int64_t rows,
                              tern_tensor **to)
{
    for (int i = 0; i < n; i++) {
        bool follows = tern_dim(in[i]) && tern_size(in[i], 0) == w->batch;
        to[i] = follows ? with_rows(in[i], rows) : tern_detach(in[i]);
        if (!to[i])
            return TERN_ERR_MEMORY;
    }
    return TERN_OK;
}

/* Returns whether call i is the same in both traces. */
static bool is_alike(const onnx_export *w, int i)
{
    const tern_tracing *a = &w->trace, *b = &w->other;
    const tern_traced_call *x = &a->calls[i], *y = &b->calls[i];
    bool alike = !strcmp(x->op, y->op) && x->n_in == y->n_in && x->n_out == y->n_out &&
                 !memcmp(x->in, y->in, sizeof(int) * (size_t)(x->n_in + x->n_out));
    for (int k = 0; alike && k < x->n_out; k++)
        alike = x->out[k] < 0 ||
                tern_dim(a->values[x->out[k]].tensor) == tern_dim(b->values[x->out[k]].tensor);
    return alike;
}

/* Fails and reports the first call that differs, unless both traces have the same calls. */
static tern_status check_alike(onnx_export *w)
{
    const tern_tracing *a = &w->trace, *b = &w->other;
    const int n = a->n_calls < b->n_calls ? a->n_calls : b->n_calls;
    int i = 0;
    while (i < n && is_alike(w, i))
        i++;
    if (i == n && a->n_calls == b->n_calls && a->n_values == b->n_values)
        return TERN_OK;
    const tern_traced_call *x = i < a->n_calls ? &a->calls[i] : NULL;
    const tern_traced_call *y = i < b->n_calls ? &b->calls[i] : NULL;
    w->call = x ? x : y;
    const char *path = w->call ? onnx_path_of_call(w) : "";
    return tern_fail(TERN_ERR_UNSUPPORTED,
                     "%s: the module does something else with a batch of %lld than with %lld, so "
                     "that it can't be dynamic: operation %d is %s with the one, %s with the "
                     "other%s%s",
                     function, (long long)w->batch, (long long)w->other_batch, i + 1,
                     x ? x->op : "not there", y ? y->op : "not there", *path ? ", in module " : "",
                     path);
}

/* Runs the module with another batch size. The error message of the module is extended by that
 * size. */
static tern_status run_other(onnx_export *w, tern_tracing *trace, tern_tensor *const *in, int n,
                             int *results, int k, members *m)
{
    tern_error_hold hold;
    char message[1024];
    TERN_TRY(tern_error_hold_begin(&hold));
    tern_status status = run(w, trace, in, n, results, k, m);
    tern_status failed = tern_error_hold_end(&hold, message, sizeof message);
    if (status == TERN_OK)
        return TERN_OK;
    return tern_fail(
        failed ? failed : status,
        "%s: the module does not take a batch of %lld, so that it can't be dynamic: %s", function,
        (long long)tern_size(in[0], 0), message);
}

/* Traces the module, twice if the batch is dynamic. A batch of one is replaced by two, since many
 * operations simplify with one. */
static tern_status trace_module(onnx_export *w, tern_tensor *const *in, int n, int *results,
                                const tern_onnx_export_options *o, members *m)
{
    tern_tensor **first = onnx_alloc(w, sizeof *first * (size_t)n);
    tern_tensor **second = onnx_alloc(w, sizeof *second * (size_t)n);
    if (!first || !second)
        return TERN_ERR_MEMORY;
    if (!o->dynamic_batch)
        return run(w, &w->trace, in, n, results, o->n_outputs, m);
    if (!tern_dim(in[0]) || !(w->batch = tern_size(in[0], 0)))
        return tern_fail(TERN_ERR_SHAPE, "%s: an input of shape %s has no batch", function,
                         tern_dim(in[0]) ? "[0, ...]" : "[]");
    int64_t rows = w->batch < 2 ? 2 : w->batch;
    TERN_TRY(with_batch(w, in, n, rows, first));
    TERN_TRY(with_batch(w, in, n, rows + 1, second));
    w->batch = rows;
    w->other_batch = rows + 1;
    TERN_TRY(rows == tern_size(in[0], 0)
                 ? run(w, &w->trace, first, n, results, o->n_outputs, m)
                 : run_other(w, &w->trace, first, n, results, o->n_outputs, m));
    TERN_TRY(run_other(w, &w->other, second, n, results, o->n_outputs, m));
    return check_alike(w);
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* Returns an array that says for each call whether the results depend on it. */
static bool *needed_calls(onnx_export *w, const int *results, int k)
{
    bool *needed = onnx_alloc(w, (size_t)w->trace.n_calls + 1);
    for (int i = 0; needed && i < k; i++)
        if (w->trace.values[results[i]].call >= 0)
            needed[w->trace.values[results[i]].call] = true;
    for (int c = w->trace.n_calls - 1; needed && c >= 0; c--)
        for (int i = 0; needed[c] && i < w->trace.calls[c].n_in; i++) {
            int v = w->trace.calls[c].in[i];
            if (v >= 0 && w->trace.values[v].call >= 0)
                needed[w->trace.values[v].call] = true;
        }
    return needed;
}

static tern_status write_call(onnx_export *w, const tern_traced_call *c)
{
    w->call = c;
    w->begun = w->nodes.n;
    w->varies = false;
    onnx_writer writer = onnx_find_writer(w, c);
    if (!writer && !c->follows)
        return TERN_OK; /* the results of the call are constants */
    if (!writer)
        return onnx_cannot(w, "tern has no form for it there");
    if (c->is_lost && strcmp(c->op, "copy") != 0 && strcmp(c->op, "fill") != 0)
        return onnx_cannot(w, "it writes into a constant");
    TERN_TRY(writer(w, c));
    if (w->varies)
        return onnx_cannot(w, "its numbers follow the size of the batch");
    return w->status;
}

static Onnx__ValueInfoProto *value_info(onnx_export *w, const char *name, int value)
{
    tern_tensor *x = w->trace.values[value].tensor;
    Onnx__ValueInfoProto *info = onnx_alloc(w, sizeof *info);
    Onnx__TypeProto *type = onnx_alloc(w, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = onnx_alloc(w, sizeof *tensor);
    Onnx__TensorShapeProto *shape = onnx_alloc(w, sizeof *shape);
    if (w->status != TERN_OK)
        return info;
    *info = (Onnx__ValueInfoProto)ONNX__VALUE_INFO_PROTO__INIT;
    *type = (Onnx__TypeProto)ONNX__TYPE_PROTO__INIT;
    *tensor = (Onnx__TypeProto__Tensor)ONNX__TYPE_PROTO__TENSOR__INIT;
    *shape = (Onnx__TensorShapeProto)ONNX__TENSOR_SHAPE_PROTO__INIT;
    info->name = (char *)(uintptr_t)name;
    info->type = type;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = onnx_type_of(tern_dtype_of(x));
    tensor->shape = shape;
    shape->dim = onnx_alloc(w, sizeof *shape->dim * TERN_MAX_DIMS);
    for (int d = 0; shape->dim && d < tern_dim(x); d++) {
        Onnx__TensorShapeProto__Dimension *dim = onnx_alloc(w, sizeof *dim);
        if (!dim)
            break;
        *dim = (Onnx__TensorShapeProto__Dimension)ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dim->dim_value = tern_size(x, d);
        if (onnx_is_dynamic(w, value, d)) {
            bool is_batch = tern_size(x, d) == w->batch;
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dim->dim_param = onnx_text(w, is_batch ? "batch" : "batch_%lld",
                                       (long long)(tern_size(x, d) / w->batch));
        }
        shape->dim[shape->n_dim++] = dim;
    }
    return info;
}

/* Sets the name of input or output i: the requested one, or "input", "input_0" and so on. Fails
 * with TERN_ERR_ARGUMENT if another value has the requested name. */
static tern_status choose_name(onnx_export *w, const char *const *given, const char *what, int i,
                               int n, const char **name)
{
    if (given && (!given[i] || !*given[i] || tern_keys_find(&w->taken, given[i]) >= 0))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s %d can't be called '%.80s', which is %s",
                         function, what, i, given[i] ? given[i] : "",
                         given[i] && *given[i] ? "the name of something else" : "no name");
    *name = onnx_unique(w, given ? given[i] : n == 1 ? what : onnx_text(w, "%s_%d", what, i));
    return w->status;
}

static tern_status write_graph(onnx_export *w, int n, const int *results,
                               const tern_onnx_export_options *o, const members *m,
                               Onnx__GraphProto *graph)
{
    int k = o->n_outputs;
    size_t n_values = (size_t)w->trace.n_values + 1;
    w->names = onnx_alloc(w, sizeof *w->names * n_values);
    w->wanted = onnx_alloc(w, sizeof *w->wanted * n_values);
    graph->input = onnx_alloc(w, sizeof *graph->input * (size_t)n);
    graph->output = onnx_alloc(w, sizeof *graph->output * (size_t)k);
    const char **outputs = onnx_alloc(w, sizeof *outputs * (size_t)k);
    const bool *needed = needed_calls(w, results, k);
    if (w->status != TERN_OK)
        return w->status;
    for (size_t i = 0; i < m->paths.n; i++) /* members follow the inputs */
        w->wanted[(size_t)n + i] = m->paths.items[i];
    for (int i = 0; i < n; i++) {
        TERN_TRY(choose_name(w, o->input_names, "input", i, n, &w->names[i]));
        graph->input[graph->n_input++] = value_info(w, w->names[i], i);
    }
    for (int i = 0; i < k; i++) {
        TERN_TRY(choose_name(w, o->output_names, "output", i, k, &outputs[i]));
        if (w->trace.values[results[i]].source == TERN_TRACED_COMPUTED && !w->wanted[results[i]])
            w->wanted[results[i]] = outputs[i];
    }
    for (int c = 0; c < w->trace.n_calls; c++)
        if (needed[c])
            TERN_TRY(write_call(w, &w->trace.calls[c]));
    w->call = NULL;
    for (int i = 0; i < k && w->status == TERN_OK; i++) {
        const char *name = onnx_value_name(w, results[i]);
        if (name != outputs[i]) { /* an input, a member, a constant, or a result returned twice */
            ONNX_EMIT(w, "Identity", name);
            w->last->output[0] = (char *)(uintptr_t)outputs[i];
        }
        graph->output[graph->n_output++] = value_info(w, outputs[i], results[i]);
    }
    graph->node = (Onnx__NodeProto **)w->nodes.items;
    graph->n_node = w->nodes.n;
    graph->initializer = (Onnx__TensorProto **)w->initializers.items;
    graph->n_initializer = w->initializers.n;
    graph->name = onnx_text(w, "%s", tern_nn_name(w->module));
    return w->status;
}

/* ---- tern_onnx_export ------------------------------------------------------------------------ */

static tern_status export_module(onnx_export *w, tern_tensor *const *in, int n,
                                 const tern_onnx_export_options *o, members *m)
{
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    uint64_t failures = tern_failures();
    int *results = onnx_alloc(w, sizeof *results * (size_t)o->n_outputs);
    if (!results)
        return TERN_ERR_MEMORY;
    modes was = {.w = w};
    tern_status status = tern_nn_each_module(w->module, note_mode, &was);
    if (status == TERN_OK) {
        tern_nn_eval(w->module);
        status = trace_module(w, in, n, results, o, m);
    }
    restore_modes(&was);
    TERN_TRY(status);
    TERN_TRY(write_graph(w, n, results, o, m, &graph));
    TERN_TRY(tern_failed_since(failures));
    return onnx_write_model(w, &graph, o->external_data);
}

static tern_status check(tern_tensor *const *in, int n, const char *path,
                         const tern_onnx_export_options *o)
{
    if (!in || !path)
        return tern_fail_argument_null(function, in ? "path" : "inputs");
    if (n < 1 || o->n_outputs < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %d inputs, %d outputs", function, n, o->n_outputs);
    for (int i = 0; i < n; i++) {
        if (!in[i])
            return tern_fail_argument_null(function, "an input");
        if (!tern_there(in[i], "tensor", function, "an input"))
            return TERN_ERR_STATE;
        for (int j = 0; j < i; j++)
            if (in[i] == in[j])
                return tern_fail(TERN_ERR_ARGUMENT, "%s: inputs %d and %d are the same tensor",
                                 function, j, i);
    }
    return onnx_protobuf_open(true) ? TERN_OK : TERN_ERR_UNSUPPORTED;
}

tern_status tern_onnx_export(tern_module *module, tern_tensor *const *inputs, int n,
                             const char *path, const tern_onnx_export_options *options)
{
    const tern_onnx_export_options o = tern_read_onnx_export(options);
    if (!module)
        return tern_fail_argument_null(function, "module");
    if (!TERN_MODULE_GIVEN(module, function))
        return TERN_ERR_STATE;
    TERN_TRY(check(inputs, n, path, &o));
    onnx_export *w = tern_alloc(sizeof *w);
    if (!w)
        return TERN_ERR_MEMORY;
    w->path = path;
    w->module = module;
    members m = {.w = w};
    tern_status status = TERN_OK;
    TERN_SCOPE {
        status = export_module(w, inputs, n, &o, &m);
        tern_trace_free(&w->trace);
        tern_trace_free(&w->other);
    }
    tern_free(m.paths.items);
    onnx_free_export(w);
    return status;
}
