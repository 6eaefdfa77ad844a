/* test_layers.c -- layers: what they compute, how they start, how they print, what they refuse. */
#include "support.h"
#include "base/memory.h"
#include <math.h>
#include <stdlib.h>

static tern_module *all_layers(void)
{
    return tern_nn_sequential(
        tern_nn_flatten(), tern_nn_linear(784, 32, NULL), tern_nn_relu(),
        tern_nn_dropout(&(tern_dropout_options){.p = 0.25}),
        tern_nn_sequential(tern_nn_linear(32, 16, &(tern_linear_options){.no_bias = true}),
                           tern_nn_gelu(NULL),
                           tern_nn_gelu(&(tern_gelu_options){.approximate = TERN_APPROXIMATE_TANH}),
                           tern_nn_leaky_relu(NULL),
                           tern_nn_leaky_relu(&(tern_leaky_relu_options){.negative_slope = 1e-5}),
                           tern_nn_identity(), tern_nn_silu(), tern_nn_tanh(), tern_nn_sigmoid()));
}

static void layers_print_as_in_pytorch(void **state)
{
    (void)state;
    tern_module *m = all_layers(), *empty = tern_nn_sequential_of(NULL, 0);
    char *text = tern_nn_to_text(m);
    assert_string_equal(text, "Sequential(\n"
                              "  (0): Flatten(start_dim=1, end_dim=-1)\n"
                              "  (1): Linear(in_features=784, out_features=32, bias=True)\n"
                              "  (2): ReLU()\n"
                              "  (3): Dropout(p=0.25, inplace=False)\n"
                              "  (4): Sequential(\n"
                              "    (0): Linear(in_features=32, out_features=16, bias=False)\n"
                              "    (1): GELU(approximate='none')\n"
                              "    (2): GELU(approximate='tanh')\n"
                              "    (3): LeakyReLU(negative_slope=0.01)\n"
                              "    (4): LeakyReLU(negative_slope=1e-05)\n"
                              "    (5): Identity()\n"
                              "    (6): SiLU()\n"
                              "    (7): Tanh()\n"
                              "    (8): Sigmoid()\n"
                              "  )\n"
                              ")");
    tern_free(text);
    text = tern_nn_to_text(empty);
    assert_string_equal(text, "Sequential()");
    tern_free(text);
    tern_nn_free(empty);
    tern_nn_free(m);
}

static tern_module *more_layers(void)
{
    return tern_nn_sequential(
        tern_nn_embedding(10, 3, NULL),
        tern_nn_embedding(10, 3, &(tern_embedding_options){.padding_idx = TERN_SOME(-1)}),
        tern_nn_layer_norm(TERN_SHAPE(8), NULL),
        tern_nn_layer_norm(TERN_SHAPE(2, 8),
                           &(tern_layer_norm_options){.eps = 1e-6, .no_elementwise_affine = true}),
        tern_nn_softmax(-1), tern_nn_log_softmax(1), tern_nn_mse_loss(NULL),
        tern_nn_cross_entropy_loss(NULL));
}

static void tables_norms_and_losses_print_as_in_pytorch(void **state)
{
    (void)state;
    tern_module *m = more_layers();
    char *text = tern_nn_to_text(m);
    assert_string_equal(text, "Sequential(\n"
                              "  (0): Embedding(10, 3)\n"
                              "  (1): Embedding(10, 3, padding_idx=9)\n"
                              "  (2): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
                              "  (3): LayerNorm((2, 8), eps=1e-06, elementwise_affine=False)\n"
                              "  (4): Softmax(dim=-1)\n"
                              "  (5): LogSoftmax(dim=1)\n"
                              "  (6): MSELoss()\n"
                              "  (7): CrossEntropyLoss()\n"
                              ")");
    tern_free(text);
    tern_nn_free(m);
}

/* ---- linear ------------------------------------------------------------------------------ */

static void linear_is_x_times_weight_transposed_plus_bias(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_linear(3, 2, &(tern_linear_options){.device = device});
        tern_set_data_(tern_nn_parameter(m, "weight"),
                       TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6));
        tern_set_data_(tern_nn_parameter(m, "bias"),
                       TENSOR(device, TERN_F32, TERN_SHAPE(2), 10, 20));
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 1, 0, 0, 1, 1, 1);
        tern_tensor *y = tern_nn_forward(m, x);
        assert_values(y, 11, 24, 16, 35);
        assert_ok(tern_backward(tern_sum(y)));
        assert_values(tern_grad(tern_nn_parameter(m, "weight")), 2, 1, 1, 2, 1, 1);
        assert_values(tern_grad(tern_nn_parameter(m, "bias")), 2, 2);
        tern_nn_free(m);
    }
}

