/* test_chains.c -- elementwise operations that are one command in a recording: their bits, and what
 * tern_graph_text says of them. */
#include "device/chain_kernels.h"
#include "device/recording.h"
#include "fused.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/graph.h>

/* Four rows are one command with the same bits, and four where fusion is turned off. */
static void rows_that_follow_each_other_are_one_command(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_I32, TERN_F16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < (test_compiles_cpp(device) ? 4 : 8); i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                const bool apart = i % 2;
                tern_tensor *y = NULL,
                            *x = test_uniform(device, dtypes[i / 2], TERN_SHAPE(7, 191), -9, 9, 1);
                tern_tensor *expected = tern_mul(tern_neg(tern_add(tern_mul(x, x), x)), x);
                tern_graph *graph =
                    tern_graph_new_with(device, &(tern_graph_options){.no_fusion = apart});
                TERN_CAPTURE (graph)
                    TERN_SCOPE
                        y = tern_keep(tern_mul(tern_neg(tern_add(tern_mul(x, x), x)), x));
                assert_int_equal(tern_graph_size(graph), apart ? 4 : 1);
                assert_ok(tern_graph_replay(graph));
                assert_same(y, expected);
                tern_graph_free(graph);
                tern_release(y);
            }
}

/* Every float16, times numbers that make it subnormal, infinite, or neither: between the rows of a chain it is rounded as it
 * would be in memory. NaNs have the same bits, too, which the check of a replay compares. */
static void halves_are_rounded_between_the_rows_of_a_chain(void **state)
{
    (void)state;
    static const double factors[] = {1, 0.3, 1e-3, 1.7e-5, 900};
    static uint16_t bits[65536];
    for (int i = 0; i < 65536; i++)
        bits[i] = (uint16_t)i;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 5; i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *y[2] = {NULL, NULL},
                            *x = tern_from_data(bits, TERN_SHAPE(65536), TERN_F16, device);
                for (int apart = 0; apart < 2; apart++) {
                    tern_graph *graph = tern_graph_new_with(
                        device, &(tern_graph_options){.no_fusion = apart, .check = !apart});
                    TERN_CAPTURE (graph)
                        TERN_SCOPE {
                            tern_tensor *z = tern_mul_scalar(x, tern_scalar_real(factors[i]));
                            z = tern_mul_scalar(z, tern_scalar_real(1.01));
                            y[apart] =
                                tern_keep(tern_mul_scalar(z, tern_scalar_real(1 / factors[i])));
                        }
                    assert_ok(tern_graph_replay(graph));
                    tern_graph_free(graph);
                }
                assert_same(y[0], y[1]);
                tern_release(y[0]);
                tern_release(y[1]);
            }
}

static tern_tensor *weighted(tern_tensor *x)
{
    return tern_lerp(x, tern_neg(x), tern_sigmoid(x));
}

static tern_tensor *divided(tern_tensor *x)
{
    return tern_addcdiv(x, x, tern_add_scalar(tern_square(x), TERN_SCALAR(1)), TERN_SCALAR(0.5));
}

static tern_tensor *gelu(tern_tensor *x)
{
    return tern_gelu(x);
}

/* By default the stand-in runs the host's expansion of a row that is alone, which is another text. */
static bool has_texts(const char *device)
{
    if (!strstr(tern_device_name(device), "stand-in") || getenv("TERN_STANDIN_TEXT"))
        return true;
    test_skipped("rows that are alone on %s are not of its texts", device);
    return false;
}

/* Rows of more arithmetic than the last test's have the same bits for every number of 16 bits, NaNs too, in a chain and
 * alone. */
static void every_half_has_its_bits_in_a_chain(void **state)
{
    (void)state;
    enum { N = 65539 };
    static tern_tensor *(*const rows[])(tern_tensor *) = {weighted, divided, gelu};
    static uint16_t bits[N];
    for (int i = 0; i < N; i++)
        bits[i] = (uint16_t)i;
    FOR_EACH_DEVICE(device)
    if (has_texts(device)) {
        /* Each row of one of the types, where texts take long. */
        for (int i = 0; i < 6; i += test_compiles_cpp(device) ? 2 : 1)
            TERN_SCOPE
                TERN_NO_GRAD {
                    tern_tensor *y[2], *x = tern_from_data(bits, TERN_SHAPE(N),
                                                           i < 3 ? TERN_F16 : TERN_BF16, device);
                    for (int apart = 0; apart < 2; apart++) {
                        tern_graph *graph =
                            tern_graph_new_with(device, &(tern_graph_options){.no_fusion = apart});
                        TERN_CAPTURE (graph)
                            TERN_SCOPE
                                y[apart] = tern_keep(tern_neg(rows[i % 3](tern_neg(x))));
                        assert_int_equal(tern_graph_size(graph) == 1, !apart);
                        assert_ok(tern_graph_replay(graph));
                        tern_graph_free(graph);
                    }
                    assert_same(y[0], y[1]);
                    tern_release(y[0]);
                    tern_release(y[1]);
                }
    }
}

