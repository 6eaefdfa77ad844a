/* test_attention_tiles.c -- attention of several tiles in every direction, out of a packed qkv, with dropout, masks and
 * wide heads: results and gradients on each device as on the cpu. */
#include "support.h"
#include "tensor/tensor.h"

typedef struct row {
    int64_t queries, keys, width, value_width;
    tern_scaled_dot_product_attention_options o;
    tern_dtype mask; /* TERN_DTYPE_DEFAULT: none */
} row;

static const row rows[] = {
    {70, 100, 40, 72, {.scale = 0.2}, TERN_DTYPE_DEFAULT},
    {100, 70, 72, 128, {.is_causal = true}, TERN_DTYPE_DEFAULT},
    {33, 65, 128, 33, {.dropout_p = 0.3}, TERN_BOOL},
    {65, 65, 32, 32, {.is_causal = true, .dropout_p = 0.5, .window = 40}, TERN_DTYPE_DEFAULT},
    {97, 64, 16, 64, {.softcap = 2}, TERN_F32},
    {31, 130, 64, 1, {.is_causal = true, .lower_right = true, .dropout_p = 1}, TERN_DTYPE_DEFAULT},
    {40, 40, 129, 16, {.is_causal = true}, TERN_DTYPE_DEFAULT}, /* too wide for tiles */
};
enum { ROWS = sizeof rows / sizeof *rows, BATCH = 2, HEADS = 3 };

typedef struct result {
    tern_tensor *y, *gradient[3];
} result;

/* Heads beside each other, as a layer leaves them: (N, heads, T, width) of (N, T, heads, width). */
static tern_tensor *heads(const char *device, tern_dtype dtype, int64_t length, int64_t width,
                          int seed)
{
    tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(BATCH, length, HEADS, width + 3), -1, 1,
                                  (unsigned)seed);
    x = tern_transpose(tern_narrow(x, 3, 2, width), 1, 2);
    return tern_requires_grad_(tern_detach(x), true);
}

static tern_tensor *mask_of(const row *r, const char *device, tern_dtype dtype)
{
    if (r->mask == TERN_DTYPE_DEFAULT)
        return NULL;
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(HEADS, 1, r->keys), -2, 2, 9);
    return r->mask == TERN_BOOL ? tern_lt_scalar(x, tern_scalar_real(1.2))
                                : tern_to_dtype(x, dtype);
}

static result attend(const row *r, const char *device, tern_dtype dtype)
{
    tern_tensor *in[3] = {heads(device, dtype, r->queries, r->width, 1),
                          heads(device, dtype, r->keys, r->width, 2),
                          heads(device, dtype, r->keys, r->value_width, 3)};
    tern_scaled_dot_product_attention_options o = r->o;
    o.attn_mask = mask_of(r, device, dtype);
    tern_manual_seed(7);
    result made = {.y = tern_scaled_dot_product_attention(in[0], in[1], in[2], &o)};
    tern_tensor *slope =
        test_uniform(device, dtype, TERN_SHAPE(BATCH, r->queries, HEADS, r->value_width), -1, 1, 4);
    tern_backward_with(made.y, &(tern_backward_options){.gradient = tern_transpose(slope, 1, 2)});
    for (int i = 0; i < 3; i++)
        made.gradient[i] = tern_grad(in[i]);
    return made;
}

/* Half precision is rounded in other places: once in float32 on the cpu. */
static void compare(const row *r, const char *device, tern_dtype dtype)
{
    double error = dtype == TERN_F32 ? 2e-5 : dtype == TERN_F16 ? 4e-3 : 3e-2;
    result here = attend(r, device, dtype), there = attend(r, "cpu", dtype);
    assert_int_equal(tern_last_status(), TERN_OK);
    assert_close(tern_to(here.y, "cpu"), there.y, .abs = error, .rel = error);
    for (int i = 0; i < 3; i++)
        assert_close(tern_to(here.gradient[i], "cpu"), there.gradient[i], .abs = error,
                     .rel = error);
}

static void tiles_are_as_on_the_cpu(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        TERN_SCOPE
            compare(&rows[i], device, TERN_F32);
}

static void so_are_those_of_half_precision(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i += 2)
        TERN_SCOPE {
            compare(&rows[i], device, TERN_F16);
            compare(&rows[i], device, TERN_BF16);
        }
}

/* Without a key a query's result and gradients are 0. */
static void a_query_without_keys_is_zero(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        row r = {70, 40, 32, 32, {.is_causal = true, .lower_right = true}, TERN_DTYPE_DEFAULT};
        result here = attend(&r, device, TERN_F32);
        tern_tensor *hidden = tern_narrow(here.y, 2, 0, 30);
        tern_tensor *dq = tern_narrow(here.gradient[0], 2, 0, 30);
        assert_true(tern_item(tern_sum(tern_abs(hidden))) == 0);
        assert_true(tern_item(tern_sum(tern_abs(dq))) == 0);
        compare(&r, device, TERN_F32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tiles_are_as_on_the_cpu),
        TEST(so_are_those_of_half_precision),
        TEST(a_query_without_keys_is_zero),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
