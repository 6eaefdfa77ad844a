/* tune_run.c -- tries one kernel for a product in a child process: checks odd sizes first, then
 * measures the time by the device's events. */
#include "tool/tune.h"
#include "base/os.h"
#include "tool/doctor.h"
#include <stdlib.h>
#include <string.h>
#include <tern/profiler.h>

/* Sets TERN_OPENCL_GEMM, which each product reads; "" means the library's own choice. */
static void take_way(const char *way)
{
    if (*way)
        tern_os_setenv("TERN_OPENCL_GEMM", way, 1);
    else
        tern_os_unsetenv("TERN_OPENCL_GEMM");
}

/* Returns a tensor (count, rows, columns), or a transposed view of that shape. */
static tern_tensor *operand(const tune_trial *t, int64_t rows, int64_t columns, char layout)
{
    const tern_dtype dtype = tune_is_half(&t->of) ? TERN_F16 : TERN_F32;
    int64_t count = t->of.count;
    if (layout == 'n')
        return tern_randn(TERN_SHAPE(count, rows, columns), dtype, t->device);
    return tern_transpose(tern_randn(TERN_SHAPE(count, columns, rows), dtype, t->device), 1, 2);
}

static bool is_right(const tune_trial *t)
{
    double apart = 1;
    TERN_SCOPE {
        tern_tensor *x = operand(t, 131, 75, t->of.layout[0]);
        tern_tensor *y = operand(t, 75, 69, t->of.layout[1]);
        take_way("portable");
        tern_tensor *expected = tern_bmm(x, y);
        take_way(t->way);
        tern_tensor *z = tern_bmm(x, y);
        apart = tern_item(tern_max(tern_abs(tern_sub(z, expected))));
    }
    /* The sums of 75 products of normal numbers are at most about 40; NaN fails the comparison. */
    return apart <= (tune_is_half(&t->of) ? 0.06 : 1e-3);
}

/* Returns the seconds of one product, measured over n; 0 after an error. */
static double time_of(tern_tensor *x, tern_tensor *y, int n)
{
    tern_profiler_row row = {0};
    tern_profiler *p = tern_profiler_new(NULL);
    double from = tool_now();
    tern_profiler_start(p);
    TERN_PROFILER_LABEL("product")
    {
        for (int i = 0; i < n; i++)
            TERN_SCOPE
                tern_bmm(x, y);
    }
    tern_profiler_stop(p);
    double wall = tool_now() - from;
    tern_profiler_find(p, "product", NULL, &row);
    tern_profiler_free(p);
    double seconds = row.device_ns > 0 ? (double)row.device_ns * 1e-9 : wall;
    return tern_last_status() == TERN_OK ? seconds / n : 0;
}

/* Returns the best of a few rounds, each long enough for the clock. */
static double best_time(const tune_trial *t)
{
    double best = 0, round = t->quick ? 0.01 : 0.05;
    TERN_SCOPE {
        tern_tensor *x = operand(t, t->of.m, t->of.k, t->of.layout[0]);
        tern_tensor *y = operand(t, t->of.k, t->of.n, t->of.layout[1]);
        take_way(t->way);
        double once = time_of(x, y, 1);
        once = time_of(x, y, 1); /* the first call compiles */
        int n = once > 0 && round / once < 200 ? (int)(round / once) + 1 : 200;
        for (int i = 0; i < 3 && tern_last_status() == TERN_OK; i++) {
            double seconds = time_of(x, y, n);
            best = best == 0 || (seconds > 0 && seconds < best) ? seconds : best;
        }
    }
    return best;
}

/* Runs in the child: writes the seconds, or "!" and the reason. */
static void measure(FILE *to, const void *user)
{
    const tune_trial *t = user;
    tern_counters before = {0}, after = {0};
    tern_os_setenv("TERN_OPENCL_TUNING", "off", 1);
    take_way(t->way);
    tern_get_counters(t->device, &before);
    bool right = is_right(t);
    tern_get_counters(t->device, &after);
    if (strcmp(t->way, "clblast") == 0 && after.fallbacks > before.fallbacks)
        fputs("!there is no CLBlast", to);
    else if (tern_last_status() != TERN_OK)
        fprintf(to, "!%s", tern_last_error());
    else if (!right)
        fputs("!its result is wrong", to);
    else {
        double seconds = best_time(t);
        if (tern_last_status() != TERN_OK)
            fprintf(to, "!%s", tern_last_error());
        else
            fprintf(to, "%.9g", seconds);
    }
}

void tune_try(tune_trial *t)
{
    char *text = doctor_ask_why(t->limit, measure, t, t->why);
    t->lost = !text;
    t->late = !text && strstr(t->why, "not done within");
    t->seconds = text && *text != '!' ? tern_os_strtod(text, NULL) : 0;
    if (text && t->seconds <= 0)
        snprintf(t->why, sizeof t->why, "%.*s", (int)strcspn(text, "\n") - (*text == '!'),
                 text + (*text == '!'));
    free(text);
}
