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
#define X(T)                                                                                       \
    [DTYPE_FIELD(ENUM, STORED_##T)] = {DTYPE_FIELD(NAME, STORED_##T),                              \
                                       #T,                                                         \
                                       FIELD_OF_MATH(ENUM, STORED_##T),                            \
                                       sizeof(DTYPE_FIELD(STORED, STORED_##T)),                    \
                                       DTYPE_IN(KINDS, STORED_##T),                                \
                                       DTYPE_FIELD(DIGITS, STORED_##T),                            \
                                       (double)DTYPE_FIELD(GREATEST, STORED_##T)},
        EACH_STORED(X)
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
    return tern_fail(TERN_ERR_DTYPE, "%s: not implemented for %s%s", function,
                     tern_dtype_name(dtype),
                     tern_dtype_is_stored(dtype)
                         ? ", which can be copied, compared and indexed: convert it (tern_to_dtype)"
                         : "");
}

tern_status tern_check_floating(const char *function, tern_dtype dtype)
{
    return tern_dtype_is_floating_point(dtype) ? TERN_OK : tern_fail_dtype(function, dtype);
}

_Atomic(tern_dtype) tern_chosen_dtype = TERN_F32;

tern_dtype tern_get_default_dtype(void)
{
    return tern_default_real();
}

tern_status tern_set_default_dtype(tern_dtype dtype)
{
    if (!tern_dtype_is_floating_point(dtype) || tern_dtype_is_stored(dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_set_default_dtype: only floating-point types are supported as the "
                         "default type, not %s",
                         tern_dtype_name(dtype));
    atomic_store(&tern_chosen_dtype, dtype);
    return TERN_OK;
}

/* The category: bool 0, integers 1, floats 2. */
static int category(tern_dtype dtype)
{
    return tern_dtype_in(dtype, TERN_SET_FLOATS) ? 2 : tern_dtype_in(dtype, TERN_SET_WHOLES);
}

static bool is_float8(tern_dtype dtype)
{
    return dtype == TERN_F8_E4M3FN || dtype == TERN_F8_E5M2;
}

/* Returns whether PyTorch promotes dtype only with itself and with reals. */
static bool is_barebones(tern_dtype dtype)
{
    return dtype == TERN_U16 || dtype == TERN_U32 || dtype == TERN_U64;
}

static tern_dtype fail_promotion(const char *types, tern_dtype a, tern_dtype b)
{
    tern_fail(
        TERN_ERR_DTYPE,
        "tern_promote_types: Promotion for %s is not supported, attempted to promote %s and %s",
        types, tern_dtype_name(a), tern_dtype_name(b));
    return TERN_DTYPE_DEFAULT;
}

/* torch.promote_types: the higher category wins; within one, the wider type; f16 with bf16 gives
 * f32, u8 with i8 gives i16. */
tern_dtype tern_promote_types(tern_dtype a, tern_dtype b)
{
    if (!known(a) || !known(b))
        return TERN_DTYPE_DEFAULT;
    if (a == b)
        return a;
    if (is_float8(a) || is_float8(b))
        return fail_promotion("Float8 Types", a, b);
    if (category(a) != category(b) && (category(a) == 2 || category(b) == 2))
        return category(a) == 2 ? a : b;
    if (is_barebones(a) || is_barebones(b))
        return fail_promotion("uint16, uint32, uint64 types", a, b);
    if (category(a) != category(b))
        return category(a) > category(b) ? a : b;
    size_t width = tern_dtype_size(a), other = tern_dtype_size(b);
    if (width == other) /* f16 and bf16, or i8 and u8 */
        return category(a) == 2 ? TERN_F32 : TERN_I16;
    return width > other ? a : b;
}

/* uint8_t is the type of float8 too. */
bool tern_elements_are(tern_elements elements, tern_dtype dtype)
{
    if (elements == TERN_ELEMENTS_HALF)
        return dtype == TERN_F16 || dtype == TERN_BF16 || dtype == TERN_U16;
    if (elements == TERN_ELEMENTS_U8 && is_float8(dtype))
        return true;
    return elements == TERN_ELEMENTS_ANY || elements == TERN_ELEMENTS_UNKNOWN ||
           (int)elements == (int)dtype;
}

const char *tern_elements_name(tern_elements elements)
{
    if (elements == TERN_ELEMENTS_HALF)
        return "halves (uint16_t: float16, bfloat16 or uint16)";
    return elements > TERN_ELEMENTS_ANY        ? tern_dtype_name((tern_dtype)elements)
           : elements == TERN_ELEMENTS_UNKNOWN ? "char or a struct, which may be any"
                                               : "pointers, or integers that no dtype has";
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
