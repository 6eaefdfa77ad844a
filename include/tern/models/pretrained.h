/* models/pretrained.h -- pretrained models: a directory of the Hugging Face Hub, or a GGUF, loaded
 * as a module, run, trained and saved.
 *
 *   tern_module *model = tern_models_from_pretrained("bert-base-uncased", NULL);
 *   tern_model_outputs out;
 *   tern_models_call(model, &(tern_model_inputs){.input_ids = ids, .attention_mask = mask}, &out);
 *
 * A model is an ordinary module. Its children, parameters and buffers have the names of the files;
 * it is moved, trained, copied, printed and freed like any other, and any child may be replaced.
 * tern_nn_forward of one tensor returns the logits, or the last hidden state if the model has no
 * head. The tensor holds ids (N, T), images (N, C, H, W) or audio features (N, mels, frames). */
#ifndef TERN_MODELS_PRETRAINED_H
#define TERN_MODELS_PRETRAINED_H
#include <tern/io.h>
#include <tern/tern.h>

TERN_BEGIN_DECLS

/* ---- loading and saving: a directory (config.json and weights), or a GGUF -------------------- */

typedef struct tern_pretrained_options {
    const char *device; /* NULL: the default device */
    /* The dtype of floating point parameters and buffers; default: that of the files. By default
     * the quantized matrices of a GGUF stay quantized (modules "LinearGGUF" and "EmbeddingGGUF",
     * whose buffer "weight" holds the bytes of each row), and all else is float32. */
    tern_dtype dtype;
    int64_t num_labels; /* the number of classes; the head is new unless the files have one of
                         * that size */
    /* Called for each name that only the model (missing) or only the files (unexpected) have, which
     * is then no error; if NULL, it is an error. Names that an architecture is known to leave out
     * (tied weights, masks, the head of another task) do not count. */
    void (*missing)(const char *key, void *user);
    void (*unexpected)(const char *key, void *user);
    void *user;
    uint64_t reserved[4];
} tern_pretrained_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_pretrained_options tern_pretrained_defaults(void);

/* Returns the model that config.json describes, with the weights of model.safetensors,
 * pytorch_model.bin or their shards, in evaluation mode (AutoModel.from_pretrained,
 * timm.create_model). The caller frees it with tern_nn_free; NULL after an error. The class of the
 * model is architectures[0], or timm's architecture; with num_labels it is the classifier of that
 * model_type. Each weight is read directly into its parameter.
 *
 * directory may also be a GGUF file, or any part of one with several parts, of these architectures:
 * llama (which includes Mistral's models), qwen2, qwen3, phi3, gemma, gemma2, gemma3, gpt2 and
 * bert. The configuration is derived from the keys of the file, and parameters have Hugging Face's
 * names and order. Quantized matrices cannot be trained; adapters for them can (tern_lora_add), and
 * so can the whole model if it is loaded with a dtype.
 *
 * Errors: TERN_ERR_IO, for a GGUF also if keys are missing, have another type, or do not match its
 * tensors; TERN_ERR_UNSUPPORTED for an architecture that tern_models_architectures does not list,
 * and for a field of config.json that is not known or has a value that is not supported, with its
 * name; TERN_ERR_STATE for names and shapes of weights that do not match. */
TERN_API tern_module *tern_models_from_pretrained(const char *directory,
                                                  const tern_pretrained_options *options);
/* Returns the model of a config.json, or of the directory that it is in, with random weights and in
 * training mode. Weights are drawn as in transformers: from N(0, initializer_range), for Whisper
 * with init_std, and biases are 0. ModernBERT, T5, CLIP and convolutional networks keep the initial
 * values of their layers. */
TERN_API tern_module *tern_models_from_config(const char *path,
                                              const tern_pretrained_options *options);
/* Writes config.json, the weights and the file of the image processor to a directory, which is
 * created if it does not exist, as transformers and timm read them. The options are those of
 * tern_save.
 *
 * If directory ends in .gguf, it writes one GGUF file, for the architectures that can be read from
 * one. For a model that was loaded from a GGUF the keys and the tokenizer are kept in their order,
 * and quantized matrices are written unchanged; for other models the keys are derived from
 * config.json, and from a tokenizer.json beside it. Matrices are written in options.type; without
 * that in the type that they had in the GGUF, or in the dtype of the parameter (float32 for merged
 * adapters). Position embeddings and vectors are float32. If the rows of a matrix are not whole
 * blocks of the type, q2_k and q3_k become iq4_nl, q4_k q5_0, q5_k q5_1, q6_k q8_0, and all others
 * f16. Errors: TERN_ERR_UNSUPPORTED for a property that no key of a GGUF can express. */
