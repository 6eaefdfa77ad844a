/* linalg.cl -- triangular and general systems of equations, a matrix of a stack at a time: matrices
 * are dense (batch, n, n), right-hand sides (batch, n, k). */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#if IS_FLOAT && !IS_HALF

/* ls = the lower factor of as = L L^T (upper != 0: of the upper triangle's transpose); of what is
 * not positive definite: a fault with the order of the leading minor and the matrix's place. One
 * column after the other: each row of it is a lane's. */
KERNEL7(K(cholesky), (OUT, STO, ls), (IN, STO, as), (OUT, i64, fault), (ARG, i64, batch),
        (ARG, i64, n), (ARG, i32, upper), (ARG, i32, code))
{
    BASE(ls);
    BASE(as);
    BASE(fault);
    idx row = upper != 0 ? 1 : (idx)n, column = upper != 0 ? (idx)n : 1;
    GROUPS(g, batch)
    {
        idx at = g * (idx)(n * n), reported = 0;
        LANES(q, n * n)
        {
            ls[at + q] = 0;
        }
        BARRIER();
        for (idx k = 0; k < (idx)n; k++) {
            REAL pivot = as[at + k * row + k * column], root = 1;
            for (idx j = 0; j < k; j++)
                pivot -= ls[at + k * (idx)n + j] * ls[at + k * (idx)n + j];
            if (pivot > 0)
                root = sqrt(pivot);
            else if (LID == 0 && reported++ == 0)
                FAULT(fault, code, k + 1, g);
            LANES(r, n - k)
            {
                idx i = k + r;
                REAL v = as[at + i * row + k * column];
                for (idx j = 0; j < k; j++)
                    v -= ls[at + i * (idx)n + j] * ls[at + k * (idx)n + j];
                ls[at + i * (idx)n + k] = r == 0 ? root : v / root;
            }
            BARRIER();
        }
    }
}

/* xs = A^-1 xs in place, element (i, j) of A at i row + j column; what: 1 upper, 2 ones on the
 * diagonal. Each column of xs is a lane's. */
KERNEL8(K(solve_triangular), (OUT, STO, xs), (IN, STO, as), (ARG, i64, batch), (ARG, i64, n),
        (ARG, i64, k), (ARG, i64, row), (ARG, i64, column), (ARG, i32, what))
{
    BASE(xs);
    BASE(as);
    FLAT(b, batch, k)
    {
        idx a0 = b * (idx)(n * n), x0 = b * (idx)(n * k);
        for (idx s = 0; s < (idx)n; s++) {
            idx i = (what & 1) != 0 ? (idx)n - 1 - s : s;
            for (idx t = 0; t < s; t++) {
                idx j = (what & 1) != 0 ? (idx)n - 1 - t : t;
                REAL a = as[a0 + i * (idx)row + j * (idx)column];
                INNER(b, c)
                {
                    xs[x0 + i * (idx)k + c] -= a * xs[x0 + j * (idx)k + c];
                }
            }
            if ((what & 2) == 0) {
                REAL a = as[a0 + i * (idx)row + i * (idx)column];
                INNER(b, c)
                {
                    xs[x0 + i * (idx)k + c] /= a;
                }
            }
        }
    }
}

/* as = its L and U (Gauss, largest pivots of a column), pivots: which row each row changed places
 * with. Where code is not 0, a pivot of 0 is a fault with its order and the matrix's place. */
KERNEL6(K(lu_factor), (OUT, STO, as), (OUT, i64, pivots), (OUT, i64, fault), (ARG, i64, batch),
        (ARG, i64, n), (ARG, i32, code))
{
    BASE(as);
    BASE(pivots);
    BASE(fault);
    GROUPS(g, batch)
    {
        idx at = g * (idx)(n * n), reported = 0;
        for (idx k = 0; k < (idx)n; k++) {
            idx best = k;
            REAL largest = -1;
            for (idx i = k; i < (idx)n; i++) {
                REAL v = as[at + i * (idx)n + k];
                v = v < 0 ? -v : v;
                best = v > largest ? i : best;
                largest = v > largest ? v : largest;
            }
            BARRIER();
            LANES(j, n)
            {
                REAL v = as[at + k * (idx)n + j];
                as[at + k * (idx)n + j] = as[at + best * (idx)n + j];
                as[at + best * (idx)n + j] = v;
            }
            if (LID == 0) {
                pivots[g * (idx)n + k] = best;
                if (code != 0 && !(largest > 0) && reported++ == 0)
                    FAULT(fault, code, k + 1, g);
            }
            BARRIER();
            REAL pivot = as[at + k * (idx)n + k];
            LANES(r, n - k - 1)
            {
                idx i = k + 1 + r;
                REAL f = pivot != 0 ? as[at + i * (idx)n + k] / pivot : 0;
                as[at + i * (idx)n + k] = f;
                for (idx j = k + 1; j < (idx)n; j++)
                    as[at + i * (idx)n + j] -= f * as[at + k * (idx)n + j];
            }
            BARRIER();
        }
    }
}

/* xs' rows in the order that pivots made. */
KERNEL5(K(lu_permute), (OUT, STO, xs), (IN, i64, pivots), (ARG, i64, batch), (ARG, i64, n),
        (ARG, i64, k))
{
    BASE(xs);
    BASE(pivots);
    FLAT(b, batch, k)
    {
        for (idx i = 0; i < (idx)n; i++) {
            idx x0 = (b * (idx)n + i) * (idx)k, x1 = (b * (idx)n +
                (idx)pivots[b * (idx)n + i]) * (idx)k;
            INNER(b, c)
            {
                REAL v = xs[x0 + c];
                xs[x0 + c] = xs[x1 + c];
                xs[x1 + c] = v;
            }
        }
    }
}

/* ys = the product of the pivots, with the sign that changing rows gave. */
KERNEL5(K(lu_det), (OUT, STO, ys), (IN, STO, as), (IN, i64, pivots), (ARG, i64, batch),
        (ARG, i64, n))
{
    BASE(ys);
    BASE(as);
    BASE(pivots);
    ITEMS(b, batch)
    {
        REAL y = 1;
        for (idx i = 0; i < (idx)n; i++) {
            REAL a = as[(b * (idx)n + i) * (idx)n + i];
            y *= pivots[b * (idx)n + i] != i ? -a : a;
        }
        ys[b] = y;
    }
}
#endif
