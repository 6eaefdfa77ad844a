/* test_chains.c -- elementwise operations that are one command in a recording: their bits, and what
 * tern_graph_text says of them. */
#include "support.h"
#include <stdlib.h>
#include <string.h>
#include <tern/graph.h>

/* Four rows are one command with the same bits, and four where fusion is turned off. */
static void rows_that_follow_each_other_are_one_command(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_I32, TERN_F16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 8; i++)
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

/* Rows of more arithmetic than the last test's have the same bits for every number of 16 bits, NaNs too, in a chain and
 * alone. By default the stand-in runs the host's expansion of a row that is alone, which is another text. */
static void every_half_has_its_bits_in_a_chain(void **state)
{
    (void)state;
    enum { N = 65539 };
    static tern_tensor *(*const rows[])(tern_tensor *) = {weighted, divided, gelu};
    static uint16_t bits[N];
    for (int i = 0; i < N; i++)
        bits[i] = (uint16_t)i;
    FOR_EACH_DEVICE(device)
    {
        if (strstr(tern_device_name(device), "stand-in") && !getenv("TERN_STANDIN_TEXT")) {
            test_skipped("rows that are alone on %s are not of its texts", device);
            continue;
        }
        for (int i = 0; i < 6; i++)
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

static const struct CMUnitTest tests[] = {
    TEST(rows_that_follow_each_other_are_one_command),
    TEST(halves_are_rounded_between_the_rows_of_a_chain),
    TEST(every_half_has_its_bits_in_a_chain),
    TEST(a_recording_tells_what_was_fused),
};
TEST_MAIN(tests)
