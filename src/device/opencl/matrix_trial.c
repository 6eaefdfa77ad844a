/* matrix_trial.c -- small products and convolutions that a kernel on a matrix unit is tried with:
 * whole numbers, whose sums are exact in any order and in both types of halves, so that one in a
 * wrong lane is seen. They have edges, and more than one step of the depth. */
#include "device/conv_product.h"
#include "device/opencl/gemm.h"
#include "device/place.h"
#include "types_host.h"
#include "shapes.h"
#include <string.h>

/* Three arrays, in memory of the device's own: two are given, one comes out and is compared. */
typedef struct trial {
    tern_dtype dtype;
    size_t n[3];
    int *given[2], *expected; /* expected: of the last */
    uint16_t *halves;         /* of the largest */
    tern_buffer buffer[3];
} trial;

/* -2 to 2, as nothing that is moved elsewhere would be equal. */
static int number(size_t i, uint32_t seed)
{
    uint32_t h = ((uint32_t)i + seed) * 2654435761u;
    return (int)((h >> 20) % 5) - 2;
}

static void end(tern_place *place, trial *t)
{
    for (int i = 0; i < 3; i++)
        if (t->buffer[i].handle)
            tern_cl_free(place, &t->buffer[i]);
    tern_free(t->given[0]);
    tern_free(t->given[1]);
    tern_free(t->expected);
    tern_free(t->halves);
}

static tern_status write(tern_place *place, trial *t, int i)
{
    for (size_t e = 0; e < t->n[i]; e++)
        t->halves[e] = i < 2 ? tern_half_of_quarters(4 * t->given[i][e], t->dtype) : 0xffff;
    return tern_cl_write(place, &t->buffer[i], 0, t->halves, t->n[i] * sizeof *t->halves);
}

static tern_status begin(tern_place *place, trial *t)
{
    size_t most = 0;
    for (int i = 0; i < 3; i++) {
        int **to = i < 2 ? &t->given[i] : &t->expected;
        if (!(*to = tern_alloc(t->n[i] * sizeof **to)))
            return TERN_ERR_MEMORY;
        for (size_t e = 0; i < 2 && e < t->n[i]; e++)
            (*to)[e] = number(e, i ? 4097 : 1);
        most = t->n[i] > most ? t->n[i] : most;
    }
    if (!(t->halves = tern_alloc(most * sizeof *t->halves)))
        return TERN_ERR_MEMORY;
    for (int i = 0; i < 3; i++) {
        t->buffer[i].bytes = t->n[i] * sizeof *t->halves;
        TERN_TRY(tern_place_alloc(place, &t->buffer[i]));
        TERN_TRY(write(place, t, i));
    }
    return TERN_OK;
}

static tern_status compare(tern_place *place, trial *t, bool *right)
{
    TERN_TRY(tern_cl_read(place, &t->buffer[2], 0, t->halves, t->buffer[2].bytes));
    *right = true;
    for (size_t e = 0; e < t->n[2]; e++)
        *right = *right && t->halves[e] == tern_half_of_quarters(4 * t->expected[e], t->dtype);
    return TERN_OK;
}

/* ---- products ---------------------------------------------------------------------------- */

static tern_matrix matrix(int64_t rows, int64_t columns, bool across, int64_t apart, size_t *n)
{
    int64_t line = ((across ? rows : columns) + apart - 1) / apart * apart;
    *n = (size_t)(line * (across ? columns : rows));
    return (tern_matrix){.row = across ? 1 : line, .col = across ? line : 1};
}

static tern_status try_product(tern_place *place, const tern_cl_matrix_kernel *k, trial *t,
                               bool *right)
{
    const int64_t more = k->odd ? 5 : 8, apart = k->odd == 2 ? 3 : 8;
    tern_gemm g = {.dtype = k->dtype,
                   .m = k->tile.m + more,
                   .n = k->tile.n + more,
                   .k = k->tile.k + more,
                   .count = {1, 1},
                   .alpha = 1};
    g.a = matrix(g.m, g.k, k->layout & 1, apart, &t->n[0]);
    g.b = matrix(g.k, g.n, k->layout & 2, apart, &t->n[1]);
    g.c = matrix(g.m, g.n, false, 1, &t->n[2]);
    TERN_TRY(begin(place, t));
    g.a.buffer = &t->buffer[0], g.b.buffer = &t->buffer[1], g.c.buffer = &t->buffer[2];
    for (int64_t i = 0; i < g.m; i++)
        for (int64_t j = 0; j < g.n; j++) {
            int sum = 0;
            for (int64_t l = 0; l < g.k; l++)
                sum +=
                    t->given[0][i * g.a.row + l * g.a.col] * t->given[1][l * g.b.row + j * g.b.col];
            t->expected[i * g.n + j] = sum;
        }
    TERN_TRY(tern_cl_matrix_launch(place, k->kernel, &g, &k->tile));
    return compare(place, t, right);
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

static tern_status try_convolution(tern_place *place, const tern_cl_matrix_kernel *k, trial *t,
                                   bool *right)
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
    TERN_TRY(begin(place, t));
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
    return compare(place, t, right);
}

tern_status tern_cl_matrix_try(tern_place *place, const tern_cl_matrix_kernel *kernel, bool *right)
{
    trial t = {.dtype = kernel->dtype};
    tern_status status = kernel->file == tern_cl_gemm_file
                             ? try_product(place, kernel, &t, right)
                             : try_convolution(place, kernel, &t, right);
    end(place, &t);
    return status;
}
