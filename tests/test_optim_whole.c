/* test_optim_whole.c -- what writes many tensors at once, in several launches, writes all of them or
 * none: steps, clipping, unscaling, averages. */
#include "support.h"
#include "base/memory.h"
#include <stdlib.h>

typedef tern_optimizer *(*maker)(tern_module *m, double lr);
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static tern_optimizer *NAME(tern_module *m, double lr)                                         \
    {                                                                                              \
        return tern_optim_##NAME(m, lr, NULL);                                                     \
    }
#include "optimizers.def"
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS) {#NAME, NAME},
static const struct {
    const char *name;
    maker make;
} optimizers[] = {
#include "optimizers.def"
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers, LAYERS = 3 };

/* ---- a model whose parameters take several launches ------------------------------------------ */

typedef struct training {
    tern_module *m; /* float32, bfloat16, float32 in a group of its own; the last two not dense */
    tern_optimizer *o;
    tern_scaler *scaler;
    tern_averaged_model *averages;
    tern_tensor *watched[3 * LAYERS]; /* parameters, gradients, averages */
} training;

static tern_tensor *drawn(const char *device, tern_dtype dtype, tern_shape shape, uint64_t seed)
{
    return tern_to_dtype(test_uniform(device, TERN_F32, shape, 1, 2, seed), dtype);
}

/* (rows, columns), transposed in memory. */
static tern_tensor *strided(const char *device, tern_dtype dtype, int64_t rows, int64_t columns,
                            uint64_t seed)
{
    return tern_detach(tern_t(drawn(device, dtype, TERN_SHAPE(columns, rows), seed)));
}

static tern_tensor *expanded(const char *device)
{
    return tern_detach(tern_expand(drawn(device, TERN_F32, TERN_SHAPE(1, 2), 9), TERN_SHAPE(3, 2)));
}

static tern_module *layer(const char *device, int64_t in, int64_t out)
{
    return tern_nn_linear(in, out, &(tern_linear_options){.no_bias = true, .device = device});
}

static training begin(maker make, const char *device)
{
    training t = {
        .m = tern_nn_sequential(layer(device, 3, 4), layer(device, 4, 2), layer(device, 2, 3))};
    tern_tensor *x[LAYERS] = {tern_nn_parameter(t.m, "0.weight"),
                              tern_nn_parameter(t.m, "1.weight"),
                              tern_nn_parameter(t.m, "2.weight")};
    assert_non_null(tern_set_data_(x[1], strided(device, TERN_BF16, 2, 4, 1)));
    assert_non_null(tern_set_data_(x[2], strided(device, TERN_F32, 3, 2, 2)));
    assert_ok(tern_set_grad(x[0], drawn(device, TERN_F32, TERN_SHAPE(4, 3), 3)));
    assert_ok(tern_set_grad(x[1], strided(device, TERN_BF16, 2, 4, 4)));
    assert_ok(tern_set_grad(x[2], strided(device, TERN_F32, 3, 2, 5)));
    t.o = make(tern_nn_child(t.m, "0"), 100); /* so that bfloat16 sees it */
    if (make != lbfgs) {
        assert_int_equal(tern_optim_add_module(t.o, tern_nn_child(t.m, "1")), 1);
        assert_int_equal(tern_optim_add_module(t.o, tern_nn_child(t.m, "2")), 2);
    }
    t.scaler = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 4});
    assert_non_null(tern_amp_scale(t.scaler, drawn(device, TERN_F32, TERN_SHAPE(1), 6)));
    t.averages = tern_swa_averaged_model(t.m, &(tern_averaged_model_options){.decay = 0.5});
    assert_ok(tern_swa_update(t.averages)); /* the first takes the parameters as they are */
    for (int i = 0; i < LAYERS; i++) {
        t.watched[i] = x[i];
        t.watched[LAYERS + i] = tern_grad(x[i]);
        t.watched[2 * LAYERS + i] = tern_swa_average(t.averages, x[i]);
    }
    for (int i = 0; i < LAYERS; i++)
        TERN_NO_GRAD
            assert_non_null(tern_mul_scalar_(x[i], TERN_SCALAR(0.5))); /* so that averages move */
    return t;
}

static void end(training *t)
{
    tern_swa_free(t->averages);
    tern_amp_free(t->scaler);
    tern_optim_free(t->o);
    tern_nn_free(t->m);
}

/* ---- what writes ------------------------------------------------------------------------------ */

static tern_status step(training *t)
{
    return tern_optim_step(t->o);
}
static tern_status clip_norm(training *t)
{
    tern_nn_clip_grad_norm_(t->m, 0.5);
    return tern_last_status();
}
static tern_status clip_value(training *t)
{
    return tern_nn_clip_grad_value_(t->m, 0.5);
}
static tern_status unscale(training *t)
{
    return tern_amp_unscale_(t->scaler, t->o);
}
static tern_status update(training *t)
{
    return tern_swa_update(t->averages);
}

