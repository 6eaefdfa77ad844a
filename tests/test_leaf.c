/* test_leaf.c -- gradients that are final in the middle of a backward pass: hooks then and at its end, places of their own,
 * the order of devices, sums over ranks. */
#include "base/thread.h"
#include "tensor/leaf.h"
#include "tensor/ranks.h"
#include "tensor/storage.h"
#include "support.h"
#include <math.h>

#define SHAPE TERN_SHAPE

/* Names of what was called, in order. */
static char called[64];

static tern_tensor *note(tern_tensor *grad, void *user)
{
    (void)grad;
    strncat(called, user, sizeof called - strlen(called) - 1);
    return NULL;
}

static tern_status note_post(tern_tensor *x, void *user)
{
    assert_non_null(tern_grad(x));
    strncat(called, user, sizeof called - strlen(called) - 1);
    return TERN_OK;
}

static tern_tensor *leaf(const char *device, double a, double b)
{
    return tern_requires_grad_(TENSOR(device, TERN_F32, SHAPE(2), a, b), true);
}

/* PyTorch's order for mul(exp(a), b): b, exp(a), a. */
static void a_leaf_is_told_during_the_walk(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *a = leaf(device, 0, 1), *b = leaf(device, 2, 3), *e = tern_exp(a);
        *called = '\0';
        assert_true(tern_register_hook(e, note, "e") > 0);
        assert_true(tern_register_hook(b, note, "h") > 0);
        assert_true(tern_register_post_accumulate_grad_hook(a, note_post, "a") > 0);
        int id = tern_register_post_accumulate_grad_hook(b, note_post, "b");
        assert_ok(tern_backward(tern_sum(tern_mul(e, b))));
        assert_string_equal(called, "hbea");
        assert_values_close(tern_grad(b), 1e-6, 1, 2.718281828);
        assert_ok(tern_remove_hook(b, id));
        assert_int_equal(tern_remove_hook(b, id), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "no hook");
        *called = '\0';
        assert_ok(tern_backward(tern_sum(tern_mul(tern_exp(a), b))));
        assert_string_equal(called, "ha");
        assert_values_close(tern_grad(a), 1e-6, 4, 6 * 2.718281828);
    }
}

static tern_status no_gradient(tern_function *f, tern_tensor *const *grad_out, int k,
                               tern_tensor **grad_in, int n)
{
    (void)f;
    (void)grad_out;
    (void)k;
    for (int i = 0; i < n; i++)
        grad_in[i] = NULL;
    return TERN_OK;
}

static tern_status doubled(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    (void)f;
    (void)n;
    (void)k;
    out[0] = tern_add(in[0], in[0]);
    return out[0] ? TERN_OK : tern_last_status();
}

static const tern_function_type stop = {
    .name = "Stop", .forward = doubled, .backward = no_gradient};

/* Several edges, one of them behind a chain that no gradient comes through: once, and with all of it. */
static void a_leaf_is_told_once_with_all_of_it(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *a = leaf(device, 1, 2), *chain = tern_mul_scalar(tern_exp(a), TERN_SCALAR(2)),
                    *cut;
        assert_ok(tern_function_apply(&stop, NULL, &chain, 1, &cut, 1));
        tern_tensor *first = tern_mul(a, a);
        tern_tensor *y = tern_add(tern_add(first, cut), tern_mul_scalar(a, TERN_SCALAR(3)));
        *called = '\0';
        assert_true(tern_register_post_accumulate_grad_hook(a, note_post, "a") > 0);
        tern_register_hook(first, note, "f");
        assert_ok(tern_backward(tern_sum(y)));
        assert_string_equal(called, "fa");
        assert_values(tern_grad(a), 5, 7);
        /* A backward pass for other inputs does not touch leaves. */
        tern_tensor *out = tern_sum(tern_mul(a, a)), *grad;
        assert_ok(tern_autograd_grad(&out, 1, &a, 1, &grad, NULL));
        assert_string_equal(called, "fa");
        assert_values(grad, 2, 4);
    }
}

/* Gradients of a long chain need not be there at once. */
static tern_status step_and_drop(tern_tensor *x, void *user)
{
    ++*(int *)user;
    TERN_NO_GRAD
        tern_sub_(x, tern_mul_scalar(tern_grad(x), TERN_SCALAR(0.5)));
    return tern_set_grad(x, NULL);
}

