/* lora.h -- adapters: the modules around layers, and what their configuration says. */
#ifndef TERN_SRC_MODELS_LORA_H
#define TERN_SRC_MODELS_LORA_H
#include "models/model.h"
#include <tern/models/lora.h>

enum { LORA_MOST = 8, LORA_NAME = 64 };

/* ---- layers (lora_layer.c) ------------------------------------------------------------------- */

typedef struct lora_adapter {
    char name[LORA_NAME];
    json_t *config; /* of adapter_config.json; kept */
    double scale, dropout;
    bool dora;
} lora_adapter;

/* The data of a module around a layer, or around one that is trained whole. */
typedef struct lora_data {
    lora_adapter adapters[LORA_MOST];
    int n, active; /* -1: none */
    bool enabled, merged, whole, has_lengths;
} lora_data;

/* NULL where m is no such module. */
lora_data *lora_of(tern_module *m);
/* Whether m is a layer that an adapter can be around. */
bool lora_is_linear(tern_module *m);
/* Its bias, or NULL. */
tern_tensor *lora_bias(tern_module *base);
/* Around the module at path of model; borrowed, NULL after an error. */
tern_module *lora_wrap(tern_module *model, const char *path, bool whole);
/* The module of an adapter, "lora_A" or "lora_B", or what is trained whole; NULL without an
 * error. */
tern_module *lora_part(tern_module *wrapper, const char *part, const char *adapter);
/* A new adapter, active; r is not looked at where the module is trained whole. */
tern_status lora_add(tern_module *wrapper, const char *adapter, json_t *config, int64_t r,
                     double scale);
/* Takes it away; nothing where it is not there. */
void lora_remove(tern_module *wrapper, const char *adapter);
/* Into the weights, or out of them. */
tern_status lora_fold(tern_module *wrapper, bool in);

/* ---- which layers (lora_config.c) ------------------------------------------------------------ */

/* What PEFT with transformers 5 calls a module of the model, which keeps the files' names. */
void lora_peft_path(const models_model *m, const char *path, char *to, size_t bytes);
json_t *lora_config_of(const char *function, models_model *m, const tern_lora_options *options);
/* Whether all that it says is known here. */
tern_status lora_config_check(const char *function, const json_t *config);
tern_status lora_is_target(const char *function, models_model *m, const json_t *config,
                           const char *path, bool *yes);
bool lora_is_saved(const json_t *config, const char *path);
tern_status lora_numbers(const char *function, models_model *m, const json_t *config,
                         const char *path, int64_t *r, double *scale);

/* ---- all of them (lora.c) -------------------------------------------------------------------- */

/* Every module around a layer, with the layer's path. */
typedef tern_status (*lora_visit)(const char *path, tern_module *wrapper, void *user);
tern_status lora_each(tern_module *model, lora_visit visit, void *user);
/* config is kept by the adapters. */
tern_status lora_apply(const char *function, models_model *m, const char *adapter, json_t *config);
/* All that the active adapter trains requires gradients where trainable, and nothing else. */
tern_status lora_set_trainable(tern_module *model, bool trainable);
/* Of the active adapter; NULL if there is none. */
const lora_adapter *lora_active(tern_module *model);
tern_status lora_delete(tern_module *model, const char *adapter);

#endif
