/* test_embedding.c -- embeddings, one by one and in bags: PyTorch's numbers, corners and words. */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t flat[] = {1, 3, 3, 0, 5, 2, 3, 1}, starts[] = {0, 3, 3, 4}, ends[] = {0, 3, 8};

static tern_tensor *ints(const char *device, tern_dtype dtype, int64_t n, const int64_t *values)
{
    return tern_to_dtype(tern_from_data(values, TERN_SHAPE(n), TERN_I64, device), dtype);
}

static tern_tensor *leaf(test_golden *file, const char *name, const char *device)
{
    tern_tensor *x = test_golden_tensor(file, name, "cpu");
    x = tern_to(test_thorough(device) && test_has(device, TERN_F64) ? x
                                                                    : tern_to_dtype(x, TERN_F32),
                device);
    return tern_requires_grad_(x, true);
}

static void golden(test_golden *file, const char *name, const char *suffix, const tern_tensor *x)
{
    test_golden_compare(file, name, suffix, x, tern_dtype_of(x) == TERN_F64 ? 1e-12 : 1e-5);
}

/* ---- bags -------------------------------------------------------------------------------- */

enum { FLAT, ENDED, ROWS, PAIRS };

static const struct {
    const char *name;
    int form;
    tern_embedding_bag_mode mode;
    bool padded, weighted, frequent;
} bags[] = {
    {"mean", FLAT, TERN_EMBEDDING_BAG_MEAN, false, false, false},
    {"mean_padded", FLAT, TERN_EMBEDDING_BAG_MEAN, true, false, false},
    {"mean_ended", ENDED, TERN_EMBEDDING_BAG_MEAN, false, false, false},
    {"mean_rows", ROWS, TERN_EMBEDDING_BAG_MEAN, false, false, false},
    {"sum", FLAT, TERN_EMBEDDING_BAG_SUM, false, false, false},
    {"sum_padded", FLAT, TERN_EMBEDDING_BAG_SUM, true, false, false},
    {"sum_ended", ENDED, TERN_EMBEDDING_BAG_SUM, false, false, false},
    {"sum_rows", ROWS, TERN_EMBEDDING_BAG_SUM, false, false, false},
    {"max", FLAT, TERN_EMBEDDING_BAG_MAX, false, false, false},
    {"max_padded", FLAT, TERN_EMBEDDING_BAG_MAX, true, false, false},
    {"max_ended", ENDED, TERN_EMBEDDING_BAG_MAX, false, false, false},
    {"max_rows", ROWS, TERN_EMBEDDING_BAG_MAX, false, false, false},
    {"weighted", FLAT, TERN_EMBEDDING_BAG_SUM, false, true, false},
    {"weighted_padded", PAIRS, TERN_EMBEDDING_BAG_SUM, true, true, false},
    {"frequent", FLAT, TERN_EMBEDDING_BAG_SUM, false, false, true},
};

static void bags_are_pytorch_s(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("embedding");
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof bags / sizeof *bags; i++)
        TERN_SCOPE {
            int form = bags[i].form;
            tern_tensor *weight = leaf(file, "weight", device), *offsets = NULL;
            tern_tensor *samples = leaf(file, "samples", device), *w = samples;
            tern_tensor *index = ints(device, form == ENDED ? TERN_I32 : TERN_I64, 8, flat);
            if (form == FLAT)
                offsets = ints(device, TERN_I64, 4, starts);
            else if (form == ENDED)
                offsets = ints(device, TERN_I32, 3, ends);
            else
                index = tern_view(index, form == ROWS ? TERN_SHAPE(2, 4) : TERN_SHAPE(4, 2));
            if (form == PAIRS)
                w = tern_view(samples, TERN_SHAPE(4, 2));
            tern_embedding_bag_function_options o = {.mode = bags[i].mode,
                                                     .include_last_offset = form == ENDED,
                                                     .scale_grad_by_freq = bags[i].frequent,
                                                     .per_sample_weights =
                                                         bags[i].weighted ? w : NULL};
            if (bags[i].padded)
                o.padding_idx = tern_some(-3);
            tern_tensor *y = tern_embedding_bag(index, weight, offsets, &o);
            golden(file, bags[i].name, "", y);
            assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
            golden(file, bags[i].name, ".dweight", tern_grad(weight));
            if (bags[i].weighted)
                golden(file, bags[i].name, ".dsamples",
                       tern_view(tern_grad(samples), tern_shape_of(w)));
        }
    test_golden_close(file);
}

