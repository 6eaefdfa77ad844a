/* test_convolution_edges.c -- convolutions of one dim and their transposes, with every small kernel, stride, padding, dilation and
 * output padding: results and gradients as they are written down. */
#include "support.h"
#include <stdio.h>
#include <stdlib.h>

enum { N = 2, CHANNELS = 4, LENGTH = 5, MOST = 32 };

typedef struct options {
    int64_t kernel, stride, padding, dilation, output_padding, groups;
} options;

/* The sum of small[n, c, q] w[c, o / per, k] big[n, o, at] over all of them, in which at = q stride - padding + k dilation,
 * and its derivatives: small is a convolution's result and a transposed one's input, which has the channels' number. */
static void by_hand(const options *o, int64_t small_length, int64_t big_length, const double *small,
                    const double *w, const double *big, double *d_small, double *d_w, double *d_big)
{
    const int64_t per = CHANNELS / o->groups;
    for (int64_t n = 0; n < N; n++)
        for (int64_t c = 0; c < CHANNELS; c++)
            for (int64_t p = 0; p < per; p++)
                for (int64_t q = 0; q < small_length; q++)
                    for (int64_t k = 0; k < o->kernel; k++) {
                        const int64_t at = q * o->stride - o->padding + k * o->dilation;
                        if (at < 0 || at >= big_length)
                            continue;
                        const int64_t s = (n * CHANNELS + c) * small_length + q;
                        const int64_t v = (c * per + p) * o->kernel + k;
                        const int64_t b = (n * CHANNELS + c / per * per + p) * big_length + at;
                        d_small[s] += w[v] * big[b];
                        d_w[v] += small[s] * big[b];
                        d_big[b] += small[s] * w[v];
                    }
}

static tern_tensor *halves(const char *device, tern_shape shape, uint64_t seed)
{
    return tern_detach(tern_round(test_uniform(device, TERN_F32, shape, -4, 4, seed)));
}

static void compare(const char *what, const options *o, const tern_tensor *got, double *expected)
{
    char text[160];
    snprintf(text, sizeof text,
             "%s: kernel %d, stride %d, padding %d, dilation %d, output padding %d, %d groups",
             what, (int)o->kernel, (int)o->stride, (int)o->padding, (int)o->dilation,
             (int)o->output_padding, (int)o->groups);
    tern_tensor *x = test_tensor(tern_device(got), TERN_F32, tern_shape_of(got), expected);
    test_close(got, x, (test_tolerance){.abs = 1e-3}, text, __FILE__, __LINE__);
}

/* y by x and w, and what comes back to these for dy. */
static void check(const char *device, const options *o, bool transposed)
{
    const tern_shape one[] = {TERN_SHAPE(o->stride), TERN_SHAPE(o->padding),
                              TERN_SHAPE(o->dilation), TERN_SHAPE(o->output_padding)};
    double *values[4], y[MOST * N * CHANNELS] = {0}, dw[CHANNELS * CHANNELS * 3] = {0},
                                    dx[MOST * N * CHANNELS] = {0}, waste[MOST * N * CHANNELS] = {0},
                                    *ws;
    static const double none[MOST * N * CHANNELS];
    const tern_shape shapes[] = {TERN_SHAPE(N, CHANNELS, LENGTH),
                                 TERN_SHAPE(CHANNELS, CHANNELS / o->groups, o->kernel)};
    tern_tensor *x = tern_requires_grad_(halves(device, shapes[0], 1), true);
    tern_tensor *w = tern_requires_grad_(halves(device, shapes[1], 2), true);
    tern_tensor *r = transposed ? tern_conv_transpose1d(x, w, NULL,
                                                        &(tern_conv_transpose_function_options){
                                                            .stride = one[0],
                                                            .padding = one[1],
                                                            .dilation = one[2],
                                                            .output_padding = one[3],
                                                            .groups = o->groups})
                                : tern_conv1d(x, w, NULL,
                                              &(tern_conv_function_options){.stride = one[0],
                                                                            .padding = one[1],
                                                                            .dilation = one[2],
                                                                            .groups = o->groups});
    assert_non_null(r);
    const int64_t length = tern_size(r, 2);
    assert_true(length <= MOST);
    tern_tensor *dy = halves(device, tern_shape_of(r), 3);
    assert_ok(tern_backward_with(r, &(tern_backward_options){.gradient = dy}));
    values[0] = test_read(x);
    values[1] = ws = test_read(w);
    values[2] = test_read(dy);
    if (transposed) {
        by_hand(o, LENGTH, length, values[0], ws, values[2], dx, dw, waste);
        by_hand(o, LENGTH, length, values[0], ws, none, waste, waste, y);
    } else {
        by_hand(o, length, LENGTH, values[2], ws, values[0], waste, dw, dx);
        by_hand(o, length, LENGTH, none, ws, values[0], y, waste, waste);
    }
    compare(transposed ? "transposed" : "convolution", o, r, y);
    compare(transposed ? "dx of transposed" : "dx", o, tern_grad(x), dx);
    compare(transposed ? "dweight of transposed" : "dweight", o, tern_grad(w), dw);
    for (int i = 0; i < 3; i++)
        free(values[i]);
}

static void every_small_convolution_is_as_written_down(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3 * 2 * 2 * 2 * 2 * 2; i++)
        TERN_SCOPE {
            const options o = {.kernel = 1 + i % 3,
                               .stride = 1 + i / 3 % 2,
                               .padding = i / 6 % 2,
                               .dilation = 1 + i / 12 % 2,
                               .output_padding = i / 24 % 2,
                               .groups = 1 + i / 48 % 2};
            if (o.output_padding < o.stride || o.output_padding < o.dilation)
                check(device, &o, true);
            if (!o.output_padding)
                check(device, &o, false);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_small_convolution_is_as_written_down),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
