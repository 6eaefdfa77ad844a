/* conv_channels.c -- convolutions where x has few channels, such as a first layer's, and the
 * gradients of their weight: oneDNN computes blocks of eight channels or more, most of which would
 * be zeros. */
#include "base/parallel.h"
#include "device/cpu/cpu.h"
#include "device/cpu/onednn.h"
#include "device/device.h"
#include "shapes.h"
#include <string.h>

/* MOST_CHANNELS: more channels of x fill oneDNN's blocks by half. MOST_OUTPUTS: with one to three
 * channels of x, more channels of y are enough for its kernels of first layers
 * (bench/results/2026-11-28-conv-own.md). SHORTEST: shorter rows do not fill registers. PACKED: the
 * numbers of y that are computed at a time stay in the L2 cache. LANES: lanes of the widest
 * register. */
enum { MOST_CHANNELS = 4, MOST_OUTPUTS = 10, SHORTEST = 8, PACKED = 16384, LANES = 16 };

static int64_t taps_of(const tern_conv_shape *s)
{
    return s->c * s->window[1] * s->window[2];
}

/* Returns whether oneDNN's kernels are slower for x of n channels, whatever the channels of y: with
 * AVX2 they are for one or two. */
static bool onednn_is_slower(int64_t n)
{
    return !tern_onednn_is_there() || (n < 3 && tern_cpu_above_v3() <= 0);
}

static bool fits(const tern_convolution *c)
{
    const tern_conv_shape *s = c->shape;
    return !c->channels_last && c->pass != TERN_CONV_X && c->dtype == TERN_F32 && s->groups == 1 &&
           s->n > 0 && s->c <= MOST_CHANNELS &&
           (s->c == MOST_CHANNELS || s->o <= MOST_OUTPUTS || onednn_is_slower(s->c)) &&
           s->out[2] >= SHORTEST && s->in[0] == 1 && s->out[0] == 1 && s->window[0] == 1 &&
           s->padding[0] == 0 && taps_of(s) <= TERN_CONV_TAPS;
}

static int64_t rounded(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

static void shape_of(const tern_convolution *c, tern_host_conv_channels *g)
{
    const tern_conv_shape *s = c->shape;
    g->x = tern_cpu_at(&c->x);
    g->weight = tern_cpu_at(&c->weight);
    g->bias = tern_cpu_at(&c->bias);
    g->y = tern_cpu_at(&c->y);
    g->c = s->c, g->o = s->o;
    for (int i = 0; i < 2; i++) {
        g->in[i] = s->in[i + 1];
        g->out[i] = s->out[i + 1];
        g->window[i] = s->window[i + 1];
        g->stride[i] = s->stride[i + 1];
        g->padding[i] = s->padding[i + 1];
        g->dilation[i] = s->dilation[i + 1];
    }
    g->y_row = rounded(g->out[1]);
    int64_t rows = PACKED / (g->o * g->y_row);
    g->y_rows = rows < 1 ? 1 : rows < g->out[0] ? rows : g->out[0];
    g->groups = s->n * ((g->out[0] + g->y_rows - 1) / g->y_rows);
    g->x_rows = (g->y_rows - 1) * g->stride[0] + (g->window[0] - 1) * g->dilation[0] + 1;
    int64_t phase = rounded((g->window[1] - 1) * g->dilation[1] / g->stride[1] + g->y_row);
    g->x_row = phase * g->stride[1];
    /* the sums, x with the elements that a register reads beyond its end, dy */
    g->part_scratch = rounded(g->o * taps_of(s)) + g->c * g->x_rows * g->x_row + 2 * LANES;
    if (c->pass == TERN_CONV_WEIGHT)
        g->part_scratch += g->o * g->y_rows * g->y_row;
}

void tern_cpu_sum_parts(const float *scratch, int64_t part_scratch, int parts, int64_t numbers,
                        float *out)
{
    memcpy(out, scratch, (size_t)numbers * sizeof *out);
    for (int p = 1; p < parts; p++)
        for (int64_t i = 0; i < numbers; i++)
            out[i] += scratch[p * part_scratch + i];
}

tern_status tern_cpu_conv_channels(tern_place *place, const tern_convolution *c, bool *taken)
{
    static _Atomic(void *) found[2];
    bool sums = c->pass == TERN_CONV_WEIGHT;
    tern_host_conv_channels g;
    *taken = fits(c);
    if (!*taken)
        return TERN_OK;
    memset(&g, 0, sizeof g);
    shape_of(c, &g);
    int64_t numbers = g.o * taps_of(c->shape);
    int parts =
        tern_parallel_parts(c->shape->n * numbers * g.out[0] * g.out[1] / TERN_CPU_PER_OPERATION);
    parts = parts < g.groups ? parts : (int)g.groups;
    tern_block *scratch = tern_block_alloc(place, (size_t)(g.part_scratch * parts) * sizeof(float),
                                           "tern_convolution");
    if (!scratch)
        return tern_last_status();
    g.scratch = scratch->buffer.host;
    tern_status status = tern_cpu_run_product(
        place, &found[sums], sums ? "conv_weight" : "conv_forward", TERN_F32, &g, parts);
    if (sums && status == TERN_OK)
        tern_cpu_sum_parts(g.scratch, g.part_scratch, parts, numbers, tern_cpu_at(&c->weight));
    tern_block_free(scratch);
    return status;
}
