/* call.c -- a call of a model: its inputs, masks and losses. */
#include "models/cache.h"
#include "models/gguf/layer.h"
#include "models/quantize.h"
#include <string.h>

/* ---- inputs ------------------------------------------------------------------------------ */

tern_status models_need(const models_model *m, const tern_tensor *x, const char *name)
{
    return x ? TERN_OK
             : tern_fail(TERN_ERR_ARGUMENT, "tern_models_call: %s needs %s, which is NULL",
                         m->kind->name, name);
}

tern_tensor *models_embed(models_model *m, const tern_model_inputs *in, const char *path)
{
    if (in->inputs_embeds)
        return in->inputs_embeds;
    if (models_need(m, in->input_ids, "input_ids") != TERN_OK)
        return NULL;
    if (tern_dim(in->input_ids) != 2)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_models_call: input_ids are (N, T), not %d dims",
                              tern_dim(in->input_ids));
    return models_run(m->module, path, in->input_ids);
}

int64_t models_past(const tern_model_inputs *in)
{
    return in->cache ? models_cache_length(in->cache) : 0;
}

int64_t models_reach(const tern_model_inputs *in, int64_t places)
{
    int64_t capacity = models_cache_static(in->cache);
    return capacity ? capacity : models_past(in) + places;
}

/* Returns (T): for each token of a packed row the number of entries of cu_seqlens at or before its
 * position, which is the number of its sequence, from 1. */
static tern_tensor *sequence_of(const tern_model_inputs *in, int64_t places)
{
    tern_tensor *cu = tern_to_dtype(in->cu_seqlens, TERN_I64);
    tern_tensor *t = tern_arange_scalar(tern_scalar_int(0), tern_scalar_int(places),
                                        tern_scalar_int(1), TERN_I64, tern_device(cu));
    tern_tensor *passed = cu && t ? tern_ge(tern_unsqueeze(t, 1), tern_unsqueeze(cu, 0)) : NULL;
    return passed ? tern_sum_dim(tern_to_dtype(passed, TERN_I64), TERN_DIMS(1), false) : NULL;
}

tern_tensor *models_positions(const tern_model_inputs *in, tern_tensor *x)
{
    int64_t n = tern_size(x, 1), past = models_past(in);
    if (models_cache_begin(in->cache, n, tern_device(x)) != TERN_OK)
        return NULL;
    if (in->position_ids)
        return in->position_ids;
    if (models_cache_static(in->cache))
        return tern_unsqueeze(models_cache_now(in->cache), 0);
    tern_tensor *t = tern_arange_scalar(tern_scalar_int(past), tern_scalar_int(past + n),
                                        tern_scalar_int(1), TERN_I64, tern_device(x));
    if (in->cu_seqlens) {
        tern_tensor *number = sequence_of(in, n);
        tern_tensor *start = number ? tern_index_select(tern_to_dtype(in->cu_seqlens, TERN_I64), 0,
                                                        tern_sub_scalar(number, tern_scalar_int(1)))
                                    : NULL;
        t = start ? tern_sub(t, start) : NULL;
    }
    return t ? tern_unsqueeze(t, 0) : NULL;
}

/* ---- masks ------------------------------------------------------------------------------- */

tern_tensor *models_causal(int64_t queries, int64_t keys, const char *device)
{
    tern_tensor *t = tern_arange_scalar(tern_scalar_int(keys - queries), tern_scalar_int(keys),
                                        tern_scalar_int(1), TERN_I64, device);
    tern_tensor *s = tern_arange_scalar(tern_scalar_int(0), tern_scalar_int(keys),
                                        tern_scalar_int(1), TERN_I64, device);
    return t && s ? tern_le(tern_unsqueeze(s, 0), tern_unsqueeze(t, 1)) : NULL;
}

static tern_tensor * and (tern_tensor * a, tern_tensor *b)
{
    return !a ? b : !b ? a : tern_logical_and(a, b);
}

