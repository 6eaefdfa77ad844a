/* rnn.c -- one layer of an LSTM, GRU or plain network.
 *
 * With a = x W_ih^T + b_ih and u = h W_hh^T + b_hh, h and c the state before a step, s the sigmoid:
 *   LSTM:  i, f, g, o = s(a_i + u_i), s(a_f + u_f), tanh(a_g + u_g), s(a_o + u_o)
 *          c' = f c + i g, h' = o tanh(c')
 *   GRU:   r, z = s(a_r + u_r), s(a_z + u_z), n = tanh(a_n + r u_n), h' = (1 - z) n + z h
 *   plain: h' = tanh(a + u), or relu
 * a is one matrix product for all steps; then each step is one product for u and one kernel for the
 * gates. The backward goes through the steps likewise, and then takes the gradients of the weights
 * as one product over all steps. */
#include "ops/rnn/rnn.h"
#include "ops/copy/copy.h"
#include "tensor/recompute.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/ops.h>

enum {
    LSTM_WORK = 40,
    GRU_WORK = 30,
    RNN_WORK = 12,
    BACK_WORK = 20
}; /* operations for one element of a step, the work argument of tern_items_of */

/* ---- products of rows ---------------------------------------------------------------------- */

/* Consecutive rows of a dense matrix, or of its first columns. */
typedef struct rows_of {
    tern_tensor *x;
    int64_t at, width; /* at: the first row; width: elements between the starts of two rows */
} rows_of;

/* Computes c = a op(weight) + beta c + bias for `rows` rows, where op(weight) is (k, n). */
static tern_status multiply(rows_of c, rows_of a, tern_tensor *weight, bool transpose,
                            tern_tensor *bias, int64_t rows, double beta)
{
    int64_t height = weight->shape[0], width = weight->shape[1];
    tern_gemm g = {.dtype = weight->dtype,
                   .m = rows,
                   .n = transpose ? height : width,
                   .k = transpose ? width : height,
                   .count = {1, 1},
                   .alpha = 1,
                   .beta = beta,
                   .a = {.buffer = &a.x->storage->block->buffer,
                         .at = a.x->offset + a.at * a.width,
                         .row = a.width,
                         .col = 1},
                   .b = {.buffer = &weight->storage->block->buffer,
                         .at = weight->offset,
                         .row = transpose ? 1 : width,
                         .col = transpose ? width : 1},
                   .c = {.buffer = &c.x->storage->block->buffer,
                         .at = c.x->offset + c.at * c.width,
                         .row = c.width,
                         .col = 1}};
    if (bias) {
        g.bias = &bias->storage->block->buffer;
        g.bias_at = bias->offset;
    }
    return rows > 0 ? tern_launch_gemm(c.x->storage->place, &g) : TERN_OK;
}

/* Computes to = beta to + h W_hh^T (+ b_hh for beta = 0), where h is the hidden state before the
 * step. Rows that the previous step has too read h from its output, rows that begin with this step
 * read the initial state. The product with an initial state of zeros is left out unless beta is 0,
 * when the product writes the bias. */
static tern_status recur(const tern_call *call, const tern_rnn_step *s, rows_of to, double beta)
{
    const tern_rnn_steps *steps = call->attributes;
    tern_tensor *weight = call->in[TERN_RNN_W_HH], *hs = call->out[0],
                *first = call->in[TERN_RNN_H];
    tern_tensor *bias = beta == 0 ? call->in[TERN_RNN_B_HH] : NULL;
    int64_t hidden = weight->shape[1];
    TERN_TRY(multiply(to, (rows_of){hs, s->before, hidden}, weight, true, bias, s->carried, beta));
    if (beta != 0 && !steps->has_state)
        return TERN_OK;
    to.at += s->carried;
    return multiply(to, (rows_of){first, s->carried, hidden}, weight, true, bias,
                    s->rows - s->carried, beta);
}

/* ---- forward ------------------------------------------------------------------------------- */

