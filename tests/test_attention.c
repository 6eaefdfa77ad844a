/* test_attention.c -- scaled dot product attention against its definition in double precision. */
#include "tensor/fields.h"
#include "support.h"
#include <math.h>
#include <stdlib.h>

enum { E = 5, EV = 2, STACK = 6 };
static int L = 3, S = 4;

typedef enum mask_kind { NO_MASK, CAUSAL, BOOLS, NUMBERS } mask_kind;

/* Whether query i of matrix c may look at key j, and what is added to the score if it may. */
static bool looks(mask_kind kind, int i, int j)
{
    return kind == CAUSAL ? j <= i : kind == BOOLS ? (i * 5 + j * 3) % 4 != 0 || j == i : true;
}

static double added(mask_kind kind, int i, int j)
{
    return kind == NUMBERS ? 0.25 * i - 0.5 * j : 0;
}

/* out (STACK, L, EV): softmax of the scores in the textbook's way. */
static void attend(const double *q, const double *k, const double *v, double scale, mask_kind kind,
                   double *out)
{
    for (int c = 0; c < STACK; c++, q += L * E, k += S * E, v += S * EV)
        for (int i = 0; i < L; i++) {
            double weight[S], total = 0;
            for (int j = 0; j < S; j++) {
                double score = 0;
                for (int e = 0; e < E; e++)
                    score += q[i * E + e] * k[j * E + e];
                weight[j] = looks(kind, i, j) ? exp(score * scale + added(kind, i, j)) : 0;
                total += weight[j];
            }
            for (int e = 0; e < EV; e++, out++) {
                *out = 0;
                for (int j = 0; j < S; j++)
                    *out += weight[j] / total * v[j * EV + e];
            }
        }
}

static tern_tensor *mask_of(mask_kind kind, tern_dtype dtype, const char *device)
{
    double values[L * S];
    for (int i = 0; i < L; i++)
        for (int j = 0; j < S; j++)
            values[i * S + j] = kind == BOOLS ? looks(kind, i, j) : added(kind, i, j);
    return test_tensor(device, kind == BOOLS ? TERN_BOOL : dtype, TERN_SHAPE(L, S), values);
}

static tern_scaled_dot_product_attention_options options_of(mask_kind kind, double scale,
                                                            tern_dtype dtype, const char *device)
{
    return (tern_scaled_dot_product_attention_options){
        .attn_mask = kind == BOOLS || kind == NUMBERS ? mask_of(kind, dtype, device) : NULL,
        .is_causal = kind == CAUSAL,
        .scale = scale};
}

typedef struct parts {
    tern_tensor *q, *k, *v;
} parts;

static parts make(const char *device, tern_dtype dtype)
{
    return (parts){test_uniform(device, dtype, TERN_SHAPE(2, 3, L, E), -2, 2, 1),
                   test_uniform(device, dtype, TERN_SHAPE(2, 3, S, E), -2, 2, 2),
                   test_uniform(device, dtype, TERN_SHAPE(2, 3, S, EV), -2, 2, 3)};
}

static void check(const char *device, tern_dtype dtype, mask_kind kind, double scale)
{
    double expected[STACK * L * EV], tolerance = dtype == TERN_F32 ? 1e-5 : 2e-2;
    parts p = make(device, dtype);
    tern_scaled_dot_product_attention_options options = options_of(kind, scale, dtype, device);
    double *q = test_read(p.q), *k = test_read(p.k), *v = test_read(p.v);
    double used = scale == 0 ? 1 / sqrt(E) : scale == TERN_ZERO ? 0 : scale;
    attend(q, k, v, used, kind, expected);
    tern_tensor *out = tern_scaled_dot_product_attention(p.q, p.k, p.v, &options);
    assert_close(out, test_tensor(device, dtype, TERN_SHAPE(2, 3, L, EV), expected),
                 .abs = tolerance, .rel = tolerance);
    free(q);
    free(k);
    free(v);
}

static void every_mask_and_scale_is_the_textbooks(void **state)
{
    (void)state;
    static const double scales[] = {0, 0.3, TERN_ZERO};
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (mask_kind kind = NO_MASK; kind <= NUMBERS; kind++)
        for (int s = 0; s < 3; s++)
            for (int d = 0; d < 3; d++)
                TERN_SCOPE {
                    check(device, dtypes[d], kind, scales[s]);
                    if (d == 0)
                        continue;
                    L = 48, S = 64; /* halves, where they are not widened */
                    check(device, dtypes[d], kind, scales[s]);
                    L = 3, S = 4;
                }
}

