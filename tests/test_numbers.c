/* test_numbers.c -- numbers where a tensor may stand, and dtypes from the types of host pointers. */
#include "support.h"
#include <math.h>

/* ---- every function of two tensors, by its row ----------------------------------------------- */

/* By name with a number of each type, and the form for a number. */
typedef struct taker {
    const char *name;
    tern_tensor *(*of_int)(tern_tensor *x, int y);
    tern_tensor *(*of_real)(tern_tensor *x, double y);
    tern_tensor *(*of_bool)(tern_tensor *x, bool y);
    tern_tensor *(*of_scalar)(tern_tensor *x, tern_scalar y);
    tern_tensor *(*of_tensor)(tern_tensor *x, tern_tensor *y);
    tern_tensor *(*scalar)(tern_tensor *x, tern_scalar y);
    tern_tensor *(*function)(tern_tensor *x, tern_tensor *y);
} taker;

#define CALL_(ID, NAME, KIND, TYPE)                                                                \
    static tern_tensor *ID##_##KIND(tern_tensor *x, TYPE y)                                        \
    {                                                                                              \
        return NAME(x, y);                                                                         \
    }
#define CALLS_(ID, NAME)                                                                           \
    CALL_(ID, NAME, int, int)                                                                      \
    CALL_(ID, NAME, real, double)                                                                  \
    CALL_(ID, NAME, bool, bool)                                                                    \
    CALL_(ID, NAME, scalar, tern_scalar)                                                           \
    CALL_(ID, NAME, tensor, tern_tensor *)
/* clang-format off */
#define IGNORE(...)
#define UNARY        IGNORE
#define UNARY_REAL1  IGNORE
#define UNARY_REAL2  IGNORE
#define UNARY_SCALAR IGNORE
#define TERNARY      IGNORE
#define TERNARY_SCALAR IGNORE
#define PREDICATE    IGNORE
#define COMPARE(NAME, ...) CALLS_(NAME, tern_##NAME)
#define BINARY(NAME, ...)  CALLS_(NAME, tern_##NAME) CALLS_(NAME##_into, tern_##NAME##_)
#include "elementwise.def"
#include "special.def"
#include "logic.def"
#undef BINARY
#undef COMPARE
#define BINARY(NAME, OF)  CALLS_(NAME, tern_##NAME) CALLS_(NAME##_into, tern_##NAME##_)
#define COMPARE(NAME, OF) CALLS_(NAME, tern_##NAME)
#define SECOND_NAMES                                                                               \
    BINARY(multiply, mul) BINARY(subtract, sub) BINARY(divide, div) BINARY(true_divide, div)       \
    BINARY(arctan2, atan2) COMPARE(greater, gt) COMPARE(greater_equal, ge) COMPARE(less, lt)       \
    COMPARE(less_equal, le) COMPARE(not_equal, ne)
