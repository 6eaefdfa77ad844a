/* convolution.c -- convolutions as products that gather from the image, on matrix units
 * (convolution_matrix.cl, half precision), by tiles on GPUs (convolution_tiles.cl) and by vectors
 * on CPUs (convolution_vector.cl). Otherwise the columns of the image would be written to memory
 * and read again (im2col). That way is left for channels first with one tap and stride 1, which
 * need no columns; for few channels per group, where most of a tile would be empty; for sizes
 * beyond 32-bit indices; and for devices that were tuned to multiply otherwise. channels_last is
 * for matrix units alone. */
#include "base/checked.h"
#include "base/lock.h"
#include "device/device.h"
#include "device/opencl/gemm.h"
#include "types_host.h"
#include "shapes.h"

/* SMALL: fewer channels are not for tiles. GROUPS_PER_UNIT: work-groups that fill a compute unit.
 * MOST_SCRATCH: bytes of partial sums. PARTS_GROUP: work-items of groups that add them up. */
enum { SMALL = 8, GROUPS_PER_UNIT = 8, MOST_SCRATCH = 64 << 20, PARTS_GROUP = 64 };

static int64_t volume(const int64_t *dims)
{
    return dims[0] * dims[1] * dims[2];
}
static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- whether, and with what -------------------------------------------------------------- */

typedef struct plan {
    tern_conv_layout layout;
    tern_conv_tiles first; /* tiles of the first phase */
    tern_cl_tile tile;
    int64_t rows, columns; /* rows and columns of the product in a tile */
    int64_t groups;        /* work-groups with a part of the scratch each; 0: by tiles */
    void *multiply, *sum;  /* kernels; sum: only if there are parts */
    size_t scratch;
    tern_conv_variant matrix; /* rows > 0: runs on a matrix unit */
} plan;

static tern_status find_kernel(tern_place *place, const tern_convolution *c, const plan *p,
                               const char *name, void **kernel)
{
    tern_cl_gemm_state *state = tern_cl_gemm_state_of(place);
    const tern_cl_tiled of = {.file = "convolution_tiles.cl",
                              .name = name,
                              .function = "tern_conv2d",
                              .tile = p->tile,
                              .dtype = c->dtype,
                              .layout = c->pass == TERN_CONV_WEIGHT ? 2 : 0,
                              .narrow = true};
    if (!state)
        return TERN_ERR_MEMORY;
    tern_cl_kernel *found = NULL;
    tern_mutex_lock(&state->lock);
    tern_status status = tern_cl_tile_kernel(place, state, of, &found);
    tern_mutex_unlock(&state->lock);
    *kernel = found;
    return status;
}

/* Returns whether the convolution is computed by vectors: not if a product of columns would leave
 * fewer lanes idle, nor with so few channels per group that direct sums are better. */
static bool fits_vectors(const tern_convolution *c, const tern_conv_tiles *g)
{
    const tern_conv_shape *s = c->shape;
    int64_t patch = 1, wide = c->pass == TERN_CONV_WEIGHT ? 8 : g->column.size[2];
    for (int d = 0; d < 3; d++)
        patch = tern_size_mul(patch, (s->window[d] - 1) * s->dilation[d] + 1 +
                                         (d == 2 ? (TERN_CONV_WIDE + 1) * s->stride[2] : 0));
    return volume(s->window) <= TERN_CONV_K && patch <= TERN_CONV_IMAGE &&
           2 * wide >= divide_up(wide, 8) * 8 &&
           (s->groups == 1 || s->o / s->groups * (s->c / s->groups) >= SMALL);
}

static tern_status find_vector_kernel(tern_place *place, tern_dtype dtype, int which, void **kernel)
{
    static const char *const names[] = {"conv_vector", "conv_vector_dw", "conv_parts"};
    tern_cl_gemm_state *state = tern_cl_gemm_state_of(place);
    if (!state)
        return TERN_ERR_MEMORY;
    tern_mutex_lock(&state->lock);
    void **slot = &state->convolve[which][dtype];
    tern_status status =
        *slot ? TERN_OK : tern_cl_resolve(place, "convolution_vector", names[which], dtype, slot);
    *kernel = *slot;
    tern_mutex_unlock(&state->lock);
    return status;
}

