/* dtype.c -- dtypes, promotion and scalars: plain values. */
#include <tern/tensor.h>

static const struct {
    const char *name;
    size_t size;
    bool floating;
    int category; /* bool 0, integer 1, floating 2 */
} dtypes[] = {
    [TERN_F32] = {"float32", 4, true, 2}, [TERN_F64] = {"float64", 8, true, 2},
    [TERN_F16] = {"float16", 2, true, 2}, [TERN_BF16] = {"bfloat16", 2, true, 2},
    [TERN_I32] = {"int32", 4, false, 1},  [TERN_I64] = {"int64", 8, false, 1},
    [TERN_U8] = {"uint8", 1, false, 1},   [TERN_BOOL] = {"bool", 1, false, 0},
};

static bool known(tern_dtype dtype)
{
    return (unsigned)dtype - 1u < sizeof dtypes / sizeof *dtypes - 1u;
}

const char *tern_dtype_name(tern_dtype dtype)
{
    return known(dtype) ? dtypes[dtype].name : "?";
}

size_t tern_dtype_size(tern_dtype dtype)
{
    return known(dtype) ? dtypes[dtype].size : 0;
}

bool tern_dtype_is_floating_point(tern_dtype dtype)
{
    return known(dtype) && dtypes[dtype].floating;
}

/* torch.promote_types: the higher category wins; within one, the wider; f16 with bf16 gives f32. */
tern_dtype tern_promote_types(tern_dtype a, tern_dtype b)
{
    if (!known(a) || !known(b))
        return TERN_DTYPE_DEFAULT;
    if (dtypes[a].category != dtypes[b].category)
        return dtypes[a].category > dtypes[b].category ? a : b;
    if (a == b)
        return a;
    if (dtypes[a].size == dtypes[b].size)
        return TERN_F32; /* f16 and bf16: the only two of one size in one category */
    return dtypes[a].size > dtypes[b].size ? a : b;
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
