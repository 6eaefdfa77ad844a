/* test_matmul_gemm.c -- a device's matrix product and the portable kernel, against sums in double
 * precision. */
#include "environment.h"
#include "support.h"
#include "device/gemm_kernel.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};

static double tolerance_of(tern_dtype dtype)
{
    return dtype == TERN_F64 ? 1e-13 : dtype == TERN_F32 ? 2e-5 : dtype == TERN_F16 ? 4e-3 : 3e-2;
}

static tern_tensor *uniform(const char *device, tern_dtype dtype, tern_shape shape)
{
    static uint64_t seed;
    return test_uniform(device, dtype, shape, -1, 1, ++seed);
}

static const struct {
    int64_t m, n, k, count[2];
    double alpha, beta;
    bool bias, a_across, b_across, gaps;
} products[] = {
    {5, 4, 3, {1, 1}, 1, 0, false, false, false, false},
    {5, 4, 3, {1, 1}, 1, 0, true, true, false, false},
    {40, 35, 50, {1, 1}, 0.5, 1, true, false, true, false},
    {40, 35, 50, {2, 3}, -2, 0.25, false, true, true, false},
    {9, 70, 300, {1, 2}, 1, 0, true, false, false, true},
    {33, 1, 17, {2, 2}, 1, 1, true, false, false, true},
    {1, 33, 17, {2, 2}, 1, 0, true, true, false, false},
    {1, 33, 270, {1, 1}, 1, 0.5, false, false, true, true},
    {33, 1, 270, {1, 1}, 2, 0, true, true, false, false},
    {64, 96, 80, {2, 1}, 1, 0.5, true, false, false, false},
    {130, 120, 70, {1, 1}, 2, 0, true, false, true, false},
    {100, 300, 140, {1, 1}, 1, 1, true, true, true, false},
    {7, 270, 131, {1, 2}, 1, 0.5, false, false, true, true},
    {2, 7, 33, {1, 1}, 1, 0, true, false, true, false},
    {3, 133, 1100, {1, 1}, 0.5, 1, false, false, true, false},
    {4, 2, 5, {2, 1}, 1, 0, false, false, true, false},
    {6, 261, 70, {1, 2}, 1, 0.5, true, false, true, false},
    {8, 130, 1056, {1, 1}, 2, 0, true, false, true, false},
    {40, 530, 1040, {1, 1}, 0.5, 0, true, false, true, false},
    {530, 64, 70, {1, 1}, 1, 0, false, true, false, false},
    /* rows so far apart that they share places of caches */
    {128, 128, 258, {1, 1}, 0.5, 0.5, true, true, false, false},
    {65, 512, 258, {1, 1}, 1, 0, true, true, false, false},
    {26, 512, 258, {1, 1}, 1, 1, false, false, false, false},
    {512, 37, 64, {2, 1}, 2, 0, true, true, false, false},
    {256, 70, 130, {1, 1}, 2, 0, true, true, false, false},
    {70, 512, 260, {1, 1}, 1, 0.5, false, true, false, false},
    {23, 512, 100, {1, 1}, 0.5, 1, false, false, false, false},
    {33, 1, 270, {1, 1}, 1, 0, false, false, false, false},
    {1, 33, 270, {1, 1}, 2, 0, false, false, true, false},
    {64, 96, 80, {1, 1}, 1, 0, false, false, false, false},
    {64, 96, 80, {3, 1}, 1, 0, false, false, true, false},
    {3, 1, 2100, {1, 1}, 1, 0, true, false, true, false},
    {1, 9, 2100, {1, 1}, 2, 0.5, true, false, true, false},
    /* as the heads of attention lie: pairs further apart than their matrices */
    {6, 16, 2100, {2, 2}, 1, 0.5, true, false, false, false},
    {3, 40, 70, {2, 2}, 1, 0.5, true, false, true, false},
};

