/* host_kernels.c -- all kernels of cl_kernels/ for the host, compiled once per instruction set:
 * TERN_ISA is v2, v3, v4 or any. */
#include "prelude_host.h"
#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)
#define TERN_SECTION     TERN_GLUE(tern_kernels_, TERN_ISA)
#include "params_host.h"
#include "dialect.h"
#include "shapes.h"
#include "walk.h"
#include "math.cl"
#include "math64.cl"
#include "math_names.h"

#define TERN_T f32
#include "families.h"
#undef TERN_T
#define TERN_T f64
#include "families.h"
#undef TERN_T
#define TERN_T f16
#include "families.h"
#undef TERN_T
#define TERN_T bf16
#include "families.h"
#undef TERN_T
#define TERN_T i32
#include "families.h"
#undef TERN_T
#define TERN_T i64
#include "families.h"
#undef TERN_T
#define TERN_T u8
#include "families.h"
#undef TERN_T
#define TERN_T bool
#include "families.h"
#undef TERN_T

/* The linker gathers the entries of one section and names its ends. */
extern const tern_host_entry *const TERN_GLUE(__start_, TERN_SECTION)[];
extern const tern_host_entry *const TERN_GLUE(__stop_, TERN_SECTION)[];

const tern_host_entry *const *TERN_GLUE(tern_host_kernels_, TERN_ISA)(size_t *n);
const tern_host_entry *const *TERN_GLUE(tern_host_kernels_, TERN_ISA)(size_t *n)
{
    *n = (size_t)(TERN_GLUE(__stop_, TERN_SECTION) - TERN_GLUE(__start_, TERN_SECTION));
    return TERN_GLUE(__start_, TERN_SECTION);
}
