/* decode.c -- decodes the blocks of a GGUF file to float32: on the cpu by libtern's functions, with
 * several threads, on other devices by a kernel, one element per step. Both give the same bits
 * (io/block.c explains why). */
#include "models/device_kernels.h"
#include "base/lock.h"
#include "models/gguf/fast.h"
#include "models/gguf/layer.h"
#include <string.h>

/* ---- the kernel ---------------------------------------------------------------------------- */
/* clang-format off */
#define TEXT(...) #__VA_ARGS__
static const char source[] =
"#define POINT(i) ((int)(char)points[i])\n"
TEXT(
__constant char points[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89,
    113};

float half_of(__global const uchar *b)
{
    int h = b[0] | b[1] << 8;
    int e = h >> 10 & 31;
    int m = h & 1023;
    float x = e == 0 ? (float)m * 5.9604644775390625e-8f
                     : as_float((e == 31 ? 255 : e + 112) << 23 | m << 13);
    return h & 32768 ? -x : x;
}

int nibble(__global const uchar *qs, int i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }
int pair(__global const uchar *qs, int i) { return qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) &
    3; }
int signed_byte(int x) { return x < 128 ? x : x - 256; }

float of_32(__global const uchar *b, int i, int type)
{
    float d = half_of(b);
    if (type == 2) return d * (float)(nibble(b + 2, i) - 8);
    if (type == 3) return d * (float)nibble(b + 4, i) + half_of(b + 2);
    if (type == 6) return d * (float)((nibble(b + 6, i) | (b[2 + i / 8] >> i % 8 & 1) << 4) - 16);
    if (type == 7) return d * (float)(nibble(b + 8, i) | (b[4 + i / 8] >> i % 8 & 1) << 4) +
        half_of(b + 2);
    if (type == 8) return d * (float)signed_byte(b[2 + i]);
    return d * (float)POINT(nibble(b + 2, i));
}

float of_45(__global const uchar *b, int i, int type)
{
    __global const uchar *s = b + 4;
    int k = i / 32;
    int l = i % 32;
    int sc = k < 4 ? s[k] & 63 : (s[k + 4] & 15) | s[k - 4] >> 6 << 4;
    int mn = k < 4 ? s[k + 4] & 63 : s[k + 4] >> 4 | s[k] >> 6 << 4;
    int q = b[(type == 12 ? 16 : 48) + k / 2 * 32 + l] >> k % 2 * 4 & 15;
    if (type == 13) q |= (b[16 + l] >> k & 1) << 4;
    float product = half_of(b) * (float)sc * (float)q;
    return product - half_of(b + 2) * (float)mn;
}

float of_256(__global const uchar *b, int i, int type)
{
    int k = i % 128 / 32;
    int l = i % 32;
    if (type == 10) {
        int s = b[i / 16];
        float product = half_of(b + 80) * (float)(s & 15) * (float)pair(b + 16, i);
        return product - half_of(b + 82) * (float)(s >> 4);
    }
    if (type == 11) {
        int g = i / 16;
        int low = g < 8 ? b[96 + g] & 15 : b[88 + g] >> 4;
        int s = (low | (b[104 + g % 4] >> (g / 4 * 2) & 3) << 4) - 32;
        return half_of(b + 108) * (float)s * (float)(pair(b + 32, i) -
            (b[l] >> (i / 32) & 1 ? 0 : 4));
    }
    if (type == 14) {
        int n = i / 128;
        int q = (b[64 * n + 32 * (k % 2) + l] >> k / 2 * 4 & 15) |
            (b[128 + 32 * n + l] >> 2 * k & 3) << 4;
        return half_of(b + 208) * (float)signed_byte(b[192 + i / 16]) * (float)(q - 32);
    }
    if (type == 23) {
        int g = i / 32;
        int s = ((b[4 + g / 2] >> g % 2 * 4 & 15) | (b[2 + g / 4] >> g % 4 * 2 & 3) << 4) - 32;
        return half_of(b) * (float)s * (float)POINT(nibble(b + 8 + 16 * g, l));
    }
    return of_45(b, i, type);
}

/* Decodes n elements of the blocks from byte `from` on. */
__kernel void gguf_unpack(__global float *w, __global const uchar *blocks, long from, long n,
                          int type, int elements, int bytes)
{
    long step = (long)get_num_groups(0) * get_local_size(0);
    for (long i = (long)get_group_id(0) * get_local_size(0) + get_local_id(0); i < n; i += step) {
        __global const uchar *b = blocks + from + i / elements * bytes;
        int at = (int)(i % elements);
        w[i] = elements == 32 ? of_32(b, at, type) : of_256(b, at, type);
    }
}
);
/* clang-format on */

