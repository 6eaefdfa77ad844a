/* update_scale.c -- the scale of mixed precision after a step, without waiting for the device. */
#include "ops/foreach/foreach.h"
#include "tensor/tensor.h"

/* If an infinity or NaN was found: scale *= backoff, tracker = 0. Otherwise tracker += 1, and when
 * tracker reaches interval, scale *= growth, unless the product overflows, and tracker = 0. A
 * kernel of one work item computes this, because reading found would make the host wait for the
 * device in every step. */
tern_status tern_update_scale(tern_tensor *scale, tern_tensor *tracker, tern_tensor *found,
                              double growth, double backoff, int64_t interval)
{
    static const tern_kernel_ref kernel = {"foreach", "update_scale"};
    TERN_TRY(TERN_LAUNCH(scale->storage->place, &kernel, TERN_F32, tern_items(1),
                         tern_arg_out(scale), tern_arg_out(tracker), tern_arg_in(found),
                         tern_arg_f32((float)growth), tern_arg_f32((float)backoff),
                         tern_arg_i64(interval)));
    tern_bump_version(scale);
    tern_bump_version(tracker);
    return TERN_OK;
}
