/* gemm.c -- matrix products on the host: which way each one goes.
 *
 * float32 goes to oneDNN from a certain size on, small float32 and all float64 to the own kernels
 * of product_kernels.c. The 16-bit types are widened into dense float32 copies, multiplied as those
 * and narrowed. Many small products share the threads, one after the other on each; a large one has
 * them all. */
#include "base/parallel.h"
#include "device/cpu/cpu.h"
#include "device/cpu/product.h"
#include "device/signature.h"
#include "shapes.h"
#include <stdatomic.h>
#include <string.h>
#ifdef TERN_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#endif

/* Multiplications that cost as much as one of an elementwise kernel's operations. */
enum { PER_OPERATION = 16 };
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- kernels of the host ----------------------------------------------------------------- */

/* Run kernel name for dtype; *slot keeps what was found, and held against its parameters, for the
 * next call. */
static tern_status run(tern_place *place, _Atomic(void *) *slot, const char *name, tern_dtype dtype,
                       tern_grid grid, const tern_arg *args, int n)
{
    void *kernel = atomic_load_explicit(slot, memory_order_acquire);
    if (!kernel) {
        TERN_TRY(tern_signature_check(place, "product", name, dtype, args, n));
        TERN_TRY(tern_cpu_backend.resolve(place, "product", name, dtype, &kernel));
        atomic_store_explicit(slot, kernel, memory_order_release);
    }
    return tern_cpu_backend.launch(place, kernel, &grid, args, n);
}

static int64_t multiplications(const tern_host_product *p)
{
    return p->m * p->n * p->k * p->count[0] * p->count[1];
}

static tern_status own_product(tern_place *place, tern_dtype dtype, const tern_host_product *p)
{
    static _Atomic(void *) found[2];
    int64_t down = (p->m + TERN_PRODUCT_ROWS - 1) / TERN_PRODUCT_ROWS;
    int64_t across = (p->n + TERN_PRODUCT_COLUMNS - 1) / TERN_PRODUCT_COLUMNS;
    tern_grid grid = {p->count[0] * p->count[1] * down * across, multiplications(p) / PER_OPERATION,
                      true};
    /* The kernel has the host's own struct, which is no type of kernels in general. */
    const tern_arg args[] = {{.role = TERN_ROLE_IN, .by_reference = true, .value.data = p}};
    return run(place, &found[dtype == TERN_F64], "product", dtype, grid, args, COUNT(args));
}

/* ---- copies that make a matrix dense, wide or narrow ------------------------------------- */

static int64_t extent(int64_t n, int64_t stride)
{
    return stride == 0 ? 1 : n;
}

/* y = x for (count0, count1, m, n) elements, converting. */
static tern_status convert(tern_place *place, const tern_host_matrix *y, tern_dtype to,
                           const tern_host_matrix *x, tern_dtype from, const int64_t *count,
                           int64_t m, int64_t n)
{
    static const char *const name[] = {[TERN_F32] = "copy_f32",
                                       [TERN_F16] = "copy_f16",
                                       [TERN_BF16] = "copy_bf16",
                                       [TERN_F64] = "copy_f64"};
    static _Atomic(void *) found[TERN_BF16 + 1][TERN_BF16 + 1];
    tern_walk w = {
        .rows = count[0] * count[1] * m,
        .inner = n,
        .ndim = 3,
        .dim = {count[0], count[1], m},
        .stride = {{y->batch[0], y->batch[1], y->row}, {x->batch[0], x->batch[1], x->row}},
        .step = {y->col, x->col},
        .form = y->col == 1 && x->col == 1 ? TERN_WALK_UNIT : TERN_WALK_STRIDED};
    tern_buffer ys = {0}, xs = {0};
    memcpy(&ys.host, &y->data, sizeof ys.host);
    memcpy(&xs.host, &x->data, sizeof xs.host);
    const tern_arg args[] = {tern_arg_buffer(TERN_ROLE_OUT, to, &ys, 0),
                             tern_arg_buffer(TERN_ROLE_IN, from, &xs, 0),
                             TERN_ARG_STRUCT(tern_walk, &w)};
    tern_grid grid = {w.rows * n, w.rows * n, false};
    return run(place, &found[to][from], name[from], to, grid, args, COUNT(args));
}

/* A dense row-major copy of x in its own memory, repeated batches only once. */
static tern_status dense_copy(tern_place *place, tern_host_matrix *copy, tern_dtype to,
                              const tern_host_matrix *x, tern_dtype from, const int64_t *count,
                              int64_t m, int64_t n)
{
    int64_t once[2] = {extent(count[0], x->batch[0]), extent(count[1], x->batch[1])};
    size_t numbers = (size_t)(once[0] * once[1] * m * n);
    void *data = tern_alloc_aligned(numbers * tern_dtype_size(to));
    if (!data)
        return tern_fail(
            TERN_ERR_MEMORY,
            "cpu: out of host memory: tried to allocate %zu bytes for a matrix product",
            numbers * tern_dtype_size(to));
    *copy = (tern_host_matrix){data, n, 1, {m * n * once[1], m * n}};
    for (int i = 0; i < 2; i++)
        copy->batch[i] = once[i] == count[i] ? copy->batch[i] : 0;
    return convert(place, copy, to, x, from, once, m, n);
}

