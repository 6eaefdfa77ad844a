/* embedding.c -- rows of a table by index. */
#include "nn/layers/layer.h"

static tern_tensor *forward(tern_module *self, tern_tensor *indices)
{
    const tern_embedding_options *o = tern_nn_data(self);
    return tern_embedding(indices, tern_nn_parameter(self, "weight"), o);
}

/* Standard normal; the padding row is zero. */
static tern_tensor *make_weight(tern_shape shape, const tern_nn_embedding_options *o,
                                const tern_optional_int *padding)
{
    tern_tensor *weight = tern_nn_init_normal_(tern_empty(shape, o->dtype, o->device), 0, 1);
    if (weight && padding->set)
        TERN_NO_GRAD {
            if (!tern_zero_(tern_select(weight, 0, padding->value)))
                weight = NULL;
        }
    return weight;
}

static tern_status check_padding(tern_optional_int *padding, int64_t rows)
{
    if (!padding->set)
        return TERN_OK;
    if (padding->value < -rows || padding->value >= rows)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_nn_embedding: Padding_idx must be within num_embeddings (%lld of %lld)",
            (long long)padding->value, (long long)rows);
    padding->value += padding->value < 0 ? rows : 0;
    return TERN_OK;
}

static tern_status describe(tern_module *m, int64_t rows, int64_t width,
                            const tern_optional_int *padding)
{
    if (padding->set)
        return tern_nn_set_extra(m, "%lld, %lld, padding_idx=%lld", (long long)rows,
                                 (long long)width, (long long)padding->value);
    return tern_nn_set_extra(m, "%lld, %lld", (long long)rows, (long long)width);
}

static tern_status furnish(tern_module *m, int64_t rows, int64_t width,
                           const tern_nn_embedding_options *o, const tern_optional_int *padding)
{
    tern_tensor *weight = make_weight(TERN_SHAPE(rows, width), o, padding);
    if (!m || !weight)
        return tern_last_status();
    TERN_TRY(tern_layer_parameter(m, "weight", weight));
    return describe(m, rows, width, padding);
}

tern_module *tern_nn_embedding(int64_t num_embeddings, int64_t embedding_dim,
                               const tern_nn_embedding_options *options)
{
    static const tern_nn_embedding_options none;
    const tern_nn_embedding_options *o = options ? options : &none;
    tern_embedding_options how = {.padding_idx = o->padding_idx};
    if (check_padding(&how.padding_idx, num_embeddings) != TERN_OK)
        return NULL;
    tern_module *m = tern_layer("Embedding", forward, &how, sizeof how);
    tern_status status = TERN_OK;
    TERN_SCOPE
        status = furnish(m, num_embeddings, embedding_dim, o, &how.padding_idx);
    return tern_layer_if(m, status);
}
