/* gemm_half.c -- half-precision products on GPUs: CLBlast adds halves in half precision, so
 * products that are large enough for CLBlast are converted to float32 and back. */
#include "device/opencl/gemm.h"
#include "device/gemm_kernel.h"
#include "device/index32.h"
#include "device/signature.h"
#include <stdio.h>

/* A matrix of the batch in float32, contiguous in the scratch memory. */
typedef struct dense {
    tern_matrix as; /* strides in the scratch memory */
    int64_t rows, columns, elements;
} dense;

static dense dense_of(const tern_gemm *g, const tern_matrix *of, int64_t rows, int64_t columns)
{
    dense d = {.rows = rows, .columns = columns};
    d.as = (tern_matrix){.row = columns, .col = 1};
    /* A matrix that all products share is converted once. */
    int64_t inner = of->batch[1] ? g->count[1] : 1, outer = of->batch[0] ? g->count[0] : 1;
    d.as.batch[1] = of->batch[1] ? rows * columns : 0;
    d.as.batch[0] = of->batch[0] ? rows * columns * inner : 0;
    d.elements = rows * columns * inner * outer;
    return d;
}

/* Returns the index over the converted elements: its tensor `half` is the matrix, the other one is
 * contiguous. */
static tern_nd_index index_of(const tern_gemm *g, const tern_matrix *of, const dense *d, int half)
{
    tern_nd_index w = {.rows = d->elements / d->columns, .inner = d->columns, .ndim = 3};
    const int64_t sizes[] = {of->batch[0] ? g->count[0] : 1, of->batch[1] ? g->count[1] : 1,
                             d->rows};
    const int64_t strides[] = {of->batch[0], of->batch[1], of->row};
    int64_t own = d->columns;
    for (int i = 2; i >= 0; i--) {
        w.dim[i] = sizes[i];
        w.stride[half][i] = strides[i];
        w.stride[!half][i] = own;
        own *= sizes[i];
    }
    w.step[half] = of->col;
    w.step[!half] = 1;
    w.form = of->col == 1 ? TERN_ND_UNIT : TERN_ND_STRIDED;
    tern_nd_index_derive(&w, 2);
    return w;
}

/* An end of a conversion: buffer, first element, type. */
typedef struct end {
    const tern_buffer *buffer;
    int64_t at;
    tern_dtype dtype;
} end;

static tern_status convert(tern_place *place, void *(*slots)[2], end to, end from,
                           const tern_nd_index *w)
{
    const tern_arg args[] = {tern_arg_buffer(TERN_ROLE_OUT, to.dtype, to.buffer, to.at),
                             tern_arg_buffer(TERN_ROLE_IN, from.dtype, from.buffer, from.at),
                             TERN_ARG_STRUCT(tern_nd_index, w)};
    const int n = sizeof args / sizeof *args;
    void **slot = slots[to.dtype == TERN_F32 ? from.dtype : TERN_DTYPE_END + to.dtype], *kernel;
    tern_grid grid = {w->rows * w->inner, w->rows * w->inner, 0, false, 0};
    static const char *const names[] = {
        [TERN_F32] = "copy_f32", [TERN_F16] = "copy_f16", [TERN_BF16] = "copy_bf16"};
    TERN_TRY(
        tern_cl_resolve_for(place, "copy", names[from.dtype], to.dtype, args, n, slot, &kernel));
    return tern_cl_launch(place, kernel, &grid, args, n);
}

bool tern_cl_half_fits(tern_place *place, const tern_gemm *g, tern_gemm *wide)
{
    if (g->dtype != TERN_F16 && g->dtype != TERN_BF16)
        return false;
    *wide = *g;
    wide->dtype = TERN_F32;
    wide->a = dense_of(g, &g->a, g->m, g->k).as;
    wide->b = dense_of(g, &g->b, g->k, g->n).as;
    wide->c = dense_of(g, &g->c, g->m, g->n).as;
    tern_cl_way way = tern_cl_route_of(place, wide, NULL);
    return way == TERN_CL_GEMM || way == TERN_CL_BATCHED;
}

/* Makes the buffer large enough for n floats; the caller holds the state's lock. Queued commands
 * keep the buffer that they had. */
static tern_status grow(tern_place *place, tern_buffer *buffer, int64_t n)
{
    size_t bytes = (size_t)n * sizeof(float);
    if (buffer->bytes >= bytes)
        return TERN_OK;
    if (buffer->bytes)
        tern_cl_free(place, buffer);
    *buffer = (tern_buffer){.bytes = bytes};
    if (tern_cl_alloc(place, buffer) == TERN_OK)
        return TERN_OK;
    *buffer = (tern_buffer){0};
    return tern_fail(TERN_ERR_MEMORY, "%s: no %zu bytes for a matrix product of halves in float32",
                     tern_place_info(place)->device, bytes);
}

tern_status tern_cl_half_begin(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *g,
                               tern_gemm *wide)
{
    const tern_matrix *of[] = {&g->a, &g->b, &g->c};
    tern_matrix *to[] = {&wide->a, &wide->b, &wide->c};
    const int64_t sizes[3][2] = {{g->m, g->k}, {g->k, g->n}, {g->m, g->n}};
    for (int i = 0; i < 3; i++) {
        dense d = dense_of(g, of[i], sizes[i][0], sizes[i][1]);
        TERN_TRY(grow(place, &state->wide[i], d.elements));
        to[i]->buffer = &state->wide[i];
        tern_nd_index w = index_of(g, of[i], &d, 1);
        if (i < 2 || g->beta != 0)
            TERN_TRY(convert(place, state->convert, (end){to[i]->buffer, 0, TERN_F32},
                             (end){of[i]->buffer, of[i]->at, g->dtype}, &w));
    }
    if (!g->bias)
        return TERN_OK;
    tern_nd_index w = {.rows = 1, .inner = g->n, .step = {1, 1}, .form = TERN_ND_UNIT};
    tern_nd_index_derive(&w, 2);
    TERN_TRY(grow(place, &state->wide[3], g->n));
    wide->bias = &state->wide[3];
    wide->bias_at = 0;
    return convert(place, state->convert, (end){wide->bias, 0, TERN_F32},
                   (end){g->bias, g->bias_at, g->dtype}, &w);
}

tern_status tern_cl_half_end(tern_place *place, tern_cl_gemm_state *state, const tern_gemm *g)
{
    dense d = dense_of(g, &g->c, g->m, g->n);
    tern_nd_index w = index_of(g, &g->c, &d, 0);
    return convert(place, state->convert, (end){g->c.buffer, g->c.at, g->dtype},
                   (end){&state->wide[2], 0, TERN_F32}, &w);
}