/* Three rows follow each other, and one has columns apart. */
static void a_recording_tells_what_was_fused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int apart = 0; apart < 2; apart++)
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(8, 32), -9, 9, 1),
                            *y[2] = {NULL, NULL};
                tern_graph *graph =
                    tern_graph_new_with(device, &(tern_graph_options){.no_fusion = apart});
                assert_null(tern_graph_text(graph));
                assert_error(TERN_ERR_STATE, "tern_graph_text: nothing was recorded");
                assert_null(tern_graph_text(NULL));
                assert_error(TERN_ERR_ARGUMENT, "tern_graph_text");
                TERN_CAPTURE (graph)
                    TERN_SCOPE {
                        y[0] = tern_keep(tern_neg(tern_mul(tern_exp(x), x)));
                        y[1] =
                            tern_keep(tern_mul(tern_narrow(x, 1, 0, 9), tern_narrow(x, 1, 3, 9)));
                        tern_abs(x); /* for nobody */
                    }
                char *text = tern_graph_text(graph);
                assert_non_null(text);
                const bool fuses = !apart;
                assert_int_equal(
                    strstr(text, "fused: exp+mul+neg (float32), 3 commands as one, 1 time: 5120 "
                                 "bytes not moved") != NULL,
                    fuses);
                assert_true(!fuses || strstr(text, "not fused: 1 elementwise command: "));
                assert_true(fuses || strstr(text, "4 elementwise commands: fusion is turned off"));
                assert_non_null(strstr(text, "were recorded, of which 1 made what nobody reads"));
                tern_free_text(text);
                tern_graph_free(graph);
                tern_release(y[0]);
                tern_release(y[1]);
            }
}

/* A residual as autocast has it, of every half: float32 and half precision in one command. The sum of two casts is one of rows
 * that do not read each other. `longer` ends with a row whose text in float32 is another. Float16 is not widened where it was
 * not loaded. */
static tern_tensor *mixed(tern_tensor *x, tern_tensor *half, tern_tensor *wide, bool longer)
{
    tern_tensor *f = tern_to_dtype(longer ? x : tern_neg(x), TERN_F32),
                *g = tern_to_dtype(half, TERN_F32);
    tern_tensor *y = tern_to_dtype(tern_mul(tern_add(f, g), wide), tern_dtype_of(x));
    y = tern_add(y, half);
    return longer ? tern_tanh(tern_to_dtype(y, TERN_F32)) : y;
}

static void casts_are_rows_of_a_chain(void **state)
{
    (void)state;
    enum { N = 65539 };
    static uint16_t bits[N];
    for (int i = 0; i < N; i++)
        bits[i] = (uint16_t)i;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4 && has_texts(device); i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                const tern_dtype dtype = i % 2 ? TERN_F16 : TERN_BF16;
                const tern_shape shape = TERN_SHAPE(N);
                tern_tensor *y[2], *x = tern_from_data(bits, shape, dtype, device),
                                   *half = test_uniform(device, dtype, shape, -2, 2, 1),
                                   *wide = test_uniform(device, TERN_F32, shape, -3, 3, 2);
                for (int apart = 0; apart < 2; apart++) {
                    tern_graph *graph = tern_graph_new_with(
                        device, &(tern_graph_options){.no_fusion = apart, .check = !apart});
                    TERN_CAPTURE (graph)
                        TERN_SCOPE
                            y[apart] = tern_keep(mixed(x, half, wide, i > 1));
                    assert_no_error();
                    if (strcmp(device, "cpu") != 0)
                        assert_int_equal(tern_graph_size(graph),
                                         apart ? 7 + (i > 1) : 1 + (i > 1) + i % 2);
                    assert_ok(tern_graph_replay(graph));
                    tern_graph_free(graph);
                }
                assert_same(y[0], y[1]);
                tern_release(y[0]);
                tern_release(y[1]);
            }
}

/* Rows behind an optimizer that finds gradients by their addresses, which are given back then: nothing that was recorded moves,
 * and a row's result may lie where an operand of the row before did. */
