/* ops/rnn.h -- recurrent networks (torch.lstm and so on): the modules are in nn/rnn.h.
 *
 * Parameters are those of PyTorch's modules, in order: for each layer, and each direction in it,
 * weight_ih (G H, in), weight_hh (G H, H), without no_biases bias_ih (G H) and bias_hh (G H), and
 * with a projection weight_hr (P, H); G gates are 4 for an LSTM (i f g o; Hochreiter, Schmidhuber
 * 1997), 3 for a GRU (r z n; Cho et al. 2014), 1 for a plain network. All tensors have one floating
 * point type. Results belong to the innermost scope. Errors: TERN_ERR_SHAPE, TERN_ERR_DTYPE and
 * TERN_ERR_ARGUMENT in PyTorch's words. */
#ifndef TERN_OPS_RNN_H
#define TERN_OPS_RNN_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- sequences -------------------------------------------------------------------------------
 * input (time, batch, features), or packed (rows, features); h0 and c0 (layers D, batch, H), or
 * NULL for zeros; D directions. n_params in all. */

typedef struct tern_rnn_function_options {
    int num_layers; /* default 1 */
    bool no_biases;
    bool bidirectional;
    bool batch_first; /* input and output are (batch, time, features) */
    bool train;
    double dropout;             /* between layers, when training */
    const int64_t *batch_sizes; /* of a packed sequence: rows of each of its `steps` steps */
    int64_t steps;
    uint64_t reserved[4];
} tern_rnn_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rnn_function_options tern_rnn_function_defaults(void);
/* output (time, batch, D H): h of the last layer at each time, both directions side by side; h_n
 * and c_n (layers D, batch, H): the last state of each layer and direction. c_n of an LSTM only. */
typedef struct tern_rnn_result {
    tern_tensor *output, *h_n, *c_n;
} tern_rnn_result;

/* Long short-term memory. */
TERN_API tern_status tern_lstm(tern_tensor *input, tern_tensor *h0, tern_tensor *c0,
                               tern_tensor *const *params, int n_params,
                               const tern_rnn_function_options *options, tern_rnn_result *out);
/* Gated recurrent units. */
TERN_API tern_status tern_gru(tern_tensor *input, tern_tensor *h0, tern_tensor *const *params,
                              int n_params, const tern_rnn_function_options *options,
                              tern_rnn_result *out);
/* h = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh). */
TERN_API tern_status tern_rnn_tanh(tern_tensor *input, tern_tensor *h0, tern_tensor *const *params,
                                   int n_params, const tern_rnn_function_options *options,
                                   tern_rnn_result *out);
/* The same with relu. */
TERN_API tern_status tern_rnn_relu(tern_tensor *input, tern_tensor *h0, tern_tensor *const *params,
                                   int n_params, const tern_rnn_function_options *options,
                                   tern_rnn_result *out);

/* ---- one step: input (batch, features), h and c (batch, H); biases may be NULL --------------- */

typedef struct tern_lstm_state {
    tern_tensor *h, *c;
} tern_lstm_state;
/* h and c after it, into *out. */
TERN_API tern_status tern_lstm_cell(tern_tensor *input, tern_tensor *h, tern_tensor *c,
                                    tern_tensor *w_ih, tern_tensor *w_hh, tern_tensor *b_ih,
                                    tern_tensor *b_hh, tern_lstm_state *out);
/* h after it. */
TERN_API tern_tensor *tern_gru_cell(tern_tensor *input, tern_tensor *h, tern_tensor *w_ih,
                                    tern_tensor *w_hh, tern_tensor *b_ih, tern_tensor *b_hh);
/* h after it. */
TERN_API tern_tensor *tern_rnn_tanh_cell(tern_tensor *input, tern_tensor *h, tern_tensor *w_ih,
                                         tern_tensor *w_hh, tern_tensor *b_ih, tern_tensor *b_hh);
/* h after it. */
TERN_API tern_tensor *tern_rnn_relu_cell(tern_tensor *input, tern_tensor *h, tern_tensor *w_ih,
                                         tern_tensor *w_hh, tern_tensor *b_ih, tern_tensor *b_hh);

TERN_END_DECLS
#endif
