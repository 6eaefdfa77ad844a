/* dtype.c -- dtypes, promotion and scalars: plain values. */
#include "base/dtype.h"
#include "types_host.h"

#define SET_KINDS                 (0, 1, 2, 3, 4, 5)
#define FIELD_OF_MATH(FIELD, ROW) DTYPE_FIELD(FIELD, DTYPE_GLUE_(DTYPE, DTYPE_FIELD(MATH, ROW)))
const tern_dtype_row tern_dtype_rows[TERN_DTYPE_END] = {
#define X(T)                                                                                       \
    [DTYPE_FIELD(ENUM, DTYPE_##T)] = {DTYPE_FIELD(NAME, DTYPE_##T),                                \
                                      #T,                                                          \
                                      FIELD_OF_MATH(ENUM, DTYPE_##T),                              \
                                      sizeof(DTYPE_FIELD(STORED, DTYPE_##T)),                      \
                                      DTYPE_IN(KINDS, DTYPE_##T),                                  \
                                      DTYPE_FIELD(DIGITS, DTYPE_##T),                              \
                                      (double)DTYPE_FIELD(GREATEST, DTYPE_##T)},
    EACH_DTYPE(X)
#undef X
};

static bool known(tern_dtype dtype)
{
    return (unsigned)dtype - 1u < TERN_DTYPE_END - 1u;
}

const char *tern_dtype_name(tern_dtype dtype)
{
    return known(dtype) ? tern_dtype_rows[dtype].name : "?";
}

size_t tern_dtype_size(tern_dtype dtype)
{
    return known(dtype) ? tern_dtype_rows[dtype].size : 0;
}

bool tern_dtype_is_floating_point(tern_dtype dtype)
{
    return known(dtype) && tern_dtype_in(dtype, TERN_SET_FLOATS);
}

tern_status tern_fail_dtype(const char *function, tern_dtype dtype)
{
    return tern_fail(TERN_ERR_DTYPE, "%s: not implemented for %s", function,
                     tern_dtype_name(dtype));
}

tern_status tern_check_floating(const char *function, tern_dtype dtype)
{
    return tern_dtype_is_floating_point(dtype) ? TERN_OK : tern_fail_dtype(function, dtype);
}

/* bool 0, integers 1, floats 2 */
static int category(tern_dtype dtype)
{
    return tern_dtype_in(dtype, TERN_SET_FLOATS) ? 2 : tern_dtype_in(dtype, TERN_SET_WHOLES);
}

/* torch.promote_types: the higher category wins; within one, the wider; f16 with bf16 gives f32. */
tern_dtype tern_promote_types(tern_dtype a, tern_dtype b)
{
    if (!known(a) || !known(b))
        return TERN_DTYPE_DEFAULT;
    if (category(a) != category(b))
        return category(a) > category(b) ? a : b;
    if (a == b)
        return a;
    size_t width = tern_dtype_size(a), other = tern_dtype_size(b);
    if (width == other)
        return TERN_F32; /* f16 and bf16: the only two of one size in one category */
    return width > other ? a : b;
}

bool tern_elements_are(tern_elements elements, tern_dtype dtype)
{
    if (elements == TERN_ELEMENTS_HALF)
        return dtype == TERN_F16 || dtype == TERN_BF16;
    return elements == TERN_ELEMENTS_ANY || (int)elements == (int)dtype;
}

const char *tern_elements_name(tern_elements elements)
{
    if (elements == TERN_ELEMENTS_HALF)
        return "halves (uint16_t: float16 or bfloat16)";
    return elements > TERN_ELEMENTS_ANY ? tern_dtype_name((tern_dtype)elements)
                                        : "integers of a type that no dtype has";
}

tern_scalar tern_scalar_real(double value)
{
    tern_scalar s = {.kind = TERN_SCALAR_REAL};
    s.value.real = value;
    return s;
}

tern_scalar tern_scalar_int(int64_t value)
{
    tern_scalar s = {.kind = TERN_SCALAR_INT};
    s.value.integer = value;
    return s;
}

tern_scalar tern_scalar_bool(bool value)
{
    tern_scalar s = {.kind = TERN_SCALAR_BOOL};
    s.value.integer = value;
    return s;
}

double tern_scalar_to_real(tern_scalar s)
{
    return s.kind == TERN_SCALAR_REAL ? s.value.real : (double)s.value.integer;
}

int64_t tern_scalar_to_int(tern_scalar s)
{
    if (s.kind != TERN_SCALAR_REAL)
        return s.value.integer;
    double v = s.value.real;
    return v > -9.2233720368547758e18 && v < 9.2233720368547758e18 ? (int64_t)v : INT64_MIN;
}

tern_optional_int tern_some(int64_t value)
{
    tern_optional_int some = {true, value};
    return some;
}
