/* export_graph.c -- the messages of an exported graph, the names of its values, and functions that
 * read a traced call. */
#include "base/memory.h"
#include "io/onnx/export.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- memory, which lives until the end ------------------------------------------------------- */

enum { CHUNK = 1 << 16 };

void *onnx_alloc(onnx_export *w, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > w->left) {
        size_t size = bytes > CHUNK ? bytes : CHUNK;
        void **chunk = tern_alloc(size + 16);
        if (!chunk) {
            w->status = w->status ? w->status : TERN_ERR_MEMORY;
            return NULL;
        }
        *chunk = w->chunks;
        w->chunks = chunk;
        w->left = size;
    }
    w->left -= bytes;
    return (char *)w->chunks + 16 + w->left; /* allocated from the end, so that one number describes
                                                the chunk */
}

static char *add_text(onnx_export *w, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = onnx_alloc(w, (size_t)n + 1);
    if (!text)
        return "";
    vsnprintf(text, (size_t)n + 1, format, args);
    return text;
}

char *onnx_text(onnx_export *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = add_text(w, format, args);
    va_end(args);
    return text;
}

const char *onnx_unique(onnx_export *w, const char *text)
{
    const char *name = onnx_text(w, "%s", text);
    while (w->status == TERN_OK && tern_keys_find(&w->taken, name) >= 0)
        name = onnx_text(w, "%s_%d", text, w->numbers++);
    if (w->status == TERN_OK)
        w->status = tern_keys_add(&w->taken, name, 0);
    return name;
}

void onnx_append(onnx_export *w, onnx_list *list, void *item)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 32;
        void *more = tern_grow(list->items, capacity * sizeof *list->items);
        if (!more) {
            w->status = w->status ? w->status : TERN_ERR_MEMORY;
            return;
        }
        list->items = more;
        list->capacity = capacity;
    }
    list->items[list->n++] = item;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

typedef struct module_search {
    onnx_export *w;
    const tern_module *wanted;
    char *path;
} module_search;

static tern_status visit_module(const char *path, tern_module *m, void *user)
{
    module_search *s = user;
    if (m == s->wanted)
        s->path = onnx_text(s->w, "%s", path);
    return TERN_OK;
}

/* Returns the path of the module that made the call, "" for the outermost. */
const char *onnx_path_of_call(onnx_export *w)
{
    module_search s = {.w = w, .wanted = w->call ? w->call->module : NULL, .path = ""};
    if (s.wanted)
        tern_nn_each_module(w->module, visit_module, &s);
    return s.path;
}

static char *new_name(onnx_export *w, const char *type)
{
    return (char *)(uintptr_t)onnx_unique(w, onnx_text(w, "/%s_%d", type, w->numbers++));
}

const char *onnx_emit(onnx_export *w, const char *type, const char *const *in, int n)
{
    while (n > 0 && !in[n - 1])
        n--;
    onnx_emitted *e = onnx_alloc(w, sizeof *e);
    char **inputs = onnx_alloc(w, sizeof *inputs * (size_t)(n + 1));
    bool there = e && inputs;
    e = there ? e : &w->spare;
    e->node = (Onnx__NodeProto)ONNX__NODE_PROTO__INIT;
    e->node.op_type = onnx_text(w, "%s", type);
    e->node.output = e->outputs;
    e->node.attribute = e->attributes;
    e->outputs[0] = new_name(w, type);
    e->node.n_output = 1;
    const char *path = onnx_path_of_call(w);
    e->node.name = onnx_text(w, "%s%s", path, e->outputs[0] + !*path);
    for (int i = 0; there && i < n; i++)
        inputs[i] = (char *)(uintptr_t)(in[i] ? in[i] : "");
    e->node.input = inputs;
    e->node.n_input = there ? (size_t)n : 0;
    if (there)
        onnx_append(w, &w->nodes, &e->node);
    w->last = &e->node;
    return e->outputs[0];
}

const char *onnx_another(onnx_export *w)
{
    return w->last->output[w->last->n_output++] = new_name(w, w->last->op_type);
}

