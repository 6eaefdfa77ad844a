/* nn.h -- modules: parameters, buffers and children under names, and a forward function.
 *
 * Names are those of PyTorch's state_dict ("0.weight", "encoder.bias"). tern_nn_free frees a module
 * and its children; a child belongs to one parent. Constructors take options of NULL for PyTorch's
 * defaults, return NULL after an error, and return NULL for a child that is NULL. */
#ifndef TERN_NN_H
#define TERN_NN_H
#include <tern/ops.h>

TERN_BEGIN_DECLS

typedef struct tern_module tern_module;

/* The forward function of most modules: one tensor in, one out. */
typedef tern_tensor *(*tern_module_forward)(tern_module *self, tern_tensor *x);
/* The forward function of other modules (attention, RNNs, losses): n tensors in, k out. */
typedef tern_status (*tern_module_call)(tern_module *self, tern_tensor *const *in, int n,
                                        tern_tensor **out, int k);

/* ---- modules of your own ------------------------------------------------------------------------
 * data belongs to the program; tern_nn_on_free says how it is freed.
 *
 * A call of a module is a scope: its results go to the caller's scope, and the other tensors that
 * its forward function made are released when the function returns, as a Python function's locals
 * are (the graph keeps what backward needs). A tensor that forward or a hook stores elsewhere, in
 * data or in a static variable, needs tern_keep. The debug mode (tern/debug.h) names a tensor that
 * was used after the call that made it. */

/* Makes a module with that forward function. name is its class, as it is printed. NULL after an
 * error. */
TERN_API tern_module *tern_nn_module(const char *name, tern_module_forward forward, void *data);
/* Makes a module of n tensors in and k out. */
TERN_API tern_module *tern_nn_module_with_call(const char *name, tern_module_call call, void *data);
/* Returns the data that the module was made with. */
TERN_API void *tern_nn_data(tern_module *self);
/* Has free_data called with the data when the module is freed. */
TERN_API tern_status tern_nn_on_free(tern_module *self, void (*free_data)(void *data));
/* Has copy_data make the data of a copy (tern_nn_copy), which has its children, parameters and
 * buffers by then; a result of NULL is an error. */
TERN_API tern_status tern_nn_on_copy(tern_module *self,
                                     void *(*copy_data)(const void *data, tern_module *copy));
/* Sets the text between the brackets when the module is printed. format is printf's. */
TERN_API tern_status tern_nn_set_extra(tern_module *self, const char *format, ...)
    TERN_PRINTF_(2, 3);
/* Gives self a child, which self owns from now on (also when this fails). Returns the child. There
 * are at most 1000 levels of modules in modules (TERN_ERR_STATE). */
TERN_API tern_module *tern_nn_add(tern_module *self, const char *name, tern_module *child);
/* Gives self a parameter, which self keeps in any scope; x then requires a gradient. NULL is a
 * parameter that is absent (a bias that is not wanted). Returns x. */
TERN_API tern_tensor *tern_nn_add_parameter(tern_module *self, const char *name, tern_tensor *x);
/* Gives self a buffer: a tensor that belongs to the state but is not trained. Returns x. */
TERN_API tern_tensor *tern_nn_add_buffer(tern_module *self, const char *name, tern_tensor *x);
/* Does the same; a buffer that is not persistent moves with the module and is left out of its
 * state_dict. */
TERN_API tern_tensor *tern_nn_add_buffer_with(tern_module *self, const char *name, tern_tensor *x,
                                              bool persistent);

/* ---- changing what is there ---------------------------------------------------------------------
 * A path is like "decoder.weight". The same tensor under two names is a tied weight: it is trained,
 * counted and moved once, and is in the state_dict under both names. Optimizers keep the parameters
 * that they were made with. */

/* Puts x, of any shape, in place of the parameter at path; NULL leaves the parameter out. Returns
 * x. */
TERN_API tern_tensor *tern_nn_set_parameter(tern_module *m, const char *path, tern_tensor *x);
/* Puts x in place of the buffer at path; NULL leaves the buffer out. Returns x. */
TERN_API tern_tensor *tern_nn_set_buffer(tern_module *m, const char *path, tern_tensor *x);
/* Puts child in place of the module at path, which is freed. The parent owns child from now on
 * (also when this fails). Returns child. */
