/* test_sizes.c -- sizes that are too large, or negative, for what is made of them: an error, where
 * sums and products would wrap. */
#include "support.h"
#include <math.h>

#define BIG   (INT64_MAX / 2 + 1) /* 2^62 */
#define MOST  INT64_MAX
#define LEAST INT64_MIN

static tern_tensor *ones(tern_shape shape)
{
    return tern_ones(shape, TERN_F32, "cpu");
}

static void refused(const void *result, const char *what)
{
    if (result || tern_last_status() == TERN_OK || !*tern_last_error())
        fail_msg("%s is not refused (%s)", what, tern_last_error());
    tern_clear_error();
}
#define assert_refused(call) refused(call, #call)

static const int64_t numbers[] = {BIG, MOST, MOST - 1, LEAST, LEAST + 1, -BIG, INT64_C(1) << 61};
#define FOR_EACH_NUMBER(n)                                                                         \
    for (size_t n##_i = 0; n##_i < sizeof numbers / sizeof *numbers; n##_i++)                      \
        for (int64_t n = numbers[n##_i], n##_once = 1; n##_once; n##_once = 0)

static void windows_of_huge_numbers_are_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = ones(TERN_SHAPE(1, 2, 5)), *w = ones(TERN_SHAPE(2, 2, 3));
        tern_tensor *image = ones(TERN_SHAPE(1, 2, 5, 5)), *columns = ones(TERN_SHAPE(1, 4, 9));
        tern_tensor *at = tern_zeros(TERN_SHAPE(1, 2, 5), TERN_I64, "cpu");
        FOR_EACH_NUMBER(n)
        {
            tern_shape list = TERN_SHAPE(n);
            assert_refused(tern_conv1d(x, w, NULL, &(tern_conv_function_options){.padding = list}));
            assert_refused(
                tern_conv1d(x, w, NULL, &(tern_conv_function_options){.dilation = list}));
            assert_refused(tern_conv_transpose1d(
                x, w, NULL, &(tern_conv_transpose_function_options){.padding = list}));
            assert_refused(tern_conv_transpose1d(
                x, w, NULL, &(tern_conv_transpose_function_options){.stride = list}));
            assert_refused(tern_conv_transpose1d(
                x, w, NULL,
                &(tern_conv_transpose_function_options){.dilation = list, .output_padding = list}));
            assert_refused(tern_max_pool1d(x, list, NULL));
            assert_refused(tern_avg_pool1d(x, list, &(tern_avg_pool_options){.padding = list}));
            assert_refused(
                tern_max_pool1d(x, TERN_SHAPE(2), &(tern_max_pool_options){.dilation = list}));
            assert_refused(tern_adaptive_avg_pool1d(x, list));
            assert_refused(tern_max_unpool1d(x, at, list, NULL));
            assert_refused(tern_max_unpool1d(x, at, TERN_SHAPE(2),
                                             &(tern_max_unpool_options){.stride = list}));
            assert_refused(tern_max_unpool1d(x, at, TERN_SHAPE(2),
                                             &(tern_max_unpool_options){.padding = list}));
            assert_refused(
                tern_unfold(image, TERN_SHAPE(2), &(tern_unfold_options){.padding = list}));
            assert_refused(tern_unfold(image, list, NULL));
            assert_refused(tern_fold(columns, list, TERN_SHAPE(2), NULL));
            assert_refused(tern_interpolate(x, &(tern_interpolate_options){.size = list}));
        }
    }
}

static void padding_of_huge_numbers_is_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = ones(TERN_SHAPE(1, 3, 4));
        FOR_EACH_NUMBER(n)
        for (int mode = TERN_PAD_CONSTANT; mode <= TERN_PAD_CIRCULAR; mode++) {
            tern_pad_options o = {.mode = (tern_pad_mode)mode};
            assert_refused(tern_pad(x, TERN_SHAPE(n, n), &o));
            assert_refused(tern_pad(x, TERN_SHAPE(n, 0), &o));
            assert_refused(tern_pad(x, TERN_SHAPE(0, n), &o));
        }
    }
}

/* The padding that cuts comes first: what is left is too short to go around. */
static void padding_that_goes_around_twice_is_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_pad_options o = {.mode = TERN_PAD_CIRCULAR};
        tern_tensor *x = ones(TERN_SHAPE(1, 4));
        assert_refused(tern_pad(x, TERN_SHAPE(4, -3), &o));
        assert_refused(tern_pad(x, TERN_SHAPE(-3, 4), &o));
        assert_shape(tern_pad(x, TERN_SHAPE(2, -2), &o), 1, 4);
    }
}