typedef tern_status (*writer)(training *t);
static const struct {
    const char *name;
    writer write;
    int written; /* the first of `watched` that it writes */
} writers[] = {{"clip_grad_norm_", clip_norm, LAYERS},
               {"clip_grad_value_", clip_value, LAYERS},
               {"unscale_", unscale, LAYERS},
               {"update", update, 2 * LAYERS}};
enum { WRITERS = sizeof writers / sizeof *writers };

typedef struct numbers {
    double *of[3 * LAYERS];
} numbers;

static numbers read_all(const training *t)
{
    numbers all;
    for (int i = 0; i < 3 * LAYERS; i++)
        all.of[i] = test_read(t->watched[i]);
    return all;
}

/* How many of the tensors have other elements than before. */
static int moved(const training *t, const numbers *before, int first)
{
    numbers now = read_all(t);
    int count = 0;
    for (int i = 0; i < 3 * LAYERS; i++) {
        size_t bytes = (size_t)tern_numel(t->watched[i]) * sizeof(double);
        count += i >= first && i < first + LAYERS && memcmp(now.of[i], before->of[i], bytes) != 0;
        free(now.of[i]);
    }
    return count;
}

static void free_numbers(numbers *all)
{
    for (int i = 0; i < 3 * LAYERS; i++)
        free(all->of[i]);
}

/* ---- tests ------------------------------------------------------------------------------------ */

/* Each allocation of it fails in turn. */
static void fails_as_a_whole(const char *name, maker make, writer write, int written,
                             const char *device)
{
    bool done = false;
    for (uint64_t n = 1; !done; n++)
        TERN_SCOPE {
            training t = begin(make, device);
            numbers before = read_all(&t);
            tern_memory_fail_at(n);
            tern_status status = write(&t);
            done = tern_memory_fail_at(0) < n;
            tern_clear_error();
            int count = moved(&t, &before, written);
            if (done)
                assert_ok(status);
            if (count != (status == TERN_OK ? LAYERS : 0))
                fail_msg("%s, allocation %d: status %d, and %d of %d have changed", name, (int)n,
                         (int)status, count, LAYERS);
            free_numbers(&before);
            end(&t);
        }
}

static void a_step_without_memory_changes_nothing(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int k = 0; k < OPTIMIZERS; k++)
        if (optimizers[k].make != lbfgs)
            fails_as_a_whole(optimizers[k].name, optimizers[k].make, step, 0, device);
}

static void gradients_and_averages_change_as_a_whole(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int k = 0; k < WRITERS; k++)
        fails_as_a_whole(writers[k].name, sgd, writers[k].write, writers[k].written, device);
}

static tern_tensor *closure(void *user)
{
    training *t = user;
    return tern_sum(tern_nn_parameter(t->m, "0.weight"));
}

static const char refusal[] = "more than one element of the written-to tensor refers to a single "
                              "memory location";

/* A parameter may become one whose elements share memory after the optimizer was made. */
static void a_parameter_that_cannot_be_written_stops_the_step(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int k = 0; k < OPTIMIZERS; k++)
        TERN_SCOPE {
            training t = begin(optimizers[k].make, device);
            bool evaluates = optimizers[k].make == lbfgs; /* which has the first layer alone */
            tern_tensor *last = t.watched[evaluates ? 0 : LAYERS - 1];
            tern_shape shape = tern_shape_of(last);
            tern_tensor *repeated =
                tern_expand(drawn(device, TERN_F32, TERN_SHAPE(1, shape.dims[1]), 9), shape);
            assert_non_null(tern_set_data_(last, tern_detach(repeated)));
            numbers before = read_all(&t);
            assert_int_not_equal(evaluates ? tern_optim_step_closure(t.o, closure, &t, NULL)
                                           : tern_optim_step(t.o),
                                 TERN_OK);
            assert_error(TERN_ERR_ARGUMENT, refusal);
            assert_int_equal(moved(&t, &before, 0), 0);
            if (!evaluates) { /* without a gradient it is passed over */
                assert_ok(tern_set_grad(last, NULL));
                assert_ok(tern_optim_step(t.o));
                assert_int_equal(moved(&t, &before, 0), LAYERS - 1);
            }
            free_numbers(&before);
            end(&t);
        }
}

static void a_gradient_that_cannot_be_written_stops_all(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int k = 0; k < WRITERS && writers[k].written == LAYERS; k++)
        TERN_SCOPE {
            training t = begin(sgd, device);
            assert_ok(tern_set_grad(t.watched[2], expanded(device)));
            t.watched[LAYERS + 2] = tern_grad(t.watched[2]);
            numbers before = read_all(&t);
            assert_int_not_equal(writers[k].write(&t), TERN_OK);
            assert_error(TERN_ERR_ARGUMENT, refusal);
            assert_int_equal(moved(&t, &before, LAYERS), 0);
            free_numbers(&before);
            end(&t);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(a_step_without_memory_changes_nothing),
    TEST(gradients_and_averages_change_as_a_whole),
    TEST(a_parameter_that_cannot_be_written_stops_the_step),
    TEST(a_gradient_that_cannot_be_written_stops_all),
};
TEST_MAIN(tests)