/* Outputs: y, the last h, the last c (LSTM only), and the gates of each row for the backward (LSTM:
 * i f g o c, GRU: r z n u_n), which have gates + 1 times the hidden width. */
static tern_status rnn_infer(tern_call *call)
{
    const tern_rnn_kind *kind = call->op->data;
    const tern_tensor *x = call->in[TERN_RNN_X], *h = call->in[TERN_RNN_H];
    int64_t hidden = h->shape[1];
    tern_result state = {.dtype = x->dtype, .shape = tern_shape_of(h)};
    tern_result y = {.dtype = x->dtype, .shape = {2, {x->shape[0], hidden}}};
    tern_result kept = {.dtype = x->dtype, .shape = {2, {x->shape[0], (kind->gates + 1) * hidden}}};
    for (int i = 0; i < TERN_RNN_INPUTS; i++)
        if (call->in[i] && call->in[i]->dtype != x->dtype)
            return tern_fail(TERN_ERR_DTYPE,
                             "tern_%s: input and parameters must have the same dtype, but got %s "
                             "and %s",
                             kind->name, tern_dtype_name(x->dtype),
                             tern_dtype_name(call->in[i]->dtype));
    call->result[0] = y;
    call->result[1] = state;
    call->n_out = 2;
    if (kind->has_cell)
        call->result[call->n_out++] = state;
    if (kind->gates > 1)
        call->result[call->n_out++] = kept;
    return TERN_OK;
}

/* Adds u to a in the output of the gates; the kernel then computes the gates from the sums in
 * place: c' = f c + i g, h' = o tanh(c'). */
static tern_status lstm_step(tern_call *call, const tern_rnn_step *s)
{
    static const tern_kernel_ref kernel = {"rnn", "lstm_step"};
    tern_tensor *hs = call->out[0], *kept = call->out[3];
    int64_t n = hs->shape[1];
    TERN_TRY(recur(call, s, (rows_of){kept, s->at, 5 * n}, 1));
    return TERN_LAUNCH(call->place, &kernel, hs->dtype, tern_items_of(s->rows * n, LSTM_WORK),
                       tern_arg_out(hs), tern_arg_out(kept), tern_arg_out(call->out[1]),
                       tern_arg_out(call->out[2]), tern_arg_in(call->in[TERN_RNN_C]),
                       tern_arg_i64(s->at), tern_arg_i64(s->before), tern_arg_i64(s->rows),
                       tern_arg_i64(s->carried), tern_arg_i64(s->last), tern_arg_i64(n));
}

/* Keeps u apart from a, as the reset gate r scales u_n alone: n = tanh(a_n + r u_n). */
static tern_status gru_step(tern_call *call, const tern_rnn_step *s, tern_tensor *us)
{
    static const tern_kernel_ref kernel = {"rnn", "gru_step"};
    tern_tensor *hs = call->out[0];
    int64_t n = hs->shape[1];
    TERN_TRY(recur(call, s, (rows_of){us, 0, 3 * n}, 0));
    return TERN_LAUNCH(call->place, &kernel, hs->dtype, tern_items_of(s->rows * n, GRU_WORK),
                       tern_arg_out(hs), tern_arg_out(call->out[2]), tern_arg_out(call->out[1]),
                       tern_arg_in(us), tern_arg_in(call->in[TERN_RNN_H]), tern_arg_i64(s->at),
                       tern_arg_i64(s->before), tern_arg_i64(s->rows), tern_arg_i64(s->carried),
                       tern_arg_i64(s->last), tern_arg_i64(n));
}

/* Accumulates the sums a + u in y, then computes h' = tanh or relu of the sums in place. */
static tern_status tanh_step(tern_call *call, const tern_rnn_step *s)
{
    static const tern_kernel_ref kernel = {"rnn", "rnn_step"};
    tern_tensor *hs = call->out[0];
    int64_t n = hs->shape[1];
    TERN_TRY(recur(call, s, (rows_of){hs, s->at, n}, 1));
    return TERN_LAUNCH(call->place, &kernel, hs->dtype, tern_items_of(s->rows * n, RNN_WORK),
                       tern_arg_out(hs), tern_arg_out(call->out[1]), tern_arg_i64(s->at),
                       tern_arg_i64(s->rows), tern_arg_i64(s->last), tern_arg_i64(n),
                       tern_arg_i32(call->op->data == &tern_relu_kind));
}