static tern_status plan_vectors(tern_place *place, const tern_convolution *c, plan *p)
{
    tern_conv_tiles *g = &p->first;
    const bool weight = c->pass == TERN_CONV_WEIGHT;
    if (!fits_vectors(c, g))
        return TERN_OK;
    p->groups = smaller(2 * (int64_t)tern_place_info(place)->compute_units,
                        MOST_SCRATCH / (4 * TERN_CONV_SCRATCH));
    if (weight) {
        int64_t tasks = divide_up(g->m, TERN_CONV_M) * divide_up(g->n, TERN_CONV_K) * g->groups;
        int64_t most =
            smaller(divide_up(g->k, TERN_CONV_WIDE), MOST_SCRATCH / (4 * (int64_t)g->whole));
        int64_t parts = smaller(divide_up(p->groups, tasks), most);
        g->parts = parts > 1 ? (int32_t)parts : 1;
        TERN_TRY(find_vector_kernel(place, c->dtype, 2, &p->sum));
    }
    p->scratch = (size_t)(g->parts * g->whole + p->groups * TERN_CONV_SCRATCH) * sizeof(float);
    return find_vector_kernel(place, c->dtype, weight, &p->multiply);
}

/* Plans the tiles of convolution_tiles.cl. */
static tern_status plan_tiles(tern_place *place, const tern_convolution *c, plan *p)
{
    static const char multiply[] = "conv_tiles", sum[] = "conv_parts";
    const tern_cl_state *s = tern_cl_state_of(place);
    const size_t lines = ((size_t)p->tile.across * p->tile.n + p->tile.k) * 5 * sizeof(int32_t);
    if (p->first.m < SMALL || lines > s->local_memory ||
        tern_cl_tile_check(&p->tile, s->local_memory - lines, s->group_limit))
        return TERN_OK;
    p->rows = (int64_t)p->tile.down * p->tile.m;
    p->columns = (int64_t)p->tile.across * p->tile.n;
    p->scratch = tern_conv_cut(&p->first, p->rows, p->columns, p->tile.k,
                               (int64_t)tern_place_info(place)->compute_units * GROUPS_PER_UNIT);
    if (p->scratch) {
        TERN_TRY(find_kernel(place, c, p, sum, &p->sum));
        if (!p->sum)
            return TERN_OK;
    }
    return find_kernel(place, c, p, multiply, &p->multiply);
}

/* Returns the local memory for the image's lines (convolution_lines.h), beside the tile's. */
static size_t lines_of(const tern_cl_tile *t)
{
    return (size_t)(t->m > t->n ? t->m : t->n) * 20 + (size_t)t->k * 24;
}

static tern_status plan_matrix(tern_place *place, const tern_convolution *c, int way, plan *p)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    tern_cl_gemm_state *state;
    void *kernels[2];
    bool usable;
    p->matrix = tern_conv_variant_of(c, way, p->tile.m, p->tile.n, p->tile.k);
    p->tile.k = (uint16_t)p->matrix.depth;
    p->layout = tern_conv_layout_of(&p->matrix);
    const size_t lines = lines_of(&p->tile);
    if (lines > s->local_memory ||
        tern_cl_matrix_tile_check(&p->tile, s->local_memory - lines, s->group_limit))
        return TERN_OK;
    if (!(state = tern_cl_gemm_state_of(place)))
        return TERN_ERR_MEMORY;
    p->scratch =
        tern_conv_matrix_plan(&p->first, c, &p->matrix, tern_place_info(place)->compute_units);
    tern_mutex_lock(&state->lock);
    tern_status status = tern_conv_matrix_find(place, tern_cl_matrix_prepare, &p->matrix,
                                               p->scratch ? PARTS_GROUP : 0, kernels, &usable);
    tern_mutex_unlock(&state->lock);
    TERN_TRY(status);
    p->multiply = kernels[0];
    p->sum = kernels[1];
    return TERN_OK;
}

