/* autograd.h -- gradients: recording, going back, hooks. */
#ifndef TERN_AUTOGRAD_H
#define TERN_AUTOGRAD_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* Ask for (or stop asking for) the gradient of a leaf; returns x. Errors: TERN_ERR_DTYPE for
 * integer tensors, TERN_ERR_STATE for results of recorded operations. */
TERN_API tern_tensor *tern_requires_grad_(tern_tensor *x, bool requires_grad);
/* Whether a gradient of x is asked for, or follows from its inputs. */
TERN_API bool tern_requires_grad(const tern_tensor *x);
/* Whether no recorded operation made x. */
TERN_API bool tern_is_leaf(const tern_tensor *x);
/* The name of the operation that made x ("mul"); NULL for leaves. */
TERN_API const char *tern_grad_fn(const tern_tensor *x);

/* The gradient accumulated in a leaf, borrowed; NULL if there is none yet. Records no error. */
TERN_API tern_tensor *tern_grad(const tern_tensor *x);
/* Replace it. Shape, dtype and device must be x's. NULL removes it: one that was made with
 * create_graph holds x, and x it, until then. */
TERN_API tern_status tern_set_grad(tern_tensor *x, tern_tensor *grad);
/* Let the result of an operation keep its gradient too. */
TERN_API tern_status tern_retain_grad(tern_tensor *x);

typedef struct tern_backward_options {
    tern_tensor *gradient; /* of the root; NULL = 1, for a one-element root */
    bool retain_graph; /* keep saved tensors for another backward pass; create_graph implies it */
    bool create_graph; /* record the backward pass itself, for second derivatives */
    uint64_t reserved[4];
} tern_backward_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_backward_options tern_backward_defaults(void);

/* Add the gradient of root to every leaf that asked for one. Threads may do so at once for leaves
 * that they share, each with a graph of its own: the gradients add up. */
TERN_API tern_status tern_backward(tern_tensor *root);
/* The same with options; NULL: none. */
TERN_API tern_status tern_backward_with(tern_tensor *root, const tern_backward_options *options);

typedef struct tern_autograd_grad_options {
    tern_tensor *const *gradients; /* of the outputs; NULL = ones, for one-element outputs */
    bool retain_graph, create_graph;
    bool allow_unused; /* an input not in the graph gives NULL instead of an error */
    uint64_t reserved[4];
} tern_autograd_grad_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_autograd_grad_options tern_autograd_grad_defaults(void);

/* Gradients of the sum of outputs with respect to inputs, into grads[n_inputs] (new, owned by the
 * scope), without touching any leaf's own (torch.autograd.grad). */
TERN_API tern_status tern_autograd_grad(tern_tensor *const *outputs, int n_outputs,
                                        tern_tensor *const *inputs, int n_inputs,
                                        tern_tensor **grads,
                                        const tern_autograd_grad_options *options);

/* x without its history, sharing its elements. */
TERN_API tern_tensor *tern_detach(tern_tensor *x);
/* x itself without its history, which is returned. */
TERN_API tern_tensor *tern_detach_(tern_tensor *x);

/* Called with the gradient of x during backward; what it returns replaces the gradient, NULL keeps
 * it. Returns an id (> 0) for tern_remove_hook, which a hook may call too; 0 after an error. */
typedef tern_tensor *(*tern_grad_hook)(tern_tensor *grad, void *user);
/* Hooks of x are called in the order they were registered. */
TERN_API int tern_register_hook(tern_tensor *x, tern_grad_hook hook, void *user);
/* Called with leaf x in the middle of the backward pass, as soon as its gradient is final and
 * tern_grad(x) has it (torch.Tensor.register_post_accumulate_grad_hook): an optimizer may step x
 * there, and take the gradient away. What is not TERN_OK fails the backward pass. */
typedef tern_status (*tern_post_accumulate_grad_hook)(tern_tensor *x, void *user);
/* Hooks of x are called in the order they were registered, after those of tern_register_hook.
 * Returns an id (> 0) for tern_remove_hook; 0 after an error, which is TERN_ERR_STATE for what is
 * no leaf or needs no gradient. While there is such a hook on any tensor, a backward pass that
 * fails leaves the gradients that were final by then. */
TERN_API int tern_register_post_accumulate_grad_hook(tern_tensor *x,
                                                     tern_post_accumulate_grad_hook hook,
                                                     void *user);
