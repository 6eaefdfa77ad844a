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
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_sgd_options tern_sgd_defaults(void);

/* lr > 0 or 0; all parameters of module, also those that do not require gradients now: they are
 * left alone until they have one. */
TERN_API tern_optimizer *tern_optim_sgd(tern_module *module, double lr,
                                        const tern_sgd_options *options);

typedef struct tern_adam_options {
    double beta1; /* default 0.9; TERN_ZERO for 0 */
    double beta2; /* default 0.999; TERN_ZERO for 0 */
    double eps;   /* default 1e-8; TERN_ZERO for 0 */
    double weight_decay;
    bool amsgrad, maximize;
    bool decoupled_weight_decay; /* from the parameter, as AdamW's */
    uint64_t reserved[4];
} tern_adam_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_adam_options tern_adam_defaults(void);

typedef struct tern_adamw_options {
    double beta1;        /* default 0.9; TERN_ZERO for 0 */
    double beta2;        /* default 0.999; TERN_ZERO for 0 */
    double eps;          /* default 1e-8; TERN_ZERO for 0 */
    double weight_decay; /* default 0.01; TERN_ZERO for 0 */
    bool amsgrad, maximize;
    uint64_t reserved[4];
} tern_adamw_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_adamw_options tern_adamw_defaults(void);

/* Kingma & Ba 2015; weight decay is added to the gradient. */
TERN_API tern_optimizer *tern_optim_adam(tern_module *module, double lr,
                                         const tern_adam_options *options);
/* Loshchilov & Hutter 2019; weight decay is taken from the parameter. */
TERN_API tern_optimizer *tern_optim_adamw(tern_module *module, double lr,
                                          const tern_adamw_options *options);

/* The same for a list of leaf tensors, whether or not they require gradients. */
TERN_API tern_optimizer *tern_optim_sgd_of(tern_tensor *const *parameters, int n, double lr,
                                           const tern_sgd_options *options);
/* Adam's. */
TERN_API tern_optimizer *tern_optim_adam_of(tern_tensor *const *parameters, int n, double lr,
                                            const tern_adam_options *options);
/* AdamW's. */
TERN_API tern_optimizer *tern_optim_adamw_of(tern_tensor *const *parameters, int n, double lr,
                                             const tern_adamw_options *options);

/* ---- steps ------------------------------------------------------------------------------- */
/* One step of all groups. TERN_ERR_STATE and the like where it is refused, as said above;
 * TERN_ERR_ARGUMENT where several elements of a parameter that has a gradient are one in memory, as
 * in what was expanded. Where it is refused or memory is short, no parameter has been stepped;
 * where the device fails on the way, those of one group, dtype and device go together. */
TERN_API tern_status tern_optim_step(tern_optimizer *optimizer);
/* Computes the loss: clears the gradients, runs the model and backward, returns the loss (owned by
 * the scope that is open then); NULL after an error. */
typedef tern_tensor *(*tern_closure)(void *user);
/* Step after evaluating closure, which L-BFGS does several times; the first loss goes to *loss,
 * unless that is NULL. */
TERN_API tern_status tern_optim_step_closure(tern_optimizer *optimizer, tern_closure closure,
                                             void *user, double *loss);
/* The i-th parameter of all groups in turn, borrowed, whose states are called "state.<i>."; NULL,
 * without an error, where there is none. */
TERN_API tern_tensor *tern_optim_parameter(const tern_optimizer *optimizer, int i);
/* Remove the gradients (PyTorch's set_to_none). */
TERN_API tern_status tern_optim_zero_grad(tern_optimizer *optimizer);
/* The same, or fill them with zeros. */
TERN_API tern_status tern_optim_zero_grad_with(tern_optimizer *optimizer, bool set_to_none);
/* Frees the optimizer and lets go of its parameters; NULL is fine. */
TERN_API void tern_optim_free(tern_optimizer *optimizer);

/* ---- parameter groups --------------------------------------------------------------------------
 * The parameters an optimizer is made with are group 0. Each group has options of its own, by the
 * names of the options structs: "lr", "weight_decay", "beta1", "momentum", ... A step is one launch
 * for each group (device, dtype). */
/* More parameters, with the options of group 0 at first; the number of the new group, -1 after an
 * error. */
