/* index.cl -- picking rows and elements by index tensors, and adding gradients back to where they
 * came from. index is int64. An index out of range picks 0 and records the fault `code`. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "index_check.h"

#if IS_MOVER
/* ys[o][i][k] = xs[o][index[i]][k]: (outer, count, inner) from (outer, size, inner) */
KERNEL10(K(index_select), (OUT, STO, ys), (IN, STO, xs), (IN, i64, index), (OUT, i64, fault),
         (ARG, i64, outer), (ARG, i64, count), (ARG, i64, inner), (ARG, i64, size),
         (ARG, i32, wrap),
         (ARG, i32, code))
{
    BASE(ys);
    BASE(xs);
    BASE(index);
    BASE(fault);
    BESIDE(index_select)
    FLAT(r, outer *count, inner)
    {
        idx o = r / (idx)count, from = tern_checked(index[r - o * (idx)count], size, wrap, code,
            fault);
        if (from >= 0) {
            idx x0 = (o * (idx)size + from) * (idx)inner, y0 = r * (idx)inner;
            SIMD INNER(r, k)
            {
                ys[y0 + k] = xs[x0 + k];
            }
        } else {
            INNER(r, k)
            {
                ys[r * (idx)inner + k] = 0;
            }
        }
    }
}

/* ys[o][i][k] = xs[o][index[o][i][k]][k] */
KERNEL9(K(gather), (OUT, STO, ys), (IN, STO, xs), (IN, i64, index), (OUT, i64, fault),
        (ARG, i64, outer), (ARG, i64, count), (ARG, i64, inner), (ARG, i64, size), (ARG, i32, code))
{
    BASE(ys);
    BASE(xs);
    BASE(index);
    BASE(fault);
    FLAT(r, outer *count, inner)
    {
        idx o = r / (idx)count;
        INNER(r, k)
        {
            idx from = tern_checked(index[r * (idx)inner + k], size, 0, code, fault);
            STO none = 0;
            ys[r * (idx)inner + k] = from < 0 ? none : xs[(o * (idx)size + from) * (idx)inner + k];
        }
    }
}
#endif

/* The way back: dxs, which is zero before, gets the sum of dys where index points (again out of
 * range: nothing; the index `skip` too). each: index has an entry for every element, not for every
 * i. Where threads own chunks, and where it is asked for (ordered), the columns are shared out, so
 * that sums are in the order of i; elsewhere they are atomic. */
#if IS_FLOAT
#define ADD_f32 tern_atomic_add_f32
#define ADD_f64 tern_atomic_add_f64
#if TERN_CHUNKS || (IS_WIDE && defined(TERN_ATOMIC64) && !TERN_ATOMIC64)
#define SCATTER_ATOMIC_ 0
#else
#define SCATTER_ATOMIC_ 1
#endif
KERNEL11(K(scatter_add), (OUT, ACC, dxs), (IN, STO, dys), (IN, i64, index), (ARG, i64, outer),
         (ARG, i64, count), (ARG, i64, inner), (ARG, i64, size), (ARG, i32, wrap), (ARG, i32, each),
         (ARG, i64, skip), (ARG, i32, ordered))
{
    BASE(dxs);
    BASE(dys);
    BASE(index);
    BESIDE(scatter_add)
#if SCATTER_ATOMIC_
    if (ordered == 0) {
        FLAT(r, outer *count, inner)
        {
            idx o = r / (idx)count;
            INNER(r, k)
            {
                i64 to = index[each != 0 ? r * (idx)inner + k : r - o * (idx)count];
                to = to < 0 && wrap != 0 ? to + size : to;
                if (to >= 0 && to < size && to != skip)
                    TERN_CAT(ADD, ACC)
                    (dxs + (o * (idx)size + (idx)to) * (idx)inner + k, LD(dys, r * (idx)inner + k));
            }
        }
        return;
    }
#endif
    FLAT(o, outer, inner)
    {
        for (idx i = 0; i < (idx)count; i++) {
            idx r = o * (idx)count + i, y0 = r * (idx)inner;
            if (each != 0) {
                INNER(o, k)
                {
                    i64 to = index[y0 + k];
                    if (to >= 0 && to < size)
                        dxs[(o * (idx)size + (idx)to) * (idx)inner + k] += LD(dys, y0 + k);
                }
            } else {
                i64 to = index[i];
                to = to < 0 && wrap != 0 ? to + size : to;
                if (to >= 0 && to < size && to != skip) {
                    idx x0 = (o * (idx)size + (idx)to) * (idx)inner;
                    SIMD INNER(o, k)
                    {
                        dxs[x0 + k] += LD(dys, y0 + k);
                    }
                }
            }
        }
    }
}
#undef SCATTER_ATOMIC_
#endif
