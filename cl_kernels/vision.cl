/* vision.cl -- planes read between their elements: interpolate and grid_sample.
 *
 * Along each of three dims a place between the elements is a few taps, elements and what they
 * weigh; the value there is the sum over the products of the dims' taps. Nearest has one tap,
 * linear two, cubic four (Keys 1981, a = -0.75). */
#undef TERN_BLOCKS
#define TERN_BLOCKS 1
#ifndef TERN_RESAMPLE_MODES
#define TERN_RESAMPLE_MODES
enum { SAMPLE_NEAREST = 0, SAMPLE_NEAREST_EXACT = 1, SAMPLE_LINEAR = 2, SAMPLE_CUBIC = 3 };
enum { SAMPLE_ZEROS = 0, SAMPLE_BORDER = 1, SAMPLE_REFLECTION = 2 };
#define TAPS_OF(mode) ((mode) == SAMPLE_CUBIC ? 4 : (mode) == SAMPLE_LINEAR ? 2 : 1)
#define BOUNDED(i, n) ((i) < 0 ? 0 : (i) < (n) ? (i) : (n)-1)
#if TERN_CHUNKS
#define PLANES(p, n) GROUPS(p, n)
#else
#define PLANES(p, n) ITEMS(p, n)
#endif
#endif

#if IS_FLOAT

/* The whole number below v, and the nearest one, even of two; v is within what idx holds. */
INLINE REAL K(below)(REAL v)
{
    REAL i = (REAL)(idx)v;
    return i > v ? i - 1 : i;
}
INLINE REAL K(nearest)(REAL v)
{
    REAL i = K(below)(v + C(0.5));
    return i - v == C(0.5) && i != 2 * K(below)(i / 2) ? i - 1 : i;
}

/* What the four elements around a place weigh, t after the second of them; and its derivative. */
FUNCTION void K(cubic)(REAL t, REAL *w)
{
    REAL a = C(-0.75), s = 1 - t;
    w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * s - (a + 3)) * s * s + 1;
    w[3] = ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a;
}
FUNCTION void K(cubic_slope)(REAL t, REAL *d)
{
    REAL a = C(-0.75), s = 1 - t;
    d[0] = (3 * a * (t + 1) - 10 * a) * (t + 1) + 8 * a;
    d[1] = (3 * (a + 2) * t - 2 * (a + 3)) * t;
    d[2] = -(3 * (a + 2) * s - 2 * (a + 3)) * s;
    d[3] = -((3 * a * (s + 1) - 10 * a) * (s + 1) + 8 * a);
}

/* The taps of output q along a dim of n elements: the first of them and what each weighs. */
INLINE idx K(taps)(i32 mode, i32 align, REAL scale, idx q, idx n, REAL *w)
{
    w[0] = 1;
    if (mode <= SAMPLE_NEAREST_EXACT) { /* in f32 whatever the type, as PyTorch */
        f32 place = ((f32)q + (mode == SAMPLE_NEAREST ? 0.0f : 0.5f)) * (f32)scale;
        idx i = (idx)place;
        return i < n ? i : n - 1;
    }
    REAL place = align != 0 ? scale * (REAL)q : scale * ((REAL)q + C(0.5)) - C(0.5);
    if (mode == SAMPLE_LINEAR) {
        place = place > 0 ? place : 0;
        idx i = (idx)place;
        i = i < n ? i : n - 1;
        w[1] = place - (REAL)i;
        w[0] = 1 - w[1];
        return i;
    }
    REAL below = K(below)(place);
    K(cubic)(place - below, w);
    return (idx)below - 1;
}

/* What element i weighs in output q. */
FUNCTION REAL K(weight_of)(i32 mode, i32 align, REAL scale, idx q, idx n, idx i)
{
    REAL w[4], sum = 0;
    idx first = K(taps)(mode, align, scale, q, n, w);
    for (i32 t = 0; t < TAPS_OF(mode); ++t) {
        idx at = first + t;
        sum += BOUNDED(at, n) == i ? w[t] : 0;
    }
    return sum;
}

/* The outputs that element i may weigh in: from first to before end. */
INLINE idx K(outputs_from)(REAL scale, idx i, idx out)
{
    if (i == 0 || scale <= 0)
        return 0;
    REAL from = K(below)(((REAL)i - 3) / scale) - 1;
    return from < 0 ? 0 : from < (REAL)out ? (idx)from : out;
}
INLINE idx K(outputs_to)(REAL scale, idx i, idx n, idx out)
{
    if (i == n - 1 || scale <= 0)
        return out;
    REAL to = ((REAL)i + 3) / scale + 2;
    return to < (REAL)out ? (idx)to + 1 < out ? (idx)to + 1 : out : out;
}

