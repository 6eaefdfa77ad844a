/* conv_winograd_tile.h -- convolutions of 3 x 3 taps and stride 1, and the gradients of their
 * weight, with 4 multiplications where the sums as they are written have 9 (Winograd's F(2 x 2, 3 x
 * 3)), for float32.
 *
 * Two neighbouring numbers of y in a row are made from four of x, d, and three taps, g:
 *   y0 = m0 + m1 + m2, y1 = m1 - m2 + m3   of the products
 *   m = (d0 - d2) g0, (d1 + d2) (g0 + g1 + g2) / 2, (d2 - d1) (g0 - g1 + g2) / 2, (d3 - d1) g2
 * With the same along columns a tile of 2 x 2 numbers has 16 products in the place of 36. Each of
 * these 16, over all channels and tiles, is a matrix product: m = u v of (o, c) (c, tiles). The
 * gradient of u is the product of v and the gradient of m, which dy gives: (c, tiles) (tiles, o).
 * The results differ from the sums as written by a few roundings as long as they are finite: a
 * difference of infinite numbers is NaN, and one of large numbers may be infinite. So each part
 * reports whether its y is finite: its scratch begins with 0, or NaN. */

/* The arrays of a part; a step is the distance between the 16 matrices of an array. */
typedef struct winograd {
    f32 *u, *v, *m; /* weights, x and y; for a gradient of weights sums, x and dy */
    idx u_step, v_step, m_step;
    f32 *lines;      /* x transformed by columns: [parity of the row][which of 4][tile] */
    f32 *row, *none; /* rows of x with their padding; a row of zeros */
    f32 *free;       /* scratch that is read again at once */
    idx line_step, pitch;
} winograd;

typedef __typeof__(strips_f32) winograd_strips;

static __attribute__((noinline)) void winograd_places(const tern_host_winograd *g, idx part,
                                                      winograd *w)
{
    f32 *at = g->scratch + part * (idx)g->part_scratch;
    w->pitch = (idx)g->pitch;
    w->u_step = (idx)g->u_step, w->v_step = (idx)g->v_step, w->m_step = (idx)g->m_step;
    w->line_step = (idx)g->line_step;
    w->u = at + (idx)g->sums;
    w->v = w->u + 16 * w->u_step;
    w->m = w->v + 16 * w->v_step;
    w->lines = w->m + (idx)g->m_size;
    w->row = w->lines + 8 * w->line_step;
    w->none = w->row + (2 * (idx)g->strip + 2) * (idx)g->row;
    w->free = w->none + (idx)g->row;
    for (f32 *p = w->row; p < w->free; p++)
        *p = 0;
}

/* Transposes: to[p][j] = from[j][p], zeros from `columns` to `width`. All callers share this copy
 * of the function. */
static __attribute__((noinline)) void winograd_transpose(f32 *to, const f32 *from, idx col,
                                                         idx depth, idx columns, idx width,
                                                         idx step)
{
    turn_f32(to, from, col, depth, columns, width, step);
}

/* Copies a row from a plane or to it, and prefetches the same row of the next plane, which
 * processors do not do by themselves. Returns zeros, or NaN where numbers of the row are not
 * finite. */
INLINE vector_f32 winograd_copy(f32 *to, const f32 *from, idx n, idx plane, const int writes)
{
    const idx lane = VECTOR / (idx)sizeof(f32);
    vector_f32 zeros = {0};
    idx i = 0;
    for (; i + lane <= n; i += lane) {
        if (writes)
            __builtin_prefetch(to + i + plane, 1);
        else
            __builtin_prefetch(from + i + plane);
        const vector_f32 v = load_f32(from + i);
        zeros += v * 0;
        *(vector_f32 *)(to + i) = v;
    }
    for (; i < n; i++) {
        zeros[0] += from[i] * 0;
        to[i] = from[i];
    }
    return zeros;
}

/* Splits a row into its numbers 0, 2, 4 and so on, and the numbers after those. */
INLINE void winograd_part(const f32 *row, vector_f32 *even, vector_f32 *odd)
{
#ifdef __aarch64__
    const float32x4x2_t both = vld2q_f32(row);
    *even = (vector_f32)both.val[0];
    *odd = (vector_f32)both.val[1];
#else
    __m256 a = _mm256_loadu2_m128(row + 8, row), b = _mm256_loadu2_m128(row + 12, row + 4);
    *even = (vector_f32)_mm256_shuffle_ps(a, b, 0x88);
    *odd = (vector_f32)_mm256_shuffle_ps(a, b, 0xdd);
#endif
}

