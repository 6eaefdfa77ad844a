/* test_elementwise.c -- every elementwise row: values in every dtype and form, on every
 * device, bit for bit the cpu's where the device says so. */
#include "tensor/fields.h"
#include "rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parameters that suit every row of a kind: a in (0, 1) or whole for integers, b above. */
static row_arguments arguments(tern_dtype dtype, tern_tensor *y)
{
    bool real = tern_dtype_is_floating_point(dtype);
    return (row_arguments){.y = y,
                           .a = real ? tern_scalar_real(0.25) : tern_scalar_int(1),
                           .b = real ? tern_scalar_real(2.5) : tern_scalar_int(2)};
}

/* How far a value of dtype may be from the reference, which is not rounded. */
static double allowed(tern_dtype dtype, double value)
{
    double relative = dtype == TERN_F64   ? 1e-14
                      : dtype == TERN_F32 ? 2e-6
                      : dtype == TERN_F16 ? 0x1p-10
                                          : 0x1p-7;
    return relative * (fabs(value) + 1);
}

static double reference(const row *r, tern_dtype dtype, double x, double y, row_arguments p)
{
    double a = tern_scalar_to_real(p.a), b = tern_scalar_to_real(p.b);
    if (tern_dtype_is_floating_point(dtype))
        return r->real(x, y, a, b);
    int64_t z = r->integer((int64_t)x, (int64_t)y, (int64_t)a, (int64_t)b);
    return dtype == TERN_BOOL ? z != 0 : dtype == TERN_U8 ? (uint8_t)z : (double)z;
}

/* z, computed from x and p.y (or the number y where p.y is NULL), against the reference. */
static void check(const row *r, const char *form, tern_tensor *z, tern_tensor *x, row_arguments p,
                  double number)
{
    if (!z)
        fail_msg("%s %s %s: %s", r->name, form, tern_dtype_name(tern_dtype_of(x)),
                 tern_last_error());
    tern_shape shape = tern_shape_of(z);
    bool logical = r->kind == COMPARE_ROW || r->kind == PREDICATE_ROW;
    tern_dtype dtype = tern_dtype_of(x);
    assert_int_equal(tern_dtype_of(z), logical ? TERN_BOOL : dtype);
    double *got = test_read(z), *xs = test_read(test_expand(x, shape));
    double *ys = p.y ? test_read(test_expand(p.y, shape)) : NULL;
    for (int64_t i = 0; i < tern_numel(z); i++) {
        double y = ys ? ys[i] : number, expected = reference(r, dtype, xs[i], y, p);
        double distance =
            logical || !tern_dtype_is_floating_point(dtype) ? 0 : allowed(dtype, expected);
        if (!(fabs(got[i] - expected) <= distance))
            fail_msg("%s %s %s on %s, element %lld: x = %.9g, y = %.9g gives %.17g, expected %.17g",
                     r->name, form, tern_dtype_name(dtype), tern_device(z), (long long)i, xs[i], y,
                     got[i], expected);
    }
    free(got);
    free(xs);
    free(ys);
}

/* ---- forms: how x and y lie in memory ---------------------------------------------------- */

static tern_tensor *numbers(const row *r, const char *device, tern_dtype dtype, tern_shape shape,
                            uint64_t seed)
{
    double low = r->low, high = r->high;
    if (dtype == TERN_BOOL)
        low = 0, high = 2;
    if (dtype == TERN_U8 && low < 0)
        low = 0;
    tern_tensor *x = test_uniform(device, TERN_F64, shape, low, high, seed);
    double *values = test_read(x);
    if (r->kind == COMPARE_ROW || r->kind == PREDICATE_ROW || dtype == TERN_BOOL)
        for (int64_t i = 0; i < tern_numel(x); i++)
            values[i] = floor(values[i]); /* so that equal values occur */
    x = test_tensor(device, dtype, shape, values);
    free(values);
    return x;
}

