/* test_checkpoint.c -- checkpoints: the gradients of a plain run, with less memory. */
#include "support.h"
#include "base/memory.h"
#include <math.h>

/* What a function does, and how often it did it. */
typedef struct work {
    tern_tensor *w, *v;
    int runs;
    bool nested;
} work;

/* {dropout(gelu(x w)) y, sum of tanh(x)}, where x is used in both. */
static tern_status two_of_two(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    work *job = data;
    assert_int_equal(n, 2);
    assert_int_equal(k, 2);
    job->runs++;
    tern_tensor *h = tern_gelu(tern_matmul(in[0], job->w));
    out[0] = tern_mul(tern_dropout(h, 0.5, true), in[1]);
    out[1] = tern_sum(tern_tanh(in[0]));
    return TERN_OK;
}

/* The same with the first half in a checkpoint of its own, and something after it. */
static tern_status inner_half(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    work *job = data;
    (void)n;
    (void)k;
    job->runs += 100;
    out[0] = tern_gelu(tern_matmul(tern_mul(in[0], in[0]), job->w));
    return TERN_OK;
}

static tern_status outer(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    work *job = data;
    (void)n;
    job->runs++;
    tern_tensor *h = tern_exp(in[0]), *y = NULL;
    tern_status status = job->nested ? tern_checkpoint(inner_half, job, &h, 1, &y, 1, NULL)
                                     : inner_half(job, &h, 1, &y, 1);
    if (status != TERN_OK)
        return status;
    out[0] = tern_mul(tern_sigmoid(y), in[1]);
    if (k > 1)
        out[1] = tern_sum(tern_square(y));
    return TERN_OK;
}

typedef struct grads {
    tern_tensor *x, *y, *w, *loss;
} grads;

static tern_tensor *leaf(const char *device, uint64_t seed)
{
    return tern_requires_grad_(test_uniform(device, TERN_F32, TERN_SHAPE(6, 6), -1, 1, seed), true);
}

static grads run(const char *device, tern_checkpoint_function function, bool checkpointed,
                 bool nested, int *runs)
{
    grads g;
    tern_manual_seed(11);
    tern_tensor *x = leaf(device, 1), *y = leaf(device, 2), *out[2];
    work job = {.w = leaf(device, 3), .nested = nested};
    tern_tensor *in[2] = {tern_mul_scalar(x, TERN_SCALAR(0.5)), y};
    if (checkpointed)
        assert_ok(tern_checkpoint(function, &job, in, 2, out, 2, NULL));
    else
        assert_ok(function(&job, in, 2, out, 2));
    g.loss = tern_add(tern_sum(tern_square(out[0])), out[1]);
    tern_tensor *after = tern_dropout(y, 0.5, true);
    assert_ok(tern_backward(tern_add(g.loss, tern_sum(after))));
    g.x = tern_grad(x);
    g.y = tern_grad(y);
    g.w = tern_grad(job.w);
    /* The second run leaves the generator where it was. */
    g.loss = tern_add(g.loss, tern_sum(tern_rand(TERN_SHAPE(3), TERN_F32, device)));
    *runs = job.runs;
    return g;
}

static void assert_equal_grads(grads a, grads b)
{
    assert_same(a.loss, b.loss);
    assert_same(a.x, b.x);
    assert_same(a.y, b.y);
    assert_same(a.w, b.w);
}

static void gradients_are_those_of_a_plain_run(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t before = tern_live_tensors();
        TERN_SCOPE {
            int runs[2];
            grads plain = run(device, two_of_two, false, false, &runs[0]);
            grads again = run(device, two_of_two, true, false, &runs[1]);
            assert_int_equal(runs[0], 1);
            assert_int_equal(runs[1], 2);
            assert_equal_grads(plain, again);
        }
        assert_int_equal(tern_live_tensors(), before);
    }
}

static void checkpoints_nest(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t before = tern_live_tensors();
        TERN_SCOPE {
            int runs[2];
            grads plain = run(device, outer, false, false, &runs[0]);
            grads again = run(device, outer, true, true, &runs[1]);
            assert_int_equal(runs[0], 101);
            assert_int_equal(runs[1], 302);
            assert_equal_grads(plain, again);
        }
        assert_int_equal(tern_live_tensors(), before);
    }
}

