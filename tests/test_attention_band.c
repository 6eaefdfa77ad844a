/* test_attention_band.c -- attention within windows, of queries that continue a sequence, and with a softcap,
 * against the definition in double precision; blocks against the form of other operations. */
#include "tensor/fields.h"
#include "support.h"
#include <math.h>
#include <stdlib.h>

typedef tern_scaled_dot_product_attention_options options;

/* Which mask goes with a row: none, bools of which one row hides all, numbers. */
typedef enum mask_kind { NO_MASK, BOOLS, NUMBERS } mask_kind;

typedef struct row {
    int queries, keys;
    options o;
    mask_kind mask;
} row;

static const row rows[] = {
    {3, 5, {.is_causal = true, .lower_right = true}, NO_MASK},
    {5, 3, {.is_causal = true, .lower_right = true}, NO_MASK}, /* the first two see no key */
    {6, 6, {.is_causal = true, .window = 3}, NO_MASK},
    {4, 7, {.is_causal = true, .lower_right = true, .window = 2}, NO_MASK},
    {6, 5, {.window = 2}, NO_MASK},
    {7, 2, {.window = 1}, NO_MASK},
    {5, 6, {.window = 3, .lower_right = true}, BOOLS},
    {6, 6, {.window = 4}, NUMBERS},
    {4, 4, {.window = INT64_MAX}, NO_MASK},
    {4, 5, {.softcap = 1.5}, NO_MASK},
    {5, 5, {.softcap = 0.7, .is_causal = true, .window = 3}, NO_MASK},
    {4, 5, {.softcap = 2}, NUMBERS},
    {4, 5, {.softcap = 2, .window = 4}, BOOLS},
    {20, 70, {.softcap = 2, .is_causal = true, .lower_right = true, .window = 30}, NO_MASK},
    {40, 90, {.window = 12}, NUMBERS},
};
enum { ROWS = sizeof rows / sizeof *rows, STACKS = 2, WIDTH = 5, VALUE_WIDTH = 3 };

static bool looks(const row *r, int i, int j)
{
    int64_t place = r->o.lower_right ? i + r->keys - r->queries : i;
    if (r->mask == BOOLS && (i == 1 || (i * 5 + j * 3) % 4 == 0))
        return false;
    if (r->o.is_causal && j > place)
        return false;
    return r->o.window == 0 || llabs(place - j) < r->o.window;
}

static double added(const row *r, int i, int j)
{
    return r->mask == NUMBERS ? 0.25 * (i % 5) - 0.5 * (j % 7) : 0;
}

static void attend(const row *r, const double *q, const double *k, const double *v, double *out)
{
    for (int c = 0; c < STACKS; c++, k += r->keys * WIDTH, v += r->keys * VALUE_WIDTH)
        for (int i = 0; i < r->queries; i++, q += WIDTH, out += VALUE_WIDTH) {
            double total = 0, sum[VALUE_WIDTH] = {0};
            for (int j = 0; j < r->keys; j++) {
                double score = 0;
                for (int e = 0; e < WIDTH; e++)
                    score += q[e] * k[j * WIDTH + e] / sqrt(WIDTH);
                if (r->o.softcap > 0)
                    score = r->o.softcap * tanh(score / r->o.softcap);
                double weight = looks(r, i, j) ? exp(score + added(r, i, j)) : 0;
                total += weight;
                for (int e = 0; e < VALUE_WIDTH; e++)
                    sum[e] += weight * v[j * VALUE_WIDTH + e];
            }
            for (int e = 0; e < VALUE_WIDTH; e++)
                out[e] = total > 0 ? sum[e] / total : 0;
        }
}

/* The options of a row with its mask. */
static options options_of(const row *r, tern_dtype dtype, const char *device)
{
    options o = r->o;
    double *values = malloc(sizeof *values * (size_t)(r->queries * r->keys));
    for (int i = 0; i < r->queries; i++)
        for (int j = 0; j < r->keys; j++)
            values[i * r->keys + j] = r->mask == BOOLS ? looks(r, i, j) : added(r, i, j);
    if (r->mask != NO_MASK)
        o.attn_mask = test_tensor(device, r->mask == BOOLS ? TERN_BOOL : dtype,
                                  TERN_SHAPE(r->queries, r->keys), values);
    free(values);
    return o;
}

static void inputs(const row *r, const char *device, tern_dtype dtype, double size,
                   tern_tensor *in[3])
{
    in[0] = test_uniform(device, dtype, TERN_SHAPE(STACKS, r->queries, WIDTH), -size, size, 1);
    in[1] = test_uniform(device, dtype, TERN_SHAPE(STACKS, r->keys, WIDTH), -size, size, 2);
    in[2] = test_uniform(device, dtype, TERN_SHAPE(STACKS, r->keys, VALUE_WIDTH), -size, size, 3);
}

/* Three dims take the form in blocks, five the one of other operations. */
static tern_tensor *attention_of(tern_tensor *const in[3], bool composed, const options *o)
{
    tern_tensor *x[3] = {in[0], in[1], in[2]};
    for (int i = 0; composed && i < 3; i++)
        x[i] = tern_unsqueeze(tern_unsqueeze(x[i], 0), 0);
    tern_tensor *y = tern_scaled_dot_product_attention(x[0], x[1], x[2], o);
    return composed ? tern_squeeze_dim(tern_squeeze_dim(y, 0), 0) : y;
}

