/* dialect.h -- what kernels are written in, after a prelude made the types and loop forms.
 *
 * A kernel is KERNELn(K(name), parameter, ...) { BASE(x); ... } with parameters
 *   (OUT, T, x)   elements of T that the kernel writes (and may read)
 *   (IN, T, x)    elements of T that it reads
 *   (ARG, T, n)   a value: i32 i64 u64 f32 REAL or a struct of shapes.h
 * BASE(x) comes first, for every OUT and IN: it moves x to its first element.
 *
 * A family is read once for each element type TERN_T of dtypes.def, f32 and so on:
 *   STO   what lies in memory          LD(p, i), ST(p, i, v)   load and store as REAL
 *   REAL  what is computed in          C(0.5)                  a constant of that type
 *   K(n)  the kernel's name: n_f32     exp(x) log(x) ...       math of that type, see math.cl */

/* INLINE is part of what calls it; a FUNCTION is large, and the host's compiler has the choice. */
#ifndef FUNCTION
#define FUNCTION INLINE
#endif

/* A short loop that a compiler would unroll, at the price of registers. */
#ifndef ROLLED
#define ROLLED
#endif

/* Loads before are not to wait for what is done with the first of them behind, under if (yes). */
#ifndef LOADED
#define LOADED(yes)
#endif

/* Loop forms of GPUs. */
#ifdef TERN_THREAD
#define ITEMS(i, n)                                                                                \
    for (idx i = TERN_THREAD, i##_n = (idx)(n), i##_s = TERN_THREADS; i < i##_n; i += i##_s)
#define FLAT(r, rows, inner)                                                                       \
    for (idx tern_k = TERN_THREAD, tern_in = (idx)(inner), tern_n = (idx)(rows)*tern_in,           \
             tern_s = TERN_THREADS, r;                                                             \
         tern_k < tern_n && (r = tern_k < tern_in ? 0 : tern_k / tern_in, 1); tern_k += tern_s)
#define INNER(r, j) for (idx j = tern_k - r * tern_in, tern_once = 1; tern_once; tern_once = 0)
#define GROUPS(g, n)                                                                               \
    for (idx g = GROUP_ID, g##_n = (idx)(n), g##_s = GROUP_COUNT; g < g##_n; g += g##_s)
#define LANES(j, n) for (idx j = (idx)LID, j##_n = (idx)(n); j < j##_n; j += LSIZE)
#endif

#include "dtypes.def"
#define TERN_CAT_(a, b) a##_##b
#define TERN_CAT(a, b)  TERN_CAT_(a, b)
#define K(n)            TERN_CAT(n, TERN_T)
#define STO             STO_OF(TERN_T)
#define REAL            REAL_OF(TERN_T)
#define ACC             ACC_OF(TERN_T)
#define C(x)            TERN_CAT(C, REAL)(x)
#define LD(p, i)        LD_OF(TERN_T, p, i)
#define ST(p, i, v)     ST_OF(TERN_T, p, i, v)
#define FN(f)           TERN_CAT(f, REAL)

/* The same of another type. */
#define TERN_ROW_(T)        TERN_CAT(DTYPE, T)
#define STO_OF(T)           DTYPE_FIELD(STORED, TERN_ROW_(T))
#define REAL_OF(T)          DTYPE_FIELD(MATH, TERN_ROW_(T))
#define ACC_OF(T)           DTYPE_FIELD(SUM, TERN_ROW_(T))
#define LD_OF(T, p, i)      TERN_CAT(LD, DTYPE_FIELD(CODE, TERN_ROW_(T)))(REAL_OF(T), p, i)
#define ST_OF(T, p, i, v)   TERN_CAT(ST, DTYPE_FIELD(CODE, TERN_ROW_(T)))(STO_OF(T), p, i, v)
#define LD_PLAIN(R, p, i)    ((R)(p)[i])
#define ST_PLAIN(S, p, i, v) ((p)[i] = (S)(v))
#define LD_TRUTH             LD_PLAIN
#define ST_TRUTH(S, p, i, v) ((p)[i] = (S)((v) != 0))
#define LD_BF16(R, p, i)     f32_from_bits((u32)(p)[i] << 16)
#define ST_BF16(S, p, i, v)  ((p)[i] = tern_f32_to_bf16((f32)(v)))

#define C_f32(x) x##f
#define C_f64(x) x
#define C_i32(x) ((i32)(x))
#define C_i64(x) ((i64)(x))

/* IN_SET(FLOATS, T) is 1 or 0: for rows of .def files, and in a family #if IS_FLOAT. */
#define IN_SET(SET, T) DTYPE_IN(SET, TERN_ROW_(T))
#define IS_FLOAT       IN_SET(FLOATS, TERN_T)
#define IS_WIDE        IN_SET(DOUBLES, TERN_T)
#define IS_HALF        IN_SET(HALVES, TERN_T)
#define IS_WHOLE       IN_SET(WHOLES, TERN_T)
#define IS_MOVER       DTYPE_FIELD(MOVES, TERN_ROW_(TERN_T))
#define SET_EXISTING   (1, TERN_F64, 1, 1, 1, 1)
/* One type alone: that of indices. */
#define IS_I64 TERN_CAT(TERN_IS_I64, TERN_T)
#define IS_I32 TERN_CAT(TERN_IS_I32, TERN_T)
#define TERN_IS_I64_i64 1
#define TERN_IS_I32_i32 1

/* Minus infinity, for maxima to begin with. */
#define MINUS_INF     TERN_CAT(MINUS_INF, ACC)
#define MINUS_INF_f32 f32_from_bits(0xff800000u)
#define MINUS_INF_f64 f64_from_bits((u64)0xfff00000u << 32)

/* Round to nearest even; NaN stays NaN. */
INLINE u16 tern_f32_to_bf16(f32 f)
{
    u32 u = f32_bits(f), nan = -(u32)(f != f); /* masks, which gcc makes vectors of 32 bits from */
    u32 more = (0x7fffu + ((u >> 16) & 1u)) & ~nan;
    return (u16)(((u + more) | (nan & 0x400000u)) >> 16);
}

/* Record a mistake of the data: code is one of TERN_FAULT_..., a and b go into its message. */
#define FAULT(words, code, a, b)                                                                   \
    do {                                                                                           \
        (words)[1] = (i64)(a);                                                                     \
        (words)[2] = (i64)(b);                                                                     \
        (words)[0] = (code);                                                                       \
    } while (0)

/* BESIDE(name), behind the BASEs of kernel name: launches of it may go side by side (beside.h). */
#define BESIDE(name)

#include "collectives.h"
