/* dnn_attention.c -- attention as cuDNN's flash attention engines recognize it: matrix products
 * with the softmax between them in single steps, of which only the results are in memory.
 *
 *   S = scale Q K' + mask,  sums = log sum e^S,  P = e^(S - sums),  out = P V
 *   D = sum dout out,  dP = dout V', dS = scale P (dP - D), dV = P' dout, dQ = dS K, dK = dS' Q */
#include "device/cuda/dnn_attention.h"
#include <float.h>
#include <string.h>

enum { ONE, QUERIES, KEYS, WIDTH, VALUES, SIZES };
enum { HALF, FLOAT, INT32, BOOLEAN };
/* MATRIX, TRANSPOSED_MATRIX: a matrix in memory, read as it is or transposed. ROWS: contiguous
 * numbers of the rows in memory. NUMBER: a number on the host. BETWEEN, TRANSPOSED: a virtual
 * tensor with contiguous rows or columns. */
enum { MATRIX, TRANSPOSED_MATRIX, ROWS, NUMBER, BETWEEN, TRANSPOSED };

/* Every tensor: where it is, its last two dims, its type, and for a matrix its index. */
#define TENSORS(X)                                                                                 \
    X(NONE, BETWEEN, ONE, ONE, HALF, 0)                                                            \
    X(Q, MATRIX, QUERIES, WIDTH, HALF, TERN_DNN_Q)                                                 \
    X(K_TRANSPOSED, TRANSPOSED_MATRIX, WIDTH, KEYS, HALF, TERN_DNN_K)                              \
    X(V, MATRIX, KEYS, VALUES, HALF, TERN_DNN_V)                                                   \
    X(V_TRANSPOSED, TRANSPOSED_MATRIX, VALUES, KEYS, HALF, TERN_DNN_V)                             \
    X(OUT, MATRIX, QUERIES, VALUES, HALF, TERN_DNN_OUT)                                            \
    X(DOUT, MATRIX, QUERIES, VALUES, HALF, TERN_DNN_DOUT)                                          \
    X(DQ, MATRIX, QUERIES, WIDTH, HALF, TERN_DNN_DQ)                                               \
    X(DK, MATRIX, KEYS, WIDTH, HALF, TERN_DNN_DK)                                                  \
    X(DV, MATRIX, KEYS, VALUES, HALF, TERN_DNN_DV)                                                 \
    X(SUMS, ROWS, QUERIES, ONE, FLOAT, 0)                                                          \
    X(DELTA, ROWS, QUERIES, ONE, FLOAT, 0)                                                         \
    X(DQ_SUM, ROWS, QUERIES, WIDTH, FLOAT, 0)                                                      \
    X(SCALE, NUMBER, ONE, ONE, FLOAT, 0)                                                           \
    X(UNIT, NUMBER, ONE, ONE, FLOAT, 0)                                                            \
    X(LOWEST, NUMBER, ONE, ONE, FLOAT, 0)                                                          \
    X(N_KEYS, NUMBER, ONE, ONE, INT32, 0)                                                          \
    X(N_QUERIES, NUMBER, ONE, ONE, INT32, 0)                                                       \
    X(PRODUCT, BETWEEN, QUERIES, KEYS, FLOAT, 0)                                                   \
    X(SCALED, BETWEEN, QUERIES, KEYS, FLOAT, 0)                                                    \
    X(LESS, BETWEEN, QUERIES, KEYS, FLOAT, 0)                                                      \
    X(ROW, BETWEEN, QUERIES, KEYS, INT32, 0)                                                       \
    X(ROW_LOW, BETWEEN, QUERIES, KEYS, INT32, 0)                                                   \
    X(ROW_AT, BETWEEN, QUERIES, KEYS, INT32, 0)                                                    \
    X(COLUMN, BETWEEN, QUERIES, KEYS, INT32, 0)                                                    \
    X(SEEN, BETWEEN, QUERIES, KEYS, BOOLEAN, 0)                                                    \
    X(MASKED, BETWEEN, QUERIES, KEYS, FLOAT, 0)                                                    \
    X(MOST, BETWEEN, QUERIES, ONE, FLOAT, 0)                                                       \
    X(POWERS, BETWEEN, QUERIES, KEYS, FLOAT, 0)                                                    \
    X(TOTAL, BETWEEN, QUERIES, ONE, FLOAT, 0)                                                      \
    X(LOGS, BETWEEN, QUERIES, ONE, FLOAT, 0)                                                       \
    X(P, BETWEEN, QUERIES, KEYS, HALF, 0)                                                          \
    X(P_TRANSPOSED, TRANSPOSED, KEYS, QUERIES, HALF, 0)                                            \
    X(DOUT_OUT, BETWEEN, QUERIES, VALUES, FLOAT, 0)                                                \
    X(DELTA_RAW, BETWEEN, QUERIES, ONE, FLOAT, 0)                                                  \
    X(DP, BETWEEN, QUERIES, KEYS, FLOAT, 0)                                                        \
    X(DP_LESS, BETWEEN, QUERIES, KEYS, FLOAT, 0)                                                   \
    X(DS_RAW, BETWEEN, QUERIES, KEYS, FLOAT, 0)                                                    \
    X(DS, BETWEEN, QUERIES, KEYS, FLOAT, 0)                                                        \
    X(DS_TRANSPOSED, TRANSPOSED, KEYS, QUERIES, HALF, 0)                                           \
    X(K, BETWEEN, KEYS, WIDTH, HALF, 0)                                                            \
    X(UNMASKED, BETWEEN, ONE, ONE, FLOAT, 0) /* SCALED, or LESS in a gradient */
