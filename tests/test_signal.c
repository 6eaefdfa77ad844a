/* test_signal.c -- windows are PyTorch's (golden/fft.txt). */
#include "support.h"
#include <math.h>
#include <stdio.h>

typedef tern_tensor *(*plain)(int64_t n, bool how, tern_dtype dtype, const char *device);

/* Those without numbers of their own; how is periodic, or sym. */
static const struct {
    const char *name;
    plain f;
    bool by_sym;
} plains[] = {
    {"hann", tern_hann_window, false},
    {"blackman", tern_blackman_window, false},
    {"bartlett", tern_bartlett_window, false},
    {"windows_hann", tern_signal_windows_hann, true},
    {"windows_hamming", tern_signal_windows_hamming, true},
    {"windows_blackman", tern_signal_windows_blackman, true},
    {"windows_bartlett", tern_signal_windows_bartlett, true},
    {"windows_cosine", tern_signal_windows_cosine, true},
    {"windows_nuttall", tern_signal_windows_nuttall, true},
};

static void compare_all(test_golden *golden, int n, bool periodic, tern_dtype dtype,
                        const char *device)
{
    char tail[24];
    double tolerance = dtype == TERN_F64 ? 1e-12 : 2e-7;
    snprintf(tail, sizeof tail, "%d%s", n, periodic ? "_periodic" : "");
    for (size_t i = 0; i < sizeof plains / sizeof *plains; i++)
        test_golden_compare(golden, plains[i].name, tail,
                            plains[i].f(n, periodic != plains[i].by_sym, dtype, device), tolerance);
    const struct {
        const char *name;
        tern_tensor *x;
    } numbered[] = {
        {"hamming", tern_hamming_window(n, periodic, 0.6, 0.3, dtype, device)},
        {"kaiser", tern_kaiser_window(n, periodic, 5, dtype, device)},
        {"windows_kaiser", tern_signal_windows_kaiser(n, 12, !periodic, dtype, device)},
        {"windows_general_cosine",
         tern_signal_windows_general_cosine(n, (const double[]){0.5, 0.3, 0.2}, 3, !periodic, dtype,
                                            device)},
        {"windows_general_hamming",
         tern_signal_windows_general_hamming(n, 0.6, !periodic, dtype, device)},
        {"windows_exponential",
         tern_signal_windows_exponential(n, NAN, 2, !periodic, dtype, device)},
        {"windows_gaussian", tern_signal_windows_gaussian(n, 1.5, !periodic, dtype, device)},
    };
    for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++)
        test_golden_compare(golden, numbered[i].name, tail, numbered[i].x, tolerance);
}

static void windows_are_pytorchs(void **state)
{
    (void)state;
    static const int lengths[] = {1, 6, 7};
    test_golden *golden = test_golden_open("fft");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        for (int periodic = 0; periodic < 2; periodic++)
            compare_all(golden, lengths[i], periodic, TERN_F32, device);
    compare_all(golden, 7, true, TERN_F64, "cpu");
    test_golden_close(golden);
}

static void mistakes_are_told(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        assert_shape(tern_hann_window(0, true, 0, device), 0);
        assert_null(tern_hann_window(-1, true, 0, device));
        assert_error(TERN_ERR_ARGUMENT, "requires non-negative window_length");
        assert_null(tern_kaiser_window(4, true, 1, TERN_I64, device));
        assert_error(TERN_ERR_DTYPE, "expects floating point dtypes, got: int64");
        assert_null(tern_signal_windows_exponential(4, 1, 1, true, 0, device));
        assert_error(TERN_ERR_ARGUMENT, "Center must be None for symmetric windows");
        assert_null(tern_signal_windows_gaussian(4, 0, true, 0, device));
        assert_error(TERN_ERR_ARGUMENT, "Standard deviation must be positive");
        assert_null(tern_signal_windows_general_cosine(4, NULL, 0, true, 0, device));
        assert_error(TERN_ERR_ARGUMENT, "Coefficients cannot be empty");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(windows_are_pytorchs), TEST(mistakes_are_told)};
    return test_main(tests, sizeof tests / sizeof *tests);
}