TERN_API int tern_optim_add_param_group(tern_optimizer *optimizer, tern_tensor *const *parameters,
                                        int n);
/* The same with all parameters of module: a group with, say, its own learning rate
 * (tern_optim_set_option(optimizer, group, "lr", 1e-4)). TERN_ERR_ARGUMENT if one of them is in a
 * group already. */
TERN_API int tern_optim_add_module(tern_optimizer *optimizer, tern_module *module);
/* How many groups there are. */
TERN_API int tern_optim_param_groups(const tern_optimizer *optimizer);
/* NaN, or TERN_ERR_ARGUMENT, for a group or an option that is not there. Options that are flags
 * (amsgrad, nesterov, ...) are the same for all groups and do not change. */
TERN_API double tern_optim_get_option(const tern_optimizer *optimizer, int group, const char *name);
/* Of a group, from the next step on. "lr" may be below 0, as schedules go there. */
TERN_API tern_status tern_optim_set_option(tern_optimizer *optimizer, int group, const char *name,
                                           double value);
/* Whether its kind has that option. */
TERN_API bool tern_optim_has_option(const tern_optimizer *optimizer, const char *name);
/* Group 0's learning rate; set that of all groups. */
TERN_API double tern_optim_get_lr(const tern_optimizer *optimizer);
/* Of all groups. */
TERN_API tern_status tern_optim_set_lr(tern_optimizer *optimizer, double lr);

/* ---- state: what has been gathered, to be saved -------------------------------------------------
 * Paths are PyTorch's: "state.0.exp_avg" (parameter 0), "state.0.step" (int64), and the options
 * "param_groups.0.lr" (float64). visit borrows the tensor. Those of
 * L-BFGS, a vector of all parameters each, are put back by tern_optim_load_state_dict alone. */
TERN_API tern_status tern_optim_each_state(tern_optimizer *optimizer, tern_tensor_visit visit,
                                           void *user);
/* Put back what was visited: value is copied, from any device and dtype. */
TERN_API tern_status tern_optim_set_state(tern_optimizer *optimizer, const char *path,
                                          const tern_tensor *value);

/* All that tern_optim_each_state visits, by its paths, sharing its elements; to be freed with
 * tern_state_dict_free. NULL after an error. */
TERN_API tern_state_dict *tern_optim_state_dict(tern_optimizer *optimizer);
/* Put all of it back, from any device and dtype: parameters that dict has no state of are as before
 * their first step. Errors: TERN_ERR_STATE where groups, parameters, names or shapes are others,
 * nothing having changed. */
TERN_API tern_status tern_optim_load_state_dict(tern_optimizer *optimizer,
                                                const tern_state_dict *dict);
/* Whether that would be done; changes nothing. */
TERN_API tern_status tern_optim_check_state_dict(tern_optimizer *optimizer,
                                                 const tern_state_dict *dict);

/* ---- gradients --------------------------------------------------------------------------- */
/* The norm of all gradients together; they are scaled so that it is at most max_norm. NaN after an
 * error, and while a step is recorded (graph.h): each replay clips by its own norm.
 * (torch.nn.utils.clip_grad_norm_.) */
TERN_API double tern_nn_clip_grad_norm_(tern_module *module, double max_norm);
typedef struct tern_clip_grad_norm_options {
    double norm_type;        /* default 2; INFINITY: the largest element, -INFINITY: the smallest;
                                below 0 an element that is 0 makes the norm 0 */
    bool error_if_nonfinite; /* TERN_ERR_STATE for a norm that is infinite or NaN, else gradients
                                are scaled by it as by any other; can't be recorded */
    uint64_t reserved[4];
} tern_clip_grad_norm_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_clip_grad_norm_options tern_clip_grad_norm_defaults(void);
/* The same with another norm. */
TERN_API double tern_nn_clip_grad_norm_with_(tern_module *module, double max_norm,
                                             const tern_clip_grad_norm_options *options);
/* Every element of every gradient between -clip_value and clip_value
 * (torch.nn.utils.clip_grad_value_). */
TERN_API tern_status tern_nn_clip_grad_value_(tern_module *module, double clip_value);

TERN_END_DECLS

#include <tern/optim/algorithms.h>
#include <tern/optim/lr_scheduler.h>
#include <tern/optim/swa_utils.h>
#endif
