/* gemm.c -- matrix products through cuBLASLt; where that is missing or can't, on tensor cores by
 * tern's own kernel (gemm_own.c), or through matmul.cl.
 *
 * cuBLASLt's matrices are column-major, so C = A B is computed as C' = B' A'. The plan for a shape
 * is kept: the heuristics cost more than a small product. */
#include "base/warning.h"
#include "base/lock.h"
#include "device/builds.h"
#include "device/cuda/cuda.h"
#include "device/gemm_kernel.h"
#include "device/index32.h"
#include "device/signature.h"
#include <string.h>

enum { PLANS = 1024, WORKSPACE = 32 << 20 };

/* The key of a plan: what cuBLASLt's choice depends on; compared byte by byte. */
typedef struct shape {
    int64_t m, n, k, count, ld[3], stride[3];
    uint32_t alignment[4]; /* of A, B, C and the bias */
    int32_t dtype, transposed[2], epilogue, tf32, wide;
} shape;

typedef struct plan {
    shape of;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout[3];
    cublasLtMatmulAlgo_t algo;
    bool used, usable;
} plan;

struct tern_cuda_gemm_state {
    cublasLtHandle_t handle;
    void *workspace;
    plan plans[PLANS];     /* by hash; a new shape replaces an old one */
    void *portable[16][2]; /* matmul.cl with 64-bit and with 32-bit indices */
};

static tern_status check_lt(tern_place *place, cublasStatus_t code, const char *call)
{
    if (code == 0)
        return TERN_OK;
    return tern_fail(TERN_ERR_DEVICE, "%s: %s gave %s (%u)", tern_place_info(place)->device, call,
                     tern_cuda.cublasLtGetStatusName(code), code);
}
#define LT_TRY(PLACE, CALL) TERN_TRY(check_lt(PLACE, tern_cuda.CALL, #CALL))

/* ---- matmul.cl ----------------------------------------------------------------------------- */

static tern_status portable(tern_place *place, tern_cuda_gemm_state *state, const tern_gemm *g)
{
    tern_gemm_shape s = tern_gemm_shape_of(g);
    const tern_arg args[] = TERN_GEMM_ARGS(g, &s);
    const int n = sizeof args / sizeof *args;
    tern_grid grid = tern_gemm_grid(g);
    bool narrow = tern_fits_index32(args, n, 0);
    void **kernel = &state->portable[g->dtype][narrow];
    if (!*kernel) {
        TERN_TRY(tern_signature_check(place, "matmul", "gemm", g->dtype, args, n));
        TERN_TRY(narrow ? tern_cuda_resolve_index32(place, "matmul", "gemm", g->dtype, 0, kernel)
                        : tern_cuda_resolve(place, "matmul", "gemm", g->dtype, kernel));
    }
    return tern_cuda_launch(place, *kernel, &grid, args, n);
}

/* ---- cuBLASLt ---------------------------------------------------------------------------- */

/* Sets the leading dimension of a rows x columns matrix for cuBLASLt, and *transposed: 0 if its
 * rows are contiguous, which cuBLASLt reads as the transpose, 1 if its columns are. Returns false
 * if neither are. */
static bool lie(const tern_matrix *m, int64_t rows, int64_t columns, int64_t *ld,
                int32_t *transposed)
{
    if (m->col == 1 && (m->row >= columns || rows == 1)) {
        *transposed = 0;
        *ld = rows == 1 || m->row < columns ? columns : m->row;
        return true;
    }
    *transposed = 1;
    *ld = columns == 1 || m->col < rows ? rows : m->col;
    return m->row == 1 && (m->col >= rows || columns == 1);
}

static uint32_t alignment_of(uint64_t address)
{
    uint32_t alignment = 256;
    while (address % alignment)
        alignment /= 2;
    return alignment;
}

static uint64_t address_of(const tern_buffer *buffer, int64_t at, tern_dtype dtype)
{
    return (uint64_t)(uintptr_t)buffer->handle + (uint64_t)at * tern_dtype_size(dtype);
}

