/* test_error_kept_nn.c -- modules and losses train while an earlier error is recorded. */
#include "kept.h"

/* ---- modules ----------------------------------------------------------------------------- */

static tern_tensor *classes(int64_t n)
{
    return tern_remainder_scalar(tern_arange(0, (double)n, 1, TERN_I64, NULL), tern_scalar_int(3));
}

/* Forward in training, back, and forward in evaluation; m is freed. */
static bool trains(tern_module *m, tern_tensor *x)
{
    bool fine = m != NULL;
    tern_tensor *y = fine ? tern_nn_forward(m, x) : NULL;
    fine = fine && y && tern_backward(tern_sum(y)) == TERN_OK;
    if (fine && tern_requires_grad(x))
        fine = tern_grad(x) != NULL;
    fine = fine && tern_nn_eval(m) && tern_nn_forward(m, x);
    tern_nn_free(m);
    return fine;
}

/* X(name, its input, module) */
/* clang-format off */
#define MODULES(X)                                                                                 \
    X(linear, numbers(D(2, 3)), tern_nn_linear(3, 4, NULL))                                        \
    X(embedding, classes(4), tern_nn_embedding(3, 2, NULL))                                        \
    X(embedding_bag, tern_reshape(classes(4), D(2, 2)), tern_nn_embedding_bag(3, 2, NULL))         \
    X(layer_norm, numbers(D(2, 3)), tern_nn_layer_norm(D(3), NULL))                                \
    X(rms_norm, numbers(D(2, 3)), tern_nn_rms_norm(D(3), NULL))                                    \
    X(group_norm, numbers(D(2, 4, 3)), tern_nn_group_norm(2, 4, NULL))                             \
    X(local_response_norm, numbers(D(2, 4, 3)), tern_nn_local_response_norm(2, NULL))              \
    X(batch_norm1d, numbers(D(4, 3)), tern_nn_batch_norm1d(3, NULL))                               \
    X(batch_norm2d, numbers(D(2, 3, 2, 2)), tern_nn_batch_norm2d(3, NULL))                         \
    X(batch_norm3d, numbers(D(2, 3, 2, 2, 2)), tern_nn_batch_norm3d(3, NULL))                      \
    X(instance_norm1d, numbers(D(2, 3, 4)), tern_nn_instance_norm1d(3, &(tern_instance_norm_options){.affine = true, .track_running_stats = true})) \
    X(instance_norm2d, numbers(D(2, 3, 2, 2)), tern_nn_instance_norm2d(3, NULL))                   \
    X(conv1d, numbers(D(2, 2, 5)), tern_nn_conv1d(2, 3, D(3), NULL))                               \
    X(conv2d, numbers(D(2, 2, 5, 4)), tern_nn_conv2d(2, 3, D(3), &(tern_conv_options){.padding = D(1), .padding_mode = TERN_PAD_REFLECT})) \
    X(conv3d, numbers(D(1, 2, 3, 3, 3)), tern_nn_conv3d(2, 3, D(2), NULL))                         \
    X(conv_transpose1d, numbers(D(2, 2, 5)), tern_nn_conv_transpose1d(2, 3, D(3), NULL))           \
    X(conv_transpose2d, numbers(D(2, 2, 4, 3)), tern_nn_conv_transpose2d(2, 3, D(3), NULL))        \
    X(max_pool1d, numbers(D(1, 2, 6)), tern_nn_max_pool1d(D(2), NULL))                             \
    X(max_pool2d, numbers(D(1, 2, 6, 4)), tern_nn_max_pool2d(D(2), NULL))                          \
    X(avg_pool2d, numbers(D(1, 2, 6, 4)), tern_nn_avg_pool2d(D(2), NULL))                          \
    X(adaptive_avg_pool2d, numbers(D(1, 2, 6, 4)), tern_nn_adaptive_avg_pool2d(D(2)))              \
    X(adaptive_max_pool2d, numbers(D(1, 2, 6, 4)), tern_nn_adaptive_max_pool2d(D(2)))              \
    X(lp_pool1d, numbers(D(1, 2, 6)), tern_nn_lp_pool1d(2, D(2), NULL))                            \
    X(fractional_max_pool2d, numbers(D(1, 2, 6, 6)), tern_nn_fractional_max_pool2d(D(2), &(tern_fractional_max_pool_options){.output_size = D(3, 3)})) \
    X(upsample, numbers(D(1, 2, 3, 3)), tern_nn_upsample(&(tern_interpolate_options){.scale_factor = {2}, .mode = TERN_INTERPOLATE_BILINEAR})) \
    X(pixel_shuffle, numbers(D(1, 4, 2, 2)), tern_nn_pixel_shuffle(2))                             \
    X(channel_shuffle, numbers(D(1, 4, 2, 2)), tern_nn_channel_shuffle(2))                         \
    X(unfold, numbers(D(1, 2, 4, 4)), tern_nn_unfold(D(2), NULL))                                  \
    X(fold, numbers(D(1, 8, 9)), tern_nn_fold(D(4, 4), D(2), NULL))                                \
    X(reflection_pad2d, numbers(D(1, 2, 4, 4)), tern_nn_reflection_pad2d(D(1)))                    \
    X(replication_pad1d, numbers(D(1, 2, 4)), tern_nn_replication_pad1d(D(1)))                     \
    X(circular_pad2d, numbers(D(1, 2, 4, 4)), tern_nn_circular_pad2d(D(1)))                        \
    X(constant_pad1d, numbers(D(1, 2, 4)), tern_nn_constant_pad1d(D(1), 2))                        \
    X(dropout, numbers(D(2, 3)), tern_nn_dropout(NULL))                                            \
    X(dropout2d, numbers(D(2, 3, 2, 2)), tern_nn_dropout2d(NULL))                                  \
    X(alpha_dropout, numbers(D(2, 3)), tern_nn_alpha_dropout(NULL))                                \
    X(feature_alpha_dropout, numbers(D(2, 3, 2)), tern_nn_feature_alpha_dropout(NULL))             \
    X(relu, numbers(D(2, 3)), tern_nn_relu6())                                    \
    X(glu, numbers(D(2, 4)), tern_nn_glu(-1))                                             \
    X(prelu, numbers(D(2, 3)), tern_nn_prelu(NULL))                                                \
    X(rrelu, numbers(D(2, 3)), tern_nn_rrelu(NULL))                                                \
    X(flatten, numbers(D(2, 3, 2)), tern_nn_flatten())                                             \
    X(unflatten, numbers(D(2, 6)), tern_nn_unflatten(1, D(2, 3)))                                  \
    X(sequential, numbers(D(2, 3)), tern_nn_sequential(tern_nn_linear(3, 4, NULL), tern_nn_batch_norm1d(4, NULL), tern_nn_tanh())) \
    X(weight_norm, numbers(D(2, 3)), tern_nn_weight_norm(tern_nn_linear(3, 4, NULL), "weight", 0)) \
    X(spectral_norm, numbers(D(2, 3)), tern_nn_spectral_norm(tern_nn_linear(3, 4, NULL), "weight", NULL)) \
    X(encoder_layer, numbers(D(3, 2, 4)), tern_nn_transformer_encoder_layer(4, 2, NULL))           \
    X(encoder, numbers(D(3, 2, 4)), tern_nn_transformer_encoder(tern_nn_transformer_encoder_layer(4, 2, NULL), 2, NULL)) \
    X(sinusoidal_encoding, numbers(D(3, 2, 4)), tern_nn_sinusoidal_encoding(4, NULL))              \
    X(learned_encoding, numbers(D(3, 2, 4)), tern_nn_learned_encoding(4, NULL))                    \
    X(rotary_embedding, numbers(D(2, 3, 2, 4)), tern_nn_rotary_embedding(4, NULL))
