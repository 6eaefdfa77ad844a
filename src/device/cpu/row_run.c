/* row_run.c -- runs the tiles of host_tables.h over tensors of every type, stride and form, alone
 * or in chains, compiled once per instruction set like the tiles. Elements that are not contiguous
 * or not of the tile's type go through buffers of a few kilobytes, which stay in the L1
 * cache. */
#include <string.h>
#include "device/chain.h"
#include "device/cpu/host_tables.h"
#include "prelude_host.h"
#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)
#define TERN_T           f32
#include "dialect.h"
#include "shapes.h"
#ifdef __F16C__
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { TILE = 512, INPUTS = 3 };

/* ---- to the tile's type and back ------------------------------------------------------------- */

/* widen_ and narrow_ functions return how many of n contiguous halves the processor's own
 * instructions converted. LD and ST convert the others, and blocks with a NaN, to which ST gives
 * other bits. AVX-512's own rounding to bfloat16 takes subnormals for zeros. */
#ifdef __F16C__
enum { EIGHT = 8, AT_ONCE = 32 }; /* AT_ONCE: elements between checks for NaN */
typedef __m256 widen_eight(const u16 *x);
typedef void narrow_eights(u16 *y, __m256 a, __m256 b);

INLINE idx widen_halves(widen_eight *f, f32 *y, const u16 *x, idx n)
{
    idx i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE)
        _Pragma("GCC unroll 4") for (int k = 0; k < AT_ONCE; k += EIGHT)
            _mm256_storeu_ps(y + i + k, f(x + i + k));
    return i;
}
INLINE idx narrow_halves(narrow_eights *f, u16 (*one)(f32), u16 *y, const f32 *x, idx n)
{
    idx i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        __m256 nan = _mm256_setzero_ps();
        _Pragma("GCC unroll 2") for (int k = 0; k < AT_ONCE; k += 2 * EIGHT)
        {
            __m256 a = _mm256_loadu_ps(x + i + k), b = _mm256_loadu_ps(x + i + k + EIGHT);
            nan = _mm256_or_ps(nan, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
            f(y + i + k, a, b);
        }
        for (int k = 0; _mm256_movemask_ps(nan) && k < AT_ONCE; k++)
            y[i + k] = one(x[i + k]);
    }
    return i;
}

