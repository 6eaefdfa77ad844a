/* test_gemm_tensor_cores.c -- products of halves, and of float32 as TensorFloat-32, by CUDA's form of
 * gemm_matrix.cl, as where there is no cuBLASLt: against float64, of numbers whose sums are exact. The
 * stand-in for a GPU does the PTX of the text as its manual says. */
#include "device/cuda/cuda.h"
#include "environment.h"
#include "heard.h"
#include "support.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* MATRIX_ODD: how far lines are apart, and where the first begins; BESIDE: as EIGHTS, in memory that
 * begins at no multiple of 16 bytes. */
enum { EIGHTS, EDGES, ANY, BESIDE };

typedef struct row {
    const char *what;
    tern_dtype dtype;
    int64_t m, n, k, count[2];
    bool a_across, b_across;
    int odd;
    double alpha, beta;
    bool bias, wide, large;
    enum tern_gemm_epilogue epilogue;
} row;
/* clang-format off */
static const row rows[] = {
    {"nt, a batch", TERN_F16, 70, 72, 40, {2, 3}, 0, 1, EIGHTS, 0.5, 2, 1, 0, 0, 0},
    {"tn, float32 results", TERN_BF16, 72, 64, 33, {1, 1}, 1, 0, EIGHTS, 1, 1, 0, 1, 0, 0},
    {"nn, edges", TERN_BF16, 67, 45, 33, {1, 2}, 0, 0, EDGES, 1, 0, 1, 0, 0, 0},
    {"tt, any strides", TERN_F16, 65, 70, 19, {1, 2}, 1, 1, ANY, -1, 1, 0, 0, 0, 0},
    {"nn, memory that begins anywhere", TERN_BF16, 64, 72, 40, {1, 1}, 0, 0, BESIDE, 1, 1, 0, 0, 0, 0},
    {"nt, gelu", TERN_F16, 40, 72, 16, {1, 1}, 0, 1, EIGHTS, 1, 0, 1, 0, 0, TERN_GEMM_GELU},
    {"nt, gelu, edges", TERN_BF16, 33, 45, 20, {1, 1}, 0, 1, EDGES, 1, 0, 1, 0, 0, TERN_GEMM_GELU},
    {"nn, gelu's gradient", TERN_BF16, 40, 72, 24, {1, 1}, 0, 0, EIGHTS, 1, 0, 0, 0, 0, TERN_GEMM_GELU_GRADIENT},
    {"tt, gelu's gradient, edges", TERN_F16, 65, 45, 24, {1, 1}, 1, 1, EDGES, 0.5, 0, 0, 0, 0, TERN_GEMM_GELU_GRADIENT},
    {"nt, relu", TERN_BF16, 30, 80, 40, {1, 1}, 0, 1, EIGHTS, 1, 0, 1, 0, 0, TERN_GEMM_RELU},
    {"nn, a large tile", TERN_BF16, 130, 136, 72, {1, 1}, 0, 0, EIGHTS, 1, 0, 1, 0, 1, 0},
    {"tn, a large tile, float32 results", TERN_F16, 136, 130, 70, {1, 1}, 1, 0, EDGES, 1, 0, 0, 1, 1, 0},
    {"nt, float32, relu", TERN_F32, 68, 72, 40, {1, 2}, 0, 1, EIGHTS, 1, 0, 1, 0, 0, TERN_GEMM_RELU},
    {"tn, float32, edges", TERN_F32, 66, 45, 33, {1, 2}, 1, 0, EDGES, 1, 2, 1, 0, 0, 0},
    {"nn, float32, any strides", TERN_F32, 65, 70, 19, {1, 1}, 0, 0, ANY, 0.5, 0, 0, 0, 0, 0},
    {"tt, float32, a large tile", TERN_F32, 132, 136, 72, {1, 1}, 1, 1, EIGHTS, 1, 1, 0, 0, 1, 0},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- operands ------------------------------------------------------------------------------ */

/* Eighths, whose products and sums have no rounding. */
static tern_tensor *eighths(const char *device, tern_dtype dtype, int64_t n, uint32_t seed)
{
    double *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = ((int)(seed >> 24) % 31 - 15) / 8.0;
    }
    tern_tensor *made = test_tensor(device, dtype, TERN_SHAPE(n), x);
    free(x);
    return made;
}

typedef struct operand {
    tern_matrix at;
    int64_t begin; /* its first element in memory, which is number at.at of a buffer in it */
    tern_buffer beside;
    tern_tensor *memory;
    double *was;
} operand;

