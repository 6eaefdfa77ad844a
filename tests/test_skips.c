/* test_skips.c -- steps that change nothing: errors, faults on the device, a flag, no gradients. */
#include "support.h"
#include "optim/optimizer.h"
#include "tensor/tensor.h"

static void a_step_while_an_error_is_recorded_changes_nothing(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, device), true);
        tern_optimizer *o = tern_optim_sgd_of(&x, 1, 0.5, NULL);
        assert_ok(tern_set_grad(x, tern_ones(TERN_SHAPE(2), TERN_F32, device)));
        assert_null(tern_relu(NULL));
        assert_int_equal(tern_optim_step(o), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "tern_relu");
        assert_values(x, 1, 1);
        assert_ok(tern_optim_step(o));
        assert_values(x, 0.5, 0.5);
        tern_optim_free(o);
    }
}

static void parameters_without_gradients_are_left_alone(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, device), true);
        tern_optimizer *o = tern_optim_adamw_of(&x, 1, 0.5, NULL);
        uint64_t before = launches(device);
        int64_t version = tern_version(x);
        assert_ok(tern_optim_step(o));
        assert_int_equal(launches(device), before);
        assert_int_equal(tern_version(x), version);
        assert_values(x, 1, 1);
        tern_optim_free(o);
    }
}

/* As a kernel that met a bad index leaves it: the words are there, nobody has looked yet. */
static void leave_fault(tern_tensor *x)
{
    static const int64_t words[3] = {TERN_FAULT_EMBEDDING, 9, 5};
    tern_place *place = tern_tensor_place(x);
    tern_arg arg;
    assert_ok(tern_fault_arg(place, &arg));
    tern_block *block =
        (tern_block *)((char *)(uintptr_t)arg.buffer - offsetof(tern_block, buffer));
    assert_ok(tern_block_write(block, 0, words, sizeof words));
}

static void a_fault_found_on_the_device_stops_the_step(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, device), true);
        tern_optimizer *o = tern_optim_adam_of(&x, 1, 0.5, NULL);
        assert_ok(tern_set_grad(x, tern_ones(TERN_SHAPE(2), TERN_F32, device)));
        leave_fault(x);
        assert_ok(tern_optim_step(o)); /* has not looked either, but its kernel has */
        assert_int_equal(tern_synchronize(device), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "index out of range in self (index 9, 5 rows)");
        assert_values(x, 1, 1);
        assert_ok(tern_optim_step(o)); /* the first one that counts: Adam's moves by lr */
        assert_values_close(x, 1e-6, 0.5, 0.5);
        tern_optim_free(o);
    }
}

static void a_flag_on_the_device_stops_the_step(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, device), true);
        tern_optimizer *o = tern_optim_adam_of(&x, 1, 0.5, NULL);
        tern_tensor *flag = tern_ones(TERN_SHAPE(1), TERN_F32, device);
        assert_ok(tern_set_grad(x, tern_ones(TERN_SHAPE(2), TERN_F32, device)));
        assert_ok(tern_optim_step_unless(o, flag));
        assert_values(x, 1, 1);
        tern_zero_(flag);
        assert_ok(tern_optim_step_unless(o, flag));
        assert_values_close(x, 1e-6, 0.5, 0.5);
        tern_optim_free(o);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_step_while_an_error_is_recorded_changes_nothing),
    TEST(parameters_without_gradients_are_left_alone),
    TEST(a_fault_found_on_the_device_stops_the_step),
    TEST(a_flag_on_the_device_stops_the_step),
};
TEST_MAIN(tests)
