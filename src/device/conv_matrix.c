/* conv_matrix.c -- half precision convolutions on matrix units: the variants of
 * convolution_matrix.cl, its launch and its trial. */
#include "device/conv_matrix.h"
#include "device/matrix_trial.h"
#include "device/place.h"
#include "types_host.h"
#include "shapes.h"

/* SMALL: the fewest rows, columns and depth for which a tile of 64 x 64 is worthwhile. ODD_DEPTH:
 * the most depth if elements are loaded one by one, which needs more registers. */
enum { SMALL = 16, EIGHT = 8, LEAST_UNIT = 4, ODD_DEPTH = 32, GROUPS_PER_UNIT = 2 };

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

bool tern_conv_fits_matrix(const tern_convolution *c, const tern_conv_tiles *t)
{
    return tern_dtype_is_half(c->dtype) && (c->channels_last || tern_conv_needs_columns(c)) &&
           t->m >= SMALL && t->n >= SMALL && t->k >= SMALL;
}

/* Returns `odd` of the variant: an operand is odd unless eight channels are contiguous and aligned;
 * these are the image's channels, and the other operand's channels along its rows or the depth. */
static int odd_of(const tern_convolution *c)
{
    const tern_conv_shape *s = c->shape;
    const int64_t each = s->c / s->groups, of_group = s->o / s->groups;
    const bool back = c->pass == TERN_CONV_X, weight = c->pass == TERN_CONV_WEIGHT;
    const tern_arg *image = back ? &c->y : &c->x, *other = weight ? &c->y : &c->weight;
    const bool image_odd =
        (back ? of_group : each) % EIGHT != 0 || !tern_conv_lies_in_eights(image);
    const bool other_odd =
        (weight ? of_group : each) % EIGHT != 0 || !tern_conv_lies_in_eights(other);
    return c->channels_last ? image_odd + 2 * other_odd : 3;
}

tern_conv_variant tern_conv_variant_of(const tern_convolution *c, int way, int rows, int columns,
                                       int depth)
{
    const tern_conv_shape *s = c->shape;
    tern_conv_variant v = {.dtype = c->dtype,
                           .way = way,
                           .rows = rows,
                           .columns = columns,
                           .depth = depth,
                           .channels_last = c->channels_last,
                           .odd = odd_of(c),
                           .pass = (int)c->pass,
                           .unit = 1};
    if (v.odd && v.depth > ODD_DEPTH)
        v.depth = ODD_DEPTH;
    if (c->pass != TERN_CONV_WEIGHT)
        v.unit = tern_conv_unit((c->pass == TERN_CONV_X ? s->o : s->c) / s->groups,
                                v.odd == 3 ? LEAST_UNIT : EIGHT, v.depth);
    return v;
}

/* Sets the tile's size along the product's columns (*lines, n) and rows (*others, m). Positions are
 * columns of the product, but rows of a result with channels_last. */
static void sizes_of(const tern_conv_variant *v, int64_t *lines, int64_t *others)
{
    const bool places_are_rows = v->channels_last && v->pass != TERN_CONV_WEIGHT;
    *lines = places_are_rows ? v->rows : v->columns;
    *others = places_are_rows ? v->columns : v->rows;
}

size_t tern_conv_matrix_plan(tern_conv_tiles *t, const tern_convolution *c,
                             const tern_conv_variant *v, int64_t compute_units)
{
    static const int64_t zeros[3];
    int64_t lines, others;
    sizes_of(v, &lines, &others);
    tern_conv_product_of(t, c, tern_conv_layout_of(v), zeros);
    return tern_conv_cut(t, others, lines, v->depth, compute_units * GROUPS_PER_UNIT);
}

