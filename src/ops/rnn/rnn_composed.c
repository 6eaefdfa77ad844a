/* rnn_composed.c -- a recurrent layer step by step in differentiable operations, for gradients of
 * gradients and for layers with a projection. */
#include "base/memory.h"
#include "ops/rnn/rnn.h"
#include <tern/ops.h>

/* Returns a view of the columns of gate i. Gates of width n are concatenated along the columns in
 * PyTorch's order. */
static tern_tensor *gate(tern_tensor *sums, int64_t n, int i)
{
    return sums ? tern_narrow(sums, 1, i * n, n) : NULL;
}

/* Returns the hidden width, given sums (rows, gates hidden). */
static int64_t width_of(tern_tensor *sums, int gates)
{
    return sums ? tern_size(sums, 1) / gates : 0;
}

/* ---- cells ------------------------------------------------------------------------------- */

/* i, f, g, o = s(a + u) with tanh for g; c' = f c + i g, h' = o tanh(c'). */
static tern_status lstm_cell(tern_tensor *a, tern_tensor *u, tern_tensor **h, tern_tensor **c)
{
    int64_t n = width_of(a, 4);
    tern_tensor *sums = tern_add(a, u);
    tern_tensor *i = tern_sigmoid(gate(sums, n, 0)), *f = tern_sigmoid(gate(sums, n, 1));
    tern_tensor *g = tern_tanh(gate(sums, n, 2)), *o = tern_sigmoid(gate(sums, n, 3));
    *c = tern_add(tern_mul(f, *c), tern_mul(i, g));
    *h = tern_mul(o, tern_tanh(*c));
    return *h ? TERN_OK : tern_last_status();
}

/* r, z = s(a + u), n = tanh(a_n + r u_n), h' = n + z (h - n), which is (1 - z) n + z h. */
static tern_status gru_cell(tern_tensor *a, tern_tensor *u, tern_tensor **h, tern_tensor **c)
{
    int64_t n = width_of(a, 3);
    (void)c;
    tern_tensor *r = tern_sigmoid(tern_add(gate(a, n, 0), gate(u, n, 0)));
    tern_tensor *z = tern_sigmoid(tern_add(gate(a, n, 1), gate(u, n, 1)));
    tern_tensor *y = tern_tanh(tern_add(gate(a, n, 2), tern_mul(r, gate(u, n, 2))));
    *h = tern_add(y, tern_mul(z, tern_sub(*h, y)));
    return *h ? TERN_OK : tern_last_status();
}

/* h' = tanh(a + u) */
static tern_status tanh_cell(tern_tensor *a, tern_tensor *u, tern_tensor **h, tern_tensor **c)
{
    (void)c;
    *h = tern_tanh(tern_add(a, u));
    return *h ? TERN_OK : tern_last_status();
}

/* h' = relu(a + u) */
static tern_status relu_cell(tern_tensor *a, tern_tensor *u, tern_tensor **h, tern_tensor **c)
{
    (void)c;
    *h = tern_relu(tern_add(a, u));
    return *h ? TERN_OK : tern_last_status();
}

const tern_rnn_kind tern_lstm_kind = {"lstm", 4, true, lstm_cell};
const tern_rnn_kind tern_gru_kind = {"gru", 3, false, gru_cell};
const tern_rnn_kind tern_tanh_kind = {"rnn_tanh", 1, false, tanh_cell};
const tern_rnn_kind tern_relu_kind = {"rnn_relu", 1, false, relu_cell};

/* ---- the layer --------------------------------------------------------------------------- */

/* A state (h or c) during the steps: of the rows of the current step (now), of the rows that have
 * ended, and of all rows before the first step (first). */
typedef struct state {
    tern_tensor *now, *first;
    tern_tensor **ended; /* longest sequences last */
    int n;
} state;

/* Adjusts the state before a step to the rows of the step. Rows are sorted by length, so that rows
 * that end, or begin in the reverse direction, are always the last rows. */
static tern_status match_rows(state *s, const tern_rnn_step *step)
{
    if (!s->first)
        return TERN_OK;
    int64_t had = s->now ? tern_size(s->now, 0) : 0;
    if (had > step->rows) {
        s->ended[s->n++] = tern_narrow(s->now, 0, step->rows, had - step->rows);
        s->now = tern_narrow(s->now, 0, 0, step->rows);
    } else if (had < step->rows) {
        tern_tensor *begun = tern_narrow(s->first, 0, had, step->rows - had);
        s->now = had ? tern_cat((tern_tensor *[]){s->now, begun}, 2, 0) : begun;
    }
    return s->now ? TERN_OK : tern_last_status();
}

/* Returns the last state of all rows. The rows that ended first are the last rows, so the pieces
 * are concatenated in reverse order. */
static tern_tensor *last_state(state *s)
{
    s->ended[s->n] = s->now;
    for (int i = 0, j = s->n; i < j; i++, j--) {
        tern_tensor *x = s->ended[i];
        s->ended[i] = s->ended[j];
        s->ended[j] = x;
    }
    return s->n ? tern_cat(s->ended, s->n + 1, 0) : s->now;
}

/* Computes a of all steps in one product, then u and the cell of each step. With a projection h =
 * (o tanh(c)) W_hr^T, which is the output of the step and the input of the next. */
static tern_status run_steps(const tern_rnn_kind *kind, tern_tensor *const *in,
                             tern_tensor *projection, const tern_rnn_steps *steps, state *h,
                             state *c, tern_tensor **ys)
{
    tern_tensor *all = tern_linear(in[TERN_RNN_X], in[TERN_RNN_W_IH], in[TERN_RNN_B_IH]);
    tern_rnn_step s = tern_rnn_begin(steps, false);
    do {
        TERN_TRY(match_rows(h, &s));
        TERN_TRY(match_rows(c, &s));
        tern_tensor *a = all ? tern_narrow(all, 0, s.at, s.rows) : NULL;
        tern_tensor *u = tern_linear(h->now, in[TERN_RNN_W_HH], in[TERN_RNN_B_HH]);
        TERN_TRY(kind->cell(a, u, &h->now, &c->now));
        if (projection && !(h->now = tern_linear(h->now, projection, NULL)))
            return tern_last_status();
        ys[s.t] = h->now;
    } while (tern_rnn_next(steps, false, &s));
    return TERN_OK;
}

tern_status tern_rnn_compose(const tern_rnn_kind *kind, tern_tensor *const *in,
                             tern_tensor *projection, const tern_rnn_steps *steps,
                             tern_rnn_layer_result *out)
{
    size_t n = (size_t)steps->steps;
    tern_tensor **states = tern_alloc(3 * (n + 1) * sizeof(tern_tensor *));
    if (!states)
        return TERN_ERR_MEMORY;
    state h = {.first = in[TERN_RNN_H], .ended = states};
    state c = {.first = kind->has_cell ? in[TERN_RNN_C] : NULL, .ended = states + n + 1};
    tern_tensor **ys = states + 2 * (n + 1);
    tern_status status = run_steps(kind, in, projection, steps, &h, &c, ys);
    if (status == TERN_OK) {
        out->y = tern_cat(ys, (int)n, 0);
        out->h = last_state(&h);
        out->c = c.first ? last_state(&c) : NULL;
        status = out->y && out->h && (out->c || !c.first) ? TERN_OK : tern_last_status();
    }
    tern_free(states);
    return status;
}
