/* test_module.c -- modules being changed and listed: containers, replaced and tied members, state
 * dicts. */
#include "support.h"
#include "base/memory.h"
#include <stdio.h>
#include <stdlib.h>

static tern_module *linear(int64_t in, int64_t out)
{
    return tern_nn_linear(in, out, NULL);
}

static void assert_prints(const tern_module *m, const char *expected)
{
    char *text = tern_nn_to_text(m);
    assert_non_null(text);
    assert_string_equal(text, expected);
    tern_free_text(text);
}

/* ---- containers -------------------------------------------------------------------------- */

static void lists_keep_their_numbers(void **state)
{
    (void)state;
    tern_module *list = tern_nn_module_list(tern_nn_relu(), tern_nn_tanh());
    tern_module *first = tern_nn_identity(), *last = linear(2, 3);
    assert_ptr_equal(tern_nn_append(list, last), last);
    assert_ptr_equal(tern_nn_insert(list, 0, first), first);
    assert_non_null(tern_nn_insert(list, -1, tern_nn_sigmoid()));
    assert_prints(list, "ModuleList(\n"
                        "  (0): Identity()\n"
                        "  (1): ReLU()\n"
                        "  (2): Tanh()\n"
                        "  (3): Sigmoid()\n"
                        "  (4): Linear(in_features=2, out_features=3, bias=True)\n"
                        ")");
    assert_ptr_equal(tern_nn_child_at(list, -1), last);
    assert_string_equal(tern_nn_child_name_at(list, 3), "3");
    assert_ptr_equal(tern_nn_child(list, "0"), first);
    tern_module *taken = tern_nn_take(list, "1");
    assert_string_equal(tern_nn_name(taken), "ReLU");
    tern_nn_free(tern_nn_child(list, "1"));
    assert_prints(list, "ModuleList(\n"
                        "  (0): Identity()\n"
                        "  (1): Sigmoid()\n"
                        "  (2): Linear(in_features=2, out_features=3, bias=True)\n"
                        ")");
    TERN_SCOPE {
        assert_null(tern_nn_forward(list, tern_ones(TERN_SHAPE(2), TERN_F32, NULL)));
        assert_error(TERN_ERR_ARGUMENT,
                     "Module [ModuleList] is missing the required \"forward\" function");
    }
    assert_null(tern_nn_child_at(list, 3));
    assert_error(TERN_ERR_ARGUMENT, "index 3 is out of range (ModuleList has 3 children)");
    assert_null(tern_nn_insert(list, 9, linear(1, 1)));
    assert_error(TERN_ERR_ARGUMENT, "index 9 is out of range");
    assert_null(tern_nn_append(last, tern_nn_relu()));
    assert_error(TERN_ERR_ARGUMENT, "Linear is neither a Sequential nor a ModuleList");
    assert_null(tern_nn_append(list, first));
    assert_error(TERN_ERR_STATE, "Identity is a child of ModuleList already");
    tern_nn_free(taken);
    tern_nn_free(list);
}

static void a_sequential_can_grow(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential_of(NULL, 0);
    assert_non_null(tern_nn_append(m, tern_nn_tanh()));
    assert_non_null(tern_nn_insert(m, 0, tern_nn_relu()));
    TERN_SCOPE
        assert_values(tern_nn_forward(m, TENSOR("cpu", TERN_F32, TERN_SHAPE(2), -1, 0)), 0, 0);
    tern_nn_free(m);
}

static void parameters_are_listed_and_printed(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *a = tern_ones(TERN_SHAPE(2, 3), TERN_F32, NULL),
                    *b = tern_ones(TERN_SHAPE(4), TERN_F64, NULL);
        tern_module *list = tern_nn_parameter_list(a), *dict = tern_nn_parameter_dict();
        assert_ptr_equal(tern_nn_append_parameter(list, b), b);
        assert_ptr_equal(tern_nn_parameter_at(list, 1), b);
        assert_true(tern_requires_grad(b));
        assert_prints(list, "ParameterList(\n"
                            "    (0): Parameter containing: [torch.float32 of size 2x3]\n"
                            "    (1): Parameter containing: [torch.float64 of size 4]\n"
                            ")");
        assert_prints(dict, "ParameterDict()");
        tern_nn_add_parameter(dict, "a", tern_ones(TERN_SHAPE_SCALAR, TERN_F32, NULL));
        tern_module *both = tern_nn_module_dict();
        tern_nn_add(both, "list", list);
        tern_nn_add(both, "dict", dict);
        assert_prints(both, "ModuleDict(\n"
                            "  (list): ParameterList(\n"
                            "      (0): Parameter containing: [torch.float32 of size 2x3]\n"
                            "      (1): Parameter containing: [torch.float64 of size 4]\n"
                            "  )\n"
                            "  (dict): ParameterDict(\n"
                            "      (a): Parameter containing: [torch.float32 of size ]\n"
                            "  )\n"
                            ")");
        assert_int_equal(tern_nn_numel(both), 11);
        tern_nn_free(both);
        assert_null(tern_nn_parameter_list_of((tern_tensor *[]){a, NULL}, 2));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_parameter_list_of");
    }
}

