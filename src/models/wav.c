/* wav.c -- WAV files: the chunk "fmt " has the format of the samples in the chunk "data". */
#include "base/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/models/audio.h>

static const char function[] = "tern_audio_load";
enum { PCM = 1, REAL = 3, EXTENSIBLE = 0xfffe };

typedef struct wav {
    int coding, channels, bits;
    int64_t rate, bytes; /* number of bytes of the samples */
} wav;

static uint32_t number(const uint8_t *at, int bytes)
{
    uint32_t x = 0;
    for (int i = 0; i < bytes; i++)
        x |= (uint32_t)at[i] << (8 * i);
    return x;
}

static bool skip(FILE *file, uint32_t bytes)
{
    return fseek(file, (long)bytes, SEEK_CUR) == 0;
}

/* Reads the chunks up to the samples and leaves the file position there. */
static bool read_header(FILE *file, wav *w)
{
    uint8_t head[12], format[40];
    if (fread(head, 1, 12, file) != 12 || memcmp(head, "RIFF", 4) != 0 ||
        memcmp(head + 8, "WAVE", 4) != 0)
        return false;
    while (fread(head, 1, 8, file) == 8) {
        uint32_t n = number(head + 4, 4);
        if (memcmp(head, "data", 4) == 0) {
            w->bytes = n;
            return w->coding != 0;
        }
        if (memcmp(head, "fmt ", 4) != 0) {
            if (!skip(file, n + n % 2))
                return false;
            continue;
        }
        uint32_t taken = n < sizeof format ? n : (uint32_t)sizeof format;
        if (n < 16 || fread(format, 1, taken, file) != taken || !skip(file, n - taken + n % 2))
            return false;
        w->coding = (int)number(format, 2);
        w->channels = (int)number(format + 2, 2);
        w->rate = number(format + 4, 4);
        w->bits = (int)number(format + 14, 2);
        if (w->coding == EXTENSIBLE && taken >= 26)
            w->coding = (int)number(format + 24, 2);
    }
    return false;
}

static float sample(const wav *w, const uint8_t *at)
{
    float single;
    double real;
    if (w->coding == REAL && w->bits == 32) {
        memcpy(&single, at, sizeof single);
        return single;
    }
    if (w->coding == REAL) {
        memcpy(&real, at, sizeof real);
        return (float)real;
    }
    if (w->bits == 8) /* unsigned */
        return (float)(at[0] - 128) / 128;
    int bytes = w->bits / 8;
    int32_t x = (int32_t)(number(at, bytes) << (32 - w->bits));
    return (float)((double)x / 2147483648.0);
}

static bool is_known(const wav *w)
{
    bool whole = w->bits == 8 || w->bits == 16 || w->bits == 24 || w->bits == 32;
    bool known =
        (w->coding == PCM && whole) || (w->coding == REAL && (w->bits == 32 || w->bits == 64));
    return known && w->channels > 0 && w->rate > 0;
}

/* Reads interleaved samples into *x (channels, frames), to be freed; returns -1 if the file is
 * truncated. */
static int64_t read_samples(FILE *file, const wav *w, float **x)
{
    int64_t each = w->bits / 8 * w->channels, frames = w->bytes / each, n = 0;
    long here = ftell(file);
    bool there = fseek(file, 0, SEEK_END) == 0 && ftell(file) - here >= frames * each &&
                 fseek(file, here, SEEK_SET) == 0;
    *x = there ? malloc((size_t)(frames * w->channels + 1) * sizeof **x) : NULL;
    uint8_t *frame = malloc((size_t)each);
    for (; *x && frame && n < frames && fread(frame, 1, (size_t)each, file) == (size_t)each; n++)
        for (int c = 0; c < w->channels; c++)
            (*x)[c * frames + n] = sample(w, frame + c * (w->bits / 8));
    free(frame);
    return *x && n == frames ? frames : -1;
}

tern_tensor *tern_audio_load(const char *path, int64_t *rate)
{
    wav w = {0};
    float *x = NULL;
    FILE *file = path ? tern_os_fopen(path, "rbe") : NULL;
    if (!file)
        return tern_fail_null(path ? TERN_ERR_IO : TERN_ERR_ARGUMENT, "%s: can't read \"%s\"",
                              function, path ? path : "NULL");
    bool good = read_header(file, &w), known = good && is_known(&w);
    int64_t frames = known ? read_samples(file, &w, &x) : -1;
    fclose(file);
    tern_tensor *result = NULL;
    if (!good || (known && frames < 0))
        tern_fail(TERN_ERR_IO, "%s: \"%s\" is no WAV file, or cut off", function, path);
    else if (!known)
        tern_fail(TERN_ERR_UNSUPPORTED, "%s: \"%s\" has coding %d of %d bits", function, path,
                  w.coding, w.bits);
    else
        result = tern_from_data(x, TERN_SHAPE(w.channels, frames), TERN_F32, "cpu");
    free(x);
    if (rate && result)
        *rate = w.rate;
    return result;
}
