/* text.c -- texts that grow, and formatters of small texts for messages. */
#include "base/text.h"
#include "base/os.h"
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(tern_text *text, size_t more)
{
    if (text->failed)
        return false;
    size_t need = text->length + more + 1;
    if (need <= text->capacity)
        return true;
    size_t capacity = need < 64 ? 64 : 2 * need;
    char *data = tern_grow(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || c == '/';
}

void tern_text_unsign_nan(const char *text, char *from)
{
    for (char *at = from; (at = strstr(at, "-nan")); at++)
        if ((at == text || !is_of_word(at[-1])) && (!is_of_word(at[4]) || at[4] == '.'))
            memmove(at, at + 1, strlen(at));
}

void tern_text_add_bytes(tern_text *text, const char *bytes, size_t n)
{
    if (!reserve(text, n))
        return;
    memcpy(text->data + text->length, bytes, n);
    text->length += n;
    text->data[text->length] = '\0';
}

void tern_text_add(tern_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(text, (size_t)n)) {
        vsnprintf(text->data + text->length, (size_t)n + 1, format, again);
        tern_text_unsign_nan(text->data, text->data + text->length);
        text->length += strlen(text->data + text->length);
    }
    va_end(again);
}

void tern_text_free(tern_text *text)
{
    tern_free(text->data);
    *text = (tern_text){0};
}

static char *join(char *buffer, size_t bytes, const int64_t *values, int n, const char *between)
{
    size_t used = strlen(buffer);
    for (int i = 0; i < n && used < bytes; i++)
        used += (size_t)snprintf(buffer + used, bytes - used, "%s%" PRId64, i ? between : "",
                                 values[i]);
    return buffer;
}

char *tern_format_list(char *buffer, size_t bytes, const int64_t *values, int n)
{
    snprintf(buffer, bytes, "[");
    join(buffer, bytes, values, n, ", ");
    size_t used = strlen(buffer);
    if (used + 1 < bytes)
        memcpy(buffer + used, "]", 2);
    return buffer;
}

char *tern_format_product(char *buffer, size_t bytes, const int64_t *values, int n)
{
    snprintf(buffer, bytes, "%s", n ? "" : "scalar");
    return join(buffer, bytes, values, n, "x");
}

tern_number_text tern_number_to_text(double value)
{
    tern_number_text out;
    value = isnan(value) ? fabs(value) : value;
    const tern_os_locale before = tern_os_locale_enter();
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out.text, sizeof out.text - 2, "%.*g", digits, value);
        if (tern_os_strtod(out.text, NULL) == value)
            break;
    }
    /* %g writes 1e+02 where Python writes 100.0. */
    if (strchr(out.text, '+') && value < 1e16 && value > -1e16)
        snprintf(out.text, sizeof out.text, "%.1f", value);
    else if (strspn(out.text, "-0123456789") == strlen(out.text))
        strcat(out.text, ".0");
    tern_os_locale_leave(before);
    return out;
}

uint64_t tern_hash(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        seed = (seed ^ p[i]) * UINT64_C(0x100000001b3);
    return seed;
}
