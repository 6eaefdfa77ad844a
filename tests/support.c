/* support.c -- devices, comparisons and children for tests. */
#include "support.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifndef _WIN32
#include <sys/resource.h>
#include <sys/wait.h>
#endif

/* ---- running ----------------------------------------------------------------------------- */

const char *test_device(int i)
{
    static char list[256];
    static const char *devices[9];
    if (!devices[0]) {
        const char *chosen = getenv("TERN_TEST_DEVICES");
        snprintf(list, sizeof list, "%s", chosen && *chosen ? chosen : "cpu");
        int n = 0;
        for (char *part = strtok(list, ","); part && n < 8; part = strtok(NULL, ","))
            devices[n++] = part;
    }
    return i < 8 ? devices[i] : NULL;
}

bool test_thorough(const char *device)
{
    return strcmp(device, "cpu") == 0 || getenv("TERN_TEST_ALL");
}

bool test_compiles_cpp(const char *device)
{
    return getenv("TERN_STANDIN_TEXT") && !test_thorough(device);
}

bool test_gpu_form(const char *device)
{
    tern_device_info info = {0};
    const char *form = getenv("TERN_OPENCL_FORM");
    if (strncmp(device, "opencl", 6) != 0)
        return false;
    return form ? strcmp(form, "gpu") == 0
                : tern_device_get_info(device, &info) == TERN_OK && info.type != TERN_DEVICE_CPU;
}

bool test_pocl_gpu_form(const char *device)
{
    return test_gpu_form(device) && test_on_pocl(device);
}

bool test_affords(const char *device, int64_t products)
{
    enum { MOST = 32000000 };
    return products <= MOST || test_thorough(device) || !test_pocl_gpu_form(device);
}

bool test_has(const char *device, tern_dtype dtype)
{
    tern_device_info info = {0};
    return dtype != TERN_F64 || tern_device_get_info(device, &info) != TERN_OK || info.has_f64;
}

int test_setup(void **state)
{
    (void)state;
    tern_clear_error();
    return 0;
}

int test_teardown(void **state)
{
    (void)state;
    if (tern_last_status() == TERN_OK)
        return 0;
    print_error("an error is left over: %s\n", tern_last_error());
    tern_clear_error();
    return -1;
}

int test_main(const struct CMUnitTest *tests, size_t n)
{
    for (int i = 0; test_device(i); i++)
        if (!tern_device_is_available(test_device(i))) {
            char kind[16];
            snprintf(kind, sizeof kind, "%.*s", (int)strcspn(test_device(i), ":"), test_device(i));
            printf("SKIP: there is no device %s: %s\n", test_device(i), tern_device_notes(kind));
            return 77;
        }
    tern_backends_cudnn_set_allow_tf32(false); /* float32 is compared as float32 */
    int failed = _cmocka_run_group_tests("tests", tests, n, NULL, NULL);
    for (int i = 0; test_device(i); i++)
        printf("launches on %s: %llu\n", test_device(i),
               (unsigned long long)launches(test_device(i)));
    return failed;
}

uint64_t launches(const char *device)
{
    tern_memory_stats stats = {0};
    assert_ok(tern_memory_get_stats(device, &stats));
    return stats.launches;
}

/* ---- what can't be tested here -------------------------------------------------------------- */