/* Writes v of the tiles in `rows` rows from `first` on, of one plane. Whole registers are written:
 * the elements after the last tile of a row are overwritten by the next row. */
static __attribute__((noinline)) void winograd_see(const tern_host_winograd *g, const winograd *w,
                                                   const f32 *x, idx first, idx rows, f32 *v)
{
    enum { LANES_ = VECTOR / sizeof(f32) };
    const idx across = (idx)g->columns, height = (idx)g->in[0], width = (idx)g->in[1];
    const idx apart = w->line_step, step = w->v_step, y = 2 * first - (idx)g->padding[0];
    const idx begin = tern_larger(-y, 0), end = tern_smaller(2 * rows + 2, height - y);
    for (idx r = begin; r < end; r++) /* all rows first: a read right after its write would wait */
        winograd_copy(w->row + r * (idx)g->row + g->padding[1], x + (y + r) * width, width,
                      height * width, 0);
    for (idx r = 0; r < 2 * rows + 2; r++) {
        const f32 *row = r >= begin && r < end ? w->row + r * (idx)g->row : w->none;
        f32 *to = w->lines + r % 2 * 4 * apart + r / 2 * across;
        for (idx j = 0; j < across; j += LANES_, row += 2 * LANES_, to += LANES_) {
            vector_f32 d0, d1, d2, d3;
            winograd_part(row, &d0, &d1);
            winograd_part(row + 2, &d2, &d3);
            *(vector_f32 *)to = d0 - d2;
            *(vector_f32 *)(to + apart) = d1 + d2;
            *(vector_f32 *)(to + 2 * apart) = d2 - d1;
            *(vector_f32 *)(to + 3 * apart) = d3 - d1;
        }
    }
    for (idx s = 0; s < 4; s++)
        for (idx t = 0; t < rows * across; t += LANES_) {
            const f32 *even = w->lines + s * apart + t, *odd = even + 4 * apart;
            vector_f32 d0 = load_f32(even), d1 = load_f32(odd), d2 = load_f32(even + across),
                       d3 = load_f32(odd + across);
            f32 *to = v + s * step + t;
            *(vector_f32 *)to = d0 - d2;
            *(vector_f32 *)(to + 4 * step) = d1 + d2;
            *(vector_f32 *)(to + 8 * step) = d2 - d1;
            *(vector_f32 *)(to + 12 * step) = d3 - d1;
        }
}

/* Transforms three taps to four numbers. */
INLINE void winograd_taps(const vector_f32 *g, idx step, vector_f32 *u)
{
    vector_f32 ends = (g[0] + g[2 * step]) * 0.5f, middle = g[step] * 0.5f;
    u[0] = g[0];
    u[1] = ends + middle;
    u[2] = ends - middle;
    u[3] = g[2 * step];
}

/* Writes u of all weights. */
static __attribute__((noinline)) void winograd_weights(const tern_host_winograd *g,
                                                       const winograd *w)
{
    const idx lane = VECTOR / (idx)sizeof(f32), c = (idx)g->c;
    for (idx o = 0; o < (idx)g->o; o++) {
        winograd_transpose(w->free, g->weight + o * (idx)g->weight_step[0], (idx)g->weight_step[1],
                           9, c, c, c);
        for (idx j = 0; j < c; j += lane) {
            vector_f32 tap[9], rows[3][4], u[4];
            for (idx t = 0; t < 9; t++)
                tap[t] = load_f32(w->free + (g->flipped ? 8 - t : t) * c + j);
            for (idx i = 0; i < 3; i++)
                winograd_taps(tap + 3 * i, 1, rows[i]);
            for (idx s = 0; s < 4; s++) {
                winograd_taps(&rows[0][s], 4, u);
                for (idx i = 0; i < 4; i++)
                    *(vector_f32 *)(w->u + (4 * i + s) * w->u_step + o * c + j) = u[i];
            }
        }
    }
}

/* Writes y of the tiles in some rows of one plane, from their m. Returns 0, or NaN if numbers of y
 * are not finite. */
