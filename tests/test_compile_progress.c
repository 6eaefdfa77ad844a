/* test_compile_progress.c -- who is told of compilers that a program waits for, on every way that leads to one, and how it stops
 * waiting. */
#include "rerun.h"

/* ---- scenarios ----------------------------------------------------------------------------- */

typedef struct calls {
    int begun, done, late, wrong;
    bool stops;
} calls;

static void count(const tern_compile_progress *p, void *user)
{
    calls *c = user;
    bool begins = c->done == (int)p->done; /* one compiler at a time: TERN_COMPILE_THREADS=0 */
    c->begun += begins;
    c->done += !begins;
    c->late += strstr(p->kernel, "first launch") != NULL;
    c->wrong += p->done > p->total || p->total < c->begun || !*p->kernel || !*p->device;
    if (c->stops)
        tern_compile_stop(true);
}

static double sum_of(const char *device)
{
    tern_tensor *x = tern_ones(TERN_SHAPE(64, 64), TERN_F32, device);
    return tern_item(tern_sum(tern_mul(tern_gelu(x), tern_add(x, x))));
}

static const char source[] = "__kernel void twice(__global float *x, int n)\n"
                             "{ int i = get_global_id(0); if (i < n) x[i] *= 2; }\n";

/* Kernels of the library's, then one of the program's own. */
static int told(void)
{
    calls c[2] = {{0}};
    const char *device = getenv("DEVICE");
    tern_on_compile(count, &c[0]);
    double sum = strcmp(device, "cpu") ? sum_of(device) : 0;
    tern_on_compile(count, &c[1]);
    c[1].begun = c[1].done = c[0].done;
    tern_kernel *kernel = tern_kernel_compile(device, source, "twice");
    tern_tensor *x = tern_ones(TERN_SHAPE(4), TERN_F32, device);
    tern_kernel_launch(kernel, TERN_GRID(4), TERN_ARG_TENSOR(x), TERN_ARG_INT(4));
    tern_synchronize(device);
    tern_memory_stats stats = {0};
    tern_memory_get_stats(device, &stats);
    printf("sum %d built %d begun %d done %d late %d wrong %d own %d %s", sum > 0,
           (int)stats.programs_built, c[0].begun, c[0].done, c[0].late, c[0].wrong + c[1].wrong,
           c[1].done - c[0].done, tern_last_error());
    tern_kernel_free(kernel);
    return 0;
}

/* The handler stops at the first; then it goes on. */
static int stopped(void)
{
    calls c = {.stops = true};
    const char *device = getenv("DEVICE");
    tern_on_compile(count, &c);
    double sum = sum_of(device);
    printf("sum %d status %s %s|", sum > 0, tern_status_name(tern_last_status()),
           tern_last_error());
    tern_clear_error();
    c.stops = false;
    int done = c.done;
    tern_compile_stop(false);
    sum = sum_of(device);
    printf("sum %d more %d %s", sum > 0, c.done > done, tern_last_error());
    return 0;
}

static int compute(void)
{
    printf("sum %d %s", sum_of(getenv("DEVICE")) > 0, tern_last_error());
    return 0;
}

static const scenario scenarios[] = {{"told", told}, {"stopped", stopped}, {"compute", compute}};

/* ---- tests --------------------------------------------------------------------------------- */

static const struct {
    const char *device, *form;
} ways[] = {{"cpu", "TERN_OPENCL_FORM"},
            {"opencl:0", "TERN_OPENCL_FORM=cpu"},
            {"opencl:0", "TERN_OPENCL_FORM=gpu"},
            {"cuda:0", "TERN_OPENCL_FORM"}};
enum { WAYS = sizeof ways / sizeof *ways };

static char device[64], own[1024], driver[1024];

/* Caches of their own, which are empty. */
static bool begin(int way)
{
    static int n;
    snprintf(device, sizeof device, "DEVICE=%s", ways[way].device);
    snprintf(own, sizeof own, "TERN_CACHE_DIR=%s/own%d", folder, ++n);
    snprintf(driver, sizeof driver, "POCL_CACHE_DIR=%s/driver%d", folder, n);
    mkdir(strchr(driver, '=') + 1, 0700);
    return tern_device_is_available(ways[way].device);
}

static void a_handler_hears_of_every_compiler(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        int sum, built, begun, done, late, wrong, its;
        if (!begin(way))
            continue;
        const char *output =
            RUN("told", device, own, driver, ways[way].form, "TERN_COMPILE_THREADS=0");
        assert_int_equal(sscanf(output, "sum %d built %d begun %d done %d late %d wrong %d own %d",
                                &sum, &built, &begun, &done, &late, &wrong, &its),
                         7);
        bool computes = strcmp(ways[way].device, "cpu") != 0;
        if (sum != computes || begun != done || wrong || its < 1 || (computes && begun < 3) ||
            begun + its < built)
            fail_msg("%s %s: %s", device, ways[way].form, output);
        tern_device_info info = {0};
        tern_device_get_info(ways[way].device, &info);
        if (info.platform && strstr(info.platform, "Portable") && late < 2)
            fail_msg("%s %s: of PoCL's compiler: %s", device, ways[way].form, output);
    }
}

static void a_program_stops_waiting(void **state)
{
    (void)state;
    int ran = 0;
    for (int way = 1; way < WAYS; way++) {
        if (!begin(way))
            continue;
        ran++;
        const char *output = RUN("stopped", device, own, driver, ways[way].form);
        if (!strstr(output, "sum 0 status STATE ") || !strstr(output, "tern_compile_stop") ||
            !strstr(output, "|sum 1 more 1"))
            fail_msg("%s %s: %s", device, ways[way].form, output);
    }
    if (!ran)
        skip();
}

/* Where no terminal is, lines; RUN reads what goes to stderr with TERN_WARN. */
static void the_environment_asks_for_lines(void **state)
{
    (void)state;
    int ran = 0;
    for (int way = 1; way < WAYS; way++) {
        if (!begin(way))
            continue;
        ran++;
        const char *output =
            RUN("compute", device, own, driver, ways[way].form, "TERN_PROGRESS=1", "TERN_WARN=0");
        char begins[96];
        snprintf(begins, sizeof begins, "tern: %s compiles kernel ", ways[way].device);
        const char *first = strstr(output, begins);
        if (!strstr(output, "sum 1") || !first || !strchr(first, '\n') || strchr(output, '\r'))
            fail_msg("%s %s: %s", device, ways[way].form, output);
    }
    if (!ran)
        skip();
}

int main(int argc, char **argv)
{
    int code = rerun_scenario(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {
        TEST(a_handler_hears_of_every_compiler),
        TEST(a_program_stops_waiting),
        TEST(the_environment_asks_for_lines),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return failed;
}
