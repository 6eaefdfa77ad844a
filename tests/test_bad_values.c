/* test_bad_values.c -- values that an operation cannot take: refused in PyTorch's words, inputs as they were; NaN and
 * infinity stay what they are. tests/parity (set edges) puts one of them into every operation. */
#include "support.h"
#include <math.h>

/* ---- integers by 0 ------------------------------------------------------------------------- */

/* What the kernel found is told at once on the cpu, elsewhere at the next wait. */
static void divides_by_zero(const char *device, tern_tensor *y)
{
    (void)y;
    tern_synchronize(device);
    assert_error(TERN_ERR_ARGUMENT, "ZeroDivisionError");
}

static void integers_are_not_divided_by_zero(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_I32, TERN_I64, TERN_U8};
    FOR_EACH_DEVICE(device)
    for (int k = 0; k < 3; k++)
        TERN_SCOPE {
            tern_tensor *x = TENSOR(device, dtypes[k], TERN_SHAPE(2, 3), 7, 8, 9, 10, 11, 12);
            tern_tensor *y = TENSOR(device, dtypes[k], TERN_SHAPE(3), 2, 0, 3);
            tern_tensor *one = TENSOR(device, dtypes[k], TERN_SHAPE_SCALAR, 0);
            divides_by_zero(device, tern_div_mode(x, y, TERN_ROUNDING_TRUNC));
            divides_by_zero(device, tern_div_mode(x, y, TERN_ROUNDING_FLOOR));
            divides_by_zero(device, tern_floor_divide(x, y));
            divides_by_zero(device, tern_trunc_divide(x, y));
            divides_by_zero(device, tern_remainder(x, y));
            divides_by_zero(device, tern_fmod(x, y));
            divides_by_zero(
                device,
                tern_remainder(x, tern_transpose(tern_expand(one, TERN_SHAPE(3, 2)), 0, 1)));
            divides_by_zero(device, tern_floor_divide_scalar(x, TERN_SCALAR(0)));
            divides_by_zero(device, tern_remainder_scalar(x, TERN_SCALAR(0)));
            divides_by_zero(device, tern_remainder_(x, y));
            if (strcmp(device, "cpu") == 0)
                assert_values(x, 7, 8, 9, 10, 11, 12); /* as it was */
            assert_values(tern_div(TENSOR(device, dtypes[k], TERN_SHAPE(1), 4),
                                   TENSOR(device, dtypes[k], TERN_SHAPE(1), 0)),
                          INFINITY);
            assert_shape(tern_remainder(tern_narrow(x, 0, 0, 0), y), 0, 3); /* nothing is divided */
        }
}

/* ---- numbers that are out of range --------------------------------------------------------- */

static void bounds_beyond_the_type_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *h = tern_ones(TERN_SHAPE(2), TERN_F16, device);
        tern_tensor *b = tern_ones(TERN_SHAPE(2), TERN_BF16, device);
        static const char part[] = "without overflow";
#define REFUSED(CALL)                                                                              \
    assert_null(CALL);                                                                             \
    assert_error(TERN_ERR_ARGUMENT, part)
        REFUSED(tern_clamp(h, 4e26, INFINITY));
        REFUSED(tern_clamp(h, -INFINITY, 65520));
        REFUSED(tern_clamp_(h, -4e26, 0));
        REFUSED(tern_clamp_min_scalar(h, TERN_SCALAR(4e26)));
        REFUSED(tern_clamp_max_scalar(h, TERN_SCALAR(-4e26)));
        REFUSED(tern_clamp(b, 1e39, INFINITY));
        REFUSED(tern_hardtanh(h, -4e26, 4e26));
        assert_values(tern_clamp(h, -INFINITY, INFINITY), 1, 1);
        assert_values(tern_clamp(h, 65504, INFINITY), 65504, 65504);
        assert_values(tern_clamp(b, -1e38, 1e38), 1, 1);
        assert_values(h, 1, 1);
    }
}

