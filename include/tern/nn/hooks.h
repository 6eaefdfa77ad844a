/* nn/hooks.h -- functions called around a module's run: to look at what goes through, or to change
 * it (torch.nn.Module.register_..._hook). */
#ifndef TERN_NN_HOOKS_H
#define TERN_NN_HOOKS_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Each gets the module, what goes in or comes out, and the user's pointer. Tensors in arrays that
 * are not const may be replaced. What is not TERN_OK fails the run, or the backward pass. */

/* Before the forward function. */
typedef tern_status (*tern_module_forward_pre_hook)(tern_module *m, tern_tensor **in, int n,
                                                    void *user);
/* After it. */
typedef tern_status (*tern_module_forward_hook)(tern_module *m, tern_tensor *const *in, int n,
                                                tern_tensor **out, int k, void *user);
/* In backward, once the gradients of all results are there, and before the module's own backward. A
 * gradient that is NULL is zero. */
typedef tern_status (*tern_module_backward_pre_hook)(tern_module *m, tern_tensor **grad_out, int k,
                                                     void *user);
/* In backward, once the gradients of all inputs are there; NULL for those that need none. When no
 * input requires a gradient it is called with those of the results. */
typedef tern_status (*tern_module_backward_hook)(tern_module *m, tern_tensor **grad_in, int n,
                                                 tern_tensor *const *grad_out, int k, void *user);

/* Hooks of a kind are called in the order they were registered, by tern_nn_forward, tern_nn_call
 * and tern_nn_loss. Return an id (> 0) for tern_nn_remove_hook; 0 after an error. A module with
 * backward hooks must be there when backward runs, and its inputs and results are not to be written
 * in place. A hook may register and remove hooks: those registered come with the next run. */
TERN_API int tern_nn_register_forward_pre_hook(tern_module *m, tern_module_forward_pre_hook hook,
                                               void *user);
/* One after the forward function. */
TERN_API int tern_nn_register_forward_hook(tern_module *m, tern_module_forward_hook hook,
                                           void *user);
/* One before the module's backward. */
TERN_API int tern_nn_register_full_backward_pre_hook(tern_module *m,
                                                     tern_module_backward_pre_hook hook,
                                                     void *user);
/* One after it. */
TERN_API int tern_nn_register_full_backward_hook(tern_module *m, tern_module_backward_hook hook,
                                                 void *user);
/* Takes out a hook of any kind. TERN_ERR_ARGUMENT for an id that is not m's. */
TERN_API tern_status tern_nn_remove_hook(tern_module *m, int id);

TERN_END_DECLS
#endif