tern_status models_mask(const tern_model_inputs *in, tern_tensor *x, bool causal,
                        tern_tensor **mask)
{
    int64_t queries = tern_size(x, 1), capacity = models_cache_static(in->cache);
    int64_t keys = capacity ? capacity : queries + models_past(in);
    tern_tensor *given = in->attention_mask, *packed = NULL;
    *mask = NULL;
    if (!given && !in->cu_seqlens && !capacity)
        return TERN_OK;
    if (given && tern_size(given, 1) != keys)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_models_call: attention_mask is of %lld places, and there are %lld",
                         (long long)tern_size(given, 1), (long long)keys);
    if (in->cu_seqlens && (tern_size(x, 0) != 1 || in->cache))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_models_call: cu_seqlens go with one row and no cache");
    if (in->cu_seqlens) {
        tern_tensor *number = sequence_of(in, queries);
        packed = number ? tern_eq(tern_unsqueeze(number, 0), tern_unsqueeze(number, 1)) : NULL;
        if (!packed)
            return tern_last_status();
    }
    if (given) {
        given = tern_view(tern_ne_scalar(given, tern_scalar_int(0)),
                          TERN_SHAPE(tern_size(given, 0), 1, 1, keys));
        if (!given)
            return tern_last_status();
    }
    tern_tensor *before = capacity                ? models_cache_mask(in->cache, 0)
                          : causal && queries > 1 ? models_causal(queries, keys, tern_device(x))
                                                  : NULL;
    *mask = and(and(given, packed), before);
    if (*mask && tern_dim(*mask) == 2)
        *mask = tern_view(*mask, TERN_SHAPE(1, 1, queries, keys));
    return *mask ? TERN_OK : tern_last_status();
}

/* ---- losses ------------------------------------------------------------------------------ */

/* Returns the labels shifted left by one token; -100 for the last token of each sequence. */
static tern_tensor *shifted(const tern_model_inputs *in)
{
    int64_t n = tern_size(in->labels, 0), t = tern_size(in->labels, 1);
    tern_tensor *ends =
        tern_full(TERN_SHAPE(n, 1), tern_scalar_int(-100), TERN_I64, tern_device(in->labels));
    tern_tensor *next[] = {tern_narrow(in->labels, 1, 1, t - 1), ends};
    tern_tensor *y = tern_cat(next, 2, 1);
    if (!in->cu_seqlens || !y)
        return y;
    tern_tensor *cu = tern_to_dtype(in->cu_seqlens, TERN_I64);
    tern_tensor *last =
        tern_sub_scalar(tern_narrow(cu, 0, 1, tern_size(cu, 0) - 1), tern_scalar_int(1));
    return tern_index_fill(y, 1, last, tern_scalar_int(-100));
}

tern_tensor *models_decoder_ids(models_model *m, const tern_model_inputs *in)
{
    if (in->decoder_input_ids)
        return in->decoder_input_ids;
    if (models_need(m, in->labels, "decoder_input_ids or labels") != TERN_OK)
        return NULL;
    tern_tensor *y = in->labels;
    if (tern_dim(y) != 2 || tern_size(y, 1) < 1)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_models_call: labels are (N, T)");
    tern_tensor *parts[] = {tern_full(TERN_SHAPE(tern_size(y, 0), 1), tern_scalar_int(m->c.first),
                                      TERN_I64, tern_device(y)),
                            tern_narrow(y, 1, 0, tern_size(y, 1) - 1)};
    tern_tensor *moved = tern_cat(parts, 2, 1);
    tern_tensor *none = moved ? tern_eq_scalar(moved, tern_scalar_int(-100)) : NULL;
    return none ? tern_masked_fill(moved, none, tern_scalar_int(m->c.pad)) : NULL;
}

/* Computes the loss by tern_linear_cross_entropy, without storing all logits. */
static tern_tensor *loss_alone(tern_module *head, tern_tensor *x, tern_tensor *labels)
{
    tern_linear_cross_entropy_options o = {.linear_bias = tern_nn_parameter(head, "bias"),
                                           .dtype = TERN_F32};
    if (tern_dtype_of(x) == TERN_F64)
        o.dtype = TERN_F64;
    x = tern_reshape(x, TERN_SHAPE(-1, tern_size(x, -1)));
    return x ? tern_linear_cross_entropy(x, tern_nn_parameter(head, "weight"), labels, &o) : NULL;
}

/* The loss of float16 and bfloat16 logits is computed in float32, as in transformers. */
static tern_tensor *loss_of(tern_tensor *logits, tern_tensor *labels)
{
    if (logits && tern_dtype_size(tern_dtype_of(logits)) < 4)
        logits = tern_to_dtype(logits, TERN_F32);
    return logits ? tern_cross_entropy(tern_reshape(logits, TERN_SHAPE(-1, tern_size(logits, -1))),
                                       labels, NULL)
                  : NULL;
}

