/* row_kernels.h -- what the rows of a .def file become on devices that compile kernels at run time:
 * one vector loop over a tern_nd_index each. The host has row_tiles.h instead.
 *
 * In its rows every tensor is dense, or (BINARY) one of the two inputs stays the same; the host
 * makes dense copies of others first (ops/elementwise/nd_index.c). TERNARY takes any strides.
 *
 * Where rows start at multiples of 16 bytes (8 for halves), which only the kernel can see, a GPU
 * takes four elements at a time; what is left over, `inner` elements, goes one by one. Families
 * whose rows compute for longer than they load are ROWS_ARE_LONG and do without. */

#include "math_rows.cl"
#include "float4.h"

#undef HAS_FLOAT4
#if IN_SET(FLOAT4, TERN_T) && TERN_FLOAT4 && !ROWS_ARE_LONG
#define HAS_FLOAT4 1
#else
#define HAS_FLOAT4 0
#endif

#define UNARY_0(NAME, Y)
#define UNARY_1(NAME, Y)                                                                           \
    KERNEL5(K(NAME), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_nd_index, w), (ARG, REAL, a),       \
            (ARG, REAL, b))                                                                        \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        UNARY_LOOP_(TERN_T, Y)                                                                     \
    }
/* ys = f(xs), of type T. */
#define UNARY_LOOP_(T, Y)                                                                          \
    idx inner = (idx)w.inner;                                                                      \
    TERN_CAT(UNARY_FLOAT4, HAS_FLOAT4)(T, Y)                                                       \
    FLAT(r, w.rows, inner)                                                                         \
    {                                                                                              \
        ND_INDEX2(w, r, yo, xo)                                                                    \
        SIMD INNER(r, j)                                                                           \
        {                                                                                          \
            REAL x = LD(xs, xo + j);                                                               \
            ST_OF(T, ys, yo + j, (Y));                                                             \
        }                                                                                          \
    }
#define UNARY_FLOAT4_0(T, Y)
#define UNARY_FLOAT4_1(T, Y)                                                                       \
    if (ALIGNED4(ys) && ALIGNED4(xs) && ND_ALIGNED4(w, 0) && ND_ALIGNED4(w, 1)) {                  \
        idx quads = inner / 4;                                                                     \
        FLAT(r, w.rows, quads)                                                                     \
        {                                                                                          \
            ND_INDEX2(w, r, yo, xo)                                                                \
            INNER(r, j)                                                                            \
            {                                                                                      \
                REAL x4[4], y4[4];                                                                 \
                LOAD4(x4, xs + xo, j);                                                             \
                EACH4(e)                                                                           \
                {                                                                                  \
                    REAL x = x4[e];                                                                \
                    y4[e] = (Y);                                                                   \
                }                                                                                  \
                TERN_CAT(STORE4, T)(ys + yo, j, y4);                                               \
            }                                                                                      \
        }                                                                                          \
        SKIP4(ys) SKIP4(xs) inner -= 4 * quads;                                                    \
    }

#define GRADIENT_0(NAME, DX)
#define GRADIENT_1(NAME, DX)                                                                       \
    KERNEL7(K(NAME##_gradient), (OUT, STO, dxs), (IN, STO, xs), (IN, STO, ys), (IN, STO, dys),     \
            (ARG, tern_nd_index, w), (ARG, REAL, a), (ARG, REAL, b))                               \
    {                                                                                              \
        BASE(dxs);                                                                                 \
        BASE(xs);                                                                                  \
        BASE(ys);                                                                                  \
        BASE(dys);                                                                                 \
        idx inner = (idx)w.inner;                                                                  \
        TERN_CAT(GRADIENT_FLOAT4, HAS_FLOAT4)(DX)                                                  \
        FLAT(r, w.rows, inner)                                                                     \
        {                                                                                          \
            ND_INDEX4(w, r, dxo, xo, yo, dyo)                                                      \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL x = LD(xs, xo + j), y = LD(ys, yo + j), dy = LD(dys, dyo + j);                \
                ST(dxs, dxo + j, (DX));                                                            \
            }                                                                                      \
        }                                                                                          \
    }