static void windows_places_and_softcaps_are_the_definitions(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    static const double tolerances[] = {1e-5, 5e-3, 3e-2};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        for (int d = 0; d < 3; d++)
            TERN_SCOPE {
                const row *r = &rows[i];
                tern_tensor *in[3];
                inputs(r, device, dtypes[d], 2, in);
                options o = options_of(r, dtypes[d], device);
                double *q = test_read(in[0]), *k = test_read(in[1]), *v = test_read(in[2]);
                tern_shape shape = TERN_SHAPE(STACKS, r->queries, VALUE_WIDTH);
                double *expected =
                    calloc((size_t)(STACKS * r->queries * VALUE_WIDTH), sizeof *expected);
                attend(r, q, k, v, expected);
                for (int composed = 0; composed < 2; composed++)
                    assert_close(attention_of(in, composed, &o),
                                 test_tensor(device, dtypes[d], shape, expected),
                                 .abs = tolerances[d], .rel = tolerances[d]);
                free(q);
                free(k);
                free(v);
                free(expected);
            }
}

static tern_tensor *blocks(tern_tensor *const *in, void *user)
{
    return attention_of(in, false, user);
}

static tern_tensor *operations(tern_tensor *const *in, void *user)
{
    return attention_of(in, true, user);
}

static void first_and_second_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS && rows[i].queries < 20; i++)
        TERN_SCOPE {
            tern_device_info info = {0};
            assert_ok(tern_device_get_info(device, &info));
            tern_dtype dtype = info.has_f64 ? TERN_F64 : TERN_F32;
            tern_tensor *in[3];
            inputs(&rows[i], device, dtype, 1, in);
            options o = options_of(&rows[i], dtype, device);
            for (int k = 0; k < 3; k++)
                tern_requires_grad_(in[k], true);
            gradcheck(blocks, in, 3, .user = &o, .second = rows[i].o.softcap > 0);
            gradcheck(operations, in, 3, .user = &o);
        }
}

/* Long enough for several blocks of queries, whose keys begin and end at other places: in the form for GPUs, whose blocks have 32
 * rows and columns, a quarter of that is. */
static void blocks_of_queries_see_parts_of_the_keys(void **state)
{
    (void)state;
    static const row longs[] = {
        {700, 800, {.window = 90}, NO_MASK},
        {800, 700, {.is_causal = true, .window = 150}, NO_MASK},
        {700, 800, {.is_causal = true, .lower_right = true, .softcap = 0.5}, NO_MASK},
        {800, 700, {.is_causal = true, .lower_right = true, .window = 64}, NO_MASK},
        {1000, 500, {.window = 100}, NUMBERS}, /* the last queries see no key */
    };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof longs / sizeof *longs; i++)
        TERN_SCOPE {
            row r = longs[i];
            if (test_pocl_gpu_form(device) && !test_thorough(device))
                r.queries /= 4, r.keys /= 4, r.o.window /= 4;
            options o = options_of(&r, TERN_F32, device);
            tern_tensor *x[2][3], *y[2];
            for (int composed = 0; composed < 2; composed++) {
                inputs(&r, device, TERN_F32, 1, x[composed]);
                for (int k = 0; k < 3; k++)
                    tern_requires_grad_(x[composed][k], true);
                y[composed] = attention_of(x[composed], composed, &o);
                assert_ok(tern_backward(tern_sum(tern_mul(y[composed], y[composed]))));
            }
            assert_close(y[0], y[1], .abs = 1e-5);
            for (int k = 0; k < 3; k++)
                assert_close(tern_grad(x[0][k]), tern_grad(x[1][k]), .abs = 2e-4, .rel = 1e-3);
        }
}

/* Dropout decides by the key's number in the whole, so that a window's blocks drop the same on the way
 * back. */
static tern_tensor *dropped(tern_tensor *const *in, void *user)
{
    tern_manual_seed(3);
    return tern_scaled_dot_product_attention(in[0], in[1], in[2], user);
}

static void a_window_drops_the_same_on_the_way_back(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        row r = {6, 9, {.dropout_p = 0.4, .is_causal = true, .lower_right = true, .window = 4}, 0};
        tern_tensor *in[3];
        inputs(&r, device, TERN_F32, 1, in);
        for (int k = 0; k < 3; k++)
            tern_requires_grad_(in[k], true);
        gradcheck(dropped, in, 3, .user = &r.o);
    }
}

static void mistakes_are_told(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 2), 0, device);
        assert_null(tern_scaled_dot_product_attention(x, x, x, &(options){.window = -1}));
        assert_error(TERN_ERR_ARGUMENT, "window has to be a positive number of keys, but got -1");
        assert_null(tern_scaled_dot_product_attention(x, x, x, &(options){.softcap = -2}));
        assert_error(TERN_ERR_ARGUMENT, "softcap has to be a positive number, but got -2");
        assert_null(tern_scaled_dot_product_attention(x, x, x, &(options){.softcap = NAN}));
        assert_error(TERN_ERR_ARGUMENT, "softcap");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(windows_places_and_softcaps_are_the_definitions),
        TEST(first_and_second_gradients),
        TEST(blocks_of_queries_see_parts_of_the_keys),
        TEST(a_window_drops_the_same_on_the_way_back),
        TEST(mistakes_are_told),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
