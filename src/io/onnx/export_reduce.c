/* export_reduce.c -- exports reductions, cumulative sums and sorting to ONNX. */
#include "io/onnx/export.h"
#include <math.h>
#include <string.h>

/* Returns a reduction of x over dims[n], or over all dims if n is 0. */
static const char *reduced(onnx_export *w, const char *type, const char *x, const int64_t *dims,
                           int n, bool keep)
{
    const char *y = n ? ONNX_EMIT(w, type, x, onnx_ints_of(w, dims, n)) : ONNX_EMIT(w, type, x);
    onnx_put_int(w, "keepdims", keep);
    return y;
}

static bool keeps_dims(const onnx_export *w)
{
    return onnx_out_shape(w, 0).ndim == onnx_in_shape(w, 0).ndim;
}

/* Reads the dims of a reduction: a list, or one number for operations with one dim. */
static int dims_of(onnx_export *w, int64_t dims[TERN_MAX_DIMS])
{
    int n = onnx_attr_list(w, "dims", dims);
    return n >= 0 ? n : onnx_attr_list(w, "dim", dims);
}

static const char *type_of(const char *op)
{
    static const char *const types[][2] = {
        {"sum", "ReduceSum"},   {"mean", "ReduceMean"},
        {"max", "ReduceMax"},   {"amax", "ReduceMax"},
        {"min", "ReduceMin"},   {"amin", "ReduceMin"},
        {"prod", "ReduceProd"}, {"argmax", "ArgMax"},
        {"argmin", "ArgMin"},   {"logsumexp", "ReduceLogSumExp"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i][0], op))
            return types[i][1];
    return NULL;
}

/* Returns the indices of the first maxima or minima, over one dim or over all elements. */
static const char *places(onnx_export *w, const char *type, const char *x, const int64_t *dims,
                          int n, bool keep)
{
    bool all = n != 1;
    if (all) {
        int64_t flat = -1;
        x = ONNX_EMIT(w, "Reshape", x, onnx_ints_of(w, &flat, 1));
    }
    const char *y = ONNX_EMIT(w, type, x);
    onnx_put_int(w, "axis", all ? 0 : dims[0]);
    onnx_put_int(w, "keepdims", all ? 0 : keep);
    return y;
}

tern_status onnx_write_reduce(onnx_export *w, const tern_traced_call *c)
{
    int64_t dims[TERN_MAX_DIMS];
    int n = dims_of(w, dims);
    bool keep = keeps_dims(w);
    tern_dtype from = onnx_in_dtype(w, 0), to = tern_dtype_of(w->trace.values[c->out[0]].tensor);
    const char *type = type_of(c->op), *x = onnx_in_name(w, 0);
    if (onnx_in_shape(w, 0).ndim == 0)
        n = 0;
    if (!strncmp(type, "Arg", 3)) {
        const char *y = places(w, type, x, dims, n, keep);
        return onnx_done(w, n == 1 ? y : onnx_reshape_to(w, y, c->out[0]));
    }
    if (from != to) {
        x = ONNX_EMIT(w, "Cast", x);
        onnx_put_int(w, "to", onnx_type_of(to));
    }
    onnx_done(w, reduced(w, type, x, dims, n, keep));
    if (c->n_out > 1) { /* max and min of one dim also return indices */
        const char *arg = c->op[1] == 'a' ? "ArgMax" : "ArgMin";
        onnx_result(w, 1, places(w, arg, x, dims, n, keep));
    }
    return w->status;
}

/* Writes the mean of the squared deviations times n / (n - correction). */
tern_status onnx_write_variance(onnx_export *w, const tern_traced_call *c)
{
    int64_t dims[TERN_MAX_DIMS];
    int n = dims_of(w, dims);
    double count = 1, correction = onnx_attr_number(w, "correction");
    tern_shape shape = onnx_in_shape(w, 0);
    for (int i = 0; i < n; i++) {
        count *= (double)shape.dims[dims[i]];
        w->varies = w->varies || (correction != 0 && onnx_is_dynamic(w, c->in[0], (int)dims[i]));
    }
    tern_dtype dtype = onnx_in_dtype(w, 0);
    const char *x = onnx_in_name(w, 0);
    const char *rest = ONNX_EMIT(w, "Sub", x, reduced(w, "ReduceMean", x, dims, n, true));
    const char *y =
        reduced(w, "ReduceMean", ONNX_EMIT(w, "Mul", rest, rest), dims, n, keeps_dims(w));
    if (correction != 0)
        y = ONNX_EMIT(w, "Mul", y, onnx_number(w, count / fmax(count - correction, 0), dtype));
    return onnx_done(w, !strcmp(c->op, "std") ? ONNX_EMIT(w, "Sqrt", y) : y);
}

/* Writes (sum |x|^p)^(1/p). */
tern_status onnx_write_vector_norm(onnx_export *w, const tern_traced_call *c)
{
    int64_t dims[TERN_MAX_DIMS];
    int n = dims_of(w, dims);
    double p = onnx_attr_number(w, "p");
    bool keep = keeps_dims(w);
    (void)c;
    const char *x = onnx_in_name(w, 0);
    tern_dtype dtype = onnx_in_dtype(w, 0);
    if (p == 1 || p == 2)
        return onnx_done(w, reduced(w, p == 1 ? "ReduceL1" : "ReduceL2", x, dims, n, keep));
    const char *size = ONNX_EMIT(w, "Abs", x);
    if (isinf(p))
        return onnx_done(w, reduced(w, p > 0 ? "ReduceMax" : "ReduceMin", size, dims, n, keep));
    if (p == 0)
        return onnx_cannot(w, "p is 0");
    const char *powers = ONNX_EMIT(w, "Pow", size, onnx_number(w, p, dtype));
    const char *sum = reduced(w, "ReduceSum", powers, dims, n, keep);
    return onnx_done(w, ONNX_EMIT(w, "Pow", sum, onnx_number(w, 1 / p, dtype)));
}

tern_status onnx_write_cumsum(onnx_export *w, const tern_traced_call *c)
{
    (void)c;
    const char *y = ONNX_EMIT(w, "CumSum", onnx_in_name(w, 1),
                              onnx_number(w, (double)onnx_attr(w, "dim"), TERN_I64));
    onnx_put_int(w, "reverse", onnx_attr(w, "reverse"));
    return onnx_done(w, y);
}

/* Writes the indices of the first k elements in sorted order. */
tern_status onnx_write_sort(onnx_export *w, const tern_traced_call *c)
{
    int64_t k = onnx_attr(w, "k"), dim = onnx_attr(w, "dim"), down = onnx_attr(w, "descending");
    (void)c;
    ONNX_EMIT(w, "TopK", onnx_in_name(w, 0), onnx_ints_of(w, &k, 1));
    onnx_put_int(w, "axis", dim);
    onnx_put_int(w, "largest", down != 0);
    return onnx_done(w, onnx_another(w));
}