#define X(NAME, ...) NAME,
enum { TENSORS(X) COUNT };
#undef X
static const struct {
    uint8_t where, rows, columns, type, matrix;
} tensors[] = {
#define X(NAME, WHERE, ROWS_, COLUMNS, TYPE, MATRIX_) {WHERE, ROWS_, COLUMNS, TYPE, MATRIX_},
    TENSORS(X)
#undef X
};

/* The steps, and the problems that each belongs to: all, those without or with gradient, those with
 * a causal mask, those whose mask is lower right. */
enum { ALL = 0, ONWARD = 1, BACK = 2, CAUSAL = 4, LOW = 8 };
#define DO(WHEN, MODE, X, B, Y)                                                                    \
    {                                                                                              \
        WHEN, TERN_DNN_POINTWISE, 0, CUDNN_POINTWISE_##MODE,                                       \
        {                                                                                          \
            X, B, 0, Y                                                                             \
        }                                                                                          \
    }
#define INDEX(AXIS, X, Y)                                                                          \
    {                                                                                              \
        CAUSAL, TERN_DNN_POINTWISE, AXIS, CUDNN_POINTWISE_GEN_INDEX,                               \
        {                                                                                          \
            X, 0, 0, Y                                                                             \
        }                                                                                          \
    }
#define SELECT(X, B, T, Y)                                                                         \
    {                                                                                              \
        CAUSAL, TERN_DNN_POINTWISE, 0, CUDNN_POINTWISE_BINARY_SELECT,                              \
        {                                                                                          \
            X, B, T, Y                                                                             \
        }                                                                                          \
    }
#define MULTIPLY(WHEN, X, B, Y)                                                                    \
    {                                                                                              \
        WHEN, TERN_DNN_PRODUCT, 0, 0,                                                              \
        {                                                                                          \
            X, B, 0, Y                                                                             \
        }                                                                                          \
    }
#define REDUCE(WHEN, MODE, X, Y)                                                                   \
    {                                                                                              \
        WHEN, TERN_DNN_REDUCTION, 0, CUDNN_REDUCE_TENSOR_##MODE,                                   \
        {                                                                                          \
            X, 0, 0, Y                                                                             \
        }                                                                                          \
    }
#define TURN(X, Y)                                                                                 \
    {                                                                                              \
        BACK, TERN_DNN_RESHAPE, 0, 0,                                                              \
        {                                                                                          \
            X, 0, 0, Y                                                                             \
        }                                                                                          \
    }
