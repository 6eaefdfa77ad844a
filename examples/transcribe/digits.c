/* digits.c -- makes a tiny Whisper that writes down spoken digits: its files, its sounds (speech.h), its training. */
#include "digits.h"
#include "../progress.h"
#include "../speech.h"
#include "../portable.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SAMPLES = DIGITS_SECONDS * SPEECH_RATE, MOST_DIGITS = 3, LENGTH = MOST_DIGITS + 1 };
enum { TRAIN = 3072, HELD = 64, BATCH = 32, STEPS = 1000, END = 1 };

static const char config[] =
    "{\"architectures\": [\"WhisperForConditionalGeneration\"], \"model_type\": \"whisper\", "
    "\"vocab_size\": %lld, \"d_model\": 64, \"encoder_layers\": 2, \"encoder_attention_heads\": 4, "
    "\"encoder_ffn_dim\": 128, \"decoder_layers\": 1, \"decoder_attention_heads\": 4, "
    "\"decoder_ffn_dim\": 128, \"max_source_positions\": 50, \"max_target_positions\": 16, "
    "\"num_mel_bins\": 32, \"activation_function\": \"gelu\", \"dropout\": 0, "
    "\"is_encoder_decoder\": true, \"pad_token_id\": 0, \"eos_token_id\": 1, \"bos_token_id\": 1, "
    "\"decoder_start_token_id\": 2}\n";
static const char hearing[] =
    "{\"feature_extractor_type\": \"WhisperFeatureExtractor\", \"feature_size\": 32, "
    "\"hop_length\": 320, \"n_fft\": 512, \"chunk_length\": 2, \"sampling_rate\": 16000}\n";
static const char special[] = "{\"pad_token\": \"<pad>\", \"eos_token\": \"</s>\", \"bos_token\": "
                              "\"<s>\", \"unk_token\": \"<unk>\"}\n";

/* Sounds as features, and what is said: labels (N, LENGTH), -100 behind the end. */
typedef struct sounds {
    tern_tensor *features, *labels;
} sounds;

/* ---- files --------------------------------------------------------------------------------- */

static tern_status write_text(const char *folder, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        return tern_fail(TERN_ERR_IO, "transcribe: %s: %s", path, strerror(errno));
    fputs(text, file);
    return fclose(file) == 0 ? TERN_OK
                             : tern_fail(TERN_ERR_IO, "transcribe: %s: %s", path, strerror(errno));
}

/* Samples as a WAV file: one channel, 16 bits. */
static tern_status write_wave(const char *path, const float *samples, size_t n)
{
    const uint32_t bytes = (uint32_t)(2 * n),
                   head[] = {36 + bytes,      16,          1 | 1 << 16, SPEECH_RATE,
                             2 * SPEECH_RATE, 2 | 16 << 16};
    FILE *file = fopen(path, "wb");
    if (!file)
        return tern_fail(TERN_ERR_IO, "transcribe: %s: %s", path, strerror(errno));
    fwrite("RIFF", 1, 4, file);
    fwrite(head, 4, 1, file);
    fwrite("WAVEfmt ", 1, 8, file);
    fwrite(head + 1, 4, 5, file);
    fwrite("data", 1, 4, file);
    fwrite(&bytes, 4, 1, file);
    for (size_t i = 0; i < n; i++) {
        const int16_t sample = (int16_t)(30000 * samples[i]);
        fwrite(&sample, 2, 1, file);
    }
    return fclose(file) == 0 ? TERN_OK
                             : tern_fail(TERN_ERR_IO, "transcribe: %s: %s", path, strerror(errno));
}

/* One token for each word: a tokenizer that learns the ten words. */
static tern_tokenizer *learn_words(void)
{
    static const char *const first[] = {"<pad>", "</s>", "<s>", "<unk>", NULL};
    static char text[100][32];
    const char *list[100];
    for (int i = 0; i < 100; i++) {
        snprintf(text[i], sizeof text[i], " %s %s", speech_words[i / 10], speech_words[i % 10]);
        list[i] = text[i];
    }
    return tern_tokenizer_train_bpe(
        list, 100, &(tern_bpe_options){.vocab_size = 400, .special_tokens = first});
}

