/* matmul.cl -- matrix products for any strides: what a device does that has nothing better.
 *
 * C = alpha A B + beta C (+ bias, one number a column); beta 0 does not read C. Sums are in REAL.
 * One work-group makes a tile of C; the tile's sums live in local memory, so that any group size
 * will do. Launch: GROUPS over g.count[0] * g.count[1] * tiles down * tiles across, TERN_GEMM_TILE
 * each. */
#if IS_FLOAT
KERNEL7(K(gemm), (OUT, STO, cs), (IN, STO, as), (IN, STO, bs), (IN, STO, biases),
        (ARG, tern_gemm_shape, g), (ARG, REAL, alpha), (ARG, REAL, beta))
{
    BASE(cs);
    BASE(as);
    BASE(bs);
    BASE(biases);
    LOCAL_ARRAY(REAL, ta, TERN_GEMM_TILE * TERN_GEMM_DEPTH);
    LOCAL_ARRAY(REAL, tb, TERN_GEMM_DEPTH * TERN_GEMM_TILE);
    LOCAL_ARRAY(REAL, tc, TERN_GEMM_TILE * TERN_GEMM_TILE);
    const idx tile = TERN_GEMM_TILE, depth = TERN_GEMM_DEPTH, half_tile = TERN_GEMM_TILE / 2;
    const idx m = (idx)g.m, n = (idx)g.n, k = (idx)g.k;
    const idx down = (m + tile - 1) / tile, across = (n + tile - 1) / tile;
    GROUPS(u, g.count[0] * g.count[1] * down * across)
    {
        idx j0 = u % across * tile, i0 = u / across % down * tile, batch = u / across / down;
        idx b0 = batch / (idx)g.count[1], b1 = batch % (idx)g.count[1];
        idx a_at = b0 * (idx)g.a.batch[0] + b1 * (idx)g.a.batch[1];
        idx b_at = b0 * (idx)g.b.batch[0] + b1 * (idx)g.b.batch[1];
        idx c_at = b0 * (idx)g.c.batch[0] + b1 * (idx)g.c.batch[1];
        LANES(q, tile * tile)
        {
            tc[q] = 0;
        }
        for (idx p0 = 0; p0 < k; p0 += depth) {
            BARRIER();
            LANES(q, tile * depth)
            {
                /* Neighbouring lanes read neighbours in memory. */
                idx i = g.a.col == 1 ? q / depth : q % tile,
                    p = g.a.col == 1 ? q % depth : q / tile;
                idx at = a_at + (i0 + i) * (idx)g.a.row + (p0 + p) * (idx)g.a.col;
                ta[i * depth + p] = i0 + i < m && p0 + p < k ? LD(as, at) : 0;
            }
            LANES(q, depth * tile)
            {
                idx j = g.b.col == 1 ? q % tile : q / depth,
                    p = g.b.col == 1 ? q / tile : q % depth;
                idx at = b_at + (p0 + p) * (idx)g.b.row + (j0 + j) * (idx)g.b.col;
                tb[p * tile + j] = p0 + p < k && j0 + j < n ? LD(bs, at) : 0;
            }
            BARRIER();
            LANES(q, half_tile * half_tile) /* squares of four sums */
            {
                idx i = q / half_tile, j = q % half_tile;
                idx upper = i * tile + j, lower = upper + half_tile * tile;
                REAL s00 = tc[upper], s01 = tc[upper + half_tile];
                REAL s10 = tc[lower], s11 = tc[lower + half_tile];
                for (idx p = 0; p < depth; p++) {
                    REAL x0 = ta[i * depth + p], x1 = ta[(i + half_tile) * depth + p];
                    REAL y0 = tb[p * tile + j], y1 = tb[p * tile + j + half_tile];
                    s00 += x0 * y0;
                    s01 += x0 * y1;
                    s10 += x1 * y0;
                    s11 += x1 * y1;
                }
                tc[upper] = s00;
                tc[upper + half_tile] = s01;
                tc[lower] = s10;
                tc[lower + half_tile] = s11;
            }
        }
        BARRIER();
        LANES(q, tile * tile)
        {
            idx i = i0 + q / tile, j = j0 + q % tile;
            if (i < m && j < n) {
                idx at = c_at + i * (idx)g.c.row + j * (idx)g.c.col;
                REAL v = alpha * tc[q];
                if (g.has_bias)
                    v += LD(biases, j);
                if (beta != 0)
                    v += beta * LD(cs, at);
                ST(cs, at, v);
            }
        }
        BARRIER();
    }
}