INLINE __m256 widen_eight_f16(const u16 *x)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)x));
}
INLINE void narrow_eights_f16(u16 *y, __m256 a, __m256 b)
{
    _mm_storeu_si128((void *)y, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((void *)(y + EIGHT), _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT));
}
#define widen_f16(y, x, n)  widen_halves(widen_eight_f16, y, x, n)
#define narrow_f16(y, x, n) narrow_halves(narrow_eights_f16, tern_f32_to_f16, y, x, n)
#elif defined(__aarch64__)
#define widen_f16(y, x, n) 0 /* LD compiles to vectors of FCVTL */
INLINE idx narrow_f16(u16 *y, const f32 *x, idx n)
{
    idx i = 0;
    for (; i + 8 <= n; i += 8) {
        float32x4_t a = vld1q_f32(x + i), b = vld1q_f32(x + i + 4);
        uint32x4_t same = vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b));
        vst1q_u16(y + i, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a), b)));
        for (int k = 0; vminvq_u32(same) == 0 && k < 8; k++)
            y[i + k] = tern_f32_to_f16(x[i + k]);
    }
    return i;
}
#else
#define widen_f16(y, x, n)  0
#define narrow_f16(y, x, n) 0
#endif
#if defined(__F16C__) && defined(__AVX2__) && !defined(__AVX512F__)
INLINE __m256 widen_eight_bf16(const u16 *x)
{
    __m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)x));
    return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
}
/* Rounds to nearest even, in the low halves; v has no NaN. */
INLINE __m256i round_to_bf16(__m256 v)
{
    __m256i u = _mm256_castps_si256(v), half = _mm256_set1_epi32(0x7fff);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, half), odd), 16);
}
INLINE void narrow_eights_bf16(u16 *y, __m256 a, __m256 b)
{
    __m256i packed = _mm256_packus_epi32(round_to_bf16(a), round_to_bf16(b));
    _mm256_storeu_si256((void *)y, _mm256_permute4x64_epi64(packed, 0xd8));
}
#define widen_bf16(y, x, n)  widen_halves(widen_eight_bf16, y, x, n)
#define narrow_bf16(y, x, n) narrow_halves(narrow_eights_bf16, tern_f32_to_bf16, y, x, n)
#elif defined(__AVX512BW__)
INLINE idx widen_bf16(f32 *y, const u16 *x, idx n)
{
    idx i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(x + i)));
        _mm512_storeu_si512(y + i, _mm512_slli_epi32(v, 16));
    }
    return i;
}
/* Rounds to nearest even, in the high halves; v has no NaN. */
INLINE __m512i round_to_bf16(__m512 v)
{
    __m512i u = _mm512_castps_si512(v), half = _mm512_set1_epi32(0x7fff);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(_mm512_add_epi32(u, half), odd);
}
INLINE idx narrow_bf16(u16 *y, const f32 *x, idx n)
{
    /* The 16-bit elements 1, 3 to 63 of two vectors. */
    const __m512i fours = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i places = _mm512_add_epi32(_mm512_mullo_epi32(fours, _mm512_set1_epi32(0x40004)),
                                            _mm512_set1_epi32(0x30001));
    idx i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512 a = _mm512_loadu_ps(x + i), b = _mm512_loadu_ps(x + i + 16);
        __mmask16 nan = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
        _mm512_storeu_si512(y + i,
                            _mm512_permutex2var_epi16(round_to_bf16(a), places, round_to_bf16(b)));
        for (int k = 0; nan && k < 32; k++)
            y[i + k] = tern_f32_to_bf16(x[i + k]);
    }
    return i;
}
#else
#define widen_bf16(y, x, n)  0
#define narrow_bf16(y, x, n) 0
#endif
#define WIDEN_0(D, y, x, n)  0
#define WIDEN_1(D, y, x, n)  widen_##D(y, x, n)
#define NARROW_0(D, y, x, n) 0
#define NARROW_1(D, y, x, n) narrow_##D(y, x, n)

/* Convert elements that are `step` apart; a step of 1 is a vector loop. */
#define CONVERT_1(D, TILE_TYPE)                                                                    \
    static void load_##D(void *to, const void *from, idx step, idx n)                              \
    {                                                                                              \
        TILE_TYPE *y = to;                                                                         \
        const STO_OF(D) *x = from;                                                                 \
        const idx done = step == 1 ? TERN_CAT(WIDEN, IN_SET(HALVES, D))(D, y, x, n) : 0;           \
        if (step == 1)                                                                             \
            SIMD for (idx i = done; i < n; i++) y[i] = (TILE_TYPE)LD_OF(D, x, i);                  \
        else                                                                                       \
            for (idx i = 0; i < n; i++)                                                            \
                y[i] = (TILE_TYPE)LD_OF(D, x, i * step);                                           \
    }                                                                                              \
    static void store_##D(void *to, const void *from, idx step, idx n)                             \
    {                                                                                              \
        STO_OF(D) *y = to;                                                                         \
        const TILE_TYPE *x = from;                                                                 \
        const idx done = step == 1 ? TERN_CAT(NARROW, IN_SET(HALVES, D))(D, y, x, n) : 0;          \
        if (step == 1)                                                                             \
            SIMD for (idx i = done; i < n; i++) ST_OF(D, y, i, x[i]);                              \
        else                                                                                       \
            for (idx i = 0; i < n; i++)                                                            \
                ST_OF(D, y, i *step, x[i]);                                                        \
    }
#define CONVERT_0(D, TILE_TYPE)
#define SET_HERE   (1, TERN_WIDE, 1, TERN_WIDE, TERN_WIDE, TERN_WIDE)
#define CONVERT(D) TERN_CAT(CONVERT, IN_SET(HERE, D))(D, IN_SET(TILES, D))
EACH_DTYPE(CONVERT)

typedef struct converter {
    uint8_t bytes, number_bytes, tile_bytes; /* of an element, a parameter, a tile's element */
    void (*load)(void *to, const void *from, idx step, idx n);
    void (*store)(void *to, const void *from, idx step, idx n);
} converter;