tern_status tern_conv_matrix_launch(tern_place *place, void *kernel, const tern_conv_variant *v,
                                    const tern_conv_tiles *t, const tern_arg operands[5])
{
    const tern_arg args[] = {operands[0], operands[1], operands[2],
                             operands[3], operands[4], TERN_ARG_STRUCT(tern_conv_tiles, t)};
    int64_t lines, others;
    sizes_of(v, &lines, &others);
    const int64_t tiles = divide_up(t->n, lines) * divide_up(t->m, others);
    const tern_grid grid =
        tern_groups(tiles * t->groups * t->parts, lines * others * (t->part + 1));
    return place->backend->launch(place, kernel, &grid, args, sizeof args / sizeof *args);
}

/* ---- a trial ------------------------------------------------------------------------------- */

/* Returns the index of element (n, c, place). */
static int64_t at(bool last, int64_t n, int64_t c, int64_t place, int64_t channels, int64_t places)
{
    return last ? (n * places + place) * channels + c : (n * channels + c) * places + place;
}

enum { DOWN = 5, ACROSS = 7, TAPS_DOWN = 3, TAPS_ACROSS = 2, OUT_DOWN = 3, OUT_ACROSS = 8 };

/* Computes the pass by its definition, for x (1, c, 5, 7), weight (o, c, 3, 2), stride (2, 1) and
 * padding 1. */
static void convolve(const tern_conv_shape *s, int pass, bool last, const int *given[3], int *out)
{
    for (int64_t u = 0; u < s->o * s->c * TAPS_DOWN * TAPS_ACROSS; u++) {
        const int64_t k = u % (TAPS_DOWN * TAPS_ACROSS), c = u / (TAPS_DOWN * TAPS_ACROSS) % s->c;
        const int64_t o = u / (TAPS_DOWN * TAPS_ACROSS) / s->c;
        const int64_t w = at(last, o, c, k, s->c, TAPS_DOWN * TAPS_ACROSS);
        for (int64_t q = 0; q < OUT_DOWN * OUT_ACROSS; q++) {
            const int64_t i = q / OUT_ACROSS * 2 - 1 + k / TAPS_ACROSS;
            const int64_t j = q % OUT_ACROSS - 1 + k % TAPS_ACROSS;
            if (i < 0 || i >= DOWN || j < 0 || j >= ACROSS)
                continue;
            const int64_t x = at(last, 0, c, i * ACROSS + j, s->c, DOWN * ACROSS);
            const int64_t y = at(last, 0, o, q, s->o, OUT_DOWN * OUT_ACROSS);
            if (pass == TERN_CONV_Y)
                out[y] += given[0][x] * given[1][w];
            else if (pass == TERN_CONV_X)
                out[x] += given[2][y] * given[1][w];
            else
                out[w] += given[2][y] * given[0][x];
        }
    }
}

typedef struct launching {
    tern_place *place;
    void *kernel;
    const tern_conv_variant *of;
} launching;

static tern_status launch(void *user, const tern_conv_tiles *t, const tern_arg operands[5])
{
    const launching *of = user;
    return tern_conv_matrix_launch(of->place, of->kernel, of->of, t, operands);
}