static __attribute__((noinline)) f32 winograd_write(const tern_host_winograd *g, const winograd *w,
                                                    const f32 *m, f32 bias, f32 *y, idx first,
                                                    idx rows)
{
    enum { LANES_ = VECTOR / sizeof(f32) };
    const idx across = (idx)g->columns, tiles = rows * across, step = w->m_step;
    const idx height = (idx)g->out[0], width = (idx)g->out[1], apart = 2 * w->pitch + 2 * LANES_;
    for (idx t = 0; t < tiles; t += LANES_) {
        vector_f32 p[2][4];
        UNROLL
        for (int s = 0; s < 4; s++) {
            const f32 *at = m + s * step + t;
            vector_f32 m1 = load_f32(at + 4 * step), m2 = load_f32(at + 8 * step);
            p[0][s] = load_f32(at) + m1 + m2 + (s == 1 ? bias : 0);
            p[1][s] = m1 - m2 + load_f32(at + 12 * step) + (s == 1 ? bias : 0);
        }
        UNROLL
        for (int a = 0; a < 2; a++) {
            f32 two[2][LANES_], *to = w->free + a * apart + 2 * t;
            *(vector_f32 *)two[0] = p[a][0] + p[a][1] + p[a][2];
            *(vector_f32 *)two[1] = p[a][1] - p[a][2] + p[a][3];
            SIMD for (idx i = 0; i < LANES_; i++)
            {
                to[2 * i] = two[0][i];
                to[2 * i + 1] = two[1][i];
            }
        }
    }
    vector_f32 zeros = {0};
    for (idx r = 0; r < 2 * rows && 2 * first + r < height; r++)
        zeros +=
            winograd_copy(y + (2 * first + r) * width, w->free + r % 2 * apart + r / 2 * 2 * across,
                          width, height * width, 1);
    return sum_f32(zeros);
}

/* Writes the gradient of m, made from dy, for the tiles in some rows of all planes of an image:
 * m[panel][which of 16][tile][channel]. */
static __attribute__((noinline)) void winograd_back(const tern_host_winograd *g, const winograd *w,
                                                    const f32 *dy, idx first, idx rows, f32 *m)
{
    enum { LANES_ = VECTOR / sizeof(f32) };
    const idx across = (idx)g->columns, height = (idx)g->out[0], width = (idx)g->out[1];
    const idx panel = (idx)g->strips.panel, line = 2 * across * panel, step = w->m_step;
    for (idx o = 0; o < (idx)g->o; o += panel, dy += panel * height * width, m += 16 * step) {
        f32 *to = m;
        for (idx r = 0; r < rows; r++) {
            for (idx a = 0; a < 2; a++) {
                idx y = 2 * (first + r) + a, seen = y < height ? width : 0;
                f32 *pixels = w->free + a * line;
                winograd_transpose(pixels, dy + y * width, height * width, seen,
                                   tern_smaller(panel, (idx)g->o - o), panel, panel);
                for (idx i = seen * panel; i < line; i++)
                    pixels[i] = 0;
            }
            for (idx j = 0; j < across * panel; j += LANES_, to += LANES_) {
                const f32 *at = w->free + j + j / panel * panel;
                vector_f32 d[4][2];
                UNROLL
                for (int b = 0; b < 2; b++) {
                    vector_f32 d0 = load_f32(at + b * panel), d1 = load_f32(at + line + b * panel);
                    d[0][b] = d0, d[1][b] = d0 + d1, d[2][b] = d0 - d1, d[3][b] = d1;
                }
                UNROLL
                for (int i = 0; i < 4; i++) {
                    *(vector_f32 *)(to + 4 * i * step) = d[i][0];
                    *(vector_f32 *)(to + (4 * i + 1) * step) = d[i][0] + d[i][1];
                    *(vector_f32 *)(to + (4 * i + 2) * step) = d[i][0] - d[i][1];
                    *(vector_f32 *)(to + (4 * i + 3) * step) = d[i][1];
                }
            }
        }
    }
}

/* Computes the gradient of three taps from the gradient of their four numbers. */
INLINE void winograd_untap(const vector_f32 *u, idx step, vector_f32 *g)
{
    vector_f32 ends = (u[step] + u[2 * step]) * 0.5f;
    g[0] = u[0] + ends;
    g[1] = (u[step] - u[2 * step]) * 0.5f;
    g[2] = ends + u[3 * step];
}