/* cuBLASLt's epilogues. Its B is tern's A, so BGRADB is the bias gradient. */
static const struct {
    int32_t epilogue;
    const char *name;
} epilogues[] = {
#define END(NAME)                                                                                  \
    {                                                                                              \
        CUBLASLT_EPILOGUE_##NAME, #NAME                                                            \
    }
    [TERN_GEMM_NO_EPILOGUE] = END(BGRADB),
    [TERN_GEMM_RELU] = END(RELU_BIAS),
    [TERN_GEMM_GELU] = END(GELU_AUX_BIAS),
    [TERN_GEMM_GELU_GRADIENT] = END(DGELU_BGRAD)
#undef END
};

/* Fills the key for the product with one level of batch. Returns false if cuBLASLt can't express
 * it. */
static bool describe(const tern_gemm *g, int64_t count, int level, shape *s)
{
    memset(s, 0, sizeof *s); /* the padding too, as all bytes are compared */
    s->m = g->m, s->n = g->n, s->k = g->k, s->count = count;
    s->dtype = (int32_t)g->dtype;
    s->epilogue = g->epilogue || g->bias_grad ? epilogues[g->epilogue].epilogue
                  : g->bias                   ? CUBLASLT_EPILOGUE_BIAS
                                              : CUBLASLT_EPILOGUE_DEFAULT;
    s->tf32 = g->tf32;
    s->wide = g->wide;
    const tern_matrix *of[] = {&g->a, &g->b, &g->c};
    for (int i = 0; i < 3; i++)
        s->stride[i] = count > 1 ? of[i]->batch[level] : 0;
    int32_t straight;
    bool fits = lie(&g->a, g->m, g->k, &s->ld[0], &s->transposed[0]) &&
                lie(&g->b, g->k, g->n, &s->ld[1], &s->transposed[1]) &&
                lie(&g->c, g->m, g->n, &s->ld[2], &straight);
    return fits && !straight;
}

static const struct {
    cudaDataType type;
    cublasComputeType_t compute;
    cudaDataType_t scale;
} types[] = {[TERN_F32] = {CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
             [TERN_F64] = {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F},
             [TERN_F16] = {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F},
             [TERN_BF16] = {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F}};

static void drop(plan *p)
{
    for (int i = 0; i < 3; i++)
        if (p->layout[i])
            tern_cuda.cublasLtMatrixLayoutDestroy(p->layout[i]);
    if (p->desc)
        tern_cuda.cublasLtMatmulDescDestroy(p->desc);
    *p = (plan){.used = false};
}

static tern_status set_layout(tern_place *place, const shape *s, int i, uint64_t rows,
                              uint64_t columns, cublasLtMatrixLayout_t *layout)
{
    int32_t count = (int32_t)s->count;
    const int32_t dtype = i == 2 && s->wide ? TERN_F32 : s->dtype;
    LT_TRY(place, cublasLtMatrixLayoutCreate(layout, types[dtype].type, rows, columns, s->ld[i]));
    if (count == 1)
        return TERN_OK;
    LT_TRY(place, cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                   &count, sizeof count));
    LT_TRY(place,
           cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                            &s->stride[i], sizeof s->stride[i]));
    return TERN_OK;
}

/* Addresses of the bias or the bias gradient and of the mask, 0 for none, and the mask's row
 * length. */
typedef struct beside {
    uint64_t bias, mask;
    int64_t mask_row;
} beside;

static tern_status set_beside(tern_place *place, const plan *p, const beside *at)
{
    if (at->bias)
        LT_TRY(place, cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                     &at->bias, sizeof at->bias));
    if (at->mask)
        LT_TRY(place,
               cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                                              &at->mask, sizeof at->mask));
    return TERN_OK;
}

/* Creates the product's descriptor. It gets the pointers of the first product, as the heuristics
 * look at their alignment. */
static tern_status set_desc(tern_place *place, const shape *s, const beside *at, plan *p)
{
    int32_t op[2];
    uint32_t epilogue = (uint32_t)s->epilogue;
    for (int i = 0; i < 2; i++)
        op[i] = s->transposed[i] ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t compute = s->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : types[s->dtype].compute;
    LT_TRY(place, cublasLtMatmulDescCreate(&p->desc, compute, types[s->dtype].scale));
    /* cuBLASLt's A is tern's B. */
    LT_TRY(place, cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op[1],
                                                 sizeof op[1]));
    LT_TRY(place, cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op[0],
                                                 sizeof op[0]));
    LT_TRY(place, cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                                 sizeof epilogue));
    if (at->mask)
        LT_TRY(place, cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
                                                     &at->mask_row, sizeof at->mask_row));
    return set_beside(place, p, at);
}

