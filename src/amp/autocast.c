/* autocast.c -- TERN_AUTOCAST: the casts of operations' inputs, and its blocks. */
#include "amp/casts.h"
#include <string.h>
#include <tern/amp.h>
#include <tern/autograd.h>

/* ---- the function that operations call --------------------------------------------------- */

/* Returns x's dtype if autocast may cast x, else TERN_DTYPE_DEFAULT. Sets *half to the dtype for
 * its device. */
static tern_dtype castable(const tern_tensor *x, tern_dtype *half)
{
    tern_dtype dtype = x ? tern_dtype_of(x) : TERN_DTYPE_DEFAULT;
    if (dtype != TERN_F32 && dtype != TERN_F16 && dtype != TERN_BF16)
        return TERN_DTYPE_DEFAULT;
    *half = tern_casts_dtype_on(tern_device(x));
    return *half == TERN_DTYPE_DEFAULT ? TERN_DTYPE_DEFAULT : dtype;
}

static tern_dtype target(tern_cast how, tern_tensor *const *in, int n)
{
    tern_dtype half = TERN_DTYPE_DEFAULT, widest = TERN_DTYPE_DEFAULT;
    for (int i = 0; i < n; i++)
        if (castable(in[i], &half) == TERN_F32)
            widest = TERN_F32;
        else if (half != TERN_DTYPE_DEFAULT && widest != TERN_F32)
            widest = half;
    bool lower = how == TERN_CAST_LOWER || half == TERN_DTYPE_DEFAULT;
    return lower ? half : how == TERN_CAST_FLOAT32 ? TERN_F32 : widest;
}

static tern_status cast_inputs(const tern_op *op, tern_tensor **in, int n)
{
    if (op->cast == TERN_CAST_NONE)
        return TERN_OK;
    tern_dtype to = target(op->cast, in, n), half;
    if (to == TERN_DTYPE_DEFAULT)
        return TERN_OK;
    if (op->cast == TERN_CAST_REFUSED)
        return tern_fail(TERN_ERR_STATE,
                         "tern_%s: binary_cross_entropy and BCELoss are unsafe to autocast. Many "
                         "models use a sigmoid layer right before the binary cross entropy layer. "
                         "In this case, combine the two layers using "
                         "tern_binary_cross_entropy_with_logits or tern_nn_bce_with_logits_loss, "
                         "which are safe to autocast",
                         op->name);
    for (int i = 0; i < n; i++)
        if (castable(in[i], &half) != TERN_DTYPE_DEFAULT && !(in[i] = tern_casts_make(in[i], to)))
            return tern_last_status();
    return TERN_OK;
}

/* ---- blocks ------------------------------------------------------------------------------ */

/* Returns the index of the device's kind, added if need be, or -1 after an error. */
static int kind_of(const char *device)
{
    device = device ? tern_device_canonical(device) : tern_default_device();
    if (!device)
        return -1;
    for (int i = 0; i < TERN_AUTOCAST_KINDS; i++) {
        if (!tern_thread.autocast.kind[i].device)
            tern_thread.autocast.kind[i].device = device;
        if (tern_casts_same_kind(tern_thread.autocast.kind[i].device, device))
            return i;
    }
    tern_fail(TERN_ERR_DEVICE, "tern_autocast: too many kinds of devices (%s)", device);
    return -1;
}

static void settle(void)
{
    tern_thread.mode.cast = NULL;
    for (int i = 0; i < TERN_AUTOCAST_KINDS; i++)
        if (tern_thread.autocast.kind[i].dtype != TERN_DTYPE_DEFAULT)
            tern_thread.mode.cast = cast_inputs;
}

tern_autocast_block tern_autocast_block_enter(const char *device, tern_dtype dtype, bool enabled)
{
    tern_autocast_block block = {.active = 1, .kind = kind_of(device)};
    tern_casts_register();
    tern_thread.casts.depth++;
    if (block.kind < 0)
        return block;
    bool cpu = strncmp(tern_thread.autocast.kind[block.kind].device, "cpu", 3) == 0;
    if (dtype == TERN_DTYPE_DEFAULT)
        dtype = cpu ? TERN_BF16 : TERN_F16;
    if (enabled && dtype != TERN_F16 && dtype != TERN_BF16) {
        tern_fail(
            TERN_ERR_DTYPE,
            "tern_autocast: In autocast, but the target dtype is not supported (%s). Supported "
            "dtypes are float16 and bfloat16",
            tern_dtype_name(dtype));
        block.kind = -1;
        return block;
    }
    block.saved = tern_thread.autocast.kind[block.kind].dtype;
    tern_thread.autocast.kind[block.kind].dtype = enabled ? dtype : TERN_DTYPE_DEFAULT;
    settle();
    return block;
}

void tern_autocast_block_leave(tern_autocast_block *block)
{
    if (block->kind >= 0) {
        tern_thread.autocast.kind[block->kind].dtype = block->saved;
        settle();
    }
    if (--tern_thread.casts.depth == 0)
        tern_clear_autocast_cache();
}

tern_dtype tern_get_autocast_dtype(const char *device)
{
    TERN_NAMED_IN_ERRORS;
    device = device ? tern_device_canonical(device) : tern_default_device();
    return device ? tern_casts_dtype_on(device) : TERN_DTYPE_DEFAULT;
}

bool tern_is_autocast_enabled(const char *device)
{
    TERN_NAMED_IN_ERRORS;
    return tern_get_autocast_dtype(device) != TERN_DTYPE_DEFAULT;
}

bool tern_is_autocast_cache_enabled(void)
{
    return !tern_thread.casts.disabled;
}

void tern_set_autocast_cache_enabled(bool enabled)
{
    tern_thread.casts.disabled = !enabled;
}