/* ---- replaced and tied members ----------------------------------------------------------- */

static tern_status append(const char *path, tern_tensor *x, void *user)
{
    (void)x;
    strcat(user, path);
    strcat(user, " ");
    return TERN_OK;
}

static tern_status append_module(const char *path, tern_module *m, void *user)
{
    sprintf((char *)user + strlen(user), "%s:%s ", path, tern_nn_name(m));
    return TERN_OK;
}

static void visits_have_prefixes_and_ends(void **state)
{
    (void)state;
    char text[256] = "";
    tern_module *m = tern_nn_sequential(linear(2, 2), tern_nn_sequential(linear(2, 2)));
    tern_nn_set_parameter(m, "1.0.weight", tern_nn_parameter(m, "0.weight"));
    tern_each_options prefix = {.prefix = "model"}, all = {.keep_duplicates = true},
                      own = {.not_recurse = true};
    assert_ok(tern_nn_each_parameter_with(m, append, text, &prefix));
    assert_string_equal(text, "model.0.weight model.0.bias model.1.0.bias ");
    *text = '\0';
    assert_ok(tern_nn_each_parameter_with(m, append, text, &all));
    assert_string_equal(text, "0.weight 0.bias 1.0.weight 1.0.bias ");
    *text = '\0';
    assert_ok(tern_nn_each_parameter_with(tern_nn_child(m, "1"), append, text, &own));
    assert_string_equal(text, "");
    assert_ok(tern_nn_each_module(m, append_module, text));
    assert_string_equal(text, ":Sequential 0:Linear 1:Sequential 1.0:Linear ");
    tern_nn_free(m);
}

static void a_tied_weight_is_one_parameter_under_two_names(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = tern_nn_sequential(linear(3, 3), tern_nn_tanh(), linear(3, 3));
        TERN_SCOPE {
            tern_nn_to(m, device);
            tern_tensor *w = tern_nn_parameter(m, "0.weight");
            assert_ptr_equal(tern_nn_set_parameter(m, "2.weight", w), w);
            assert_int_equal(tern_nn_parameter_count(m), 3);
            assert_int_equal(tern_nn_numel(m), 9 + 3 + 3);
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(4, 3), -1, 1, 1);
            assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
            /* The same by hand: the gradient is the sum of both uses. */
            tern_tensor *v[2] = {tern_requires_grad_(tern_clone(tern_detach(w)), true),
                                 tern_requires_grad_(tern_clone(tern_detach(w)), true)};
            tern_tensor *y = tern_linear(x, v[0], tern_nn_parameter(m, "0.bias"));
            y = tern_linear(tern_tanh(y), v[1], tern_nn_parameter(m, "2.bias"));
            assert_ok(tern_backward(tern_sum(y)));
            assert_close(tern_grad(w), tern_add(tern_grad(v[0]), tern_grad(v[1])), .rel = 1e-5,
                         .abs = 1e-6);
            /* A move leaves it tied. */
            tern_nn_to_dtype(m, TERN_F16);
            assert_ptr_equal(tern_nn_parameter(m, "0.weight"), tern_nn_parameter(m, "2.weight"));
        }
        tern_nn_free(m);
    }
}

