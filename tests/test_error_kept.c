/* test_error_kept.c -- while an earlier error is recorded, what has nothing to do with it goes on, and
 * steps refuse. (Operations by name: parity/runner.c --kept.) */
#include "kept.h"
#include <stdlib.h>

/* ---- the user's own functions ------------------------------------------------------------ */

static tern_status square(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)n;
    (void)k;
    out[0] = tern_square(in[0]);
    return tern_function_save(f, in[0]);
}

static tern_status square_back(tern_function *f, tern_tensor *const *grad_out, int k,
                               tern_tensor **grad_in, int n)
{
    (void)n;
    (void)k;
    grad_in[0] = tern_mul(grad_out[0], tern_mul_scalar(tern_function_saved(f, 0), TERN_SCALAR(2)));
    return TERN_OK;
}

static bool function(void)
{
    static const tern_function_type type = {
        .name = "Square", .forward = square, .backward = square_back};
    tern_tensor *x = numbers(D(3)), *y;
    return tern_function_apply(&type, NULL, &x, 1, &y, 1) == TERN_OK &&
           tern_backward(tern_sum(y)) == TERN_OK && tern_grad(x);
}

static tern_status tanh_twice(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)data;
    (void)n;
    (void)k;
    out[0] = tern_tanh(tern_tanh(in[0]));
    return TERN_OK;
}

static bool checkpoint(void)
{
    tern_tensor *x = numbers(D(3)), *y;
    return tern_checkpoint(tanh_twice, NULL, &x, 1, &y, 1, NULL) == TERN_OK &&
           tern_backward(tern_sum(y)) == TERN_OK && tern_grad(x);
}

static tern_tensor *doubled(tern_tensor *grad, void *user)
{
    (void)user;
    return tern_mul_scalar(grad, TERN_SCALAR(2));
}

static bool tensor_hook(void)
{
    tern_tensor *x = numbers(D(3)), *y = tern_exp(x);
    return tern_register_hook(y, doubled, NULL) && tern_backward(tern_sum(y)) == TERN_OK &&
           tern_grad(x);
}

static tern_status look_at_inputs(tern_module *m, tern_tensor **in, int n, void *user)
{
    (void)m;
    (void)in;
    (void)n;
    ++*(int *)user;
    return TERN_OK;
}

static tern_status look_at_gradients(tern_module *m, tern_tensor **grad_in, int n,
                                     tern_tensor *const *grad_out, int k, void *user)
{
    (void)grad_out;
    (void)k;
    return look_at_inputs(m, grad_in, n, user);
}

static bool module_hooks(void)
{
    int looks = 0;
    tern_module *m = tern_nn_linear(3, 2, NULL);
    tern_nn_register_forward_pre_hook(m, look_at_inputs, &looks);
    tern_nn_register_full_backward_hook(m, look_at_gradients, &looks);
    tern_tensor *y = tern_nn_forward(m, numbers(D(2, 3)));
    bool fine = y && tern_backward(tern_sum(y)) == TERN_OK && looks == 2;
    tern_nn_free(m);
    return fine;
}

static bool second_derivative(void)
{
    tern_tensor *x = numbers(D(3)), *y = tern_sum(tern_exp(x)), *dx;
    return tern_autograd_grad(&y, 1, &x, 1, &dx,
                              &(tern_autograd_grad_options){.create_graph = true}) == TERN_OK &&
           tern_backward(tern_sum(dx)) == TERN_OK && tern_grad(x);
}

static bool anomaly_detection(void)
{
    bool fine = false;
    const tern_detect_anomaly_options all = {.check_forward = true};
    TERN_DETECT_ANOMALY_MODE (true, &all)
        fine = tern_backward(tern_sum(tern_exp(numbers(D(3))))) == TERN_OK;
    return fine;
}

static bool autocast(void)
{
    tern_tensor *x = numbers(D(2, 3)), *y = NULL;
    TERN_AUTOCAST (NULL, TERN_BF16)
        y = tern_matmul(x, tern_t(x));
    return y && tern_dtype_of(y) == TERN_BF16 && tern_backward(tern_sum(y)) == TERN_OK;
}

static void functions_of_the_user_run(void **state)
{
    (void)state;
    static const deed deeds[] = {
        {"tern_function_apply", function},
        {"tern_checkpoint", checkpoint},
        {"tern_register_hook", tensor_hook},
        {"hooks of a module", module_hooks},
        {"a second derivative", second_derivative},
        {"TERN_DETECT_ANOMALY", anomaly_detection},
        {"TERN_AUTOCAST", autocast},
    };
    each_works_and_keeps_the_error(deeds, sizeof deeds / sizeof *deeds);
}