static tern_matrix random_matrix(const char *device, tern_dtype dtype, int64_t m, int64_t n,
                                 const int64_t *count, bool across, bool gaps, tern_tensor **memory)
{
    int64_t unit = gaps ? 2 : 1, line = (across ? m : n) * unit + gaps;
    tern_matrix x = {.at = 1, .row = across ? unit : line, .col = across ? line : unit};
    x.batch[1] = line * (across ? n : m);
    x.batch[0] = x.batch[1] * count[1] + (count[1] == 2 ? 3 : 0);
    *memory = uniform(device, dtype, TERN_SHAPE(x.batch[0] * count[0] + 1));
    x.buffer = &(*memory)->storage->block->buffer;
    return x;
}

static size_t place_in(const tern_matrix *x, int64_t b0, int64_t b1, int64_t i, int64_t j)
{
    return (size_t)(x->at + b0 * x->batch[0] + b1 * x->batch[1] + i * x->row + j * x->col);
}

/* What C should hold, in all of its memory. */
static void multiply_by_hand(const tern_gemm *g, const double *a, const double *b, double *c,
                             const double *bias)
{
    for (int64_t b0 = 0; b0 < g->count[0]; b0++)
        for (int64_t b1 = 0; b1 < g->count[1]; b1++)
            for (int64_t i = 0; i < g->m; i++)
                for (int64_t j = 0; j < g->n; j++) {
                    double sum = 0, *to = &c[place_in(&g->c, b0, b1, i, j)];
                    for (int64_t p = 0; p < g->k; p++)
                        sum += a[place_in(&g->a, b0, b1, i, p)] * b[place_in(&g->b, b0, b1, p, j)];
                    *to = g->alpha * sum + (g->beta == 0 ? 0 : g->beta * *to) +
                          (bias ? bias[g->bias_at + j] : 0);
                }
}

static tern_status launch_portable(tern_place *place, const tern_gemm *g)
{
    static const tern_kernel_ref gemm = {"matmul", "gemm"};
    tern_gemm_shape shape = tern_gemm_shape_of(g);
    const tern_arg args[] = TERN_GEMM_ARGS(g, &shape);
    return tern_launch(place, &gemm, g->dtype, tern_gemm_grid(g), args, sizeof args / sizeof *args);
}

static void check_gemm(const char *device, tern_dtype dtype, size_t i, bool portable)
{
    const int64_t *count = products[i].count;
    tern_tensor *a, *b, *c, *bias = uniform(device, dtype, TERN_SHAPE(products[i].n + 2));
    tern_gemm g = {.dtype = dtype,
                   .m = products[i].m,
                   .n = products[i].n,
                   .k = products[i].k,
                   .count = {count[0], count[1]},
                   .alpha = products[i].alpha,
                   .beta = products[i].beta};
    bool gaps = products[i].gaps;
    g.a = random_matrix(device, dtype, g.m, g.k, count, products[i].a_across, gaps, &a);
    g.b = random_matrix(device, dtype, g.k, g.n, count, products[i].b_across, gaps, &b);
    g.c = random_matrix(device, dtype, g.m, g.n, count, false, false, &c);
    if (g.beta == 0) /* must not be read */
        tern_fill_(c, TERN_SCALAR((double)NAN));
    if (products[i].bias) {
        g.bias = &bias->storage->block->buffer;
        g.bias_at = 2;
    }
    double *va = test_read(a), *vb = test_read(b), *vc = test_read(c), *vd = test_read(bias);
    multiply_by_hand(&g, va, vb, vc, g.bias ? vd : NULL);
    tern_place *place = tern_tensor_place(c);
    assert_ok(portable ? launch_portable(place, &g) : tern_launch_gemm(place, &g));
    double tolerance = tolerance_of(dtype) * 2;
    assert_close(c, test_tensor(device, dtype, tern_shape_of(c), vc), .abs = tolerance,
                 .rel = tolerance);
    free(va);
    free(vb);
    free(vc);
    free(vd);
}