#define GRADIENT_FLOAT4_0(DX)
#define GRADIENT_FLOAT4_1(DX)                                                                      \
    if (ALIGNED4(dxs) && ALIGNED4(xs) && ALIGNED4(ys) && ALIGNED4(dys) && ND_ALIGNED4(w, 0) &&     \
        ND_ALIGNED4(w, 1) && ND_ALIGNED4(w, 2) && ND_ALIGNED4(w, 3)) {                             \
        idx quads = inner / 4;                                                                     \
        FLAT(r, w.rows, quads)                                                                     \
        {                                                                                          \
            ND_INDEX4(w, r, dxo, xo, yo, dyo)                                                      \
            INNER(r, j)                                                                            \
            {                                                                                      \
                REAL x4[4], y4[4], dy4[4], dx4[4];                                                 \
                LOAD4(x4, xs + xo, j);                                                             \
                LOAD4(y4, ys + yo, j);                                                             \
                LOAD4(dy4, dys + dyo, j);                                                          \
                EACH4(e)                                                                           \
                {                                                                                  \
                    REAL x = x4[e], y = y4[e], dy = dy4[e];                                        \
                    dx4[e] = (DX);                                                                 \
                }                                                                                  \
                STORE4(dxs + dxo, j, dx4);                                                         \
            }                                                                                      \
        }                                                                                          \
        SKIP4(dxs) SKIP4(xs) SKIP4(ys) SKIP4(dys) inner -= 4 * quads;                              \
    }

/* zs = f(xs, ys); a row whose x (y) stays the same keeps it in a register. */
#define BINARY_LOOPS_(T, Z)                                                                        \
    idx inner = (idx)w.inner;                                                                      \
    TERN_CAT(BINARY_FLOAT4, HAS_FLOAT4)(T, Z)                                                      \
    FLAT(r, w.rows, inner)                                                                         \
    {                                                                                              \
        ND_INDEX3(w, r, zo, xo, yo)                                                                \
        if (w.form == TERN_ND_UNIT) {                                                              \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL x = LD(xs, xo + j), y = LD(ys, yo + j);                                       \
                ST_OF(T, zs, zo + j, (Z));                                                         \
            }                                                                                      \
        } else if (w.form == TERN_ND_FLAT_B) {                                                     \
            REAL y = LD(ys, yo);                                                                   \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL x = LD(xs, xo + j);                                                           \
                ST_OF(T, zs, zo + j, (Z));                                                         \
            }                                                                                      \
        } else {                                                                                   \
            REAL x = LD(xs, xo);                                                                   \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL y = LD(ys, yo + j);                                                           \
                ST_OF(T, zs, zo + j, (Z));                                                         \
            }                                                                                      \
        }                                                                                          \
    }
#define BINARY_FLOAT4_0(T, Z)
#define BINARY_FLOAT4_1(T, Z)                                                                      \
    i32 x_stays = w.form == TERN_ND_FLAT_A, y_stays = w.form == TERN_ND_FLAT_B;                    \
    if (ALIGNED4(zs) && ND_ALIGNED4(w, 0) && (x_stays || (ALIGNED4(xs) && ND_ALIGNED4(w, 1))) &&   \
        (y_stays || (ALIGNED4(ys) && ND_ALIGNED4(w, 2)))) {                                        \
        idx quads = inner / 4;                                                                     \
        FLAT(r, w.rows, quads)                                                                     \
        {                                                                                          \
            ND_INDEX3(w, r, zo, xo, yo)                                                            \
            INNER(r, j)                                                                            \
            {                                                                                      \
                REAL x4[4], y4[4], z4[4];                                                          \
                LOAD4_OR_1(x_stays, x4, xs + xo, j)                                                \
                LOAD4_OR_1(y_stays, y4, ys + yo, j)                                                \
                EACH4(e)                                                                           \
                {                                                                                  \
                    REAL x = x4[e], y = y4[e];                                                     \
                    z4[e] = (Z);                                                                   \
                }                                                                                  \
                TERN_CAT(STORE4, T)(zs + zo, j, z4);                                               \
            }                                                                                      \
        }                                                                                          \
        xs += x_stays ? 0 : 4 * quads;                                                             \
        ys += y_stays ? 0 : 4 * quads;                                                             \
        SKIP4(zs) inner -= 4 * quads;                                                              \
    }
#define TWO_KERNELS_(NAME, T, STORED_T, Z)                                                         \
    KERNEL4(K(NAME), (OUT, STORED_T, zs), (IN, STO, xs), (IN, STO, ys), (ARG, tern_nd_index, w))   \
    {                                                                                              \
        BASE(zs);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(ys);                                                                                  \
        BINARY_LOOPS_(T, Z)                                                                        \
    }                                                                                              \
    KERNEL4(K(NAME##_scalar), (OUT, STORED_T, ys), (IN, STO, xs), (ARG, tern_nd_index, w),         \
            (ARG, REAL, y))                                                                        \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        UNARY_LOOP_(T, Z)                                                                          \
    }
