/* amp.h -- mixed precision: operations in half precision where that is safe, and gradients scaled
 * so that they do not vanish there (torch.amp).
 *
 *   TERN_AUTOCAST(device, TERN_F16) {
 *       loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
 *   }
 *   tern_backward(tern_amp_scale(scaler, loss));
 *   tern_amp_step(scaler, optimizer);
 *   tern_amp_update(scaler);
 *
 * Halves are types of storage with float32 arithmetic, so this works on every device. */
#ifndef TERN_AMP_H
#define TERN_AMP_H
#include <tern/optim.h>

TERN_BEGIN_DECLS

/* ---- TERN_AUTOCAST(device, dtype) { ... } -------------------------------------------------------
 * Inside, on this thread, on all devices of device's kind: matrix products, convolutions and
 * attention get their float32 and half inputs as dtype (TERN_F16 or TERN_BF16; TERN_DTYPE_DEFAULT
 * is PyTorch's: bf16 on the cpu, f16 elsewhere), softmax, norms, losses, sums and products of
 * elements, exponentials, powers and resampled images get theirs as float32, a few mix to the
 * widest type, all others take what they get. These are PyTorch's lists for CUDA, whatever the
 * device. float64 is left alone, in-place operations are too. tern_binary_cross_entropy is refused,
 * as in PyTorch. The gradient of a float32 tensor arrives in float32.
 *
 * A float32 leaf that requires a gradient is cast once while the outermost block is open, and again
 * after it was written in place. Blocks nest; run backward outside of them.
 *
 * Leaving in any way restores the mode. A refused device or dtype is recorded and leaves the mode
 * as it was. */
typedef struct tern_autocast_block {
    int active;
    int kind; /* which device kind's mode was changed, -1 for none */
    tern_dtype saved;
} tern_autocast_block;
/* What TERN_AUTOCAST opens with, and what closes it, for other languages. */
TERN_API tern_autocast_block tern_autocast_block_enter(const char *device, tern_dtype dtype,
                                                       bool enabled);
/* Ends the innermost one. */
TERN_API void tern_autocast_block_leave(tern_autocast_block *block);
#define TERN_AUTOCAST(device, dtype) TERN_AUTOCAST_MODE(device, dtype, true)
/* enabled = false: nothing is cast inside. */
#define TERN_AUTOCAST_MODE(device, dtype, enabled)                                                 \
    TERN_BLOCK_(tern_autocast_block, tern_autocast_block_enter(device, dtype, enabled),            \
                tern_autocast_block_leave)
#define TERN_AUTOCAST_HERE(device, dtype) TERN_AUTOCAST_MODE_HERE(device, dtype, true)
#define TERN_AUTOCAST_MODE_HERE(device, dtype, enabled)                                            \
    TERN_HERE_(tern_autocast_block, tern_autocast_block_enter(device, dtype, enabled),             \
               tern_autocast_block_leave)

/* Whether operations on device are cast now, and to what (TERN_DTYPE_DEFAULT: they are not). */
TERN_API bool tern_is_autocast_enabled(const char *device);
/* The dtype they are cast to; TERN_DTYPE_DEFAULT: they are not. */
TERN_API tern_dtype tern_get_autocast_dtype(const char *device);
/* Keeping the casts of leaves; on at first, for each thread. */
TERN_API bool tern_is_autocast_cache_enabled(void);
/* Whether casts of leaves are kept, on this thread. */
TERN_API void tern_set_autocast_cache_enabled(bool enabled);
/* Forgets the casts that are kept. */
TERN_API void tern_clear_autocast_cache(void);

/* ---- gradient scaling (torch.amp.GradScaler) ----------------------------------------------------
 * The scale, the count to its next growth and what was found in the gradients stay on the device of
 * the first tensor that is scaled; no call but the getters waits for it. */
typedef struct tern_scaler tern_scaler;

typedef struct tern_grad_scaler_options {
    double init_scale;       /* default 65536 */
    double growth_factor;    /* default 2; > 1 */
    double backoff_factor;   /* default 0.5; < 1, TERN_ZERO for 0 */
    int64_t growth_interval; /* default 2000: steps in a row without infinity or NaN */
    bool disabled;           /* scale and unscale_ do nothing, step is tern_optim_step */
    uint64_t reserved[4];
} tern_grad_scaler_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_grad_scaler_options tern_grad_scaler_defaults(void);

/* To be freed with tern_amp_free. Errors: TERN_ERR_ARGUMENT for factors that would not work. */
TERN_API tern_scaler *tern_amp_grad_scaler(const tern_grad_scaler_options *options);
/* x times the scale (x itself when disabled). Differentiable. */
TERN_API tern_tensor *tern_amp_scale(tern_scaler *scaler, tern_tensor *x);
/* Divide the gradients of the optimizer's parameters by the scale, in place, and note whether any
 * is infinite or NaN: to clip or look at them before tern_amp_step, once in each step. Errors:
 * TERN_ERR_STATE when it was called already, TERN_ERR_DTYPE for f16 gradients. */
TERN_API tern_status tern_amp_unscale_(tern_scaler *scaler, tern_optimizer *optimizer);
/* Unscale if that was not done; then step, which changes nothing when an infinity or NaN was found.
 * Errors: those of both; TERN_ERR_STATE when no parameter has a gradient. */
TERN_API tern_status tern_amp_step(tern_scaler *scaler, tern_optimizer *optimizer);
/* After all optimizers' steps: back off if any found an infinity or NaN, else count to growth. */
TERN_API tern_status tern_amp_update(tern_scaler *scaler);
/* Instead: this scale from now on. */
TERN_API tern_status tern_amp_set_scale(tern_scaler *scaler, double scale);
/* The scale (1 when disabled). Waits for the device. NaN after an error. */
TERN_API double tern_amp_get_scale(tern_scaler *scaler);
/* Whether the scaler does anything. */
TERN_API bool tern_amp_is_enabled(const tern_scaler *scaler);

/* What PyTorch's state_dict holds. */
typedef struct tern_scaler_state {
    double scale, growth_factor, backoff_factor;
    int64_t growth_interval, growth_tracker;
    uint64_t reserved[4];
} tern_scaler_state;
/* Into *state. Waits for the device. */
TERN_API tern_status tern_amp_get_state(tern_scaler *scaler, tern_scaler_state *state);
/* As tern_amp_get_state gave it. */
TERN_API tern_status tern_amp_set_state(tern_scaler *scaler, const tern_scaler_state *state);
/* Frees the scaler; NULL is fine. */
TERN_API void tern_amp_free(tern_scaler *scaler);

TERN_END_DECLS
#endif
