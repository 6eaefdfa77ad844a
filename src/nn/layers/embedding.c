/* embedding.c -- y = weight[index], rows of a table selected by index. Bags reduce several rows to
 * their sum, mean or maximum. */
#include "base/checked.h"
#include "nn/layers/layer.h"
#include <stdio.h>

/* The settings that both modules have. */
typedef struct table {
    const char *function;
    int64_t rows, width;
    tern_tensor *weight; /* tensor of the caller, or NULL for a new one */
    bool freeze;
    tern_dtype dtype;
    const char *device;
} table;

/* Checks padding_idx and makes it nonnegative. */
static tern_status check_padding(tern_optional_int *padding, const table *t)
{
    if (!padding->set)
        return TERN_OK;
    if (padding->value < tern_size_sub(0, t->rows) || padding->value >= t->rows)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: Padding_idx must be within num_embeddings (%lld of %lld)",
                         t->function, (long long)padding->value, (long long)t->rows);
    padding->value += padding->value < 0 ? t->rows : 0;
    return TERN_OK;
}

/* Returns the caller's table, or a new one from the standard normal distribution with zeros in the
 * padding row. */
static tern_tensor *make_weight(const table *t, const tern_optional_int *padding)
{
    if (t->weight)
        return tern_detach(t->weight);
    tern_tensor *weight =
        tern_nn_init_normal_(tern_empty(TERN_SHAPE(t->rows, t->width), t->dtype, t->device), 0, 1);
    if (weight && padding->set)
        TERN_NO_GRAD {
            if (!tern_zero_(tern_select(weight, 0, padding->value)))
                weight = NULL;
        }
    return weight;
}

/* Sets the text that is printed in the brackets. Bags print `mode` before padding_idx, embeddings
 * have no mode. */
static tern_status describe(tern_module *m, const table *t,
                            const tern_embedding_function_options *o, const char *mode)
{
    char norm[80] = "", padding[48] = "";
    int used = 0;
    if (!isnan(o->max_norm))
        used = snprintf(norm, sizeof norm, ", max_norm=%s", TERN_NUMBER_TEXT(o->max_norm));
    if (o->norm_type != 2)
        snprintf(norm + used, sizeof norm - (size_t)used, ", norm_type=%s",
                 TERN_NUMBER_TEXT(o->norm_type));
    if (o->padding_idx.set)
        snprintf(padding, sizeof padding, ", padding_idx=%lld", (long long)o->padding_idx.value);
    return tern_nn_set_extra(m, "%lld, %lld%s%s%s%s%s", (long long)t->rows, (long long)t->width,
                             mode ? "" : padding, norm,
                             o->scale_grad_by_freq ? ", scale_grad_by_freq=True" : "",
                             mode ? mode : "", mode ? padding : "");
}

/* Adds the table. A pretrained table is shared with the caller and may be frozen. */
static tern_status add_weight(tern_module *m, const table *t,
                              const tern_embedding_function_options *o, const char *mode)
{
    tern_tensor *weight = make_weight(t, &o->padding_idx);
    if (!m || !weight)
        return tern_last_status();
    TERN_TRY(tern_layer_parameter(m, "weight", weight));
    if (t->freeze)
        tern_requires_grad_(weight, false);
    return describe(m, t, o, mode);
}

static tern_status check_pretrained(table *t)
{
    if (!t->weight)
        return tern_fail_argument_null(t->function, "embeddings");
    if (tern_dim(t->weight) != 2)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Embeddings parameter is expected to be 2-dimensional, not %d-D",
                         t->function, tern_dim(t->weight));
    t->rows = tern_size(t->weight, 0);
    t->width = tern_size(t->weight, 1);
    return TERN_OK;
}

/* ---- Embedding ------------------------------------------------------------------------------- */

static tern_tensor *forward(tern_module *self, tern_tensor *indices)
{
    const tern_embedding_function_options *o = tern_nn_data(self);
    return tern_embedding(indices, tern_nn_parameter(self, "weight"), o);
}

