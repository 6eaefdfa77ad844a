/* rnn.h -- one layer of a recurrent network in one direction, as an operation. */
#ifndef TERN_SRC_OPS_RNN_H
#define TERN_SRC_OPS_RNN_H
#include "tensor/op.h"

/* Inputs of a layer: w_ih (gates hidden, width), w_hh (gates hidden, hidden), biases (gates hidden)
 * or NULL, states (batch, hidden). Only an LSTM has c. */
enum {
    TERN_RNN_X, /* (rows of all steps concatenated, width) */
    TERN_RNN_W_IH,
    TERN_RNN_W_HH,
    TERN_RNN_B_IH,
    TERN_RNN_B_HH,
    TERN_RNN_H,
    TERN_RNN_C,
    TERN_RNN_INPUTS
};

/* The kind of a layer: LSTM, GRU, tanh or relu network. */
typedef struct tern_rnn_kind {
    const char *name;
    int gates;
    bool has_cell;
    /* Computes one step by differentiable operations: replaces h and c, the state before the step,
     * by the state after the step; a is x W_ih^T + b_ih and u is h W_hh^T + b_hh. */
    tern_status (*cell)(tern_tensor *a, tern_tensor *u, tern_tensor **h, tern_tensor **c);
} tern_rnn_kind;
extern const tern_rnn_kind tern_lstm_kind, tern_gru_kind, tern_tanh_kind, tern_relu_kind;

/* The number of rows of x in each step. Sequences are sorted by length, longest first, so that the
 * sizes never increase. */
typedef struct tern_rnn_steps {
    int64_t steps;
    bool reverse;
    bool has_state; /* the initial state may be nonzero */
    int64_t sizes[];
} tern_rnn_steps;

/* The row indices of one step. */
typedef struct tern_rnn_step {
    int64_t t;       /* time of the step */
    int64_t at;      /* first row of the step */
    int64_t rows;    /* number of rows of the step */
    int64_t before;  /* first row of the previous step in the layer's direction */
    int64_t carried; /* rows that the previous step has too; later rows are new */
    int64_t last;    /* index from which rows end with this step */
} tern_rnn_step;
/* tern_rnn_begin returns the first step in the layer's direction (with back: in the opposite one).
 * tern_rnn_next sets *step to the next step, or returns false after the last. */
tern_rnn_step tern_rnn_begin(const tern_rnn_steps *s, bool back);
bool tern_rnn_next(const tern_rnn_steps *s, bool back, tern_rnn_step *step);
size_t tern_rnn_steps_bytes(int64_t steps);

/* Outputs of a layer: y (rows, hidden) and the last state. */
typedef struct tern_rnn_layer_result {
    tern_tensor *y, *h, *c;
} tern_rnn_layer_result;
/* Computes a layer by the fused operation. The inputs `in` are dense and of one dtype. */
tern_status tern_rnn_layer(const tern_rnn_kind *kind, tern_tensor *const *in,
                           const tern_rnn_steps *steps, tern_rnn_layer_result *out);
/* Computes a layer by differentiable operations. projection (projected, hidden), or NULL, reduces
 * the width of h (weight_hr of an LSTM). */
tern_status tern_rnn_compose(const tern_rnn_kind *kind, tern_tensor *const *in,
                             tern_tensor *projection, const tern_rnn_steps *steps,
                             tern_rnn_layer_result *out);

#endif
