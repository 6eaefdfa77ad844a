/* convolution.cl -- what convolutions are made of where no vendor's routine does them: columns for
 * matrix products, and sums without them for groups of few channels.
 *
 * A tap is one position k of the kernel. Along one dim it reads x at q * stride + at, at = k *
 * dilation - padding, which lies in x for first <= q < end. Two forms: whole rows, one tap after
 * the other, where a thread does a chunk of the work; elsewhere a lane for each result. */
#ifndef TERN_CONVOLUTION_TAPS
#define TERN_CONVOLUTION_TAPS
INLINE idx tap_at(const tern_conv_shape *s, i32 d, idx k)
{
    return k * (idx)s->dilation[d] - (idx)s->padding[d];
}
INLINE idx tap_first(idx at, idx stride)
{
    return at >= 0 ? 0 : (stride - 1 - at) / stride;
}
INLINE idx tap_end(idx at, idx stride, idx in, idx out)
{
    idx end = at >= in ? 0 : (in - 1 - at) / stride + 1;
    return end < out ? end : out;
}
/* Where position k of an array of three dims is along the middle one, and so on. */
#define ALONG_0(k, dims) ((k) / ((idx)(dims)[1] * (idx)(dims)[2]))
#define ALONG_1(k, dims) ((k) / (idx)(dims)[2] % (idx)(dims)[1])
#define ALONG_2(k, dims) ((k) % (idx)(dims)[2])
#define VOLUME(dims)     ((idx)(dims)[0] * (idx)(dims)[1] * (idx)(dims)[2])

/* The element of x that tap k of output q reads; -1 outside. */
INLINE idx tap_of_output(const tern_conv_shape *s, idx q, idx k)
{
    idx z = ALONG_0(q, s->out) * (idx)s->stride[0] + tap_at(s, 0, ALONG_0(k, s->window));
    idx y = ALONG_1(q, s->out) * (idx)s->stride[1] + tap_at(s, 1, ALONG_1(k, s->window));
    idx x = ALONG_2(q, s->out) * (idx)s->stride[2] + tap_at(s, 2, ALONG_2(k, s->window));
    i32 inside = z >= 0 && z < (idx)s->in[0] && y >= 0 && y < (idx)s->in[1] && x >= 0 &&
                 x < (idx)s->in[2];
    return inside ? (z * (idx)s->in[1] + y) * (idx)s->in[2] + x : -1;
}

/* Along dim d, the output whose tap k reads input i; -1 for none. */
INLINE idx tap_source(const tern_conv_shape *s, i32 d, idx i, idx k)
{
    idx from = i - tap_at(s, d, k), q = from / (idx)s->stride[d];
    return from >= 0 && q * (idx)s->stride[d] == from && q < (idx)s->out[d] ? q : -1;
}
/* The output whose tap k reads element i of x; -1 for none. */
INLINE idx tap_of_input(const tern_conv_shape *s, idx i, idx k)
{
    idx z = tap_source(s, 0, ALONG_0(i, s->in), ALONG_0(k, s->window));
    idx y = tap_source(s, 1, ALONG_1(i, s->in), ALONG_1(k, s->window));
    idx x = tap_source(s, 2, ALONG_2(i, s->in), ALONG_2(k, s->window));
    return z < 0 || y < 0 || x < 0 ? -1 : (z * (idx)s->out[1] + y) * (idx)s->out[2] + x;
}

/* The rows (z, y) of outputs, and the part of them, that tap k of x reaches:
 * TAP_ROWS(s, k, row, from) { outputs row + q and elements from + q * stride, first <= q < end } */