#define PLANE_DIMS                                                                                 \
    idx in0 = (idx)s.in[0], in1 = (idx)s.in[1], in2 = (idx)s.in[2];                                \
    idx out0 = (idx)s.out[0], out1 = (idx)s.out[1], out2 = (idx)s.out[2];                          \
    i32 mode0 = s.ndim > 2 || s.last != 0 ? mode : SAMPLE_NEAREST;                                 \
    i32 mode1 = s.ndim > 1 ? mode : SAMPLE_NEAREST, mode2 = s.last != 0 ? SAMPLE_NEAREST : mode

/* y = x at the places of an even grid; scale: from one output to the next, in elements of x. */
KERNEL8(K(interpolate), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_sample_shape, shape),
        (ARG, i32, mode), (ARG, i32, align), (ARG, REAL, scale0), (ARG, REAL, scale1),
        (ARG, REAL, scale2))
{
    BASE(ys);
    BASE(xs);
    tern_sample_shape s = shape;
    PLANE_DIMS;
    FLAT(r, (idx)s.planes * out0 * out1, out2)
    {
        REAL wz[4], wy[4];
        idx z = K(taps)(mode0, align, scale0, r / out1 % out0, in0, wz);
        idx y = K(taps)(mode1, align, scale1, r % out1, in1, wy);
        const GLOBAL STO *plane = xs + r / out1 / out0 * in0 * in1 * in2;
        INNER(r, j)
        {
            REAL wx[4], sum = 0;
            idx x = K(taps)(mode2, align, scale2, j, in2, wx);
            ROLLED for (i32 a = 0; a < TAPS_OF(mode0); ++a)
                for (i32 b = 0; b < TAPS_OF(mode1); ++b) {
                    idx row = (BOUNDED(z + a, in0) * in1 + BOUNDED(y + b, in1)) * in2;
                    REAL line = 0;
                    for (i32 c = 0; c < TAPS_OF(mode2); ++c)
                        line += wx[c] * LD(plane, row + BOUNDED(x + c, in2));
                    sum += wz[a] * wy[b] * line;
                }
            ST(ys, r * out2 + j, sum);
        }
    }
}

/* Its gradient: every element takes from the outputs that it weighs in. */
KERNEL8(K(interpolate_dx), (OUT, STO, xs), (IN, STO, ys), (ARG, tern_sample_shape, shape),
        (ARG, i32, mode), (ARG, i32, align), (ARG, REAL, scale0), (ARG, REAL, scale1),
        (ARG, REAL, scale2))
{
    BASE(xs);
    BASE(ys);
    tern_sample_shape s = shape;
    PLANE_DIMS;
    FLAT(r, (idx)s.planes * in0 * in1, in2)
    {
        idx iz = r / in1 % in0, iy = r % in1, p = r / in1 / in0;
        idx z_from = K(outputs_from)(scale0, iz, out0), z_to = K(outputs_to)(scale0, iz, in0, out0);
        idx y_from = K(outputs_from)(scale1, iy, out1), y_to = K(outputs_to)(scale1, iy, in1, out1);
        INNER(r, j)
        {
            idx x_from = K(outputs_from)(scale2, j, out2),
                x_to = K(outputs_to)(scale2, j, in2, out2);
            REAL sum = 0;
            for (idx z = z_from; z < z_to; ++z) {
                REAL wz = K(weight_of)(mode0, align, scale0, z, in0, iz);
                for (idx y = wz != 0 ? y_from : y_to; y < y_to; ++y) {
                    REAL wy = wz * K(weight_of)(mode1, align, scale1, y, in1, iy);
                    const GLOBAL STO *row = ys + ((p * out0 + z) * out1 + y) * out2;
                    for (idx x = wy != 0 ? x_from : x_to; x < x_to; ++x) {
                        REAL wx = K(weight_of)(mode2, align, scale2, x, in2, j);
                        sum += wx != 0 ? wy * wx * LD(row, x) : 0;
                    }
                }
            }
            ST(xs, r * in2 + j, sum);
        }
    }
}

/* ---- grid_sample ----------------------------------------------------------------------------- */

