/* nn/rnn.h -- recurrent networks as modules; see ops/rnn.h for what they compute. */
#ifndef TERN_NN_RNN_H
#define TERN_NN_RNN_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef enum tern_rnn_nonlinearity { TERN_RNN_TANH = 0, TERN_RNN_RELU } tern_rnn_nonlinearity;

typedef struct tern_rnn_options {
    int num_layers;                     /* default 1 */
    tern_rnn_nonlinearity nonlinearity; /* of tern_nn_rnn and tern_nn_rnn_cell only */
    bool no_bias;
    bool batch_first; /* input and output are (batch, time, features) */
    double dropout;   /* after all layers but the last, when training */
    bool bidirectional;
    int64_t proj_size; /* of an LSTM: h is this wide; 0 for none */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_rnn_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rnn_options tern_rnn_defaults(void);

/* tern_nn_call with {x}, {x, h0} or, of an LSTM, {x, h0, c0} gives the first k of {output, h_n,
 * c_n}; tern_nn_forward gives output. x (time, batch, input_size), output (time, batch, D
 * hidden_size), states (num_layers D, batch, hidden_size), D directions; without the dim `batch`
 * for a single sequence. Parameters weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0,
 * weight_ih_l0_reverse, ..., uniform in +-1/sqrt(hidden_size). */
TERN_API tern_module *tern_nn_rnn(int64_t input_size, int64_t hidden_size,
                                  const tern_rnn_options *options);
/* Long short-term memory. */
TERN_API tern_module *tern_nn_lstm(int64_t input_size, int64_t hidden_size,
                                   const tern_rnn_options *options);
/* Gated recurrent units. */
TERN_API tern_module *tern_nn_gru(int64_t input_size, int64_t hidden_size,
                                  const tern_rnn_options *options);

/* One step: tern_nn_call with {x}, {x, h} or {x, h, c} gives {h} or {h, c} after it. x (batch,
 * input_size) or (input_size). Parameters weight_ih, weight_hh, bias_ih, bias_hh. */
TERN_API tern_module *tern_nn_rnn_cell(int64_t input_size, int64_t hidden_size,
                                       const tern_rnn_options *options);
/* Of an LSTM. */
TERN_API tern_module *tern_nn_lstm_cell(int64_t input_size, int64_t hidden_size,
                                        const tern_rnn_options *options);
/* Of a GRU. */
TERN_API tern_module *tern_nn_gru_cell(int64_t input_size, int64_t hidden_size,
                                       const tern_rnn_options *options);

TERN_END_DECLS
#endif