/* Scores up to 60, of which a bfloat16 knows no quarters: the weights are those of float32 all the
 * same, in both forms, and their gradients. */
static void scores_of_halves_are_not_rounded(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F16, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int d = 0; d < 2; d++)
        for (int dims = 3; dims <= 5; dims += 2)
            TERN_SCOPE {
                tern_tensor *x[2][3], *y[2];
                tern_shape shape = dims == 3 ? TERN_SHAPE(3, 80, 16) : TERN_SHAPE(1, 1, 2, 8, 16);
                for (int i = 0; i < 3; i++) {
                    tern_tensor *exact =
                        test_uniform(device, dtypes[d], shape, -4, 4, (uint64_t)i + 7);
                    x[0][i] = tern_requires_grad_(exact, true);
                    x[1][i] =
                        tern_requires_grad_(tern_to_dtype(tern_detach(exact), TERN_F32), true);
                }
                for (int k = 0; k < 2; k++) {
                    y[k] = tern_scaled_dot_product_attention(x[k][0], x[k][1], x[k][2], NULL);
                    assert_ok(tern_backward(tern_sum(tern_to_dtype(y[k], TERN_F32))));
                }
                double step = dtypes[d] == TERN_F16 ? 0x1p-10 : 0x1p-7;
                assert_close(tern_to_dtype(y[0], TERN_F32), y[1], .abs = 2 * step, .rel = step);
                assert_close(tern_to_dtype(tern_grad(x[0][2]), TERN_F32), tern_grad(x[1][2]),
                             .abs = step, .rel = step);
            }
}

static tern_tensor *call(tern_tensor *const *in, void *user)
{
    return tern_scaled_dot_product_attention(in[0], in[1], in[2], user);
}

static void first_and_second_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (mask_kind kind = NO_MASK; kind <= NUMBERS; kind++)
        TERN_SCOPE {
            tern_device_info info = {0};
            assert_ok(tern_device_get_info(device, &info));
            tern_dtype dtype = info.has_f64 ? TERN_F64 : TERN_F32;
            tern_scaled_dot_product_attention_options options = options_of(kind, 0, dtype, device);
            tern_shape shapes[] = {TERN_SHAPE(2, L, E), TERN_SHAPE(2, S, E), TERN_SHAPE(2, S, EV)};
            tern_tensor *in[3];
            for (int i = 0; i < 3; i++)
                in[i] = tern_requires_grad_(
                    test_uniform(device, dtype, shapes[i], -1, 1, (uint64_t)i + 5), true);
            gradcheck(call, in, 3, .user = &options, .second = kind == CAUSAL);
        }
}

/* Five dims take the form of other operations, three the one in blocks; here it needs several. In the form for GPUs blocks
 * have 32 rows and columns, and a quarter of these sizes has several of them, and edges. */
enum { LONG = 700, LONGER = 800, STACKS = 2 };

static int64_t shrunk_by(const char *device)
{
    return test_pocl_gpu_form(device) && !test_thorough(device) ? 4 : 1;
}

static tern_tensor *long_leaf(const char *device, int64_t rows, int64_t width, int dims,
                              uint64_t seed)
{
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(STACKS, rows, width), -1, 1, seed);
    if (dims == 5)
        x = tern_reshape(x, TERN_SHAPE(1, 1, STACKS, rows, width));
    return tern_requires_grad_(x, true);
}

static void long_sequences_go_block_by_block(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (mask_kind kind = NO_MASK; kind <= NUMBERS; kind++)
        TERN_SCOPE {
            tern_tensor *x[2][3], *y[2];
            const int64_t shorter = LONG / shrunk_by(device), longer = LONGER / shrunk_by(device);
            int64_t queries = kind == BOOLS ? longer : shorter,
                    keys = kind == BOOLS ? shorter : longer;
            tern_tensor *numbers =
                test_uniform(device, TERN_F32, TERN_SHAPE(queries, keys), -1, 1, 9);
            tern_scaled_dot_product_attention_options o = {.is_causal = kind == CAUSAL};
            if (kind == NUMBERS)
                o.attn_mask = numbers;
            if (kind == BOOLS)
                o.attn_mask = tern_gt_scalar(numbers, tern_scalar_real(-0.5));
            for (int form = 0; form < 2; form++) {
                int dims = form ? 5 : 3;
                x[form][0] = long_leaf(device, queries, 4, dims, 1);
                x[form][1] = long_leaf(device, keys, 4, dims, 2);
                x[form][2] = long_leaf(device, keys, 3, dims, 3);
                y[form] = tern_scaled_dot_product_attention(x[form][0], x[form][1], x[form][2], &o);
                assert_ok(tern_backward(tern_sum(tern_mul(y[form], y[form]))));
            }
            assert_close(y[0], tern_reshape(y[1], TERN_SHAPE(STACKS, queries, 3)), .abs = 1e-5);
            for (int i = 0; i < 3; i++)
                assert_close(tern_grad(x[0][i]),
                             tern_reshape(tern_grad(x[1][i]),
                                          TERN_SHAPE(STACKS, i ? keys : queries, i == 2 ? 3 : 4)),
                             .abs = 2e-4, .rel = 1e-3);
        }
}

