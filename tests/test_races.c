/* test_races.c -- one small run of every kernel family, for simulators that watch each access. */
#include "support.h"
#include <stdlib.h>

/* Apart from the rest, and small: gradient and moments begin in memory that the driver filled,
 * which Oclgrind takes for uninitialised. */
static void an_embedding_trains_once(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *table = test_uniform(device, TERN_F32, TERN_SHAPE(5, 20), -1, 1, 2);
        tern_tensor *rows = TENSOR(device, TERN_I64, TERN_SHAPE(3), 4, 0, 4);
        tern_requires_grad_(table, true);
        assert_ok(tern_backward(tern_sum(tern_embedding(rows, table, NULL))));
        assert_shape(tern_grad(table), 5, 20);
        tern_optimizer *optimizer = tern_optim_adamw_of(&table, 1, 0.1, NULL);
        assert_ok(tern_optim_step(optimizer));
        tern_optim_free(optimizer);
    }
}

static void every_family_runs_once(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        uint64_t before = launches(device);
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(3, 100), -1, 1, 1);
        tern_tensor *w = test_uniform(device, TERN_F32, TERN_SHAPE(5, 100), -1, 1, 2);
        tern_requires_grad_(x, true);
        tern_requires_grad_(w, true);
        tern_tensor *y = tern_gelu(tern_linear(x, w, NULL));
        tern_tensor *rows = tern_mul(tern_softmax(x, -1), tern_sum_dim(x, TERN_DIMS(0), true));
        tern_tensor *norm = tern_layer_norm(x, TERN_SHAPE(100), NULL, NULL, 1e-5);
        tern_values_indices top = {0};
        assert_ok(tern_max_dim(x, 1, false, &top));
        tern_tensor *parts[2] = {tern_transpose(y, 0, 1),
                                 tern_rand(TERN_SHAPE(5, 3), TERN_F32, device)};
        tern_tensor *loss =
            tern_add(tern_sum(tern_cat(parts, 2, 1)), tern_mean(tern_mul(rows, norm)));
        loss = tern_add(tern_add(loss, tern_sum(top.values)), tern_var(x, 1));
        tern_tensor *classes = TENSOR(device, TERN_I64, TERN_SHAPE(3), 4, 0, 4);
        loss = tern_add(loss, tern_cross_entropy(y, classes, NULL));
        assert_ok(tern_backward(loss));
        double *values = test_read(tern_grad(w));
        assert_true(values[0] == values[0]);
        free(values);
        assert_true(launches(device) > before + 20);
    }
}

/* A group for each matrix, with barriers between its steps. */
static void systems_are_factored_once(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(2, 5, 5), -1, 1, 3);
        tern_tensor *there = tern_to(x, device);
        if (!test_pocl_gpu_form(device)) {
            assert_close(tern_linalg_det(there), tern_linalg_det(x), .abs = 1e-5, .rel = 1e-4);
            assert_close(tern_linalg_inv(there), tern_linalg_inv(x), .abs = 1e-3, .rel = 1e-3);
        }
        assert_close(tern_linalg_svdvals(there), tern_linalg_svdvals(x), .abs = 1e-4);
        tern_tensor *square = tern_matmul(x, tern_transpose(x, 1, 2));
        square = tern_add(square, tern_eye(5, 5, TERN_F32, "cpu"));
        assert_close(tern_linalg_cholesky(tern_to(square, device), false),
                     tern_linalg_cholesky(square, false), .abs = 1e-4);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(every_family_runs_once),
    TEST(systems_are_factored_once),
    TEST(an_embedding_trains_once),
};
TEST_MAIN(tests)
