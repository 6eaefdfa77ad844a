/* nf4.c -- products with NF4 weights that read the codes directly, and decoding in one pass. */
#include "models/device_kernels.h"
#include "base/lock.h"
#include "models/nf4.h"
#include "models/host_and_device.h"
#include "models/wide.h"
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 64, HALF = NF4_BLOCK / 2, ROWS = NF4_ROWS };

/* ---- kernels --------------------------------------------------------------------------------- */
#ifdef _WIN32
#define long int64_t /* int64_t, because long has 64 bits in OpenCL */
#endif
/* clang-format off */
BOTH("enum { ROWS = 8 };\n",

/* Decodes bytes from .. end to w; pairs: the two values of each byte. */
__kernel void nf4_unpack(__global float *w, __global const uchar *codes,
    __global const float *absmax,
                         __global const float *pairs, long from, long end)
{
    long lanes = (long)get_num_groups(0) * get_local_size(0);
    long first = (long)get_group_id(0) * get_local_size(0) + get_local_id(0);
    for (long k = from + first; k < end; k += lanes) {
        int code = codes[k];
        float scale = absmax[k / 32];
        w[2 * (k - from)] = pairs[2 * code] * scale;
        w[2 * (k - from) + 1] = pairs[2 * code + 1] * scale;
    }
}

/* Computes y[r][o] = sum over i of x[r][i] w[o][i], for o from .. end; half_: bytes of a row of
 * codes. */
__kernel void nf4_product(__global float *y, __global const float *x, __global const uchar *codes,
                          __global const float *absmax, __global const float *pairs, long rows,
                          long outs, long half_, long from, long end)
{
    __local float scratch[64];
    for (long o = from + get_group_id(0); o < end; o += get_num_groups(0)) {
        float sums[ROWS];
        for (int r = 0; r < ROWS; r++)
            sums[r] = 0;
        for (long k = get_local_id(0); k < half_; k += get_local_size(0)) {
            int code = codes[o * half_ + k];
            float scale = absmax[(o * half_ + k) / 32];
            float a = pairs[2 * code] * scale;
            float b = pairs[2 * code + 1] * scale;
            for (int r = 0; r < rows; r++)
                sums[r] += x[(r * half_ + k) * 2] * a + x[(r * half_ + k) * 2 + 1] * b;
        }
        for (int r = 0; r < rows; r++) {
            scratch[get_local_id(0)] = sums[r];
            barrier(CLK_LOCAL_MEM_FENCE);
            float sum = 0;
            for (int i = 0; i < (int)get_local_size(0); i++)
                sum += scratch[i];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (get_local_id(0) == 0)
                y[r * outs + o] = sum;
        }
    }
}
)
/* clang-format on */
#undef long

/* ---- processors with AVX2 or NEON ------------------------------------------------------------ */

/* A product on the cpu. x: the even elements of each row, then its odd ones, matching the high and
 * low halves of the bytes. */
typedef struct product {
    float *y;
    const float *x;
    const uint8_t *codes;
    const float *absmax, *map;
    int64_t rows, outs, half;
} product;

#ifdef WIDE
#ifdef __aarch64__
#include "models/nf4_neon.h"
#else
#include "models/nf4_avx2.h"
#endif

WIDE static void tiles_of(const product *p, int64_t o, int left)
{
    WIDE_TILES(tile_of, p, o, left);
}

#else
enum { WIDE_SUMS = 4 };
static void tiles_of(const product *p, int64_t o, int left)
{
    (void)p, (void)o, (void)left;
}

static bool wide_is_here(void)
{
    return false;
}
#endif

/* Returns x with the even elements of each row before its odd ones, to be freed; NULL if memory is
 * exhausted. */
static float *halves_of(const float *x, int64_t rows, int64_t half)
{
    float *halves = malloc((size_t)(rows * half) * 2 * sizeof *halves);
    for (int64_t r = 0; halves && r < rows; r++)
        for (int64_t k = 0; k < half; k++) {
            halves[r * 2 * half + k] = x[(r * half + k) * 2];
            halves[(r * 2 + 1) * half + k] = x[(r * half + k) * 2 + 1];
        }
    return halves;
}

static tern_status multiply_here(const quantize_layer *l, float *y, const float *x, int64_t rows,
                                 tern_tensor *const parts[3])
{
    const uint8_t *codes = tern_data(parts[0]);
    const float *absmax = tern_data(parts[1]), *pairs = tern_data(parts[2]);
    const int64_t half = l->in / 2;
    float map[16], *halves = wide_is_here() ? halves_of(x, rows, half) : NULL;
    for (int i = 0; i < 16; i++)
        map[i] = pairs[2 * i + 1];
    if (wide_is_here() && !halves)
        return tern_fail(TERN_ERR_MEMORY, "Linear4bit: no memory");
    const product p = {y, halves, codes, absmax, map, rows, l->out, half};
    const int threads = tern_get_num_threads();
    (void)threads;
#pragma omp parallel for num_threads(threads) if (l->out * l->in >= 1 << 18)
    for (int64_t o = 0; o < l->out; o += WIDE_SUMS) {
        const int left = l->out - o < WIDE_SUMS ? (int)(l->out - o) : WIDE_SUMS;
        if (halves)
            tiles_of(&p, o, left);
        else
            nf4_product(y, x, codes, absmax, pairs, rows, l->out, half, o, o + left);
    }
    free(halves);
    return TERN_OK;
}

