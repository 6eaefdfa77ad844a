/* test_rnn.c -- recurrent networks: PyTorch's numbers and gradients, packed sequences, cells. */
#include "support.h"
#include <math.h>
#include <stdio.h>

static tern_tensor *weighted(tern_tensor *y)
{
    return tern_sum(tern_mul(y, test_golden_weight(y)));
}

/* A network of golden/rnn.py. */
typedef struct network {
    const char *name;
    tern_module *(*make)(int64_t, int64_t, const tern_rnn_options *);
    int64_t in, hidden;
    tern_rnn_options o;
    const int64_t *lengths;
    int n;
} network;

static const int64_t three[] = {2, 4, 1}, two[] = {2, 4};
#define DEEP   .num_layers = 2, .bidirectional = true, .batch_first = true, .no_bias = true
#define PACKED .bidirectional = true
static const network networks[] = {
    {"tanh", tern_nn_rnn, 3, 2, {0}, NULL, 0},
    {"tanh_deep", tern_nn_rnn, 2, 2, {DEEP}, NULL, 0},
    {"tanh_packed", tern_nn_rnn, 2, 3, {PACKED}, three, 3},
    {"relu", tern_nn_rnn, 3, 2, {.nonlinearity = TERN_RNN_RELU}, NULL, 0},
    {"relu_deep", tern_nn_rnn, 2, 2, {DEEP, .nonlinearity = TERN_RNN_RELU}, NULL, 0},
    {"relu_packed", tern_nn_rnn, 2, 3, {PACKED, .nonlinearity = TERN_RNN_RELU}, three, 3},
    {"gru", tern_nn_gru, 3, 2, {0}, NULL, 0},
    {"gru_deep", tern_nn_gru, 2, 2, {DEEP}, NULL, 0},
    {"gru_packed", tern_nn_gru, 2, 3, {PACKED}, three, 3},
    {"lstm", tern_nn_lstm, 3, 2, {0}, NULL, 0},
    {"lstm_deep", tern_nn_lstm, 2, 2, {DEEP}, NULL, 0},
    {"lstm_packed", tern_nn_lstm, 2, 3, {PACKED}, three, 3},
    {"projected",
     tern_nn_lstm,
     2,
     3,
     {.num_layers = 2, .bidirectional = true, .proj_size = 2},
     two,
     2},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* A golden file, and where in it and on which device a network is. */
typedef struct source {
    test_golden *file;
    const char *network, *device;
} source;

static tern_tensor *read_source(const source *s, const char *name, const char *suffix)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s%s", s->network, name, suffix);
    return test_golden_has(s->file, full) ? test_golden_tensor(s->file, full, s->device) : NULL;
}

static void compare(const source *s, const char *name, const char *suffix, const tern_tensor *x)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s%s on %s", s->network, name, suffix, s->device);
    source host = {s->file, s->network, "cpu"};
    test_close(x, read_source(&host, name, suffix), (test_tolerance){.abs = 1e-11, .rel = 1e-11},
               full, __FILE__, __LINE__);
}

static tern_status load(const char *path, tern_tensor *x, void *user)
{
    tern_tensor *value = read_source(user, path, "");
    assert_non_null(value);
    assert_non_null(tern_set_data_(x, value));
    return TERN_OK;
}

static tern_status compare_gradient(const char *path, tern_tensor *x, void *user)
{
    compare(user, path, ".d", tern_grad(x));
    return TERN_OK;
}

static void call_network(const network *n, tern_module *m, tern_tensor *const *in, int n_in,
                         tern_tensor **out, int k)
{
    if (!n->lengths) {
        assert_ok(tern_nn_call(m, in, n_in, out, k));
        return;
    }
    tern_packed_sequence packed, y;
    tern_tensor *lengths;
    assert_ok(tern_nn_pack_padded_sequence(
        in[0], n->lengths, n->n, &(tern_pack_sequence_options){.not_enforce_sorted = true},
        &packed));
    assert_ok(tern_nn_call_packed(m, &packed, in + 1, n_in - 1, &y, out + 1, k - 1));
    out[0] = tern_nn_pad_packed_sequence(&y, &(tern_pad_sequence_options){.padding_value = 0.5},
                                         &lengths);
    for (int i = 0; i < n->n; i++)
        assert_int_equal(tern_item_int(tern_select(lengths, 0, i)), n->lengths[i]);
}