static void numbers_beside_the_sizes_do_not_wrap(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_arange(0, 4, 1, TERN_F32, "cpu");
        FOR_EACH_NUMBER(n)
        {
            tern_tensor *var = tern_var(x, (double)n);
            assert_non_null(var);
            assert_true(n > 0 ? tern_item(var) == INFINITY : tern_item(var) < 1e-8);
            assert_refused(tern_fractional_max_pool2d(
                ones(TERN_SHAPE(1, 4, 4)), TERN_SHAPE(n),
                &(tern_fractional_max_pool_options){.output_size = TERN_SHAPE(n)}));
            assert_refused(tern_nn_conv1d(
                2, 2, TERN_SHAPE(n),
                &(tern_conv_options){.padding = TERN_SHAPE(n), .padding_mode = TERN_PAD_REFLECT}));
        }
        assert_non_null(tern_round_decimals(x, INT32_MIN));
        tern_tensor *one = tern_eye(2, 2, TERN_F32, "cpu");
        assert_values(tern_matrix_power(one, LEAST), 1, 0, 0, 1);
        tern_tensor *pieces[2];
        assert_true(tern_split_with_sizes(x, (const int64_t[]){MOST, MOST}, 2, 0, pieces, 2) < 0);
        tern_clear_error();
        assert_refused(tern_pdist(tern_expand(ones(TERN_SHAPE(1, 2)), TERN_SHAPE(BIG >> 8, 2)), 2));
    }
}

static void rearranging_by_huge_numbers_is_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = ones(TERN_SHAPE(1, 4, 2, 2)), *line = ones(TERN_SHAPE(4));
        FOR_EACH_NUMBER(n)
        {
            assert_refused(tern_pixel_shuffle(x, n));
            assert_refused(tern_pixel_unshuffle(x, n));
            assert_refused(tern_repeat(line, TERN_SHAPE(n)));
            assert_refused(tern_repeat(x, TERN_SHAPE(n, n, n, n)));
            assert_refused(tern_diag_embed(line, n, 0, 1));
            assert_refused(tern_repeat_interleave(line, n, (tern_optional_int){0}));
            assert_refused(tern_expand(ones(TERN_SHAPE(1, 1)), TERN_SHAPE(n, n)));
        }
        /* A step that leaves one window. */
        assert_shape(tern_unfold_dim(line, 0, 3, BIG), 1, 3);
    }
}

static void tables_of_huge_sizes_are_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        FOR_EACH_NUMBER(n)
        {
            tern_tensor *cos, *sin;
            assert_refused(tern_sinusoidal_table(n, n, TERN_F32, "cpu"));
            assert_refused(tern_sinusoidal_table(16, n, TERN_F32, "cpu"));
            assert_true(tern_rotary_tables(n, 4, 0, TERN_F32, "cpu", &cos, &sin) != TERN_OK);
            tern_clear_error();
            assert_refused(tern_tril_indices(n, n, 0, "cpu"));
            assert_refused(tern_triu_indices(1, n, 0, "cpu"));
            assert_refused(tern_nn_multihead_attention(n, 1, NULL));
            assert_refused(tern_nn_lstm(n, n, NULL));
            assert_refused(tern_nn_rnn(
                2, 2, &(tern_rnn_options){.num_layers = (int)LEAST, .dropout = n > 0 ? 2 : -1}));
        }
    }
}

/* By rows, as they are counted where no formula is. */
static void count_triangle(int64_t rows, int64_t columns, int64_t offset, bool upper)
{
    int64_t n = 0, k = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            n += upper ? c - r >= offset : c - r <= offset;
    tern_tensor *x = upper ? tern_triu_indices(rows, columns, offset, "cpu")
                           : tern_tril_indices(rows, columns, offset, "cpu");
    assert_non_null(x);
    assert_shape(x, 2, n);
    const int64_t *at = tern_data(x);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            if (upper ? c - r >= offset : c - r <= offset) {
                assert_int_equal(at[k], r);
                assert_int_equal(at[n + k++], c);
            }
}

static void triangles_are_counted_without_a_loop(void **state)
{
    (void)state;
    for (int64_t rows = 0; rows < 6; rows++)
        for (int64_t columns = 0; columns < 6; columns++)
            for (int64_t offset = -8; offset <= 8; offset++)
                TERN_SCOPE {
                    count_triangle(rows, columns, offset, true);
                    count_triangle(rows, columns, offset, false);
                }
    TERN_SCOPE { /* of many rows only a few have something in them */
        assert_shape(tern_triu_indices(BIG, 3, 0, "cpu"), 2, 6);
        assert_shape(tern_tril_indices(3, BIG, 0, "cpu"), 2, 6);
        assert_shape(tern_triu_indices(BIG, BIG, MOST, "cpu"), 2, 0);
        assert_shape(tern_tril_indices(BIG, BIG, LEAST, "cpu"), 2, 0);
    }
}

static void lists_of_many_numbers_are_printed_in_part(void **state)
{
    (void)state;
    const int64_t many[20] = {0};
    /* A shape of too many dims says so, and has no list of them. */
    tern_module *m = tern_nn_adaptive_avg_pool2d(tern_shape_from(20, many));
    char *text = m ? tern_nn_to_text(m) : NULL;
    tern_free_text(text);
    tern_nn_free(m);
    tern_clear_error();
}

static const struct CMUnitTest tests[] = {
    TEST(windows_of_huge_numbers_are_refused),
    TEST(padding_of_huge_numbers_is_refused),
    TEST(padding_that_goes_around_twice_is_refused),
    TEST(numbers_beside_the_sizes_do_not_wrap),
    TEST(rearranging_by_huge_numbers_is_refused),
    TEST(tables_of_huge_sizes_are_refused),
    TEST(triangles_are_counted_without_a_loop),
    TEST(lists_of_many_numbers_are_printed_in_part),
};
TEST_MAIN(tests)
