/* support.h -- what tests share: devices, comparisons, gradient checks, golden files, children. */
#ifndef TERN_TESTS_SUPPORT_H
#define TERN_TESTS_SUPPORT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tern/names.h>
#include <tern/tern.h>

/* ---- running ------------------------------------------------------------------------------------
 * main of a test: returns 77 (skipped) when a device of TERN_TEST_DEVICES is not there. Before each
 * test the recorded error is cleared; after it, it must be clear again. */
int test_main(const struct CMUnitTest *tests, size_t n);
#define TEST_MAIN(tests)                                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        return test_main(tests, sizeof(tests) / sizeof *(tests));                                  \
    }
#define TEST(function) cmocka_unit_test_setup_teardown(function, test_setup, test_teardown)
int test_setup(void **state);
int test_teardown(void **state);

/* The devices to run on: TERN_TEST_DEVICES, separated by commas; "cpu" if not set. NULL-ended. */
const char *test_device(int i);
/* Whether everything is to be tried on the device: on the cpu, or where TERN_TEST_ALL is set.
 * Elsewhere each kernel costs its compilation. */
bool test_thorough(const char *device);
/* Whether each program costs the machine's C++ compiler there (the stand-in, by the texts for CUDA), so that few are tried. */
bool test_compiles_cpp(const char *device);
/* Whether the device is to compute so many products of numbers for one row of a table. PoCL in the form for GPUs, whose
 * kernels are not optimized in tests, takes a second for 100 million: there only small rows are computed, unless everything
 * is to be tried. */