static void networks_are_pytorch_s(void **state)
{
    (void)state;
    static const char *const inputs[] = {"x", "h0", "c0"}, *const results[] = {"y", "hn", "cn"};
    test_golden *file = test_golden_open("rnn");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < NETWORKS; i++)
        TERN_SCOPE {
            const network *n = &networks[i];
            source s = {file, n->name, device};
            tern_module *m = n->make(n->in, n->hidden, &n->o);
            int k = n->make == tern_nn_lstm ? 3 : 2, n_in = 0;
            tern_tensor *in[3], *out[3], *loss = NULL;
            assert_ok(tern_nn_each_parameter(m, load, &s));
            for (int j = 0; j < k; j++)
                if ((in[n_in] = read_source(&s, inputs[j], "")))
                    tern_requires_grad_(in[n_in++], true);
            call_network(n, m, in, n_in, out, k);
            for (int j = 0; j < k; j++) {
                compare(&s, results[j], "", out[j]);
                loss = loss ? tern_add(loss, weighted(out[j])) : weighted(out[j]);
            }
            assert_ok(tern_backward(loss));
            for (int j = 0; j < n_in; j++)
                compare(&s, inputs[j], ".d", tern_grad(in[j]));
            assert_ok(tern_nn_each_parameter(m, compare_gradient, &s));
            tern_nn_free(m);
        }
    test_golden_close(file);
}

/* ---- gradients of gradients ---------------------------------------------------------------- */

typedef struct checked {
    tern_module *(*make)(int64_t, int64_t, const tern_rnn_options *);
    int kind; /* 0 tanh, 1 gru, 2 lstm */
    bool packed, reverse;
} checked;

/* in: x, w_ih, w_hh, b_ih, b_hh, h, c */
static tern_tensor *one_layer(tern_tensor *const *in, void *user)
{
    static const int64_t sizes[] = {2, 2, 1};
    const checked *c = user;
    tern_tensor *params[8];
    for (int i = 0; i < 8; i++)
        params[i] = in[1 + i % 4];
    tern_rnn_function_options o = {.bidirectional = c->reverse};
    tern_tensor *x = in[0];
    if (c->packed) {
        o.batch_sizes = sizes;
        o.steps = 3;
    } else {
        x = tern_view(x, TERN_SHAPE(5, 1, 2));
    }
    tern_rnn_result r;
    int n = c->reverse ? 8 : 4;
    tern_status status = c->kind == 2   ? tern_lstm(x, in[5], in[6], params, n, &o, &r)
                         : c->kind == 1 ? tern_gru(x, in[5], params, n, &o, &r)
                                        : tern_rnn_tanh(x, in[5], params, n, &o, &r);
    if (status != TERN_OK)
        return NULL;
    tern_tensor *all[] = {tern_flatten(r.output, 0, -1), tern_flatten(r.h_n, 0, -1),
                          r.c_n ? tern_flatten(r.c_n, 0, -1) : NULL};
    return tern_cat(all, r.c_n ? 3 : 2, 0);
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 6; i++)
        TERN_SCOPE {
            checked c = {.kind = i % 3, .packed = i >= 3, .reverse = i >= 3};
            if (i != 2 && !test_thorough(device))
                continue;
            int64_t gates = c.kind == 2 ? 8 : c.kind == 1 ? 6 : 2;
            int64_t d = c.reverse ? 2 : 1, n = c.packed ? 2 : 1;
            tern_shape shapes[] = {TERN_SHAPE(5, 2),   TERN_SHAPE(gates, 2), TERN_SHAPE(gates, 2),
                                   TERN_SHAPE(gates),  TERN_SHAPE(gates),    TERN_SHAPE(d, n, 2),
                                   TERN_SHAPE(d, n, 2)};
            tern_tensor *in[7];
            for (int k = 0; k < 7; k++) {
                in[k] = test_uniform(device, TERN_F64, shapes[k], -1, 1, (uint64_t)(10 * i + k));
                tern_requires_grad_(in[k], true);
            }
            gradcheck(one_layer, in, c.kind == 2 ? 7 : 6, .user = &c, .second = true);
        }
}

/* ---- types and sizes ----------------------------------------------------------------------- */

