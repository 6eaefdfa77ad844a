/* test_large.c -- results and operands beyond 2^31 elements, and beyond 2^32 of a type of one byte, by each way that indexes:
 * what stands behind those borders is read and written where it is. For TERN_TEST_ALL: it takes 4.5 GB and minutes. Chains of
 * heavy kernels with the allocator's cache emptied within them; sizes by expand that no memory holds. */
#include "support.h"
#include <stdio.h>
#include <stdlib.h>

static bool has_memory(int64_t bytes)
{
    long long free = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld", &free) == 1)
            break;
    if (f)
        fclose(f);
    return free * 1024 > bytes + bytes / 2;
}

static int allocated; /* how many tensors bytes_of returned */

/* n bytes on the device, 0 but for 7 and 9 at the end; NULL where there is no such memory. */
static tern_tensor *bytes_of(const char *device, int64_t n)
{
    if (!getenv("TERN_TEST_ALL") || !has_memory(n)) {
        print_message("%s: %lld bytes are for TERN_TEST_ALL, and memory for it\n", device,
                      (long long)n);
        return NULL;
    }
    tern_tensor *x = tern_zeros(TERN_SHAPE(n), TERN_U8, device);
    if (!x) {
        print_message("%s: %s\n", device, tern_last_error());
        tern_clear_error();
        return NULL;
    }
    allocated++;
    tern_fill_(tern_narrow(x, 0, n - 2, 1), 7);
    tern_fill_(tern_narrow(x, 0, n - 1, 1), 9);
    return x;
}

static void reads(const char *device, int64_t n)
{
    TERN_SCOPE {
        tern_tensor *x = bytes_of(device, n);
        if (!x)
            return;
        tern_tensor *ends =
            tern_from_data((const int64_t[]){n - 2, n - 1, 0}, TERN_SHAPE(3), TERN_I64, device);
        assert_values(tern_narrow(x, 0, n - 3, 3), 0, 7, 9);
        assert_values(tern_slice(x, 0, n - 1, n, 1), 9);
        assert_values(tern_select(x, 0, n - 1), 9);
        assert_values(tern_index_select(x, 0, ends), 7, 9, 0);
        assert_values(tern_gather(x, 0, ends), 7, 9, 0);
        assert_values(tern_take(x, ends), 7, 9, 0);
        assert_values(tern_index(x, ends), 7, 9, 0);
        assert_values(tern_as_strided(x, TERN_SHAPE(2), TERN_SHAPE(1), n - 2), 7, 9);
        assert_values(tern_clone(tern_slice(x, 0, n - 3, n, 2)), 0, 9);
        assert_values(tern_max(x), 9);
        assert_values(tern_argmax(x), (double)(n - 1));
        assert_values(tern_any(x), 1);
        assert_values(tern_sum(x), 16);
        assert_values(tern_count_nonzero(x), 2);
        if (n % 2 == 0) { /* two rows: the second one's end is the tensor's */
            tern_tensor *rows = tern_view(x, TERN_SHAPE(2, n / 2));
            assert_values(tern_sum_dim(rows, TERN_DIMS(1), false), 0, 16);
            assert_values(tern_argmax_dim(rows, 1, false), 0, (double)(n / 2 - 1));
            assert_values(tern_amax(tern_transpose(rows, 0, 1), TERN_DIMS(0), false), 0, 9);
        }
    }
}

static void writes(const char *device, int64_t n)
{
    TERN_SCOPE {
        tern_tensor *x = bytes_of(device, n);
        if (!x)
            return;
        tern_tensor *ends =
            tern_from_data((const int64_t[]){n - 2, n - 1}, TERN_SHAPE(2), TERN_I64, device);
        tern_tensor *last = tern_narrow(x, 0, n - 2, 2);
        tern_tensor *values = TENSOR(device, TERN_U8, TERN_SHAPE(2), 3, 4);
        assert_non_null(tern_index_add_(x, 0, ends, values, TERN_SCALAR(1)));
        assert_values(last, 10, 13);
        assert_non_null(tern_index_copy_(x, 0, ends, values));
        assert_values(last, 3, 4);
        assert_non_null(tern_scatter_add_(x, 0, ends, values));
        assert_values(last, 6, 8);
        assert_non_null(tern_put_(x, ends, values, false));
        assert_values(last, 3, 4);
        assert_non_null(tern_index_fill_(x, 0, ends, TERN_SCALAR(5)));
        assert_values(last, 5, 5);
        assert_non_null(tern_index_put_(x, &ends, 1, values, true));
        assert_values(last, 8, 9);
        assert_non_null(tern_add_(x, 1)); /* all of them */
        assert_values(last, 9, 10);
        assert_values(tern_narrow(x, 0, n / 2, 1), 1);
        assert_non_null(tern_copy_(tern_narrow(x, 0, 1, n - 1),
                                   tern_expand(tern_narrow(values, 0, 1, 1), TERN_SHAPE(n - 1))));
        assert_values(tern_narrow(x, 0, n - 2, 2), 4, 4);
        assert_values(tern_narrow(x, 0, 0, 2), 1, 4);
    }
}

