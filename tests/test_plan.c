/* test_plan.c -- recordings whose values share memory: the same bits as without a plan, for steps of models (for random
 * programs: test_recorded_programs.c); what nobody reads is not computed; a plan that would be wrong is found. */
#include "../bench/networks.h"
#include "../examples/char_gpt/gpt.h"
#include "device/plan.h"
#include "stack.h"
#include "support.h"
#include "tensor/fields.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- steps of models ------------------------------------------------------------------------- */

typedef struct model_row {
    const char *name;
    tern_module *(*make)(void);
    tern_shape x, y;
    double classes; /* of y */
    bool ids, last; /* x: int64; channels last */
    tern_dtype half;
} model_row;

static tern_module *small_gpt(void)
{
    return gpt_new(
        &(gpt_options){.vocabulary = 65, .layers = 2, .width = 32, .heads = 2, .context = 16});
}

static tern_module *small_resnet50(void)
{
    return bottlenecks(8, "1-1-1-1", 10);
}

static tern_module *gated(void)
{
    return tern_nn_sequential(tern_nn_linear(20, 64, NULL), tern_nn_glu(-1), tern_nn_silu(),
                              tern_nn_dropout(&(tern_dropout_options){.p = 0.2}),
                              tern_nn_linear(32, 10, NULL));
}

static const model_row models[] = {
    {"mlp", mlp, {2, {8, 784}}, {1, {8}}, 10, .half = TERN_DTYPE_DEFAULT},
    {"gated", gated, {2, {8, 20}}, {1, {8}}, 10, .half = TERN_BF16},
    {"lenet", lenet, {4, {2, 1, 28, 28}}, {1, {2}}, 10, .half = TERN_DTYPE_DEFAULT},
    {"resnet", resnet, {4, {2, 3, 32, 32}}, {1, {2}}, 10, .half = TERN_DTYPE_DEFAULT},
    {"resnet50", small_resnet50, {4, {2, 3, 32, 32}}, {1, {2}}, 10, .last = true, .half = TERN_F16},
    {"lstm", char_lstm, {2, {2, 8}}, {1, {16}}, 65, .ids = true, .half = TERN_DTYPE_DEFAULT},
    {"gpt", small_gpt, {2, {2, 16}}, {1, {32}}, 65, .ids = true, .half = TERN_DTYPE_DEFAULT},
    {"gpt", small_gpt, {2, {2, 16}}, {1, {32}}, 65, .ids = true, .half = TERN_BF16},
};
enum { MODELS = sizeof models / sizeof *models, STEPS = 3 };

static tern_tensor *step(const model_row *row, tern_module *model, tern_optimizer *optimizer,
                         tern_tensor *x, tern_tensor *y)
{
    tern_tensor *loss = NULL, *kept = NULL;
    TERN_SCOPE {
        tern_optim_zero_grad(optimizer);
        if (row->half != TERN_DTYPE_DEFAULT)
            TERN_AUTOCAST (tern_device(x), row->half)
                loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
        else
            loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
        tern_backward(loss);
        tern_nn_clip_grad_norm_(model, 1);
        tern_optim_step(optimizer);
        kept = tern_keep(tern_detach(loss));
    }
    assert_no_error();
    return kept;
}

static tern_tensor *data_of(const char *device, tern_shape shape, double classes)
{
    return tern_to_dtype(test_uniform(device, TERN_F32, shape, 0, classes - 0.01, 5), TERN_I64);
}

/* Losses of steps, the last ones replayed. */
static void train(const model_row *row, const char *device, const tern_graph_options *options,
                  double losses[1 + STEPS])
{
    TERN_SCOPE {
        tern_manual_seed(1);
        tern_module *model = row->make();
        tern_nn_to(model, device);
        tern_optimizer *optimizer = tern_optim_adamw(model, 1e-3, NULL);
        tern_graph *graph = tern_graph_new_with(device, options);
        tern_tensor *x = row->ids ? data_of(device, row->x, row->classes)
                                  : test_uniform(device, TERN_F32, row->x, -1, 1, 7);
        tern_tensor *y = data_of(device, row->y, row->classes), *loss = NULL;
        if (row->last)
            x = tern_to_memory_format(x, TERN_CHANNELS_LAST);
        for (int i = 0; i < 1 + STEPS; i++) {
            if (i == 0) {
                loss = step(row, model, optimizer, x, y);
            } else if (i == 1) {
                tern_release(loss);
                TERN_CAPTURE (graph)
                    loss = step(row, model, optimizer, x, y);
            }
            if (i > 0)
                assert_ok(tern_graph_replay(graph));
            losses[i] = tern_item(loss);
        }
        tern_release(loss);
        tern_graph_free(graph);
        tern_optim_free(optimizer);
        tern_nn_free(model);
    }
    assert_no_error();
}

