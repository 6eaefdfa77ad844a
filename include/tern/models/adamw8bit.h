/* models/adamw8bit.h -- AdamW in a quarter of the memory: bitsandbytes' AdamW8bit.
 *
 *   tern_optimizer *optimizer = tern_optim_adamw8bit(model, 1e-4, NULL);
 *
 * Each element of both moments is stored in one byte, as an index into a map of 256 numbers, with
 * one float32 scale for every 256 neighbours (Dettmers et al. 2022,
 * https://arxiv.org/abs/2110.02861). The moments of a parameter with fewer than 4096 elements stay
 * in float32. States have bitsandbytes' names: "state.0.state1" and "state.0.state2" (codes, or the
 * moments), "state.0.absmax1", "state.0.absmax2", "state.0.step". Options, groups, schedulers,
 * gradient scaling and snapshots work as with AdamW. */
#ifndef TERN_MODELS_ADAMW8BIT_H
#define TERN_MODELS_ADAMW8BIT_H
#include <tern/tern.h>

TERN_BEGIN_DECLS

/* Makes an AdamW optimizer with 8-bit states of all parameters of module. Parameters are float32 or
 * half precision; the computation is in float32. The caller frees it with tern_optim_free. Errors:
 * those of tern_optim_adamw; TERN_ERR_UNSUPPORTED for amsgrad, and for steps that are recorded in a
 * graph; TERN_ERR_DTYPE for float64. */
TERN_API tern_optimizer *tern_optim_adamw8bit(tern_module *module, double lr,
                                              const tern_adamw_options *options);
/* Makes such an optimizer of a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_adamw8bit_of(tern_tensor *const *parameters, int n, double lr,
                                                 const tern_adamw_options *options);
/* Returns the numbers that the codes stand for, ascending, (256) in float32: with is_signed those
 * of the first moment, else those of the second (bitsandbytes.functional.create_dynamic_map). */
TERN_API tern_tensor *tern_dynamic_map(bool is_signed, const char *device);

TERN_END_DECLS
#endif
