/* distilbert.c -- DistilBERT: half of BERT's layers, with other names, without token types and
 * pooler. */
#include "models/model.h"
#include <string.h>

static const models_layer_names names = {.class_name = "TransformerBlock",
                                         .query = "attention.q_lin",
                                         .key = "attention.k_lin",
                                         .value = "attention.v_lin",
                                         .out = "attention.out_lin",
                                         .norm1 = "sa_layer_norm",
                                         .up = "ffn.lin1",
                                         .down = "ffn.lin2",
                                         .norm2 = "output_layer_norm"};

static tern_status build(models_model *m)
{
    const models_config *c = &m->c;
    tern_module *base = models_base(m);
    TRY(models_embedding(base, "embeddings.word_embeddings", c->vocab, c->width));
    TRY(models_embedding(base, "embeddings.position_embeddings", c->places, c->width));
    TRY(models_layer_norm(base, "embeddings.LayerNorm", c->width, c->eps));
    TRY(models_layers(m, base, "transformer.layer", &names, false));
    if (!m->kind->head)
        return TERN_OK;
    TRY(models_linear(m->module, "pre_classifier", c->width, c->width, true));
    return models_linear(m->module, "classifier", c->width, c->labels, true);
}

static tern_status call(models_model *m, const tern_model_inputs *in, tern_model_outputs *out)
{
    models_shared s = {0};
    tern_module *base = models_base(m);
    bool training = tern_nn_is_training(m->module);
    const char *table = "distilbert.embeddings.word_embeddings";
    tern_tensor *x = models_embed(m, in, base == m->module ? strchr(table, '.') + 1 : table);
    tern_tensor *place =
        x ? models_run(base, "embeddings.position_embeddings", models_positions(in, x)) : NULL;
    x = place ? models_run(base, "embeddings.LayerNorm", tern_add(x, place)) : NULL;
    if (!x)
        return tern_last_status();
    x = tern_dropout(x, m->c.dropout, training);
    TRY(models_mask(in, x, false, &s.mask));
    out->last_hidden_state = x = models_run_layers(m, base, "transformer.layer", x, &s);
    if (!x || !m->kind->head)
        return x ? TERN_OK : tern_last_status();
    x = models_run(m->module, "pre_classifier", tern_select(x, 1, 0));
    x = x ? tern_dropout(tern_relu(x), m->c.head_dropout, training) : NULL;
    out->logits = x ? models_run(m->module, "classifier", x) : NULL;
    return models_class_loss(in, out);
}

static const models_field fields[] = {SIZE("vocab_size", vocab, 30522),
                                      SIZE("dim", width, 768),
                                      SIZE("n_layers", layers, 6),
                                      SIZE("n_heads", heads, 12),
                                      SIZE("hidden_dim", hidden, 3072),
                                      SIZE("max_position_embeddings", places, 512),
                                      REAL("dropout", dropout, 0.1),
                                      REAL("attention_dropout", attention_dropout, 0.1),
                                      REAL("seq_classif_dropout", head_dropout, 0.2),
                                      FLAG("tie_word_embeddings", tied, 1),
                                      FLAG("sinusoidal_pos_embds", windowed, 0),
                                      REAL("qa_dropout", embedding_dropout, 0.1),
                                      ACTIVATION("activation", "gelu"),
                                      ONLY("chunk_size_feed_forward", "0"),
                                      FIELDS_END};

static tern_status configure(models_model *m)
{
    models_config *c = &m->c;
    c->bias = c->out_bias = c->mlp_bias = true;
    c->eps = 1e-12;
    return TERN_OK;
}

static const char *const left_out[] = {"vocab_*", "*embeddings.position_ids", NULL};

const models_architecture models_distilbert = {.name = "DistilBertModel",
                                               .type = "distilbert",
                                               .fields = fields,
                                               .configure = configure,
                                               .build = build,
                                               .spread = "initializer_range",
                                               .call = call,
                                               .prefix = "distilbert.",
                                               .left_out = left_out};
const models_architecture models_distilbert_classes = {.name =
                                                           "DistilBertForSequenceClassification",
                                                       .type = "distilbert",
                                                       .fields = fields,
                                                       .configure = configure,
                                                       .build = build,
                                                       .spread = "initializer_range",
                                                       .call = call,
                                                       .prefix = "distilbert.",
                                                       .head = "classifier",
                                                       .left_out = left_out,
                                                       .classifies = true};
