/* models/audio.h -- audio for models: WAV files, resampling, and Whisper's features.
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

/* Reads a WAV file as (channels, samples) of float32 on the cpu; integers are divided by their
 * range (torchaudio.load). *rate becomes the number of samples per second, unless rate is NULL. The
 * file has PCM of 8, 16, 24 or 32 bits, or floating point of 32 or 64 bits. Errors: TERN_ERR_IO for
 * a file that cannot be read or is truncated, TERN_ERR_UNSUPPORTED for other encodings. */
TERN_API tern_tensor *tern_audio_load(const char *path, int64_t *rate);
/* Returns x (..., samples) at another rate, (..., ceil(samples to / from)). The filter is a sinc
 * with a cutoff at 0.99 of the lower Nyquist frequency, under a Hann window of six zero crossings
 * on each side (torchaudio.functional.resample). */
TERN_API tern_tensor *tern_audio_resample(tern_tensor *x, int64_t from, int64_t to);
/* Returns the features that the model takes, log-mel spectrograms (N, mels, frames), for samples
 * (T) or (N, T) at the rate that the model was trained with, as preprocessor_config.json describes
 * them (WhisperFeatureExtractor). Short samples are padded with silence to the model's length, long
 * ones are cut. Errors: TERN_ERR_STATE for a model whose directory has no such file. */
TERN_API tern_tensor *tern_models_audio_features(tern_module *model, tern_tensor *x);
/* Returns the rate that the model was trained with, in samples per second; 0 after an error. */
TERN_API int64_t tern_models_audio_rate(tern_module *model);

TERN_END_DECLS
#endif
