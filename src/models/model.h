/* model.h -- the struct of a model and the functions that architectures are written with. */
#ifndef TERN_SRC_MODELS_MODEL_H
#define TERN_SRC_MODELS_MODEL_H
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <tern/models/pretrained.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        tern_status try_status_ = (call);                                                          \
        if (try_status_ != TERN_OK)                                                                \
            return try_status_;                                                                    \
    } while (0)

typedef struct models_model models_model;
typedef struct models_architecture models_architecture;

/* ---- config.json (config.c) ------------------------------------------------------------------ */

typedef tern_tensor *(*models_activation)(tern_tensor *x);

/* Rotary position embeddings (rope.c): how the frequencies are scaled to longer sequences. */
typedef enum models_rope_type {
    ROPE_NONE,
    ROPE_DEFAULT,
    ROPE_LINEAR,
    ROPE_DYNAMIC,
    ROPE_YARN,
    ROPE_LONGROPE,
    ROPE_LLAMA3
} models_rope_type;
enum { MODELS_MOST_PAIRS = 512 };
typedef struct models_rope {
    models_rope_type type;
    double theta, factor, original, low, high, fast, slow, attention, mscale, mscale_all;
    double partial;                           /* fraction of head_dim that is rotated */
    const json_t *long_factor, *short_factor; /* borrowed from the model's config.json */
} models_rope;

/* The values of config.json, under one name for all architectures. */
typedef struct models_config {
    int64_t vocab, width, layers, heads, kv_heads, head_dim, hidden, places, types, labels;
    int64_t window, window_from; /* sliding window in tokens, or 0; layers from window_from on
                                    have the window, unless: */
    int64_t full_every, full_at; /* layer i has no window if i % full_every == full_at; the field
                                    layer_types overrides both */
    int64_t channels, image, patch, pad, first;
    int64_t encoder_layers, encoder_heads, encoder_hidden;
    int64_t buckets, reach; /* T5: number of relative position buckets, and the largest distance;
                               ModernBERT: reach is the width of its window */
    double eps, dropout, attention_dropout, embedding_dropout, head_dropout;
    double activation_dropout; /* dropout after the activation of an MLP */
    double scale;              /* factor on attention scores; 0: 1 / sqrt(head_dim) */
    double softcap, logit_cap; /* soft caps of attention scores and of logits; 0: no cap */
    double wide, deep;         /* multipliers of channels and of blocks (EfficientNet) */
    bool tied, bias, out_bias, mlp_bias, windowed, gated, scaled;
    bool torchvision; /* tensor names in files and the eps of norms are torchvision's */
    models_activation activation;
    models_rope rope, local_rope; /* rope of all layers, or rope of layers without a window and
                                     local_rope of those with one */
} models_config;

typedef enum models_field_kind {
    FIELD_SIZE, /* a positive integer */
    FIELD_INT,
    FIELD_REAL,
    FIELD_BOOL,
    FIELD_ACTIVATION, /* the name of an activation function */
    FIELD_ONLY,       /* only the value `only` is supported */
    FIELD_LIST        /* a list that the architecture's own code reads */
} models_field_kind;
/* A field of config.json. `absent` is the value if the file lacks the field or has null; NaN means
 * that the field is required. */
typedef struct models_field {
    const char *name;
    models_field_kind kind;
    size_t at;
    double absent;
    const char *only; /* the one supported value, as JSON text */
} models_field;
#define NEEDED NAN
#define FIELD_AT(kind, name, to, absent)                                                           \
    {                                                                                              \
        name, FIELD_##kind, offsetof(models_config, to), absent, NULL                              \
    }
#define SIZE(name, to, absent) FIELD_AT(SIZE, name, to, absent)
#define INT(name, to, absent)  FIELD_AT(INT, name, to, absent)
#define REAL(name, to, absent) FIELD_AT(REAL, name, to, absent)
#define FLAG(name, to, absent) FIELD_AT(BOOL, name, to, absent)
/* usual: the activation if config.json lacks the field. */
#define ACTIVATION(name, usual)                                                                    \
    {                                                                                              \
        name, FIELD_ACTIVATION, offsetof(models_config, activation), 0, usual                      \
    }