void test_skipped(const char *format, ...)
{
    va_list arguments;
    fputs("SKIP: ", stdout);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

bool test_no_library(void)
{
    if (tern_last_status() != TERN_ERR_UNSUPPORTED || !strstr(tern_last_error(), "Debian: "))
        return false;
    test_skipped("%s", tern_last_error());
    tern_clear_error();
    return true;
}

/* ---- errors ------------------------------------------------------------------------------ */

static void stop(const char *file, int line)
{
    _fail(file, line);
}

void test_error(tern_status status, const char *part, const char *file, int line)
{
    if (tern_last_status() != status || !strstr(tern_last_error(), part)) {
        print_error("expected %s with \"%s\", got %s: %s\n", tern_status_name(status), part,
                    tern_status_name(tern_last_status()), tern_last_error());
        tern_clear_error();
        stop(file, line);
    }
    tern_clear_error();
}

void test_ok(tern_status status, const char *call, const char *file, int line)
{
    if (status == TERN_OK)
        return;
    print_error("%s gave %s: %s\n", call, tern_status_name(status), tern_last_error());
    tern_clear_error();
    stop(file, line);
}

/* ---- tensors ----------------------------------------------------------------------------- */

static void *bytes_of(const tern_tensor *x)
{
    if (!x) {
        print_error("no tensor: %s\n", tern_last_error());
        tern_clear_error();
        fail();
    }
    size_t bytes = (size_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
    void *data = malloc(bytes + 1);
    assert_non_null(data);
    assert_ok(tern_copy_to_host(x, data, bytes));
    return data;
}

double *test_read(const tern_tensor *x)
{
    void *data = bytes_of(x);
    size_t n = (size_t)tern_numel(x);
    double *values = malloc((n + 1) * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = tern_scalar_to_real(tern_element(data, tern_dtype_of(x), (int64_t)i));
    free(data);
    return values;
}

/* Bits of element i as a number that grows with the value: neighbours differ by one. */
static int64_t ordered(const void *data, tern_dtype dtype, size_t i)
{
    size_t size = tern_dtype_size(dtype);
    union {
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } v = {.u64 = 0};
    memcpy(&v, (const char *)data + i * size, size);
    uint64_t bits = size == 2 ? v.u16 : size == 4 ? v.u32 : size == 8 ? v.u64 : (uint8_t)v.u16;
    uint64_t sign = UINT64_C(1) << (8 * size - 1);
    if (!tern_dtype_is_floating_point(dtype))
        return (int64_t)bits;
    return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static void print_place(const tern_tensor *x, size_t i)
{
    int64_t rest = (int64_t)i;
    int64_t at[TERN_MAX_DIMS] = {0};
    for (int d = tern_dim(x) - 1; d >= 0; d--) {
        at[d] = rest % tern_size(x, d);
        rest /= tern_size(x, d);
    }
    print_error("[");
    for (int d = 0; d < tern_dim(x); d++)
        print_error("%s%lld", d ? ", " : "", (long long)at[d]);
    print_error("]");
}

static bool close_enough(const void *a, const void *b, tern_dtype dtype, size_t i,
                         const test_tolerance *t, double x, double y)
{
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y);
    if (x == y || (isfinite(y) && fabs(x - y) <= t->abs + t->rel * fabs(y)))
        return true; /* a part of infinity is infinity: every number would be close to it */
    return llabs(ordered(a, dtype, i) - ordered(b, dtype, i)) <= t->ulp;
}

static void same_kind(const tern_tensor *a, const tern_tensor *b, const char *what,
                      const char *file, int line)
{
    if (!a || !b) {
        print_error("%s: no tensor: %s\n", what, tern_last_error());
        tern_clear_error();
        stop(file, line);
    }
    if (tern_same_shape(a, b) && tern_dtype_of(a) == tern_dtype_of(b))
        return;
    print_error("%s: %s %s and %s %s\n", what, tern_dtype_name(tern_dtype_of(a)),
                TERN_TENSOR_TEXT(a), tern_dtype_name(tern_dtype_of(b)), TERN_TENSOR_TEXT(b));
    stop(file, line);
}

static void compare(const tern_tensor *a, const tern_tensor *b, const test_tolerance *tolerance,
                    const char *what, const char *file, int line)
{
    same_kind(a, b, what, file, line);
    void *left = bytes_of(a), *right = bytes_of(b);
    double *x = test_read(a), *y = test_read(b);
    tern_dtype dtype = tern_dtype_of(a);
    size_t size = tern_dtype_size(dtype), n = (size_t)tern_numel(a), wrong = 0, first = 0;
    for (size_t i = n; i-- > 0;) {
        bool equal = tolerance
                         ? close_enough(left, right, dtype, i, tolerance, x[i], y[i])
                         : (isnan(x[i]) && isnan(y[i])) ||
                               memcmp((char *)left + i * size, (char *)right + i * size, size) == 0;
        if (!equal) {
            wrong++;
            first = i;
        }
    }
    if (wrong) {
        print_error("%s (%s, %s and %s): %zu of %zu elements differ, the first at ", what,
                    tern_dtype_name(dtype), tern_device(a), tern_device(b), wrong, n);
        print_place(a, first);
        print_error(": %.17g and %.17g, %lld ulp apart\n", x[first], y[first],
                    (long long)llabs(ordered(left, dtype, first) - ordered(right, dtype, first)));
    }
    free(left);
    free(right);
    free(x);
    free(y);
    if (wrong)
        stop(file, line);
}

void test_close(const tern_tensor *a, const tern_tensor *b, test_tolerance tolerance,
                const char *what, const char *file, int line)
{
    compare(a, b, &tolerance, what, file, line);
}

void test_same(const tern_tensor *a, const tern_tensor *b, const char *what, const char *file,
               int line)
{
    compare(a, b, NULL, what, file, line);
}

void test_values(const tern_tensor *x, const double *values, size_t n, test_tolerance tolerance,
                 const char *what, const char *file, int line)
{
    if (!x || (size_t)tern_numel(x) != n) {
        print_error("%s: expected %zu elements, got %lld %s\n", what, n,
                    x ? (long long)tern_numel(x) : -1, tern_last_error());
        tern_clear_error();
        stop(file, line);
    }
    TERN_SCOPE {
        tern_shape shape = tern_shape_of(x);
        compare(x, test_tensor("cpu", tern_dtype_of(x), shape, values), &tolerance, what, file,
                line);
    }
}

void test_shape(const tern_tensor *x, tern_shape shape, const char *what, const char *file,
                int line)
{
    tern_shape own = tern_shape_of(x);
    if (x && tern_shape_equal(&own, &shape))
        return;
    print_error("%s: expected shape %s, got %s %s\n", what, TERN_SHAPE_TEXT(&shape),
                x ? TERN_SHAPE_TEXT(&own) : "no tensor", tern_last_error());
    tern_clear_error();
    stop(file, line);
}

/* Round to nearest even by the bits that a 16-bit type drops. */
static uint16_t to_bf16(float value)
{
    uint32_t u;
    memcpy(&u, &value, 4);
    if (isnan(value))
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static uint16_t to_f16(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double v = fabs(value);
    if (isnan(value))
        return 0x7e00;
    if (v == 0)
        return sign;
    if (v >= 65520)
        return (uint16_t)(sign | 0x7c00);
    int exponent = 0;
    frexp(v, &exponent);                                  /* v = m 2^exponent, m in [0.5, 1) */
    int step = exponent - 11 < -24 ? -24 : exponent - 11; /* exponent of the last place */
    uint16_t units = (uint16_t)lrint(ldexp(v, -step));
    return (uint16_t)(sign | (step == -24 ? units : (uint16_t)((step + 24) * 1024 + units)));
}

/* A test of float64 on a device that has none is skipped, by name. */
static void need_dtype(const char *device, tern_dtype dtype)
{
    if (test_has(device, dtype))
        return;
    test_skipped("%s has no float64, which this test computes in", device);
    skip();
}

tern_tensor *test_tensor(const char *device, tern_dtype dtype, tern_shape shape,
                         const double *values)
{
    need_dtype(device, dtype);
    int64_t n = tern_shape_numel(&shape, "test_tensor");
    size_t size = tern_dtype_size(dtype);
    assert_true(n >= 0 && size > 0);
    char *data = calloc((size_t)n + 1, size);
    assert_non_null(data);
    for (int64_t i = 0; i < n; i++) {
        double v = values[i];
        union {
            float f32;
            double f64;
            uint16_t u16;
            int32_t i32;
            int64_t i64;
            uint8_t u8;
        } e = {.i64 = 0};
        switch (dtype) {
        case TERN_F32:
            e.f32 = (float)v;
            break;
        case TERN_F64:
            e.f64 = v;
            break;
        case TERN_F16:
            e.u16 = to_f16(v);
            break;
        case TERN_BF16:
            e.u16 = to_bf16((float)v);
            break;
        case TERN_I32:
            e.i32 = (int32_t)v;
            break;
        case TERN_I64:
            e.i64 = (int64_t)v;
            break;
        case TERN_I16:
        case TERN_U16:
            e.u16 = (uint16_t)(int64_t)v;
            break;
        case TERN_U32:
            e.i32 = (int32_t)(uint32_t)v;
            break;
        case TERN_U64:
            e.i64 = (int64_t)(uint64_t)v;
            break;
        case TERN_F8_E4M3FN:
        case TERN_F8_E5M2:
            free(data);
            return tern_to_dtype(test_tensor(device, TERN_F32, shape, values), dtype);
        default:
            e.u8 = dtype == TERN_BOOL ? v != 0 : (uint8_t)(int64_t)v;
        }
        memcpy(data + (size_t)i * size, &e, size);
    }
    tern_tensor *x = tern_from_data(data, shape, dtype, device);
    free(data);
    if (!x) {
        print_error("no tensor: %s\n", tern_last_error());
        tern_clear_error();
        fail();
    }
    return x;
}

tern_tensor *test_uniform(const char *device, tern_dtype dtype, tern_shape shape, double low,
                          double high, uint64_t seed)
{
    need_dtype(device, dtype);
    int64_t n = tern_shape_numel(&shape, "test_uniform");
    assert_true(n >= 0);
    double *values = malloc(((size_t)n + 1) * sizeof *values);
    assert_non_null(values);
    uint64_t s = seed * 2 + 1;
    for (int64_t i = 0; i < n; i++) { /* splitmix64 */
        uint64_t z = s += UINT64_C(0x9E3779B97F4A7C15);
        z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
        values[i] = low + (high - low) * (double)((z ^ z >> 31) >> 11) * 0x1p-53;
    }
    tern_tensor *x = test_tensor(device, dtype, shape, values);
    free(values);
    return x;
}

tern_tensor *test_view(tern_tensor *x, tern_shape shape, tern_shape stride, int64_t offset)
{
    assert_non_null(x);
    return tern_scoped(tern_tensor_alias(x, &shape, stride.dims, x->offset + offset));
}

tern_tensor *test_expand(tern_tensor *x, tern_shape shape)
{
    tern_shape stride = shape;
    int skip = shape.ndim - tern_dim(x);
    assert_true(skip >= 0);
    for (int d = 0; d < shape.ndim; d++)
        stride.dims[d] = d < skip || x->shape[d - skip] == 1 ? 0 : x->stride[d - skip];
    return test_view(x, shape, stride, 0);
}

#ifdef _WIN32
#include "children.h"
#else
static void limit_processor_time(rlim_t seconds)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur > seconds) {
        limit.rlim_cur = seconds;
        setrlimit(RLIMIT_CPU, &limit);
    }
}

void test_limit(unsigned seconds)
{
    limit_processor_time(seconds);
    alarm(20 * seconds);
}

__attribute__((constructor)) static void take_limit(void)
{
    const char *seconds = getenv("TERN_TEST_SECONDS");
    if (seconds && atoi(seconds) > 0)
        limit_processor_time((rlim_t)atoi(seconds));
}

int test_child_begin(void)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        test_limit(60);
        return 1;
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child process ended with %s %d", WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 0;
}

int test_child_end(void)
{
    fflush(NULL);
    _exit(tern_last_status() == TERN_OK ? 0 : 99);
}
#endif