static const struct {
    uint8_t when, kind, axis;
    uint16_t mode;
    uint8_t operands[4];
} steps[] = {
    DO(BACK, MUL, DOUT, OUT, DOUT_OUT),
    REDUCE(BACK, ADD, DOUT_OUT, DELTA_RAW),
    DO(BACK, MUL, DELTA_RAW, UNIT, DELTA),
    MULTIPLY(ALL, Q, K_TRANSPOSED, PRODUCT),
    DO(ALL, MUL, PRODUCT, SCALE, SCALED),
    DO(BACK, SUB, SCALED, SUMS, LESS),
    INDEX(2, UNMASKED, ROW),
    INDEX(3, UNMASKED, COLUMN),
    DO(LOW, ADD, ROW, N_KEYS, ROW_LOW),
    DO(LOW, SUB, ROW_LOW, N_QUERIES, ROW_AT),
    DO(CAUSAL, CMP_GE, ROW_AT, COLUMN, SEEN),
    SELECT(UNMASKED, LOWEST, SEEN, MASKED),
    REDUCE(ONWARD, MAX, MASKED, MOST),
    DO(ONWARD, SUB, MASKED, MOST, LESS),
    DO(ONWARD, EXP, LESS, 0, POWERS),
    REDUCE(ONWARD, ADD, POWERS, TOTAL),
    DO(ONWARD, LOG, TOTAL, 0, LOGS),
    DO(ONWARD, ADD, MOST, LOGS, SUMS),
    DO(ONWARD, DIV, POWERS, TOTAL, P),
    MULTIPLY(ONWARD, P, V, OUT),
    DO(BACK, EXP, MASKED, 0, POWERS),
    TURN(POWERS, P_TRANSPOSED),
    MULTIPLY(BACK, P_TRANSPOSED, DOUT, DV),
    MULTIPLY(BACK, DOUT, V_TRANSPOSED, DP),
    DO(BACK, SUB, DP, DELTA, DP_LESS),
    DO(BACK, MUL, DP_LESS, POWERS, DS_RAW),
    DO(BACK, MUL, DS_RAW, SCALE, DS),
    TURN(DS, DS_TRANSPOSED),
    MULTIPLY(BACK, DS_TRANSPOSED, Q, DK),
    TURN(K_TRANSPOSED, K),
    MULTIPLY(BACK, DS, K, DQ_SUM),
    DO(BACK, IDENTITY, DQ_SUM, 0, DQ),
};
enum { STEPS = sizeof steps / sizeof *steps };

static bool is_in(const tern_dnn_problem *p, int when)
{
    return !(when & (p->gradient ? ONWARD : BACK)) && (p->causal || !(when & (CAUSAL | LOW))) &&
           (p->lower_right || !(when & LOW));
}

/* Returns the tensor that a step has as this operand: without a mask, or without a lower-right one,
 * some tensors stand for others. */
static int named(const tern_dnn_problem *p, int tensor)
{
    if (tensor == ROW_AT && !p->lower_right)
        tensor = ROW;
    if (tensor == MASKED && !p->causal)
        tensor = UNMASKED;
    return tensor != UNMASKED ? tensor : p->gradient ? LESS : SCALED;
}

static cudnnDataType_t type_of(const tern_dnn_problem *p, int tensor)
{
    static const cudnnDataType_t types[] = {
        [FLOAT] = CUDNN_DATA_FLOAT, [INT32] = CUDNN_DATA_INT32, [BOOLEAN] = CUDNN_DATA_BOOLEAN};
    return tensors[tensor].type != HALF ? types[tensors[tensor].type]
           : p->dtype == TERN_F16       ? CUDNN_DATA_HALF
                                        : CUDNN_DATA_BFLOAT16;
}

static void swap(int64_t pair[2])
{
    int64_t first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
}

