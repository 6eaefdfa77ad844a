/* models/pretrained.h -- pretrained models: what a directory of the Hugging Face Hub holds, run,
 * trained and written back.
 *
 *   tern_module *model = tern_models_from_pretrained("bert-base-uncased", NULL);
 *   tern_model_outputs out;
 *   tern_models_call(model, &(tern_model_inputs){.input_ids = ids, .attention_mask = mask}, &out);
 *
 * A model is a module as any other: its children, parameters and buffers are named as in the files,
 * it is moved, trained, copied, printed and freed as they are, and any child may be replaced.
 * tern_nn_forward of one tensor gives the logits (of models without a head the last hidden state):
 * of ids (N, T), images (N, C, H, W) or audio features (N, mels, frames). */
#ifndef TERN_MODELS_PRETRAINED_H
#define TERN_MODELS_PRETRAINED_H
#include <tern/io.h>
#include <tern/tern.h>

TERN_BEGIN_DECLS

/* ---- a directory (config.json; model.safetensors, its shards or pytorch_model.bin), or a GGUF */

typedef struct tern_pretrained_options {
    const char *device; /* NULL: the default device */
    /* Of parameters and buffers of reals; default: what the files hold. Of a GGUF matrices of
     * blocks stay blocks then (modules "LinearGGUF" and "EmbeddingGGUF", whose buffer "weight" is a
     * row's bytes), and all else is float32. */
    tern_dtype dtype;
    int64_t num_labels; /* a new head for this many classes where the file has none of that size */
    /* Called with each name that only the model, or only the file has, which then is no error;
     * NULL: it is one. What the architecture is known to leave out (tied weights, masks, the head
     * of another task) is none of these. */
    void (*missing)(const char *key, void *user);
    void (*unexpected)(const char *key, void *user);
    void *user;
    uint64_t reserved[4];
} tern_pretrained_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pretrained_options tern_pretrained_defaults(void);

/* The model that config.json describes with the weights of model.safetensors, pytorch_model.bin or
 * of shards (AutoModel.from_pretrained, timm.create_model), in the mode of evaluation; tern_nn_free
 * frees it. Which model: architectures[0], else timm's architecture; with num_labels the one that
 * classifies, of that model_type. Weights are read one after the other into their places. Errors:
 * TERN_ERR_IO, TERN_ERR_UNSUPPORTED for an architecture that is none of tern_models_architectures,
 * or a field of config.json that is not known or has a value that is computed otherwise here, by
 * its name; TERN_ERR_STATE for names and shapes of weights. directory may be a GGUF file, of a
 * model of several parts any of them: llama (Mistral's are such), qwen2, qwen3, phi3, gemma,
 * gemma2, gemma3, gpt2 and bert. The config is made of the file's keys, parameters have Hugging
 * Face's names and order. Blocks are not trained: adapters (tern_lora_add) are, around them, or all
 * of it with a dtype. TERN_ERR_IO then also for keys that are missing, of another kind, or not
 * those of the file's tensors. */
TERN_API tern_module *tern_models_from_pretrained(const char *directory,
                                                  const tern_pretrained_options *options);
/* The same with random weights, of a config.json or the directory that it is in; in training mode.
 * They are drawn as transformers draws them: N(0, initializer_range), Whisper's init_std, and
 * biases 0; those of ModernBERT, T5, CLIP and convolutional networks as their layers are when they
 * are made. */
TERN_API tern_module *tern_models_from_config(const char *path,
                                              const tern_pretrained_options *options);
/* config.json, the weights and the image processor's file into a directory, which is made where it
 * is not there, as transformers and timm read them; options as those of tern_save. Or, where it
 * ends in .gguf, one such file, of the architectures that are read from these. Of a model that was
 * read from a GGUF the keys and the tokenizer are kept, in their order, and blocks stay as they
 * are; of others they are made of config.json and of a tokenizer.json beside it. Matrices are of
 * options.type, else of the type that they had where it keeps them, else of the parameter's own
 * (merged adapters: float32). Tables of places and vectors are float32; where a matrix's rows are
 * no whole blocks, q2_k and q3_k become iq4_nl, q4_k q5_0, q5_k q5_1, q6_k q8_0, others f16.
 * TERN_ERR_UNSUPPORTED for what no key of a GGUF says. */
