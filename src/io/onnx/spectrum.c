/* spectrum.c -- ONNX's DFT and STFT, window functions and mel weights. */
#include "io/onnx/operations.h"
#include "base/memory.h"
#include <math.h>

/* Reads a number from input i on the host. Returns false after an error. */
static bool number(const onnx_call *c, int i, const char *what, int64_t *value)
{
    int64_t list[ONNX_DIMS];
    const int n = onnx_input_ints(c, i, list);
    if (n == 1)
        *value = list[0];
    else if (n != -2)
        onnx_fail(c, TERN_ERR_SHAPE, "its %s is one number", what);
    return n == 1;
}

static double number_of(const onnx_call *c, int i, double otherwise)
{
    double list[ONNX_DIMS];
    return onnx_input_reals(c, i, list) == 1 ? list[0] : otherwise;
}

/* Reads a number from input i if it is not omitted. Returns false after an error. */
static bool given(const onnx_call *c, int i, const char *what, int64_t *value)
{
    return !onnx_in(c, i) || number(c, i, what, value);
}

/* Returns the transform of x (..., n, 1 or 2) along d. A one-sided transform has half of the
 * frequencies. */
static tern_tensor *transform(const onnx_call *c, tern_tensor *x, int64_t n, int d, bool inverse,
                              bool one_sided)
{
    const bool real = tern_size(x, -1) == 1;
    if (real && !inverse) {
        tern_tensor *y = tern_squeeze_dim(x, -1);
        if (one_sided)
            return tern_fft_rfft(y, n, d, TERN_FFT_BACKWARD);
        x = tern_stack((tern_tensor *[]){y, tern_zeros_like(y)}, 2, -1);
    } else if (real)
        x = tern_cat((tern_tensor *[]){x, tern_zeros_like(x)}, 2, -1);
    else if (tern_size(x, -1) != 2) {
        onnx_fail(c, TERN_ERR_SHAPE, "its last dim is 1 or 2, but got %lld",
                  (long long)tern_size(x, -1));
        return NULL;
    }
    x = inverse ? tern_fft_ifft(x, n, d, TERN_FFT_BACKWARD)
                : tern_fft_fft(x, n, d, TERN_FFT_BACKWARD);
    return one_sided && x ? tern_narrow(x, d, 0, tern_size(x, d) / 2 + 1) : x;
}

/* The axis is an attribute up to operator set 19, and an input since. */
tern_status onnx_dft(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t n = 0, axis = c->opset < 20 ? onnx_int(c, "axis", 1) : -2;
    const bool inverse = onnx_int(c, "inverse", 0) != 0;
    const bool one_sided = onnx_int(c, "onesided", 0) != 0;
    if (!given(c, 1, "length", &n) || (c->opset >= 20 && !given(c, 2, "axis", &axis)))
        return TERN_OK;
    const int d = x ? onnx_axis(axis, tern_dim(x)) : -1;
    if (!x || tern_dim(x) < 2 || d < 0 || d > tern_dim(x) - 2 || n < 0 || n > INT32_MAX)
        return onnx_fail(c, TERN_ERR_SHAPE, "axis %lld and length %lld of a signal of %d dims",
                         (long long)axis, (long long)n, x ? tern_dim(x) : 0);
    if (inverse && one_sided) { /* a one-sided spectrum determines the other half, and its inverse
                                   is real */
        tern_tensor *y = tern_fft_irfft(x, n, d, TERN_FFT_BACKWARD);
        return onnx_give(c, y ? tern_unsqueeze(y, -1) : NULL);
    }
    return onnx_give(c, transform(c, x, n, d, inverse, one_sided));
}

/* Transforms signals (B, T, 1 or 2) to (B, frames, frequencies, 2). */
tern_status onnx_stft(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *window = onnx_in(c, 2);
    int64_t step = 0, length = window ? tern_numel(window) : 0;
    if (!number(c, 1, "step", &step) || !given(c, 3, "length", &length))
        return TERN_OK;
    if (x && tern_dim(x) == 2)
        x = tern_unsqueeze(x, -1);
    const int64_t n = x && tern_dim(x) == 3 ? tern_size(x, 1) : 0;
    if (!length)
        length = n;
    if (n < 1 || step < 1 || length < 1 || length > n || (window && tern_dim(window) != 1) ||
        (window && tern_numel(window) != length))
        return onnx_fail(c, TERN_ERR_SHAPE,
                         "frames of %lld every %lld elements of a signal of %lld, by a window of "
                         "%lld",
                         (long long)length, (long long)step, (long long)n,
                         window ? (long long)tern_numel(window) : 0LL);
    /* shape (B, frames, 1 or 2, length) */
    tern_tensor *frames = tern_unfold_dim(x, 1, length, step);
    if (window)
        frames = tern_mul(frames, tern_to_dtype(window, tern_dtype_of(x)));
    frames = frames ? tern_transpose(frames, 2, 3) : NULL;
    const bool one_sided = onnx_int(c, "onesided", 1) != 0 && tern_size(x, 2) == 1;
    return onnx_give(c, frames ? transform(c, frames, 0, 2, false, one_sided) : NULL);
}