/* A mask of bools that is 1 where `low <= query - key <= high`; of more keys than `high` sees none. */
static tern_tensor *band(const char *device, int64_t queries, int64_t keys, int64_t low,
                         int64_t high)
{
    tern_tensor *i =
        tern_reshape(tern_arange(0, (double)queries, 1, TERN_I64, device), TERN_SHAPE(queries, 1));
    tern_tensor *apart = tern_sub(i, tern_arange(0, (double)keys, 1, TERN_I64, device));
    return tern_logical_and(tern_ge_scalar(apart, tern_scalar_int(low)),
                            tern_le_scalar(apart, tern_scalar_int(high)));
}

static void masks_that_hide_whole_blocks_of_keys(void **state)
{
    (void)state;
    static const struct {
        int64_t heads, queries, keys, width, value_width;
        int64_t low, high; /* a band; low = high + 1: causal */
        bool packed, padded;
    } cases[] = {
        {2, 530, 530, 64, 64, 0, 40, true, false},     /* a sliding window, views of packed heads */
        {2, 900, 300, 20, 7, 100, 2000, false, false}, /* the first queries see no key */
        {1, 1100, 530, 33, 130, 1, 0, false, false},
        {3, 400, 517, 5, 40, -3, 2000, false, true}, /* the keys of each batch end elsewhere */
    };
    FOR_EACH_DEVICE(device)
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        TERN_SCOPE {
            const int64_t h = cases[c].heads, by = shrunk_by(device);
            const int64_t sizes[] = {cases[c].queries / by, cases[c].keys / by, cases[c].keys / by};
            const int64_t widths[] = {cases[c].width, cases[c].width, cases[c].value_width};
            tern_tensor *x[3], *five[3];
            for (int i = 0; i < 3; i++) {
                x[i] = test_uniform(device, TERN_F32, TERN_SHAPE(2, sizes[i], h, widths[i]), -1, 1,
                                    (uint64_t)i + 1);
                x[i] = tern_transpose(x[i], 1, 2);
                if (!cases[c].packed)
                    x[i] = tern_contiguous(x[i]);
                five[i] = tern_reshape(x[i], TERN_SHAPE(1, 2, h, sizes[i], widths[i]));
            }
            tern_scaled_dot_product_attention_options o = {.is_causal =
                                                               cases[c].low > cases[c].high};
            if (!o.is_causal)
                o.attn_mask =
                    band(device, sizes[0], sizes[1], cases[c].low / by, cases[c].high / by);
            if (cases[c].padded)
                o.attn_mask = tern_reshape(
                    tern_cat((tern_tensor *[]){tern_narrow(o.attn_mask, 0, sizes[0] / 4, 1),
                                               tern_narrow(o.attn_mask, 0, sizes[0] - 1, 1)},
                             2, 0),
                    TERN_SHAPE(2, 1, 1, sizes[1]));
            tern_tensor *y = tern_scaled_dot_product_attention(x[0], x[1], x[2], &o);
            tern_tensor *composed =
                tern_scaled_dot_product_attention(five[0], five[1], five[2], &o);
            assert_close(y, tern_reshape(composed, tern_shape_of(y)), .abs = 2e-6, .rel = 1e-5);
        }
}

static uint64_t peak_of(const char *device, int64_t length)
{
    tern_memory_stats before, after;
    assert_ok(tern_empty_cache(device));
    assert_ok(tern_reset_peak_memory_stats(device));
    assert_ok(tern_memory_get_stats(device, &before));
    TERN_SCOPE {
        tern_tensor *x =
            tern_requires_grad_(tern_ones(TERN_SHAPE(1, length, 2), TERN_F32, device), true);
        tern_tensor *y = tern_scaled_dot_product_attention(x, x, x, NULL);
        assert_ok(tern_backward(tern_sum(y)));
    }
    assert_ok(tern_memory_get_stats(device, &after));
    return after.allocated_peak - before.allocated;
}

