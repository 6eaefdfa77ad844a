/* model.c -- a vision transformer (Dosovitskiy et al. 2020): patches are words, a first word that
 * stands for the whole image, an encoder, and a head that reads the first word. */
#include "model.h"

/* ---- (N, 1, 28, 28) -> (N, 1 + patches, width): its own "class" parameter in front ----------- */

static tern_tensor *words_forward(tern_module *self, tern_tensor *x)
{
    enum { ACROSS = SIDE / PATCH };
    int64_t n = tern_size(x, 0);
    x = tern_view(x, TERN_SHAPE(n, ACROSS, PATCH, ACROSS, PATCH));
    x = tern_permute(x, TERN_DIMS(0, 1, 3, 2, 4));
    x = tern_reshape(x, TERN_SHAPE(n, ACROSS * ACROSS, PATCH * PATCH));
    x = tern_nn_forward(tern_nn_child(self, "projection"), x);
    tern_tensor *first = tern_nn_parameter(self, "class");
    first = tern_expand(first, TERN_SHAPE(n, 1, tern_size(first, 2)));
    return tern_cat((tern_tensor *[]){first, x}, 2, 1);
}

static tern_module *words(int width)
{
    tern_module *self = tern_nn_module("Words", words_forward, NULL);
    TERN_SCOPE
        tern_nn_add_parameter(self, "class", tern_zeros(TERN_SHAPE(1, 1, width), 0, NULL));
    tern_nn_add(self, "projection", tern_nn_linear(PATCH * PATCH, width, NULL));
    return self;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static tern_tensor *first_word(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_select(x, 1, 0);
}

tern_module *vit_new(const vit_options *o)
{
    tern_transformer_layer_options layer = {.dim_feedforward = 2 * o->width,
                                            .dropout = TERN_ZERO,
                                            .activation = TERN_ACTIVATION_GELU,
                                            .batch_first = true,
                                            .norm_first = true};
    tern_position_encoding_options places = {.max_len = 1 + (SIDE / PATCH) * (SIDE / PATCH),
                                             .batch_first = true};
    return tern_nn_sequential(
        words(o->width), tern_nn_learned_encoding(o->width, &places),
        tern_nn_transformer_encoder(tern_nn_transformer_encoder_layer(o->width, o->heads, &layer),
                                    o->layers, tern_nn_layer_norm(TERN_SHAPE(o->width), NULL)),
        tern_nn_module("FirstWord", first_word, NULL), tern_nn_linear(o->width, o->classes, NULL));
}
