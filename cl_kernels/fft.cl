/* fft.cl -- discrete Fourier transforms of rows of complex numbers, pairs (real, imaginary), by
 * their factors. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#if IS_FLOAT && !IS_HALF

/* The k-th of n parts of the circle, (cos, sin) of 2 pi k / n: the angle is brought to an eighth of
 * the circle in integers, so that it is right to one rounding for any n. */
INLINE void K(circle)(i64 k, i64 n, ACC *c, ACC *s)
{
    i64 eighth = 8 * k / n, rest = 8 * k - eighth * n;
    ACC angle = (ACC)((eighth & 1) != 0 ? n - rest : rest) / (ACC)n * C(0.78539816339744830962);
    ACC a = cos(angle), b = sin(angle);
    i64 turned = (eighth + 1) & 2; /* octants 1, 2, 5 and 6 are nearer to the other axis */
    ACC x = turned != 0 ? b : a, y = turned != 0 ? a : b;
    *c = eighth >= 2 && eighth < 6 ? -x : x;
    *s = eighth >= 4 ? -y : y;
}

/* All of them, times sign in the imaginary part. */
KERNEL3(K(fft_roots), (OUT, ACC, roots), (ARG, i64, n), (ARG, i32, sign))
{
    BASE(roots);
    ITEMS(k, n)
    {
        ACC c, s;
        K(circle)((i64)k, n, &c, &s);
        roots[2 * k] = c;
        roots[2 * k + 1] = sign < 0 ? -s : s;
    }
}

/* e^(sign i pi k^2 / n), k < n: what Bluestein multiplies with. */
KERNEL3(K(fft_chirp), (OUT, ACC, chirp), (ARG, i64, n), (ARG, i32, sign))
{
    BASE(chirp);
    ITEMS(k, n)
    {
        ACC c, s;
        K(circle)((i64)k * (i64)k % (2 * n), 2 * n, &c, &s);
        chirp[2 * k] = c;
        chirp[2 * k + 1] = sign < 0 ? -s : s;
    }
}

/* One factor (Stockham): rows of n = stride * groups * factor, of which `stride` transforms of what
 * is left lie side by side. With root = e^(sign 2 pi i / n)
 *
 *   y[q + stride (factor p + j)] = scale sum_k x[q + stride (p + groups k)] root^(j (k n / factor +
 *       p stride)).
 *
 * Of x `have` elements are there, the others are 0; of y `want` are asked for. */
KERNEL5(K(fft_factor), (OUT, STO, ys), (IN, STO, xs), (IN, ACC, roots), (ARG, tern_fft_shape, s),
        (ARG, REAL, scale))
{
    BASE(ys);
    BASE(xs);
    BASE(roots);
    FLAT(r, s.rows * s.groups * s.factor, s.stride)
    {
        idx stride = (idx)s.stride, j = r % (idx)s.factor, p = r / (idx)s.factor % (idx)s.groups;
        idx row = r / ((idx)s.factor * (idx)s.groups), n = (idx)s.n, turn = j * (n / (idx)s.factor);
        idx to = stride * ((idx)s.factor * p + j), from = stride * p, step = stride * (idx)s.groups;
        INNER(r, q)
        {
            ACC re = 0, im = 0;
            idx angle = j * p * stride, i = from + q;
            for (idx k = 0; k < (idx)s.factor && i < (idx)s.have; k++) {
                ACC c = roots[2 * angle], d = roots[2 * angle + 1], a, b = 0;
                if (s.real_in != 0) {
                    a = LD(xs, row * (idx)s.have + i);
                } else {
                    a = LD(xs, 2 * (row * (idx)s.have + i));
                    b = LD(xs, 2 * (row * (idx)s.have + i) + 1);
                }
                if (s.half_in != 0 && i != 0 && 2 * i != n) { /* its mirror image's, too */
                    a += a;
                    b += b;
                }
                re += a * c - b * d;
                im += a * d + b * c;
                angle += turn;
                angle -= angle >= n ? n : 0;
                i += step;
            }
            idx at = row * (idx)s.want + to + q;
            ACC by = s.half_out != 0 && to + q != 0 && 2 * (to + q) != n ? scale + scale : scale;
            if (to + q < (idx)s.want) {
                if (s.real_out != 0) {
                    ST(ys, at, re * by);
                } else {
                    ST(ys, 2 * at, re * by);
                    ST(ys, 2 * at + 1, im * by);
                }
            }
        }
    }
}
#endif
