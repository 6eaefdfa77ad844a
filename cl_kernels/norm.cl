/* norm.cl -- batch norm of x (n, channels, size), a group for each channel. Collectives stand outside of
 * branches: some compilers lose their way otherwise. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#if IS_FLOAT
#define WEIGHT  1
#define BIAS    2
#define RUNNING_MEAN     4 /* to be brought up to date */
#define RUNNING_VARIANCE 8
#define FIXED            16 /* mean and variance do not depend on x */
#define COUNTED          32 /* one batch more */

/* A channel's elements: n stretches of `size`. Where lanes are many they take all of it at once. */
#if TERN_CHUNKS
#define STRETCHES(k, row)                                                                          \
    for (idx k = 0, row = c * (idx)size; k < (idx)n; k++, row += (idx)(channels * size))
#define STRETCH(j)     LANES(j, size)
#define PLACE(row, j)  ((row) + (j))
#else
#define STRETCHES(k, row) for (idx k = 0, row = c * (idx)size; k < 1; k++)
#define STRETCH(j)        LANES(j, n *size)
#define PLACE(row, j)     ((row) + (j) + STRETCH_OF(j) * (idx)((channels - 1) * size))
/* GPUs divide 64 bits in some hundred instructions, 32 in twenty. */
#define STRETCH_OF(j) (narrow ? (idx)((u32)(j) / (u32)size) : (j) / (idx)size)
#endif

/* One of the running statistics goes on towards a new value. */
#define RUN(flag, running, value)                                                                  \
    if ((what & (flag)) != 0)                                                                      \
        running = (1 - momentum) * running + momentum * (value);

/* The first channel counts the batch. */
#define COUNT(c)                                                                                   \
    if ((what & COUNTED) != 0 && (c) == 0)                                                         \
        counts[0] += 1;

/* y = (x - mean) / sqrt(var + eps) w + b over each channel; mean and 1 / sqrt(...) are kept. */
KERNEL15(K(batch_norm), (OUT, STO, ys), (OUT, ACC, means), (OUT, ACC, rstds), (OUT, ACC, running_means),
         (OUT, ACC, running_variances), (OUT, i64, counts), (IN, STO, xs), (IN, ACC, ws), (IN, ACC, bs), (ARG, i64, n),
         (ARG, i64, channels), (ARG, i64, size), (ARG, REAL, eps), (ARG, REAL, momentum),
         (ARG, i32, what))
{
    BASE(ys);
    BASE(means);
    BASE(rstds);
    BASE(running_means);
    BASE(running_variances);
    BASE(counts);
    BASE(xs);
    BASE(ws);
    BASE(bs);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    const i32 narrow = n * size < 0x7fffffff;
    GROUPS(c, channels)
    {
        ACC mean = 0, squares = 0;
        STRETCHES(k, row)
        {
            ACC s = 0;
            SIMD_SUM(s) STRETCH(j)
            {
                s += LD(xs, PLACE(row, j));
            }
            mean += s;
        }
        mean = GROUP_SUM(mean, scratch) / (ACC)(n * size);
        STRETCHES(k, row)
        {
            ACC s = 0;
            SIMD_SUM(s) STRETCH(j)
            {
                ACC d = LD(xs, PLACE(row, j)) - mean;
                s += d * d;
            }
            squares += s;
        }
        squares = GROUP_SUM(squares, scratch);
        ACC rstd = 1 / sqrt(squares / (ACC)(n * size) + eps);
        ACC w = (what & WEIGHT) != 0 ? ws[c] * rstd : rstd, b = (what & BIAS) != 0 ? bs[c] : 0;
        if (LID == 0) {
            means[c] = mean;
            rstds[c] = rstd;
            RUN(RUNNING_MEAN, running_means[c], mean)
            RUN(RUNNING_VARIANCE, running_variances[c], squares / (ACC)(n * size - 1))
            COUNT(c)
        }
        STRETCHES(k, row)
        {
            SIMD STRETCH(j)
            {
                ST(ys, PLACE(row, j), (LD(xs, PLACE(row, j)) - mean) * w + b);
            }
        }
    }
}

/* With h = (x - mean) rstd: dw = sum dy h, db = sum dy, and
 * dx = w rstd (dy - db / m - h dw / m), m elements a channel; FIXED: dx = w rstd dy. */
