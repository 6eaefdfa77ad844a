/* conv_channels_tile.h -- convolutions of images with few channels and the gradients of their
 * weight, for float32.
 *
 * Rows of x are copied with their padding; with a stride each is split into that many phases, so
 * that what a tap of the weight sees is contiguous. A row of y is then a sum of such rows, each
 * times a weight; a number of the gradient is the dot product of an output channel's dy with what
 * its tap sees. Tiles of channels and taps share what is loaded. */

enum { CONV_TAPS = 4, CONV_CHANNELS = 3, CONV_OUTPUTS = 6 };
typedef u32 conv_words __attribute__((vector_size(VECTOR), may_alias));

/* Copies `rows` rows of padded x from image row `first` on; rows outside of the image are zeros. */
static __attribute__((noinline)) void conv_pad(const tern_host_conv_channels *g, const f32 *x,
                                               idx first, idx rows, f32 *to)
{
    const idx height = (idx)g->in[0], width = (idx)g->in[1], step = (idx)g->stride[1];
    const idx phase = (idx)g->x_row / step;
    for (idx r = first; r < first + rows; r++, to += g->x_row) {
        for (idx f = 0; f < step; f++) {
            /* element p is column p * step + f - padding */
            idx missing = tern_larger((idx)g->padding[1] - f, 0);
            idx begin = tern_smaller((missing + step - 1) / step, phase);
            idx inside = tern_larger(width + (idx)g->padding[1] - f + step - 1, 0) / step;
            idx end = r < 0 || r >= height ? begin : tern_smaller(inside, phase);
            f32 *y = to + f * phase;
            const idx at = r * width + f - (idx)g->padding[1];
            _Pragma("GCC unroll 1") for (idx p = 0; p < phase; p++) y[p] = 0;
            _Pragma("GCC unroll 1") for (idx p = begin; p < end; p++) y[p] = x[at + p * step];
        }
    }
}

/* Multiplies one register of each channel's dy by what each tap sees. */
INLINE void conv_lanes(vector_f32 (*acc)[CONV_CHANNELS], const f32 *const *x, const f32 *const *dy,
                       idx i, const int some, conv_words seen)
{
    vector_f32 d0 = load_f32(dy[0] + i), d1 = load_f32(dy[1] + i), d2 = load_f32(dy[2] + i);
    UNROLL
    for (int t = 0; t < CONV_TAPS; t++) {
        vector_f32 v = load_f32(x[t] + i);
        if (some)
            v = (vector_f32)((conv_words)v & seen);
        acc[t][0] += v * d0;
        acc[t][1] += v * d1;
        acc[t][2] += v * d2;
    }
}

/* Sets sums[q * CONV_TAPS + t] for channel q and tap t over rows of `width` numbers. What a tap
 * sees beyond a row is masked rather than multiplied by zero, as it may be infinite. */
static __attribute__((noinline)) void conv_tile(const f32 *const *x, idx x_row, const f32 *dy,
                                                const idx *channel, idx dy_row, idx rows, idx width,
                                                f32 *sums)
{
    vector_f32 acc[CONV_TAPS][CONV_CHANNELS] = {{{0}}};
    const f32 *v[CONV_TAPS] = {x[0], x[1], x[2], x[3]};
    const f32 *d[CONV_CHANNELS] = {dy + channel[0], dy + channel[1], dy + channel[2]};
    const idx lane = VECTOR / (idx)sizeof(f32), whole = width / lane * lane;
    u32 bits[VECTOR / 4];
    for (idx i = 0; i < lane; i++)
        bits[i] = i < width - whole ? 0xffffffffu : 0;
    const conv_words seen = *(const conv_words *)bits;
    for (idx r = 0; r < rows; r++) {
        for (idx i = 0; i < whole; i += lane)
            conv_lanes(acc, v, d, i, 0, seen);
        if (whole < width)
            conv_lanes(acc, v, d, whole, 1, seen);
        UNROLL
        for (int t = 0; t < CONV_TAPS; t++)
            v[t] += x_row;
        UNROLL
        for (int q = 0; q < CONV_CHANNELS; q++)
            d[q] += dy_row;
    }
    vector_f32 kept[CONV_TAPS * CONV_CHANNELS]; /* a copy, so that acc stays in registers */
    UNROLL
    for (int t = 0; t < CONV_TAPS; t++)
        UNROLL
    for (int q = 0; q < CONV_CHANNELS; q++)
        kept[q * CONV_TAPS + t] = acc[t][q];
    _Pragma("GCC unroll 1") for (int i = 0; i < CONV_TAPS * CONV_CHANNELS; i++) sums[i] =
        sum_f32(kept[i]);
}

