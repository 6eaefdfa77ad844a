/* layout.c -- ONNX operations that move elements: shapes, slices, indices. */
#include "io/onnx/operations.h"
#include <string.h>

/* ---- shapes, which are on the host ----------------------------------------------------------- */

static tern_tensor *host_ints(const int64_t *values, int n)
{
    return tern_from_data((const void *)values, TERN_SHAPE(n), TERN_I64, "cpu");
}

tern_status onnx_shape(onnx_call *c)
{
    tern_shape shape = tern_shape_of(onnx_in(c, 0));
    int64_t start = onnx_int(c, "start", 0), end = onnx_int(c, "end", shape.ndim);
    start += start < 0 ? shape.ndim : 0;
    end += end < 0 ? shape.ndim : 0;
    start = start < 0 ? 0 : start > shape.ndim ? shape.ndim : start;
    end = end > shape.ndim ? shape.ndim : end < start ? start : end;
    return onnx_give(c, host_ints(shape.dims + start, (int)(end - start)));
}

tern_status onnx_size(onnx_call *c)
{
    return onnx_give(c,
                     tern_tensor_scalar(TERN_SCALAR(tern_numel(onnx_in(c, 0))), TERN_I64, "cpu"));
}

/* Sets *shape to the integers of input i. Returns false after an error. */
static bool sizes(const onnx_call *c, int i, tern_shape *shape)
{
    int64_t list[ONNX_DIMS];
    int n = onnx_input_ints(c, i, list);
    if (n > TERN_MAX_DIMS || n == -1) {
        onnx_fail(c, TERN_ERR_SHAPE, "input %d is no shape of at most %d dims", i, TERN_MAX_DIMS);
        return false;
    }
    if (n >= 0)
        *shape = tern_shape_from(n, list);
    return n >= 0;
}

tern_status onnx_reshape(onnx_call *c)
{
    tern_shape shape;
    tern_tensor *x = onnx_in(c, 0);
    if (onnx_in(c, 1) || c->opset > 4) {
        if (!sizes(c, 1, &shape))
            return TERN_OK;
    } else {
        int64_t list[ONNX_DIMS];
        const int n = onnx_ints(c, "shape", list);
        if (n < 0 || n > TERN_MAX_DIMS)
            return onnx_fail(c, TERN_ERR_SHAPE, "has no shape of at most %d dims", TERN_MAX_DIMS);
        shape = tern_shape_from(n, list);
    }
    for (int d = 0; d < shape.ndim && !onnx_int(c, "allowzero", 0); d++)
        if (shape.dims[d] == 0 && d < tern_dim(x))
            shape.dims[d] = tern_size(x, d);
    return onnx_give(c, tern_reshape(x, shape));
}

tern_status onnx_flatten(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int axis = onnx_axis(onnx_int(c, "axis", 1), tern_dim(x));
    int64_t rows = 1;
    if (axis < 0 || axis > tern_dim(x))
        return onnx_fail(c, TERN_ERR_SHAPE, "axis %d of %d dims", axis, tern_dim(x));
    for (int d = 0; d < axis && d < tern_dim(x); d++)
        rows *= tern_size(x, d);
    return onnx_give(c, tern_reshape(x, TERN_SHAPE(rows, rows ? tern_numel(x) / rows : -1)));
}

tern_status onnx_squeeze(onnx_call *c)
{
    int64_t axes[ONNX_DIMS];
    int n = onnx_axes(c, "axes", 1, axes);
    if (n == -2)
        return TERN_OK;
    for (int i = 0; i < n; i++)
        if (tern_size(onnx_in(c, 0), (int)axes[i]) != 1)
            return onnx_fail(c, TERN_ERR_SHAPE, "dim %lld is not of size 1", (long long)axes[i]);
    return onnx_give(c, n < 0 ? tern_squeeze(onnx_in(c, 0))
                              : tern_squeeze_dims(onnx_in(c, 0), tern_shape_from(n, axes)));
}