#define ONLY(name, value)                                                                          \
    {                                                                                              \
        name, FIELD_ONLY, 0, 0, value                                                              \
    }
#define LIST(name)                                                                                 \
    {                                                                                              \
        name, FIELD_LIST, 0, 0, NULL                                                               \
    }
#define FIELDS_END                                                                                 \
    {                                                                                              \
        NULL, FIELD_ONLY, 0, 0, NULL                                                               \
    }

/* Returns the parsed file of a directory (file NULL: directory is the path of the file itself),
 * which the caller owns, or NULL after an error. */
json_t *models_read_json(const char *function, const char *directory, const char *file);
/* Returns the activation function of a name in config.json, or NULL if the name is unknown. */
models_activation models_activation_of(const char *name);
/* Reads m->json into m->c by the table of fields of m's architecture. */
tern_status models_read_config(models_model *m);
/* Reads the object `part` of m->json into *c by the table `fields`. */
tern_status models_read_part(models_model *m, const char *part, const models_field *fields,
                             models_config *c);
/* Checks that layer_types, if config.json has the field, is one of "sliding_attention" and
 * "full_attention" for each layer. */
tern_status models_check_layer_types(const models_model *m);
/* Whether the layer has a sliding window. */
bool models_is_local(const models_model *m, int64_t layer);
/* Reads rope_parameters, or rope_theta and rope_scaling, into m->c.rope; theta is the value for
 * files without rope_theta. */
tern_status models_read_rope(models_model *m, double theta);
/* Reads the rotary embedding of one kind of layers into *r: from the object `layers` of
 * rope_parameters, or, in older files, theta from `field` and, if `scaled`, rope_scaling. */
tern_status models_read_rope_of(models_model *m, const char *layers, const char *field,
                                double theta, bool scaled, models_rope *r);
/* Writes the frequencies for a sequence of `length` tokens to frequency[] and returns the factor on
 * sines and cosines. */
double models_rope_frequencies(const models_config *c, const models_rope *r, int64_t length,
                               double *frequency);
/* Computes *cos and *sin (1 or N, T, pairs) for positions (1 or N, T). */
tern_status models_rope_tables(const models_config *c, const models_rope *r, tern_tensor *positions,
                               int64_t length, tern_tensor **cos, tern_tensor **sin);

/* ---- models (pretrained.c, call.c) ----------------------------------------------------------- */

/* A suffix of tensor names in files, and the model's suffix for the same tensors. */
typedef struct models_rename {
    const char *file, *model;
} models_rename;

struct models_architecture {
    const char *name; /* for example "LlamaForCausalLM" */
    const char *type; /* model_type of config.json, for example "llama" */
    const models_field *fields;
    tern_status (*configure)(models_model *m); /* computes values that no field holds; or NULL */
    /* Adds the children to m->module. */
    tern_status (*build)(models_model *m);
    tern_status (*call)(models_model *m, const tern_model_inputs *in, tern_model_outputs *out);
    const char *prefix; /* for example "model.", a prefix that files of the base model lack; or
                           NULL */
    const char *head;   /* path of the last linear layer; or NULL */
    /* Field of config.json with the standard deviation of random weights (0.02 if absent); NULL:
     * the layers keep their own initialization. */
    const char *spread;
    const char *const *left_out; /* patterns of names that the model or the file may lack; ends
                                    with NULL */
    bool classifies;             /* the head returns logits of classes, not of tokens */
    bool generates;              /* the model generates tokens autoregressively */
    bool learned;                /* positions are rows of a learned table, which limits the
                                    length */
    /* Models with an encoder: returns the encoder's output (N, S, width). */
    tern_tensor *(*encode)(models_model *m, const tern_model_inputs *in);
    /* Writes the file's name of the parameter at path to name and returns true, or returns false if
     * both names are the same. The file's shape may lack trailing dims of size 1. May be NULL. */
    bool (*file_name)(const models_model *m, const char *path, char *name, size_t bytes);
};
/* All architectures; the last element is NULL. */
extern const models_architecture *const models_all[];

