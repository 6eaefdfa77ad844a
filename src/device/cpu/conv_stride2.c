/* conv_stride2.c -- convolutions whose y has half the rows and columns of x, and their gradients:
 * which of them are computed from columns that stay in a cache (conv_stride2_tile.h). */
#include "base/parallel.h"
#include "device/cpu/cpu.h"
#include "device/device.h"
#include "shapes.h"
#include <string.h>

/* LANES: rows of y are whole registers. MOST_BYTES: an image's columns are to stay in the L2
 * cache. With AVX-512 oneDNN is as fast for 3 x 3 taps. */
enum { LANES = 8, PANEL = 16, FEWEST = 8, MOST_BYTES = 512 << 10 };

static bool fits(const tern_convolution *c)
{
    const tern_conv_shape *s = c->shape;
    int64_t window = s->window[2];
    bool plane = s->in[0] == 1 && s->out[0] == 1 && s->window[0] == 1 && s->padding[0] == 0 &&
                 (window == 1 || window == 3);
    for (int i = 1; i < 3; i++)
        plane = plane && s->window[i] == window && s->stride[i] == 2 && s->dilation[i] == 1 &&
                s->padding[i] == window / 2 && s->in[i] == 2 * s->out[i];
    return plane && !c->channels_last && c->dtype == TERN_F32 && s->groups == 1 &&
           !c->bias.buffer && s->c >= FEWEST && s->o >= FEWEST && s->out[2] % LANES == 0 &&
           s->out[1] * s->out[2] % PANEL == 0 &&
           4 * s->c * window * window * s->out[1] * s->out[2] <= MOST_BYTES &&
           tern_cpu_above_v3() >= 0 && (window == 1 || tern_cpu_above_v3() == 0);
}

tern_status tern_cpu_conv_stride2(tern_place *place, const tern_convolution *c, bool *taken)
{
    static _Atomic(void *) found[2];
    const tern_conv_shape *s = c->shape;
    bool sums = c->pass == TERN_CONV_WEIGHT;
    *taken = fits(c);
    if (!*taken)
        return TERN_OK;
    int64_t plane = s->out[1] * s->out[2], taps = s->c * s->window[1] * s->window[2];
    tern_host_stride2 g = {.x = tern_cpu_at(&c->x),
                           .weight = tern_cpu_at(&c->weight),
                           .y = tern_cpu_at(&c->y),
                           .n = s->n,
                           .c = s->c,
                           .o = s->o,
                           .out = {s->out[1], s->out[2]},
                           .window = s->window[2],
                           .back = c->pass == TERN_CONV_X,
                           .pitch = plane + PANEL}; /* columns do not share cache sets */
    g.part_scratch = (taps + 1) * g.pitch + (sums ? 2 * s->o * taps + (s->o + PANEL) * plane : 0);
    int parts = tern_parallel_parts(s->n * s->o * taps * plane / TERN_CPU_PER_OPERATION);
    parts = parts < s->n ? parts : (int)s->n;
    tern_block *scratch = tern_block_alloc(place, (size_t)(g.part_scratch * parts) * sizeof(float),
                                           "tern_convolution");
    if (!scratch)
        return tern_last_status();
    g.scratch = scratch->buffer.host;
    tern_status status = tern_cpu_run_product(
        place, &found[sums], sums ? "conv_stride2_weight" : "conv_stride2", TERN_F32, &g, parts);
    if (sums && status == TERN_OK)
        tern_cpu_sum_parts(g.scratch, g.part_scratch, parts, s->o * taps,
                           (float *)(uintptr_t)g.weight);
    tern_block_free(scratch);
    return status;
}
