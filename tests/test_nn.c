/* test_nn.c -- modules: the tree, its names, visits, moves, printing, and failures on the way. */
#include "support.h"
#include "base/memory.h"
#include <stdio.h>

static tern_tensor *twice(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_mul_scalar(x, TERN_SCALAR(2));
}

/* y = x w + b, elementwise. */
static tern_tensor *scale_forward(tern_module *self, tern_tensor *x)
{
    tern_tensor *bias = tern_nn_parameter(self, "bias");
    x = tern_mul(x, tern_nn_parameter(self, "weight"));
    return bias ? tern_add(x, bias) : x;
}

static tern_module *scale(int64_t n, bool bias)
{
    tern_module *m = tern_nn_module("Scale", scale_forward, NULL);
    TERN_SCOPE {
        tern_nn_add_parameter(m, "weight", tern_ones(TERN_SHAPE(n), TERN_F32, NULL));
        tern_nn_add_parameter(m, "bias", bias ? tern_zeros(TERN_SHAPE(n), TERN_F32, NULL) : NULL);
        tern_nn_add_buffer(m, "seen", tern_zeros(TERN_SHAPE(1), TERN_I64, NULL));
        tern_nn_set_extra(m, "%d, bias=%s", (int)n, bias ? "True" : "False");
    }
    return m;
}

static tern_module *model(void)
{
    tern_module *m = tern_nn_module("Model", NULL, NULL);
    tern_nn_add(m, "first", scale(3, true));
    tern_nn_add(m, "block",
                tern_nn_sequential(scale(3, false), tern_nn_module("Twice", twice, NULL)));
    return m;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void paths_lead_to_members(void **state)
{
    (void)state;
    tern_module *m = model();
    assert_ptr_equal(tern_nn_child(m, "block.0"), tern_nn_child_at(tern_nn_child(m, "block"), 0));
    assert_string_equal(tern_nn_name(tern_nn_child(m, "block.1")), "Twice");
    assert_shape(tern_nn_parameter(m, "block.0.weight"), 3);
    assert_true(tern_requires_grad(tern_nn_parameter(m, "first.bias")));
    assert_false(tern_requires_grad(tern_nn_buffer(m, "first.seen")));
    assert_int_equal(tern_nn_children_count(m), 2);
    assert_int_equal(tern_nn_parameter_count(m), 3);
    assert_int_equal(tern_nn_numel(m), 9);
    tern_nn_free(m);
}

static void an_absent_parameter_is_null_without_error(void **state)
{
    (void)state;
    tern_module *m = scale(2, false);
    assert_null(tern_nn_parameter(m, "bias"));
    assert_no_error();
    tern_nn_free(m);
}

static void a_missing_name_lists_those_there_are(void **state)
{
    (void)state;
    static const struct {
        const char *path, *message;
    } cases[] = {
        {"second", "tern_nn_child: Model has no attribute `second` (its children: first, block)"},
        {"block.7", "Sequential has no attribute `7` (its children: 0, 1)"},
        {"block.1.x", "Twice has no attribute `x` (its children: none)"},
        {"", "has no attribute ``"},
        {"block.", "Sequential has no attribute ``"},
    };
    tern_module *m = model();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(tern_nn_child(m, cases[i].path));
        assert_error(TERN_ERR_ARGUMENT, cases[i].message);
    }
    assert_null(tern_nn_parameter(m, "first.wieght"));
    assert_error(TERN_ERR_ARGUMENT,
                 "Scale has no attribute `wieght` (its parameters: weight, bias)");
    assert_null(tern_nn_buffer(m, "first.weight"));
    assert_error(TERN_ERR_ARGUMENT, "(its buffers: seen)");
    tern_nn_free(m);
}

static void bad_names_are_refused(void **state)
{
    (void)state;
    tern_module *m = scale(2, true);
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, NULL);
        assert_null(tern_nn_add_parameter(m, "weight", x));
        assert_error(TERN_ERR_ARGUMENT, "attribute 'weight' already exists");
        assert_null(tern_nn_add_buffer(m, "a.b", x));
        assert_error(TERN_ERR_ARGUMENT, "buffer name can't contain \".\"");
        assert_null(tern_nn_add_parameter(m, "", x));
        assert_error(TERN_ERR_ARGUMENT, "parameter name can't be empty string \"\"");
        assert_false(tern_requires_grad(x));
    }
    assert_null(tern_nn_add(m, "weight", scale(1, true)));
    assert_error(TERN_ERR_ARGUMENT, "attribute 'weight' already exists");
    assert_null(tern_nn_add(m, "a.b", scale(1, true)));
    assert_error(TERN_ERR_ARGUMENT, "module name can't contain \".\", got: a.b");
    assert_int_equal(tern_nn_parameter_count(m), 2);
    tern_nn_free(m);
}

