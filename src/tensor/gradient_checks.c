/* gradient_checks.c -- checks gradients against the tensors that they are for (PyTorch's
 * validate_outputs). */
#include "tensor/node.h"
#include "device/device.h"
#include "tensor/from_ops.h"
#include <tern/autograd.h>

tern_status tern_fit_gradient(tern_tensor **grad, tern_dtype dtype, const tern_place *place)
{
    if (place && (*grad)->storage->place != place)
        return tern_fail(TERN_ERR_DEVICE, "tern_backward: a gradient on %s came for a tensor on %s",
                         tern_device(*grad), tern_place_text(place));
    if ((*grad)->dtype != dtype)
        *grad = tern_from_ops->to_dtype(*grad, dtype);
    return *grad ? TERN_OK : tern_last_status();
}

tern_status tern_fit_edge(tern_tensor **grad, const tern_edge *edge)
{
    if (edge->leaf)
        return tern_fit_gradient(grad, edge->leaf->dtype, edge->leaf->storage->place);
    return tern_fit_gradient(grad, edge->node->output[edge->output].dtype, NULL);
}

tern_status tern_check_hooked(const tern_tensor *other, const tern_tensor *grad)
{
    if (!tern_same_shape(other, grad))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_backward: a hook returned a gradient of shape %s for one of %s",
                         TERN_TENSOR_TEXT(other), TERN_TENSOR_TEXT(grad));
    if (other->dtype != grad->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_backward: a hook returned a gradient of type %s for one of %s",
                         tern_dtype_name(other->dtype), tern_dtype_name(grad->dtype));
    if (other->storage->place != grad->storage->place)
        return tern_fail(TERN_ERR_DEVICE,
                         "tern_backward: a hook returned a gradient on %s for one on %s",
                         tern_device(other), tern_device(grad));
    return TERN_OK;
}

tern_status tern_check_leaf(const tern_tensor *grad, const tern_tensor *leaf)
{
    if (tern_same_shape(grad, leaf))
        return TERN_OK;
    return tern_fail(TERN_ERR_STATE,
                     "tern_backward: a gradient of shape %s came for a tensor of shape %s, which "
                     "was given other data since",
                     TERN_TENSOR_TEXT(grad), TERN_TENSOR_TEXT(leaf));
}
