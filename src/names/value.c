/* value.c -- values for calls by name. */
#include <tern/names.h>

tern_value tern_value_none(const char *name)
{
    return (tern_value){.name = name};
}

tern_value tern_value_tensor(const char *name, tern_tensor *x)
{
    return (tern_value){.name = name, .kind = TERN_VALUE_TENSOR, .as.tensor = x};
}

tern_value tern_value_tensors(const char *name, tern_tensor *const *tensors, int count)
{
    return (tern_value){
        .name = name, .kind = TERN_VALUE_TENSORS, .count = count, .as.tensors = tensors};
}

tern_value tern_value_scalar(const char *name, tern_scalar scalar)
{
    return (tern_value){.name = name, .kind = TERN_VALUE_SCALAR, .as.scalar = scalar};
}

tern_value tern_value_int(const char *name, int64_t integer)
{
    return tern_value_scalar(name, tern_scalar_int(integer));
}

tern_value tern_value_real(const char *name, double real)
{
    return tern_value_scalar(name, tern_scalar_real(real));
}

tern_value tern_value_bool(const char *name, bool value)
{
    return tern_value_scalar(name, tern_scalar_bool(value));
}

tern_value tern_value_ints(const char *name, const int64_t *ints, int count)
{
    return (tern_value){.name = name, .kind = TERN_VALUE_INTS, .count = count, .as.ints = ints};
}

tern_value tern_value_reals(const char *name, const double *reals, int count)
{
    return (tern_value){.name = name, .kind = TERN_VALUE_REALS, .count = count, .as.reals = reals};
}

tern_value tern_value_text(const char *name, const char *text)
{
    return (tern_value){.name = name, .kind = TERN_VALUE_TEXT, .as.text = text};
}

tern_value tern_value_dtype(const char *name, tern_dtype dtype)
{
    return (tern_value){.name = name, .kind = TERN_VALUE_DTYPE, .as.dtype = dtype};
}
