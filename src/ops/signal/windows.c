/* windows.c -- window functions, computed on the host (Harris 1978). */
#include "ops/create/table.h"
#include <math.h>
#include <tern/ops.h>

static const double pi = 3.14159265358979323846;

/* A window function: element k is value(k, w). */
typedef struct window {
    int64_t n;
    double period; /* n, or n - 1 for a symmetric window */
    bool sym;
    const double *numbers;
    int count;
    double (*value)(double k, const struct window *w);
} window;

/* sum_i (-1)^i a_i cos(2 pi i k / period) */
static double cosines(double k, const window *w)
{
    double sum = 0;
    for (int i = 0; i < w->count; i++)
        sum += (i % 2 ? -1 : 1) * w->numbers[i] * cos(2 * pi * i * k / w->period);
    return sum;
}

static double triangle(double k, const window *w)
{
    return 1 - fabs(2 * k / w->period - 1);
}

static double half_wave(double k, const window *w)
{
    return sin(pi * (k + 0.5) / (double)(w->sym ? w->n : w->n + 1));
}

/* e^(-|k - center| / tau) */
static double exponential(double k, const window *w)
{
    double center = isnan(w->numbers[0]) ? w->period / 2 : w->numbers[0];
    return exp(-fabs(k - center) / w->numbers[1]);
}

static double gaussian(double k, const window *w)
{
    double x = (k - w->period / 2) / w->numbers[0];
    return exp(-x * x / 2);
}

/* The modified Bessel function of order 0, by its series, whose terms are all positive. */
static double bessel_i0(double x)
{
    double term = 1, sum = 1;
    for (int k = 1; k < 1000 && term > sum * 1e-17; k++) {
        term *= x * x / 4 / ((double)k * k);
        sum += term;
    }
    return sum;
}

/* Kaiser 1974 */
static double kaiser(double k, const window *w)
{
    double x = 2 * k / w->period - 1, beta = w->numbers[0];
    return bessel_i0(beta * sqrt(fmax(0, 1 - x * x))) / bessel_i0(beta);
}

static tern_tensor *make(const char *name, window w, tern_dtype dtype, const char *device)
{
    if (w.n < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: requires non-negative window_length, got window_length=%lld",
                              name, (long long)w.n);
    if (dtype && !tern_dtype_is_floating_point(dtype))
        return tern_fail_null(TERN_ERR_DTYPE, "%s: expects floating point dtypes, got: %s", name,
                              tern_dtype_name(dtype));
    tern_shape shape = {1, {w.n}};
    double *data = tern_table_alloc(name, &shape);
    w.period = (double)(w.sym ? w.n - 1 : w.n);
    for (int64_t k = 0; data && k < w.n; k++)
        data[k] = w.n == 1 ? 1 : w.value((double)k, &w);
    return tern_table_done(data, &shape, dtype, device);
}

#define NUMBERS(...)                                                                               \
    .numbers = (const double[]){__VA_ARGS__},                                                      \
    .count = sizeof((double[]){__VA_ARGS__}) / sizeof(double)
/* Defines tern_NAME_window and tern_signal_windows_NAME for a window without parameters. */
#define WINDOW(NAME, ...)                                                                          \
    tern_tensor *tern_##NAME##_window(int64_t n, bool periodic, tern_dtype dtype,                  \
                                      const char *device)                                          \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return make("tern_" #NAME "_window", (window){.n = n, .sym = !periodic, __VA_ARGS__},      \
                    dtype, device);                                                                \
    }                                                                                              \
    SIGNAL_WINDOW(NAME, __VA_ARGS__)
#define SIGNAL_WINDOW(NAME, ...)                                                                   \
    tern_tensor *tern_signal_windows_##NAME(int64_t n, bool sym, tern_dtype dtype,                 \
                                            const char *device)                                    \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return make("tern_signal_windows_" #NAME, (window){.n = n, .sym = sym, __VA_ARGS__},       \
                    dtype, device);                                                                \
    }

WINDOW(hann, .value = cosines, NUMBERS(0.5, 0.5))
WINDOW(blackman, .value = cosines, NUMBERS(0.42, 0.5, 0.08))
WINDOW(bartlett, .value = triangle)
SIGNAL_WINDOW(hamming, .value = cosines, NUMBERS(0.54, 0.46))
SIGNAL_WINDOW(nuttall, .value = cosines, NUMBERS(0.3635819, 0.4891775, 0.1365995, 0.0106411))
SIGNAL_WINDOW(cosine, .value = half_wave)

tern_tensor *tern_hamming_window(int64_t n, bool periodic, double alpha, double beta,
                                 tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    return make(__func__,
                (window){.n = n, .sym = !periodic, .value = cosines, NUMBERS(alpha, beta)}, dtype,
                device);
}

tern_tensor *tern_kaiser_window(int64_t n, bool periodic, double beta, tern_dtype dtype,
                                const char *device)
{
    TERN_NAMED_IN_ERRORS;
    return make(__func__, (window){.n = n, .sym = !periodic, .value = kaiser, NUMBERS(beta)}, dtype,
                device);
}

tern_tensor *tern_signal_windows_kaiser(int64_t n, double beta, bool sym, tern_dtype dtype,
                                        const char *device)
{
    TERN_NAMED_IN_ERRORS;
    const char *name = __func__;
    if (!(beta >= 0))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: beta must be non-negative, got: %g", name,
                              beta);
    return make(name, (window){.n = n, .sym = sym, .value = kaiser, NUMBERS(beta)}, dtype, device);
}

tern_tensor *tern_signal_windows_general_cosine(int64_t n, const double *a, int count, bool sym,
                                                tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    const char *name = __func__;
    if (!a || count < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: Coefficients cannot be empty", name);
    return make(name, (window){.n = n, .sym = sym, .value = cosines, .numbers = a, .count = count},
                dtype, device);
}

tern_tensor *tern_signal_windows_general_hamming(int64_t n, double alpha, bool sym,
                                                 tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    return make(__func__, (window){.n = n, .sym = sym, .value = cosines, NUMBERS(alpha, 1 - alpha)},
                dtype, device);
}

tern_tensor *tern_signal_windows_exponential(int64_t n, double center, double tau, bool sym,
                                             tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    const char *name = __func__;
    if (!(tau > 0))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: Tau must be positive, got: %g instead.", name,
                              tau);
    if (sym && !isnan(center))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Center must be None for symmetric windows, and is NaN for that, "
                              "got: %g",
                              name, center);
    return make(name, (window){.n = n, .sym = sym, .value = exponential, NUMBERS(center, tau)},
                dtype, device);
}

tern_tensor *tern_signal_windows_gaussian(int64_t n, double std, bool sym, tern_dtype dtype,
                                          const char *device)
{
    TERN_NAMED_IN_ERRORS;
    const char *name = __func__;
    if (!(std > 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Standard deviation must be positive, got: %g instead.", name,
                              std);
    return make(name, (window){.n = n, .sym = sym, .value = gaussian, NUMBERS(std)}, dtype, device);
}
