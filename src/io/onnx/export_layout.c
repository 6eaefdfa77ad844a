/* export_layout.c -- exports operations that move elements to ONNX: shapes, slices, indices,
 * padding. */
#include "io/onnx/export.h"
#include <string.h>

tern_status onnx_write_same(onnx_export *w, const tern_traced_call *c)
{
    (void)c;
    return onnx_done(w, onnx_in_name(w, 0));
}

tern_status onnx_write_cast(onnx_export *w, const tern_traced_call *c)
{
    tern_dtype dtype = tern_dtype_of(w->trace.values[c->out[0]].tensor);
    const char *y = ONNX_EMIT(w, "Cast", onnx_in_name(w, 0));
    onnx_put_int(w, "to", onnx_type_of(dtype));
    return onnx_done(w, y);
}

/* Writes x.copy_(y): y with the dtype and the shape of x. */
tern_status onnx_write_copy(onnx_export *w, const tern_traced_call *c)
{
    tern_dtype to = tern_dtype_of(w->trace.values[c->out[0]].tensor);
    tern_shape from = onnx_in_shape(w, 1), shape = onnx_out_shape(w, 0);
    const char *y = onnx_in_name(w, 1);
    if (onnx_in_dtype(w, 1) != to) {
        y = ONNX_EMIT(w, "Cast", y);
        onnx_put_int(w, "to", onnx_type_of(to));
    }
    bool same = from.ndim == shape.ndim &&
                !memcmp(from.dims, shape.dims, sizeof *shape.dims * (size_t)shape.ndim);
    return onnx_done(w, same ? y : ONNX_EMIT(w, "Expand", y, onnx_sizes(w, c->out[0], false)));
}

tern_status onnx_write_fill(onnx_export *w, const tern_traced_call *c)
{
    tern_dtype dtype = tern_dtype_of(w->trace.values[c->out[0]].tensor);
    const char *value = onnx_number(w, onnx_attr_number(w, "value"), dtype);
    return onnx_done(w, ONNX_EMIT(w, "Expand", value, onnx_sizes(w, c->out[0], false)));
}

/* ---- shapes ---------------------------------------------------------------------------------- */

tern_status onnx_write_reshape(onnx_export *w, const tern_traced_call *c)
{
    return onnx_done(w, onnx_reshape_to(w, onnx_in_name(w, 0), c->out[0]));
}

tern_status onnx_write_permute(onnx_export *w, const tern_traced_call *c)
{
    int64_t dims[TERN_MAX_DIMS];
    (void)c;
    int n = onnx_attr_list(w, "dims", dims);
    for (int i = 0; i < n; i++)
        dims[i] += dims[i] < 0 ? n : 0;
    const char *y = ONNX_EMIT(w, "Transpose", onnx_in_name(w, 0));
    onnx_put_ints(w, "perm", dims, n);
    return onnx_done(w, y);
}

/* Writes an expand. If the call has `dims`, x lacks them, and they are inserted with size 1
 * first. */