#define TAP_ROWS(s, k, row, from)                                                                  \
    idx at0 = tap_at(s, 0, ALONG_0(k, (s)->window)), at1 = tap_at(s, 1, ALONG_1(k, (s)->window));  \
    idx at2 = tap_at(s, 2, ALONG_2(k, (s)->window)), step = (idx)(s)->stride[2];                   \
    idx first = tap_first(at2, step), end = tap_end(at2, step, (idx)(s)->in[2], (idx)(s)->out[2]); \
    idx z_end = tap_end(at0, (idx)(s)->stride[0], (idx)(s)->in[0], (idx)(s)->out[0]);              \
    idx y_first = tap_first(at1, (idx)(s)->stride[1]);                                             \
    idx y_end = tap_end(at1, (idx)(s)->stride[1], (idx)(s)->in[1], (idx)(s)->out[1]);              \
    for (idx z = tap_first(at0, (idx)(s)->stride[0]); z < z_end; ++z)                              \
        for (idx y = y_first,                                                                      \
                 row = (z * (idx)(s)->out[1] + y) * (idx)(s)->out[2],                              \
                 from = ((z * (idx)(s)->stride[0] + at0) * (idx)(s)->in[1] +                       \
                         y * (idx)(s)->stride[1] + at1) * (idx)(s)->in[2] + at2;                   \
             y < y_end;                                                                            \
             ++y, row += (idx)(s)->out[2], from += (idx)(s)->stride[1] * (idx)(s)->in[2])
#endif

#if (IS_FLOAT && !IS_HALF) || IS_WHOLE

#if TERN_CHUNKS
/* ys += w x, for the outputs that tap k reaches. */
INLINE void K(add_tap)(GLOBAL STO *ys, const GLOBAL STO *xs, REAL w, const tern_conv_shape *s,
                       idx k)
{
    TAP_ROWS(s, k, row, from)
    {
        if (step == 1) {
            SIMD for (idx q = first; q < end; ++q) ys[row + q] = (STO)(ys[row + q] +
                w * xs[from + q]);
        } else {
            for (idx q = first; q < end; ++q)
                ys[row + q] = (STO)(ys[row + q] + w * xs[from + q * step]);
        }
    }
}
/* xs += w y, for the elements that tap k reads. */
INLINE void K(add_tap_back)(GLOBAL STO *xs, const GLOBAL STO *ys, REAL w, const tern_conv_shape *s,
                            idx k)
{
    TAP_ROWS(s, k, row, from)
    {
        if (step == 1) {
            SIMD for (idx q = first; q < end; ++q) xs[from + q] = (STO)(xs[from + q] +
                w * ys[row + q]);
        } else {
            for (idx q = first; q < end; ++q)
                xs[from + q * step] = (STO)(xs[from + q * step] + w * ys[row + q]);
        }
    }
}
#endif

/* y = x * weight (+ bias), a plane of y at a time. */
KERNEL6(K(conv_direct), (OUT, STO, ys), (IN, STO, xs), (IN, STO, ws), (IN, STO, bs),
        (ARG, tern_conv_shape, shape), (ARG, i32, has_bias))
{
    BASE(ys);
    BASE(xs);
    BASE(ws);
    BASE(bs);
    tern_conv_shape s = shape;
    idx taps = VOLUME(s.window), outs = VOLUME(s.out), ins = VOLUME(s.in);
    idx each = (idx)s.c / (idx)s.groups, of_group = (idx)s.o / (idx)s.groups;
    GROUPS(g, (idx)s.n * (idx)s.o)
    {
        idx n = g / (idx)s.o, o = g % (idx)s.o;
        GLOBAL STO *y = ys + g * outs;
        const GLOBAL STO *x = xs + (n * (idx)s.c + o / of_group * each) * ins;
        const GLOBAL STO *w = ws + o * each * taps;
        REAL bias = has_bias != 0 ? bs[o] : 0;
#if TERN_CHUNKS
        SIMD LANES(q, outs)
        {
            y[q] = (STO)bias;
        }
        for (idx ck = 0; ck < each * taps; ++ck)
            K(add_tap)(y, x + ck / taps * ins, w[ck], &s, ck % taps);
#else
        LANES(q, outs)
        {
            REAL sum = bias;
            for (idx ck = 0; ck < each * taps; ++ck) {
                idx i = tap_of_output(&s, q, ck % taps);
                sum += i < 0 ? 0 : w[ck] * x[ck / taps * ins + i];
            }
            y[q] = (STO)sum;
        }
#endif
    }
}

