/* optim.h -- optimizers: one launch per step for all parameters of a device and dtype (on OpenCL
 * GPUs, whose kernels cannot follow pointers from one buffer to another, for every twenty of them).
 *
 * An optimizer retains its parameters and is freed with tern_optim_free. A step while an error is
 * recorded does nothing and returns that error; so does one whose gradients came from a device that
 * found a bad index. Parameters without a gradient are left alone. */
#ifndef TERN_OPTIM_H
#define TERN_OPTIM_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_optimizer tern_optimizer;

typedef struct tern_sgd_options {
    double momentum, dampening, weight_decay;
    bool nesterov; /* wants momentum > 0 and dampening 0 */
    bool maximize;
    uint64_t reserved[4];
} tern_sgd_options;

/* lr > 0 or 0; all parameters of module that require gradients. */
TERN_API tern_optimizer *tern_optim_sgd(tern_module *module, double lr,
                                        const tern_sgd_options *options);

typedef struct tern_adam_options {
    double beta1;        /* default 0.9; TERN_ZERO for 0 */
    double beta2;        /* default 0.999; TERN_ZERO for 0 */
    double eps;          /* default 1e-8; TERN_ZERO for 0 */
    double weight_decay; /* Adam: 0; AdamW: 0.01, TERN_ZERO for 0 */
    bool amsgrad, maximize;
    uint64_t reserved[4];
} tern_adam_options;

/* Kingma & Ba 2015; weight decay is added to the gradient. */
TERN_API tern_optimizer *tern_optim_adam(tern_module *module, double lr,
                                         const tern_adam_options *options);
/* Loshchilov & Hutter 2019; weight decay is taken from the parameter. */
TERN_API tern_optimizer *tern_optim_adamw(tern_module *module, double lr,
                                          const tern_adam_options *options);

/* The same for a list of leaf tensors. */
TERN_API tern_optimizer *tern_optim_sgd_of(tern_tensor *const *parameters, int n, double lr,
                                           const tern_sgd_options *options);
TERN_API tern_optimizer *tern_optim_adam_of(tern_tensor *const *parameters, int n, double lr,
                                            const tern_adam_options *options);
TERN_API tern_optimizer *tern_optim_adamw_of(tern_tensor *const *parameters, int n, double lr,
                                             const tern_adam_options *options);

TERN_API tern_status tern_optim_step(tern_optimizer *optimizer);
/* Remove the gradients (PyTorch's set_to_none). */
TERN_API tern_status tern_optim_zero_grad(tern_optimizer *optimizer);
TERN_API double tern_optim_get_lr(const tern_optimizer *optimizer);
TERN_API tern_status tern_optim_set_lr(tern_optimizer *optimizer, double lr);
TERN_API void tern_optim_free(tern_optimizer *optimizer);

/* The norm of all gradients together; they are scaled so that it is at most max_norm. NaN after an
 * error. (torch.nn.utils.clip_grad_norm_ with norm_type 2.) */
TERN_API double tern_nn_clip_grad_norm_(tern_module *module, double max_norm);

TERN_END_DECLS
#endif