static void empty_bags_are_zeros(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *weight = tern_ones(TERN_SHAPE(4, 2), TERN_F32, device);
        tern_requires_grad_(weight, true);
        tern_tensor *none = tern_zeros(TERN_SHAPE(0), TERN_I64, device);
        for (int mode = TERN_EMBEDDING_BAG_MEAN; mode <= TERN_EMBEDDING_BAG_MAX; mode++) {
            tern_embedding_bag_function_options o = {.mode = (tern_embedding_bag_mode)mode};
            tern_tensor *y =
                tern_embedding_bag(none, weight, tern_zeros(TERN_SHAPE(2), TERN_I64, device), &o);
            assert_values(y, 0, 0, 0, 0);
            assert_ok(tern_backward(tern_sum(y)));
            assert_values(tern_grad(weight), 0, 0, 0, 0, 0, 0, 0, 0);
            y = tern_embedding_bag(none, weight, none, &o);
            assert_shape(y, 0, 2);
            assert_ok(tern_backward(tern_sum(y)));
        }
    }
}

static tern_tensor *weighted_bags(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_embedding_bag(ints("cpu", TERN_I64, 8, flat), in[0],
                              ints("cpu", TERN_I64, 4, starts),
                              &(tern_embedding_bag_function_options){.mode = TERN_EMBEDDING_BAG_SUM,
                                                                     .per_sample_weights = in[1]});
}
static tern_tensor *mean_bags(tern_tensor *const *in, void *user)
{
    (void)user;
    tern_tensor *rows = tern_mul(in[0], in[0]);
    return tern_embedding_bag(ints("cpu", TERN_I64, 8, flat), rows,
                              ints("cpu", TERN_I64, 4, starts),
                              &(tern_embedding_bag_function_options){.padding_idx = TERN_SOME(3)});
}

static void gradients_are_differentiable(void **state)
{
    (void)state;
    tern_tensor *in[] = {test_uniform("cpu", TERN_F64, TERN_SHAPE(6, 3), -2, 2, 5),
                         test_uniform("cpu", TERN_F64, TERN_SHAPE(8), -2, 2, 6)};
    for (int i = 0; i < 2; i++)
        tern_requires_grad_(in[i], true);
    gradcheck(weighted_bags, in, 2, .second = true);
    gradcheck(mean_bags, in, 1, .second = true);
}

/* ---- one by one -------------------------------------------------------------------------- */

static void rows_are_scaled_as_pytorch_s(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("embedding");
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *weight = leaf(file, "weight", device),
                    *index = ints(device, TERN_I64, 8, flat);
        tern_tensor *y =
            tern_embedding(index, weight,
                           &(tern_embedding_function_options){.padding_idx = TERN_SOME(2),
                                                              .scale_grad_by_freq = true});
        assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
        golden(file, "rows_frequent", ".dweight", tern_grad(weight));
        for (int norm = 1; norm <= 2; norm++) {
            tern_embedding_function_options o = {.max_norm = 0.75, .norm_type = norm};
            weight = leaf(file, "weight", device);
            golden(file, norm == 1 ? "rows_1" : "rows_2", "", tern_embedding(index, weight, &o));
            golden(file, norm == 1 ? "renormalised_1" : "renormalised_2", "", weight);
        }
    }
    test_golden_close(file);
}

/* ---- modules ----------------------------------------------------------------------------- */

