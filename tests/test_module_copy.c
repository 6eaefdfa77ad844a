/* test_module_copy.c -- copies of modules, and their parameters as a list. */
#include "support.h"
#include "base/memory.h"
#include <stdlib.h>

static tern_tensor *input(const char *device)
{
    return tern_randn(TERN_SHAPE(2, 4, 6), TERN_F32, device);
}

/* Layers with parameters, buffers, children and data of their own. */
static tern_module *model(const char *device)
{
    tern_module *m = tern_nn_sequential(
        tern_nn_linear(6, 8, NULL),
        tern_nn_transformer_encoder_layer(
            8, 2, &(tern_transformer_layer_options){.dim_feedforward = 5, .batch_first = true}),
        tern_nn_batch_norm1d(4, NULL), tern_nn_weight_norm(tern_nn_linear(8, 8, NULL), NULL, 0),
        tern_nn_spectral_norm(tern_nn_linear(8, 3, NULL), NULL, NULL),
        tern_nn_dropout(&(tern_dropout_options){.p = 0.25, .inplace = true}),
        tern_nn_layer_norm(TERN_SHAPE(3), NULL));
    return tern_nn_to(m, device);
}

static tern_status compare(const char *path, tern_tensor *x, void *user)
{
    tern_tensor *y = tern_nn_parameter(user, path);
    assert_non_null(y);
    assert_ptr_not_equal(x, y);
    assert_true(tern_equal(x, y));
    assert_int_equal(tern_requires_grad(x), tern_requires_grad(y));
    assert_null(tern_grad(y));
    return TERN_OK;
}

static void a_copy_computes_the_same_with_tensors_of_its_own(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = model(device);
        tern_requires_grad_(tern_nn_parameter(m, "0.bias"), false);
        tern_tensor *x = input(device);
        tern_backward(tern_sum(tern_nn_forward(m, x)));
        tern_module *copy = tern_nn_copy(m);
        assert_non_null(copy);
        assert_ok(tern_nn_each_parameter(m, compare, copy));
        assert_true(tern_equal(tern_nn_buffer(m, "2.running_mean"),
                               tern_nn_buffer(copy, "2.running_mean")));
        char *text = tern_nn_to_text(m), *copied = tern_nn_to_text(copy);
        assert_string_equal(text, copied);
        tern_free_text(text);
        tern_free_text(copied);
        assert_true(tern_nn_is_training(tern_nn_child(copy, "1.dropout")));
        tern_nn_eval(m), tern_nn_eval(copy);
        assert_true(tern_equal(tern_nn_forward(m, x), tern_nn_forward(copy, x)));
        tern_module *evaluated = tern_nn_copy(m);
        assert_false(tern_nn_is_training(tern_nn_child(evaluated, "1.dropout")));
        tern_nn_free(evaluated);
        tern_optimizer *o = tern_optim_sgd(m, 0.1, NULL);
        tern_tensor *before = tern_nn_forward(copy, x);
        tern_backward(tern_sum(tern_nn_forward(m, x)));
        assert_ok(tern_optim_step(o));
        tern_optim_free(o);
        tern_nn_free(m);
        assert_true(tern_equal(before, tern_nn_forward(copy, x)));
        tern_nn_free(copy);
    }
}

static void tied_weights_are_tied_in_the_copy(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_sequential(tern_nn_linear(3, 3, NULL), tern_nn_linear(3, 3, NULL));
        tern_nn_set_parameter(m, "1.weight", tern_nn_parameter(m, "0.weight"));
        tern_nn_set_parameter(m, "1.bias", NULL);
        tern_module *copy = tern_nn_copy(m);
        assert_ptr_equal(tern_nn_parameter(copy, "0.weight"), tern_nn_parameter(copy, "1.weight"));
        assert_ptr_not_equal(tern_nn_parameter(copy, "0.weight"), tern_nn_parameter(m, "0.weight"));
        assert_int_equal(tern_nn_parameter_count(copy), 2);
        tern_nn_free(m);
        tern_nn_free(copy);
    }
}

static tern_status count_runs(tern_module *m, tern_tensor **in, int n, void *user)
{
    (void)m, (void)in, (void)n;
    ++*(int *)user;
    return TERN_OK;
}

static void hooks_are_copied_and_the_parent_is_not(void **state)
{
    (void)state;
    int runs = 0;
    TERN_SCOPE {
        tern_module *m = tern_nn_sequential(tern_nn_relu(), tern_nn_linear(2, 2, NULL));
        int id = tern_nn_register_forward_pre_hook(tern_nn_child(m, "1"), count_runs, &runs);
        tern_module *copy = tern_nn_copy(tern_nn_child(m, "1"));
        tern_nn_forward(copy, tern_ones(TERN_SHAPE(2), TERN_F32, NULL));
        assert_int_equal(runs, 1);
        assert_ok(tern_nn_remove_hook(copy, id));
        tern_nn_forward(m, tern_ones(TERN_SHAPE(2), TERN_F32, NULL));
        assert_int_equal(runs, 2);
        assert_non_null(tern_nn_append(m, copy)); /* it had no parent */
        tern_nn_free(m);
    }
}

