/* convolution.c -- convolutions as products that gather from the image, by tiles on GPUs
 * (convolution_tiles.cl) and by vectors on processors (convolution_vector.cl), where the other way
 * would write columns to memory and read them again. That way is left a convolution with one tap
 * and stride 1, which needs no columns; one with few channels a group, where most of a tile would
 * be empty; what is too large for indices of 32 bits; and what a tuned device multiplies faster
 * otherwise. */
#include "base/checked.h"
#include "base/lock.h"
#include "device/device.h"
#include "device/index32.h"
#include "device/opencl/gemm.h"
#include "types_host.h"
#include "shapes.h"

/* Fewer channels than that go another way; work-groups that fill a compute unit, and how many
 * chunks of a sum are worth a group of its own; bytes of sums that are added up afterwards. */
enum { SMALL = 8, GROUPS_PER_UNIT = 8, CHUNKS = 8, MOST_SCRATCH = 64 << 20 };

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

static int64_t common_divisor(int64_t a, int64_t b)
{
    for (int64_t rest; b; b = rest) {
        rest = a % b;
        a = b;
    }
    return a;
}

/* ---- as a product ------------------------------------------------------------------------ */

/* Where numbers along an array of three dims are in it, `times` apart from `from` on. */
static void put_along(tern_conv_line *line, const int64_t *dims, const int64_t *times,
                      const int64_t *from)
{
    for (int64_t d = 2, step = 1; d >= 0; step *= dims[d--]) {
        line->along_at[d] = (int32_t)(times[d] * step);
        line->at += (int32_t)(from[d] * step);
    }
}

/* y looks at x at q stride - padding + k dilation; of the weight's gradient rows and columns are
 * exchanged. */
static void describe_y(const tern_conv_shape *s, tern_conv_line *places, tern_conv_line *taps)
{
    static const int64_t ones[3] = {1, 1, 1}, zeros[3];
    for (int d = 0; d < 3; d++) {
        places->size[d] = (int32_t)s->out[d];
        places->first[d] = (int32_t)-s->padding[d];
        places->step[d] = (int32_t)s->stride[d];
        taps->size[d] = (int32_t)s->window[d];
        taps->step[d] = (int32_t)s->dilation[d];
    }
    places->outer = (int32_t)(s->c * volume(s->in));
    places->outer_at = (int32_t)(s->o * volume(s->out));
    taps->outer = (int32_t)volume(s->in);
    taps->outer_at = (int32_t)volume(s->window);
    put_along(places, s->out, ones, zeros);
    put_along(taps, s->window, ones, zeros);
}

/* dx at i = phase + a stride looks at dy at (i + padding - k dilation) / stride, where that is
 * whole: with one phase it is so for every `every`th k, whose places are `step` apart, or for
 * none. */
static void describe_x(const tern_conv_shape *s, const int64_t *phase, tern_conv_line *places,
                       tern_conv_line *taps)
{
    int64_t first[3], every[3];
    for (int d = 0; d < 3; d++) {
        int64_t stride = s->stride[d], at = phase[d] + s->padding[d], k = 0;
        every[d] = stride / common_divisor(stride, s->dilation[d]);
        while (k < s->window[d] && (at - k * s->dilation[d]) % stride)
            k++;
        first[d] = k;
        taps->size[d] = (int32_t)divide_up(s->window[d] - k, every[d]);
        taps->step[d] = (int32_t)(-every[d] * s->dilation[d] / stride);
        places->size[d] = (int32_t)divide_up(s->in[d] - phase[d], stride);
        places->first[d] = (int32_t)((at - k * s->dilation[d]) / stride);
        places->step[d] = 1;
    }
    places->outer = (int32_t)(s->o * volume(s->out));
    places->outer_at = (int32_t)(s->c * volume(s->in));
    taps->outer = (int32_t)volume(s->out);
    taps->outer_at = (int32_t)(s->c / s->groups * volume(s->window));
    put_along(places, s->in, s->stride, phase);
    put_along(taps, s->window, every, first);
}

static int64_t size_of(const tern_conv_line *line)
{
    return (int64_t)line->size[0] * line->size[1] * line->size[2];
}

