/* nn/hooks.h -- functions that are called before or after a module runs, to observe or change its
 * tensors (torch.nn.Module.register_..._hook). */
#ifndef TERN_NN_HOOKS_H
#define TERN_NN_HOOKS_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Each hook gets the module, the inputs or outputs, and the user's pointer. A hook may replace the
 * tensors of an array that is not const. If it does not return TERN_OK, the forward or backward
 * pass fails with that status. */

/* A hook that is called before the forward function. */
typedef tern_status (*tern_module_forward_pre_hook)(tern_module *m, tern_tensor **in, int n,
                                                    void *user);
/* A hook that is called after the forward function. */
typedef tern_status (*tern_module_forward_hook)(tern_module *m, tern_tensor *const *in, int n,
                                                tern_tensor **out, int k, void *user);
/* A hook that is called in backward when the gradients of all results are known, before the
 * module's own backward. A gradient that is NULL is zero. */
typedef tern_status (*tern_module_backward_pre_hook)(tern_module *m, tern_tensor **grad_out, int k,
                                                     void *user);
/* A hook that is called in backward when the gradients of all inputs are known; those of inputs
 * that need none are NULL. If no input requires a gradient it is called when the gradients of the
 * results are known. */
typedef tern_status (*tern_module_backward_hook)(tern_module *m, tern_tensor **grad_in, int n,
                                                 tern_tensor *const *grad_out, int k, void *user);

/* Registers a hook that is called before the forward function. Returns an id (> 0) for
 * tern_nn_remove_hook; 0 after an error. tern_nn_forward, tern_nn_call and tern_nn_loss call the
 * hooks of each kind in the order of their registration. A module with backward hooks must exist
 * until backward has run, and its inputs and results must not be written in place. A hook may
 * register and remove hooks; those that it registers are called from the next run on. */
TERN_API int tern_nn_register_forward_pre_hook(tern_module *m, tern_module_forward_pre_hook hook,
                                               void *user);
/* Registers a hook that is called after the forward function. */
TERN_API int tern_nn_register_forward_hook(tern_module *m, tern_module_forward_hook hook,
                                           void *user);
/* Registers a hook that is called before the module's backward. */
TERN_API int tern_nn_register_full_backward_pre_hook(tern_module *m,
                                                     tern_module_backward_pre_hook hook,
                                                     void *user);
/* Registers a hook that is called after the module's backward. */
TERN_API int tern_nn_register_full_backward_hook(tern_module *m, tern_module_backward_hook hook,
                                                 void *user);
/* Removes a hook of any kind. Errors: TERN_ERR_ARGUMENT for an id that is not one of m's. */
TERN_API tern_status tern_nn_remove_hook(tern_module *m, int id);

TERN_END_DECLS
#endif