/* ---- the rest ---------------------------------------------------------------------------- */

static bool initialisation(void)
{
    tern_tensor *x = tern_empty(D(4, 3), TERN_F32, NULL);
    return tern_nn_init_uniform_(x, 0, 1) && tern_nn_init_normal_(x, 0, 1) &&
           tern_nn_init_trunc_normal_(x, 0, 1, -2, 2) && tern_nn_init_xavier_uniform_(x, 1) &&
           tern_nn_init_kaiming_normal_(x, 0) && tern_nn_init_eye_(x) &&
           tern_nn_init_orthogonal_(x, 1) && tern_nn_init_sparse_(x, 0.5, 1);
}

static bool random_numbers(void)
{
    tern_tensor *p = tern_detach(numbers(D(2, 3)));
    return tern_bernoulli(p) && tern_multinomial(p, 2, false) && tern_multinomial(p, 4, true) &&
           tern_randint_like(p, 0, 5) && tern_rand(D(3), TERN_F32, NULL) && tern_normal_(p, 0, 1) &&
           tern_bernoulli_(p, 0.5);
}

static bool a_batch_of_nothing(void)
{
    tern_values_indices out;
    tern_tensor *x = tern_zeros(D(0, 2, 6, 6), TERN_F32, NULL);
    return tern_fractional_max_pool2d_with_indices(
               x, D(2), &(tern_fractional_max_pool_options){.output_size = D(3, 3)}, &out) ==
               TERN_OK &&
           tern_sum(out.values);
}

static bool clipping(void)
{
    tern_module *m = tern_nn_linear(3, 2, NULL);
    tern_backward(tern_sum(tern_nn_forward(m, numbers(D(2, 3)))));
    bool fine =
        tern_nn_clip_grad_norm_(m, 0.5) > 0 &&
        tern_nn_clip_grad_norm_with_(m, 0.25, &(tern_clip_grad_norm_options){.norm_type = 3}) > 0 &&
        tern_nn_clip_grad_value_(m, 0.1) == TERN_OK;
    tern_nn_free(m);
    return fine;
}

static bool states(void)
{
    tern_module *m = tern_nn_batch_norm1d(3, NULL), *other = tern_nn_batch_norm1d(3, NULL);
    tern_state_dict *dict = tern_nn_state_dict(m), *copy = tern_state_dict_clone(dict);
    char *text = tern_nn_to_text(m);
    bool fine = copy && text && tern_nn_load_state_dict(other, copy, NULL) == TERN_OK &&
                tern_nn_parameter_count(other) == 2 && tern_nn_to_dtype(other, TERN_BF16) &&
                tern_nn_zero_grad(other) == TERN_OK;
    tern_free_text(text);
    tern_state_dict_free(copy);
    tern_state_dict_free(dict);
    tern_nn_free(m);
    tern_nn_free(other);
    return fine;
}

static tern_status keep_first(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    tern_tensor **first = user;
    if (!*first)
        *first = tern_keep(x);
    return TERN_OK;
}

static bool optimizers_but_for_steps(void)
{
    tern_tensor *x = numbers(D(3)), *first = NULL;
    tern_optimizer *o = tern_optim_adam_of(&x, 1, 0.1, NULL);
    tern_lr_scheduler *s = tern_lr_scheduler_step_lr(o, 2, 0.5);
    bool fine = o && s && tern_optim_set_lr(o, 0.2) == TERN_OK &&
                tern_optim_each_state(o, keep_first, &first) == TERN_OK &&
                tern_optim_set_state(
                    o, "param_groups.0.lr",
                    tern_full(TERN_SHAPE_SCALAR, TERN_SCALAR(0.5), TERN_F64, "cpu")) == TERN_OK &&
                tern_optim_get_lr(o) == 0.5 && tern_optim_zero_grad(o) == TERN_OK;
    tern_release(first);
    tern_lr_scheduler_free(s);
    tern_optim_free(o);
    return fine;
}

static tern_tensor *one_batch(void *user)
{
    bool *given = user;
    tern_tensor *x = *given ? NULL : numbers(D(4, 3));
    *given = true;
    return x;
}

static bool batch_statistics(void)
{
    bool given = false;
    tern_module *m = tern_nn_batch_norm1d(3, NULL);
    bool fine = tern_swa_update_bn(m, one_batch, &given) == TERN_OK && given;
    tern_nn_free(m);
    return fine;
}

static bool scaler_state(void)
{
    tern_scaler *s = tern_amp_grad_scaler(NULL);
    tern_scaler_state state;
    bool fine = tern_amp_scale(s, numbers(D(1))) && tern_amp_get_scale(s) == 65536 &&
                tern_amp_get_state(s, &state) == TERN_OK;
    tern_amp_free(s);
    return fine;
}

