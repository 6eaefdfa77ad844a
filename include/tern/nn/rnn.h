/* nn/rnn.h -- recurrent networks as modules; ops/rnn.h has the functions that they call. */
#ifndef TERN_NN_RNN_H
#define TERN_NN_RNN_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

typedef enum tern_rnn_nonlinearity { TERN_RNN_TANH = 0, TERN_RNN_RELU } tern_rnn_nonlinearity;

typedef struct tern_rnn_options {
    int num_layers;                     /* default 1 */
    tern_rnn_nonlinearity nonlinearity; /* for tern_nn_rnn and tern_nn_rnn_cell only */
    bool no_bias;
    bool batch_first; /* input and output are (batch, time, features) */
    double dropout;   /* the probability of dropout after each layer but the last, in training */
    bool bidirectional;
    int64_t proj_size; /* for an LSTM: the width of h; 0 for no projection */
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_rnn_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rnn_options tern_rnn_defaults(void);

/* A module that runs layers of a simple recurrent network over a sequence. tern_nn_call with {x} or
 * {x, h0} gives the first k of {output, h_n}; tern_nn_forward gives output. x is (time, batch,
 * input_size), output (time, batch, D hidden_size), and states are (num_layers D, batch,
 * hidden_size), where D is the number of directions. A single sequence has no dim batch. The
 * parameters are weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, ...,
 * uniform in +-1/sqrt(hidden_size) at first. */
TERN_API tern_module *tern_nn_rnn(int64_t input_size, int64_t hidden_size,
                                  const tern_rnn_options *options);
/* A module that runs layers of a long short-term memory over a sequence. tern_nn_call with {x} or
 * {x, h0, c0} gives the first k of {output, h_n, c_n}; shapes and parameters are those of
 * tern_nn_rnn. */
TERN_API tern_module *tern_nn_lstm(int64_t input_size, int64_t hidden_size,
                                   const tern_rnn_options *options);
/* A module that runs layers of gated recurrent units over a sequence, and is called as tern_nn_rnn
 * is. */
TERN_API tern_module *tern_nn_gru(int64_t input_size, int64_t hidden_size,
                                  const tern_rnn_options *options);

/* A module that computes one step of a simple recurrent network: tern_nn_call with {x} or {x, h}
 * gives the new {h}. x is (batch, input_size) or (input_size). The parameters are weight_ih,
 * weight_hh, bias_ih and bias_hh. */
TERN_API tern_module *tern_nn_rnn_cell(int64_t input_size, int64_t hidden_size,
                                       const tern_rnn_options *options);
/* A module that computes one step of an LSTM: tern_nn_call with {x} or {x, h, c} gives the new {h,
 * c}. */
TERN_API tern_module *tern_nn_lstm_cell(int64_t input_size, int64_t hidden_size,
                                        const tern_rnn_options *options);
/* A module that computes one step of a gated recurrent unit: tern_nn_call with {x} or {x, h} gives
 * the new {h}. */
TERN_API tern_module *tern_nn_gru_cell(int64_t input_size, int64_t hidden_size,
                                       const tern_rnn_options *options);

TERN_END_DECLS
#endif
