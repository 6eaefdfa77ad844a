/* test_beside.c -- launches of one kernel that a recording runs side by side, as one command: their bits, and which stay apart. */
#include "fused.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 19, MODES = 3 };

typedef void program(tern_tensor *const *in, tern_tensor **out);

/* Its n results side by side, likewise with each value where it was recorded, and apart: the same. Devices that compile
 * kernels have `what` as a command, where values may move. */
static void record(const char *device, program *run, tern_tensor *const *in, int n,
                   const char *what)
{
    static const tern_graph_options options[MODES] = {
        {.check = true}, {.no_plan = true}, {.no_fusion = true}};
    tern_tensor *out[MODES][MOST];
    for (int mode = 0; mode < MODES; mode++) {
        tern_graph *graph = tern_graph_new_with(device, &options[mode]);
        TERN_CAPTURE (graph)
            TERN_SCOPE {
                run(in, out[mode]);
                for (int i = 0; i < n; i++)
                    tern_keep(out[mode][i]);
            }
        assert_no_error();
        if (what && mode == 0 && strcmp(device, "cpu") != 0 && !tells(graph, what)) {
            char *text = tern_graph_text(graph);
            fail_msg("%s: not \"%s\" but %s", device, what, text);
        }
        if (!what || mode == 2 || strcmp(device, "cpu") == 0)
            assert_false(tells(graph, " x "));
        for (int i = 0; i < 2; i++)
            assert_ok(tern_graph_replay(graph));
        tern_graph_free(graph);
    }
    for (int i = 0; i < n; i++)
        for (int mode = 0; mode < MODES; mode++) {
            assert_same(out[mode][i], out[MODES - 1][i]);
            if (mode < MODES - 1)
                tern_release(out[mode][i]);
        }
    for (int i = 0; i < n; i++)
        tern_release(out[MODES - 1][i]);
}

/* Programs of whole families are compiled, on the stand-in as C++: of fewer types. */
static bool has_type(const char *device, tern_dtype dtype, tern_dtype other)
{
    return (strncmp(device, "cuda", 4) != 0 && !test_pocl_gpu_form(device)) ||
           test_thorough(device) || dtype == TERN_F32 || dtype == other;
}

/* ---- what goes side by side -------------------------------------------------------------- */

/* Norms behind each other, and all gradients. */
static void norms(tern_tensor *const *in, tern_tensor **out)
{
    tern_tensor *y = in[0], *loss;
    for (int i = 0; i < 3; i++)
        y = tern_tanh(
            tern_layer_norm(y, TERN_SHAPE(tern_size(y, 1)), in[1 + 2 * i], in[2 + 2 * i], 1e-5));
    loss = tern_sum(tern_square(y));
    assert_ok(tern_autograd_grad(&loss, 1, in, 7, out, NULL));
}

static void sums_of_layer_norms_are_one_command(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16, TERN_F64};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            if (!has_type(device, dtypes[i], TERN_BF16))
                continue;
            tern_tensor *in[7] = {test_uniform(device, dtypes[i], TERN_SHAPE(37, 70), -4, 9, 1)};
            for (int k = 1; k < 7; k++)
                in[k] = test_uniform(device, dtypes[i], TERN_SHAPE(70), -2, 2, (uint64_t)k);
            for (int k = 0; k < 7; k++)
                tern_requires_grad_(in[k], true);
            const bool is_grouped = strncmp(device, "cuda", 4) == 0 || test_pocl_gpu_form(device);
            record(device, norms, in, 7,
                   is_grouped                       ? "fused: layer_norm_sums x 3 ("
                   : tern_dtype_size(dtypes[i]) > 2 ? "fused: sum_columns x 6 ("
                                                    : "" /* each is rounded at once */);
        }
}

/* The operands end with their sums: their memory is that of later ones. */
static void many_sums(tern_tensor *const *in, tern_tensor **out)
{
    for (int i = 0; i < MOST; i++)
        TERN_SCOPE
            out[i] = tern_escape(
                tern_sum_dim(tern_mul_scalar(in[i % 2], TERN_SCALAR(i + 1)), TERN_DIMS(0), false));
}

static void many_sums_are_a_few_commands(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_I32};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                if (!has_type(device, dtypes[i], TERN_F32))
                    continue;
                tern_tensor *in[] = {
                    test_uniform(device, dtypes[i], TERN_SHAPE(19, 40), -9, 9, 1),
                    test_uniform(device, dtypes[i], TERN_SHAPE(23, 133), -9, 9, 2)};
                record(device, many_sums, in, MOST, "fused: sum_columns x 9 (");
            }
}

/* ---- tables and their indices ------------------------------------------------------------ */

static void lookups(tern_tensor *const *in, tern_tensor **out)
{
    out[0] = tern_index_select(in[0], 0, in[2]);
    tern_tensor *other = tern_neg(in[1]);
    out[1] = tern_index_select(in[1], 1, in[3]);
    out[2] = tern_mul(out[1], tern_select(other, 0, 0));
}

static void lookups_in_two_tables_are_one_command(void **state)
{
    (void)state;
    static const int64_t first[] = {4, 0, 3, 3}, second[] = {2, 0, 1};
    FOR_EACH_DEVICE(device)
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *in[] = {test_uniform(device, TERN_F32, TERN_SHAPE(5, 33), -4, 9, 1),
                                 test_uniform(device, TERN_F32, TERN_SHAPE(2, 3), -4, 9, 2),
                                 tern_from_data(first, TERN_SHAPE(4), TERN_I64, device),
                                 tern_from_data(second, TERN_SHAPE(3), TERN_I64, device)};
            record(device, lookups, in, 3, "fused: index_select x 2 (");
        }
}

