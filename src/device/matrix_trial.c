/* matrix_trial.c -- the trials of kernels on matrix units, and the alignment of products'
 * operands. */
#include "device/matrix_trial.h"
#include "base/dtype.h"
#include "device/attention_matrix.h"
#include "device/gemm_kernel.h"
#include "device/place.h"

/* Returns a pseudo-random number from -2 to 2, so that an array differs if its elements move. */
static int number(size_t i, uint32_t seed)
{
    uint32_t h = ((uint32_t)i + seed) * 2654435761u;
    return (int)((h >> 20) % 5) - 2;
}

void tern_matrix_trial_end(tern_place *place, tern_matrix_trial *t)
{
    for (int i = 0; i < 3; i++)
        if (t->buffer[i].handle)
            place->backend->free(place, &t->buffer[i]);
    tern_free(t->given[0]);
    tern_free(t->given[1]);
    tern_free(t->expected);
    tern_free(t->numbers);
}

static bool is_f32(const tern_matrix_trial *t, int i)
{
    return t->dtype == TERN_F32 || (i == 2 && t->wide);
}

static tern_status write(tern_place *place, tern_matrix_trial *t, int i)
{
    uint16_t *halves = t->numbers;
    float *floats = t->numbers;
    for (size_t e = 0; e < t->n[i]; e++)
        if (is_f32(t, i))
            floats[e] = i < 2 ? (float)t->given[i][e] : 0x1p100f;
        else
            halves[e] = i < 2 ? tern_half_of_quarters(4 * t->given[i][e], t->dtype) : 0xffff;
    return place->backend->write(place, &t->buffer[i], 0, t->numbers, t->buffer[i].bytes);
}

tern_status tern_matrix_trial_begin(tern_place *place, tern_matrix_trial *t)
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
    if (!(t->numbers = tern_alloc(most * sizeof(float))))
        return TERN_ERR_MEMORY;
    for (int i = 0; i < 3; i++) {
        t->buffer[i].bytes = t->n[i] * (is_f32(t, i) ? sizeof(float) : sizeof(uint16_t));
        TERN_TRY(tern_place_alloc(place, &t->buffer[i]));
        TERN_TRY(write(place, t, i));
    }
    return TERN_OK;
}

tern_status tern_matrix_trial_compare(tern_place *place, tern_matrix_trial *t, bool *right)
{
    const uint16_t *halves = t->numbers;
    const float *floats = t->numbers;
    TERN_TRY(place->backend->read(place, &t->buffer[2], 0, t->numbers, t->buffer[2].bytes));
    *right = true;
    for (size_t e = 0; e < t->n[2]; e++)
        *right = *right &&
                 (is_f32(t, 2) ? floats[e] == (float)t->expected[e]
                               : halves[e] == tern_half_of_quarters(4 * t->expected[e], t->dtype));
    return TERN_OK;
}

/* ---- products ---------------------------------------------------------------------------- */

/* Returns MATRIX_ODD of an operand with `lines` lines of `length` elements. The elements of a line
 * are `unit` apart, lines are `step` apart. External memory may have any alignment. */
static int oddness(const tern_gemm *g, const tern_matrix *x, int64_t length, int64_t lines,
                   int64_t unit, int64_t step)
{
    const int64_t bytes = (int64_t)tern_dtype_size(g->dtype), part = 16 / bytes;
    int64_t outer = g->count[0] > 1 ? x->batch[0] : 0, inner = g->count[1] > 1 ? x->batch[1] : 0;
    step = lines > 1 ? step : 0;
    if ((unit != 1 && length > 1) || ((step | outer | inner | x->at) & (part - 1)) || step < 0 ||
        outer < 0 || inner < 0 || x->buffer->address % 16)
        return 2;
    if (length % part == 0)
        return 0;
    int64_t last = x->at + (lines - 1) * step + (g->count[0] - 1) * outer +
                   (g->count[1] - 1) * inner + (length + part - 1) / part * part;
    return (uint64_t)(last * bytes) <= x->buffer->bytes ? 1 : 2;
}

