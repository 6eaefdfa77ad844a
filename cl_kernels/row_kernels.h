/* row_kernels.h -- what the rows of a .def file become on devices that compile kernels at run time: one
 * vector loop over a tern_walk each. The host has row_tiles.h instead.
 *
 * In its rows every tensor is dense, or (BINARY) one of the two inputs stays the same; the host makes
 * dense copies of others first (ops/walk.c). TERNARY takes any strides. */

#include "math_rows.cl"

#define UNARY_0(NAME, Y)
#define UNARY_1(NAME, Y)                                                                           \
    KERNEL5(K(NAME), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_walk, w), (ARG, REAL, a),           \
            (ARG, REAL, b))                                                                        \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        UNARY_LOOP_(ST, Y)                                                                         \
    }
/* ys = f(xs). */
#define UNARY_LOOP_(STORE, Y)                                                                      \
    FLAT(r, w.rows, w.inner)                                                                       \
    {                                                                                              \
        WALK2(w, r, yo, xo)                                                                        \
        SIMD INNER(r, j)                                                                           \
        {                                                                                          \
            REAL x = LD(xs, xo + j);                                                               \
            STORE(ys, yo + j, (Y));                                                                \
        }                                                                                          \
    }

#define GRADIENT_0(NAME, DX)
#define GRADIENT_1(NAME, DX)                                                                       \
    KERNEL7(K(NAME##_gradient), (OUT, STO, dxs), (IN, STO, xs), (IN, STO, ys), (IN, STO, dys),     \
            (ARG, tern_walk, w), (ARG, REAL, a), (ARG, REAL, b))                                   \
    {                                                                                              \
        BASE(dxs);                                                                                 \
        BASE(xs);                                                                                  \
        BASE(ys);                                                                                  \
        BASE(dys);                                                                                 \
        FLAT(r, w.rows, w.inner)                                                                   \
        {                                                                                          \
            WALK4(w, r, dxo, xo, yo, dyo)                                                          \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL x = LD(xs, xo + j), y = LD(ys, yo + j), dy = LD(dys, dyo + j);                \
                ST(dxs, dxo + j, (DX));                                                            \
            }                                                                                      \
        }                                                                                          \
    }

/* zs = f(xs, ys); a row whose x (y) stays the same keeps it in a register. */
#define BINARY_LOOPS_(STORE, Z)                                                                    \
    FLAT(r, w.rows, w.inner)                                                                       \
    {                                                                                              \
        WALK3(w, r, zo, xo, yo)                                                                    \
        if (w.form == TERN_WALK_UNIT) {                                                            \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL x = LD(xs, xo + j), y = LD(ys, yo + j);                                       \
                STORE(zs, zo + j, (Z));                                                            \
            }                                                                                      \
        } else if (w.form == TERN_WALK_FLAT_B) {                                                   \
            REAL y = LD(ys, yo);                                                                   \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL x = LD(xs, xo + j);                                                           \
                STORE(zs, zo + j, (Z));                                                            \
            }                                                                                      \
        } else {                                                                                   \
            REAL x = LD(xs, xo);                                                                   \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL y = LD(ys, yo + j);                                                           \
                STORE(zs, zo + j, (Z));                                                            \
            }                                                                                      \
        }                                                                                          \
    }
#define TWO_KERNELS_(NAME, T, STORE, Z)                                                            \
    KERNEL4(K(NAME), (OUT, T, zs), (IN, STO, xs), (IN, STO, ys), (ARG, tern_walk, w))              \
    {                                                                                              \
        BASE(zs);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(ys);                                                                                  \
        BINARY_LOOPS_(STORE, Z)                                                                    \
    }                                                                                              \
    KERNEL4(K(NAME##_scalar), (OUT, T, ys), (IN, STO, xs), (ARG, tern_walk, w), (ARG, REAL, y))    \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        UNARY_LOOP_(STORE, Z)                                                                      \
    }
#define BINARY_0(NAME, Z)
#define BINARY_1(NAME, Z) TWO_KERNELS_(NAME, STO, ST, Z)
#define COMPARE_0(NAME, Z)
#define COMPARE_1(NAME, Z) TWO_KERNELS_(NAME, u8, ST_bool, Z)

#define PREDICATE_0(NAME, Z)
#define PREDICATE_1(NAME, Z)                                                                       \
    KERNEL3(K(NAME), (OUT, u8, ys), (IN, STO, xs), (ARG, tern_walk, w))                            \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        UNARY_LOOP_(ST_bool, Z)                                                                    \
    }

#define TERNARY_0(NAME, V)
#define TERNARY_1(NAME, V)                                                                         \
    KERNEL6(K(NAME), (OUT, STO, vs), (IN, STO, xs), (IN, STO, ys), (IN, STO, zs),                  \
            (ARG, tern_walk, w), (ARG, REAL, a))                                                   \
    {                                                                                              \
        BASE(vs);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(ys);                                                                                  \
        BASE(zs);                                                                                  \
        FLAT(r, w.rows, w.inner)                                                                   \
        {                                                                                          \
            WALK4(w, r, vo, xo, yo, zo)                                                            \
            INNER(r, j)                                                                            \
            {                                                                                      \
                REAL x = LD(xs, xo + j * (idx)w.step[1]), y = LD(ys, yo + j * (idx)w.step[2]);     \
                REAL z = LD(zs, zo + j * (idx)w.step[3]);                                          \
                ST(vs, vo + j * (idx)w.step[0], (V));                                              \
            }                                                                                      \
        }                                                                                          \
    }

#define UNARY(NAME, TYPES, LOW, HIGH, Y, DX)                                                       \
    TERN_CAT(UNARY, TERN_CAT(TYPES, TERN_T))(NAME, Y)                                              \
    TERN_CAT(GRADIENT, TERN_CAT(FLOATS, TERN_T))(NAME, DX)
#define UNARY_REAL1  UNARY
#define UNARY_REAL2  UNARY
#define UNARY_SCALAR UNARY
#define BINARY(NAME, TYPES, LOW, HIGH, Z, DX, DY)                                                  \
    TERN_CAT(BINARY, TERN_CAT(TYPES, TERN_T))(NAME, Z)
#define TERNARY(NAME, TYPES, LOW, HIGH, V, DX, DY, DZ)                                             \
    TERN_CAT(TERNARY, TERN_CAT(TYPES, TERN_T))(NAME, V)
#define TERNARY_SCALAR TERNARY
#define COMPARE(NAME, TYPES, Z)   TERN_CAT(COMPARE, TERN_CAT(TYPES, TERN_T))(NAME, Z)
#define PREDICATE(NAME, TYPES, Z) TERN_CAT(PREDICATE, TERN_CAT(TYPES, TERN_T))(NAME, Z)
