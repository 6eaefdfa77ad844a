/* index_scatter.cl -- writing to where index tensors point. index is int64; an index out of range
 * writes nothing and records the fault `code`. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "index_check.h"

/* What becomes of old when v arrives. NaN stays. */
INLINE REAL K(tern_scattered)(REAL old, REAL v, i32 mode)
{
    REAL larger = v > old || v != v ? v : old, smaller = v < old || v != v ? v : old;
    if (mode == TERN_SCATTER_ADD)
        return old + v;
    if (mode == TERN_SCATTER_MULTIPLY)
        return old * v;
    if (mode == TERN_SCATTER_MAX)
        return old != old ? old : larger;
    if (mode == TERN_SCATTER_MIN)
        return old != old ? old : smaller;
    return v;
}

#define ADD_f32 tern_atomic_add_f32
#define ADD_f64 tern_atomic_add_f64
#if !TERN_CHUNKS && (!IS_WIDE || !defined(TERN_ATOMIC64) || TERN_ATOMIC64) && IS_FLOAT && !IS_HALF
#define SCATTER_ATOMIC_ 1
#else
#define SCATTER_ATOMIC_ 0
#endif

/* ys[.., index[.., i, ..], ..] = (or +=, *= and so on) xs[.., i, ..]: the index goes over all dims
 * but the one that index points along. In order, a lane does all i of its place, so that every run
 * makes the same; else each element set or added is for itself: the last one wins, sums are
 * atomic. */
KERNEL5(K(scatter), (OUT, STO, ys), (IN, STO, xs), (IN, i64, index), (OUT, i64, fault),
        (ARG, tern_scatter_shape, s))
{
    BASE(ys);
    BASE(xs);
    BASE(index);
    BASE(fault);
#if !TERN_CHUNKS
    if (s.ordered == 0 &&
        (s.mode == TERN_SCATTER_SET || (SCATTER_ATOMIC_ && s.mode == TERN_SCATTER_ADD))) {
        FLAT(r, s.nd.rows *s.count, s.nd.inner)
        {
            idx q = r / (idx)s.count, i = r - q * (idx)s.count;
            ND_INDEX3(s.nd, q, y0, x0, i0)
            INNER(r, j)
            {
                idx to = tern_checked(index[i0 + j * (idx)s.nd.step[2] + i * (idx)s.step[2]],
                                      s.size, s.wrap, s.code, fault);
                idx from = x0 + j * (idx)s.nd.step[1] + i * (idx)s.step[1];
                idx at = y0 + j * (idx)s.nd.step[0] + to * (idx)s.step[0];
                if (to >= 0 && s.mode == TERN_SCATTER_SET)
                    ys[at] = xs[from];
#if SCATTER_ATOMIC_
                if (to >= 0 && s.mode == TERN_SCATTER_ADD)
                    TERN_CAT(ADD, TERN_T)(ys + at, LD(xs, from));
#endif
            }
        }
        return;
    }
#endif
    FLAT(r, s.nd.rows, s.nd.inner)
    {
        ND_INDEX3(s.nd, r, y0, x0, i0)
        for (idx i = 0; i < (idx)s.count; i++) {
            INNER(r, j)
            {
                idx to = tern_checked(index[i0 + j * (idx)s.nd.step[2] + i * (idx)s.step[2]],
                                      s.size, s.wrap, s.code, fault);
                idx at = y0 + j * (idx)s.nd.step[0] + to * (idx)s.step[0];
                idx from = x0 + j * (idx)s.nd.step[1] + i * (idx)s.step[1];
                if (to >= 0 && s.mode == TERN_SCATTER_SET)
                    ys[at] = xs[from];
                if (to >= 0 && s.mode != TERN_SCATTER_SET)
                    ST(ys, at, K(tern_scattered)(LD(ys, at), LD(xs, from), s.mode));
            }
        }
    }
}
#undef SCATTER_ATOMIC_

#if !IS_FLOAT
/* Whether a divisor is 0. */
KERNEL4(K(divisors), (IN, STO, ys), (OUT, i64, fault), (ARG, i64, n), (ARG, i32, code))
{
    BASE(ys);
    BASE(fault);
    ITEMS(i, n)
    {
        if (LD(ys, i) == 0)
            FAULT(fault, code, i, n);
    }
}
#endif

#if IS_I64
/* ys = ys size + index, for one more dim of an index of several tensors. */
KERNEL6(K(linear_index), (OUT, STO, ys), (IN, STO, index), (OUT, i64, fault),
        (ARG, tern_nd_index, w), (ARG, i64, size), (ARG, i32, code))
{
    BASE(ys);
    BASE(index);
    BASE(fault);
    FLAT(r, w.rows, w.inner)
    {
        ND_INDEX2(w, r, y0, i0)
        INNER(r, j)
        {
            idx at = tern_checked(index[i0 + j * (idx)w.step[1]], size, 1, code, fault);
            idx y = y0 + j * (idx)w.step[0];
            ys[y] = ys[y] * size + (at < 0 ? 0 : at);
        }
    }
}
#endif