static tern_status compute(tern_place *place, void *kernel, const tern_conv_variant *k,
                           tern_matrix_trial *t, bool *right)
{
    const int pass = k->pass, a = pass == TERN_CONV_WEIGHT ? 2 : 1, b = pass == TERN_CONV_X ? 2 : 0;
    /* The bits of odd for which c or o must not be a multiple of eight. */
    const int of_c = pass == TERN_CONV_Y ? 3 : pass == TERN_CONV_X ? 2 : 1, of_o = 3 - of_c;
    const tern_conv_shape s = {.n = 1,
                               .c = (k->odd & of_c) == of_c ? 19 : 24,
                               .o = of_o && (k->odd & of_o) == of_o ? 70 : 72,
                               .groups = 1,
                               .in = {1, DOWN, ACROSS},
                               .out = {1, OUT_DOWN, OUT_ACROSS},
                               .window = {1, TAPS_DOWN, TAPS_ACROSS},
                               .stride = {1, 2, 1},
                               .padding = {0, 1, 1},
                               .dilation = {1, 1, 1}};
    const size_t sizes[] = {(size_t)s.c * DOWN * ACROSS,
                            (size_t)(s.o * s.c) * TAPS_DOWN * TAPS_ACROSS,
                            (size_t)s.o * OUT_DOWN * OUT_ACROSS};
    const int *given[3] = {NULL};
    tern_convolution c = {.dtype = k->dtype,
                          .pass = (tern_conv_pass)pass,
                          .shape = &s,
                          .channels_last = k->channels_last};
    t->n[0] = sizes[a], t->n[1] = sizes[b], t->n[2] = sizes[3 - a - b];
    TERN_TRY(tern_matrix_trial_begin(place, t));
    given[a] = t->given[0], given[b] = t->given[1];
    convolve(&s, pass, k->channels_last, given, t->expected);
    tern_arg *const operands[] = {&c.x, &c.weight, &c.y};
    *operands[a] = tern_arg_buffer(TERN_ROLE_IN, k->dtype, &t->buffer[0], 0);
    *operands[b] = tern_arg_buffer(TERN_ROLE_IN, k->dtype, &t->buffer[1], 0);
    *operands[3 - a - b] = tern_arg_buffer(TERN_ROLE_OUT, k->dtype, &t->buffer[2], 0);
    launching of = {place, kernel, k};
    const tern_conv_launches launches = {tern_conv_layout_of(k), 1, k->depth, NULL, launch, &of};
    TERN_TRY(tern_conv_launch(place, &c, &launches));
    return tern_matrix_trial_compare(place, t, right);
}

tern_status tern_conv_matrix_try(tern_place *place, void *kernel, const tern_conv_variant *v,
                                 bool *right)
{
    tern_matrix_trial t = {.dtype = v->dtype};
    *right = false;
    tern_status status = compute(place, kernel, v, &t, right);
    tern_matrix_trial_end(place, &t);
    return status;
}

typedef struct trial {
    tern_place *place;
    const tern_conv_variant *of;
    tern_matrix_kernel *found[2];
} trial;

static tern_status try(void *user, bool *right)
{
    const trial *t = user;
    return tern_conv_matrix_try(t->place, t->found[0]->compiled, t->of, right);
}

tern_status tern_conv_matrix_find(tern_place *place, tern_matrix_prepare_own *prepare,
                                  const tern_conv_variant *v, int parts_group, void *kernels[2],
                                  bool *usable)
{
    static const tern_matrix_family families[] = {
        {"convolution_matrix.cl",
         "conv_matrix",
         "tern_conv2d",
         "convolutions",
         {"MATRIX_ROWS", "MATRIX_COLS", "MATRIX_DEPTH", "MATRIX_ODD", "CONV_LAST", "CONV_IMAGE_ODD",
          "CONV_OTHER_ODD", "CONV_PASS", "CONV_UNIT"}},
        {"convolution_parts.h", "conv_parts", "tern_conv2d", "convolutions", {NULL}}};
    const tern_matrix_variant of[] = {
        {.family = &families[0],
         .dtype = (int32_t)v->dtype,
         .way = v->way,
         .group = v->rows * v->columns / 64,
         .narrow = true,
         .numbers = {v->rows, v->columns, v->depth, 0, v->channels_last, v->odd & 1, v->odd >> 1,
                     v->pass, v->unit}},
        {.family = &families[1],
         .dtype = (int32_t)v->dtype,
         .way = TERN_MATRIX_PLAIN,
         .group = parts_group,
         .narrow = true}};
    trial t = {.place = place, .of = v};
    const tern_matrix_call call = {of, parts_group ? 2 : 1, try, &t};
    TERN_TRY(prepare(place, &call, t.found, usable));
    for (int i = 0; i < 2; i++)
        kernels[i] = *usable && i < call.n ? t.found[i]->compiled : NULL;
    return TERN_OK;
}