static void a_hook_may_step_and_let_go(void **state)
{
    enum { LAYERS = 24, N = 1 << 14 };
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        size_t peak[2];
        for (int hooked = 0; hooked < 2; hooked++)
            TERN_SCOPE {
                int steps = 0;
                tern_tensor *w[LAYERS], *x = tern_ones(SHAPE(N), TERN_F32, device);
                for (int i = 0; i < LAYERS; i++) {
                    w[i] = tern_requires_grad_(tern_ones(SHAPE(N), TERN_F32, device), true);
                    if (hooked)
                        tern_register_post_accumulate_grad_hook(w[i], step_and_drop, &steps);
                    x = tern_mul(x, w[i]);
                }
                tern_tensor *loss = tern_sum(x);
                tern_memory_stats stats = {0};
                assert_ok(tern_memory_get_stats(device, &stats));
                tern_reset_peak_memory_stats(device);
                size_t before = stats.allocated;
                assert_ok(tern_backward(loss));
                assert_ok(tern_memory_get_stats(device, &stats));
                peak[hooked] = stats.allocated_peak - before;
                assert_int_equal(steps, hooked ? LAYERS : 0);
                for (int i = 0; hooked && i < LAYERS; i++) {
                    assert_null(tern_grad(w[i]));
                    assert_true(tern_item(tern_select(w[i], 0, 7)) == 0.5);
                }
            }
        assert_true(peak[0] >= LAYERS * N * sizeof(float));
        assert_true(peak[1] <= 6 * N * sizeof(float));
    }
}

static tern_status refuse(tern_tensor *x, void *user)
{
    (void)x;
    return user ? tern_fail(TERN_ERR_PEER, "refuse: rank 2 is away") : TERN_ERR_ARGUMENT;
}

static void hooks_may_fail_and_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *a = leaf(device, 1, 2), *b = tern_exp(a);
        assert_int_equal(tern_register_post_accumulate_grad_hook(b, note_post, ""), 0);
        assert_error(TERN_ERR_STATE, "cannot be registered on non-leaf");
        assert_int_equal(tern_register_post_accumulate_grad_hook(tern_detach(a), note_post, ""), 0);
        assert_error(TERN_ERR_STATE, "doesn't require gradient");
        assert_int_equal(tern_register_post_accumulate_grad_hook(a, NULL, NULL), 0);
        assert_error(TERN_ERR_ARGUMENT, "hook");
        int id = tern_register_post_accumulate_grad_hook(a, refuse, "");
        assert_int_equal(tern_backward(tern_sum(tern_mul(b, a))), TERN_ERR_PEER);
        assert_error(TERN_ERR_PEER, "rank 2 is away");
        assert_ok(tern_remove_hook(a, id));
        assert_true(tern_register_post_accumulate_grad_hook(a, refuse, NULL) > 0);
        assert_int_equal(tern_backward(tern_sum(tern_mul(a, a))), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "a hook on a gradient of shape [2] failed");
    }
}

/* ---- the end of a backward pass --------------------------------------------------------- */

typedef struct ending {
    tern_after_backward end; /* first */
    tern_status was, is;
    bool awaited;
} ending;

static tern_status at_the_end(tern_after_backward *end, tern_status status)
{
    ending *e = (ending *)end;
    e->was = status;
    strncat(called, "E", sizeof called - strlen(called) - 1);
    return status != TERN_OK || e->is == TERN_OK ? status : tern_fail(e->is, "at_the_end: failed");
}

static tern_status await_end(tern_tensor *x, void *user)
{
    ending *e = user;
    (void)x;
    e->end.call = at_the_end;
    e->awaited = tern_await_backward(&e->end);
    return TERN_OK;
}

static void what_waits_is_told_of_the_end(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *a = leaf(device, 1, 2), *b = leaf(device, 3, 4);
        ending e = {.is = TERN_OK};
        assert_false(tern_await_backward(&e.end));
        *called = '\0';
        tern_register_post_accumulate_grad_hook(b, await_end, &e);
        tern_register_post_accumulate_grad_hook(a, note_post, "a");
        assert_ok(tern_backward(tern_sum(tern_mul(tern_exp(a), b))));
        assert_true(e.awaited);
        assert_string_equal(called, "aE");
        e.is = TERN_ERR_PEER;
        assert_int_equal(tern_backward(tern_sum(tern_mul(tern_exp(a), b))), TERN_ERR_PEER);
        assert_error(TERN_ERR_PEER, "at_the_end");
        assert_int_equal(e.was, TERN_OK);
        int id = tern_register_post_accumulate_grad_hook(a, refuse, NULL);
        assert_int_equal(tern_backward(tern_sum(tern_mul(tern_exp(a), b))), TERN_ERR_ARGUMENT);
        assert_int_equal(e.was, TERN_ERR_ARGUMENT);
        tern_clear_error();
        assert_ok(tern_remove_hook(a, id));
    }
}

/* ---- storage under saved tensors --------------------------------------------------------- */

static void storage_under_saved_tensors_may_come_and_go(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = leaf(device, 1, 2), *w = TENSOR(device, TERN_F32, SHAPE(2), 3, 4);
        tern_tensor *loss = tern_sum(tern_mul(x, w));
        assert_ok(tern_storage_empty(w));
        assert_int_equal(tern_backward_with(loss, &(tern_backward_options){.retain_graph = true}),
                         TERN_ERR_STATE);
        tern_clear_error();
        assert_ok(tern_storage_refill(w));
        double numbers[2] = {3, 4};
        float values[2] = {(float)numbers[0], (float)numbers[1]};
        assert_ok(tern_storage_write(w, 0, values, sizeof values));
        assert_ok(tern_backward(loss));
        assert_values(tern_grad(x), 3, 4);
    }
}