/* dx from dy and weight, a plane of x at a time. */
KERNEL4(K(conv_direct_dx), (OUT, STO, xs), (IN, STO, ys), (IN, STO, ws),
        (ARG, tern_conv_shape, shape))
{
    BASE(xs);
    BASE(ys);
    BASE(ws);
    tern_conv_shape s = shape;
    idx taps = VOLUME(s.window), outs = VOLUME(s.out), ins = VOLUME(s.in);
    idx each = (idx)s.c / (idx)s.groups, of_group = (idx)s.o / (idx)s.groups;
    GROUPS(g, (idx)s.n * (idx)s.c)
    {
        idx n = g / (idx)s.c, c = g % (idx)s.c, o0 = c / each * of_group;
        GLOBAL STO *x = xs + g * ins;
        const GLOBAL STO *y = ys + (n * (idx)s.o + o0) * outs;
        const GLOBAL STO *w = ws + (o0 * each + c % each) * taps;
#if TERN_CHUNKS
        SIMD LANES(i, ins)
        {
            x[i] = 0;
        }
        for (idx o = 0; o < of_group; ++o)
            for (idx k = 0; k < taps; ++k)
                K(add_tap_back)(x, y + o * outs, w[o * each * taps + k], &s, k);
#else
        LANES(i, ins)
        {
            REAL sum = 0;
            for (idx k = 0; k < taps; ++k) {
                idx q = tap_of_input(&s, i, k);
                for (idx o = 0; o < of_group; ++o)
                    sum += q < 0 ? 0 : w[o * each * taps + k] * y[o * outs + q];
            }
            x[i] = (STO)sum;
        }
#endif
    }
}
#endif

#if IS_FLOAT && !IS_HALF
/* cols[channel and tap][image][output] = the x that it reads; images of x from the first on. */
KERNEL4(K(conv_columns), (OUT, STO, cols), (IN, STO, xs), (ARG, tern_conv_shape, shape),
        (ARG, i64, images))
{
    BASE(cols);
    BASE(xs);
    tern_conv_shape s = shape;
    idx taps = VOLUME(s.window), outs = VOLUME(s.out), ins = VOLUME(s.in);
    GROUPS(g, (idx)s.c * taps * (idx)images)
    {
        idx n = g % (idx)images, ck = g / (idx)images, k = ck % taps;
        const GLOBAL STO *x = xs + (n * (idx)s.c + ck / taps) * ins;
        GLOBAL STO *col = cols + g * outs;
#if TERN_CHUNKS
        idx at2 = tap_at(&s, 2, ALONG_2(k, s.window)), step = (idx)s.stride[2],
            out2 = (idx)s.out[2];
        idx first = tap_first(at2, step), end = tap_end(at2, step, (idx)s.in[2], out2);
        first = first < out2 ? first : out2;
        end = end > first ? end : first;
        idx at1 = tap_at(&s, 1, ALONG_1(k, s.window)), plane = (idx)s.out[1] * out2;
        /* Planes of one size: a tap is a shift, and the rest of a plane is copied in one go. */
        idx shift = at1 * out2 + at2, low = shift < 0 ? -shift : 0,
            high = shift > 0 ? plane - shift : plane;
        i32 shifts = step == 1 && s.stride[1] == 1 && s.in[2] == s.out[2] && s.in[1] == s.out[1] &&
            low < high;
        for (idx z = 0; z < (idx)s.out[0]; ++z) {
            idx iz = z * (idx)s.stride[0] + tap_at(&s, 0, ALONG_0(k, s.window));
            if (shifts && iz >= 0 && iz < (idx)s.in[0]) {
                const GLOBAL STO *from = x + iz * plane + shift;
                for (idx q = 0; q < low; ++q)
                    col[q] = 0;
                SIMD for (idx q = low; q < high; ++q) col[q] = from[q];
                for (idx q = high; q < plane; ++q)
                    col[q] = 0;
                for (idx row = 0; row < plane; row += out2) {
                    for (idx q = 0; q < first; ++q)
                        col[row + q] = 0;
                    for (idx q = end; q < out2; ++q)
                        col[row + q] = 0;
                }
                col += plane;
                continue;
            }
            for (idx y = 0; y < (idx)s.out[1]; ++y, col += out2) {
                idx iy = y * (idx)s.stride[1] + at1;
                i32 inside = iz >= 0 && iz < (idx)s.in[0] && iy >= 0 && iy < (idx)s.in[1];
                const GLOBAL STO *from = x + (iz * (idx)s.in[1] + iy) * (idx)s.in[2] + at2;
                idx a = inside ? first : out2, b = inside ? end : out2;
                SIMD for (idx q = 0; q < a; ++q) col[q] = 0;
                if (step == 1) {
                    SIMD for (idx q = a; q < b; ++q) col[q] = from[q];
                } else {
                    for (idx q = a; q < b; ++q)
                        col[q] = from[q * step];
                }
                SIMD for (idx q = b; q < out2; ++q) col[q] = 0;
            }
        }
#else
        LANES(q, outs)
        {
            idx i = tap_of_output(&s, q, k);
            col[q] = i < 0 ? 0 : x[i];
        }
#endif
    }
}