/* With gaps between its lines, and memory behind the last for a whole load. */
static void lay(operand *to, const char *device, const row *r, tern_dtype dtype, int64_t height,
                int64_t width, bool across, uint32_t seed)
{
    const int64_t length = across ? height : width, lines = across ? width : height;
    const int64_t line = r->odd == ANY ? length + 3 : (length + 7) / 8 * 8 + 8;
    operand o = {.at = {.row = across ? 1 : line, .col = across ? line : 1}};
    o.at.at = r->odd == ANY ? 1 : 8;
    o.begin = o.at.at + (r->odd == BESIDE);
    o.at.batch[1] = line * lines;
    o.at.batch[0] = o.at.batch[1] * r->count[1];
    o.memory = eighths(device, dtype, o.at.batch[0] * r->count[0] + o.begin + 8, seed);
    o.was = test_read(o.memory);
    *to = o;
    to->at.buffer = &o.memory->storage->block->buffer;
    if (r->odd == BESIDE) { /* as an application's memory */
        const size_t size = tern_dtype_size(dtype);
        to->beside = *to->at.buffer;
        to->beside.handle = (char *)to->beside.handle + size;
        to->beside.address = (uint64_t)(uintptr_t)to->beside.handle;
        to->beside.bytes -= size;
        to->at.buffer = &to->beside;
    }
}

/* ---- float64 ------------------------------------------------------------------------------- */

static double gelu(double x, double *slope)
{
    const double t = tanh(0.79788456080286536 * (x + 0.044715 * x * x * x));
    *slope =
        0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.79788456080286536 * (1 + 3 * 0.044715 * x * x);
    return 0.5 * x * (1 + t);
}

static double last(const row *r, double v, double noted)
{
    double slope, y = gelu(r->epilogue == TERN_GEMM_GELU_GRADIENT ? noted : v, &slope);
    return r->epilogue == TERN_GEMM_RELU            ? fmax(v, 0)
           : r->epilogue == TERN_GEMM_GELU          ? y
           : r->epilogue == TERN_GEMM_GELU_GRADIENT ? v * slope
                                                    : v;
}

/* Half a unit in the last place, and what exponents of few bits leave of gelu. */
static double may_be(const row *r, double want, bool exact)
{
    const tern_dtype dtype = r->wide ? TERN_F32 : r->dtype;
    const double unit = dtype == TERN_F32 ? 0x1p-24 : dtype == TERN_F16 ? 0x1p-11 : 0x1p-8;
    return unit * fabs(want) * (exact ? 1 : 1.01) + (exact ? 1e-7 : 1e-5);
}

static void check(const row *r, const tern_gemm *g, const operand o[3], const double *bias,
                  const operand *noted)
{
    double *c = test_read(o[2].memory), *now = noted ? test_read(noted->memory) : NULL;
    const bool exact = r->epilogue < TERN_GEMM_GELU;
    for (int64_t u = 0; u < g->count[0] * g->count[1] * g->m * g->n; u++) {
        const int64_t j = u % g->n, i = u / g->n % g->m, batch = u / g->n / g->m;
        const int64_t b[] = {batch / g->count[1], batch % g->count[1]};
        int64_t at[3];
        for (int x = 0; x < 3; x++)
            at[x] = o[x].begin + b[0] * o[x].at.batch[0] + b[1] * o[x].at.batch[1];
        const int64_t to = at[2] + i * g->c.row + j;
        const int64_t note = i * tern_gemm_gelu_row(g->n) + j;
        double v = 0;
        for (int64_t k = 0; k < g->k; k++)
            v += o[0].was[at[0] + i * g->a.row + k * g->a.col] *
                 o[1].was[at[1] + k * g->b.row + j * g->b.col];
        v = g->alpha * v + (bias ? bias[j] : 0) + (g->beta != 0 ? g->beta * o[2].was[to] : 0);
        if (r->epilogue == TERN_GEMM_GELU && !(fabs(now[note] - v) <= may_be(r, v, true)))
            fail_msg("%s: row %d, column %d: noted %g, not %g", r->what, (int)i, (int)j, now[note],
                     v);
        const double want = last(r, v, noted ? noted->was[note] : 0);
        if (!(fabs(c[to] - want) <= may_be(r, want, exact)))
            fail_msg("%s: batch %d, row %d, column %d: %.9g, not %.9g", r->what, (int)batch, (int)i,
                     (int)j, c[to], want);
    }
    for (int64_t e = 0; e < o[2].memory->numel; e++) { /* nothing is written between the lines */
        const int64_t column = (e - o[2].begin + g->c.row) % g->c.row;
        if ((e < o[2].begin || column >= g->n) && c[e] != o[2].was[e])
            fail_msg("%s: element %d was written", r->what, (int)e);
    }
    free(c), free(now);
}

