/* product_kernels.c -- the host's own matrix products, compiled once per instruction set: small
 * shapes, matrix times vector, and everything where oneDNN is absent. */
#include "device/cpu/host_tables.h"
#include "prelude_host.h"
#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)
#define TERN_SECTION     TERN_GLUE(tern_kernels_, TERN_ISA)
#include "params_host.h"
#include "dialect.h"
#include "shapes.h"
#include "product.h"
#ifdef __F16C__
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* host_table.c refers to this symbol, so that a static library links this object. */
#define FAMILY TERN_GLUE(tern_family_product_, TERN_ISA)
extern const char FAMILY;
const char FAMILY = 0;

/* VECTOR: bytes of a register. ROWS: rows of C that fit into registers, two registers wide. */
#if defined(__AVX512F__)
enum { VECTOR = 64, ROWS = 8 };
#elif defined(__AVX2__)
enum { VECTOR = 32, ROWS = 6 };
#elif defined(__aarch64__)
enum { VECTOR = 16, ROWS = 8 };
#else
enum { VECTOR = 16, ROWS = 4 };
#endif
/* DEPTH: depth of a packed panel of B. The others are for half precision: how much of A is widened
 * at a time, and how many sums of a row of C are kept. */
enum {
    DEPTH = 256,
    WIDE_DEPTH = 128,
    WIDE_COLUMNS = 128,
    SKINNY_DEPTH = 1024,
    SKINNY_ROW = 1024 + 16
};
enum { LEFT = 8 * ROWS };  /* rows of A that are packed at once */
enum { ROW_DEPTH = 2048 }; /* elements of a row that are multiplied at once */

/* Fast code is larger: doubles and old processors do without. Large products with AVX-512 are
 * oneDNN's. */
#if defined(__AVX2__) || defined(__aarch64__)
#define HAS_FAST 1
#define IS_FAST  (sizeof(REAL) == sizeof(f32))
#else
#define HAS_FAST 0
#define IS_FAST  0
#endif
#define IS_LARGE (IS_FAST && VECTOR == 32)
/* Arm multiplies a register by a lane of another: several numbers of A are loaded at a time. */
#ifdef __aarch64__
#define BY_LANES 1
#else
#define BY_LANES 0
#endif

#define UNROLL _Pragma("GCC unroll 16")
#define VEC    FN(vector)
#define LANE   ((idx)(VECTOR / sizeof(REAL)))
#define QUADS  (16 / (int)sizeof(REAL)) /* numbers in 16 bytes */

#define TERN_T f32
#include "product_tile.h"
#include "product_pack.h"
#include "product_vector.h"
#include "product_unit.h"
#undef TERN_T
#include "math.cl"
#define TERN_T f32
#include "attention_tile.h"
#if TERN_LOWEST || !defined(__AVX512F__) /* rows of images seldom fill wider registers */
#include "conv_channels_tile.h"
#endif
#if HAS_FAST
KERNEL1(strips_f32, (IN, tern_host_strips, g))
{
    (void)tern_g;
    *(tern_host_strips *)(uintptr_t)g =
        (tern_host_strips){(void (*)(void))strips_f32, 2 * VECTOR / sizeof(f32)};
}
#elif TERN_LOWEST
DECLARED_(strips_f32, "(IN, tern_host_strips, g)")
#endif
#if HAS_FAST && !defined(__AVX512F__)
#include "conv_winograd_tile.h"
#include "conv_stride2_tile.h"
#elif TERN_LOWEST
DECLARED_(conv_winograd_f32, "(IN, tern_host_winograd, g)")
DECLARED_(conv_winograd_weight_f32, "(IN, tern_host_winograd, g)")
DECLARED_(conv_stride2_f32, "(IN, tern_host_stride2, g)")
DECLARED_(conv_stride2_weight_f32, "(IN, tern_host_stride2, g)")
#endif
#undef TERN_T
#define TERN_T f64
#include "product_tile.h"
#include "product_pack.h"
#include "product_vector.h"
#include "product_unit.h"
#undef TERN_T

/* ---- loads of half precision ------------------------------------------------------------- */

typedef u16 halves __attribute__((vector_size(VECTOR / 2), aligned(2), may_alias));
typedef u32 words __attribute__((vector_size(VECTOR)));

INLINE vector_f32 load_bf16(const u16 *p)
{
    return (vector_f32)(__builtin_convertvector(*(const halves *)p, words) << 16);
}

INLINE vector_f32 load_f16(const u16 *p)
{
#if defined(__AVX512F__)
    return (vector_f32)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
#elif defined(__F16C__)
    return (vector_f32)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
#elif defined(__aarch64__)
    return (vector_f32)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else /* as tern_f16_to_f32 */
    words bits = __builtin_convertvector(*(const halves *)p, words);
    words magnitude = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
    words special = (words)(magnitude >= 0x0f800000u);
    words finite = (words)((vector_f32)magnitude * 0x1p112f);
    return (vector_f32)((finite & ~special) | ((magnitude | 0x7f800000u) & special) | sign);
#endif
}

#define TERN_T bf16
#include "product_pack.h"
#include "product_vector.h"
#include "product_unit.h"
#undef TERN_T
#define TERN_T f16
#include "product_pack.h"
#include "product_vector.h"
#include "product_unit.h"
