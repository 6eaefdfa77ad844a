/* cublaslt.c -- the stand-in's cuBLASLt, written from its documentation: column-major matrices with
 * a leading dimension, op(A) (m, k) times op(B) (k, n), a bias along the rows of D, strided
 * batches. */
#include "standin.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 7, NOT_SUPPORTED = 15, ALLOCATION = 3 };

#define X(RESULT, NAME, PARAMETERS) EXPORT RESULT NAME PARAMETERS;
#include "device/cuda/cublaslt.def"
#undef X

struct cublasLtContext {
    int made;
};
struct tern_lt_matmul_desc {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t transposed[2];
    uint32_t epilogue;
    const void *bias;
    void *aux;
    int64_t aux_ld;
};
struct tern_lt_matrix_layout {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t ld, stride;
    int32_t count;
};
struct tern_lt_preference {
    uint64_t workspace;
    uint32_t alignment[4], schemes; /* of reductions */
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    FAULT(cublasLtCreate);
    *handle = calloc(1, sizeof **handle);
    return *handle ? 0 : ALLOCATION;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                   : "CUBLAS status of the stand-in";
}

/* ---- descriptions ------------------------------------------------------------------------ */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    FAULT(cublasLtMatmulDescCreate);
    *made = calloc(1, sizeof **made);
    if (!*made)
        return ALLOCATION;
    **made = (struct tern_lt_matmul_desc){
        .compute = compute, .scale = scale, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    return 0;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    FAULT(cublasLtMatmulDescDestroy);
    return 0;
}

