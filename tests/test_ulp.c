/* test_ulp.c -- every elementwise row in float32 against its formula in double: the largest error
 * in units of the last place, over floats of every magnitude and sign, printed as a table.
 *
 * Every row is held to 2 ulp; ulp_rows.h names those that are held to something else, and why. A
 * sample has every exponent and sign, the numbers where functions turn, subnormal ones, infinities
 * and NaN. TERN_ULP_STRIDE is the distance between samples (of 2^32 floats; 1 takes them all). */
#include "ulp_rows.h"
#include <float.h>
#include <stdio.h>

enum { CHUNK = 1 << 18, DENSE = 1021, CHEAP = 65537 };
static const double A = 0.25, B = 2.5; /* numbers of rows that take some */

static double number_of(const ulp_row *own)
{
    return own && own->number != 0 ? own->number : A;
}

/* Where functions turn, end or have a case of their own; each with both signs
 * and its neighbours. */
static const float corners[] = {0,     0x1p-149f, FLT_MIN, 1e-30f, 1e-4f, 0.25f,  0.5f,
                                1,     2.5f,      2,       3,      6,     10,     20,
                                88.7f, 104,       128,     1e10f,  1e30f, FLT_MAX};
enum { NEAR = 3, CORNERS = 2 * NEAR * (int)(sizeof corners / sizeof *corners) + 3 };

