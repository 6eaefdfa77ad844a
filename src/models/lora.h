/* lora.h -- LoRA adapters: the modules that wrap layers, and the adapters' configuration. */
#ifndef TERN_SRC_MODELS_LORA_H
#define TERN_SRC_MODELS_LORA_H
#include "models/model.h"
#include <tern/models/lora.h>

enum { LORA_MOST = 8, LORA_NAME = 64 };

/* ---- layers (lora_layer.c) ------------------------------------------------------------------- */

typedef struct lora_adapter {
    char name[LORA_NAME];
    json_t *config; /* adapter_config.json; a reference of its own */
    double scale, dropout;
    bool dora;
} lora_adapter;

/* The data of a module that wraps a layer, or a module that is trained in full
 * (modules_to_save). */
typedef struct lora_data {
    lora_adapter adapters[LORA_MOST];
    int n, active; /* index of the active adapter; -1: none */
    bool enabled, merged, whole, has_lengths;
} lora_data;

/* Returns the data of a wrapper m, or NULL if m is no wrapper. */
lora_data *lora_of(tern_module *m);
/* Whether m is a layer that an adapter can wrap. */
bool lora_is_linear(tern_module *m);
/* Returns the bias of the layer, or NULL. */
tern_tensor *lora_bias(tern_module *base);
/* Wraps the module at path of model. Returns the wrapper, borrowed, or NULL after an error. */
tern_module *lora_wrap(tern_module *model, const char *path, bool whole);
/* Returns an adapter's module "lora_A" or "lora_B", or its copy of a module that is trained in
 * full; NULL, without an error, if there is none. */
tern_module *lora_part(tern_module *wrapper, const char *part, const char *adapter);
/* Adds an adapter to the wrapper and makes it the active one; r is ignored if the wrapped module is
 * trained in full. */
tern_status lora_add(tern_module *wrapper, const char *adapter, json_t *config, int64_t r,
                     double scale);
/* Removes the adapter; does nothing if the wrapper has none of that name. */
void lora_remove(tern_module *wrapper, const char *adapter);
/* Adds the adapter's update to the weights (in), or subtracts it. */
tern_status lora_fold(tern_module *wrapper, bool in);

/* ---- which layers (lora_config.c) ------------------------------------------------------------ */

/* Writes PEFT's name (with transformers 5) of the module at path; the model itself keeps the names
 * of its files. */
void lora_peft_path(const models_model *m, const char *path, char *to, size_t bytes);
json_t *lora_config_of(const char *function, models_model *m, const tern_lora_options *options);
/* Fails if the configuration has a field or value that is not supported. */
tern_status lora_config_check(const char *function, const json_t *config);
tern_status lora_is_target(const char *function, models_model *m, const json_t *config,
                           const char *path, bool *yes);
bool lora_is_saved(const json_t *config, const char *path);
tern_status lora_numbers(const char *function, models_model *m, const json_t *config,
                         const char *path, int64_t *r, double *scale);

/* ---- all of them (lora.c) -------------------------------------------------------------------- */

/* Calls visit for every wrapper with the path of the wrapped layer. */
typedef tern_status (*lora_visit)(const char *path, tern_module *wrapper, void *user);
tern_status lora_each(tern_module *model, lora_visit visit, void *user);
/* The adapters share ownership of config. */
tern_status lora_apply(const char *function, models_model *m, const char *adapter, json_t *config);
/* Sets requires_grad of the active adapter's parameters to trainable, and of all other parameters
 * to false. */
tern_status lora_set_trainable(tern_module *model, bool trainable);
/* Returns the active adapter, or NULL if there is none. */
const lora_adapter *lora_active(tern_module *model);
tern_status lora_delete(tern_module *model, const char *adapter);

#endif