static tern_module *make(table *t, const tern_embedding_options *o)
{
    tern_embedding_function_options how = {.padding_idx = o->padding_idx,
                                           .max_norm = o->max_norm,
                                           .norm_type = o->norm_type,
                                           .scale_grad_by_freq = o->scale_grad_by_freq,
                                           .reserved = {TERN_OPTIONS_AS_WRITTEN}};
    if (check_padding(&how.padding_idx, t) != TERN_OK)
        return NULL;
    tern_module *m = tern_layer("Embedding", forward, &how, sizeof how);
    tern_status status = TERN_OK;
    TERN_SCOPE
        status = add_weight(m, t, &how, NULL);
    return tern_layer_if(m, status);
}

tern_module *tern_nn_embedding(int64_t num_embeddings, int64_t embedding_dim,
                               const tern_embedding_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_embedding_options o = tern_read_embedding(options);
    table t = {__func__, num_embeddings, embedding_dim, NULL, false, o.dtype, o.device};
    return make(&t, &o);
}

tern_module *tern_nn_embedding_from_pretrained(tern_tensor *embeddings, bool freeze,
                                               const tern_embedding_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_embedding_options o = tern_read_embedding(options);
    table t = {__func__, .weight = embeddings, .freeze = freeze};
    return check_pretrained(&t) == TERN_OK ? make(&t, &o) : NULL;
}

/* ---- EmbeddingBag ---------------------------------------------------------------------------- */

static tern_status bag_call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                            int k)
{
    tern_embedding_bag_function_options o =
        *(const tern_embedding_bag_function_options *)tern_nn_data(self);
    if (n < 1 || n > 3 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: EmbeddingBag takes indices, offsets and per_sample_weights "
                         "and gives one tensor, not %d and %d",
                         n, k);
    o.per_sample_weights = n > 2 ? in[2] : NULL;
    out[0] = tern_embedding_bag(in[0], tern_nn_parameter(self, "weight"), n > 1 ? in[1] : NULL, &o);
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_module *make_bag(table *t, const tern_embedding_bag_options *o)
{
    static const char *const modes[] = {", mode='mean'", ", mode='sum'", ", mode='max'"};
    tern_embedding_bag_function_options how = {.mode = o->mode,
                                               .include_last_offset = o->include_last_offset,
                                               .padding_idx = o->padding_idx,
                                               .max_norm = o->max_norm,
                                               .norm_type = o->norm_type,
                                               .scale_grad_by_freq = o->scale_grad_by_freq,
                                               .reserved = {TERN_OPTIONS_AS_WRITTEN}};
    if (check_padding(&how.padding_idx, t) != TERN_OK)
        return NULL;
    if (o->mode < TERN_EMBEDDING_BAG_MEAN || o->mode > TERN_EMBEDDING_BAG_MAX)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: mode has to be one of sum, mean or max, not %d", t->function,
                              (int)o->mode);
    tern_embedding_function_options same = {.padding_idx = how.padding_idx,
                                            .max_norm = o->max_norm,
                                            .norm_type = o->norm_type,
                                            .scale_grad_by_freq = o->scale_grad_by_freq,
                                            .reserved = {TERN_OPTIONS_AS_WRITTEN}};
    tern_module *m = tern_layer_loss("EmbeddingBag", bag_call, &how, sizeof how);
    tern_status status = TERN_OK;
    TERN_SCOPE
        status = add_weight(m, t, &same, modes[o->mode]);
    return tern_layer_if(m, status);
}

tern_module *tern_nn_embedding_bag(int64_t num_embeddings, int64_t embedding_dim,
                                   const tern_embedding_bag_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_embedding_bag_options o = tern_read_embedding_bag(options);
    table t = {__func__, num_embeddings, embedding_dim, NULL, false, o.dtype, o.device};
    return make_bag(&t, &o);
}

tern_module *tern_nn_embedding_bag_from_pretrained(tern_tensor *embeddings, bool freeze,
                                                   const tern_embedding_bag_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_embedding_bag_options o = tern_read_embedding_bag(options);
    table t = {__func__, .weight = embeddings, .freeze = freeze};
    return check_pretrained(&t) == TERN_OK ? make_bag(&t, &o) : NULL;
}
