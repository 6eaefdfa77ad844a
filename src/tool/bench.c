/* bench.c -- tern bench: measures products, rows, copies and a training step, compared with the
 * hardware's limits. */
#include "tool/bench.h"
#include "base/os.h"
#include "tool/tool.h"
#include <stdlib.h>
#include <string.h>

static int tenths = 3;

/* The operands of a measured operation, created before the measurement. */
typedef struct bench {
    const char *device;
    tern_tensor *x, *y, *weight;
    tern_shape row; /* shape of a normalized row */
    tern_module *model;
    tern_optimizer *optimizer;
    tern_kernel *kernel;
    void *host;
    size_t bytes;
    int items;
} bench;

/* ---- time ---------------------------------------------------------------------------------- */

/* Returns the seconds of one call: the best of the rounds that fit into the time limit, each long
 * enough for the clock; 0 after an error. */
static double time_of(void (*work)(bench *b), bench *b)
{
    double limit = tenths * 0.1, best = 0, begun;
    int count = 1;
    TERN_SCOPE
        work(b); /* compiles */
    tern_synchronize(b->device);
    begun = tool_now();
    do {
        double from = tool_now();
        for (int i = 0; i < count; i++)
            TERN_SCOPE
                work(b);
        tern_synchronize(b->device);
        double each = (tool_now() - from) / count;
        if (each * count > limit / 16)
            best = best == 0 || each < best ? each : best;
        else
            count *= 2;
    } while (tool_now() - begun < limit || best == 0);
    return tern_last_status() == TERN_OK ? best : 0;
}

/* The best percentages of the limits that rows and products reached; 0: no limit is known. */
static struct {
    double rows, products;
} reached;

static void print_failed(const char *name)
{
    printf("  %-34s  %s\n", name, tool_error());
    tern_clear_error();
}

/* Prints a line: time, rate, and percentage of the limit. */
static void print_row(const char *name, double seconds, double amount, const char *unit,
                      double limit, double *best)
{
    double rate = amount / seconds;
    if (seconds == 0) {
        print_failed(name);
        return;
    }
    printf("  %-34s  %10.4g ms  %10.4g %s", name, seconds * 1e3, rate * 1e-9, unit);
    if (limit > 0)
        printf("  %4.0f %%", 100 * rate / limit);
    if (limit > 0 && best && 100 * rate / limit > *best)
        *best = 100 * rate / limit;
    putchar('\n');
    fflush(stdout);
}

/* ---- the hardware's limits ------------------------------------------------------------------- */

static void copy(bench *b)
{
    tern_copy_(b->y, b->x);
}

/* Independent chains of multiply-adds in registers. */
enum { CHAINS = 8, LANES = 8, ROUNDS = 2000 };
static const char peak_text[] =
    "#define STEP(x) x = mad(x, v, w);\n"
    "__kernel void peak(__global float *out, float a, int rounds)\n"
    "{\n"
    "    float8 v = (float8)(a), w = (float8)(1 - a), x0 = w, x1 = w + 1.0f, x2 = w + 2.0f, x3 = w "
    "+ 3.0f,\n"
    "           x4 = w + 4.0f, x5 = w + 5.0f, x6 = w + 6.0f, x7 = w + 7.0f;\n"
    "    for (int i = 0; i < rounds; i++) {\n"
    "        STEP(x0) STEP(x1) STEP(x2) STEP(x3) STEP(x4) STEP(x5) STEP(x6) STEP(x7)\n"
    "    }\n"
    "    float8 s = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;\n"
    "    out[get_global_id(0)] = s.s0 + s.s1 + s.s2 + s.s3 + s.s4 + s.s5 + s.s6 + s.s7;\n"
    "}\n";

static void peak(bench *b)
{
    tern_kernel_launch(b->kernel, TERN_GRID(b->items), TERN_ARG_TENSOR(b->y),
                       TERN_ARG_FLOAT(0.999f), TERN_ARG_INT(ROUNDS));
}