static void rows_are_a_chain_where_nothing_moves(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const tern_shape shape = TERN_SHAPE(3, 512, 512); /* large blocks, which share segments */
        tern_tensor *x = test_uniform(device, TERN_F32, shape, -2, 2, 1), *y[2] = {NULL, NULL};
        for (int apart = 0; apart < 2; apart++) {
            tern_tensor *w =
                tern_requires_grad_(test_uniform(device, TERN_F32, shape, -1, 1, 2), true);
            tern_optimizer *sgd = tern_optim_sgd_of(&w, 1, 0.5, NULL);
            tern_graph *graph =
                tern_graph_new_with(device, &(tern_graph_options){.no_fusion = apart});
            TERN_CAPTURE (graph) {
                TERN_SCOPE
                    assert_ok(tern_backward(tern_sum(tern_mul(w, x))));
                assert_ok(tern_optim_step(sgd));
                tern_optim_zero_grad(sgd);
                TERN_NO_GRAD {
                    tern_tensor *z = tern_keep(tern_mul(x, x)), *next;
                    for (int i = 0; i < 5; i++)
                        TERN_SCOPE {
                            next = tern_keep(i % 2 ? tern_neg(z) : tern_add(z, x));
                            tern_release(z);
                            z = next;
                        }
                    y[apart] = z;
                }
            }
            assert_no_error();
            assert_int_equal(tells(graph, "fused: mul+add+neg+add+neg+add (float32), 6 commands"),
                             !apart);
            assert_ok(tern_graph_replay(graph));
            tern_graph_free(graph);
            tern_optim_free(sgd);
        }
        assert_same(y[0], y[1]);
        tern_release(y[0]);
        tern_release(y[1]);
    }
}

/* A chain of a kernel with a slot and two rows. */
static tern_chain chain_of(const tern_chain_slot *slot, void *made)
{
    return (tern_chain){
        .n = 64,
        .rows = 3,
        .tensors = 3,
        .step = {1, 1, 1},
        .slot = slot,
        .row = {
            {.file = "norm_columns", .name = "batch_norm", .compiled = made},
            {.file = "elementwise", .name = "mul", .n = 2, .in = {TERN_CHAIN_TENSORS, 0}, .out = 1},
            {.file = "elementwise",
             .name = "neg",
             .n = 1,
             .in = {TERN_CHAIN_TENSORS + 1},
             .out = 2,
             .numbers = 1}}};
}

/* Also by the kernel that it is part of, which has work-groups of its own size, and not by sizes, numbers, and who else has
 * asked for a kernel. */
static void kernels_are_told_apart_by_what_their_text_depends_on(void **state)
{
    (void)state;
    enum { WAYS = 17, OTHERS = 3000 };
    static const tern_chain_slot slots[2] = {{.stores = 1}, {.stores = 1}};
    static char made[2], names[OTHERS][8];
    FOR_EACH_DEVICE(device)
    {
        tern_graph *graph = tern_graph_new(device);
        tern_chain chains[WAYS];
        const tern_chain_kernel *known[WAYS];
        for (int i = 0; i < WAYS; i++)
            chains[i] = chain_of(&slots[0], &made[0]);
        chains[1].rows = 2;
        chains[2].tensors = 4;
        chains[3].step[1] = 0;
        chains[4].slot = &slots[1];
        chains[5].slot = NULL;
        chains[6].row[0].compiled = &made[1];
        chains[7].row[1].name = "add";
        chains[8].row[1].file = "special";
        chains[9].row[1].n = 1;
        chains[10].row[1].in[1] = 2;
        chains[11].row[1].out = -1;
        chains[12].row[2].numbers = 2;
        chains[13].n = INT64_C(1) << 40;
        chains[15].wide[1] = 1;
        chains[16].row[1].wide = 1;
        for (int i = 0; i < WAYS; i++) {
            known[i] =
                tern_chain_kernel_of(graph->place, &chains[i], i == 14 ? TERN_F64 : TERN_F32);
            assert_non_null(known[i]);
            for (int before = 0; before < i; before++)
                assert_ptr_not_equal(known[before], known[i]);
        }
        for (int i = 0; i < OTHERS; i++) {
            tern_chain c = chains[0];
            snprintf(names[i], sizeof names[i], "row%d", i);
            c.row[1].name = names[i];
            assert_non_null(tern_chain_kernel_of(graph->place, &c, TERN_F32));
        }
        tern_chain same = chains[0];
        same.n = 65;
        same.row[1].compiled = &made[1]; /* another device function of the same row */
        same.row[2].number[0] = 7;
        same.row[2].slot = 3;
        assert_ptr_equal(tern_chain_kernel_of(graph->place, &same, TERN_F32), known[0]);
        tern_graph_free(graph);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(kernels_are_told_apart_by_what_their_text_depends_on),
    TEST(rows_that_follow_each_other_are_one_command),
    TEST(halves_are_rounded_between_the_rows_of_a_chain),
    TEST(every_half_has_its_bits_in_a_chain),
    TEST(a_recording_tells_what_was_fused),
    TEST(casts_are_rows_of_a_chain),
    TEST(rows_are_a_chain_where_nothing_moves),
};
TEST_MAIN(tests)