/* Two of them: results as large as operands. */
static void makes(const char *device, int64_t n)
{
    TERN_SCOPE {
        tern_tensor *x = bytes_of(device, n);
        if (!x || !has_memory(n))
            return;
#define ENDS(CALL, ...)                                                                            \
    TERN_SCOPE {                                                                                   \
        tern_tensor *y = CALL;                                                                     \
        if (!y)                                                                                    \
            fail_msg("%s: %s", #CALL, tern_last_error());                                          \
        assert_values(tern_narrow(y, 0, tern_size(y, 0) - 2, 2), __VA_ARGS__);                     \
    }
        ENDS(tern_clone(x), 7, 9)
        ENDS(tern_add(x, x), 14, 18)
        ENDS(tern_mul(x, 2), 14, 18)
        ENDS(tern_ne(x, 0), 1, 1)
        ENDS(tern_flip(x, TERN_DIMS(0)), 0, 0)
        ENDS(tern_roll(x, TERN_SHAPE(1), TERN_DIMS(0)), 0, 7)
        ENDS(tern_where(tern_ne(tern_narrow(x, 0, n - 2, 2), 7), 1.0, 2.0), 2, 1)
        ENDS(tern_masked_fill(
                 x, tern_expand(tern_ones(TERN_SHAPE(1), TERN_BOOL, device), TERN_SHAPE(n)),
                 TERN_SCALAR(6)),
             6, 6)
        ENDS(tern_cat((tern_tensor *[]){tern_narrow(x, 0, 5, n - 5), tern_narrow(x, 0, n - 2, 2)},
                      2, 0),
             7, 9)
        ENDS(tern_pad(tern_narrow(x, 0, 4, n - 4), TERN_SHAPE(1, 1),
                      &(tern_pad_options){.value = 8}),
             9, 8)
        ENDS(tern_repeat(tern_narrow(x, 0, n - 2, 2), TERN_SHAPE(n / 2)), 7, 9)
        ENDS(tern_contiguous(tern_transpose(
                 tern_view(tern_narrow(x, 0, 0, n / 2 * 2), TERN_SHAPE(2, n / 2)), 0, 1)),
             0, n % 2 ? 0 : 7, 0, n % 2 ? 7 : 9)
    }
}

static void elements_beyond_2_to_the_31_are_where_they_are(void **state)
{
    (void)state;
    const int64_t n = (INT64_C(1) << 31) + 10;
    const int before = allocated;
    FOR_EACH_DEVICE(device)
    {
        reads(device, n);
        tern_empty_cache(device);
        writes(device, n);
        tern_empty_cache(device);
        makes(device, n);
        tern_empty_cache(device);
    }
    if (allocated == before)
        skip();
}

static void bytes_beyond_2_to_the_32_are_where_they_are(void **state)
{
    (void)state;
    const int64_t n = (INT64_C(1) << 32) + 10;
    const int before = allocated;
    FOR_EACH_DEVICE(device)
    {
        reads(device, n);
        tern_empty_cache(device);
        writes(device, n);
        tern_empty_cache(device);
    }
    if (allocated == before)
        skip();
}

/* ---- caches that are emptied ------------------------------------------------------------------- */

static tern_tensor *chain(const char *device, int64_t n, bool empties)
{
    tern_tensor *x =
        tern_requires_grad_(test_uniform(device, TERN_F32, TERN_SHAPE(1, 4, n, n), -1, 1, 3), true);
    tern_tensor *w = test_uniform(device, TERN_F32, TERN_SHAPE(4, 4, 3, 3), -1, 1, 4);
    tern_tensor *y = x;
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            tern_tensor *z =
                tern_conv2d(y, w, NULL, &(tern_conv_function_options){.padding = TERN_SHAPE(1, 1)});
            if (empties)
                assert_ok(tern_empty_cache(device));
            z = tern_matmul(tern_relu(z), tern_softmax(y, -1));
            if (empties)
                assert_ok(tern_empty_cache(device));
            z = tern_layer_norm(tern_add(z, tern_sum_dim(z, TERN_DIMS(-1), true)), TERN_SHAPE(n),
                                NULL, NULL, 1e-5);
            if (empties)
                assert_ok(tern_empty_cache(device));
            y = tern_escape(tern_add(z, tern_cumsum(y, -1)));
        }
    assert_ok(tern_backward(tern_sum(tern_square(y))));
    if (empties)
        assert_ok(tern_empty_cache(device));
    return tern_cat((tern_tensor *[]){tern_flatten(y, 0, -1), tern_flatten(tern_grad(x), 0, -1)}, 2,
                    0);
}