tern_status onnx_unsqueeze(onnx_call *c)
{
    int64_t axes[ONNX_DIMS];
    tern_tensor *x = onnx_in(c, 0);
    int n = onnx_axes(c, "axes", 1, axes), dims = tern_dim(x) + n;
    bool is_new[TERN_MAX_DIMS] = {false};
    if (n < 0 || dims > TERN_MAX_DIMS)
        return n == -2 ? TERN_OK : onnx_fail(c, TERN_ERR_SHAPE, "has no axes, or too many");
    for (int i = 0; i < n; i++) {
        int d = onnx_axis(axes[i], dims);
        if (d < 0 || d >= dims || is_new[d])
            return onnx_fail(c, TERN_ERR_SHAPE, "axis %lld of %d dims", (long long)axes[i], dims);
        is_new[d] = true;
    }
    for (int d = 0; d < dims; d++)
        if (is_new[d])
            x = tern_unsqueeze(x, d);
    return onnx_give(c, x);
}

tern_status onnx_transpose(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t perm[ONNX_DIMS];
    int n = onnx_ints(c, "perm", perm);
    if (n < 0)
        for (n = 0; n < tern_dim(x); n++)
            perm[n] = tern_dim(x) - 1 - n;
    return onnx_give(c, tern_permute(x, tern_shape_from(n, perm)));
}

tern_status onnx_expand(onnx_call *c)
{
    tern_shape shape, result;
    tern_shape shapes[2] = {tern_shape_of(onnx_in(c, 0))};
    if (!sizes(c, 1, &shape))
        return TERN_OK;
    shapes[1] = shape;
    TERN_TRY(tern_broadcast_shapes(shapes, 2, &result));
    return onnx_give(c, tern_expand(onnx_in(c, 0), result));
}

tern_status onnx_tile(onnx_call *c)
{
    tern_shape repeats = {0};
    if (c->opset < 6 && c->n_in > 2) { /* the number of copies along one axis */
        int64_t times[ONNX_DIMS], axis[ONNX_DIMS];
        tern_tensor *x = onnx_in(c, 0);
        if (!x || onnx_input_ints(c, 1, times) != 1 || onnx_input_ints(c, 2, axis) != 1 ||
            axis[0] < 0 || axis[0] >= tern_dim(x))
            return onnx_fail(c, TERN_ERR_SHAPE, "its copies or its axis are no number");
        for (repeats.ndim = 0; repeats.ndim < tern_dim(x); repeats.ndim++)
            repeats.dims[repeats.ndim] = repeats.ndim == axis[0] ? times[0] : 1;
        return onnx_give(c, tern_repeat(x, repeats));
    }
    return sizes(c, 1, &repeats) ? onnx_give(c, tern_repeat(onnx_in(c, 0), repeats)) : TERN_OK;
}

/* ---- new tensors ----------------------------------------------------------------------------- */

