/* main.c -- Whisper writes down what is said in a WAV file, 30 seconds at a time, or as many as the model takes.
 *
 *   transcribe MODEL FILE.wav [DEVICE] [LANGUAGE] [REFERENCE.txt] [SECONDS]
 *   transcribe [DEVICE]
 *
 * LANGUAGE is a code, "en" or "de"; of a model that knows one language alone "-". With a text of what was said it prints the rate
 * of wrong words, beside that of writing nothing (100 %). Without a model it first trains a tiny one (digits.h) on digits that a
 * synthesizer says, which no person's voice resembles, and writes down others of the same synthesizer. What to expect of that:
 * fewer than one word in ten is wrong. */
#include "../progress.h"
#include "digits.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is heard ------------------------------------------------------------------------- */

/* Samples (T) of one channel, at the model's rate. */
static tern_tensor *read_wave(tern_module *model, const char *path)
{
    int64_t rate = 0, wanted = tern_models_audio_rate(model);
    tern_tensor *wave = wanted ? tern_audio_load(path, &rate) : NULL;
    return wave ? tern_audio_resample(tern_mean_dim(wave, TERN_DIMS(0), false), rate, wanted)
                : NULL;
}

/* What the decoder begins with: the start, the language and the task; NULL where the tokenizer has no such tokens. */
static tern_tensor *prompt_of(const tern_tokenizer *tokenizer, const char *language)
{
    char tag[32];
    snprintf(tag, sizeof tag, "<|%.16s|>", language);
    const char *const words[] = {"<|startoftranscript|>", tag, "<|transcribe|>",
                                 "<|notimestamps|>"};
    int64_t ids[4];
    int n = 0;
    bool several = strcmp(language, "-") != 0;
    for (int i = 0; i < 4; i++) {
        int64_t id = tern_tokenizer_token_to_id(tokenizer, words[i]);
        if (id >= 0 && (several || (i != 1 && i != 2)))
            ids[n++] = id;
        else if (id < 0 && i == 0)
            return NULL;
    }
    return tern_from_data(ids, TERN_SHAPE(1, n), TERN_I64, NULL);
}

static bool show(tern_tensor *ids, void *stream)
{
    const char *text = tern_decode_stream_step(stream, tern_item_int(ids));
    if (text)
        fputs(text, stdout);
    fflush(stdout);
    return text != NULL;
}

/* The text of one stretch, printed as it comes and added to *all. */
static void write_down(tern_module *model, const tern_tokenizer *tokenizer, tern_tensor *stretch,
                       const char *language, char **all)
{
    tern_decode_stream *stream = tern_decode_stream_new(tokenizer, true);
    TERN_SCOPE {
        tern_tensor *features = tern_models_audio_features(model, stretch);
        tern_tensor *ids = tern_models_generate(
            model, features,
            &(tern_generate_options){.max_new_tokens = 200,
                                     .decoder_input_ids = prompt_of(tokenizer, language),
                                     .on_token = show,
                                     .user = stream});
        char *text = ids ? tern_tokenizer_decode(tokenizer, ids, true) : NULL;
        size_t old = *all ? strlen(*all) : 0, more = text ? strlen(text) : 0;
        char *longer = realloc(*all, old + more + 2);
        if (longer) {
            memcpy(longer + old, text ? text : "", more);
            memcpy(longer + old + more, " ", 2);
            *all = longer;
        }
        tern_free_text(text);
    }
    tern_decode_stream_free(stream);
}

/* ---- what was said ------------------------------------------------------------------------- */

/* Words of a text, in place; letters alone, small. */
static int words_of(char *text, char **words, int most)
{
    int n = 0;
    for (char *c = text; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    for (char *w = strtok(text, " \r\n\t.,;:!?\"()-"); w && n < most;
         w = strtok(NULL, " \r\n\t.,;:!?\"()-"))
        words[n++] = w;
    return n;
}

/* Changes, insertions and deletions from one list of words to the other, over the number of the first (Levenshtein 1966). */
static double error_rate(char **said, int n, char **heard, int m)
{
    int *row = calloc((size_t)m + 1, sizeof *row);
    for (int k = 0; row && k <= m; k++)
        row[k] = k;
    for (int i = 1; row && i <= n; i++) {
        int before = row[0]++;
        for (int k = 1; k <= m; k++) {
            int change = before + (strcmp(said[i - 1], heard[k - 1]) != 0);
            int least = row[k] < row[k - 1] ? row[k] + 1 : row[k - 1] + 1;
            before = row[k];
            row[k] = change < least ? change : least;
        }
    }
    double rate = row && n ? (double)row[m] / n : 0;
    free(row);
    return rate;
}

static void evaluate(const char *path, char *heard)
{
    enum { MOST = 100000 };
    static char said[1 << 20], *first[MOST], *second[MOST];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(said, 1, sizeof said - 1, file) : 0;
    if (!file) {
        tern_fail(TERN_ERR_IO, "transcribe: can't read %s", path);
        return;
    }
    fclose(file);
    said[n] = 0;
    int words = words_of(said, first, MOST), others = words_of(heard, second, MOST);
    printf("word error rate %.1f%% of %d words; of writing nothing: 100%%\n",
           100 * error_rate(first, words, second, others), words);
}

static void run(tern_module *model, const tern_tokenizer *tokenizer, const char *path,
                const char *language, const char *reference, int64_t seconds)
{
    char *all = NULL;
    TERN_SCOPE {
        tern_tensor *wave = read_wave(model, path);
        int64_t rate = tern_models_audio_rate(model), n = wave ? tern_size(wave, 0) : 0;
        const int64_t step = seconds * rate;
        tern_report *report = wave ? progress_begin("samples", (n + step - 1) / step) : NULL;
        for (int64_t at = 0; at < n && report && tern_last_status() == TERN_OK; at += step)
            TERN_SCOPE {
                int64_t left = n - at < step ? n - at : step;
                printf("[%lld s] ", (long long)(at / rate));
                write_down(model, tokenizer, tern_to(tern_narrow(wave, 0, at, left), NULL),
                           language, &all);
                printf("\n");
                tern_report_step(report, at / step + 1, left);
            }
        double fast = report && rate ? tern_report_rate(report) / (double)rate : 0;
        tern_report_close(report);
        printf("%.0f times as fast as it was said\n", fast);
    }
    if (reference && all && tern_last_status() == TERN_OK)
        evaluate(reference, all);
    free(all);
}

int main(int argc, char **argv)
{
    const char *own[] = {"digits", "digits/sound.wav", argc > 1 ? argv[1] : "auto",
                         "-",      "digits/said.txt",  "2"};
    const char *const *in = argc > 2 ? (const char *const *)argv + 1 : own;
    int n = argc > 2 ? argc - 1 : 6;
    tern_set_default_device(n > 2 ? in[2] : "auto");
    if (in == own && tern_last_status() == TERN_OK)
        digits_model("digits");
    bool good = tern_last_status() == TERN_OK;
    tern_module *model = good ? tern_models_from_pretrained(in[0], NULL) : NULL;
    tern_tokenizer *tokenizer = model ? tern_tokenizer_from_pretrained(in[0]) : NULL;
    if (tokenizer)
        run(model, tokenizer, in[1], n > 3 ? in[3] : "en", n > 4 ? in[4] : NULL,
            n > 5 && atoi(in[5]) > 0 ? atoi(in[5]) : 30);
    tern_tokenizer_free(tokenizer);
    tern_nn_free(model);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "transcribe: %s\n", tern_last_error());
    return tern_last_status() != TERN_OK;
}
