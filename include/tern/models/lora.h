/* models/lora.h -- low-rank adapters of linear layers, LoRA (Hu et al. 2021) and DoRA (Liu et al.
 * 2024), in PEFT's files.
 *
 *   tern_lora_add(model, &(tern_lora_options){.r = 16, .alpha = 32});
 *   ... train ...
 *   tern_lora_save(model, "adapter");
 *
 * A layer y = W x + b becomes y = W x + b + s B A dropout(x), where s = alpha / r. Its path does
 * not change: it becomes a module "lora.Linear", which has the original layer as its child
 * base_layer, and lora_A.<adapter> and lora_B.<adapter>. A model may have several adapters, one of
 * which is active. */
#ifndef TERN_MODELS_LORA_H
#define TERN_MODELS_LORA_H
#include <tern/models/pretrained.h>

TERN_BEGIN_DECLS

/* Which biases of the model are trained too. */
typedef enum tern_lora_bias {
    TERN_LORA_BIAS_NONE,
    TERN_LORA_BIAS_ALL,
    TERN_LORA_BIAS_LORA_ONLY /* only those of the layers with an adapter */
} tern_lora_bias;

/* A value for the layers whose path ends in a match of the pattern, a regular expression. */
typedef struct tern_lora_pattern {
    const char *pattern; /* NULL: the end of a list */
    double value;
} tern_lora_pattern;

typedef struct tern_lora_options {
    const char *adapter;   /* its name; NULL: "default" */
    int64_t r;             /* default 8 */
    double alpha, dropout; /* default 8, 0 */
    /* The ends of the paths of the linear layers to adapt ("q_proj"); the list ends with NULL.
     * {"all-linear", NULL} means all but the head. Default: PEFT's for the architecture;
     * TERN_ERR_ARGUMENT if PEFT has none for it. */
    const char *const *target_modules;
    const char *target_pattern; /* in place of target_modules: a regular expression for whole
                                 * paths */
    const char *const *exclude_modules; /* ends of the paths of layers that are not adapted */
    const char *const
        *modules_to_save; /* ends of the paths of modules that are trained and saved as a whole */
    const tern_lora_pattern *rank_pattern, *alpha_pattern;
    tern_lora_bias bias;
    bool use_rslora; /* s = alpha / sqrt(r) */
    bool use_dora;   /* DoRA: column norms m are learned separately: m (W + s B A) / |W + s B A| */
    uint64_t reserved[4];
} tern_lora_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_lora_options tern_lora_defaults(void);

/* Adds an adapter to the layers of model, in place, and makes it the active one; all other
 * parameters are frozen (peft.get_peft_model). A is initialised as a new linear layer is, and B is
 * 0, so that results are the same at first. The adapters of half precision layers are float32.
 * Returns model; NULL after an error, which leaves model unchanged. */
TERN_API tern_module *tern_lora_add(tern_module *model, const tern_lora_options *options);
/* Writes adapter_config.json and adapter_model.safetensors of the active adapter to a directory,
 * which is created if it does not exist, as PEFT reads them (save_pretrained). If directory ends in
 * .gguf, it writes one file as llama.cpp reads it, for the architectures that
 * tern_models_from_pretrained reads from GGUFs. In that file alpha / r is the scale of all layers,
 * and the scales of layers that differ are multiplied into B. Errors: TERN_ERR_UNSUPPORTED for
 * DoRA, biases and modules_to_save, which that file cannot hold. */
TERN_API tern_status tern_lora_save(tern_module *model, const char *directory);
/* Loads the adapter of such a directory or GGUF, or of a directory with adapter_model.bin, under
 * the name "default", and makes it active (PeftModel.from_pretrained). With trainable false it is
 * frozen too. Returns model; NULL after an error, which leaves model unchanged: TERN_ERR_STATE for
 * names and shapes that do not match the model, TERN_ERR_UNSUPPORTED for fields of the
 * configuration that change the computation and are not supported. */
TERN_API tern_module *tern_lora_load(tern_module *model, const char *directory, bool trainable);
/* Does the same under another name (load_adapter). */
TERN_API tern_module *tern_lora_load_adapter(tern_module *model, const char *directory,
                                             const char *adapter, bool trainable);

/* Makes an adapter the active one: its parameters are trained, and those of the others are frozen
 * (set_adapter). */
TERN_API tern_status tern_lora_set_adapter(tern_module *model, const char *adapter);
/* Removes an adapter. Another one becomes active; when the last one is removed the original layers
 * are restored (delete_adapter). */
TERN_API tern_status tern_lora_delete_adapter(tern_module *model, const char *adapter);
/* Turns the adapters off (false) or on (disable_adapter): when off, the model computes as without
 * them. */
TERN_API tern_status tern_lora_enable(tern_module *model, bool on);
/* Adds the active adapter to the weights, which makes the model faster (merge_adapter). */
TERN_API tern_status tern_lora_merge_adapter(tern_module *model);
/* Subtracts the active adapter from the weights again (unmerge_adapter). */
TERN_API tern_status tern_lora_unmerge_adapter(tern_module *model);
/* Adds the active adapter to the weights and removes all adapters: the original layers are
 * restored, with the new weights (merge_and_unload). Returns model. */
TERN_API tern_module *tern_lora_merge(tern_module *model);
/* Removes all adapters (unload). Returns model. */
TERN_API tern_module *tern_lora_unload(tern_module *model);

TERN_END_DECLS
#endif
