/* attention_fused.c -- attention in blocks of queries, so that memory is linear in the length of
 * the sequence instead of quadratic (the idea of Dao et al. 2022). For each block the scores, the
 * softmax and two matrix products, which are the device's own, are computed. The backward pass
 * recomputes the weights from the log of each row's sum; for short sequences they are stored
 * instead. */
#include "ops/attention/attention_tiles.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <math.h>
#include <tern/ops.h>

/* The largest number of scores in a block: on GPUs enough to fill the device, on other devices what
 * a second-level cache holds. KEPT is the largest number of weights that are stored for the
 * backward pass. */
enum { GPU_SCORES = 1 << 25, SCORES = 1 << 19, KEPT = 1 << 21 };

/* Inputs and outputs of the operation. SUMS is log sum e^s of each query, WEIGHTS the softmax if it
 * is stored, STATE the random generator's state. */
enum { Q, K, V, MASK, INPUTS };
enum { OUT, SUMS, WEIGHTS, STATE, OUTPUTS };

/* ---- geometry ---------------------------------------------------------------------------- */

typedef struct geometry {
    int64_t count[2], queries, keys, width, value_width;
    int64_t rows; /* number of queries in a block */
    tern_attention_block block;
} geometry;

/* Sets `count` to the sizes of the two batch dims of x, or 1 if x has fewer. */
static void stack_of(const tern_tensor *x, int64_t count[2])
{
    count[0] = x->ndim > 3 ? x->shape[x->ndim - 4] : 1;
    count[1] = x->ndim > 2 ? x->shape[x->ndim - 3] : 1;
}

/* Returns the sizes of the problem and the number of queries in a block, which is the largest for
 * which the block's scores of all batches stay within a budget, at least one. Dropout compares 24
 * random bits with drop, hence the factor 2^24. The mask is read through strides of four dims; a
 * stride of 0 broadcasts a dim of size 1 or one that the mask lacks. */
static geometry geometry_of(tern_place *place, tern_tensor *const *in,
                            const tern_attention_attributes *at)
{
    const tern_tensor *q = in[Q], *mask = in[MASK];
    geometry g = {.queries = q->shape[q->ndim - 2],
                  .keys = in[K]->shape[in[K]->ndim - 2],
                  .width = q->shape[q->ndim - 1],
                  .value_width = in[V]->shape[in[V]->ndim - 1]};
    stack_of(q, g.count);
    tern_attention_band band = tern_attention_band_of(at, g.queries, g.keys);
    int64_t most = tern_place_info(place)->type == TERN_DEVICE_GPU ? GPU_SCORES : SCORES;
    int64_t each = g.count[0] * g.count[1] * g.keys;
    g.rows = each > 0 && most / each > 1 ? most / each : 1;
    if (g.rows > g.queries)
        g.rows = g.queries;
    g.block = (tern_attention_block){.count = {g.count[0], g.count[1]},
                                     .queries = g.queries,
                                     .keys = g.keys,
                                     .before = band.before,
                                     .after = band.after,
                                     .drop = (int32_t)ceil(at->dropout * (1 << 24))};
    if (at->causal || at->window)
        g.block.flags = TERN_ATTENTION_BAND;
    if (mask) /* broadcast to the scores: a dim of size 1 has stride 0 */
        g.block.flags |= mask->dtype == TERN_BOOL ? TERN_ATTENTION_BOOLS : TERN_ATTENTION_NUMBERS;
    for (int d = 0; mask && d < 4 && d < mask->ndim; d++) {
        int from = mask->ndim - 1 - d;
        g.block.stride[3 - d] = mask->shape[from] == 1 ? 0 : mask->stride[from];
    }
    return g;
}