/* Sets at[t] to the offset of what tap t sees of the first row of packed x. */
static __attribute__((noinline)) void conv_offsets(const tern_host_conv_channels *g, idx *at)
{
    const idx step = (idx)g->stride[1], phase = (idx)g->x_row / step;
    for (idx c = 0; c < (idx)g->c; c++)
        for (idx i = 0; i < (idx)g->window[0]; i++)
            for (idx j = 0; j < (idx)g->window[1]; j++) {
                idx column = j * (idx)g->dilation[1];
                *at++ = (c * (idx)g->x_rows + i * (idx)g->dilation[0]) * (idx)g->x_row +
                        column % step * phase + column / step;
            }
}

/* Packs x for the rows of y in group u. Returns their number, and the offset of the first in
 * *first. */
static __attribute__((noinline)) idx conv_pack(const tern_host_conv_channels *g, idx u, f32 *x,
                                               idx *first)
{
    const idx strips = ((idx)g->out[0] + (idx)g->y_rows - 1) / (idx)g->y_rows;
    idx from = u % strips * (idx)g->y_rows,
        rows = tern_smaller((idx)g->y_rows, (idx)g->out[0] - from);
    idx seen = (rows - 1) * (idx)g->stride[0] + (idx)((g->window[0] - 1) * g->dilation[0]) + 1;
    for (idx c = 0; c < (idx)g->c; c++)
        conv_pad(g, g->x + (u / strips * (idx)g->c + c) * (idx)(g->in[0] * g->in[1]),
                 from * (idx)g->stride[0] - (idx)g->padding[0], seen,
                 x + c * (idx)(g->x_rows * g->x_row));
    *first = u / strips * (idx)(g->o * g->out[0] * g->out[1]) + from * (idx)g->out[1];
    return rows;
}

/* Adds the products of all taps and channels for some rows to out; x and dy are packed. */
static __attribute__((noinline)) void conv_strip(const tern_host_conv_channels *g, const idx *at,
                                                 const f32 *x, const f32 *dy, idx rows, f32 *out)
{
    const idx taps = (idx)(g->c * g->window[0] * g->window[1]);
    for (idx t0 = 0; t0 < taps; t0 += CONV_TAPS) {
        const f32 *seen[CONV_TAPS];
        for (idx t = 0; t < CONV_TAPS; t++)
            seen[t] = x + at[tern_smaller(t0 + t, taps - 1)];
        for (idx o = 0; o < (idx)g->o; o += CONV_CHANNELS) {
            idx channel[CONV_CHANNELS];
            f32 sums[CONV_TAPS * CONV_CHANNELS];
            for (idx q = 0; q < CONV_CHANNELS; q++)
                channel[q] = tern_smaller(o + q, (idx)g->o - 1) * (idx)(g->y_rows * g->y_row);
            conv_tile(seen, (idx)(g->stride[0] * g->x_row), dy, channel, (idx)g->y_row, rows,
                      (idx)g->out[1], sums);
            for (idx q = 0; q < CONV_CHANNELS && o + q < (idx)g->o; q++)
                for (idx t = 0; t < CONV_TAPS && t0 + t < taps; t++)
                    out[(o + q) * taps + t0 + t] += sums[q * CONV_TAPS + t];
        }
    }
}