TERN_API tern_status tern_models_save_pretrained(tern_module *model, const char *directory,
                                                 const tern_save_options *options);
/* Returns the number of architectures. *names becomes their list, unless names is NULL. */
TERN_API int tern_models_architectures(const char *const **names);

/* ---- running --------------------------------------------------------------------------------- */

typedef struct tern_kv_cache tern_kv_cache;

/* The inputs of a model; those that are not given are NULL. */
typedef struct tern_model_inputs {
    tern_tensor *input_ids;      /* (N, T) */
    tern_tensor *attention_mask; /* (N, T), or with a cache (N, positions so far + T): 0 hides a
                                  * position */
    tern_tensor *position_ids;   /* (N, T) or (1, T); default: from 0 on, or from the end of the
                                * cache on */
    tern_tensor *token_type_ids; /* (N, T): segments; default 0 */
    tern_tensor *cu_seqlens;     /* (sequences + 1): several sequences packed in one row (N = 1) end
                              * at these positions: 0, the end of the first, ..., T; attention
                              * and loss stay within a sequence */
    tern_tensor *inputs_embeds;  /* (N, T, width) instead of input_ids */
    tern_tensor *pixel_values;   /* (N, C, H, W) */
    tern_tensor *input_features; /* (N, mels, frames) */
    tern_tensor *decoder_input_ids;     /* (N, T), for a model with an encoder and a decoder */
    tern_tensor *encoder_hidden_states; /* (N, S, width): the result of the encoder, which is
                                         * then not run */
    tern_tensor *labels;    /* ids (N, T), which the model shifts, and where -100 is ignored; or
                             * classes (N) */
    tern_kv_cache *cache;   /* the cache to continue from, which is extended */
    int64_t logits_to_keep; /* compute logits for the last positions only; 0: for all; -1:
                             * compute the loss of labels without logits, which are then never in
                             * memory as a whole */
    uint64_t reserved[4];
} tern_model_inputs;
/* The results, which belong to the innermost scope; NULL if the model does not have one, or was not
 * given the inputs for it. */
typedef struct tern_model_outputs {
    tern_tensor *loss;   /* (), if labels are given */
    tern_tensor *logits; /* (N, T, vocabulary) or (N, classes); for CLIP (images, texts) */
    tern_tensor *last_hidden_state, *pooler_output, *encoder_last_hidden_state;
    tern_tensor *text_embeds, *image_embeds; /* CLIP's, (N, width), normalised to length 1 */
    uint64_t reserved[6];
} tern_model_outputs;
/* Runs a model. The model may be inside a tern_nn_data_parallel or
 * tern_nn_distributed_data_parallel; then the result is only the logits, or with labels the loss:
 * over the rows of all devices, or of this rank. Errors: TERN_ERR_ARGUMENT for a module that is not
 * a model of this library, and for missing inputs. */
TERN_API tern_status tern_models_call(tern_module *model, const tern_model_inputs *in,
                                      tern_model_outputs *out);
/* Runs a model with labels and returns the loss alone; NULL after an error. */
TERN_API tern_tensor *tern_models_loss(tern_module *model, const tern_model_inputs *in);

/* ---- changing -------------------------------------------------------------------------------- */

/* Replaces the head by a new linear layer for num_classes, on the same device (timm's
 * reset_classifier). Returns the head, borrowed. */
TERN_API tern_module *tern_models_reset_classifier(tern_module *model, int64_t num_classes);
/* Returns the head, borrowed; NULL after an error. */
TERN_API tern_module *tern_models_get_classifier(tern_module *model);
/* Sets whether layers store only their inputs, and compute the rest again in backward. */
TERN_API tern_status tern_models_gradient_checkpointing(tern_module *model, bool on);
/* Makes the transform that prepares an image (C, H, W) for the model: three channels, resizing,
 * cropping, scaling, mean and standard deviation, as preprocessor_config.json or timm's
 * pretrained_cfg describe them. The transform belongs to the data set or loader that it is given to
 * (data/transforms.h). */
TERN_API tern_transform *tern_models_image_processor(tern_module *model);

TERN_END_DECLS
#endif