static bool reading_and_writing(void)
{
    tern_tensor *x = tern_detach(numbers(D(2, 3))), *y = tern_clone(x);
    float data[6];
    char *text = tern_to_text(x);
    bool fine = text && tern_copy_to_host(x, data, sizeof data) == TERN_OK && data[0] > 0 &&
                tern_copy_(y, x) && tern_item(tern_sum(y)) > 0 && tern_to(x, "cpu") &&
                tern_synchronize(NULL) == TERN_OK;
    tern_free_text(text);
    return fine;
}

static void the_rest_works(void **state)
{
    (void)state;
    static const deed deeds[] = {
        {"initialisation", initialisation},
        {"random numbers", random_numbers},
        {"a batch of nothing", a_batch_of_nothing},
        {"clipping", clipping},
        {"state dicts", states},
        {"optimizers but for steps", optimizers_but_for_steps},
        {"tern_swa_update_bn", batch_statistics},
        {"the state of a scaler", scaler_state},
        {"reading and writing", reading_and_writing},
    };
    each_works_and_keeps_the_error(deeds, sizeof deeds / sizeof *deeds);
}

/* ---- what fails still fails -------------------------------------------------------------- */

static tern_status fails(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)data;
    (void)n;
    (void)k;
    tern_zeros(D(-1), TERN_F32, NULL);
    out[0] = tern_exp(in[0]);
    return TERN_OK;
}

static tern_tensor *failing_hook(tern_tensor *grad, void *user)
{
    (void)user;
    return tern_reshape(grad, D(7));
}

static tern_status no_gradient(tern_function *f, tern_tensor *const *grad_out, int k,
                               tern_tensor **grad_in, int n)
{
    (void)f;
    (void)k;
    (void)n;
    grad_in[0] = tern_reshape(grad_out[0], D(7));
    return TERN_OK;
}

static void a_failure_in_a_callback_is_noticed_behind_an_earlier_error(void **state)
{
    (void)state;
    static const tern_function_type type = {
        .name = "Broken", .forward = square, .backward = no_gradient};
    tern_tensor *x = numbers(D(3)), *y = tern_exp(x), *z;
    for (int recorded = 0; recorded < 2; recorded++) {
        tern_clear_error();
        if (recorded)
            tern_fail(TERN_ERR_IO, "%s", earlier);
        assert_int_equal(tern_checkpoint(fails, NULL, &x, 1, &z, 1, NULL), TERN_ERR_SHAPE);
        assert_true(!recorded || kept());
    }
    tern_clear_error();
    assert_true(tern_register_hook(y, failing_hook, NULL) > 0);
    tern_fail(TERN_ERR_IO, "%s", earlier);
    assert_int_equal(tern_backward(tern_sum(y)), TERN_ERR_SHAPE);
    assert_null(tern_grad(x));
    assert_ok(tern_function_apply(&type, NULL, &x, 1, &y, 1));
    assert_int_equal(tern_backward(tern_sum(y)), TERN_ERR_SHAPE);
    assert_null(tern_grad(x));
    assert_true(kept());
    tern_clear_error();
}

static void steps_refuse(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_DEVICE (device) {
        tern_tensor *x = numbers(D(3)), *before = tern_clone(tern_detach(x));
        tern_optimizer *o = tern_optim_sgd_of(&x, 1, 0.1, NULL);
        tern_lr_scheduler *s = tern_lr_scheduler_exponential_lr(o, 0.5);
        tern_scaler *scaler = tern_amp_grad_scaler(NULL);
        assert_ok(tern_backward(tern_amp_scale(scaler, tern_sum(x))));
        tern_fail(TERN_ERR_IO, "%s", earlier);
        assert_int_equal(tern_optim_step(o), TERN_ERR_IO);
        assert_int_equal(tern_lr_scheduler_step(s), TERN_ERR_IO);
        assert_int_equal(tern_amp_unscale_(scaler, o), TERN_ERR_IO);
        assert_int_equal(tern_amp_step(scaler, o), TERN_ERR_IO);
        assert_int_equal(tern_amp_update(scaler), TERN_ERR_IO);
        assert_true(kept());
        tern_clear_error();
        assert_same(tern_detach(x), before);
        assert_true(tern_optim_get_lr(o) == 0.1);
        assert_values(tern_grad(x), 65536, 65536, 65536);
        tern_amp_free(scaler);
        tern_lr_scheduler_free(s);
        tern_optim_free(o);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(functions_of_the_user_run),
    TEST(the_rest_works),
    TEST(a_failure_in_a_callback_is_noticed_behind_an_earlier_error),
    TEST(steps_refuse),
};
TEST_MAIN(tests)
