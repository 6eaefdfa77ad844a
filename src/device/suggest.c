/* suggest.c -- lists devices and suggests one, for errors about device strings. */
#include "device/suggest.h"
#include "base/near.h"
#include "device/registry.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 64, MOST_LISTED = 16 };

/* Names of devices in other libraries, and the kind of device here that is nearest: any GPU, an
 * OpenCL device, a CUDA device, the cpu. */
typedef enum nearest { ANY_GPU, OPENCL, CUDA, CPU } nearest;
static const struct {
    const char *word;
    nearest is;
} elsewhere[] = {
    {"gpu", ANY_GPU}, {"mps", ANY_GPU},  {"metal", ANY_GPU},  {"xpu", ANY_GPU},
    {"hip", ANY_GPU}, {"rocm", ANY_GPU}, {"vulkan", ANY_GPU}, {"dml", ANY_GPU},
    {"npu", ANY_GPU}, {"tpu", ANY_GPU},  {"xla", ANY_GPU},    {"amd", ANY_GPU},
    {"ocl", OPENCL},  {"cl", OPENCL},    {"sycl", OPENCL},    {"nvidia", CUDA},
    {"cudart", CUDA}, {"host", CPU},     {"processor", CPU},  {"x86", CPU},
};

static bool same_word(const char *a, const char *b)
{
    return tern_near_distance(a, b) == 0;
}

static tern_place *first_of(const char *kind)
{
    int k = tern_registry_kind(kind, strlen(kind));
    return k < 0 ? NULL : tern_registry_place(k, 0);
}

/* Returns a GPU, or else a device of another backend than cpu, or NULL. */
static tern_place *any_gpu(void)
{
    tern_place *other = NULL;
    for (int k = tern_registry_kinds() - 1; k > 0; k--)
        for (int i = 0; i < tern_registry_count(k); i++) {
            tern_place *place = tern_registry_place(k, i);
            if (place->info.type == TERN_DEVICE_GPU)
                return place;
            other = place;
        }
    return other;
}

static tern_place *from_elsewhere(const char *word)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (same_word(word, elsewhere[i].word)) {
            nearest is = elsewhere[i].is;
            tern_place *place = is == OPENCL ? first_of("opencl")
                                : is == CUDA ? first_of("cuda")
                                : is == CPU  ? NULL
                                             : any_gpu();
            return place || is == CPU ? (place ? place : tern_registry_place(0, 0)) : any_gpu();
        }
    return NULL;
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (; text && strlen(text) >= n; text++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)text[i]) == tolower((unsigned char)word[i]))
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* Returns a device that has the word in its name, vendor or platform; NULL if there is none. */
static tern_place *by_name(const char *word)
{
    if (strlen(word) < 3)
        return NULL;
    for (int k = 0; k < tern_registry_kinds(); k++)
        for (int i = 0; i < tern_registry_count(k); i++) {
            tern_place *place = tern_registry_place(k, i);
            if (has_word(place->info.name, word) || has_word(place->info.vendor, word) ||
                has_word(place->info.platform, word))
                return place;
        }
    return NULL;
}

/* Returns the device string that is nearest to one like "opencl0", "OPENCL:0", "opencl:7",
 * "cpu:0 "; NULL if none is near. */
static const char *by_string(const char *device)
{
    const char *best = NULL;
    int least = 0;
    tern_near_try(device, "auto", &best, &least);
    for (int k = 0; k < tern_registry_kinds(); k++)
        for (int i = 0; i < tern_registry_count(k); i++)
            tern_near_try(device, tern_registry_place(k, i)->text, &best, &least);
    return best;
}

/* Writes the letters at the beginning of the string: "GPU" of " GPU:0". */
static void first_word(const char *device, char word[WORD_BYTES])
{
    size_t n = 0;
    while (isspace((unsigned char)*device))
        device++;
    while (n + 1 < WORD_BYTES && (isalpha((unsigned char)device[n])))
        n++;
    memcpy(word, device, n);
    word[n] = '\0';
}

static const char *guess(const char *device)
{
    char word[WORD_BYTES];
    first_word(device, word);
    const tern_place *place = from_elsewhere(word);
    if (place)
        return place->text;
    const char *near = by_string(device);
    if (near)
        return near;
    int kind = -1; /* the kind at the beginning of the string, in any case */
    for (int k = 0; k < tern_registry_kinds(); k++)
        kind = same_word(word, tern_registry_kind_name(k)) ? k : kind;
    place = kind >= 0 ? tern_registry_place(kind, 0) : NULL;
    place = place ? place : by_name(word);
    return place ? place->text : "auto";
}

static void add(char *text, size_t bytes, const char *format, ...) TERN_PRINTF_(3, 4);
static void add(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
}

void tern_device_suggest(const char *device, char *text, size_t bytes)
{
    int n = 0, listed = 0;
    for (int k = 0; k < tern_registry_kinds(); k++)
        n += tern_registry_count(k);
    snprintf(text, bytes, n == 1 ? "; there is " : "; there are ");
    for (int k = 0; k < tern_registry_kinds(); k++)
        for (int i = 0; i < tern_registry_count(k) && listed < MOST_LISTED; i++) {
            const tern_place *place = tern_registry_place(k, i);
            add(text, bytes, "%s%s", listed++ ? ", " : "", place->text);
            if (k > 0)
                add(text, bytes, " (%.80s)", place->info.name);
        }
    if (n == 0)
        add(text, bytes, "no device");
    else if (listed < n)
        add(text, bytes, " and %d more", n - listed);
    if (device)
        add(text, bytes, "; did you mean \"%s\"?", guess(device));
}