static void a_head_is_exchanged(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(linear(2, 3), linear(3, 4)), *head = linear(3, 2);
    tern_nn_requires_grad_(m, false);
    assert_ptr_equal(tern_nn_set_child(m, "1", head), head);
    assert_ptr_equal(tern_nn_child(m, "1"), head);
    tern_optimizer *optimizer = tern_optim_sgd(m, 0.1, NULL);
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(1, 2), TERN_F32, NULL);
        tern_tensor *before = tern_clone(tern_nn_parameter(m, "0.weight"));
        tern_tensor *bias = tern_clone(tern_detach(tern_nn_parameter(head, "bias")));
        assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
        assert_ok(tern_optim_step(optimizer));
        assert_null(tern_grad(tern_nn_parameter(m, "0.weight")));
        assert_same(tern_nn_parameter(m, "0.weight"), before);
        assert_close(tern_nn_parameter(head, "bias"), tern_sub_scalar(bias, TERN_SCALAR(0.1)),
                     .abs = 1e-6);
        tern_tensor *result = tern_mul(tern_nn_parameter(head, "bias"), bias);
        assert_null(tern_nn_set_parameter(m, "1.bias", result));
        assert_error(TERN_ERR_STATE, "Cannot assign non-leaf Tensor to parameter '1.bias'");
        assert_null(tern_nn_set_parameter(m, "1.bais", x));
        assert_error(TERN_ERR_ARGUMENT, "Linear has no attribute `bais`");
        assert_null(tern_nn_set_parameter(m, "1.bias", NULL));
        assert_no_error();
        assert_int_equal(tern_nn_parameter_count(head), 1);
        assert_ptr_equal(tern_nn_parameter(m, "0.weight"),
                         tern_nn_parameter_at(tern_nn_child(m, "0"), 0));
        assert_non_null(tern_nn_weight_norm(head, "weight", 0));
        assert_null(tern_nn_set_parameter(m, "1.weight", x));
        assert_error(TERN_ERR_STATE, "1.weight is computed from other parameters");
        assert_null(tern_nn_set_buffer(m, "1.bias", x));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_set_buffer: Linear has no attribute `bias`");
    }
    assert_null(tern_nn_set_child(m, "7", linear(1, 1)));
    assert_error(TERN_ERR_ARGUMENT, "Sequential has no attribute `7`");
    assert_null(tern_nn_set_child(head, "x", m));
    assert_error(TERN_ERR_STATE, "Sequential can't be its own child");
    assert_null(tern_nn_take(m, "7"));
    assert_error(TERN_ERR_ARGUMENT, "tern_nn_take");
    tern_optim_free(optimizer);
    tern_nn_free(m);
}

static void a_layer_is_wrapped_and_unwrapped(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(linear(2, 3), tern_nn_relu(), linear(3, 4)),
                *layer = tern_nn_child(m, "0");
    tern_module *around = tern_nn_module_dict();
    assert_ptr_equal(tern_nn_wrap(m, "0", around, "base_layer"), around);
    assert_ptr_equal(tern_nn_child(m, "0"), around);
    assert_ptr_equal(tern_nn_child(m, "0.base_layer"), layer);
    assert_int_equal(tern_nn_parameter_count(m), 4);
    assert_null(tern_nn_wrap(m, "2", tern_nn_module_dict(), "a.b"));
    assert_error(TERN_ERR_ARGUMENT, "can't contain");
    assert_null(tern_nn_wrap(m, "7", tern_nn_module_dict(), "a"));
    assert_error(TERN_ERR_ARGUMENT, "Sequential has no attribute `7`");
    assert_null(tern_nn_wrap(layer, "0", m, "a"));
    assert_error(TERN_ERR_STATE, "its own child");
    assert_null(tern_nn_unwrap(m, "0", "nothing"));
    assert_error(TERN_ERR_ARGUMENT, "nothing");
    assert_ptr_equal(tern_nn_unwrap(m, "0", "base_layer"), layer);
    assert_ptr_equal(tern_nn_child(m, "0"), layer);
    assert_int_equal(tern_nn_children_count(m), 3);
    TERN_SCOPE
        assert_shape(tern_nn_forward(m, tern_ones(TERN_SHAPE(1, 2), TERN_F32, NULL)), 1, 4);
    tern_nn_free(m);
}

/* ---- state dicts ------------------------------------------------------------------------- */

static tern_module *with_buffers(void)
{
    tern_module *m = tern_nn_sequential(linear(2, 3), linear(3, 1));
    TERN_SCOPE {
        tern_nn_add_buffer(m, "steps", tern_zeros(TERN_SHAPE(1), TERN_I64, NULL));
        tern_nn_add_buffer_with(m, "cache", tern_zeros(TERN_SHAPE(5), TERN_F32, NULL), false);
    }
    return m;
}

