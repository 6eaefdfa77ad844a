/* conv_launch.c -- a convolution by kernels that gather from the image. */
#include "device/conv_launch.h"
#include "device/index32.h"
#include "device/place.h"
#include "types_host.h"
#include "shapes.h"

/* CHUNKS: a part has at least so many steps of a tile's depth. MOST_SCRATCH: the most bytes of
 * partial sums. */
enum { CHUNKS = 8, MOST_SCRATCH = 64 << 20 };

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

bool tern_conv_is_narrow(const tern_convolution *c)
{
    const tern_conv_shape *s = c->shape;
    const tern_arg args[] = {c->x, c->weight, c->y, TERN_ARG_STRUCT(tern_conv_shape, s)};
    if (!tern_fits_index32(args, sizeof args / sizeof *args, 0))
        return false;
    for (int d = 0; d < 3; d++)
        if (s->in[d] + 2 * s->padding[d] + (s->window[d] - 1) * s->dilation[d] >=
            tern_index32_limit)
            return false;
    return true;
}

bool tern_conv_needs_columns(const tern_convolution *c)
{
    const tern_conv_shape *s = c->shape;
    for (int d = 0; d < 3; d++)
        if (s->window[d] != 1 || s->stride[d] != 1 || s->padding[d] != 0)
            return true;
    return c->pass == TERN_CONV_WEIGHT;
}

static const tern_arg *result_of(const tern_convolution *c)
{
    return c->pass == TERN_CONV_Y ? &c->y : c->pass == TERN_CONV_X ? &c->x : &c->weight;
}

bool tern_conv_lies_in_eights(const tern_arg *arg)
{
    return arg->at % 8 == 0 && arg->buffer->address % 16 == 0;
}

void tern_conv_product_of(tern_conv_tiles *t, const tern_convolution *c, tern_conv_layout layout,
                          const int64_t phase[3])
{
    tern_conv_product(t, c->shape, (int)c->pass, layout, phase);
    t->has_bias = c->bias.buffer != NULL;
    t->adds = c->accumulates;
    if (!tern_conv_lies_in_eights(result_of(c)) ||
        (t->has_bias && !tern_conv_lies_in_eights(&c->bias)))
        t->width = 1;
}

size_t tern_conv_cut(tern_conv_tiles *t, int64_t rows, int64_t columns, int64_t depth,
                     int64_t wanted)
{
    const int64_t tiles = divide_up(t->m, rows) * divide_up(t->n, columns) * t->groups;
    const int64_t chunks = t->k / (depth * CHUNKS), room = MOST_SCRATCH / (4 * (int64_t)t->whole);
    int64_t parts = divide_up(wanted, tiles);
    parts = parts < chunks ? parts : chunks;
    parts = parts < room ? parts : room;
    t->parts = parts > 1 ? (int32_t)parts : 1;
    return parts > 1 ? (size_t)(parts * t->whole) * sizeof(float) : 0;
}

tern_status tern_conv_launch(tern_place *place, const tern_convolution *c,
                             const tern_conv_launches *l)
{
    static const int64_t zeros[3];
    const tern_arg *y_or_x = c->pass == TERN_CONV_X ? &c->y : &c->x, *result = result_of(c);
    /* Without partial sums or a bias these arguments are not accessed. */
    const tern_arg sums =
        c->scratch ? tern_arg_buffer(TERN_ROLE_OUT, TERN_F32, c->scratch, 0) : *result;
    const tern_arg bias = c->bias.buffer ? c->bias : c->weight;
    const tern_arg operands[] = {*result, sums, c->pass == TERN_CONV_WEIGHT ? c->y : c->weight,
                                 *y_or_x, bias};
    tern_conv_tiles t;
    int64_t n[3];
    tern_conv_phases(c->shape, (int)c->pass, n);
    for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        const int64_t phase[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
        tern_conv_product_of(&t, c, l->layout, phase);
        t.parts = l->parts;
        if (l->depth)
            t.part = (int32_t)(divide_up(divide_up(t.k, t.parts), l->depth) * l->depth);
        TERN_TRY(l->launch(l->user, &t, operands));
    }
    if (!l->sum)
        return TERN_OK;
    tern_conv_product_of(&t, c, l->layout, zeros);
    t.parts = l->parts;
    const tern_arg args[] = {*result, sums, bias, TERN_ARG_STRUCT(tern_conv_tiles, &t)};
    const tern_grid grid = {t.whole, t.whole, 0, false, 0};
    return place->backend->launch(place, l->sum, &grid, args, sizeof args / sizeof *args);
}