/* ---- windows and mel weights ----------------------------------------------------------------- */

/* Gives a window of `size` elements: a - b cos(2 pi i / n) + c cos(4 pi i / n). */
static tern_status window(onnx_call *c, double a, double b, double last)
{
    int64_t size = 0;
    if (!number(c, 0, "size", &size))
        return TERN_OK;
    tern_dtype dtype = onnx_dtype(onnx_int(c, "output_datatype", 1), "a window");
    if (!dtype)
        return TERN_ERR_DTYPE;
    if (size < 1 || size > INT32_MAX)
        return onnx_fail(c, TERN_ERR_SHAPE, "a window of %lld", (long long)size);
    const double n = (double)(onnx_int(c, "periodic", 1) ? size : size - 1);
    tern_tensor *at = tern_arange_scalar(TERN_SCALAR(0.0), TERN_SCALAR((double)size),
                                         TERN_SCALAR(1.0), TERN_F64, "cpu");
    at = tern_mul_scalar(at, TERN_SCALAR(2 * acos(-1) / (n > 0 ? n : 1)));
    tern_tensor *y =
        tern_rsub_scalar(tern_mul_scalar(tern_cos(at), TERN_SCALAR(b)), TERN_SCALAR(a));
    if (last != 0) {
        at = tern_mul_scalar(at, TERN_SCALAR(2.0));
        y = tern_add(y, tern_mul_scalar(tern_cos(at), TERN_SCALAR(last)));
    }
    return onnx_give(c, tern_to_dtype(y, dtype));
}

tern_status onnx_hann_window(onnx_call *c)
{
    return window(c, 0.5, 0.5, 0);
}

tern_status onnx_hamming_window(onnx_call *c)
{
    return window(c, 25.0 / 46, 21.0 / 46, 0);
}

tern_status onnx_blackman_window(onnx_call *c)
{
    return window(c, 0.42, 0.5, 0.08);
}

/* Gives triangles that are evenly spaced in mel, over the frequencies of a spectrum, of shape
 * (frequencies, bands). */
tern_status onnx_mel_weights(onnx_call *c)
{
    int64_t bands = 0, length = 0, rate = 0;
    if (!number(c, 0, "number of bands", &bands) || !number(c, 1, "length", &length) ||
        !number(c, 2, "rate", &rate))
        return TERN_OK;
    tern_dtype dtype = onnx_dtype(onnx_int(c, "output_datatype", 1), "bands");
    const double low = number_of(c, 3, NAN), high = number_of(c, 4, NAN);
    const int64_t rows = length / 2 + 1;
    if (!dtype)
        return TERN_ERR_DTYPE;
    if (bands < 1 || bands > INT16_MAX || length < 1 || length > INT32_MAX || rate < 1 ||
        !(low >= 0) || !(high >= low) || high > (double)rate)
        return onnx_fail(c, TERN_ERR_SHAPE, "%lld bands of %lld at %lld from %g to %g",
                         (long long)bands, (long long)length, (long long)rate, low, high);
    double *weights = tern_alloc(sizeof *weights * (size_t)(bands * rows));
    int64_t *at = tern_alloc(sizeof *at * (size_t)(bands + 2));
    const double mel_low = 2595 * log10(1 + low / 700), mel_high = 2595 * log10(1 + high / 700);
    for (int64_t i = 0; weights && at && i < bands + 2; i++) {
        const double mel = mel_low + (double)i * (mel_high - mel_low) / (double)(bands + 2);
        const double hertz = 700 * (pow(10, mel / 2595) - 1);
        at[i] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
    }
    for (int64_t i = 0; weights && at && i < bands; i++) {
        const double from = (double)at[i], middle = (double)at[i + 1], to = (double)at[i + 2];
        for (int64_t j = at[i]; j <= at[i + 1] && j < rows && middle > from; j++)
            weights[j * bands + i] = ((double)j - from) / (middle - from);
        if (middle <= from && at[i + 1] < rows)
            weights[at[i + 1] * bands + i] = 1;
        for (int64_t j = at[i + 1]; j < at[i + 2] && j < rows && to > middle; j++)
            weights[j * bands + i] = (to - (double)j) / (to - middle);
    }
    tern_tensor *y = weights && at ? tern_from_data((const void *)weights, TERN_SHAPE(rows, bands),
                                                    TERN_F64, "cpu")
                                   : NULL;
    tern_free(weights);
    tern_free(at);
    return onnx_give(c, y ? tern_to_dtype(y, dtype) : NULL);
}
