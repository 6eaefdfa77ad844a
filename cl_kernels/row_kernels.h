/* row_kernels.h -- what the rows of a .def file become on devices that compile kernels at run time:
 * one vector loop over a tern_nd_index each. The host has row_tiles.h instead.
 *
 * In its rows every tensor is dense, or (BINARY) one of the two inputs stays the same; the host
 * makes dense copies of others first (ops/elementwise/nd_index.c). TERNARY takes any strides.
 *
 * Where rows start at multiples of 16 bytes, which only the kernel can see, a GPU takes vectors of
 * 16 bytes, two at a time; what is left over, `inner` elements, goes one by one. Families whose
 * rows compute for longer than they load are ROWS_ARE_LONG and do without. */

#include "math_rows.cl"
#include "float4.h"

#undef HAS_VECTORS
#if ROWS_ARE_LONG
#define HAS_VECTORS 0
#else
#define HAS_VECTORS BY_FOURS
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
    TERN_CAT(UNARY_VECTORS, HAS_VECTORS)(T, Y)                                                     \
    FLAT(r, w.rows, inner)                                                                         \
    {                                                                                              \
        ND_INDEX2(w, r, yo, xo)                                                                    \
        SIMD INNER(r, j)                                                                           \
        {                                                                                          \
            REAL x = LD(xs, xo + j);                                                               \
            ST_OF(T, ys, yo + j, (Y));                                                             \
        }                                                                                          \
    }
#define UNARY_VECTORS_0(T, Y)
#define UNARY_VECTORS_1(T, Y)                                                                      \
    if (FLAT_FITS(ys) && FLAT_FITS(xs) && FLAT_ND_FITS(w, 0) && FLAT_ND_FITS(w, 1)) {              \
        const idx vectors = inner / ROW_WIDTH;                                                     \
        FLAT_VECTORS(w.rows, vectors)                                                              \
        {                                                                                          \
            FLAT_TWO(TERN_T, x)                                                                    \
            idx at[2];                                                                             \
            FLAT_LOADED(r, j)                                                                      \
            {                                                                                      \
                ND_INDEX2(w, r, yo, xo)                                                            \
                FLAT_GET(TERN_T, x, xs + xo, j);                                                   \
                at[u] = yo + ROW_WIDTH * j;                                                        \
            }                                                                                      \
            FLAT_USED(q)                                                                           \
            {                                                                                      \
                REAL yv[ROW_WIDTH];                                                                \
                FLAT_VALUES(TERN_T, xv, x)                                                         \
                EACH_OF_ROW(e)                                                                     \
                {                                                                                  \
                    REAL x = xv[e];                                                                \
                    yv[e] = (Y);                                                                   \
                }                                                                                  \
                ROW_STORE(T, ys + at[0], 0, yv);                                                   \
                at[0] = at[1];                                                                     \
            }                                                                                      \
        }                                                                                          \
        FLAT_SKIP(ys) FLAT_SKIP(xs) inner -= ROW_WIDTH * vectors;                                  \
    }

