/* one_hot.c -- one_hot: zeros with 1 scattered along a new last dim. */
#include "ops/index/scatter.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* y[.., x[..]] = 1. Without num_classes the largest class determines their number, which waits for
 * the device. */
tern_tensor *tern_one_hot(tern_tensor *x, int64_t num_classes)
{
    TERN_NAMED_IN_ERRORS;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    if (x->dtype != TERN_I64)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_one_hot: one_hot is only applicable to index tensor, not %s",
                              tern_dtype_name(x->dtype));
    if (num_classes < -1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_one_hot: Class values must be smaller than num_classes. (%lld)",
                              (long long)num_classes);
    if (num_classes <= 0 && x->numel == 0)
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_one_hot: Can not infer total number of classes from empty tensor.");
    if (x->ndim == TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_one_hot: a tensor has at most %d dims, not %d",
                              TERN_MAX_DIMS, TERN_MAX_DIMS + 1);
    if (num_classes < 0) {
        int64_t most = 0;
        if (tern_hidden_read(tern_max(x), &most, sizeof most, __func__) != TERN_OK)
            return NULL;
        if (most < 0)
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "tern_one_hot: Class values must be non-negative. (%lld)",
                                  (long long)most);
        num_classes = most + 1;
    }
    if (num_classes == 0 && x->numel > 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_one_hot: Class values must be smaller than num_classes. (0)");
    tern_shape shape = tern_shape_of(x);
    shape.dims[shape.ndim++] = num_classes;
    tern_tensor *zeros = tern_new_zeros(x, shape);
    if (!zeros || x->numel == 0)
        return zeros;
    tern_scatter_way way = {.dim = x->ndim, .fault = TERN_FAULT_ONE_HOT, .in_place = true};
    shape.dims[x->ndim] = 1;
    tern_tensor *one = tern_tensor_scalar(tern_scalar_int(1), TERN_I64, tern_device(x));
    return tern_scatter_into(zeros, tern_unsqueeze(x, -1), tern_expand(one, shape), &way);
}