/* Gets the algorithm from the heuristics; p->usable stays false if they have none. */
static tern_status ask(tern_place *place, tern_cuda_gemm_state *state, const shape *s, plan *p,
                       cublasLtMatmulPreference_t preference)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES};
    uint64_t capacity = state->workspace ? WORKSPACE : 0;
    /* Partial sums over k are added in float32, not in half precision. */
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulHeuristicResult_t result = {.workspaceSize = 0};
    int n = 0;
    LT_TRY(place, cublasLtMatmulPreferenceSetAttribute(preference,
                                                       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                       &capacity, sizeof capacity));
    if (tern_dtype_is_half(s->dtype))
        LT_TRY(place,
               cublasLtMatmulPreferenceSetAttribute(
                   preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof scheme));
    for (int i = 0; i < 3; i++)
        LT_TRY(place, cublasLtMatmulPreferenceSetAttribute(
                          preference, alignments[i], &s->alignment[i], sizeof s->alignment[i]));
    LT_TRY(place, cublasLtMatmulPreferenceSetAttribute(preference,
                                                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                                                       &s->alignment[2], sizeof s->alignment[2]));
    cublasStatus_t code = tern_cuda.cublasLtMatmulAlgoGetHeuristic(
        state->handle, p->desc, p->layout[1], p->layout[0], p->layout[2], p->layout[2], preference,
        1, &result, &n);
    p->usable = code == 0 && n == 1 && result.state == 0;
    p->algo = result.algo;
    return TERN_OK;
}

static tern_status make_plan(tern_place *place, tern_cuda_gemm_state *state, const shape *s,
                             const beside *at, plan *p)
{
    cublasLtMatmulPreference_t preference = NULL;
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    bool ta = s->transposed[0], tb = s->transposed[1];
    drop(p);
    TERN_TRY(set_desc(place, s, at, p));
    TERN_TRY(set_layout(place, s, 0, ta ? m : k, ta ? k : m, &p->layout[0]));
    TERN_TRY(set_layout(place, s, 1, tb ? k : n, tb ? n : k, &p->layout[1]));
    TERN_TRY(set_layout(place, s, 2, n, m, &p->layout[2]));
    LT_TRY(place, cublasLtMatmulPreferenceCreate(&preference));
    tern_status status = ask(place, state, s, p, preference);
    tern_cuda.cublasLtMatmulPreferenceDestroy(preference);
    if (status == TERN_OK) {
        p->of = *s;
        p->used = true;
    }
    return status;
}

static tern_status find_plan(tern_place *place, tern_cuda_gemm_state *state, const shape *s,
                             const beside *at, plan **found)
{
    plan *p = &state->plans[tern_hash(TERN_HASH_SEED, s, sizeof *s) % PLANS];
    *found = p;
    if (p->used && memcmp(&p->of, s, sizeof *s) == 0)
        return TERN_OK;
    tern_status status = make_plan(place, state, s, at, p);
    if (status != TERN_OK)
        drop(p);
    return status;
}

/* Sets at to the addresses of A, B and C, and the alignments in s. Returns the other addresses. */
static beside addresses(const tern_gemm *g, shape *s, const int64_t more[3], void *at[3])
{
    const tern_matrix *of[] = {&g->a, &g->b, &g->c};
    const tern_dtype result = g->wide ? TERN_F32 : g->dtype;
    for (int i = 0; i < 3; i++) {
        uint64_t address =
            address_of(of[i]->buffer, of[i]->at + more[i], i == 2 ? result : g->dtype);
        s->alignment[i] = alignment_of(address);
        at[i] = (void *)(uintptr_t)address;
    }
    beside other = {.bias = g->bias_grad ? address_of(g->bias_grad, g->bias_grad_at, result)
                            : g->bias    ? address_of(g->bias, g->bias_at, g->dtype)
                                         : 0,
                    .mask = g->mask ? address_of(g->mask, g->mask_at, g->dtype) : 0,
                    .mask_row = tern_gemm_gelu_row(g->n)};
    s->alignment[3] = alignment_of(other.bias | other.mask);
    return other;
}