/* ---- devices ----------------------------------------------------------------------------- */

/* The host's part was recorded last, and would come first. */
static void devices_are_given_work_before_the_host(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        if (strcmp(device, "cpu") == 0)
            continue;
        tern_tensor *x = leaf(device, 1, 2), *there = tern_mul_scalar(x, TERN_SCALAR(2));
        tern_tensor *here = tern_mul_scalar(tern_to(x, "cpu"), TERN_SCALAR(3));
        *called = '\0';
        tern_register_hook(there, note, "d");
        tern_register_hook(here, note, "h");
        tern_tensor *a = tern_sum(tern_mul(there, there)), *b = tern_sum(tern_mul(here, here));
        assert_ok(tern_backward(tern_add(a, tern_to(b, device))));
        assert_string_equal(called, "dh");
        assert_values(tern_grad(x), 26, 52);
    }
}

/* ---- ranks ------------------------------------------------------------------------------- */

typedef struct fake {
    tern_ranks ranks; /* first */
    int calls;
    double other; /* what the other rank has */
} fake;

static tern_status reduce(tern_ranks *ranks, double *values, int n, bool greatest)
{
    fake *f = (fake *)ranks;
    f->calls++;
    for (int i = 0; i < n; i++)
        values[i] = !greatest ? values[i] + f->other : f->other > values[i] ? f->other : values[i];
    return TERN_OK;
}

static void norms_are_of_all_ranks(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        fake f = {.ranks = {.reduce = reduce, .sums = &f.ranks}};
        tern_module *m = tern_nn_linear(2, 1, &(tern_linear_options){.device = device});
        tern_tensor *weight = tern_nn_parameter(m, "weight"), *bias = tern_nn_parameter(m, "bias");
        tern_clip_grad_norm_options one = {.norm_type = 1}, most = {.norm_type = INFINITY};
        assert_ok(tern_set_grad(weight, TENSOR(device, TERN_F32, SHAPE(1, 2), 1, 2)));
        assert_ok(tern_set_grad(bias, TENSOR(device, TERN_F32, SHAPE(1), 2)));
        assert_true(fabs(tern_nn_clip_grad_norm_(m, 100) - 3) < 1e-6);
        assert_ok(tern_set_ranks(weight, &f.ranks));
        f.other = 16; /* 1 + 4 + 16 + 4 */
        assert_true(fabs(tern_nn_clip_grad_norm_(m, 100) - 5) < 1e-6);
        f.other = 4; /* 1 + 2 + 4 + 2 */
        assert_true(fabs(tern_nn_clip_grad_norm_with_(m, 100, &one) - 9) < 1e-6);
        assert_true(fabs(tern_nn_clip_grad_norm_with_(m, 100, &most) - 4) < 1e-6);
        assert_int_equal(f.calls, 3);
        f.other = 16;
        assert_true(fabs(tern_nn_clip_grad_norm_(m, 2.5) - 5) < 1e-6);
        assert_values_close(tern_grad(weight), 1e-5, 0.5, 1);
        /* One without a gradient here takes part all the same. */
        assert_ok(tern_set_grad(weight, NULL));
        assert_true(fabs(tern_nn_clip_grad_norm_(m, 100) - sqrt(17)) < 1e-5);
        assert_int_equal(f.calls, 5);
        tern_nn_free(m);
    }
}

static void a_step_that_one_rank_skips_all_skip(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        fake f = {.ranks = {.reduce = reduce, .sums = &f.ranks}, .other = 1};
        tern_module *m = tern_nn_linear(2, 1, &(tern_linear_options){.device = device});
        tern_tensor *weight = tern_nn_parameter(m, "weight"), *was = tern_clone(weight);
        tern_optimizer *o = tern_optim_sgd(m, 0.1, NULL);
        tern_scaler *scaler = tern_amp_grad_scaler(NULL);
        for (int skips = 1; skips >= 0; skips--) {
            f.other = skips;
            assert_ok(tern_set_ranks(weight, &f.ranks));
            tern_tensor *y = tern_nn_forward(m, tern_ones(SHAPE(1, 2), TERN_F32, device));
            assert_ok(tern_backward(tern_amp_scale(scaler, tern_sum(y))));
            assert_ok(tern_amp_step(scaler, o));
            assert_ok(tern_amp_update(scaler));
            assert_int_equal(tern_item_int(tern_any(tern_ne(was, weight))), !skips);
            assert_ok(tern_optim_zero_grad(o));
        }
        assert_int_equal(f.calls, 2);
        tern_amp_free(scaler);
        tern_optim_free(o);
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_leaf_is_told_during_the_walk),
    TEST(a_leaf_is_told_once_with_all_of_it),
    TEST(a_hook_may_step_and_let_go),
    TEST(hooks_may_fail_and_are_refused),
    TEST(what_waits_is_told_of_the_end),
    TEST(storage_under_saved_tensors_may_come_and_go),
    TEST(devices_are_given_work_before_the_host),
    TEST(norms_are_of_all_ranks),
    TEST(a_step_that_one_rank_skips_all_skip),
};
TEST_MAIN(tests)
