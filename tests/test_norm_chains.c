/* test_norm_chains.c -- elementwise operations that a recording has in the store of a batch norm or in the load of its
 * gradient: their bits. */
#include "fused.h"
#include <stdlib.h>

enum { NORM_RESULTS = 4 };

/* Rows behind a batch norm, of which some write over an operand, or leave its own result to be read. */
static void norm_and_rows(tern_tensor *x, tern_tensor *other, tern_tensor *const *stats, int how,
                          tern_tensor **out)
{
    tern_tensor *mean = tern_clone(stats[0]), *var = tern_clone(stats[1]);
    tern_tensor *y = tern_batch_norm(x, mean, var, stats[2], stats[3], true, 0.1, 1e-5), *z;
    switch (how) {
    case 0:
        z = tern_relu(tern_add(y, other));
        break;
    case 1:
        z = tern_add(tern_mul(y, y), tern_neg(y));
        break;
    case 2:
        z = tern_add_(tern_mul_scalar(y, TERN_SCALAR(0.3)), other);
        break;
    case 3:
        z = tern_relu_(tern_add_(y, other));
        break;
    default:
        z = tern_mul(tern_neg(y), x); /* which the norm reads */
    }
    out[0] = tern_keep(z);
    out[1] = tern_keep(mean);
    out[2] = tern_keep(var);
    out[3] = tern_keep(how & 1 ? y : z);
}

/* Each program of a norm is compiled as C++ on the stand-in, there always from the text for CUDA: of its types two are. */
static bool has_norms(const char *device, tern_dtype dtype)
{
    if (strncmp(device, "cuda", 4) != 0 || test_thorough(device))
        return true;
    return !getenv("TERN_STANDIN_TEXT") && (dtype == TERN_F32 || dtype == TERN_F16);
}

/* Where channels lie side by side devices with work-groups have kernels with a place for rows. */
static bool has_columns(const char *device, tern_dtype dtype)
{
    return (strncmp(device, "cuda", 4) == 0 || test_pocl_gpu_form(device)) &&
           (dtype == TERN_F32 || test_thorough(device));
}

static tern_tensor *in_format(tern_tensor *x, bool last)
{
    return last ? tern_to_memory_format(x, TERN_CHANNELS_LAST) : x;
}

/* Sizes of which the last but one has rows that no load of four fits, and the last, whose bfloat16 rounds NaN otherwise in
 * the norm, an end that no vector fits; channels of one part and of several. */
static void check_rows_behind(bool last)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16, TERN_F64};
    static const int64_t shapes[][4] = {
        {2, 3, 4, 5}, {3, 700, 2, 2}, {2, 2, 48, 64}, {3, 5, 3, 7}, {1, 3, 2, 2}};
    enum { SHAPES = sizeof shapes / sizeof *shapes, HOWS = 5 };
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4 * SHAPES * HOWS; i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                if (!has_norms(device, dtypes[i % 4]) ||
                    (last && !has_columns(device, dtypes[i % 4])) ||
                    (i % 4 && i / 4 / SHAPES % 3 != 0)) /* fewer texts of the other types */
                    continue;
                if (last && i / 4 / SHAPES % 3 != 0 && !test_thorough(device))
                    continue;
                const tern_dtype dtype = dtypes[i % 4],
                                 own = dtype == TERN_F64 ? TERN_F64 : TERN_F32;
                const int64_t *shape = shapes[i / 4 % SHAPES];
                const int how = i / 4 / SHAPES;
                const tern_shape all = tern_shape_from(4, shape), each = TERN_SHAPE(shape[1]);
                tern_tensor *x = in_format(test_uniform(device, dtype, all, -4, 9, 1 + (uint64_t)i),
                                           last),
                            *other = in_format(test_uniform(device, dtype, all, -2, 2, 2), last),
                            *stats[] = {test_uniform(device, own, each, -1, 1, 3),
                                        test_uniform(device, own, each, 1, 2, 4),
                                        test_uniform(device, own, each, -2, 2, 5),
                                        test_uniform(device, own, each, -1, 1, 6)},
                            *out[2][NORM_RESULTS];
                for (int apart = 0; apart < 2; apart++) {
                    tern_graph *graph =
                        tern_graph_new_with(device, &(tern_graph_options){.no_fusion = apart});
                    TERN_CAPTURE (graph)
                        TERN_SCOPE
                            norm_and_rows(x, other, stats, how, out[apart]);
                    assert_no_error();
                    const int64_t side_by_side = last ? shape[1] : shape[2] * shape[3];
                    const bool takes =
                        strcmp(device, "cpu") != 0 &&
                        (dtype != TERN_BF16 || (side_by_side % 4 == 0 && tern_numel(x) % 8 == 0));
                    assert_int_equal(
                        tells(graph, last ? "fused: batch_norm_columns+" : "fused: batch_norm+"),
                        takes && !apart);
                    assert_ok(tern_graph_replay(graph));
                    tern_graph_free(graph);
                }
                for (int k = 0; k < NORM_RESULTS; k++) {
                    assert_same(out[0][k], out[1][k]);
                    tern_release(out[0][k]);
                    tern_release(out[1][k]);
                }
            }
}