static void only_floating_leaves_become_parameters(void **state)
{
    (void)state;
    tern_module *m = tern_nn_module("M", twice, NULL);
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, NULL), true);
        assert_null(tern_nn_add_parameter(m, "y", tern_mul(x, x)));
        assert_error(TERN_ERR_STATE, "Cannot assign non-leaf Tensor to parameter 'y'");
        assert_null(tern_nn_add_parameter(m, "i", tern_ones(TERN_SHAPE(2), TERN_I64, NULL)));
        assert_error(TERN_ERR_DTYPE, "Only Tensors of floating point dtype can require gradients");
    }
    assert_int_equal(tern_nn_parameter_count(m), 0);
    tern_nn_free(m);
}

/* ---- ownership --------------------------------------------------------------------------- */

static void a_child_has_one_parent(void **state)
{
    (void)state;
    tern_module *a = model(), *b = tern_nn_module("Other", NULL, NULL);
    assert_null(tern_nn_add(b, "first", tern_nn_child(a, "first")));
    assert_error(TERN_ERR_STATE, "Scale is a child of Model already");
    assert_null(tern_nn_add(tern_nn_child(a, "block"), "up", a));
    assert_error(TERN_ERR_STATE, "can't be its own child");
    assert_null(tern_nn_add(b, "nothing", NULL));
    assert_error(TERN_ERR_ARGUMENT, "tern_nn_add");
    tern_nn_free(b);
    assert_int_equal(tern_nn_parameter_count(a), 3);
    tern_nn_free(a);
}

static void a_freed_child_leaves_its_parent(void **state)
{
    (void)state;
    tern_module *m = model();
    tern_nn_free(tern_nn_child(m, "first"));
    assert_int_equal(tern_nn_children_count(m), 1);
    assert_int_equal(tern_nn_parameter_count(m), 1);
    tern_nn_free(m);
}

static int freed;
static void count_free(void *data)
{
    freed += *(int *)data;
}

static void data_is_freed_with_its_module(void **state)
{
    (void)state;
    int one = 1;
    tern_module *m = tern_nn_module("M", twice, &one);
    assert_ptr_equal(tern_nn_data(m), &one);
    assert_ok(tern_nn_on_free(m, count_free));
    freed = 0;
    tern_nn_free(m);
    assert_int_equal(freed, 1);
    tern_nn_free(NULL);
}

static void modules_keep_their_tensors_and_release_them(void **state)
{
    (void)state;
    int64_t before = tern_live_tensors();
    tern_module *m = model();
    assert_int_equal(tern_live_tensors(), before + 5);
    tern_nn_free(m);
    assert_int_equal(tern_live_tensors(), before);
}

static void sequential_with_a_missing_layer_frees_the_others(void **state)
{
    (void)state;
    int64_t before = tern_live_tensors();
    assert_null(tern_nn_sequential(scale(2, true), NULL, scale(3, true)));
    assert_error(TERN_ERR_ARGUMENT, "tern_nn_sequential: layer 1 is NULL");
    tern_module *one = scale(2, true);
    assert_null(tern_nn_sequential(one, one));
    assert_error(TERN_ERR_STATE, "tern_nn_sequential: layer 1 (Scale) is part of a module already");
    assert_int_equal(tern_live_tensors(), before);
}

static tern_module *nothing_leaks_model;
static void every_failed_allocation_gives_null_and_leaks_nothing(void **state)
{
    (void)state;
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        int64_t before = tern_live_tensors();
        tern_memory_fail_at(n);
        nothing_leaks_model = tern_nn_sequential(scale(2, true), scale(2, false));
        tern_memory_fail_at(0);
        bool failed = tern_last_status() != TERN_OK;
        tern_clear_error();
        failures += failed;
        tern_nn_free(nothing_leaks_model);
        assert_int_equal(tern_live_tensors(), before);
        if (!failed)
            break;
    }
    assert_true(failures > 10);
}

/* ---- visits ------------------------------------------------------------------------------ */

static tern_status append(const char *path, tern_tensor *x, void *user)
{
    char *text = user;
    (void)x;
    strcat(text, path);
    strcat(text, " ");
    return TERN_OK;
}

static tern_status append_name(tern_module *m, void *user)
{
    char *text = user;
    strcat(text, tern_nn_name(m));
    strcat(text, " ");
    return strcmp(tern_nn_name(m), "Twice") == 0 ? TERN_ERR_STATE : TERN_OK;
}

