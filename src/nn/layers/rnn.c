/* rnn.c -- RNN, LSTM and GRU: their parameters, and calls with and without states or packed
 * sequences. */
#include "base/checked.h"
#include "base/memory.h"
#include "base/warning.h"
#include "nn/layers/layer.h"
#include "nn/module.h"
#include <math.h>
#include <stdio.h>

typedef enum rnn_type { RNN, LSTM, GRU } rnn_type;

typedef struct rnn {
    rnn_type type;
    tern_rnn_options o;
    int64_t input, hidden;
    int n_params;
} rnn;

/* ---- calls ----------------------------------------------------------------------------------- */

/* Sets params[n] to the parameters in the order in which they were added, which the functions
 * expect. */
static void collect(tern_module *self, tern_tensor **params, int n)
{
    for (int i = 0; i < n; i++)
        params[i] = self->members[i].tensor;
}

/* Runs all layers and directions with the function of the module's type. */
static tern_status run(tern_module *self, tern_tensor *x, tern_tensor *h, tern_tensor *c,
                       const int64_t *batch_sizes, int64_t steps, tern_rnn_result *out)
{
    const rnn *r = tern_nn_data(self);
    tern_tensor **params = tern_alloc((size_t)r->n_params * sizeof *params);
    if (!params)
        return TERN_ERR_MEMORY;
    collect(self, params, r->n_params);
    tern_rnn_function_options o = {.num_layers = r->o.num_layers,
                                   .no_biases = r->o.no_bias,
                                   .bidirectional = r->o.bidirectional,
                                   .batch_first = r->o.batch_first,
                                   .train = tern_nn_is_training(self),
                                   .dropout = r->o.dropout,
                                   .batch_sizes = batch_sizes,
                                   .steps = steps};
    tern_status status;
    if (r->type == LSTM)
        status = tern_lstm(x, h, c, params, r->n_params, &o, out);
    else if (r->type == GRU)
        status = tern_gru(x, h, params, r->n_params, &o, out);
    else if (r->o.nonlinearity == TERN_RNN_RELU)
        status = tern_rnn_relu(x, h, params, r->n_params, &o, out);
    else
        status = tern_rnn_tanh(x, h, params, r->n_params, &o, out);
    tern_free(params);
    return status;
}

/* Removes the batch dim of size 1 that an unbatched input got. */
static tern_tensor *without_batch(tern_tensor *x, int dim, bool batched)
{
    return batched || !x ? x : tern_squeeze_dim(x, dim);
}

static tern_status check_counts(const char *name, bool has_cell, int n, int k, int first)
{
    int states = has_cell ? 2 : 1;
    bool fits = n == first || n == first + states;
    if (fits && k >= 0 && k <= first + states)
        return TERN_OK;
    return tern_fail(
        TERN_ERR_ARGUMENT,
        "tern_nn_call: %s takes %s and %s or nothing, and gives them back, not %d in and "
        "%d out",
        name, first ? "x" : "a packed sequence", has_cell ? "h0 and c0" : "h0", n, k);
}

/* The inputs are (x, h0, c0), the outputs (output, h_n, c_n). States default to zeros. An unbatched
 * input gets a batch dim of size 1. */
static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const uint64_t failures = tern_failures();
    const rnn *r = tern_nn_data(self);
    bool lstm = r->type == LSTM;
    TERN_TRY(check_counts(tern_nn_name(self), lstm, n, k, 1));
    tern_tensor *x = in[0], *h = n > 1 ? in[1] : NULL, *c = n > 2 ? in[2] : NULL;
    if (!x)
        return tern_fail_argument_null("tern_nn_call", "x");
    bool batched = tern_dim(x) != 2;
    int batch = r->o.batch_first ? 0 : 1;
    if (!batched && ((h && tern_dim(h) != 2) || (c && tern_dim(c) != 2)))
        return tern_fail(
            TERN_ERR_SHAPE,
            "tern_nn_call: For unbatched 2-D input, %s should also be 2-D but got %d-D "
            "tensor",
            lstm ? "hx and cx" : "hx", tern_dim(c && tern_dim(c) != 2 ? c : h));
    if (batched && tern_dim(x) == 3 && ((h && tern_dim(h) != 3) || (c && tern_dim(c) != 3)))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_nn_call: For batched 3-D input, %s should also be 3-D but got %d-D "
                         "tensor",
                         lstm ? "hx and cx" : "hx", tern_dim(c && tern_dim(c) != 3 ? c : h));
    if (!batched) {
        x = tern_unsqueeze(x, batch);
        h = h ? tern_unsqueeze(h, 1) : NULL;
        c = c ? tern_unsqueeze(c, 1) : NULL;
    }
    tern_rnn_result result;
    TERN_TRY(run(self, x, h, c, NULL, 0, &result));
    tern_tensor *all[] = {without_batch(result.output, batch, batched),
                          without_batch(result.h_n, 1, batched),
                          without_batch(result.c_n, 1, batched)};
    for (int i = 0; i < k; i++)
        out[i] = all[i];
    return tern_failed_since(failures);
}