static tern_conv_tiles product_of(const tern_convolution *c, const int64_t *phase)
{
    const tern_conv_shape *s = c->shape;
    const int64_t of_group = s->o / s->groups, each = s->c / s->groups;
    const int64_t ins = volume(s->in), outs = volume(s->out), taps = volume(s->window);
    const int64_t x_group = each * ins, y_group = of_group * outs, w_group = of_group * each * taps;
    tern_conv_line places = {.at = 0}, over = {.at = 0};
    bool back = c->pass == TERN_CONV_X, weight = c->pass == TERN_CONV_WEIGHT;
    if (back)
        describe_x(s, phase, &places, &over);
    else
        describe_y(s, &places, &over);
    const int64_t rows = size_of(&over) * (back ? of_group : each),
                  columns = s->n * size_of(&places);
    tern_conv_tiles t = {.groups = (int32_t)s->groups, .row = weight ? places : over};
    t.column = weight ? over : places;
    t.m = (int32_t)(back ? each : of_group);
    t.n = (int32_t)(weight ? rows : columns);
    t.k = (int32_t)(weight ? columns : rows);
    t.a_row = (int32_t)(back ? taps : weight ? outs : each * taps);
    t.c_row = (int32_t)(back ? ins : weight ? each * taps : outs);
    t.a_group = (int32_t)(weight ? y_group : w_group);
    t.b_group = (int32_t)(back ? y_group : x_group);
    t.c_group = (int32_t)(back ? x_group : weight ? w_group : y_group);
    t.whole = (int32_t)(s->groups * t.c_group * (weight ? 1 : s->n));
    t.outs = (int32_t)outs;
    t.channels = (int32_t)s->o;
    t.has_bias = c->bias.buffer != NULL;
    t.adds = c->adds;
    for (int d = 0; d < 3; d++) {
        t.end[d] = (int32_t)(back ? s->out[d] : s->in[d]);
        t.row.size[d] += t.row.size[d] == 0; /* then k is 0 */
    }
    return t;
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
    tern_conv_tiles first; /* of the first phase */
    tern_cl_tile tile;
    int64_t groups;                 /* that have a part of the scratch each; 0: by tiles */
    tern_cl_kernel *multiply, *sum; /* sum: of parts alone */
    size_t scratch;
} plan;

/* Few work-groups that sum for long are cut along k. */
static void cut(tern_place *place, plan *p)
{
    const tern_cl_tile *t = &p->tile;
    const tern_conv_tiles *g = &p->first;
    int64_t tiles = divide_up(g->m, t->down * t->m) * divide_up(g->n, t->across * t->n) * g->groups;
    int64_t wanted = (int64_t)tern_place_info(place)->compute_units * GROUPS_PER_UNIT;
    int64_t most = smaller(g->k / (t->k * CHUNKS), MOST_SCRATCH / (4 * (int64_t)g->whole));
    int64_t parts = smaller(divide_up(wanted, tiles), most);
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

/* No kernel: the convolution goes another way. */
static tern_status make_plan(tern_place *place, const tern_convolution *c, plan *p)
{
    static const char multiply[] = "conv_tiles", sum[] = "conv_parts";
    static const int64_t zeros[3];
    const tern_cl_state *s = tern_cl_state_of(place);
    *p = (plan){.scratch = 0};
    if (c->dtype == TERN_F64 || c->channels_last || !needs_columns(c) || !is_narrow(c))
        return TERN_OK;
    p->first = product_of(c, zeros);
    const tern_gemm like = {.dtype = c->dtype,
                            .m = p->first.m,
                            .n = p->first.n,
                            .k = p->first.k,
                            .count = {1, p->first.groups},
                            .alpha = 1,
                            .a = {.col = 1},
                            .b = {.col = 1},
                            .c = {.col = 1}};
    if (!tern_cl_convolution_tile(place, &like, &p->tile))
        return s->cpu_form ? plan_vectors(place, c, p) : TERN_OK;
    if (like.m < SMALL)
        return TERN_OK;
    const size_t lines = ((size_t)p->tile.across * p->tile.n + p->tile.k) * 5 * sizeof(int32_t);
    if (lines > s->local_memory ||
        tern_cl_tile_check(&p->tile, s->local_memory - lines, s->group_limit))
        return TERN_OK;
    cut(place, p);
    if (p->scratch) {
        TERN_TRY(find_kernel(place, c, p, sum, &p->sum));
        if (!p->sum)
            return TERN_OK;
    }
    return find_kernel(place, c, p, multiply, &p->multiply);
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
    const int64_t rows = p->tile.down * p->tile.m, columns = p->tile.across * p->tile.n;
    t->parts = p->first.parts;
    if (p->groups)
        return launch_vectors(place, p, o, t);
    t->part = (int32_t)(divide_up(divide_up(t->k, t->parts), p->tile.k) * p->tile.k);
    int64_t tiles = divide_up(t->m, rows) * divide_up(t->n, columns) * t->groups * t->parts;
    tern_grid grid = tern_groups(tiles, rows * columns * (t->part + 1));
    return tern_cl_launch(place, p->multiply, &grid, args, sizeof args / sizeof *args);
}

/* dx has a product for each phase of the stride that is in the image; all others one. */
static tern_status launch_all(tern_place *place, const tern_convolution *c, const plan *p,
                              const operands *o)
{
    int64_t n[3] = {1, 1, 1};
    for (int d = 0; d < 3 && c->pass == TERN_CONV_X; d++)
        n[d] = smaller(c->shape->stride[d], c->shape->in[d]);
    for (int64_t i = 0; i < volume(n); i++) {
        const int64_t phase[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
        tern_conv_tiles t = product_of(c, phase);
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
    tern_grid grid = {p.first.whole, p.first.whole, 0};
    return tern_cl_launch(place, p.sum, &grid, args, sizeof args / sizeof *args);
}

const tern_vendor tern_cl_vendor = {.convolution = run,
                                    .convolution_plan = find_plan,
                                    .attention = tern_cl_attention,
                                    .attention_plan = tern_cl_attention_plan,
                                    .adds_convolutions = true};