/* In each dtype, by up to four ways. */
static int64_t cost_of(size_t i)
{
    const int64_t ways = 4 * (int64_t)(sizeof dtypes / sizeof *dtypes);
    return products[i].m * products[i].n * products[i].k * products[i].count[0] *
           products[i].count[1] * ways;
}

/* CLBlast's programs of doubles are those of floats but for a type's name, and PoCL takes 10 s for all of them: products of
 * two matrices go by one of them, the smallest ones. */
static bool is_tried(const char *device, int way, tern_dtype dtype, size_t i)
{
    enum { SMALL = 2 };
    return way == 0 || dtype != TERN_F64 || i < SMALL || !test_on_pocl(device) ||
           test_thorough(device);
}

static bool has_ways(const char *device)
{
    return strncmp(device, "opencl", 6) == 0 && (test_gpu_form(device) || test_thorough(device));
}

static void every_way_of_a_device_computes_alpha_beta_bias_and_strides(void **state)
{
    (void)state;
    /* OpenCL's; on processors nobody has the others without asking for them. */
    static const char *const ways[] = {NULL, "gpu", "clblast"};
    FOR_EACH_DEVICE(device)
    for (int way = 0; way < (has_ways(device) ? 3 : 1); way++) {
        /* The form for GPUs takes the portable kernel on a processor by itself. */
        const bool goes_portable = test_pocl_gpu_form(device) && !test_thorough(device);
        if (ways[way])
            set_variable("TERN_OPENCL_GEMM", ways[way]);
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (size_t i = 0; i < sizeof products / sizeof *products; i++)
                for (int portable = 0; portable < (way || goes_portable ? 1 : 2); portable++)
                    if (test_affords(device, cost_of(i)) && is_tried(device, way, dtypes[d], i))
                        TERN_SCOPE {
                            check_gemm(device, dtypes[d], i, portable);
                        }
        set_variable("TERN_OPENCL_GEMM", NULL);
    }
}

/* ---- any product: sizes about the edges of blocks, and matrices that lie in any order with gaps of NaN -------------- */

static uint64_t random_state;
static int64_t between(int64_t least, int64_t most)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int64_t)((random_state >> 33) % (uint64_t)(most - least + 1));
}

/* How an (m, n) matrix lies: C with its rows contiguous; of A and B a level of batch may share one. */
static tern_matrix any_matrix(const tern_gemm *g, int64_t m, int64_t n, bool is_c, int64_t *memory)
{
    tern_matrix x = {.at = between(0, 5)};
    const int64_t size[4] = {g->count[0], g->count[1], m, n};
    int64_t *stride[4] = {&x.batch[0], &x.batch[1], &x.row, &x.col}, next = 1;
    int order[4] = {3, 2, 1, 0};
    for (int i = is_c ? 1 : 0; i < 3; i++) {
        int64_t other = between(i, 3);
        int swap = order[i];
        order[i] = order[other];
        order[other] = swap;
    }
    for (int i = 0; i < 4; i++) {
        bool shared = !is_c && order[i] < 2 && between(0, 4) == 0;
        *stride[order[i]] = shared ? 0 : next;
        next = shared ? next : next * size[order[i]] + (between(0, 1) ? 0 : between(1, 4));
    }
    *memory = x.at + next + between(0, 3);
    return x;
}

/* Numbers where its matrices are, NaN elsewhere; sums of so few bits are exact. */
static tern_tensor *fill_matrix(const char *device, const tern_gemm *g, tern_matrix *x, int64_t m,
                                int64_t n, int64_t memory)
{
    double *values = malloc((size_t)memory * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < memory; i++)
        values[i] = NAN;
    for (int64_t b0 = 0; b0 < g->count[0]; b0++)
        for (int64_t b1 = 0; b1 < g->count[1]; b1++)
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++)
                    values[place_in(x, b0, b1, i, j)] = (double)between(-128, 128) / 128;
    tern_tensor *t = test_tensor(device, g->dtype, TERN_SHAPE(memory), values);
    x->buffer = &t->storage->block->buffer;
    free(values);
    return t;
}

