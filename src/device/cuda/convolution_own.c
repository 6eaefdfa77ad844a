/* convolution_own.c -- half-precision convolutions by convolution_matrix.cl, where cuDNN does not
 * compute them. */
#include "device/conv_matrix.h"
#include "device/cuda/cuda.h"
#include "device/matrix_trial.h"
#include "types_host.h"
#include "shapes.h"

/* ONE_BY_ONE: both operands are loaded element by element. A thread of a small tile then has so
 * many loads that a depth above ONE_BY_ONE_DEPTH would spill registers. */
enum { PARTS_GROUP = 256, LARGE = 128, ONE_BY_ONE = 3, ONE_BY_ONE_DEPTH = 16 };

typedef struct plan {
    tern_place *place;
    tern_conv_variant of;
    tern_conv_tiles first;
    size_t scratch;
    void *kernels[2]; /* the one that multiplies, and the one that adds up parts */
} plan;

static tern_status launch(void *user, const tern_conv_tiles *t, const tern_arg operands[5])
{
    const plan *p = user;
    return tern_conv_matrix_launch(p->place, p->kernels[0], &p->of, t, operands);
}

static tern_status make_plan(tern_place *place, const tern_convolution *c, plan *p, bool *usable)
{
    static const int64_t zeros[3];
    const int way = tern_cuda_matrix_way(place, c->dtype);
    tern_conv_tiles *t = &p->first;
    *usable = false;
    *p = (plan){.place = place};
    if (way == TERN_MATRIX_NONE || !tern_conv_is_narrow(c))
        return TERN_OK;
    tern_conv_product_of(t, c, (tern_conv_layout){c->channels_last, 1}, zeros);
    if (!tern_conv_fits_matrix(c, t))
        return TERN_OK;
    const tern_cuda_tile tile = tern_cuda_matrix_tile(place, way, t->m, t->n, t->groups);
    p->of = tern_conv_variant_of(c, way, tile.size, tile.size, tile.depth);
    if (p->of.odd == ONE_BY_ONE && tile.size < LARGE)
        p->of = tern_conv_variant_of(c, way, tile.size, tile.size, ONE_BY_ONE_DEPTH);
    p->scratch = tern_conv_matrix_plan(t, c, &p->of, tern_place_info(place)->compute_units);
    return tern_conv_matrix_find(place, tern_cuda_matrix_prepare, &p->of,
                                 p->scratch ? PARTS_GROUP : 0, p->kernels, usable);
}

tern_status tern_cuda_convolution_own_plan(tern_place *place, const tern_convolution *c,
                                           size_t *scratch, bool *taken)
{
    plan p;
    TERN_TRY(make_plan(place, c, &p, taken));
    *scratch = *taken ? p.scratch : 0;
    return TERN_OK;
}

tern_status tern_cuda_convolution_own(tern_place *place, const tern_convolution *c, bool *taken)
{
    plan p;
    TERN_TRY(make_plan(place, c, &p, taken));
    *taken = *taken && (p.scratch == 0 || (c->scratch && c->scratch->bytes >= p.scratch));
    if (!*taken)
        return TERN_OK;
    const tern_conv_launches launches = {
        tern_conv_layout_of(&p.of), p.first.parts, p.of.depth, p.kernels[1], launch, &p};
    return tern_conv_launch(place, c, &launches);
}