SECOND_NAMES
#undef BINARY
#undef COMPARE
#define TAKER_(ID, NAME, SCALAR) \
    {#NAME, ID##_int, ID##_real, ID##_bool, ID##_scalar, ID##_tensor, SCALAR, NAME},
#define COMPARE(NAME, ...) TAKER_(NAME, tern_##NAME, tern_##NAME##_scalar)
#define BINARY(NAME, ...)                                                                          \
    TAKER_(NAME, tern_##NAME, tern_##NAME##_scalar)                                                \
    TAKER_(NAME##_into, tern_##NAME##_, tern_##NAME##_scalar_)
static const taker takers[] = {
#include "elementwise.def"
#include "special.def"
#include "logic.def"
SECOND_NAMES
};
/* clang-format on */
enum { TAKERS = sizeof takers / sizeof *takers };

static tern_tensor *sample(tern_dtype dtype, const char *device)
{
    return tern_to_dtype(TENSOR(device, TERN_F32, TERN_SHAPE(4), 1, 2, 3, 5), dtype);
}

/* Both are the same tensor, or fail alike. */
static void compare(const char *name, const char *how, tern_tensor *found, tern_tensor *expected)
{
    if (!found != !expected)
        fail_msg("%s of %s: %s", name, how, tern_last_error());
    if (found && tern_dtype_of(found) != tern_dtype_of(expected))
        fail_msg("%s of %s is %s", name, how, tern_dtype_name(tern_dtype_of(found)));
    if (found && !tern_equal(found, expected))
        fail_msg("%s of %s has another value", name, how);
    tern_clear_error();
}

static void check_taker(const taker *t, tern_dtype dtype, const char *device)
{
    tern_tensor *(*make)(tern_dtype, const char *) = sample;
    compare(t->name, "an int", t->of_int(make(dtype, device), 2),
            t->scalar(make(dtype, device), tern_scalar_int(2)));
    compare(t->name, "a double", t->of_real(make(dtype, device), 0.5),
            t->scalar(make(dtype, device), tern_scalar_real(0.5)));
    compare(t->name, "a bool", t->of_bool(make(dtype, device), true),
            t->scalar(make(dtype, device), tern_scalar_bool(true)));
    compare(t->name, "a scalar", t->of_scalar(make(dtype, device), tern_scalar_real(1)),
            t->scalar(make(dtype, device), tern_scalar_real(1)));
    compare(t->name, "a tensor", t->of_tensor(make(dtype, device), make(dtype, device)),
            t->function(make(dtype, device), make(dtype, device)));
    assert_null(t->of_tensor(make(dtype, device), NULL));
    tern_clear_error();
}

static void every_function_of_two_tensors_takes_numbers(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_I32, TERN_I64, TERN_U8, TERN_BOOL};
    (void)state;
    assert_true(TAKERS > 60);
    /* Which function a name calls is the compiler's doing, on any device. */
    for (int k = 0; k < TAKERS; k++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            TERN_SCOPE
                check_taker(&takers[k], dtypes[d], "cpu");
}

/* ---- PyTorch's promotion --------------------------------------------------------------------- */

#define IS(x, DTYPE, ...)                                                                          \
    do {                                                                                           \
        tern_tensor *found_ = (x);                                                                 \
        assert_non_null(found_);                                                                   \
        assert_int_equal(tern_dtype_of(found_), DTYPE);                                            \
        assert_values(found_, __VA_ARGS__);                                                        \
    } while (0)

static void numbers_promote_by_their_types(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *i = TENSOR(device, TERN_I32, TERN_SHAPE(2), 3, 4);
        tern_tensor *f = TENSOR(device, TERN_F16, TERN_SHAPE(2), 3, 4);
        const int two = 2;
        const double half = 0.5;
        IS(tern_mul(i, two), TERN_I32, 6, 8);
        IS(tern_mul(i, half), TERN_F32, 1.5, 2);
        IS(tern_mul(f, half), TERN_F16, 1.5, 2);
        IS(tern_add(tern_mul(f, 2), 1u), TERN_F16, 7, 9);
        IS(tern_div(i, 2), TERN_F32, 1.5, 2);
        IS(tern_sub(i, 1L), TERN_I32, 2, 3);
        IS(tern_pow(i, (short)2), TERN_I32, 9, 16);
        IS(tern_maximum(i, 3.5), TERN_F32, 3.5, 4);
        IS(tern_lt(i, 4), TERN_BOOL, 1, 0);
        IS(tern_mul(tern_gt(i, 3), 7), TERN_I64, 0, 7);
        IS(tern_add_(i, 1), TERN_I32, 4, 5);
        IS(tern_floor_divide(i, 0.75f), TERN_F32, 5, 6);
    }
}

static void where_takes_numbers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *c = TENSOR(device, TERN_BOOL, TERN_SHAPE(2), 1, 0);
        tern_tensor *i = TENSOR(device, TERN_I32, TERN_SHAPE(2), 3, 4);
        tern_tensor *h = TENSOR(device, TERN_BF16, TERN_SHAPE(2), 3, 4);
        IS(tern_where(c, i, 7), TERN_I32, 3, 7);
        IS(tern_where(c, 7, i), TERN_I32, 7, 4);
        IS(tern_where(c, i, 0.5), TERN_F32, 3, 0.5);
        IS(tern_where(c, h, 0.5), TERN_BF16, 3, 0.5);
        IS(tern_where(c, c, 7), TERN_I64, 1, 7);
        IS(tern_where(c, 1, 2), TERN_I64, 1, 2);
        IS(tern_where(c, 1, 2.5), TERN_F32, 1, 2.5);
        IS(tern_where(c, (bool)true, (bool)false), TERN_BOOL, 1, 0);
        IS(tern_where(c, i, i), TERN_I32, 3, 4);
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, device), true);
        assert_ok(tern_backward(tern_sum(tern_where(c, 0.0, x))));
        assert_values(tern_grad(x), 0, 1);
        assert_null(tern_where(c, NULL, 2));
        tern_clear_error();
        assert_null(tern_where(NULL, 1, 2));
        assert_error(TERN_ERR_ARGUMENT, "where");
    }
}