typedef struct pair {
    tern_tensor *x, *y;
} pair;
typedef pair (*form)(const row *r, const char *device, tern_dtype dtype);

#define FORM(name, xs, ys)                                                                         \
    static pair name(const row *r, const char *device, tern_dtype dtype)                           \
    {                                                                                              \
        return (pair){numbers(r, device, dtype, xs, 1), numbers(r, device, dtype, ys, 2)};         \
    }
FORM(dense, TERN_SHAPE(3, 5), TERN_SHAPE(3, 5))
FORM(long_row, TERN_SHAPE(1031), TERN_SHAPE(1031))
FORM(column_and_row, TERN_SHAPE(5, 1), TERN_SHAPE(7))
FORM(row_and_column, TERN_SHAPE(1, 7), TERN_SHAPE(2, 5, 1))
FORM(one_x, TERN_SHAPE_SCALAR, TERN_SHAPE(9))
FORM(one_y, TERN_SHAPE(9), TERN_SHAPE_SCALAR)
FORM(both_scalars, TERN_SHAPE_SCALAR, TERN_SHAPE_SCALAR)
FORM(empty, TERN_SHAPE(0, 3), TERN_SHAPE(1))

/* Columns of a piece of a larger matrix: neither dense, both away from their start. */
static pair strided(const row *r, const char *device, tern_dtype dtype)
{
    tern_tensor *x = numbers(r, device, dtype, TERN_SHAPE(6, 7), 1);
    tern_tensor *y = numbers(r, device, dtype, TERN_SHAPE(6, 11), 2);
    return (pair){test_view(x, TERN_SHAPE(7, 5), TERN_SHAPE(1, 7), 7),
                  test_view(y, TERN_SHAPE(7, 5), TERN_SHAPE(1, 11), 12)};
}

static pair stepped(const row *r, const char *device, tern_dtype dtype)
{
    tern_tensor *x = numbers(r, device, dtype, TERN_SHAPE(40), 1);
    tern_tensor *y = numbers(r, device, dtype, TERN_SHAPE(40), 2);
    return (pair){test_view(x, TERN_SHAPE(13), TERN_SHAPE(3), 1),
                  test_view(y, TERN_SHAPE(13), TERN_SHAPE(2), 0)};
}

static const struct {
    const char *name;
    form make;
} forms[] = {
    {"dense", dense},
    {"long row", long_row},
    {"column and row", column_and_row},
    {"row and column", row_and_column},
    {"0-d x", one_x},
    {"0-d y", one_y},
    {"0-d", both_scalars},
    {"empty", empty},
    {"strided", strided},
    {"stepped", stepped},
};
enum { FORMS = sizeof forms / sizeof *forms };

#define FOR_EACH_DTYPE(dtype)                                                                      \
    for (tern_dtype dtype = TERN_F32; dtype <= TERN_BOOL; dtype = (tern_dtype)(dtype + 1))

static bool takes_two(const row *r)
{
    return r->kind == BINARY_ROW || r->kind == TERNARY_ROW || r->kind == COMPARE_ROW;
}

/* Whether bits are promised to agree with the cpu's. */
static bool exact(const char *device)
{
    tern_device_info info = {0};
    assert_ok(tern_device_get_info(device, &info));
    return info.exact && strcmp(device, "cpu") != 0;
}

/* Whether row i is run on the device in dtype. Where every pair of them is a program to build, all
 * rows have float32 and int64, and a few of them halves. */
static bool has(const char *device, int i, tern_dtype dtype)
{
    tern_device_info info = {0};
    assert_ok(tern_device_get_info(device, &info));
    if (!row_has(&rows[i], dtype) || (dtype == TERN_F64 && !info.has_f64))
        return false;
    return test_thorough(device) || dtype == TERN_F32 || dtype == TERN_I64 ||
           (dtype == TERN_F16 && i % 8 == 0);
}

