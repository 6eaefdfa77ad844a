/* model.h -- what a model of the library is, and what its architectures are written with. */
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

/* Rotary positions: frequencies and what stretches them (rope.c). */
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
    double partial;                           /* of the head's width that is turned */
    const json_t *long_factor, *short_factor; /* borrowed from the model's config.json */
} models_rope;

/* What architectures say of themselves, under one name each. */
typedef struct models_config {
    int64_t vocab, width, layers, heads, kv_heads, head_dim, hidden, places, types, labels;
    int64_t window, window_from; /* 0: none; layers from that one on, or: */
    int64_t full_every, full_at; /* all but those of this rest; layer_types goes before both */
    int64_t channels, image, patch, pad, first;
    int64_t encoder_layers, encoder_heads, encoder_hidden;
    int64_t buckets, reach; /* of distances, and the last of them */
    double eps, dropout, attention_dropout, embedding_dropout, head_dropout;
    double activation_dropout; /* behind the activation of an mlp */
    double scale;              /* of scores; 0: by the heads' width */
    double softcap, logit_cap; /* of scores and of logits; 0: none */
    double wide, deep;         /* a network's channels and blocks beside those of its table */
    bool tied, bias, out_bias, mlp_bias, windowed, gated, scaled;
    bool torchvision; /* names in files, and the eps of norms, are torchvision's */
    models_activation activation;
    models_rope rope, local_rope; /* of all layers, or of those without a window and with one */
} models_config;

typedef enum models_field_kind {
    FIELD_SIZE, /* a positive integer */
    FIELD_INT,
    FIELD_REAL,
    FIELD_BOOL,
    FIELD_ACTIVATION, /* a word */
    FIELD_ONLY,       /* computed here with this value alone */
    FIELD_LIST        /* that the architecture itself reads */
} models_field_kind;
/* A field of config.json; one that is absent or null has the value `absent`, NaN: it must be
 * there. */