static models_kernels kernels = {
    .source = source, .names = {"gguf_unpack"}, .lock = TERN_MUTEX_INIT};

static tern_status decode_there(const gguf_layer *l, tern_tensor *w, tern_tensor *blocks,
                                int64_t from, int64_t n)
{
    enum { ITEMS = 64, EACH = 8 };
    tern_kernel *const *kernel = models_kernels_on(&kernels, tern_device(w));
    const int64_t bytes = tern_size(blocks, 1), all = n * l->columns;
    const int64_t items = (all / EACH + ITEMS - 1) / ITEMS * ITEMS;
    if (!kernel)
        return tern_last_status();
    return tern_kernel_launch(kernel[0], TERN_GRID_GROUP(items ? items : ITEMS, ITEMS),
                              TERN_ARG_TENSOR(w), TERN_ARG_TENSOR(blocks),
                              TERN_ARG_LONG(from * bytes), TERN_ARG_LONG(all),
                              TERN_ARG_INT((int)l->block->id), TERN_ARG_INT(l->block->elements),
                              TERN_ARG_INT(l->block->bytes));
}

/* ---- the cpu ------------------------------------------------------------------------------- */

static void decode_here(const gguf_layer *l, float *w, const unsigned char *blocks, int64_t bytes,
                        int64_t n)
{
    const io_block *b = l->block;
    const gguf_decoder decode = gguf_decoder_of(b);
    const int threads = tern_get_num_threads();
    (void)threads;
#pragma omp parallel for num_threads(threads) if (n * l->columns >= 1 << 15)
    for (int64_t r = 0; r < n; r++)
        for (int64_t k = 0; k < bytes / b->bytes; k++)
            decode(blocks + r * bytes + k * b->bytes, w + r * l->columns + k * b->elements);
}

tern_tensor *gguf_decode(const gguf_layer *l, tern_tensor *blocks, int64_t from, int64_t n)
{
    if (!blocks || !tern_is_contiguous(blocks))
        return blocks ? tern_fail_null(TERN_ERR_STATE, "LinearGGUF: its weight is not contiguous")
                      : NULL;
    const char *device = tern_device(blocks);
    const int64_t bytes = tern_size(blocks, 1);
    const bool here = strcmp(device, "cpu") == 0;
    if (here && tern_is_capturing())
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "LinearGGUF: a step over blocks on the cpu can't be recorded");
    tern_tensor *w = tern_empty(TERN_SHAPE(n, l->columns), TERN_F32, device);
    if (!w || n * l->columns == 0)
        return w;
    if (here)
        decode_here(l, tern_data(w), (const unsigned char *)tern_data(blocks) + from * bytes, bytes,
                    n);
    else if (decode_there(l, w, blocks, from, n) != TERN_OK)
        return NULL;
    return w;
}

tern_tensor *gguf_multiply_skinny(const gguf_layer *l, tern_tensor *x, tern_tensor *blocks)
{
    tern_shape shape = tern_shape_of(x);
    const int64_t n = l->columns ? tern_numel(x) / l->columns : 0, bytes = tern_size(blocks, 1);
    shape.dims[shape.ndim - 1] = l->rows;
    tern_tensor *given = tern_contiguous(x), *y = tern_empty(shape, TERN_F32, "cpu");
    if (!given || !y)
        return NULL;
    const float *from = tern_data(given);
    const unsigned char *row = tern_data(blocks);
    float *to = tern_data(y);
    const int threads = tern_get_num_threads();
    (void)threads;
#pragma omp parallel for num_threads(threads) if (l->rows * l->columns >= 1 << 15)
    for (int64_t r = 0; r < l->rows; r++)
        gguf_dot(l->block, row + r * bytes, l->columns, from, (int)n, to + r, l->rows);
    return y;
}

bool gguf_is_skinny(const gguf_layer *l, tern_tensor *x, tern_tensor *blocks)
{
    return strcmp(tern_device(blocks), "cpu") == 0 && strcmp(tern_device(x), "cpu") == 0 &&
           tern_dtype_of(x) == TERN_F32 && tern_numel(x) > 0 && tern_is_contiguous(blocks) &&
           tern_numel(x) <= GGUF_SKINNY * l->columns && !tern_is_capturing();
}