static Onnx__AttributeProto *put(onnx_export *w, const char *name,
                                 Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = onnx_alloc(w, sizeof *a);
    a = a ? a : &w->spare_attribute;
    *a = (Onnx__AttributeProto)ONNX__ATTRIBUTE_PROTO__INIT;
    a->name = onnx_text(w, "%s", name);
    a->has_type = 1;
    a->type = type;
    w->last->attribute[w->last->n_attribute++] = a;
    return a;
}

void onnx_put_int(onnx_export *w, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = put(w, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = value;
}

void onnx_put_ints(onnx_export *w, const char *name, const int64_t *list, int n)
{
    Onnx__AttributeProto *a = put(w, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->ints = onnx_alloc(w, sizeof *list * (size_t)(n + 1));
    if (a->ints)
        memcpy(a->ints, list, sizeof *list * (size_t)n);
    a->n_ints = a->ints ? (size_t)n : 0;
}

void onnx_put_real(onnx_export *w, const char *name, double value)
{
    Onnx__AttributeProto *a = put(w, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = (float)value;
}

void onnx_put_text(onnx_export *w, const char *name, const char *text)
{
    Onnx__AttributeProto *a = put(w, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s.data = (uint8_t *)onnx_text(w, "%s", text);
    a->s.len = strlen(text);
}

void onnx_put_texts(onnx_export *w, const char *name, const char *text)
{
    Onnx__AttributeProto *a = put(w, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    a->strings = onnx_alloc(w, sizeof *a->strings);
    if (!a->strings)
        return;
    a->strings->data = (uint8_t *)onnx_text(w, "%s", text);
    a->strings->len = strlen(text);
    a->n_strings = 1;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Returns the message of a tensor, whose bytes are added at the end; NULL after an error. */
static Onnx__TensorProto *tensor_of(onnx_export *w, const char *name, tern_tensor *x,
                                    bool is_inside)
{
    int type = x ? onnx_type_of(tern_dtype_of(x)) : 0;
    if (!type) {
        if (w->status == TERN_OK)
            w->status = x ? tern_fail(TERN_ERR_DTYPE, "tern_onnx_export: ONNX has no type %s (%s)",
                                      tern_dtype_name(tern_dtype_of(x)), name)
                          : TERN_ERR_MEMORY;
        return NULL;
    }
    Onnx__TensorProto *t = onnx_alloc(w, sizeof *t);
    onnx_weight *weight = onnx_alloc(w, sizeof *weight);
    int64_t *dims = onnx_alloc(w, sizeof *dims * TERN_MAX_DIMS);
    if (!t || !weight || !dims)
        return NULL;
    *t = (Onnx__TensorProto)ONNX__TENSOR_PROTO__INIT;
    t->name = onnx_text(w, "%s", name);
    t->has_data_type = 1;
    t->data_type = type;
    t->n_dims = (size_t)tern_dim(x);
    t->dims = memcpy(dims, tern_shape_of(x).dims, sizeof *dims * t->n_dims);
    *weight = (onnx_weight){t, x, is_inside};
    onnx_append(w, &w->weights, weight);
    return t;
}

const char *onnx_initializer(onnx_export *w, const char *name, tern_tensor *x)
{
    Onnx__TensorProto *t = tensor_of(w, name, x, false);
    if (!t)
        return name;
    onnx_append(w, &w->initializers, t);
    return t->name;
}

/* Importers treat floating-point initializers as parameters, so a constant is written as a node. */
const char *onnx_constant_of(onnx_export *w, tern_tensor *x)
{
    const char *name = new_name(w, "constant");
    if (x && !tern_dtype_is_floating_point(tern_dtype_of(x)))
        return onnx_initializer(w, name, x);
    Onnx__TensorProto *t = tensor_of(w, name, x, true);
    const char *y = onnx_emit(w, "Constant", NULL, 0);
    Onnx__AttributeProto *a = put(w, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
    a->t = t;
    return y;
}

const char *onnx_ints_of(onnx_export *w, const int64_t *list, int n)
{
    tern_tensor *x = tern_from_data((const void *)list, TERN_SHAPE(n), TERN_I64, "cpu");
    return onnx_constant_of(w, x);
}

const char *onnx_number(onnx_export *w, double value, tern_dtype dtype)
{
    tern_scalar number = TERN_SCALAR(value);
    if (!tern_dtype_is_floating_point(dtype)) { /* infinite bounds become the largest integers */
        double last = dtype == TERN_I64 ? 0x1.fffffffffffffp62 : dtype == TERN_U8 ? 255 : INT32_MAX;
        double first = dtype == TERN_U8 || dtype == TERN_BOOL ? 0 : -last;
        value = value > last ? last : value < first ? first : value;
        number = TERN_SCALAR((int64_t)value);
    }
    tern_tensor *x = tern_tensor_scalar(number, dtype, "cpu");
    return onnx_constant_of(w, x);
}

/* ---- values of the trace --------------------------------------------------------------------- */

/* Returns a constant whose size depends on the batch as one element that is expanded. Fails unless
 * all elements are equal. */
static const char *expanded(onnx_export *w, int value)
{
    tern_tensor *x = w->trace.values[value].tensor;
    tern_tensor *first = tern_flatten(x, 0, -1);
    first = first && tern_numel(first) ? tern_select(first, 0, 0) : NULL;
    if (!first || !tern_item_int(tern_all(tern_eq(x, first)))) {
        onnx_cannot(w, "a constant beside it follows the size of the batch");
        return "";
    }
    const char *number = onnx_constant_of(w, first);
    return ONNX_EMIT(w, "Expand", number, onnx_sizes(w, value, false));
}

const char *onnx_value_name(onnx_export *w, int value)
{
    if (value < 0)
        return NULL;
    const tern_traced_value *v = &w->trace.values[value];
    if (!w->names[value] && v->follows) {
        w->call = &w->trace.calls[v->call];
        onnx_cannot(w, v->output ? "a further result of it is used" : "its result is used");
        return "";
    }
    if (!w->names[value]) { /* a constant, or computed from members alone by operations that can't
                               be written */
        bool dynamic = false;
        for (int d = 0; d < tern_dim(w->trace.values[value].tensor); d++)
            dynamic = dynamic || onnx_is_dynamic(w, value, d);
        if (dynamic)
            return expanded(w, value); /* written for each use, since the nodes that compute the
                                          shape must come before it */
        tern_tensor *x = w->trace.values[value].tensor;
        bool is_member = w->trace.values[value].source == TERN_TRACED_MEMBER;
        w->names[value] =
            is_member ? onnx_initializer(w, w->wanted[value], x) : onnx_constant_of(w, x);
    }
    return w->names[value];
}

const char *onnx_in_name(onnx_export *w, int i)
{
    return i < w->call->n_in ? onnx_value_name(w, w->call->in[i]) : NULL;
}

tern_status onnx_result(onnx_export *w, int k, const char *name)
{
    int v = w->call->out[k];
    const char *wanted = w->wanted[v];
    if (wanted) { /* `name` must be a result of the last node, else an Identity node renames it */
        int at = -1;
        for (size_t i = 0; w->nodes.n > w->begun && i < w->last->n_output; i++)
            at = w->last->output[i] == name ? (int)i : at;
        if (at < 0) {
            ONNX_EMIT(w, "Identity", name);
            at = 0;
        }
        w->last->output[at] = (char *)(uintptr_t)wanted;
        name = wanted;
    }
    w->names[v] = name;
    return w->status;
}

bool onnx_is_used(const onnx_export *w, int k)
{
    int v = w->call->out[k];
    for (const tern_traced_call *c = w->call + 1; c < w->trace.calls + w->trace.n_calls; c++)
        for (int i = 0; i < c->n_in; i++)
            if (c->in[i] == v)
                return true;
    return w->wanted[v] != NULL;
}

tern_status onnx_done(onnx_export *w, const char *name)
{
    return onnx_result(w, 0, name);
}

tern_shape onnx_in_shape(const onnx_export *w, int i)
{
    return tern_shape_of(w->trace.values[w->call->in[i]].tensor);
}

tern_shape onnx_out_shape(const onnx_export *w, int k)
{
    return tern_shape_of(w->trace.values[w->call->out[k]].tensor);
}

tern_dtype onnx_in_dtype(const onnx_export *w, int i)
{
    return tern_dtype_of(w->trace.values[w->call->in[i]].tensor);
}

bool onnx_has(const onnx_export *w, int i)
{
    return i < w->call->n_in && w->call->in[i] >= 0;
}

bool onnx_is_dynamic(const onnx_export *w, int value, int d)
{
    return w->other_batch && tern_size(w->trace.values[value].tensor, d) !=
                                 tern_size(w->other.values[value].tensor, d);
}

/* Returns size d of a value as a one-element vector that is computed from the batch size. */
static const char *size_of_batch(onnx_export *w, int value, int d)
{
    int64_t n = tern_size(w->trace.values[value].tensor, d);
    int64_t m = tern_size(w->other.values[value].tensor, d);
    if (n % w->batch || m % w->other_batch || n / w->batch != m / w->other_batch) {
        onnx_cannot(w, "a size of its result is no multiple of the batch's");
        return "";
    }
    if (!w->batch_name) {
        w->batch_name = ONNX_EMIT(w, "Shape", w->names[0]);
        onnx_put_int(w, "start", 0);
        onnx_put_int(w, "end", 1);
    }
    int64_t times = n / w->batch;
    return times == 1 ? w->batch_name
                      : ONNX_EMIT(w, "Mul", w->batch_name, onnx_ints_of(w, &times, 1));
}

const char *onnx_sizes(onnx_export *w, int value, bool infer)
{
    tern_shape shape = tern_shape_of(w->trace.values[value].tensor);
    const char *parts[TERN_MAX_DIMS];
    int varying = 0;
    for (int d = 0; d < shape.ndim; d++)
        varying += onnx_is_dynamic(w, value, d);
    if (varying <= (int)infer) {
        for (int d = 0; d < shape.ndim; d++)
            if (onnx_is_dynamic(w, value, d))
                shape.dims[d] = -1;
        return onnx_ints_of(w, shape.dims, shape.ndim);
    }
    for (int d = 0; d < shape.ndim; d++)
        parts[d] = onnx_is_dynamic(w, value, d) ? size_of_batch(w, value, d)
                                                : onnx_ints_of(w, &shape.dims[d], 1);
    const char *sizes = onnx_emit(w, "Concat", parts, shape.ndim);
    onnx_put_int(w, "axis", 0);
    return sizes;
}

const char *onnx_reshape_to(onnx_export *w, const char *x, int value)
{
    const char *y = ONNX_EMIT(w, "Reshape", x, onnx_sizes(w, value, true));
    bool empty = tern_numel(w->trace.values[value].tensor) == 0;
    if (empty)
        onnx_put_int(w, "allowzero", 1);
    return y;
}

/* ---- attributes of the call ------------------------------------------------------------------ */

int onnx_attr_list(onnx_export *w, const char *name, int64_t list[TERN_MAX_DIMS])
{
    int64_t same[TERN_MAX_DIMS];
    int n = tern_traced_ints(w->call, name, list);
    if (w->other_batch) {
        int m = tern_traced_ints(&w->other.calls[w->call - w->trace.calls], name, same);
        if (n != m || (n > 0 && memcmp(list, same, sizeof *list * (size_t)n)))
            w->varies = true;
    }
    return n;
}

int64_t onnx_attr(onnx_export *w, const char *name)
{
    int64_t list[TERN_MAX_DIMS] = {0};
    onnx_attr_list(w, name, list);
    return list[0];
}

double onnx_attr_number(onnx_export *w, const char *name)
{
    double number = 0, same = 0;
    tern_traced_number(w->call, name, &number);
    if (w->other_batch) {
        tern_traced_number(&w->other.calls[w->call - w->trace.calls], name, &same);
        w->varies = w->varies || memcmp(&number, &same, sizeof same);
    }
    return number;
}

tern_status onnx_cannot(onnx_export *w, const char *why)
{
    const char *path = onnx_path_of_call(w);
    tern_status status =
        tern_fail(TERN_ERR_UNSUPPORTED, "tern_onnx_export: %s%s%s can't be written to ONNX: %s",
                  w->call->op, *path ? " of module " : "", path, why);
    w->status = w->status ? w->status : status;
    return status;
}