#define BINARY_0(NAME, Z)
#define BINARY_1(NAME, Z) TWO_KERNELS_(NAME, TERN_T, STO, Z)
#define COMPARE_0(NAME, Z)
#define COMPARE_1(NAME, Z) TWO_KERNELS_(NAME, bool, u8, Z)

#define PREDICATE_0(NAME, Z)
#define PREDICATE_1(NAME, Z)                                                                       \
    KERNEL3(K(NAME), (OUT, u8, ys), (IN, STO, xs), (ARG, tern_nd_index, w))                        \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        UNARY_LOOP_(bool, Z)                                                                       \
    }

#define TERNARY_0(NAME, V)
#define TERNARY_1(NAME, V)                                                                         \
    KERNEL6(K(NAME), (OUT, STO, vs), (IN, STO, xs), (IN, STO, ys), (IN, STO, zs),                  \
            (ARG, tern_nd_index, w), (ARG, REAL, a))                                               \
    {                                                                                              \
        BASE(vs);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(ys);                                                                                  \
        BASE(zs);                                                                                  \
        idx inner = (idx)w.inner;                                                                  \
        TERN_CAT(TERNARY_FLOAT4, HAS_FLOAT4)(V)                                                    \
        FLAT(r, w.rows, inner)                                                                     \
        {                                                                                          \
            ND_INDEX4(w, r, vo, xo, yo, zo)                                                        \
            INNER(r, j)                                                                            \
            {                                                                                      \
                REAL x = LD(xs, xo + j * (idx)w.step[1]), y = LD(ys, yo + j * (idx)w.step[2]);     \
                REAL z = LD(zs, zo + j * (idx)w.step[3]);                                          \
                ST(vs, vo + j * (idx)w.step[0], (V));                                              \
            }                                                                                      \
        }                                                                                          \
    }
#define TERNARY_FLOAT4_0(V)
#define TERNARY_FLOAT4_1(V)                                                                        \
    if (w.form == TERN_ND_UNIT && ALIGNED4(vs) && ALIGNED4(xs) && ALIGNED4(ys) && ALIGNED4(zs) &&  \
        ND_ALIGNED4(w, 0) && ND_ALIGNED4(w, 1) && ND_ALIGNED4(w, 2) && ND_ALIGNED4(w, 3)) {        \
        idx quads = inner / 4;                                                                     \
        FLAT(r, w.rows, quads)                                                                     \
        {                                                                                          \
            ND_INDEX4(w, r, vo, xo, yo, zo)                                                        \
            INNER(r, j)                                                                            \
            {                                                                                      \
                REAL x4[4], y4[4], z4[4], v4[4];                                                   \
                LOAD4(x4, xs + xo, j);                                                             \
                LOAD4(y4, ys + yo, j);                                                             \
                LOAD4(z4, zs + zo, j);                                                             \
                EACH4(e)                                                                           \
                {                                                                                  \
                    REAL x = x4[e], y = y4[e], z = z4[e];                                          \
                    v4[e] = (V);                                                                   \
                }                                                                                  \
                STORE4(vs + vo, j, v4);                                                            \
            }                                                                                      \
        }                                                                                          \
        SKIP4(vs) SKIP4(xs) SKIP4(ys) SKIP4(zs) inner -= 4 * quads;                                \
    }

#define UNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                           \
    TERN_CAT(UNARY, IN_SET(TYPES, TERN_T))(NAME, Y)                                                \
    TERN_CAT(GRADIENT, IS_FLOAT)(NAME, DX)
#define UNARY_REAL1  UNARY
#define UNARY_REAL2  UNARY
#define UNARY_SCALAR UNARY
#define BINARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY)                                      \
    TERN_CAT(BINARY, IN_SET(TYPES, TERN_T))(NAME, Z)
#define TERNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ)                                 \
    TERN_CAT(TERNARY, IN_SET(TYPES, TERN_T))(NAME, V)
#define TERNARY_SCALAR TERNARY
#define COMPARE(NAME, TYPES, RULE, Z) TERN_CAT(COMPARE, IN_SET(TYPES, TERN_T))(NAME, Z)
#define PREDICATE(NAME, TYPES, Z) TERN_CAT(PREDICATE, IN_SET(TYPES, TERN_T))(NAME, Z)