static void rows_behind_a_batch_norm_are_in_its_store(void **state)
{
    (void)state;
    check_rows_behind(false);
}

static void rows_behind_a_batch_norm_of_columns_are_in_its_store(void **state)
{
    (void)state;
    check_rows_behind(true);
}

/* An operand in whose place no load of four fits would change the order of the norm's sums. */
static void rows_whose_operands_lie_elsewhere_stay_behind_a_batch_norm(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    if (has_norms(device, TERN_F32))
        TERN_SCOPE
            TERN_NO_GRAD {
                const tern_shape all = TERN_SHAPE(2, 3, 8, 8), each = TERN_SHAPE(3);
                const int64_t n = 2 * 3 * 8 * 8;
                tern_tensor *x = test_uniform(device, TERN_F32, all, -4, 9, 1),
                            *room = test_uniform(device, TERN_F32, TERN_SHAPE(n + 1), -2, 2, 2),
                            *stats[] = {test_uniform(device, TERN_F32, each, -1, 1, 3),
                                        test_uniform(device, TERN_F32, each, 1, 2, 4),
                                        test_uniform(device, TERN_F32, each, -2, 2, 5),
                                        test_uniform(device, TERN_F32, each, -1, 1, 6)},
                            *out[2][NORM_RESULTS];
                for (int at = 0; at < 2; at++) {
                    tern_tensor *other = tern_view(tern_narrow(room, 0, at, n), all);
                    for (int apart = 0; apart < 2; apart++) {
                        tern_graph *graph =
                            tern_graph_new_with(device, &(tern_graph_options){.no_fusion = apart});
                        TERN_CAPTURE (graph)
                            TERN_SCOPE
                                norm_and_rows(x, other, stats, 0, out[apart]);
                        assert_int_equal(tells(graph, "fused: batch_norm+"),
                                         strcmp(device, "cpu") != 0 && !apart && !at);
                        assert_ok(tern_graph_replay(graph));
                        tern_graph_free(graph);
                    }
                    for (int k = 0; k < NORM_RESULTS; k++) {
                        assert_same(out[0][k], out[1][k]);
                        tern_release(out[0][k]);
                        tern_release(out[1][k]);
                    }
                }
            }
}

/* dx, dweight and dbias of a batch norm, and what is in front of its gradient: relu's, which the sum's other operand has
 * too, or products that nobody else reads. */
