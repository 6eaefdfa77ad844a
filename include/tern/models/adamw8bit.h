/* models/adamw8bit.h -- AdamW in a quarter of the memory: bitsandbytes' AdamW8bit.
 *
 *   tern_optimizer *optimizer = tern_optim_adamw8bit(model, 1e-4, NULL);
 *
 * Both moments take a byte an element, a code of a map of 256 numbers, and a float32 scale for 256
 * neighbours (Dettmers et al. 2022, https://arxiv.org/abs/2110.02861); those of a parameter of
 * fewer than 4096 elements stay in float32. States have bitsandbytes' names: "state.0.state1",
 * "state.0.state2" (codes, or the moments), "state.0.absmax1", "state.0.absmax2", "state.0.step".
 * Options, groups, schedulers, gradient scaling and snapshots are as AdamW's. */
#ifndef TERN_MODELS_ADAMW8BIT_H
#define TERN_MODELS_ADAMW8BIT_H
#include <tern/tern.h>

TERN_BEGIN_DECLS

/* Of all parameters of module: float32 or halves, which are computed in float32 one at a time.
 * Errors: TERN_ERR_UNSUPPORTED for amsgrad, and in steps that are recorded in a graph;
 * TERN_ERR_DTYPE for float64; as tern_optim_adamw. To be freed with tern_optim_free. */
TERN_API tern_optimizer *tern_optim_adamw8bit(tern_module *module, double lr,
                                              const tern_adamw_options *options);
/* Of a list of leaves. */
TERN_API tern_optimizer *tern_optim_adamw8bit_of(tern_tensor *const *parameters, int n, double lr,
                                                 const tern_adamw_options *options);
/* What codes stand for, ascending, (256) in float32: is_signed, of the first moment; else of the
 * second (bitsandbytes.functional.create_dynamic_map). */
TERN_API tern_tensor *tern_dynamic_map(bool is_signed, const char *device);

TERN_END_DECLS
#endif