/* Where both have indices that are out of range, the error is that of one of them and not of both in part. */
static void wrong_indices_of_one_or_both_are_an_error(void **state)
{
    (void)state;
    static const int64_t indices[3][2] = {{7, 1}, {1, 8}, {7, 8}};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *x[] = {test_uniform(device, TERN_F32, TERN_SHAPE(5, 3), -4, 9, 1),
                                    test_uniform(device, TERN_F32, TERN_SHAPE(6, 3), -4, 9, 2)},
                            *index[] = {tern_zeros(TERN_SHAPE(1), TERN_I64, device),
                                        tern_zeros(TERN_SHAPE(1), TERN_I64, device)};
                tern_graph *graph = tern_graph_new(device);
                TERN_CAPTURE (graph)
                    for (int k = 0; k < 2; k++)
                        tern_index_select(x[k], 0, index[k]);
                assert_int_equal(tells(graph, "index_select x 2"), strcmp(device, "cpu") != 0);
                for (int k = 0; k < 2; k++)
                    tern_copy_(index[k], tern_full(TERN_SHAPE(1), TERN_SCALAR((int)indices[i][k]),
                                                   TERN_I64, device));
                if (tern_graph_replay(graph) == TERN_OK)
                    assert_int_equal(tern_synchronize(device), TERN_ERR_ARGUMENT);
                const char *error = tern_last_error();
                const bool is_first = strstr(error, "index 7, size 5"),
                           is_second = strstr(error, "index 8, size 6");
                assert_true((is_first && i != 1) || (is_second && i != 0));
                tern_clear_error();
                tern_graph_free(graph);
            }
}

static void embeddings(tern_tensor *const *in, tern_tensor **out)
{
    tern_tensor *y =
        tern_mul(tern_embedding(in[2], in[0], NULL), tern_embedding(in[3], in[1], NULL));
    tern_tensor *loss = tern_sum(tern_square(y));
    assert_ok(tern_autograd_grad(&loss, 1, in, 2, out, NULL));
}

/* Sums of gradients have an order only where it is asked for. */
static void gradients_of_two_tables_are_one_command(void **state)
{
    (void)state;
    static const int64_t first[] = {4, 0, 3, 3, 4, 4}, second[] = {0, 1, 0, 1, 1, 1};
    tern_use_deterministic(true);
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *in[] = {test_uniform(device, TERN_F32, TERN_SHAPE(5, 33), -4, 9, 1),
                             test_uniform(device, TERN_F32, TERN_SHAPE(2, 33), -4, 9, 2),
                             tern_from_data(first, TERN_SHAPE(6), TERN_I64, device),
                             tern_from_data(second, TERN_SHAPE(6), TERN_I64, device)};
        for (int k = 0; k < 2; k++)
            tern_requires_grad_(in[k], true);
        record(device, embeddings, in, 2, "fused: scatter_add x 2 (");
    }
    tern_use_deterministic(false);
}

/* ---- what stays apart -------------------------------------------------------------------- */

static tern_tensor *column_sums(tern_tensor *x)
{
    return tern_sum_dim(x, TERN_DIMS(0), false);
}

static void sum_of_a_sum(tern_tensor *const *in, tern_tensor **out)
{
    out[0] = column_sums(in[0]);
    out[1] = column_sums(out[0]);
    out[2] = out[0];
}

static void sum_of_what_a_sum_made(tern_tensor *const *in, tern_tensor **out)
{
    out[0] = column_sums(in[0]);
    out[1] = column_sums(tern_sub(in[0], out[0]));
    out[2] = out[0];
}

static void operand_is_overwritten(tern_tensor *const *in, tern_tensor **out)
{
    tern_tensor *x = tern_clone(in[0]);
    out[0] = column_sums(x);
    tern_add_(x, in[1]);
    out[1] = column_sums(in[1]);
    out[2] = x;
}

static void result_is_overwritten(tern_tensor *const *in, tern_tensor **out)
{
    out[0] = column_sums(in[0]);
    tern_mul_scalar_(out[0], TERN_SCALAR(3));
    out[1] = column_sums(in[1]);
    out[2] = out[0];
}

static void operand_is_the_other_s_result(tern_tensor *const *in, tern_tensor **out)
{
    tern_tensor *x = tern_clone(in[0]);
    out[0] = column_sums(x);
    tern_copy_(tern_select(x, 0, 1), out[0]);
    out[1] = column_sums(x);
    out[2] = out[0];
}

static void sums_that_depend_on_each_other_stay_apart(void **state)
{
    (void)state;
    static program *const programs[] = {sum_of_a_sum, sum_of_what_a_sum_made,
                                        operand_is_overwritten, result_is_overwritten,
                                        operand_is_the_other_s_result};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *in[] = {
                    test_uniform(device, TERN_F32, TERN_SHAPE(6, 8, 40), -9, 9, 1),
                    test_uniform(device, TERN_F32, TERN_SHAPE(6, 8, 40), -9, 9, 2)};
                record(device, programs[i], in, 3, NULL);
            }
}

static const struct CMUnitTest tests[] = {
    TEST(sums_of_layer_norms_are_one_command),     TEST(many_sums_are_a_few_commands),
    TEST(lookups_in_two_tables_are_one_command),   TEST(wrong_indices_of_one_or_both_are_an_error),
    TEST(gradients_of_two_tables_are_one_command), TEST(sums_that_depend_on_each_other_stay_apart),
};
TEST_MAIN(tests)
