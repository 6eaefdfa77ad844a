/* nn.h -- modules: parameters, buffers and children under names, and a forward function.
 *
 * Names are those of PyTorch's state_dict ("0.weight", "encoder.bias"). A module is freed with
 * tern_nn_free, which frees its children too; a child belongs to one parent. Constructors take NULL
 * for PyTorch's defaults, give NULL after an error, and pass on NULL children. */
#ifndef TERN_NN_H
#define TERN_NN_H
#include <tern/ops.h>

TERN_BEGIN_DECLS

typedef struct tern_module tern_module;

/* One tensor in, one out: most modules. */
typedef tern_tensor *(*tern_module_forward)(tern_module *self, tern_tensor *x);
/* n tensors in, k out, for all others (attention, RNNs, losses). */
typedef tern_status (*tern_module_call)(tern_module *self, tern_tensor *const *in, int n,
                                        tern_tensor **out, int k);

/* ---- modules of your own ------------------------------------------------------------------------
 * data is yours; tern_nn_on_free says how it is freed.
 *
 * A call of a module is a scope: its results go to the caller's scope, and all else that its
 * forward function made is released when the function returns, as a Python function's locals are
 * (what backward needs is kept by the graph). A tensor that forward leaves elsewhere, in data or in
 * a static variable, takes tern_keep. So does one that a hook leaves there. The debug mode
 * (tern/debug.h) names a tensor that was used after the call that made it. */
TERN_API tern_module *tern_nn_module(const char *name, tern_module_forward forward, void *data);
/* The same of n tensors in and k out. */
TERN_API tern_module *tern_nn_module_with_call(const char *name, tern_module_call call, void *data);
/* What the module was made with. */
TERN_API void *tern_nn_data(tern_module *self);
/* free_data is called with it when the module is freed. */
TERN_API tern_status tern_nn_on_free(tern_module *self, void (*free_data)(void *data));
/* copy_data makes the data of a copy (tern_nn_copy), whose children, parameters and buffers are
 * there already; NULL: it failed. */
TERN_API tern_status tern_nn_on_copy(tern_module *self,
                                     void *(*copy_data)(const void *data, tern_module *copy));
