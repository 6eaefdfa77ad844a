/* test_failures.c -- the n-th host allocation and the n-th OpenCL call fail, for every n, under a
 * program that goes forward, back and steps: an error, no crash, no leak, inputs as they were. */
#include "support.h"
#include "base/memory.h"
#ifdef TERN_WITH_OPENCL
#include "device/opencl/opencl.h"
#endif
#include <stdlib.h>

enum { N = 12 };

/* One training step on w, and a few operations that are not needed for it: views, a write in place,
 * a second derivative. Only the step changes w. */
static tern_status program(tern_tensor *w, tern_tensor *x, tern_optimizer *optimizer)
{
    TERN_SCOPE {
        tern_tensor *y = tern_tanh(tern_mul(tern_view(x, TERN_SHAPE(3, 4)), w));
        tern_tensor *z = tern_sum_dim(tern_exp(y), TERN_DIMS(1), false);
        tern_tensor *part = tern_mul_scalar(z, TERN_SCALAR(1));
        tern_mul_(part, tern_select(y, 1, 0));
        tern_tensor *loss = tern_sum(part), *dw = NULL;
        tern_autograd_grad(&loss, 1, &w, 1, &dw,
                           &(tern_autograd_grad_options){.create_graph = true});
        loss = tern_add(loss, tern_sum(tern_square(dw)));
        tern_backward(loss);
        tern_item(loss);
        tern_optim_step(optimizer);
    }
    return tern_last_status();
}

typedef uint64_t (*fail_at)(uint64_t n);

typedef struct setting {
    tern_tensor *w, *x;
    tern_optimizer *optimizer;
    double *before_w, *before_x;
} setting;

static void same_numbers(const tern_tensor *x, const double *values, const char *what, uint64_t n)
{
    double *now = test_read(x);
    bool same = memcmp(now, values, (size_t)tern_numel(x) * sizeof *now) == 0;
    free(now);
    if (!same)
        fail_msg("failure %llu changed %s", (unsigned long long)n, what);
}

static setting set_up(const char *device)
{
    setting s = {.w = test_uniform(device, TERN_F32, TERN_SHAPE(4), -1, 1, 1),
                 .x = test_uniform(device, TERN_F32, TERN_SHAPE(N), -1, 1, 2)};
    tern_requires_grad_(s.w, true);
    s.optimizer = tern_optim_sgd_of(&s.w, 1, 0.1, &(tern_sgd_options){.momentum = 0.5});
    assert_non_null(s.optimizer);
    s.before_w = test_read(s.w);
    s.before_x = test_read(s.x);
    return s;
}

static void tear_down(setting *s)
{
    tern_optim_free(s->optimizer);
    free(s->before_w);
    free(s->before_x);
}

static void sweep(const char *device, fail_at arm)
{
    int64_t baseline = tern_live_tensors();
    uint64_t n = 1, calls = 0;
    bool done = false;
    TERN_SCOPE { /* kernels are built and first blocks taken */
        setting s = set_up(device);
        assert_ok(program(s.w, s.x, s.optimizer));
        tear_down(&s);
    }
    for (; !done; n++) {
        assert_in_range(n, 1, 20000);
        TERN_SCOPE {
            setting s = set_up(device);
            arm(n);
            tern_status status = program(s.w, s.x, s.optimizer);
            calls = arm(0);
            done = status == TERN_OK && calls < n;
            if (status != TERN_OK) {
                assert_true(*tern_last_error() != '\0');
                tern_clear_error();
                same_numbers(s.w, s.before_w, "w", n);
            }
            same_numbers(s.x, s.before_x, "x", n);
            tern_set_grad(s.w, NULL);
            if (status != TERN_OK) /* and everything works again */
                assert_ok(program(s.w, s.x, s.optimizer));
            tear_down(&s);
        }
        if (tern_live_tensors() != baseline)
            fail_msg("failure %llu leaves %lld tensors behind", (unsigned long long)n,
                     (long long)(tern_live_tensors() - baseline));
    }
    print_message("%llu calls failed in turn on %s\n", (unsigned long long)(n - 2), device);
    assert_in_range(n, 20, 20000);
}

static void any_host_allocation_may_fail(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    sweep(device, tern_memory_fail_at);
}

/* Functions of several results, and gradients that are several results of one call: (1, 4, 6)
 * floats in, what fails must not touch what was not made. */
static tern_status gradient_of(tern_tensor *y, tern_tensor *x)
{
    tern_tensor *sum = tern_sum(y), *dx = NULL;
    return sum ? tern_autograd_grad(&sum, 1, &x, 1, &dx, NULL) : tern_last_status();
}

static tern_status layer_norm(tern_tensor *x)
{
    tern_tensor *w = tern_ones(TERN_SHAPE(6), TERN_F32, tern_device(x));
    w = tern_requires_grad_(w, true);
    return !w ? tern_last_status() : gradient_of(tern_layer_norm(x, TERN_SHAPE(6), w, w, 1e-5), x);
}

