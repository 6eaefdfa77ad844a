/* convolution.c -- convolutions as products that gather from the image, on matrix units
 * (convolution_matrix.cl, of halves), by tiles on GPUs (convolution_tiles.cl) and by vectors on
 * processors (convolution_vector.cl), where the other way would write columns to memory and read
 * them again. That way is left a convolution of rows with one tap and stride 1, which needs no
 * columns; one with few channels a group, where most of a tile would be empty; what is too large
 * for indices of 32 bits; and what a tuned device multiplies faster otherwise. channels_last is for
 * matrix units alone. */
#include "base/checked.h"
#include "base/lock.h"
#include "device/conv_product.h"
#include "device/device.h"
#include "device/index32.h"
#include "device/opencl/gemm.h"
#include "types_host.h"
#include "shapes.h"

/* Fewer channels than that go another way; work-groups that fill a compute unit, and how many
 * chunks of a sum are worth a group of its own; bytes of sums that are added up afterwards. */
enum { SMALL = 8, GROUPS_PER_UNIT = 8, CHUNKS = 8, MOST_SCRATCH = 64 << 20 };
/* Of matrix units: rows, columns and depth that are worth a tile of 64 x 64. */
enum { SMALL_MATRIX = 16, MATRIX_GROUPS_PER_UNIT = 2 };

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

static bool is_narrow(const tern_convolution *c)
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

static bool needs_columns(const tern_convolution *c)
{
    const tern_conv_shape *s = c->shape;
    for (int d = 0; d < 3; d++)
        if (s->window[d] != 1 || s->stride[d] != 1 || s->padding[d] != 0)
            return true;
    return c->pass == TERN_CONV_WEIGHT;
}

typedef struct plan {
    tern_conv_layout layout;
    tern_conv_tiles first; /* of the first phase */
    tern_cl_tile tile;
    int64_t rows, columns;          /* of a tile, of the product; */
    int64_t wanted;                 /* groups that fill the device */
    int64_t groups;                 /* that have a part of the scratch each; 0: by tiles */
    tern_cl_kernel *multiply, *sum; /* sum: of parts alone */
    size_t scratch;
    tern_cl_matrix_kernel matrix; /* with a file: on a matrix unit */
} plan;

static tern_conv_tiles product_of(const tern_convolution *c, const plan *p, const int64_t *phase)
{
    tern_conv_tiles t;
    tern_conv_product(&t, c->shape, (int)c->pass, p->layout, phase);
    t.has_bias = c->bias.buffer != NULL;
    t.adds = c->adds;
    const tern_arg *result = c->pass == TERN_CONV_Y   ? &c->y
                             : c->pass == TERN_CONV_X ? &c->x
                                                      : &c->weight;
    if ((result->at | (t.has_bias ? c->bias.at : 0)) % 8)
        t.width = 1;
    return t;
}

/* Few work-groups that sum for long are cut along k. */
static void cut(plan *p)
{
    const tern_cl_tile *t = &p->tile;
    const tern_conv_tiles *g = &p->first;
    int64_t tiles = divide_up(g->m, p->rows) * divide_up(g->n, p->columns) * g->groups;
    int64_t most = smaller(g->k / (t->k * CHUNKS), MOST_SCRATCH / (4 * (int64_t)g->whole));
    int64_t parts = smaller(divide_up(p->wanted, tiles), most);
    p->first.parts = parts > 1 ? (int32_t)parts : 1;
    p->scratch = parts > 1 ? (size_t)(parts * g->whole) * sizeof(float) : 0;
}

static tern_status find_kernel(tern_place *place, const tern_convolution *c, const plan *p,
                               const char *name, tern_cl_kernel **kernel)
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
    tern_mutex_lock(&state->lock);
    tern_status status = tern_cl_tile_kernel(place, state, of, kernel);
    tern_mutex_unlock(&state->lock);
    return status;
}

/* By vectors: unless a product by columns would leave fewer lanes idle, and what sums of few
 * channels are better at. */
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