static void bilinear_is_a_product_from_both_sides(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_bilinear(2, 3, 1, &(tern_linear_options){.device = device});
        tern_set_data_(tern_nn_parameter(m, "weight"),
                       TENSOR(device, TERN_F32, TERN_SHAPE(1, 2, 3), 1, 2, 3, 4, 5, 6));
        tern_set_data_(tern_nn_parameter(m, "bias"), TENSOR(device, TERN_F32, TERN_SHAPE(1), 10));
        tern_tensor *in[] = {TENSOR(device, TERN_F32, TERN_SHAPE(1, 2), 1, 2),
                             TENSOR(device, TERN_F32, TERN_SHAPE(1, 3), 1, 0, 1)},
                    *y;
        assert_ok(tern_nn_call(m, in, 2, &y, 1));
        assert_values(y, 34);
        char *text = tern_nn_to_text(m);
        assert_string_equal(text,
                            "Bilinear(in1_features=2, in2_features=3, out_features=1, bias=True)");
        tern_free_text(text);
        assert_int_equal(tern_nn_call(m, in, 1, &y, 1), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "not 1 and 1");
        tern_nn_free(m);
    }
}

/* Uniform in +-1/sqrt(in): 1000 numbers are all inside, and come near both ends and the middle. */
static void assert_uniform(tern_tensor *x, double bound)
{
    double *values = test_read(x), low = 1, high = -1, sum = 0;
    int64_t n = tern_numel(x);
    for (int64_t i = 0; i < n; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
        sum += values[i];
    }
    free(values);
    assert_true(low >= -bound && low < -0.98 * bound);
    assert_true(high <= bound && high > 0.98 * bound);
    assert_true(fabs(sum / (double)n) < 0.1 * bound);
}

static void linear_starts_uniform_in_one_over_root_of_inputs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_manual_seed(3);
        tern_module *m = tern_nn_linear(16, 1000, &(tern_linear_options){.device = device});
        assert_uniform(tern_nn_parameter(m, "weight"), 0.25);
        assert_uniform(tern_nn_parameter(m, "bias"), 0.25);
        tern_manual_seed(3);
        tern_module *same = tern_nn_linear(16, 1000, NULL);
        TERN_SCOPE
            assert_same(tern_nn_parameter(m, "weight"), tern_nn_parameter(same, "weight"));
        tern_nn_free(same);
        tern_nn_free(m);
    }
}

static void initial_values_have_the_spread_of_their_formula(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_empty(TERN_SHAPE(100, 50), TERN_F32, NULL);
        tern_manual_seed(1);
        assert_uniform(tern_nn_init_xavier_uniform_(x, 2), 2 * sqrt(6.0 / 150));
        assert_uniform(tern_nn_init_kaiming_uniform_(x, sqrt(5)), 1 / sqrt(50));
        assert_uniform(tern_nn_init_uniform_(x, -0.5, 0.5), 0.5);
        static const double wanted[] = {0.11547, 0.2, 3};
        tern_tensor *normal[3];
        normal[0] = tern_clone(tern_nn_init_xavier_normal_(x, 1));
        normal[1] = tern_clone(tern_nn_init_kaiming_normal_(x, 0));
        normal[2] = tern_clone(tern_nn_init_normal_(x, 0, 3));
        for (int i = 0; i < 3; i++)
            assert_true(fabs(tern_item(tern_std(normal[i], 1)) - wanted[i]) < 0.05 * wanted[i]);
        tern_requires_grad_(x, true);
        assert_ptr_equal(tern_nn_init_ones_(x), x);
        assert_true(tern_is_leaf(x) && tern_item(tern_sum(x)) == 5000);
        tern_nn_init_constant_(x, 0.5);
        tern_nn_init_zeros_(x);
        assert_true(tern_item(tern_sum(x)) == 0);
        assert_null(tern_nn_init_xavier_normal_(tern_ones(TERN_SHAPE(3), TERN_F32, NULL), 1));
        assert_error(TERN_ERR_SHAPE, "Fan in and fan out can not be computed for tensor with fewer "
                                     "than 2 dimensions");
        assert_null(tern_nn_init_kaiming_uniform_(NULL, 0));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_init_kaiming_uniform_");
    }
}

/* ---- others ------------------------------------------------------------------------------ */