static void modules_hold_the_table(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *table = TENSOR(device, TERN_F32, TERN_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
        tern_tensor *index = ints(device, TERN_I64, 3, (int64_t[]){2, 0, 2}), *y = NULL;
        tern_module *m = tern_nn_embedding_from_pretrained(table, true, NULL);
        assert_false(tern_requires_grad(tern_nn_parameter(m, "weight")));
        assert_values(tern_nn_forward(m, index), 5, 6, 1, 2, 5, 6);
        assert_non_null(tern_zero_(table)); /* its elements are the module's */
        assert_values(tern_nn_forward(m, index), 0, 0, 0, 0, 0, 0);
        tern_nn_free(m);
        table = TENSOR(device, TERN_F32, TERN_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
        m = tern_nn_embedding_bag_from_pretrained(
            table, false, &(tern_embedding_bag_options){.mode = TERN_EMBEDDING_BAG_SUM});
        assert_true(tern_requires_grad(tern_nn_parameter(m, "weight")));
        assert_values(tern_nn_forward(m, tern_view(index, TERN_SHAPE(1, 3))), 11, 14);
        tern_tensor *in[] = {index, ints(device, TERN_I64, 2, (int64_t[]){0, 1}),
                             TENSOR(device, TERN_F32, TERN_SHAPE(3), 2, 3, 4)};
        assert_ok(tern_nn_call(m, in, 2, &y, 1));
        assert_values(y, 5, 6, 6, 8);
        assert_ok(tern_nn_call(m, in, 3, &y, 1));
        assert_values(y, 10, 12, 23, 30);
        tern_nn_free(m);
    }
    tern_embedding_bag_options o = {.padding_idx = TERN_SOME(-1), .max_norm = 2.5};
    tern_module *m = tern_nn_embedding_bag(4, 3, &o);
    char *text = tern_nn_to_text(m);
    assert_string_equal(text, "EmbeddingBag(4, 3, max_norm=2.5, mode='mean', padding_idx=3)");
    tern_free_text(text);
    assert_values(tern_select(tern_nn_parameter(m, "weight"), 0, 3), 0, 0, 0);
    tern_nn_free(m);
}

/* ---- refusals ---------------------------------------------------------------------------- */

#define REFUSED(CALL, STATUS, WORDS)                                                               \
    do {                                                                                           \
        assert_null(CALL);                                                                         \
        assert_error(STATUS, WORDS);                                                               \
    } while (0)

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tern_tensor *w = tern_ones(TERN_SHAPE(4, 2), TERN_F32, "cpu"), *row = tern_select(w, 0, 0);
    tern_tensor *x = tern_zeros(TERN_SHAPE(3), TERN_I64, "cpu"), *two = tern_unsqueeze(x, 0);
    tern_tensor *start = tern_zeros(TERN_SHAPE(1), TERN_I64, "cpu");
    tern_embedding_bag_function_options max = {.mode = TERN_EMBEDDING_BAG_MAX,
                                               .scale_grad_by_freq = true};
    tern_embedding_bag_function_options weights = {.per_sample_weights = row,
                                                   .mode = TERN_EMBEDDING_BAG_SUM};
    tern_embedding_bag_function_options mean = {.per_sample_weights = tern_ones_like(x)};
    REFUSED(tern_embedding_bag(x, w, NULL, NULL), TERN_ERR_SHAPE,
            "offsets has to be a 1D Tensor but got None");
    REFUSED(tern_embedding_bag(x, w, two, NULL), TERN_ERR_SHAPE, "offsets has to be a 1D Tensor");
    REFUSED(tern_embedding_bag(two, w, start, NULL), TERN_ERR_ARGUMENT,
            "if input is 2D, then offsets has to be None");
    REFUSED(tern_embedding_bag(tern_unsqueeze(two, 0), w, NULL, NULL), TERN_ERR_SHAPE,
            "input has to be 1D or 2D Tensor, but got Tensor of dimension 3");
    REFUSED(tern_embedding_bag(row, w, start, NULL), TERN_ERR_DTYPE, "but got float32 instead");
    REFUSED(tern_embedding_bag(x, row, start, NULL), TERN_ERR_SHAPE, "'weight' must be 2-D");
    REFUSED(tern_embedding_bag(x, w, start, &max), TERN_ERR_ARGUMENT,
            "max mode does not support scaling the gradient by the frequency");
    REFUSED(tern_embedding_bag(x, w, start, &weights), TERN_ERR_SHAPE,
            "If per_sample_weights ([2]) is not None, then it must have the same shape as the "
            "input ([3])");
    REFUSED(tern_embedding_bag(x, w, start, &mean), TERN_ERR_UNSUPPORTED,
            "per_sample_weights is only supported for mode='sum' (got mode='mean')");
    REFUSED(tern_nn_embedding_from_pretrained(row, true, NULL), TERN_ERR_SHAPE,
            "Embeddings parameter is expected to be 2-dimensional");
}