/* ---- memory ------------------------------------------------------------------------------ */

static tern_module *deep(const char *device)
{
    tern_module *m = tern_nn_sequential_of(NULL, 0);
    for (int i = 0; i < 12; i++) {
        tern_nn_append(m, tern_nn_linear(16, 16, &(tern_linear_options){.device = device}));
        tern_nn_append(m, tern_nn_gelu(NULL));
    }
    return m;
}

/* The most bytes a step takes beyond those that were there before it. */
static uint64_t step_peak(tern_module *m, tern_tensor *x, int segments)
{
    tern_memory_stats stats;
    const char *device = tern_device(x);
    uint64_t peak = 0;
    TERN_SCOPE {
        tern_tensor *y = NULL;
        assert_ok(tern_memory_get_stats(device, &stats));
        uint64_t before = stats.allocated;
        assert_ok(tern_reset_peak_memory_stats(device));
        /* A scope of its own: only the graph holds what lies between. */
        TERN_SCOPE {
            y = tern_escape(segments > 1 ? tern_checkpoint_sequential(m, segments, x, NULL)
                                         : tern_nn_forward(m, x));
        }
        assert_ok(tern_backward(tern_sum(y)));
        assert_ok(tern_memory_get_stats(device, &stats));
        peak = stats.allocated_peak - before;
    }
    return peak;
}

static void peaks_are_lower(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = deep(device);
        TERN_SCOPE {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2000, 16), -1, 1, 5);
            tern_nn_zero_grad(m);
            uint64_t plain = step_peak(m, x, 1);
            tern_tensor *grad = tern_clone(tern_grad(tern_nn_parameter(m, "0.weight")));
            tern_nn_zero_grad(m);
            uint64_t less = step_peak(m, x, 6);
            assert_same(tern_grad(tern_nn_parameter(m, "0.weight")), grad);
            assert_true(less * 2 < plain);
        }
        tern_nn_free(m);
    }
}

static void sequences_are_cut_into_segments(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(tern_nn_tanh(), tern_nn_sigmoid(), tern_nn_tanh());
    TERN_SCOPE {
        tern_tensor *x = leaf(NULL, 1), *wanted = tern_nn_forward(m, x);
        for (int segments = 1; segments <= 3; segments++)
            assert_same(tern_checkpoint_sequential(m, segments, x, NULL), wanted);
        assert_null(tern_checkpoint_sequential(m, 4, x, NULL));
        assert_error(TERN_ERR_ARGUMENT, "4 segments of 3 modules");
        assert_null(tern_checkpoint_sequential(m, 1, NULL, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_checkpoint_sequential");
        assert_same(tern_checkpoint_forward(m, x), wanted);
    }
    tern_nn_free(m);
}

/* ---- other ways back --------------------------------------------------------------------- */

static tern_status cube(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)data;
    (void)n;
    (void)k;
    tern_tensor *x = tern_mul(in[0], in[0]);
    out[0] = tern_mul(tern_exp(x), in[0]);
    return TERN_OK;
}

/* d/dx of x exp(x x), twice, where x is a leaf or not. */
static void second_derivatives_go_through(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        for (int is_leaf = 0; is_leaf < 2; is_leaf++)
            TERN_SCOPE {
                tern_tensor *x =
                    tern_requires_grad_(TENSOR(device, TERN_F32, TERN_SHAPE(2), 0.5, -0.25), true);
                tern_tensor *in = is_leaf ? x : tern_mul_scalar(x, TERN_SCALAR(1)), *y, *dx, *ddx;
                assert_ok(tern_checkpoint(cube, NULL, &in, 1, &y, 1, NULL));
                tern_tensor *sum = tern_sum(y);
                tern_autograd_grad_options o = {.create_graph = true};
                assert_ok(tern_autograd_grad(&sum, 1, &x, 1, &dx, &o));
                sum = tern_sum(dx);
                assert_ok(tern_autograd_grad(&sum, 1, &x, 1, &ddx, NULL));
                double first[2], second[2];
                for (int i = 0; i < 2; i++) {
                    double v = i ? -0.25 : 0.5, e = exp(v * v);
                    first[i] = e * (1 + 2 * v * v);
                    second[i] = e * (6 * v + 4 * v * v * v);
                }
                assert_values_close(dx, 1e-5, first[0], first[1]);
                assert_values_close(ddx, 1e-5, second[0], second[1]);
            }
    }
}