static tern_status one_step(tern_call *call, const tern_rnn_step *s, tern_tensor *us)
{
    const tern_rnn_kind *kind = call->op->data;
    return kind->has_cell ? lstm_step(call, s) : us ? gru_step(call, s, us) : tanh_step(call, s);
}

/* Writes a for all steps into the output of the gates, or into y for a plain network, where each
 * step reads its rows. us is a buffer for u of the first (largest) step of a GRU. */
static tern_status rnn_forward(tern_call *call)
{
    const tern_rnn_kind *kind = call->op->data;
    const tern_rnn_steps *steps = call->attributes;
    tern_tensor *x = call->in[TERN_RNN_X], *h = call->in[TERN_RNN_H], *us = NULL;
    tern_tensor *sums = call->out[call->n_out - 1]; /* output of the products x W_ih^T */
    int64_t n = h->shape[1];
    tern_shape wide = {2, {h->shape[0], 3 * n}};
    if (kind->gates == 1)
        sums = call->out[0];
    if (sums->numel == 0)
        return TERN_OK;
    TERN_TRY(multiply((rows_of){sums, 0, sums->shape[1]}, (rows_of){x, 0, x->shape[1]},
                      call->in[TERN_RNN_W_IH], true, call->in[TERN_RNN_B_IH], x->shape[0], 0));
    if (kind->gates == 3 && !(us = tern_tensor_new(&wide, x->dtype, call->place, "tern_gru")))
        return tern_last_status();
    tern_rnn_step s = tern_rnn_begin(steps, false);
    tern_status status = one_step(call, &s, us);
    while (status == TERN_OK && tern_rnn_next(steps, false, &s))
        status = one_step(call, &s, us);
    tern_release(us);
    return status;
}

/* ---- backward: gradients of the sums, step by step --------------------------------------------
 * For a step: dh += dy, then da and du from it through the gates, and dh = du W_hh (+ dh z for a
 * GRU) for the step before. After all steps, with h the states before each:
 *   dx = da W_ih, dW_ih = da^T x, dW_hh = du^T h, db_ih = sum da, db_hh = sum du */

/* Outputs: da of all rows, du (GRU only; elsewhere du = da), the hidden states before each step, dh
 * of the initial state, and dc of the initial state (LSTM only). */
enum { DY, DH, DC, WEIGHT, HS, KEPT, H_FIRST, C_FIRST, GRADIENT_INPUTS };

static tern_status gradient_infer(tern_call *call)
{
    const tern_rnn_kind *kind = call->op->data;
    const tern_tensor *hs = call->in[HS];
    tern_shape gates = {2, {hs->shape[0], kind->gates * hs->shape[1]}};
    int n = 0;
    call->result[n++] = (tern_result){.dtype = hs->dtype, .shape = gates};
    if (kind->gates == 3)
        call->result[n++] = call->result[0];
    call->result[n++] = (tern_result){.dtype = hs->dtype, .shape = tern_shape_of(hs)};
    call->result[n] = (tern_result){.dtype = hs->dtype, .shape = tern_shape_of(call->in[H_FIRST])};
    n++;
    if (kind->has_cell) {
        call->result[n] = call->result[n - 1];
        n++;
    }
    call->n_out = n;
    return TERN_OK;
}

/* dc += dh o (1 - tanh(c')^2), do = dh tanh(c') o (1 - o), df = dc c f (1 - f), di = dc g i (1 -
 * i), dg = dc i (1 - g^2); dc of the previous step is dc f. */
