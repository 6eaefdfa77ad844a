/* update_scale.c -- the scale of mixed precision after a step, without asking the device. */
#include "ops/foreach/foreach.h"
#include "tensor/tensor.h"

tern_status tern_update_scale(tern_tensor *scale, tern_tensor *tracker, tern_tensor *found,
                              double growth, double backoff, int64_t interval)
{
    static const tern_kernel_ref kernel = {"foreach", "update_scale"};
    const tern_arg args[] = {tern_arg_tensor(scale),       tern_arg_tensor(tracker),
                             tern_arg_tensor(found),       tern_arg_f32((float)growth),
                             tern_arg_f32((float)backoff), tern_arg_i64(interval)};
    TERN_TRY(tern_launch(scale->storage->place, &kernel, TERN_F32, tern_items(1), args, 6));
    tern_bump_version(scale);
    tern_bump_version(tracker);
    return TERN_OK;
}