/* The data of a model's root module. */
struct models_model {
    uint64_t mark;
    const models_architecture *kind;
    models_config c, image;         /* image: the values of the vision tower */
    json_t *json;                   /* config.json */
    json_t *processor, *generation; /* preprocessor_config.json, generation_config.json; or NULL */
    char *directory;                /* directory that the model was read from; or NULL */
    tern_module *module;            /* the root module */
    bool checkpointing;
    const char *tied; /* path of the embedding that shared its weight with the head when built;
                         or NULL */
    bool copied;      /* the head was tied and is quantized: it holds codes of a copy of that
                         weight */
};
/* models_deviation returns the standard deviation of random weights; models_initialize fills a
 * model that is not read from files with random values (initialize.c). */
double models_deviation(const models_model *m);
tern_status models_initialize(models_model *m);
/* Whether module is the root of a model. */
bool models_is(tern_module *module);
/* Returns the model whose root is module, or NULL after an error that names function. */
models_model *models_of(tern_module *module, const char *function);

/* ---- building (build.c): NULL after an error ------------------------------------------------- */

/* While this is true, new linear and embedding layers have a weight of one element, expanded to the
 * full shape, which the tensor of a file then replaces. */
extern _Thread_local bool models_hollow;
/* Adds child at a dotted path of m and returns child; creates the containers on the path that do
 * not exist. Takes child over, and frees it after an error. */
tern_module *models_put(tern_module *m, const char *path, tern_module *child);
/* Each function adds a new module at a path of m. */
tern_status models_linear(tern_module *m, const char *path, int64_t in, int64_t out, bool bias);
/* y = x W + b with W (in, out), as GPT-2's Conv1D. */
tern_status models_conv1d(tern_module *m, const char *path, int64_t in, int64_t out);
tern_status models_embedding(tern_module *m, const char *path, int64_t rows, int64_t width);
tern_status models_layer_norm(tern_module *m, const char *path, int64_t width, double eps);
tern_status models_rms_norm(tern_module *m, const char *path, int64_t width, double eps);
/* RMSNorm that multiplies by 1 + weight, computed in float32 (Gemma). */
tern_status models_rms_norm_one(tern_module *m, const char *path, int64_t width, double eps);
/* Returns a new module whose data is a copy of `bytes` bytes at data. */
tern_module *models_module(const char *name, tern_module_call call, const void *data, size_t bytes);
/* Returns tern_nn_forward of the child at path. */
tern_tensor *models_run(tern_module *m, const char *path, tern_tensor *x);
/* Shares the weight of the embedding at path with the head. */
tern_status models_tie(models_model *m, const char *path);

/* ---- transformer layers (layer.c) ------------------------------------------------------------ */

/* Paths of a layer's submodules; NULL if the layer has no such submodule. */
typedef struct models_layer_names {
    const char *class_name;
    const char *qkv; /* one linear layer for query, key and value; or NULL, and: */
    const char *query, *key, *value;
    const char *out;
    const char *query_norm, *key_norm;
    const char *norm1, *norm2;
    const char *post1, *post2;    /* norms of the outputs of attention and of the MLP */
    const char *gate, *up, *down; /* gate_up: one linear layer for gate and up, in this order */
    const char *gate_up;
    /* Decoder layers: cross-attention to the encoder's output, between self-attention and MLP. */
    const char *cross_query, *cross_key, *cross_value, *cross_out, *cross_norm;
    bool norm_first, rms, no_key_bias, unscaled;
    /* Norms multiply by 1 + weight; norms have no bias; layer 0 has no norm1. */
    bool one_plus, no_norm_bias, no_first_norm;
    bool columns; /* weights have the shape (in, out) */
} models_layer_names;
/* Adds a list of c.layers layers at path of base. */
tern_status models_layers(models_model *m, tern_module *base, const char *path,
                          const models_layer_names *names, bool causal);

