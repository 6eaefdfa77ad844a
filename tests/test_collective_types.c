/* test_collective_types.c -- collectives of devices of one process, in every dtype and by every op. */
#include "collectives.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- all of them, in every dtype ----------------------------------------------------------- */

static const tern_dtype every[] = {TERN_F32, TERN_F64, TERN_F16,  TERN_BF16,      TERN_I32,
                                   TERN_I64, TERN_U8,  TERN_BOOL, TERN_I8,        TERN_I16,
                                   TERN_U16, TERN_U32, TERN_U64,  TERN_F8_E4M3FN, TERN_F8_E5M2};
enum { TYPES = sizeof every / sizeof *every, PART = 3 };

/* Small whole numbers that every type has: bools 0 and 1. */
static double value(int device, int i, tern_dtype dtype)
{
    int v = (i * 5 + device * 3 + i * device) % 4;
    return dtype == TERN_BOOL ? v & 1 : v;
}

static tern_tensor *numbers(int seed, int n, tern_dtype dtype, const char *device)
{
    double v[16];
    for (int i = 0; i < n; i++)
        v[i] = value(seed, i, dtype);
    tern_tensor *x = tern_from_data(v, TERN_SHAPE(n), TERN_F64, "cpu");
    return tern_to(tern_to_dtype(x, dtype), device);
}