static tern_status find_vector_kernel(tern_place *place, tern_dtype dtype, int which,
                                      tern_cl_kernel **kernel)
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

/* By tiles of convolution_tiles.cl. */
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
    p->wanted = (int64_t)tern_place_info(place)->compute_units * GROUPS_PER_UNIT;
    cut(p);
    if (p->scratch) {
        TERN_TRY(find_kernel(place, c, p, sum, &p->sum));
        if (!p->sum)
            return TERN_OK;
    }
    return find_kernel(place, c, p, multiply, &p->multiply);
}

/* Local memory of the lines, beside the tile's. */
static size_t lines_of(const tern_cl_tile *t)
{
    return (size_t)(t->m > t->n ? t->m : t->n) * 20 + (size_t)t->k * 24;
}

static tern_status plan_matrix(tern_place *place, const tern_convolution *c, int way, plan *p)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    tern_cl_matrix_kernel sum = {.file = tern_cl_parts_file, .dtype = c->dtype, .narrow = true};
    tern_cl_gemm_state *state;
    p->matrix = tern_cl_conv_kernel(c, way, &p->tile);
    p->tile = p->matrix.tile;
    p->layout = (tern_conv_layout){c->channels_last, p->matrix.unit};
    static const int64_t zeros[3];
    p->first = product_of(c, p, zeros);
    const bool swapped = c->channels_last && c->pass != TERN_CONV_WEIGHT;
    p->rows = swapped ? p->tile.n : p->tile.m;
    p->columns = swapped ? p->tile.m : p->tile.n;
    p->wanted = (int64_t)tern_place_info(place)->compute_units * MATRIX_GROUPS_PER_UNIT;
    const size_t lines = lines_of(&p->tile);
    if (lines > s->local_memory ||
        tern_cl_matrix_tile_check(&p->tile, s->local_memory - lines, s->group_limit))
        return TERN_OK;
    if (!(state = tern_cl_gemm_state_of(place)))
        return TERN_ERR_MEMORY;
    cut(p);
    tern_mutex_lock(&state->lock);
    tern_status status = p->scratch ? tern_cl_matrix_find(place, state, &sum, &p->sum) : TERN_OK;
    if (status == TERN_OK && (p->sum || !p->scratch))
        status = tern_cl_matrix_find(place, state, &p->matrix, &p->multiply);
    tern_mutex_unlock(&state->lock);
    p->matrix.kernel = p->multiply;
    return status;
}

/* What is large enough for a matrix unit's tile. channels_last it is by tiles alone that a
 * convolution of one tap goes. */
static bool fits_matrix(const tern_convolution *c, const tern_conv_tiles *g)
{
    return tern_dtype_is_half(c->dtype) && (c->channels_last || needs_columns(c)) &&
           g->m >= SMALL_MATRIX && g->n >= SMALL_MATRIX && g->k >= SMALL_MATRIX;
}

/* No kernel: the convolution goes another way. */
static tern_status make_plan(tern_place *place, const tern_convolution *c, plan *p)
{
    static const int64_t zeros[3];
    int matrix;
    *p = (plan){.layout = {false, 1}};
    if (c->dtype == TERN_F64 || !is_narrow(c))
        return TERN_OK;
    p->first = product_of(c, p, zeros);
    const bool halves = fits_matrix(c, &p->first);
    if (!halves && (c->channels_last || !needs_columns(c)))
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
        p->first = product_of(c, p, zeros);
        way = tern_cl_convolution_tile(place, &like, &p->tile, NULL);
    }
    if (c->channels_last || !needs_columns(c))
        return TERN_OK;
    if (way == TERN_CL_TILES)
        return plan_tiles(place, c, p);
    return tern_cl_state_of(place)->cpu_form ? plan_vectors(place, c, p) : TERN_OK;
}

static tern_status find_plan(tern_place *place, const tern_convolution *c, size_t *scratch,
                             bool *taken)
{
    plan p;
    TERN_TRY(make_plan(place, c, &p));
    *taken = p.multiply != NULL;
    *scratch = p.scratch;
    return TERN_OK;
}

