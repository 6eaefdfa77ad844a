/* rnn_stack.c -- recurrent networks of several layers and directions. */
#include "base/option.h"
#include "base/checked.h"
#include "base/memory.h"
#include "ops/rnn/rnn.h"
#include <tern/ops.h>

/* The arguments of lstm, gru and the plain networks. */
typedef struct stack {
    const tern_rnn_kind *kind;
    const char *function;
    tern_rnn_function_options o;
    int directions, each; /* each: parameters of a layer in one direction */
    bool projected;
    int64_t hidden, out; /* width of c, width of h */
    int64_t batch;
    tern_tensor *const *params;
    tern_rnn_steps *steps;
} stack;

/* ---- checks ------------------------------------------------------------------------------ */

static tern_status check_shape(const stack *s, const char *name, int layer, const tern_tensor *x,
                               tern_shape wanted)
{
    tern_shape shape = x ? tern_shape_of(x) : (tern_shape){0};
    if (!x)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s of layer %d is NULL", s->function, name, layer);
    if (tern_shape_equal(&shape, &wanted))
        return TERN_OK;
    return tern_fail(TERN_ERR_SHAPE, "%s: Expected %s of layer %d to have shape %s, got %s",
                     s->function, name, layer, TERN_SHAPE_TEXT(&wanted), TERN_SHAPE_TEXT(&shape));
}

/* Checks the parameters: for each layer and direction w_ih, w_hh, b_ih, b_hh (without biases the
 * first two) and for an LSTM with a projection w_hr, which is present if the number of parameters
 * includes it. Layers after the first have the outputs of all directions as features. */
static tern_status check_params(stack *s, int n_params, int64_t features)
{
    int sets = s->o.num_layers * s->directions, each = s->o.no_biases ? 2 : 4;
    s->projected = s->kind->has_cell && n_params == sets * (each + 1);
    s->each = s->projected ? each + 1 : each;
    if (n_params != sets * s->each)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: got an incorrect number of RNN parameters (%d, expected %d)",
                         s->function, n_params, sets * each);
    tern_tensor *w_hh = s->params[1];
    if (!w_hh || w_hh->ndim != 2 || w_hh->shape[0] % s->kind->gates)
        return tern_fail(TERN_ERR_SHAPE, "%s: weight_hh is no matrix of %d gates", s->function,
                         s->kind->gates);
    s->hidden = w_hh->shape[0] / s->kind->gates;
    s->out = w_hh->shape[1];
    int64_t gates = w_hh->shape[0];
    if (!s->projected && s->out != s->hidden)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: weight_hh has shape %s, %d times as high as wide is "
                         "expected",
                         s->function, TERN_TENSOR_TEXT(w_hh), s->kind->gates);
    for (int i = 0; i < sets; i++) {
        tern_tensor *const *p = s->params + i * s->each;
        int layer = i / s->directions;
        int64_t in = layer ? s->out * s->directions : features;
        TERN_TRY(check_shape(s, "weight_ih", layer, p[0], (tern_shape){2, {gates, in}}));
        TERN_TRY(check_shape(s, "weight_hh", layer, p[1], (tern_shape){2, {gates, s->out}}));
        for (int k = 2; k < each; k++)
            TERN_TRY(check_shape(s, k == 2 ? "bias_ih" : "bias_hh", layer, p[k],
                                 (tern_shape){1, {gates}}));
        if (s->projected)
            TERN_TRY(
                check_shape(s, "weight_hr", layer, p[each], (tern_shape){2, {s->out, s->hidden}}));
    }
    return TERN_OK;
}

/* Checks a state (layers directions, batch, width), h for i = 0, c for i = 1. The errors are in
 * PyTorch's words. */
static tern_status check_state(const stack *s, const tern_tensor *x, int i)
{
    int sets = s->o.num_layers * s->directions;
    int64_t width = i == 0 ? s->out : s->hidden;
    if (!x ||
        (x->ndim == 3 && x->shape[0] == sets && x->shape[1] == s->batch && x->shape[2] == width))
        return TERN_OK;
    return tern_fail(TERN_ERR_SHAPE, "%s: Expected hidden%s size (%d, %lld, %lld), got %s",
                     s->function,
                     !s->kind->has_cell ? ""
                     : i == 0           ? "[0]"
                                        : "[1]",
                     sets, (long long)s->batch, (long long)width, TERN_TENSOR_TEXT(x));
}

