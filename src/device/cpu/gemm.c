/* gemm.c -- matrix products on the host, and the choice between oneDNN and tern's kernels. float32
 * products from a certain size on use oneDNN, and so do bfloat16 products if the processor
 * multiplies bfloat16; on other processors large half precision products use oneDNN in float32, one
 * tile at a time. All others use the kernels of product_kernels.c, which widen half precision in
 * registers. Many small products are distributed over the threads, one product per thread at a
 * time; a large product uses all threads. */
#include "base/memory.h"
#include "base/os_cpu.h"
#include "base/parallel.h"
#include "base/thread_end.h"
#include "device/cpu/cpu.h"
#include "device/cpu/onednn.h"
#include "device/place.h"
#include "shapes.h"
#include <stdatomic.h>
#include <string.h>

static int64_t multiplications(const tern_host_product *p)
{
    return p->m * p->n * p->k * p->count[0] * p->count[1];
}

static int64_t pieces(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

/* Cuts C into units of at most `rows` rows, such that every part computes equally many units. */
static void cut(tern_host_product *p, int64_t rows, int parts)
{
    int64_t count = p->count[0] * p->count[1], *side = p->m < p->n ? &p->across : &p->down;
    int64_t most = p->m < p->n ? pieces(p->n, TERN_PRODUCT_COLUMN) : pieces(p->m, TERN_PRODUCT_ROW);
    p->down = pieces(p->m, rows);
    p->across = pieces(p->n, TERN_PRODUCT_COLUMNS);
    if (count % parts != 0)
        *side = pieces(*side, parts) * parts;
    *side = *side < most ? *side : most;
}

static void end_panels(void)
{
    tern_free(tern_thread.panels);
    tern_thread.panels = NULL;
    tern_thread.panel_bytes = 0;
}

/* Sets *panels to memory in which the parts of a product pack factors. The calling thread keeps it,
 * because the stacks of threads may be smaller. */
static tern_status take_panels(int parts, char **panels)
{
    const size_t bytes = (size_t)parts * TERN_PRODUCT_PANELS;
    if (tern_thread.panel_bytes < bytes) {
        end_panels();
        tern_thread.panels = tern_alloc_aligned(bytes);
        if (!tern_thread.panels)
            return tern_fail(TERN_ERR_MEMORY, "out of host memory: tried to allocate %zu bytes",
                             bytes);
        tern_thread.panel_bytes = bytes;
        tern_at_thread_end(&tern_thread.panels_end, end_panels);
    }
    *panels = tern_thread.panels;
    return TERN_OK;
}

static tern_status own_product(tern_place *place, tern_dtype dtype, tern_host_product *p)
{
    static _Atomic(void *) found[TERN_BF16 + 1];
    bool half = tern_dtype_is_half(dtype);
    int parts = tern_parallel_parts(multiplications(p) / TERN_CPU_PER_OPERATION);
    cut(p, half ? TERN_PRODUCT_ROWS : 1 << 20, parts);
    int64_t units = p->count[0] * p->count[1] * p->down * p->across;
    parts = parts < units ? parts : (int)units;
    TERN_TRY(take_panels(parts, &p->panels));
    return tern_cpu_run_product(place, &found[dtype], "product", dtype, p, parts);
}

/* ---- oneDNN ------------------------------------------------------------------------------ */

#ifdef TERN_WITH_ONEDNN
/* With fewer multiplications than this the overhead of oneDNN is larger than its gain. */
enum { ONEDNN_FROM = 96 * 96 * 96 };

/* A matrix in the form that oneDNN takes: 'N' row-major or 'T' column-major, and the distance
 * between rows (columns); '\0' for any other layout. */
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

/* Returns whether dnnl_sgemm with AVX2 would read a factor without packing it, in lines that are a
 * power of two apart and so share few sets of the caches. It then takes up to twice the time of
 * tern's kernel, which packs both factors; elsewhere it is at most a tenth faster. */
static bool wants_packing(const tern_host_product *p)
{
    const int64_t m = p->m, n = p->n, a = p->a.col, b = p->b.row;
    const bool transposed = p->a.row == 1 && a >= m;
    if (p->b.col != 1 || (m > 256 && n > 256 && m * n > 512 * 512))
        return false;
    return tern_cpu_above_v3() == 0 && tern_cpu_has(TERN_CPU_AVX2) &&
           ((transposed && (a % 512 == 0 || (a % 128 == 0 && b % 128 == 0 && m > 64 && n > 64))) ||
            b % 512 == 0);
}

typedef struct many {
    const tern_host_product *p;
    tern_dtype dtype;
    size_t element;
    char a, b;
    int64_t a_distance, b_distance, c_distance;
    bool by_product; /* each part computes some products; else some rows or columns of each */
    atomic_bool failed;
} many;

typedef struct range {
    int64_t from, to;
} range;

/* Returns the range of a part: n elements are distributed in blocks of 16. */
static range range_of(int64_t n, int part, int parts)
{
    int64_t blocks = (n + 15) / 16;
    range r = {blocks * part / parts * 16, blocks * (part + 1) / parts * 16};
    return (range){r.from < n ? r.from : n, r.to < n ? r.to : n};
}

/* Computes m x n elements of C, from the given positions on. */
static bool multiply_f32(const many *t, int64_t m, int64_t n, const float *a, const float *b,
                         float *c, const float *bias)
{
    const tern_host_product *p = t->p;
    for (int64_t row = 0; bias && row < m; row++)
        memcpy(c + row * t->c_distance, bias, (size_t)n * sizeof *c);
    return tern_dnnl.sgemm(t->a, t->b, m, n, p->k, (float)p->alpha, a, t->a_distance, b,
                           t->b_distance, bias ? 1 : (float)p->beta, c,
                           t->c_distance) == dnnl_success;
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

/* Computes some rows and columns of product i of the batch. */
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

/* Computes the product by oneDNN. *taken is false if oneDNN can't. */
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
    if (half) /* C was not read: tern's kernel computes all of it if oneDNN does not support it or
               * memory is short */
        *taken = !atomic_load(&t.failed);
    return atomic_load(&t.failed) && !half
               ? tern_fail(TERN_ERR_DEVICE,
                           "cpu: oneDNN refused a product of (%lld x %lld) and (%lld x %lld)",
                           (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n)
               : TERN_OK;
}
#endif

/* ---- half precision as float32 --------------------------------------------------------------- */

#ifdef TERN_WITH_ONEDNN
static tern_status product(tern_place *place, tern_dtype dtype, tern_host_product *p);

/* The rows and columns of C, and the number of products summed in an element, that are converted to
 * float32 at a time. A smaller part at the end of a product is not worth it. */
enum { WIDE_ROWS = 512, WIDE_COLUMNS = 512, WIDE_DEPTH = 1024, LEAST_WIDE = 32 };

/* Sets y = x in another type, in lines of n contiguous numbers. */
static tern_status convert(tern_place *place, tern_dtype to, const void *y, int64_t y_line,
                           tern_dtype from, const void *x, int64_t x_line, int64_t lines, int64_t n)
{
    static _Atomic(void *) found[TERN_BF16 + 1][TERN_BF16 + 1];
    static const char *const names[] = {
        [TERN_F32] = "copy_f32", [TERN_F16] = "copy_f16", [TERN_BF16] = "copy_bf16"};
    const tern_nd_index w = {.rows = lines,
                             .inner = n,
                             .dim = {lines},
                             .stride = {{y_line}, {x_line}},
                             .step = {1, 1},
                             .ndim = 1,
                             .form = TERN_ND_UNIT};
    const tern_arg args[] = {{.by_reference = true, .value.data = y},
                             {.by_reference = true, .value.data = x},
                             {.by_reference = true, .value.data = &w}};
    const tern_grid grid = {lines * n, lines * n, 0, false, 0};
    void *kernel = atomic_load_explicit(&found[from][to], memory_order_acquire);
    if (!kernel) {
        TERN_TRY(tern_cpu_resolve(place, "copy", names[from], to, &kernel));
        atomic_store_explicit(&found[from][to], kernel, memory_order_release);
    }
    return place->backend->launch(place, kernel, &grid, args, (int)(sizeof args / sizeof *args));
}

/* Writes rows i .. i + m and columns j .. j + n of x as float32 to scratch, with the contiguous
 * lines of x. */
static __attribute__((noinline)) tern_status widen(tern_place *place, tern_dtype dtype,
                                                   const tern_host_matrix *x, int64_t i, int64_t j,
                                                   int64_t m, int64_t n, float *scratch,
                                                   tern_host_matrix *wide)
{
    const bool rows = x->col == 1;
    const char *at = (const char *)x->data + (i * x->row + j * x->col) * 2;
    *wide = (tern_host_matrix){.data = scratch, .row = rows ? n : 1, .col = rows ? 1 : m};
    return convert(place, TERN_F32, scratch, rows ? n : m, dtype, at, rows ? x->row : x->col,
                   rows ? m : n, rows ? n : m);
}

/* Computes a tile of C, m x n from (i, j) on: its sums are float32 and narrowed once. */
static tern_status wide_tile(tern_place *place, tern_dtype dtype, const tern_host_product *p,
                             int64_t i, int64_t j, int64_t m, int64_t n, float *scratch)
{
    float *a = scratch, *b = a + WIDE_ROWS * WIDE_DEPTH, *c = b + WIDE_DEPTH * WIDE_COLUMNS,
          *bias = c + WIDE_ROWS * WIDE_COLUMNS;
    if (p->bias)
        TERN_TRY(convert(place, TERN_F32, bias, 0, dtype, (const char *)p->bias + 2 * j, 0, 1, n));
    for (int64_t at = 0; at < p->k; at += WIDE_DEPTH) {
        const int64_t k = p->k - at < WIDE_DEPTH ? p->k - at : WIDE_DEPTH;
        tern_host_product part = {.m = m,
                                  .n = n,
                                  .k = k,
                                  .count = {1, 1},
                                  .alpha = p->alpha,
                                  .beta = at > 0,
                                  .c = {.data = c, .row = n, .col = 1},
                                  .bias = p->bias && at == 0 ? bias : NULL};
        TERN_TRY(widen(place, dtype, &p->a, i, at, m, k, a, &part.a));
        TERN_TRY(widen(place, dtype, &p->b, at, j, k, n, b, &part.b));
        TERN_TRY(product(place, TERN_F32, &part));
    }
    return convert(place, dtype, (const char *)p->c.data + (i * p->c.row + j) * 2, p->c.row,
                   TERN_F32, c, n, m, n);
}

/* Returns whether the product is more work than the conversion. */
static bool is_wide(tern_dtype dtype, const tern_host_product *p)
{
    return (tern_dtype_is_half(dtype)) && p->beta == 0 && p->count[0] * p->count[1] == 1 &&
           p->m >= LEAST_WIDE && p->n >= LEAST_WIDE && p->k >= LEAST_WIDE &&
           (p->a.col == 1 || p->a.row == 1) && (p->b.col == 1 || p->b.row == 1);
}

static tern_status wide_product(tern_place *place, tern_dtype dtype, const tern_host_product *p)
{
    tern_status status = TERN_OK;
    tern_block *scratch =
        tern_block_alloc(place,
                         sizeof(float) * (WIDE_ROWS * WIDE_DEPTH + WIDE_DEPTH * WIDE_COLUMNS +
                                          WIDE_ROWS * WIDE_COLUMNS + WIDE_COLUMNS),
                         "tern_matmul");
    if (!scratch)
        return tern_last_status();
    for (int64_t j = 0; j < p->n; j += WIDE_COLUMNS)
        for (int64_t i = 0; i < p->m && status == TERN_OK; i += WIDE_ROWS)
            status =
                wide_tile(place, dtype, p, i, j, p->m - i < WIDE_ROWS ? p->m - i : WIDE_ROWS,
                          p->n - j < WIDE_COLUMNS ? p->n - j : WIDE_COLUMNS, scratch->buffer.host);
    tern_block_free(scratch);
    return status;
}
#endif

/* ---- one product ------------------------------------------------------------------------- */

static tern_status product(tern_place *place, tern_dtype dtype, tern_host_product *p)
{
#ifdef TERN_WITH_ONEDNN
    bool taken = false;
    bool large =
        p->m > 1 && p->n > 1 && p->m * p->n * p->k >= ONEDNN_FROM && tern_onednn_is_there();
    if (large &&
        ((dtype == TERN_F32 && !wants_packing(p)) || (dtype == TERN_BF16 && tern_bf16_is_fast())))
        TERN_TRY(onednn_product(dtype, p, &taken));
    if (taken)
        return TERN_OK;
    if (large && is_wide(dtype, p))
        return wide_product(place, dtype, p);
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