/* Arguments that all layers of one call share. */
typedef struct models_shared {
    /* (N or 1, 1 or heads, T or 1, S): boolean, true where a query attends, or added to the
     * scores; or NULL. */
    tern_tensor *mask;
    tern_tensor *cos, *sin; /* rotary tables; or NULL */
    /* For layers with a window; NULL: the three above. */
    tern_tensor *local_mask, *local_cos, *local_sin;
    tern_kv_cache *cache;
    tern_tensor *memory;      /* (N, S, width), the encoder's output; or NULL */
    tern_tensor *memory_mask; /* (N, 1, 1, S), or NULL */
} models_shared;
/* Returns the output of all layers of the list at path for x. */
tern_tensor *models_run_layers(models_model *m, tern_module *base, const char *path, tern_tensor *x,
                               const models_shared *shared);
/* Returns the module below the head: the child named by the prefix, or the root of a model without
 * a head. */
tern_module *models_base(models_model *m);

/* ---- calls (call.c) -------------------------------------------------------------------------- */

/* Returns the rows of the embedding at path for input_ids, or inputs_embeds if given. */
tern_tensor *models_embed(models_model *m, const tern_model_inputs *in, const char *path);
/* Returns the number of tokens in the cache. */
int64_t models_past(const tern_model_inputs *in);
/* Returns the length of the sequence after `places` more tokens; with a static cache, its
 * capacity. */
int64_t models_reach(const tern_model_inputs *in, int64_t places);
/* Returns the positions (1 or N, T) of the tokens of x. */
tern_tensor *models_positions(const tern_model_inputs *in, tern_tensor *x);
/* Sets *mask to the attention mask, or to NULL if the queries attend to all keys or only the causal
 * mask applies. */
tern_status models_mask(const tern_model_inputs *in, tern_tensor *x, bool causal,
                        tern_tensor **mask);
/* Returns the causal mask (T, S), true where query t attends to key s; the last query and the last
 * key are at the same position. */
tern_tensor *models_causal(int64_t queries, int64_t keys, const char *device);
/* Returns the input of the decoder: decoder_input_ids, or the labels shifted right with
 * decoder_start_token_id first. */
tern_tensor *models_decoder_ids(models_model *m, const tern_model_inputs *in);
/* Computes logits and loss of a language model; the labels are shifted by one token, except for
 * models with an encoder. */
tern_status models_token_head(models_model *m, const tern_model_inputs *in, tern_tensor *x,
                              tern_model_outputs *out);
/* Computes the loss of out->logits (N, C), for class labels. */
tern_status models_class_loss(const tern_model_inputs *in, tern_model_outputs *out);
/* Computes the loss of out->logits, for labels of classes or of tokens. */
tern_status models_loss_of_logits(models_model *m, const tern_model_inputs *in,
                                  tern_model_outputs *out);
/* Fails with TERN_ERR_ARGUMENT if x, the input called name, is NULL. */
tern_status models_need(const models_model *m, const tern_tensor *x, const char *name);

/* ---- on several devices and ranks (parallel.c) ----------------------------------------------- */

/* The call function of a model's root module. */
tern_status models_call_root(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                             int k);
/* Returns the model inside a DistributedDataParallel, a DataParallel (then *parallel is true), or
 * one in the other; NULL, without an error, if module is none of them. */
models_model *models_inside(tern_module *module, bool *parallel);
tern_status models_call_inside(tern_module *wrapper, models_model *m, bool parallel,
                               const tern_model_inputs *in, tern_model_outputs *out);

#endif