static void steps_of_models_have_their_bits(void **state)
{
    (void)state;
    tern_use_deterministic(true); /* a gradient of an embedding is a sum in any order else */
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < MODELS; i++) {
        double recorded[1 + STEPS], planned[1 + STEPS];
        if (!test_thorough(device) && (i == 4 || (test_gpu_form(device) && i % 3)))
            continue; /* each kernel is compiled */
        train(&models[i], device, &(tern_graph_options){.no_plan = true}, recorded);
        train(&models[i], device, &(tern_graph_options){.check = true}, planned);
        for (int k = 0; k < 1 + STEPS; k++)
            if (recorded[k] != planned[k])
                fail_msg("%s on %s, step %d: %.9g, expected %.9g", models[i].name, device, k,
                         planned[k], recorded[k]);
    }
    tern_use_deterministic(false);
}

/* ---- what a plan does ---------------------------------------------------------------------- */

static uint64_t recorded(const char *device)
{
    tern_memory_stats stats;
    assert_ok(tern_memory_get_stats(device, &stats));
    return stats.recorded;
}

enum { LENGTH = 12, WIDE = 1 << 18 };

/* A chain of rows, each of which ends with the next; products in between keep it from being one launch. */
static tern_tensor *chain(tern_tensor *x, tern_tensor *w)
{
    for (int i = 0; i < LENGTH; i++)
        x = tern_relu(tern_matmul(x, w));
    return x;
}

static void values_share_memory(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(1 << 14, 16), -1, 1, 1);
            tern_tensor *w = test_uniform(device, TERN_F32, TERN_SHAPE(16, 16), -1, 1, 2),
                        *y = NULL;
            tern_tensor *expected = chain(x, w);
            const uint64_t before = recorded(device);
            tern_graph *graph = tern_graph_new(device);
            TERN_CAPTURE (graph)
                TERN_SCOPE
                    y = tern_keep(chain(x, w));
            assert_no_error();
            /* y, and two that are alive with each other; the result of a row is where its operand was */
            assert_true(recorded(device) - before <= 3 * 4 * WIDE + 3 * 4096);
            assert_ok(tern_graph_replay(graph));
            assert_same(y, expected);
            tern_graph_free(graph);
            assert_int_equal(recorded(device), before);
            tern_release(y);
        }
}

/* x[1:] - x[:-1] reads an element of x at two places: its result has a place of its own. */
static void a_difference_of_neighbors_is_not_where_they_are(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            enum { N = 1000 };
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(N), -1, 1, 1), *y[2];
            tern_graph *graph = tern_graph_new_with(device, &(tern_graph_options){.check = true});
            for (int i = 0; i < 2; i++)
                TERN_SCOPE {
                    if (i == 1)
                        assert_ok(tern_graph_capture_begin(graph));
                    tern_tensor *a = tern_softmax(x, 0);
                    y[i] = tern_keep(tern_softmax(
                        tern_sub(tern_narrow(a, 0, 1, N - 1), tern_narrow(a, 0, 0, N - 1)), 0));
                }
            assert_ok(tern_graph_capture_end(graph));
            assert_int_equal(graph->plan->n, 2);
            for (int i = 0; i < 2; i++)
                assert_null(graph->plan->slots[i].over);
            assert_ok(tern_graph_replay(graph));
            assert_same(y[1], y[0]);
            tern_graph_free(graph);
            tern_release(y[0]);
            tern_release(y[1]);
        }
}

/* Rows of two tensors that end with them, between commands that are none. */
static tern_tensor *joined(tern_tensor *x, int how)
{
    tern_tensor *a = tern_softmax(x, 0), *b = tern_softmax(x, 0), *c, *d;
    switch (how) {
    case 0: /* the result is where a or b was */
        return tern_softmax(tern_neg(tern_mul(a, b)), 0);
    case 1: /* two results */
        c = tern_mul(a, b);
        d = tern_sub(c, b);
        return tern_add(tern_softmax(c, 0), tern_softmax(d, 0));
    case 2: /* on the host b is not where the first result of a chain is written: it is read later */
        c = tern_neg(x);
        d = tern_mul(c, b);
        return tern_add(tern_softmax(c, 0), tern_softmax(d, 0));
    case 3: /* something else goes with all elements of a */
        return tern_softmax(tern_abs(tern_sub(a, tern_select(x, 0, 0))), 0);
    case 4: /* one of its own */
        return tern_softmax(tern_abs(tern_sub(a, tern_select(a, 0, 0))), 0);
    case 5: /* a's neighbors */
        return tern_softmax(tern_abs(tern_sub(tern_narrow(a, 0, 1, tern_numel(x) - 1),
                                              tern_narrow(a, 0, 0, tern_numel(x) - 1))),
                            0);
    case 6: /* columns are another tensor's */
        a = tern_reshape(a, TERN_SHAPE(17, 59));
        c = tern_sub(a, tern_narrow(tern_reshape(x, TERN_SHAPE(17, 59)), 1, 3, 1));
        return tern_softmax(tern_reshape(c, TERN_SHAPE(1003)), 0);
    default: /* and its own */
        a = tern_reshape(a, TERN_SHAPE(17, 59));
        c = tern_sub(a, tern_narrow(a, 1, 0, 1));
        return tern_softmax(tern_reshape(c, TERN_SHAPE(1003)), 0);
    }
}

