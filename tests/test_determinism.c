/* test_determinism.c -- the same numbers on every run: training from a seed, and sums into places
 * that an index gives, in whatever order the device would like to take them. */
#include "support.h"

/* ---- a seed ------------------------------------------------------------------------------ */

static tern_module *model(const char *device)
{
    tern_module *m =
        tern_nn_sequential(tern_nn_embedding(7, 6, NULL), tern_nn_flatten(),
                           tern_nn_linear(24, 16, NULL), tern_nn_batch_norm1d(16, NULL),
                           tern_nn_gelu(NULL), tern_nn_dropout(NULL), tern_nn_linear(16, 1, NULL));
    return tern_nn_to(m, device);
}

/* What a few steps make of the parameters. */
static tern_state_dict *train(const char *device)
{
    tern_manual_seed(42);
    tern_module *m = model(device);
    tern_optimizer *optimizer = tern_optim_adamw(m, 1e-2, NULL);
    for (int step = 0; step < 3; step++)
        TERN_SCOPE {
            tern_tensor *x = tern_randint(0, 7, TERN_SHAPE(50, 4), TERN_I64, device);
            tern_tensor *y = tern_randn(TERN_SHAPE(50, 1), TERN_F32, device);
            x = tern_index_select(x, 0, tern_randperm(50, TERN_I64, device));
            assert_ok(tern_optim_zero_grad(optimizer));
            assert_ok(tern_backward(tern_mse_loss(tern_nn_forward(m, x), y, NULL)));
            assert_ok(tern_optim_step(optimizer));
        }
    tern_state_dict *view = tern_nn_state_dict(m), *state = tern_state_dict_clone(view);
    tern_state_dict_free(view);
    tern_optim_free(optimizer);
    tern_nn_free(m);
    return state;
}

static void a_seed_gives_the_same_training_twice(void **state)
{
    (void)state;
    tern_use_deterministic(true);
    FOR_EACH_DEVICE(device)
    {
        tern_state_dict *a = train(device), *b = train(device);
        assert_true(tern_state_dict_count(a) >= 10);
        for (int i = 0; i < tern_state_dict_count(a); i++)
            assert_same(tern_state_dict_at(a, i), tern_state_dict_at(b, i));
        tern_state_dict_free(a);
        tern_state_dict_free(b);
    }
    tern_use_deterministic(false);
}

/* ---- sums by index ----------------------------------------------------------------------- */

enum { ROWS = 600, PLACES = 5, WIDTH = 8 };

/* Numbers of very different size: another order is another sum. */
static tern_tensor *numbers(const char *device, tern_shape shape, uint64_t seed)
{
    tern_tensor *x = test_uniform("cpu", TERN_F32, shape, -1, 1, seed);
    tern_tensor *scale = tern_exp(test_uniform("cpu", TERN_F32, shape, -8, 8, seed + 1));
    return tern_to(tern_mul(x, scale), device);
}

static tern_tensor *indices(const char *device, tern_shape shape)
{
    return tern_to(tern_to_dtype(test_uniform("cpu", TERN_F32, shape, 0, PLACES, 3), TERN_I64),
                   device);
}

/* The gradient of sum(y weight), weight the numbers. */
static tern_tensor *gradient(tern_tensor *y, tern_tensor *x)
{
    tern_tensor *dx, *weight = numbers(tern_device(x), tern_shape_of(y), 7);
    tern_autograd_grad_options o = {.gradients = &weight};
    return tern_autograd_grad(&y, 1, &x, 1, &dx, &o) == TERN_OK ? dx : NULL;
}

static tern_tensor *places(const char *device)
{
    return tern_requires_grad_(numbers(device, TERN_SHAPE(PLACES, WIDTH), 5), true);
}

static tern_tensor *by_index_add(const char *device)
{
    return tern_index_add(tern_detach(places(device)), 0, indices(device, TERN_SHAPE(ROWS)),
                          numbers(device, TERN_SHAPE(ROWS, WIDTH), 1), TERN_SCALAR(1));
}

static tern_tensor *by_scatter_add(const char *device)
{
    return tern_scatter_add(tern_detach(places(device)), 0,
                            indices(device, TERN_SHAPE(ROWS, WIDTH)),
                            numbers(device, TERN_SHAPE(ROWS, WIDTH), 1));
}

static tern_tensor *by_index_put(const char *device)
{
    tern_tensor *index = indices(device, TERN_SHAPE(ROWS));
    return tern_index_put(tern_detach(places(device)), &index, 1,
                          numbers(device, TERN_SHAPE(ROWS, WIDTH), 1), true);
}

static tern_tensor *of_embedding(const char *device)
{
    tern_tensor *x = places(device);
    return gradient(tern_embedding(indices(device, TERN_SHAPE(ROWS)), x, NULL), x);
}

static tern_tensor *of_gather(const char *device)
{
    tern_tensor *x = places(device);
    return gradient(tern_gather(x, 0, indices(device, TERN_SHAPE(ROWS, WIDTH))), x);
}

static tern_tensor *of_index_select(const char *device)
{
    tern_tensor *x = places(device);
    return gradient(tern_index_select(x, 0, indices(device, TERN_SHAPE(ROWS))), x);
}

static tern_tensor *of_max_pool(const char *device)
{
    tern_tensor *x = tern_requires_grad_(numbers(device, TERN_SHAPE(1, 1, 20, 20), 9), true);
    tern_max_pool_options o = {.stride = TERN_SHAPE(1)};
    return gradient(tern_max_pool2d(x, TERN_SHAPE(5), &o), x);
}

static tern_tensor *of_interpolate(const char *device)
{
    tern_tensor *x = tern_requires_grad_(numbers(device, TERN_SHAPE(1, 1, 3, 3), 9), true);
    tern_interpolate_options o = {.size = TERN_SHAPE(20), .mode = TERN_INTERPOLATE_BILINEAR};
    return gradient(tern_interpolate(x, &o), x);
}

static const struct {
    tern_tensor *(*run)(const char *device);
    bool in_order; /* of the index, on every device */
} sums[] = {
    {by_index_add, true}, {by_scatter_add, true},  {by_index_put, true}, {of_embedding, true},
    {of_gather, true},    {of_index_select, true}, {of_max_pool, false}, {of_interpolate, false},
};

static void sums_by_index_are_the_same_on_every_run(void **state)
{
    (void)state;
    tern_use_deterministic(true);
    assert_true(tern_are_deterministic_algorithms_enabled());
    FOR_EACH_DEVICE(device)
    {
        for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
            TERN_SCOPE {
                tern_tensor *first = sums[i].run(device);
                assert_non_null(first);
                for (int again = 0; again < 3; again++)
                    assert_same(sums[i].run(device), first);
                if (sums[i].in_order)
                    assert_same(first, sums[i].run("cpu"));
            }
    }
    tern_use_deterministic(false);
    assert_false(tern_are_deterministic_algorithms_enabled());
}

static const struct CMUnitTest tests[] = {
    TEST(a_seed_gives_the_same_training_twice),
    TEST(sums_by_index_are_the_same_on_every_run),
};
TEST_MAIN(tests)