/* The gradient of that: every element of x takes the sum of the places it was copied to. */
KERNEL4(K(conv_gather), (OUT, STO, xs), (IN, STO, cols), (ARG, tern_conv_shape, shape),
        (ARG, i64, images))
{
    BASE(xs);
    BASE(cols);
    tern_conv_shape s = shape;
    idx taps = VOLUME(s.window), outs = VOLUME(s.out), ins = VOLUME(s.in);
    GROUPS(g, (idx)s.c * (idx)images)
    {
        idx n = g / (idx)s.c, c = g % (idx)s.c;
        GLOBAL STO *x = xs + g * ins;
        const GLOBAL STO *col = cols + (c * taps * (idx)images + n) * outs;
#if TERN_CHUNKS
        SIMD LANES(i, ins)
        {
            x[i] = 0;
        }
        for (idx k = 0; k < taps; ++k)
            K(add_tap_back)(x, col + k * (idx)images * outs, 1, &s, k);
#else
        LANES(i, ins)
        {
            REAL sum = 0;
            for (idx k = 0; k < taps; ++k) {
                idx q = tap_of_input(&s, i, k);
                sum += q < 0 ? 0 : col[k * (idx)images * outs + q];
            }
            x[i] = sum;
        }
#endif
    }
}

/* dweight from x and dy, a group for each number of it. */
KERNEL4(K(conv_direct_dw), (OUT, STO, ws), (IN, STO, xs), (IN, STO, ys),
        (ARG, tern_conv_shape, shape))
{
    BASE(ws);
    BASE(xs);
    BASE(ys);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    tern_conv_shape s = shape;
    idx taps = VOLUME(s.window), outs = VOLUME(s.out), ins = VOLUME(s.in);
    idx each = (idx)s.c / (idx)s.groups, of_group = (idx)s.o / (idx)s.groups;
    GROUPS(g, (idx)s.o * each * taps)
    {
        idx k = g % taps, o = g / taps / each, c = o / of_group * each + g / taps % each;
        ACC sum = 0;
#if TERN_CHUNKS
        for (idx n = 0; n < (idx)s.n; ++n) {
            const GLOBAL STO *x = xs + (n * (idx)s.c + c) * ins;
            const GLOBAL STO *dy = ys + (n * (idx)s.o + o) * outs;
            TAP_ROWS(&s, k, row, from)
            {
                SIMD_SUM(sum) for (idx q = first; q < end; ++q) sum +=
                    dy[row + q] * x[from + q * step];
            }
        }
#else
        LANES(j, (idx)s.n * outs)
        {
            idx n = j / outs, q = j % outs, i = tap_of_output(&s, q, k);
            sum += i < 0 ? 0 : xs[(n * (idx)s.c + c) * ins + i] * ys[(n * (idx)s.o + o) * outs + q];
        }
#endif
        sum = GROUP_SUM(sum, scratch);
        if (LID == 0)
            ws[g] = sum;
    }
}
#endif

/* ---- unfold and fold: the windows of images as columns, and columns summed to images --------- */
#if IS_FLOAT

/* Row r of an index over (batch, channels, kernel, count[0], count[1]): where it is in each of
 * them. */
#define COLUMNS_ROW_(w, r)                                                                         \
    idx q_ = (r), o1 = q_ % (idx)(w).count[1];                                                     \
    q_ /= (idx)(w).count[1];                                                                       \
    idx o0 = q_ % (idx)(w).count[0];                                                               \
    q_ /= (idx)(w).count[0];                                                                       \
    idx kernels_ = (idx)((w).window[0] * (w).window[1] * (w).window[2]), row = q_ % kernels_;      \
    q_ /= kernels_;                                                                                \
    idx k2 = row % (idx)(w).window[2], k1 = row / (idx)(w).window[2] % (idx)(w).window[1],         \
        k0 = row / (idx)((w).window[2] * (w).window[1]), channel = q_ % (idx)(w).channels,         \
        image = q_ / (idx)(w).channels;                                                            \
    row += channel * kernels_;

