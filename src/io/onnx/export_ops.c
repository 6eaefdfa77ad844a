/* export_ops.c -- finds the function that exports an operation by the operation's name. */
#include "io/onnx/export.h"
#include <string.h>

static const struct {
    const char *op;
    onnx_writer write;
} writers[] = {
#define WRITER(NAME, function) {#NAME, onnx_write_##function},
#include "io/onnx/export.def"
#undef WRITER
};

onnx_writer onnx_find_writer(const onnx_export *w, const tern_traced_call *c)
{
    tern_dtype dtype = 0;
    for (int i = 0; i < c->n_in && !dtype; i++)
        if (c->in[i] >= 0)
            dtype = tern_dtype_of(w->trace.values[c->in[i]].tensor);
    if (onnx_find_formula(c->op, !tern_dtype_is_floating_point(dtype)))
        return onnx_write_formula;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (!strcmp(writers[i].op, c->op))
            return writers[i].write;
    return NULL;
}