/* Of tensors a, b and c, where the index `goes` by vectors: out = VALUE. */
#define VECTORS_OF_3(goes, out, a, b, c, VALUE)                                                    \
    if (goes && FLAT_FITS(out##s) && FLAT_FITS(a##s) && FLAT_FITS(b##s) && FLAT_FITS(c##s) &&      \
        FLAT_ND_FITS(w, 0) && FLAT_ND_FITS(w, 1) && FLAT_ND_FITS(w, 2) && FLAT_ND_FITS(w, 3)) {    \
        const idx vectors = inner / ROW_WIDTH;                                                     \
        FLAT_VECTORS(w.rows, vectors)                                                              \
        {                                                                                          \
            FLAT_TWO(TERN_T, a)                                                                    \
            FLAT_TWO(TERN_T, b)                                                                    \
            FLAT_TWO(TERN_T, c)                                                                    \
            idx at[2];                                                                             \
            FLAT_LOADED(r, j)                                                                      \
            {                                                                                      \
                ND_INDEX4(w, r, out##o, a##o, b##o, c##o)                                          \
                FLAT_GET(TERN_T, a, a##s + a##o, j);                                               \
                FLAT_GET(TERN_T, b, b##s + b##o, j);                                               \
                FLAT_GET(TERN_T, c, c##s + c##o, j);                                               \
                at[u] = out##o + ROW_WIDTH * j;                                                    \
            }                                                                                      \
            FLAT_USED(q)                                                                           \
            {                                                                                      \
                REAL out##v[ROW_WIDTH];                                                            \
                FLAT_VALUES(TERN_T, a##v, a)                                                       \
                FLAT_VALUES(TERN_T, b##v, b)                                                       \
                FLAT_VALUES(TERN_T, c##v, c)                                                       \
                EACH_OF_ROW(e)                                                                     \
                {                                                                                  \
                    REAL a = a##v[e], b = b##v[e], c = c##v[e];                                    \
                    out##v[e] = (VALUE);                                                           \
                }                                                                                  \
                ROW_STORE(TERN_T, out##s + at[0], 0, out##v);                                      \
                at[0] = at[1];                                                                     \
            }                                                                                      \
        }                                                                                          \
        FLAT_SKIP(out##s) FLAT_SKIP(a##s) FLAT_SKIP(b##s) FLAT_SKIP(c##s)                          \
        inner -= ROW_WIDTH * vectors;                                                              \
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
        TERN_CAT(GRADIENT_VECTORS, HAS_VECTORS)(DX)                                                \
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
#define GRADIENT_VECTORS_0(DX)
#define GRADIENT_VECTORS_1(DX) VECTORS_OF_3(1, dx, x, y, dy, DX)

/* zs = f(xs, ys); a row whose x (y) stays the same keeps it in a register. */
#define BINARY_LOOPS_(T, Z)                                                                        \
    idx inner = (idx)w.inner;                                                                      \
    TERN_CAT(BINARY_VECTORS, HAS_VECTORS)(T, Z)                                                    \
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
#define BINARY_VECTORS_0(T, Z)
#define BINARY_VECTORS_1(T, Z)                                                                     \
    const i32 x_stays = w.form == TERN_ND_FLAT_A, y_stays = w.form == TERN_ND_FLAT_B;              \
    if (FLAT_FITS(zs) && FLAT_ND_FITS(w, 0) &&                                                     \
        (x_stays || (FLAT_FITS(xs) && FLAT_ND_FITS(w, 1))) &&                                      \
        (y_stays || (FLAT_FITS(ys) && FLAT_ND_FITS(w, 2)))) {                                      \
        const idx vectors = inner / ROW_WIDTH;                                                     \
        FLAT_VECTORS(w.rows, vectors)                                                              \
        {                                                                                          \
            FLAT_TWO(TERN_T, x)                                                                    \
            FLAT_TWO(TERN_T, y)                                                                    \
            idx at[2];                                                                             \
            STO x_1[2], y_1[2];                                                                    \
            FLAT_LOADED(r, j)                                                                      \
            {                                                                                      \
                ND_INDEX3(w, r, zo, xo, yo)                                                        \
                FLAT_GET_OR_1(x_stays, x, xs + xo, j)                                              \
                FLAT_GET_OR_1(y_stays, y, ys + yo, j)                                              \
                at[u] = zo + ROW_WIDTH * j;                                                        \
            }                                                                                      \
            FLAT_USED(q)                                                                           \
            {                                                                                      \
                REAL zv[ROW_WIDTH];                                                                \
                FLAT_SAME(x_stays, x)                                                              \
                FLAT_SAME(y_stays, y)                                                              \
                FLAT_VALUES(TERN_T, xv, x)                                                         \
                FLAT_VALUES(TERN_T, yv, y)                                                         \
                EACH_OF_ROW(e)                                                                     \
                {                                                                                  \
                    REAL x = xv[e], y = yv[e];                                                     \
                    zv[e] = (Z);                                                                   \
                }                                                                                  \
                ROW_STORE(T, zs + at[0], 0, zv);                                                   \
                at[0] = at[1];                                                                     \
            }                                                                                      \
        }                                                                                          \
        xs += x_stays ? 0 : ROW_WIDTH * vectors;                                                   \
        ys += y_stays ? 0 : ROW_WIDTH * vectors;                                                   \
        FLAT_SKIP(zs) inner -= ROW_WIDTH * vectors;                                                \
    }
/* One element, of which a vector is made as late as it is used, where that stays. */
#define FLAT_GET_OR_1(stays, x, p, j)                                                              \
    if (stays) {                                                                                   \
        x##_1[u] = (p)[0];                                                                         \
    } else {                                                                                       \
        FLAT_GET(TERN_T, x, p, j);                                                                 \
    }
#define FLAT_SAME(stays, x)                                                                        \
    if (stays) {                                                                                   \
        ROW_OF_(ROW_SAME, TERN_T)(x##_k[0], x##_1[0]);                                             \
    }                                                                                              \
    x##_1[0] = x##_1[1];
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
        TERN_CAT(TERNARY_VECTORS, HAS_VECTORS)(V)                                                  \
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
#define TERNARY_VECTORS_0(V)
#define TERNARY_VECTORS_1(V) VECTORS_OF_3(w.form == TERN_ND_UNIT, v, x, y, z, V)

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