/* Fills the plan. p->multiply is NULL if the kernels of this file can't compute the convolution. */
static tern_status make_plan(tern_place *place, const tern_convolution *c, plan *p)
{
    static const int64_t zeros[3];
    int matrix;
    *p = (plan){.layout = {false, 1}};
    if (c->dtype == TERN_F64 || !tern_conv_is_narrow(c))
        return TERN_OK;
    tern_conv_product_of(&p->first, c, p->layout, zeros);
    const bool halves = tern_conv_fits_matrix(c, &p->first);
    if (!halves && (c->channels_last || !tern_conv_needs_columns(c)))
        return TERN_OK;
    const tern_gemm like = {.dtype = c->dtype,
                            .m = p->first.m,
                            .n = p->first.n,
                            .k = p->first.k,
                            .count = {1, p->first.groups},
                            .alpha = 1,
                            .a = {.col = 1},
                            .b = {.col = 1},
                            .c = {.col = 1}};
    tern_cl_way way = tern_cl_convolution_tile(place, &like, &p->tile, halves ? &matrix : NULL);
    if (way == TERN_CL_MATRIX) {
        TERN_TRY(plan_matrix(place, c, matrix, p));
        if (p->multiply)
            return TERN_OK;
        *p = (plan){.layout = {false, 1}};
        tern_conv_product_of(&p->first, c, p->layout, zeros);
        way = tern_cl_convolution_tile(place, &like, &p->tile, NULL);
    }
    if (c->channels_last || !tern_conv_needs_columns(c))
        return TERN_OK;
    if (way == TERN_CL_TILES)
        return plan_tiles(place, c, p);
    return tern_cl_state_of(place)->cpu_form ? plan_vectors(place, c, p) : TERN_OK;
}

static tern_status find_plan(tern_place *place, tern_convolution *c, size_t *scratch, bool *taken)
{
    plan p;
    TERN_TRY(make_plan(place, c, &p));
    *taken = p.multiply != NULL;
    *scratch = p.scratch;
    return TERN_OK;
}

/* ---- running ----------------------------------------------------------------------------- */

typedef struct running {
    tern_place *place;
    const plan *p;
} running;

static tern_status launch_vectors(tern_place *place, const plan *p, const tern_conv_tiles *t,
                                  const tern_arg operands[5])
{
    const tern_arg shape = TERN_ARG_STRUCT(tern_conv_tiles, t);
    const tern_arg args[] = {operands[0], operands[1], operands[2],
                             operands[3], operands[4], shape};
    const tern_arg weight[] = {operands[1], operands[2], operands[3], shape};
    tern_grid grid = tern_groups(p->groups, (int64_t)t->m * t->n / p->groups * t->k);
    return p->sum ? tern_cl_launch(place, p->multiply, &grid, weight, 4)
                  : tern_cl_launch(place, p->multiply, &grid, args, 6);
}

static tern_status launch(void *user, const tern_conv_tiles *t, const tern_arg operands[5])
{
    const running *r = user;
    const plan *p = r->p;
    if (p->groups)
        return launch_vectors(r->place, p, t, operands);
    if (p->matrix.rows)
        return tern_conv_matrix_launch(r->place, p->multiply, &p->matrix, t, operands);
    const tern_arg args[] = {operands[0], operands[1], operands[2],
                             operands[3], operands[4], TERN_ARG_STRUCT(tern_conv_tiles, t)};
    int64_t tiles = divide_up(t->m, p->rows) * divide_up(t->n, p->columns) * t->groups * t->parts;
    tern_grid grid = tern_groups(tiles, p->rows * p->columns * (t->part + 1));
    return tern_cl_launch(r->place, p->multiply, &grid, args, sizeof args / sizeof *args);
}

static tern_status run(tern_place *place, const tern_convolution *c, bool *taken)
{
    plan p;
    running r = {place, &p};
    TERN_TRY(make_plan(place, c, &p));
    *taken = p.multiply && !p.scratch == !c->scratch;
    if (!*taken)
        return TERN_OK;
    const tern_conv_launches launches = {p.layout, p.first.parts, p.groups ? 0 : p.tile.k,
                                         p.sum,    launch,        &r};
    return tern_conv_launch(place, c, &launches);
}

const tern_vendor tern_cl_vendor = {.convolution = run,
                                    .convolution_plan = find_plan,
                                    .describe = tern_cl_describe,
                                    .attention = tern_cl_attention,
                                    .attends_wide = tern_cl_attends_wide,
                                    .attention_plan = tern_cl_attention_plan,
                                    .accumulates_convolutions = true};
