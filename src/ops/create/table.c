/* table.c -- tensors of numbers that the host computes in double precision. */
#include "ops/create/table.h"
#include "base/memory.h"
#include <tern/ops.h>

double *tern_table_alloc(const char *function, const tern_shape *shape)
{
    int64_t numel = tern_shape_numel(shape, function);
    return numel < 0 ? NULL : tern_alloc((size_t)numel * sizeof(double) + 1);
}

tern_tensor *tern_table_done(double *data, const tern_shape *shape, tern_dtype dtype,
                             const char *device)
{
    tern_tensor *x = data ? tern_from_data(data, *shape, TERN_F64, "cpu") : NULL;
    tern_free(data);
    x = x ? tern_to_dtype(x, dtype ? dtype : tern_default_real()) : NULL;
    return x ? tern_to(x, device ? device : tern_default_device()) : NULL;
}
