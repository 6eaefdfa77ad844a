/* has_nan.c -- whether a tensor has a NaN in it, for those who look for anomalies. */
#include "tensor/tensor.h"
#include <tern/ops.h>

tern_status tern_hook_has_nan(tern_tensor *x, bool *has_nan)
{
    const uint64_t failures = tern_failures();
    TERN_SCOPE
        TERN_NO_GRAD
            *has_nan = tern_item_int(tern_any(tern_isnan(x))) != 0;
    return tern_failed_since(failures);
}