static int64_t token_of(const tern_tokenizer *tokenizer, int digit)
{
    char word[16];
    int64_t id = -1;
    snprintf(word, sizeof word, " %s", speech_words[digit]);
    TERN_SCOPE {
        tern_tensor *ids = tern_tokenizer_encode(
            tokenizer, word, &(tern_encode_options){.no_special_tokens = true, .device = "cpu"});
        if (ids && tern_numel(ids) != 1)
            tern_fail(TERN_ERR_STATE, "transcribe: \"%s\" is %lld tokens", word,
                      (long long)tern_numel(ids));
        else if (ids)
            id = *(const int64_t *)tern_data(ids);
    }
    return id;
}

/* ---- sounds -------------------------------------------------------------------------------- */

/* One to three digits by chance, said; returns how many samples. */
static size_t say_some(uint64_t *random, int *digits, int *count, float *samples)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t left = *random >> 33;
    *count = 1 + (int)(left % MOST_DIGITS);
    for (int i = 0; i < *count; i++) {
        left /= i ? 10 : MOST_DIGITS;
        digits[i] = (int)(left % 10);
    }
    return speech_say(digits, *count, random, samples, SAMPLES);
}

/* n sounds and their texts, in tensors that are kept. */
static sounds sounds_new(tern_module *model, const tern_tokenizer *tokenizer, int n, uint64_t seed)
{
    sounds s = {NULL, NULL};
    uint64_t random = seed;
    float *wave = calloc((size_t)n * SAMPLES, sizeof *wave);
    int64_t *labels = malloc((size_t)n * LENGTH * sizeof *labels), tokens[10];
    for (int d = 0; d < 10; d++)
        tokens[d] = token_of(tokenizer, d);
    for (int i = 0; wave && labels && i < n; i++) {
        int digits[MOST_DIGITS], count;
        say_some(&random, digits, &count, wave + (size_t)i * SAMPLES);
        for (int k = 0; k < LENGTH; k++)
            labels[i * LENGTH + k] = k < count ? tokens[digits[k]] : k == count ? END : -100;
    }
    if (wave && labels)
        TERN_SCOPE {
            tern_tensor *x = tern_from_data(wave, TERN_SHAPE(n, SAMPLES), TERN_F32, NULL);
            s.features = tern_keep(tern_models_audio_features(model, x));
            s.labels = tern_keep(tern_from_data(labels, TERN_SHAPE(n, LENGTH), TERN_I64, NULL));
        }
    free(wave);
    free(labels);
    return s;
}

static void sounds_free(sounds s)
{
    tern_release(s.features);
    tern_release(s.labels);
}

/* ---- training ------------------------------------------------------------------------------ */

/* The part of the digits that are told right, those before given. */
static double right_digits(tern_module *model, sounds s)
{
    double right = 0;
    tern_nn_eval(model);
    TERN_NO_GRAD
        TERN_SCOPE {
            tern_model_outputs out;
            tern_tensor *counted = tern_gt(s.labels, END); /* digits, not their end */
            const tern_model_inputs in = {.input_features = s.features, .labels = s.labels};
            if (tern_models_call(model, &in, &out) == TERN_OK)
                right = tern_item(tern_sum(tern_logical_and(
                            counted, tern_eq(tern_argmax_dim(out.logits, 2, false), s.labels)))) /
                        tern_item(tern_sum(counted));
        }
    tern_nn_train(model, true);
    return right;
}