/* Checks that a packed input is (rows, features), any other input (T, N, features). */
static tern_status check_input(const stack *s, const tern_tensor *x)
{
    int dims = s->o.batch_sizes ? 2 : 3;
    if (x->ndim != dims)
        return tern_fail(TERN_ERR_SHAPE, "%s: input must have %d dimensions, got %d", s->function,
                         dims, x->ndim);
    const tern_tensor *w_ih = s->params[0];
    if (w_ih && w_ih->ndim == 2 && w_ih->shape[1] != x->shape[dims - 1])
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: input.size(-1) must be equal to input_size. Expected %lld, got %lld",
                         s->function, (long long)w_ih->shape[1], (long long)x->shape[dims - 1]);
    if (s->o.dropout < 0 || s->o.dropout > 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: dropout should be a number in range [0, 1] representing the "
                         "probability of an element being zeroed",
                         s->function);
    return TERN_OK;
}

/* Checks that the sizes of the steps never increase, as packed sequences are sorted by length. */
static tern_status check_batch_sizes(const stack *s, const tern_tensor *x)
{
    int64_t rows = 0, before = INT64_MAX;
    for (int64_t t = 0; t < s->o.steps; t++) {
        int64_t n = s->o.batch_sizes[t];
        if (n < 1 || n > before)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: batch_sizes must fall and stay above 0 (%lld after %lld)",
                             s->function, (long long)n, (long long)before);
        rows = tern_size_add(rows, n);
        before = n;
    }
    if (rows != x->shape[0])
        return tern_fail(TERN_ERR_SHAPE, "%s: batch_sizes are %lld rows, the input has %lld",
                         s->function, (long long)rows, (long long)x->shape[0]);
    return TERN_OK;
}

/* ---- layers ------------------------------------------------------------------------------ */

/* Sets the rows of each step; without batch sizes every step has the whole batch. */
static tern_status make_steps(stack *s, const tern_tensor *x, bool has_state)
{
    int64_t n = s->o.batch_sizes ? s->o.steps : x->shape[0];
    if (n < 1)
        return tern_fail(TERN_ERR_SHAPE, "%s: Expected sequence length to be larger than 0 in RNN",
                         s->function);
    if (s->o.batch_sizes)
        TERN_TRY(check_batch_sizes(s, x));
    s->steps = tern_alloc(tern_rnn_steps_bytes(n));
    if (!s->steps)
        return TERN_ERR_MEMORY;
    s->steps->steps = n;
    s->steps->has_state = has_state;
    for (int64_t t = 0; t < n; t++)
        s->steps->sizes[t] = s->o.batch_sizes ? s->o.batch_sizes[t] : x->shape[1];
    s->batch = s->steps->sizes[0];
    return TERN_OK;
}

static tern_tensor *dense(tern_tensor *x)
{
    return x ? tern_contiguous(x) : NULL;
}

/* Runs layer i / directions in direction i % directions over x (rows, features). A layer with a
 * projection is always composed, as the fused operation has states of one width. */
static tern_status one_layer(const stack *s, int i, tern_tensor *x, tern_tensor *h, tern_tensor *c,
                             tern_rnn_layer_result *out)
{
    tern_tensor *const *p = s->params + i * s->each;
    bool biased = !s->o.no_biases;
    tern_shape h_shape = {2, {s->batch, s->out}}, c_shape = {2, {s->batch, s->hidden}};
    tern_tensor *in[TERN_RNN_INPUTS] = {[TERN_RNN_X] = dense(x),
                                        [TERN_RNN_W_IH] = dense(p[0]),
                                        [TERN_RNN_W_HH] = dense(p[1]),
                                        [TERN_RNN_B_IH] = biased ? dense(p[2]) : NULL,
                                        [TERN_RNN_B_HH] = biased ? dense(p[3]) : NULL,
                                        [TERN_RNN_H] = h ? dense(tern_select(h, 0, i))
                                                         : tern_new_zeros(x, h_shape)};
    if (s->kind->has_cell)
        in[TERN_RNN_C] = c ? dense(tern_select(c, 0, i)) : tern_new_zeros(x, c_shape);
    if (!in[TERN_RNN_X] || !in[TERN_RNN_H] || (s->kind->has_cell && !in[TERN_RNN_C]))
        return tern_last_status();
    s->steps->reverse = i % s->directions;
    if (s->projected)
        return tern_rnn_compose(s->kind, in, p[s->each - 1], s->steps, out);
    return tern_rnn_layer(s->kind, in, s->steps, out);
}

/* y of a layer, both directions concatenated, is x of the next layer, with dropout in between. hs
 * and cs get the last state of each layer and direction. */
static tern_status all_layers(const stack *s, tern_tensor **x, tern_tensor *h, tern_tensor *c,
                              tern_tensor **hs, tern_tensor **cs)
{
    for (int layer = 0; layer < s->o.num_layers; layer++) {
        tern_tensor *ys[2] = {NULL};
        for (int d = 0; d < s->directions; d++) {
            tern_rnn_layer_result r = {NULL};
            int i = layer * s->directions + d;
            TERN_TRY(one_layer(s, i, *x, h, c, &r));
            ys[d] = r.y;
            hs[i] = r.h;
            cs[i] = r.c;
        }
        *x = s->directions == 2 ? tern_cat(ys, 2, 1) : ys[0];
        if (layer + 1 < s->o.num_layers && s->o.dropout > 0)
            *x = tern_dropout(*x, s->o.dropout, s->o.train);
        if (!*x)
            return tern_last_status();
    }
    return TERN_OK;
}