static void a_graph_that_is_kept_is_walked_twice(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(TENSOR("cpu", TERN_F32, TERN_SHAPE(1), 0.5), true), *y;
        assert_ok(tern_checkpoint(cube, NULL, &x, 1, &y, 1, NULL));
        assert_ok(tern_backward_with(y, &(tern_backward_options){.retain_graph = true}));
        tern_tensor *once = tern_clone(tern_grad(x));
        assert_ok(tern_backward(y));
        assert_close(tern_grad(x), tern_add(once, once), .rel = 1e-6);
        assert_int_equal(tern_backward(y), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "Trying to backward through the graph a second time");
    }
}

/* Inputs that require no gradient, a write in place, and a view that is written. */
static tern_status in_place(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const work *job = data;
    (void)n;
    (void)k;
    tern_tensor *h = tern_sigmoid_(tern_mul(in[0], job->w));
    h = tern_add_scalar(h, TERN_SCALAR(1));
    tern_mul_(tern_narrow(h, 0, 0, 2), job->v);
    out[0] = tern_square(h);
    return TERN_OK;
}

static void writes_in_place_and_constant_inputs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        TERN_SCOPE {
            tern_tensor *grad[2][2], *x = tern_detach(leaf(device, 1)), *y;
            for (int i = 0; i < 2; i++) {
                work job = {.w = leaf(device, 2),
                            .v = tern_requires_grad_(
                                test_uniform(device, TERN_F32, TERN_SHAPE(2, 6), 1, 2, 3), true)};
                if (i)
                    assert_ok(tern_checkpoint(in_place, &job, &x, 1, &y, 1, NULL));
                else
                    assert_ok(in_place(&job, &x, 1, &y, 1));
                assert_ok(tern_backward(tern_sum(y)));
                grad[i][0] = tern_grad(job.w);
                grad[i][1] = tern_grad(job.v);
            }
            assert_same(grad[1][0], grad[0][0]);
            assert_same(grad[1][1], grad[0][1]);
        }
    }
}

static void autocast_is_that_of_the_first_run(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = deep(device);
        TERN_SCOPE {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(4, 16), -1, 1, 5), *y[2];
            tern_tensor *grad[2];
            for (int i = 0; i < 2; i++) {
                tern_nn_zero_grad(m);
                TERN_AUTOCAST (device, TERN_BF16)
                    y[i] = i ? tern_checkpoint_sequential(m, 6, x, NULL) : tern_nn_forward(m, x);
                assert_int_equal(tern_dtype_of(y[i]), TERN_BF16);
                assert_ok(tern_backward(tern_sum(tern_to_dtype(y[i], TERN_F32))));
                grad[i] = tern_clone(tern_grad(tern_nn_parameter(m, "0.weight")));
                assert_int_equal(tern_dtype_of(grad[i]), TERN_F32);
            }
            assert_same(y[0], y[1]);
            assert_same(grad[0], grad[1]);
        }
        tern_nn_free(m);
    }
}

/* ---- errors ------------------------------------------------------------------------------ */

static tern_status changing(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    int *runs = data;
    (void)n;
    (void)k;
    out[0] = tern_exp(in[0]);
    if ((*runs)++ > 0)
        out[0] = tern_exp(out[0]);
    return TERN_OK;
}

static tern_status asking(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    tern_tensor *x = in[0], *y = tern_sum(tern_exp(x));
    (void)data;
    (void)n;
    (void)k;
    return tern_autograd_grad(&y, 1, &x, 1, out, NULL);
}

static tern_status failing(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)data;
    (void)in;
    (void)n;
    (void)out;
    (void)k;
    return TERN_ERR_IO;
}

static tern_status giving_nothing(void *data, tern_tensor *const *in, int n, tern_tensor **out,
                                  int k)
{
    (void)data;
    (void)in;
    (void)n;
    (void)out;
    (void)k;
    return TERN_OK;
}