static void train(tern_module *model, const tern_tokenizer *tokenizer)
{
    sounds all = sounds_new(model, tokenizer, TRAIN, 1),
           held = sounds_new(model, tokenizer, HELD, 2);
    tern_optimizer *optimizer = tern_optim_adamw(model, 2e-3, NULL);
    tern_lr_scheduler *scheduler = tern_lr_scheduler_one_cycle_lr(optimizer, 3e-3, STEPS, NULL);
    tern_report *report = progress_begin("sounds", STEPS);
    for (int step = 1; step <= STEPS && tern_last_status() == TERN_OK; step++)
        TERN_SCOPE {
            tern_tensor *some = tern_randint(0, TRAIN, TERN_SHAPE(BATCH), TERN_I64, NULL);
            tern_tensor *labels = tern_index_select(all.labels, 0, some);
            tern_tensor *loss = tern_models_loss(
                model,
                &(tern_model_inputs){.input_features = tern_index_select(all.features, 0, some),
                                     .labels = labels});
            tern_optim_zero_grad(optimizer);
            tern_backward(loss);
            tern_nn_clip_grad_norm_(model, 1.0);
            tern_optim_step(optimizer);
            tern_lr_scheduler_step(scheduler);
            tern_report_value(report, "loss", step, tern_item(loss));
            if (step % 100 == 0)
                tern_report_value(report, "right", step, right_digits(model, held));
            tern_report_step(report, step, BATCH);
        }
    tern_report_compare(report, "right", 1.0 / 10, "guessing a digit");
    tern_report_close(report);
    tern_lr_scheduler_free(scheduler);
    tern_optim_free(optimizer);
    sounds_free(all);
    sounds_free(held);
}

/* Sounds that nobody has heard, one after the other, each in DIGITS_SECONDS, and their text. */
static tern_status write_test(const char *folder, int n)
{
    static float wave[SAMPLES];
    char path[1024];
    uint64_t random = 3;
    snprintf(path, sizeof path, "%s/said.txt", folder);
    float *all = calloc((size_t)n * SAMPLES, sizeof *all);
    FILE *text = fopen(path, "w");
    for (int i = 0; text && all && i < n; i++) {
        int digits[MOST_DIGITS], count;
        const size_t length = say_some(&random, digits, &count, wave);
        memcpy(all + (size_t)i * SAMPLES, wave, length * sizeof *wave);
        for (int k = 0; k < count; k++)
            fprintf(text, "%s%s", speech_words[digits[k]], k + 1 < count ? " " : "\n");
    }
    if (text)
        fclose(text);
    snprintf(path, sizeof path, "%s/sound.wav", folder);
    tern_status status = text && all
                             ? write_wave(path, all, (size_t)n * SAMPLES)
                             : tern_fail(TERN_ERR_IO, "transcribe: %s is not written", path);
    free(all);
    return status;
}

tern_status digits_model(const char *folder)
{
    char text[sizeof config + 32], path[1024];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return tern_fail(TERN_ERR_IO, "transcribe: %s: %s", folder, strerror(errno));
    tern_tokenizer *tokenizer = learn_words();
    snprintf(text, sizeof text, config, (long long)tern_tokenizer_vocab_size(tokenizer));
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (tokenizer && tern_tokenizer_save(tokenizer, path) == TERN_OK &&
        write_text(folder, "config.json", text) == TERN_OK &&
        write_text(folder, "preprocessor_config.json", hearing) == TERN_OK &&
        write_text(folder, "tokenizer_config.json", special) == TERN_OK &&
        write_test(folder, 32) == TERN_OK) {
        tern_manual_seed(0);
        tern_module *model = tern_models_from_config(folder, NULL);
        if (model) {
            printf("a Whisper of %lld parameters learns %d sounds of one to three digits, said by "
                   "a synthesizer\n",
                   (long long)tern_nn_numel(model), TRAIN);
            train(model, tokenizer);
            tern_models_save_pretrained(model, folder, NULL);
        }
        tern_nn_free(model);
    }
    tern_tokenizer_free(tokenizer);
    return tern_last_status();
}
