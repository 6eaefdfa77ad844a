/* ops/rnn.h -- recurrent networks (torch.lstm, torch.gru, ...); nn/rnn.h has the modules.
 *
 * params are the parameters of PyTorch's modules in their order. For each layer, and in it for each
 * direction, they are weight_ih (G H, in) and weight_hh (G H, H), then unless no_biases bias_ih (G
 * H) and bias_hh (G H), and with a projection weight_hr (P, H). H is the size of the hidden state,
 * and G the number of gates: 4 for an LSTM (i f g o; Hochreiter, Schmidhuber 1997), 3 for a GRU (r
 * z n; Cho et al. 2014), 1 for a simple recurrent network. All tensors have one floating point
 * dtype. Results belong to the innermost scope. Errors: TERN_ERR_SHAPE, TERN_ERR_DTYPE and
 * TERN_ERR_ARGUMENT with PyTorch's messages. */
#ifndef TERN_OPS_RNN_H
#define TERN_OPS_RNN_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- sequences ----------------------------------------------------------------------------------
 * input is (time, batch, features), or (rows, features) for a packed sequence. h0 and c0 are
 * (layers D, batch, H), where D is the number of directions; NULL means zeros. n_params is the
 * number of params. */

typedef struct tern_rnn_function_options {
    int num_layers; /* default 1 */
    bool no_biases;
    bool bidirectional;
    bool batch_first; /* input and output are (batch, time, features) */
    bool train;
    double dropout; /* the probability of dropout between layers; used if train is true */
    const int64_t *batch_sizes; /* for a packed sequence: the number of rows of each of its
                                 * `steps` time steps */
    int64_t steps;
    uint64_t reserved[4];
} tern_rnn_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rnn_function_options tern_rnn_function_defaults(void);
/* output (time, batch, D H) is h of the last layer at each time, with both directions side by side.
 * h_n and c_n (layers D, batch, H) are the last states of each layer and direction; only an LSTM
 * has c_n. */
typedef struct tern_rnn_result {
    tern_tensor *output, *h_n, *c_n;
} tern_rnn_result;

/* Runs the layers of a long short-term memory over a sequence. */
TERN_API tern_status tern_lstm(tern_tensor *input, tern_tensor *h0, tern_tensor *c0,
                               tern_tensor *const *params, int n_params,
                               const tern_rnn_function_options *options, tern_rnn_result *out);
/* Runs layers of gated recurrent units over a sequence. */
TERN_API tern_status tern_gru(tern_tensor *input, tern_tensor *h0, tern_tensor *const *params,
                              int n_params, const tern_rnn_function_options *options,
                              tern_rnn_result *out);
/* Runs layers of h = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh) over a sequence. */
TERN_API tern_status tern_rnn_tanh(tern_tensor *input, tern_tensor *h0, tern_tensor *const *params,
                                   int n_params, const tern_rnn_function_options *options,
                                   tern_rnn_result *out);
/* Runs layers of h = relu(weight_ih x + bias_ih + weight_hh h + bias_hh) over a sequence. */
TERN_API tern_status tern_rnn_relu(tern_tensor *input, tern_tensor *h0, tern_tensor *const *params,
                                   int n_params, const tern_rnn_function_options *options,
                                   tern_rnn_result *out);

/* ---- one step: input is (batch, features), h and c are (batch, H); biases may be NULL -------- */

typedef struct tern_lstm_state {
    tern_tensor *h, *c;
} tern_lstm_state;
/* Computes one step of an LSTM and writes the new h and c to *out. */
TERN_API tern_status tern_lstm_cell(tern_tensor *input, tern_tensor *h, tern_tensor *c,
                                    tern_tensor *w_ih, tern_tensor *w_hh, tern_tensor *b_ih,
                                    tern_tensor *b_hh, tern_lstm_state *out);
/* Computes one step of a gated recurrent unit and returns the new h. */
TERN_API tern_tensor *tern_gru_cell(tern_tensor *input, tern_tensor *h, tern_tensor *w_ih,
                                    tern_tensor *w_hh, tern_tensor *b_ih, tern_tensor *b_hh);
/* Computes one step of a simple recurrent network with tanh and returns the new h. */
TERN_API tern_tensor *tern_rnn_tanh_cell(tern_tensor *input, tern_tensor *h, tern_tensor *w_ih,
                                         tern_tensor *w_hh, tern_tensor *b_ih, tern_tensor *b_hh);
/* Computes one step of a simple recurrent network with relu and returns the new h. */
TERN_API tern_tensor *tern_rnn_relu_cell(tern_tensor *input, tern_tensor *h, tern_tensor *w_ih,
                                         tern_tensor *w_hh, tern_tensor *b_ih, tern_tensor *b_hh);

TERN_END_DECLS
#endif
