/* has_nan.c -- whether a tensor contains a NaN, for anomaly detection. */
#include "device/device.h"
#include "ops/reduce/reduction.h"
#include "tensor/fields.h"
#include <math.h>
#include <string.h>
#include <tern/autograd.h>
#include <tern/ops.h>

static bool host_sees_nan(const tern_tensor *x, const char *data)
{
    data += (size_t)x->offset * tern_dtype_size(x->dtype);
    for (int64_t i = 0; i < x->numel; i++)
        if (isnan(tern_scalar_to_real(tern_element(data, x->dtype, i))))
            return true;
    return false;
}

tern_status tern_has_nan(tern_tensor *x, bool *has_nan)
{
    const uint64_t failures = tern_failures();
    const tern_buffer *buffer = &x->storage->block->buffer;
    /* In debug mode every tensor is checked; on the cpu without a launch or an allocation, so that
     * counts of launches and memory do not change. */
    if (tern_debugging && x->contiguous && buffer->host &&
        strcmp(tern_place_kind(x->storage->place), "cpu") == 0) {
        *has_nan = host_sees_nan(x, buffer->host);
        return TERN_OK;
    }
    TERN_SCOPE
        TERN_NO_GRAD
            *has_nan = tern_item_int(tern_any(tern_isnan(x))) != 0;
    return tern_failed_since(failures);
}