/* Returns states (layers, batch, width) with the batch reordered. */
static tern_tensor *ordered(tern_tensor *x, tern_tensor *order)
{
    return x && order ? tern_index_select(x, 1, order) : x;
}

static tern_status run_packed(tern_module *m, const tern_packed_sequence *x, tern_tensor *const *in,
                              int n, tern_rnn_result *result)
{
    int64_t steps = tern_numel(x->batch_sizes);
    int64_t *sizes = tern_alloc((size_t)(steps + 1) * sizeof *sizes);
    if (!sizes)
        return TERN_ERR_MEMORY;
    tern_status status = tern_copy_to_host(x->batch_sizes, sizes, (size_t)steps * sizeof *sizes);
    tern_tensor *h = n > 0 ? ordered(in[0], x->sorted_indices) : NULL;
    tern_tensor *c = n > 1 ? ordered(in[1], x->sorted_indices) : NULL;
    if (status == TERN_OK)
        status = run(m, x->data, h, c, sizes, steps, result);
    tern_free(sizes);
    return status;
}

/* A packed sequence is sorted by length, so the states are reordered before and after the call. */
tern_status tern_nn_call_packed(tern_module *m, const tern_packed_sequence *x,
                                tern_tensor *const *in, int n, tern_packed_sequence *output,
                                tern_tensor **out, int k)
{
    TERN_MODULE_GIVEN(m, "tern_nn_call_packed");
    const uint64_t failures = tern_failures();
    const char *function = "tern_nn_call_packed";
    if (!m || !x || !x->data || !x->batch_sizes || !output || (n > 0 && !in) || (k > 0 && !out))
        return tern_fail_argument_null(function, !m                ? "m"
                                                 : !output         ? "output"
                                                 : (n > 0 && !in)  ? "in"
                                                 : (k > 0 && !out) ? "out"
                                                                   : "x");
    if (m->call != call)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s takes no packed sequence", function,
                         tern_nn_name(m));
    const rnn *r = tern_nn_data(m);
    TERN_TRY(check_counts(tern_nn_name(m), r->type == LSTM, n, k, 0));
    tern_rnn_result result = {NULL};
    tern_status status = m->computes ? tern_nn_compute_members(m) : TERN_OK;
    if (status == TERN_OK)
        status = run_packed(m, x, in, n, &result);
    TERN_TRY(m->computes ? tern_nn_settle_members(m, status) : status);
    *output = *x;
    output->data = result.output;
    tern_tensor *states[] = {result.h_n, result.c_n};
    for (int i = 0; i < k; i++)
        out[i] = ordered(states[i], x->unsorted_indices);
    return tern_failed_since(failures);
}

/* ---- constructors ---------------------------------------------------------------------------- */

/* Adds a parameter "<part>_l<layer>[_reverse]", uniform in +-bound. */
static tern_status add_uniform(tern_module *m, const char *part, int layer, bool reverse,
                               tern_shape shape, double bound, const tern_rnn_options *o)
{
    char name[48];
    snprintf(name, sizeof name, "%s_l%d%s", part, layer, reverse ? "_reverse" : "");
    tern_tensor *x = tern_empty(shape, o->dtype, o->device);
    x = tern_numel(x) > 0 ? tern_nn_init_uniform_(x, -bound, bound) : x;
    return x ? tern_layer_parameter(m, name, x) : tern_last_status();
}

/* The weights of all gates are stacked: 4 hidden rows for an LSTM, 3 hidden rows for a GRU. Further
 * layers take the output of the layer below, with both directions if there are two. All parameters
 * are uniform in +-1/sqrt(hidden). */
static tern_status add_parameters(tern_module *m, rnn *r)
{
    const tern_rnn_options *o = &r->o;
    int64_t gates = tern_size_mul(r->type == LSTM ? 4 : r->type == GRU ? 3 : 1, r->hidden);
    int64_t out = o->proj_size ? o->proj_size : r->hidden;
    double bound = r->hidden > 0 ? 1 / sqrt((double)r->hidden) : 0;
    for (int i = 0; i < o->num_layers * (o->bidirectional ? 2 : 1); i++) {
        int layer = o->bidirectional ? i / 2 : i;
        bool reverse = o->bidirectional && i % 2;
        int64_t in = layer == 0 ? r->input : o->bidirectional ? tern_size_mul(2, out) : out;
        struct {
            const char *name;
            tern_shape shape;
            bool wanted;
        } parts[] = {{"weight_ih", TERN_SHAPE(gates, in), true},
                     {"weight_hh", TERN_SHAPE(gates, out), true},
                     {"bias_ih", TERN_SHAPE(gates), !o->no_bias},
                     {"bias_hh", TERN_SHAPE(gates), !o->no_bias},
                     {"weight_hr", TERN_SHAPE(out, r->hidden), o->proj_size > 0}};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            if (parts[k].wanted)
                TERN_TRY(add_uniform(m, parts[k].name, layer, reverse, parts[k].shape, bound, o));
    }
    return TERN_OK;
}

