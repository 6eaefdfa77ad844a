/* layer.h -- internals that the constructors of layers use. */
#ifndef TERN_NN_LAYER_H
#define TERN_NN_LAYER_H
#include "base/option.h"
#include "base/error.h"
#include "base/text.h"
#include "tensor/fuse/chain.h"
#include <tern/autograd.h>
#include <tern/nn.h>

/* Returns a module whose data is a copy of *data. Freeing the module frees the copy. */
tern_module *tern_layer(const char *name, tern_module_forward forward, const void *data,
                        size_t bytes);
/* Returns the same for a module with several inputs, such as a loss with input and target. */
tern_module *tern_layer_loss(const char *name, tern_module_call call, const void *data,
                             size_t bytes);
/* Call tern_nn_add_parameter and tern_nn_add_buffer. x may be NULL for an absent member. */
tern_status tern_layer_parameter(tern_module *m, const char *name, tern_tensor *x);
tern_status tern_layer_buffer(tern_module *m, const char *name, tern_tensor *x);
/* Adds the members of a norm over `features` channels: weight if affine, bias if biased, and
 * running_mean, running_var and num_batches_tracked if it tracks. The others are absent
 * (batch_norm.c). */
tern_status tern_layer_running(tern_module *m, int64_t features, bool affine, bool biased,
                               bool tracks, tern_dtype dtype, const char *device);
/* Returns m if status is TERN_OK. Frees m and returns NULL otherwise. */
tern_module *tern_layer_if(tern_module *m, tern_status status);
/* Return whether m has that forward or call function. */
bool tern_layer_runs(const tern_module *m, tern_module_forward forward);
bool tern_layer_calls(const tern_module *m, tern_module_call call);

/* ---- stages of a Sequential ------------------------------------------------------------------ */
/* Sets *stage and returns true if m is one operation of its input and only the next module sees its
 * result. */
bool tern_layer_stage(tern_module *m, tern_stage *stage);
/* Do the same for a Linear, and for an activation that does not write to its input. They only set
 * the kind of the stage. */
bool tern_layer_linear_stage(const tern_module *m, tern_stage *stage);
bool tern_layer_activation_stage(const tern_module *m, tern_stage *stage);

/* ---- the inplace option of activations and dropouts ------------------------------------------ */
/* NEVER: the module does not have the option. SILENT: PyTorch does not print it. */
typedef enum tern_layer_inplace { INPLACE_NEVER, INPLACE_SHOWN, INPLACE_SILENT } tern_layer_inplace;
/* Returns m with the option, which is set if `on` is true. Returns NULL if m is NULL. */
tern_module *tern_layer_with_inplace(tern_module *m, tern_layer_inplace kind, bool on);
bool tern_layer_is_inplace(const tern_module *m);

#endif