/* ---- a product ------------------------------------------------------------------------------- */

static void compare(const char *device, const row *r)
{
    tern_place *place = tern_place_find(device, "test");
    tern_device_info *info = (tern_device_info *)(uintptr_t)tern_place_info(place);
    const int units = info->compute_units;
    tern_gemm g = {.dtype = r->dtype,
                   .m = r->m,
                   .n = r->n,
                   .k = r->k,
                   .count = {r->count[0], r->count[1]},
                   .alpha = r->alpha,
                   .beta = r->beta,
                   .epilogue = r->epilogue,
                   .wide = r->wide};
    operand o[3];
    lay(&o[0], device, r, r->dtype, r->m, r->k, r->a_across, 1);
    lay(&o[1], device, r, r->dtype, r->k, r->n, r->b_across, 2);
    lay(&o[2], device, r, r->wide ? TERN_F32 : r->dtype, r->m, r->n, false, 3);
    tern_tensor *bias = eighths(device, r->dtype, r->n + 8, 4);
    double *biases = test_read(bias);
    operand noted = {.memory = eighths(device, r->dtype, r->m * tern_gemm_gelu_row(r->n), 5)};
    noted.was = test_read(noted.memory);
    g.a = o[0].at, g.b = o[1].at, g.c = o[2].at;
    g.bias = r->bias ? &bias->storage->block->buffer : NULL;
    g.bias_at = 8;
    if (r->epilogue > TERN_GEMM_RELU)
        g.mask = &noted.memory->storage->block->buffer;
    assert_ok(tern_set_float32_matmul_precision(
        r->dtype == TERN_F32 ? TERN_MATMUL_PRECISION_HIGH : TERN_MATMUL_PRECISION_HIGHEST));
    info->compute_units = r->large ? 1 : 1000;
    tern_status status = tern_launch_gemm(place, &g);
    info->compute_units = units;
    assert_ok(tern_set_float32_matmul_precision(TERN_MATMUL_PRECISION_HIGHEST));
    assert_ok(status);
    check(r, &g, o, r->bias ? biases + 8 : NULL, g.mask ? &noted : NULL);
    for (int x = 0; x < 3; x++)
        free(o[x].was);
    free(biases), free(noted.was);
}

/* NULL where products are no tensor cores'. */
static tern_place *place_of(const char *device)
{
    tern_place *place = strncmp(device, "cuda", 4) == 0 ? tern_place_find(device, "test") : NULL;
    if (place && tern_cuda_state_of(place)->compute >= 80)
        return place;
    test_skipped("%s has no tensor cores", device);
    return NULL;
}

static int count_kernels(tern_place *place)
{
    int n = 0;
    for (const tern_matrix_kernel *k = tern_cuda_state_of(place)->own.first; k; k = k->next)
        n += k->state == TERN_MATRIX_RIGHT;
    return n;
}

static void forget_kernels(tern_place *place)
{
    tern_matrix_kernels_free(&tern_cuda_state_of(place)->own);
}

static void compare_all(const char *device, const char *way)
{
    const bool plain = strcmp(way, "plain") == 0;
    for (int i = 0; place_of(device) && i < ROWS; i++)
        TERN_SCOPE {
            if (plain && rows[i].dtype == TERN_F32)
                continue; /* as float32 there */
            forget_kernels(place_of(device));
            set_variable("TERN_MATRIX", way);
            compare(device, &rows[i]);
            set_variable("TERN_MATRIX", NULL);
            assert_int_equal(count_kernels(place_of(device)), 1);
        }
}

static void tensor_cores_are_as_float64(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    compare_all(device, "auto");
}

static void ordinary_arithmetic_is_as_float64(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    compare_all(device, "plain");
}

/* ---- what chooses it ------------------------------------------------------------------------- */

static void multiply(const char *device, tern_dtype dtype)
{
    tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(40, 24), -1, 1, 1);
    tern_tensor *y = tern_matmul(x, tern_t(x)), *there = tern_to(tern_to_dtype(x, TERN_F32), "cpu");
    assert_close(tern_to(tern_to_dtype(y, TERN_F32), "cpu"), tern_matmul(there, tern_t(there)),
                 .abs = 2e-2, .rel = 1e-2);
}

static bool does(const char *device, tern_dtype dtype, const char *way)
{
    forget_kernels(place_of(device));
    set_variable("TERN_MATRIX", way);
    multiply(device, dtype);
    set_variable("TERN_MATRIX", NULL);
    return count_kernels(place_of(device)) > 0;
}

