/* gpt.c -- embedding, blocks of attention and a two-layer network, a head that gives logits.
 *
 * Four modules of our own, each a constructor and a forward function. Parameters have the names
 * they would have in PyTorch: "blocks.0.attention.qkv.weight". */
#include "gpt.h"
#include <stdint.h>
#include <string.h>

/* ---- causal self-attention (Vaswani et al. 2017); data is the number of heads ------------ */

/* (N, T, D) -> (N, heads, T, D / heads) */
static tern_tensor *to_heads(tern_tensor *x, int64_t heads)
{
    tern_shape s = tern_shape_of(x);
    x = tern_view(x, TERN_SHAPE(s.dims[0], s.dims[1], heads, s.dims[2] / heads));
    return tern_transpose(x, 1, 2);
}

static tern_tensor *attention_forward(tern_module *self, tern_tensor *x)
{
    int64_t heads = (int64_t)(intptr_t)tern_nn_data(self);
    tern_tensor *part[3] = {NULL, NULL, NULL}; /* query, key, value */
    tern_split(tern_nn_forward(tern_nn_child(self, "qkv"), x), tern_size(x, 2), 2, part, 3);
    tern_tensor *y = tern_scaled_dot_product_attention(
        to_heads(part[0], heads), to_heads(part[1], heads), to_heads(part[2], heads),
        &(tern_scaled_dot_product_attention_options){.is_causal = true});
    y = tern_reshape(tern_transpose(y, 1, 2), tern_shape_of(x));
    return tern_nn_forward(tern_nn_child(self, "out"), y);
}

static tern_module *attention(int width, int heads)
{
    tern_module *self = tern_nn_module("Attention", attention_forward, (void *)(intptr_t)heads);
    tern_nn_add(self, "qkv", tern_nn_linear(width, 3 * width, NULL));
    tern_nn_add(self, "out", tern_nn_linear(width, width, NULL));
    return self;
}

/* ---- a block: x + attention(norm1(x)), then x + mlp(norm2(x)) ---------------------------- */

static tern_tensor *block_forward(tern_module *self, tern_tensor *x)
{
    tern_tensor *h = tern_nn_forward(tern_nn_child(self, "norm1"), x);
    x = tern_add(x, tern_nn_forward(tern_nn_child(self, "attention"), h));
    h = tern_nn_forward(tern_nn_child(self, "norm2"), x);
    return tern_add(x, tern_nn_forward(tern_nn_child(self, "mlp"), h));
}

static tern_module *block(int width, int heads)
{
    tern_module *self = tern_nn_module("Block", block_forward, NULL);
    tern_nn_add(self, "norm1", tern_nn_layer_norm(TERN_SHAPE(width), NULL));
    tern_nn_add(self, "attention", attention(width, heads));
    tern_nn_add(self, "norm2", tern_nn_layer_norm(TERN_SHAPE(width), NULL));
    tern_nn_add(self, "mlp",
                tern_nn_sequential(tern_nn_linear(width, 4 * width, NULL), tern_nn_gelu(NULL),
                                   tern_nn_linear(4 * width, width, NULL)));
    return self;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static tern_tensor *gpt_forward(tern_module *self, tern_tensor *ids)
{
    int64_t length = tern_size(ids, 1);
    tern_tensor *places = tern_arange(0, (double)length, 1, TERN_I64, tern_device(ids));
    tern_tensor *x = tern_add(tern_nn_forward(tern_nn_child(self, "token"), ids),
                              tern_nn_forward(tern_nn_child(self, "position"), places));
    x = tern_nn_forward(tern_nn_child(self, "blocks"), x);
    x = tern_nn_forward(tern_nn_child(self, "norm"), x);
    return tern_flatten(tern_nn_forward(tern_nn_child(self, "head"), x), 0, 1);
}

tern_module *gpt_new(const gpt_options *options)
{
    int width = options->width;
    tern_module *blocks[64];
    int layers = options->layers < 64 ? options->layers : 64;
    for (int i = 0; i < layers; i++)
        blocks[i] = block(width, options->heads);

    tern_module *self = tern_nn_module("GPT", gpt_forward, NULL);
    tern_nn_add(self, "token", tern_nn_embedding(options->vocabulary, width, NULL));
    tern_nn_add(self, "position", tern_nn_embedding(options->context, width, NULL));
    tern_nn_add(self, "blocks", tern_nn_sequential_of(blocks, layers));
    tern_nn_add(self, "norm", tern_nn_layer_norm(TERN_SHAPE(width), NULL));
    tern_nn_add(
        self, "head",
        tern_nn_linear(width, options->vocabulary, &(tern_linear_options){.no_bias = true}));
    if (options->tied)
        tern_nn_set_parameter(self, "head.weight", tern_nn_parameter(self, "token.weight"));
    if (tern_last_status() == TERN_OK)
        return self;
    tern_nn_free(self);
    return NULL;
}

static tern_status init_parameter(const char *path, tern_tensor *x, void *user)
{
    (void)user;
    if (tern_dim(x) == 2)
        tern_nn_init_normal_(x, 0, 0.02);
    else if (strstr(path, "bias"))
        tern_nn_init_zeros_(x);
    return tern_last_status();
}

tern_status gpt_init(tern_module *gpt)
{
    return tern_nn_each_parameter(gpt, init_parameter, NULL);
}
