/* test_debug.c -- handles of what is gone are known, with the debug mode and without it; and what the
 * mode tells beside. */
#include "support.h"
#include "heard.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Both modes; what the test runs in afterwards. */
#define FOR_EACH_MODE(debug)                                                                       \
    for (int turn_ = 0, was_ = tern_is_debug(), debug = 0; turn_ < 3; turn_++)                     \
        if (debug = turn_ < 2 ? turn_ : was_, tern_set_debug(debug), turn_ < 2)

/* Made by mul, and gone. */
static tern_tensor *gone(const char *device)
{
    tern_tensor *x = NULL;
    TERN_SCOPE {
        tern_tensor *two = tern_full(TERN_SHAPE(2), TERN_SCALAR(2), TERN_F32, device);
        x = tern_mul(two, two);
    }
    return x;
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* The loop of a search that forgets to keep its best: it printed -7, and no error. */
static void a_tensor_is_not_read_after_its_scope(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    FOR_EACH_MODE(debug)
    TERN_SCOPE {
        tern_tensor *best = NULL;
        for (int i = 0; i < 3000; i++)
            TERN_SCOPE {
                tern_tensor *x = tern_full(TERN_SHAPE(1), TERN_SCALAR(-7), TERN_F32, device);
                best = i ? best : tern_mul(x, x);
            }
        assert_true(isnan(tern_item(best)));
        assert_error(TERN_ERR_STATE, "tern_item: the tensor x is gone: made by mul");
        for (int i = 0; i < 1000; i++)
            tern_full(TERN_SHAPE(1), TERN_SCALAR(-7), TERN_F32, device);
        assert_true(isnan(tern_item(tern_sum(best))));
        assert_error(TERN_ERR_STATE,
                     debug ? "made by mul; the end of scope" : "made by mul (TERN_DEBUG=1");
    }
}

/* A forward function that leaves a tensor in a variable of the program's. */
static tern_tensor *left_behind;

static tern_tensor *leaving_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    left_behind = tern_mul(x, x);
    return tern_add(left_behind, x);
}

static tern_tensor *keeping_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    left_behind = tern_keep(tern_mul(x, x));
    return tern_add(left_behind, x);
}

static void a_tensor_that_forward_leaves_behind_is_named(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    FOR_EACH_MODE(debug)
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(1), TERN_SCALAR(3), TERN_F32, device);
        tern_module *leaves = tern_nn_module("Leaves", leaving_forward, NULL);
        tern_module *keeps = tern_nn_module("Keeps", keeping_forward, NULL);
        tern_module *model = tern_nn_sequential(leaves, keeps);
        assert_true(tern_item(tern_nn_forward(leaves, x)) == 12);
        assert_true(isnan(tern_item(left_behind)));
        assert_error(TERN_ERR_STATE,
                     debug ? "the tensor x is gone: made by mul; the end of Leaves's forward "
                             "function released it"
                           : "the tensor x is gone: made by mul");
        assert_true(tern_item(tern_nn_forward(model, x)) == 12 * 12 + 12);
        assert_true(tern_item(left_behind) == 144);
        tern_release(left_behind);
        tern_nn_free(model);
    }
}

static void look_at_gone(tern_tensor *x, tern_tensor *y)
{
    float data[2];
    const char *text = " is gone: made by mul";
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        (void)(call);                                                                              \
        assert_error(TERN_ERR_STATE, text);                                                        \
    } while (0)
    REFUSED(tern_dim(x));
    REFUSED(tern_size(x, 0));
    REFUSED(tern_stride(x, 0));
    REFUSED(tern_numel(x));
    REFUSED(tern_data(x));
    REFUSED(tern_item_int(x));
    REFUSED(tern_copy_to_host(x, data, sizeof data));
    REFUSED(tern_to_text(x));
    REFUSED(tern_keep(x));
    REFUSED(tern_escape(x));
    REFUSED((tern_release(x), 0));
    REFUSED(tern_add(x, y));
    REFUSED(tern_add(y, x));
    REFUSED(tern_add_(x, y));
    REFUSED(tern_add_(y, x));
    REFUSED(tern_copy_(y, x));
    REFUSED(tern_mse_loss(x, y, NULL));
    REFUSED(tern_cat((tern_tensor *[]){y, x}, 2, 0));
    REFUSED(tern_to(x, "cpu"));
    REFUSED(tern_to_dtype(x, TERN_F32));
    REFUSED(tern_contiguous(x));
    REFUSED(tern_view(x, TERN_SHAPE(2)));
    REFUSED(tern_detach(x));
    REFUSED(tern_requires_grad_(x, true));
    REFUSED(tern_set_grad(y, x));
    REFUSED(tern_set_grad(x, y));
    REFUSED(tern_retain_grad(x));
    REFUSED(tern_set_data_(y, x));
    REFUSED(tern_backward(x));
    REFUSED(tern_backward_with(tern_sum(tern_requires_grad_(tern_clone(y), true)),
                               &(tern_backward_options){.gradient = x}));
    REFUSED(tern_optim_sgd_of(&x, 1, 0.1, NULL));
