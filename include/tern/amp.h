/* amp.h -- mixed precision: operations run in half precision where that is safe, and gradients are
 * scaled so that small ones do not become 0 (torch.amp).
 *
 *   TERN_AUTOCAST(device, TERN_F16) {
 *       loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
 *   }
 *   tern_backward(tern_amp_scale(scaler, loss));
 *   tern_amp_step(scaler, optimizer);
 *   tern_amp_update(scaler);
 *
 * float16 and bfloat16 are storage types whose arithmetic is in float32, so this works on every
 * device. */
#ifndef TERN_AMP_H
#define TERN_AMP_H
#include <tern/optim.h>

TERN_BEGIN_DECLS

/* ---- TERN_AUTOCAST(device, dtype) { ... } -------------------------------------------------------
 * Inside the block, on this thread and on all devices of that kind, operations convert their inputs
 * as PyTorch does for CUDA. Matrix products, convolutions and attention convert float32 and half
 * precision inputs to dtype (TERN_F16 or TERN_BF16; TERN_DTYPE_DEFAULT is bfloat16 on the cpu and
 * float16 elsewhere, as in PyTorch). Softmax, norms, losses, sums and products of elements,
 * exponentials, powers and resampling convert theirs to float32. A few operations convert to the
 * widest dtype of their inputs, and all others do not convert. float64 and operations in place are
 * never converted. tern_binary_cross_entropy fails, as in PyTorch. The gradient of a float32 tensor
 * is float32.
 *
 * A float32 leaf that requires a gradient is converted once while the outermost block is open, and
 * again after it was written in place. Blocks can be nested; run backward outside of them.
 *
 * Leaving the block in any way restores the mode. For a device or dtype that is not valid an error
 * is recorded, and the mode stays as it was. */
typedef struct tern_autocast_block {
    int active;
    int kind; /* the kind of device whose mode was changed, -1 for none */
    tern_dtype saved;
} tern_autocast_block;
/* Opens the block of TERN_AUTOCAST; bindings of other languages call it. */
TERN_API tern_autocast_block tern_autocast_block_enter(const char *device, tern_dtype dtype,
                                                       bool enabled);
/* Closes the block and restores the mode from before it. */
TERN_API void tern_autocast_block_leave(tern_autocast_block *block);
#define TERN_AUTOCAST(device, dtype) TERN_AUTOCAST_MODE(device, dtype, true)
/* With enabled false nothing is converted inside. */
#define TERN_AUTOCAST_MODE(device, dtype, enabled)                                                 \
    TERN_BLOCK_(tern_autocast_block, tern_autocast_block_enter(device, dtype, enabled),            \
                tern_autocast_block_leave)
#define TERN_AUTOCAST_HERE(device, dtype) TERN_AUTOCAST_MODE_HERE(device, dtype, true)
#define TERN_AUTOCAST_MODE_HERE(device, dtype, enabled)                                            \
    TERN_HERE_(tern_autocast_block, tern_autocast_block_enter(device, dtype, enabled),             \
               tern_autocast_block_leave)

/* Returns whether operations on device are autocast now. */
TERN_API bool tern_is_autocast_enabled(const char *device);
/* Returns the dtype that they convert to; TERN_DTYPE_DEFAULT if autocast is off. */
TERN_API tern_dtype tern_get_autocast_dtype(const char *device);
/* Returns whether converted leaves are kept on this thread; at first they are. */
TERN_API bool tern_is_autocast_cache_enabled(void);
/* Sets whether converted leaves are kept on this thread. */
TERN_API void tern_set_autocast_cache_enabled(bool enabled);
/* Drops the converted leaves that are kept. */
TERN_API void tern_clear_autocast_cache(void);

/* ---- gradient scaling (torch.amp.GradScaler) ----------------------------------------------------
 * The scale, the growth counter, and the flag for infinite gradients are on the device of the first
 * tensor that is scaled. Only tern_amp_get_scale and tern_amp_get_state wait for that device. */
typedef struct tern_scaler tern_scaler;

typedef struct tern_grad_scaler_options {
    double init_scale;       /* default 65536 */
    double growth_factor;    /* default 2; > 1 */
    double backoff_factor;   /* default 0.5; < 1, TERN_ZERO for 0 */
    int64_t growth_interval; /* default 2000: the number of successive steps without infinity or
                              * NaN after which the scale grows */
    bool disabled;           /* scale and unscale_ do nothing, and step is tern_optim_step */
    uint64_t reserved[4];
} tern_grad_scaler_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_grad_scaler_options tern_grad_scaler_defaults(void);

/* Makes a gradient scaler, which the caller frees with tern_amp_free. NULL after an error:
 * TERN_ERR_ARGUMENT for factors outside of their ranges. */
TERN_API tern_scaler *tern_amp_grad_scaler(const tern_grad_scaler_options *options);
/* Returns x times the scale, or x itself if the scaler is disabled. Differentiable. */
TERN_API tern_tensor *tern_amp_scale(tern_scaler *scaler, tern_tensor *x);
/* Divides the gradients of the optimizer's parameters by the scale, in place, and records whether
 * one is infinite or NaN. Call it before tern_amp_step, at most once in a step, if gradients are to
 * be clipped or inspected. Errors: TERN_ERR_STATE if it was already called in this step,
 * TERN_ERR_DTYPE for float16 gradients. */
TERN_API tern_status tern_amp_unscale_(tern_scaler *scaler, tern_optimizer *optimizer);
/* Unscales the gradients unless that was done, then steps the optimizer; if a gradient is infinite
 * or NaN the parameters do not change. Errors: those of tern_amp_unscale_ and tern_optim_step;
 * TERN_ERR_STATE if no parameter has a gradient. */
TERN_API tern_status tern_amp_step(tern_scaler *scaler, tern_optimizer *optimizer);
/* Updates the scale after the steps of all optimizers: it is multiplied by backoff_factor if a
 * gradient was infinite or NaN, and by growth_factor after growth_interval successive steps
 * without. */
TERN_API tern_status tern_amp_update(tern_scaler *scaler);
/* Sets the scale, in place of tern_amp_update. */
TERN_API tern_status tern_amp_set_scale(tern_scaler *scaler, double scale);
/* Returns the scale (1 if disabled); NaN after an error. Waits for the device. */
TERN_API double tern_amp_get_scale(tern_scaler *scaler);
/* Returns whether the scaler is enabled. */
TERN_API bool tern_amp_is_enabled(const tern_scaler *scaler);

/* The state of a scaler, with the entries of PyTorch's state_dict. */
typedef struct tern_scaler_state {
    double scale, growth_factor, backoff_factor;
    int64_t growth_interval, growth_tracker;
    uint64_t reserved[4];
} tern_scaler_state;
/* Writes the state to *state. Waits for the device. */
TERN_API tern_status tern_amp_get_state(tern_scaler *scaler, tern_scaler_state *state);
/* Restores a state that tern_amp_get_state wrote. */
TERN_API tern_status tern_amp_set_state(tern_scaler *scaler, const tern_scaler_state *state);
/* Frees the scaler; NULL is fine. */
TERN_API void tern_amp_free(tern_scaler *scaler);

TERN_END_DECLS
#endif