static void numbers_stand_where_numbers_are_wanted(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2), 3, 4);
        tern_tensor *c = tern_gt(x, 3), *first = TENSOR(device, TERN_I64, TERN_SHAPE(1), 0);
        IS(tern_full(TERN_SHAPE(2), 7, 0, device), TERN_I64, 7, 7);
        IS(tern_full(TERN_SHAPE(2), 0.5, 0, device), TERN_F32, 0.5, 0.5);
        IS(tern_full(TERN_SHAPE(2), TERN_SCALAR(2), TERN_F16, device), TERN_F16, 2, 2);
        IS(tern_full_like(x, -7), TERN_F32, -7, -7);
        IS(tern_new_full(x, TERN_SHAPE(1), true), TERN_F32, 1);
        IS(tern_masked_fill(x, c, 9), TERN_F32, 3, 9);
        IS(tern_index_fill(x, 0, first, 1), TERN_F32, 1, 4);
        IS(tern_index_fill(x, 0, first, tern_max(x)), TERN_F32, 4, 4);
        IS(tern_quantile(x, 0.5, NULL), TERN_F32, 3.5);
        IS(tern_nanquantile(x, 1, NULL), TERN_F32, 4);
        IS(tern_quantile(x, tern_zeros_like(tern_max(x)), NULL), TERN_F32, 3);
        IS(tern_searchsorted(x, 3.5, TERN_SIDE_LEFT), TERN_I64, 1);
        IS(tern_searchsorted(x, tern_max(x), TERN_SIDE_RIGHT), TERN_I64, 2);
        IS(tern_bucketize(3, x, true), TERN_I64, 1);
        IS(tern_bucketize(x, x, true), TERN_I64, 1, 2);
        IS(tern_scatter(x, 0, first, 1.5, TERN_REDUCE_NONE), TERN_F32, 1.5, 4);
        IS(tern_lerp(x, tern_zeros_like(x), 0.5), TERN_F32, 1.5, 2);
        IS(tern_addcmul(x, x, x, 2), TERN_F32, 21, 36);
        IS(tern_div_mode(x, 2, TERN_ROUNDING_FLOOR), TERN_F32, 1, 2);
        IS(tern_rsub_scalar(x, 1), TERN_F32, -2, -3);
        IS(tern_fill_(x, 2), TERN_F32, 2, 2);
        IS(tern_float_power(tern_to_dtype(TENSOR("cpu", TERN_I32, TERN_SHAPE(1), 2), TERN_I32), 3),
           TERN_F64, 8);
        assert_true(tern_dtype_of(tern_tensor_scalar(2, 0, device)) == TERN_I64);
    }
}

/* ---- ranges ------------------------------------------------------------------------------ */

static void the_dtype_of_a_range_goes_by_types(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const double whole = 3;
        const int64_t far = INT64_C(1) << 60;
        IS(tern_arange(0, 3, 1, 0, device), TERN_I64, 0, 1, 2);
        IS(tern_arange(0, whole, 1, 0, device), TERN_F32, 0, 1, 2);
        IS(tern_arange(0, 3, 1.0, 0, device), TERN_F32, 0, 1, 2);
        IS((tern_arange)(0, 3, 1, TERN_DTYPE_DEFAULT, device), TERN_F32, 0, 1, 2);
        IS(tern_arange(0, 1, 0.5, 0, device), TERN_F32, 0, 0.5);
        IS(tern_arange(3, 0, -2, 0, device), TERN_I64, 3, 1);
        IS(tern_arange(0, 3, 1, TERN_F16, device), TERN_F16, 0, 1, 2);
        tern_tensor *x = tern_arange(far + 1, far + 6, 2, 0, device);
        assert_int_equal(tern_numel(x), 3);
        assert_true(tern_item_int(tern_select(x, 0, 2)) == far + 5);
        assert_int_equal(tern_numel(tern_arange(2, 2, 1, 0, device)), 0);
        assert_null(tern_arange(0, 3, 0, 0, device));
        assert_error(TERN_ERR_ARGUMENT, "step must be nonzero");
        assert_null(tern_arange(3, 0, 1, 0, device));
        assert_error(TERN_ERR_ARGUMENT, "inconsistent with step sign");
        assert_null(tern_arange(INT64_MIN, INT64_MAX, 1, 0, device));
        assert_error(TERN_ERR_SHAPE, "are too many");
    }
}