#undef REFUSED
}

static void every_look_at_what_is_gone_is_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    FOR_EACH_MODE(debug)
    TERN_SCOPE {
        tern_tensor *y = tern_ones(TERN_SHAPE(2), TERN_F32, device);
        look_at_gone(gone(device), y);
        assert_values(y, 1, 1);
    }
}

/* Questions that record no error for NULL answer what it was. */
static void questions_without_errors_answer_what_it_was(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = gone(device);
        assert_int_equal(tern_dtype_of(x), TERN_F32);
        assert_int_equal(tern_shape_of(x).dims[0], 2);
        assert_string_equal(tern_device(x), device);
        assert_true(tern_is_leaf(x) && !tern_requires_grad(x) && !tern_grad(x));
    }
}

static void one_released_too_often_is_an_error(void **state)
{
    (void)state;
    FOR_EACH_MODE(debug)
    {
        int64_t live = tern_live_tensors();
        tern_tensor *x = NULL;
        TERN_SCOPE
            x = tern_keep(tern_ones(TERN_SHAPE(2), TERN_F32, "cpu"));
        tern_release(x);
        tern_release(x);
        assert_error(TERN_ERR_STATE, debug ? "made by ones; its last reference was released"
                                           : "tern_release: the tensor x is gone: made by ones");
        TERN_SCOPE
            tern_release(tern_ones(TERN_SHAPE(2), TERN_F32, "cpu")); /* the scope's, not ours */
        assert_error(TERN_ERR_STATE, "tern_release");
        assert_int_equal(tern_live_tensors(), live);
    }
}

/* Addresses do not come again before 4096 tensors went, and in debug mode never. */
static void memory_of_handles_is_used_again_late(void **state)
{
    (void)state;
    FOR_EACH_MODE(debug)
    {
        tern_tensor *old = gone("cpu");
        int met = 0;
        for (int i = 0; i < 20000; i++)
            TERN_SCOPE {
                bool same = tern_ones(TERN_SHAPE(1), TERN_F32, "cpu") == old;
                met += same;
                assert_false(same && i < 4000);
            }
        assert_false(debug && met);
    }
}

static void what_is_kept_is_not_gone(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    FOR_EACH_MODE(debug)
    TERN_SCOPE {
        tern_tensor *w = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, device), true);
        tern_tensor *kept = NULL, *view = NULL, *loss = NULL;
        TERN_SCOPE {
            tern_tensor *x = tern_mul(w, w);
            kept = tern_keep(tern_exp(x));
            view = tern_escape(tern_narrow(x, 0, 1, 1));
            loss = tern_escape(tern_sum(kept)); /* x and kept are saved for backward */
        }
        assert_ok(tern_backward(loss));
        assert_values_close(tern_grad(w), 1e-5, 2 * exp(1), 2 * exp(1));
        assert_values(view, 1);
        assert_values_close(kept, 1e-5, exp(1), exp(1));
        tern_release(kept);
        tern_item(tern_sum(kept));
        assert_error(TERN_ERR_STATE, "made by exp");
    }
}

static void *use_elsewhere(void *x)
{
    tern_tensor **pair = x;
    bool well = tern_item(tern_sum(pair[0])) == 2 && tern_last_status() == TERN_OK;
    well = well && !tern_sum(pair[1]) && tern_last_status() == TERN_ERR_STATE;
    return well ? x : NULL;
}

static void threads_know_what_others_released(void **state)
{
    (void)state;
    FOR_EACH_MODE(debug)
    TERN_SCOPE {
        tern_tensor *pair[2] = {tern_ones(TERN_SHAPE(2), TERN_F32, "cpu"), gone("cpu")};
        pthread_t thread;
        void *well = NULL;
        assert_int_equal(pthread_create(&thread, NULL, use_elsewhere, pair), 0);
        assert_int_equal(pthread_join(thread, &well), 0);
        assert_ptr_equal(well, pair);
    }
}

/* ---- modules, optimizers ------------------------------------------------------------------- */

