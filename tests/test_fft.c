/* test_fft.c -- Fourier transforms and spectra of signals: the definition in double, and PyTorch's results and
 * gradients (golden/fft.txt). */
#include "support.h"
#include "pattern.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double two_pi = 6.283185307179586;

/* ---- any length is the definition --------------------------------------------------------- */

/* y[k] = sum_j x[j] e^(sign 2 pi i j k / n) of rows of pairs. */
static void textbook(const double *x, double *y, int64_t rows, int64_t n, int sign)
{
    for (int64_t r = 0; r < rows; r++, x += 2 * n, y += 2 * n)
        for (int64_t k = 0; k < n; k++) {
            double re = 0, im = 0;
            for (int64_t j = 0; j < n; j++) {
                double angle = sign * two_pi * (double)(j * k % n) / (double)n;
                re += x[2 * j] * cos(angle) - x[2 * j + 1] * sin(angle);
                im += x[2 * j] * sin(angle) + x[2 * j + 1] * cos(angle);
            }
            y[2 * k] = re;
            y[2 * k + 1] = im;
        }
}

static void every_length_is_the_definition(void **state)
{
    (void)state;
    static const int lengths[] = {1,  2,  3,  4,  5,  6,   7,   8,   9,   10,  12,  15,   16,
                                  17, 30, 49, 64, 97, 101, 128, 202, 243, 400, 509, 1000, 1024};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        TERN_SCOPE {
            int64_t n = lengths[i];
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, n, 2), -1, 1, 1);
            double *values = test_read(x), *expected = calloc((size_t)(4 * n), sizeof *expected);
            textbook(values, expected, 2, n, -1);
            tern_tensor *wanted = test_tensor(device, TERN_F32, TERN_SHAPE(2, n, 2), expected);
            tern_tensor *y = tern_fft_fft(x, 0, -1, TERN_FFT_BACKWARD);
            assert_close(y, wanted, .abs = 1e-6 * sqrt((double)n) + 1e-6);
            assert_close(tern_fft_ifft(y, 0, -1, TERN_FFT_BACKWARD), x, .abs = 2e-6);
            free(values);
            free(expected);
        }
}

/* ---- PyTorch's ---------------------------------------------------------------------------- */