static void cosine_similarity_wants_an_eps_of_zero_or_more(void **state)
{
    (void)state;
    tern_tensor *x = TENSOR("cpu", TERN_F32, TERN_SHAPE(1, 2), 3, 4);
    assert_null(tern_cosine_similarity(x, x, 1, -1));
    assert_error(TERN_ERR_ARGUMENT, "eps must be non-negative, got: -1");
    assert_null(tern_cosine_similarity(x, x, 1, NAN));
    assert_error(TERN_ERR_ARGUMENT, "eps");
    assert_values_close(tern_cosine_similarity(x, x, 1, 0), 1e-6, 1);
}

static void multinomial_does_not_draw_weights_of_zero(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *p = TENSOR(device, TERN_F32, TERN_SHAPE(4), 0, 1, 0, 2);
        tern_tensor *rows = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1, 1, 0, 1);
        assert_null(tern_multinomial(p, 3, false));
        assert_error(TERN_ERR_ARGUMENT, "cannot draw 3 samples without replacement from a row with "
                                        "2 non-zero weights");
        assert_null(tern_multinomial(rows, 2, false));
        assert_error(TERN_ERR_ARGUMENT, "1 non-zero weights");
        assert_values(tern_sum(tern_multinomial(p, 2, false)), 4);
        assert_shape(tern_multinomial(rows, 1, false), 2, 1);
        assert_shape(tern_multinomial(p, 9, true), 9);
    }
}

static void nothing_is_repeated_of_an_empty_dim(void **state)
{
    (void)state;
    static const tern_pad_mode modes[] = {TERN_PAD_REFLECT, TERN_PAD_REPLICATE};
    static const tern_shape shapes[] = {{3, {0, 3, 0}},   {3, {2, 0, 3}},    {3, {2, 3, 0}},
                                        {2, {0, 4}},      {4, {2, 3, 0, 4}}, {4, {2, 3, 4, 0}},
                                        {4, {2, 0, 4, 4}}};
    FOR_EACH_DEVICE(device)
    for (int m = 0; m < 2; m++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int64_t by = 0; by < 2; by++) {
                tern_shape pad =
                    shapes[i].ndim == 4 ? TERN_SHAPE(by, by, by, by) : TERN_SHAPE(by, by);
                assert_null(tern_pad(tern_zeros(shapes[i], TERN_F32, device), pad,
                                     &(tern_pad_options){.mode = modes[m]}));
                assert_error(TERN_ERR_SHAPE, "non-zero dimensions");
            }
        assert_shape(tern_pad(tern_zeros(TERN_SHAPE(0, 3, 4), TERN_F32, device), TERN_SHAPE(1, 1),
                              &(tern_pad_options){.mode = modes[m]}),
                     0, 3, 6);
    }
}

/* ---- NaN and ties ------------------------------------------------------------------------------ */

static void grid_sample_at_nan_is_nan(void **state)
{
    (void)state;
    static const struct {
        tern_grid_sample_mode mode;
        tern_grid_sample_padding_mode padding;
        double at, value; /* of the place (at, 0) in an image of 9 .. 1 */
    } rows[] = {{TERN_GRID_SAMPLE_BILINEAR, TERN_GRID_SAMPLE_ZEROS, NAN, NAN},
                {TERN_GRID_SAMPLE_BILINEAR, TERN_GRID_SAMPLE_ZEROS, INFINITY, NAN},
                {TERN_GRID_SAMPLE_BILINEAR, TERN_GRID_SAMPLE_ZEROS, 1e10, 0},
                {TERN_GRID_SAMPLE_BILINEAR, TERN_GRID_SAMPLE_BORDER, NAN, NAN},
                {TERN_GRID_SAMPLE_BILINEAR, TERN_GRID_SAMPLE_BORDER, INFINITY, 4},
                {TERN_GRID_SAMPLE_BILINEAR, TERN_GRID_SAMPLE_REFLECTION, NAN, NAN},
                {TERN_GRID_SAMPLE_BICUBIC, TERN_GRID_SAMPLE_ZEROS, NAN, NAN},
                {TERN_GRID_SAMPLE_BICUBIC, TERN_GRID_SAMPLE_BORDER, INFINITY, NAN},
                {TERN_GRID_SAMPLE_NEAREST, TERN_GRID_SAMPLE_ZEROS, NAN, 0},
                {TERN_GRID_SAMPLE_NEAREST, TERN_GRID_SAMPLE_BORDER, NAN, 6}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int corners = 0; corners < 2; corners++) {
            tern_tensor *image =
                tern_view(tern_arange(9, 0, -1, TERN_F32, device), TERN_SHAPE(1, 1, 3, 3));
            tern_tensor *grid = TENSOR(device, TERN_F32, TERN_SHAPE(1, 1, 1, 2), rows[i].at, 0);
            tern_grid_sample_options o = {
                .mode = rows[i].mode, .padding_mode = rows[i].padding, .align_corners = corners};
            assert_values(tern_grid_sample(image, grid, &o), rows[i].value);
        }
}