/* float32 goes as TensorFloat-32 where that is allowed, and off takes none. */
static void what_is_set_chooses(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        if (!place_of(device))
            continue;
        assert_false(does(device, TERN_F32, "auto"));
        assert_false(does(device, TERN_BF16, "off"));
        assert_true(does(device, TERN_BF16, "auto"));
        assert_ok(tern_set_float32_matmul_precision(TERN_MATMUL_PRECISION_HIGH));
        const bool allowed = does(device, TERN_F32, "auto"),
                   plain = does(device, TERN_F32, "plain");
        assert_ok(tern_set_float32_matmul_precision(TERN_MATMUL_PRECISION_HIGHEST));
        assert_true(allowed);
        assert_false(plain);
    }
}

/* Rounded to the nearest: 1 + 2^-11 is between two of 11 bits, and goes away from 0. */
static void numbers_are_rounded_to_11_bits(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        static const double given[] = {1 + 0x1p-12, 1 + 0x1p-11, -1 - 0x1p-11, 0x1p100, INFINITY};
        static const double rounded[] = {1, 1 + 0x1p-10, -1 - 0x1p-10, 0x1p100, INFINITY};
        if (!place_of(device))
            continue;
        for (int i = 0; i < 5; i++) {
            tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(1, 1), given[i]);
            assert_ok(tern_set_float32_matmul_precision(TERN_MATMUL_PRECISION_HIGH));
            tern_tensor *y = tern_matmul(x, tern_ones(TERN_SHAPE(1, 1), TERN_F32, device));
            assert_ok(tern_set_float32_matmul_precision(TERN_MATMUL_PRECISION_HIGHEST));
            assert_values(y, rounded[i]);
        }
    }
}

/* A kernel that a recorded product wants is built and tried beside the recording. */
static void a_recorded_product_is_tried_beside_it(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        if (!place_of(device))
            continue;
        tern_tensor *x = test_uniform(device, TERN_F16, TERN_SHAPE(24, 40), -1, 1, 1), *y = NULL;
        tern_graph *graph = tern_graph_new(device);
        forget_kernels(place_of(device));
        TERN_CAPTURE (graph)
            y = tern_matmul(x, tern_t(x));
        for (int i = 0; i < 2; i++)
            assert_ok(tern_graph_replay(graph));
        assert_int_equal(count_kernels(place_of(device)), 1);
        assert_same(y, tern_matmul(x, tern_t(x)));
        tern_graph_free(graph);
    }
}

/* Large products of rows that begin anywhere are worth copies, without cuBLASLt too. */
static void large_products_want_rows_at_multiples(void **state)
{
    (void)state;
    static const struct {
        tern_dtype dtype;
        int64_t size;
        const char *way;
        bool wanted;
    } all[] = {{TERN_BF16, 1024, "auto", true},
               {TERN_F32, 1024, "auto", false},
               {TERN_BF16, 1024, "off", false}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; place_of(device) && i < sizeof all / sizeof *all; i++) {
        const tern_gemm g = {
            .dtype = all[i].dtype, .m = all[i].size, .n = all[i].size, .k = all[i].size};
        set_variable("TERN_MATRIX", all[i].way);
        const bool wants = tern_place_wants_multiples(place_of(device), &g);
        set_variable("TERN_MATRIX", NULL);
        assert_int_equal(wants, all[i].wanted);
    }
}

static void note_products(const tern_compile_progress *progress, void *user)
{
    int *n = user;
    n[0] += strstr(progress->kernel, "gemm_f16 of matmul.cl") != NULL;
    n[1] += strstr(progress->kernel, "gemm_f32 of matmul.cl") != NULL;
}