/* A stack is made of copies of a layer as it is, with what was changed in it. */
static void layers_of_a_stack_are_deep_copies(void **state)
{
    (void)state;
    tern_module *layer = tern_nn_transformer_encoder_layer(
        4, 2, &(tern_transformer_layer_options){.dim_feedforward = 3});
    assert_non_null(tern_nn_set_child(layer, "dropout1", tern_nn_identity()));
    tern_rng_state before, after;
    assert_ok(tern_get_rng_state("cpu", &before));
    tern_module *m = tern_nn_transformer_encoder(layer, 3, NULL);
    assert_ok(tern_get_rng_state("cpu", &after));
    assert_int_equal(before.offset, after.offset);
    assert_string_equal(tern_nn_name(tern_nn_child(m, "layers.2.dropout1")), "Identity");
    assert_true(tern_equal(tern_nn_parameter(m, "layers.0.linear1.weight"),
                           tern_nn_parameter(m, "layers.2.linear1.weight")));
    tern_nn_free(m);
}

/* ---- data of the user's ---------------------------------------------------------------------- */

typedef struct mine {
    double factor;
    tern_module *child;
} mine;

static tern_tensor *run(tern_module *self, tern_tensor *x)
{
    const mine *data = tern_nn_data(self);
    return tern_mul_scalar(tern_nn_forward(data->child, x), TERN_SCALAR(data->factor));
}

static void *copy_mine(const void *data, tern_module *copy)
{
    mine *m = malloc(sizeof *m);
    *m = *(const mine *)data;
    m->child = tern_nn_child(copy, "child");
    return m;
}

static void *copy_nothing(const void *data, tern_module *copy)
{
    (void)data, (void)copy;
    return NULL;
}

static void data_is_copied_as_its_owner_says(void **state)
{
    (void)state;
    TERN_SCOPE {
        mine *data = malloc(sizeof *data);
        tern_module *m = tern_nn_module("Mine", run, data), *copy = NULL;
        tern_nn_on_free(m, free);
        data->factor = 3;
        data->child = tern_nn_add(m, "child", tern_nn_linear(2, 2, NULL));
        assert_null(tern_nn_copy(m));
        assert_error(TERN_ERR_UNSUPPORTED, "Mine has data of its own; tern_nn_on_copy says");
        assert_ok(tern_nn_on_copy(m, copy_nothing));
        assert_null(tern_nn_copy(m));
        assert_error(TERN_ERR_MEMORY, "the data of Mine was not copied");
        assert_ok(tern_nn_on_copy(m, copy_mine));
        copy = tern_nn_copy(m);
        tern_module *again = tern_nn_copy(copy);
        tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, NULL), *y = tern_nn_forward(m, x);
        tern_nn_free(m);
        assert_true(tern_equal(y, tern_nn_forward(copy, x)));
        tern_nn_free(copy);
        assert_true(tern_equal(y, tern_nn_forward(again, x)));
        tern_nn_free(again);
    }
}

static void what_is_no_leaf_is_not_copied(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_linear(2, 2, NULL);
        tern_nn_add_buffer(m, "computed",
                           tern_mul_scalar(tern_nn_parameter(m, "weight"), TERN_SCALAR(2)));
        assert_null(tern_nn_copy(m));
        assert_error(TERN_ERR_STATE, "'computed' was computed by recorded operations");
        assert_null(tern_nn_copy(NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_copy: m is NULL");
        tern_nn_free(m);
    }
}

/* The n-th allocation fails: nothing leaks, and the original is what it was. */
static void a_copy_without_memory_is_none(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(tern_nn_linear(2, 2, NULL), tern_nn_batch_norm1d(2, NULL));
    int runs = 0, failed = 0;
    tern_nn_register_forward_pre_hook(m, count_runs, &runs);
    const int64_t live = tern_live_tensors();
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        tern_memory_fail_at(n);
        tern_module *copy = tern_nn_copy(m);
        done = tern_memory_fail_at(0) < n;
        if (!copy) {
            failed++;
            assert_error(TERN_ERR_MEMORY, "");
        }
        tern_nn_free(copy);
        tern_scope_clear();
        assert_int_equal(tern_live_tensors(), live);
    }
    assert_true(failed > 10);
    tern_nn_free(m);
}

/* ---- lists ------------------------------------------------------------------------------- */

static void parameters_are_a_list(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(tern_nn_linear(2, 3, NULL), tern_nn_linear(3, 1, NULL));
    tern_tensor *list[5] = {NULL};
    assert_int_equal(tern_nn_parameters(m, list, 3), 4);
    assert_ptr_equal(list[0], tern_nn_parameter(m, "0.weight"));
    assert_ptr_equal(list[2], tern_nn_parameter(m, "1.weight"));
    assert_null(list[3]);
    assert_int_equal(tern_nn_parameters(m, list, 5), 4);
    assert_ptr_equal(list[3], tern_nn_parameter(m, "1.bias"));
    assert_null(list[4]);
    assert_int_equal(tern_nn_parameters(m, NULL, 0), 4);
    assert_int_equal(tern_nn_parameters(m, NULL, 1), -1);
    assert_error(TERN_ERR_ARGUMENT, "tern_nn_parameters: list is NULL");
    assert_int_equal(tern_nn_parameters(NULL, list, 1), -1);
    assert_error(TERN_ERR_ARGUMENT, "m is NULL");
    tern_nn_set_parameter(m, "1.weight", tern_nn_parameter(m, "0.weight"));
    assert_int_equal(tern_nn_parameters(m, list, 5), 3);
    tern_nn_free(m);
}

static const struct CMUnitTest tests[] = {
    TEST(a_copy_computes_the_same_with_tensors_of_its_own),
    TEST(tied_weights_are_tied_in_the_copy),
    TEST(hooks_are_copied_and_the_parent_is_not),
    TEST(layers_of_a_stack_are_deep_copies),
    TEST(data_is_copied_as_its_owner_says),
    TEST(what_is_no_leaf_is_not_copied),
    TEST(a_copy_without_memory_is_none),
    TEST(parameters_are_a_list),
};
TEST_MAIN(tests)
