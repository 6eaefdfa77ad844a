/* models/audio.h -- sound on its way to a model: WAV files, rates, and Whisper's features.
 *
 *   int64_t rate;
 *   tern_tensor *wave = tern_audio_load("speech.wav", &rate); // (channels, samples)
 *   wave = tern_audio_resample(tern_mean_dim(wave, TERN_DIMS(0), false), rate, 16000);
 *   tern_tensor *features = tern_models_audio_features(model, wave); // (1, mels, frames)
 *
 * Results belong to the innermost scope; NULL after an error. */
#ifndef TERN_MODELS_AUDIO_H
#define TERN_MODELS_AUDIO_H
#include <tern/tern.h>

TERN_BEGIN_DECLS

/* A WAV file as (channels, samples) of float32 on the cpu, integers divided by their range
 * (torchaudio.load); *rate (NULL: not wanted) in samples a second. PCM of 8, 16, 24 and 32 bits,
 * and reals of 32 and 64. Errors: TERN_ERR_IO for what can't be read or is cut off,
 * TERN_ERR_UNSUPPORTED for other codings. */
TERN_API tern_tensor *tern_audio_load(const char *path, int64_t *rate);
/* (..., samples) at another rate, (..., ceil(samples to / from)), by a sinc under a Hann window six
 * zeros wide on both sides and a cut at 0.99 of the lower half rate
 * (torchaudio.functional.resample). */
TERN_API tern_tensor *tern_audio_resample(tern_tensor *x, int64_t from, int64_t to);
/* What the model hears of samples (T) or (N, T) at the rate it was trained with, by
 * preprocessor_config.json: (N, mels, frames), log-mel spectra of as long as the model takes,
 * silence behind short ones, the rest of long ones left out (WhisperFeatureExtractor).
 * TERN_ERR_STATE for a model whose directory has no such file. */
TERN_API tern_tensor *tern_models_audio_features(tern_module *model, tern_tensor *x);
/* The rate, in samples a second; 0 after an error. */
TERN_API int64_t tern_models_audio_rate(tern_module *model);

TERN_END_DECLS
#endif
