/* recurrent.c -- ONNX's LSTM, GRU and RNN. */
#include "io/onnx/operations.h"
#include <string.h>

enum { MOST_PARAMS = 8 };

/* The gates in tern's order, as indices into ONNX's: LSTM i o f c -> i f c o, GRU z r h -> r z
 * h. */
typedef struct order {
    int gates;
    const int *order;
} order;

/* Returns x with the gates in the rows of each direction (dim 1) reordered. Biases contain the
 * gates twice. */
static tern_tensor *ordered(tern_tensor *x, const void *how)
{
    const order *o = how;
    const int64_t rows = tern_size(x, 1), n = tern_dim(x) == 2 ? 2 * o->gates : o->gates;
    tern_tensor *parts[8];
    if (o->gates == 1)
        return x;
    for (int64_t g = 0; g < n; g++)
        parts[g] = tern_narrow(
            x, 1, (g / o->gates * o->gates + o->order[g % o->gates]) * (rows / n), rows / n);
    return tern_cat(parts, (int)n, 1);
}

typedef struct recurrent {
    tern_tensor *x, *h0, *c0; /* x has shape (T, N, I) */
    tern_tensor *params[MOST_PARAMS];
    int directions;
    int64_t hidden;
    bool reverse, batch_first, no_biases;
} recurrent;

/* Fails if the node has other activations than the default ones, clip or input_forget. */
static tern_status check(const onnx_call *c, const char *usual)
{
    const Onnx__AttributeProto *a = onnx_attribute(c, "activations");
    size_t at = 0;
    for (size_t i = 0; a && i < a->n_strings; i++) {
        size_t n = a->strings[i].len;
        if (!usual[at])
            at = 0;
        const char *comma = strchr(usual + at, ',');
        size_t length = comma ? (size_t)(comma - usual) - at : strlen(usual + at);
        if (n != length || memcmp(a->strings[i].data, usual + at, n) != 0)
            return onnx_fail(c, TERN_ERR_UNSUPPORTED, "activations other than %s", usual);
        at += length + (comma != NULL);
    }
    if (onnx_attribute(c, "clip") || onnx_int(c, "input_forget", 0))
        return onnx_fail(c, TERN_ERR_UNSUPPORTED, "clip or input_forget");
    return TERN_OK;
}

/* Fails unless all sequence lengths are equal to the number of steps. */
static tern_status check_lengths(const onnx_call *c, int64_t steps)
{
    tern_tensor *lengths = onnx_in(c, 4);
    if (!lengths)
        return TERN_OK;
    int64_t list[ONNX_DIMS];
    int n = onnx_input_ints(c, 4, list);
    for (int i = 0; i < n; i++)
        if (list[i] != steps)
            return onnx_fail(c, TERN_ERR_UNSUPPORTED, "sequences of different lengths");
    return TERN_OK;
}

static tern_status prepare(const onnx_call *c, order o, recurrent *r)
{
    const int gates = o.gates;
    tern_tensor *w = onnx_in(c, 1), *rw = onnx_in(c, 2), *b = onnx_in(c, 3);
    *r = (recurrent){.x = onnx_in(c, 0), .h0 = onnx_in(c, 5), .no_biases = !b};
    if (!r->x || tern_dim(r->x) != 3 || !w || tern_dim(w) != 3 || !rw || tern_dim(rw) != 3)
        return onnx_fail(c, TERN_ERR_SHAPE, "X, W and R have three dims");
    r->directions = (int)tern_size(w, 0);
    r->hidden = tern_size(rw, 2);
    r->batch_first = onnx_int(c, "layout", 0) != 0;
    r->reverse = onnx_text_is(c, "direction", "reverse", false);
    if (r->directions < 1 || r->directions > 2 || tern_size(w, 1) != gates * r->hidden)
        return onnx_fail(c, TERN_ERR_SHAPE, "weights of %lld directions and %lld rows",
                         (long long)tern_size(w, 0), (long long)tern_size(w, 1));
    if (tern_size(rw, 0) != r->directions || tern_size(rw, 1) != gates * r->hidden ||
        (b && (tern_dim(b) != 2 || tern_size(b, 0) != r->directions ||
               tern_size(b, 1) != 2 * gates * r->hidden)))
        return onnx_fail(c, TERN_ERR_SHAPE, "R or B of other sizes than W's %lld gates of %lld",
                         (long long)gates, (long long)r->hidden);
    if (r->batch_first) {
        r->x = tern_transpose(r->x, 0, 1);
        r->h0 = r->h0 ? tern_transpose(r->h0, 0, 1) : NULL;
    }
    TERN_TRY(check_lengths(c, tern_size(r->x, 0)));
    if (r->reverse)
        r->x = tern_flip(r->x, TERN_DIMS(0));
    if (!r->h0)
        r->h0 = tern_new_zeros(r->x, TERN_SHAPE(r->directions, tern_size(r->x, 1), r->hidden));
    w = onnx_derived(c, 1, ordered, &o);
    rw = onnx_derived(c, 2, ordered, &o);
    b = b ? onnx_derived(c, 3, ordered, &o) : NULL;
    int n = 0;
    for (int d = 0; d < r->directions; d++) {
        r->params[n++] = tern_select(w, 0, d);
        r->params[n++] = tern_select(rw, 0, d);
        tern_tensor *both = b ? tern_select(b, 0, d) : NULL;
        for (int k = 0; b && k < 2; k++)
            r->params[n++] = tern_narrow(both, 0, k * gates * r->hidden, gates * r->hidden);
    }
    return TERN_OK;
}

static tern_rnn_function_options options_of(const recurrent *r)
{
    return (tern_rnn_function_options){.no_biases = r->no_biases,
                                       .bidirectional = r->directions == 2};
}