tern_status onnx_constant(onnx_call *c)
{
    const Onnx__AttributeProto *a = c->proto->n_attribute ? c->proto->attribute[0] : NULL;
    const char *name = a && a->name ? a->name : "";
    if (!strcmp(name, "value") && a->t && a->t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
        return onnx_fail(c, TERN_ERR_UNSUPPORTED, "a constant of strings");
    if (!strcmp(name, "value") && a->t)
        return onnx_give(c, onnx_tensor(a->t, NULL));
    if (!strcmp(name, "value_float"))
        return onnx_give(c, tern_tensor_scalar(TERN_SCALAR((double)a->f), TERN_F32, "cpu"));
    if (!strcmp(name, "value_int"))
        return onnx_give(c, tern_tensor_scalar(TERN_SCALAR(a->i), TERN_I64, "cpu"));
    if (!strcmp(name, "value_ints"))
        return onnx_give(c, host_ints(a->ints, (int)a->n_ints));
    if (!strcmp(name, "value_floats"))
        return onnx_give(c, tern_from_data((const void *)a->floats,
                                           TERN_SHAPE((int64_t)a->n_floats), TERN_F32, "cpu"));
    return onnx_fail(c, TERN_ERR_UNSUPPORTED, "a constant by '%.40s'", name);
}

tern_status onnx_constant_of_shape(onnx_call *c)
{
    tern_shape shape;
    const Onnx__AttributeProto *a = onnx_attribute(c, "value");
    if (!sizes(c, 0, &shape))
        return TERN_OK;
    if (!a || !a->t)
        return onnx_give(c, tern_zeros(shape, TERN_F32, "cpu"));
    tern_tensor *value = onnx_tensor(a->t, NULL);
    return onnx_give(c,
                     tern_contiguous(tern_expand(tern_reshape(value, TERN_SHAPE_SCALAR), shape)));
}

tern_status onnx_range(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t ints[3][ONNX_DIMS];
    double reals[3][ONNX_DIMS];
    tern_dtype dtype = tern_dtype_of(x);
    bool real = tern_dtype_is_floating_point(dtype);
    for (int i = 0; i < 3; i++)
        if ((real ? onnx_input_reals(c, i, reals[i]) : onnx_input_ints(c, i, ints[i])) != 1)
            return onnx_fail(c, TERN_ERR_SHAPE, "start, limit and delta are numbers");
    return onnx_give(c, real
                            ? tern_arange_scalar(TERN_SCALAR(reals[0][0]), TERN_SCALAR(reals[1][0]),
                                                 TERN_SCALAR(reals[2][0]), dtype, "cpu")
                            : tern_arange_scalar(TERN_SCALAR(ints[0][0]), TERN_SCALAR(ints[1][0]),
                                                 TERN_SCALAR(ints[2][0]), dtype, "cpu"));
}

tern_status onnx_eye_like(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t k = onnx_int(c, "k", 0), type = onnx_int(c, "dtype", 0);
    tern_dtype dtype = type ? onnx_dtype(type, "EyeLike") : tern_dtype_of(x);
    if (!dtype || tern_dim(x) != 2)
        return dtype ? onnx_fail(c, TERN_ERR_SHAPE, "wants a matrix") : TERN_ERR_DTYPE;
    tern_tensor *ones = tern_ones(tern_shape_of(x), dtype, tern_device(x));
    return onnx_give(c, tern_tril(tern_triu(ones, k), k));
}

tern_status onnx_one_hot(onnx_call *c)
{
    int64_t depth[ONNX_DIMS];
    tern_tensor *index = tern_to_dtype(onnx_in(c, 0), TERN_I64), *values = onnx_in(c, 2);
    if (onnx_input_ints(c, 1, depth) != 1)
        return onnx_fail(c, TERN_ERR_SHAPE, "its depth is one number");
    int axis = onnx_axis(onnx_int(c, "axis", -1), tern_dim(index) + 1);
    tern_tensor *classes =
        tern_arange_scalar(TERN_SCALAR(INT64_C(0)), TERN_SCALAR(depth[0]), TERN_SCALAR(INT64_C(1)),
                           TERN_I64, tern_device(index));
    index = tern_where(tern_lt_scalar(index, TERN_SCALAR(0)),
                       tern_add_scalar(index, TERN_SCALAR(depth[0])), index);
    tern_tensor *is = tern_eq(tern_unsqueeze(index, -1), classes);
    tern_tensor *y = tern_where(is, tern_select(values, 0, 1), tern_select(values, 0, 0));
    return onnx_give(c, tern_movedim(y, TERN_DIMS(-1), TERN_DIMS(axis)));
}

/* ---- slices ---------------------------------------------------------------------------------- */

tern_status onnx_concat(onnx_call *c)
{
    return onnx_give(
        c, tern_cat(c->in, c->n_in, onnx_axis(onnx_int(c, "axis", 1), tern_dim(onnx_in(c, 0)))));
}

tern_status onnx_split(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t parts[ONNX_DIMS];
    int axis = onnx_axis(onnx_int(c, "axis", 0), tern_dim(x));
    int n = onnx_axes(c, "split", 1, parts);
    if (n == -2)
        return TERN_OK;
    if (n < 0) {
        int64_t each = (tern_size(x, axis) + c->n_out - 1) / c->n_out, left = tern_size(x, axis);
        if (c->n_out > ONNX_DIMS)
            return onnx_fail(c, TERN_ERR_UNSUPPORTED, "has %d outputs", c->n_out);
        for (n = 0; n < c->n_out; n++, left -= parts[n - 1])
            parts[n] = left < each ? left : each;
    }
    if (n != c->n_out)
        return onnx_fail(c, TERN_ERR_SHAPE, "%d sizes for %d outputs", n, c->n_out);
    tern_split_with_sizes(x, parts, n, axis, c->out, c->n_out);
    return TERN_OK;
}

/* Returns x from start to end of one dim, both clamped, with any step. */
static tern_tensor *slice_dim(tern_tensor *x, int d, int64_t start, int64_t end, int64_t step)
{
    int64_t n = tern_size(x, d);
    start += start < 0 ? n : 0;
    end += end < 0 ? n : 0;
    if (step > 0) {
        start = start < 0 ? 0 : start > n ? n : start;
        end = end < start ? start : end > n ? n : end;
        return tern_slice(x, d, start, end, step);
    }
    start = start < 0 ? -1 : start >= n ? n - 1 : start;
    end = end < -1 ? -1 : end > start ? start : end;
    return tern_slice(tern_flip(x, TERN_DIMS(d)), d, n - 1 - start, n - 1 - end, -step);
}

tern_status onnx_slice(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t starts[ONNX_DIMS], ends[ONNX_DIMS], axes[ONNX_DIMS], steps[ONNX_DIMS];
    int n = onnx_axes(c, "starts", 1, starts), m = onnx_axes(c, "ends", 2, ends);
    int n_axes = onnx_axes(c, "axes", 3, axes), n_steps = onnx_input_ints(c, 4, steps);
    if (n == -2 || m == -2 || n_axes == -2 || n_steps == -2)
        return TERN_OK;
    if (n < 0 || m != n || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n))
        return onnx_fail(c, TERN_ERR_SHAPE, "%d starts, %d ends, %d axes, %d steps", n, m, n_axes,
                         n_steps);
    for (int i = 0; x && i < n; i++) {
        int d = onnx_axis(n_axes >= 0 ? axes[i] : i, tern_dim(x));
        int64_t step = n_steps >= 0 ? steps[i] : 1;
        if (d < 0 || d >= tern_dim(x) || step == 0 || step == INT64_MIN)
            return onnx_fail(c, TERN_ERR_SHAPE, "dim %d by steps of %lld", d, (long long)step);
        x = slice_dim(x, d, starts[i], ends[i], step);
    }
    return onnx_give(c, x);
}

