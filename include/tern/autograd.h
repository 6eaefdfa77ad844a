/* autograd.h -- gradients: recording operations, the backward pass, hooks. */
#ifndef TERN_AUTOGRAD_H
#define TERN_AUTOGRAD_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* Asks for the gradient of the leaf x, or stops asking for it; returns x. Errors: TERN_ERR_DTYPE
 * for integer tensors, TERN_ERR_STATE for results of recorded operations. */
TERN_API tern_tensor *tern_requires_grad_(tern_tensor *x, bool requires_grad);
/* Returns whether a gradient of x is asked for, or follows from the inputs of the operation that
 * made x. */
TERN_API bool tern_requires_grad(const tern_tensor *x);
/* Returns whether no recorded operation made x. */
TERN_API bool tern_is_leaf(const tern_tensor *x);
/* Returns the name of the operation that made x ("mul"); NULL for leaves. */
TERN_API const char *tern_grad_fn(const tern_tensor *x);

/* Returns the gradient that was accumulated in a leaf, borrowed; NULL if there is none yet. It
 * records no error. */
TERN_API tern_tensor *tern_grad(const tern_tensor *x);
/* Replaces the gradient of x. Shape, dtype and device of grad must be x's. NULL removes the
 * gradient: one that was made with create_graph holds x, and x holds it, until then. */
TERN_API tern_status tern_set_grad(tern_tensor *x, tern_tensor *grad);
/* Lets the result of an operation keep its gradient too, as leaves do. */
TERN_API tern_status tern_retain_grad(tern_tensor *x);

typedef struct tern_backward_options {
    tern_tensor *gradient; /* of the root; NULL: 1, for a root of one element */
    bool retain_graph; /* saved tensors stay for another backward pass; create_graph implies it */
    bool create_graph; /* the backward pass itself is recorded, for second derivatives */
    uint64_t reserved[4];
} tern_backward_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_backward_options tern_backward_defaults(void);

/* Adds the gradient of root to every leaf that asked for one. Threads may do so at once for leaves
 * that they share, each with a graph of its own: the gradients add up. */
TERN_API tern_status tern_backward(tern_tensor *root);
/* Does the same with options; NULL: the defaults. */
TERN_API tern_status tern_backward_with(tern_tensor *root, const tern_backward_options *options);

typedef struct tern_autograd_grad_options {
    tern_tensor *const *gradients; /* of the outputs; NULL: 1, for outputs of one element */
    bool retain_graph, create_graph;
    bool allow_unused; /* an input not in the graph gives NULL instead of an error */
    uint64_t reserved[4];
} tern_autograd_grad_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_autograd_grad_options tern_autograd_grad_defaults(void);

/* Computes the gradients of the sum of the outputs with respect to the inputs into grads[n_inputs],
 * as new tensors that the scope owns. The gradients of leaves stay what they are
 * (torch.autograd.grad). */
TERN_API tern_status tern_autograd_grad(tern_tensor *const *outputs, int n_outputs,
                                        tern_tensor *const *inputs, int n_inputs,
                                        tern_tensor **grads,
                                        const tern_autograd_grad_options *options);

/* Returns a tensor that shares the elements of x and has no history. */
TERN_API tern_tensor *tern_detach(tern_tensor *x);
/* Takes the history of x away, and returns x. */
TERN_API tern_tensor *tern_detach_(tern_tensor *x);

/* A hook is called with the gradient of x during the backward pass. The tensor that it returns
 * replaces the gradient; NULL keeps it. */
typedef tern_tensor *(*tern_grad_hook)(tern_tensor *grad, void *user);
/* Adds a hook to x. Hooks of x are called in the order in which they were registered. Returns an id
 * (> 0) for tern_remove_hook, which a hook may call too; 0 after an error. */
TERN_API int tern_register_hook(tern_tensor *x, tern_grad_hook hook, void *user);
/* This hook is called with the leaf x in the middle of the backward pass, as soon as the gradient
 * of x is final and tern_grad(x) has it (torch.Tensor.register_post_accumulate_grad_hook): an
 * optimizer may step x there, and take the gradient away. A status other than TERN_OK fails the
 * backward pass. */
