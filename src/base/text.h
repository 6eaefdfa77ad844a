/* text.h -- texts that grow, and formatters of small texts for messages. */
#ifndef TERN_BASE_TEXT_H
#define TERN_BASE_TEXT_H
#include "base/memory.h"
#include <string.h>

/* A text that grows; zero-initialise it. If an allocation fails, `failed` is set, the text stays as
 * it was, and later calls do nothing, so that the caller checks `failed` once at the end. */
typedef struct tern_text {
    char *data;
    size_t length, capacity;
    bool failed;
} tern_text;

void tern_text_add(tern_text *text, const char *format, ...) TERN_PRINTF_(2, 3);
void tern_text_add_bytes(tern_text *text, const char *bytes, size_t n);
void tern_text_free(tern_text *text);

/* Replaces "-nan", which printf writes for a NaN with its sign bit set, by "nan", from `from` in
 * text on: the sign of a NaN has no meaning. "-nan" inside a word stays. */
void tern_text_unsign_nan(const char *text, char *from);

static inline bool tern_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* Writes n numbers as "[2, 3]" to buffer; returns buffer. */
char *tern_format_list(char *buffer, size_t bytes, const int64_t *values, int n);
/* Writes n numbers as "2x3", the shape of a matrix in messages, or "scalar" for n = 0. */
char *tern_format_product(char *buffer, size_t bytes, const int64_t *values, int n);

/* A number as Python writes it: 1e-05, 0.5, 1.0. */
typedef struct tern_number_text {
    char text[32];
} tern_number_text;
tern_number_text tern_number_to_text(double value);
#define TERN_NUMBER_TEXT(value) (tern_number_to_text(value).text)

/* Returns the FNV-1a hash, 64 bits: for cache keys, not security. seed may be the last result. */
uint64_t tern_hash(uint64_t seed, const void *data, size_t bytes);
#define TERN_HASH_SEED UINT64_C(0xcbf29ce484222325)

#endif