static void decode_here(float *w, tern_tensor *const parts[3], int64_t from, int64_t end)
{
    const uint8_t *codes = tern_data(parts[0]);
    const float *absmax = tern_data(parts[1]), *pairs = tern_data(parts[2]);
    const int threads = tern_get_num_threads();
    enum { SOME = 1 << 14 };
    (void)threads;
#pragma omp parallel for num_threads(threads) if (end - from > 2 * SOME)
    for (int64_t k = from; k < end; k += SOME)
        nf4_unpack(w + 2 * (k - from), codes, absmax, pairs, k, k + SOME < end ? k + SOME : end);
}

/* ---- other devices --------------------------------------------------------------------------- */

static models_kernels kernels = {
    .source = source, .names = {"nf4_unpack", "nf4_product"}, .lock = TERN_MUTEX_INIT};

static bool on_cpu(tern_tensor *const parts[3])
{
    return strcmp(tern_device(parts[0]), "cpu") == 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

bool nf4_is_direct(const quantize_layer *l, tern_tensor *const parts[3])
{
    for (int i = 0; i < 3; i++)
        if (!parts[i] || !tern_is_contiguous(parts[i]) ||
            tern_dtype_of(parts[i]) != (i ? TERN_F32 : TERN_U8))
            return false;
    return l->out * l->in > 0 && !tern_is_capturing();
}

tern_tensor *nf4_decode(const quantize_layer *l, tern_tensor *const parts[3], int64_t from,
                        int64_t n)
{
    const int64_t first = from * l->in / 2, last = (from + n) * l->in, end = (last + 1) / 2;
    /* The last byte may hold one element more than the weight. */
    tern_tensor *w = tern_empty(TERN_SHAPE(2 * (end - first)), TERN_F32, tern_device(parts[0]));
    if (!w)
        return NULL;
    if (on_cpu(parts)) {
        decode_here(tern_data(w), parts, first, end);
    } else {
        tern_kernel *const *at = models_kernels_on(&kernels, tern_device(w));
        int64_t items = (end - first + ITEMS - 1) / ITEMS * ITEMS;
        if (!at || tern_kernel_launch(at[0], TERN_GRID_GROUP(items, ITEMS), TERN_ARG_TENSOR(w),
                                      TERN_ARG_TENSOR(parts[0]), TERN_ARG_TENSOR(parts[1]),
                                      TERN_ARG_TENSOR(parts[2]), TERN_ARG_LONG(first),
                                      TERN_ARG_LONG(end)) != TERN_OK)
            return NULL;
    }
    return tern_view(tern_narrow(w, 0, 0, n * l->in), TERN_SHAPE(n, l->in));
}

tern_tensor *nf4_linear(const quantize_layer *l, tern_tensor *x, tern_tensor *const parts[3])
{
    tern_shape shape = tern_shape_of(x);
    const int64_t rows = tern_numel(x) / l->in;
    const char *device = tern_device(parts[0]);
    tern_tensor *given = tern_dtype_of(x) == TERN_F32 ? x : tern_to_dtype(x, TERN_F32);
    if (given && !on_cpu(parts) && given == x)
        given = tern_clone(x); /* a kernel's argument must be at the start of its memory */
    given = given ? tern_contiguous(given) : NULL;
    tern_tensor *y = given ? tern_empty(TERN_SHAPE(rows, l->out), TERN_F32, device) : NULL;
    if (!y)
        return NULL;
    if (on_cpu(parts)) {
        if (multiply_here(l, tern_data(y), tern_data(given), rows, parts) != TERN_OK)
            return NULL;
    } else {
        tern_kernel *const *at = models_kernels_on(&kernels, device);
        if (!at ||
            tern_kernel_launch(at[1], TERN_GRID_GROUP(l->out * ITEMS, ITEMS), TERN_ARG_TENSOR(y),
                               TERN_ARG_TENSOR(given), TERN_ARG_TENSOR(parts[0]),
                               TERN_ARG_TENSOR(parts[1]), TERN_ARG_TENSOR(parts[2]),
                               TERN_ARG_LONG(rows), TERN_ARG_LONG(l->out), TERN_ARG_LONG(l->in / 2),
                               TERN_ARG_LONG(0), TERN_ARG_LONG(l->out)) != TERN_OK)
            return NULL;
    }
    shape.dims[shape.ndim - 1] = l->out;
    return tern_to_dtype(tern_view(y, shape), tern_dtype_of(x));
}
