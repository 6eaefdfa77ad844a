/* test_attention_tiles.c -- attention of several tiles in every direction, out of a packed qkv, with dropout, masks and
 * wide heads: results and gradients on each device as on the cpu. */
#include "attention_rows.h"

static const row rows[] = {
    {"all keys", 70, 100, 40, 72, {.scale = 0.2}, BESIDE, TERN_DTYPE_DEFAULT},
    {"causal", 100, 70, 72, 128, {.is_causal = true}, BESIDE, TERN_DTYPE_DEFAULT},
    {"a mask and dropout", 33, 65, 128, 33, {.dropout_p = 0.3}, BESIDE, TERN_BOOL},
    {"a window and dropout",
     65,
     65,
     32,
     32,
     {.is_causal = true, .dropout_p = 0.5, .window = 40},
     BESIDE,
     TERN_DTYPE_DEFAULT},
    {"softcap and numbers for a mask", 97, 64, 16, 64, {.softcap = 2}, BESIDE, TERN_F32},
    {"all dropped",
     31,
     130,
     64,
     1,
     {.is_causal = true, .lower_right = true, .dropout_p = 1},
     BESIDE,
     TERN_DTYPE_DEFAULT},
    {"too wide for tiles", 40, 40, 129, 16, {.is_causal = true}, BESIDE, TERN_DTYPE_DEFAULT},
};
enum { ROWS = sizeof rows / sizeof *rows };

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
        row r = {"queries without keys",
                 70,
                 40,
                 32,
                 32,
                 {.is_causal = true, .lower_right = true},
                 BESIDE,
                 TERN_DTYPE_DEFAULT};
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
