/* optim.h -- optimizers: a step is one launch for all parameters of a device and dtype (on OpenCL
 * GPUs, whose kernels cannot follow pointers from one buffer to another, for every twenty of them).
 *
 * An optimizer keeps its parameters, and is freed with tern_optim_free. A step while an error is
 * recorded does nothing and returns that error; so does a step whose gradients came from a device
 * that found a bad index. Parameters without a gradient are left alone. */
#ifndef TERN_OPTIM_H
#define TERN_OPTIM_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef struct tern_optimizer tern_optimizer;

typedef struct tern_sgd_options {
    double momentum, dampening, weight_decay;
    bool nesterov; /* needs momentum > 0 and dampening 0 */
    bool maximize;
    uint64_t reserved[4];
} tern_sgd_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_sgd_options tern_sgd_defaults(void);

/* Makes an optimizer that does stochastic gradient descent (torch.optim.SGD) on all parameters of
 * module; those that do not require gradients now are left alone until they have one. lr must be at
 * least 0. */
TERN_API tern_optimizer *tern_optim_sgd(tern_module *module, double lr,
                                        const tern_sgd_options *options);

typedef struct tern_adam_options {
    double beta1; /* default 0.9; TERN_ZERO for 0 */
    double beta2; /* default 0.999; TERN_ZERO for 0 */
    double eps;   /* default 1e-8; TERN_ZERO for 0 */
    double weight_decay;
    bool amsgrad, maximize;
    bool decoupled_weight_decay; /* weight decay is taken from the parameter, as AdamW does */
    uint64_t reserved[4];
} tern_adam_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_adam_options tern_adam_defaults(void);

typedef struct tern_adamw_options {
    double beta1;        /* default 0.9; TERN_ZERO for 0 */
    double beta2;        /* default 0.999; TERN_ZERO for 0 */
    double eps;          /* default 1e-8; TERN_ZERO for 0 */
    double weight_decay; /* default 0.01; TERN_ZERO for 0 */
    bool amsgrad, maximize;
    uint64_t reserved[4];
} tern_adamw_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_adamw_options tern_adamw_defaults(void);

/* Makes an Adam optimizer (Kingma & Ba 2015) of all parameters of module; weight decay is added to
 * the gradient. */
TERN_API tern_optimizer *tern_optim_adam(tern_module *module, double lr,
                                         const tern_adam_options *options);
/* Makes an AdamW optimizer (Loshchilov & Hutter 2019) of all parameters of module; weight decay is
 * taken from the parameter. */
TERN_API tern_optimizer *tern_optim_adamw(tern_module *module, double lr,
                                          const tern_adamw_options *options);

/* Makes an SGD optimizer of a list of leaf tensors, whether or not they require gradients. */
TERN_API tern_optimizer *tern_optim_sgd_of(tern_tensor *const *parameters, int n, double lr,
                                           const tern_sgd_options *options);
/* Makes an Adam optimizer of such a list. */
TERN_API tern_optimizer *tern_optim_adam_of(tern_tensor *const *parameters, int n, double lr,
                                            const tern_adam_options *options);
/* Makes an AdamW optimizer of such a list. */
TERN_API tern_optimizer *tern_optim_adamw_of(tern_tensor *const *parameters, int n, double lr,
                                             const tern_adamw_options *options);

/* ---- steps ------------------------------------------------------------------------------- */
/* Does one step of all groups. Errors: TERN_ERR_STATE and the like where the step is refused, as
 * said above; TERN_ERR_ARGUMENT where several elements of a parameter that has a gradient are one
 * in memory, as in a tensor that was expanded. Where the step is refused or memory is short, no
 * parameter has been stepped; where the device fails on the way, the parameters of one group, dtype
 * and device are stepped together or not at all. */
TERN_API tern_status tern_optim_step(tern_optimizer *optimizer);
/* A closure computes the loss: it clears the gradients, runs the model and backward, and returns
 * the loss, which belongs to the scope that is open then; NULL after an error. */
typedef tern_tensor *(*tern_closure)(void *user);
/* Does a step after evaluating closure, which L-BFGS does several times. *loss becomes the first
 * loss, unless loss is NULL. */
TERN_API tern_status tern_optim_step_closure(tern_optimizer *optimizer, tern_closure closure,
                                             void *user, double *loss);
/* Returns the i-th parameter, borrowed, counted over all groups in turn; its states are called
 * "state.<i>.". NULL, without an error, where there is none. */
TERN_API tern_tensor *tern_optim_parameter(const tern_optimizer *optimizer, int i);
/* Removes the gradients (PyTorch's set_to_none). */
TERN_API tern_status tern_optim_zero_grad(tern_optimizer *optimizer);
/* Removes the gradients, or fills them with zeros where set_to_none is false. */
TERN_API tern_status tern_optim_zero_grad_with(tern_optimizer *optimizer, bool set_to_none);
/* Frees the optimizer and releases its parameters; NULL is fine. */
TERN_API void tern_optim_free(tern_optimizer *optimizer);