/* ---- indices --------------------------------------------------------------------------------- */

/* Returns index with n added to its negative elements. */
static tern_tensor *from_front(tern_tensor *index, int64_t n)
{
    index = tern_to_dtype(index, TERN_I64);
    return tern_where(tern_lt_scalar(index, TERN_SCALAR(0)), tern_add_scalar(index, TERN_SCALAR(n)),
                      index);
}

tern_status onnx_gather_axis(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *index = onnx_in(c, 1);
    int axis = onnx_axis(onnx_int(c, "axis", 0), tern_dim(x)), d = 0;
    tern_shape shape = {0};
    if (axis < 0 || axis >= tern_dim(x) || tern_dim(x) + tern_dim(index) - 1 > TERN_MAX_DIMS)
        return onnx_fail(c, TERN_ERR_SHAPE, "axis %d of %d dims", axis, tern_dim(x));
    for (d = 0; d < axis; d++)
        shape.dims[shape.ndim++] = tern_size(x, d);
    for (d = 0; d < tern_dim(index); d++)
        shape.dims[shape.ndim++] = tern_size(index, d);
    for (d = axis + 1; d < tern_dim(x); d++)
        shape.dims[shape.ndim++] = tern_size(x, d);
    tern_tensor *flat = tern_reshape(from_front(index, tern_size(x, axis)), TERN_SHAPE(-1));
    return onnx_give(c, tern_reshape(tern_index_select(x, axis, flat), shape));
}

tern_status onnx_gather_elements(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int axis = onnx_axis(onnx_int(c, "axis", 0), tern_dim(x));
    return onnx_give(c, tern_gather(x, axis, from_front(onnx_in(c, 1), tern_size(x, axis))));
}

