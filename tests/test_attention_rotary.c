/* test_attention_rotary.c -- places in a sequence: rotary embedding and its tables,
 * encodings that are added. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

enum { N = 2, T = 3, D = 6 };

/* Element (i, j) of what row i, of place p, becomes; the formula itself. */
static double turned(const double *row, int j, int p, int pairs, bool interleaved)
{
    if (j >= 2 * pairs)
        return row[j];
    int k = interleaved ? j / 2 : j % pairs;
    bool second = interleaved ? j % 2 : j >= pairs;
    double a = row[interleaved ? 2 * k : k], b = row[interleaved ? 2 * k + 1 : k + pairs];
    double angle = p * pow(10000, -(double)k / pairs);
    return second ? a * sin(angle) + b * cos(angle) : a * cos(angle) - b * sin(angle);
}

static void rows_are_turned_by_their_place(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 16; i++)
        TERN_SCOPE {
            tern_dtype dtype = dtypes[i / 4];
            if (!test_has(device, dtype) || (i >= 4 && !test_thorough(device)))
                continue;
            int pairs = i & 2 ? 3 : 2, offset = 5;
            tern_rotary_embedding_function_options o = {.interleaved = i & 1, .offset = offset};
            tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(N, T, D), -1, 1, 7), *c, *s;
            assert_ok(tern_rotary_tables(8, 2 * pairs, 0, dtype == TERN_F64 ? TERN_F64 : 0, device,
                                         &c, &s));
            double *in = test_read(x), wanted[N * T * D];
            for (int k = 0; k < N * T * D; k++)
                wanted[k] = turned(in + k / D * D, k % D, k / D % T + offset, pairs, i & 1);
            double bound = dtype == TERN_F64 ? 1e-14 : dtype == TERN_F32 ? 1e-6 : 1e-2;
            tern_tensor *y = tern_rotary_embedding(x, c, s, &o);
            assert_int_equal(tern_dtype_of(y), dtype);
            test_values(y, wanted, N * T * D, (test_tolerance){.abs = bound}, "rotary", __FILE__,
                        __LINE__);
            free(in);
        }
}

/* Tables of its own for each item: as that item alone, offset by as many places. */
static void items_are_turned_by_tables_of_their_own(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 3, T, D), -1, 1, 9);
        tern_tensor *c, *s, *own[2][2], *alone[2];
        assert_ok(tern_rotary_tables(8, 4, 0, 0, device, &c, &s));
        for (int i = 0; i < 2; i++) {
            own[0][i] = tern_narrow(c, 0, 1 + 3 * i, T);
            own[1][i] = tern_narrow(s, 0, 1 + 3 * i, T);
            alone[i] = tern_rotary_embedding(
                tern_select(x, 0, i), c, s,
                &(tern_rotary_embedding_function_options){.offset = 1 + 3 * i});
        }
        c = tern_stack(own[0], 2, 0);
        s = tern_stack(own[1], 2, 0);
        assert_same(tern_rotary_embedding(x, c, s, NULL), tern_stack(alone, 2, 0));
        assert_same(tern_rotary_embedding(tern_narrow(x, 0, 0, 1), tern_narrow(c, 0, 0, 1),
                                          tern_narrow(s, 0, 0, 1), NULL),
                    tern_unsqueeze(alone[0], 0));
        assert_null(tern_rotary_embedding(tern_cat((tern_tensor *[]){x, x}, 2, 0), c, s, NULL));
        assert_error(TERN_ERR_SHAPE, "tables (N, places, pairs)");
    }
}

static tern_tensor *rotate(tern_tensor *const *in, void *user)
{
    tern_tensor *c, *s;
    assert_ok(tern_rotary_tables(T, 4, 100, TERN_F64, tern_device(in[0]), &c, &s));
    return tern_rotary_embedding(tern_transpose(in[0], 1, 2), c, s, user);
}

static void gradients_turn_back(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            tern_rotary_embedding_function_options o = {.interleaved = i};
            tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(1, T, 2, D), -1, 1, 3);
            tern_requires_grad_(x, true);
            gradcheck(rotate, &x, 1, .user = &o, .second = true);
        }
}