/* clang-format on */
#define FUNCTION(NAME, INPUT, MODULE)                                                              \
    static bool NAME(void)                                                                         \
    {                                                                                              \
        return trains(MODULE, INPUT);                                                              \
    }
#define ROW(NAME, ...) {#NAME, NAME},
MODULES(FUNCTION)

/* Outputs and gradients of a call with these inputs; m is freed. */
static bool calls(tern_module *m, tern_tensor *const *in, int n, int k)
{
    tern_tensor *out[4] = {NULL}, *sum = NULL;
    bool fine = m && tern_nn_call(m, in, n, out, k) == TERN_OK;
    for (int i = 0; fine && i < k; i++)
        sum = sum ? tern_add(sum, tern_sum(out[i])) : tern_sum(out[i]);
    fine = fine && tern_backward(sum) == TERN_OK;
    tern_nn_free(m);
    return fine;
}
#define CALL(module, k, ...)                                                                       \
    calls(module, (tern_tensor *[]){__VA_ARGS__},                                                  \
          sizeof((tern_tensor *[]){__VA_ARGS__}) / sizeof(tern_tensor *), k)

static bool lstm(void)
{
    return CALL(tern_nn_lstm(3, 2, NULL), 3, numbers(D(4, 2, 3))) &&
           CALL(tern_nn_lstm(3, 2, NULL), 3, numbers(D(4, 3)));
}
static bool gru(void)
{
    return CALL(tern_nn_gru(3, 2, NULL), 2, numbers(D(4, 2, 3)), numbers(D(1, 2, 2)));
}
static bool rnn(void)
{
    return CALL(tern_nn_rnn(3, 2, NULL), 1, numbers(D(4, 2, 3)));
}
static bool cells(void)
{
    return CALL(tern_nn_lstm_cell(3, 2, NULL), 2, numbers(D(4, 3))) &&
           CALL(tern_nn_gru_cell(3, 2, NULL), 1, numbers(D(4, 3))) &&
           CALL(tern_nn_rnn_cell(3, 2, NULL), 1, numbers(D(3)));
}
static bool bilinear(void)
{
    return CALL(tern_nn_bilinear(3, 2, 4, NULL), 1, numbers(D(2, 3)), numbers(D(2, 2)));
}
static bool multihead_attention(void)
{
    tern_tensor *x = numbers(D(3, 2, 4));
    return CALL(tern_nn_multihead_attention(4, 2, NULL), 2, x, x, x);
}
static bool decoder_layer(void)
{
    return CALL(tern_nn_transformer_decoder_layer(4, 2, NULL), 1, numbers(D(3, 2, 4)),
                numbers(D(5, 2, 4)));
}
static bool transformer(void)
{
    tern_transformer_options small = {
        .d_model = 4, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 1};
    return CALL(tern_nn_transformer(&small), 1, numbers(D(3, 2, 4)), numbers(D(5, 2, 4)));
}
static bool adaptive_softmax(void)
{
    return CALL(tern_nn_adaptive_log_softmax_with_loss(4, 6, D(2, 4), NULL), 2, numbers(D(5, 4)),
                tern_arange(0, 5, 1, TERN_I64, NULL));
}
static bool packed_sequence(void)
{
    const int64_t lengths[] = {4, 2};
    tern_packed_sequence x, y;
    tern_tensor *state[2], *there;
    tern_module *m = tern_nn_lstm(3, 2, NULL);
    bool fine =
        tern_nn_pack_padded_sequence(numbers(D(4, 2, 3)), lengths, 2, NULL, &x) == TERN_OK &&
        tern_nn_call_packed(m, &x, NULL, 0, &y, state, 2) == TERN_OK &&
        tern_nn_pad_packed_sequence(&y, NULL, &there);
    tern_nn_free(m);
    return fine;
}

