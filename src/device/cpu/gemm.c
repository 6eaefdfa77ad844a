/* gemm.c -- matrix products on the host: which way each one goes.
 *
 * float32 goes to oneDNN from a certain size on, and bfloat16 where the processor multiplies it;
 * everything else to the own kernels of product_kernels.c, which widen halves in registers. Many small products share the threads, one
 * after the other on each; a large one has them all. */
#include "base/parallel.h"
#include "device/cpu/cpu.h"
#include "device/cpu/onednn.h"
#include "shapes.h"
#include <stdatomic.h>
#include <string.h>

static int64_t multiplications(const tern_host_product *p)
{
    return p->m * p->n * p->k * p->count[0] * p->count[1];
}

static tern_status own_product(tern_place *place, tern_dtype dtype, tern_host_product *p)
{
    static _Atomic(void *) found[TERN_BF16 + 1];
    int64_t down = (p->m + TERN_PRODUCT_ROWS - 1) / TERN_PRODUCT_ROWS;
    int64_t across = (p->n + TERN_PRODUCT_COLUMNS - 1) / TERN_PRODUCT_COLUMNS;
    int64_t tiles = p->count[0] * p->count[1] * down * across;
    int parts = tern_parallel_parts(multiplications(p) / TERN_CPU_PER_OPERATION);
    return tern_cpu_run_product(place, &found[dtype], "product", dtype, p,
                                parts < tiles ? parts : (int)tiles);
}

/* ---- oneDNN ------------------------------------------------------------------------------ */

#ifdef TERN_WITH_ONEDNN
/* Below this many multiplications a product has not paid oneDNN's way in. */
enum { ONEDNN_FROM = 96 * 96 * 96 };

/* A matrix as oneDNN wants it: 'N' row-major or 'T' column-major, and the distance between rows
 * (columns); '\0' for any other. */
static char form_of(const tern_host_matrix *x, int64_t m, int64_t n, int64_t *distance)
{
    *distance = m == 1 ? n : x->row;
    if ((x->col == 1 || n == 1) && *distance >= n)
        return 'N';
    *distance = n == 1 ? m : x->col;
    if ((x->row == 1 || m == 1) && *distance >= m)
        return 'T';
    return '\0';
}

typedef struct many {
    const tern_host_product *p;
    tern_dtype dtype;
    size_t element;
    char a, b;
    int64_t a_distance, b_distance, c_distance;
    bool by_product; /* each part does some products; else some of the rows or columns of each */
    atomic_bool failed;
} many;

typedef struct range {
    int64_t from, to;
} range;

/* Of n things in blocks of 16, those of a part. */
static range range_of(int64_t n, int part, int parts)
{
    int64_t blocks = (n + 15) / 16;
    range r = {blocks * part / parts * 16, blocks * (part + 1) / parts * 16};
    return (range){r.from < n ? r.from : n, r.to < n ? r.to : n};
}

/* m x n numbers of C, from their places on. */
static bool multiply_f32(const many *t, int64_t m, int64_t n, const float *a, const float *b,
                         float *c, const float *bias)
{
    const tern_host_product *p = t->p;
    for (int64_t row = 0; bias && row < m; row++)
        memcpy(c + row * t->c_distance, bias, (size_t)n * sizeof *c);
    return dnnl_sgemm(t->a, t->b, m, n, p->k, (float)p->alpha, a, t->a_distance, b, t->b_distance,
                      bias ? 1 : (float)p->beta, c, t->c_distance) == dnnl_success;
}

static bool multiply_bf16(const many *t, int64_t m, int64_t n, const void *a, const void *b,
                          void *c, const void *bias)
{
    const tern_host_product *p = t->p;
    tern_bf16_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.m = m, shape.n = n, shape.k = p->k;
    shape.a_row = p->a.row, shape.a_col = p->a.col;
    shape.b_row = p->b.row, shape.b_col = p->b.col;
    shape.c_row = t->c_distance;
    shape.alpha = p->alpha;
    shape.has_bias = bias != NULL;
    return tern_bf16_product(&shape, a, b, c, bias);
}