static void indices_and_offsets_out_of_range_are_found(void **state)
{
    (void)state;
    static const struct {
        int64_t index, start;
        const char *words;
    } rows[] = {{4, 0, "index out of range in self (index 4, 4 rows)"},
                {-1, 0, "index out of range in self (index -1, 4 rows)"},
                {0, 1, "offsets[0] has to be 0"}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_tensor *w = tern_ones(TERN_SHAPE(4, 2), TERN_F32, device);
        tern_tensor *index = ints(device, TERN_I64, 2, (int64_t[]){1, rows[i].index});
        if (tern_embedding_bag(index, w, ints(device, TERN_I64, 1, &rows[i].start), NULL))
            assert_int_not_equal(tern_synchronize(device), TERN_OK);
        assert_error(TERN_ERR_ARGUMENT, rows[i].words);
    }
}

/* ---- a table that is another layer's weight too ------------------------------------------------ */

static tern_tensor *noted;
static tern_tensor *note(tern_tensor *grad, void *calls)
{
    ++*(int *)calls;
    tern_release(noted);
    noted = tern_keep(grad);
    return NULL;
}

/* What comes by the embedding is added to what came by the product before: in the sum a hook sees, and in the sum of two backward passes.
 * With a frequency as well. */
static tern_tensor *tied(const char *device, bool frequent, int *calls)
{
    tern_tensor *w = tern_keep(
        tern_requires_grad_(test_uniform(device, TERN_F32, TERN_SHAPE(6, 4), -1, 1, 3), true));
    tern_tensor *index = ints(device, TERN_I64, 8, flat);
    tern_tensor *c = test_uniform(device, TERN_F32, TERN_SHAPE(8, 6), -1, 1, 4);
    tern_register_hook(w, note, calls);
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            tern_tensor *h =
                tern_embedding(index, w,
                               &(tern_embedding_function_options){.padding_idx = TERN_SOME(5),
                                                                  .scale_grad_by_freq = frequent});
            tern_backward(tern_sum(tern_mul(tern_matmul(h, tern_transpose(w, 0, 1)), c)));
        }
    tern_tensor *grad = tern_mul_scalar(tern_to(tern_grad(w), "cpu"), tern_scalar_int(1));
    tern_release(w);
    return grad;
}

static void a_tied_table_gets_both_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int frequent = 0; frequent < 2; frequent++)
        TERN_SCOPE {
            int here = 0, there = 0;
            tern_tensor *grad = tied(device, frequent, &here);
            tern_tensor *last = tern_mul_scalar(tern_to(noted, "cpu"), tern_scalar_int(2));
            tern_tensor *expected = tied("cpu", frequent, &there);
            assert_int_equal(tern_last_status(), TERN_OK);
            assert_close(grad, expected, .abs = 1e-5, .rel = 1e-5);
            assert_close(last, expected, .abs = 1e-5, .rel = 1e-5);
            assert_int_equal(here, 2);
            tern_release(noted);
            noted = NULL;
        }
}

static const struct CMUnitTest tests[] = {
    TEST(bags_are_pytorch_s),           TEST(empty_bags_are_zeros),
    TEST(gradients_are_differentiable), TEST(rows_are_scaled_as_pytorch_s),
    TEST(modules_hold_the_table),       TEST(a_tied_table_gets_both_gradients),
    TEST(what_does_not_fit_is_refused), TEST(indices_and_offsets_out_of_range_are_found),
};
TEST_MAIN(tests)
