/* attention_tiles.c -- attention in one launch, and its gradients in another, on devices whose
 * work-groups share local memory, with the kernels of attention_tiles.cl. No tensor of the size of
 * the scores is written. */
#include "ops/attention/attention_tiles.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <tern/ops.h>

enum { Q, K, V, MASK, DOUT, HAD, INPUTS = DOUT };
enum { OUT, SUMS, WEIGHTS, STATE };
enum {
    FEWEST_ROWS = 32
}; /* rows of the smallest tile; with larger tiles some work-groups have
                            * no rows */

bool tern_attention_tiles_fit(tern_tensor *const *in)
{
    const tern_tensor *q = in[Q], *v = in[V];
    return tern_place_is_grouped(q->storage->place) && q->dtype != TERN_F64 &&
           q->shape[q->ndim - 1] <= TERN_ATTENTION_WIDEST &&
           v->shape[v->ndim - 1] <= TERN_ATTENTION_WIDEST;
}

bool tern_attention_is_wide(tern_tensor *const *in)
{
    const tern_tensor *q = in[Q], *v = in[V];
    int64_t width = q->shape[q->ndim - 1], value_width = v->shape[v->ndim - 1];
    width = width > value_width ? width : value_width;
    return width > TERN_ATTENTION_WIDEST && width <= TERN_ATTENTION_MATRIX_WIDEST &&
           tern_place_attends_wide(q->storage->place, q->dtype);
}

static tern_gemm_matrix matrix(const tern_tensor *x)
{
    return (tern_gemm_matrix){.row = x->stride[x->ndim - 2],
                              .col = x->stride[x->ndim - 1],
                              .batch = {x->ndim > 3 ? x->stride[x->ndim - 4] : 0,
                                        x->ndim > 2 ? x->stride[x->ndim - 3] : 0}};
}

static tern_attention_tiles tiles_of(tern_tensor *const *in, const tern_attention_attributes *at,
                                     const tern_attention_block *block)
{
    return (tern_attention_tiles){.block = *block,
                                  .q = matrix(in[Q]),
                                  .k = matrix(in[K]),
                                  .v = matrix(in[V]),
                                  .width = in[Q]->shape[in[Q]->ndim - 1],
                                  .value_width = in[V]->shape[in[V]->ndim - 1],
                                  .scale = (f32)at->scale,
                                  .softcap = (f32)at->softcap};
}

/* Returns the strides of a result; `inner` means that its layout is (N, T, heads, width). */
static tern_gemm_matrix result(const tern_tensor *x, bool inner)
{
    tern_gemm_matrix m = matrix(x);
    if (inner) {
        m.row = x->stride[1];
        m.batch[1] = x->stride[2];
    }
    return m;
}

/* Returns the grid: work-groups for `rows` rows of all batches and heads, each with `products`
 * products of tiles with each of `others` rows. */
static tern_grid grid_of(const tern_attention_tiles *s, int64_t rows, int64_t others, int products)
{
    int64_t tiles = (rows + FEWEST_ROWS - 1) / FEWEST_ROWS;
    return tern_groups(s->block.count[0] * s->block.count[1] * tiles,
                       FEWEST_ROWS * others * products * (s->width + s->value_width));
}

typedef struct extras {
    tern_arg numbers, bools, state, kept;
} extras;

/* Returns the mask, the generator's state, and the factor of weights that are not dropped. */
static extras extras_of(tern_tensor *const *in, tern_tensor *state,
                        const tern_attention_attributes *at, const tern_attention_block *b)
{
    tern_tensor *numbers = b->flags & TERN_ATTENTION_NUMBERS ? in[MASK] : NULL;
    tern_tensor *bools = b->flags & TERN_ATTENTION_BOOLS ? in[MASK] : NULL;
    return (extras){tern_arg_optional(numbers, in[Q]), tern_arg_optional(bools, in[Q]),
                    tern_arg_optional(at->dropout > 0 ? state : NULL, in[Q]),
                    tern_arg_f32(at->dropout < 1 ? (float)(1 / (1 - at->dropout)) : 0)};
}