/* ---- parameter groups --------------------------------------------------------------------------
 * The parameters that an optimizer is made with are group 0. Each group has options of its own,
 * whose names are those of the options structs: "lr", "weight_decay", "beta1", "momentum", ... A
 * step is one launch for each group, device and dtype. */
/* Adds a group of more parameters, which begins with the options of group 0. Returns the number of
 * the new group; -1 after an error. */
TERN_API int tern_optim_add_param_group(tern_optimizer *optimizer, tern_tensor *const *parameters,
                                        int n);
/* Adds a group of all parameters of module, for, say, a learning rate of its own
 * (tern_optim_set_option(optimizer, group, "lr", 1e-4)). Returns its number; -1 after an error,
 * which is TERN_ERR_ARGUMENT if one of the parameters is in a group already. */
TERN_API int tern_optim_add_module(tern_optimizer *optimizer, tern_module *module);
/* Returns how many groups there are. */
TERN_API int tern_optim_param_groups(const tern_optimizer *optimizer);
/* Returns an option of a group; NaN, and TERN_ERR_ARGUMENT, for a group or an option that does not
 * exist. Options that are flags (amsgrad, nesterov, ...) are the same for all groups and do not
 * change. */
TERN_API double tern_optim_get_option(const tern_optimizer *optimizer, int group, const char *name);
/* Sets an option of a group, from the next step on. "lr" may be below 0, as some schedules go
 * there. */
TERN_API tern_status tern_optim_set_option(tern_optimizer *optimizer, int group, const char *name,
                                           double value);
/* Returns whether an optimizer of this kind has that option. */
TERN_API bool tern_optim_has_option(const tern_optimizer *optimizer, const char *name);
/* Returns the learning rate of group 0. */
TERN_API double tern_optim_get_lr(const tern_optimizer *optimizer);
/* Sets the learning rate of all groups. */
TERN_API tern_status tern_optim_set_lr(tern_optimizer *optimizer, double lr);

/* ---- state: what steps have gathered, to be saved -----------------------------------------------
 * Paths are PyTorch's: "state.0.exp_avg" (parameter 0), "state.0.step" (int64), and the options
 * "param_groups.0.lr" (float64). The state of L-BFGS, whose tensors are vectors of all parameters,
 * can be put back by tern_optim_load_state_dict alone. */

/* Visits every tensor of the state, borrowed, with its path. */
TERN_API tern_status tern_optim_each_state(tern_optimizer *optimizer, tern_tensor_visit visit,
                                           void *user);
/* Puts back a tensor of the state: value, of any device and dtype, is copied. */
TERN_API tern_status tern_optim_set_state(tern_optimizer *optimizer, const char *path,
                                          const tern_tensor *value);

/* Returns all that tern_optim_each_state visits, by the paths; the tensors share their elements
 * with the state. The caller frees it with tern_state_dict_free. NULL after an error. */
TERN_API tern_state_dict *tern_optim_state_dict(tern_optimizer *optimizer);
/* Puts all of a state back, from any device and dtype; parameters without a state in dict are as
 * before their first step. Errors: TERN_ERR_STATE where groups, parameters, names or shapes are
 * different, and then nothing has changed. */
TERN_API tern_status tern_optim_load_state_dict(tern_optimizer *optimizer,
                                                const tern_state_dict *dict);
/* Returns what tern_optim_load_state_dict would return, and changes nothing. */
TERN_API tern_status tern_optim_check_state_dict(tern_optimizer *optimizer,
                                                 const tern_state_dict *dict);

/* ---- gradients --------------------------------------------------------------------------- */
/* Scales all gradients so that their norm together is at most max_norm, and returns the norm that
 * they had (torch.nn.utils.clip_grad_norm_). NaN after an error, and while a step is recorded
 * (graph.h): each replay clips by its own norm. */
TERN_API double tern_nn_clip_grad_norm_(tern_module *module, double max_norm);
typedef struct tern_clip_grad_norm_options {
    double norm_type;        /* default 2; INFINITY: the largest element, -INFINITY: the smallest;
                                below 0 an element that is 0 makes the norm 0 */
    bool error_if_nonfinite; /* a norm that is infinite or NaN is TERN_ERR_STATE; else gradients are
                                scaled by it as by any other. Can't be recorded. */
    uint64_t reserved[4];
} tern_clip_grad_norm_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_clip_grad_norm_options tern_clip_grad_norm_defaults(void);
/* Does the same with options, for another norm. */
TERN_API double tern_nn_clip_grad_norm_with_(tern_module *module, double max_norm,
                                             const tern_clip_grad_norm_options *options);
/* Clamps every element of every gradient to -clip_value..clip_value
 * (torch.nn.utils.clip_grad_value_). */
TERN_API tern_status tern_nn_clip_grad_value_(tern_module *module, double clip_value);

TERN_END_DECLS

#include <tern/optim/algorithms.h>
#include <tern/optim/lr_scheduler.h>
#include <tern/optim/swa_utils.h>
#endif