/* Each part has its own sums, packed x and packed dy. */
KERNEL1(conv_weight_f32, (IN, tern_host_conv_channels, g))
{
    const idx numbers = (idx)(g->o * g->c * g->window[0] * g->window[1]), most = (idx)g->y_rows;
    f32 *sums = g->scratch + (idx)tern_g.part * (idx)g->part_scratch, *x = sums + numbers;
    f32 *dy = x + (idx)(g->c * g->x_rows * g->x_row);
    idx at[TERN_CONV_TAPS];
    conv_offsets(g, at);
    for (idx i = 0; i < numbers; i++)
        sums[i] = 0;
    GROUPS (u, g->groups) {
        idx first, rows = conv_pack(g, u, x, &first);
        for (idx o = 0; o < (idx)g->o; o++)
            for (idx r = 0; r < rows; r++) {
                const f32 *row =
                    g->y + first + o * (idx)(g->out[0] * g->out[1]) + r * (idx)g->out[1];
                f32 *to = dy + (o * most + r) * (idx)g->y_row;
                for (idx i = 0; i < (idx)g->y_row; i++)
                    to[i] = 0;
                for (idx i = 0; i < (idx)g->out[1]; i++)
                    to[i] = row[i];
            }
        conv_strip(g, at, x, dy, rows, sums);
    }
}

/* Computes one row of channels o.. of y, which are `area` numbers apart. */
static __attribute__((noinline)) void conv_outputs(const tern_host_conv_channels *g, const idx *at,
                                                   const f32 *x, idx o, f32 *y, idx area)
{
    const idx lane = VECTOR / (idx)sizeof(f32), taps = (idx)(g->c * g->window[0] * g->window[1]);
    const f32 *w[CONV_OUTPUTS];
    for (idx q = 0; q < CONV_OUTPUTS; q++)
        w[q] = g->weight + tern_smaller(o + q, (idx)g->o - 1) * taps;
    for (idx i = 0; i < (idx)g->out[1]; i += 2 * lane) {
        vector_f32 acc[CONV_OUTPUTS][2] = {{{0}}};
        for (idx t = 0; t < taps; t++) {
            vector_f32 x0 = load_f32(x + at[t] + i), x1 = load_f32(x + at[t] + i + lane);
            UNROLL
            for (int q = 0; q < CONV_OUTPUTS; q++) {
                acc[q][0] += x0 * w[q][t];
                acc[q][1] += x1 * w[q][t];
            }
        }
        vector_f32 kept[CONV_OUTPUTS][2]; /* a copy, so that acc stays in registers */
        UNROLL
        for (int q = 0; q < CONV_OUTPUTS; q++)
            kept[q][0] = acc[q][0], kept[q][1] = acc[q][1];
        for (idx q = 0; q < CONV_OUTPUTS && o + q < (idx)g->o; q++)
            for (idx j = 0; j < 2 && i + j * lane < (idx)g->out[1]; j++) {
                f32 *to = y + q * area + i + j * lane;
                vector_f32 v = kept[q][j] + (g->bias ? g->bias[o + q] : 0);
                idx n = (idx)g->out[1] - i - j * lane;
                if (n >= lane)
                    *(vector_f32 *)to = v;
                else
                    store_some_f32(to, v, n);
            }
    }
}

KERNEL1(conv_forward_f32, (IN, tern_host_conv_channels, g))
{
    const idx area = (idx)(g->out[0] * g->out[1]);
    f32 *x = g->scratch + (idx)tern_g.part * (idx)g->part_scratch;
    idx at[TERN_CONV_TAPS];
    conv_offsets(g, at);
    GROUPS (u, g->groups) {
        idx first, rows = conv_pack(g, u, x, &first);
        f32 *y = (f32 *)(uintptr_t)g->y + first;
        for (idx r = 0; r < rows; r++)
            for (idx o = 0; o < (idx)g->o; o += CONV_OUTPUTS)
                conv_outputs(g, at, x + r * (idx)(g->stride[0] * g->x_row), o,
                             y + o * area + r * (idx)g->out[1], area);
    }
}