/* Results of elementwise rows, and of their chains, lie where what they read for the last time was,
 * element by element. */
static void results_are_where_operands_end(void **state)
{
    (void)state;
    static const int values[][2] = {{4, 3}, {6, 6}, {5, 5}, {3, 2}, {3, 2}, {3, 2}, {2, 2}, {2, 2}},
                     over[][2] = {{2, 1}, {2, 2}, {1, 1}, {2, 1}, {1, 0}, {1, 0}, {1, 1}, {0, 0}};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < (test_thorough(device) ? 32 : 16); i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                const int how = i % 8, fused = i / 8 % 2;
                tern_tensor *y[2], *x = test_uniform(device, i < 16 ? TERN_F32 : TERN_BF16,
                                                     TERN_SHAPE(1003), -1, 1, 1);
                tern_graph *graph = tern_graph_new_with(
                    device, &(tern_graph_options){.check = true, .no_fusion = !fused});
                for (int k = 0; k < 2; k++) {
                    if (k == 1)
                        assert_ok(tern_graph_capture_begin(graph));
                    TERN_SCOPE
                        y[k] = tern_keep(joined(x, how));
                }
                assert_ok(tern_graph_capture_end(graph));
                assert_true((graph->chains != NULL) == (fused && how < 6));
                int found = 0;
                for (int64_t k = 0; k < graph->plan->n; k++)
                    found += graph->plan->slots[k].over != NULL;
                if (found != over[how][fused] || graph->plan->n != values[how][fused])
                    fail_msg("%s, case %d, fused %d: %d of %d values are over others, "
                             "expected %d of %d",
                             device, how, fused, found, (int)graph->plan->n, over[how][fused],
                             values[how][fused]);
                assert_ok(tern_graph_replay(graph));
                assert_same(y[1], y[0]);
                tern_graph_free(graph);
                tern_release(y[0]);
                tern_release(y[1]);
            }
}

enum { LARGE = 1 << 19 };

/* z, written in place by two rows, and before it a tensor that a kernel has by its address where addressed. */
static tern_graph *record_in_place(tern_tensor *x, bool addressed)
{
    tern_graph *graph = tern_graph_new(tern_device(x));
    TERN_CAPTURE (graph) {
        TERN_SCOPE {
            tern_tensor *a = tern_softmax(x, 0);
            if (addressed)
                assert_ok(tern_capture_addressed(a->storage->block));
            tern_escape(tern_sum(a));
        }
        TERN_SCOPE {
            tern_tensor *z = tern_softmax(x, 0);
            tern_neg_(tern_relu_(z));
            tern_escape(tern_sum(z));
        }
    }
    assert_no_error();
    return graph;
}

/* Others may be where an addressed block was, and it stays; so do they. */
static void what_is_found_by_its_address_stays(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_graph *graph =
                record_in_place(test_uniform(device, TERN_F32, TERN_SHAPE(LARGE), -1, 1, 1), true);
            if (graph->stays)
                assert_false(graph->plan->is_planned);
            else
                test_skipped("a block on %s is not part of another", device);
            tern_graph_free(graph);
        }
}

/* An address is one recording's: in the next one the block has a place like others. */
static void addresses_end_with_their_recording(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(1000), -1, 1, 1);
            int64_t values[3];
            for (int i = 0; i < 3; i++) {
                tern_graph *graph = record_in_place(x, i == 1);
                values[i] = graph->plan->n;
                tern_graph_free(graph);
            }
            assert_int_equal(values[1], values[0] - 1);
            assert_int_equal(values[2], values[0]);
        }
}

static void what_nobody_reads_is_not_computed(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, 2), *y = NULL;
            tern_graph *graph = tern_graph_new(device);
            TERN_CAPTURE (graph)
                TERN_SCOPE {
                    y = tern_keep(tern_matmul(x, x));
                    tern_sum(tern_softmax(tern_exp(x), 0)); /* for nobody */
                }
            assert_int_equal(tern_graph_size(graph), 1);
            assert_ok(tern_graph_replay(graph));
            assert_values(y, 5);
            tern_graph_free(graph);
            tern_release(y);
        }
}