TERN_API tern_module *tern_nn_set_child(tern_module *m, const char *path, tern_module *child);
/* Puts wrapper in place of the module at path, which becomes the child of wrapper called name: PEFT
 * puts adapters around layers so. The parent owns wrapper from now on (also when this fails, which
 * changes nothing else). Returns wrapper. */
TERN_API tern_module *tern_nn_wrap(tern_module *m, const char *path, tern_module *wrapper,
                                   const char *name);
/* Puts the child called name of the module at path in the place of that module, which is freed with
 * its other children. Returns the child. */
TERN_API tern_module *tern_nn_unwrap(tern_module *m, const char *path, const char *name);
/* Takes the module at path out: it has no parent any more, and the caller frees it. */
TERN_API tern_module *tern_nn_take(tern_module *m, const char *path);

/* ---- running ----------------------------------------------------------------------------- */
/* Runs a module that takes one tensor and returns one, with the module's hooks. NULL after an
 * error. */
TERN_API tern_tensor *tern_nn_forward(tern_module *m, tern_tensor *x);
/* Runs a loss module: criterion(input, target). NULL after an error. */
TERN_API tern_tensor *tern_nn_loss(tern_module *criterion, tern_tensor *input, tern_tensor *target);
/* Runs a module that takes in[n] and returns out[k]. */
TERN_API tern_status tern_nn_call(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                                  int k);
/* Puts m and all modules below it into training mode (the default), or into evaluation mode.
 * Returns m. */
TERN_API tern_module *tern_nn_train(tern_module *m, bool training);
/* Calls tern_nn_train with false. Returns m. */
TERN_API tern_module *tern_nn_eval(tern_module *m);
/* Returns whether m is in training mode. */
TERN_API bool tern_nn_is_training(const tern_module *m);

/* ---- what a module has --------------------------------------------------------------------------
 * Paths have dots: "layers.0.weight". A path of nothing gives NULL and records an error. */

/* Returns the module at path, which stays its parent's. */
TERN_API tern_module *tern_nn_child(tern_module *m, const char *path);
/* Returns the parameter at path, borrowed. */
TERN_API tern_tensor *tern_nn_parameter(tern_module *m, const char *path);
/* Returns the buffer at path, borrowed. */
TERN_API tern_tensor *tern_nn_buffer(tern_module *m, const char *path);
/* Returns the name of the module's class, "Linear". */
TERN_API const char *tern_nn_name(const tern_module *m);
/* Returns how many children m has. */
TERN_API int tern_nn_children_count(const tern_module *m);
/* Returns the i-th child; a negative i counts from the end. */
TERN_API tern_module *tern_nn_child_at(tern_module *m, int i);
/* Returns the name of the i-th child. */
TERN_API const char *tern_nn_child_name_at(const tern_module *m, int i);
/* Returns the i-th of m's own parameters, borrowed. */
TERN_API tern_tensor *tern_nn_parameter_at(const tern_module *m, int i);

/* A visitor is called with each module, or with each parameter or buffer and its path. A status
 * other than TERN_OK ends the visits. A tensor that is there under two names is visited once. */
typedef tern_status (*tern_module_visit)(tern_module *m, void *user);
typedef tern_status (*tern_tensor_visit)(const char *path, tern_tensor *x, void *user);
/* Visits m and all modules below it, children first (torch's apply). */
TERN_API tern_status tern_nn_apply(tern_module *m, tern_module_visit visit, void *user);
/* Visits every parameter of m and of the modules below it. */
TERN_API tern_status tern_nn_each_parameter(tern_module *m, tern_tensor_visit visit, void *user);
/* Visits every buffer of m and of the modules below it. */
TERN_API tern_status tern_nn_each_buffer(tern_module *m, tern_tensor_visit visit, void *user);
typedef struct tern_each_options {
    const char *prefix;   /* stands before each path, with a dot */
    bool not_recurse;     /* only what is m's own */
    bool keep_duplicates; /* visit a tensor under all of its names */
    uint64_t reserved[4];
} tern_each_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_each_options tern_each_defaults(void);
/* Does the same as tern_nn_each_parameter, with options; NULL: the defaults. */
TERN_API tern_status tern_nn_each_parameter_with(tern_module *m, tern_tensor_visit visit,
                                                 void *user, const tern_each_options *options);
