/* types_host.h -- the dialect's types, for the host's C compiler. */
#ifndef TERN_TYPES_HOST_H
#define TERN_TYPES_HOST_H
#include <stddef.h>
#include <stdint.h>
typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
typedef float f32;
typedef double f64;
typedef ptrdiff_t idx;

/* Which part of how many this call does. */
typedef struct tern_host_grid {
    i32 part, parts;
} tern_host_grid;
#endif