static cudnnBackendDescriptor_t describe(tern_dnn_graph *g, const tern_dnn_problem *p, int tensor)
{
    const int64_t sizes[SIZES] = {1, p->queries, p->keys, p->width, p->value_width};
    int where = tensors[tensor].where;
    int64_t rows = sizes[tensors[tensor].rows], columns = sizes[tensors[tensor].columns];
    tern_dnn_tensor t = {.type = type_of(p, tensor),
                         .id = tensor,
                         .ndim = 4,
                         .dims = {p->count[0], p->count[1], rows, columns},
                         .strides = {p->count[1] * rows * columns, rows * columns, columns, 1},
                         .is_virtual = where >= BETWEEN,
                         .by_value = where == NUMBER};
    if (where == NUMBER)
        for (int i = 0; i < 4; i++)
            t.dims[i] = t.strides[i] = 1;
    if (where == TRANSPOSED)
        t.strides[2] = 1, t.strides[3] = rows;
    if (where == MATRIX || where == TRANSPOSED_MATRIX || tensor == K) {
        int matrix = tensor == K ? TERN_DNN_K : tensors[tensor].matrix;
        memcpy(t.strides, p->strides[matrix], 3 * sizeof *t.strides);
        t.strides[3] = 1;
    }
    if (where == TRANSPOSED_MATRIX)
        swap(&t.strides[2]);
    return tern_dnn_tensor_new(g, &t);
}

/* Returns the type that a step computes in: integers and booleans stay as they are. */
static cudnnDataType_t precision_of(const tern_dnn_problem *p, int result)
{
    return tensors[result].type == HALF ? CUDNN_DATA_FLOAT : type_of(p, result);
}

void tern_dnn_attention(tern_dnn_graph *g, const tern_dnn_problem *p)
{
    cudnnBackendDescriptor_t made[COUNT] = {NULL};
    for (int i = 0; i < STEPS; i++) {
        if (!is_in(p, steps[i].when))
            continue;
        int y = named(p, steps[i].operands[3]);
        tern_dnn_operation o = {.kind = (tern_dnn_kind)steps[i].kind,
                                .mode = steps[i].mode,
                                .axis = steps[i].axis,
                                .precision = precision_of(p, y)};
        for (int j = 0; j < 4; j++) {
            int tensor = named(p, steps[i].operands[j]);
            if (tensor && !made[tensor])
                made[tensor] = describe(g, p, tensor);
            o.operands[j] = made[tensor];
        }
        tern_dnn_add(g, &o);
    }
    tern_dnn_make_plan(g);
}

/* ---- runs -------------------------------------------------------------------------------- */

static size_t padded(int64_t bytes)
{
    return ((size_t)bytes + 255) / 256 * 256;
}

static int64_t all_rows(const tern_dnn_problem *p)
{
    return p->count[0] * p->count[1] * p->queries;
}

size_t tern_dnn_attention_scratch(const tern_dnn_graph *g, const tern_dnn_problem *p)
{
    size_t own = p->gradient ? padded(4 * all_rows(p)) + padded(4 * all_rows(p) * p->width) : 0;
    return padded(g->scratch) + own;
}

/* Runs the plan with all tensors of the problem's steps that are in memory or on the host. */
cudnnStatus_t tern_dnn_attend(const tern_dnn_graph *g, const tern_dnn_problem *p,
                              const tern_dnn_places *places)
{
    static const float unit = 1, lowest = -FLT_MAX;
    const int32_t keys = (int32_t)p->keys, queries = (int32_t)p->queries;
    char *delta = (char *)places->scratch + padded(g->scratch);
    const void *others[COUNT] = {
        [SUMS] = places->sums, [DELTA] = delta,  [SCALE] = &places->scale, [UNIT] = &unit,
        [LOWEST] = &lowest,    [N_KEYS] = &keys, [N_QUERIES] = &queries};
    others[DQ_SUM] = delta + padded(4 * all_rows(p));
    bool used[COUNT] = {false};
    int64_t ids[COUNT];
    const void *at[COUNT];
    int n = 0;
    for (int i = 0; i < STEPS; i++)
        for (int j = 0; j < 4; j++) {
            int tensor = named(p, steps[i].operands[j]);
            if (used[tensor] || tensors[tensor].where >= BETWEEN || !is_in(p, steps[i].when))
                continue;
            used[tensor] = true;
            ids[n] = tensor;
            at[n++] = others[tensor] ? others[tensor] : places->matrices[tensors[tensor].matrix];
        }
    return tern_dnn_run(g, n, ids, (void *const *)at, g->scratch ? places->scratch : NULL);
}