/* Computes this part's gradient of the weight. */
static __attribute__((noinline)) void winograd_sums(const tern_host_winograd *g, const winograd *w,
                                                    f32 *sums)
{
    const idx lane = VECTOR / (idx)sizeof(f32), c = (idx)g->c, o = (idx)g->o;
    const idx pitch = (o + lane - 1) / lane * lane;
    for (idx i = 0; i < c; i++) {
        for (idx j = 0; j < o; j += lane) {
            vector_f32 u[16], rows[4][3], tap[3];
            for (idx t = 0; t < 16; t++)
                u[t] = load_f32(w->u + t * w->u_step + i * o + j);
            for (idx t = 0; t < 4; t++)
                winograd_untap(u + 4 * t, 1, rows[t]);
            for (idx s = 0; s < 3; s++) {
                winograd_untap(&rows[0][s], 3, tap);
                for (idx t = 0; t < 3; t++)
                    *(vector_f32 *)(w->free + (3 * t + s) * pitch + j) = tap[t];
            }
        }
        winograd_transpose(sums + 9 * i, w->free, pitch, o, 9, 9, 9 * c);
    }
}

/* A unit of work: some rows of tiles of some images. */
typedef struct winograd_unit {
    idx image, images, row, rows, tiles; /* tiles: of an image */
} winograd_unit;

/* Sets *a to unit u, and writes its v. */
static __attribute__((noinline)) void winograd_begin(const tern_host_winograd *g, const winograd *w,
                                                     idx u, winograd_unit *a)
{
    const idx strips = ((idx)g->rows + (idx)g->strip - 1) / (idx)g->strip;
    a->image = u / strips * (idx)g->images;
    a->images = tern_smaller((idx)g->images, (idx)g->n - a->image);
    a->row = u % strips * (idx)g->strip;
    a->rows = tern_smaller((idx)g->strip, (idx)g->rows - a->row);
    a->tiles = a->rows * (idx)g->columns;
    const idx plane = (idx)(g->in[0] * g->in[1]);
    for (idx i = 0; i < a->images; i++)
        for (idx c = 0; c < (idx)g->c; c++)
            winograd_see(g, w, g->x + ((a->image + i) * (idx)g->c + c) * plane, a->row, a->rows,
                         w->v + c * w->pitch + i * a->tiles);
}

KERNEL1(conv_winograd_f32, (IN, tern_host_winograd, g))
{
    const idx o = (idx)g->o, c = (idx)g->c, plane = (idx)(g->out[0] * g->out[1]);
    winograd w;
    winograd_unit a;
    winograd_places(g, (idx)tern_g.part, &w);
    winograd_weights(g, &w);
    winograd_strips *const strips = (winograd_strips *)g->strips.run;
    f32 zero = 0;
    GROUPS (u, g->units) {
        winograd_begin(g, &w, u, &a);
        const finish_f32 f = {1, 0, NULL, a.images * a.tiles};
        for (idx s = 0; s < 16; s++)
            strips(o, c, w.u + s * w.u_step, c, 1, w.v + s * w.v_step, w.pitch,
                   (idx)g->strips.panel, w.m + s * w.m_step, w.pitch, &f);
        for (idx i = 0; i < a.images; i++)
            for (idx q = 0; q < o; q++)
                zero += winograd_write(
                    g, &w, w.m + q * w.pitch + i * a.tiles, g->bias ? g->bias[q] : 0,
                    (f32 *)(uintptr_t)g->y + ((a.image + i) * o + q) * plane, a.row, a.rows);
    }
    *w.u = zero;
}

KERNEL1(conv_winograd_weight_f32, (IN, tern_host_winograd, g))
{
    const idx o = (idx)g->o, c = (idx)g->c, panel = (idx)g->strips.panel,
              plane = (idx)(g->out[0] * g->out[1]);
    winograd w;
    winograd_unit a;
    finish_f32 f = {1, 0, NULL, o};
    winograd_strips *const strips = (winograd_strips *)g->strips.run;
    winograd_places(g, (idx)tern_g.part, &w);
    GROUPS (u, g->units) {
        winograd_begin(g, &w, u, &a);
        for (idx i = 0; i < a.images; i++)
            winograd_back(g, &w, g->y + (a.image + i) * o * plane, a.row, a.rows,
                          w.m + i * a.tiles * panel);
        for (idx s = 0; s < 16; s++)
            strips(c, a.images * a.tiles, w.v + s * w.v_step, w.pitch, 1, w.m + s * w.m_step, panel,
                   16 * w.m_step, w.u + s * w.u_step, o, &f);
        f.beta = 1;
    }
    winograd_sums(g, &w, g->scratch + (idx)tern_g.part * (idx)g->part_scratch);
}