/* low + the distance to it, folded into 0..span. */
FUNCTION REAL K(folded)(REAL v, REAL low, REAL span, REAL *sign)
{
    REAL from = v - low, turn;
    *sign = from < 0 ? C(-1.0) : C(1.0);
    from = from < 0 ? -from : from;
    if (span <= 0) {
        *sign = 0;
        return 0;
    }
    turn = K(below)(from / span);
    from -= turn * span;
    if (turn - 2 * K(below)(turn / 2) != 0) {
        *sign = -*sign;
        return low + span - from;
    }
    return low + from;
}

/* A place outside of 0..n-1 is brought inside; *slope becomes what a step of v is then. */
FUNCTION REAL K(inside)(i32 padding, i32 align, REAL v, idx n, REAL *slope)
{
    REAL last = (REAL)(n - 1), sign = 1;
    *slope = 1;
    if (padding == SAMPLE_ZEROS)
        return v;
    if (padding == SAMPLE_REFLECTION)
        v = align != 0 ? K(folded)(v, 0, last, &sign) : K(folded)(v, C(-0.5), (REAL)n, &sign);
    *slope = v > 0 && v < last ? sign : 0;
    return v > 0 ? v < last ? v : last : 0;
}

/* NaN where place v is, or where an infinite one has no weights, else 0: what goes into a sum over
 * the taps, of which there may be none. As PyTorch's, the nearest element is a number anyway, and
 * so is the border's beside infinity. */
FUNCTION REAL K(lost)(i32 mode, i32 padding, REAL v)
{
    const i32 bounded = mode == SAMPLE_LINEAR && padding == SAMPLE_BORDER && v == v;
    return mode == SAMPLE_NEAREST || bounded ? 0 : v * 0;
}

/* The taps of place v in -1..1 along a dim of n elements, -1 for one outside; what they weigh, and
 * how that changes with v. */
FUNCTION void K(grid_taps)(i32 mode, i32 padding, i32 align, REAL v, idx n, idx *at, REAL *w,
    REAL *dw)
{
    REAL scale = align != 0 ? (REAL)(n - 1) / 2 : (REAL)n / 2, slope, ignored;
    REAL far = (REAL)n + 100;
    const REAL lost = v * 0;
    v = align != 0 ? (v + 1) / 2 * (REAL)(n - 1) : ((v + 1) * (REAL)n - 1) / 2;
    v = v > -far ? v < far ? v : far : -far; /* NaN too: no integer is made of what does not fit */
    if (mode == SAMPLE_CUBIC) {
        REAL below = K(below)(v);
        K(cubic)(v - below + lost, w);
        K(cubic_slope)(v - below + lost, dw);
        for (i32 t = 0; t < 4; ++t) {
            idx i = (idx)K(inside)(padding, align, below + (REAL)(t - 1), n, &ignored);
            at[t] = i >= 0 && i < n ? i : -1;
            dw[t] *= scale;
        }
        return;
    }
    v = K(inside)(padding, align, v, n, &slope);
    REAL below = mode == SAMPLE_LINEAR ? K(below)(v) : K(nearest)(v);
    for (i32 t = 0; t < TAPS_OF(mode); ++t) {
        idx i = (idx)below + t;
        at[t] = i >= 0 && i < n ? i : -1;
    }
    w[1] = v - below;
    w[0] = mode == SAMPLE_LINEAR ? 1 - w[1] : 1;
    dw[1] = slope * scale;
    dw[0] = mode == SAMPLE_LINEAR ? -dw[1] : 0;
}

/* Taps of output i = (n, q) along x, y and, for volumes, z; grid holds x, y, z in this order. */
#define GRID_TAPS(i)                                                                               \
    idx ax[4], ay[4], az[4];                                                                       \
    REAL wx[4], wy[4], wz[4], dx[4], dy[4], dz[4];                                                 \
    REAL lost_x, lost_y, lost_z = 0;                                                               \
    i32 deep = s.ndim > 2 ? TAPS_OF(mode) : 1, taps = TAPS_OF(mode);                               \
    const GLOBAL STO *place = grid + (i) * (idx)s.ndim;                                            \
    az[0] = 0;                                                                                     \
    wz[0] = 1;                                                                                     \
    dz[0] = 0;                                                                                     \
    K(grid_taps)(mode, padding, align, LD(place, 0), (idx)s.in[2], ax, wx, dx);                    \
    K(grid_taps)(mode, padding, align, LD(place, 1), (idx)s.in[1], ay, wy, dy);                    \
    lost_x = K(lost)(mode, padding, LD(place, 0));                                                 \
    lost_y = K(lost)(mode, padding, LD(place, 1));                                                 \
    if (s.ndim > 2) {                                                                              \
        K(grid_taps)(mode, padding, align, LD(place, 2), (idx)s.in[0], az, wz, dz);                \
        lost_z = K(lost)(mode, padding, LD(place, 2));                                             \
    }                                                                                              \
    (void)lost_x, (void)lost_y, (void)lost_z