/* What stands between the brackets when the module is printed. */
TERN_API tern_status tern_nn_set_extra(tern_module *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Give self a child; self owns it from now on (also when this fails). Returns the child. There are
 * at most 1000 levels of modules in modules (TERN_ERR_STATE). */
TERN_API tern_module *tern_nn_add(tern_module *self, const char *name, tern_module *child);
/* Give self a parameter: requires_grad is set, self keeps it, in any scope. NULL is a parameter
 * that is absent (as a bias that is not wanted). Returns it. */
TERN_API tern_tensor *tern_nn_add_parameter(tern_module *self, const char *name, tern_tensor *x);
/* A tensor that belongs to the state but is not trained; one that is not persistent moves with the
 * module and is left out of its state_dict. */
TERN_API tern_tensor *tern_nn_add_buffer(tern_module *self, const char *name, tern_tensor *x);
/* The same, and whether it is persistent. */
TERN_API tern_tensor *tern_nn_add_buffer_with(tern_module *self, const char *name, tern_tensor *x,
                                              bool persistent);

/* ---- changing what is there ---------------------------------------------------------------------
 * x instead of the parameter or buffer at a path ("decoder.weight"), of any shape; NULL leaves it
 * out. The same x under two names is a tied weight: trained, counted and moved once, in the
 * state_dict under both. Optimizers keep the parameters they were made with. Return x. */
TERN_API tern_tensor *tern_nn_set_parameter(tern_module *m, const char *path, tern_tensor *x);
/* x instead of the buffer at path. */
TERN_API tern_tensor *tern_nn_set_buffer(tern_module *m, const char *path, tern_tensor *x);
/* child instead of the module at path, which is freed; owned from now on (also when this fails).
 * Returns child. */
TERN_API tern_module *tern_nn_set_child(tern_module *m, const char *path, tern_module *child);
/* wrapper instead of the module at path, which becomes its child called name: as PEFT puts adapters
 * around layers. wrapper is owned from now on (also when this fails, which changes nothing else).
 * Returns wrapper. */
TERN_API tern_module *tern_nn_wrap(tern_module *m, const char *path, tern_module *wrapper,
                                   const char *name);
/* The child called name of the module at path in its place, which is freed with all else that it
 * has. Returns the child. */
TERN_API tern_module *tern_nn_unwrap(tern_module *m, const char *path, const char *name);
/* Take the module at path out: it has no parent any more and is the caller's. */
TERN_API tern_module *tern_nn_take(tern_module *m, const char *path);

/* ---- running ----------------------------------------------------------------------------- */
/* One tensor in, one out; with the module's hooks. NULL after an error. */
TERN_API tern_tensor *tern_nn_forward(tern_module *m, tern_tensor *x);
/* criterion(input, target). */
TERN_API tern_tensor *tern_nn_loss(tern_module *criterion, tern_tensor *input, tern_tensor *target);
/* n tensors in, k out. */
TERN_API tern_status tern_nn_call(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                                  int k);
/* Training mode (the default) or evaluation, for m and all below; return m. */
TERN_API tern_module *tern_nn_train(tern_module *m, bool training);
/* tern_nn_train with false. */
TERN_API tern_module *tern_nn_eval(tern_module *m);
/* Whether m is in training mode. */
TERN_API bool tern_nn_is_training(const tern_module *m);

/* ---- looking ------------------------------------------------------------------------------------
 * Paths have dots: "layers.0.weight". What is not there gives NULL and records an error. */
TERN_API tern_module *tern_nn_child(tern_module *m, const char *path);
/* The parameter at path, borrowed. */
TERN_API tern_tensor *tern_nn_parameter(tern_module *m, const char *path);
/* The buffer at path, borrowed. */
TERN_API tern_tensor *tern_nn_buffer(tern_module *m, const char *path);
/* The name of its class, "Linear". */
TERN_API const char *tern_nn_name(const tern_module *m);
/* How many children m has. */
TERN_API int tern_nn_children_count(const tern_module *m);
/* By place; a negative i counts from the end. */
TERN_API tern_module *tern_nn_child_at(tern_module *m, int i);
/* The name of the i-th child. */
TERN_API const char *tern_nn_child_name_at(const tern_module *m, int i);
/* The i-th of m's own parameters, borrowed. */
TERN_API tern_tensor *tern_nn_parameter_at(const tern_module *m, int i);

/* Visit m and all below it (children first, as torch's apply), or every parameter or buffer with
 * its path; a visit that does not return TERN_OK ends the round. A tensor met under two names is
 * visited once. */
typedef tern_status (*tern_module_visit)(tern_module *m, void *user);
typedef tern_status (*tern_tensor_visit)(const char *path, tern_tensor *x, void *user);
/* Visit m and all below it. */
TERN_API tern_status tern_nn_apply(tern_module *m, tern_module_visit visit, void *user);
/* Visit every parameter. */
TERN_API tern_status tern_nn_each_parameter(tern_module *m, tern_tensor_visit visit, void *user);
/* Visit every buffer. */
TERN_API tern_status tern_nn_each_buffer(tern_module *m, tern_tensor_visit visit, void *user);
typedef struct tern_each_options {
    const char *prefix;   /* stands before each path, with a dot */
    bool not_recurse;     /* only what is m's own */
    bool keep_duplicates; /* visit a tensor under all of its names */
    uint64_t reserved[4];
} tern_each_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_each_options tern_each_defaults(void);
/* tern_nn_each_parameter with options. */
TERN_API tern_status tern_nn_each_parameter_with(tern_module *m, tern_tensor_visit visit,
                                                 void *user, const tern_each_options *options);
/* tern_nn_each_buffer with options. */
TERN_API tern_status tern_nn_each_buffer_with(tern_module *m, tern_tensor_visit visit, void *user,
                                              const tern_each_options *options);
/* m itself, with the path "", and all below it, parents first. */
typedef tern_status (*tern_named_module_visit)(const char *path, tern_module *m, void *user);
/* Visit them, with their paths. */
TERN_API tern_status tern_nn_each_module(tern_module *m, tern_named_module_visit visit, void *user);
/* How many parameter tensors, and their elements in all. */
TERN_API int64_t tern_nn_parameter_count(tern_module *m);
/* Every parameter once, borrowed, in the order of tern_nn_each_parameter: as many as there is room
 * for into list (list(m.parameters())). Returns how many there are; -1 after an error. */
TERN_API int64_t tern_nn_parameters(tern_module *m, tern_tensor **list, int64_t capacity);
/* The elements of all parameters. */
TERN_API int64_t tern_nn_numel(tern_module *m);

/* Move parameters and buffers in place; handles stay what they are. Returns m. */
TERN_API tern_module *tern_nn_to(tern_module *m, const char *device);
/* Floating point parameters and buffers become of dtype. Returns m. */
TERN_API tern_module *tern_nn_to_dtype(tern_module *m, tern_dtype dtype);
/* Parameters and buffers of 4 dims (TERN_CHANNELS_LAST_3D: 5) lie in format, those of other dims as
 * they did (model.to(memory_format=torch.channels_last)); with TERN_CONTIGUOUS_FORMAT all lie in
 * rows. Returns m. */
TERN_API tern_module *tern_nn_to_memory_format(tern_module *m, tern_memory_format format);
/* Of all parameters. Returns m. */
TERN_API tern_module *tern_nn_requires_grad_(tern_module *m, bool requires_grad);
/* A deep copy, which has no parent (copy.deepcopy): parameters and buffers have elements of their
 * own, tensors that are under two names are so in the copy, requires_grad, mode and hooks (with
 * their user pointers) are the same; gradients are not copied. TERN_ERR_UNSUPPORTED for a module of
 * your own that has data and no tern_nn_on_copy, TERN_ERR_STATE for a tensor that is no leaf. */
TERN_API tern_module *tern_nn_copy(const tern_module *m);
/* Remove the gradients of all parameters. */
TERN_API tern_status tern_nn_zero_grad(tern_module *m);
/* As PyTorch prints a model; text to be freed with tern_free_text. */
TERN_API tern_status tern_nn_print(const tern_module *m);
/* The same as text; NULL after an error. */
TERN_API char *tern_nn_to_text(const tern_module *m);
/* Frees m and all below it; NULL is fine. */
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
