/* rnn_cell.c -- single steps of recurrent networks, run as sequences of length 1. */
#include "base/memory.h"
#include "ops/rnn/rnn.h"
#include <tern/ops.h>

/* Checks x (batch, width), W_ih (gates hidden, width), W_hh (gates hidden, hidden), h and c (batch,
 * hidden), in the order of the inputs of a layer. */
static tern_status check_cell(const char *function, int gates, tern_tensor *const *in)
{
    static const char *const names[] = {"input", "w_ih", "w_hh", "b_ih", "b_hh", "h", "c"};
    const tern_tensor *x = in[TERN_RNN_X], *w = in[TERN_RNN_W_IH], *h = in[TERN_RNN_H];
    for (int i = 0; i < TERN_RNN_INPUTS; i++)
        if (in[i] && i != TERN_RNN_B_IH && i != TERN_RNN_B_HH && in[i]->ndim != 2)
            return tern_fail(TERN_ERR_SHAPE, "%s: Expected %s to be 2-D, got %d-D", function,
                             names[i], in[i]->ndim);
    if (x->shape[1] != w->shape[1])
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: input has inconsistent input_size: got %lld expected %lld", function,
                         (long long)x->shape[1], (long long)w->shape[1]);
    int64_t hidden = in[TERN_RNN_W_HH]->shape[1];
    for (int i = TERN_RNN_H; i <= TERN_RNN_C; i++) {
        if (in[i] && in[i]->shape[0] != x->shape[0])
            return tern_fail(
                TERN_ERR_SHAPE, "%s: Input batch size %lld doesn't match hidden%d batch size %lld",
                function, (long long)x->shape[0], i - TERN_RNN_H, (long long)in[i]->shape[0]);
        if (in[i] && in[i]->shape[1] != hidden)
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: hidden%d has inconsistent hidden_size: got %lld, expected %lld",
                             function, i - TERN_RNN_H, (long long)in[i]->shape[1],
                             (long long)hidden);
    }
    bool fits = w->shape[0] == gates * h->shape[1] && in[TERN_RNN_W_HH]->shape[0] == w->shape[0];
    for (int i = TERN_RNN_B_IH; i <= TERN_RNN_B_HH; i++)
        fits = fits && (!in[i] || (in[i]->ndim == 1 && in[i]->shape[0] == w->shape[0]));
    return fits ? TERN_OK
                : tern_fail(TERN_ERR_SHAPE, "%s: weights and biases must have %d times %lld rows",
                            function, gates, (long long)h->shape[1]);
}

/* A cell is a layer with one step whose rows are the batch. */
static tern_status run_cell(const tern_rnn_kind *kind, const char *function, tern_tensor **in,
                            tern_rnn_layer_result *out)
{
    static const char *const names[] = {"input", "w_ih", "w_hh", "b_ih", "b_hh", "h", "c"};
    for (int i = 0; i < TERN_RNN_INPUTS; i++) {
        bool optional = i == TERN_RNN_B_IH || i == TERN_RNN_B_HH;
        if (!in[i] && !optional && (i != TERN_RNN_C || kind->has_cell))
            return tern_fail_argument_null(function, names[i]);
    }
    TERN_TRY(check_cell(function, kind->gates, in));
    for (int i = 0; i < TERN_RNN_INPUTS; i++)
        if (in[i] && !(in[i] = tern_contiguous(in[i])))
            return tern_last_status();
    tern_rnn_steps *one = tern_alloc(tern_rnn_steps_bytes(1));
    if (!one)
        return TERN_ERR_MEMORY;
    one->steps = 1;
    one->has_state = true;
    one->sizes[0] = in[TERN_RNN_X]->shape[0];
    tern_status status = tern_rnn_layer(kind, in, one, out);
    tern_free(one);
    return status;
}

tern_status tern_lstm_cell(tern_tensor *input, tern_tensor *h, tern_tensor *c, tern_tensor *w_ih,
                           tern_tensor *w_hh, tern_tensor *b_ih, tern_tensor *b_hh,
                           tern_lstm_state *out)
{
    tern_tensor *in[TERN_RNN_INPUTS] = {input, w_ih, w_hh, b_ih, b_hh, h, c};
    tern_rnn_layer_result r = {NULL};
    if (!out)
        return tern_fail_argument_null("tern_lstm_cell", "out");
    TERN_TRY(run_cell(&tern_lstm_kind, "tern_lstm_cell", in, &r));
    *out = (tern_lstm_state){r.h, r.c};
    return TERN_OK;
}

/* Runs a cell whose state is h alone, and returns the new h or NULL. */
static tern_tensor *cell_without_c(const tern_rnn_kind *kind, const char *function,
                                   tern_tensor **in)
{
    tern_rnn_layer_result r = {NULL};
    return run_cell(kind, function, in, &r) == TERN_OK ? r.h : NULL;
}

tern_tensor *tern_gru_cell(tern_tensor *input, tern_tensor *h, tern_tensor *w_ih, tern_tensor *w_hh,
                           tern_tensor *b_ih, tern_tensor *b_hh)
{
    return cell_without_c(&tern_gru_kind, "tern_gru_cell",
                          (tern_tensor *[TERN_RNN_INPUTS]){input, w_ih, w_hh, b_ih, b_hh, h});
}

tern_tensor *tern_rnn_tanh_cell(tern_tensor *input, tern_tensor *h, tern_tensor *w_ih,
                                tern_tensor *w_hh, tern_tensor *b_ih, tern_tensor *b_hh)
{
    return cell_without_c(&tern_tanh_kind, "tern_rnn_tanh_cell",
                          (tern_tensor *[TERN_RNN_INPUTS]){input, w_ih, w_hh, b_ih, b_hh, h});
}

tern_tensor *tern_rnn_relu_cell(tern_tensor *input, tern_tensor *h, tern_tensor *w_ih,
                                tern_tensor *w_hh, tern_tensor *b_ih, tern_tensor *b_hh)
{
    return cell_without_c(&tern_relu_kind, "tern_rnn_relu_cell",
                          (tern_tensor *[TERN_RNN_INPUTS]){input, w_ih, w_hh, b_ih, b_hh, h});
}