static void a_freed_module_is_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    FOR_EACH_MODE(debug)
    TERN_SCOPE {
        assert_ok(tern_set_default_device(device));
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 4), TERN_F32, NULL);
        tern_module *m = tern_nn_sequential(tern_nn_linear(4, 4, NULL), tern_nn_relu());
        tern_module *child = tern_nn_child(m, "0");
        tern_nn_free(m);
        assert_null(tern_nn_forward(m, x));
        assert_error(TERN_ERR_STATE, "tern_nn_forward: the module m is gone: Sequential");
        tern_nn_free(m);
        assert_error(TERN_ERR_STATE, "tern_nn_free: the module m is gone: Sequential");
        tern_nn_free(child);
        assert_error(TERN_ERR_STATE, "Linear, freed with its parent Sequential");
        assert_null(tern_nn_parameter(child, "weight"));
        assert_error(TERN_ERR_STATE, "tern_nn_parameter: the module m is gone: Linear");
        assert_null(tern_nn_sequential(child));
        assert_error(TERN_ERR_STATE, "Linear");
        assert_null(tern_nn_to_text(m));
        assert_error(TERN_ERR_STATE, "tern_nn_to_text");
        assert_null(tern_nn_data(child));
        assert_error(TERN_ERR_STATE, "tern_nn_data");
        assert_null(tern_nn_eval(m));
        assert_error(TERN_ERR_STATE, "tern_nn_eval");
        assert_null(tern_nn_add_parameter(child, "x", x));
        assert_error(TERN_ERR_STATE, "tern_nn_add_parameter");
        assert_null(tern_optim_sgd(m, 0.1, NULL));
        assert_error(TERN_ERR_STATE, "tern_optim_sgd: the module");
        assert_ok(tern_set_default_device("cpu"));
    }
}

static void what_is_gone_becomes_no_parameter(void **state)
{
    (void)state;
    tern_module *m = tern_nn_module("Own", NULL, NULL);
    assert_null(tern_nn_add_parameter(m, "x", gone("cpu")));
    assert_error(TERN_ERR_STATE, "tern_nn_add_parameter: the tensor x is gone");
    assert_null(tern_nn_add_buffer(m, "x", gone("cpu")));
    assert_error(TERN_ERR_STATE, "tern_nn_add_buffer: the tensor x is gone");
    tern_nn_free(m);
}

static void freed_optimizers_and_their_like_are_refused(void **state)
{
    (void)state;
    FOR_EACH_MODE(debug)
    {
        tern_module *m = tern_nn_linear(2, 2, NULL);
        tern_optimizer *o = tern_optim_adam(m, 0.1, NULL);
        tern_lr_scheduler *s = tern_lr_scheduler_step_lr(o, 2, 0.1);
        tern_scaler *scaler = tern_amp_grad_scaler(NULL);
        tern_lr_scheduler_free(s);
        assert_int_equal(tern_lr_scheduler_step(s), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "tern_lr_scheduler_step: the scheduler s is gone: "
                                     "tern_lr_scheduler_step_lr");
        tern_lr_scheduler_free(s);
        assert_error(TERN_ERR_STATE, "tern_lr_scheduler_free");
        tern_optim_free(o);
        assert_int_equal(tern_optim_step(o), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "tern_optim_step: the optimizer o is gone: tern_optim_adam");
        assert_int_equal(tern_optim_zero_grad(o), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "tern_optim_zero_grad");
        assert_int_equal(tern_amp_step(scaler, o), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "tern_amp_step: the optimizer");
        assert_null(tern_lr_scheduler_step_lr(o, 2, 0.1));
        assert_error(TERN_ERR_STATE, "tern_lr_scheduler_step_lr: the optimizer");
        tern_optim_free(o);
        assert_error(TERN_ERR_STATE, "tern_optim_free");
        tern_amp_free(scaler);
        tern_amp_free(scaler);
        assert_error(TERN_ERR_STATE, "tern_amp_free: the scaler self is gone");
        tern_nn_free(m);
    }
}

static void freed_modules_are_used_again_late(void **state)
{
    (void)state;
    FOR_EACH_MODE(debug)
    {
        tern_module *old = tern_nn_relu();
        int met = 0;
        tern_nn_free(old);
        for (int i = 0; i < 1000; i++) {
            tern_module *m = tern_nn_tanh();
            met += m == old;
            assert_false(m == old && i < 256);
            tern_nn_free(m);
        }
        assert_false(debug && met);
    }
}

/* ---- what the mode tells beside ------------------------------------------------------------ */