/* C = beta C + bias, before a product that adds to C and takes no bias; beta 0 does not read C. */
KERNEL4(K(gemm_bias), (OUT, STO, cs), (IN, STO, biases), (ARG, tern_gemm_shape, g),
        (ARG, REAL, beta))
{
    BASE(cs);
    BASE(biases);
    const idx m = (idx)g.m, n = (idx)g.n;
    FLAT(r, g.count[0] * g.count[1] * m, n)
    {
        idx batch = r / m, b0 = batch / (idx)g.count[1], b1 = batch % (idx)g.count[1];
        idx at = b0 * (idx)g.c.batch[0] + b1 * (idx)g.c.batch[1] + r % m * (idx)g.c.row;
        INNER(r, j)
        {
            REAL v = LD(biases, j);
            if (beta != 0)
                v += beta * LD(cs, at + j);
            ST(cs, at + j, v);
        }
    }
}

/* Both gradients of a small y = x W^T + b: dW = dy^T x (outs, ins), db = the sum of dy's rows. */
KERNEL7(K(linear_gradient), (OUT, STO, dws), (OUT, STO, dbs), (IN, STO, dys), (IN, STO, xs),
        (ARG, i64, rows), (ARG, i64, outs), (ARG, i64, ins))
{
    BASE(dws);
    BASE(dbs);
    BASE(dys);
    BASE(xs);
    LOCAL_ARRAY(REAL, sums, TERN_LINEAR_TILE);
    const idx tile = TERN_LINEAR_TILE, m = (idx)outs, n = (idx)ins, across = (n + tile - 1) / tile;
    GROUPS(u, m * across)
    {
        idx i = u / across, j0 = u % across * tile, cols = n - j0 < tile ? n - j0 : tile;
        REAL sum = 0;
        LANES(j, cols)
        {
            sums[j] = 0; /* each lane has its own */
        }
        idx r = 0;
#if !(TERN_HOST && IS_HALF) /* of halves on the host smaller code is worth more */
        for (; r + 4 <= (idx)rows; r += 4) { /* four rows that do not wait for each other */
            const REAL d0 = LD(dys, r * m + i), d1 = LD(dys, (r + 1) * m + i),
                       d2 = LD(dys, (r + 2) * m + i), d3 = LD(dys, (r + 3) * m + i);
            sum += (d0 + d1) + (d2 + d3);
            SIMD LANES(j, cols)
            {
                const idx at = r * n + j0 + j;
                sums[j] += (d0 * LD(xs, at) + d1 * LD(xs, at + n)) +
                           (d2 * LD(xs, at + 2 * n) + d3 * LD(xs, at + 3 * n));
            }
        }
#endif
        for (; r < (idx)rows; r++) {
            REAL dy = LD(dys, r * m + i);
            sum += dy;
            SIMD LANES(j, cols)
            {
                sums[j] += dy * LD(xs, r * n + j0 + j);
            }
        }
        LANES(j, cols)
        {
            ST(dws, i * n + j0 + j, sums[j]);
        }
        if (j0 == 0 && LID == 0)
            ST(dbs, i, sum);
    }
}
#endif

#if !IS_FLOAT
/* C = alpha A B, plus bias, a number a column; of integers, modulo what they hold. */
KERNEL6(K(integer_gemm), (OUT, STO, cs), (IN, STO, as), (IN, STO, bs), (IN, STO, biases),
        (ARG, tern_gemm_shape, g), (ARG, i64, alpha))
{
    BASE(cs);
    BASE(as);
    BASE(bs);
    BASE(biases);
    FLAT(r, g.count[0] * g.count[1] * g.m, g.n)
    {
        idx i = r % (idx)g.m, batch = r / (idx)g.m;
        idx b0 = batch / (idx)g.count[1], b1 = batch % (idx)g.count[1];
        idx a_at = b0 * (idx)g.a.batch[0] + b1 * (idx)g.a.batch[1] + i * (idx)g.a.row;
        idx b_at = b0 * (idx)g.b.batch[0] + b1 * (idx)g.b.batch[1];
        idx c_at = b0 * (idx)g.c.batch[0] + b1 * (idx)g.c.batch[1] + i * (idx)g.c.row;
        INNER(r, j)
        {
            u64 sum = 0;
            for (idx p = 0; p < (idx)g.k; p++)
                sum += (u64)LD(as, a_at + p * (idx)g.a.col) *
                       (u64)LD(bs, b_at + p * (idx)g.b.row + j * (idx)g.b.col);
            sum *= (u64)alpha;
            if (g.has_bias != 0)
                sum += (u64)LD(biases, j);
            ST(cs, c_at + j * (idx)g.c.col, (i64)sum);
        }
    }
}
#endif