/* ---- host pointers --------------------------------------------------------------------------- */

#define TAKES(T, DTYPE)                                                                            \
    do {                                                                                           \
        T values_[4] = {1, 0, 1, 1}, rows_[2][2] = {{1, 0}, {1, 1}}, back_[4] = {0};               \
        const T *constant_ = values_;                                                              \
        tern_dtype asked_ = DTYPE, other_ = DTYPE == TERN_F32 ? TERN_F64 : TERN_F32;               \
        IS(tern_from_data(values_, TERN_SHAPE(4), 0, device), DTYPE, 1, 0, 1, 1);                  \
        IS(tern_from_data(constant_, TERN_SHAPE(4), DTYPE, device), DTYPE, 1, 0, 1, 1);            \
        IS(tern_from_data(rows_, TERN_SHAPE(2, 2), 0, device), DTYPE, 1, 0, 1, 1);                 \
        IS(tern_from_data((T[]){1, 0, 1}, TERN_SHAPE(3), 0, device), DTYPE, 1, 0, 1);              \
        tern_tensor *x_ = tern_from_data(values_, TERN_SHAPE(4), asked_, device);                  \
        assert_ok(tern_copy_to_host(x_, back_, sizeof back_));                                     \
        assert_memory_equal(values_, back_, sizeof back_);                                         \
        assert_null(tern_from_data(values_, TERN_SHAPE(4), other_, device));                       \
        assert_error(TERN_ERR_DTYPE, "tern_from_data: data points to");                            \
        assert_null(tern_from_data((T[]){1, 0, 1}, TERN_SHAPE(3), other_, device));                \
        assert_error(TERN_ERR_DTYPE, "tern_from_data: data points to");                            \
        tern_tensor *y_ = tern_to_dtype(tern_from_data(values_, TERN_SHAPE(4), 0, "cpu"), other_); \
        assert_int_equal(tern_copy_to_host(y_, back_, sizeof back_), TERN_ERR_DTYPE);              \
        assert_error(TERN_ERR_DTYPE, "tern_copy_to_host: the tensor is");                          \
    } while (0)

static void a_pointer_tells_its_type(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        TAKES(float, TERN_F32);
        TAKES(int, TERN_I32);
        TAKES(long, (sizeof(long) == 8 ? TERN_I64 : TERN_I32));
        TAKES(long long, TERN_I64);
        TAKES(unsigned char, TERN_U8);
        TAKES(bool, TERN_BOOL);
        TAKES(signed char, TERN_I8);
        TAKES(short, TERN_I16);
        TAKES(unsigned, TERN_U32);
        TAKES(unsigned long, (sizeof(long) == 8 ? TERN_U64 : TERN_U32));
        TAKES(unsigned long long, TERN_U64);
    }
    const char *device = "cpu";
    TERN_SCOPE
        TAKES(double, TERN_F64);
}

static void halves_and_bytes_fit_what_is_said(void **state)
{
    static const uint16_t halves[] = {0x3c00, 0xc000}; /* 1, -2 in float16 */
    static const uint16_t brains[] = {0x3f80, 0xc000}; /* 1, -2 in bfloat16 */
    static const float floats[] = {1, -2};
    uint16_t back[2] = {0};
    static const uint8_t eights[] = {0x38, 0xc0}; /* 1, -2 in float8_e4m3fn */
    (void)state;
    TERN_SCOPE {
        tern_dtype dtype = TERN_F32;
        tern_tensor *h = tern_from_data(halves, TERN_SHAPE(2), TERN_F16, "cpu");
        IS(h, TERN_F16, 1, -2);
        IS(tern_from_data(brains, TERN_SHAPE(2), TERN_BF16, "cpu"), TERN_BF16, 1, -2);
        assert_ok(tern_copy_to_host(h, back, sizeof back));
        assert_memory_equal(back, halves, sizeof back);
        assert_null(tern_from_data(halves, TERN_SHAPE(2), 0, "cpu"));
        assert_error(TERN_ERR_DTYPE,
                     "halves (uint16_t: float16, bfloat16 or uint16), and dtype is not");
        assert_null(tern_from_data(halves, TERN_SHAPE(1), dtype, "cpu"));
        assert_error(TERN_ERR_DTYPE, "and dtype is float32");
        IS(tern_from_data((const void *)floats, TERN_SHAPE(2), 0, "cpu"), TERN_F32, 1, -2);
        IS(tern_from_data((const char *)floats, TERN_SHAPE(2), TERN_F32, "cpu"), TERN_F32, 1, -2);
        IS((tern_from_data)(halves, TERN_SHAPE(2), TERN_F16, "cpu"), TERN_F16, 1, -2);
        IS(tern_from_data(eights, TERN_SHAPE(2), TERN_F8_E4M3FN, "cpu"), TERN_F8_E4M3FN, 1, -2);
        tern_tensor *u = tern_from_data(halves, TERN_SHAPE(2), TERN_U16, "cpu");
        assert_int_equal(tern_item_int(tern_select(u, 0, 1)), 0xc000);
        assert_non_null(tern_from_data(NULL, TERN_SHAPE(0), TERN_F32, "cpu"));
    }
}