static void memory_grows_with_the_length_and_not_with_its_square(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        if (strncmp(device, "cuda", 4) == 0)
            continue; /* a block is 128 MB there: longer than a test should be */
        /* The form for GPUs is slow on a processor. */
        const int64_t length = 4096 / shrunk_by(device);
        const uint64_t scores = (uint64_t)(length * length) * sizeof(float);
        uint64_t half = peak_of(device, length / 2), whole = peak_of(device, length);
        assert_true(whole < scores / 8);
        assert_true(whole < 3 * half);
    }
}

static tern_tensor *dropped(tern_tensor *const *in, void *user)
{
    tern_manual_seed(11); /* the same weights are dropped in every call */
    return tern_scaled_dot_product_attention(in[0], in[1], in[2], user);
}

static void dropout_drops_the_same_on_the_way_back(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_scaled_dot_product_attention_options options = {.dropout_p = 0.4, .is_causal = true};
        tern_shape shapes[] = {TERN_SHAPE(2, 4, L, E), TERN_SHAPE(2, 4, S, E),
                               TERN_SHAPE(2, 4, S, EV)};
        tern_tensor *in[3];
        for (int i = 0; i < 3; i++)
            in[i] = tern_requires_grad_(
                test_uniform(device, TERN_F64, shapes[i], -1, 1, (uint64_t)i + 5), true);
        gradcheck(dropped, in, 3, .user = &options);
    }
}

static void views_of_one_projection_are_read_where_they_lie(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        /* (batch, time, 3 heads width) as models have it */
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 5, 3 * 2 * 4), -1, 1, 4);
        tern_tensor *part[3], *dense[3];
        for (int i = 0; i < 3; i++) {
            part[i] = tern_transpose(tern_view(tern_narrow(x, 2, 8 * i, 8), TERN_SHAPE(2, 5, 2, 4)),
                                     1, 2);
            dense[i] = tern_contiguous(part[i]);
        }
        tern_scaled_dot_product_attention_options o = {.is_causal = true};
        assert_close(tern_scaled_dot_product_attention(part[0], part[1], part[2], &o),
                     tern_scaled_dot_product_attention(dense[0], dense[1], dense[2], &o),
                     .abs = 1e-6);
    }
}

/* PyTorch 2.15: the result of such a query is 0, no gradient flows through it, and all others are
 * finite. In the fused form, in the one of other operations (a mask that is learned), with bools
 * and with -inf. */
static void a_query_whose_keys_are_all_masked_gives_zeros(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int learned = 0; learned < 2; learned++)
        for (int numbers = learned; numbers < 2; numbers++)
            for (int d = 0; d < 2; d++)
                TERN_SCOPE {
                    tern_dtype dtype = d ? TERN_BF16 : TERN_F32;
                    tern_tensor *in[3], *din[3];
                    for (int i = 0; i < 3; i++)
                        in[i] = tern_requires_grad_(
                            test_uniform(device, dtype, TERN_SHAPE(2, 3, 4), -2, 2, (uint64_t)i),
                            true);
                    tern_tensor *mask =
                        TENSOR(device, TERN_BOOL, TERN_SHAPE(3, 3), 1, 1, 0, 0, 0, 0, 1, 0, 1);
                    if (numbers)
                        mask = tern_log(tern_to_dtype(mask, dtype)); /* 0 or -inf */
                    if (learned)
                        mask = tern_requires_grad_(tern_detach(mask), true);
                    tern_tensor *y = tern_scaled_dot_product_attention(
                        in[0], in[1], in[2],
                        &(tern_scaled_dot_product_attention_options){.attn_mask = mask});
                    tern_tensor *sum = tern_sum(tern_square(y));
                    assert_ok(tern_autograd_grad(&sum, 1, in, 3, din, NULL));
                    assert_true(tern_item(tern_sum(tern_abs(tern_select(y, 1, 1)))) == 0);
                    assert_true(tern_item(tern_sum(tern_abs(tern_select(din[0], 1, 1)))) == 0);
                    for (int i = 0; i < 3; i++) {
                        assert_true(tern_item_int(tern_all(tern_isfinite(din[i]))) == 1);
                        assert_true(tern_item(tern_sum(tern_abs(din[i]))) > 0);
                    }
                }
}

static tern_tensor *grouped(tern_tensor *const *in, void *user)
{
    return tern_scaled_dot_product_attention(in[0], in[1], in[2], user);
}