static tern_status lstm_step_back(tern_call *call, const tern_rnn_step *s, int64_t n)
{
    static const tern_kernel_ref kernel = {"rnn", "lstm_step_back"};
    tern_tensor *const *in = call->in, *const *out = call->out;
    return TERN_LAUNCH(call->place, &kernel, in[HS]->dtype, tern_items_of(s->rows * n, BACK_WORK),
                       tern_arg_out(out[0]), tern_arg_out(out[1]), tern_arg_out(out[2]),
                       tern_arg_out(out[3]), tern_arg_in(in[DY]), tern_arg_in(in[KEPT]),
                       tern_arg_in(in[HS]), tern_arg_in(in[H_FIRST]), tern_arg_in(in[C_FIRST]),
                       tern_arg_i64(s->at), tern_arg_i64(s->before), tern_arg_i64(s->rows),
                       tern_arg_i64(s->carried), tern_arg_i64(n));
}

/* dn = dh (1 - z) (1 - n^2), dz = dh (h - n) z (1 - z), dr = dn u_n r (1 - r); du has dn r in place
 * of dn; dh of the previous step begins as dh z. */
static tern_status gru_step_back(tern_call *call, const tern_rnn_step *s, int64_t n)
{
    static const tern_kernel_ref kernel = {"rnn", "gru_step_back"};
    tern_tensor *const *in = call->in, *const *out = call->out;
    return TERN_LAUNCH(call->place, &kernel, in[HS]->dtype, tern_items_of(s->rows * n, BACK_WORK),
                       tern_arg_out(out[0]), tern_arg_out(out[1]), tern_arg_out(out[2]),
                       tern_arg_out(out[3]), tern_arg_in(in[DY]), tern_arg_in(in[KEPT]),
                       tern_arg_in(in[HS]), tern_arg_in(in[H_FIRST]), tern_arg_i64(s->at),
                       tern_arg_i64(s->before), tern_arg_i64(s->rows), tern_arg_i64(s->carried),
                       tern_arg_i64(n));
}

/* da = dh (1 - h'^2), or dh where h' > 0 for relu. */
static tern_status tanh_step_back(tern_call *call, const tern_rnn_step *s, int64_t n)
{
    static const tern_kernel_ref kernel = {"rnn", "rnn_step_back"};
    tern_tensor *const *in = call->in, *const *out = call->out;
    return TERN_LAUNCH(call->place, &kernel, in[HS]->dtype, tern_items_of(s->rows * n, BACK_WORK),
                       tern_arg_out(out[0]), tern_arg_out(out[1]), tern_arg_in(out[2]),
                       tern_arg_in(in[DY]), tern_arg_in(in[HS]), tern_arg_in(in[H_FIRST]),
                       tern_arg_i64(s->at), tern_arg_i64(s->before), tern_arg_i64(s->rows),
                       tern_arg_i64(s->carried), tern_arg_i64(n),
                       tern_arg_i32(call->op->data == &tern_relu_kind));
}

/* dh of the previous step is du W_hh, for a GRU added to dh z, which its kernel has written. */
static tern_status step_back(tern_call *call, const tern_rnn_step *s)
{
    const tern_rnn_kind *kind = call->op->data;
    int64_t width = call->in[HS]->shape[1];
    TERN_TRY(kind->has_cell     ? lstm_step_back(call, s, width)
             : kind->gates == 3 ? gru_step_back(call, s, width)
                                : tanh_step_back(call, s, width));
    tern_tensor *das = call->out[kind->gates == 3 ? 1 : 0];
    tern_tensor *dh = call->out[kind->gates == 3 ? 3 : 2];
    return multiply((rows_of){dh, 0, width}, (rows_of){das, s->at, kind->gates * width},
                    call->in[WEIGHT], false, NULL, s->rows, kind->gates == 3 ? 1 : 0);
}

/* Copies `from` to `to`, or writes zeros if `from` is NULL. */
static tern_status copy_or_zero(tern_tensor *to, tern_tensor *from)
{
    return from ? tern_copy_elements(to, from) : tern_zero_elements(to);
}

/* dh and dc begin as the gradients of the last state, or zero, and are updated in place from the
 * last step to the first. */
