/* source.c -- bytes as choices, and the numbers that are chosen when a call is to be refused. */
#include "fuzz.h"
#include <math.h>
#include <string.h>

bool fuzz_ended(const fuzz_source *s)
{
    return s->at >= s->size;
}

static uint32_t next_byte(fuzz_source *s)
{
    return s->at < s->size ? s->bytes[s->at++] : 0;
}

uint32_t fuzz_pick(fuzz_source *s, uint32_t n)
{
    uint32_t value = next_byte(s);
    if (n > 256)
        value = value << 8 | next_byte(s);
    return n ? value % n : 0;
}

bool fuzz_chance(fuzz_source *s, uint32_t percent)
{
    return next_byte(s) * 100 >= (100 - percent) * 256;
}

int64_t fuzz_hostile_int(fuzz_source *s)
{
    static const int64_t values[] = {-1,
                                     INT64_MIN,
                                     INT64_MAX,
                                     INT32_MAX,
                                     INT32_MIN,
                                     1LL << 31,
                                     1LL << 32,
                                     1LL << 62,
                                     -(1LL << 62),
                                     (1LL << 32) + 1,
                                     1LL << 33,
                                     1LL << 40,
                                     INT64_MAX - 1,
                                     INT64_MIN + 1,
                                     1LL << 61,
                                     -(1LL << 32),
                                     65536,
                                     (1LL << 31) + 1,
                                     INT64_MAX / 2 + 1,
                                     3037000500LL,
                                     -2,
                                     -100,
                                     13,
                                     12,
                                     1000003,
                                     (1LL << 60) + 1,
                                     0,
                                     7,
                                     1LL << 16,
                                     255,
                                     -(1LL << 31) - 1,
                                     1LL << 48};
    return values[fuzz_pick(s, sizeof values / sizeof *values)];
}

double fuzz_hostile_real(fuzz_source *s)
{
    static const double values[] = {
        0,      -1,  NAN,  INFINITY, -INFINITY, 1e308, 5e-324, -0.0, 1e-45,  3.4e38, 65504, 65536,
        -1e300, 2.5, 1e19, -1e19,    1.5,       -0.5,  100,    1e10, 9.3e18, 4e9,    -4e9,  1e-10};
    return values[fuzz_pick(s, sizeof values / sizeof *values)];
}

void fuzz_pick_word(fuzz_source *s, const char *text, char *word)
{
    uint32_t count = 1;
    for (const char *c = text; *c; c++)
        count += *c == ' ';
    for (uint32_t i = fuzz_pick(s, count); i > 0; i--)
        text = strchr(text, ' ') + 1;
    size_t length = strcspn(text, " ");
    length = length < 47 ? length : 47;
    memcpy(word, text, length);
    word[length] = '\0';
}