TERN_API tern_status tern_models_save_pretrained(tern_module *model, const char *directory,
                                                 const tern_save_options *options);
/* Returns how many architectures there are; *names becomes the list of them, unless names is
 * NULL. */
TERN_API int tern_models_architectures(const char *const **names);

/* ---- running --------------------------------------------------------------------------------- */

typedef struct tern_kv_cache tern_kv_cache;

/* What a model takes; NULL where it is not given. */
typedef struct tern_model_inputs {
    tern_tensor *input_ids;      /* (N, T) */
    tern_tensor *attention_mask; /* (N, T), with a cache (N, places so far + T): 0 hides a place */
    tern_tensor *position_ids; /* (N, T) or (1, T); default: from 0, or from where the cache ends */
    tern_tensor *token_type_ids; /* (N, T): segments; default 0 */
    tern_tensor *cu_seqlens; /* (sequences + 1): N = 1, several sequences in a row, packed: 0, the
                                  * end of the first, ... T; attention and loss stay within them */
    tern_tensor *inputs_embeds;         /* (N, T, width) instead of input_ids */
    tern_tensor *pixel_values;          /* (N, C, H, W) */
    tern_tensor *input_features;        /* (N, mels, frames) */
    tern_tensor *decoder_input_ids;     /* (N, T) of a decoder beside an encoder */
    tern_tensor *encoder_hidden_states; /* (N, S, width): what an encoder gave, not run again */
    tern_tensor *labels;    /* ids (N, T), shifted inside, -100 left out; or classes (N) */
    tern_kv_cache *cache;   /* goes on from there, and is added to */
    int64_t logits_to_keep; /* of the last places only; 0: of all; -1: labels' loss without logits,
                           which then are never in memory as a whole */
    uint64_t reserved[4];
} tern_model_inputs;
/* Results of the innermost scope; NULL where the model has none or was not given what it takes. */
typedef struct tern_model_outputs {
    tern_tensor *loss;   /* () of labels */
    tern_tensor *logits; /* (N, T, vocabulary) or (N, classes); of CLIP (images, texts) */
    tern_tensor *last_hidden_state, *pooler_output, *encoder_last_hidden_state;
    tern_tensor *text_embeds, *image_embeds; /* (N, width) of length 1: CLIP's */
    uint64_t reserved[6];
} tern_model_outputs;
/* Of a model, or of one in a tern_nn_data_parallel or tern_nn_distributed_data_parallel, where it
 * has logits alone, or with labels the loss: of the rows of all devices as one, of ranks each its
 * own. Errors: TERN_ERR_ARGUMENT for a module that is no model of this library, or misses an
 * input. */
TERN_API tern_status tern_models_call(tern_module *model, const tern_model_inputs *in,
                                      tern_model_outputs *out);
/* Returns the loss alone; NULL after an error. */
TERN_API tern_tensor *tern_models_loss(tern_module *model, const tern_model_inputs *in);

/* ---- changing -------------------------------------------------------------------------------- */

/* Puts a new linear head in the place of the old one, on its device (timm's reset_classifier).
 * Returns the head, borrowed. */
TERN_API tern_module *tern_models_reset_classifier(tern_module *model, int64_t num_classes);
/* Returns the head, borrowed; NULL after an error. */
TERN_API tern_module *tern_models_get_classifier(tern_module *model);
/* Sets whether layers keep their inputs alone, and compute the rest again in backward. */
TERN_API tern_status tern_models_gradient_checkpointing(tern_module *model, bool on);
/* Makes the transform that an image (C, H, W) needs for the model: three channels, size, crop,
 * scale, mean and deviation, by preprocessor_config.json or timm's pretrained_cfg. The transform
 * belongs to what it is given to (data/transforms.h). */
TERN_API tern_transform *tern_models_image_processor(tern_module *model);

TERN_END_DECLS
#endif
