/* stft.c -- spectra of frames of a signal (Griffin & Lim 1984), and the inverse. */
#include "base/option.h"
#include "ops/fft/fft.h"
#include <tern/ops.h>

/* Returns the window of a frame, centered in n_fft elements, of which the others are 0; a NULL
 * window is ones. */
static tern_tensor *window_of(const char *name, tern_tensor *window, int64_t n_fft,
                              int64_t win_length, const tern_tensor *like)
{
    tern_dtype dtype = like->dtype == TERN_F64 ? TERN_F64 : TERN_F32;
    if (window && (window->ndim != 1 || window->shape[0] != win_length))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: expected a 1D window tensor of size equal to win_length=%lld, "
                              "but got window with size %s",
                              name, (long long)win_length, TERN_TENSOR_TEXT(window));
    if (!window)
        window = tern_ones(TERN_SHAPE(win_length), dtype, tern_device(like));
    int64_t left = (n_fft - win_length) / 2;
    return win_length == n_fft
               ? window
               : tern_pad(window, TERN_SHAPE(left, n_fft - win_length - left), NULL);
}

static tern_status check_lengths(const char *name, int64_t n_fft, int64_t hop, int64_t win_length)
{
    if (hop < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expected hop_length > 0, but got hop_length=%lld",
                         name, (long long)hop);
    if (win_length < 1 || win_length > n_fft)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: expected 0 < win_length <= n_fft, but got win_length=%lld and "
                         "n_fft=%lld",
                         name, (long long)win_length, (long long)n_fft);
    return TERN_OK;
}

/* ---- forward ----------------------------------------------------------------------------- */

/* Returns x (B, T) with half a frame of padding on either end. */
static tern_tensor *padded(tern_tensor *x, int64_t n_fft, tern_pad_mode mode)
{
    tern_tensor *y = tern_pad(tern_unsqueeze(x, 0), TERN_SHAPE(n_fft / 2, n_fft / 2),
                              &(tern_pad_options){.mode = mode});
    return tern_squeeze_dim(y, 0);
}

/* Returns the spectra (B, frequencies, frames, 2) of x (B, T). */
static tern_tensor *spectra(tern_tensor *x, int64_t n_fft, int64_t hop, int64_t win_length,
                            const tern_stft_options *o)
{
    static const char *const name = "tern_stft";
    tern_fft_norm norm = o->normalized ? TERN_FFT_ORTHO : TERN_FFT_BACKWARD;
    if (!o->no_center && !(x = padded(x, n_fft, o->pad_mode)))
        return NULL;
    if (n_fft < 1 || n_fft > x->shape[1])
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: expected 0 < n_fft < %lld, but got n_fft=%lld", name,
                              (long long)x->shape[1], (long long)n_fft);
    if (check_lengths(name, n_fft, hop, win_length) != TERN_OK)
        return NULL;
    tern_tensor *window = window_of(name, o->window, n_fft, win_length, x);
    tern_tensor *frames = tern_mul(tern_unfold_dim(x, 1, n_fft, hop), window);
    if (!o->two_sided)
        return tern_transpose(tern_fft_rfft(frames, n_fft, -1, norm), 1, 2);
    frames = tern_stack((tern_tensor *[]){frames, tern_zeros_like(frames)}, 2, -1);
    return tern_transpose(tern_fft_fft(frames, n_fft, -1, norm), 1, 2);
}

tern_tensor *tern_stft(tern_tensor *x, int64_t n_fft, const tern_stft_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_stft_options o = tern_read_stft(options);
    if (!tern_fft_given(__func__, x, false))
        return NULL;
    if (x->ndim != 1 && x->ndim != 2)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_stft: expected a 1D or 2D tensor, but got %s",
                              TERN_TENSOR_TEXT(x));
    tern_tensor *result = NULL;
    int64_t hop = o.hop_length ? o.hop_length : n_fft / 4;
    int64_t win_length = o.win_length ? o.win_length : n_fft;
    TERN_SCOPE {
        tern_tensor *y = x->ndim == 1 ? tern_unsqueeze(x, 0) : x;
        y = y ? spectra(y, n_fft, hop, win_length, &o) : NULL;
        result = tern_escape(x->ndim == 1 ? tern_squeeze_dim(y, 0) : y);
    }
    return result;
}

/* ---- inverse ---------------------------------------------------------------------------- */

/* Returns the sum of frames (B, frames, n_fft) at their positions in the signal, (B, length). */
static tern_tensor *laid_down(tern_tensor *frames, int64_t n_fft, int64_t hop, int64_t length)
{
    tern_unfold_options o = {.stride = TERN_SHAPE(1, hop)};
    tern_tensor *y =
        tern_fold(tern_transpose(frames, 1, 2), TERN_SHAPE(1, length), TERN_SHAPE(1, n_fft), &o);
    return tern_squeeze_dims(y, TERN_DIMS(1, 2));
}

