/* audio.c -- resampling, and log-mel spectrograms by preprocessor_config.json. */
#include "base/error.h"
#include "models/model.h"
#include <stdlib.h>
#include <string.h>
#include <tern/models/audio.h>

/* ---- resampling ---------------------------------------------------------------------------- */

static int64_t common(int64_t a, int64_t b)
{
    return b ? common(b, a % b) : a;
}

/* Returns filters (to, 1, 2 width + from) for the `to` output samples per `from` input samples:
 * sin(pi t) / (pi t) with the window cos^2(pi t / 12). */
static tern_tensor *filters(int64_t from, int64_t to, int64_t width, const char *device)
{
    double lower = 0.99 * (double)(from < to ? from : to);
    int64_t n = 2 * width + from;
    float *x = malloc((size_t)(to * n) * sizeof *x);
    if (!x)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_audio_resample: no memory");
    for (int64_t i = 0; i < to; i++)
        for (int64_t k = 0; k < n; k++) {
            double t = (double)(k - width) / (double)from - (double)i / (double)to;
            t = fmin(fmax(t * lower, -6), 6);
            double window = cos(t * M_PI / 12), angle = t * M_PI;
            double sinc = angle == 0 ? 1 : sin(angle) / angle;
            x[i * n + k] = (float)(sinc * window * window * lower / (double)from);
        }
    tern_tensor *w = tern_from_data(x, TERN_SHAPE(to, 1, n), TERN_F32, device);
    free(x);
    return w;
}

tern_tensor *tern_audio_resample(tern_tensor *x, int64_t from, int64_t to)
{
    TERN_NAMED_IN_ERRORS;
    if (!x)
        return NULL;
    if (from < 1 || to < 1 || from > 1 << 20 || to > 1 << 20 || tern_dim(x) < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_audio_resample: from %lld to %lld of %d dims", (long long)from,
                              (long long)to, tern_dim(x));
    if (from == to)
        return x;
    int64_t divisor = common(from, to), n = tern_size(x, -1);
    from /= divisor;
    to /= divisor;
    int64_t width = (int64_t)ceil(6 * (double)from / (0.99 * (double)(from < to ? from : to)));
    int64_t length = (n * to + from - 1) / from;
    tern_shape shape = tern_shape_of(x);
    shape.dims[shape.ndim - 1] = length;
    tern_tensor *w = filters(from, to, width, tern_device(x));
    tern_tensor *rows = tern_reshape(x, TERN_SHAPE(-1, 1, n));
    rows = w && rows ? tern_pad(rows, TERN_SHAPE(width, width + from), NULL) : NULL;
    const tern_conv_function_options o = {.stride = TERN_SHAPE(from)};
    tern_tensor *y = rows ? tern_conv1d(rows, tern_to_dtype(w, tern_dtype_of(x)), NULL, &o) : NULL;
    y = y ? tern_reshape(tern_transpose(y, 1, 2), TERN_SHAPE(tern_size(y, 0), -1)) : NULL;
    y = y ? tern_contiguous(tern_narrow(y, 1, 0, length)) : NULL;
    return y ? tern_view(y, shape) : NULL;
}

/* ---- features ------------------------------------------------------------------------------ */

typedef struct extractor {
    int64_t mels, rate, hop, seconds, fft;
} extractor;

static tern_status read_extractor(tern_module *model, const char *function, extractor *e)
{
    models_model *m = models_of(model, function);
    const struct {
        const char *name;
        int64_t *to, absent;
    } fields[] = {{"feature_size", &e->mels, 80},
                  {"sampling_rate", &e->rate, 16000},
                  {"hop_length", &e->hop, 160},
                  {"chunk_length", &e->seconds, 30},
                  {"n_fft", &e->fft, 400}};
    if (!m)
        return tern_last_status();
    const char *type = json_string_value(json_object_get(m->processor, "feature_extractor_type"));
    if (!type || strcmp(type, "WhisperFeatureExtractor") != 0)
        return tern_fail(TERN_ERR_STATE,
                         "%s: the directory of %s has no preprocessor_config.json of a "
                         "WhisperFeatureExtractor",
                         function, m->kind->name);
    for (int i = 0; i < 5; i++) {
        const json_t *x = json_object_get(m->processor, fields[i].name);
        *fields[i].to = json_is_integer(x) ? (int64_t)json_integer_value(x) : fields[i].absent;
        if (*fields[i].to < 1 || *fields[i].to > 1 << 20)
            return tern_fail(TERN_ERR_IO, "%s: %s of preprocessor_config.json is %lld", function,
                             fields[i].name, (long long)*fields[i].to);
    }
    const json_t *dither = json_object_get(m->processor, "dither");
    return json_number_value(dither) == 0
               ? TERN_OK
               : tern_fail(TERN_ERR_UNSUPPORTED, "%s: dither is not 0", function);
}