static tern_status gradient_forward(tern_call *call)
{
    const tern_rnn_kind *kind = call->op->data;
    const tern_rnn_steps *steps = call->attributes;
    if (call->out[0]->numel == 0)
        return TERN_OK;
    TERN_TRY(copy_or_zero(call->out[kind->gates == 3 ? 3 : 2], call->in[DH]));
    if (kind->has_cell)
        TERN_TRY(copy_or_zero(call->out[3], call->in[DC]));
    tern_rnn_step s = tern_rnn_begin(steps, true);
    do
        TERN_TRY(step_back(call, &s));
    while (tern_rnn_next(steps, true, &s));
    return TERN_OK;
}

#define GRADIENT_OP(KIND)                                                                          \
    {                                                                                              \
        .name = #KIND "_gradient", .optional = 1u << DH | 1u << DC | 1u << KEPT | 1u << C_FIRST,   \
        .not_differentiable = true, .data = &tern_##KIND##_kind, .infer = gradient_infer,          \
        .forward = gradient_forward                                                                \
    }
static const tern_op lstm_gradient = GRADIENT_OP(lstm), gru_gradient = GRADIENT_OP(gru),
                     tanh_gradient = GRADIENT_OP(tanh), relu_gradient = GRADIENT_OP(relu);

static const tern_op *gradient_of(const tern_rnn_kind *kind)
{
    return kind == &tern_lstm_kind   ? &lstm_gradient
           : kind == &tern_gru_kind  ? &gru_gradient
           : kind == &tern_tanh_kind ? &tanh_gradient
                                     : &relu_gradient;
}

/* Runs the backward of all steps, then the products listed above, which sum over all rows. */
static tern_status fused_backward(tern_gradient *g)
{
    const tern_rnn_kind *kind = g->op->data;
    const tern_rnn_steps *steps = g->attributes;
    tern_tensor *out[4] = {NULL};
    tern_tensor *in[GRADIENT_INPUTS] = {[DY] = g->dout[0] ? tern_contiguous(g->dout[0])
                                                          : tern_zeros_like(g->out[0]),
                                        [DH] = g->dout[1],
                                        [DC] = kind->has_cell ? g->dout[2] : NULL,
                                        [WEIGHT] = g->in[TERN_RNN_W_HH],
                                        [HS] = g->out[0],
                                        [KEPT] = kind->gates > 1 ? g->out[g->n_out - 1] : NULL,
                                        [H_FIRST] = g->in[TERN_RNN_H],
                                        [C_FIRST] = g->in[TERN_RNN_C]};
    if (!in[DY])
        return tern_last_status();
    TERN_TRY(tern_apply_all(gradient_of(kind), in, GRADIENT_INPUTS, steps,
                            tern_rnn_steps_bytes(steps->steps), out, 4));
    bool gru = kind->gates == 3;
    tern_tensor *das = out[0], *dus = out[gru ? 1 : 0], *earlier = out[gru ? 2 : 1];
    const bool *needs = g->needs;
    if (needs[TERN_RNN_X])
        g->din[TERN_RNN_X] = tern_mm(das, g->in[TERN_RNN_W_IH]);
    if (needs[TERN_RNN_W_IH])
        g->din[TERN_RNN_W_IH] = tern_mm(tern_t(das), g->in[TERN_RNN_X]);
    if (needs[TERN_RNN_W_HH])
        g->din[TERN_RNN_W_HH] = tern_mm(tern_t(dus), earlier);
    if (needs[TERN_RNN_B_IH])
        g->din[TERN_RNN_B_IH] = tern_sum_dim(das, TERN_DIMS(0), false);
    if (needs[TERN_RNN_B_HH])
        g->din[TERN_RNN_B_HH] = tern_sum_dim(dus, TERN_DIMS(0), false);
    g->din[TERN_RNN_H] = out[gru ? 3 : 2];
    if (kind->has_cell)
        g->din[TERN_RNN_C] = out[3];
    return TERN_OK;
}

