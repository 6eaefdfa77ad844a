/* svd.c -- the singular value decomposition A = U diag(S) V^T. */
#include "ops/linalg/linalg.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

typedef struct svd_attributes {
    bool full;    /* U and V are square */
    bool vectors; /* compute U and V too */
} svd_attributes;

/* The sizes of A (*, m, n): k is the smaller and l the larger of m and n. */
typedef struct sizes {
    tern_shape stack;
    int64_t m, n, k, l, batch;
} sizes;

static sizes sizes_of(const tern_tensor *a)
{
    sizes s = {.stack = tern_shape_from(a->ndim - 2, a->shape), .batch = 1};
    s.m = a->shape[a->ndim - 2];
    s.n = a->shape[a->ndim - 1];
    s.k = s.m < s.n ? s.m : s.n;
    s.l = s.m < s.n ? s.n : s.m;
    for (int d = 0; d < s.stack.ndim; d++)
        s.batch *= s.stack.dims[d];
    return s;
}

static tern_shape with(tern_shape stack, int64_t rows, int64_t columns)
{
    stack.dims[stack.ndim++] = rows;
    if (columns >= 0)
        stack.dims[stack.ndim++] = columns;
    return stack;
}

/* Outputs: U (*, m, k or m), S (*, k), V^T (*, k or n, n). */
static tern_status svd_infer(tern_call *call)
{
    const svd_attributes *at = call->attributes;
    sizes s = sizes_of(call->in[0]);
    tern_dtype dtype = call->in[0]->dtype;
    int place = at->vectors ? 1 : 0;
    call->result[place] = (tern_result){.dtype = dtype, .shape = with(s.stack, s.k, -1)};
    call->n_out = at->vectors ? 3 : 1;
    if (at->vectors) {
        call->result[0] =
            (tern_result){.dtype = dtype, .shape = with(s.stack, s.m, at->full ? s.m : s.k)};
        call->result[2] =
            (tern_result){.dtype = dtype, .shape = with(s.stack, at->full ? s.n : s.k, s.n)};
    }
    return TERN_OK;
}

/* Returns a view of the first `rows` rows of x (*, i, j), -1 for all, with `turn` transposed. */
static tern_tensor *turned(const tern_tensor *x, bool turn, int64_t rows)
{
    tern_shape shape = tern_shape_of(x);
    int64_t stride[TERN_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++)
        stride[d] = x->stride[d];
    int i = x->ndim - 2, j = x->ndim - 1;
    if (rows >= 0)
        shape.dims[i] = rows;
    if (turn) {
        int64_t size = shape.dims[i], step = stride[i];
        shape.dims[i] = shape.dims[j];
        stride[i] = stride[j];
        shape.dims[j] = size;
        stride[j] = step;
    }
    return tern_tensor_alias(x, &shape, stride, x->offset);
}

static tern_status copy_views(tern_tensor *to, tern_tensor *from)
{
    tern_status status = to && from ? tern_copy_elements(to, from) : tern_last_status();
    tern_release(to);
    tern_release(from);
    return status;
}

/* Decomposes A, or its transpose if A has more rows than columns, which is in the first k rows of q
 * (*, c, l). */
static tern_status decompose(tern_tensor *q, tern_tensor *p, tern_tensor *values, const sizes *s,
                             bool vectors)
{
    static const tern_kernel_ref rotate = {"svd", "svd_rotate"}, sort = {"svd", "svd_sort"},
                                 complete = {"svd", "svd_complete"};
    tern_place *place = q->storage->place;
    tern_dtype dtype = q->dtype;
    int64_t c = vectors ? q->shape[q->ndim - 2] : 0;
    tern_grid grid = tern_groups(s->batch, s->k * s->k * s->l * 8);
    tern_arg fault;
    TERN_TRY(tern_fault_arg(place, &fault));
    TERN_TRY(TERN_LAUNCH(place, &rotate, dtype, grid, tern_arg_out(q), tern_arg_out(p),
                         tern_arg_out(values), fault, tern_arg_i64(s->batch), tern_arg_i64(s->k),
                         tern_arg_i64(s->l), tern_arg_i64(c), tern_arg_fault(TERN_FAULT_SVD)));
    TERN_TRY(TERN_LAUNCH(place, &sort, dtype, tern_groups(s->batch, s->k * s->k), tern_arg_out(q),
                         tern_arg_out(p), tern_arg_out(values), tern_arg_i64(s->batch),
                         tern_arg_i64(s->k), tern_arg_i64(s->l), tern_arg_i64(c)));
    if (vectors)
        TERN_TRY(TERN_LAUNCH(place, &complete, dtype, tern_groups(s->batch, c * s->l),
                             tern_arg_out(q), tern_arg_in(values), tern_arg_i64(s->batch),
                             tern_arg_i64(s->k), tern_arg_i64(s->l), tern_arg_i64(c)));
    return tern_fault_check(place);
}