static void check_any_product(const char *device, uint64_t seed)
{
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
    between(0, 1);
    tern_gemm g = {.dtype = dtypes[between(0, 5) % 4], .alpha = 0.5};
    int64_t *sizes[] = {&g.m, &g.n, &g.k}, memory[3];
    for (int i = 0; i < 3; i++)
        *sizes[i] = between(0, 2) ? between(1, 40) : between(1, 8) * between(1, 16);
    g.k += between(0, 5) ? 0 : between(500, 1500);
    tern_device_info info = {0};
    assert_ok(tern_device_get_info(device, &info));
    g.dtype = g.dtype == TERN_F64 && !info.has_f64 ? TERN_F32 : g.dtype;
    g.beta = (double)between(0, 1);
    for (int i = 0; i < 2; i++)
        g.count[i] = between(0, 1) ? 1 : between(1, 4);
    g.a = any_matrix(&g, g.m, g.k, false, &memory[0]);
    g.b = any_matrix(&g, g.k, g.n, false, &memory[1]);
    g.c = any_matrix(&g, g.m, g.n, true, &memory[2]);
    tern_tensor *a = fill_matrix(device, &g, &g.a, g.m, g.k, memory[0]);
    tern_tensor *b = fill_matrix(device, &g, &g.b, g.k, g.n, memory[1]);
    tern_tensor *c = fill_matrix(device, &g, &g.c, g.m, g.n, memory[2]);
    tern_tensor *bias = uniform(device, g.dtype, TERN_SHAPE(g.n + 2));
    if (between(0, 1)) {
        g.bias = &bias->storage->block->buffer;
        g.bias_at = 2;
    }
    double *va = test_read(a), *vb = test_read(b), *vc = test_read(c), *vd = test_read(bias);
    multiply_by_hand(&g, va, vb, vc, g.bias ? vd : NULL);
    assert_ok(tern_launch_gemm(tern_tensor_place(c), &g));
    double tolerance = tolerance_of(g.dtype) * 2;
    char what[64];
    snprintf(what, sizeof what, "the product of seed %d", (int)seed);
    test_close(c, test_tensor(device, g.dtype, tern_shape_of(c), vc),
               (test_tolerance){.abs = tolerance, .rel = tolerance}, what, __FILE__, __LINE__);
    free(va);
    free(vb);
    free(vc);
    free(vd);
}

static void matrices_may_lie_anyhow_and_nothing_else_is_touched(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (uint64_t seed = 1; seed <= (test_thorough(device) ? 600 : 200); seed++)
        TERN_SCOPE {
            check_any_product(device, seed);
        }
}

static void a_vector_that_is_added_is_the_products_bias(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *a = test_uniform(device, TERN_F32, TERN_SHAPE(5, 4), -1, 1, 1);
        tern_tensor *b = test_uniform(device, TERN_F32, TERN_SHAPE(4, 3), -1, 1, 2);
        tern_tensor *all = test_uniform(device, TERN_F32, TERN_SHAPE(6), -1, 1, 3);
        tern_tensor *ab = tern_mm(a, b);
        for (int64_t at = 0; at < 4; at++) { /* also where it is badly aligned */
            tern_tensor *v = tern_narrow(all, 0, at, 3), *row = tern_unsqueeze(v, 0);
            uint64_t before = launches(device);
            tern_tensor *y = tern_addmm(v, a, b, 1, 2);
            assert_int_equal(launches(device) - before, 1);
            tern_tensor *z = tern_addmm(row, a, b, 1, 2);
            assert_int_equal(launches(device) - before, 2);
            tern_tensor *expected = tern_add(tern_add(ab, ab), v);
            assert_close(y, expected, .abs = 1e-6);
            assert_close(z, expected, .abs = 1e-6);
            assert_close(tern_addmm(v, a, b, 2, 1), tern_add(tern_add(ab, v), v), .abs = 1e-6);
        }
        assert_close(tern_addmm(tern_narrow(all, 0, 0, 1), a, b, 1, 1),
                     tern_add(ab, tern_narrow(all, 0, 0, 1)), .abs = 1e-6);
    }
}