/* Enough rows and columns for vectors and products of every way, against f64. */
static void networks_in_every_type_are_those_of_float64(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    static tern_module *(*const makes[])(int64_t, int64_t, const tern_rnn_options *) = {
        tern_nn_lstm, tern_nn_gru, tern_nn_rnn};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 9; i++)
        TERN_SCOPE {
            tern_dtype dtype = dtypes[i / 3];
            if (i % 4 != 0 && !test_thorough(device))
                continue;
            tern_tensor *results[2];
            tern_manual_seed(3);
            tern_module *m =
                makes[i % 3](37, 50, &(tern_rnn_options){.device = device, .bidirectional = true});
            tern_nn_to_dtype(m, dtype);
            for (int wide = 0; wide < 2; wide++) {
                const char *where = wide ? "cpu" : device; /* which has float64 */
                if (wide)
                    tern_nn_to_dtype(tern_nn_to(m, "cpu"), TERN_F64);
                tern_tensor *x = test_uniform(where, dtype, TERN_SHAPE(6, 19, 37), -1, 1, 1);
                x = tern_requires_grad_(tern_to_dtype(x, wide ? TERN_F64 : dtype), true);
                tern_tensor *y = tern_nn_forward(m, x);
                assert_ok(tern_nn_zero_grad(m));
                assert_ok(tern_backward(tern_mean(tern_square(y))));
                tern_tensor *w = tern_grad(tern_nn_parameter(m, "weight_hh_l0_reverse"));
                tern_tensor *all[] = {
                    tern_flatten(y, 0, -1),
                    tern_mul_scalar(tern_flatten(tern_grad(x), 0, -1), TERN_SCALAR(1000)),
                    tern_mul_scalar(tern_flatten(w, 0, -1), TERN_SCALAR(10))};
                results[wide] = tern_to_dtype(tern_to(tern_cat(all, 3, 0), "cpu"), TERN_F64);
            }
            double bound = i < 3 ? 1e-5 : i < 6 ? 1e-2 : 6e-2;
            assert_close(results[0], results[1], .abs = bound, .rel = bound);
            tern_nn_free(m);
        }
}

/* ---- cells --------------------------------------------------------------------------------- */

static tern_status copy_parameter(const char *path, tern_tensor *x, void *user)
{
    char name[32];
    snprintf(name, sizeof name, "%s_l0", path);
    assert_non_null(tern_set_data_(x, tern_nn_parameter(user, name)));
    return TERN_OK;
}

