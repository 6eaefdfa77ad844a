/* index_nonzero.cl -- finding the elements that are not zero. */

/* How many of each chunk of len elements are not zero. */
KERNEL5(K(nonzero_count), (OUT, i64, counts), (IN, STO, xs), (ARG, i64, n), (ARG, i64, chunks),
        (ARG, i64, len))
{
    BASE(counts);
    BASE(xs);
    ITEMS(c, chunks)
    {
        idx end = (c + 1) * (idx)len;
        end = end < (idx)n ? end : (idx)n;
        i64 count = 0;
        for (idx i = c * (idx)len; i < end; i++)
            count += LD(xs, i) != 0 ? 1 : 0;
        counts[c] = count;
    }
}

/* Their places, each chunk's from starts[chunk] on. */
KERNEL6(K(nonzero_places), (OUT, i64, ys), (IN, i64, starts), (IN, STO, xs), (ARG, i64, n),
        (ARG, i64, chunks), (ARG, i64, len))
{
    BASE(ys);
    BASE(starts);
    BASE(xs);
    ITEMS(c, chunks)
    {
        idx end = (c + 1) * (idx)len, at = (idx)starts[c];
        end = end < (idx)n ? end : (idx)n;
        for (idx i = c * (idx)len; i < end; i++)
            if (LD(xs, i) != 0)
                ys[at++] = i;
    }
}

#if IS_I64
/* In place: the sum of all before each element; the sum of all after the last one. A negative one
 * is a fault. */
KERNEL4(K(running_starts), (OUT, STO, ys), (OUT, i64, fault), (ARG, i64, n), (ARG, i32, code))
{
    BASE(ys);
    BASE(fault);
    ITEMS(one, 1)
    {
        i64 sum = 0;
        for (idx i = 0; i < (idx)n; i++) {
            i64 v = ys[i];
            if (v < 0)
                FAULT(fault, code, v, i);
            ys[i] = sum;
            sum += v < 0 ? 0 : v;
        }
        ys[n + one] = sum;
    }
}

/* ys[i][d] = coordinate d of the flat places, in a dim of `size` with `inner` elements after it. */
KERNEL7(K(coordinate), (OUT, STO, ys), (IN, STO, places), (ARG, i64, n), (ARG, i64, ndim),
        (ARG, i64, d), (ARG, i64, size), (ARG, i64, inner))
{
    BASE(ys);
    BASE(places);
    ITEMS(i, n)
    {
        ys[i * (idx)ndim + (idx)d] = places[i] / inner % size;
    }
}
#endif
