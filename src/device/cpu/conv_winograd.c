/* conv_winograd.c -- convolutions of 3 x 3 taps and stride 1, and their gradients: which of them
 * are computed with fewer multiplications (conv_winograd_tile.h), and how they are cut. */
#include "base/parallel.h"
#include "device/cpu/cpu.h"
#include "device/device.h"
#include "shapes.h"
#include <string.h>

/* FEWEST: transforming fewer channels takes longer than multiplying them. MOST: the weights of more
 * channels, 16 numbers for 9 in each part, leave the caches. A gradient of weights, which passes
 * over all its tiles for each weight, gains with up to MOST_OF_SUMS channels if there are twice as
 * many tiles. SMALLEST: much of the tiles of smaller images is padding. TILES: fewer tiles are not
 * worth the transform of the weights. UNIT: the x and y of a unit, UNIT numbers in each of the 16,
 * are to stay in the L2 cache. LANES: lanes of the widest register. */
enum {
    FEWEST = 8,
    FEWEST_OF_SUMS = 16,
    MOST = 256,
    MOST_OF_SUMS = 512,
    SMALLEST = 6,
    TILES = 64,
    UNIT = 2048,
    LANES = 16
};

static bool fits(const tern_convolution *c)
{
    const tern_conv_shape *s = c->shape;
    bool plane = s->in[0] == 1 && s->out[0] == 1 && s->window[0] == 1 && s->padding[0] == 0;
    for (int i = 1; i < 3; i++)
        plane = plane && s->window[i] == 3 && s->stride[i] == 1 && s->dilation[i] == 1 &&
                s->padding[i] <= 2 && s->in[i] >= SMALLEST && s->out[i] >= SMALLEST;
    bool sums = c->pass == TERN_CONV_WEIGHT;
    int64_t least = s->c < s->o ? s->c : s->o, most = s->c + s->o - least;
    return plane && !c->channels_last && c->dtype == TERN_F32 && s->groups == 1 &&
           least >= (sums ? FEWEST_OF_SUMS : FEWEST) && most <= (sums ? MOST_OF_SUMS : MOST) &&
           s->n * s->out[1] * s->out[2] >= 4 * TILES * (most > MOST ? 2 : 1) &&
           tern_cpu_above_v3() >= 0;
}

static int64_t rounded(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Cuts the work into units that have about UNIT numbers of x and y in each of the 16 matrices. A
 * gradient of weights adds to sums of the same size, so its units have four times as many. */
static void cut(tern_host_winograd *g, bool sums)
{
    int64_t tiles = larger(TILES, UNIT * (sums ? 4 : 1) / (g->c + g->o)), strips;
    g->rows = (g->out[0] + 1) / 2;
    g->columns = (g->out[1] + 1) / 2;
    g->strip = larger(1, smaller(g->rows, tiles / g->columns));
    strips = (g->rows + g->strip - 1) / g->strip;
    g->strip = (g->rows + strips - 1) / strips;
    g->images = strips > 1 ? 1 : larger(1, smaller(g->n, tiles / (g->rows * g->columns)));
    g->units = (g->n + g->images - 1) / g->images * strips;
}

/* Places the arrays in the scratch. Whole registers are read and written, so there are LANES
 * numbers more than needed; arrays that are read together do not share cache sets. */
static void place_scratch(tern_host_winograd *g, bool sums)
{
    int64_t weights = g->c * g->o, free;
    int64_t tiles =
        g->strip * g->columns; /* of an image; its last register may reach beyond all tiles */
    g->pitch = rounded(g->images * tiles + (tiles % LANES && g->images > 1 ? LANES : 0));
    g->u_step = weights + LANES;
    g->v_step = g->c * g->pitch + LANES;
    g->m_step = (sums ? g->strips.panel : g->o) * g->pitch + LANES; /* sums: of a panel */
    g->m_size = 16 * g->m_step * (sums ? (g->o + g->strips.panel - 1) / g->strips.panel : 1);
    g->line_step = rounded((g->strip + 1) * g->columns) + LANES;
    g->row = rounded(2 * g->columns) + 4 * LANES;
    g->sums = sums ? rounded(9 * weights) : 0;
    free = larger(rounded(9 * rounded(larger(g->c, g->o))) + LANES,
                  larger(4 * g->pitch + 4 * LANES, 8 * g->columns * LANES));
    g->part_scratch = g->sums + 16 * (g->u_step + g->v_step) + g->m_size + 8 * g->line_step +
                      (2 * g->strip + 3) * g->row + free;
}

static void shape_of(const tern_convolution *c, tern_host_winograd *g)
{
    const tern_conv_shape *s = c->shape;
    bool back = c->pass == TERN_CONV_X;
    g->x = tern_cpu_at(back ? &c->y : &c->x);
    g->y = tern_cpu_at(back ? &c->x : &c->y);
    g->weight = tern_cpu_at(&c->weight);
    g->bias = tern_cpu_at(&c->bias);
    g->n = s->n, g->c = back ? s->o : s->c, g->o = back ? s->c : s->o;
    for (int i = 0; i < 2; i++) {
        g->in[i] = back ? s->out[i + 1] : s->in[i + 1];
        g->out[i] = back ? s->in[i + 1] : s->out[i + 1];
        g->padding[i] = back ? 2 - s->padding[i + 1] : s->padding[i + 1];
        g->weight_step[i] = (i == 0) == back ? 9 : 9 * s->c;
    }
    g->flipped = back;
}

tern_status tern_cpu_conv_winograd(tern_place *place, const tern_convolution *c, bool *taken,
                                   bool *finite)
{
    static _Atomic(void *) found[2], strips;
    bool sums = c->pass == TERN_CONV_WEIGHT;
    tern_host_winograd g;
    *taken = fits(c);
    if (!*taken)
        return TERN_OK;
    memset(&g, 0, sizeof g);
    shape_of(c, &g);
    TERN_TRY(tern_cpu_run_product(place, &strips, "strips", TERN_F32, &g.strips, 1));
    if (sums && g.o <= g.strips.panel / 2) /* a panel of one register is enough */
        g.strips.panel /= 2;
    cut(&g, sums);
    place_scratch(&g, sums);
    int64_t numbers = 9 * g.c * g.o;
    int parts =
        tern_parallel_parts(g.n * numbers / 2 * g.out[0] * g.out[1] / TERN_CPU_PER_OPERATION);
    int64_t most = smaller(g.units, larger(1, g.n * g.rows * g.columns / TILES));
    parts = parts < most ? parts : (int)most;
    tern_block *scratch = tern_block_alloc(place, (size_t)(g.part_scratch * parts) * sizeof(float),
                                           "tern_convolution");
    if (!scratch)
        return tern_last_status();
    g.scratch = scratch->buffer.host;
    tern_status status = tern_cpu_run_product(
        place, &found[sums], sums ? "conv_winograd_weight" : "conv_winograd", TERN_F32, &g, parts);
    if (sums && status == TERN_OK)
        tern_cpu_sum_parts(g.scratch, g.part_scratch, parts, numbers, tern_cpu_at(&c->weight));
    for (int p = 0; !sums && p < parts; p++)
        *finite = *finite && g.scratch[p * g.part_scratch] == 0;
    tern_block_free(scratch);
    return status;
}