/* Returns the target of each of t tokens, (N t). */
static tern_tensor *labels_of(const models_model *m, const tern_model_inputs *in, int64_t t)
{
    if (tern_dim(in->labels) != 2 || tern_size(in->labels, 1) != t || in->logits_to_keep > 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_models_call: labels (N, T) go with logits of all places");
    tern_tensor *labels = m->kind->encode ? in->labels : shifted(in);
    return labels ? tern_reshape(labels, TERN_SHAPE(-1)) : NULL;
}

tern_status models_loss_of_logits(models_model *m, const tern_model_inputs *in,
                                  tern_model_outputs *out)
{
    if (m->kind->classifies)
        return models_class_loss(in, out);
    tern_tensor *labels = out->logits ? labels_of(m, in, tern_size(out->logits, 1)) : NULL;
    out->loss = labels ? loss_of(out->logits, labels) : NULL;
    return out->loss ? TERN_OK : tern_last_status();
}

/* After quantization a head that was tied has codes of its own, which would not follow updates of
 * the embedding: fails if the embedding is trained. */
static tern_status check_copied(const models_model *m, tern_module *head)
{
    if (!m->copied || !quantize_is(head) || !tern_is_grad_enabled())
        return TERN_OK;
    tern_module *embedding = tern_nn_child(m->module, m->tied);
    bool own = embedding && strcmp(tern_nn_name(embedding), "Embedding") == 0;
    if (!own || !tern_requires_grad(tern_nn_parameter_at(embedding, 0)))
        return TERN_OK;
    return tern_fail(TERN_ERR_STATE,
                     "tern_models_call: the weight of %s requires a gradient, and %s, which was "
                     "tied to it, is quantized and would not follow: train adapters "
                     "(tern_lora_add), or quantize without options.head",
                     m->tied, m->kind->head);
}

tern_status models_token_head(models_model *m, const tern_model_inputs *in, tern_tensor *x,
                              tern_model_outputs *out)
{
    int64_t t = tern_size(x, 1), keep = in->logits_to_keep;
    tern_tensor *labels = NULL;
    if (in->labels && !(labels = labels_of(m, in, t)))
        return tern_last_status();
    tern_module *head = tern_nn_child(m->module, m->kind->head);
    if (!head)
        return tern_last_status();
    TRY(check_copied(m, head));
    double cap = m->c.logit_cap;
    if (keep < 0 && labels && !cap && strcmp(tern_nn_name(head), "Linear") == 0) {
        out->loss = loss_alone(head, x, labels);
        return out->loss ? TERN_OK : tern_last_status();
    }
    if (keep < 0 && labels && !cap && gguf_is_linear(head) && !tern_nn_parameter_at(head, 0)) {
        out->loss = gguf_cross_entropy(head, x, labels);
        return out->loss ? TERN_OK : tern_last_status();
    }
    if (keep > 0 && keep < t)
        x = tern_narrow(x, 1, t - keep, keep);
    out->logits = x ? tern_nn_forward(head, x) : NULL;
    if (cap && out->logits)
        out->logits = tern_mul_scalar(
            tern_tanh(tern_div_scalar(out->logits, tern_scalar_real(cap))), tern_scalar_real(cap));
    if (!out->logits || !labels)
        return out->logits ? TERN_OK : tern_last_status();
    out->loss = loss_of(out->logits, labels);
    return out->loss ? TERN_OK : tern_last_status();
}

tern_status models_class_loss(const tern_model_inputs *in, tern_model_outputs *out)
{
    if (!out->logits)
        return tern_last_status();
    if (!in->labels)
        return TERN_OK;
    out->loss = tern_cross_entropy(out->logits, in->labels, NULL);
    return out->loss ? TERN_OK : tern_last_status();
}

/* ---- the call ---------------------------------------------------------------------------- */

tern_status tern_models_call(tern_module *model, const tern_model_inputs *in,
                             tern_model_outputs *out)
{
    bool parallel;
    models_model *within = models_inside(model, &parallel);
    models_model *m = within ? within : models_of(model, "tern_models_call");
    if (!m)
        return tern_last_status();
    if (!in || !out)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_models_call: %s is NULL", in ? "out" : "in");
    *out = (tern_model_outputs){0};
    tern_status status =
        within ? models_call_inside(model, m, parallel, in, out) : m->kind->call(m, in, out);
    if (status != TERN_OK)
        *out = (tern_model_outputs){0};
    return status;
}

tern_tensor *tern_models_loss(tern_module *model, const tern_model_inputs *in)
{
    tern_model_outputs out;
    if (!in || !in->labels)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_models_loss: %s is NULL",
                              in ? "labels" : "in");
    tern_model_inputs loss_alone_of = *in;
    loss_alone_of.logits_to_keep = -1;
    return tern_models_call(model, &loss_alone_of, &out) == TERN_OK ? out.loss : NULL;
}