typedef tern_tensor *(*along_function)(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
typedef tern_tensor *(*several_function)(tern_tensor *x, tern_shape s, tern_shape dims,
                                         tern_fft_norm norm);

/* The rows of golden/fft.py. */
static const struct {
    along_function f;
    tern_shape shape;
    int64_t n;
    int dim;
    tern_fft_norm norm;
} along[] = {
    {tern_fft_fft, {3, {3, 6, 2}}, 0, -1, 0},   {tern_fft_fft, {3, {6, 3, 2}}, 0, 0, 1},
    {tern_fft_fft, {3, {2, 7, 2}}, 10, 1, 2},   {tern_fft_fft, {3, {2, 7, 2}}, 5, -1, 0},
    {tern_fft_fft, {2, {1, 2}}, 0, 0, 0},       {tern_fft_ifft, {3, {3, 12, 2}}, 0, -1, 0},
    {tern_fft_ifft, {3, {4, 5, 2}}, 8, 0, 1},   {tern_fft_ifft, {3, {2, 9, 2}}, 0, -1, 2},
    {tern_fft_rfft, {2, {2, 8}}, 0, -1, 0},     {tern_fft_rfft, {2, {9, 2}}, 0, 0, 1},
    {tern_fft_rfft, {2, {2, 5}}, 12, -1, 2},    {tern_fft_rfft, {2, {2, 11}}, 4, 1, 0},
    {tern_fft_irfft, {3, {2, 5, 2}}, 0, -1, 0}, {tern_fft_irfft, {3, {2, 5, 2}}, 9, -1, 1},
    {tern_fft_irfft, {3, {5, 2, 2}}, 12, 0, 2}, {tern_fft_irfft, {3, {2, 6, 2}}, 5, -1, 0},
    {tern_fft_hfft, {3, {2, 5, 2}}, 0, -1, 0},  {tern_fft_hfft, {3, {2, 4, 2}}, 7, -1, 1},
    {tern_fft_ihfft, {2, {2, 8}}, 0, -1, 0},    {tern_fft_ihfft, {2, {2, 7}}, 0, -1, 2},
    {tern_fft_fft, {3, {2, 103, 2}}, 0, -1, 0}, {tern_fft_ifft, {2, {103, 2}}, 101, -1, 1},
    {tern_fft_rfft, {1, {101}}, 103, -1, 0},    {tern_fft_irfft, {2, {52, 2}}, 103, -1, 0},
    {tern_fft_hfft, {2, {30, 2}}, 101, -1, 0},
};

static const struct {
    several_function f;
    tern_shape shape, s, dims;
    tern_fft_norm norm;
} several[] = {
    {tern_fft_fft2, {4, {2, 3, 4, 2}}, {0}, {0}, 0},
    {tern_fft_ifft2, {3, {3, 4, 2}}, {2, {4, 3}}, {0}, 1},
    {tern_fft_rfft2, {3, {2, 3, 4}}, {0}, {0}, 0},
    {tern_fft_irfft2, {3, {3, 4, 2}}, {0}, {0}, 0},
    {tern_fft_hfft2, {3, {3, 4, 2}}, {0}, {0}, 2},
    {tern_fft_ihfft2, {2, {3, 4}}, {0}, {0}, 0},
    {tern_fft_fftn, {4, {2, 3, 4, 2}}, {0}, {0}, 1},
    {tern_fft_fftn, {4, {2, 3, 4, 2}}, {2, {5, -1}}, {2, {2, 0}}, 0},
    {tern_fft_ifftn, {4, {2, 3, 4, 2}}, {2, {4, 2}}, {0}, 0},
    {tern_fft_rfftn, {3, {2, 3, 4}}, {0}, {2, {2, 0}}, 0},
    {tern_fft_irfftn, {4, {2, 3, 4, 2}}, {2, {3, 7}}, {2, {0, 2}}, 1},
    {tern_fft_hfftn, {4, {2, 3, 4, 2}}, {0}, {0}, 0},
    {tern_fft_ihfftn, {3, {2, 3, 4}}, {0}, {2, {0, 1}}, 2},
};

/* y of leaf x is the golden file's, and its gradient. */
static void compare(test_golden *golden, const char *kind, size_t i, tern_tensor *x, tern_tensor *y)
{
    char name[32];
    snprintf(name, sizeof name, "%s%zu", kind, i);
    test_golden_compare(golden, name, "", y, 2e-5);
    assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
    test_golden_compare(golden, name, ".dx", tern_grad(x), 2e-4);
}

static tern_tensor *leaf(const char *device, tern_shape shape)
{
    return tern_requires_grad_(pattern(device, TERN_F32, shape, 5, 11), true);
}

static void transforms_and_gradients_are_pytorchs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        test_golden *golden = test_golden_open("fft");
        for (size_t i = 0; i < sizeof along / sizeof *along; i++)
            TERN_SCOPE {
                tern_tensor *x = leaf(device, along[i].shape);
                compare(golden, "along", i, x,
                        along[i].f(x, along[i].n, along[i].dim, along[i].norm));
            }
        for (size_t i = 0; i < sizeof several / sizeof *several; i++)
            TERN_SCOPE {
                tern_tensor *x = leaf(device, several[i].shape);
                compare(golden, "several", i, x,
                        several[i].f(x, several[i].s, several[i].dims, several[i].norm));
            }
        test_golden_close(golden);
    }
}

static tern_tensor *there(tern_tensor *const *in, void *user)
{
    return along[*(int *)user].f(in[0], along[*(int *)user].n, along[*(int *)user].dim, 0);
}

