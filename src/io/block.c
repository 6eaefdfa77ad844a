/* block.c -- the block types of GGUF. All products are exact in float32 and the difference of two
 * of them is rounded once, so every order of operations gives the same bits. Levels and scales are
 * integers; d, dmin and m are float16. */
#include "io/block.h"
#include <string.h>

/* ---- blocks of 32 ------------------------------------------------------------------------ */

/* Returns level i of four bits: the low halves of 16 bytes are the first 16 elements. */
static int level(const unsigned char *qs, int i)
{
    return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

/* Returns level i of five bits; the fifth is bit i of four bytes. */
static int level5(const unsigned char *qs, const unsigned char *qh, int i)
{
    return level(qs, i) | (qh[i / 8] >> i % 8 & 1) << 4;
}

static void q4_0(const unsigned char *b, float *y)
{
    float d = io_half(b);
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)(level(b + 2, i) - 8);
}

static void q4_1(const unsigned char *b, float *y)
{
    float d = io_half(b), m = io_half(b + 2);
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)level(b + 4, i) + m;
}

static void q5_0(const unsigned char *b, float *y)
{
    float d = io_half(b);
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)(level5(b + 6, b + 2, i) - 16);
}

static void q5_1(const unsigned char *b, float *y)
{
    float d = io_half(b), m = io_half(b + 2);
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)level5(b + 8, b + 4, i) + m;
}

static void q8_0(const unsigned char *b, float *y)
{
    float d = io_half(b);
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)(signed char)b[2 + i];
}

static const signed char points[16] = IO_BLOCK_POINTS;

static void iq4_nl(const unsigned char *b, float *y)
{
    float d = io_half(b);
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)points[level(b + 2, i)];
}

/* ---- blocks of 256, with a scale for each 16 or 32 elements ---------------------------------- */

