/* matrix_trial.c -- what kernels of products and convolutions on matrix units are tried with. */
#include "device/conv_product.h"
#include "device/matrix_trial.h"
#include "device/opencl/gemm.h"
#include "types_host.h"
#include "shapes.h"

typedef struct product {
    tern_place *place;
    const tern_cl_matrix_kernel *kernel;
} product;

static tern_status run_product(void *user, const tern_gemm *g)
{
    const product *p = user;
    return tern_cl_matrix_launch(p->place, p->kernel->kernel, g, &p->kernel->tile);
}

static tern_status try_product(tern_place *place, const tern_cl_matrix_kernel *k, bool *right)
{
    product p = {place, k};
    const tern_gemm_variant of = {.dtype = k->dtype,
                                  .layout = k->layout,
                                  .odd = k->odd,
                                  .rows = k->tile.m,
                                  .columns = k->tile.n,
                                  .depth = k->tile.k};
    return tern_gemm_try(place, &of, run_product, &p, right);
}

/* ---- convolutions ------------------------------------------------------------------------ */

/* Element (n, c, place). */
static int64_t at(bool last, int64_t n, int64_t c, int64_t place, int64_t channels, int64_t places)
{
    return last ? (n * places + place) * channels + c : (n * channels + c) * places + place;
}

enum { DOWN = 5, ACROSS = 7, TAPS_DOWN = 3, TAPS_ACROSS = 2, OUT_DOWN = 3, OUT_ACROSS = 8 };

/* The pass as it is written, of (1, c, 5, 7) with (o, c, 3, 2), stride (2, 1) and padding 1. */
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

static tern_status try_convolution(tern_place *place, const tern_cl_matrix_kernel *k,
                                   tern_matrix_trial *t, bool *right)
{
    const int pass = k->pass, a = pass == TERN_CONV_WEIGHT ? 2 : 1, b = pass == TERN_CONV_X ? 2 : 0;
    /* Bits of odd: whose eights these channels are. */
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
    int64_t phases[3];
    t->n[0] = sizes[a], t->n[1] = sizes[b], t->n[2] = sizes[3 - a - b];
    TERN_TRY(tern_matrix_trial_begin(place, t));
    given[a] = t->given[0], given[b] = t->given[1];
    convolve(&s, pass, k->layout, given, t->expected);
    const tern_arg operands[] = {tern_arg_buffer(TERN_ROLE_OUT, k->dtype, &t->buffer[2], 0),
                                 tern_arg_buffer(TERN_ROLE_OUT, TERN_F32, &t->buffer[2], 0),
                                 tern_arg_buffer(TERN_ROLE_IN, k->dtype, &t->buffer[0], 0),
                                 tern_arg_buffer(TERN_ROLE_IN, k->dtype, &t->buffer[1], 0),
                                 tern_arg_buffer(TERN_ROLE_IN, k->dtype, &t->buffer[0], 0)};
    tern_conv_phases(&s, pass, phases);
    for (int64_t i = 0; i < phases[0] * phases[1] * phases[2]; i++) {
        const int64_t phase[3] = {0, i / phases[2], i % phases[2]};
        tern_conv_tiles g;
        tern_conv_product(&g, &s, pass, (tern_conv_layout){k->layout, k->unit}, phase);
        g.parts = 1;
        g.part = g.k;
        TERN_TRY(tern_cl_conv_launch(place, k, &g, operands));
    }
    return tern_matrix_trial_compare(place, t, right);
}

tern_status tern_cl_matrix_try(tern_place *place, const tern_cl_matrix_kernel *kernel, bool *right)
{
    tern_matrix_trial t = {.dtype = kernel->dtype};
    if (kernel->file == tern_cl_gemm_file)
        return try_product(place, kernel, right);
    tern_status status = try_convolution(place, kernel, &t, right);
    tern_matrix_trial_end(place, &t);
    return status;
}