tern_status tern_attention_tiles_forward(tern_call *call, const tern_attention_block *block)
{
    static const tern_kernel_ref kernel = {"attention_tiles", "attention_tiles"};
    tern_tensor *const *in = call->in, *const *out = call->out;
    tern_attention_tiles s = tiles_of(in, call->attributes, block);
    extras e = extras_of(in, out[STATE], call->attributes, block);
    s.out = result(out[OUT], ((const tern_attention_attributes *)call->attributes)->inner);
    return TERN_LAUNCH(call->place, &kernel, in[Q]->dtype,
                       grid_of(&s, block->queries, block->keys, 1), tern_arg_out(out[OUT]),
                       tern_arg_out(out[SUMS]), tern_arg_in(in[Q]), tern_arg_in(in[K]),
                       tern_arg_in(in[V]), e.numbers, e.bools, e.state,
                       TERN_ARG_STRUCT(tern_attention_tiles, &s), e.kept);
}

/* ---- gradients ------------------------------------------------------------------------------- */

bool tern_attention_is_packed(tern_tensor *const *in, const tern_attention_attributes *at)
{
    const tern_tensor *q = in[Q];
    if (!at->inner || !tern_attention_tiles_fit(in) || q->ndim != 4)
        return false;
    int64_t width = q->shape[3], all = q->shape[1] * width;
    const int64_t stride[] = {3 * all * q->shape[2], width, 3 * all, 1};
    for (int i = Q; i <= V; i++) {
        if (!tern_same_shape(q, in[i]) || in[i]->storage != q->storage ||
            in[i]->offset != q->offset + i * all)
            return false;
        for (int d = 0; d < 4; d++)
            if (in[i]->stride[d] != stride[d])
                return false;
    }
    return true;
}

tern_status tern_attention_packed_infer(tern_call *call)
{
    const tern_tensor *q = call->in[Q];
    call->n_out = 1;
    call->result[0] = (tern_result){
        .dtype = q->dtype, .shape = {5, {q->shape[0], q->shape[2], 3, q->shape[1], q->shape[3]}}};
    return TERN_OK;
}

void tern_attention_unpack(tern_tensor *din[3])
{
    tern_tensor *all = din[0];
    for (int i = 0; i < 3; i++)
        din[i] = tern_select(all, 2, i);
}

/* Returns the memory to which the kernels write dq, dk or dv. */
static tern_arg part(const tern_call *call, int i)
{
    tern_arg arg = tern_arg_out(call->out[call->n_out > 1 ? i : 0]);
    if (call->n_out == 1)
        arg.at += i * call->out[0]->stride[2];
    return arg;
}

static tern_gemm_matrix gradient_of(const tern_call *call, int i, bool inner)
{
    const tern_tensor *x = call->out[0];
    if (call->n_out > 1)
        return result(call->out[i], inner);
    return (tern_gemm_matrix){.row = x->stride[1], .col = 1, .batch = {x->stride[0], x->stride[3]}};
}

tern_status tern_attention_tiles_gradient(tern_call *call, const tern_attention_block *block)
{
    static const tern_kernel_ref kernel = {"attention_tiles", "attention_tiles_gradient"};
    tern_tensor *const *in = call->in;
    tern_attention_tiles s = tiles_of(in, call->attributes, block);
    extras e = extras_of(in, in[HAD + STATE], call->attributes, block);
    s.out = matrix(in[HAD + OUT]);
    s.dout = matrix(in[DOUT]);
    bool inner = ((const tern_attention_attributes *)call->attributes)->inner;
    s.dq = gradient_of(call, Q, inner);
    s.dk = gradient_of(call, K, inner);
    s.dv = gradient_of(call, V, inner);
    int64_t rows = block->queries + (block->keys + FEWEST_ROWS - 1) / FEWEST_ROWS * FEWEST_ROWS;
    return TERN_LAUNCH(call->place, &kernel, in[Q]->dtype, grid_of(&s, rows, rows / 2, 2),
                       part(call, Q), part(call, K), part(call, V), tern_arg_in(in[Q]),
                       tern_arg_in(in[K]), tern_arg_in(in[V]), tern_arg_in(in[HAD + OUT]),
                       tern_arg_in(in[DOUT]), tern_arg_in(in[HAD + SUMS]), e.numbers, e.bools,
                       e.state, TERN_ARG_STRUCT(tern_attention_tiles, &s), e.kept);
}