int tern_gemm_odd(const tern_gemm *g, int layout)
{
    int a = layout & 1 ? oddness(g, &g->a, g->m, g->k, g->a.row, g->a.col)
                       : oddness(g, &g->a, g->k, g->m, g->a.col, g->a.row);
    int b = layout & 2 ? oddness(g, &g->b, g->k, g->n, g->b.row, g->b.col)
                       : oddness(g, &g->b, g->n, g->k, g->b.col, g->b.row);
    return a > b ? a : b;
}

static tern_matrix matrix(int64_t rows, int64_t columns, bool across, int64_t apart, size_t *n)
{
    int64_t line = ((across ? rows : columns) + apart - 1) / apart * apart;
    *n = (size_t)(line * (across ? columns : rows));
    return (tern_matrix){.row = across ? 1 : line, .col = across ? line : 1};
}

static tern_status multiply(tern_place *place, const tern_gemm_backend *backend, void *kernel,
                            const tern_gemm_variant *of, tern_matrix_trial *t, bool *right)
{
    const int64_t more = of->odd ? 5 : 8, apart = of->odd == 2 ? 3 : 8;
    tern_gemm g = {.dtype = of->dtype,
                   .m = of->rows + more,
                   .n = of->columns + more,
                   .k = of->depth + more,
                   .count = {1, 1},
                   .alpha = 1,
                   .wide = of->wide,
                   .tf32 = of->dtype == TERN_F32};
    g.a = matrix(g.m, g.k, of->layout & 1, apart, &t->n[0]);
    g.b = matrix(g.k, g.n, of->layout & 2, apart, &t->n[1]);
    g.c = matrix(g.m, g.n, false, 1, &t->n[2]);
    TERN_TRY(tern_matrix_trial_begin(place, t));
    g.a.buffer = &t->buffer[0], g.b.buffer = &t->buffer[1], g.c.buffer = &t->buffer[2];
    for (int64_t i = 0; i < g.m; i++)
        for (int64_t j = 0; j < g.n; j++) {
            int sum = 0;
            for (int64_t l = 0; l < g.k; l++)
                sum +=
                    t->given[0][i * g.a.row + l * g.a.col] * t->given[1][l * g.b.row + j * g.b.col];
            t->expected[i * g.n + j] = sum;
        }
    TERN_TRY(backend->launch(place, kernel, of, &g));
    return tern_matrix_trial_compare(place, t, right);
}

tern_status tern_gemm_try(tern_place *place, const tern_gemm_backend *backend, void *kernel,
                          const tern_gemm_variant *of, bool *right)
{
    tern_matrix_trial t = {.dtype = of->dtype, .wide = of->wide};
    *right = false;
    tern_status status = multiply(place, backend, kernel, of, &t, right);
    tern_matrix_trial_end(place, &t);
    return status;
}

typedef struct trial {
    tern_place *place;
    const tern_gemm_backend *backend;
    const tern_gemm_variant *of;
    tern_matrix_kernel *kernel;
} trial;

static tern_status try(void *user, bool *right)
{
    const trial *t = user;
    return tern_gemm_try(t->place, t->backend, t->kernel->compiled, t->of, right);
}

tern_status tern_gemm_find(tern_place *place, const tern_gemm_backend *backend,
                           const tern_gemm_variant *v, void **kernel)
{
    static const tern_matrix_family family = {"gemm_matrix.cl",
                                              "gemm_matrix",
                                              "tern_matmul",
                                              "products",
                                              {"MATRIX_ROWS", "MATRIX_COLS", "MATRIX_DEPTH",
                                               "MATRIX_TA", "MATRIX_TB", "MATRIX_ODD",
                                               "MATRIX_WIDE", "MATRIX_EPILOGUES"}};
    const tern_matrix_variant of = {.family = &family,
                                    .dtype = (int32_t)v->dtype,
                                    .way = v->way,
                                    .group = v->rows * v->columns / 64,
                                    .narrow = v->narrow,
                                    .numbers = {v->rows, v->columns, v->depth, v->layout & 1,
                                                v->layout >> 1, v->odd, v->wide,
                                                backend->has_epilogues}};
    trial t = {place, backend, v, NULL};
    const tern_matrix_call call = {&of, 1, try, &t};
    bool usable;
    TERN_TRY(backend->prepare(place, &call, &t.kernel, &usable));
    *kernel = usable ? t.kernel->compiled : NULL;
    return TERN_OK;
}
