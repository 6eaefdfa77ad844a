/* tensors.c -- tensors and values of a case. */
#include "cases.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The elements as they were in memory. */
static unsigned char *woven(const stored_tensor *stored)
{
    size_t size = tern_dtype_size(stored->dtype), n = (size_t)stored->count;
    unsigned char *out = malloc(n * size + 1);
    if (!out)
        abort();
    for (size_t byte = 0; byte < size; byte++)
        for (size_t i = 0; i < n; i++)
            out[i * size + byte] = stored->data[byte * n + i];
    return out;
}

static bool is_dense(const stored_tensor *stored)
{
    int64_t n = 1;
    for (int i = stored->shape.ndim - 1; i >= 0; i--) {
        if (stored->shape.dims[i] != 1 && stored->stride.dims[i] != n)
            return false;
        n *= stored->shape.dims[i];
    }
    return n == stored->count && stored->offset == 0;
}

/* The strides of a layout, of dims from the slowest to the fastest; how many elements it spans. */
static int64_t strides_of(parity_layout layout, const tern_shape *shape, tern_shape *stride)
{
    int64_t span = 1;
    int n = shape->ndim;
    stride->ndim = n;
    for (int i = 0; i < n; i++) {
        int d = layout == PARITY_TRANSPOSED ? i                    /* the first is fastest */
                : layout == PARITY_PERMUTED ? (i == 0 ? 0 : n - i) /* 0, n - 1, n - 2, ... */
                                            : n - 1 - i;
        stride->dims[d] = layout == PARITY_SPACED ? 2 * span : span;
        span *= (layout == PARITY_SPACED ? 2 : 1) * shape->dims[d];
        span += layout == PARITY_ROWS && i == 0 ? 3 : 0;
    }
    return span;
}

/* The dense elements at data, laid out anew: *stride, *offset and *count say how. What lies between
 * them are bytes of 0xff: NaN, -1 or true. */
static unsigned char *laid_out(unsigned char *data, const stored_tensor *stored,
                               parity_layout layout, tern_shape *stride, int64_t *offset,
                               int64_t *count)
{
    size_t size = tern_dtype_size(stored->dtype);
    *offset = layout == PARITY_SPACED ? 3 : 0;
    *count = *offset + strides_of(layout, &stored->shape, stride);
    unsigned char *out = malloc((size_t)*count * size + 1);
    if (!out)
        abort();
    memset(out, stored->dtype == TERN_BOOL ? 1 : 0xff, (size_t)*count * size);
    for (int64_t i = 0; i < stored->count; i++) {
        int64_t to = *offset, rest = i;
        for (int d = stored->shape.ndim - 1; d >= 0; d--) {
            to += rest % stored->shape.dims[d] * stride->dims[d];
            rest /= stored->shape.dims[d];
        }
        memcpy(out + (size_t)to * size, data + (size_t)i * size, size);
    }
    free(data);
    return out;
}

/* A tensor of this data, on memory of the program's where the layout asks for that. */
static tern_tensor *made(const void *data, tern_shape shape, tern_dtype dtype, const char *device,
                         parity_layout layout)
{
    size_t bytes = tern_dtype_size(dtype);
    for (int d = 0; d < shape.ndim; d++)
        bytes *= (size_t)shape.dims[d];
    if (layout != PARITY_LENT || strcmp(device, "cpu") != 0 || bytes == 0)
        return tern_from_data(data, shape, dtype, device);
    void *own = malloc(bytes);
    if (!own)
        abort();
    memcpy(own, data, bytes);
    return tern_from_blob(own, shape, dtype,
                          &(tern_from_blob_options){.deleter = free, .user = own});
}

tern_tensor *parity_tensor(const stored_tensor *stored, tern_dtype dtype, const char *device,
                           parity_layout layout)
{
    unsigned char *data = woven(stored);
    bool dense = is_dense(stored), moves = dense && layout != PARITY_AS_STORED &&
                                           layout != PARITY_INCOMING && layout != PARITY_LENT &&
                                           stored->count > 0;
    tern_shape stride = stored->stride;
    int64_t offset = stored->offset, count = stored->count;
    tern_tensor *x = NULL;
    if (moves)
        data = laid_out(data, stored, layout, &stride, &offset, &count);
    dense = dense && !moves;
    TERN_NO_GRAD {
        x = made((const void *)data, dense ? stored->shape : TERN_SHAPE(count), stored->dtype,
                 device, layout);
        if (dtype == TERN_F64 && tern_dtype_is_floating_point(stored->dtype))
            x = tern_to_dtype(x, dtype);
        if (!dense && count == 0)
            x = tern_view(x, stored->shape);
        else if (!dense)
            x = tern_as_strided(x, stored->shape, stride, offset);
    }
    free(data);
    return x;
}

tern_tensor *parity_lay_out(tern_tensor *x, parity_layout layout)
{
    const tern_shape shape = tern_shape_of(x);
    const int64_t offset = layout == PARITY_SPACED ? 3 : 0;
    tern_shape stride;
    if (layout == PARITY_AS_STORED || layout == PARITY_LENT || tern_numel(x) == 0)
        return x;
    const int64_t count = offset + strides_of(layout, &shape, &stride);
    tern_tensor *room =
        tern_full(TERN_SHAPE(count), TERN_SCALAR((double)NAN), tern_dtype_of(x), tern_device(x));
    tern_tensor *y = tern_as_strided(room, shape, stride, offset);
    tern_copy_(y, x);
    return y;
}

int parity_values(const parity_file *file, const parity_case *c, tern_dtype wide,
                  const char *device, parity_layout layout, tern_value *values, tern_tensor **list)
{
    for (int i = 0; i < c->n_arguments; i++) {
        const case_argument *a = &c->argument[i];
        values[i] = a->value;
        if (a->value.kind == TERN_VALUE_TENSOR)
            values[i].as.tensor = parity_tensor(&file->tensor[a->number[0]], wide, device, layout);
        if (a->value.kind == TERN_VALUE_TENSORS) {
            values[i].as.tensors = list;
            for (int k = 0; k < a->numbers; k++)
                *list++ = parity_tensor(&file->tensor[a->number[k]], wide, device, layout);
        }
    }
    return c->n_arguments;
}