static void modules_train(void **state)
{
    (void)state;
    static const deed deeds[] = {
        MODULES(ROW){"lstm", lstm},
        {"gru", gru},
        {"rnn", rnn},
        {"cells", cells},
        {"bilinear", bilinear},
        {"multihead_attention", multihead_attention},
        {"transformer_decoder_layer", decoder_layer},
        {"transformer", transformer},
        {"adaptive_log_softmax_with_loss", adaptive_softmax},
        {"packed_sequence", packed_sequence},
    };
    each_works_and_keeps_the_error(deeds, sizeof deeds / sizeof *deeds);
}

/* ---- losses ------------------------------------------------------------------------------ */

static bool learns(tern_module *criterion, tern_tensor *x, tern_tensor *target)
{
    tern_tensor *loss = criterion ? tern_nn_loss(criterion, x, target) : NULL;
    bool fine = loss && tern_backward(loss) == TERN_OK && tern_grad(x);
    tern_nn_free(criterion);
    return fine;
}

static tern_tensor *signs(int64_t n)
{
    return tern_sub_scalar(
        tern_mul_scalar(tern_gt_scalar(classes(n), tern_scalar_int(0)), tern_scalar_int(2)),
        tern_scalar_int(1));
}

/* X(name, input, target, criterion) */
/* clang-format off */
#define LOSSES(X)                                                                                  \
    X(mse_loss, numbers(D(2, 3)), numbers(D(2, 3)), tern_nn_mse_loss(NULL))                        \
    X(l1_loss, numbers(D(2, 3)), numbers(D(2, 3)), tern_nn_l1_loss(NULL))                          \
    X(smooth_l1_loss, numbers(D(2, 3)), numbers(D(2, 3)), tern_nn_smooth_l1_loss(NULL))            \
    X(huber_loss, numbers(D(2, 3)), numbers(D(2, 3)), tern_nn_huber_loss(NULL))                    \
    X(cross_entropy_loss, numbers(D(2, 3)), classes(2), tern_nn_cross_entropy_loss(NULL))          \
    X(nll_loss, numbers(D(2, 3)), classes(2), tern_nn_nll_loss(NULL))                              \
    X(kl_div_loss, numbers(D(2, 3)), numbers(D(2, 3)), tern_nn_kl_div_loss(NULL))                  \
    X(bce_loss, numbers(D(2, 3)), numbers(D(2, 3)), tern_nn_bce_loss(NULL))                        \
    X(bce_with_logits_loss, numbers(D(2, 3)), numbers(D(2, 3)), tern_nn_bce_with_logits_loss(NULL)) \
    X(poisson_nll_loss, numbers(D(2, 3)), numbers(D(2, 3)), tern_nn_poisson_nll_loss(NULL))        \
    X(soft_margin_loss, numbers(D(3)), signs(3), tern_nn_soft_margin_loss(NULL))                   \
    X(hinge_embedding_loss, numbers(D(3)), signs(3), tern_nn_hinge_embedding_loss(NULL))           \
    X(multi_margin_loss, numbers(D(2, 3)), classes(2), tern_nn_multi_margin_loss(NULL))            \
    X(multi_label_soft_margin_loss, numbers(D(2, 3)), numbers(D(2, 3)), tern_nn_multi_label_soft_margin_loss(NULL))
/* clang-format on */
#define LOSS(NAME, INPUT, TARGET, CRITERION)                                                       \
    static bool NAME(void)                                                                         \
    {                                                                                              \
        return learns(CRITERION, INPUT, TARGET);                                                   \
    }
LOSSES(LOSS)

static void losses_go_back(void **state)
{
    (void)state;
    static const deed deeds[] = {LOSSES(ROW)};
    each_works_and_keeps_the_error(deeds, sizeof deeds / sizeof *deeds);
}

static const struct CMUnitTest tests[] = {
    TEST(modules_train),
    TEST(losses_go_back),
};
TEST_MAIN(tests)