static float corner(int i)
{
    if (i >= CORNERS - 3)
        return i == CORNERS - 1 ? NAN : i == CORNERS - 2 ? -INFINITY : INFINITY;
    float x = corners[i / (2 * NEAR)];
    int step = i / 2 % NEAR - 1;
    x = step == 0 ? x : nextafterf(x, step < 0 ? -INFINITY : INFINITY);
    return i % 2 ? -x : x;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Sample i: corners (for two inputs, all pairs), then one float of each stride. The second input
 * has any bits, or is a few times the first one, or of ordinary size. */
static void sample(const row *r, uint64_t i, uint64_t stride, float *x, float *y)
{
    bool two = r->kind != UNARY_ROW;
    uint64_t special = two ? (uint64_t)CORNERS * CORNERS : CORNERS;
    if (i < special) {
        *x = corner((int)(i % CORNERS));
        *y = two ? corner((int)(i / CORNERS)) : 0;
        return;
    }
    uint64_t k = i - special, random = (k + 1) * 0x9E3779B97F4A7C15;
    random = (random ^ random >> 31) * 0xBF58476D1CE4E5B9;
    *x = float_of((uint32_t)(k * stride));
    float part = (float)((int32_t)(random >> 32)) * 0x1p-29f; /* -4..4 */
    *y = k % 3 == 0 ? float_of((uint32_t)(random >> 32)) : k % 3 == 1 ? part * *x : part;
}

/* |got - want| in units of the last place of the larger of want and scale. Both NaN, or the same
 * infinity: 0. */
static double ulps(double got, double want, double scale)
{
    const double overflow = 0x1.ffffffp127;
    int exponent;
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : INFINITY;
    if (fabs(want) >= overflow) /* rounds to an infinity */
        want = want > 0 ? INFINITY : -INFINITY;
    if (isinf(got) && isinf(want) && (got > 0) == (want > 0))
        return 0;
    if (isinf(want) || isinf(got)) /* one step before the end is an error of one */
        return fabs(isinf(want) ? got : want) >= overflow * (1 - 0x1p-24) ? 1 : INFINITY;
    frexp(fmax(fabs(want), isfinite(scale) ? fabs(scale) : 0), &exponent);
    return fabs(got - want) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

typedef struct worst {
    double error, x, y, got, want;
} worst;

static double wanted(const row *r, const ulp_row *own, double x, double y)
{
    return own && own->reference ? own->reference(x, y) : r->real(x, y, number_of(own), B);
}

static void measure_chunk(const row *r, const ulp_row *own, const char *device, const float *x,
                          const float *y, int64_t n, bool subnormals, worst *w)
{
    tern_shape shape = TERN_SHAPE(n);
    tern_tensor *xs = tern_from_data(x, shape, TERN_F32, device);
    tern_tensor *ys = r->kind == UNARY_ROW ? NULL : tern_from_data(y, shape, TERN_F32, device);
    row_arguments p = {.y = ys, .a = tern_scalar_real(number_of(own)), .b = tern_scalar_real(B)};
    double *got = test_read(r->call(xs, p));
    for (int64_t i = 0; i < n; i++) {
        double want = wanted(r, own, (double)x[i], (double)y[i]);
        double scale = own && own->scale ? own->scale((double)x[i], (double)y[i]) : 0;
        if (!subnormals && (fabs(want) < (double)FLT_MIN || fabsf(x[i]) < FLT_MIN))
            continue;
        double error = ulps(got[i], want, scale);
        if (x[i] == 0 && want == 0 && copysign(1, got[i]) != copysign(1, want))
            error = INFINITY; /* a zero of the wrong sign */
        if (error > w->error || (error > 0 && w->error == 0))
            *w = (worst){error, (double)x[i], (double)y[i], got[i], want};
    }
    free(got);
}

static worst measure(const row *r, const ulp_row *own, const char *device, uint64_t stride)
{
    static float x[CHUNK], y[CHUNK];
    tern_device_info info = {0};
    assert_ok(tern_device_get_info(device, &info));
    uint64_t special = r->kind != UNARY_ROW ? (uint64_t)CORNERS * CORNERS : CORNERS;
    uint64_t samples = special + (((uint64_t)1 << 32) + stride - 1) / stride;
    worst w = {0};
    for (uint64_t from = 0; from < samples; from += CHUNK)
        TERN_SCOPE {
            int64_t n = samples - from < CHUNK ? (int64_t)(samples - from) : CHUNK;
            for (int64_t i = 0; i < n; i++)
                sample(r, from + (uint64_t)i, stride, &x[i], &y[i]);
            measure_chunk(r, own, device, x, y, n, info.exact, &w);
        }
    return w;
}

static bool is_measured(const row *r)
{
    bool real = r->types == FLOATS || r->types == NUMBERS || r->types == ALL;
    return real && r->kind != COMPARE_ROW && r->kind != PREDICATE_ROW;
}

static void every_row_is_within_its_bound(void **state)
{
    (void)state;
    const char *text = getenv("TERN_ULP_STRIDE");
    uint64_t stride = text ? strtoull(text, NULL, 10) : getenv("TERN_TEST_ALL") ? DENSE : CHEAP;
    int beyond = 0;
    FOR_EACH_DEVICE(device)
    {
        printf("  %-14s %-10s %8s %6s  %-31s %s\n", "function", "device", "ulp", "bound", "at",
               "of what, and why");
        for (int i = 0; i < ROWS; i++) {
            const row *r = &rows[i];
            if (!is_measured(r))
                continue;
            const ulp_row *own = ulp_row_of(r->name);
            worst w = measure(r, own, device, stride ? stride : CHEAP);
            double bound = own && own->bound > 0 ? own->bound : 2;
            char at[64];
            snprintf(at, sizeof at, r->kind == UNARY_ROW ? "%.9g" : "%.9g, %.9g", w.x, w.y);
            printf("  %-14s %-10s %8.3f %6.3g  %-31s %s\n", r->name, device, w.error, bound, at,
                   own && own->reason ? own->reason : "");
            if (!(w.error <= bound)) {
                printf("  %-14s gives %.9g, not %.9g\n", r->name, w.got, w.want);
                beyond++;
            }
        }
    }
    assert_int_equal(beyond, 0);
}

/* Nobody reads a table with names that are gone, or a bound above 2 without a reason. */
static void exceptions_are_of_rows_and_have_reasons(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof ulp_rows / sizeof *ulp_rows; k++) {
        bool found = false;
        for (int i = 0; i < ROWS; i++)
            found = found || strcmp(rows[i].name, ulp_rows[k].name) == 0;
        assert_true(found);
        if (ulp_rows[k].bound > 2 || ulp_rows[k].scale)
            assert_non_null(ulp_rows[k].reason);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(every_row_is_within_its_bound),
    TEST(exceptions_are_of_rows_and_have_reasons),
};
TEST_MAIN(tests)