static void a_state_dict_has_names_and_shares_elements(void **state)
{
    (void)state;
    static const char *const keys[] = {"steps", "0.weight", "0.bias", "1.weight", "1.bias"};
    tern_module *m = with_buffers();
    tern_state_dict *dict = tern_nn_state_dict(m), *kept = tern_state_dict_clone(dict);
    assert_int_equal(tern_state_dict_count(dict), 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(tern_state_dict_key_at(dict, i), keys[i]);
    assert_false(tern_requires_grad(tern_state_dict_get(dict, "0.weight")));
    assert_null(tern_state_dict_get(dict, "cache"));
    TERN_SCOPE
        TERN_NO_GRAD
            tern_fill_(tern_nn_parameter(m, "1.bias"), TERN_SCALAR(7));
    assert_values(tern_state_dict_at(dict, 4), 7);
    assert_true(tern_item(tern_state_dict_at(kept, 4)) < 1);
    assert_ok(tern_nn_load_state_dict(m, kept, NULL));
    assert_same(tern_nn_parameter(m, "1.bias"), tern_state_dict_get(kept, "1.bias"));
    assert_null(tern_state_dict_at(dict, 5));
    assert_error(TERN_ERR_ARGUMENT, "index 5 is out of range (of 5)");
    tern_state_dict_free(kept);
    tern_state_dict_free(dict);
    tern_nn_free(m);
}

static void tied_weights_are_there_under_both_names(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(linear(2, 2), linear(2, 2));
    tern_nn_set_parameter(m, "1.weight", tern_nn_parameter(m, "0.weight"));
    tern_state_dict *dict = tern_nn_state_dict(m);
    assert_int_equal(tern_state_dict_count(dict), 4);
    assert_same(tern_state_dict_get(dict, "0.weight"), tern_state_dict_get(dict, "1.weight"));
    assert_ok(tern_nn_load_state_dict(m, dict, NULL));
    tern_state_dict_free(dict);
    tern_nn_free(m);
}

static void what_does_not_fit_is_told_and_nothing_is_copied(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(linear(2, 3), linear(3, 1));
    tern_state_dict *dict = tern_state_dict_new(), *before = tern_nn_state_dict(m);
    tern_state_dict *copy = tern_state_dict_clone(before);
    TERN_SCOPE {
        assert_ok(
            tern_state_dict_set(dict, "0.weight", tern_ones(TERN_SHAPE(2, 2), TERN_F32, NULL)));
        assert_ok(tern_state_dict_set(dict, "x", tern_ones(TERN_SHAPE(1), TERN_F32, NULL)));
        assert_ok(tern_state_dict_set(dict, "1.bias", tern_ones(TERN_SHAPE(1), TERN_F32, NULL)));
        assert_int_equal(tern_nn_load_state_dict(m, dict, NULL), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE,
                     "Error(s) in loading state_dict for Sequential:\n"
                     "\tMissing key(s) in state_dict: \"0.bias\", \"1.weight\". \n"
                     "\tUnexpected key(s) in state_dict: \"x\". \n"
                     "\tsize mismatch for 0.weight: copying a param with shape torch.Size([2, 2]) "
                     "from checkpoint, the shape in current model is torch.Size([3, 2]).");
        for (int i = 0; i < 4; i++)
            assert_same(tern_state_dict_at(before, i), tern_state_dict_at(copy, i));
        assert_int_equal(tern_state_dict_remove(dict, "y"), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "there is no \"y\"");
        assert_int_equal(tern_nn_load_state_dict(m, NULL, NULL), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_load_state_dict");
    }
    tern_state_dict_free(copy);
    tern_state_dict_free(before);
    tern_state_dict_free(dict);
    tern_nn_free(m);
}

static void note_missing(const char *key, void *user)
{
    sprintf((char *)user + strlen(user), "-%s ", key);
}

static void note_unexpected(const char *key, void *user)
{
    sprintf((char *)user + strlen(user), "+%s ", key);
}

static void loading_loosely_copies_what_is_there(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        char text[256] = "";
        tern_module *m = tern_nn_sequential(linear(2, 3), linear(3, 1));
        tern_state_dict *dict = tern_state_dict_new();
        TERN_SCOPE {
            tern_nn_to(m, device);
            /* From another device and dtype, over an entry that was there. */
            tern_state_dict_set(dict, "0.bias", tern_ones(TERN_SHAPE(9), TERN_F32, NULL));
            tern_state_dict_set(dict, "0.bias", TENSOR("cpu", TERN_F16, TERN_SHAPE(3), 1, 2, 3));
            tern_state_dict_set(dict, "head", tern_ones(TERN_SHAPE(9), TERN_F32, NULL));
            tern_load_state_dict_options loose = {.no_strict = true,
                                                  .missing = note_missing,
                                                  .unexpected = note_unexpected,
                                                  .user = text};
            assert_ok(tern_nn_load_state_dict(m, dict, &loose));
            assert_string_equal(text, "-0.weight -1.weight -1.bias +head ");
            tern_tensor *bias = tern_nn_parameter(m, "0.bias");
            assert_values(bias, 1, 2, 3);
            assert_int_equal(tern_dtype_of(bias), TERN_F32);
            assert_true(tern_requires_grad(bias) && tern_is_leaf(bias));
        }
        tern_state_dict_free(dict);
        tern_nn_free(m);
    }
}

/* ---- the summary ------------------------------------------------------------------------- */

static void a_summary_counts_what_is_there(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = tern_nn_sequential(
            linear(10, 20), tern_nn_relu(),
            tern_nn_sequential(tern_nn_dropout(NULL), linear(20, 20), linear(20, 200)));
        tern_nn_to(m, device);
        tern_nn_requires_grad_(tern_nn_child(m, "0"), false);
        tern_requires_grad_(tern_nn_parameter(m, "2.2.bias"), false);
        tern_nn_train(tern_nn_child(m, "0"), false);
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(2, 10), TERN_F32, device);
            char *text = tern_nn_summary(m, &x, 1, NULL);
            assert_non_null(text);
            assert_string_equal(text,
                                "Layer              Output shape       Parameters  Trained\n"
                                "============================================================\n"
                                "Sequential         [2, 200]                   --  --\n"
                                "  (0): Linear      [2, 20]                   220  no\n"
                                "  (1): ReLU        [2, 20]                    --  --\n"
                                "  (2): Sequential  [2, 200]                   --  --\n"
                                "    (0): Dropout   [2, 20]                    --  --\n"
                                "    (1): Linear    [2, 20]                   420  yes\n"
                                "    (2): Linear    [2, 200]                4,200  partly\n"
                                "============================================================\n"
                                "Parameters                          4,840\n"
                                "  trained                           4,420\n"
                                "  not trained                         420\n"
                                "Bytes of parameters                19,360\n"
                                "Bytes of buffers                        0\n"
                                "Bytes of layers' results            2,240\n");
            tern_free_text(text);
            /* Without a run, to the first depth. */
            text = tern_nn_summary(m, NULL, 0, &(tern_summary_options){.depth = 1});
            assert_non_null(strstr(text, "  (2): Sequential  --  "));
            assert_null(strstr(text, "Dropout"));
            tern_free_text(text);
            x = tern_ones(TERN_SHAPE(2, 9), TERN_F32, device);
            assert_null(tern_nn_summary(m, &x, 1, NULL));
            assert_int_equal(tern_last_status(), TERN_ERR_SHAPE);
            tern_clear_error();
            text = tern_nn_summary(m, NULL, 0, NULL);
            tern_free_text(text);
        }
        assert_false(tern_nn_is_training(tern_nn_child(m, "0")));
        assert_true(tern_nn_is_training(m) && tern_nn_is_training(tern_nn_child(m, "2.0")));
        tern_nn_free(m);
    }
}