static void what_cannot_work_is_told(void **state)
{
    (void)state;
    int64_t before = tern_live_tensors();
    TERN_SCOPE {
        int runs = 0;
        tern_tensor *x = leaf("cpu", 1), *y;
        tern_tensor *twice = tern_mul_scalar(x, TERN_SCALAR(2));
        assert_ok(tern_checkpoint(changing, &runs, &twice, 1, &y, 1, NULL));
        assert_int_equal(tern_backward(tern_sum(y)), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE,
                     "Number of tensors saved during forward: 1. Number of tensors saved during "
                     "recomputation: 2");
        assert_ok(tern_checkpoint(cube, NULL, &twice, 1, &y, 1, NULL));
        TERN_NO_GRAD
            tern_mul_scalar_(twice, TERN_SCALAR(2));
        assert_int_equal(tern_backward(tern_sum(y)), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "input 0 [float32 [6, 6]] has been modified by an inplace "
                                     "operation since: it is at version 1; expected version 0");
        assert_int_equal(tern_checkpoint(asking, NULL, &twice, 1, &y, 1, NULL), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "which is not there while it runs");
        assert_null(y);
        assert_int_equal(tern_checkpoint(failing, NULL, &x, 1, &y, 1, NULL), TERN_ERR_IO);
        assert_error(TERN_ERR_IO, "the function failed");
        assert_int_equal(tern_checkpoint(giving_nothing, NULL, &x, 1, &y, 1, NULL),
                         TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "the function gave no tensor (output 0 of 1 is NULL)");
        assert_int_equal(tern_checkpoint(NULL, NULL, &x, 1, &y, 1, NULL), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "function");
    }
    assert_int_equal(tern_live_tensors(), before);
}

static void count_up(void *data)
{
    ++*(int *)data;
}

static tern_status pass(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)data;
    (void)n;
    (void)k;
    out[0] = tern_exp(in[0]);
    return TERN_OK;
}

static void data_is_freed_when_it_is_done(void **state)
{
    (void)state;
    int freed = 0;
    tern_checkpoint_options o = {.free_data = count_up};
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu", 1), *y;
        TERN_NO_GRAD
            assert_ok(tern_checkpoint(pass, &freed, &x, 1, &y, 1, &o));
        assert_int_equal(freed, 1);
        assert_false(tern_requires_grad(y));
        assert_ok(tern_checkpoint(pass, &freed, &x, 1, &y, 1, &o));
        assert_int_equal(freed, 1);
        assert_ok(tern_backward(tern_sum(y)));
        assert_int_equal(freed, 2);
        assert_ok(tern_checkpoint(pass, &freed, &x, 1, &y, 1, &o));
    }
    assert_int_equal(freed, 3);
}

static void no_failed_allocation_leaks(void **state)
{
    (void)state;
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        int64_t before = tern_live_tensors();
        TERN_SCOPE {
            tern_tensor *x = leaf("cpu", 1), *y = leaf("cpu", 2), *out[2];
            work job = {.w = leaf("cpu", 3), .nested = true};
            tern_tensor *in[2] = {tern_mul_scalar(x, TERN_SCALAR(2)), y};
            tern_memory_fail_at(n);
            if (tern_checkpoint(outer, &job, in, 2, out, 2, NULL) == TERN_OK)
                tern_backward(tern_sum(out[0]));
            tern_memory_fail_at(0);
        }
        bool failed = tern_last_status() != TERN_OK;
        tern_clear_error();
        failures += failed;
        assert_int_equal(tern_live_tensors(), before);
        if (!failed)
            break;
    }
    assert_true(failures > 30);
}

static const struct CMUnitTest tests[] = {
    TEST(gradients_are_those_of_a_plain_run),
    TEST(checkpoints_nest),
    TEST(peaks_are_lower),
    TEST(sequences_are_cut_into_segments),
    TEST(second_derivatives_go_through),
    TEST(a_graph_that_is_kept_is_walked_twice),
    TEST(writes_in_place_and_constant_inputs),
    TEST(autocast_is_that_of_the_first_run),
    TEST(what_cannot_work_is_told),
    TEST(data_is_freed_when_it_is_done),
    TEST(no_failed_allocation_leaks),
};
TEST_MAIN(tests)
