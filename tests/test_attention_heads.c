/* test_attention_heads.c -- attention with heads and transformers: starts, copies,
 * masks, memory, mistakes. */
#include "support.h"
#include <math.h>

typedef tern_multihead_attention_options heads_options;
typedef tern_transformer_layer_options layer_options;

static tern_module *heads(void)
{
    return tern_nn_multihead_attention(4, 2, NULL);
}

static const layer_options small = {.dim_feedforward = 3, .dropout = TERN_ZERO};

static tern_module *transformer(void)
{
    return tern_nn_transformer(&(tern_transformer_options){.d_model = 4,
                                                           .nhead = 2,
                                                           .num_encoder_layers = 1,
                                                           .num_decoder_layers = 1,
                                                           .layer = small});
}

/* ---- how they start ------------------------------------------------------------------------ */

static double largest(tern_tensor *x)
{
    return tern_item(tern_max(tern_abs(x)));
}

static void weights_start_xavier_and_biases_zero(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_multihead_attention(32, 4, NULL);
        double bound = sqrt(6.0 / (4 * 32)), most = largest(tern_nn_parameter(m, "in_proj_weight"));
        assert_true(most <= bound && most > 0.99 * bound);
        assert_true(largest(tern_nn_parameter(m, "in_proj_bias")) == 0);
        assert_true(largest(tern_nn_parameter(m, "out_proj.bias")) == 0);
        assert_true(largest(tern_nn_parameter(m, "out_proj.weight")) > 0);
        tern_nn_free(m);
        m = tern_nn_transformer(&(tern_transformer_options){
            .d_model = 32, .num_encoder_layers = 1, .num_decoder_layers = 1});
        most = largest(tern_nn_parameter(m, "encoder.layers.0.linear1.weight"));
        bound = sqrt(6.0 / (32 + 2048));
        assert_true(most <= bound && most > 0.99 * bound);
        tern_nn_free(m);
    }
}

static void layers_of_a_stack_are_copies_of_their_own(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *one = tern_nn_transformer_encoder_layer(4, 2, &small);
        tern_nn_to_dtype(one, TERN_F64);
        tern_requires_grad_(tern_nn_parameter(one, "norm1.bias"), false);
        tern_module *m = tern_nn_transformer_encoder(one, 3, NULL);
        tern_tensor *a = tern_nn_parameter(m, "layers.0.self_attn.in_proj_weight"),
                    *b = tern_nn_parameter(m, "layers.2.self_attn.in_proj_weight");
        assert_same(a, b);
        assert_true(a != b);
        assert_false(tern_requires_grad(tern_nn_parameter(m, "layers.1.norm1.bias")));
        assert_true(tern_requires_grad(b));
        TERN_NO_GRAD
            tern_zero_(a);
        assert_true(largest(b) > 0);
        tern_nn_free(m);
    }
}

/* ---- what only tern's form has ------------------------------------------------------------- */

static void calls_with_names_are_calls_with_places(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(3, 2, 4), -1, 1, 1), *weights, *y;
        tern_tensor *later = tern_nn_transformer_generate_square_subsequent_mask(3, 0, NULL);
        assert_values(later, 0, -INFINITY, -INFINITY, 0, 0, -INFINITY, 0, 0, 0);
        tern_transformer_masks causal = {
            .src_is_causal = true, .tgt_is_causal = true, .memory_is_causal = true};
        tern_transformer_masks masks = {.src_mask = later, .tgt_mask = later, .memory_mask = later};
        tern_module *m = transformer();
        assert_close(tern_nn_transformer_forward(m, x, x, &causal),
                     tern_nn_transformer_forward(m, x, x, &masks), .abs = 1e-5);
        tern_module *e = tern_nn_child(m, "encoder"), *d = tern_nn_child(m, "decoder.layers.0");
        assert_close(tern_nn_transformer_encoder_forward(e, x, &causal),
                     tern_nn_transformer_encoder_forward(e, x, &masks), .abs = 1e-5);
        assert_close(tern_nn_transformer_decoder_forward(d, x, x, &causal),
                     tern_nn_transformer_decoder_forward(d, x, x, &masks), .abs = 1e-5);
        tern_nn_free(m);
        m = heads();
        y = tern_nn_multihead_attention_forward(
            m, x, x, x,
            &(tern_multihead_attention_masks){.is_causal = true, .no_average_attn_weights = true},
            &weights);
        assert_shape(weights, 2, 2, 3, 3);
        assert_true(tern_item(tern_select(tern_flatten(weights, 0, -1), 0, 1)) == 0);
        assert_close(y,
                     tern_nn_multihead_attention_forward(
                         m, x, x, x, &(tern_multihead_attention_masks){.attn_mask = later}, NULL),
                     .abs = 1e-5);
        tern_nn_free(m);
    }
}

