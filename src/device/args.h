/* args.h -- arguments of kernels. Inline: a struct that comes back from a call through memory and
 * is then copied costs more than all else here. */
#ifndef TERN_DEVICE_ARGS_H
#define TERN_DEVICE_ARGS_H
#include "device/backend.h"

/* An element of a buffer, by its index. */
static inline tern_arg tern_arg_buffer(const tern_buffer *buffer, int64_t at, size_t element_bytes)
{
    return (tern_arg){.buffer = buffer, .at = at, .bytes = (uint32_t)element_bytes};
}
static inline tern_arg tern_arg_i64(int64_t value)
{
    return (tern_arg){.bytes = 8, .value.i64 = value};
}
static inline tern_arg tern_arg_i32(int32_t value)
{
    return (tern_arg){.bytes = 4, .value.i32 = value};
}
static inline tern_arg tern_arg_f32(float value)
{
    return (tern_arg){.bytes = 4, .value.f32 = value};
}
static inline tern_arg tern_arg_f64(double value)
{
    return (tern_arg){.bytes = 8, .value.f64 = value};
}
static inline tern_arg tern_arg_struct(const void *data, size_t bytes)
{
    return (tern_arg){.bytes = (uint32_t)bytes, .by_reference = true, .value.data = data};
}
/* A number in the type that kernels of dtype compute in (REAL in the dialect). */
static inline tern_arg tern_arg_scalar(tern_dtype dtype, tern_scalar scalar)
{
    switch (dtype) {
    case TERN_F64:
        return tern_arg_f64(tern_scalar_to_real(scalar));
    case TERN_I64:
        return tern_arg_i64(tern_scalar_to_int(scalar));
    case TERN_I32:
    case TERN_U8:
        return tern_arg_i32((int32_t)tern_scalar_to_int(scalar));
    case TERN_BOOL:
        return tern_arg_i32(scalar.kind == TERN_SCALAR_REAL ? scalar.value.real != 0
                                                            : scalar.value.integer != 0);
    default:
        return tern_arg_f32((float)tern_scalar_to_real(scalar));
    }
}
static inline tern_arg tern_arg_real(tern_dtype dtype, double value)
{
    return tern_arg_scalar(dtype, tern_scalar_real(value));
}

#endif
