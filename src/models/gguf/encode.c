/* encode.c -- encodes floats as blocks by the rules of ggml's reference; the blocks of a row follow
 * each other. */
#include "models/gguf/encode.h"
#include "models/gguf/write.h"
#include "base/os.h"
#include <math.h>
#include <string.h>

void gguf_put_half(unsigned char *to, float x)
{
    uint32_t bits, sign, mantissa;
    memcpy(&bits, &x, sizeof bits);
    sign = bits >> 16 & 0x8000;
    const int exponent = (int)(bits >> 23 & 255) - 112;
    mantissa = bits & 0x7fffff;
    uint32_t half;
    if ((bits >> 23 & 255) == 255)
        half = 0x7c00 | (mantissa ? 0x200 | mantissa >> 13 : 0);
    else if (exponent >= 31)
        half = 0x7c00;
    else if (exponent < -10)
        half = 0;
    else {
        const int shift = exponent > 0 ? 13 : 14 - exponent;
        const uint32_t whole =
            exponent > 0 ? (uint32_t)exponent << 23 | mantissa : mantissa | 0x800000;
        const uint32_t rest = whole & ((1u << shift) - 1), middle = 1u << (shift - 1);
        half = whole >> shift;
        half += rest > middle || (rest == middle && (half & 1)); /* ties to even */
    }
    half |= sign;
    to[0] = (unsigned char)half;
    to[1] = (unsigned char)(half >> 8);
}

enum { EACH = 32 };

/* ---- levels symmetric around zero: d q ------------------------------------------------------- */

static void q8_0(const float *x, unsigned char *to)
{
    float most = 0;
    for (int i = 0; i < EACH; i++)
        most = fmaxf(most, fabsf(x[i]));
    const float d = most / 127, inverse = d != 0 ? 1 / d : 0;
    gguf_put_half(to, d);
    for (int i = 0; i < EACH; i++)
        to[2 + i] = (unsigned char)(signed char)roundf(x[i] * inverse);
}

/* The element of largest magnitude (the first of several) gets level -half; stored levels are 0 ..
 * 2 half - 1. */
static float signed_levels(const float *x, float half, int levels[EACH])
{
    float most = 0;
    for (int i = 0; i < EACH; i++)
        if (fabsf(x[i]) > fabsf(most))
            most = x[i];
    const float d = most / -half, inverse = d != 0 ? 1 / d : 0;
    const int top = (int)(2 * half) - 1;
    for (int i = 0; i < EACH; i++) {
        const int level = (int)(x[i] * inverse + (half + 0.5f));
        levels[i] = level < top ? level : top;
    }
    return d;
}

/* Levels are evenly spaced from the minimum, *least, to the maximum. */
static float range_levels(const float *x, int top, int levels[EACH], float *least)
{
    float most = x[0];
    *least = x[0];
    for (int i = 1; i < EACH; i++) {
        most = fmaxf(most, x[i]);
        *least = fminf(*least, x[i]);
    }
    const float d = (most - *least) / (float)top, inverse = d != 0 ? 1 / d : 0;
    for (int i = 0; i < EACH; i++) {
        const int level = (int)((x[i] - *least) * inverse + 0.5f);
        levels[i] = level < top ? level : top;
    }
    return d;
}

/* Writes the low four bits of levels i and i + 16 to one byte, and the fifth bits to fifth, unless
 * NULL. */
static void put_levels(const int levels[EACH], unsigned char *fifth, unsigned char *low)
{
    uint32_t high = 0;
    for (int i = 0; i < EACH / 2; i++)
        low[i] = (unsigned char)((levels[i] & 15) | (levels[i + EACH / 2] & 15) << 4);
    for (int i = 0; i < EACH; i++)
        high |= (uint32_t)(levels[i] >> 4 & 1) << i;
    for (int i = 0; fifth && i < 4; i++)
        fifth[i] = (unsigned char)(high >> 8 * i);
}

static void q4_0(const float *x, unsigned char *to)
{
    int levels[EACH];
    gguf_put_half(to, signed_levels(x, 8, levels));
    put_levels(levels, NULL, to + 2);
}

static void q5_0(const float *x, unsigned char *to)
{
    int levels[EACH];
    gguf_put_half(to, signed_levels(x, 16, levels));
    put_levels(levels, to + 2, to + 6);
}

static void q4_1(const float *x, unsigned char *to)
{
    int levels[EACH];
    float least;
    gguf_put_half(to, range_levels(x, 15, levels, &least));
    gguf_put_half(to + 2, least);
    put_levels(levels, NULL, to + 4);
}

static void q5_1(const float *x, unsigned char *to)
{
    int levels[EACH];
    float least;
    gguf_put_half(to, range_levels(x, 31, levels, &least));
    gguf_put_half(to + 2, least);
    put_levels(levels, to + 4, to + 8);
}

/* ---- single elements ------------------------------------------------------------------------- */

static void f32(const float *x, unsigned char *to)
{
    memcpy(to, x, sizeof *x);
}

static void f16(const float *x, unsigned char *to)
{
    gguf_put_half(to, *x);
}

static void bf16(const float *x, unsigned char *to)
{
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        bits |= 0x400000; /* keeps NaN a NaN */
    else
        bits += 0x7fff + (bits >> 16 & 1);
    to[0] = (unsigned char)(bits >> 16);
    to[1] = (unsigned char)(bits >> 24);
}

/* Sorted by general.file_type. */
static const gguf_encoder encoders[] = {
    {"F32", 0, f32, NULL},
    {"F16", 1, f16, NULL},
    {"Q4_0", 2, q4_0, NULL},
    {"Q4_1", 3, q4_1, NULL},
    {"Q8_0", 7, q8_0, NULL},
    {"Q5_0", 8, q5_0, NULL},
    {"Q5_1", 9, q5_1, NULL},
    {"Q2_K", 10, gguf_encode_q2_k, "IQ4_NL"},
    {"Q3_K", 11, gguf_encode_q3_k, "IQ4_NL"},
    {"Q4_K", 14, gguf_encode_q4_k, "Q5_0"},
    {"Q5_K", 16, gguf_encode_q5_k, "Q5_1"},
    {"Q6_K", 18, gguf_encode_q6_k, "Q8_0"},
    {"IQ4_NL", 25, gguf_encode_iq4_nl, NULL},
    {"BF16", 32, bf16, NULL},
};

const gguf_encoder *gguf_encoder_named(const char *name)
{
    for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++)
        if (tern_os_strcasecmp(encoders[i].name, name) == 0)
            return &encoders[i];
    return NULL;
}
