/* host_kernels.c -- one family of kernels for the host, compiled once per family and instruction
 * set: TERN_FAMILY is "reduce.cl" and so on, TERN_FAMILY_NAME reduce, TERN_ISA is v2, v3, v4 or
 * any. */
#include "prelude_host.h"
#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)
#define TERN_SECTION     TERN_GLUE(tern_kernels_, TERN_ISA)
#include "params_host.h"
#include "dialect.h"
#include "shapes.h"
#include "walk.h"
#include "math.cl"
#include "math_special.cl"
#include "math64.cl"
#include "math64_special.cl"
#include "math_names.h"

/* What host_table.c refers to, so that a static library brings this object. */
#define FAMILY_(name, isa) tern_family_##name##_##isa
#define FAMILY(name, isa)  FAMILY_(name, isa)
extern const char FAMILY(TERN_FAMILY_NAME, TERN_ISA);
const char FAMILY(TERN_FAMILY_NAME, TERN_ISA) = 0;

/* TERN_TYPES: what is worth the space. 1: f32 and the halves; 2: f64 too; 3: integers too. The
 * lowest instruction set has them all, and the better ones fall back on it. */
#define TERN_T f32
#include TERN_FAMILY
#undef TERN_T
#define TERN_T f16
#include TERN_FAMILY
#undef TERN_T
#define TERN_T bf16
#include TERN_FAMILY
#undef TERN_T
#if TERN_TYPES >= 2
#define TERN_T f64
#include TERN_FAMILY
#undef TERN_T
#endif
#if TERN_TYPES >= 3
#define TERN_T i32
#include TERN_FAMILY
#undef TERN_T
#define TERN_T i64
#include TERN_FAMILY
#undef TERN_T
#define TERN_T u8
#include TERN_FAMILY
#undef TERN_T
#define TERN_T bool
#include TERN_FAMILY
#undef TERN_T
#endif