/* Computes one strided batch; *done stays false if cuBLASLt has no algorithm. */
static tern_status multiply(tern_place *place, tern_cuda_gemm_state *state, const tern_gemm *g,
                            shape *s, const int64_t more[3], bool *done)
{
    plan *p;
    void *at[3];
    beside other = addresses(g, s, more, at);
    TERN_TRY(find_plan(place, state, s, &other, &p));
    if (!p->usable)
        return TERN_OK;
    TERN_TRY(set_beside(place, p, &other));
    float narrow[] = {(float)g->alpha, (float)g->beta};
    double wide[] = {g->alpha, g->beta};
    const void *alpha = g->dtype == TERN_F64 ? (void *)&wide[0] : (void *)&narrow[0];
    const void *beta = g->dtype == TERN_F64 ? (void *)&wide[1] : (void *)&narrow[1];
    LT_TRY(place, cublasLtMatmul(state->handle, p->desc, alpha, at[1], p->layout[1], at[0],
                                 p->layout[0], beta, at[2], p->layout[2], at[2], p->layout[2],
                                 &p->algo, state->workspace, state->workspace ? WORKSPACE : 0,
                                 tern_cuda_stream(place)));
    *done = true;
    return TERN_OK;
}

static bool collapses(const tern_gemm *g)
{
    const tern_matrix *of[] = {&g->a, &g->b, &g->c};
    if (g->count[0] == 1 || g->count[1] == 1)
        return true;
    for (int i = 0; i < 3; i++)
        if (of[i]->batch[0] != of[i]->batch[1] * g->count[1])
            return false;
    return true;
}

/* Returns g without its first `done` batches. */
static tern_gemm batches_after(const tern_gemm *g, int64_t done)
{
    tern_gemm rest = *g;
    rest.count[0] -= done;
    rest.a.at += done * g->a.batch[0];
    rest.b.at += done * g->b.batch[0];
    rest.c.at += done * g->c.batch[0];
    return rest;
}

/* Computes g by cuBLASLt and sets *rest to the last batches that cuBLASLt can't compute. The
 * alignment differs between batches, so there may be an algorithm for only some of them. */
static tern_status through_lt(tern_place *place, tern_cuda_gemm_state *state, const tern_gemm *g,
                              tern_gemm *rest)
{
    shape s;
    bool whole = collapses(g);
    int level = whole && g->count[1] == 1 ? 0 : 1;
    if (!describe(g, whole ? g->count[0] * g->count[1] : g->count[1], level, &s))
        return TERN_OK;
    for (int64_t i = 0; i < (whole ? 1 : g->count[0]); i++) {
        const int64_t more[3] = {i * g->a.batch[0], i * g->b.batch[0], i * g->c.batch[0]};
        bool done = false;
        TERN_TRY(multiply(place, state, g, &s, more, &done));
        if (!done)
            return TERN_OK;
        *rest = batches_after(g, whole ? g->count[0] : i + 1);
    }
    return TERN_OK;
}

static tern_status open_state(tern_place *place, tern_cuda_state *device)
{
    if (device->gemm)
        return TERN_OK;
    tern_cuda_gemm_state *state = tern_alloc(sizeof *state);
    if (!state)
        return TERN_ERR_MEMORY;
    if (tern_cuda.has_lt) {
        tern_status status =
            check_lt(place, tern_cuda.cublasLtCreate(&state->handle), "cublasLtCreate");
        if (status != TERN_OK) {
            tern_free(state);
            return status;
        }
        /* Without a workspace cuBLASLt has fewer algorithms, which is no error. */
        if (tern_cuda.cudaMalloc(&state->workspace, WORKSPACE) != 0) {
            tern_cuda.cudaGetLastError();
            state->workspace = NULL;
        }
    }
    device->gemm = state;
    return TERN_OK;
}