/* Slaney's mel scale: 3 / 200 mel per hertz up to 1000 Hz, then 27 mel for each factor of 6.4. */
static double hertz(double mel)
{
    return mel < 15 ? mel * 200 / 3 : 1000 * exp(log(6.4) / 27 * (mel - 15));
}

/* Returns triangular filters (mels, bins) between points evenly spaced in mel, all of the same
 * area. */
static tern_tensor *bank(const extractor *e, const char *device)
{
    int64_t bins = e->fft / 2 + 1;
    double top = 15 + log(8.0) * 27 / log(6.4); /* mel of 8000 Hz */
    float *x = malloc((size_t)(e->mels * bins) * sizeof *x);
    if (!x)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_models_audio_features: no memory");
    for (int64_t i = 0; i < e->mels; i++) {
        double at[3];
        for (int k = 0; k < 3; k++)
            at[k] = hertz(top * (double)(i + k) / (double)(e->mels + 1));
        for (int64_t k = 0; k < bins; k++) {
            double f = (double)(e->rate / 2) * (double)k / (double)(bins - 1);
            double up = (f - at[0]) / (at[1] - at[0]), down = (at[2] - f) / (at[2] - at[1]);
            x[i * bins + k] = (float)(fmax(0, fmin(up, down)) * 2 / (at[2] - at[0]));
        }
    }
    tern_tensor *filters = tern_from_data(x, TERN_SHAPE(e->mels, bins), TERN_F32, device);
    free(x);
    return filters;
}

/* Returns (N, mels, frames): log10 of power, clamped to at most 8 below the maximum, scaled to
 * about -1 .. 1. */
static tern_tensor *spectra(const extractor *e, tern_tensor *x)
{
    const char *device = tern_device(x);
    tern_stft_options o = {.hop_length = e->hop,
                           .window = tern_hann_window(e->fft, true, TERN_F32, device)};
    tern_tensor *s = tern_stft(x, e->fft, &o);
    s = s ? tern_narrow(s, 2, 0, tern_size(s, 2) - 1) : NULL;
    s = s ? tern_sum_dim(tern_square(s), TERN_DIMS(3), false) : NULL;
    tern_tensor *mel = s ? tern_matmul(bank(e, device), s) : NULL;
    mel = mel ? tern_log10(tern_clamp_min_scalar(mel, tern_scalar_real(1e-10))) : NULL;
    tern_tensor *floor = mel ? tern_amax(mel, TERN_DIMS(1, 2), true) : NULL;
    mel = floor ? tern_maximum(mel, tern_sub_scalar(floor, tern_scalar_real(8))) : NULL;
    return mel ? tern_div_scalar(tern_add_scalar(mel, tern_scalar_real(4)), tern_scalar_real(4))
               : NULL;
}

tern_tensor *tern_models_audio_features(tern_module *model, tern_tensor *x)
{
    static const char function[] = "tern_models_audio_features";
    extractor e;
    if (!x || read_extractor(model, function, &e) != TERN_OK)
        return NULL;
    if (tern_dim(x) < 1 || tern_dim(x) > 2 || !tern_dtype_is_floating_point(tern_dtype_of(x)))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: samples are (T) or (N, T) of a floating point type, not %d dims",
                              function, tern_dim(x));
    x = tern_to_dtype(tern_dim(x) == 1 ? tern_unsqueeze(x, 0) : x, TERN_F32);
    int64_t n = tern_size(x, 1), wanted = e.seconds * e.rate;
    x = n < wanted ? tern_pad(x, TERN_SHAPE(0, wanted - n), NULL)
                   : tern_contiguous(tern_narrow(x, 1, 0, wanted));
    return x ? spectra(&e, x) : NULL;
}

int64_t tern_models_audio_rate(tern_module *model)
{
    extractor e;
    return read_extractor(model, "tern_models_audio_rate", &e) == TERN_OK ? e.rate : 0;
}
