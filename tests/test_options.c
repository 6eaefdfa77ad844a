/* test_options.c -- every row of options.def: what NULL, a literal and TERN_DEFAULTS mean, and that a
 * zero that is written is a zero where it is used. */
#include "support.h"
#include "base/option.h"
#include <math.h>
#include <stdio.h>

/* ---- reading ----------------------------------------------------------------------------- */

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* One check a struct: the defaults, by NULL, by a literal without fields and by tern_x_defaults, are
 * those of its rows; fields that are 0 stay 0 when they are marked. */
#define OPTIONS(NAME)                                                                              \
    static void NAME##_defaults(void)                                                              \
    {                                                                                              \
        const tern_##NAME##_options literal = {0}, given = tern_##NAME##_defaults();               \
        tern_##NAME##_options zero = {0};                                                          \
        zero.reserved[0] = TERN_OPTIONS_AS_WRITTEN;                                                \
        const tern_##NAME##_options read[4] = {tern_read_##NAME(NULL), tern_read_##NAME(&literal), \
                                               tern_read_##NAME(&given), given};                   \
        const tern_##NAME##_options none = tern_read_##NAME(&zero);                                \
        assert_true(tern_is_as_written(given.reserved) && tern_is_as_written(none.reserved));      \
        (void)read;
#define EACH_(CONDITION, WHAT)                                                                     \
    for (int i = 0; i < 4; i++)                                                                    \
        if (!(CONDITION))                                                                          \
            fail_msg("%s: default %s, way %d", __func__, WHAT, i);
#define NUMBER(FIELD, DEFAULT)                                                                     \
    EACH_(same((double)read[i].FIELD, DEFAULT), #FIELD)                                            \
    if (none.FIELD != 0)                                                                           \
        fail_msg("%s: %s = 0 is not 0", __func__, #FIELD);
#define COUNT                 NUMBER
#define MAYBE(FIELD, DEFAULT) EACH_(read[i].FIELD.set &&read[i].FIELD.value == (DEFAULT), #FIELD)
#define SIZES(FIELD, DEFAULT)                                                                      \
    EACH_(read[i].FIELD.ndim == 1 && read[i].FIELD.dims[0] == (DEFAULT), #FIELD)
#define PART(FIELD, NAME) EACH_(tern_is_as_written(read[i].FIELD.reserved), #FIELD)
#define END(NAME)         }
#include "base/options.def"

#define OPTIONS(NAME) NAME##_defaults,
static void (*const checks[])(void) = {
#include "base/options.def"
};
enum { STRUCTS = sizeof checks / sizeof *checks };

static void defaults_are_the_same_by_every_way(void **state)
{
    (void)state;
    for (int i = 0; i < STRUCTS; i++)
        checks[i]();
    assert_true(STRUCTS > 80);
}

static void fields_are_set_one_by_one(void **state)
{
    (void)state;
    double zero = 0;
    const tern_adamw_options *o =
        TERN_DEFAULTS(adamw, .beta1 = zero, .weight_decay = 0.5, .amsgrad = true);
    assert_true(o->beta1 == 0 && o->beta2 == 0.999 && o->weight_decay == 0.5 && o->amsgrad);
    const tern_conv_options *c = TERN_DEFAULTS(conv, .stride = TERN_SHAPE(2, 3));
    assert_true(c->stride.dims[1] == 3 && c->dilation.dims[0] == 1 && c->groups == 1);
    assert_true(TERN_DEFAULTS(dropout)->p == 0.5);
    const tern_transformer_options *t = TERN_DEFAULTS(transformer, .layer.dropout = zero);
    assert_true(t->layer.dropout == 0 && t->layer.dim_feedforward == 2048 && t->d_model == 512);
    assert_true(TERN_DEFAULTS(adamw, .eps = TERN_ZERO)->eps == TERN_ZERO);
    assert_true(tern_read_layer_norm(TERN_DEFAULTS(layer_norm, .eps = TERN_ZERO)).eps == 0);
}

/* ---- modules: what they print, or the words that refuse them --------------------------------- */

typedef tern_module *(*maker)(void);
#define MADE(ID, CALL)                                                                             \
    static tern_module *ID(void)                                                                   \
    {                                                                                              \
        return CALL;                                                                               \
    }
/* By NULL, a literal and the defaults; and with one field after the other 0. */
#define THREE(ID, MAKE, ...)                                                                       \
    MADE(ID##_null, MAKE(__VA_ARGS__ NULL))                                                        \
    MADE(ID##_literal, MAKE(__VA_ARGS__ &(tern_##ID##_options){0}))                                \
    MADE(ID##_given, MAKE(__VA_ARGS__ TERN_DEFAULTS(ID)))
#define ZERO(ID, FIELD, MAKE, ...)                                                                 \
    MADE(ID##_##FIELD##_zero, MAKE(__VA_ARGS__ TERN_DEFAULTS(ID, .FIELD = 0)))

THREE(dropout, tern_nn_dropout)
THREE(leaky_relu, tern_nn_leaky_relu)
THREE(elu, tern_nn_elu)
THREE(celu, tern_nn_celu)
THREE(hardshrink, tern_nn_hardshrink)
THREE(softshrink, tern_nn_softshrink)
THREE(hardtanh, tern_nn_hardtanh)
THREE(rrelu, tern_nn_rrelu)
THREE(softplus, tern_nn_softplus)
THREE(prelu, tern_nn_prelu)
THREE(layer_norm, tern_nn_layer_norm, TERN_SHAPE(4), )
THREE(batch_norm, tern_nn_batch_norm1d, 4, )
THREE(group_norm, tern_nn_group_norm, 2, 4, )
THREE(instance_norm, tern_nn_instance_norm1d, 4, )
THREE(rms_norm, tern_nn_rms_norm, TERN_SHAPE(4), )
THREE(local_response_norm, tern_nn_local_response_norm, 2, )
THREE(rnn, tern_nn_lstm, 3, 4, )
THREE(multihead_attention, tern_nn_multihead_attention, 4, 2, )
THREE(transformer_layer, tern_nn_transformer_encoder_layer, 4, 2, )
THREE(position_encoding, tern_nn_sinusoidal_encoding, 4, )
THREE(rotary_embedding, tern_nn_rotary_embedding, 4, )
THREE(embedding, tern_nn_embedding, 3, 4, )
THREE(embedding_bag, tern_nn_embedding_bag, 3, 4, )
THREE(conv, tern_nn_conv1d, 2, 4, TERN_SHAPE(3), )
THREE(conv_transpose, tern_nn_conv_transpose1d, 2, 4, TERN_SHAPE(3), )
THREE(unfold, tern_nn_unfold, TERN_SHAPE(2), )
THREE(max_pool, tern_nn_max_pool1d, TERN_SHAPE(2), )
THREE(avg_pool, tern_nn_avg_pool1d, TERN_SHAPE(2), )
THREE(adaptive_log_softmax_with_loss, tern_nn_adaptive_log_softmax_with_loss, 16, 9, TERN_DIMS(3), )
ZERO(dropout, p, tern_nn_dropout)
ZERO(leaky_relu, negative_slope, tern_nn_leaky_relu)
ZERO(elu, alpha, tern_nn_elu)
ZERO(celu, alpha, tern_nn_celu)
ZERO(hardshrink, lambd, tern_nn_hardshrink)
ZERO(softshrink, lambd, tern_nn_softshrink)
ZERO(hardtanh, min_val, tern_nn_hardtanh)
ZERO(hardtanh, max_val, tern_nn_hardtanh)
ZERO(rrelu, lower, tern_nn_rrelu)
ZERO(softplus, beta, tern_nn_softplus)
ZERO(softplus, threshold, tern_nn_softplus)
ZERO(prelu, num_parameters, tern_nn_prelu)
ZERO(layer_norm, eps, tern_nn_layer_norm, TERN_SHAPE(4), )
ZERO(batch_norm, eps, tern_nn_batch_norm1d, 4, )
ZERO(batch_norm, momentum, tern_nn_batch_norm1d, 4, )
ZERO(group_norm, eps, tern_nn_group_norm, 2, 4, )
ZERO(instance_norm, eps, tern_nn_instance_norm1d, 4, )
ZERO(instance_norm, momentum, tern_nn_instance_norm1d, 4, )
ZERO(rms_norm, eps, tern_nn_rms_norm, TERN_SHAPE(4), )
ZERO(local_response_norm, alpha, tern_nn_local_response_norm, 2, )
ZERO(local_response_norm, beta, tern_nn_local_response_norm, 2, )
ZERO(local_response_norm, k, tern_nn_local_response_norm, 2, )
ZERO(rnn, num_layers, tern_nn_lstm, 3, 4, )
ZERO(multihead_attention, kdim, tern_nn_multihead_attention, 4, 2, )
ZERO(multihead_attention, vdim, tern_nn_multihead_attention, 4, 2, )
ZERO(transformer_layer, dim_feedforward, tern_nn_transformer_encoder_layer, 4, 2, )
ZERO(transformer_layer, dropout, tern_nn_transformer_encoder_layer, 4, 2, )
ZERO(transformer_layer, layer_norm_eps, tern_nn_transformer_encoder_layer, 4, 2, )
ZERO(position_encoding, max_len, tern_nn_sinusoidal_encoding, 4, )
ZERO(embedding, max_norm, tern_nn_embedding, 3, 4, )
ZERO(embedding, norm_type, tern_nn_embedding, 3, 4, )
ZERO(embedding_bag, max_norm, tern_nn_embedding_bag, 3, 4, )
ZERO(embedding_bag, norm_type, tern_nn_embedding_bag, 3, 4, )
ZERO(conv, groups, tern_nn_conv1d, 2, 4, TERN_SHAPE(3), )
ZERO(conv_transpose, groups, tern_nn_conv_transpose1d, 2, 4, TERN_SHAPE(3), )
MADE(spectral_zero, tern_nn_spectral_norm(tern_nn_linear(2, 2, NULL), NULL,
                                          TERN_DEFAULTS(spectral_norm, .n_power_iterations = 0)))
MADE(transformer_zero, tern_nn_transformer(TERN_DEFAULTS(transformer, .d_model = 0)))
MADE(heads_zero, tern_nn_transformer(TERN_DEFAULTS(transformer, .nhead = 0)))
MADE(scaled_zero,
     tern_nn_transformer(TERN_DEFAULTS(transformer, .d_model = 4, .nhead = 2, .layer.dropout = 0,
                                       .layer.dim_feedforward = 3, .num_encoder_layers = 1,
                                       .num_decoder_layers = 1)))

#define SAME(ID)                                                                                   \
    {                                                                                              \
        ID##_null, ID##_literal, ID##_given                                                        \
    }
static const maker threes[][3] = {
    SAME(dropout),
    SAME(leaky_relu),
    SAME(elu),
    SAME(celu),
    SAME(hardshrink),
    SAME(softshrink),
    SAME(hardtanh),
    SAME(rrelu),
    SAME(softplus),
    SAME(prelu),
    SAME(layer_norm),
    SAME(batch_norm),
    SAME(group_norm),
    SAME(instance_norm),
    SAME(rms_norm),
    SAME(local_response_norm),
    SAME(rnn),
    SAME(multihead_attention),
    SAME(transformer_layer),
    SAME(position_encoding),
    SAME(rotary_embedding),
    SAME(embedding),
    SAME(embedding_bag),
    SAME(conv),
    SAME(conv_transpose),
    SAME(unfold),
    SAME(max_pool),
    SAME(avg_pool),
    SAME(adaptive_log_softmax_with_loss),
};

static void modules_print_the_same_by_every_way(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof threes / sizeof *threes; k++) {
        char *text[3];
        for (int i = 0; i < 3; i++) {
            tern_module *m = threes[k][i]();
            assert_non_null(m);
            text[i] = tern_nn_to_text(m);
            tern_nn_free(m);
        }
        assert_string_equal(text[0], text[1]);
        assert_string_equal(text[0], text[2]);
        for (int i = 0; i < 3; i++)
            tern_free_text(text[i]);
    }
    tern_scope_clear();
}

/* What a module prints, or the words of the refusal (TERN_ERR_ARGUMENT). */
static const struct {
    maker make;
    const char *words;
    bool refused;
} zeros[] = {
    {dropout_p_zero, "Dropout(p=0.0", false},
    {leaky_relu_negative_slope_zero, "negative_slope=0.0", false},
    {elu_alpha_zero, "alpha=0.0", false},
    {celu_alpha_zero, "alpha=0.0", false},
    {hardshrink_lambd_zero, "Hardshrink(0.0)", false},
    {softshrink_lambd_zero, "Softshrink(0.0)", false},
    {hardtanh_min_val_zero, "min_val=0.0, max_val=1.0", false},
    {hardtanh_max_val_zero, "min_val=-1.0, max_val=0.0", false},
    {rrelu_lower_zero, "lower=0.0, upper=0.33", false},
    {softplus_beta_zero, "beta=0, threshold=20", false},
    {softplus_threshold_zero, "beta=1, threshold=0", false},
    {prelu_num_parameters_zero, "num_parameters=0", false},
    {layer_norm_eps_zero, "eps=0.0", false},
    {batch_norm_eps_zero, "eps=0.0, momentum=0.1", false},
    {batch_norm_momentum_zero, "eps=1e-05, momentum=0.0", false},
    {group_norm_eps_zero, "eps=0.0", false},
    {instance_norm_eps_zero, "eps=0.0, momentum=0.1", false},
    {instance_norm_momentum_zero, "eps=1e-05, momentum=0.0", false},
    {rms_norm_eps_zero, "eps=0.0", false},
    {local_response_norm_alpha_zero, "alpha=0.0, beta=0.75, k=1.0", false},
    {local_response_norm_beta_zero, "alpha=0.0001, beta=0.0, k=1.0", false},
    {local_response_norm_k_zero, "alpha=0.0001, beta=0.75, k=0.0", false},
    {rnn_num_layers_zero, "num_layers must be above 0 (3, 4, 0)", true},
    {multihead_attention_kdim_zero, "kdim=0 and vdim=4", true},
    {multihead_attention_vdim_zero, "kdim=4 and vdim=0", true},
    {transformer_layer_dim_feedforward_zero, "out_features=0", false},
    {transformer_layer_dropout_zero, "Dropout(p=0.0", false},
    {transformer_layer_layer_norm_eps_zero, "eps=0.0", false},
    {position_encoding_max_len_zero, "max_len must be above 0", true},
    {embedding_max_norm_zero, "max_norm=0.0", false},
    {embedding_norm_type_zero, "norm_type=0.0", false},
    {embedding_bag_max_norm_zero, "max_norm=0.0", false},
    {embedding_bag_norm_type_zero, "norm_type=0.0", false},
    {conv_groups_zero, "groups must be a positive integer", true},
    {conv_transpose_groups_zero, "groups must be a positive integer", true},
    {spectral_zero, "n_power_iterations=0", true},
    {transformer_zero, "", true},
    {heads_zero, "", true},
    {scaled_zero, "Dropout(p=0.0", false},
};

static void zeros_are_zeros_in_modules(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof zeros / sizeof *zeros; k++) {
        tern_module *m = zeros[k].make();
        if (!m != zeros[k].refused)
            fail_msg("'%s': %s", zeros[k].words, m ? "not refused" : tern_last_error());
        if (m) {
            char *text = tern_nn_to_text(m);
            if (!strstr(text, zeros[k].words))
                fail_msg("'%s' is not in %s", zeros[k].words, text);
            tern_free_text(text);
        } else {
            assert_error(TERN_ERR_ARGUMENT, zeros[k].words);
        }
        tern_nn_free(m);
    }
    tern_scope_clear();
}

/* ---- functions, and what modules do not print ------------------------------------------------ */

static tern_tensor *vector(double a, double b)
{
    return TENSOR("cpu", TERN_F64, TERN_SHAPE(2), a, b);
}

static void zeros_are_zeros_in_functions(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = vector(1, 2), *y = vector(1.25, 4), *one = vector(1, 1);
        tern_tensor *zero = vector(0, 0), *off = vector(-1, -1);
#define ITEM(X) tern_item(X)
        assert_true(ITEM(tern_smooth_l1_loss(x, y, TERN_DEFAULTS(smooth_l1_loss, .beta = 0))) ==
                    ITEM(tern_l1_loss(x, y, NULL)));
        assert_null(tern_huber_loss(x, y, TERN_DEFAULTS(huber_loss, .delta = 0)));
        assert_error(TERN_ERR_ARGUMENT, "non-positive values for delta");
        assert_true(
            0 != isinf(ITEM(tern_poisson_nll_loss(
                     zero, one, TERN_DEFAULTS(poisson_nll_loss, .eps = 0, .no_log_input = true)))));
        assert_true(isfinite(ITEM(tern_poisson_nll_loss(
            zero, one, TERN_DEFAULTS(poisson_nll_loss, .no_log_input = true)))));
        assert_true(!isfinite(
            ITEM(tern_gaussian_nll_loss(x, y, zero, TERN_DEFAULTS(gaussian_nll_loss, .eps = 0)))));
        assert_true(
            ITEM(tern_hinge_embedding_loss(x, off, TERN_DEFAULTS(margin_loss, .margin = 0))) == 0);
        assert_true(ITEM(tern_hinge_embedding_loss(vector(0.5, 0.5), off,
                                                   TERN_DEFAULTS(margin_loss))) == 0.5);
        assert_true(ITEM(tern_margin_ranking_loss(one, one, one, TERN_DEFAULTS(margin_loss))) == 0);
        tern_tensor *rows[] = {tern_unsqueeze(x, 0), tern_unsqueeze(y, 0), tern_unsqueeze(zero, 0)};
        assert_null(tern_triplet_margin_loss(rows[0], rows[0], rows[0],
                                             TERN_DEFAULTS(triplet_margin_loss, .margin = 0)));
        assert_error(TERN_ERR_ARGUMENT, "margin must be greater than 0");
        assert_true(ITEM(tern_triplet_margin_loss(rows[0], rows[0], rows[0], NULL)) == 1);
        tern_tensor *first = TENSOR("cpu", TERN_I64, TERN_SHAPE(1), 0);
        assert_null(
            tern_multi_margin_loss(rows[0], first, TERN_DEFAULTS(multi_margin_loss, .p = 0)));
        assert_error(TERN_ERR_ARGUMENT, "only p == 1 and p == 2");
        assert_true(ITEM(tern_multi_margin_loss(tern_unsqueeze(vector(2, 1.5), 0), first,
                                                TERN_DEFAULTS(multi_margin_loss, .margin = 0))) ==
                    0);
        assert_true(ITEM(tern_nll_loss(rows[1], first,
                                       TERN_DEFAULTS(nll_loss, .reduction = TERN_REDUCTION_SUM))) ==
                    -1.25);
        tern_tensor *q = tern_unsqueeze(tern_stack((tern_tensor *[]){x, y}, 2, 0), 0);
        tern_tensor *even = tern_scaled_dot_product_attention(
            q, q, q, TERN_DEFAULTS(scaled_dot_product_attention, .scale = 0));
        assert_true(fabs(ITEM(tern_select(tern_flatten(even, 0, -1), 0, 0)) - 1.125) < 1e-12);
        assert_true(tern_equal(tern_scaled_dot_product_attention(q, q, q, NULL),
                               tern_scaled_dot_product_attention(
                                   q, q, q, TERN_DEFAULTS(scaled_dot_product_attention))));
        assert_null(tern_conv1d(q, q, NULL, TERN_DEFAULTS(conv_function, .groups = 0)));
        assert_error(TERN_ERR_ARGUMENT, "groups");
        tern_tensor *table = tern_stack((tern_tensor *[]){x, y}, 2, 0);
        tern_embedding(first, table, TERN_DEFAULTS(embedding_function));
        assert_values(tern_select(table, 0, 0), 1, 2);
        tern_embedding(first, table, TERN_DEFAULTS(embedding_function, .max_norm = 0));
        assert_values(tern_select(table, 0, 0), 0, 0);
        assert_null(tern_nn_pad_sequence(&x, 0, TERN_DEFAULTS(pad_sequence)));
        tern_clear_error();
        assert_values(tern_nn_pad_sequence(&x, 1, TERN_DEFAULTS(pad_sequence)), 1, 2);
        tern_module *distance =
            tern_nn_pairwise_distance(TERN_DEFAULTS(pairwise_distance, .eps = 0));
        tern_tensor *both[] = {rows[0], rows[0]}, *out;
        assert_ok(tern_nn_call(distance, both, 2, &out, 1));
        assert_true(ITEM(out) == 0);
        tern_nn_free(distance);
        tern_module *prelu = tern_nn_prelu(TERN_DEFAULTS(prelu, .init = 0));
        assert_true(ITEM(tern_nn_parameter(prelu, "weight")) == 0);
        tern_nn_free(prelu);
    }
}

/* ---- training ---------------------------------------------------------------------------- */

static void zeros_are_zeros_in_training(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_linear(2, 1, &(tern_linear_options){.no_bias = true});
        tern_tensor *w = tern_nn_parameter(m, "weight");
        tern_optimizer *o = tern_optim_sgd(m, 0.5, TERN_DEFAULTS(sgd, .momentum = 0.9));
        assert_ok(tern_set_grad(w, TENSOR("cpu", TERN_F32, TERN_SHAPE(1, 2), 3, 4)));
        double count =
            tern_nn_clip_grad_norm_with_(m, 1e9, TERN_DEFAULTS(clip_grad_norm, .norm_type = 0));
        assert_true(count == 1 || count == 2); /* PyTorch's norm of norms: how many are not 0 */
        assert_true(tern_nn_clip_grad_norm_with_(m, 1e9, TERN_DEFAULTS(clip_grad_norm)) == 5);
        tern_averaged_model *average =
            tern_swa_averaged_model(m, TERN_DEFAULTS(averaged_model, .decay = 0));
        assert_non_null(average);
        tern_swa_free(average);
        assert_null(tern_amp_grad_scaler(TERN_DEFAULTS(grad_scaler, .growth_factor = 0)));
        assert_error(TERN_ERR_ARGUMENT, "growth factor");
        assert_null(tern_amp_grad_scaler(TERN_DEFAULTS(grad_scaler, .growth_interval = 0)));
        assert_error(TERN_ERR_ARGUMENT, "growth interval");
        tern_lr_scheduler *s = tern_lr_scheduler_cyclic_lr(
            o, 0.1, 0.5, TERN_DEFAULTS(cyclic_lr, .base_momentum = 0, .step_size_up = 2));
        assert_ok(tern_lr_scheduler_step(s));
        assert_ok(tern_lr_scheduler_step(s));
        assert_true(tern_optim_get_option(o, 0, "momentum") == 0);
        tern_lr_scheduler_free(s);
        assert_null(tern_lr_scheduler_cyclic_lr(
            o, 0.1, 0.5, TERN_DEFAULTS(cyclic_lr, .step_size_up = 0, .step_size_down = 0)));
        assert_error(TERN_ERR_ARGUMENT, "Expected positive step sizes");
        s = tern_lr_scheduler_reduce_lr_on_plateau(
            o, TERN_DEFAULTS(reduce_lr_on_plateau, .factor = 0, .patience = TERN_SOME(0)));
        for (int i = 0; i < 3; i++)
            assert_ok(tern_lr_scheduler_step_metric(s, 1));
        assert_true(tern_optim_get_lr(o) == 0);
        tern_lr_scheduler_free(s);
        tern_optim_free(o);
        assert_ok(tern_set_grad(w, NULL));
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(defaults_are_the_same_by_every_way),  TEST(fields_are_set_one_by_one),
    TEST(modules_print_the_same_by_every_way), TEST(zeros_are_zeros_in_modules),
    TEST(zeros_are_zeros_in_functions),        TEST(zeros_are_zeros_in_training),
};
TEST_MAIN(tests)