typedef struct models_field {
    const char *name;
    models_field_kind kind;
    size_t at;
    double absent;
    const char *only; /* JSON */
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
/* usual: of a config.json without the field. */
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

/* config.json of a directory, or a path of its own; NULL after an error. */
json_t *models_read_json(const char *function, const char *directory, const char *file);
/* The function of that name; NULL for none. */
models_activation models_activation_of(const char *name);
/* The numbers of m->json by the table of m's architecture. */
tern_status models_read_config(models_model *m);
/* Those of a part of it, by a table of its own. */
tern_status models_read_part(models_model *m, const char *part, const models_field *fields,
                             models_config *c);
/* layer_types: as many as there are layers, each "sliding_attention" or "full_attention". */
tern_status models_check_layer_types(const models_model *m);
/* Whether a layer looks at its neighbourhood alone. */
bool models_is_local(const models_model *m, int64_t layer);
/* rope_theta and rope_scaling, or rope_parameters; theta is of files without one. */
tern_status models_read_rope(models_model *m, double theta);
/* Those of one kind of layers into *r: rope_parameters of that name, or what `field` of old files
 * says, scaled by rope_scaling if `scaled`. */
tern_status models_read_rope_of(models_model *m, const char *layers, const char *field,
                                double theta, bool scaled, models_rope *r);
/* Frequencies for a sequence of that many places; gives the factor on sines and cosines. */
double models_rope_frequencies(const models_config *c, const models_rope *r, int64_t length,
                               double *frequency);
/* *cos and *sin (1 or N, T, pairs) of positions (1 or N, T). */
tern_status models_rope_tables(const models_config *c, const models_rope *r, tern_tensor *positions,
                               int64_t length, tern_tensor **cos, tern_tensor **sin);

/* ---- models (pretrained.c, call.c) ----------------------------------------------------------- */

/* A name in files that stands for another one, by its end. */
typedef struct models_rename {
    const char *file, *model;
} models_rename;

struct models_architecture {
    const char *name; /* "LlamaForCausalLM" */
    const char *type; /* model_type, "llama" */
    const models_field *fields;
    tern_status (*configure)(models_model *m); /* what no row says; or NULL */
    /* Children into m->module. */
    tern_status (*build)(models_model *m);
    tern_status (*call)(models_model *m, const tern_model_inputs *in, tern_model_outputs *out);
    const char *prefix; /* "model.": what names in files of the base model lack; or NULL */
    const char *head;   /* path of the last linear layer; or NULL */
    const char *
        spread; /* field of config.json: the deviation of random weights, else 0.02; NULL: layers as
                   they are made */
    const char *const *left_out; /* patterns of names that one side may lack; ends with NULL */
    bool classifies;             /* the head gives classes, not tokens */
    bool generates;              /* it gives tokens, one after the other */
    bool learned;                /* places have rows of a table: there are no more of them */
    /* Of one with an encoder: what that gives, (N, S, width). */
    tern_tensor *(*encode)(models_model *m, const tern_model_inputs *in);
    /* What files call path, where that is another name: true then. Shapes may differ by ones
     * behind; or NULL. */
    bool (*file_name)(const models_model *m, const char *path, char *name, size_t bytes);
};
/* Rows of all architectures; ends with one without a name. */
extern const models_architecture *const models_all[];

/* The data of the root module. */
struct models_model {
    uint64_t mark;
    const models_architecture *kind;
    models_config c, image;         /* image: of a tower of its own */
    json_t *json;                   /* config.json */
    json_t *processor, *generation; /* preprocessor_config.json, generation_config.json; or NULL */
    char *directory;                /* it was read from; or NULL */
    tern_module *module;            /* the root */
    bool checkpointing;
    const char *tied; /* path of the embedding whose weight was the head's at first; or NULL */
    bool copied;      /* quantized, the head has codes of what that weight was */
};
/* The deviation of random weights, and those of a model that is not read from files
 * (initialize.c). */
double models_deviation(const models_model *m);
tern_status models_initialize(models_model *m);
/* Whether module is the root of a model. */
bool models_is(tern_module *module);
/* What module is the root of; NULL after an error that names function. */
models_model *models_of(tern_module *module, const char *function);

/* ---- building (build.c): NULL after an error ------------------------------------------------- */

/* While it is set, the weights of linear layers and embeddings that are made take no memory: a
 * file's take their place. */
extern _Thread_local bool models_hollow;
/* child at a path of m, below containers that are made where they are not there. */
tern_module *models_put(tern_module *m, const char *path, tern_module *child);
/* Modules at paths of m. */
tern_status models_linear(tern_module *m, const char *path, int64_t in, int64_t out, bool bias);
/* y = x W + b with W (in, out), as GPT-2's Conv1D. */
tern_status models_conv1d(tern_module *m, const char *path, int64_t in, int64_t out);
tern_status models_embedding(tern_module *m, const char *path, int64_t rows, int64_t width);
tern_status models_layer_norm(tern_module *m, const char *path, int64_t width, double eps);
tern_status models_rms_norm(tern_module *m, const char *path, int64_t width, double eps);
/* The same with a weight that is added to 1, in float32 (Gemma). */
tern_status models_rms_norm_one(tern_module *m, const char *path, int64_t width, double eps);
/* A module whose data are a copy of bytes. */
tern_module *models_module(const char *name, tern_module_call call, const void *data, size_t bytes);
/* tern_nn_forward of the child at path. */
tern_tensor *models_run(tern_module *m, const char *path, tern_tensor *x);
/* The head's weight becomes that of the embedding at path. */
tern_status models_tie(models_model *m, const char *path);

/* ---- transformer layers (layer.c) ------------------------------------------------------------ */

/* Paths of what a layer is made of, NULL where it has none. */
typedef struct models_layer_names {
    const char *class_name;
    const char *qkv; /* one layer for query, key and value, or: */
    const char *query, *key, *value;
    const char *out;
    const char *query_norm, *key_norm;
    const char *norm1, *norm2;
    const char *post1, *post2;    /* of what attention and mlp give */
    const char *gate, *up, *down; /* gate_up: one layer for both, the gate first */
    const char *gate_up;
    /* Of a decoder's layer: attention to what the encoder gave, between the two. */
    const char *cross_query, *cross_key, *cross_value, *cross_out, *cross_norm;
    bool norm_first, rms, no_key_bias, unscaled;
    bool one_plus, no_norm_bias,
        no_first_norm; /* norms of 1 + weight; without bias; none in layer 0 */
    bool columns;      /* weights are (in, out) */
} models_layer_names;
/* The layers 0 .. layers - 1 into the list at path of base. */
tern_status models_layers(models_model *m, tern_module *base, const char *path,
                          const models_layer_names *names, bool causal);

/* What layers of one call share. */
typedef struct models_shared {
    tern_tensor
        *mask; /* (N or 1, 1 or heads, T or 1, S), true where a query looks, or added to scores; or
                 NULL */
    tern_tensor *cos, *sin; /* or NULL */
    tern_tensor *local_mask, *local_cos,
        *local_sin; /* of layers with a window, where they have others */
    tern_kv_cache *cache;
    tern_tensor *memory;      /* (N, S, width): what the encoder gave; or NULL */
    tern_tensor *memory_mask; /* (N, 1, 1, S), or NULL */
} models_shared;
/* x through all layers of the list at path. */
tern_tensor *models_run_layers(models_model *m, tern_module *base, const char *path, tern_tensor *x,
                               const models_shared *shared);
/* What is below the head: the child that the prefix names, or the root of a model without a
 * head. */
tern_module *models_base(models_model *m);

/* ---- calls (call.c) -------------------------------------------------------------------------- */

/* input_ids through the table at path, or inputs_embeds. */
tern_tensor *models_embed(models_model *m, const tern_model_inputs *in, const char *path);
/* How many places came before; the cache's. */
int64_t models_past(const tern_model_inputs *in);
/* How long the sequence becomes by so many more; with a static cache, may become. */
int64_t models_reach(const tern_model_inputs *in, int64_t places);
/* (1 or N, T) */
tern_tensor *models_positions(const tern_model_inputs *in, tern_tensor *x);
/* What queries may look at, where that is not all, or plain causality: *mask is NULL then. */
tern_status models_mask(const tern_model_inputs *in, tern_tensor *x, bool causal,
                        tern_tensor **mask);
/* (T, S): whether key s is not behind query t, the last of both being at one place. */
tern_tensor *models_causal(int64_t queries, int64_t keys, const char *device);
/* What the decoder reads: decoder_input_ids, or labels moved right, behind
 * decoder_start_token_id. */
tern_tensor *models_decoder_ids(models_model *m, const tern_model_inputs *in);
/* Logits and loss of a model of tokens; labels are of the next places, beside an encoder of
 * these. */
tern_status models_token_head(models_model *m, const tern_model_inputs *in, tern_tensor *x,
                              tern_model_outputs *out);
/* Loss of classes (N, C), after out->logits. */
tern_status models_class_loss(const tern_model_inputs *in, tern_model_outputs *out);
/* The loss of out->logits, of classes or of tokens. */
tern_status models_loss_of_logits(models_model *m, const tern_model_inputs *in,
                                  tern_model_outputs *out);
/* TERN_ERR_ARGUMENT where x, called name, is NULL. */
tern_status models_need(const models_model *m, const tern_tensor *x, const char *name);

/* ---- on several devices and ranks (parallel.c) ----------------------------------------------- */

/* What the module of a model runs. */
tern_status models_call_root(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                             int k);
/* The model in a DistributedDataParallel, a DataParallel (*parallel), or one in the other; NULL
 * without an error. */
models_model *models_inside(tern_module *module, bool *parallel);
tern_status models_call_inside(tern_module *wrapper, models_model *m, bool parallel,
                               const tern_model_inputs *in, tern_model_outputs *out);

#endif