/* 1 + 2^-12 has 12 bits of mantissa, TensorFloat-32 has 10. */
static double product_of(const char *device, tern_dtype dtype)
{
    double one = 1, near = 1 + 0x1p-12;
    tern_tensor *x = test_tensor(device, dtype, TERN_SHAPE(1, 1), &near);
    return tern_item(tern_matmul(x, test_tensor(device, dtype, TERN_SHAPE(1, 1), &one)));
}

static void less_than_float32_is_for_cuda_and_only_when_asked(void **state)
{
    static const tern_matmul_precision ways[] = {
        TERN_MATMUL_PRECISION_HIGHEST, TERN_MATMUL_PRECISION_HIGH, TERN_MATMUL_PRECISION_MEDIUM,
        TERN_MATMUL_PRECISION_HIGHEST};
    (void)state;
    assert_int_equal(tern_get_float32_matmul_precision(), TERN_MATMUL_PRECISION_HIGHEST);
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            assert_ok(tern_set_float32_matmul_precision(ways[i]));
            assert_int_equal(tern_get_float32_matmul_precision(), ways[i]);
            double y = product_of(device, TERN_F32);
            if (strncmp(device, "cuda", 4) == 0 && i % 3 != 0)
                assert_true(y == 1 || y == 1 + 0x1p-12); /* a GPU may not have it */
            else
                assert_true(y == 1 + 0x1p-12);
            assert_true(product_of(device, TERN_F64) == 1 + 0x1p-12);
        }
    assert_int_equal(tern_set_float32_matmul_precision((tern_matmul_precision)3),
                     TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "3 is not one of 'highest', 'high', or 'medium'");
    assert_int_equal(tern_get_float32_matmul_precision(), TERN_MATMUL_PRECISION_HIGHEST);
}

/* The gradient of a layer's bias comes with the product that makes its weight's: no launch of its own on cuda. */
static void a_bias_gradient_is_part_of_a_product(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(given)
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            tern_tensor *grads[2][3];
            uint64_t spent = 0;
            for (int k = 0; k < 2; k++) {
                const char *device = k ? given : "cpu";
                tern_tensor *in[] = {
                    test_uniform(device, dtypes[i], TERN_SHAPE(3, 30, 40), -1, 1, 1),
                    test_uniform(device, dtypes[i], TERN_SHAPE(50, 40), -1, 1, 2),
                    test_uniform(device, dtypes[i], TERN_SHAPE(50), -1, 1, 3)};
                tern_tensor *dy = test_uniform(device, dtypes[i], TERN_SHAPE(3, 30, 50), -1, 1, 4);
                for (int j = 0; j < 3; j++)
                    tern_requires_grad_(in[j], true);
                tern_tensor *y = tern_linear(in[0], in[1], in[2]);
                spent = launches(device);
                assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
                spent = launches(device) - spent;
                for (int j = 0; j < 3; j++)
                    grads[k][j] = tern_grad(in[j]);
            }
            if (strncmp(given, "cuda", 4) == 0)
                assert_int_equal(spent, 2);
            double error = tern_dtype_size(dtypes[i]) == 2 ? 4e-2 : 1e-4;
            for (int j = 0; j < 3; j++)
                assert_close(tern_to(grads[1][j], "cpu"), grads[0][j], .abs = error, .rel = error);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_vector_that_is_added_is_the_products_bias),
        TEST(a_bias_gradient_is_part_of_a_product),
        TEST(less_than_float32_is_for_cuda_and_only_when_asked),
        TEST(every_way_of_a_device_computes_alpha_beta_bias_and_strides),
        TEST(matrices_may_lie_anyhow_and_nothing_else_is_touched),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