/* Does the same as tern_nn_each_buffer, with options; NULL: the defaults. */
TERN_API tern_status tern_nn_each_buffer_with(tern_module *m, tern_tensor_visit visit, void *user,
                                              const tern_each_options *options);
/* This visitor is called with m itself, whose path is "", and all modules below it, parents
 * first. */
typedef tern_status (*tern_named_module_visit)(const char *path, tern_module *m, void *user);
/* Visits these modules, with their paths. */
TERN_API tern_status tern_nn_each_module(tern_module *m, tern_named_module_visit visit, void *user);
/* Returns how many parameter tensors m and the modules below it have. */
TERN_API int64_t tern_nn_parameter_count(tern_module *m);
/* Puts parameters, borrowed and each once, into list, in the order of tern_nn_each_parameter and at
 * most capacity of them (list(m.parameters())). Returns how many m has; -1 after an error. */
TERN_API int64_t tern_nn_parameters(tern_module *m, tern_tensor **list, int64_t capacity);
/* Returns the number of elements of all parameters. */
TERN_API int64_t tern_nn_numel(tern_module *m);

/* Moves parameters and buffers to a device, in place: handles stay what they are. Returns m. */
TERN_API tern_module *tern_nn_to(tern_module *m, const char *device);
/* Converts floating point parameters and buffers to dtype, in place. Returns m. */
TERN_API tern_module *tern_nn_to_dtype(tern_module *m, tern_dtype dtype);
/* Lays parameters and buffers of 4 dims (TERN_CHANNELS_LAST_3D: 5) out in format, and leaves those
 * of other dims as they are (model.to(memory_format=torch.channels_last)); with
 * TERN_CONTIGUOUS_FORMAT all are laid out in rows. Returns m. */
TERN_API tern_module *tern_nn_to_memory_format(tern_module *m, tern_memory_format format);
/* Sets requires_grad of all parameters. Returns m. */
TERN_API tern_module *tern_nn_requires_grad_(tern_module *m, bool requires_grad);
/* Returns a deep copy of m, which has no parent (copy.deepcopy). Parameters and buffers of the copy
 * have elements of their own; tensors that are there under two names are so in the copy;
 * requires_grad, the mode and hooks (with their user pointers) are the same; gradients are not
 * copied. Errors: TERN_ERR_UNSUPPORTED for a module of the program's own that has data and no
 * tern_nn_on_copy, TERN_ERR_STATE for a tensor that is no leaf. */
TERN_API tern_module *tern_nn_copy(const tern_module *m);
/* Removes the gradients of all parameters. */
TERN_API tern_status tern_nn_zero_grad(tern_module *m);
/* Writes the module to stdout as PyTorch prints a model, and a newline. */
TERN_API tern_status tern_nn_print(const tern_module *m);
/* Returns the same text, which the caller frees with tern_free_text; NULL after an error. */
TERN_API char *tern_nn_to_text(const tern_module *m);
/* Frees m and all modules below it; NULL is fine. */
TERN_API void tern_nn_free(tern_module *m);

TERN_END_DECLS

#include <tern/nn/activation.h>
#include <tern/nn/checkpoint.h>
#include <tern/nn/compile.h>
#include <tern/nn/attention.h>
#include <tern/nn/container.h>
#include <tern/nn/convolution.h>
#include <tern/nn/hooks.h>
#include <tern/nn/init.h>
#include <tern/nn/layers.h>
#include <tern/nn/loss.h>
#include <tern/nn/norm.h>
#include <tern/nn/packed.h>
#include <tern/nn/pad.h>
#include <tern/nn/pool.h>
#include <tern/nn/rnn.h>
#include <tern/nn/state_dict.h>
#include <tern/nn/summary.h>
#endif