/* Splits the last dim of index into index tensors for the leading dims of x. Returns their number,
 * or -1. */
static int places(const tern_tensor *x, tern_tensor *index, tern_tensor *list[TERN_MAX_DIMS])
{
    int n = (int)tern_size(index, -1);
    if (n < 1 || n > tern_dim(x))
        return -1;
    for (int i = 0; i < n; i++)
        list[i] = from_front(tern_select(index, -1, i), tern_size(x, i));
    return n;
}

tern_status onnx_gather_nd(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *index = onnx_in(c, 1), *list[TERN_MAX_DIMS];
    int64_t batch = onnx_int(c, "batch_dims", 0), items = 1;
    if (batch < 0 || batch >= tern_dim(x) || batch >= tern_dim(index))
        return onnx_fail(c, TERN_ERR_SHAPE, "batch_dims %lld", (long long)batch);
    tern_shape shape = {0};
    for (int d = 0; d < batch; d++) {
        items *= tern_size(x, d);
        shape.dims[shape.ndim++] = tern_size(x, d);
    }
    if (batch == 0) {
        int n = places(x, index, list);
        return n < 0 ? onnx_fail(c, TERN_ERR_SHAPE, "places of %lld dims",
                                 (long long)tern_size(index, -1))
                     : onnx_give(c, tern_index_list(x, list, n));
    }
    /* merge the batch dims into one, which gets an index of its own */
    int n_index = (int)tern_size(index, -1);
    tern_shape of_x = {1, {items}}, of_index = {1, {items}};
    for (int d = (int)batch; d < tern_dim(x); d++)
        of_x.dims[of_x.ndim++] = tern_size(x, d);
    for (int d = (int)batch; d < tern_dim(index); d++)
        of_index.dims[of_index.ndim++] = tern_size(index, d);
    x = tern_reshape(x, of_x);
    index = tern_reshape(index, of_index);
    if (n_index < 1 || n_index >= of_x.ndim)
        return onnx_fail(c, TERN_ERR_SHAPE, "places of %d dims", n_index);
    tern_shape first = {.ndim = of_index.ndim - 1};
    for (int d = 0; d < first.ndim; d++)
        first.dims[d] = d ? 1 : items;
    list[0] = tern_reshape(tern_arange_scalar(TERN_SCALAR(INT64_C(0)), TERN_SCALAR(items),
                                              TERN_SCALAR(INT64_C(1)), TERN_I64, tern_device(x)),
                           first);
    for (int i = 0; i < n_index; i++)
        list[i + 1] = from_front(tern_select(index, -1, i), tern_size(x, i + 1));
    tern_tensor *y = tern_index_list(x, list, n_index + 1);
    for (int d = 1; y && d < tern_dim(y); d++)
        shape.dims[shape.ndim++] = tern_size(y, d);
    return onnx_give(c, tern_reshape(y, shape));
}

static tern_reduce_mode reduce_mode(const onnx_call *c)
{
    return onnx_text_is(c, "reduction", "add", false)   ? TERN_REDUCE_SUM
           : onnx_text_is(c, "reduction", "mul", false) ? TERN_REDUCE_PROD
           : onnx_text_is(c, "reduction", "max", false) ? TERN_REDUCE_AMAX
           : onnx_text_is(c, "reduction", "min", false) ? TERN_REDUCE_AMIN
                                                        : TERN_REDUCE_NONE;
}

tern_status onnx_scatter_elements(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *src = onnx_in(c, 2);
    int axis = onnx_axis(onnx_int(c, "axis", 0), tern_dim(x));
    tern_tensor *index = from_front(onnx_in(c, 1), tern_size(x, axis));
    tern_reduce_mode mode = reduce_mode(c);
    return onnx_give(c, mode == TERN_REDUCE_NONE
                            ? tern_scatter(x, axis, index, src, mode)
                            : tern_scatter_reduce(x, axis, index, src, mode, true));
}