static void row_in_form(const row *r, int f, const char *device, tern_dtype dtype)
{
    pair in = forms[f].make(r, device, dtype);
    row_arguments p = arguments(dtype, takes_two(r) ? in.y : NULL);
    tern_tensor *z = r->call(in.x, p);
    check(r, forms[f].name, z, in.x, p, 0);
    if (!exact(device))
        return;
    pair host = forms[f].make(r, "cpu", dtype);
    p.y = takes_two(r) ? host.y : NULL;
    test_same(z, r->call(host.x, p), r->name, __FILE__, __LINE__);
}

static void every_row_in_every_form_and_dtype(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        FOR_EACH_DTYPE(dtype)
        {
            if (!has(device, i, dtype))
                continue;
            for (int f = 0; f < FORMS; f++)
                TERN_SCOPE {
                    row_in_form(&rows[i], f, device, dtype);
                }
        }
}

/* 16-bit types are storage: the result is that of float32, rounded. */
static void halves_are_float32_rounded(void **state)
{
    (void)state;
    static const tern_dtype halves[] = {TERN_F16, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 2; k++)
            TERN_SCOPE {
                if (!has(device, i, halves[k]))
                    continue;
                const row *r = &rows[i];
                pair in = long_row(r, device, halves[k]);
                row_arguments p = arguments(halves[k], takes_two(r) ? in.y : NULL);
                tern_tensor *z = r->call(in.x, p);
                p.y = takes_two(r) ? tern_to_dtype(in.y, TERN_F32) : NULL;
                tern_tensor *wide = r->call(tern_to_dtype(in.x, TERN_F32), p);
                test_same(z, tern_to_dtype(wide, tern_dtype_of(z)), r->name, __FILE__, __LINE__);
            }
}

/* Of what a NaN carries drivers have ways of their own. */
static void read_bits(const tern_tensor *x, uint16_t *bits, int64_t n)
{
    const bool f16 = tern_dtype_of(x) == TERN_F16, keeps = strcmp(tern_device(x), "cpu") == 0;
    const uint16_t infinity = f16 ? 0x7c00 : 0x7f80;
    assert_ok(tern_copy_to_host(x, bits, (size_t)n * sizeof *bits));
    for (int64_t i = 0; i < n && !keeps; i++)
        if ((bits[i] & 0x7fff) > infinity)
            bits[i] = 0x7fff;
}

/* Vectors of them are widened and narrowed by other instructions than one alone: every bit pattern there is, NaN too, and
 * results between two halves, contiguous and one in three. */
static void halves_are_the_same_in_vectors_and_alone(void **state)
{
    (void)state;
    enum { PATTERNS = 1 << 16 };
    static const tern_dtype halves[] = {TERN_F16, TERN_BF16};
    static const double factors[] = {-1, 0.7, 1e-3, 1.5e5};
    static uint16_t every[PATTERNS], apart[3 * PATTERNS], found[2][PATTERNS];
    for (int i = 0; i < PATTERNS; i++)
        every[i] = apart[3 * i] = (uint16_t)i;
    FOR_EACH_DEVICE(device)
    for (int h = 0; h < 2; h++)
        for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
            TERN_SCOPE {
                tern_tensor *x = tern_from_data(every, TERN_SHAPE(PATTERNS), halves[h], device);
                tern_tensor *y = tern_from_data(apart, TERN_SHAPE(3 * PATTERNS), halves[h], device);
                y = test_view(y, TERN_SHAPE(PATTERNS), TERN_SHAPE(3), 0);
                const tern_scalar by = tern_scalar_real(factors[f]);
                read_bits(tern_mul_scalar(x, by), found[0], PATTERNS);
                read_bits(tern_mul_scalar(y, by), found[1], PATTERNS);
                assert_memory_equal(found[0], found[1], sizeof found[0]);
                tern_tensor *z = tern_empty(TERN_SHAPE(3 * PATTERNS), halves[h], device);
                z = test_view(z, TERN_SHAPE(PATTERNS), TERN_SHAPE(3), 0);
                assert_non_null(tern_mul_scalar_(tern_copy_(z, x), by));
                read_bits(tern_contiguous(z), found[1], PATTERNS);
                assert_memory_equal(found[0], found[1], sizeof found[0]);
            }
}