KERNEL12(K(batch_norm_gradient), (OUT, STO, dxs), (OUT, ACC, dws), (OUT, ACC, dbs), (IN, STO, dys),
         (IN, STO, xs), (IN, ACC, ws), (IN, ACC, means), (IN, ACC, rstds), (ARG, i64, n),
         (ARG, i64, channels), (ARG, i64, size), (ARG, i32, what))
{
    BASE(dxs);
    BASE(dws);
    BASE(dbs);
    BASE(dys);
    BASE(xs);
    BASE(ws);
    BASE(means);
    BASE(rstds);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    const i32 narrow = n * size < 0x7fffffff;
    GROUPS(c, channels)
    {
        ACC mean = means[c], rstd = rstds[c], dw = 0, db = 0;
        STRETCHES(k, row)
        {
            ACC s = 0, t = 0;
            SIMD_SUM2(s, t) STRETCH(j)
            {
                ACC dy = LD(dys, PLACE(row, j));
                s += dy;
                t += dy * (LD(xs, PLACE(row, j)) - mean);
            }
            db += s;
            dw += t;
        }
        db = GROUP_SUM(db, scratch);
        dw = GROUP_SUM(dw, scratch) * rstd;
        if (LID == 0) {
            dws[c] = dw;
            dbs[c] = db;
        }
        ACC w = (what & WEIGHT) != 0 ? ws[c] * rstd : rstd;
        ACC share = db / (ACC)(n * size), slope = rstd * dw / (ACC)(n * size);
        if ((what & FIXED) != 0)
            share = slope = 0;
        STRETCHES(k, row)
        {
            SIMD STRETCH(j)
            {
                ACC d = LD(xs, PLACE(row, j)) - mean;
                ST(dxs, PLACE(row, j), w * (LD(dys, PLACE(row, j)) - share - d * slope));
            }
        }
    }
}

/* The same two where size is 1: groups take tiles of the channels, which lie side by side. */
#define TILE 64
KERNEL15(K(batch_norm_flat), (OUT, STO, ys), (OUT, ACC, means), (OUT, ACC, rstds),
         (OUT, ACC, running_means), (OUT, ACC, running_variances), (OUT, i64, counts), (IN, STO, xs), (IN, ACC, ws),
         (IN, ACC, bs), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size), (ARG, REAL, eps),
         (ARG, REAL, momentum), (ARG, i32, what))
{
    BASE(ys);
    BASE(means);
    BASE(rstds);
    BASE(running_means);
    BASE(running_variances);
    BASE(counts);
    BASE(xs);
    BASE(ws);
    BASE(bs);
    LOCAL_ARRAY(ACC, mean, TILE);
    LOCAL_ARRAY(ACC, w, TILE);
    GROUPS(g, (channels + TILE - 1) / TILE)
    {
        idx left = g * TILE, width = (idx)channels - left;
        width = width < TILE ? width : TILE;
        SIMD LANES(j, width)
        {
            mean[j] = 0;
            w[j] = 0;
        }
        for (idx k = 0; k < (idx)n; k++) {
            SIMD LANES(j, width)
            {
                mean[j] += LD(xs, k * (idx)channels + left + j);
            }
        }
        SIMD LANES(j, width)
        {
            mean[j] = mean[j] / (ACC)n;
        }
        for (idx k = 0; k < (idx)n; k++) {
            SIMD LANES(j, width)
            {
                ACC d = LD(xs, k * (idx)channels + left + j) - mean[j];
                w[j] += d * d;
            }
        }
        LANES(j, width)
        {
            idx c = left + j;
            ACC squares = w[j], rstd = 1 / sqrt(squares / (ACC)n + eps);
            means[c] = mean[j];
            rstds[c] = rstd;
            RUN(RUNNING_MEAN, running_means[c], mean[j])
            RUN(RUNNING_VARIANCE, running_variances[c], squares / (ACC)(n - 1))
            COUNT(c)
            w[j] = (what & WEIGHT) != 0 ? ws[c] * rstd : rstd;
        }
        for (idx k = 0; k < (idx)n; k++) {
            idx row = k * (idx)channels + left;
            if ((what & BIAS) != 0) {
                SIMD LANES(j, width)
                {
                    ST(ys, row + j, (LD(xs, row + j) - mean[j]) * w[j] + bs[left + j]);
                }
            } else {
                SIMD LANES(j, width)
                {
                    ST(ys, row + j, (LD(xs, row + j) - mean[j]) * w[j]);
                }
            }
        }
    }
}