static void chains_with_emptied_caches_give_the_same(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int64_t n = 16; n < 65; n *= 4)
        TERN_SCOPE {
            tern_tensor *want = chain(device, n, false);
            for (int times = test_pocl_gpu_form(device) && !test_thorough(device) ? 2 : 0;
                 times < 3; times++)
                TERN_SCOPE
                    assert_same(chain(device, n, true), want);
            assert_same(chain(device, n, false), want);
        }
}

/* ---- sizes that no memory holds -------------------------------------------------------------- */

static void sizes_by_expand_are_refused_where_they_overflow(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *one = tern_ones(TERN_SHAPE(1, 1), TERN_F32, device);
        tern_tensor *wide = tern_expand(one, TERN_SHAPE(INT64_C(1) << 29, INT64_C(1) << 29));
        tern_tensor *tall = tern_expand(one, TERN_SHAPE(INT64_C(1) << 40, 1));
        tern_tensor *index = tern_zeros(TERN_SHAPE(1), TERN_I64, device);
        assert_non_null(wide);
#define REFUSED(CALL)                                                                              \
    assert_null(CALL);                                                                             \
    assert_true(tern_last_status() != TERN_OK);                                                    \
    tern_clear_error()
        REFUSED(tern_clone(wide));
        REFUSED(tern_contiguous(wide));
        REFUSED(tern_add(wide, wide));
        REFUSED(tern_cat((tern_tensor *[]){wide, wide}, 2, 0));
        REFUSED(tern_stack((tern_tensor *[]){wide, wide}, 2, 0));
        REFUSED(tern_repeat(wide, TERN_SHAPE(2, 2)));
        REFUSED(tern_expand(one, TERN_SHAPE(INT64_C(1) << 32, INT64_C(1) << 32)));
        REFUSED(tern_expand(wide, TERN_SHAPE(8, INT64_C(1) << 29, INT64_C(1) << 29)));
        REFUSED(tern_matmul(tall, tern_transpose(tall, 0, 1)));
        REFUSED(tern_index_select(wide, 0, index));
        REFUSED(tern_gather(wide, 0,
                            tern_expand(tern_zeros(TERN_SHAPE(1, 1), TERN_I64, device),
                                        TERN_SHAPE(INT64_C(1) << 29, INT64_C(1) << 29))));
        REFUSED(tern_one_hot(index, INT64_C(1) << 60));
        REFUSED(tern_pad(one, TERN_SHAPE(INT64_C(1) << 61, INT64_C(1) << 61), NULL));
        REFUSED(tern_zeros(TERN_SHAPE(INT64_C(1) << 32, INT64_C(1) << 32), TERN_U8, device));
        REFUSED(tern_tril(wide, 0));
        REFUSED(tern_softmax(wide, -1));
        REFUSED(tern_layer_norm(wide, TERN_SHAPE(INT64_C(1) << 29), NULL, NULL, 1e-5));
        REFUSED(tern_embedding(index, wide, NULL));
        REFUSED(tern_kron(tall, tall));
        REFUSED(tern_outer(tern_select(tall, 1, 0), tern_select(tall, 1, 0)));
        REFUSED(tern_cdist(tall, tall, 2));
        REFUSED(tern_interpolate(
            tern_expand(one, TERN_SHAPE(1, 1, 1, 1)),
            &(tern_interpolate_options){.size = TERN_SHAPE(INT64_C(1) << 31, INT64_C(1) << 31)}));
    }
}

static const struct CMUnitTest tests[] = {TEST(elements_beyond_2_to_the_31_are_where_they_are),
                                          TEST(bytes_beyond_2_to_the_32_are_where_they_are),
                                          TEST(chains_with_emptied_caches_give_the_same),
                                          TEST(sizes_by_expand_are_refused_where_they_overflow)};
TEST_MAIN(tests)