static void gradients_of_norm(tern_tensor *const *in, tern_tensor *dy, int how, tern_tensor **out)
{
    tern_tensor *y = tern_batch_norm(in[0], NULL, NULL, in[1], in[2], true, 0.1, 1e-5), *grads[4];
    tern_tensor *z = how == 0   ? tern_relu(tern_add(y, in[3]))
                     : how == 1 ? tern_mul_scalar(tern_neg(y), TERN_SCALAR(0.3))
                                : tern_tanh(y);
    const tern_autograd_grad_options options = {.gradients = &dy};
    out[4] = tern_keep(tern_sum(z)); /* forward is another chain */
    assert_ok(tern_autograd_grad(&z, 1, in, how == 0 ? 4 : 3, grads, &options));
    for (int k = 0; k < 4; k++)
        out[k] = tern_keep(how == 0 || k < 3 ? grads[k] : z);
}

static void check_rows_before(bool last)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16, TERN_F64};
    static const int64_t shapes[][4] = {{2, 3, 4, 5}, {3, 700, 2, 2}, {2, 2, 48, 64}, {3, 5, 3, 7}};
    enum { SHAPES = sizeof shapes / sizeof *shapes, HOWS = 3 };
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4 * SHAPES * HOWS; i++)
        TERN_SCOPE {
            const tern_dtype dtype = dtypes[i % 4], own = dtype == TERN_F64 ? TERN_F64 : TERN_F32;
            const int64_t *shape = shapes[i / 4 % SHAPES];
            const int how = i / 4 / SHAPES;
            if (!has_norms(device, dtype) || (last && !has_columns(device, dtype)) ||
                (i % 4 && how > 0)) /* fewer texts of other types */
                continue;
            const tern_shape all = tern_shape_from(4, shape), each = TERN_SHAPE(shape[1]);
            tern_tensor *in[] = {in_format(test_uniform(device, dtype, all, -4, 9, 1 + (uint64_t)i),
                                           last),
                                 test_uniform(device, own, each, -2, 2, 2),
                                 test_uniform(device, own, each, -1, 1, 3),
                                 in_format(test_uniform(device, dtype, all, -2, 2, 4), last)},
                        *dy = in_format(test_uniform(device, dtype, all, -2, 2, 5), last),
                        *out[2][5];
            for (int k = 0; k < 4; k++)
                tern_requires_grad_(in[k], true);
            for (int apart = 0; apart < 2; apart++) {
                tern_graph *graph =
                    tern_graph_new_with(device, &(tern_graph_options){.no_fusion = apart});
                TERN_CAPTURE (graph)
                    TERN_SCOPE
                        gradients_of_norm(in, dy, how, out[apart]);
                assert_no_error();
                const int64_t side_by_side = last ? shape[1] : shape[2] * shape[3];
                const bool takes =
                    strcmp(device, "cpu") != 0 && (dtype != TERN_BF16 || side_by_side % 4 == 0);
                assert_int_equal(tells(graph, last ? "+batch_norm_columns_gradient ("
                                                   : "+batch_norm_gradient ("),
                                 takes && !apart);
                assert_ok(tern_graph_replay(graph));
                tern_graph_free(graph);
            }
            for (int k = 0; k < 5; k++) {
                assert_same(out[0][k], out[1][k]);
                tern_release(out[0][k]);
                tern_release(out[1][k]);
            }
        }
}

static void rows_before_a_batch_norm_s_gradient_are_in_its_load(void **state)
{
    (void)state;
    check_rows_before(false);
}

static void rows_before_a_batch_norm_s_gradient_of_columns_are_in_its_load(void **state)
{
    (void)state;
    check_rows_before(true);
}

static const struct CMUnitTest tests[] = {
    TEST(rows_behind_a_batch_norm_are_in_its_store),
    TEST(rows_behind_a_batch_norm_of_columns_are_in_its_store),
    TEST(rows_whose_operands_lie_elsewhere_stay_behind_a_batch_norm),
    TEST(rows_before_a_batch_norm_s_gradient_are_in_its_load),
    TEST(rows_before_a_batch_norm_s_gradient_of_columns_are_in_its_load),
};
TEST_MAIN(tests)