static int n_params(const recurrent *r)
{
    return r->directions * (r->no_biases ? 2 : 4);
}

/* Sets Y from the output (T, N, D H), and Y_h and Y_c from h_n and c_n (D, N, H). */
static tern_status give(onnx_call *c, const recurrent *r, const tern_rnn_result *y)
{
    tern_tensor *out = y->output;
    if (!out)
        return TERN_OK;
    if (r->reverse)
        out = tern_flip(out, TERN_DIMS(0));
    out = tern_reshape(out,
                       TERN_SHAPE(tern_size(out, 0), tern_size(out, 1), r->directions, r->hidden));
    c->out[0] = tern_permute(out, r->batch_first ? TERN_DIMS(1, 0, 2, 3) : TERN_DIMS(0, 2, 1, 3));
    tern_tensor *const last[] = {y->h_n, y->c_n};
    for (int i = 0; i < 2 && i + 1 < c->n_out; i++)
        if (last[i])
            c->out[i + 1] = r->batch_first ? tern_transpose(last[i], 0, 1) : last[i];
    return TERN_OK;
}

tern_status onnx_lstm(onnx_call *c)
{
    recurrent r;
    tern_rnn_result y = {NULL, NULL, NULL};
    TERN_TRY(check(c, "Sigmoid,Tanh,Tanh"));
    if (onnx_in(c, 7))
        return onnx_fail(c, TERN_ERR_UNSUPPORTED, "peepholes");
    TERN_TRY(prepare(c, (order){4, (const int[]){0, 2, 3, 1}}, &r));
    r.c0 = onnx_in(c, 6);
    if (r.c0 && r.batch_first)
        r.c0 = tern_transpose(r.c0, 0, 1);
    if (!r.c0)
        r.c0 = tern_zeros_like(r.h0);
    tern_rnn_function_options o = options_of(&r);
    TERN_TRY(tern_lstm(r.x, r.h0, r.c0, r.params, n_params(&r), &o, &y));
    return give(c, &r, &y);
}

/* Runs a GRU whose reset gate is applied before the product: h' = tanh(W x + R (r h) + b). */
static tern_tensor *reset_before(const recurrent *r, int direction, tern_tensor **last)
{
    int each = r->no_biases ? 2 : 4;
    tern_tensor *const *p = &r->params[direction * each];
    int64_t steps = tern_size(r->x, 0), n = r->hidden;
    tern_tensor *h = tern_select(r->h0, 0, direction), *all = NULL;
    tern_tensor *w = tern_t(p[0]), *rw = tern_t(p[1]);
    tern_tensor *bias = r->no_biases ? NULL : tern_add(p[2], p[3]);
    for (int64_t i = 0; h && i < steps; i++) {
        int64_t t = direction ? steps - 1 - i : i;
        tern_tensor *x = tern_matmul(tern_select(r->x, 0, t), w);
        x = bias ? tern_add(x, bias) : x;
        tern_tensor *gates = tern_sigmoid(
            tern_add(tern_narrow(x, 1, 0, 2 * n), tern_matmul(h, tern_narrow(rw, 1, 0, 2 * n))));
        tern_tensor *reset = tern_narrow(gates, 1, 0, n), *update = tern_narrow(gates, 1, n, n);
        tern_tensor *fresh =
            tern_tanh(tern_add(tern_narrow(x, 1, 2 * n, n),
                               tern_matmul(tern_mul(reset, h), tern_narrow(rw, 1, 2 * n, n))));
        h = tern_lerp(fresh, h, update);
        tern_tensor *row = tern_unsqueeze(h, 0);
        all = !all        ? row
              : direction ? tern_cat((tern_tensor *[]){row, all}, 2, 0)
                          : tern_cat((tern_tensor *[]){all, row}, 2, 0);
    }
    *last = h;
    return all;
}

tern_status onnx_gru(onnx_call *c)
{
    recurrent r;
    tern_rnn_result y = {NULL, NULL, NULL};
    TERN_TRY(check(c, "Sigmoid,Tanh"));
    TERN_TRY(prepare(c, (order){3, (const int[]){1, 0, 2}}, &r));
    if (onnx_int(c, "linear_before_reset", 0)) {
        tern_rnn_function_options o = options_of(&r);
        TERN_TRY(tern_gru(r.x, r.h0, r.params, n_params(&r), &o, &y));
        return give(c, &r, &y);
    }
    tern_tensor *outputs[2] = {NULL}, *last[2] = {NULL};
    for (int d = 0; d < r.directions; d++) {
        outputs[d] = reset_before(&r, d, &last[d]);
        if (!outputs[d])
            return onnx_fail(c, TERN_ERR_SHAPE, "a sequence without steps");
    }
    y.output = r.directions == 1 ? outputs[0] : tern_cat(outputs, 2, 2);
    y.h_n = tern_stack(last, r.directions, 0);
    return give(c, &r, &y);
}

tern_status onnx_rnn(onnx_call *c)
{
    recurrent r;
    tern_rnn_result y = {NULL, NULL, NULL};
    const Onnx__AttributeProto *a = onnx_attribute(c, "activations");
    bool relu =
        a && a->n_strings && a->strings[0].len == 4 && !memcmp(a->strings[0].data, "Relu", 4);
    TERN_TRY(check(c, relu ? "Relu" : "Tanh"));
    TERN_TRY(prepare(c, (order){1, NULL}, &r));
    tern_rnn_function_options o = options_of(&r);
    TERN_TRY(relu ? tern_rnn_relu(r.x, r.h0, r.params, n_params(&r), &o, &y)
                  : tern_rnn_tanh(r.x, r.h0, r.params, n_params(&r), &o, &y));
    return give(c, &r, &y);
}