#define EACH_TAP(e)                                                                                \
    ROLLED for (i32 a = 0; a < deep; ++a)                                                          \
        for (i32 b = 0; b < taps; ++b)                                                             \
            for (i32 c = 0; c < taps; ++c)                                                         \
                for (idx e = az[a] < 0 || ay[b] < 0 || ax[c] < 0                                   \
                                 ? -1                                                              \
                                 : (az[a] * (idx)s.in[1] + ay[b]) * (idx)s.in[2] + ax[c];          \
                     e >= 0; e = -1)
#define GRID_DIMS                                                                                  \
    idx ins = (idx)s.in[0] * (idx)s.in[1] * (idx)s.in[2];                                          \
    idx outs = (idx)s.out[0] * (idx)s.out[1] * (idx)s.out[2]

/* y of every channel at the places of grid. */
KERNEL7(K(grid_sample), (OUT, STO, ys), (IN, STO, xs), (IN, STO, grid),
        (ARG, tern_sample_shape, shape), (ARG, i32, mode), (ARG, i32, padding), (ARG, i32, align))
{
    BASE(ys);
    BASE(xs);
    BASE(grid);
    tern_sample_shape s = shape;
    GRID_DIMS;
    ITEMS(i, (idx)s.n * outs)
    {
        GRID_TAPS(i);
        for (idx channel = 0; channel < (idx)s.c; ++channel) {
            idx p = i / outs * (idx)s.c + channel;
            REAL sum = lost_x + lost_y + lost_z;
            EACH_TAP(e) sum += wz[a] * wy[b] * wx[c] * LD(xs, p * ins + e);
            ST(ys, p * outs + i % outs, sum);
        }
    }
}

/* dx: one thread adds up a plane, so that the order is always the same. */
KERNEL7(K(grid_sample_dx), (OUT, STO, xs), (IN, STO, ys), (IN, STO, grid),
        (ARG, tern_sample_shape, shape), (ARG, i32, mode), (ARG, i32, padding), (ARG, i32, align))
{
    BASE(xs);
    BASE(ys);
    BASE(grid);
    tern_sample_shape s = shape;
    GRID_DIMS;
    PLANES(p, (idx)s.n * (idx)s.c)
    {
        GLOBAL STO *plane = xs + p * ins;
        for (idx e = 0; e < ins; ++e)
            ST(plane, e, 0);
        for (idx q = 0; q < outs; ++q) {
            GRID_TAPS(p / (idx)s.c * outs + q);
            REAL v = LD(ys, p * outs + q);
            EACH_TAP(e) ST(plane, e, LD(plane, e) + wz[a] * wy[b] * wx[c] * v);
        }
    }
}

/* dgrid: over all channels. */
KERNEL8(K(grid_sample_dgrid), (OUT, STO, dgrid), (IN, STO, ys), (IN, STO, xs), (IN, STO, grid),
        (ARG, tern_sample_shape, shape), (ARG, i32, mode), (ARG, i32, padding), (ARG, i32, align))
{
    BASE(dgrid);
    BASE(ys);
    BASE(xs);
    BASE(grid);
    tern_sample_shape s = shape;
    GRID_DIMS;
    ITEMS(i, (idx)s.n * outs)
    {
        GRID_TAPS(i);
        const REAL own = mode == SAMPLE_CUBIC ? lost_x + lost_y + lost_z : 0;
        REAL sum_x = own + lost_y + lost_z, sum_y = own + lost_x + lost_z,
            sum_z = own + lost_x + lost_y;
        for (idx channel = 0; channel < (idx)s.c; ++channel) {
            idx p = i / outs * (idx)s.c + channel;
            REAL v = LD(ys, p * outs + i % outs);
            EACH_TAP(e)
            {
                REAL x = v * LD(xs, p * ins + e);
                sum_x += wz[a] * wy[b] * dx[c] * x;
                sum_y += wz[a] * dy[b] * wx[c] * x;
                sum_z += dz[a] * wy[b] * wx[c] * x;
            }
        }
        ST(dgrid, i * (idx)s.ndim, sum_x);
        ST(dgrid, i * (idx)s.ndim + 1, sum_y);
        if (s.ndim > 2)
            ST(dgrid, i * (idx)s.ndim + 2, sum_z);
    }
}
#endif