/* matmul.cl is compiled ahead for what it will compute: here float32 and not float16. */
static void only_what_runs_is_compiled_ahead(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const tern_dtype dtypes[] = {TERN_F16, TERN_F32};
        const int minor = tern_cuda.nvrtc_minor;
        const char *given = getenv("TERN_CACHE_DIR");
        int n[2] = {0};
        if (!place_of(device))
            continue;
        char *before = given ? strdup(given) : NULL;
        tern_cuda.nvrtc_minor = 98; /* nothing of it was built by the tests before */
        set_variable("TERN_CACHE_DIR", "/dev/null");
        tern_on_compile(note_products, n);
        assert_ok(tern_compile_begin(device));
        for (int i = 0; i < 2; i++) {
            tern_tensor *x = tern_ones(TERN_SHAPE(24, 40), dtypes[i], device);
            assert_non_null(tern_matmul(x, tern_t(x)));
        }
        assert_ok(tern_compile_end());
        tern_on_compile(NULL, NULL);
        set_variable("TERN_CACHE_DIR", before);
        free(before);
        tern_cuda.nvrtc_minor = minor;
        assert_int_equal(n[0], 0);
        assert_true(n[1] > 0);
    }
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Two layers with gelu between them in bfloat16, whose weights are float32: y and gradients. */
static void train(const char *device, tern_tensor *got[5])
{
    tern_linear_options o = {.device = device};
    tern_gelu_options by_tanh = {.approximate = TERN_APPROXIMATE_TANH};
    tern_module *m = tern_nn_sequential(tern_nn_linear(16, 24, &o), tern_nn_gelu(&by_tanh),
                                        tern_nn_linear(24, 8, &o));
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(40, 16), -1, 1, 1);
    static const char *const names[] = {"0.weight", "0.bias", "2.weight", "2.bias"};
    for (int i = 0; i < 4; i++) {
        tern_tensor *p = tern_nn_parameter(m, names[i]);
        TERN_NO_GRAD
            tern_copy_(
                p, test_uniform(device, TERN_F32, tern_shape_of(p), -0.3, 0.3, (uint64_t)i + 2));
    }
    TERN_AUTOCAST (device, TERN_BF16)
        got[0] = tern_nn_forward(m, x);
    tern_tensor *y = tern_to_dtype(got[0], TERN_F32);
    assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
    for (int i = 0; i < 4; i++)
        got[1 + i] = tern_clone(tern_grad(tern_nn_parameter(m, names[i])));
    tern_nn_free(m);
}

static void layers_are_as_on_the_cpu(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *here[5], *there[5];
        if (!place_of(device))
            continue;
        forget_kernels(place_of(device));
        train(device, here);
        train("cpu", there);
        for (int i = 0; i < 5; i++)
            assert_close(tern_to(here[i], "cpu"), there[i], .abs = 3e-2, .rel = 3e-2);
        int wide = 0;
        for (const tern_matrix_kernel *k = tern_cuda_state_of(place_of(device))->own.first; k;
             k = k->next)
            wide += k->of.numbers[6]; /* MATRIX_WIDE */
        assert_true(wide > 0);        /* gradients of weights are not rounded */
    }
}

/* ---- devices that promise what they have not --------------------------------------------------- */

static void hear_of_units(const char *kind, const char *text, void *user)
{
    if (strstr(text, "matrix unit"))
        hear(kind, text, user);
}

static void check_a_liar(const char *device, bool lies)
{
    heard h = {0};
    tern_on_warning(hear_of_units, &h);
    forget_kernels(place_of(device));
    for (int again = 0; again < 2; again++)
        multiply(device, lies ? TERN_BF16 : TERN_F16); /* none of F16 is in a cache, of no run */
    tern_on_warning(NULL, NULL);
    assert_int_equal(count_kernels(place_of(device)), 0);
    if (h.count != 1 || !strstr(h.text, lies ? "came out wrong" : "does not build"))
        fail_msg("%d warnings: %s", h.count, h.text);
}

static void a_device_that_promises_what_it_has_not_is_found_out(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int lies = 0; lies < 2; lies++)
        TERN_SCOPE {
            if (!place_of(device))
                continue;
            if (!strstr(tern_place_info(place_of(device))->name, "stand-in")) {
                test_skipped("%s tells the truth", device);
                continue;
            }
            const int minor = tern_cuda.nvrtc_minor;
            tern_cuda.nvrtc_minor = 99; /* nothing of it is in a cache */
            setenv("TERN_STANDIN_MATRIX", lies ? "wrong" : "refused", 1);
            check_a_liar(device, lies);
            unsetenv("TERN_STANDIN_MATRIX");
            tern_cuda.nvrtc_minor = minor;
            forget_kernels(place_of(device));
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(tensor_cores_are_as_float64),
        TEST(ordinary_arithmetic_is_as_float64),
        TEST(what_is_set_chooses),
        TEST(numbers_are_rounded_to_11_bits),
        TEST(a_recorded_product_is_tried_beside_it),
        TEST(large_products_want_rows_at_multiples),
        TEST(only_what_runs_is_compiled_ahead),
        TEST(layers_are_as_on_the_cpu),
        TEST(a_device_that_promises_what_it_has_not_is_found_out),
    };
    FOR_EACH_DEVICE(device)
    if (strncmp(device, "cuda", 4) == 0 && tern_place_find(device, "test"))
        tern_cuda.has_lt = false;
    return test_main(tests, sizeof tests / sizeof *tests);
}
