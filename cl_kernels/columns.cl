/* columns.cl -- the windows of images as columns of a matrix, and columns added up to images. See
 * tern_columns in shapes.h. */
#if IS_FLOAT

/* Row r of a walk over (batch, channels, kernel, count[0], count[1]): where it is in each of them. */
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
KERNEL3(K(columns), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_columns, w))
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
KERNEL3(K(columns_sum), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_columns, w))
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
                idx t0 = i0 + (idx)w.padding[0] - k0 * (idx)w.dilation[0], o0 = t0 / (idx)w.stride[0];
                if (t0 < 0 || o0 * (idx)w.stride[0] != t0 || o0 >= (idx)w.count[0])
                    continue;
                for (idx k1 = 0; k1 < (idx)w.window[1]; k1++) {
                    idx t1 = i1 + (idx)w.padding[1] - k1 * (idx)w.dilation[1];
                    idx o1 = t1 / (idx)w.stride[1];
                    if (t1 < 0 || o1 * (idx)w.stride[1] != t1 || o1 >= (idx)w.count[1])
                        continue;
                    idx row = ((channel * (idx)w.window[0] + k0) * (idx)w.window[1] + k1) *
                              (idx)w.window[2];
                    idx at = x0 + row * (idx)w.y_row + (o0 * (idx)w.count[1] + o1) * (idx)w.count[2];
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