static void cells_are_networks_of_one_step(void **state)
{
    (void)state;
    static tern_module *(*const nets[])(int64_t, int64_t, const tern_rnn_options *) = {
        tern_nn_rnn, tern_nn_rnn, tern_nn_gru, tern_nn_lstm};
    static tern_module *(*const cells[])(int64_t, int64_t, const tern_rnn_options *) = {
        tern_nn_rnn_cell, tern_nn_rnn_cell, tern_nn_gru_cell, tern_nn_lstm_cell};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            tern_rnn_options o = {.nonlinearity = i == 1 ? TERN_RNN_RELU : TERN_RNN_TANH,
                                  .device = device};
            tern_module *net = nets[i](3, 4, &o), *cell = cells[i](3, 4, &o);
            int k = i == 3 ? 2 : 1;
            assert_ok(tern_nn_each_parameter(cell, copy_parameter, net));
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 2, 3), -1, 1, 5);
            tern_tensor *out[3], *h[2], *in[3] = {tern_select(x, 0, 0)};
            assert_ok(tern_nn_call(cell, in, 1, in + 1, k));
            in[0] = tern_select(x, 0, 1);
            assert_ok(tern_nn_call(cell, in, 1 + k, h, k));
            assert_ok(tern_nn_call(net, &x, 1, out, 1 + k));
            for (int j = 0; j < k; j++)
                assert_close(h[j], tern_squeeze_dim(out[1 + j], 0), .abs = 1e-6);
            tern_tensor *row = tern_select(x, 1, 1), *single, *first = tern_select(x, 1, 0);
            assert_ok(tern_nn_call(net, &row, 1, &single, 1));
            assert_shape(single, 2, 4);
            assert_close(single, tern_select(out[0], 1, 1), .abs = 1e-6);
            first = tern_select(first, 0, 0);
            assert_ok(tern_nn_call(cell, &first, 1, &single, 1));
            assert_shape(single, 4);
            tern_nn_free(net);
            tern_nn_free(cell);
        }
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void sequences_are_packed_as_in_pytorch(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_view(tern_arange(0, 8, 1, TERN_F32, device), TERN_SHAPE(4, 2));
        tern_packed_sequence p;
        tern_requires_grad_(x, true);
        assert_ok(tern_nn_pack_padded_sequence(
            x, two, 2, &(tern_pack_sequence_options){.not_enforce_sorted = true}, &p));
        assert_values(p.data, 1, 0, 3, 2, 5, 7);
        assert_values(p.batch_sizes, 2, 2, 1, 1);
        assert_values(p.sorted_indices, 1, 0);
        assert_values(p.unsorted_indices, 1, 0);
        tern_tensor *lengths;
        tern_tensor *y = tern_nn_pad_packed_sequence(
            &p, &(tern_pad_sequence_options){.padding_value = -1, .total_length = 5}, &lengths);
        assert_values(y, 0, 1, 2, 3, -1, 5, -1, 7, -1, -1);
        assert_values(lengths, 2, 4);
        assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
        assert_values(tern_grad(x), 0, 2, 4, 6, 0, 10, 0, 14);
        static const int64_t wrong[][2] = {{2, 2}, {1, 2}, {0, 0}, {-1, 5}, {5, -1}};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            tern_packed_sequence q = p;
            q.batch_sizes = tern_from_data(wrong[i], TERN_SHAPE(2), TERN_I64, "cpu");
            assert_null(tern_nn_pad_packed_sequence(&q, NULL, NULL));
            assert_true(tern_last_status() != TERN_OK);
            tern_clear_error();
        }
        tern_packed_sequence none = p;
        none.batch_sizes = tern_zeros(TERN_SHAPE(0), TERN_I64, "cpu");
        assert_null(tern_nn_pad_packed_sequence(&none, NULL, NULL));
        assert_error(TERN_ERR_ARGUMENT, "batch_sizes of one step or more");
        tern_tensor *list[] = {tern_arange(0, 3, 1, TERN_F32, device),
                               tern_arange(5, 6, 1, TERN_F32, device)};
        assert_values(
            tern_nn_pad_sequence(list, 2, &(tern_pad_sequence_options){.batch_first = true}), 0, 1,
            2, 5, 0, 0);
        assert_ok(tern_nn_pack_sequence(list, 2, NULL, &p));
        assert_values(p.data, 0, 5, 1, 2);
        assert_null(p.sorted_indices);
    }
}

static void modules_print_as_in_pytorch(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(
        tern_nn_rnn(3, 4,
                    &(tern_rnn_options){.num_layers = 2,
                                        .no_bias = true,
                                        .batch_first = true,
                                        .dropout = 0.5,
                                        .bidirectional = true}),
        tern_nn_lstm(3, 4, &(tern_rnn_options){.proj_size = 2}), tern_nn_gru(3, 4, NULL),
        tern_nn_rnn_cell(3, 4, &(tern_rnn_options){.nonlinearity = TERN_RNN_RELU}),
        tern_nn_lstm_cell(3, 4, &(tern_rnn_options){.no_bias = true}));
    char *text = tern_nn_to_text(m);
    assert_string_equal(text, "Sequential(\n"
                              "  (0): RNN(3, 4, num_layers=2, bias=False, batch_first=True, "
                              "dropout=0.5, bidirectional=True)\n"
                              "  (1): LSTM(3, 4, proj_size=2)\n"
                              "  (2): GRU(3, 4)\n"
                              "  (3): RNNCell(3, 4, nonlinearity=relu)\n"
                              "  (4): LSTMCell(3, 4, bias=False)\n"
                              ")");
    tern_free_text(text);
    tern_nn_free(m);
}