typedef tern_status (*tern_post_accumulate_grad_hook)(tern_tensor *x, void *user);
/* Adds such a hook to x. Hooks of x are called in the order in which they were registered, after
 * those of tern_register_hook. Returns an id (> 0) for tern_remove_hook; 0 after an error, which is
 * TERN_ERR_STATE for a tensor that is no leaf or needs no gradient. While there is such a hook on
 * any tensor, a backward pass that fails leaves the gradients that were final by then. */
TERN_API int tern_register_post_accumulate_grad_hook(tern_tensor *x,
                                                     tern_post_accumulate_grad_hook hook,
                                                     void *user);
/* Removes the hook with that id. Errors: TERN_ERR_ARGUMENT for an id that is not x's. */
TERN_API tern_status tern_remove_hook(tern_tensor *x, int id);

/* ---- checkpoints: time for memory (torch.utils.checkpoint) --------------------------------------
 * The function of a checkpoint computes out[k] from in[n]. */
typedef tern_status (*tern_checkpoint_function)(void *data, tern_tensor *const *in, int n,
                                                tern_tensor **out, int k);

typedef struct tern_checkpoint_options {
    bool no_preserve_rng_state;    /* dropout may draw other numbers the second time */
    void (*free_data)(void *data); /* is called as soon as data is not needed any more */
    uint64_t reserved[4];
} tern_checkpoint_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_checkpoint_options tern_checkpoint_defaults(void);

/* Runs function, and saves nothing of what happens in it for backward but the inputs. When the
 * first of its gradients is asked for, function runs again, with the random numbers, the autocast
 * mode and the inputs of the first time, and must do the same (batch norm counts a batch twice).
 * data must live until then. It works as PyTorch's does with use_reentrant=False: inputs need not
 * require gradients, function may use other tensors, tern_autograd_grad and second derivatives
 * work, and checkpoints nest. The tensors in out belong to the scope. Errors: those of function; in
 * backward TERN_ERR_STATE when the second run saves other tensors, or an input was written in place
 * since. */
TERN_API tern_status tern_checkpoint(tern_checkpoint_function function, void *data,
                                     tern_tensor *const *in, int n, tern_tensor **out, int k,
                                     const tern_checkpoint_options *options);

/* ---- functions with a gradient of your own (torch.autograd.Function) ----------------------------
 * forward computes out[k] from in[n], and is not recorded. backward computes the gradients of in
 * from those of out, which are borrowed; a gradient that is NULL is zero, on both sides. Under
 * create_graph backward is recorded itself. f lives from forward to backward. */
typedef struct tern_function tern_function;
typedef struct tern_function_type {
    const char *name; /* "Swish", which tern_grad_fn returns for the results */
    tern_status (*forward)(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k);
    tern_status (*backward)(tern_function *f, tern_tensor *const *grad_out, int k,
                            tern_tensor **grad_in, int n);
    void (*free_data)(void *data); /* is called when data is not needed any more; or NULL */
    uint64_t reserved[4];
} tern_function_type;

/* Runs the forward function of type, which must live as long as its results. An input that forward
 * returns is shared with the result, which is not to be written in place then. The tensors in out
 * belong to the scope. */
TERN_API tern_status tern_function_apply(const tern_function_type *type, void *data,
                                         tern_tensor *const *in, int n, tern_tensor **out, int k);
/* Returns the data that tern_function_apply was given. */
TERN_API void *tern_function_data(const tern_function *f);
/* Saves x (an input, a result, or what was computed between) in forward, for backward, which fails
 * if x was written in place by then. */
TERN_API tern_status tern_function_save(tern_function *f, tern_tensor *x);
/* Returns the i-th tensor that was saved, in backward; borrowed. */
TERN_API tern_tensor *tern_function_saved(const tern_function *f, int i);
/* Returns whether a gradient of input i is wanted. */
TERN_API bool tern_function_needs_grad(const tern_function *f, int i);
/* Says in forward that result i has no gradient. Integers have none anyway. */
TERN_API tern_status tern_function_mark_non_differentiable(tern_function *f, int i);