/* A query's product with a key tells how far apart they are, and no more. */
static void products_depend_on_the_distance(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_rotary_embedding(
            8, &(tern_rotary_embedding_options){.max_len = 16, .device = device});
        tern_tensor *q = test_uniform(device, TERN_F32, TERN_SHAPE(1, 8), -1, 1, 1);
        tern_tensor *k = test_uniform(device, TERN_F32, TERN_SHAPE(1, 8), -1, 1, 2);
        tern_tensor *in[] = {tern_expand(q, TERN_SHAPE(16, 8)), tern_expand(k, TERN_SHAPE(16, 8))},
                    *out[2];
        assert_ok(tern_nn_call(m, in, 2, out, 2));
        tern_tensor *products = tern_matmul(out[0], tern_t(out[1]));
        tern_tensor *a = tern_diagonal(products, 3, 0, 1);
        assert_close(a, tern_expand(tern_narrow(a, 0, 0, 1), TERN_SHAPE(13)), .abs = 1e-5);
        assert_same(tern_select(out[0], 0, 0), tern_select(q, 0, 0));
        char *text = tern_nn_to_text(m);
        assert_string_equal(text,
                            "RotaryEmbedding(8, max_len=16, base=10000.0, interleaved=False)");
        tern_free_text(text);
        tern_nn_free(m);
    }
}

static void encodings_are_added(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_position_encoding_options o = {.max_len = 5, .device = device};
        tern_module *m = tern_nn_sinusoidal_encoding(4, &o);
        tern_tensor *x = tern_zeros(TERN_SHAPE(2, 1, 4), TERN_F32, device);
        assert_values_close(tern_nn_forward(m, x), 1e-7, 0, 1, 0, 1, sin(1), cos(1), sin(0.01),
                            cos(0.01));
        assert_shape(tern_nn_buffer(m, "pe"), 5, 4);
        tern_nn_free(m);
        o.batch_first = true;
        m = tern_nn_learned_encoding(4, &o);
        x = tern_zeros(TERN_SHAPE(3, 2, 4), TERN_F32, device);
        tern_tensor *y = tern_nn_forward(m, x), *weight = tern_nn_parameter(m, "weight");
        assert_same(tern_select(y, 0, 2), tern_narrow(weight, 0, 0, 2));
        assert_same(tern_nn_forward(m, tern_select(x, 0, 0)), tern_narrow(weight, 0, 0, 2));
        assert_ok(tern_backward(tern_sum(y)));
        assert_values(tern_sum_dim(tern_grad(weight), TERN_DIMS(1), false), 12, 12, 0, 0, 0);
        tern_nn_free(m);
    }
}

static void mistakes_are_told(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(4, 6), 0, NULL), *c, *s;
        assert_int_equal(tern_rotary_tables(4, 5, 0, 0, NULL, &c, &s), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "dim must be even, got 5");
        assert_ok(tern_rotary_tables(4, 4, 0, 0, NULL, &c, &s));
        assert_null(
            tern_rotary_embedding(x, c, s, &(tern_rotary_embedding_function_options){.offset = 1}));
        assert_error(TERN_ERR_SHAPE, "places 1 to 5 are not in tables of 4 places");
        assert_null(tern_rotary_embedding(tern_narrow(x, 1, 0, 3), c, s, NULL));
        assert_error(TERN_ERR_SHAPE, "not [4, 3], [4, 2] and [4, 2]");
        assert_null(tern_rotary_embedding(tern_to_dtype(x, TERN_I64), c, s, NULL));
        assert_error(TERN_ERR_DTYPE, "not implemented for int64");
        assert_null(tern_rotary_embedding(x, tern_requires_grad_(tern_clone(c), true), s, NULL));
        assert_error(TERN_ERR_UNSUPPORTED, "tables without gradients");
        tern_module *m =
            tern_nn_sinusoidal_encoding(6, &(tern_position_encoding_options){.max_len = 3});
        assert_null(tern_nn_forward(m, x));
        assert_error(TERN_ERR_SHAPE, "has 3 places, the sequence 4");
        assert_null(tern_nn_forward(m, tern_narrow(x, 1, 0, 5)));
        assert_error(TERN_ERR_SHAPE, "not 2 dims, the last of 5");
        tern_nn_free(m);
        assert_null(tern_nn_sinusoidal_encoding(0, NULL));
        assert_error(TERN_ERR_ARGUMENT, "must be above 0");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(rows_are_turned_by_their_place),
    TEST(items_are_turned_by_tables_of_their_own),
    TEST(gradients_turn_back),
    TEST(products_depend_on_the_distance),
    TEST(encodings_are_added),
    TEST(mistakes_are_told),
};

TEST_MAIN(tests)