static void visits_go_in_the_order_of_state_dict(void **state)
{
    (void)state;
    char text[256] = "";
    tern_module *m = model();
    assert_ok(tern_nn_each_parameter(m, append, text));
    assert_string_equal(text, "first.weight first.bias block.0.weight ");
    *text = '\0';
    assert_ok(tern_nn_each_buffer(m, append, text));
    assert_string_equal(text, "first.seen block.0.seen ");
    *text = '\0';
    assert_int_equal(tern_nn_apply(m, append_name, text), TERN_ERR_STATE);
    assert_string_equal(text, "Scale Scale Twice ");
    tern_nn_free(m);
}

static void a_shared_tensor_is_visited_once(void **state)
{
    (void)state;
    char text[256] = "";
    tern_module *m = model();
    tern_nn_add_parameter(m, "tied", tern_nn_parameter(m, "block.0.weight"));
    assert_ok(tern_nn_each_parameter(m, append, text));
    assert_string_equal(text, "tied first.weight first.bias ");
    assert_int_equal(tern_nn_numel(m), 9);
    tern_nn_free(m);
}

static void modes_reach_every_module(void **state)
{
    (void)state;
    tern_module *m = model();
    assert_true(tern_nn_is_training(tern_nn_child(m, "block.1")));
    assert_ptr_equal(tern_nn_eval(m), m);
    assert_false(tern_nn_is_training(tern_nn_child(m, "block.1")));
    tern_nn_train(m, true);
    assert_true(tern_nn_is_training(m));
    assert_ptr_equal(tern_nn_requires_grad_(m, false), m);
    assert_false(tern_requires_grad(tern_nn_parameter(m, "first.weight")));
    tern_nn_free(m);
}

/* ---- running ----------------------------------------------------------------------------- */

static tern_tensor *no_result(tern_module *self, tern_tensor *x)
{
    (void)self;
    (void)x;
    return NULL;
}

static void sequential_runs_one_after_the_other(void **state)
{
    (void)state;
    tern_module *m = model();
    TERN_SCOPE {
        tern_tensor *x = TENSOR("cpu", TERN_F32, TERN_SHAPE(3), 1, 2, 3);
        assert_values(tern_nn_forward(tern_nn_child(m, "block"), x), 2, 4, 6);
    }
    tern_nn_free(m);
}

static void running_what_cannot_run_is_an_error(void **state)
{
    (void)state;
    tern_module *m = model(), *none = tern_nn_module("Lazy", no_result, NULL);
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(3), TERN_F32, NULL), *out[2];
        assert_null(tern_nn_forward(m, x));
        assert_error(TERN_ERR_ARGUMENT,
                     "Module [Model] is missing the required \"forward\" function");
        assert_null(tern_nn_forward(none, x));
        assert_error(TERN_ERR_ARGUMENT, "Lazy gave no tensor");
        assert_null(tern_nn_forward(NULL, x));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_forward");
        assert_null(tern_nn_forward(none, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_forward");
        assert_int_equal(tern_nn_call(none, (tern_tensor *[]){x, x}, 2, out, 1), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "Lazy takes one tensor and gives one, not 2 and 1");
        assert_null(tern_nn_loss(NULL, x, x));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_loss");
    }
    tern_nn_free(none);
    tern_nn_free(m);
}

/* ---- moves ------------------------------------------------------------------------------- */

static void a_move_keeps_handles_and_takes_gradients_along(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = scale(2, true);
        tern_tensor *weight = tern_nn_parameter(m, "weight");
        assert_ptr_equal(tern_nn_to(m, "cpu"), m);
        TERN_SCOPE {
            assert_ok(tern_set_grad(weight, TENSOR("cpu", TERN_F32, TERN_SHAPE(2), 3, 4)));
            assert_ptr_equal(tern_nn_to(m, device), m);
            tern_nn_to_dtype(m, TERN_BF16);
        }
        assert_ptr_equal(tern_nn_parameter(m, "weight"), weight);
        assert_string_equal(tern_device(weight), device);
        assert_int_equal(tern_dtype_of(weight), TERN_BF16);
        assert_int_equal(tern_dtype_of(tern_nn_buffer(m, "seen")), TERN_I64);
        assert_string_equal(tern_device(tern_nn_buffer(m, "seen")), device);
        assert_true(tern_requires_grad(weight) && tern_is_leaf(weight));
        assert_values(weight, 1, 1);
        assert_values(tern_grad(weight), 3, 4);
        assert_ok(tern_nn_zero_grad(m));
        assert_null(tern_grad(weight));
        tern_nn_free(m);
    }
}