static void activations_are_their_operations(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), -1, 0, 0.5, 2);
        const struct {
            tern_module *m;
            tern_tensor *y;
        } cases[] = {
            {tern_nn_relu(), tern_relu(x)},
            {tern_nn_sigmoid(), tern_sigmoid(x)},
            {tern_nn_tanh(), tern_tanh(x)},
            {tern_nn_silu(), tern_silu(x)},
            {tern_nn_gelu(NULL), tern_gelu(x)},
            {tern_nn_gelu(&(tern_gelu_options){.approximate = TERN_APPROXIMATE_TANH}),
             tern_gelu_tanh(x)},
            {tern_nn_leaky_relu(NULL), tern_leaky_relu(x, 0.01)},
            {tern_nn_leaky_relu(&(tern_leaky_relu_options){.negative_slope = TERN_ZERO}),
             tern_relu(x)},
            {tern_nn_identity(), x},
            {tern_nn_softmax(0), tern_softmax(x, 0)},
            {tern_nn_log_softmax(-1), tern_log_softmax(x, -1)},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            assert_values_close(tern_sub(tern_nn_forward(cases[i].m, x), cases[i].y), 0, 0, 0, 0,
                                0);
            tern_nn_free(cases[i].m);
        }
    }
}

static void embedding_looks_up_rows_and_pads_with_zeros(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_embedding_options o = {.padding_idx = TERN_SOME(1), .device = device};
        tern_module *m = tern_nn_embedding(3, 2, &o);
        tern_tensor *weight = tern_nn_parameter(m, "weight");
        tern_tensor *at = TENSOR(device, TERN_I64, TERN_SHAPE(2, 2), 1, 2, 1, 0);
        tern_tensor *y = tern_nn_forward(m, at);
        assert_shape(y, 2, 2, 2);
        assert_values(tern_select(tern_detach(weight), 0, 1), 0, 0);
        assert_values(tern_select(tern_select(tern_detach(y), 0, 0), 0, 0), 0, 0);
        assert_same(tern_select(tern_select(tern_detach(y), 0, 0), 0, 1),
                    tern_select(tern_detach(weight), 0, 2));
        assert_ok(tern_backward(tern_sum(y)));
        assert_values(tern_grad(weight), 1, 1, 0, 0, 1, 1);
        tern_nn_free(m);
    }
}

static void layer_norm_starts_as_the_plain_one(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m =
            tern_nn_layer_norm(TERN_SHAPE(2), &(tern_layer_norm_options){.device = device});
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1, 3, -5, 5);
        assert_values_close(tern_nn_forward(m, x), 1e-4, -1, 1, -1, 1);
        tern_set_data_(tern_nn_parameter(m, "bias"), TENSOR(device, TERN_F32, TERN_SHAPE(2), 7, 8));
        assert_values_close(tern_nn_forward(m, x), 1e-4, 6, 9, 6, 9);
        tern_nn_free(m);
    }
    tern_module *m = tern_nn_layer_norm(TERN_SHAPE(2), &(tern_layer_norm_options){.no_bias = true});
    assert_non_null(tern_nn_parameter(m, "weight"));
    assert_null(tern_nn_parameter(m, "bias"));
    tern_nn_free(m);
}

static void losses_are_their_operations_and_move_with_their_weights(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1, 2, 3, 5);
        tern_tensor *y = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1, 0, 3, 1);
        tern_tensor *target = TENSOR(device, TERN_I64, TERN_SHAPE(2), 0, 1);
        tern_module *mse = tern_nn_mse_loss(NULL);
        tern_module *sum = tern_nn_mse_loss(&(tern_loss_options){.reduction = TERN_REDUCTION_SUM});
        assert_values(tern_nn_loss(mse, x, y), 5);
        assert_values(tern_nn_loss(sum, x, y), 20);
        assert_null(tern_nn_forward(mse, x));
        assert_error(TERN_ERR_ARGUMENT, "MSELoss takes input and target");
        tern_cross_entropy_options o = {.weight = TENSOR("cpu", TERN_F32, TERN_SHAPE(2), 1, 3),
                                        .label_smoothing = 0.1};
        tern_module *entropy = tern_nn_cross_entropy_loss(&o);
        assert_ptr_equal(tern_nn_buffer(entropy, "weight"), o.weight);
        tern_nn_to(entropy, device);
        assert_string_equal(tern_device(tern_nn_buffer(entropy, "weight")), device);
        assert_same(tern_nn_loss(entropy, x, target), tern_cross_entropy(x, target, &o));
        tern_nn_free(entropy);
        tern_nn_free(sum);
        tern_nn_free(mse);
    }
    assert_null(tern_nn_cross_entropy_loss(&(tern_cross_entropy_options){.label_smoothing = 2}));
    assert_error(TERN_ERR_ARGUMENT, "label_smoothing must be between 0.0 and 1.0. Got: 2.0");
}