/* Returns x from start to end, padded with zeros if x is shorter. */
static tern_tensor *cut(tern_tensor *x, int64_t start, int64_t end)
{
    int64_t have = x ? x->shape[x->ndim - 1] : 0, stop = end < have ? end : have;
    tern_tensor *y = tern_narrow(x, -1, start, stop - start);
    return stop == end ? y : tern_pad(y, TERN_SHAPE(0, end - stop), NULL);
}

/* Returns the signal (B, length) of spectra (B, frequencies, frames, 2). The frames are weighted by
 * the window again, and their sum is divided by the sum of the squared windows, which gives the
 * signal whose spectra are nearest. */
static tern_tensor *signal_of(tern_tensor *x, int64_t n_fft, int64_t hop, int64_t win_length,
                              const tern_istft_options *o)
{
    static const char *const name = "tern_istft";
    tern_fft_norm norm = o->normalized ? TERN_FFT_ORTHO : TERN_FFT_BACKWARD;
    int64_t frames = x->shape[2], all = n_fft + hop * (frames - 1);
    int64_t start = o->no_center ? 0 : n_fft / 2, end = o->no_center ? all : all - n_fft / 2;
    if (o->length)
        end = start + o->length;
    tern_tensor *window = window_of(name, o->window, n_fft, win_length, x);
    tern_tensor *y = tern_transpose(x, 1, 2);
    y = tern_fft_irfft(tern_narrow(y, 2, 0, n_fft / 2 + 1), n_fft, -1, norm);
    y = laid_down(tern_mul(y, window), n_fft, hop, all);
    tern_tensor *square = tern_expand(tern_mul(window, window), TERN_SHAPE(1, frames, n_fft));
    tern_tensor *weight = laid_down(square, n_fft, hop, all);
    if (!y || !weight || start >= (end < all ? end : all))
        return !y || !weight
                   ? NULL
                   : tern_fail_null(TERN_ERR_ARGUMENT,
                                    "%s: a signal of %lld elements has nothing from %lld "
                                    "to %lld",
                                    name, (long long)all, (long long)start, (long long)end);
    int64_t stop = end < all ? end : all;
    weight = cut(weight, start, stop);
    double least = tern_item(tern_min(tern_abs(weight)));
    if (!(least > 1e-11))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: window overlap add min: %g", name, least);
    y = tern_div(cut(y, start, stop), weight);
    return end == stop ? y : tern_pad(y, TERN_SHAPE(0, end - stop), NULL);
}

/* Checks the spectra x (B, frequencies, frames, 2) as PyTorch does. */
static tern_status check_spectra(const tern_tensor *x, int64_t n_fft, int64_t hop,
                                 int64_t win_length, const tern_istft_options *o)
{
    static const char *const name = "tern_istft";
    int64_t wanted = o->two_sided ? n_fft : n_fft / 2 + 1;
    if (n_fft < 1 || x->numel == 0)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: expected n_fft > 0 and spectra that are not empty, but got n_fft=%lld "
            "and %s",
            name, (long long)n_fft, TERN_TENSOR_TEXT(x));
    if (x->shape[1] != wanted)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: expected the frequency dimension (3rd to the last) of the input "
                         "tensor to match %s when two_sided=%s, but got %lld",
                         name, o->two_sided ? "n_fft" : "n_fft / 2 + 1",
                         o->two_sided ? "true" : "false", (long long)x->shape[1]);
    if (o->length < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expected length > 0, but got length=%lld", name,
                         (long long)o->length);
    TERN_TRY(check_lengths(name, n_fft, hop, win_length));
    if (hop > win_length)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: expected 0 < hop_length <= win_length, but got hop_length=%lld and "
                         "win_length=%lld",
                         name, (long long)hop, (long long)win_length);
    return TERN_OK;
}

tern_tensor *tern_istft(tern_tensor *x, int64_t n_fft, const tern_istft_options *options)
{
    tern_istft_options o = tern_read_istft(options);
    if (!tern_fft_given("tern_istft", x, true))
        return NULL;
    if (x->ndim != 3 && x->ndim != 4)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_istft: expected a tensor with 3 or 4 dimensions, the last of "
                              "them pairs, but got %s",
                              TERN_TENSOR_TEXT(x));
    tern_tensor *result = NULL;
    int64_t hop = o.hop_length ? o.hop_length : n_fft / 4;
    int64_t win_length = o.win_length ? o.win_length : n_fft;
    TERN_SCOPE {
        tern_tensor *y = x->ndim == 3 ? tern_unsqueeze(x, 0) : x;
        if (y && check_spectra(y, n_fft, hop, win_length, &o) == TERN_OK)
            y = signal_of(y, n_fft, hop, win_length, &o);
        else
            y = NULL;
        result = tern_escape(x->ndim == 3 ? tern_squeeze_dim(y, 0) : y);
    }
    return result;
}