static void a_nan_is_told_of_the_operation_that_made_it(void **state)
{
    (void)state;
    bool was = tern_is_debug();
    tern_set_debug(true);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        heard h = {0};
        tern_on_warning(hear, &h);
        tern_tensor *zero = tern_zeros(TERN_SHAPE(2), TERN_F32, device);
        tern_tensor *nan = tern_full(TERN_SHAPE(2), TERN_SCALAR(NAN), TERN_F32, device);
        tern_add(nan, zero);
        tern_log(zero); /* infinite */
        assert_int_equal(h.count, 0);
        tern_add(tern_div(zero, zero), zero);
        assert_int_equal(h.count, 1);
        assert_string_equal(h.kind, "nan");
        assert_non_null(strstr(h.text, "tern_div: made NaN"));
        tern_set_debug(false);
        tern_sqrt(tern_sub(zero, tern_ones_like(zero)));
        assert_int_equal(h.count, 1);
        tern_set_debug(true);
        tern_sqrt_(tern_sub(zero, tern_ones_like(zero)));
        assert_int_equal(h.count, 2);
    }
    tern_on_warning(NULL, NULL);
    tern_set_debug(was);
}

static tern_tensor *root_of_negative(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_sqrt(tern_neg(x));
}

static void a_nan_is_told_with_the_module(void **state)
{
    (void)state;
    heard h = {0};
    bool was = tern_is_debug();
    tern_set_debug(true);
    tern_on_warning(hear, &h);
    tern_module *m =
        tern_nn_sequential(tern_nn_relu(), tern_nn_module("Root", root_of_negative, NULL));
    TERN_SCOPE
        tern_nn_forward(m, tern_ones(TERN_SHAPE(2), TERN_F32, "cpu"));
    tern_nn_free(m);
    tern_on_warning(NULL, NULL);
    tern_set_debug(was);
    assert_int_equal(h.count, 1);
    assert_non_null(strstr(h.text, "tern_sqrt: made NaN"));
    assert_non_null(strstr(h.text, "in the module 1 (Root)"));
}

static void a_root_scope_that_grows_is_told_once(void **state)
{
    (void)state;
    heard h = {0};
    FOR_EACH_MODE(debug)
    {
        tern_scope_clear();
        tern_on_warning(hear, &h);
        for (int i = 0; i < 20010; i++)
            tern_ones(TERN_SHAPE(1), TERN_F32, "cpu");
        assert_int_equal(h.count, debug);
        tern_scope_clear();
    }
    tern_on_warning(NULL, NULL);
    assert_string_equal(h.kind, "scope");
    assert_non_null(strstr(h.text, "10000 tensors"));
}

/* Without the mode a device may report it as late as the next wait. */
static void a_mistake_on_the_device_is_an_error_of_its_operation(void **state)
{
    (void)state;
    bool was = tern_is_debug();
    tern_set_debug(true);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const int64_t seven = 7;
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 2), TERN_F32, device);
        tern_tensor *i = tern_from_data(&seven, TERN_SHAPE(1), TERN_I64, device);
        assert_null(tern_index_select(x, 0, i));
        assert_error(TERN_ERR_ARGUMENT, "kernel 'index_select' of index_select");
        assert_values(tern_add(x, x), 2, 2, 2, 2);
        assert_ok(tern_synchronize(device));
    }
    tern_set_debug(was);
}

static void the_environment_turns_it_on(void **state)
{
    (void)state;
    const char *wanted = getenv("TERN_DEBUG");
    assert_int_equal(tern_is_debug(), wanted && strcmp(wanted, "1") == 0);
}

static const struct CMUnitTest tests[] = {
    TEST(the_environment_turns_it_on),
    TEST(a_tensor_is_not_read_after_its_scope),
    TEST(a_tensor_that_forward_leaves_behind_is_named),
    TEST(every_look_at_what_is_gone_is_refused),
    TEST(questions_without_errors_answer_what_it_was),
    TEST(one_released_too_often_is_an_error),
    TEST(memory_of_handles_is_used_again_late),
    TEST(what_is_kept_is_not_gone),
    TEST(threads_know_what_others_released),
    TEST(a_freed_module_is_refused),
    TEST(what_is_gone_becomes_no_parameter),
    TEST(freed_optimizers_and_their_like_are_refused),
    TEST(freed_modules_are_used_again_late),
    TEST(a_nan_is_told_of_the_operation_that_made_it),
    TEST(a_nan_is_told_with_the_module),
    TEST(a_root_scope_that_grows_is_told_once),
    TEST(a_mistake_on_the_device_is_an_error_of_its_operation),
};
TEST_MAIN(tests)