/* ---- anomalies: TERN_DETECT_ANOMALY { ... } (torch.autograd.detect_anomaly) ---------------------
 * These blocks are for debugging, on this thread: backward fails with TERN_ERR_STATE at the first
 * function that returns a NaN. The error names the function, and where its forward was called, if
 * that was in such a block too: "Function 'SqrtBackward0' returned nan values in its 0th output.
 * ... in Sequential > 1:Encoder". Each check waits for the device. */
typedef struct tern_detect_anomaly_options {
    bool no_check_nan;  /* gradients are not checked */
    bool check_forward; /* results of operations are checked too: the first NaN fails at once */
    uint64_t reserved[4];
} tern_detect_anomaly_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_detect_anomaly_options tern_detect_anomaly_defaults(void);
/* Turns the detection on or off outside of a block; options NULL: gradients are checked. */
TERN_API void tern_autograd_set_detect_anomaly(bool mode,
                                               const tern_detect_anomaly_options *options);
/* Returns whether the detection is on, on this thread. */
TERN_API bool tern_is_anomaly_enabled(void);

typedef struct tern_anomaly_block {
    int active;
    int saved;
} tern_anomaly_block;
/* Opens the block of TERN_DETECT_ANOMALY, for other languages. */
TERN_API tern_anomaly_block tern_anomaly_block_enter(bool mode,
                                                     const tern_detect_anomaly_options *options);
/* Closes the block, and restores what was set before it. */
TERN_API void tern_anomaly_block_leave(tern_anomaly_block *block);
#define TERN_DETECT_ANOMALY_MODE(mode, options)                                                    \
    TERN_BLOCK_(tern_anomaly_block, tern_anomaly_block_enter(mode, options),                       \
                tern_anomaly_block_leave)
#define TERN_DETECT_ANOMALY_MODE_HERE(mode, options)                                               \
    TERN_HERE_(tern_anomaly_block, tern_anomaly_block_enter(mode, options),                        \
               tern_anomaly_block_leave)
#define TERN_DETECT_ANOMALY      TERN_DETECT_ANOMALY_MODE (true, NULL)
#define TERN_DETECT_ANOMALY_HERE TERN_DETECT_ANOMALY_MODE_HERE(true, NULL)

/* ---- TERN_ANOMALY_LABEL("decoder") { ... } ------------------------------------------------------
 * A label names the place where operations are called. Anomaly detection reports the labels of all
 * open blocks, outermost first; modules have labels of their own. label must live as long as the
 * block is open. */
typedef struct tern_anomaly_label_block {
    int active;
    int depth;
} tern_anomaly_label_block;
/* Opens the block of TERN_ANOMALY_LABEL. */
TERN_API tern_anomaly_label_block tern_anomaly_label_enter(const char *label);
/* Closes the block of the innermost label. */
TERN_API void tern_anomaly_label_leave(tern_anomaly_label_block *block);
#define TERN_ANOMALY_LABEL(label)                                                                  \
    TERN_BLOCK_(tern_anomaly_label_block, tern_anomaly_label_enter(label), tern_anomaly_label_leave)
#define TERN_ANOMALY_LABEL_HERE(label)                                                             \
    TERN_HERE_(tern_anomaly_label_block, tern_anomaly_label_enter(label), tern_anomaly_label_leave)

/* ---- TERN_SAVED_TENSORS_HOOKS(pack, unpack, user) { ... } ---------------------------------------
 * torch.autograd.graph.saved_tensors_hooks. A tensor that an operation inside saves for backward,
 * if it is no leaf, is given to pack, and the tensor that pack returns is kept in its place, on any
 * device, of any shape and dtype. When backward needs the saved tensor, unpack makes it again from
 * the one that was kept, with the same values, shape and dtype; a result on another device is moved
 * to the right one. Nothing is recorded in pack and unpack; they may not write their argument,
 * which belongs to the library. A result of NULL is an error. user must live as long as the graph.
 * Of blocks within each other the innermost counts. A checkpoint saves nothing, so nothing is
 * packed there. */