/* Returns the states as one tensor (layers directions, batch, width). */
static tern_tensor *stack_states(tern_tensor *const *states, int n)
{
    return n == 1 ? tern_unsqueeze(states[0], 0) : tern_stack(states, n, 0);
}

/* Runs the layers on the rows of all steps, (T N, features). The output is y of the last layer,
 * viewed as (T, N, width), or (N, T, width) for batch_first. */
static tern_status run_layers(const stack *s, tern_tensor *x, tern_tensor *h, tern_tensor *c,
                              tern_rnn_result *out)
{
    int n = s->o.num_layers * s->directions;
    tern_tensor **states = tern_alloc(2 * (size_t)n * sizeof(tern_tensor *));
    if (!states)
        return TERN_ERR_MEMORY;
    bool packed = s->o.batch_sizes != NULL;
    if (!packed)
        x = tern_reshape(x, TERN_SHAPE(s->steps->steps * s->batch, x->shape[2]));
    tern_status status = x ? all_layers(s, &x, h, c, states, states + n) : tern_last_status();
    if (status == TERN_OK && !packed)
        x = tern_view(x, TERN_SHAPE(s->steps->steps, s->batch, s->out * s->directions));
    if (status == TERN_OK) {
        out->output = !packed && s->o.batch_first ? tern_transpose(x, 0, 1) : x;
        out->h_n = stack_states(states, n);
        out->c_n = s->kind->has_cell ? stack_states(states + n, n) : NULL;
        status = out->output && out->h_n && (out->c_n || !s->kind->has_cell) ? TERN_OK
                                                                             : tern_last_status();
    }
    tern_free(states);
    return status;
}

/* Makes all checks before the first layer runs. batch_first transposes the input as a view. */
static tern_status run_stack(const tern_rnn_kind *kind, const char *function, tern_tensor *input,
                             tern_tensor *h0, tern_tensor *c0, tern_tensor *const *params,
                             int n_params, const tern_rnn_function_options *options,
                             tern_rnn_result *out)
{
    stack s = {.kind = kind, .function = function, .params = params};
    s.o = tern_read_rnn_function(options);
    s.directions = s.o.bidirectional ? 2 : 1;
    if (!input || !params || !out)
        return tern_fail_argument_null(function, !input ? "input" : !params ? "params" : "out");
    if (s.o.num_layers < 1 || n_params < 2)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %d layers with %d parameters", function,
                         s.o.num_layers, n_params);
    *out = (tern_rnn_result){NULL};
    TERN_TRY(check_input(&s, input));
    TERN_TRY(check_params(&s, n_params, input->shape[input->ndim - 1]));
    if (!s.o.batch_sizes && s.o.batch_first)
        input = tern_transpose(input, 0, 1);
    if (!input)
        return tern_last_status();
    tern_status status = make_steps(&s, input, h0 != NULL);
    if (status == TERN_OK)
        status = check_state(&s, h0, 0);
    if (status == TERN_OK)
        status = check_state(&s, c0, 1);
    if (status == TERN_OK)
        status = run_layers(&s, input, h0, c0, out);
    tern_free(s.steps);
    return status;
}

tern_status tern_lstm(tern_tensor *input, tern_tensor *h0, tern_tensor *c0,
                      tern_tensor *const *params, int n_params,
                      const tern_rnn_function_options *options, tern_rnn_result *out)
{
    return run_stack(&tern_lstm_kind, "tern_lstm", input, h0, c0, params, n_params, options, out);
}

tern_status tern_gru(tern_tensor *input, tern_tensor *h0, tern_tensor *const *params, int n_params,
                     const tern_rnn_function_options *options, tern_rnn_result *out)
{
    return run_stack(&tern_gru_kind, "tern_gru", input, h0, NULL, params, n_params, options, out);
}

tern_status tern_rnn_tanh(tern_tensor *input, tern_tensor *h0, tern_tensor *const *params,
                          int n_params, const tern_rnn_function_options *options,
                          tern_rnn_result *out)
{
    return run_stack(&tern_tanh_kind, "tern_rnn_tanh", input, h0, NULL, params, n_params, options,
                     out);
}

tern_status tern_rnn_relu(tern_tensor *input, tern_tensor *h0, tern_tensor *const *params,
                          int n_params, const tern_rnn_function_options *options,
                          tern_rnn_result *out)
{
    return run_stack(&tern_relu_kind, "tern_rnn_relu", input, h0, NULL, params, n_params, options,
                     out);
}
