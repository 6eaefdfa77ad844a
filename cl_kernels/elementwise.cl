/* elementwise.cl -- the kernels of every row of elementwise.def: one loop over a tern_walk each.
 *
 * Tensors that are dense in their rows, as nearly all are, take a vector loop; others a plain one. */

#define UNARY_0(NAME, Y, DX)
#define UNARY_1(NAME, Y, DX)                                                                       \
    KERNEL5(K(NAME), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_walk, w), (ARG, REAL, a),           \
            (ARG, REAL, b))                                                                        \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        FLAT(r, w.rows, w.inner)                                                                   \
        {                                                                                          \
            WALK2(w, r, yo, xo)                                                                    \
            if (w.form == TERN_WALK_UNIT) {                                                        \
                SIMD INNER(r, j)                                                                   \
                {                                                                                  \
                    REAL x = LD(xs, xo + j);                                                       \
                    ST(ys, yo + j, (Y));                                                           \
                }                                                                                  \
            } else {                                                                               \
                INNER(r, j)                                                                        \
                {                                                                                  \
                    REAL x = LD(xs, xo + j * (idx)w.step[1]);                                      \
                    ST(ys, yo + j * (idx)w.step[0], (Y));                                          \
                }                                                                                  \
            }                                                                                      \
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
            if (w.form == TERN_WALK_UNIT) {                                                        \
                SIMD INNER(r, j)                                                                   \
                {                                                                                  \
                    REAL x = LD(xs, xo + j), y = LD(ys, yo + j), dy = LD(dys, dyo + j);            \
                    ST(dxs, dxo + j, (DX));                                                        \
                }                                                                                  \
            } else {                                                                               \
                INNER(r, j)                                                                        \
                {                                                                                  \
                    REAL x = LD(xs, xo + j * (idx)w.step[1]);                                      \
                    REAL y = LD(ys, yo + j * (idx)w.step[2]);                                      \
                    REAL dy = LD(dys, dyo + j * (idx)w.step[3]);                                   \
                    ST(dxs, dxo + j * (idx)w.step[0], (DX));                                       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* zs = f(xs, ys) into elements of type T; a row whose x (y) stays the same keeps it in a register. */
#define BINARY_LOOPS_(T, STORE, Z)                                                                 \
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
        } else if (w.form == TERN_WALK_FLAT_A) {                                                   \
            REAL x = LD(xs, xo);                                                                   \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL y = LD(ys, yo + j);                                                           \
                STORE(zs, zo + j, (Z));                                                            \
            }                                                                                      \
        } else {                                                                                   \
            INNER(r, j)                                                                            \
            {                                                                                      \
                REAL x = LD(xs, xo + j * (idx)w.step[1]), y = LD(ys, yo + j * (idx)w.step[2]);     \
                STORE(zs, zo + j * (idx)w.step[0], (Z));                                           \
            }                                                                                      \
        }                                                                                          \
    }
/* zs = f(xs, y). */
#define SCALAR_LOOPS_(T, STORE, Z)                                                                 \
    FLAT(r, w.rows, w.inner)                                                                       \
    {                                                                                              \
        WALK2(w, r, zo, xo)                                                                        \
        if (w.form == TERN_WALK_UNIT) {                                                            \
            SIMD INNER(r, j)                                                                       \
            {                                                                                      \
                REAL x = LD(xs, xo + j);                                                           \
                STORE(zs, zo + j, (Z));                                                            \
            }                                                                                      \
        } else {                                                                                   \
            INNER(r, j)                                                                            \
            {                                                                                      \
                REAL x = LD(xs, xo + j * (idx)w.step[1]);                                          \
                STORE(zs, zo + j * (idx)w.step[0], (Z));                                           \
            }                                                                                      \
        }                                                                                          \
    }