typedef struct tern_saved_tensors_hooks {
    tern_tensor *(*pack)(tern_tensor *x, void *user);
    tern_tensor *(*unpack)(tern_tensor *packed, void *user);
    void *user;
} tern_saved_tensors_hooks;
typedef struct tern_saved_tensors_hooks_block {
    int active;
    tern_saved_tensors_hooks outer;
} tern_saved_tensors_hooks_block;
/* Opens the block of TERN_SAVED_TENSORS_HOOKS, for other languages. */
TERN_API tern_saved_tensors_hooks_block tern_saved_tensors_hooks_block_enter(
    tern_tensor *(*pack)(tern_tensor *x, void *user),
    tern_tensor *(*unpack)(tern_tensor *packed, void *user), void *user);
/* Closes the block, and restores what was set before it. */
TERN_API void tern_saved_tensors_hooks_block_leave(tern_saved_tensors_hooks_block *block);
#define TERN_SAVED_TENSORS_HOOKS(pack, unpack, user)                                               \
    TERN_BLOCK_IF_(tern_saved_tensors_hooks_block,                                                 \
                   tern_saved_tensors_hooks_block_enter(pack, unpack, user),                       \
                   tern_saved_tensors_hooks_block_leave)
#define TERN_SAVED_TENSORS_HOOKS_HERE(pack, unpack, user)                                          \
    TERN_HERE_(tern_saved_tensors_hooks_block,                                                     \
               tern_saved_tensors_hooks_block_enter(pack, unpack, user),                           \
               tern_saved_tensors_hooks_block_leave)

/* ---- TERN_SAVE_ON_CPU { ... } -------------------------------------------------------------------
 * torch.autograd.graph.save_on_cpu: hooks that keep saved tensors in the host's memory and bring
 * them back in backward. The copies wait for the device, and can't be recorded. */
/* Opens the block of TERN_SAVE_ON_CPU. */
TERN_API tern_saved_tensors_hooks_block tern_save_on_cpu_block_enter(void);
#define TERN_SAVE_ON_CPU                                                                           \
    TERN_BLOCK_(tern_saved_tensors_hooks_block, tern_save_on_cpu_block_enter(),                    \
                tern_saved_tensors_hooks_block_leave)
#define TERN_SAVE_ON_CPU_HERE                                                                      \
    TERN_HERE_(tern_saved_tensors_hooks_block, tern_save_on_cpu_block_enter(),                     \
               tern_saved_tensors_hooks_block_leave)

/* ---- TERN_NO_GRAD { ... }, TERN_ENABLE_GRAD { ... } ---------------------------------------------
 * Inside of these blocks operations are not recorded, or are recorded, for backward. Each way out
 * of the block restores the mode. */

/* Returns whether operations are recorded now, on this thread. */
TERN_API bool tern_is_grad_enabled(void);
/* Turns recording on or off on this thread, without a block. */
TERN_API void tern_set_grad_enabled(bool enabled);

typedef struct tern_grad_block {
    int active;
    int saved;
} tern_grad_block;
/* Opens the block of TERN_NO_GRAD, or of TERN_ENABLE_GRAD. */
TERN_API tern_grad_block tern_grad_block_enter(bool enabled);
/* Closes the block, and restores what was set before it. */
TERN_API void tern_grad_block_leave(tern_grad_block *block);
#define TERN_GRAD_MODE(enabled)                                                                    \
    TERN_BLOCK_(tern_grad_block, tern_grad_block_enter(enabled), tern_grad_block_leave)
#define TERN_GRAD_MODE_HERE(enabled)                                                               \
    TERN_HERE_(tern_grad_block, tern_grad_block_enter(enabled), tern_grad_block_leave)
#define TERN_NO_GRAD          TERN_GRAD_MODE(false)
#define TERN_NO_GRAD_HERE     TERN_GRAD_MODE_HERE(false)
#define TERN_ENABLE_GRAD      TERN_GRAD_MODE(true)
#define TERN_ENABLE_GRAD_HERE TERN_GRAD_MODE_HERE(true)

TERN_END_DECLS
#endif