KERNEL12(K(batch_norm_flat_gradient), (OUT, STO, dxs), (OUT, ACC, dws), (OUT, ACC, dbs),
         (IN, STO, dys), (IN, STO, xs), (IN, ACC, ws), (IN, ACC, means), (IN, ACC, rstds), (ARG, i64, n),
         (ARG, i64, channels), (ARG, i64, size), (ARG, i32, what))
{
    BASE(dxs);
    BASE(dws);
    BASE(dbs);
    BASE(dys);
    BASE(xs);
    BASE(ws);
    BASE(means);
    BASE(rstds);
    LOCAL_ARRAY(ACC, share, TILE);
    LOCAL_ARRAY(ACC, slope, TILE);
    LOCAL_ARRAY(ACC, mean, TILE);
    LOCAL_ARRAY(ACC, w, TILE);
    GROUPS(g, (channels + TILE - 1) / TILE)
    {
        idx left = g * TILE, width = (idx)channels - left;
        width = width < TILE ? width : TILE;
        SIMD LANES(j, width)
        {
            share[j] = 0;
            slope[j] = 0;
            mean[j] = means[left + j];
        }
        for (idx k = 0; k < (idx)n; k++) {
            idx row = k * (idx)channels + left;
            SIMD LANES(j, width)
            {
                ACC dy = LD(dys, row + j);
                share[j] += dy;
                slope[j] += dy * (LD(xs, row + j) - mean[j]);
            }
        }
        LANES(j, width)
        {
            idx c = left + j;
            ACC rstd = rstds[c], dw = slope[j] * rstd, db = share[j];
            dws[c] = dw;
            dbs[c] = db;
            share[j] = (what & FIXED) != 0 ? 0 : db / (ACC)n;
            slope[j] = (what & FIXED) != 0 ? 0 : rstd * dw / (ACC)n;
            w[j] = (what & WEIGHT) != 0 ? ws[c] * rstd : rstd;
        }
        for (idx k = 0; k < (idx)n; k++) {
            idx row = k * (idx)channels + left;
            SIMD LANES(j, width)
            {
                ACC d = LD(xs, row + j) - mean[j];
                ST(dxs, row + j, w[j] * (LD(dys, row + j) - share[j] - d * slope[j]));
            }
        }
    }
}

/* y by given statistics. They are kept for the way back, as above. */
KERNEL13(K(batch_norm_fixed), (OUT, STO, ys), (OUT, ACC, means), (OUT, ACC, rstds),
         (IN, ACC, running_means), (IN, ACC, running_variances), (IN, STO, xs), (IN, ACC, ws),
         (IN, ACC, bs), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size), (ARG, REAL, eps),
         (ARG, i32, what))
{
    BASE(ys);
    BASE(means);
    BASE(rstds);
    BASE(running_means);
    BASE(running_variances);
    BASE(xs);
    BASE(ws);
    BASE(bs);
    ITEMS(c, channels)
    {
        means[c] = running_means[c];
        rstds[c] = 1 / sqrt(running_variances[c] + eps);
    }
    if (size == 1) {
        FLAT(r, n, channels)
        {
            INNER(r, c)
            {
                ACC w = (what & WEIGHT) != 0 ? ws[c] : 1, b = (what & BIAS) != 0 ? bs[c] : 0;
                w = w / sqrt(running_variances[c] + eps);
                ST(ys, r * (idx)channels + c, (LD(xs, r * (idx)channels + c) - running_means[c]) * w + b);
            }
        }
    } else {
        FLAT(r, n *channels, size)
        {
            idx c = r % (idx)channels, row = r * (idx)size;
            ACC w = (what & WEIGHT) != 0 ? ws[c] : 1, b = (what & BIAS) != 0 ? bs[c] : 0;
            ACC mean = running_means[c];
            w = w / sqrt(running_variances[c] + eps);
            SIMD INNER(r, j)
            {
                ST(ys, row + j, (LD(xs, row + j) - mean) * w + b);
            }
        }
    }
}
#undef WEIGHT
#undef BIAS
#undef RUNNING_MEAN
#undef RUNNING_VARIANCE
#undef FIXED
#undef COUNTED
#undef COUNT
#undef STRETCHES
#undef STRETCH
#undef PLACE
#undef RUN
#undef TILE
#endif
