/* convolution_matrix.c -- convolutions of halves on matrix units: what convolution_matrix.cl is
 * built for, and its launch. */
#include "device/conv_product.h"
#include "device/device.h"
#include "device/opencl/gemm.h"
#include "types_host.h"
#include "shapes.h"

/* Loads one by one want registers, which half the depth leaves. */
enum { EIGHT = 8, LEAST_UNIT = 4, ODD_DEPTH = 32 };

/* Which operand has no eights that lie together: the image by its channels, and the other by those
 * of its rows or of the depth. */
static int odd_of(const tern_convolution *c)
{
    const tern_conv_shape *s = c->shape;
    const int64_t each = s->c / s->groups, of_group = s->o / s->groups;
    const bool back = c->pass == TERN_CONV_X, weight = c->pass == TERN_CONV_WEIGHT;
    const tern_arg *image = back ? &c->y : &c->x, *other = weight ? &c->y : &c->weight;
    const bool image_odd = ((back ? of_group : each) | image->at) % EIGHT != 0;
    const bool other_odd = ((weight ? of_group : each) | other->at) % EIGHT != 0;
    return c->channels_last ? image_odd + 2 * other_odd : 3;
}

tern_cl_matrix_kernel tern_cl_conv_kernel(const tern_convolution *c, int way,
                                          const tern_cl_tile *tile)
{
    const tern_conv_shape *s = c->shape;
    tern_cl_matrix_kernel k = {.file = tern_cl_conv_file,
                               .tile = *tile,
                               .dtype = c->dtype,
                               .way = way,
                               .layout = c->channels_last,
                               .odd = odd_of(c),
                               .pass = (int)c->pass,
                               .unit = 1,
                               .narrow = true};
    if (k.odd && k.tile.k > ODD_DEPTH)
        k.tile.k = ODD_DEPTH;
    if (c->pass != TERN_CONV_WEIGHT)
        k.unit = tern_conv_unit((c->pass == TERN_CONV_X ? s->o : s->c) / s->groups,
                                k.odd == 3 ? LEAST_UNIT : EIGHT, k.tile.k);
    return k;
}

tern_status tern_cl_conv_launch(tern_place *place, const tern_cl_matrix_kernel *k,
                                const tern_conv_tiles *t, const tern_arg operands[5])
{
    const tern_arg args[] = {operands[0], operands[1], operands[2],
                             operands[3], operands[4], TERN_ARG_STRUCT(tern_conv_tiles, t)};
    const bool places_are_rows = k->layout && k->pass != TERN_CONV_WEIGHT;
    const int64_t lines = places_are_rows ? k->tile.m : k->tile.n;
    const int64_t others = places_are_rows ? k->tile.n : k->tile.m;
    const int64_t tiles = (t->n + lines - 1) / lines * ((t->m + others - 1) / others);
    tern_grid grid = tern_groups(tiles * t->groups * t->parts, lines * others * (t->part + 1));
    return tern_cl_launch(place, k->kernel, &grid, args, sizeof args / sizeof *args);
}
