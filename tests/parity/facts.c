/* facts.c -- whether a refusal carries the numbers that PyTorch's carries. */
#include "cases.h"
#include <ctype.h>
#include <string.h>

/* The next number of text: digits that no letter stands before. Returns its
 * length; 0 at the end. */
static size_t next_number(const char **text)
{
    const char *s = *text;
    for (; *s; s++) {
        if (isdigit((unsigned char)*s)) {
            *text = s;
            return strspn(s, "0123456789");
        }
        if (isalpha((unsigned char)*s) || *s == '_') /* int64, conv2d: a name */
            s += strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") - 1;
    }
    return 0;
}

static bool has_number(const char *text, const char *number, size_t length)
{
    size_t n;
    for (; (n = next_number(&text)) > 0; text += n)
        if (n == length && memcmp(text, number, n) == 0)
            return true;
    return false;
}

bool parity_same_facts(const char *theirs, const char *ours, char *lacking, size_t size)
{
    size_t used = 0, n;
    lacking[0] = '\0';
    for (const char *s = theirs; (n = next_number(&s)) > 0; s += n)
        if (!has_number(ours, s, n) && used + n + 2 < size)
            used +=
                (size_t)snprintf(lacking + used, size - used, "%s%.*s", used ? " " : "", (int)n, s);
    return used == 0;
}