/* Rows and columns of product i of the batch. */
static void multiply(many *t, int64_t i, range rows, range columns)
{
    const tern_host_product *p = t->p;
    int64_t m = rows.to - rows.from, n = columns.to - columns.from;
    if (m <= 0 || n <= 0)
        return;
    int64_t b0 = i / p->count[1], b1 = i % p->count[1];
    int64_t at_a = b0 * p->a.batch[0] + b1 * p->a.batch[1] + rows.from * p->a.row;
    int64_t at_b = b0 * p->b.batch[0] + b1 * p->b.batch[1] + columns.from * p->b.col;
    int64_t at_c = b0 * p->c.batch[0] + b1 * p->c.batch[1] + rows.from * t->c_distance;
    const char *a = (const char *)p->a.data + at_a * (int64_t)t->element;
    const char *b = (const char *)p->b.data + at_b * (int64_t)t->element;
    const char *bias = p->bias;
    char *c;
    memcpy(&c, &p->c.data, sizeof c);
    c += (at_c + columns.from) * (int64_t)t->element;
    bias = bias ? bias + columns.from * (int64_t)t->element : NULL;
    bool done = t->dtype == TERN_F32 ? multiply_f32(t, m, n, (const void *)a, (const void *)b,
                                                    (void *)c, (const void *)bias)
                                     : multiply_bf16(t, m, n, a, b, c, bias);
    if (!done)
        atomic_store(&t->failed, true);
}

static void some(void *user, int part, int parts)
{
    many *t = user;
    const tern_host_product *p = t->p;
    int64_t all = p->count[0] * p->count[1];
    int64_t from = t->by_product ? all * part / parts : 0;
    int64_t to = t->by_product ? all * (part + 1) / parts : all;
    range rows = {0, p->m}, columns = {0, p->n};
    if (!t->by_product && p->m >= p->n)
        rows = range_of(p->m, part, parts);
    else if (!t->by_product)
        columns = range_of(p->n, part, parts);
    tern_onednn_threads threads = tern_onednn_go_alone();
    for (int64_t i = from; i < to; i++)
        multiply(t, i, rows, columns);
    tern_onednn_end_alone(threads);
}

/* Sets *taken when oneDNN can do it. */
static tern_status onednn_product(tern_dtype dtype, const tern_host_product *p, bool *taken)
{
    many t = {.p = p,
              .dtype = dtype,
              .element = tern_dtype_size(dtype),
              .c_distance = p->m == 1 ? p->n : p->c.row};
    t.a = form_of(&p->a, p->m, p->k, &t.a_distance);
    t.b = form_of(&p->b, p->k, p->n, &t.b_distance);
    bool half = dtype == TERN_BF16;
    bool odd = half ? p->beta != 0 || (p->bias && p->alpha != 1) : p->bias && p->beta != 0;
    *taken = t.a && t.b && !odd && !tern_is_forked_child();
    if (!*taken)
        return TERN_OK;
    int64_t all = p->count[0] * p->count[1];
    int parts = tern_parallel_parts(multiplications(p) / TERN_CPU_PER_OPERATION);
    t.by_product = all >= 4 * parts;
    tern_parallel(parts, some, &t);
    if (half) /* C was not read: the own kernel does all of it, where oneDNN has not, or no memory */
        *taken = !atomic_load(&t.failed);
    return atomic_load(&t.failed) && !half
               ? tern_fail(TERN_ERR_DEVICE,
                           "cpu: oneDNN refused a product of (%lld x %lld) and (%lld x %lld)",
                           (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n)
               : TERN_OK;
}
#endif

/* ---- one product ------------------------------------------------------------------------- */

static tern_status product(tern_place *place, tern_dtype dtype, tern_host_product *p)
{
#ifdef TERN_WITH_ONEDNN
    bool taken = false, large = p->m > 1 && p->n > 1 && p->m * p->n * p->k >= ONEDNN_FROM;
    if (large && (dtype == TERN_F32 || (dtype == TERN_BF16 && tern_bf16_is_fast())))
        TERN_TRY(onednn_product(dtype, p, &taken));
    if (taken)
        return TERN_OK;
#endif
    return own_product(place, dtype, p);
}

tern_status tern_cpu_gemm(tern_place *place, const tern_gemm *g)
{
    size_t element = tern_dtype_size(g->dtype);
    tern_host_product p = {.m = g->m,
                           .n = g->n,
                           .k = g->k,
                           .count = {g->count[0], g->count[1]},
                           .alpha = g->alpha,
                           .beta = g->beta,
                           .a = tern_cpu_matrix(&g->a, element),
                           .b = tern_cpu_matrix(&g->b, element),
                           .c = tern_cpu_matrix(&g->c, element),
                           .bias = g->bias ? (char *)g->bias->host + (size_t)g->bias_at * element
                                           : NULL};
    return product(place, g->dtype, &p);
}