#define BINARY_0(NAME, Z)
#define BINARY_1(NAME, Z)                                                                          \
    KERNEL4(K(NAME), (OUT, STO, zs), (IN, STO, xs), (IN, STO, ys), (ARG, tern_walk, w))            \
    {                                                                                              \
        BASE(zs);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(ys);                                                                                  \
        BINARY_LOOPS_(STO, ST, Z)                                                                  \
    }                                                                                              \
    KERNEL4(K(NAME##_scalar), (OUT, STO, zs), (IN, STO, xs), (ARG, tern_walk, w), (ARG, REAL, y))  \
    {                                                                                              \
        BASE(zs);                                                                                  \
        BASE(xs);                                                                                  \
        SCALAR_LOOPS_(STO, ST, Z)                                                                  \
    }

#define COMPARE_0(NAME, Z)
#define COMPARE_1(NAME, Z)                                                                         \
    KERNEL4(K(NAME), (OUT, u8, zs), (IN, STO, xs), (IN, STO, ys), (ARG, tern_walk, w))             \
    {                                                                                              \
        BASE(zs);                                                                                  \
        BASE(xs);                                                                                  \
        BASE(ys);                                                                                  \
        BINARY_LOOPS_(u8, ST_bool, Z)                                                              \
    }                                                                                              \
    KERNEL4(K(NAME##_scalar), (OUT, u8, zs), (IN, STO, xs), (ARG, tern_walk, w), (ARG, REAL, y))   \
    {                                                                                              \
        BASE(zs);                                                                                  \
        BASE(xs);                                                                                  \
        SCALAR_LOOPS_(u8, ST_bool, Z)                                                              \
    }

#define PREDICATE_0(NAME, Z)
#define PREDICATE_1(NAME, Z)                                                                       \
    KERNEL3(K(NAME), (OUT, u8, zs), (IN, STO, xs), (ARG, tern_walk, w))                            \
    {                                                                                              \
        BASE(zs);                                                                                  \
        BASE(xs);                                                                                  \
        SCALAR_LOOPS_(u8, ST_bool, Z)                                                              \
    }

#define UNARY(NAME, TYPES, LOW, HIGH, Y, DX)                                                       \
    TERN_CAT(UNARY, TERN_CAT(TYPES, TERN_T))(NAME, Y, DX)                                          \
    TERN_CAT(GRADIENT, TERN_CAT(FLOATS, TERN_T))(NAME, DX)
#define UNARY_REAL1  UNARY
#define UNARY_REAL2  UNARY
#define UNARY_SCALAR UNARY
#define BINARY(NAME, TYPES, LOW, HIGH, Z, DX, DY)                                                  \
    TERN_CAT(BINARY, TERN_CAT(TYPES, TERN_T))(NAME, Z)
#define COMPARE(NAME, TYPES, Z)   TERN_CAT(COMPARE, TERN_CAT(TYPES, TERN_T))(NAME, Z)
#define PREDICATE(NAME, TYPES, Z) TERN_CAT(PREDICATE, TERN_CAT(TYPES, TERN_T))(NAME, Z)

#include "elementwise.def"

/* zs = cs ? xs : ys, with cs of bool. */
KERNEL5(K(where), (OUT, STO, zs), (IN, u8, cs), (IN, STO, xs), (IN, STO, ys), (ARG, tern_walk, w))
{
    BASE(zs);
    BASE(cs);
    BASE(xs);
    BASE(ys);
    FLAT(r, w.rows, w.inner)
    {
        WALK4(w, r, zo, co, xo, yo)
        if (w.form == TERN_WALK_UNIT) {
            SIMD INNER(r, j)
            {
                STO x = xs[xo + j], y = ys[yo + j];
                zs[zo + j] = cs[co + j] ? x : y;
            }
        } else {
            INNER(r, j)
            {
                STO x = xs[xo + j * (idx)w.step[2]], y = ys[yo + j * (idx)w.step[3]];
                zs[zo + j * (idx)w.step[0]] = cs[co + j * (idx)w.step[1]] ? x : y;
            }
        }
    }
}

#undef UNARY
#undef UNARY_REAL1
#undef UNARY_REAL2
#undef UNARY_SCALAR
#undef BINARY
#undef COMPARE
#undef PREDICATE