static void dropout_is_between_layers_in_training(void **state)
{
    (void)state;
    tern_module *m =
        tern_nn_gru(3, 4, &(tern_rnn_options){.num_layers = 2, .dropout = 1, .no_bias = true});
    tern_tensor *x = tern_ones(TERN_SHAPE(2, 1, 3), TERN_F32, NULL);
    assert_true(tern_item(tern_sum(tern_abs(tern_nn_forward(m, x)))) == 0);
    tern_nn_eval(m);
    assert_true(tern_item(tern_sum(tern_abs(tern_nn_forward(m, x)))) > 0);
    tern_nn_free(m);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tern_module *lstm = tern_nn_lstm(3, 4, NULL), *gru = tern_nn_gru(3, 4, NULL);
    tern_module *cell = tern_nn_lstm_cell(3, 4, NULL);
    tern_tensor *out[3], *x = tern_zeros(TERN_SHAPE(2, 2, 3), TERN_F32, NULL);
    tern_tensor *in[] = {x, tern_zeros(TERN_SHAPE(1, 2, 4), TERN_F32, NULL),
                         tern_zeros(TERN_SHAPE(1, 3, 4), TERN_F32, NULL)};
    tern_packed_sequence p;
    assert_null(tern_nn_forward(lstm, tern_zeros(TERN_SHAPE(2, 2, 4), TERN_F32, NULL)));
    assert_error(TERN_ERR_SHAPE, "input.size(-1) must be equal to input_size. Expected 3, got 4");
    assert_null(tern_nn_forward(lstm, tern_zeros(TERN_SHAPE(3), TERN_F32, NULL)));
    assert_error(TERN_ERR_SHAPE, "input must have 3 dimensions, got 1");
    assert_null(tern_nn_forward(lstm, tern_zeros(TERN_SHAPE(0, 2, 3), TERN_F32, NULL)));
    assert_error(TERN_ERR_SHAPE, "Expected sequence length to be larger than 0 in RNN");
    assert_int_equal(tern_nn_call(lstm, in, 3, out, 3), TERN_ERR_SHAPE);
    assert_error(TERN_ERR_SHAPE, "Expected hidden[1] size (1, 2, 4), got [1, 3, 4]");
    in[1] = in[2];
    assert_int_equal(tern_nn_call(gru, in, 2, out, 2), TERN_ERR_SHAPE);
    assert_error(TERN_ERR_SHAPE, "Expected hidden size (1, 2, 4), got [1, 3, 4]");
    assert_int_equal(tern_nn_call(lstm, in, 2, out, 3), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "LSTM takes x and h0 and c0 or nothing");
    assert_null(tern_nn_forward(gru, tern_zeros(TERN_SHAPE(2, 2, 3), TERN_F64, NULL)));
    assert_error(TERN_ERR_DTYPE, "float64 and float32");
    assert_null(tern_nn_forward(cell, tern_zeros(TERN_SHAPE(2, 4), TERN_F32, NULL)));
    assert_error(TERN_ERR_SHAPE, "input has inconsistent input_size: got 4 expected 3");
    assert_null(tern_nn_forward(cell, x));
    assert_error(TERN_ERR_SHAPE, "Expected input to be 1-D or 2-D but received 3-D tensor");
    assert_null(tern_nn_lstm(3, 4, &(tern_rnn_options){.proj_size = 4}));
    assert_error(TERN_ERR_ARGUMENT, "proj_size has to be smaller than hidden_size");
    assert_null(tern_nn_gru(3, 4, &(tern_rnn_options){.dropout = 2}));
    assert_error(TERN_ERR_ARGUMENT, "dropout should be a number in range [0, 1]");
    assert_int_equal(tern_nn_pack_padded_sequence(x, two, 2, NULL, &p), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "a length is 4, the input has 2 steps");
    assert_int_equal(tern_nn_pack_padded_sequence(x, (int64_t[]){1, 2}, 2, NULL, &p),
                     TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "`lengths` array must be sorted in decreasing order");
    assert_int_equal(tern_nn_pack_padded_sequence(x, two, 1, NULL, &p), TERN_ERR_SHAPE);
    assert_error(TERN_ERR_SHAPE, "Expected `len(lengths)` to be equal to batch_size");
    tern_nn_free(lstm);
    tern_nn_free(gru);
    tern_nn_free(cell);
}

static const struct CMUnitTest tests[] = {
    TEST(networks_are_pytorch_s),
    TEST(gradients_are_the_differences),
    TEST(networks_in_every_type_are_those_of_float64),
    TEST(cells_are_networks_of_one_step),
    TEST(sequences_are_packed_as_in_pytorch),
    TEST(modules_print_as_in_pytorch),
    TEST(dropout_is_between_layers_in_training),
    TEST(what_does_not_fit_is_refused),
};
TEST_MAIN(tests)
