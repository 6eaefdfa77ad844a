/* old_sets.c -- differences of operator sets 1 to 6. */
#include "io/onnx/graph.h"
#include <string.h>

/* Up to set 6 an attribute `axis` gives the dim at which the second operand starts; without it the
 * last dims are aligned. The slopes of a PRelu start at dim 1. */
tern_status onnx_align(onnx_call *c)
{
    const bool slopes = !strcmp(c->proto->op_type, "PRelu");
    tern_tensor *x = c->n_in > 1 ? c->in[0] : NULL, *y = x ? c->in[1] : NULL;
    if (!y || (!onnx_attribute(c, "axis") && !(slopes && tern_dim(y) == 1 && tern_dim(x) > 1)))
        return TERN_OK;
    const int axis = onnx_axis(onnx_int(c, "axis", 1), tern_dim(x));
    if (axis < 0 || axis + tern_dim(y) > tern_dim(x))
        return onnx_fail(c, TERN_ERR_SHAPE, "axis %lld of %d dims, for %d",
                         (long long)onnx_int(c, "axis", 1), tern_dim(x), tern_dim(y));
    tern_shape shape = tern_shape_of(y);
    while (axis + shape.ndim < tern_dim(x))
        shape.dims[shape.ndim++] = 1;
    c->in[1] = tern_reshape(y, shape);
    return c->in[1] ? TERN_OK : tern_last_status();
}

int64_t onnx_type_in(const onnx_call *c, const char *name)
{
    static const char *const types[] = {"",        "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                        "INT16",   "INT32",  "INT64",  "STRING", "BOOL",
                                        "FLOAT16", "DOUBLE", "UINT32", "UINT64"};
    const Onnx__AttributeProto *a = onnx_attribute(c, name);
    for (size_t i = 1; a && a->s.len && i < sizeof types / sizeof *types; i++)
        if (strlen(types[i]) == a->s.len && !memcmp(types[i], a->s.data, a->s.len))
            return (int64_t)i;
    return onnx_int(c, name, 0);
}