/* ---- running ----------------------------------------------------------------------------- */

typedef struct operands {
    tern_arg c, sums, a, b, bias;
} operands;

static operands operands_of(const tern_convolution *c)
{
    operands o = {.bias = c->bias.buffer ? c->bias : c->weight};
    o.a = c->pass == TERN_CONV_WEIGHT ? c->y : c->weight;
    o.b = c->pass == TERN_CONV_X ? c->y : c->x;
    o.c = c->pass == TERN_CONV_X ? c->x : c->pass == TERN_CONV_Y ? c->y : c->weight;
    o.sums = o.c; /* where there is none, it is not touched */
    if (c->scratch)
        o.sums = tern_arg_buffer(TERN_ROLE_OUT, TERN_F32, c->scratch, 0);
    return o;
}

static tern_status launch_vectors(tern_place *place, const plan *p, const operands *o,
                                  const tern_conv_tiles *t)
{
    const tern_arg shape = TERN_ARG_STRUCT(tern_conv_tiles, t);
    const tern_arg args[] = {o->c, o->sums, o->a, o->b, o->bias, shape};
    const tern_arg weight[] = {o->sums, o->a, o->b, shape};
    tern_grid grid = tern_groups(p->groups, (int64_t)t->m * t->n / p->groups * t->k);
    return p->sum ? tern_cl_launch(place, p->multiply, &grid, weight, 4)
                  : tern_cl_launch(place, p->multiply, &grid, args, 6);
}

static tern_status launch(tern_place *place, const plan *p, const operands *o, tern_conv_tiles *t)
{
    const tern_arg args[] = {o->c, o->sums, o->a,
                             o->b, o->bias, TERN_ARG_STRUCT(tern_conv_tiles, t)};
    t->parts = p->first.parts;
    if (p->groups)
        return launch_vectors(place, p, o, t);
    t->part = (int32_t)(divide_up(divide_up(t->k, t->parts), p->tile.k) * p->tile.k);
    if (p->matrix.file)
        return tern_cl_conv_launch(place, &p->matrix, t, args);
    int64_t tiles = divide_up(t->m, p->rows) * divide_up(t->n, p->columns) * t->groups * t->parts;
    tern_grid grid = tern_groups(tiles, p->rows * p->columns * (t->part + 1));
    return tern_cl_launch(place, p->multiply, &grid, args, sizeof args / sizeof *args);
}

/* dx has a product for each phase of the stride that is in the image; all others one. */
static tern_status launch_all(tern_place *place, const tern_convolution *c, const plan *p,
                              const operands *o)
{
    int64_t n[3];
    tern_conv_phases(c->shape, (int)c->pass, n);
    for (int64_t i = 0; i < volume(n); i++) {
        const int64_t phase[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
        tern_conv_tiles t = product_of(c, p, phase);
        TERN_TRY(launch(place, p, o, &t));
    }
    return TERN_OK;
}

static tern_status run(tern_place *place, const tern_convolution *c, bool *taken)
{
    plan p;
    TERN_TRY(make_plan(place, c, &p));
    *taken = p.multiply && !p.scratch == !c->scratch;
    if (!*taken)
        return TERN_OK;
    const operands o = operands_of(c);
    TERN_TRY(launch_all(place, c, &p, &o));
    if (!p.sum)
        return TERN_OK;
    const tern_arg args[] = {o.c, o.sums, o.bias, TERN_ARG_STRUCT(tern_conv_tiles, &p.first)};
    tern_grid grid = {p.first.whole, p.first.whole, 0, false};
    return tern_cl_launch(place, p.sum, &grid, args, sizeof args / sizeof *args);
}

const tern_vendor tern_cl_vendor = {.convolution = run,
                                    .convolution_plan = find_plan,
                                    .describe = tern_cl_describe,
                                    .attention = tern_cl_attention,
                                    .attends_wide = tern_cl_attends_wide,
                                    .attention_plan = tern_cl_attention_plan,
                                    .adds_convolutions = true};