static void flatten_keeps_the_batch(void **state)
{
    (void)state;
    tern_module *m = tern_nn_flatten();
    TERN_SCOPE
        assert_shape(tern_nn_forward(m, tern_zeros(TERN_SHAPE(2, 3, 4), TERN_F32, NULL)), 2, 12);
    tern_nn_free(m);
}

static void dropout_works_in_training_only(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_dropout(NULL);
        tern_tensor *x = tern_ones(TERN_SHAPE(1000), TERN_F32, device);
        double sum = tern_item(tern_sum(tern_nn_forward(m, x)));
        assert_true(sum > 800 && sum < 1200 && fmod(sum, 2) == 0);
        tern_nn_eval(m);
        assert_values(tern_sum(tern_nn_forward(m, x)), 1000);
        tern_nn_free(m);
    }
}

static void bad_options_are_refused_in_pytorchs_words(void **state)
{
    (void)state;
    assert_null(tern_nn_dropout(&(tern_dropout_options){.p = 1.5}));
    assert_error(TERN_ERR_ARGUMENT, "dropout probability has to be between 0 and 1, but got 1.5");
    assert_null(tern_nn_dropout(&(tern_dropout_options){.p = NAN}));
    assert_error(TERN_ERR_ARGUMENT, "but got nan");
    assert_null(tern_nn_embedding(3, 2, &(tern_embedding_options){.padding_idx = TERN_SOME(3)}));
    assert_error(TERN_ERR_ARGUMENT, "Padding_idx must be within num_embeddings");
    assert_null(tern_nn_layer_norm(TERN_SHAPE_SCALAR, NULL));
    assert_error(TERN_ERR_SHAPE, "Expected normalized_shape to be at least 1-dimensional");
    assert_null(tern_nn_linear(-1, 2, NULL));
    assert_error(TERN_ERR_SHAPE, "-1");
    assert_null(tern_nn_linear(2, 2, &(tern_linear_options){.device = "nowhere"}));
    assert_error(tern_last_status(), "nowhere");
    assert_null(tern_nn_linear(2, 2, &(tern_linear_options){.dtype = TERN_I64}));
    assert_int_equal(tern_last_status(), TERN_ERR_DTYPE);
    tern_clear_error();
}

static void layers_outlive_the_scope_they_were_made_in(void **state)
{
    (void)state;
    int64_t before = tern_live_tensors();
    tern_module *m = NULL;
    TERN_SCOPE
        m = all_layers();
    assert_int_equal(tern_live_tensors(), before + 3);
    TERN_SCOPE
        assert_shape(tern_nn_forward(m, tern_ones(TERN_SHAPE(2, 28, 28), TERN_F32, NULL)), 2, 16);
    tern_nn_free(m);
    assert_int_equal(tern_live_tensors(), before);
}

static void every_failed_allocation_gives_null_and_leaks_nothing(void **state)
{
    (void)state;
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        int64_t before = tern_live_tensors();
        tern_memory_fail_at(n);
        tern_module *m = tern_nn_sequential(all_layers(), more_layers());
        tern_memory_fail_at(0);
        bool failed = tern_last_status() != TERN_OK;
        tern_clear_error();
        assert_true(!m == failed);
        tern_nn_free(m);
        assert_int_equal(tern_live_tensors(), before);
        failures += failed;
        if (!failed)
            break;
    }
    assert_true(failures > 50);
}

static const struct CMUnitTest tests[] = {
    TEST(layers_print_as_in_pytorch),
    TEST(tables_norms_and_losses_print_as_in_pytorch),
    TEST(linear_is_x_times_weight_transposed_plus_bias),
    TEST(bilinear_is_a_product_from_both_sides),
    TEST(linear_starts_uniform_in_one_over_root_of_inputs),
    TEST(initial_values_have_the_spread_of_their_formula),
    TEST(activations_are_their_operations),
    TEST(embedding_looks_up_rows_and_pads_with_zeros),
    TEST(layer_norm_starts_as_the_plain_one),
    TEST(losses_are_their_operations_and_move_with_their_weights),
    TEST(flatten_keeps_the_batch),
    TEST(dropout_works_in_training_only),
    TEST(bad_options_are_refused_in_pytorchs_words),
    TEST(layers_outlive_the_scope_they_were_made_in),
    TEST(every_failed_allocation_gives_null_and_leaks_nothing),
};
TEST_MAIN(tests)