static tern_status batch_norm(tern_tensor *x)
{
    tern_tensor *w = tern_ones(TERN_SHAPE(4), TERN_F32, tern_device(x));
    w = tern_requires_grad_(w, true);
    return !w ? tern_last_status()
              : gradient_of(tern_batch_norm(x, NULL, NULL, w, w, true, 0.1, 1e-5), x);
}

static tern_status linear(tern_tensor *x)
{
    tern_tensor *w = tern_select(tern_detach(x), 0, 0);
    w = tern_requires_grad_(tern_clone(w), true);
    tern_tensor *bias = tern_sum_dim(w, TERN_DIMS(1), false);
    return bias ? gradient_of(tern_linear(x, w, bias), x) : tern_last_status();
}

static tern_status attention(tern_tensor *x)
{
    tern_tensor *q = tern_unsqueeze(x, 0);
    return gradient_of(tern_scaled_dot_product_attention(q, tern_exp(q), q, NULL), x);
}

static tern_status lstm(tern_tensor *x)
{
    tern_module *m = tern_nn_lstm(6, 3, NULL);
    tern_tensor *y[3] = {NULL};
    tern_status status =
        tern_nn_to(m, tern_device(x)) ? tern_nn_call(m, &x, 1, y, 3) : tern_last_status();
    if (status == TERN_OK)
        status = gradient_of(tern_add(tern_sum(y[0]), tern_sum(y[2])), x);
    tern_nn_free(m);
    return status;
}

static tern_status ctc(tern_tensor *x)
{
    const char *device = tern_device(x);
    tern_tensor *targets = tern_ones(TERN_SHAPE(4, 1), TERN_I64, device);
    tern_tensor *one = tern_ones(TERN_SHAPE(4), TERN_I64, device);
    return gradient_of(tern_ctc_loss(tern_log_softmax(x, -1), targets, one, one, NULL), x);
}

static tern_status max_pool(tern_tensor *x)
{
    tern_values_indices pair = {0};
    tern_status status = tern_max_pool1d_with_indices(x, TERN_SHAPE(2), NULL, &pair);
    return status == TERN_OK ? gradient_of(pair.values, x) : status;
}

static tern_status pairs(tern_tensor *x)
{
    tern_values_indices pair;
    tern_tensor *two[2];
    TERN_TRY(tern_sort(x, -1, false, &pair));
    TERN_TRY(tern_max_dim(x, 1, false, &pair));
    TERN_TRY(tern_topk(x, 2, -1, true, true, &pair));
    TERN_TRY(tern_kthvalue(x, 2, -1, false, &pair));
    TERN_TRY(tern_median_dim(x, -1, false, &pair));
    TERN_TRY(tern_mode(x, -1, false, &pair));
    TERN_TRY(tern_cummax(x, -1, &pair));
    TERN_TRY(tern_aminmax(x, two));
    return tern_var_mean(x, true, two);
}

static tern_status split(tern_tensor *x)
{
    tern_tensor *pieces[3];
    return tern_split(x, 2, 2, pieces, 3) == 3 ? gradient_of(pieces[1], x) : tern_last_status();
}

/* Several results or none. */
static tern_status uniques(tern_tensor *x)
{
    tern_tensor *none = tern_narrow(x, 0, 0, 0), *const of[] = {x, none};
    for (int i = 0; none && i < 4; i++) {
        tern_unique_result u = {NULL, NULL, NULL};
        tern_status status = i < 2 ? tern_unique(of[i], &u) : tern_unique_dim(of[i - 2], 0, &u);
        if (status != TERN_OK) /* a result of what failed is as wrong as no error */
            return u.output || u.inverse || u.counts ? TERN_OK : status;
    }
    return none ? TERN_OK : tern_last_status();
}

static tern_status (*const several[])(tern_tensor *x) = {
    layer_norm, batch_norm, linear, attention, lstm, ctc, max_pool, pairs, split, uniques};
enum { SEVERAL = sizeof several / sizeof *several };

/* Leaves no zeros on the stack, so that what is not set is found. */
static void soil_stack(void)
{
    volatile char bytes[16384];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0x41;
}

/* Functions with an input that may be absent, and has to be copied first here. */
static tern_tensor *with_optional(int which, tern_tensor *x, tern_tensor *w)
{
    tern_tensor *out = NULL;
    tern_module *m = NULL;
    switch (which) {
    case 0:
        return tern_layer_norm(x, TERN_SHAPE(6), w, w, 1e-5);
    case 1:
        return tern_conv1d(x, tern_ones(TERN_SHAPE(6, 4, 1), TERN_F32, tern_device(x)), w, NULL);
    case 2:
        return tern_cross_entropy(tern_select(x, 0, 0),
                                  tern_zeros(TERN_SHAPE(4), TERN_I64, tern_device(x)),
                                  &(tern_cross_entropy_options){.weight = w});
    case 3:
        return tern_histc(x, 3, 0, 0);
    case 4:
        return tern_matrix_power(tern_reshape(tern_narrow(x, 2, 0, 4), TERN_SHAPE(4, 4)), 5);
    case 7:
        return tern_normal(x, tern_abs(x));
    case 5:
        m = tern_nn_transformer(&(tern_transformer_options){.d_model = 4,
                                                            .nhead = 2,
                                                            .num_encoder_layers = 1,
                                                            .num_decoder_layers = 1,
                                                            .layer = {.dim_feedforward = 4}});
        tern_nn_free(m);
        return m ? x : NULL;
    default:
        m = tern_nn_multihead_attention(6, 2, NULL);
        out = m ? tern_nn_multihead_attention_forward(m, x, tern_exp(x), x, NULL, NULL) : NULL;
        tern_nn_free(m);
        return out;
    }
}