/* ---- the same in differentiable operations --------------------------------------------------- */

/* Computes the layer by differentiable operations, for gradients of gradients. */
static tern_status compose(const tern_gradient *g, tern_tensor *const *in, tern_tensor **out)
{
    const tern_rnn_kind *kind = g->op->data;
    tern_rnn_layer_result r = {NULL};
    TERN_TRY(tern_rnn_compose(kind, in, NULL, g->attributes, &r));
    out[0] = r.y;
    out[1] = r.h;
    if (kind->has_cell)
        out[2] = r.c;
    return TERN_OK;
}

static tern_status rnn_backward(tern_gradient *g)
{
    const tern_rnn_kind *kind = g->op->data;
    return g->recorded ? tern_recompute(g, kind->has_cell ? 3 : 2, compose) : fused_backward(g);
}

#define ALL_INPUTS                                                                                 \
    (TERN_SAVE_IN(0) | TERN_SAVE_IN(1) | TERN_SAVE_IN(2) | TERN_SAVE_IN(3) | TERN_SAVE_IN(4) |     \
     TERN_SAVE_IN(5) | TERN_SAVE_IN(6))
#define OP(NAME, KIND, KEPT_OUT)                                                                   \
    {                                                                                              \
        .name = NAME,                                                                              \
        .names = TERN_NAMES(TERN_FIELD(tern_rnn_steps, "steps", steps),                            \
                            TERN_FIELD(tern_rnn_steps, "reverse", reverse),                        \
                            TERN_FIELD(tern_rnn_steps, "has_state", has_state)),                   \
        .takes = TERN_TAKES_FLOATS, .cast = TERN_CAST_LOWER,                                       \
        .optional = 1u << TERN_RNN_B_IH | 1u << TERN_RNN_B_HH | 1u << TERN_RNN_C,                  \
        .saves = ALL_INPUTS | TERN_SAVE_OUT(0) | ((KEPT_OUT) ? TERN_SAVE_OUT(KEPT_OUT) : 0),       \
        .no_grad_out = (KEPT_OUT) ? 1u << (KEPT_OUT) : 0, .data = &tern_##KIND##_kind,             \
        .infer = rnn_infer, .forward = rnn_forward, .backward = rnn_backward                       \
    }
static const tern_op lstm_op = OP("lstm", lstm, 3), gru_op = OP("gru", gru, 2),
                     tanh_op = OP("rnn_tanh", tanh, 0), relu_op = OP("rnn_relu", relu, 0);

static const tern_op *op_of(const tern_rnn_kind *kind)
{
    return kind == &tern_lstm_kind   ? &lstm_op
           : kind == &tern_gru_kind  ? &gru_op
           : kind == &tern_tanh_kind ? &tanh_op
                                     : &relu_op;
}

/* b_ih and b_hh occur only as a sum, except in a GRU, whose r scales b_hh with u_n. The other kinds
 * therefore add both biases once and not in every step. */
tern_status tern_rnn_layer(const tern_rnn_kind *kind, tern_tensor *const *in,
                           const tern_rnn_steps *steps, tern_rnn_layer_result *out)
{
    tern_tensor *results[4] = {NULL}, *all[TERN_RNN_INPUTS];
    memcpy(all, in, sizeof all);
    if (kind->gates != 3 && all[TERN_RNN_B_HH]) {
        all[TERN_RNN_B_IH] = all[TERN_RNN_B_IH] ? tern_add(all[TERN_RNN_B_IH], all[TERN_RNN_B_HH])
                                                : all[TERN_RNN_B_HH];
        all[TERN_RNN_B_HH] = NULL;
        if (!all[TERN_RNN_B_IH])
            return tern_last_status();
    }
    TERN_TRY(tern_apply_all(op_of(kind), all, TERN_RNN_INPUTS, steps,
                            tern_rnn_steps_bytes(steps->steps), results, 4));
    *out = (tern_rnn_layer_result){results[0], results[1], kind->has_cell ? results[2] : NULL};
    return TERN_OK;
}
