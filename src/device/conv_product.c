/* conv_product.c -- convolutions and their gradients as matrix products. */
#include "device/conv_product.h"
#include "device/backend.h"
#include "types_host.h"
#include "shapes.h"

static int64_t volume(const int64_t *dims)
{
    return dims[0] * dims[1] * dims[2];
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

/* Strides in memory: of positions and channels of x and y, and of taps and channels of the
 * weight. */
typedef struct steps {
    int64_t x, x_channel, y, y_channel, tap, w_channel, w_out;
    int64_t unit;
} steps;

static steps steps_of(const tern_conv_shape *s, tern_conv_layout l)
{
    const int64_t each = s->c / s->groups, taps = volume(s->window);
    const steps rows = {1, volume(s->in), 1, volume(s->out), 1, taps, each * taps, l.unit};
    const steps last = {s->c, 1, s->o, 1, each, 1, each * taps, l.unit};
    return l.channels_last ? last : rows;
}

/* Sets line->along_at and line->at for a contiguous array of three dims, whose elements are `step`
 * apart: number i along dim d is at index from[d] + i * times[d]. */
static void put_along(tern_conv_line *line, const int64_t *dims, const int64_t *times,
                      const int64_t *from, int64_t step)
{
    for (int64_t d = 2; d >= 0; step *= dims[d--]) {
        line->along_at[d] = (int32_t)(times[d] * step);
        line->at += (int32_t)(from[d] * step);
    }
}

/* Describes the product of y: position q and tap k read x at q stride - padding + k dilation. For
 * the weight's gradient the caller exchanges rows and columns. */
static void describe_y(const tern_conv_shape *s, const steps *of, tern_conv_line *places,
                       tern_conv_line *taps)
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
    taps->outer = (int32_t)(of->unit * of->x_channel);
    taps->outer_at = (int32_t)(of->unit * of->w_channel);
    put_along(places, s->out, ones, zeros, of->y);
    put_along(taps, s->window, ones, zeros, of->tap);
}

/* Describes the product of a phase of dx: position i = phase + a stride and tap k read dy at
 * (i + padding - k dilation) / stride, if that is an integer. In one phase it is for every
 * `every`th k, whose positions in dy are `step` apart, or for none. */
static void describe_x(const tern_conv_shape *s, const steps *of, const int64_t *phase,
                       tern_conv_line *places, tern_conv_line *taps)
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
    taps->outer = (int32_t)(of->unit * of->y_channel);
    taps->outer_at = (int32_t)(of->unit * of->w_out);
    put_along(places, s->in, s->stride, phase, of->x);
    put_along(taps, s->window, every, first, of->tap);
}

static int64_t size_of(const tern_conv_line *line)
{
    return (int64_t)line->size[0] * line->size[1] * line->size[2];
}

/* Returns whether the result can be stored by vectors of eight contiguous channels or positions;
 * positions are not contiguous if there are several phases. */
static bool is_wide(const tern_conv_shape *s, int pass, bool last)
{
    const int64_t each = s->c / s->groups, of_group = s->o / s->groups;
    if (pass == TERN_CONV_WEIGHT)
        return each * volume(s->window) % 8 == 0;
    if (last)
        return (pass == TERN_CONV_Y ? of_group : each) % 8 == 0;
    return pass == TERN_CONV_Y ? volume(s->out) % 8 == 0
                               : volume(s->stride) == 1 && volume(s->in) % 8 == 0;
}

void tern_conv_product(tern_conv_tiles *t, const tern_conv_shape *s, int pass,
                       tern_conv_layout layout, const int64_t phase[3])
{
    const steps of = steps_of(s, layout);
    const int64_t of_group = s->o / s->groups, each = s->c / s->groups;
    const int64_t x_group = each * of.x_channel, y_group = of_group * of.y_channel;
    const int64_t w_group = of_group * of.w_out;
    const bool back = pass == TERN_CONV_X, weight = pass == TERN_CONV_WEIGHT;
    tern_conv_line places = {.at = 0}, over = {.at = 0};
    if (back)
        describe_x(s, &of, phase, &places, &over);
    else
        describe_y(s, &of, &places, &over);
    const int64_t deep = divide_up(back ? of_group : each, layout.unit) * layout.unit;
    const int64_t taps = size_of(&over) * deep, columns = s->n * size_of(&places);
    *t = (tern_conv_tiles){.groups = (int32_t)s->groups, .row = weight ? places : over};
    t->column = weight ? over : places;
    t->m = (int32_t)(back ? each : of_group);
    t->n = (int32_t)(weight ? taps : columns);
    t->k = (int32_t)(weight ? columns : taps);
    t->a_row = (int32_t)(back ? of.w_channel : weight ? of.y_channel : of.w_out);
    t->c_row = (int32_t)(back ? of.x_channel : weight ? of.w_out : of.y_channel);
    t->a_group = (int32_t)(weight ? y_group : w_group);
    t->b_group = (int32_t)(back ? y_group : x_group);
    t->c_group = (int32_t)(back ? x_group : weight ? w_group : y_group);
    t->whole = (int32_t)(weight ? s->o * of.w_out
                                : s->n * (back ? s->c * volume(s->in) : s->o * volume(s->out)));
    t->outs = layout.channels_last ? 1 : (int32_t)volume(s->out);
    t->channels = (int32_t)s->o;
    t->depth = (int32_t)(back ? of_group : each);
    t->deep = (int32_t)(back ? of.y_channel : of.x_channel);
    t->a_deep = (int32_t)(back ? of.w_out : of.w_channel);
    t->pixel = (int32_t)(back ? of.y : of.x);
    t->width = is_wide(s, pass, layout.channels_last) ? 8 : 1;
    for (int d = 0; d < 3; d++) {
        t->end[d] = (int32_t)(back ? s->out[d] : s->in[d]);
        t->row.size[d] += t->row.size[d] == 0; /* then k is 0 */
    }
}

void tern_conv_phases(const tern_conv_shape *s, int pass, int64_t n[3])
{
    for (int d = 0; d < 3; d++)
        n[d] = pass != TERN_CONV_X ? 1 : s->stride[d] < s->in[d] ? s->stride[d] : s->in[d];
}

int32_t tern_conv_unit(int64_t channels, int32_t least, int32_t most)
{
    int32_t unit = most;
    while (unit > least && divide_up(channels, unit) * unit * 8 > channels * 9)
        unit /= 2;
    return unit;
}