/* TERN_ERR_ARGUMENT for an id that is not x's. */
TERN_API tern_status tern_remove_hook(tern_tensor *x, int id);

/* ---- checkpoints: time for memory (torch.utils.checkpoint) --------------------------------------
 * Compute out[k] from in[n]. */
typedef tern_status (*tern_checkpoint_function)(void *data, tern_tensor *const *in, int n,
                                                tern_tensor **out, int k);

typedef struct tern_checkpoint_options {
    bool no_preserve_rng_state;    /* let dropout draw other numbers the second time */
    void (*free_data)(void *data); /* called as soon as data is not needed any more */
    uint64_t reserved[4];
} tern_checkpoint_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_checkpoint_options tern_checkpoint_defaults(void);

/* Run function, and save nothing of what happens in it for backward but the inputs: when its first
 * gradient is asked for it runs again, with the random numbers, the autocast mode and the inputs of
 * the first time, and must do the same (batch norm counts a batch twice). data must live until
 * then. Works as PyTorch's does with use_reentrant=False: inputs need not require gradients,
 * function may use other tensors, tern_autograd_grad and second derivatives work, checkpoints nest.
 * The tensors in out belong to the scope. Errors: those of function; in backward TERN_ERR_STATE
 * when the second run saves other tensors, or an input was written in place since. */
TERN_API tern_status tern_checkpoint(tern_checkpoint_function function, void *data,
                                     tern_tensor *const *in, int n, tern_tensor **out, int k,
                                     const tern_checkpoint_options *options);

/* ---- functions with a gradient of your own (torch.autograd.Function) ----------------------------
 * forward computes out[k] from in[n], unrecorded; backward the gradients of in from those of out:
 * NULL means zero, of what comes in (borrowed) as of what it leaves there. Under create_graph
 * backward is recorded itself. f is there from one to the other. */
typedef struct tern_function tern_function;
typedef struct tern_function_type {
    const char *name; /* "Swish": what tern_grad_fn says of its results */
    tern_status (*forward)(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k);
    tern_status (*backward)(tern_function *f, tern_tensor *const *grad_out, int k,
                            tern_tensor **grad_in, int n);
    void (*free_data)(void *data); /* called when data is not needed any more; or NULL */
    uint64_t reserved[4];
} tern_function_type;

/* Run it; type must live as long as its results. An input that forward gives back is a look at it,
 * which is not to be written in place. The tensors in out belong to the scope. */
TERN_API tern_status tern_function_apply(const tern_function_type *type, void *data,
                                         tern_tensor *const *in, int n, tern_tensor **out, int k);
/* The data that tern_function_apply was given. */
TERN_API void *tern_function_data(const tern_function *f);
/* In forward: keep x, an input, a result or what lies between, for backward, which fails if it was
 * written in place by then. */
TERN_API tern_status tern_function_save(tern_function *f, tern_tensor *x);
/* In backward: the i-th tensor that was saved; borrowed. */
TERN_API tern_tensor *tern_function_saved(const tern_function *f, int i);
/* Whether a gradient of input i is wanted. */
TERN_API bool tern_function_needs_grad(const tern_function *f, int i);
/* In forward: result i has no gradient. Integers have none anyway. */
TERN_API tern_status tern_function_mark_non_differentiable(tern_function *f, int i);

/* ---- anomalies: TERN_DETECT_ANOMALY { ... } (torch.autograd.detect_anomaly) ---------------------
 * For debugging, on this thread: backward fails with TERN_ERR_STATE at the first function that
 * returns a NaN, and names it and where its forward was called, if that was in such a block too:
 * "Function 'SqrtBackward0' returned nan values in its 0th output. ... in Sequential > 1:Encoder".
 * Every look waits for the device. */
typedef struct tern_detect_anomaly_options {
    bool no_check_nan;  /* do not look at gradients */
    bool check_forward; /* look at the results of operations too: the first NaN fails at once */
    uint64_t reserved[4];
} tern_detect_anomaly_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_detect_anomaly_options tern_detect_anomaly_defaults(void);
/* Turns it on or off outside of a block; options NULL: look at gradients. */
TERN_API void tern_autograd_set_detect_anomaly(bool mode,
                                               const tern_detect_anomaly_options *options);