/* With a reduction, it runs over x reshaped to rows, with the row number of each index. */
tern_status onnx_scatter_nd(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *src = onnx_in(c, 2), *list[TERN_MAX_DIMS];
    tern_reduce_mode mode = reduce_mode(c);
    int n = places(x, onnx_in(c, 1), list);
    if (n < 0)
        return onnx_fail(c, TERN_ERR_SHAPE, "its places have more dims than the tensor");
    if (mode == TERN_REDUCE_NONE)
        return onnx_give(c, tern_index_put(x, list, n, src, false));
    tern_tensor *place = NULL;
    for (int i = 0; i < n; i++)
        place = place ? tern_add(tern_mul_scalar(place, TERN_SCALAR(tern_size(x, i))), list[i])
                      : list[i];
    int64_t rest = 1;
    for (int d = n; d < tern_dim(x); d++)
        rest *= tern_size(x, d);
    tern_tensor *rows = tern_reshape(x, TERN_SHAPE(-1, rest));
    tern_tensor *index =
        tern_expand(tern_reshape(place, TERN_SHAPE(-1, 1)), TERN_SHAPE(tern_numel(place), rest));
    tern_tensor *y =
        tern_scatter_reduce(rows, 0, index, tern_reshape(src, TERN_SHAPE(-1, rest)), mode, true);
    return onnx_give(c, tern_reshape_as(y, x));
}

tern_status onnx_compress(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t keep[ONNX_DIMS], places_kept[ONNX_DIMS];
    int n = onnx_input_ints(c, 1, keep), kept = 0;
    if (n < 0)
        return TERN_OK;
    for (int i = 0; i < n; i++)
        if (keep[i])
            places_kept[kept++] = i;
    tern_tensor *index = tern_to(host_ints(places_kept, kept), tern_device(x));
    if (!onnx_attribute(c, "axis"))
        return onnx_give(c, tern_index_select(tern_reshape(x, TERN_SHAPE(-1)), 0, index));
    return onnx_give(c,
                     tern_index_select(x, onnx_axis(onnx_int(c, "axis", 0), tern_dim(x)), index));
}

tern_status onnx_trilu(onnx_call *c)
{
    int64_t k[ONNX_DIMS] = {0};
    if (onnx_input_ints(c, 1, k) == -2)
        return TERN_OK;
    return onnx_give(c, onnx_int(c, "upper", 1) ? tern_triu(onnx_in(c, 0), k[0])
                                                : tern_tril(onnx_in(c, 0), k[0]));
}

/* ---- depth and space ------------------------------------------------------------------------- */

tern_status onnx_depth_to_space(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t b = onnx_int(c, "blocksize", 0);
    if (tern_dim(x) != 4 || b < 1 || b > INT16_MAX || tern_size(x, 1) % (b * b))
        return onnx_fail(c, TERN_ERR_SHAPE, "blocks of %lld", (long long)b);
    int64_t n = tern_size(x, 0), ch = tern_size(x, 1) / (b * b), h = tern_size(x, 2),
            w = tern_size(x, 3);
    if (onnx_text_is(c, "mode", "CRD", false))
        x = tern_permute(tern_reshape(x, TERN_SHAPE(n, ch, b, b, h, w)),
                         TERN_DIMS(0, 1, 4, 2, 5, 3));
    else
        x = tern_permute(tern_reshape(x, TERN_SHAPE(n, b, b, ch, h, w)),
                         TERN_DIMS(0, 3, 4, 1, 5, 2));
    return onnx_give(c, tern_reshape(x, TERN_SHAPE(n, ch, h * b, w * b)));
}

tern_status onnx_space_to_depth(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t b = onnx_int(c, "blocksize", 0);
    if (tern_dim(x) != 4 || b < 1 || b > INT16_MAX || tern_size(x, 2) % b || tern_size(x, 3) % b)
        return onnx_fail(c, TERN_ERR_SHAPE, "blocks of %lld", (long long)b);
    int64_t n = tern_size(x, 0), ch = tern_size(x, 1), h = tern_size(x, 2) / b,
            w = tern_size(x, 3) / b;
    x = tern_permute(tern_reshape(x, TERN_SHAPE(n, ch, h, b, w, b)), TERN_DIMS(0, 3, 5, 1, 2, 4));
    return onnx_give(c, tern_reshape(x, TERN_SHAPE(n, b * b * ch, h, w)));
}