static void second_gradients(void **state)
{
    (void)state;
    static const int rows[] = {2, 10, 13, 14, 18};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            int row = rows[i];
            tern_tensor *x = tern_requires_grad_(
                test_uniform(device, TERN_F32, along[row].shape, -1, 1, 4), true);
            gradcheck(there, &x, 1, .user = &row, .second = true);
        }
}

static const struct {
    tern_shape shape;
    int64_t n_fft, hop, length;
    bool window, center;
    tern_pad_mode mode;
    bool normalized, two_sided;
} signals[] = {
    {{1, {40}}, 8, 0, 0, true, true, TERN_PAD_REFLECT, false, false},
    {{2, {2, 33}}, 9, 4, 6, true, true, TERN_PAD_CONSTANT, true, false},
    {{2, {2, 30}}, 10, 5, 0, false, false, TERN_PAD_REFLECT, false, false},
    {{2, {2, 24}}, 8, 3, 7, true, true, TERN_PAD_CIRCULAR, false, true},
};

static void spectra_of_signals_are_pytorchs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        TERN_SCOPE {
            test_golden *golden = test_golden_open("fft");
            int64_t length = signals[i].length ? signals[i].length : signals[i].n_fft;
            tern_tensor *window =
                tern_add_scalar(tern_hann_window(length, true, 0, device), tern_scalar_real(0.125));
            const tern_stft_options *o = TERN_DEFAULTS(
                stft, .hop_length = signals[i].hop, .win_length = signals[i].length,
                .window = signals[i].window ? window : NULL, .no_center = !signals[i].center,
                .pad_mode = signals[i].mode, .normalized = signals[i].normalized,
                .two_sided = signals[i].two_sided);
            tern_tensor *x = leaf(device, signals[i].shape);
            tern_tensor *y = tern_stft(x, signals[i].n_fft, o);
            compare(golden, "stft", i, x, y);
            tern_istft_options back = {
                .hop_length = o->hop_length,
                .win_length = o->win_length,
                .window = o->window,
                .no_center = o->no_center,
                .normalized = o->normalized,
                .two_sided = o->two_sided,
                .length = i % 2 ? signals[i].shape.dims[signals[i].shape.ndim - 1] : 0};
            y = tern_detach(y);
            tern_tensor *other = tern_requires_grad_(
                tern_add(y, pattern(device, TERN_F32, tern_shape_of(y), 3, 7)), true);
            compare(golden, "istft", i, other, tern_istft(other, signals[i].n_fft, &back));
            test_golden_close(golden);
        }
}

static void frequencies_and_their_order_are_pytorchs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int64_t n = 6; n < 8; n++) {
        test_golden *golden = test_golden_open("fft");
        char tail[8];
        snprintf(tail, sizeof tail, "%d", (int)n);
        tern_tensor *x = pattern(device, TERN_F32, TERN_SHAPE(2, n, 3), 5, 11);
        test_golden_compare(golden, "fftfreq", tail, tern_fft_fftfreq(n, 0.3, 0, device), 1e-7);
        test_golden_compare(golden, "rfftfreq", tail, tern_fft_rfftfreq(n, 0.3, 0, device), 1e-7);
        test_golden_compare(golden, "fftshift", tail, tern_fft_fftshift(x, TERN_SHAPE_SCALAR), 0);
        test_golden_compare(golden, "ifftshift", tail, tern_fft_ifftshift(x, TERN_DIMS(1)), 0);
        test_golden_close(golden);
    }
}

static void sizes_of_nothing_and_integers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *none = tern_zeros(TERN_SHAPE(0, 4, 2), 0, device);
        assert_shape(tern_fft_fft(none, 0, -1, 0), 0, 4, 2);
        tern_tensor *short_one = tern_zeros(TERN_SHAPE(3, 0, 2), 0, device);
        tern_tensor *zeros = tern_fft_fft(short_one, 4, -1, 0);
        assert_same(zeros, tern_zeros(TERN_SHAPE(3, 4, 2), 0, device));
        tern_tensor *whole = tern_arange(0, 6, 1, TERN_I64, device);
        tern_tensor *real = tern_to_dtype(whole, TERN_F32);
        assert_same(tern_fft_rfft(whole, 0, -1, 0), tern_fft_rfft(real, 0, -1, 0));
    }
}