static void what_cannot_be_copied_is_not_absent(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(1, 4, 6), -1, 1, 1);
        tern_tensor *w = test_view(x, TERN_SHAPE(6), TERN_SHAPE(2), 0); /* every other element */
        for (int which = 0; which < 8; which++) {
            bool done = false;
            for (uint64_t n = 1; !done; n++)
                TERN_SCOPE {
                    tern_memory_fail_at(n);
                    tern_tensor *y = with_optional(which, x, w);
                    done = tern_memory_fail_at(0) < n;
                    if ((y != NULL) != (tern_last_status() == TERN_OK))
                        fail_msg("%d: failure %llu: %s and '%s'", which, (unsigned long long)n,
                                 y ? "a result" : "none", tern_last_error());
                    tern_clear_error();
                }
        }
    }
}

typedef struct buffers {
    tern_tensor *x[4];
    double *before[4];
    int n;
} buffers;

static tern_status note_buffer(const char *path, tern_tensor *x, void *user)
{
    buffers *b = user;
    (void)path;
    b->x[b->n] = x;
    b->before[b->n++] = test_read(x);
    return TERN_OK;
}

static tern_module *with_buffers(int which)
{
    if (which == 0)
        return tern_nn_spectral_norm(tern_nn_linear(4, 3, NULL), NULL, NULL);
    if (which == 1)
        return tern_nn_batch_norm1d(4, NULL);
    if (which == 2) /* of an input without a batch */
        return tern_nn_instance_norm1d(5,
                                       &(tern_instance_norm_options){.track_running_stats = true});
    return tern_nn_batch_norm1d(4, &(tern_batch_norm_options){.momentum = 0.5});
}

/* Running statistics, and the directions of a spectral norm. */
static void buffers_stay_where_a_forward_fails(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int which = 0; which < 4; which++)
        TERN_SCOPE {
            tern_module *m = tern_nn_to(with_buffers(which), device);
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(5, 4), -1, 1, 1);
            bool done = false;
            assert_non_null(tern_nn_forward(m, x));
            for (uint64_t n = 1; !done; n++)
                TERN_SCOPE {
                    buffers b = {.n = 0};
                    assert_ok(tern_nn_each_buffer(m, note_buffer, &b));
                    tern_memory_fail_at(n);
                    tern_tensor *y = tern_nn_forward(m, x);
                    done = tern_memory_fail_at(0) < n;
                    assert_true(y || tern_last_status() != TERN_OK);
                    tern_clear_error();
                    for (int i = 0; i < b.n; i++) {
                        if (!y)
                            same_numbers(b.x[i], b.before[i], "a buffer", n);
                        free(b.before[i]);
                    }
                }
            tern_nn_free(m);
        }
}

static void try_several(int which, tern_tensor *x, fail_at next)
{
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        int64_t live = tern_live_tensors();
        TERN_SCOPE {
            assert_ok(tern_empty_cache(tern_device(x)));
            soil_stack();
            next(n);
            tern_status status = several[which](x);
            done = next(0) < n;
            if ((status == TERN_OK) != (tern_last_status() == TERN_OK))
                fail_msg("%d: failure %llu: status %d and '%s'", which, (unsigned long long)n,
                         status, tern_last_error());
            tern_clear_error();
        }
        if (tern_live_tensors() != live)
            fail_msg("%d: failure %llu leaves %lld tensors behind", which, (unsigned long long)n,
                     (long long)(tern_live_tensors() - live));
    }
}

static void any_of_several_results_may_not_be_made(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int which = 0; which < SEVERAL; which++)
        TERN_SCOPE {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(1, 4, 6), -1, 1, 1);
            tern_requires_grad_(x, true);
            assert_ok(several[which](x));
            try_several(which, x, tern_memory_fail_at);
#ifdef TERN_WITH_OPENCL
            if (strncmp(device, "opencl", 6) == 0)
                try_several(which, x, tern_opencl_fail_at);
#endif
        }
}

static void any_driver_call_may_fail(void **state)
{
    (void)state;
#ifdef TERN_WITH_OPENCL
    FOR_EACH_DEVICE(device)
    if (strncmp(device, "opencl", 6) == 0)
        sweep(device, tern_opencl_fail_at);
#endif
}

static const struct CMUnitTest tests[] = {
    TEST(any_host_allocation_may_fail),
    TEST(buffers_stay_where_a_forward_fails),
    TEST(any_of_several_results_may_not_be_made),
    TEST(what_cannot_be_copied_is_not_absent),
    TEST(any_driver_call_may_fail),
};
TEST_MAIN(tests)
