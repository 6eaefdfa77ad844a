/* conv_stride2_tile.h -- convolutions whose y has half the rows and columns of x (stride 2; 3 x 3
 * taps and padding 1, or one tap), and both gradients, for float32: as products with an image's
 * columns, which hold what each tap of each channel sees and stay in the L2 cache.
 *
 *   y = weight columns,   dcolumns = weight' dy,   dweight' = sum over images of columns dy' */

enum { STRIDE2_LANES = VECTOR / sizeof(f32), STRIDE2_PANEL = 2 * STRIDE2_LANES };

/* Writes the columns of one image, which are pitch apart. In a row, tap 0 sees what tap 2 sees one
 * place before. */
static __attribute__((noinline)) void stride2_columns(const tern_host_stride2 *g, const f32 *x,
                                                      f32 *to)
{
    const idx window = (idx)g->window, pitch = (idx)g->pitch, width = (idx)g->out[1];
    for (idx c = 0; c < (idx)g->c; c++, x += 4 * g->out[0] * g->out[1])
        for (idx r = 0; r < window; r++, to += window * pitch)
            for (idx i = 0; i < (idx)g->out[0]; i++) {
                const idx y = 2 * i + r - window / 2;
                f32 *at = to + i * width;
                at[0] = 0;
                for (idx j = 0; j < width; j += STRIDE2_LANES) {
                    vector_f32 even = {0}, odd = {0};
                    if (y >= 0)
                        winograd_part(x + 2 * (y * width + j), &even, &odd);
                    if (window == 1) {
                        *(vector_f32 *)(at + j) = even;
                        continue;
                    }
                    *(vector_f32 *)(at + j + 1) = odd;
                    *(vector_f32 *)(at + pitch + j) = even;
                    *(vector_f32 *)(at + 2 * pitch + j) = odd;
                }
            }
}

/* Computes dx of one image from its dcolumns: even rows and columns come from the middle tap, odd
 * ones from the last tap, and from the first tap of the next place. */
static __attribute__((noinline)) void stride2_gather(const tern_host_stride2 *g, const f32 *from,
                                                     f32 *dx)
{
    const idx window = (idx)g->window, pitch = (idx)g->pitch, width = (idx)g->out[1];
    u32 bits[STRIDE2_LANES];
    for (idx i = 0; i < STRIDE2_LANES; i++)
        bits[i] = i < STRIDE2_LANES - 1 ? 0xffffffffu : 0;
    const conv_words most = *(const conv_words *)bits;
    for (idx c = 0; c < (idx)g->c; c++, from += window * window * pitch)
        for (idx y = 0; y < 2 * (idx)g->out[0]; y++, dx += 2 * width) {
            const idx i = y / 2, last = y % 2 ? window - 1 : window / 2;
            const idx n = window == 1 ? 1 - y % 2 : y % 2 && i + 1 < (idx)g->out[0] ? 2 : 1;
            const f32 *rows[2] = {from + last * window * pitch + i * width, from + (i + 1) * width};
            for (idx j = 0; j < width; j += STRIDE2_LANES) {
                vector_f32 even = {0}, odd = {0};
                f32 two[2][STRIDE2_LANES];
                for (idx k = 0; k < n; k++) {
                    const f32 *at = rows[k] + j;
                    vector_f32 next = load_f32(at + 1);
                    if (window == 1) {
                        even = load_f32(at);
                        break;
                    }
                    if (j + STRIDE2_LANES == width)
                        next = (vector_f32)((conv_words)next & most);
                    even += load_f32(at + pitch);
                    odd += load_f32(at + 2 * pitch) + next;
                }
                *(vector_f32 *)two[0] = even;
                *(vector_f32 *)two[1] = odd;
                SIMD for (idx k = 0; k < STRIDE2_LANES; k++)
                {
                    dx[2 * (j + k)] = two[0][k];
                    dx[2 * (j + k) + 1] = two[1][k];
                }
            }
        }
}

/* Computes y of each image, or dx, by panels of columns, which stay in the L1 cache. */
KERNEL1(conv_stride2_f32, (IN, tern_host_stride2, g))
{
    const idx plane = (idx)(g->out[0] * g->out[1]), taps = (idx)(g->c * g->window * g->window);
    const idx o = (idx)g->o, pitch = (idx)g->pitch;
    f32 *columns = g->scratch + (idx)tern_g.part * (idx)g->part_scratch;
    const finish_f32 f = {1, 0, NULL, STRIDE2_PANEL};
    GROUPS (u, g->n) {
        f32 *y = (f32 *)(uintptr_t)g->y + u * o * plane,
            *x = (f32 *)(uintptr_t)g->x + u * (idx)g->c * 4 * plane;
        if (!g->back)
            stride2_columns(g, x, columns);
        for (idx t = 0; t < plane; t += STRIDE2_PANEL)
            if (g->back)
                strips_f32(taps, o, g->weight, 1, taps, y + t, plane, STRIDE2_PANEL, columns + t,
                           pitch, &f);
            else
                strips_f32(o, taps, g->weight, taps, 1, columns + t, pitch, STRIDE2_PANEL, y + t,
                           plane, &f);
        if (g->back)
            stride2_gather(g, columns, x);
    }
}

/* Each part's sums come first, then the transposed sums, then panels of dy. */
KERNEL1(conv_stride2_weight_f32, (IN, tern_host_stride2, g))
{
    const idx plane = (idx)(g->out[0] * g->out[1]), taps = (idx)(g->c * g->window * g->window);
    const idx o = (idx)g->o;
    f32 *sums = g->scratch + (idx)tern_g.part * (idx)g->part_scratch, *transposed = sums + o * taps;
    f32 *panels = transposed + o * taps, *columns = panels + (o + STRIDE2_PANEL) * plane;
    finish_f32 f = {1, 0, NULL, o};
    GROUPS (u, g->n) {
        const f32 *dy = g->y + u * o * plane;
        stride2_columns(g, g->x + u * (idx)g->c * 4 * plane, columns);
        for (idx q = 0; q < o; q += STRIDE2_PANEL)
            winograd_transpose(panels + q * plane, dy + q * plane, plane, plane,
                               tern_smaller(STRIDE2_PANEL, o - q), STRIDE2_PANEL, STRIDE2_PANEL);
        strips_f32(taps, plane, columns, (idx)g->pitch, 1, panels, STRIDE2_PANEL,
                   STRIDE2_PANEL * plane, transposed, o, &f);
        f.beta = 1;
    }
    winograd_transpose(sums, transposed, o, o, taps, taps, taps);
}