/* Sets the printed text, such as "10, 20, num_layers=2, batch_first=True", which omits defaults. */
static tern_status describe(tern_module *m, const rnn *r)
{
    tern_text text = {0};
    tern_text_add(&text, "%lld, %lld", (long long)r->input, (long long)r->hidden);
    if (r->o.proj_size)
        tern_text_add(&text, ", proj_size=%lld", (long long)r->o.proj_size);
    if (r->o.num_layers != 1)
        tern_text_add(&text, ", num_layers=%d", r->o.num_layers);
    if (r->o.no_bias)
        tern_text_add(&text, ", bias=False");
    if (r->o.batch_first)
        tern_text_add(&text, ", batch_first=True");
    if (r->o.dropout > 0)
        tern_text_add(&text, ", dropout=%s", TERN_NUMBER_TEXT(r->o.dropout));
    if (r->o.bidirectional)
        tern_text_add(&text, ", bidirectional=True");
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_nn_set_extra(m, "%s", text.data);
    tern_text_free(&text);
    return status;
}

static tern_status check_options(const rnn *r, const char *function)
{
    TERN_TRY(tern_check_enum(function, "nonlinearity", (int)r->o.nonlinearity, TERN_RNN_RELU,
                             "tern_rnn_nonlinearity"));
    if (!(r->o.dropout >= 0 && r->o.dropout <= 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: dropout should be a number in range [0, 1] representing the "
                         "probability of an element being zeroed (%s)",
                         function, TERN_NUMBER_TEXT(r->o.dropout));
    if (r->o.dropout > 0 && r->o.num_layers <= 1)
        tern_warn("dropout", function,
                  "dropout=%s drops nothing: it stands between layers, of which there is one",
                  TERN_NUMBER_TEXT(r->o.dropout));
    if (r->o.proj_size && r->type != LSTM)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: proj_size argument is only supported for LSTM, not RNN or GRU",
                         function);
    if (r->o.proj_size < 0)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: proj_size should be a positive integer or zero to disable "
                         "projections (%lld)",
                         function, (long long)r->o.proj_size);
    if (r->o.proj_size && r->o.proj_size >= r->hidden)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: proj_size has to be smaller than hidden_size (%lld, %lld)", function,
                         (long long)r->o.proj_size, (long long)r->hidden);
    if (r->o.num_layers < 1 || r->input < 1 || r->hidden < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: input_size, hidden_size and num_layers must be above 0 (%lld, %lld, "
                         "%d)",
                         function, (long long)r->input, (long long)r->hidden, r->o.num_layers);
    return TERN_OK;
}

static tern_module *make(rnn_type type, const char *name, const char *function, int64_t input,
                         int64_t hidden, const tern_rnn_options *options)
{
    rnn r = {.type = type, .input = input, .hidden = hidden};
    r.o = tern_read_rnn(options);
    if (check_options(&r, function) != TERN_OK)
        return NULL;
    int each = 2 + (r.o.no_bias ? 0 : 2) + (r.o.proj_size ? 1 : 0);
    if (__builtin_mul_overflow(r.o.num_layers, each * (r.o.bidirectional ? 2 : 1), &r.n_params))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: num_layers is too large (%d)", function,
                              r.o.num_layers);
    tern_module *m = tern_layer_loss(name, call, &r, sizeof r);
    tern_status status = m ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        TERN_SCOPE
            status = add_parameters(m, &r);
    if (status == TERN_OK)
        status = describe(m, &r);
    return tern_layer_if(m, status);
}

tern_module *tern_nn_rnn(int64_t input_size, int64_t hidden_size, const tern_rnn_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return make(RNN, "RNN", __func__, input_size, hidden_size, options);
}

tern_module *tern_nn_lstm(int64_t input_size, int64_t hidden_size, const tern_rnn_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return make(LSTM, "LSTM", __func__, input_size, hidden_size, options);
}

tern_module *tern_nn_gru(int64_t input_size, int64_t hidden_size, const tern_rnn_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return make(GRU, "GRU", __func__, input_size, hidden_size, options);
}