static tern_status own_fits(tern_place *place, const tern_gemm *g, bool *fits)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    tern_mutex_lock(&device->gemm_lock);
    tern_status status = tern_cuda_gemm_own_fits(place, g, fits);
    tern_mutex_unlock(&device->gemm_lock);
    return status;
}

tern_status tern_cuda_epilogue_fits(tern_place *place, const tern_gemm *g, bool *fits)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    plan *p = NULL;
    shape s;
    void *at[3];
    if (g->count[0] * g->count[1] != 1 || !describe(g, 1, 1, &s))
        return TERN_OK;
    TERN_TRY(tern_cuda_enter(place));
    if (!tern_cuda.has_lt)
        return own_fits(place, g, fits);
    beside other = addresses(g, &s, (const int64_t[3]){0}, at);
    tern_mutex_lock(&device->gemm_lock);
    tern_status status = open_state(place, device);
    if (status == TERN_OK)
        status = find_plan(place, device->gemm, &s, &other, &p);
    *fits = status == TERN_OK && p->usable;
    tern_mutex_unlock(&device->gemm_lock);
    return status;
}

/* Computes what cuBLASLt can't. The caller holds gemm_lock. */
static tern_status without_lt(tern_place *place, tern_cuda_gemm_state *state, const tern_gemm *g)
{
    bool done;
    TERN_TRY(tern_cuda_gemm_own(place, g, &done));
    if (done)
        return TERN_OK;
    return g->bias_grad || g->epilogue || g->wide
               ? tern_fail(TERN_ERR_DEVICE, "%s: %s no %s with this product",
                           tern_place_info(place)->device,
                           tern_cuda.has_lt ? "cuBLASLt has" : "without cuBLASLt there is",
                           epilogues[g->epilogue].name)
               : portable(place, state, g);
}

tern_status tern_cuda_gemm(tern_place *place, const tern_gemm *g)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    tern_gemm rest = *g;
    TERN_TRY(tern_cuda_enter(place));
    tern_mutex_lock(&device->gemm_lock);
    tern_status status = open_state(place, device);
    if (status == TERN_OK && device->gemm->handle)
        status = through_lt(place, device->gemm, g, &rest);
    if (status == TERN_OK && rest.count[0] > 0)
        status = without_lt(place, device->gemm, &rest);
    tern_mutex_unlock(&device->gemm_lock);
    if (tern_cuda.has_lt && status == TERN_OK && rest.count[0] > 0)
        tern_warn("slow", "tern_matmul",
                  "cuBLASLt takes no %s product of %lld x %lld x %lld with these strides on %s: "
                  "tern's own, slower kernel computes it",
                  tern_dtype_name(g->dtype), (long long)g->m, (long long)g->n, (long long)g->k,
                  tern_place_info(place)->device);
    if (!tern_cuda.has_lt)
        tern_warn("slow", "tern_matmul", "matrix products on %s take tern's own kernel: %s",
                  tern_place_info(place)->device, tern_device_notes("cuda"));
    return status;
}

/* Kernels for tensor cores load 16 bytes of half precision at a time. Where rows do not begin at
 * such multiples, cuBLASLt's kernels and gemm_matrix.cl load single elements: with a vocabulary of
 * 50257 cuBLASLt's product takes five to seven times as long (H200). Copying a matrix costs less
 * than that if each of its elements is in a hundred products or more, and the product takes longer
 * than a launch. */
bool tern_cuda_wants_multiples(const tern_place *place, const tern_gemm *g)
{
    enum { LEAST = 128, WORK = 1 << 30 };
    const bool half = tern_dtype_is_half(g->dtype);
    const bool large = g->m >= LEAST && g->n >= LEAST && g->k >= LEAST &&
                       (double)g->m * (double)g->n * (double)g->k >= WORK;
    return half && large &&
           (tern_cuda.has_lt || tern_cuda_matrix_way(place, g->dtype) == TERN_MATRIX_MMA);
}

void tern_cuda_prebuild_gemm(tern_place *place, const tern_gemm *g)
{
    if (!tern_cuda.has_lt && !tern_cuda_gemm_is_own(place, g))
        tern_builds_add(place, "matmul", "gemm", g->dtype, 0);
}