/* Sets the U and V of empty matrices to identities. */
static tern_status svd_of_none(tern_tensor *const *out, int n)
{
    static const tern_kernel_ref kernel = {"create", "eye"};
    for (int i = 0; i < n; i++) {
        tern_tensor *x = out[i];
        int64_t rows = n == 3 && i != 1 ? x->shape[x->ndim - 1] : 0;
        for (int64_t at = 0; x->numel > 0 && at < x->numel; at += rows * rows) {
            tern_shape shape = {2, {rows, rows}};
            int64_t stride[2] = {rows, 1};
            tern_tensor *one = tern_tensor_alias(x, &shape, stride, x->offset + at);
            tern_status status =
                !one ? tern_last_status()
                     : TERN_LAUNCH(x->storage->place, &kernel, x->dtype, tern_items(rows * rows),
                                   tern_arg_out(one), tern_arg_i64(rows), tern_arg_i64(rows));
            tern_release(one);
            TERN_TRY(status);
        }
    }
    return TERN_OK;
}

/* With X = A or A^T, such that X is (k, l), k <= l: X = P^T diag(S) Q. Then U = P^T and V^T = Q, or
 * U = Q^T and V^T = P. */
static tern_status svd_forward(tern_call *call)
{
    const svd_attributes *at = call->attributes;
    tern_tensor *a = call->in[0];
    tern_tensor **out = call->out, *values = at->vectors ? out[1] : out[0];
    sizes s = sizes_of(a);
    bool tall = s.m > s.n;
    if (a->numel == 0)
        return svd_of_none(out, call->n_out);
    tern_shape q_shape = with(s.stack, at->full ? s.l : s.k, s.l);
    tern_shape p_shape = with(s.stack, at->vectors ? s.k : 0, s.k);
    tern_tensor *q = tern_tensor_new(&q_shape, a->dtype, call->place, "tern_linalg_svd");
    tern_tensor *p = tern_tensor_new(&p_shape, a->dtype, call->place, "tern_linalg_svd");
    tern_status status = q && p ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        status = copy_views(turned(q, false, s.k), turned(a, tall, -1));
    if (status == TERN_OK)
        status = decompose(q, p->numel ? p : q, values, &s, at->vectors);
    if (status == TERN_OK && at->vectors)
        status = copy_views(turned(out[0], false, -1), turned(tall ? q : p, true, -1));
    if (status == TERN_OK && at->vectors)
        status = copy_views(turned(out[2], false, -1), turned(tall ? p : q, false, -1));
    tern_release(q);
    tern_release(p);
    return status;
}

/* ---- gradient ---------------------------------------------------------------------------- */

static tern_tensor *t(tern_tensor *x)
{
    return tern_transpose(x, -1, -2);
}

/* Returns diag(s) x if `rows`, else x diag(s). */
static tern_tensor *scaled(tern_tensor *x, tern_tensor *s, bool rows)
{
    return s ? tern_mul(x, tern_unsqueeze(s, rows ? -1 : -2)) : NULL;
}

/* Returns (x^T gx - gx^T x) / gaps, where gaps are S_j^2 - S_i^2. */
static tern_tensor *turning(tern_tensor *x, tern_tensor *gx, tern_tensor *gaps)
{
    tern_tensor *y = tern_matmul(t(x), gx);
    return y ? tern_div(tern_sub(y, t(y)), gaps) : NULL;
}

/* Returns the part of gx that is orthogonal to the columns of x, fewer than their length. */
static tern_tensor *beside(tern_tensor *x, tern_tensor *gx)
{
    return tern_sub(gx, tern_matmul(x, tern_matmul(t(x), gx)));
}