static void a_number_for_y_is_a_tensor_of_it(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        FOR_EACH_DTYPE(dtype)
        {
            const row *r = &rows[i];
            bool here = has(device, i, dtype) && (test_thorough(device) || i % 4 == 0);
            if (!r->scalar || !here || dtype == TERN_BOOL)
                continue;
            bool real = tern_dtype_is_floating_point(dtype);
            tern_scalar y = real ? tern_scalar_real(1.5) : tern_scalar_int(2);
            for (int f = 0; f < FORMS; f++)
                TERN_SCOPE {
                    pair in = forms[f].make(r, device, dtype);
                    row_arguments none = arguments(dtype, NULL);
                    check(r, forms[f].name, r->scalar(in.x, y), in.x, none, tern_scalar_to_real(y));
                    if (!r->scalar_in_place)
                        continue;
                    tern_tensor *x = tern_add_scalar(in.x, TERN_SCALAR(0));
                    assert_ptr_equal(r->scalar_in_place(x, y), x);
                    test_same(x, r->scalar(in.x, y), r->name, __FILE__, __LINE__);
                }
        }
}

/* Forms in which the result has the shape of x. */
static void in_place_is_the_same_in_x(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        FOR_EACH_DTYPE(dtype)
        {
            const row *r = &rows[i];
            if (!r->in_place || !has(device, i, dtype))
                continue;
            for (int f = 0; f < FORMS; f++)
                TERN_SCOPE {
                    pair in = forms[f].make(r, device, dtype);
                    row_arguments p = arguments(dtype, takes_two(r) ? in.y : NULL);
                    tern_tensor *z = r->call(in.x, p);
                    if (!tern_same_shape(z, in.x))
                        continue;
                    int64_t version = tern_version(in.x);
                    assert_ptr_equal(r->in_place(in.x, p), in.x);
                    test_same(in.x, z, r->name, __FILE__, __LINE__);
                    assert_int_equal(tern_version(in.x), version + 1);
                }
        }
}

/* Enough elements that several threads, groups and vector tails take part. */
static void large_tensors_are_the_same_everywhere(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        TERN_SCOPE {
            const row *r = &rows[i];
            if (!row_has(r, TERN_F32))
                continue;
            tern_tensor *x = numbers(r, device, TERN_F32, TERN_SHAPE(61, 1021), 3);
            tern_tensor *y = numbers(r, device, TERN_F32, TERN_SHAPE(1021), 4);
            row_arguments p = arguments(TERN_F32, takes_two(r) ? y : NULL);
            check(r, "large", r->call(x, p), x, p, 0);
        }
}

static void dtypes_a_row_does_not_have_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        tern_dtype dtype = r->types == NUMBERS ? TERN_BOOL : TERN_F32;
        if (row_has(r, dtype) || strcmp(r->name, "rpow_scalar") == 0 ||
            strcmp(r->name, "square") == 0)
            continue; /* those two make integers of bools */
        tern_tensor *x = tern_ones(TERN_SHAPE(2), dtype, device);
        assert_null(r->call(x, arguments(dtype, takes_two(r) ? x : NULL)));
        assert_error(TERN_ERR_DTYPE, strcmp(r->name, "rsub_scalar") == 0 ? "sub" : r->name);
    }
    tern_scope_clear();
}

static const struct CMUnitTest tests[] = {
    TEST(every_row_in_every_form_and_dtype),
    TEST(halves_are_float32_rounded),
    TEST(halves_are_the_same_in_vectors_and_alone),
    TEST(a_number_for_y_is_a_tensor_of_it),
    TEST(in_place_is_the_same_in_x),
    TEST(large_tensors_are_the_same_everywhere),
    TEST(dtypes_a_row_does_not_have_are_refused),
};
TEST_MAIN(tests)
