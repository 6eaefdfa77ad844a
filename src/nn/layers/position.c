/* position.c -- positional encodings, which are added to x or rotate queries and keys. */
#include "nn/layers/layer.h"

/* ---- encodings that are added: a table of sines, or a learned table -------------------------- */

typedef struct encoding {
    int64_t width;
    tern_position_encoding_options o;
    const char *table; /* name of the parameter or buffer */
    bool learned;
} encoding;

/* Returns dropout(x + table[:time]). The table is broadcast over the batch. */
static tern_tensor *add_encoding(tern_module *self, tern_tensor *x)
{
    const encoding *e = tern_nn_data(self);
    tern_tensor *table =
        e->learned ? tern_nn_parameter(self, "weight") : tern_nn_buffer(self, "pe");
    int dims = tern_dim(x), time = dims == 3 && e->o.batch_first ? 1 : 0;
    if ((dims != 2 && dims != 3) || tern_size(x, -1) != e->width)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_nn_forward: %s takes (time, batch, %lld), (batch, time, %lld) "
                              "with batch_first, or (time, %lld), not %d dims, the last of %lld",
                              tern_nn_name(self), (long long)e->width, (long long)e->width,
                              (long long)e->width, dims, dims ? (long long)tern_size(x, -1) : 0);
    int64_t length = tern_size(x, time);
    if (length > e->o.max_len)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_nn_forward: %s has %lld places, the sequence %lld",
                              tern_nn_name(self), (long long)e->o.max_len, (long long)length);
    table = tern_narrow(table, 0, 0, length);
    if (dims == 3 && time == 0)
        table = tern_unsqueeze(table, 1);
    return tern_dropout(tern_add(x, table), e->o.dropout, tern_nn_is_training(self));
}

/* Adds the table: a buffer with sin and cos of position / 10000^(2 i / width), or a parameter from
 * N(0, 0.02^2). */
static tern_status add_encoding_table(tern_module *m, const encoding *e)
{
    const tern_position_encoding_options *o = &e->o;
    if (!e->learned) {
        tern_tensor *pe = tern_sinusoidal_table(o->max_len, e->width, o->dtype, o->device);
        TERN_TRY(pe ? tern_layer_buffer(m, "pe", pe) : tern_last_status());
    } else {
        tern_tensor *weight = tern_nn_init_normal_(
            tern_empty(TERN_SHAPE(o->max_len, e->width), o->dtype, o->device), 0, 0.02);
        TERN_TRY(weight ? tern_layer_parameter(m, "weight", weight) : tern_last_status());
    }
    return tern_nn_set_extra(m, "%lld, max_len=%lld%s", (long long)e->width, (long long)o->max_len,
                             o->batch_first ? ", batch_first=True" : "");
}

static tern_module *encoding_of(int64_t width, const tern_position_encoding_options *options,
                                bool learned, const char *name, const char *function)
{
    encoding e = {.width = width, .learned = learned, .o = tern_read_position_encoding(options)};
    if (width < 1 || e.o.max_len < 1 || !(e.o.dropout >= 0 && e.o.dropout <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: width and max_len must be above 0 and dropout from 0 to 1, got "
                              "%lld, %lld and %s",
                              function, (long long)width, (long long)e.o.max_len,
                              TERN_NUMBER_TEXT(e.o.dropout));
    tern_module *m = tern_layer(name, add_encoding, &e, sizeof e);
    tern_status status = m ? TERN_OK : tern_last_status();
    if (m)
        TERN_SCOPE
            status = add_encoding_table(m, &e);
    return tern_layer_if(m, status);
}

tern_module *tern_nn_sinusoidal_encoding(int64_t width,
                                         const tern_position_encoding_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return encoding_of(width, options, false, "SinusoidalEncoding", __func__);
}

tern_module *tern_nn_learned_encoding(int64_t width, const tern_position_encoding_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return encoding_of(width, options, true, "LearnedEncoding", __func__);
}

/* ---- rotary embedding ------------------------------------------------------------------------ */

/* Rotates pairs of features of each tensor by angles proportional to the position (Su et al.
 * 2021). */
static tern_status rotate(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                          int k)
{
    const tern_rotary_embedding_options *o = tern_nn_data(self);
    tern_rotary_embedding_function_options how = {.interleaved = o->interleaved};
    if (n != k || n < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: %s gives as many tensors as it takes, not %d for %d",
                         tern_nn_name(self), k, n);
    for (int i = 0; i < n; i++) {
        out[i] = tern_rotary_embedding(in[i], tern_nn_buffer(self, "cos"),
                                       tern_nn_buffer(self, "sin"), &how);
        if (!out[i])
            return tern_last_status();
    }
    return TERN_OK;
}

/* Adds buffers with the cos and sin of every position and frequency. */
static tern_status add_rotary_tables(tern_module *m, int64_t dim,
                                     const tern_rotary_embedding_options *o)
{
    tern_tensor *cos, *sin;
    TERN_TRY(tern_rotary_tables(o->max_len, dim, o->base, o->dtype, o->device, &cos, &sin));
    TERN_TRY(tern_layer_buffer(m, "cos", cos));
    TERN_TRY(tern_layer_buffer(m, "sin", sin));
    return tern_nn_set_extra(m, "%lld, max_len=%lld, base=%s, interleaved=%s", (long long)dim,
                             (long long)o->max_len, TERN_NUMBER_TEXT(o->base),
                             o->interleaved ? "True" : "False");
}

tern_module *tern_nn_rotary_embedding(int64_t dim, const tern_rotary_embedding_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_rotary_embedding_options o = tern_read_rotary_embedding(options);
    tern_module *m = tern_layer_loss("RotaryEmbedding", rotate, &o, sizeof o);
    tern_status status = m ? TERN_OK : tern_last_status();
    if (m)
        TERN_SCOPE
            status = add_rotary_tables(m, dim, &o);
    return tern_layer_if(m, status);
}
