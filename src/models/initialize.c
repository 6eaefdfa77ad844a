/* initialize.c -- random weights as in transformers' _init_weights: linear layers, convolutions and
 * embeddings are normal with one standard deviation, a field of config.json; biases are 0, norms
 * keep their initialization. */
#include "models/model.h"
#include <string.h>

typedef struct drawing {
    const models_model *m;
    double std;
} drawing;

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), length = strlen(end);
    return n >= length && strcmp(path + n - length, end) == 0;
}

/* Sets the padding token's row of a token embedding to 0 (padding_idx). */
static tern_status clear_padding(const models_model *m, const char *path, tern_tensor *table)
{
    const json_t *pad = json_object_get(m->json, "pad_token_id");
    int64_t row = json_is_integer(pad) ? (int64_t)json_integer_value(pad) : -1;
    if (row < 0 || row >= tern_size(table, 0) ||
        !(ends_in(path, "word_embeddings") || ends_in(path, "embed_tokens")))
        return TERN_OK;
    return tern_zero_(tern_select(table, 0, row)) ? TERN_OK : tern_last_status();
}

static tern_status draw(const char *path, tern_module *layer, void *user)
{
    static const char *const drawn[] = {"Linear", "Conv1D", "Embedding", "Conv2d", "Conv1d"};
    enum { DRAWN = sizeof drawn / sizeof *drawn };
    const drawing *d = user;
    int i = 0;
    if (d->m->tied && strcmp(path, d->m->kind->head) == 0) /* the head shares the embedding's
                                                              weight */
        return TERN_OK;
    while (i < DRAWN && strcmp(tern_nn_name(layer), drawn[i]) != 0)
        i++;
    tern_tensor *weight = i < DRAWN ? tern_nn_parameter_at(layer, 0) : NULL;
    if (!weight || !tern_requires_grad(weight)) /* fixed sinusoidal embeddings are not random */
        return TERN_OK;
    /* GPT-2: the two projections of each block that are added to the residual have a smaller
     * deviation. */
    double std = ends_in(path, ".c_proj") ? d->std / sqrt(2 * (double)d->m->c.layers) : d->std;
    if (!tern_nn_init_normal_(weight, 0, std))
        return tern_last_status();
    if (strcmp(drawn[i], "Embedding") == 0)
        return clear_padding(d->m, path, weight);
    tern_tensor *bias = tern_nn_parameter_at(layer, 1);
    return !bias || tern_nn_init_zeros_(bias) ? TERN_OK : tern_last_status();
}

double models_deviation(const models_model *m)
{
    const char *field = m->kind->spread;
    const json_t *given = field ? json_object_get(m->json, field) : NULL;
    return json_is_number(given) ? json_number_value(given) : 0.02;
}

tern_status models_initialize(models_model *m)
{
    drawing d = {.m = m, .std = models_deviation(m)};
    tern_status status = TERN_OK;
    if (!m->kind->spread)
        return TERN_OK;
    TERN_NO_GRAD
        status = tern_nn_each_module(m->module, draw, &d);
    return status;
}
