/* layer.h -- what constructors of layers share. */
#ifndef TERN_NN_LAYER_H
#define TERN_NN_LAYER_H
#include "base/option.h"
#include "base/error.h"
#include "base/text.h"
#include "tensor/fuse/chain.h"
#include <tern/autograd.h>
#include <tern/nn.h>

/* A module whose data is a copy of bytes of *data, freed with it. */
tern_module *tern_layer(const char *name, tern_module_forward forward, const void *data,
                        size_t bytes);
/* The same where it takes several tensors, as a loss takes input and target. */
tern_module *tern_layer_loss(const char *name, tern_module_call call, const void *data,
                             size_t bytes);
/* tern_nn_add_parameter and _buffer where NULL may mean an absent one. */
tern_status tern_layer_parameter(tern_module *m, const char *name, tern_tensor *x);
tern_status tern_layer_buffer(tern_module *m, const char *name, tern_tensor *x);
/* weight (if affine) and bias (if biased) of a norm over features channels; running_mean,
 * running_var and num_batches_tracked, none where it tracks nothing (batch_norm.c). */
tern_status tern_layer_running(tern_module *m, int64_t features, bool affine, bool biased,
                               bool tracks, tern_dtype dtype, const char *device);
/* m when status is TERN_OK; else m is freed and the result is NULL. */
tern_module *tern_layer_if(tern_module *m, tern_status status);
/* Whether m is one whose forward, or call, this is. */
bool tern_layer_runs(const tern_module *m, tern_module_forward forward);
bool tern_layer_calls(const tern_module *m, tern_module_call call);

/* ---- stages of a Sequential ------------------------------------------------------------------ */
/* Returns whether m is one operation of its input whose result nobody but the next module sees, and
 * fills stage then. */
bool tern_layer_stage(tern_module *m, tern_stage *stage);
/* The same of a Linear, and of an activation that does not write into its input; they fill the
 * kind. */
bool tern_layer_linear_stage(const tern_module *m, tern_stage *stage);
bool tern_layer_activation_stage(const tern_module *m, tern_stage *stage);

/* ---- the inplace option of activations and dropouts ------------------------------------------ */
/* NEVER: there is none. SILENT: PyTorch does not print it. */
typedef enum tern_layer_inplace { INPLACE_NEVER, INPLACE_SHOWN, INPLACE_SILENT } tern_layer_inplace;
/* m, which has the option, and has it on where that is asked for; NULL is passed on. */
tern_module *tern_layer_with_inplace(tern_module *m, tern_layer_inplace kind, bool on);
bool tern_layer_is_inplace(const tern_module *m);

#endif
