/* rnn_cell.c -- RNNCell, LSTMCell and GRUCell: one time step. */
#include "base/checked.h"
#include "nn/layers/layer.h"
#include <math.h>

typedef struct cell {
    const char *name;
    int gates;
    tern_rnn_nonlinearity nonlinearity;
    int64_t hidden;
} cell;

/* Runs one time step: h' = tanh(W_ih x + b_ih + W_hh h + b_hh) or relu, or the gates of LSTM and
 * GRU. */
static tern_status run(tern_module *self, tern_tensor *x, tern_tensor *h, tern_tensor *c,
                       tern_lstm_state *out)
{
    const cell *l = tern_nn_data(self);
    tern_tensor *w_ih = tern_nn_parameter(self, "weight_ih");
    tern_tensor *w_hh = tern_nn_parameter(self, "weight_hh");
    tern_tensor *b_ih = tern_nn_parameter(self, "bias_ih");
    tern_tensor *b_hh = tern_nn_parameter(self, "bias_hh");
    if (l->gates == 4)
        return tern_lstm_cell(x, h, c, w_ih, w_hh, b_ih, b_hh, out);
    if (l->gates == 3)
        out->h = tern_gru_cell(x, h, w_ih, w_hh, b_ih, b_hh);
    else if (l->nonlinearity == TERN_RNN_RELU)
        out->h = tern_rnn_relu_cell(x, h, w_ih, w_hh, b_ih, b_hh);
    else
        out->h = tern_rnn_tanh_cell(x, h, w_ih, w_hh, b_ih, b_hh);
    return out->h ? TERN_OK : tern_last_status();
}

/* States default to zeros. An x of shape (in) is a batch of one. */
static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const cell *l = tern_nn_data(self);
    int states = l->gates == 4 ? 2 : 1;
    if ((n != 1 && n != 1 + states) || k < 1 || k > states)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: %s takes x and %s or nothing, and gives them back, not %d "
                         "in and %d out",
                         l->name, states == 2 ? "h and c" : "h", n, k);
    tern_tensor *x = in[0], *state[2] = {n > 1 ? in[1] : NULL, n > 2 ? in[2] : NULL};
    if (!x)
        return tern_fail_argument_null("tern_nn_call", "x");
    int dims = tern_dim(x);
    if (dims != 1 && dims != 2)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_nn_call: %s: Expected input to be 1-D or 2-D but received %d-D "
                         "tensor",
                         l->name, dims);
    x = dims == 1 ? tern_unsqueeze(x, 0) : x;
    for (int i = 0; i < states; i++) {
        if (!state[i])
            state[i] = tern_new_zeros(x, TERN_SHAPE(tern_size(x, 0), l->hidden));
        else if (dims == 1)
            state[i] = tern_unsqueeze(state[i], 0);
        if (!state[i])
            return tern_last_status();
    }
    tern_lstm_state after = {NULL, NULL};
    TERN_TRY(run(self, x, state[0], state[1], &after));
    for (int i = 0; i < k; i++) {
        out[i] = i == 0 ? after.h : after.c;
        out[i] = dims == 1 ? tern_squeeze_dim(out[i], 0) : out[i];
    }
    return TERN_OK;
}

/* Adds the weights of all gates, stacked to (gates hidden, in), uniform in +-1/sqrt(hidden). */
static tern_status add_parameters(tern_module *m, const cell *l, int64_t input,
                                  const tern_rnn_options *o)
{
    double bound = l->hidden > 0 ? 1 / sqrt((double)l->hidden) : 0;
    int64_t rows = tern_size_mul(l->gates, l->hidden);
    static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    tern_shape shapes[] = {TERN_SHAPE(rows, input), TERN_SHAPE(rows, l->hidden), TERN_SHAPE(rows),
                           TERN_SHAPE(rows)};
    for (int i = 0; i < 4; i++) {
        tern_tensor *x = NULL;
        if (i < 2 || !o->no_bias) {
            x = tern_nn_init_uniform_(tern_empty(shapes[i], o->dtype, o->device), -bound, bound);
            if (!x)
                return tern_last_status();
        }
        TERN_TRY(tern_layer_parameter(m, names[i], x));
    }
    return tern_nn_set_extra(m, "%lld, %lld%s%s", (long long)input, (long long)l->hidden,
                             o->no_bias ? ", bias=False" : "",
                             l->nonlinearity == TERN_RNN_RELU ? ", nonlinearity=relu" : "");
}

static tern_module *make(const cell *l, const char *function, int64_t input,
                         const tern_rnn_options *options)
{
    static const tern_rnn_options none;
    if (input < 1 || l->hidden < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: input_size and hidden_size must be above 0 (%lld, %lld)",
                              function, (long long)input, (long long)l->hidden);
    if (tern_check_enum(function, "nonlinearity", (int)l->nonlinearity, TERN_RNN_RELU,
                        "tern_rnn_nonlinearity") != TERN_OK)
        return NULL;
    tern_module *m = tern_layer_loss(l->name, call, l, sizeof *l);
    tern_status status = m ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        TERN_SCOPE
            status = add_parameters(m, l, input, options ? options : &none);
    return tern_layer_if(m, status);
}

tern_module *tern_nn_rnn_cell(int64_t input_size, int64_t hidden_size,
                              const tern_rnn_options *options)
{
    TERN_NAMED_IN_ERRORS;
    cell l = {"RNNCell", 1, options ? options->nonlinearity : TERN_RNN_TANH, hidden_size};
    return make(&l, __func__, input_size, options);
}

tern_module *tern_nn_lstm_cell(int64_t input_size, int64_t hidden_size,
                               const tern_rnn_options *options)
{
    TERN_NAMED_IN_ERRORS;
    cell l = {"LSTMCell", 4, TERN_RNN_TANH, hidden_size};
    return make(&l, __func__, input_size, options);
}

tern_module *tern_nn_gru_cell(int64_t input_size, int64_t hidden_size,
                              const tern_rnn_options *options)
{
    TERN_NAMED_IN_ERRORS;
    cell l = {"GRUCell", 3, TERN_RNN_TANH, hidden_size};
    return make(&l, __func__, input_size, options);
}