static uint64_t peak_of(const char *device, tern_module *m, int64_t length)
{
    tern_memory_stats before, after;
    assert_ok(tern_empty_cache(device));
    assert_ok(tern_reset_peak_memory_stats(device));
    assert_ok(tern_memory_get_stats(device, &before));
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(length, 2), 0, device), true);
        tern_tensor *hidden = tern_zeros(TERN_SHAPE(length), TERN_BOOL, device);
        tern_tensor *in[] = {x, x, x, hidden}, *y;
        assert_ok(tern_nn_call(m, in, 4, &y, 1));
        assert_ok(tern_backward(tern_sum(y)));
    }
    assert_ok(tern_memory_get_stats(device, &after));
    return after.allocated_peak - before.allocated;
}

static void memory_grows_with_the_length_and_not_with_its_square(void **state)
{
    (void)state;
    tern_module *m = tern_nn_multihead_attention(2, 1, NULL);
    uint64_t half = peak_of("cpu", m, 2048), whole = peak_of("cpu", m, 4096);
    assert_true(whole < (8u << 20)); /* all scores would take 64 MiB */
    assert_true(whole < 3 * half);
    tern_nn_free(m);
}

static void dropout_is_for_training(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m =
            tern_nn_multihead_attention(4, 2, &(heads_options){.dropout = 0.5, .device = device});
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(5, 2, 4), -1, 1, 1);
        tern_tensor *in[] = {x, x, x}, *a[2], *b[2], *c;
        assert_ok(tern_nn_call(m, in, 3, a, 2));
        assert_ok(tern_nn_call(m, in, 3, b, 2));
        assert_true(largest(tern_sub(a[0], b[0])) > 0);
        assert_true(largest(tern_sub(a[1], b[1])) > 0);
        tern_nn_eval(m);
        assert_ok(tern_nn_call(m, in, 3, a, 2));
        assert_ok(tern_nn_call(m, in, 3, &c, 1));
        assert_close(a[0], c, .abs = 1e-5);
        assert_close(tern_sum_dim(a[1], TERN_DIMS(-1), false),
                     tern_ones(TERN_SHAPE(2, 5), TERN_F32, device), .abs = 1e-5);
        tern_nn_free(m);
    }
}

static void numbers_of_other_masks_are_brought_along(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cpu", TERN_F16, TERN_SHAPE(2, 1, 4), -1, 1, 1);
        tern_tensor *bytes = TENSOR("cpu", TERN_U8, TERN_SHAPE(2, 2), 0, 1, 0, 0);
        tern_tensor *f32 = TENSOR("cpu", TERN_F32, TERN_SHAPE(2, 2), 0, -INFINITY, 0, 0);
        tern_tensor *padding = TENSOR("cpu", TERN_F32, TERN_SHAPE(1, 2), 0, 0);
        tern_module *m = tern_nn_to_dtype(heads(), TERN_F16);
        tern_tensor *a = tern_nn_multihead_attention_forward(
            m, x, x, x,
            &(tern_multihead_attention_masks){.attn_mask = bytes, .key_padding_mask = padding},
            NULL);
        tern_tensor *b = tern_nn_multihead_attention_forward(
            m, x, x, x, &(tern_multihead_attention_masks){.attn_mask = f32}, NULL);
        assert_close(a, b, .abs = 2e-3);
        tern_nn_free(m);
    }
}

/* ---- mistakes ------------------------------------------------------------------------------ */