static void heads_of_queries_share_those_of_keys(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_scaled_dot_product_attention_options o = {.enable_gqa = true, .is_causal = true},
                                                  each = {.is_causal = true};
        tern_shape shapes[] = {TERN_SHAPE(2, 6, 4, 3), TERN_SHAPE(2, 3, 5, 3),
                               TERN_SHAPE(2, 2, 5, 2)};
        tern_tensor *in[3];
        for (int i = 0; i < 3; i++)
            in[i] = tern_requires_grad_(
                test_uniform(device, TERN_F64, shapes[i], -1, 1, (uint64_t)i + 5), true);
        tern_tensor *y = tern_scaled_dot_product_attention(in[0], in[1], in[2], &o);
        for (int head = 0; head < 6; head++) {
            const int at[] = {head, head / 2, head / 3};
            tern_tensor *one[3];
            for (int i = 0; i < 3; i++)
                one[i] = tern_select(in[i], 1, at[i]);
            assert_close(tern_select(y, 1, head),
                         tern_scaled_dot_product_attention(one[0], one[1], one[2], &each),
                         .abs = 1e-12);
        }
        gradcheck(grouped, in, 3, .user = &o);
        assert_null(tern_scaled_dot_product_attention(in[2], in[0], in[0], &o));
        assert_error(TERN_ERR_SHAPE, "must divide");
    }
}

static void dropout_keeps_the_mean_and_drops_whole_weights(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_ones(TERN_SHAPE(64, 64, 1), TERN_F32, device);
        tern_manual_seed(1);
        tern_tensor *out = tern_scaled_dot_product_attention(
            x, x, x, &(tern_scaled_dot_product_attention_options){.dropout_p = 0.5});
        double *values = test_read(out), sum = 0;
        bool differ = false;
        for (int64_t i = 0; i < tern_numel(out); i++) {
            sum += values[i];
            differ |= values[i] != values[0];
            double weights =
                values[i] * 32; /* each kept weight is 2 / 64, which no sum of them rounds */
            assert_true(weights == round(weights));
        }
        /* The mean of 64^3 weights that are 0 or 2 is off by 1 / 512 on average (standard deviation). */
        assert_true(differ && fabs(sum / 4096 - 1) < 4.0 / 512);
        free(values);
    }
}

static void mistakes_are_told_in_pytorchs_words(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 2), 0, device);
        tern_tensor *f16 = tern_ones(TERN_SHAPE(2, 2), TERN_F16, device);
        tern_tensor *i64 = tern_ones(TERN_SHAPE(2, 2), TERN_I64, device);
        tern_tensor *row = tern_ones(TERN_SHAPE(2), 0, device);
        tern_tensor *bools = tern_ones(TERN_SHAPE(2, 2), TERN_BOOL, device);
        assert_null(tern_scaled_dot_product_attention(x, f16, x, NULL));
        assert_error(TERN_ERR_DTYPE,
                     "Expected query, key, and value to have the same dtype, but got "
                     "query.dtype: float32 key.dtype: float16");
        assert_null(tern_scaled_dot_product_attention(x, row, x, NULL));
        assert_error(TERN_ERR_SHAPE, "to all be at least 2 dimensional");
        assert_null(tern_scaled_dot_product_attention(
            x, x, x,
            &(tern_scaled_dot_product_attention_options){.attn_mask = bools, .is_causal = true}));
        assert_error(TERN_ERR_ARGUMENT, "Explicit attn_mask should not be set when is_causal=True");
        assert_null(tern_scaled_dot_product_attention(
            x, x, x, &(tern_scaled_dot_product_attention_options){.attn_mask = i64}));
        assert_error(TERN_ERR_DTYPE, "Expected attn_mask dtype to be bool or to match query dtype");
        assert_null(tern_scaled_dot_product_attention(
            x, x, x, &(tern_scaled_dot_product_attention_options){.dropout_p = 1.5}));
        assert_error(TERN_ERR_ARGUMENT,
                     "dropout probability has to be between 0 and 1, but got 1.5");
        assert_null(tern_scaled_dot_product_attention(x, NULL, x, NULL));
        assert_error(TERN_ERR_ARGUMENT, "key");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_mask_and_scale_is_the_textbooks),
        TEST(scores_of_halves_are_not_rounded),
        TEST(first_and_second_gradients),
        TEST(long_sequences_go_block_by_block),
        TEST(masks_that_hide_whole_blocks_of_keys),
        TEST(memory_grows_with_the_length_and_not_with_its_square),
        TEST(dropout_drops_the_same_on_the_way_back),
        TEST(views_of_one_projection_are_read_where_they_lie),
        TEST(a_query_whose_keys_are_all_masked_gives_zeros),
        TEST(heads_of_queries_share_those_of_keys),
        TEST(dropout_keeps_the_mean_and_drops_whole_weights),
        TEST(mistakes_are_told_in_pytorchs_words),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