static void no_failed_allocation_leaks(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(linear(2, 3), linear(3, 1));
    tern_state_dict *dict = tern_nn_state_dict(m);
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        int64_t before = tern_live_tensors();
        tern_memory_fail_at(n);
        tern_module *list = tern_nn_module_list(tern_nn_relu(), tern_nn_tanh());
        tern_state_dict *clone = tern_state_dict_clone(dict);
        if (clone)
            tern_nn_load_state_dict(m, clone, NULL);
        tern_memory_fail_at(0);
        bool failed = tern_last_status() != TERN_OK;
        tern_clear_error();
        failures += failed;
        tern_nn_free(list);
        tern_state_dict_free(clone);
        assert_int_equal(tern_live_tensors(), before);
        if (!failed)
            break;
    }
    assert_true(failures > 10);
    tern_state_dict_free(dict);
    tern_nn_free(m);
}

static const struct CMUnitTest tests[] = {
    TEST(lists_keep_their_numbers),
    TEST(a_sequential_can_grow),
    TEST(parameters_are_listed_and_printed),
    TEST(visits_have_prefixes_and_ends),
    TEST(a_tied_weight_is_one_parameter_under_two_names),
    TEST(a_head_is_exchanged),
    TEST(a_layer_is_wrapped_and_unwrapped),
    TEST(a_state_dict_has_names_and_shares_elements),
    TEST(tied_weights_are_there_under_both_names),
    TEST(what_does_not_fit_is_told_and_nothing_is_copied),
    TEST(loading_loosely_copies_what_is_there),
    TEST(a_summary_counts_what_is_there),
    TEST(no_failed_allocation_leaks),
};
TEST_MAIN(tests)
