/* tensors.c -- tensors and values of a case. */
#include "cases.h"
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

tern_tensor *parity_tensor(const stored_tensor *stored, tern_dtype dtype, const char *device)
{
    unsigned char *data = woven(stored);
    bool dense = is_dense(stored);
    tern_tensor *x = NULL;
    TERN_NO_GRAD {
        x = tern_from_data(data, dense ? stored->shape : TERN_SHAPE(stored->count), stored->dtype,
                           device);
        if (dtype == TERN_F64 && stored->dtype == TERN_F32)
            x = tern_to_dtype(x, dtype);
        if (!dense && stored->count == 0)
            x = tern_view(x, stored->shape);
        else if (!dense)
            x = tern_as_strided(x, stored->shape, stored->stride, stored->offset);
    }
    free(data);
    return x;
}

int parity_values(const parity_file *file, const parity_case *c, tern_dtype wide,
                  const char *device, tern_value *values, tern_tensor **list)
{
    for (int i = 0; i < c->n_arguments; i++) {
        const case_argument *a = &c->argument[i];
        values[i] = a->value;
        if (a->value.kind == TERN_VALUE_TENSOR)
            values[i].as.tensor = parity_tensor(&file->tensor[a->number[0]], wide, device);
        if (a->value.kind == TERN_VALUE_TENSORS) {
            values[i].as.tensors = list;
            for (int k = 0; k < a->numbers; k++)
                *list++ = parity_tensor(&file->tensor[a->number[k]], wide, device);
        }
    }
    return c->n_arguments;
}