/* Each of the largest differences has all of the gradient, as in PyTorch's cdist; of a norm they share it. */
static void distances_have_the_gradient_of_pytorch_at_ties(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x =
            tern_requires_grad_(TENSOR(device, TERN_F32, TERN_SHAPE(1, 4), 1, -2, 2, 0), true);
        tern_tensor *zero = tern_zeros(TERN_SHAPE(1, 4), TERN_F32, device);
        assert_ok(tern_backward(tern_sum(tern_cdist(x, zero, INFINITY))));
        assert_values(tern_grad(x), 0, -1, 1, 0);
        tern_set_grad(x, NULL);
        assert_ok(tern_backward(tern_sum(tern_norm_dim(x, INFINITY, TERN_DIMS(-1), false))));
        assert_values(tern_grad(x), 0, -0.5, 0.5, 0);
    }
}

static void places_among_nan_are_those_of_pytorch(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *bounds = TENSOR(device, TERN_F32, TERN_SHAPE(5), 1, NAN, 3, 4, 5);
        tern_tensor *nans = TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 2, NAN);
        tern_tensor *at = TENSOR(device, TERN_F32, TERN_SHAPE(5), 0, 1, 2, 4, NAN);
        assert_values(tern_searchsorted(bounds, at, TERN_SIDE_LEFT), 2, 2, 2, 3, 5);
        assert_values(tern_searchsorted(bounds, at, TERN_SIDE_RIGHT), 2, 2, 2, 4, 5);
        assert_values(tern_bucketize(at, nans, false), 0, 0, 1, 3, 3);
    }
}

static void histc_counts_integers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_I64, TERN_SHAPE(6), 1, 2, 3, 3, 9, -4);
        tern_tensor *bytes = TENSOR(device, TERN_U8, TERN_SHAPE(4), 0, 255, 254, 3);
        assert_values(tern_histc(x, 4, 0, 10), 2, 2, 0, 1);
        assert_int_equal(tern_dtype_of(tern_histc(x, 4, 0, 10)), TERN_I64);
        assert_values(tern_histc(x, 13, 0, 0), 1, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1);
        assert_values(tern_histc(bytes, 2, 0, 255), 2, 2);
        assert_int_equal(tern_dtype_of(tern_histc(bytes, 2, 0, 255)), TERN_U8);
        assert_null(tern_histc(tern_ones(TERN_SHAPE(2), TERN_BOOL, device), 2, 0, 1));
        assert_error(TERN_ERR_DTYPE, "tern_histc");
    }
}

static const struct CMUnitTest tests[] = {TEST(integers_are_not_divided_by_zero),
                                          TEST(bounds_beyond_the_type_are_refused),
                                          TEST(cosine_similarity_wants_an_eps_of_zero_or_more),
                                          TEST(multinomial_does_not_draw_weights_of_zero),
                                          TEST(nothing_is_repeated_of_an_empty_dim),
                                          TEST(grid_sample_at_nan_is_nan),
                                          TEST(distances_have_the_gradient_of_pytorch_at_ties),
                                          TEST(places_among_nan_are_those_of_pytorch),
                                          TEST(histc_counts_integers)};
TEST_MAIN(tests)