#define ROWS_ARE_REFUSED(T)                                                                        \
    do {                                                                                           \
        static T first_[2], second_[2];                                                            \
        T *rows_[] = {first_, second_};                                                            \
        const T *read_[] = {first_, second_};                                                      \
        for (tern_dtype dtype_ = 0; dtype_ <= TERN_F64; dtype_++) {                                \
            assert_null(tern_from_data(rows_, TERN_SHAPE(2, 2), dtype_, "cpu"));                   \
            assert_error(TERN_ERR_DTYPE, "tern_from_data: data points to pointers");               \
            assert_null(tern_from_data(read_, TERN_SHAPE(2, 2), dtype_, "cpu"));                   \
            assert_error(TERN_ERR_DTYPE, "tern_from_data: data points to pointers");               \
        }                                                                                          \
        assert_int_equal(tern_copy_to_host(x, rows_, sizeof rows_), TERN_ERR_DTYPE);               \
        assert_error(TERN_ERR_DTYPE, "data points to pointers");                                   \
    } while (0)

/* Addresses of rows are no elements, and char and structs none of a dtype of their own. */
static void pointers_that_cannot_be_meant_are_refused(void **state)
{
    static const struct pixel {
        float red, green;
    } pixels[] = {{1, -2}};
    static const float deep[1][1][2] = {{{1, -2}}};
    static const char bytes[] = {0x38, (char)0xc0}; /* 1, -2 in float8_e4m3fn */
    (void)state;
    TERN_SCOPE {
        float back[2];
        tern_tensor *x = tern_from_data(pixels, TERN_SHAPE(2), TERN_F32, "cpu");
        IS(x, TERN_F32, 1, -2);
        assert_ok(tern_copy_to_host(x, (struct pixel *)back, sizeof back));
        IS(tern_from_data(deep, TERN_SHAPE(2), TERN_F32, "cpu"), TERN_F32, 1, -2);
        IS(tern_from_data(bytes, TERN_SHAPE(2), TERN_F8_E4M3FN, "cpu"), TERN_F8_E4M3FN, 1, -2);
        assert_null(tern_from_data(pixels, TERN_SHAPE(1), 0, "cpu"));
        assert_error(TERN_ERR_DTYPE, "data points to char or a struct");
        assert_null(tern_from_data(deep, TERN_SHAPE(2), 0, "cpu"));
        assert_error(TERN_ERR_DTYPE, "and dtype is not given");
        assert_null(tern_from_data(bytes, TERN_SHAPE(2), 0, "cpu"));
        assert_error(TERN_ERR_DTYPE, "and dtype is not given");
        ROWS_ARE_REFUSED(float);
        ROWS_ARE_REFUSED(double);
        ROWS_ARE_REFUSED(bool);
        ROWS_ARE_REFUSED(char);
        ROWS_ARE_REFUSED(int8_t);
        ROWS_ARE_REFUSED(uint8_t);
        ROWS_ARE_REFUSED(int16_t);
        ROWS_ARE_REFUSED(uint16_t);
        ROWS_ARE_REFUSED(int32_t);
        ROWS_ARE_REFUSED(uint32_t);
        ROWS_ARE_REFUSED(int64_t);
        ROWS_ARE_REFUSED(uint64_t);
        ROWS_ARE_REFUSED(long long);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(every_function_of_two_tensors_takes_numbers),
    TEST(numbers_promote_by_their_types),
    TEST(where_takes_numbers),
    TEST(numbers_stand_where_numbers_are_wanted),
    TEST(the_dtype_of_a_range_goes_by_types),
    TEST(a_pointer_tells_its_type),
    TEST(halves_and_bytes_fit_what_is_said),
    TEST(pointers_that_cannot_be_meant_are_refused),
};
TEST_MAIN(tests)