static tern_tensor *sum_of(tern_tensor *a, tern_tensor *b)
{
    return a && b ? tern_add(a, b) : a ? a : b;
}

/* With E_ij = S_j^2 - S_i^2, 1 on the diagonal:
 *   dA = U ((U^T dU - dU^T U) / E S + S (V^T dV - dV^T V) / E + diag(dS)) V^T
 *        + (1 - U U^T) dU S^-1 V^T + U S^-1 dV^T (1 - V V^T)
 * (Townsend 2016, "Differentiating the singular value decomposition"), for the first k columns
 * only. */
static tern_tensor *gradient(tern_tensor *u, tern_tensor *s, tern_tensor *vt, tern_tensor *du,
                             tern_tensor *ds, tern_tensor *dvt)
{
    tern_tensor *inner = ds ? tern_diag_embed(ds, 0, -2, -1) : NULL, *outer = NULL;
    tern_tensor *gaps = NULL;
    int64_t k = tern_size(s, -1);
    if (du || dvt) {
        tern_tensor *squares = tern_mul(s, s);
        gaps = tern_sub(tern_unsqueeze(squares, -2), tern_unsqueeze(squares, -1));
        gaps = tern_add(gaps, tern_eye(k, k, s->dtype, tern_device(s)));
    }
    if (du)
        inner = sum_of(inner, scaled(turning(u, du, gaps), s, false));
    if (dvt)
        inner = sum_of(inner, scaled(turning(t(vt), t(dvt), gaps), s, true));
    tern_tensor *da = inner ? tern_matmul(u, tern_matmul(inner, vt)) : NULL;
    if (du && tern_size(u, -2) > k)
        outer = tern_matmul(tern_div(beside(u, du), tern_unsqueeze(s, -2)), vt);
    da = sum_of(da, outer);
    if (dvt && tern_size(vt, -1) > k)
        da = sum_of(da, tern_matmul(tern_div(u, tern_unsqueeze(s, -2)), t(beside(t(vt), t(dvt)))));
    return da;
}

static tern_status svd_backward(tern_gradient *g)
{
    const svd_attributes *at = g->attributes;
    tern_tensor *usv[3] = {NULL}, *d[3] = {NULL};
    uint64_t failures = tern_failures();
    if (!at->vectors) {
        TERN_TRY(tern_linalg_svd(g->in[0], false, usv));
        d[1] = g->dout[0];
    }
    for (int i = 0; i < 3 && at->vectors; i++) {
        usv[i] = g->out[i];
        d[i] = g->dout[i];
    }
    int64_t k = tern_size(usv[1], -1);
    for (int i = 0; i < 3 && at->full; i += 2) {
        int dim = i == 0 ? -1 : -2;
        usv[i] = tern_narrow(usv[i], dim, 0, k);
        d[i] = d[i] ? tern_narrow(d[i], dim, 0, k) : NULL;
    }
    if (k > 0 && (d[0] || d[1] || d[2]))
        g->din[0] = gradient(usv[0], usv[1], usv[2], d[0], d[1], d[2]);
    return tern_failed_since(failures); /* a NULL part is an error if one was recorded */
}

static uint32_t svd_saves(const tern_call *call)
{
    const svd_attributes *at = call->attributes;
    return at->vectors ? TERN_SAVE_OUT(0) | TERN_SAVE_OUT(1) | TERN_SAVE_OUT(2) : TERN_SAVE_IN(0);
}

static const tern_op svd_op = {.name = "linalg_svd",
                               .choose_saves = svd_saves,
                               .infer = svd_infer,
                               .forward = svd_forward,
                               .backward = svd_backward};

tern_status tern_linalg_svd(tern_tensor *x, bool full_matrices, tern_tensor *out[3])
{
    const svd_attributes at = {.full = full_matrices, .vectors = true};
    if (!out)
        return tern_fail_argument_null("tern_linalg_svd", "out");
    TERN_TRY(tern_check_matrices(x, "A", "tern_linalg_svd"));
    return tern_apply_all(&svd_op, &x, 1, &at, sizeof at, out, 3);
}

tern_tensor *tern_linalg_svdvals(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    const svd_attributes at = {0};
    if (tern_check_matrices(x, "A", __func__) != TERN_OK)
        return NULL;
    return tern_apply(&svd_op, &x, 1, &at, sizeof at);
}
