/* rnn.h -- one layer of a recurrent network in one direction, as an operation. */
#ifndef TERN_SRC_OPS_RNN_H
#define TERN_SRC_OPS_RNN_H
#include "tensor/op.h"

/* Inputs of a layer. w_ih (gates hidden, width), w_hh (gates hidden, hidden), biases (gates hidden)
 * or NULL, states (batch, hidden); only an LSTM has c. */
enum {
    TERN_RNN_X, /* (rows of all steps one after the other, width) */
    TERN_RNN_W_IH,
    TERN_RNN_W_HH,
    TERN_RNN_B_IH,
    TERN_RNN_B_HH,
    TERN_RNN_H,
    TERN_RNN_C,
    TERN_RNN_INPUTS
};

/* LSTM, GRU, tanh or relu network. */
typedef struct tern_rnn_kind {
    const char *name;
    int gates;
    bool has_cell;
    /* Differentiable operations for one step: h and c are the state before it and become the one
     * after it; a is x W_ih^T + b_ih and u is h W_hh^T + b_hh. */
    tern_status (*cell)(tern_tensor *a, tern_tensor *u, tern_tensor **h, tern_tensor **c);
} tern_rnn_kind;
extern const tern_rnn_kind tern_lstm_kind, tern_gru_kind, tern_tanh_kind, tern_relu_kind;

/* How many rows of x each step has. Rows are sorted by length, the longest first, so that the sizes
 * never rise. */
typedef struct tern_rnn_steps {
    int64_t steps;
    bool reverse;
    bool has_state; /* the initial state may be other than zero */
    int64_t sizes[];
} tern_rnn_steps;

/* One step of the index over them. */
typedef struct tern_rnn_step {
    int64_t t;       /* its time */
    int64_t at;      /* its first row */
    int64_t rows;    /* how many */
    int64_t before;  /* first row of the step before it in the layer's direction */
    int64_t carried; /* rows that the step before has too; the others begin here */
    int64_t last;    /* rows from here on end with this step */
} tern_rnn_step;
/* The first step in the layer's direction (back: against it), and the next;
 * false after the last. */
tern_rnn_step tern_rnn_begin(const tern_rnn_steps *s, bool back);
bool tern_rnn_next(const tern_rnn_steps *s, bool back, tern_rnn_step *step);
size_t tern_rnn_steps_bytes(int64_t steps);

/* Outputs of a layer: y (rows, hidden), the last state. */
typedef struct tern_rnn_layer_result {
    tern_tensor *y, *h, *c;
} tern_rnn_layer_result;
/* Fused; in differentiable operations. in are dense and of one type. */
tern_status tern_rnn_layer(const tern_rnn_kind *kind, tern_tensor *const *in,
                           const tern_rnn_steps *steps, tern_rnn_layer_result *out);
/* projection (projected, hidden), which may be NULL, makes each h smaller (an LSTM's weight_hr). */
tern_status tern_rnn_compose(const tern_rnn_kind *kind, tern_tensor *const *in,
                             tern_tensor *projection, const tern_rnn_steps *steps,
                             tern_rnn_layer_result *out);

#endif
