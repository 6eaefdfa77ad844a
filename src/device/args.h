/* args.h -- functions that make arguments of kernels. They are inline, because returning the struct
 * from a call through memory and copying it would take longer than all else here. */
#ifndef TERN_DEVICE_ARGS_H
#define TERN_DEVICE_ARGS_H
#include "base/dtype.h"
#include "device/backend.h"

/* The types of elements and of values. Types of tensors have the numbers of tern_dtype. */
typedef enum tern_type {
    TERN_TYPE_NONE,
#define X(T) TERN_TYPE_##T,
    EACH_DTYPE(X) EACH_STORED(X)
#undef X
#define X(NAME, BYTES) TERN_TYPE_##NAME,
#include "types.def"
#undef X
        TERN_TYPES
} tern_type;
_Static_assert((int)TERN_TYPE_f32 == TERN_F32 && (int)TERN_TYPE_bool == TERN_BOOL &&
                   (int)TERN_TYPE_e5m2 == TERN_F8_E5M2,
               "dtypes.def is in the enum's order");
enum { TERN_FIRST_STRUCT = TERN_TYPE_e5m2 + 1 }; /* types from here on are structs of shapes.h */

/* Return an argument for the elements of a buffer from index `at` on; tern_arg_buffer is for the
 * dtypes of tensors. */
static inline tern_arg tern_arg_elements(tern_role role, tern_type type, const tern_buffer *buffer,
                                         int64_t at, size_t element_bytes)
{
    return (tern_arg){.buffer = buffer,
                      .at = at,
                      .bytes = (uint32_t)element_bytes,
                      .role = (uint8_t)role,
                      .type = (uint8_t)type};
}
static inline tern_arg tern_arg_buffer(tern_role role, tern_dtype dtype, const tern_buffer *buffer,
                                       int64_t at)
{
    return tern_arg_elements(role, (tern_type)dtype, buffer, at, tern_dtype_size(dtype));
}
static inline tern_arg tern_arg_i64(int64_t value)
{
    return (tern_arg){
        .bytes = 8, .role = TERN_ROLE_VALUE, .type = TERN_TYPE_i64, .value.i64 = value};
}
static inline tern_arg tern_arg_u64(uint64_t value)
{
    return (tern_arg){
        .bytes = 8, .role = TERN_ROLE_VALUE, .type = TERN_TYPE_u64, .value.u64 = value};
}
static inline tern_arg tern_arg_i32(int32_t value)
{
    return (tern_arg){
        .bytes = 4, .role = TERN_ROLE_VALUE, .type = TERN_TYPE_i32, .value.i32 = value};
}
static inline tern_arg tern_arg_f32(float value)
{
    return (tern_arg){
        .bytes = 4, .role = TERN_ROLE_VALUE, .type = TERN_TYPE_f32, .value.f32 = value};
}
static inline tern_arg tern_arg_f64(double value)
{
    return (tern_arg){
        .bytes = 8, .role = TERN_ROLE_VALUE, .type = TERN_TYPE_f64, .value.f64 = value};
}
static inline tern_arg tern_arg_struct(tern_type type, const void *data, size_t bytes)
{
    return (tern_arg){.bytes = (uint32_t)bytes,
                      .role = TERN_ROLE_VALUE,
                      .type = (uint8_t)type,
                      .by_reference = true,
                      .value.data = data};
}
/* The argument for a struct T of shapes.h; the compiler checks that the pointer is a T *. */
#define TERN_ARG_STRUCT(T, pointer)                                                                \
    tern_arg_struct(TERN_TYPE_##T, 1 ? (pointer) : (const T *)0, sizeof(T))

/* Return an argument for a number in the type in which kernels of dtype compute (REAL in the
 * dialect). */
static inline tern_arg tern_arg_scalar(tern_dtype dtype, tern_scalar scalar)
{
    switch (tern_dtype_rows[dtype].math) {
    case TERN_F64:
        return tern_arg_f64(tern_scalar_to_real(scalar));
    case TERN_I64:
        return tern_arg_i64(tern_scalar_to_int(scalar));
    case TERN_I32:
        if (tern_dtype_in(dtype, TERN_SET_BOOLS))
            return tern_arg_i32(scalar.kind == TERN_SCALAR_REAL ? scalar.value.real != 0
                                                                : scalar.value.integer != 0);
        return tern_arg_i32((int32_t)tern_scalar_to_int(scalar));
    default:
        return tern_arg_f32((float)tern_scalar_to_real(scalar));
    }
}
static inline tern_arg tern_arg_real(tern_dtype dtype, double value)
{
    return tern_arg_scalar(dtype, tern_scalar_real(value));
}

#endif