static void refuse(tern_module *m, tern_tensor *query, tern_tensor *key,
                   const tern_multihead_attention_masks *masks, tern_status status,
                   const char *words)
{
    assert_null(tern_nn_multihead_attention_forward(m, query, key, key, masks, NULL));
    assert_error(status, words);
}

static void mistakes_are_told_in_pytorch_s_words(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = heads();
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 2, 4), 0, NULL), *y;
        tern_tensor *flat = tern_ones(TERN_SHAPE(3, 4), 0, NULL);
        tern_tensor *wide = tern_ones(TERN_SHAPE(3, 2, 5), 0, NULL);
        tern_tensor *ints = tern_ones(TERN_SHAPE(2, 3), TERN_I64, NULL);
        tern_tensor *square = tern_ones(TERN_SHAPE(2, 2), TERN_BOOL, NULL);
        refuse(m, x, flat, NULL, TERN_ERR_SHAPE,
               "For batched (3-D) `query`, expected `key` and `value` to be 3-D but found 2-D");
        refuse(m, wide, wide, NULL, TERN_ERR_SHAPE,
               "was expecting embedding dimension of 4, but got 5");
        refuse(m, x, x, &(tern_multihead_attention_masks){.key_padding_mask = ints}, TERN_ERR_DTYPE,
               "only bool and floating types of key_padding_mask are supported");
        refuse(m, x, x, &(tern_multihead_attention_masks){.key_padding_mask = square},
               TERN_ERR_SHAPE, "expecting key_padding_mask shape of (2, 3), but got [2, 2]");
        refuse(m, x, x, &(tern_multihead_attention_masks){.attn_mask = square}, TERN_ERR_SHAPE,
               "The shape of the 2D attn_mask is [2, 2], but should be [3, 3].");
        refuse(m, x, x, &(tern_multihead_attention_masks){.attn_mask = ints}, TERN_ERR_DTYPE,
               "Only float, byte, and bool types are supported for attn_mask, not int64");
        refuse(m, x, NULL, NULL, TERN_ERR_ARGUMENT, "key");
        assert_int_equal(tern_nn_call(m, &x, 1, &y, 1), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "not 1 in and 1 out");
        assert_null(tern_nn_multihead_attention(4, 3, NULL));
        assert_error(TERN_ERR_ARGUMENT, "embed_dim must be divisible by num_heads (4, 3)");
        assert_null(tern_nn_transformer_encoder_layer(
            4, 2, &(layer_options){.activation = (tern_activation)2}));
        assert_error(TERN_ERR_ARGUMENT, "activation should be relu/gelu, not 2");
        assert_null(tern_nn_transformer_encoder(tern_nn_linear(4, 4, NULL), 2,
                                                tern_nn_layer_norm(TERN_SHAPE(4), NULL)));
        assert_error(TERN_ERR_ARGUMENT, "Linear can't be copied");
        assert_null(tern_nn_transformer_encoder(tern_nn_child(m, "out_proj"), 2, NULL));
        assert_error(TERN_ERR_STATE, "is a child of another module already");
        assert_null(tern_nn_transformer_decoder(NULL, 2, tern_nn_identity()));
        assert_error(TERN_ERR_ARGUMENT, "layer");
        tern_nn_free(m);
        m = transformer();
        assert_null(tern_nn_transformer_forward(m, x, wide, NULL));
        assert_error(TERN_ERR_SHAPE, "the feature number of src and tgt must be equal to d_model");
        assert_null(tern_nn_transformer_forward(m, x, tern_narrow(x, 1, 0, 1), NULL));
        assert_error(TERN_ERR_SHAPE, "the batch number of src and tgt must be equal");
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(weights_start_xavier_and_biases_zero),
    TEST(layers_of_a_stack_are_copies_of_their_own),
    TEST(calls_with_names_are_calls_with_places),
    TEST(memory_grows_with_the_length_and_not_with_its_square),
    TEST(dropout_is_for_training),
    TEST(numbers_of_other_masks_are_brought_along),
    TEST(mistakes_are_told_in_pytorch_s_words),
};

TEST_MAIN(tests)