static void drop(const tern_host_matrix *copy)
{
    void *data;
    memcpy(&data, &copy->data, sizeof data);
    tern_free(data);
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

/* Rows and columns of product i of the batch. */
static void multiply(many *t, int64_t i, range rows, range columns)
{
    const tern_host_product *p = t->p;
    int64_t m = rows.to - rows.from, n = columns.to - columns.from;
    if (m <= 0 || n <= 0)
        return;
    int64_t b0 = i / p->count[1], b1 = i % p->count[1];
    const float *a = (const float *)p->a.data + b0 * p->a.batch[0] + b1 * p->a.batch[1];
    const float *b = (const float *)p->b.data + b0 * p->b.batch[0] + b1 * p->b.batch[1];
    float *c;
    memcpy(&c, &p->c.data, sizeof c);
    c += b0 * p->c.batch[0] + b1 * p->c.batch[1] + rows.from * t->c_distance + columns.from;
    if (p->bias)
        for (int64_t row = 0; row < m; row++)
            memcpy(c + row * t->c_distance, (const float *)p->bias + columns.from,
                   (size_t)n * sizeof *c);
    if (dnnl_sgemm(t->a, t->b, m, n, p->k, (float)p->alpha, a + rows.from * p->a.row, t->a_distance,
                   b + columns.from * p->b.col, t->b_distance, p->bias ? 1 : (float)p->beta, c,
                   t->c_distance) != dnnl_success)
        atomic_store(&t->failed, true);
}

/* oneDNN stays on the thread that calls it: its own threads would be a second pool. */
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
#ifdef _OPENMP
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
#endif
    for (int64_t i = from; i < to; i++)
        multiply(t, i, rows, columns);
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
}

/* Sets *taken when oneDNN can do it. */
static tern_status onednn_product(const tern_host_product *p, bool *taken)
{
    many t = {.p = p, .c_distance = p->m == 1 ? p->n : p->c.row};
    t.a = form_of(&p->a, p->m, p->k, &t.a_distance);
    t.b = form_of(&p->b, p->k, p->n, &t.b_distance);
    bool bias_and_beta = p->bias && p->beta != 0;
    *taken = t.a && t.b && !bias_and_beta && !tern_is_forked_child();
    if (!*taken)
        return TERN_OK;
    int64_t all = p->count[0] * p->count[1];
    int parts = tern_parallel_parts(multiplications(p) / PER_OPERATION);
    t.by_product = all >= 4 * parts;
    tern_parallel(parts, some, &t);
    return atomic_load(&t.failed)
               ? tern_fail(TERN_ERR_DEVICE,
                           "cpu: oneDNN refused a product of (%lld x %lld) and (%lld x %lld)",
                           (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n)
               : TERN_OK;
}
#endif

/* ---- one type ---------------------------------------------------------------------------- */

static tern_status f32_product(tern_place *place, const tern_host_product *p)
{
#ifdef TERN_WITH_ONEDNN
    bool taken = false;
    if (p->m > 1 && p->n > 1 && p->m * p->n * p->k >= ONEDNN_FROM)
        TERN_TRY(onednn_product(p, &taken));
    if (taken)
        return TERN_OK;
#endif
    return own_product(place, TERN_F32, p);
}

/* The same with 16-bit elements: p's matrices are of dtype. */
static tern_status narrow_product(tern_place *place, tern_dtype dtype, const tern_host_product *p)
{
    tern_host_product wide = *p;
    const int64_t one[2] = {1, 1};
    tern_host_matrix bias = {p->bias, 0, 1, {0}}, wide_bias = {0};
    wide.a.data = wide.b.data = wide.c.data = NULL;
    tern_status status = dense_copy(place, &wide.a, TERN_F32, &p->a, dtype, p->count, p->m, p->k);
    if (status == TERN_OK)
        status = dense_copy(place, &wide.b, TERN_F32, &p->b, dtype, p->count, p->k, p->n);
    if (status == TERN_OK) /* reads C for nothing where beta is 0 */
        status = dense_copy(place, &wide.c, TERN_F32, &p->c, dtype, p->count, p->m, p->n);
    if (status == TERN_OK && p->bias)
        status = dense_copy(place, &wide_bias, TERN_F32, &bias, dtype, one, 1, p->n);
    wide.bias = wide_bias.data;
    if (status == TERN_OK)
        status = f32_product(place, &wide);
    if (status == TERN_OK)
        status = convert(place, &p->c, dtype, &wide.c, TERN_F32, p->count, p->m, p->n);
    drop(&wide.a);
    drop(&wide.b);
    drop(&wide.c);
    drop(&wide_bias);
    return status;
}

static tern_host_matrix host_matrix(const tern_matrix *x, size_t element)
{
    return (tern_host_matrix){(char *)x->buffer->host + (size_t)x->at * element,
                              x->row,
                              x->col,
                              {x->batch[0], x->batch[1]}};
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
                           .a = host_matrix(&g->a, element),
                           .b = host_matrix(&g->b, element),
                           .c = host_matrix(&g->c, element),
                           .bias = g->bias ? (char *)g->bias->host + (size_t)g->bias_at * element
                                           : NULL};
    if (g->dtype == TERN_F16 || g->dtype == TERN_BF16)
        return narrow_product(place, g->dtype, &p);
    return g->dtype == TERN_F32 ? f32_product(place, &p) : own_product(place, TERN_F64, &p);
}