/* Returns operations per second; 0 if the kernel cannot be compiled. */
static double peak_of(const char *device, int compute_units)
{
    bench b = {.device = device, .items = 256 * (compute_units > 0 ? compute_units : 1)};
    double seconds = 0;
    b.kernel = tern_kernel_compile(device, peak_text, "peak");
    TERN_SCOPE {
        b.y = tern_zeros(TERN_SHAPE(b.items), TERN_F32, device);
        seconds = b.kernel ? time_of(peak, &b) : 0;
    }
    tern_kernel_free(b.kernel);
    tern_clear_error();
    return seconds > 0 ? 2.0 * CHAINS * LANES * ROUNDS * b.items / seconds : 0;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void to_device(bench *b)
{
    tern_from_data(b->host, TERN_SHAPE((int64_t)(b->bytes / 4)), TERN_F32, b->device);
}

static void to_host(bench *b)
{
    tern_copy_to_host(b->x, b->host, b->bytes);
}

/* Returns bytes read and written per second. */
static double print_copies(const char *device, size_t bytes)
{
    bench b = {.device = device, .bytes = bytes, .host = calloc(1, bytes)};
    double speed = 0, n = (double)bytes;
    char name[64], text[32];
    TERN_SCOPE {
        b.x = tern_zeros(TERN_SHAPE((int64_t)(bytes / 4)), TERN_F32, device);
        b.y = tern_zeros_like(b.x);
        double seconds = time_of(copy, &b);
        speed = seconds > 0 ? 2 * n / seconds : 0;
        printf("copies of %s\n", tool_bytes(n, text));
        snprintf(name, sizeof name, "on the device (read and written)");
        print_row(name, seconds, 2 * n, "GB/s", 0, NULL);
        if (b.host) {
            print_row("host to device", time_of(to_device, &b), n, "GB/s", 0, NULL);
            print_row("device to host", time_of(to_host, &b), n, "GB/s", 0, NULL);
        }
    }
    free(b.host);
    return speed;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void add(bench *b)
{
    tern_add(b->x, b->y);
}
static void gelu(bench *b)
{
    tern_gelu(b->x);
}
static void sum(bench *b)
{
    tern_sum(b->x);
}
static void softmax(bench *b)
{
    tern_softmax(b->x, -1);
}
static void norm(bench *b)
{
    tern_layer_norm(b->x, b->row, NULL, NULL, 1e-5);
}

static void print_rows(const char *device, double limit)
{
    static const struct {
        const char *name;
        void (*work)(bench *b);
        int moved; /* number of tensors read and written */
    } rows[] = {{"add", add, 3},
                {"gelu", gelu, 2},
                {"sum", sum, 1},
                {"softmax", softmax, 2},
                {"layer_norm", norm, 2}};
    enum { M = 4096, N = 1024 };
    printf("rows, float32 of %d x %d\n", M, N);
    TERN_SCOPE {
        bench b = {.device = device, .row = TERN_SHAPE(N)};
        b.x = tern_randn(TERN_SHAPE(M, N), TERN_F32, device);
        b.y = tern_randn(TERN_SHAPE(M, N), TERN_F32, device);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            print_row(rows[i].name, time_of(rows[i].work, &b), 4.0 * rows[i].moved * M * N, "GB/s",
                      limit, &reached.rows);
    }
}

/* ---- products -------------------------------------------------------------------------------- */

static void product(bench *b)
{
    tern_matmul(b->x, b->y);
}

static double product_of(const char *device, int64_t n, tern_dtype dtype)
{
    double seconds = 0;
    TERN_SCOPE {
        bench b = {.device = device};
        b.x = tern_to_dtype(tern_randn(TERN_SHAPE(n, n), TERN_F32, device), dtype);
        b.y = tern_to_dtype(tern_randn(TERN_SHAPE(n, n), TERN_F32, device), dtype);
        seconds = time_of(product, &b);
    }
    return seconds;
}

static void print_products(const char *device, double limit)
{
    static const struct {
        int n;
        tern_dtype dtype;
    } rows[] = {{256, TERN_F32},  {512, TERN_F32},  {1024, TERN_F32},
                {2048, TERN_F32}, {1024, TERN_F16}, {1024, TERN_BF16}};
    char name[64];
    puts("products of square matrices");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double n = rows[i].n;
        snprintf(name, sizeof name, "%s, n = %d", tern_dtype_name(rows[i].dtype), rows[i].n);
        print_row(name, product_of(device, rows[i].n, rows[i].dtype), 2 * n * n * n, "GFLOP/s",
                  rows[i].dtype == TERN_F32 ? limit : 0, &reached.products);
    }
}

/* ---- a step ---------------------------------------------------------------------------------- */

enum { BATCH = 256, WIDTH = 512 };

static void step(bench *b)
{
    tern_optim_zero_grad(b->optimizer);
    tern_backward(tern_mse_loss(tern_nn_forward(b->model, b->x), b->y, NULL));
    tern_optim_step(b->optimizer);
}

static void tiny(bench *b)
{
    tern_add(b->weight, b->weight);
}

static void print_step(const char *device, double limit)
{
    double seconds = 0, flops = 3 * 2.0 * BATCH * 2 * 4 * WIDTH * WIDTH;
    TERN_DEVICE (device) {
        bench b = {.device = device};
        b.model = tern_nn_sequential(tern_nn_linear(WIDTH, 4 * WIDTH, NULL), tern_nn_gelu(NULL),
                                     tern_nn_linear(4 * WIDTH, WIDTH, NULL));
        b.optimizer = tern_optim_adamw(b.model, 1e-4, NULL);
        TERN_SCOPE {
            b.x = tern_randn(TERN_SHAPE(BATCH, WIDTH), TERN_F32, device);
            b.y = tern_randn(TERN_SHAPE(BATCH, WIDTH), TERN_F32, device);
            b.weight = tern_zeros(TERN_SHAPE(1), TERN_F32, device);
            seconds = time_of(step, &b);
            puts("steps");
            print_row("two linear layers, gelu, AdamW", seconds, flops, "GFLOP/s", limit, NULL);
            seconds = time_of(tiny, &b);
            printf("  %-34s  %10.4g us\n", "an addition of one element", seconds * 1e6);
        }
        tern_optim_free(b.optimizer);
        tern_nn_free(b.model);
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

bench_speed bench_quickly(const char *device)
{
    bench_speed speed = {0};
    tenths = 2;
    TERN_SCOPE {
        bench b = {.device = device};
        b.x = tern_zeros(TERN_SHAPE(1 << 22), TERN_F32, device);
        b.y = tern_zeros_like(b.x);
        double seconds = time_of(copy, &b);
        speed.copy = seconds > 0 ? 2 * 4.0 * (1 << 22) / seconds * 1e-9 : 0;
        seconds = product_of(device, 512, TERN_F32);
        speed.gemm = seconds > 0 ? 2.0 * 512 * 512 * 512 / seconds * 1e-9 : 0;
    }
    tern_clear_error();
    return speed;
}

/* Below these percentages the device is not the bottleneck. */
enum { ENOUGH_ROWS = 40, ENOUGH_PRODUCTS = 40 };

static void print_verdict(const tern_device_info *d, bool busy)
{
    bool slow_products = reached.products > 0 && reached.products < ENOUGH_PRODUCTS;
    bool slow_rows = reached.rows > 0 && reached.rows < ENOUGH_ROWS;
    bool opencl = strncmp(d->device, "opencl", 6) == 0;
    fputs("verdict: ", stdout);
    if (reached.products > 0)
        printf("products reach %.0f %% of the arithmetic, ", reached.products);
    printf("rows reach %.0f %% of the memory: ", reached.rows);
    if (busy)
        puts("the machine was busy, measure again when it is idle");
    else if (!slow_products && !slow_rows)
        puts("as fast as this device should be");
    else
        printf("%s slow%s%s\n",
               slow_products && slow_rows ? "both are"
               : slow_products            ? "products are"
                                          : "rows are",
               slow_products && opencl                          ? "; `tern tune` finds faster ways"
               : slow_products && strcmp(d->device, "cpu") == 0 ? "; is oneDNN there?"
                                                                : "",
               opencl ? "; `tern doctor` finds what a driver gets wrong" : "");
}

static int run(const char *const *words, int n)
{
    const char *device = tern_device_canonical(n ? words[0] : "auto");
    tern_device_info d;
    if (!device || tern_device_get_info(device, &d) != TERN_OK)
        return tool_fail_with_error();
    if (tenths < 1)
        return tool_fail(TOOL_USAGE, "bench: --tenths is at least 1");
    if (tern_os_isatty(STDERR_FILENO)) /* prints a line while kernels compile */
        tern_os_setenv("TERN_PROGRESS", "1", 0);
    bool busy = tool_warn_of_others("and the times are longer for that");
    uint64_t most = d.memory_free / 16;
    size_t bytes = most < 64 << 20 ? (size_t)(most & ~UINT64_C(4095)) : 64 << 20;
    printf("%s: %s (%s, %s), %d compute units\n", d.device, d.name, d.platform, d.driver,
           d.compute_units);
    double arithmetic = peak_of(device, d.compute_units);
    double memory = print_copies(device, bytes);
    printf("limits, measured: memory %.4g GB/s, ", memory * 1e-9);
    if (arithmetic > 0)
        printf("multiply-adds of float32 %.4g GFLOP/s; the percentages are of these\n",
               arithmetic * 1e-9);
    else
        puts("arithmetic not known (nothing compiles a kernel for this device here)");
    print_rows(device, memory);
    print_products(device, arithmetic);
    print_step(device, arithmetic);
    if (tern_last_status() != TERN_OK)
        return tool_fail_with_error();
    print_verdict(&d, busy);
    return TOOL_FINE;
}

static const tool_option options[] = {{"--tenths", "N",
                                       "measure each line for N tenths of a second; by default 3",
                                       .number = &tenths},
                                      {0}};

const tool_command tool_bench = {
    .name = "bench",
    .arguments = "[DEVICE]",
    .summary = "Measure copies, products and a training step on a device",
    .more = "The limits of the device are measured too: a copy shows how fast memory moves, and a "
            "kernel of\n"
            "multiply-adds in registers how fast the device computes. The verdict compares the "
            "best lines with\n"
            "these limits. The command first checks whether other programs use the processors.\n",
    .part = TOOL_MACHINE,
    .example = "tern bench auto",
    .device = true,
    .most = 1,
    .options = options,
    .run = run,
};