static void check_numbers(tern_tensor *x, const double *want, int n, const char *what)
{
    double *got = test_read(x);
    assert_int_equal(tern_numel(x), n);
    for (int i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("%s of %s on %s: element %d is %g, expected %g", what,
                     tern_dtype_name(tern_dtype_of(x)), tern_device(x), i, got[i], want[i]);
    free(got);
}

static void sum_of_numbers(double *want, int n, int devices, tern_dtype dtype)
{
    for (int i = 0; i < n; i++) {
        want[i] = 0;
        for (int d = 0; d < devices; d++)
            want[i] += value(d, i, dtype);
        want[i] = dtype == TERN_BOOL ? want[i] > 0 : want[i];
    }
}

static void check_type(const char *const *devices, int n, tern_dtype dtype)
{
    tern_tensor *x[MOST + 2], *all[MOST + 2];
    const bool adds = dtype != TERN_F8_E4M3FN && dtype != TERN_F8_E5M2;
    const int root = n - 1;
    double want[16];
    for (int i = 0; i < n; i++) {
        x[i] = numbers(i, PART, dtype, devices[i]);
        all[i] = tern_zeros(TERN_SHAPE(n, PART), dtype, devices[i]);
    }
    assert_ok(tern_all_gather_(all, x, n));
    for (int i = 0; i < n * PART; i++)
        want[i] = value(i / PART, i % PART, dtype);
    for (int i = 0; i < n; i++)
        check_numbers(all[i], want, n * PART, "all_gather");

    for (int i = 0; i < PART; i++)
        want[i] = value(root, i, dtype);
    const int64_t version = tern_version(x[0]);
    assert_ok(tern_broadcast_(x, n, root));
    for (int i = 0; i < n; i++)
        check_numbers(x[i], want, PART, "broadcast");
    assert_int_equal(tern_version(x[0]), version + (n > 1));

    for (int i = 0; i < n; i++) {
        all[i] = numbers(i, n * PART, dtype, devices[i]);
        x[i] = tern_zeros(TERN_SHAPE(PART), dtype, devices[i]);
    }
    if (!adds) {
        assert_int_equal(tern_reduce_scatter_(x, all, n), TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "has no sums");
        assert_int_equal(tern_all_reduce_(x, n), TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "has no sums");
        return;
    }
    sum_of_numbers(want, n * PART, n, dtype);
    assert_ok(tern_reduce_scatter_(x, all, n));
    for (int i = 0; i < n; i++)
        check_numbers(x[i], want + i * PART, PART, "reduce_scatter");
    check_numbers(tern_comm_reduce_add(all, n, NULL), want, n * PART, "reduce_add");
    check_numbers(tern_comm_reduce_add(all, n, devices[root]), want, n * PART, "reduce_add");
    assert_ok(tern_all_reduce_(all, n));
    for (int i = 0; i < n; i++)
        check_numbers(all[i], want, n * PART, "all_reduce");
}

/* ---- other ops than sums ------------------------------------------------------------------------ */

/* By its meaning; of unsigned 64-bit numbers above all signed ones too, of which b is an offset. */
static int64_t combined(int64_t a, int64_t b, tern_dist_op op, bool bools)
{
    switch (op) {
    case TERN_DIST_PRODUCT:
        return a * b;
    case TERN_DIST_MIN:
        return a < b ? a : b;
    case TERN_DIST_MAX:
        return a > b ? a : b;
    case TERN_DIST_BAND:
        return a & b;
    case TERN_DIST_BOR:
        return a | b;
    case TERN_DIST_BXOR:
        return a ^ b;
    default:
        return bools ? a | b : a + b;
    }
}

static void check_op(const char *const *devices, int n, tern_dtype dtype, tern_dist_op op)
{
    tern_tensor *x[MOST + 2], *all[MOST + 2];
    double want[16];
    const bool real = tern_dtype_is_floating_point(dtype);
    for (int i = 0; i < n; i++) {
        all[i] = numbers(i, n * PART, dtype, devices[i]);
        x[i] = tern_zeros(TERN_SHAPE(PART), dtype, devices[i]);
    }
    if (op == TERN_DIST_AVG ? !real : op >= TERN_DIST_BAND && real) {
        assert_int_equal(tern_all_reduce_with_(all, n, op), TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "can't be combined by op");
        assert_int_equal(tern_reduce_scatter_with_(x, all, n, op), TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "can't be combined by op");
        return;
    }
    for (int i = 0; i < n * PART; i++) {
        int64_t v = (int64_t)value(0, i, dtype);
        for (int d = 1; d < n; d++)
            v = combined(v, (int64_t)value(d, i, dtype), op, dtype == TERN_BOOL);
        want[i] = (double)v;
        if (op == TERN_DIST_AVG) { /* rounded once, as the type does */
            tern_tensor *mean = tern_full(TERN_SHAPE(1), TERN_SCALAR(0), dtype, "cpu");
            const double exact = dtype == TERN_F64 ? (double)v / n : (float)v / (float)n;
            tern_fill_(mean, TERN_SCALAR(exact));
            double *rounded = test_read(mean);
            want[i] = rounded[0];
            free(rounded);
        }
    }
    assert_ok(tern_reduce_scatter_with_(x, all, n, op));
    for (int i = 0; i < n; i++)
        check_numbers(x[i], want + i * PART, PART, "reduce_scatter");
    assert_ok(tern_all_reduce_with_(all, n, op));
    for (int i = 0; i < n; i++)
        check_numbers(all[i], want, n * PART, "all_reduce");
}

static bool have_f64(const char *const *devices, int n)
{
    for (int i = 0; i < n; i++) {
        tern_device_info info;
        assert_ok(tern_device_get_info(devices[i], &info));
        if (!info.has_f64)
            return false;
    }
    return true;
}

/* Over the tested devices, the cpu with them, and with one of them twice. */
static void all_collectives_of_all_types(void **state)
{
    (void)state;
    for (int with = 0; with < 3; with++)
        for (int t = 0; t < TYPES; t++)
            TERN_SCOPE {
                const char *devices[MOST + 2];
                int n = all_devices(devices, with > 0);
                if (with == 2)
                    devices[n] = devices[n - 1], n++;
                if (n * PART <= 16 && (every[t] != TERN_F64 || have_f64(devices, n)))
                    check_type(devices, n, every[t]);
            }
}

static void all_ops_of_all_types(void **state)
{
    (void)state;
    for (int with = 0; with < 3; with++)
        for (int t = 0; t < TYPES - 2; t++)
            for (int op = 0; op <= TERN_DIST_BXOR; op++)
                TERN_SCOPE {
                    const char *devices[MOST + 2];
                    int n = all_devices(devices, with > 0);
                    if (with == 2)
                        devices[n] = devices[n - 1], n++;
                    if (n * PART <= 16 && (every[t] != TERN_F64 || have_f64(devices, n)))
                        check_op(devices, n, every[t], (tern_dist_op)op);
                }
}

/* Numbers that signed 64-bit ones lack, negative ones, infinities and NaN. */
static void least_and_greatest(void **state)
{
    (void)state;
    const uint64_t big[] = {UINT64_C(1) << 63, 3};
    const uint64_t small[] = {7, UINT64_MAX};
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        for (int op = TERN_DIST_MIN; op <= TERN_DIST_MAX; op++) {
            const bool least = op == TERN_DIST_MIN;
            tern_tensor *u[] = {tern_from_data(big, TERN_SHAPE(2), TERN_U64, "cpu"),
                                tern_from_data(small, TERN_SHAPE(2), TERN_U64, device)};
            assert_ok(tern_all_reduce_with_(u, 2, (tern_dist_op)op));
            for (int i = 0; i < 2; i++) {
                const uint64_t *got = tern_data(tern_to(u[i], "cpu"));
                assert_true(got[0] == (least ? 7 : big[0]) && got[1] == (least ? 3 : small[1]));
            }
            tern_tensor *s[] = {TENSOR("cpu", TERN_I8, TERN_SHAPE(2), -5, 5),
                                TENSOR(device, TERN_I8, TERN_SHAPE(2), 3, -128)};
            assert_ok(tern_all_reduce_with_(s, 2, (tern_dist_op)op));
            assert_values(s[1], least ? -5 : 3, least ? -128 : 5);
            tern_tensor *f[] = {TENSOR("cpu", TERN_F32, TERN_SHAPE(2), NAN, -INFINITY),
                                TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, 2)};
            assert_ok(tern_all_reduce_with_(f, 2, (tern_dist_op)op));
            double *got = test_read(f[1]);
            assert_true(isnan(got[0]) && got[1] == (least ? -INFINITY : 2));
            free(got);
        }
        tern_tensor *one[] = {TENSOR(device, TERN_F32, TERN_SHAPE(1), 1)};
        assert_int_equal(tern_all_reduce_with_(one, 1, (tern_dist_op)8), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "tern_dist_op");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(all_collectives_of_all_types),
    TEST(all_ops_of_all_types),
    TEST(least_and_greatest),
};
TEST_MAIN(tests)