static void *replay(void *graph)
{
    return tern_graph_replay(graph) == TERN_OK ? graph : NULL;
}

enum { FORBIDDEN = 1 << 20 }; /* bytes: sanitizers use more; those below it */

/* Threads of programs may have as little: on the cpu they run the chain themselves. */
static void a_chain_fits_a_small_stack(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_F64, TERN_I32};
    const size_t size = test_stack(96 << 10);
    char *memory =
        mmap(NULL, FORBIDDEN + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_attr_t attributes;
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + FORBIDDEN, size, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, memory + FORBIDDEN, size), 0);
    for (int i = 0; i < 4; i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *x = test_uniform("cpu", dtypes[i], TERN_SHAPE(700), -9, 9, 1), *y[2];
                tern_graph *graph = tern_graph_new("cpu");
                pthread_t thread;
                void *good = NULL;
                for (int k = 0; k < 2; k++) {
                    if (k == 1)
                        assert_ok(tern_graph_capture_begin(graph));
                    TERN_SCOPE {
                        y[k] = tern_abs(x);
                        for (int row = 0; row < 4; row++)
                            y[k] = tern_mul_scalar(tern_add(y[k], x), TERN_SCALAR(-1));
                        tern_escape(y[k]);
                    }
                }
                assert_ok(tern_graph_capture_end(graph));
                assert_int_equal(tern_graph_size(graph), 1);
                assert_int_equal(pthread_create(&thread, &attributes, replay, graph), 0);
                assert_int_equal(pthread_join(thread, &good), 0);
                assert_non_null(good);
                assert_same(y[1], y[0]);
                tern_graph_free(graph);
            }
    pthread_attr_destroy(&attributes);
    munmap(memory, FORBIDDEN + size);
}

static void a_plan_that_does_not_fit_names_peak_and_limit(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            if (strncmp(device, "cuda", 4) == 0) {
                test_skipped("a plan on %s takes what is reserved already", device);
                continue;
            }
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(1 << 14, 16), -1, 1, 1);
            tern_tensor *w = test_uniform(device, TERN_F32, TERN_SHAPE(16, 16), -1, 1, 2);
            tern_graph *graph = tern_graph_new_with(device, &(tern_graph_options){.check = true});
            TERN_CAPTURE (graph) {
                TERN_SCOPE
                    tern_escape(chain(x, w));
                assert_ok(
                    tern_set_memory_limit(device, 1 << 20)); /* no more than is there already */
            }
            assert_error(TERN_ERR_MEMORY, "has a peak of 2097152 bytes");
            assert_int_equal(tern_graph_size(graph), 0);
            assert_ok(tern_set_memory_limit(device, 0));
            tern_graph_free(graph);
        }
}

/* The check sees a value that lies where another one is alive. */
static void a_wrong_plan_is_found(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(40, 40), -1, 1, 1),
                        *y = NULL;
            tern_graph *graph = tern_graph_new_with(device, &(tern_graph_options){.check = true});
            TERN_CAPTURE (graph)
                TERN_SCOPE {
                    tern_tensor *a = tern_matmul(x, x), *b = tern_softmax(x, 1);
                    y = tern_keep(tern_matmul(a, b));
                }
            assert_ok(tern_graph_replay(graph));
            if (graph->pieces) {
                test_skipped("the commands of a graph on %s have their addresses already", device);
                tern_graph_free(graph);
                tern_release(y);
                continue;
            }
            tern_slot *slots = graph->plan->slots;
            assert_int_equal(graph->plan->n, 2);
            const tern_buffer other = slots[1].block->buffer;
            slots[1].block->buffer = slots[0].block->buffer;
            tern_graph_replay(graph);
            assert_error(TERN_ERR_STATE, "differs from what was recorded");
            slots[1].block->buffer = other;
            assert_ok(tern_graph_replay(graph));
            tern_graph_free(graph);
            tern_release(y);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(steps_of_models_have_their_bits),
    TEST(values_share_memory),
    TEST(a_difference_of_neighbors_is_not_where_they_are),
    TEST(results_are_where_operands_end),
    TEST(what_is_found_by_its_address_stays),
    TEST(addresses_end_with_their_recording),
    TEST(what_nobody_reads_is_not_computed),
    TEST(a_chain_fits_a_small_stack),
    TEST(a_plan_that_does_not_fit_names_peak_and_limit),
    TEST(a_wrong_plan_is_found),
};
TEST_MAIN(tests)