static void mistakes_are_told(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 4, 2), 0, device);
        tern_tensor *half = tern_ones(TERN_SHAPE(4, 2), TERN_F16, device);
        tern_tensor *row = tern_ones(TERN_SHAPE(16), 0, device);
        assert_null(tern_fft_fft(row, 0, -1, 0));
        assert_error(TERN_ERR_SHAPE, "expected complex numbers as pairs, a last dim of 2");
        assert_null(tern_fft_fft(half, 0, -1, 0));
        assert_error(TERN_ERR_DTYPE, "tern_fft_fft: Unsupported dtype float16");
        assert_null(tern_fft_fft(x, 0, 2, 0));
        assert_error(TERN_ERR_ARGUMENT, "Dimension out of range");
        assert_null(tern_fft_fft(x, -3, 0, 0));
        assert_error(TERN_ERR_ARGUMENT, "Invalid number of data points (-3) specified");
        assert_null(tern_fft_irfft(tern_ones(TERN_SHAPE(1, 2), 0, device), 0, -1, 0));
        assert_error(TERN_ERR_ARGUMENT, "Invalid number of data points (0) specified");
        assert_null(tern_fft_fft(x, 0, -1, (tern_fft_norm)3));
        assert_error(TERN_ERR_ARGUMENT, "Invalid normalization mode");
        assert_null(tern_fft_fftn(x, TERN_SHAPE(2), TERN_DIMS(0, 1), 0));
        assert_error(TERN_ERR_SHAPE, "dim and shape arguments must have the same length");
        assert_null(tern_fft_fftn(x, TERN_SHAPE(2, 2, 2), TERN_SHAPE_SCALAR, 0));
        assert_error(TERN_ERR_SHAPE, "only has 2 dimensions");
        assert_null(tern_fft_fftn(x, TERN_SHAPE_SCALAR, TERN_DIMS(1, -1), 0));
        assert_error(TERN_ERR_ARGUMENT, "FFT dims must be unique");
        assert_null(tern_stft(x, 4, NULL));
        assert_error(TERN_ERR_SHAPE, "expected a 1D or 2D tensor");
        assert_null(tern_stft(row, 40, &(tern_stft_options){.no_center = true}));
        assert_error(TERN_ERR_ARGUMENT, "expected 0 < n_fft < 16, but got n_fft=40");
        assert_null(tern_stft(row, 8, &(tern_stft_options){.window = row}));
        assert_error(TERN_ERR_SHAPE, "expected a 1D window tensor of size equal to win_length=8");
        assert_null(tern_istft(tern_ones(TERN_SHAPE(4, 3, 2), 0, device), 8, NULL));
        assert_error(TERN_ERR_SHAPE, "to match n_fft / 2 + 1");
        tern_tensor *hann = tern_hann_window(8, true, 0, device);
        assert_null(tern_istft(tern_ones(TERN_SHAPE(5, 3, 2), 0, device), 8,
                               &(tern_istft_options){.window = hann, .no_center = true}));
        assert_error(TERN_ERR_ARGUMENT, "window overlap add min: 0");
        assert_null(tern_fft_rfftfreq(0, 1, 0, device));
        assert_error(TERN_ERR_ARGUMENT, "0 frequencies");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_length_is_the_definition),
        TEST(transforms_and_gradients_are_pytorchs),
        TEST(second_gradients),
        TEST(spectra_of_signals_are_pytorchs),
        TEST(frequencies_and_their_order_are_pytorchs),
        TEST(sizes_of_nothing_and_integers),
        TEST(mistakes_are_told),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