static const converter converters[] = {
#define CONVERTER_1(D, TILE_TYPE)                                                                  \
    [DTYPE_GLUE_(STORED_AS, D)] = {sizeof(STO_OF(D)), sizeof(REAL_OF(D)), sizeof(TILE_TYPE),       \
                                   load_##D, store_##D},
#define CONVERTER_0(D, TILE_TYPE)
#define CONVERTER(D) TERN_CAT(CONVERTER, IN_SET(HERE, D))(D, IN_SET(TILES, D))
    EACH_DTYPE(CONVERTER)};

/* Returns whether tiles compute in the type that is in memory. */
static int is_direct(const converter *c)
{
    return c->bytes == c->tile_bytes;
}

typedef union numbers {
    f32 f[2];
    f64 d[2];
    i64 i[2];
} numbers;

static numbers read_numbers(const tern_cpu_kernel *k, void *const *args)
{
    const converter *c = &converters[k->stored];
    numbers v = {{0}};
    int n = k->constant ? 1 : k->numbers;
    for (int i = 0; i < n; i++) {
        if (k->stored == STORED_AS_f64)
            v.d[i] = *(const f64 *)args[i];
        else if (c->tile_bytes == 4)
            v.f[i] = *(const f32 *)args[i];
        else
            v.i[i] = c->number_bytes == 8 ? *(const i64 *)args[i] : *(const i32 *)args[i];
    }
    return v;
}

/* ---- running --------------------------------------------------------------------------------- */

/* A range of n elements of out and the inputs; step 0 repeats an element. */
typedef struct range {
    u8 *at[INPUTS + 1]; /* out and the inputs */
    idx step[INPUTS + 1];
    idx n;
} range;

/* Returns how many elements a tile function computes for n. */
static idx whole_blocks(idx n)
{
    return (n + TERN_ROW_BLOCK - 1) / TERN_ROW_BLOCK * TERN_ROW_BLOCK;
}

/* Fills the block of the last of n elements with that element, so that no row computes with a
 * number (a divisor of 0, say) that the tensor does not have. */
static void repeat_last(const converter *c, void *tile, idx n)
{
    if (c->tile_bytes == 4)
        for (idx i = n, to = whole_blocks(n); i < to; i++)
            ((f32 *)tile)[i] = ((f32 *)tile)[n - 1];
    else
        for (idx i = n, to = whole_blocks(n); i < to; i++)
            ((i64 *)tile)[i] = ((i64 *)tile)[n - 1];
}

/* Sets *from and *n to the elements that go through the tile functions next, after *from. If every
 * operand is as those functions take it, these are all whole blocks, then the last block once more
 * with the rest (if no input is overwritten); else as many as the buffers hold. */
static void next_elements(const range *s, int direct, int overwrites, idx *from, idx *n)
{
    const idx left = s->n - *from;
    if (!direct) {
        *n = tern_smaller(left, TILE);
    } else if (left >= TERN_ROW_BLOCK) {
        *n = left / TERN_ROW_BLOCK * TERN_ROW_BLOCK;
    } else if (*from > 0 && !overwrites) {
        *from = s->n - TERN_ROW_BLOCK;
        *n = TERN_ROW_BLOCK;
    } else {
        *n = left;
    }
}

/* Computes a row that only changes some bits of half-precision numbers. */
INLINE void flip_bits(u16 *y, const u16 *x, idx n, u16 bits)
{
    SIMD for (idx i = 0; i < n; i++) y[i] = (u16)(x[i] ^ bits);
}

static void run_range(const tern_cpu_kernel *k, const range *s, const numbers *v)
{
    _Alignas(64) u8 tile[INPUTS + 1][TILE * 8];
    const converter *c = &converters[k->stored];
    const void *in[INPUTS] = {0};
    const int direct = is_direct(c), tensors = k->inputs - k->constant;
    const idx out_bytes = k->logical ? 1 : c->bytes; /* a logical result is a byte */
    int all_direct = direct && !k->constant, overwrites = 0;
    if (k->flips && c->tile_bytes == 4 && c->bytes == 2 && s->step[0] == 1 && s->step[1] == 1) {
        flip_bits((void *)s->at[0], (const void *)s->at[1], s->n, k->flips);
        return;
    }
    for (int i = 0; i <= tensors; i++) {
        all_direct = all_direct && (s->step[i] == 1 || (i == 0 && k->logical));
        overwrites = overwrites || (i > 0 && s->at[i] == s->at[0]);
    }
    if (k->constant) {
        u8 *x = tile[k->inputs];
        in[tensors] = x;
        const idx n = whole_blocks(tern_smaller(TILE, s->n));
        if (c->tile_bytes == 4)
            for (idx i = 0; i < n; i++)
                ((f32 *)(void *)x)[i] = v->f[0];
        else
            for (idx i = 0; i < n; i++)
                ((i64 *)(void *)x)[i] = v->i[0];
    }
    for (idx from = 0, n; from < s->n; from += n) {
        next_elements(s, all_direct, overwrites, &from, &n);
        const int in_place = direct && n == whole_blocks(n);
        for (int i = 1; i <= tensors; i++) {
            const u8 *x = s->at[i] + from * s->step[i] * c->bytes;
            in[i - 1] = in_place && s->step[i] == 1 ? (const void *)x : tile[i];
            if (in[i - 1] == x || (from > 0 && s->step[i] == 0)) /* a repeated one is loaded */
                continue;
            c->load(tile[i], x, s->step[i], n);
            repeat_last(c, tile[i], n);
        }
        u8 *out = s->at[0] + from * s->step[0] * out_bytes;
        const int as_wanted = k->logical || (direct && s->step[0] == 1);
        const int out_in_place = as_wanted && n == whole_blocks(n);
        k->tile(out_in_place ? out : tile[0], in, whole_blocks(n), v);
        if (!out_in_place && k->logical)
            memcpy(out, tile[0], (size_t)n);
        else if (!out_in_place)
            c->store(out, tile[0], s->step[0], n);
    }
}

extern tern_cpu_run TERN_GLUE(tern_row_run_, TERN_ISA);
void TERN_GLUE(tern_row_run_, TERN_ISA)(const tern_cpu_kernel *k, int part, int parts,
                                        void *const *args)
{
    const tern_host_grid tern_g = {part, parts};
    const int tensors = k->inputs - k->constant;
    const tern_nd_index *w = args[tensors + 1];
    const numbers v = read_numbers(k, args + tensors + 2);
    const idx bytes = converters[k->stored].bytes;
    FLAT (r, w->rows, w->inner) {
        idx at[INPUTS + 1] = {0}, q = r;
        for (i32 d = w->ndim - 1; d >= 0; d--) {
            idx position = q % (idx)w->dim[d];
            q /= (idx)w->dim[d];
            for (int i = 0; i <= tensors; i++)
                at[i] += position * (idx)w->stride[i][d];
        }
        idx from = tern_larger(tern_b - r * tern_in, 0);
        range s = {.n = tern_smaller(tern_e - r * tern_in, tern_in) - from};
        for (int i = 0; i <= tensors; i++) {
            idx width = i == 0 && k->logical ? 1 : bytes;
            s.step[i] = w->form == TERN_ND_UNIT ? 1 : (idx)w->step[i];
            s.at[i] = (u8 *)args[i] + (at[i] + from * s.step[i]) * width;
        }
        run_range(k, &s, &v);
    }
}

/* ---- chains (device/chain.h) ----------------------------------------------------------------- */

/* CHAIN_STACK: a program's thread may have 64 KB in all. */
enum { CHAIN_STACK = 32 << 10 };

/* A part of a chain. It has a slot for each tensor, a slot for the number of each row, then slots
 * for results. A slot has whole blocks of the tile's type, TILE elements if the stack suffices. */
typedef struct chain_part {
    const tern_chain *chain;
    const converter *c;
    u8 *const *tensors;
    u8 *slots;
    idx length; /* elements of a slot */
    numbers number[TERN_CHAIN_ROWS];
    const void *result[TERN_CHAIN_ROWS]; /* results, for later rows */
} chain_part;

static void *slot_of(const chain_part *p, int slot)
{
    return p->slots + slot * p->length * p->c->tile_bytes;
}

static idx length_of_slots(const chain_part *p)
{
    const int slots = p->chain->tensors + p->chain->rows + TERN_CHAIN_LIVE;
    const idx n = CHAIN_STACK / (slots * p->c->tile_bytes);
    return tern_smaller(n / TERN_ROW_BLOCK * TERN_ROW_BLOCK, TILE);
}

static void fill_slot(const chain_part *p, int row)
{
    void *x = slot_of(p, p->chain->tensors + row);
    for (idx i = 0; i < p->length; i++)
        if (p->c->tile_bytes == 4)
            ((f32 *)x)[i] = p->number[row].f[0];
        else
            ((i64 *)x)[i] = p->number[row].i[0];
}

static const void *operand(const chain_part *p, int t, idx from, idx n)
{
    const converter *c = p->c;
    if (t >= TERN_CHAIN_TENSORS)
        return p->result[t - TERN_CHAIN_TENSORS];
    const idx step = p->chain->step[t];
    const u8 *x = p->tensors[t] + from * step * c->bytes;
    if (is_direct(c) && step == 1 && n == whole_blocks(n))
        return x;
    c->load(slot_of(p, t), x, step, n);
    repeat_last(c, slot_of(p, t), n);
    return slot_of(p, t);
}

/* Computes n elements of one row. A result is rounded to the tensor's type, stored or not. */
static void run_chain_row(chain_part *p, int r, idx from, idx n)
{
    const tern_chain_row *row = &p->chain->row[r];
    const tern_cpu_kernel *k = row->compiled;
    const converter *c = p->c;
    _Alignas(64) u8 rounded[TILE * 4]; /* for types narrower than the tile's */
    const void *in[INPUTS] = {0};
    for (int i = 0; i < row->n; i++)
        in[i] = operand(p, row->in[i], from, n);
    if (k->constant)
        in[row->n] = slot_of(p, p->chain->tensors + r);
    u8 *out = row->out >= 0 ? p->tensors[row->out] + from * c->bytes : NULL;
    const int in_place = out && is_direct(c) && n == whole_blocks(n);
    void *result =
        in_place ? (void *)out : slot_of(p, p->chain->tensors + p->chain->rows + row->slot);
    k->tile(result, in, whole_blocks(n), &p->number[r]);
    p->result[r] = result;
    if (out && !in_place)
        c->store(out, result, 1, n);
    if (is_direct(c))
        return;
    if (!out)
        c->store(rounded, result, 1, n);
    c->load(result, out ? out : rounded, 1, n);
    repeat_last(c, result, n);
}

extern tern_cpu_run TERN_GLUE(tern_chain_run_, TERN_ISA);
void TERN_GLUE(tern_chain_run_, TERN_ISA)(const tern_cpu_kernel *kernel, int part, int parts,
                                          void *const *args)
{
    const tern_host_grid tern_g = {part, parts};
    _Alignas(64) u8 slots[CHAIN_STACK];
    u8 *tensors[TERN_CHAIN_TENSORS];
    chain_part p = {.chain = args[0], .tensors = tensors, .slots = slots};
    p.c = &converters[kernel->stored];
    p.length = length_of_slots(&p);
    for (int t = 0; t < p.chain->tensors; t++)
        tensors[t] = args[1 + t];
    for (int r = 0; r < p.chain->rows; r++) {
        const tern_chain_row *row = &p.chain->row[r];
        const tern_cpu_kernel *k = row->compiled;
        void *number[2] = {(void *)(uintptr_t)&row->number[0], (void *)(uintptr_t)&row->number[1]};
        p.number[r] = read_numbers(k, number);
        if (k->constant)
            fill_slot(&p, r);
    }
    const idx end = TERN_TO(p.chain->n, 64);
    for (idx from = TERN_FROM(p.chain->n, 64), n; from < end; from += n) {
        n = tern_smaller(end - from, p.length);
        n = n >= TERN_ROW_BLOCK ? n / TERN_ROW_BLOCK * TERN_ROW_BLOCK : n;
        for (int r = 0; r < p.chain->rows; r++)
            run_chain_row(&p, r, from, n);
    }
}
