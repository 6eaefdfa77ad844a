/* test_small_stack.c -- products, convolutions and attention on a thread of 128 KB, which is musl's default: what they pack lies in
 * memory that the thread keeps. */
#include "base/memory.h"
#include "support.h"
#include <math.h>
#include <pthread.h>

enum { STACK = 128 << 10 };

/* What the thread computes, and the same on the main thread. */
typedef struct work {
    tern_tensor *(*compute)(tern_dtype dtype);
    tern_dtype dtype;
    double sum;
} work;

static tern_tensor *products(tern_dtype dtype)
{
    static const int64_t sizes[][3] = {{7, 7, 7},      {64, 64, 64},   {300, 40, 300},
                                       {97, 260, 130}, {8, 300, 1100}, {1, 300, 40},
                                       {300, 1, 70},   {2, 500, 20},   {130, 140, 150}};
    tern_tensor *sum = tern_zeros(TERN_SHAPE(1), TERN_F64, "cpu");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int turned = 0; turned < 4; turned++) {
            const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            tern_tensor *a = test_uniform("cpu", TERN_F32, TERN_SHAPE(m, k), -1, 1, 3);
            tern_tensor *b = test_uniform("cpu", TERN_F32, TERN_SHAPE(k, n), -1, 1, 4);
            a = tern_to_dtype(turned & 1 ? tern_t(tern_contiguous(tern_t(a))) : a, dtype);
            b = tern_to_dtype(turned & 2 ? tern_t(tern_contiguous(tern_t(b))) : b, dtype);
            tern_requires_grad_(a, true);
            tern_tensor *c = tern_matmul(a, b);
            tern_backward(tern_sum(tern_mul(c, c)));
            sum = tern_add(sum, tern_to_dtype(tern_sum(tern_grad(a)), TERN_F64));
            sum = tern_add(sum, tern_to_dtype(tern_sum(c), TERN_F64));
        }
    return sum;
}

static tern_tensor *convolutions(tern_dtype dtype)
{
    static const struct {
        int64_t channels, out, size, window, stride;
    } rows[] = {{1, 6, 28, 5, 1}, {3, 16, 32, 3, 2},  {16, 16, 16, 3, 1},
                {8, 8, 15, 1, 1}, {32, 64, 14, 3, 2}, {64, 32, 14, 3, 1}};
    tern_tensor *sum = tern_zeros(TERN_SHAPE(1), TERN_F64, "cpu");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_tensor *x = test_uniform(
            "cpu", dtype, TERN_SHAPE(2, rows[i].channels, rows[i].size, rows[i].size), -1, 1, 5);
        tern_tensor *w = test_uniform(
            "cpu", dtype, TERN_SHAPE(rows[i].out, rows[i].channels, rows[i].window, rows[i].window),
            -1, 1, 6);
        tern_requires_grad_(x, true);
        tern_requires_grad_(w, true);
        tern_tensor *y =
            tern_conv2d(x, w, NULL,
                        &(tern_conv_function_options){
                            .stride = TERN_SHAPE(rows[i].stride, rows[i].stride),
                            .padding = TERN_SHAPE(rows[i].window / 2, rows[i].window / 2)});
        tern_backward(tern_sum(tern_mul(y, y)));
        sum = tern_add(sum, tern_to_dtype(tern_sum(tern_grad(x)), TERN_F64));
        sum = tern_add(sum, tern_to_dtype(tern_sum(tern_grad(w)), TERN_F64));
    }
    return sum;
}

static tern_tensor *attention(tern_dtype dtype)
{
    tern_tensor *sum = tern_zeros(TERN_SHAPE(1), TERN_F64, "cpu");
    for (int64_t t = 5; t < 200; t += 90) {
        tern_tensor *q = test_uniform("cpu", dtype, TERN_SHAPE(2, 2, t, 64), -1, 1, 7);
        tern_tensor *k = test_uniform("cpu", dtype, TERN_SHAPE(2, 2, t, 64), -1, 1, 8);
        tern_requires_grad_(q, true);
        tern_tensor *y = tern_scaled_dot_product_attention(
            q, k, k, &(tern_scaled_dot_product_attention_options){.is_causal = true});
        tern_backward(tern_sum(tern_mul(y, y)));
        sum = tern_add(sum, tern_to_dtype(tern_sum(tern_grad(q)), TERN_F64));
        sum = tern_add(sum, tern_to_dtype(tern_sum(y), TERN_F64));
    }
    return sum;
}

static void *run(void *user)
{
    work *w = user;
    TERN_SCOPE
        w->sum = tern_item(w->compute(w->dtype));
    return NULL;
}

static void a_thread_of_128_kb_computes(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
    static tern_tensor *(*const computes[])(tern_dtype dtype) = {products, convolutions, attention};
    pthread_attr_t attributes;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
    for (size_t i = 0; i < sizeof computes / sizeof *computes; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            work there = {computes[i], dtypes[d], 0}, here = there;
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, &attributes, run, &there), 0);
            assert_int_equal(pthread_join(thread, NULL), 0);
            run(&here);
            assert_true(here.sum == there.sum);
            assert_true(isfinite(here.sum));
        }
    pthread_attr_destroy(&attributes);
    assert_no_error();
}

/* Whether each product that fails for want of memory records that, until one succeeds. */
static void *run_without_memory(void *user)
{
    bool *recorded = user;
    tern_tensor *c = NULL;
    *recorded = true;
    TERN_SCOPE {
        tern_tensor *a = test_uniform("cpu", TERN_F64, TERN_SHAPE(40, 50), -1, 1, 3);
        tern_tensor *b = test_uniform("cpu", TERN_F64, TERN_SHAPE(50, 60), -1, 1, 4);
        for (uint64_t n = 1; n < 100 && !c; n++) {
            tern_memory_fail_at(n);
            c = tern_matmul(a, b);
            tern_memory_fail_at(0);
            *recorded &= c ? n > 1 : tern_last_status() == TERN_ERR_MEMORY;
            tern_clear_error();
        }
        *recorded &= c != NULL;
    }
    return NULL;
}

/* A thread's first product takes memory to pack into. */
static void a_thread_s_first_product_says_that_memory_is_short(void **state)
{
    (void)state;
    bool recorded = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_without_memory, &recorded), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(recorded);
}

static const struct CMUnitTest tests[] = {
    TEST(a_thread_of_128_kb_computes),
    TEST(a_thread_s_first_product_says_that_memory_is_short),
};
TEST_MAIN(tests)
