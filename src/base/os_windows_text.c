/* os_windows_text.c -- texts and their locale, on Windows. */
#ifdef _WIN32
#include "base/os.h"
#include "base/os_wide.h"
#include <locale.h>
#include <stdlib.h>

/* ---- text ------------------------------------------------------------------------------------ */

wchar_t *tern_os_widen(const char *text)
{
    const int n = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *wide = n > 0 ? malloc(sizeof *wide * (size_t)n) : NULL;
    if (!wide) {
        errno = n > 0 ? ENOMEM : ENOENT;
        return NULL;
    }
    MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, n);
    return wide;
}

bool tern_os_narrow(const wchar_t *wide, char *text, size_t bytes)
{
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, (int)bytes, NULL, NULL) > 0;
}

tern_os_locale tern_os_locale_enter(void)
{
    tern_os_locale before = {.way = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE)};
    const char *name = setlocale(LC_NUMERIC, NULL);
    snprintf(before.name, sizeof before.name, "%s", name ? name : "C");
    setlocale(LC_NUMERIC, "C");
    return before;
}

void tern_os_locale_leave(tern_os_locale before)
{
    setlocale(LC_NUMERIC, before.name);
    _configthreadlocale(before.way);
}

static bool has_point(void)
{
    return strcmp(localeconv()->decimal_point, ".") == 0;
}

double tern_os_strtod(const char *text, char **end)
{
    if (has_point())
        return strtod(text, end);
    const tern_os_locale before = tern_os_locale_enter();
    const double value = strtod(text, end);
    tern_os_locale_leave(before);
    return value;
}

int tern_os_print_real(char *text, size_t bytes, const char *format, double value)
{
    if (has_point())
        return snprintf(text, bytes, format, value);
    const tern_os_locale before = tern_os_locale_enter();
    const int n = snprintf(text, bytes, format, value);
    tern_os_locale_leave(before);
    return n;
}

int tern_os_strcasecmp(const char *a, const char *b)
{
    return _stricmp(a, b);
}

int tern_os_strncasecmp(const char *a, const char *b, size_t n)
{
    return _strnicmp(a, b, n);
}

char *tern_os_strcasestr(const char *text, const char *part)
{
    const size_t n = strlen(part);
    for (; *text; text++)
        if (_strnicmp(text, part, n) == 0)
            return (char *)(uintptr_t)text;
    return n == 0 ? (char *)(uintptr_t)text : NULL;
}

void *tern_os_memmem(const void *all, size_t n, const void *part, size_t bytes)
{
    const char *at = all;
    for (size_t i = 0; i + bytes <= n; i++)
        if (memcmp(at + i, part, bytes) == 0)
            return (void *)(uintptr_t)(at + i);
    return NULL;
}

char *tern_os_strtok_r(char *text, const char *between, char **next)
{
    text = text ? text : *next;
    text += strspn(text, between);
    char *end = text + strcspn(text, between);
    *next = end + (*end != '\0');
    if (end == text)
        return NULL;
    *end = '\0';
    return text;
}

/* Returns whether c is in the set after a bracket, and sets *end to the text after the set. */
static bool is_in_set(const char *set, char c, const char **end)
{
    const bool excludes = *set == '!' || *set == '^';
    bool found = false;
    set += excludes;
    for (bool first = true; *set && (first || *set != ']'); set++, first = false) {
        if (set[1] == '-' && set[2] && set[2] != ']') {
            found = found || (c >= set[0] && c <= set[2]);
            set += 2;
        } else {
            found = found || *set == c;
        }
    }
    *end = set + (*set == ']');
    return found != excludes;
}

bool tern_os_matches(const char *pattern, const char *text)
{
    for (; *pattern; text++) {
        if (*pattern == '*') {
            for (; *text; text++)
                if (tern_os_matches(pattern + 1, text))
                    return true;
            return tern_os_matches(pattern + 1, text);
        }
        if (!*text || (*pattern != '?' && *pattern != '[' && *pattern != *text))
            return false;
        if (*pattern == '[') {
            if (!is_in_set(pattern + 1, *text, &pattern))
                return false;
        } else {
            pattern++;
        }
    }
    return !*text;
}

char *tern_os_strndup(const char *text, size_t n)
{
    n = strnlen(text, n);
    char *copy = malloc(n + 1);
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = '\0';
    }
    return copy;
}

#else
typedef int tern_os_windows_text_is_empty;
#endif