/* ys = the windows of xs, 0 outside of the image. */
KERNEL3(K(unfold), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_columns, w))
{
    BASE(ys);
    BASE(xs);
    idx last = (idx)w.count[2], size2 = (idx)w.size[2], step = (idx)w.stride[2];
    FLAT(r, w.batch *w.channels *w.window[0] * w.window[1] * w.window[2] * w.count[0] * w.count[1],
         last)
    {
        COLUMNS_ROW_(w, r)
        idx i0 = o0 * (idx)w.stride[0] - (idx)w.padding[0] + k0 * (idx)w.dilation[0];
        idx i1 = o1 * (idx)w.stride[1] - (idx)w.padding[1] + k1 * (idx)w.dilation[1];
        idx i2 = k2 * (idx)w.dilation[2] - (idx)w.padding[2];
        i32 inside = i0 >= 0 && i0 < (idx)w.size[0] && i1 >= 0 && i1 < (idx)w.size[1];
        idx x0 = image * (idx)w.x_batch + channel * (idx)w.x_channel +
                 (i0 * (idx)w.size[1] + i1) * size2 + i2;
        idx y0 = image * (idx)w.y_batch + row * (idx)w.y_row +
                 (o0 * (idx)w.count[1] + o1) * last;
        if (inside != 0) {
            INNER(r, j)
            {
                idx i = i2 + j * step;
                STO v = 0;
                if (i >= 0 && i < size2)
                    v = xs[x0 + j * step];
                ys[y0 + j] = v;
            }
        } else {
            INNER(r, j)
            {
                ys[y0 + j] = 0;
            }
        }
    }
}

/* ys = each image's pixel as the sum of what the windows in xs have there. */
KERNEL3(K(fold), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_columns, w))
{
    BASE(ys);
    BASE(xs);
    idx size2 = (idx)w.size[2];
    FLAT(r, w.batch *w.channels *w.size[0] * w.size[1], size2)
    {
        idx i1 = r % (idx)w.size[1], q = r / (idx)w.size[1], i0 = q % (idx)w.size[0];
        q /= (idx)w.size[0];
        idx channel = q % (idx)w.channels, image = q / (idx)w.channels;
        idx y0 = image * (idx)w.x_batch + channel * (idx)w.x_channel +
                 (i0 * (idx)w.size[1] + i1) * size2;
        idx x0 = image * (idx)w.y_batch;
        INNER(r, j)
        {
            ACC sum = 0;
            for (idx k0 = 0; k0 < (idx)w.window[0]; k0++) {
                idx t0 = i0 + (idx)w.padding[0] - k0 * (idx)w.dilation[0],
                    o0 = t0 / (idx)w.stride[0];
                if (t0 < 0 || o0 * (idx)w.stride[0] != t0 || o0 >= (idx)w.count[0])
                    continue;
                for (idx k1 = 0; k1 < (idx)w.window[1]; k1++) {
                    idx t1 = i1 + (idx)w.padding[1] - k1 * (idx)w.dilation[1];
                    idx o1 = t1 / (idx)w.stride[1];
                    if (t1 < 0 || o1 * (idx)w.stride[1] != t1 || o1 >= (idx)w.count[1])
                        continue;
                    idx row = ((channel * (idx)w.window[0] + k0) * (idx)w.window[1] + k1) *
                              (idx)w.window[2];
                    idx at = x0 + row * (idx)w.y_row + (o0 * (idx)w.count[1] +
                        o1) * (idx)w.count[2];
                    for (idx k2 = 0; k2 < (idx)w.window[2]; k2++) {
                        idx t2 = j + (idx)w.padding[2] - k2 * (idx)w.dilation[2];
                        idx o2 = t2 / (idx)w.stride[2];
                        if (t2 >= 0 && o2 * (idx)w.stride[2] == t2 && o2 < (idx)w.count[2])
                            sum += LD(xs, at + k2 * (idx)w.y_row + o2);
                    }
                }
            }
            ST(ys, y0 + j, sum);
        }
    }
}
#undef COLUMNS_ROW_
#endif