static cublasStatus_t store(void *to, size_t room, const void *value, size_t bytes)
{
    if (bytes != room)
        return INVALID_VALUE;
    memcpy(to, value, bytes);
    return 0;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    FAULT(cublasLtMatmulDescSetAttribute);
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return store(&desc->transposed[0], sizeof desc->transposed[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return store(&desc->transposed[1], sizeof desc->transposed[1], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return store(&desc->epilogue, sizeof desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return store(&desc->aux, sizeof desc->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return store(&desc->aux_ld, sizeof desc->aux_ld, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return store(&desc->bias, sizeof desc->bias, value, bytes);
    }
    return INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    FAULT(cublasLtMatrixLayoutCreate);
    if (rows == 0 || columns == 0 || ld < (int64_t)rows)
        return INVALID_VALUE;
    *made = calloc(1, sizeof **made);
    if (!*made)
        return ALLOCATION;
    **made = (struct tern_lt_matrix_layout){type, rows, columns, ld, 0, 1};
    return 0;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    FAULT(cublasLtMatrixLayoutDestroy);
    return 0;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    FAULT(cublasLtMatrixLayoutSetAttribute);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        return store(&layout->count, sizeof layout->count, value, bytes);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        return store(&layout->stride, sizeof layout->stride, value, bytes);
    return INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made)
{
    FAULT(cublasLtMatmulPreferenceCreate);
    *made = calloc(1, sizeof **made);
    if (!*made)
        return ALLOCATION;
    for (int i = 0; i < 4; i++)
        (*made)->alignment[i] = 256; /* the documented default */
    (*made)->schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
    return 0;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    FAULT(cublasLtMatmulPreferenceDestroy);
    return 0;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    FAULT(cublasLtMatmulPreferenceSetAttribute);
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return store(&preference->workspace, sizeof preference->workspace, value, bytes);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return store(&preference->schemes, sizeof preference->schemes, value, bytes);
    if (attribute < CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES ||
        attribute > CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
        return INVALID_VALUE;
    uint32_t *alignment =
        &preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
    return store(alignment, sizeof *alignment, value, bytes);
}

/* ---- the product ------------------------------------------------------------------------- */

static bool is_half(cudaDataType type)
{
    return type == CUDA_R_16F || type == CUDA_R_16BF;
}

/* The shapes must fit each other; products of halves may be float32. */
static bool fits(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                 cublasLtMatrixLayout_t d)
{
    uint64_t m = desc->transposed[0] ? a->columns : a->rows;
    uint64_t k = desc->transposed[0] ? a->rows : a->columns;
    uint64_t n = desc->transposed[1] ? b->rows : b->columns;
    return m == d->rows && n == d->columns && k == (desc->transposed[1] ? b->columns : b->rows) &&
           a->count == d->count && b->count == d->count && b->type == a->type &&
           (a->type == d->type || (d->type == CUDA_R_32F && is_half(a->type)));
}

/* The combinations of types in the documentation's table of cublasLtMatmul
 * that tern may ask for. */
static bool is_supported(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a)
{
    bool narrow = a->type == CUDA_R_32F || a->type == CUDA_R_16F || a->type == CUDA_R_16BF;
    switch (desc->compute) {
    case CUBLAS_COMPUTE_64F:
        return desc->scale == CUDA_R_64F && a->type == CUDA_R_64F;
    case CUBLAS_COMPUTE_32F:
        return desc->scale == CUDA_R_32F && narrow;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        return desc->scale == CUDA_R_32F && a->type == CUDA_R_32F;
    }
    return false;
}

static bool has_gelu(cublasLtMatmulDesc_t desc)
{
    return desc->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
           desc->epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
}

/* Numbers for gelu have a leading dimension, a multiple of 8 and no less than D's rows. There are none in double precision. */
static bool mask_fits(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t d)
{
    return !has_gelu(desc) ||
           (desc->aux && desc->aux_ld % 8 == 0 && desc->aux_ld >= (int64_t)d->rows &&
            d->count == 1 && d->type != CUDA_R_64F && (uintptr_t)desc->aux % 16 == 0);
}

/* NULL is as well aligned as can be. */
static uint64_t alignment_of(const void *at)
{
    uint64_t alignment = 256;
    while ((uintptr_t)at % alignment)
        alignment /= 2;
    return alignment;
}

/* What an algorithm remembers here: the alignments it may rely on, the bias's last. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *n)
{
    (void)handle, (void)c, (void)wanted;
    FAULT(cublasLtMatmulAlgoGetHeuristic);
    *n = 0;
    if (!fits(desc, a, b, d))
        return INVALID_VALUE;
    /* Halves that may be added as halves: tern wants sums in float32. */
    if (is_half(a->type) && preference->schemes & ~(uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
        return INVALID_VALUE;
    if (!is_supported(desc, a) || !mask_fits(desc, d))
        return NOT_SUPPORTED;
    memset(results, 0, sizeof *results);
    for (int i = 0; i < 4; i++)
        results->algo.data[i] = preference->alignment[i];
    results->algo.data[4] = alignment_of(desc->bias);
    *n = 1;
    return 0;
}

typedef struct product {
    struct tern_lt_matmul_desc desc;
    struct tern_lt_matrix_layout a, b, c, d;
    const void *from_a, *from_b, *from_c;
    void *to, *bias;
    double alpha, beta;
} product;

/* The sums of B's columns over k, one for each column of D. */
static void sum_columns(const product *p, int64_t n, int64_t k)
{
    int64_t bk = p->desc.transposed[1] ? p->b.ld : 1, bj = p->desc.transposed[1] ? 1 : p->b.ld;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t q = 0; q < k; q++)
            sum += standin_load(p->from_b, q * bk + j * bj, p->b.type);
        standin_save(p->bias, j, p->d.type, sum);
    }
}

/* gelu of x by tanh, which is noted; or its slope at what was noted, times x. */
static double gelu(const product *p, int64_t i, int64_t j, double x)
{
    bool back = p->desc.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
    void *aux = p->desc.aux;
    double at = back ? standin_load(aux, i + j * p->desc.aux_ld, p->d.type) : x;
    double c = 0.7978845608028654, t = tanh(c * (at + 0.044715 * at * at * at));
    if (!back)
        standin_save(aux, i + j * p->desc.aux_ld, p->d.type, x);
    double slope = 0.5 * (1 + t) + 0.5 * at * (1 - t * t) * c * (1 + 3 * 0.044715 * at * at);
    return back ? x * slope : 0.5 * x * (1 + t);
}

/* The sums of D's rows over its columns, as it was written. */
static void sum_rows(const product *p, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += standin_load(p->to, i + j * p->d.ld, p->d.type);
        standin_save(p->bias, i, p->d.type, sum);
    }
}

/* Rows of so many elements, widened, and rounded where the product is fast: what is summed up to `multiply`'s results. */
static double *widened(const product *p, const void *from, int64_t at, cudaDataType type,
                       const int64_t count[2], const int64_t stride[2])
{
    bool fast = p->desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    double *wide = malloc(sizeof *wide * (size_t)(count[0] * count[1] + 1));
    for (int64_t i = 0; i < count[0]; i++)
        for (int64_t j = 0; j < count[1]; j++) {
            double x = standin_load(from, at + i * stride[0] + j * stride[1], type);
            wide[i * count[1] + j] = fast ? standin_tf32(x) : x;
        }
    return wide;
}

/* What becomes of the sum of products at row i and column j. */
static double finished(const product *p, double sum, int64_t u, int64_t i, int64_t j)
{
    sum *= p->alpha;
    if (p->beta != 0)
        sum += p->beta * standin_load(p->from_c, u * p->c.stride + i + j * p->c.ld, p->c.type);
    if (p->desc.epilogue == CUBLASLT_EPILOGUE_BIAS ||
        p->desc.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
        p->desc.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
        sum += standin_load(p->desc.bias, i, p->d.type);
    if (p->desc.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS && sum < 0)
        sum = 0;
    if (has_gelu((cublasLtMatmulDesc_t)&p->desc))
        sum = gelu(p, i, j, sum);
    return sum;
}

/* A column's part of `a` times numbers of `b`, one for each column of sums. */
static void add_products(int rows, int columns, const double *a, const double *b, int64_t step,
                         double *sums, int most)
{
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < rows; r++)
            sums[c * most + r] += a[r] * b[c * step];
}

static void multiply(void *data)
{
    const product *p = data;
    int64_t m = (int64_t)p->d.rows, n = (int64_t)p->d.columns;
    int64_t k = (int64_t)(p->desc.transposed[0] ? p->a.rows : p->a.columns);
    int64_t ai = p->desc.transposed[0] ? p->a.ld : 1, ak = p->desc.transposed[0] ? 1 : p->a.ld;
    if (p->desc.epilogue == CUBLASLT_EPILOGUE_BGRADB)
        sum_columns(p, n, k);
    int64_t bk = p->desc.transposed[1] ? p->b.ld : 1, bj = p->desc.transposed[1] ? 1 : p->b.ld;
    enum {
        AT_ONCE = 4,
        ROWS = 256
    }; /* columns and rows of d that are summed up beside each other */
    for (int64_t u = 0; u < p->d.count; u++) {
        double *a = widened(p, p->from_a, u * p->a.stride, p->a.type, (int64_t[]){k, m},
                            (int64_t[]){ak, ai});
        double *b = widened(p, p->from_b, u * p->b.stride, p->b.type, (int64_t[]){n, k},
                            (int64_t[]){bj, bk});
        for (int64_t i = 0; i < m; i += ROWS)
            for (int64_t j = 0; j < n; j += AT_ONCE) {
                const int rows = (int)(m - i < ROWS ? m - i : ROWS);
                const int columns = (int)(n - j < AT_ONCE ? n - j : AT_ONCE);
                double sums[AT_ONCE][ROWS] = {{0}};
                for (int64_t q = 0; q < k; q++)
                    add_products(rows, columns, a + q * m + i, b + j * k + q, k, sums[0], ROWS);
                for (int c = 0; c < columns; c++)
                    for (int r = 0; r < rows; r++)
                        standin_save(p->to, u * p->d.stride + i + r + (j + c) * p->d.ld, p->d.type,
                                     finished(p, sums[c][r], u, i + r, j + c));
            }
        free(a);
        free(b);
    }
    if (p->desc.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD)
        sum_rows(p, m, n);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    (void)handle, (void)workspace, (void)workspace_bytes;
    FAULT(cublasLtMatmul);
    const void *const at[] = {a, b, c, d, desc->bias};
    if (!fits(desc, a_layout, b_layout, d_layout))
        return INVALID_VALUE;
    if (desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT && !desc->bias)
        return INVALID_VALUE;
    if (desc->epilogue == CUBLASLT_EPILOGUE_BGRADB && a_layout->count != 1)
        return NOT_SUPPORTED;
    for (int i = 0; i < 5; i++)
        if (algo->data[i] == 0 || (uintptr_t)at[i] % algo->data[i])
            return INVALID_VALUE; /* the algorithm was chosen for better aligned matrices */
    if (!is_supported(desc, a_layout) || !mask_fits(desc, d_layout))
        return NOT_SUPPORTED;
    bool wide = desc->scale == CUDA_R_64F;
    product p = {*desc,
                 *a_layout,
                 *b_layout,
                 *c_layout,
                 *d_layout,
                 a,
                 b,
                 c,
                 d,
                 (void *)(uintptr_t)desc->bias,
                 wide ? *(const double *)alpha : (double)*(const float *)alpha,
                 wide ? *(const double *)beta : (double)*(const float *)beta};
    return standin_command(stream, multiply, &p, sizeof p) ? 0 : NOT_SUPPORTED;
}
