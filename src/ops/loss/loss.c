/* loss.c -- functions shared by the losses: checks, reductions, softplus and max(0, x). */
#include "ops/loss/loss.h"
#include "base/warning.h"
#include "device/device.h"
#include <math.h>
#include <string.h>

tern_status tern_loss_check(const tern_tensor *input, const tern_tensor *target,
                            tern_reduction reduction, const char *function)
{
    if (!input || !target)
        return tern_fail_argument_null(function, input ? "target" : "input");
    if (reduction < TERN_REDUCTION_MEAN || reduction > TERN_REDUCTION_NONE)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %d is not a valid value for reduction", function,
                         (int)reduction);
    return TERN_OK;
}

void tern_loss_warn_shapes(const tern_tensor *input, const tern_tensor *target,
                           const char *function)
{
    if (!tern_same_shape(input, target))
        tern_warn("broadcast", function,
                  "Using a target size (%s) that is different to the input size (%s). This will "
                  "likely lead to incorrect results due to broadcasting. Please ensure they have "
                  "the same size.",
                  TERN_TENSOR_TEXT(target), TERN_TENSOR_TEXT(input));
}

tern_tensor *tern_loss_wide(tern_tensor *x)
{
    return x && tern_dtype_is_half(x->dtype) ? tern_to_dtype(x, TERN_F32) : x;
}

/* Returns the half precision dtype of a and b together, or TERN_DTYPE_DEFAULT if there is none. */
static tern_dtype half_of(tern_dtype a, tern_dtype b)
{
    if (tern_dtype_is_half(a) && (a == b || !tern_dtype_is_floating_point(b)))
        return a;
    return tern_dtype_is_half(b) && !tern_dtype_is_floating_point(a) ? b : TERN_DTYPE_DEFAULT;
}

/* The reduction runs in float32; half precision is rounded once, after it. */
tern_tensor *tern_loss_reduce(tern_tensor *loss, tern_reduction reduction, const tern_tensor *a,
                              const tern_tensor *b)
{
    if (!loss || !a || !b)
        return NULL;
    tern_dtype half = half_of(a->dtype, b->dtype);
    if (reduction != TERN_REDUCTION_NONE)
        loss = reduction == TERN_REDUCTION_SUM ? tern_sum(loss) : tern_mean(loss);
    return loss && half ? tern_to_dtype(loss, half) : loss;
}

tern_status tern_loss_infer_dx(tern_call *call)
{
    call->n_out = 1;
    call->result[0] =
        (tern_result){.dtype = call->in[1]->dtype, .shape = tern_shape_of(call->in[1])};
    return TERN_OK;
}

tern_tensor *tern_loss_positive(tern_tensor *x)
{
    return tern_clamp(x, 0, INFINITY);
}

/* log(1 + e^x) = -log sigmoid(-x) is one operation, whose gradient at 0 is 1 / 2 (a form with relu
 * and abs would have 0 there). */
tern_tensor *tern_loss_softplus(tern_tensor *x)
{
    return tern_neg(tern_logsigmoid(tern_neg(x)));
}

bool tern_loss_is_cast(const tern_tensor *x)
{
    const char *kind = tern_place_kind(x->storage->place);
    for (int i = 0; tern_thread.mode.cast && i < TERN_AUTOCAST_KINDS; i++) {
        const char *device = tern_thread.autocast.kind[i].device;
        if (device && tern_thread.autocast.kind[i].dtype != TERN_DTYPE_DEFAULT &&
            strncmp(device, kind, strlen(kind)) == 0)
            return true;
    }
    return false;
}
