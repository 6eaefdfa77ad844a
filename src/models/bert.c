/* bert.c -- BERT and RoBERTa: sentence embeddings (MiniLM is a BERT) and text classification. */
#include "models/model.h"
#include <stdio.h>
#include <string.h>

static const models_layer_names names = {.class_name = "BertLayer",
                                         .query = "attention.self.query",
                                         .key = "attention.self.key",
                                         .value = "attention.self.value",
                                         .out = "attention.output.dense",
                                         .norm1 = "attention.output.LayerNorm",
                                         .up = "intermediate.dense",
                                         .down = "output.dense",
                                         .norm2 = "output.LayerNorm"};

static bool is_roberta(const models_model *m)
{
    return strcmp(m->kind->type, "bert") != 0;
}

static tern_status build(models_model *m)
{
    const models_config *c = &m->c;
    tern_module *base = models_base(m);
    TRY(models_embedding(base, "embeddings.word_embeddings", c->vocab, c->width));
    TRY(models_embedding(base, "embeddings.position_embeddings", c->places, c->width));
    TRY(models_embedding(base, "embeddings.token_type_embeddings", c->types, c->width));
    TRY(models_layer_norm(base, "embeddings.LayerNorm", c->width, c->eps));
    TRY(models_layers(m, base, "encoder.layer", &names, false));
    if (!m->kind->head || !is_roberta(m))
        TRY(models_linear(base, "pooler.dense", c->width, c->width, true));
    if (m->kind->head && is_roberta(m))
        TRY(models_linear(m->module, "classifier.dense", c->width, c->width, true));
    return m->kind->head ? models_linear(m->module, m->kind->head, c->width, c->labels, true)
                         : TERN_OK;
}

/* RoBERTa's positions start at pad + 1 and do not count padding, whose position is pad. */
static tern_tensor *positions(const models_model *m, const tern_model_inputs *in, tern_tensor *x)
{
    if (!is_roberta(m) || in->position_ids)
        return models_positions(in, x);
    tern_scalar pad = tern_scalar_int(m->c.pad);
    if (!in->input_ids)
        return tern_add_scalar(models_positions(in, x), tern_scalar_int(m->c.pad + 1));
    tern_tensor *real = tern_to_dtype(tern_ne_scalar(in->input_ids, pad), TERN_I64);
    tern_tensor *count = real ? tern_cumsum(real, 1) : NULL;
    return count ? tern_add_scalar(tern_mul(count, real), pad) : NULL;
}

static tern_tensor *embed(models_model *m, const tern_model_inputs *in)
{
    tern_module *base = models_base(m);
    char path[64];
    snprintf(path, sizeof path, "%sembeddings.word_embeddings",
             base == m->module ? "" : m->kind->prefix);
    tern_tensor *x = models_embed(m, in, path);
    tern_tensor *place = x ? positions(m, in, x) : NULL;
    tern_tensor *type = !place               ? NULL
                        : in->token_type_ids ? in->token_type_ids
                                             : tern_mul_scalar(place, tern_scalar_int(0));
    place = type ? models_run(base, "embeddings.position_embeddings", place) : NULL;
    type = place ? models_run(base, "embeddings.token_type_embeddings", type) : NULL;
    x = type ? tern_add(tern_add(x, type), place) : NULL;
    x = x ? models_run(base, "embeddings.LayerNorm", x) : NULL;
    return x ? tern_dropout(x, m->c.dropout, tern_nn_is_training(m->module)) : NULL;
}

static tern_status classify(models_model *m, const tern_model_inputs *in, tern_tensor *first,
                            tern_model_outputs *out)
{
    bool training = tern_nn_is_training(m->module);
    tern_tensor *x = is_roberta(m) ? first : out->pooler_output;
    x = x ? tern_dropout(x, m->c.head_dropout, training) : NULL;
    if (x && is_roberta(m)) {
        x = models_run(m->module, "classifier.dense", x);
        x = x ? tern_dropout(tern_tanh(x), m->c.head_dropout, training) : NULL;
    }
    out->logits = x ? models_run(m->module, m->kind->head, x) : NULL;
    return models_class_loss(in, out);
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    models_shared s = {0};
    tern_module *base = models_base(m);
    tern_tensor *x = embed(m, in);
    if (!x)
        return tern_last_status();
    TRY(models_mask(in, x, false, &s.mask));
    out->last_hidden_state = x = models_run_layers(m, base, "encoder.layer", x, &s);
    tern_tensor *first = x ? tern_select(x, 1, 0) : NULL;
    if (!first)
        return tern_last_status();
    if (!m->kind->head || !is_roberta(m)) {
        tern_tensor *pooled = models_run(base, "pooler.dense", first);
        out->pooler_output = pooled ? tern_tanh(pooled) : NULL;
        if (!out->pooler_output)
            return tern_last_status();
    }
    return m->kind->head ? classify(m, in, first, out) : TERN_OK;
}

static const models_field fields[] = {SIZE("vocab_size", vocab, 30522),
                                      SIZE("hidden_size", width, 768),
                                      SIZE("num_hidden_layers", layers, 12),
                                      SIZE("num_attention_heads", heads, 12),
                                      SIZE("intermediate_size", hidden, 3072),
                                      SIZE("max_position_embeddings", places, 512),
                                      SIZE("type_vocab_size", types, 2),
                                      INT("pad_token_id", pad, 1),
                                      REAL("layer_norm_eps", eps, 1e-12),
                                      REAL("hidden_dropout_prob", dropout, 0.1),
                                      REAL("attention_probs_dropout_prob", attention_dropout, 0.1),
                                      REAL("classifier_dropout", head_dropout, -1),
                                      FLAG("tie_word_embeddings", tied, 1),
                                      ACTIVATION("hidden_act", "gelu"),
                                      ONLY("position_embedding_type", "\"absolute\""),
                                      ONLY("is_decoder", "false"),
                                      ONLY("add_cross_attention", "false"),
                                      ONLY("chunk_size_feed_forward", "0"),
                                      FIELDS_END};

static tern_status configure(models_model *m)
{
    models_config *c = &m->c;
    c->bias = c->out_bias = c->mlp_bias = true;
    c->head_dropout = c->head_dropout < 0 ? c->dropout : c->head_dropout;
    return TERN_OK;
}

/* Pretraining heads, poolers, and a buffer of old versions. */
static const char *const left_out[] = {"cls.*", "lm_head.*", "*pooler.*",
                                       "*embeddings.position_ids", NULL};

#define BERT(NAME, CLASS, TYPE, HEAD, CLASSIFIES)                                                  \
    const models_architecture models_##NAME = {.name = CLASS,                                      \
                                               .type = TYPE,                                       \
                                               .fields = fields,                                   \
                                               .configure = configure,                             \
                                               .build = build,                                     \
                                               .spread = "initializer_range",                      \
                                               .call = call,                                       \
                                               .prefix = TYPE ".",                                 \
                                               .head = HEAD,                                       \
                                               .left_out = left_out,                               \
                                               .classifies = CLASSIFIES};
BERT(bert, "BertModel", "bert", NULL, false)
BERT(bert_classes, "BertForSequenceClassification", "bert", "classifier", true)
BERT(roberta, "RobertaModel", "roberta", NULL, false)
BERT(roberta_classes, "RobertaForSequenceClassification", "roberta", "classifier.out_proj", true)
