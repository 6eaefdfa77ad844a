/* read.c -- functions that read the attributes of a node, and those of its inputs whose values the
 * host needs. */
#include "io/onnx/graph.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    return TERN_OK; /* the error of a NULL y has been recorded */
}

int onnx_axis(int64_t axis, int dims)
{
    if (axis < -(int64_t)dims || axis > dims)
        return INT16_MAX; /* larger than any number of dims */
    return (int)(axis < 0 ? axis + dims : axis);
}