static void a_refused_move_changes_nothing(void **state)
{
    (void)state;
    tern_module *m = scale(2, true);
    assert_null(tern_nn_to(m, "nowhere"));
    assert_int_not_equal(tern_last_status(), TERN_OK);
    tern_clear_error();
    assert_null(tern_nn_to_dtype(m, TERN_I32));
    assert_error(TERN_ERR_DTYPE, "only accepts floating point or complex dtypes, but got desired "
                                 "dtype=int32");
    assert_string_equal(tern_device(tern_nn_parameter(m, "weight")), "cpu");
    assert_int_equal(tern_dtype_of(tern_nn_parameter(m, "weight")), TERN_F32);
    assert_null(tern_nn_to(NULL, "cpu"));
    assert_error(TERN_ERR_ARGUMENT, "tern_nn_to");
    tern_nn_free(m);
}

static void set_data_replaces_elements_under_the_handle(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, NULL), true);
        tern_tensor *y = tern_mul(x, x);
        tern_tensor *data = TENSOR("cpu", TERN_F32, TERN_SHAPE(3), 1, 2, 3);
        assert_ok(tern_set_grad(x, tern_ones(TERN_SHAPE(2), TERN_F32, NULL)));
        assert_ptr_equal(tern_set_data_(x, data), x);
        assert_values(x, 1, 2, 3);
        assert_true(tern_requires_grad(x));
        assert_null(tern_grad(x));
        tern_fill_(data, TERN_SCALAR(7));
        assert_values(x, 7, 7, 7);
        tern_backward_options ones = {.gradient = tern_ones_like(y)};
        assert_int_equal(tern_backward_with(y, &ones), TERN_ERR_STATE);
        tern_clear_error();
        assert_null(tern_set_data_(y, data));
        assert_error(TERN_ERR_STATE, "tern_set_data_");
        assert_null(tern_set_data_(x, tern_ones(TERN_SHAPE(2), TERN_I64, NULL)));
        assert_error(TERN_ERR_DTYPE, "data set to a tensor that requires gradients");
        assert_null(tern_set_data_(x, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_set_data_");
    }
}

/* ---- printing ---------------------------------------------------------------------------- */

static void a_model_prints_as_in_pytorch(void **state)
{
    (void)state;
    tern_module *m = model();
    char *text = tern_nn_to_text(m);
    assert_string_equal(text, "Model(\n"
                              "  (first): Scale(3, bias=True)\n"
                              "  (block): Sequential(\n"
                              "    (0): Scale(3, bias=False)\n"
                              "    (1): Twice()\n"
                              "  )\n"
                              ")");
    tern_free(text);
    tern_nn_free(m);
}

static void an_extra_of_several_lines_is_indented(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(tern_nn_module("M", twice, NULL));
    tern_nn_set_extra(tern_nn_child(m, "0"), "a=%d\nb=%d", 1, 2);
    char *text = tern_nn_to_text(m);
    assert_string_equal(text, "Sequential(\n  (0): M(\n    a=1\n    b=2\n  )\n)");
    tern_free(text);
    tern_nn_free(m);
    assert_null(tern_nn_to_text(NULL));
    assert_error(TERN_ERR_ARGUMENT, "tern_nn_to_text");
}

static const struct CMUnitTest tests[] = {
    TEST(paths_lead_to_members),
    TEST(an_absent_parameter_is_null_without_error),
    TEST(a_missing_name_lists_those_there_are),
    TEST(bad_names_are_refused),
    TEST(only_floating_leaves_become_parameters),
    TEST(a_child_has_one_parent),
    TEST(a_freed_child_leaves_its_parent),
    TEST(data_is_freed_with_its_module),
    TEST(modules_keep_their_tensors_and_release_them),
    TEST(sequential_with_a_missing_layer_frees_the_others),
    TEST(every_failed_allocation_gives_null_and_leaks_nothing),
    TEST(visits_go_in_the_order_of_state_dict),
    TEST(a_shared_tensor_is_visited_once),
    TEST(modes_reach_every_module),
    TEST(sequential_runs_one_after_the_other),
    TEST(running_what_cannot_run_is_an_error),
    TEST(a_move_keeps_handles_and_takes_gradients_along),
    TEST(a_refused_move_changes_nothing),
    TEST(set_data_replaces_elements_under_the_handle),
    TEST(a_model_prints_as_in_pytorch),
    TEST(an_extra_of_several_lines_is_indented),
};
TEST_MAIN(tests)