tern_status onnx_write_expand(onnx_export *w, const tern_traced_call *c)
{
    int64_t dims[TERN_MAX_DIMS];
    tern_shape from = onnx_in_shape(w, 0), to = onnx_out_shape(w, 0);
    const char *x = onnx_in_name(w, 0);
    int n = onnx_attr_list(w, "dims", dims);
    if (n > 0 && from.ndim + n == to.ndim)
        x = ONNX_EMIT(w, "Unsqueeze", x, onnx_ints_of(w, dims, n));
    return onnx_done(w, ONNX_EMIT(w, "Expand", x, onnx_sizes(w, c->out[0], false)));
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Returns x from start to end of a dim. An end beyond the size means the size. */
static const char *slice(onnx_export *w, const char *x, int64_t dim, int64_t start, int64_t end,
                         int64_t step)
{
    return ONNX_EMIT(w, "Slice", x, onnx_ints_of(w, &start, 1), onnx_ints_of(w, &end, 1),
                     onnx_ints_of(w, &dim, 1), onnx_ints_of(w, &step, 1));
}

tern_status onnx_write_slice(onnx_export *w, const tern_traced_call *c)
{
    int64_t dim = onnx_attr(w, "dim"), start = onnx_attr(w, "start"), end = INT64_MAX;
    int64_t step = onnx_attr(w, "step"), size = onnx_in_shape(w, 0).dims[dim];
    int64_t length = onnx_out_shape(w, 0).dims[dim];
    if (start == 0 && length == size) /* the whole dim, for any batch size */
        return onnx_done(w, ONNX_EMIT(w, "Identity", onnx_in_name(w, 0)));
    if (start + length * step < size || !onnx_is_dynamic(w, c->in[0], (int)dim))
        end = start + onnx_attr(w, "length") * step;
    return onnx_done(w, slice(w, onnx_in_name(w, 0), dim, start, end, step));
}

tern_status onnx_write_select(onnx_export *w, const tern_traced_call *c)
{
    int64_t dim = onnx_attr(w, "dim");
    (void)c;
    const char *index = onnx_number(w, (double)onnx_attr(w, "start"), TERN_I64);
    const char *y = ONNX_EMIT(w, "Gather", onnx_in_name(w, 0), index);
    onnx_put_int(w, "axis", dim);
    return onnx_done(w, y);
}

tern_status onnx_write_split(onnx_export *w, const tern_traced_call *c)
{
    int dim = (int)onnx_attr(w, "dim");
    int64_t sizes[TERN_MAX_DIMS];
    for (int k = 0; k < c->n_out; k++) {
        sizes[k] = onnx_out_shape(w, k).dims[dim];
        w->varies = w->varies || onnx_is_dynamic(w, c->out[k], dim);
    }
    const char *y = ONNX_EMIT(w, "Split", onnx_in_name(w, 0), onnx_ints_of(w, sizes, c->n_out));
    onnx_put_int(w, "axis", dim);
    Onnx__NodeProto *node = w->last;
    for (int k = 1; k < c->n_out; k++)
        onnx_another(w);
    onnx_result(w, 0, y);
    for (int k = 1; k < c->n_out; k++) {
        w->last = node;
        onnx_result(w, k, node->output[k]);
    }
    return w->status;
}

tern_status onnx_write_cat(onnx_export *w, const tern_traced_call *c)
{
    const char **parts = onnx_alloc(w, sizeof *parts * (size_t)c->n_in);
    if (!parts)
        return TERN_ERR_MEMORY;
    int n = 0, ndim = onnx_out_shape(w, 0).ndim;
    for (int i = 0; i < c->n_in; i++)
        if (onnx_in_shape(w, i).ndim == ndim) /* cat ignores empty vectors, as PyTorch does */
            parts[n++] = onnx_in_name(w, i);
    const char *y = onnx_emit(w, "Concat", parts, n);
    onnx_put_int(w, "axis", onnx_attr(w, "dim"));
    return onnx_done(w, y);
}

tern_status onnx_write_flip(onnx_export *w, const tern_traced_call *c)
{
    int64_t dims[TERN_MAX_DIMS];
    (void)c;
    const char *x = onnx_in_name(w, 0);
    int n = onnx_attr_list(w, "dims", dims);
    for (int i = 0; i < n; i++)
        x = slice(w, x, dims[i], -1, INT64_MIN, -1);
    return onnx_done(w, n ? x : ONNX_EMIT(w, "Identity", x));
}

tern_status onnx_write_roll(onnx_export *w, const tern_traced_call *c)
{
    int64_t shifts[TERN_MAX_DIMS];
    (void)c;
    const char *x = onnx_in_name(w, 0);
    tern_shape shape = onnx_in_shape(w, 0);
    onnx_attr_list(w, "shifts", shifts);
    for (int d = 0; d < shape.ndim; d++)
        if (shifts[d]) {
            const char *back = slice(w, x, d, -shifts[d], INT64_MAX, 1);
            x = ONNX_EMIT(w, "Concat", back, slice(w, x, d, 0, -shifts[d], 1));
            onnx_put_int(w, "axis", d);
        }
    return onnx_done(w, x);
}

tern_status onnx_write_tril(onnx_export *w, const tern_traced_call *c)
{
    const char *diagonal = onnx_number(w, (double)onnx_attr(w, "diagonal"), TERN_I64);
    const char *y = ONNX_EMIT(w, "Trilu", onnx_in_name(w, 0), diagonal);
    onnx_put_int(w, "upper", !strcmp(c->op, "triu"));
    return onnx_done(w, y);
}

/* ---- indices --------------------------------------------------------------------------------- */

tern_status onnx_write_gather(onnx_export *w, const tern_traced_call *c)
{
    bool each = onnx_attr(w, "each");
    int64_t dim = onnx_attr(w, "dim");
    const char *y =
        ONNX_EMIT(w, each ? "GatherElements" : "Gather", onnx_in_name(w, 0), onnx_in_name(w, 1));
    onnx_put_int(w, "axis", dim);
    int made = onnx_in_shape(w, 0).ndim + onnx_in_shape(w, 1).ndim - 1;
    if (!each && made != onnx_out_shape(w, 0).ndim)
        y = onnx_reshape_to(w, y, c->out[0]);
    return onnx_done(w, y);
}

tern_status onnx_write_scatter(onnx_export *w, const tern_traced_call *c)
{
    static const char *const modes[] = {"none", "add", "mul", "max", "min"};
    (void)c;
    if (onnx_attr(w, "rows"))
        return onnx_cannot(w, "it writes rows");
    int64_t dim = onnx_attr(w, "dim"), mode = onnx_attr(w, "mode");
    const char *y =
        ONNX_EMIT(w, "ScatterElements", onnx_in_name(w, 0), onnx_in_name(w, 1), onnx_in_name(w, 2));
    onnx_put_int(w, "axis", dim);
    onnx_put_text(w, "reduction", modes[mode]);
    return onnx_done(w, y);
}

/* ---- padding --------------------------------------------------------------------------------- */

tern_status onnx_write_constant_pad(onnx_export *w, const tern_traced_call *c)
{
    int64_t pads[2 * TERN_MAX_DIMS], after[TERN_MAX_DIMS];
    (void)c;
    int n = onnx_in_shape(w, 0).ndim;
    onnx_attr_list(w, "before", pads);
    onnx_attr_list(w, "after", after);
    memcpy(pads + n, after, sizeof *pads * (size_t)n);
    const char *value = onnx_number(w, onnx_attr_number(w, "value"), onnx_in_dtype(w, 0));
    const char *y = ONNX_EMIT(w, "Pad", onnx_in_name(w, 0), onnx_ints_of(w, pads, 2 * n), value);
    return onnx_done(w, y);
}

tern_status onnx_write_pad(onnx_export *w, const tern_traced_call *c)
{
    static const char *const modes[] = {[TERN_PAD_REFLECT] = "reflect",
                                        [TERN_PAD_REPLICATE] = "edge",
                                        [TERN_PAD_CIRCULAR] = "wrap"};
    int64_t pads[2 * TERN_MAX_DIMS] = {0};
    (void)c;
    int n = onnx_in_shape(w, 0).ndim, dim = (int)onnx_attr(w, "dim");
    int64_t mode = onnx_attr(w, "mode");
    pads[dim] = onnx_attr(w, "before");
    pads[n + dim] = onnx_attr(w, "after");
    if (pads[dim] < 0 || pads[n + dim] < 0)
        return onnx_cannot(w, "it cuts where others pad");
    const char *y = ONNX_EMIT(w, "Pad", onnx_in_name(w, 0), onnx_ints_of(w, pads, 2 * n));
    onnx_put_text(w, "mode", modes[mode]);
    return onnx_done(w, y);
}
