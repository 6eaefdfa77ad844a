/* models/lora.h -- adapters of low rank (Hu et al. 2021; DoRA: Liu et al. 2024) around linear
 * layers, in PEFT's files.
 *
 *   tern_lora_add(model, &(tern_lora_options){.r = 16, .alpha = 32});
 *   ... train ...
 *   tern_lora_save(model, "adapter");
 *
 * A layer y = W x + b becomes y = W x + b + s B A dropout(x), with s = alpha / r. It is found at
 * its path still: a module "lora.Linear" with the layer as its child base_layer, and
 * lora_A.<adapter>, lora_B.<adapter>. Several adapters may be there, of which one is active. */
#ifndef TERN_MODELS_LORA_H
#define TERN_MODELS_LORA_H
#include <tern/models/pretrained.h>

TERN_BEGIN_DECLS

/* Which biases of the model are trained too. */
typedef enum tern_lora_bias {
    TERN_LORA_BIAS_NONE,
    TERN_LORA_BIAS_ALL,
    TERN_LORA_BIAS_LORA_ONLY /* of the layers with an adapter */
} tern_lora_bias;

/* A number of its own for layers whose path ends in what the pattern, a regular expression,
 * matches. */
typedef struct tern_lora_pattern {
    const char *pattern; /* NULL: the end of a list */
    double value;
} tern_lora_pattern;

typedef struct tern_lora_options {
    const char *adapter;   /* its name; NULL: "default" */
    int64_t r;             /* default 8 */
    double alpha, dropout; /* default 8, 0 */
    /* Ends of paths of linear layers ("q_proj"), the list ends with NULL; {"all-linear", NULL}: all
     * but the head. Default: PEFT's for the architecture; TERN_ERR_ARGUMENT for one that it has
     * none for. */
    const char *const *target_modules;
    const char *target_pattern;         /* instead: a regular expression for whole paths */
    const char *const *exclude_modules; /* ends of paths that are none of them */
    const char *const
        *modules_to_save; /* ends of paths of modules that are trained whole, and saved */
    const tern_lora_pattern *rank_pattern, *alpha_pattern;
    tern_lora_bias bias;
    bool use_rslora; /* s = alpha / sqrt(r) */
    bool use_dora;   /* the columns' lengths are learned apart: m (W + s B A) / |W + s B A| */
    uint64_t reserved[4];
} tern_lora_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_lora_options tern_lora_defaults(void);

/* Puts an adapter around the layers of model, in place, and makes it the active one; all other
 * parameters are frozen (peft.get_peft_model). A is uniform as in a new linear layer and B is 0, so
 * the results are the same at first. Adapters are of float32 where the layers are of half
 * precision. Returns model; NULL after an error, which leaves model as it was. */
TERN_API tern_module *tern_lora_add(tern_module *model, const tern_lora_options *options);
/* Writes adapter_config.json and adapter_model.safetensors of the active adapter into a directory,
 * which is made where it does not exist, as PEFT reads them (save_pretrained). Where directory ends
 * in .gguf, it writes one file as llama.cpp reads it, of the architectures that
 * tern_models_from_pretrained reads from GGUFs: alpha / r is the scale of all layers there, and
 * differences from it are multiplied into B. Errors: TERN_ERR_UNSUPPORTED for what that file has no
 * place for: DoRA, biases, modules_to_save. */
TERN_API tern_status tern_lora_save(tern_module *model, const char *directory);
/* Loads the adapter of such a directory or GGUF, or of a directory with adapter_model.bin, names it
 * "default" and makes it active (PeftModel.from_pretrained); with trainable false it is frozen too.
 * Returns model; NULL after an error, which leaves model as it was: TERN_ERR_STATE for names and
 * shapes that are not the model's, TERN_ERR_UNSUPPORTED for fields of the configuration that change
 * what is computed and are not known. */
TERN_API tern_module *tern_lora_load(tern_module *model, const char *directory, bool trainable);
/* Does the same under another name (load_adapter). */
TERN_API tern_module *tern_lora_load_adapter(tern_module *model, const char *directory,
                                             const char *adapter, bool trainable);

/* Makes an adapter the active one: its parameters are trained, those of the others are not
 * (set_adapter). */
TERN_API tern_status tern_lora_set_adapter(tern_module *model, const char *adapter);
/* Takes an adapter away. Another one becomes active; with the last one the layers are plain again
 * (delete_adapter). */
TERN_API tern_status tern_lora_delete_adapter(tern_module *model, const char *adapter);
/* Turns the adapters off (false) and on (disable_adapter): the model then computes as without
 * them. */
TERN_API tern_status tern_lora_enable(tern_module *model, bool on);
/* Adds the active adapter to the weights, for speed (merge_adapter). */
TERN_API tern_status tern_lora_merge_adapter(tern_module *model);
/* Takes the active adapter out of the weights again (unmerge_adapter). */
TERN_API tern_status tern_lora_unmerge_adapter(tern_module *model);
/* Adds the active adapter to the weights and takes the adapters away: the layers are plain again
 * (merge_and_unload). Returns model. */
TERN_API tern_module *tern_lora_merge(tern_module *model);
/* Takes the adapters away (unload). Returns model. */
TERN_API tern_module *tern_lora_unload(tern_module *model);

TERN_END_DECLS
#endif