static int64_t between(int64_t low, int64_t x, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Sets g->block to the block that begins at query `first`. With a band, its columns go from the
 * first key that its first query attends to, to the last key that its last query attends to: the
 * other scores are never computed, which saves about half of the work of a causal mask and most
 * of a narrow window's. A block has at least one column, even if that is hidden from all its
 * queries. */
static void set_query_block(geometry *g, int64_t first)
{
    tern_attention_block *b = &g->block;
    b->first = first;
    b->rows = g->queries - first < g->rows ? g->queries - first : g->rows;
    b->from = 0;
    b->columns = g->keys;
    if (!(b->flags & TERN_ATTENTION_BAND))
        return;
    b->from = between(0, first - b->before, g->keys - 1);
    b->columns = between(b->from + 1, first + b->rows + b->after, g->keys) - b->from;
}

/* Returns the number of independent attentions: batch times heads. */
static int64_t stack_count(const geometry *g)
{
    return g->count[0] * g->count[1];
}

/* ---- products ---------------------------------------------------------------------------- */

/* Returns the rows of x from `first` on as an operand of a product, or their transpose, which is
 * the same memory with row and column strides exchanged. */
static tern_matrix matrix(const tern_tensor *x, int64_t first, bool transposed)
{
    tern_matrix m = tern_attention_matrix(x);
    int64_t row = m.row;
    m.at += first * row;
    m.row = transposed ? m.col : row;
    m.col = transposed ? row : m.col;
    return m;
}

/* Returns the scores of a block as an operand: dense (batch and heads, rows, columns) with the
 * columns of this block, or transposed. */
static tern_matrix scores(const geometry *g, const tern_tensor *x, bool transposed)
{
    int64_t n = g->block.columns, size = g->block.rows * n;
    return (tern_matrix){.buffer = &x->storage->block->buffer,
                         .at = x->offset,
                         .row = transposed ? 1 : n,
                         .col = transposed ? n : 1,
                         .batch = {g->count[1] * size, size}};
}

/* Computes c = alpha a b + beta c for every batch and head: (size[0], size[2]) by (size[2],
 * size[1]). */
static tern_status multiply(const geometry *g, const tern_tensor *like, tern_matrix a,
                            tern_matrix b, tern_matrix c, const int64_t size[3], double alpha,
                            double beta)
{
    tern_gemm product = {.dtype = like->dtype,
                         .m = size[0],
                         .n = size[1],
                         .k = size[2],
                         .count = {g->count[0], g->count[1]},
                         .alpha = alpha,
                         .beta = beta,
                         .a = a,
                         .b = b,
                         .c = c};
    return tern_launch_gemm(like->storage->place, &product);
}
#define SIZE(...) ((const int64_t[3]){__VA_ARGS__})

/* ---- one block --------------------------------------------------------------------------- */

/* One work-group for each row of scores; about 12 operations per element. */
static tern_grid grid_of(const geometry *g)
{
    return tern_groups(stack_count(g) * g->block.rows, 12 * g->block.columns);
}

/* Computes p = scale q k' of the block. In half precision a score of 20 is rounded by up to 2^-7
 * (float16) or 2^-4 (bfloat16), and the weight e^s has the same relative error. So the product is
 * computed twice: rest = scale q k' - p, a product with beta = -1, is the rounding error, and the
 * kernel adds p and rest in float32. */
static tern_status compute_scores(const geometry *g, tern_tensor *const *in, double scale,
                                  tern_tensor *p, tern_tensor *rest)
{
    const tern_attention_block *b = &g->block;
    tern_matrix q = matrix(in[Q], b->first, false), k = matrix(in[K], b->from, true);
    const int64_t *size = SIZE(b->rows, b->columns, g->width);
    TERN_TRY(multiply(g, p, q, k, scores(g, p, false), size, scale, 0));
    if (!rest)
        return TERN_OK;
    TERN_TRY(tern_block_copy(p->storage->block, 0, rest->storage->block, 0,
                             (size_t)(stack_count(g) * b->rows * b->columns) *
                                 tern_dtype_size(p->dtype)));
    return multiply(g, p, q, k, scores(g, rest, false), size, scale, -1);
}

/* Computes p = softmax of the block's masked scores. The forward pass reduces each row to its
 * maximum and sum, and stores log sum e^s, one number per row. The backward pass (again) computes
 * the weights from that number, p = e^(s - log sum e^s), without another reduction. */
static tern_status compute_weights(const geometry *g, tern_tensor *const *in,
                                   const tern_attention_attributes *at, tern_tensor *p,
                                   tern_tensor *rest, tern_tensor *sums, bool again)
{
    static const tern_kernel_ref first_time = {"attention", "attention_weights"},
                                 once_more = {"attention", "attention_again"};
    const tern_attention_block *b = &g->block;
    const tern_tensor *numbers = b->flags & TERN_ATTENTION_NUMBERS ? in[MASK] : NULL;
    const tern_tensor *bools = b->flags & TERN_ATTENTION_BOOLS ? in[MASK] : NULL;
    TERN_TRY(compute_scores(g, in, at->scale, p, rest));
    return TERN_LAUNCH(
        p->storage->place, again ? &once_more : &first_time, p->dtype, grid_of(g), tern_arg_out(p),
        tern_arg_in(rest ? rest : p), again ? tern_arg_in(sums) : tern_arg_out(sums),
        tern_arg_optional(numbers, p), tern_arg_optional(bools, p),
        TERN_ARG_STRUCT(tern_attention_block, b), tern_arg_real(p->dtype, at->softcap));
}

/* Sets `to` to scale times `from` for weights that are kept and to 0 for dropped ones. Whether
 * weight n is dropped is a function of the generator's state and n alone, so that the backward pass
 * drops the same weights without a stored mask. */
static tern_status apply_dropout(const geometry *g, double scale, tern_tensor *to,
                                 tern_tensor *from, tern_tensor *state)
{
    static const tern_kernel_ref kernel = {"attention", "attention_drop"};
    return TERN_LAUNCH(to->storage->place, &kernel, to->dtype, grid_of(g), tern_arg_out(to),
                       tern_arg_in(from), tern_arg_in(state),
                       TERN_ARG_STRUCT(tern_attention_block, &g->block),
                       tern_arg_real(to->dtype, scale));
}

/* Returns memory for the scores of the largest block, or NULL after an error. */
static tern_tensor *new_scores(const geometry *g, const tern_tensor *like)
{
    tern_shape shape = {1, {stack_count(g) * g->rows * g->keys}};
    return tern_tensor_new(&shape, like->dtype, like->storage->place,
                           "tern_scaled_dot_product_attention");
}

/* Allocates memory for the rounding errors of half precision scores. *rest stays NULL for other
 * dtypes. */
static tern_status new_rest(const geometry *g, const tern_tensor *like, tern_tensor **rest)
{
    if (tern_dtype_size(like->dtype) == 2)
        *rest = new_scores(g, like);
    return *rest || tern_dtype_size(like->dtype) != 2 ? TERN_OK : tern_last_status();
}

/* Returns the factor of weights that are not dropped, 1 / (1 - dropout), which keeps their
 * expectation the same. With dropout 1 all weights are dropped. */
static double kept_scale(const tern_attention_attributes *at)
{
    return at->dropout < 1 ? 1 / (1 - at->dropout) : 0;
}

/* ---- forward: outputs out, the rows' sums, the weights if stored, the generator's state ------ */

/* The weights are stored for the backward pass only if they are few, fit in one block and have no
 * dropout; otherwise backward recomputes them from the scores, and memory stays linear in the
 * length of the sequence. Results that are not used are empty. */
static tern_status forward_infer(tern_call *call)
{
    const tern_attention_attributes *at = call->attributes;
    const tern_tensor *q = call->in[Q], *v = call->in[V];
    geometry g = geometry_of(call->place, call->in, at);
    tern_shape out = tern_shape_of(q);
    out.dims[out.ndim - 1] = v->shape[v->ndim - 1];
    if (at->inner)
        out = tern_attention_swapped(out);
    int64_t all = stack_count(&g) * g.queries * g.keys;
    bool kept = !tern_attention_tiles_fit(call->in) && !tern_attention_is_wide(call->in) &&
                at->dropout == 0 && g.rows == g.queries && all <= KEPT;
    call->n_out = OUTPUTS;
    call->result[OUT] = (tern_result){.dtype = q->dtype, .shape = out};
    call->result[SUMS] = (tern_result){.dtype = q->dtype == TERN_F64 ? TERN_F64 : TERN_F32,
                                       .shape = {1, {stack_count(&g) * g.queries}}};
    call->result[WEIGHTS] = (tern_result){.dtype = q->dtype, .shape = {1, {kept ? all : 0}}};
    call->result[STATE] = (tern_result){.dtype = TERN_I64, .shape = {1, {at->dropout > 0 ? 2 : 0}}};
    return TERN_OK;
}

/* Reserves a random number for each weight, four for each step of the Philox counter, and stores
 * the seed and the first counter in STATE, from which the backward pass draws the same numbers. */
static tern_status reserve_random_numbers(tern_call *call, const geometry *g)
{
    static const tern_kernel_ref kernel = {"attention", "attention_note"};
    tern_arg state;
    int64_t first;
    TERN_TRY(tern_rng_take(call->place, (stack_count(g) * g->queries * g->keys + 3) / 4, &state,
                           &first));
    return TERN_LAUNCH(call->place, &kernel, call->in[Q]->dtype, tern_items(2),
                       tern_arg_out(call->out[STATE]), state, tern_arg_i64(first));
}

/* Computes out[block] = dropout(softmax(scale q[block] k' + mask)) v by a product, a kernel over
 * rows, and another product. */
static tern_status forward_block(tern_call *call, const geometry *g, tern_tensor *p,
                                 tern_tensor *rest)
{
    const tern_attention_attributes *at = call->attributes;
    const tern_attention_block *b = &g->block;
    TERN_TRY(compute_weights(g, call->in, at, p, rest, call->out[SUMS], false));
    if (at->dropout > 0)
        TERN_TRY(apply_dropout(g, kept_scale(at), p, p, call->out[STATE]));
    return multiply(g, p, scores(g, p, false), matrix(call->in[V], b->from, false),
                    matrix(call->out[OUT], b->first, false),
                    SIZE(b->rows, g->value_width, b->columns), 1, 0);
}

/* Computes all blocks of queries one after the other in the same memory. Each block has whole rows
 * of the softmax, so the blocks are independent. */
static tern_status forward(tern_call *call)
{
    const tern_attention_attributes *at = call->attributes;
    geometry g = geometry_of(call->place, call->in, at);
    bool kept = call->out[WEIGHTS]->numel > 0, taken;
    if (at->dropout > 0)
        TERN_TRY(reserve_random_numbers(call, &g));
    TERN_TRY(tern_attention_vendor_forward(call, &g.block, &taken));
    if (taken)
        return TERN_OK;
    if (tern_attention_tiles_fit(call->in))
        return tern_attention_tiles_forward(call, &g.block);
    tern_tensor *p = kept ? call->out[WEIGHTS] : new_scores(&g, call->in[Q]), *rest = NULL;
    tern_status status = p ? new_rest(&g, p, &rest) : tern_last_status();
    for (int64_t i = 0; i < g.queries && status == TERN_OK; i += g.rows) {
        set_query_block(&g, i);
        status = forward_block(call, &g, p, rest);
    }
    if (!kept)
        tern_release(p);
    tern_release(rest);
    return status;
}

/* ---- gradient: inputs as above, then dout and forward's outputs; outputs dq dk dv ------------ */

enum { DOUT = INPUTS, HAD };

static tern_status gradient_infer(tern_call *call)
{
    const tern_attention_attributes *at = call->attributes;
    if (tern_attention_is_packed(call->in, at))
        return tern_attention_packed_infer(call);
    call->n_out = 3;
    for (int i = 0; i < 3; i++) {
        tern_shape shape = tern_shape_of(call->in[i]);
        call->result[i] = (tern_result){.dtype = call->in[i]->dtype,
                                        .shape = at->inner ? tern_attention_swapped(shape) : shape};
    }
    return TERN_OK;
}

/* Scratch memory of the backward pass: weights p, rounding errors of half precision scores, weights
 * after dropout (p itself without dropout), and ds, which first holds dp. */
typedef struct spaces {
    tern_tensor *p, *rest, *dropped, *ds;
} spaces;

/* Converts ds to the gradient of the scores before softcap. */
static tern_status through_softcap(const geometry *g, tern_tensor *const *in,
                                   const tern_attention_attributes *at, const spaces *s,
                                   tern_tensor *sums)
{
    static const tern_kernel_ref kernel = {"attention", "attention_uncap"};
    const tern_attention_block *b = &g->block;
    tern_tensor *numbers = b->flags & TERN_ATTENTION_NUMBERS ? in[MASK] : NULL;
    return TERN_LAUNCH(s->ds->storage->place, &kernel, s->ds->dtype, grid_of(g),
                       tern_arg_out(s->ds), tern_arg_in(s->p), tern_arg_in(sums),
                       tern_arg_optional(numbers, s->p), TERN_ARG_STRUCT(tern_attention_block, b),
                       tern_arg_real(s->ds->dtype, at->softcap));
}

/* Computes the gradients of one block of queries, where p are its weights and d its weights after
 * dropout:
 *   dv += d' do,   dp = do v',   ds = p (dp - sum p dp),
 *   dq = scale ds k,   dk += scale ds' q
 * dp is multiplied by the dropout mask first. dq belongs to this block alone; dk and dv are sums
 * over the blocks, and are added to if `more`, when they already have a value. */
static tern_status gradient_block(tern_call *call, const geometry *g, const spaces *s, bool more)
{
    static const tern_kernel_ref kernel = {"attention", "attention_gradient"};
    const tern_attention_attributes *at = call->attributes;
    const tern_attention_block *b = &g->block;
    const tern_tensor *dout = call->in[DOUT];
    tern_tensor *state = call->in[HAD + STATE];
    if (call->in[HAD + WEIGHTS]->numel == 0)
        TERN_TRY(compute_weights(g, call->in, at, s->p, s->rest, call->in[HAD + SUMS], true));
    if (at->dropout > 0)
        TERN_TRY(apply_dropout(g, kept_scale(at), s->dropped, s->p, state));
    TERN_TRY(multiply(g, dout, scores(g, s->dropped, true), matrix(dout, b->first, false),
                      matrix(call->out[V], b->from, false),
                      SIZE(b->columns, g->value_width, b->rows), 1, more));
    TERN_TRY(multiply(g, dout, matrix(dout, b->first, false), matrix(call->in[V], b->from, true),
                      scores(g, s->ds, false), SIZE(b->rows, b->columns, g->value_width), 1, 0));
    TERN_TRY(TERN_LAUNCH(
        s->ds->storage->place, &kernel, dout->dtype, grid_of(g), tern_arg_out(s->ds),
        tern_arg_in(s->p), tern_arg_optional(at->dropout > 0 ? state : NULL, s->p),
        TERN_ARG_STRUCT(tern_attention_block, b), tern_arg_real(dout->dtype, kept_scale(at))));
    if (at->softcap != 0)
        TERN_TRY(through_softcap(g, call->in, at, s, call->in[HAD + SUMS]));
    TERN_TRY(multiply(g, dout, scores(g, s->ds, false), matrix(call->in[K], b->from, false),
                      matrix(call->out[Q], b->first, false), SIZE(b->rows, g->width, b->columns),
                      at->scale, 0));
    return multiply(g, dout, scores(g, s->ds, true), matrix(call->in[Q], b->first, false),
                    matrix(call->out[K], b->from, false), SIZE(b->columns, g->width, b->rows),
                    at->scale, more);
}

/* Sets dk and dv to 0. They are sums over the blocks, and the first block normally writes them. If
 * that block does not reach every key, they begin as 0 and all blocks add. */
static tern_status zero_keys(tern_call *call)
{
    for (int i = K; i <= V; i++)
        TERN_TRY(tern_zero_elements(call->out[i]));
    return TERN_OK;
}

/* Returns whether the call has forward's result; if not, dout is passed in its place. */
static bool has_out(const tern_call *call)
{
    return call->in[HAD + OUT] != call->in[DOUT];
}

/* Computes dq, dk and dv of all blocks. The weights were stored by forward, or are recomputed block
 * by block. */
static tern_status gradient_forward(tern_call *call)
{
    const tern_attention_attributes *at = call->attributes;
    geometry g = geometry_of(call->place, call->in, at);
    const bool tiles = tern_attention_tiles_fit(call->in);
    bool taken = false;
    if (tiles || has_out(call))
        TERN_TRY(tern_attention_vendor_gradient(call, &g.block, &taken));
    if (taken || tiles)
        return taken ? TERN_OK : tern_attention_tiles_gradient(call, &g.block);
    tern_tensor *had = call->in[HAD + WEIGHTS]->numel ? call->in[HAD + WEIGHTS] : NULL;
    spaces s = {.p = had ? had : new_scores(&g, call->in[Q]), .ds = new_scores(&g, call->in[Q])};
    s.dropped = at->dropout > 0 ? new_scores(&g, call->in[Q]) : s.p;
    tern_status status = s.p && s.ds && s.dropped ? TERN_OK : tern_last_status();
    if (!had && status == TERN_OK)
        status = new_rest(&g, s.p, &s.rest);
    /* With a causal mask the last block of queries reaches most keys, so the blocks are computed
     * from last to first. */
    int64_t blocks = (g.queries + g.rows - 1) / g.rows;
    set_query_block(&g, (blocks - 1) * g.rows);
    bool reaches_all = g.block.columns == g.keys;
    if (!reaches_all && status == TERN_OK)
        status = zero_keys(call);
    for (int64_t k = 0; k < blocks && status == TERN_OK; k++) {
        set_query_block(&g, (blocks - 1 - k) * g.rows);
        status = gradient_block(call, &g, &s, k > 0 || !reaches_all);
    }
    if (at->dropout > 0)
        tern_release(s.dropped);
    if (!had)
        tern_release(s.p);
    tern_release(s.rest);
    tern_release(s.ds);
    return status;
}

static const tern_op gradient_op = {.name = "scaled_dot_product_attention_gradient",
                                    .optional = 1u << MASK,
                                    .not_differentiable = true,
                                    .infer = gradient_infer,
                                    .forward = gradient_forward};

/* ---- the operation ----------------------------------------------------------------------- */

/* Returns x with the dim of heads before that of the sequence, as callers see it. */
static tern_tensor *outer(tern_tensor *x, const tern_attention_attributes *at)
{
    return at->inner ? tern_transpose(x, 1, 2) : x;
}

/* The gradient by the fused operation, or, for gradients of gradients, by the same formulas in
 * differentiable operations. */
static tern_status backward(tern_gradient *g)
{
    const tern_attention_attributes *at = g->attributes;
    if (g->recorded)
        return tern_attention_composed_gradient(g);
    bool tiles = tern_attention_tiles_fit(g->in);
    tern_tensor *dout = tiles ? outer(g->dout[OUT], at) : tern_contiguous(g->dout[OUT]);
    tern_tensor *in[HAD + OUTPUTS] = {g->in[Q], g->in[K],     g->in[V],        g->in[MASK],  dout,
                                      NULL,     g->out[SUMS], g->out[WEIGHTS], g->out[STATE]};
    in[HAD + OUT] = tiles ? outer(g->out[OUT], at) : g->out[OUT] ? g->out[OUT] : dout;
    tern_tensor *din[3] = {NULL, NULL, NULL};
    TERN_TRY(tern_apply_all(&gradient_op, in, HAD + OUTPUTS, at, sizeof *at, din, 3));
    if (!din[K])
        tern_attention_unpack(din);
    for (int i = 0; i < 3; i++)
        g->din[i] = g->needs[i] ? outer(din[i], at) : NULL;
    return TERN_OK;
}

static uint32_t saves(const tern_call *call)
{
    return TERN_SAVE_IN(Q) | TERN_SAVE_IN(K) | TERN_SAVE_IN(V) | TERN_SAVE_IN(MASK) |
           TERN_SAVE_OUT(SUMS) | TERN_SAVE_OUT(WEIGHTS) | TERN_SAVE_OUT(STATE) |
           (tern_attention_tiles_fit(call->in) || tern_attention_is_wide(call->in)
                ? TERN_SAVE_OUT(OUT)
                : 0);
}

const tern_op tern_attention_fused = {.name = "scaled_dot_product_attention",
                                      .cast = TERN_CAST_LOWER,
                                      .optional = 1u << MASK,
                                      .choose_saves = saves,
                                      .no_grad_out = 1u << SUMS | 1u << WEIGHTS | 1u << STATE,
                                      .infer = forward_infer,
                                      .forward = forward,
                                      .backward = backward};