static int level2(const unsigned char *qs, int i)
{
    return qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

static void q2_k(const unsigned char *b, float *y)
{
    float d = io_half(b + 80), dmin = io_half(b + 82);
    for (int i = 0; i < 256; i++) {
        int s = b[i / 16];
        y[i] = d * (float)(s & 15) * (float)level2(b + 16, i) - dmin * (float)(s >> 4);
    }
}

static void q3_k(const unsigned char *b, float *y)
{
    const unsigned char *scales = b + 96;
    float d = io_half(b + 108);
    for (int i = 0; i < 256; i++) {
        int k = i / 16, low = k < 8 ? scales[k] & 15 : scales[k - 8] >> 4;
        int s = (low | (scales[8 + k % 4] >> (k / 4 * 2) & 3) << 4) - 32;
        int high = b[i % 32] >> (i / 32) & 1;
        y[i] = d * (float)s * (float)(level2(b + 32, i) - (high ? 0 : 4));
    }
}

/* Sets the scale and minimum of elements 32 k .. 32 k + 31, of six bits each in 12 bytes. */
static void scale_and_min(const unsigned char *s, int k, float *scale, float *min)
{
    *scale = (float)(k < 4 ? s[k] & 63 : (s[k + 4] & 15) | s[k - 4] >> 6 << 4);
    *min = (float)(k < 4 ? s[k + 4] & 63 : s[k + 4] >> 4 | s[k] >> 6 << 4);
}

/* Decodes four bits at qs, and a fifth at qh unless qh is NULL. */
static void q45_k(const unsigned char *b, const unsigned char *qh, const unsigned char *qs,
                  float *y)
{
    float d = io_half(b), dmin = io_half(b + 2), scale, min;
    for (int k = 0; k < 8; k++) {
        scale_and_min(b + 4, k, &scale, &min);
        scale *= d;
        min *= dmin;
        for (int l = 0; l < 32; l++) {
            int q = qs[k / 2 * 32 + l] >> k % 2 * 4 & 15;
            q |= qh ? (qh[l] >> k & 1) << 4 : 0;
            y[32 * k + l] = scale * (float)q - min;
        }
    }
}

static void q4_k(const unsigned char *b, float *y)
{
    q45_k(b, NULL, b + 16, y);
}

static void q5_k(const unsigned char *b, float *y)
{
    q45_k(b, b + 16, b + 48, y);
}

static void q6_k(const unsigned char *b, float *y)
{
    float d = io_half(b + 208);
    for (int i = 0; i < 256; i++) {
        int n = i / 128, k = i % 128 / 32, l = i % 32;
        int low = b[64 * n + 32 * (k % 2) + l] >> k / 2 * 4 & 15;
        int q = low | (b[128 + 32 * n + l] >> 2 * k & 3) << 4;
        y[i] = d * (float)(signed char)b[192 + i / 16] * (float)(q - 32);
    }
}

static void iq4_xs(const unsigned char *b, float *y)
{
    float d = io_half(b);
    for (int i = 0; i < 256; i++) {
        int k = i / 32, high = b[2 + k / 4] >> k % 4 * 2 & 3;
        int s = ((b[4 + k / 2] >> k % 2 * 4 & 15) | high << 4) - 32;
        y[i] = d * (float)s * (float)points[level(b + 8 + 16 * k, i % 32)];
    }
}

/* ---- all types --------------------------------------------------------------------------- */

static const io_block blocks[] = {
    {0, "F32", 1, 4, NULL},
    {1, "F16", 1, 2, NULL},
    {30, "BF16", 1, 2, NULL},
    {28, "F64", 1, 8, NULL},
    {24, "I8", 1, 1, NULL},
    {25, "I16", 1, 2, NULL},
    {26, "I32", 1, 4, NULL},
    {27, "I64", 1, 8, NULL},
    {2, "Q4_0", 32, 18, q4_0},
    {3, "Q4_1", 32, 20, q4_1},
    {6, "Q5_0", 32, 22, q5_0},
    {7, "Q5_1", 32, 24, q5_1},
    {8, "Q8_0", 32, 34, q8_0},
    {10, "Q2_K", 256, 84, q2_k},
    {11, "Q3_K", 256, 110, q3_k},
    {12, "Q4_K", 256, 144, q4_k},
    {13, "Q5_K", 256, 176, q5_k},
    {14, "Q6_K", 256, 210, q6_k},
    {20, "IQ4_NL", 32, 18, iq4_nl},
    {23, "IQ4_XS", 256, 136, iq4_xs},
    /* types that are not decoded */
    {9, "Q8_1", 32, 40, NULL},
    {15, "Q8_K", 256, 292, NULL},
    {16, "IQ2_XXS", 256, 66, NULL},
    {17, "IQ2_XS", 256, 74, NULL},
    {18, "IQ3_XXS", 256, 98, NULL},
    {19, "IQ1_S", 256, 50, NULL},
    {21, "IQ3_S", 256, 110, NULL},
    {22, "IQ2_S", 256, 82, NULL},
    {29, "IQ1_M", 256, 56, NULL},
    {34, "TQ1_0", 256, 54, NULL},
    {35, "TQ2_0", 256, 66, NULL},
    {39, "MXFP4", 32, 17, NULL},
    {40, "NVFP4", 64, 36, NULL},
    {41, "Q1_0", 128, 18, NULL},
    /* types that were removed from the format */
    {4, "Q4_2", 0, 0, NULL},
    {5, "Q4_3", 0, 0, NULL},
    {31, "Q4_0_4_4", 0, 0, NULL},
    {32, "Q4_0_4_8", 0, 0, NULL},
    {33, "Q4_0_8_8", 0, 0, NULL},
    {36, "IQ4_NL_4_4", 0, 0, NULL},
    {37, "IQ4_NL_4_8", 0, 0, NULL},
    {38, "IQ4_NL_8_8", 0, 0, NULL},
};

const io_block *io_block_of(uint32_t id)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i].id == id)
            return &blocks[i];
    return NULL;
}

const io_block *io_block_named(const char *name)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (strcmp(blocks[i].name, name) == 0)
            return &blocks[i];
    return NULL;
}