bool test_affords(const char *device, int64_t products);
/* Whether the device is OpenCL's and its kernels are in the form for GPUs. */
bool test_gpu_form(const char *device);
/* Whether the device is PoCL's: a processor, whose compiler costs time for each kernel. */
static inline bool test_on_pocl(const char *device)
{
    return strncmp(device, "opencl", 6) == 0 && strstr(tern_device_name(device), "pthread");
}
/* Whether the device is NVIDIA's stand-in. */
static inline bool test_on_standin(const char *device)
{
    return strncmp(device, "cuda", 4) == 0 && strstr(tern_device_name(device), "stand-in");
}
/* Whether the device is PoCL's and its kernels are in the form for GPUs. PoCL 3.1 gets lu_factor wrong there. */
bool test_pocl_gpu_form(const char *device);
/* Whether the device has the dtype: some have no float64. */
bool test_has(const char *device, tern_dtype dtype);
#define FOR_EACH_DEVICE(device)                                                                    \
    for (int device##_i = 0; device##_i >= 0; device##_i = -1)                                     \
        for (const char *device; (device = test_device(device##_i)); device##_i++)

/* ---- errors ------------------------------------------------------------------------------ */
/* An error of this status is recorded and its message contains part; it is cleared. */
#define assert_error(status, part) test_error(status, part, __FILE__, __LINE__)
#define assert_no_error()          test_error(TERN_OK, "", __FILE__, __LINE__)
#define assert_ok(call)            test_ok(call, #call, __FILE__, __LINE__)
void test_error(tern_status status, const char *part, const char *file, int line);
void test_ok(tern_status status, const char *call, const char *file, int line);

/* ---- tensors ----------------------------------------------------------------------------- */
/* Element-wise |a - b| <= abs + rel |b|, or at most ulp steps of the dtype
 * apart. NaN equals NaN. */
typedef struct test_tolerance {
    double abs, rel;
    int64_t ulp;
} test_tolerance;

/* Same shape, dtype and elements; the first differing element is printed. Devices may differ. */
#define assert_close(a, b, ...)                                                                    \
    test_close(a, b, (test_tolerance){__VA_ARGS__}, #a " and " #b, __FILE__, __LINE__)
/* Bit for bit, except that every NaN equals every NaN. */
#define assert_same(a, b) test_same(a, b, #a " and " #b, __FILE__, __LINE__)
/* x has exactly these elements: assert_values(x, 1, 2, 3); converted to its dtype. */
#define assert_values(x, ...)                                                                      \
    test_values(x, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / 8,       \
                (test_tolerance){.abs = 0}, #x, __FILE__, __LINE__)
#define assert_values_close(x, tolerance, ...)                                                     \
    test_values(x, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / 8,       \
                (test_tolerance){.abs = tolerance, .rel = tolerance}, #x, __FILE__, __LINE__)
#define assert_shape(x, ...) test_shape(x, TERN_SHAPE(__VA_ARGS__), #x, __FILE__, __LINE__)
void test_close(const tern_tensor *a, const tern_tensor *b, test_tolerance tolerance,
                const char *what, const char *file, int line);
void test_same(const tern_tensor *a, const tern_tensor *b, const char *what, const char *file,
               int line);
void test_values(const tern_tensor *x, const double *values, size_t n, test_tolerance tolerance,
                 const char *what, const char *file, int line);
void test_shape(const tern_tensor *x, tern_shape shape, const char *what, const char *file,
                int line);

/* All elements as double, to be freed with free(); fails the test instead of returning NULL. */
double *test_read(const tern_tensor *x);
/* A tensor of doubles converted to dtype: TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, 2). */
tern_tensor *test_tensor(const char *device, tern_dtype dtype, tern_shape shape,
                         const double *values);
#define TENSOR(device, dtype, shape, ...)                                                          \
    test_tensor(device, dtype, shape, (const double[]){__VA_ARGS__})
/* Repeatable numbers in [low, high), on every device the same. */
tern_tensor *test_uniform(const char *device, tern_dtype dtype, tern_shape shape, double low,
                          double high, uint64_t seed);

/* Other looks at x's storage, outside of autograd: any geometry (offset relative to x); x
 * broadcast. */
tern_tensor *test_view(tern_tensor *x, tern_shape shape, tern_shape stride, int64_t offset);
tern_tensor *test_expand(tern_tensor *x, tern_shape shape);

/* ---- what can't be tested here -------------------------------------------------------------
 * A whole program ends with 77, a whole test calls skip(); test_skipped says in a line "SKIP: ..." which part of a test was not
 * run, and why. ci/test prints and counts all three. */
void test_skipped(const char *format, ...) TERN_PRINTF_(1, 2);
/* Whether the recorded error says that a library which is opened at run time is not there (TERN_ERR_UNSUPPORTED, and the name of
 * its Debian package): then it is told by test_skipped, and cleared. */
bool test_no_library(void);

/* Kernels launched on the device so far. */
uint64_t launches(const char *device);

/* ---- gradients --------------------------------------------------------------------------- */
typedef tern_tensor *(*test_function)(tern_tensor *const *in, void *user);
typedef struct test_gradcheck_options {
    void *user;
    double step; /* default 1e-6 for f64, 1e-2 for f32 */
    double abs;  /* default 1e-6, 2e-2; rel the same */
    bool second; /* also gradients of gradients */
} test_gradcheck_options;
/* The gradients of function with respect to every in[i] that requires one, against central
 * differences; in[] are leaves, best of f64. */
#define gradcheck(function, in, n, ...)                                                            \
    test_gradcheck(function, in, n, (test_gradcheck_options){__VA_ARGS__}, #function, __FILE__,    \
                   __LINE__)
void test_gradcheck(test_function function, tern_tensor *const *in, int n,
                    test_gradcheck_options options, const char *what, const char *file, int line);

/* ---- golden files ------------------------------------------------------------------------ */
/* tests/golden/<name>.txt: lines "name dtype ndim size ...", then the elements, separated by
 * blanks; # begins a comment. */
typedef struct test_golden test_golden;
test_golden *test_golden_open(const char *name);
bool test_golden_has(test_golden *golden, const char *name);
tern_tensor *test_golden_tensor(test_golden *golden, const char *name, const char *device);
/* x is the entry "<name><suffix>" in x's dtype, to tolerance absolute or relative. */
void test_golden_compare(test_golden *golden, const char *name, const char *suffix,
                         const tern_tensor *x, double tolerance);
/* What weight_of in golden/golden.py gives: (1, 2, ...) / 8 in y's shape. */
tern_tensor *test_golden_weight(const tern_tensor *y);
void test_golden_close(test_golden *golden);

/* ---- limits of time ----------------------------------------------------------------------
 * The process and what it executes end by a signal after so many seconds of processor time, which a busy machine does not
 * use up, and after twenty times as many seconds, should it sleep for ever. ctest gives each test a limit in TERN_TEST_SECONDS,
 * which every program of these files takes when it begins. */
void test_limit(unsigned seconds);

/* ---- a block in a child process ---------------------------------------------------------- */
/* IN_CHILD { ... }: the test fails when the child does not reach the block's end within a minute (test_limit).
 * Forks: on a device with a driver nothing works in there. */
#define IN_CHILD for (int child_ = test_child_begin(); child_; child_ = test_child_end())
int test_child_begin(void);
int test_child_end(void);

#endif