/* Whether it is on, on this thread. */
TERN_API bool tern_is_anomaly_enabled(void);

typedef struct tern_anomaly_block {
    int active;
    int saved;
} tern_anomaly_block;
/* What TERN_DETECT_ANOMALY opens with, for other languages. */
TERN_API tern_anomaly_block tern_anomaly_block_enter(bool mode,
                                                     const tern_detect_anomaly_options *options);
/* Goes back to what was before. */
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
 * A word for where operations are called, as anomaly detection reports it: those of all open
 * blocks, outermost first. Modules have theirs. label must live as long as the block is open. */
typedef struct tern_anomaly_label_block {
    int active;
    int depth;
} tern_anomaly_label_block;
/* What TERN_ANOMALY_LABEL opens with. */
TERN_API tern_anomaly_label_block tern_anomaly_label_enter(const char *label);
/* Ends the innermost label. */
TERN_API void tern_anomaly_label_leave(tern_anomaly_label_block *block);
#define TERN_ANOMALY_LABEL(label)                                                                  \
    TERN_BLOCK_(tern_anomaly_label_block, tern_anomaly_label_enter(label), tern_anomaly_label_leave)
#define TERN_ANOMALY_LABEL_HERE(label)                                                             \
    TERN_HERE_(tern_anomaly_label_block, tern_anomaly_label_enter(label), tern_anomaly_label_leave)

/* ---- TERN_SAVED_TENSORS_HOOKS(pack, unpack, user) { ... } ---------------------------------------
 * torch.autograd.graph.saved_tensors_hooks: what operations inside save for backward, other than
 * leaves, is given to pack, and what that returns is kept in its place, on any device, of any shape
 * and dtype. When backward needs the tensor, unpack makes it of that again: its values, shape and
 * dtype; where it is on another device it is brought to the right one. Both are called without
 * recording, with a tensor that they do not write and that belongs to the library; NULL is an
 * error.
 * user must live as long as the graph. Of blocks within each other the innermost counts. In a
 * checkpoint nothing is saved, and so nothing packed. */
typedef struct tern_saved_tensors_hooks {
    tern_tensor *(*pack)(tern_tensor *x, void *user);
    tern_tensor *(*unpack)(tern_tensor *packed, void *user);
    void *user;
} tern_saved_tensors_hooks;
typedef struct tern_saved_tensors_hooks_block {
    int active;
    tern_saved_tensors_hooks outer;
} tern_saved_tensors_hooks_block;
/* What TERN_SAVED_TENSORS_HOOKS opens with, for other languages. */
TERN_API tern_saved_tensors_hooks_block tern_saved_tensors_hooks_block_enter(
    tern_tensor *(*pack)(tern_tensor *x, void *user),
    tern_tensor *(*unpack)(tern_tensor *packed, void *user), void *user);
/* Goes back to what was before. */
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
 * torch.autograd.graph.save_on_cpu: such hooks that keep saved tensors in the host's memory, and
 * bring them back in backward. Copies wait for the device, and can't be recorded. */
/* What TERN_SAVE_ON_CPU opens with. */
TERN_API tern_saved_tensors_hooks_block tern_save_on_cpu_block_enter(void);
#define TERN_SAVE_ON_CPU                                                                           \
    TERN_BLOCK_(tern_saved_tensors_hooks_block, tern_save_on_cpu_block_enter(),                    \
                tern_saved_tensors_hooks_block_leave)
#define TERN_SAVE_ON_CPU_HERE                                                                      \
    TERN_HERE_(tern_saved_tensors_hooks_block, tern_save_on_cpu_block_enter(),                     \
               tern_saved_tensors_hooks_block_leave)

/* ---- TERN_NO_GRAD { ... }, TERN_ENABLE_GRAD { ... } ---------------------------------------------
 * Whether operations are recorded for backward inside; leaving in any way restores the mode. */

/* Whether they are now, on this thread. */
TERN_API bool tern_is_grad_enabled(void);
/* Turns recording on or off on this thread, without a block. */
TERN_API void tern_set_grad_enabled(bool enabled);

typedef struct tern_grad_block {
    int active;
    int saved;
} tern_grad_block;
/* What TERN_NO_GRAD and TERN_ENABLE_GRAD open with. */
TERN_API tern_grad_block tern_grad_block_enter(bool enabled);
/* Goes back to what was before. */
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
