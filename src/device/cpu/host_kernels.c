/* host_kernels.c -- one family of kernels for the host, compiled once per family and instruction
 * set: TERN_FAMILY is "reduce.cl" and so on, TERN_ISA v2, v3, v4 or any, TERN_OBJECT the object's
 * name. TERN_WIDE 0: for f32, and for half precision unless TERN_HALVES_WIDE; 1: for doubles and
 * integers, and for half precision if TERN_HALVES_WIDE. */
#include "device/cpu/host_tables.h"
#include "prelude_host.h"
#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)
#define TERN_SECTION     TERN_GLUE(tern_kernels_, TERN_ISA)
#include "params_host.h"
#include "dialect.h"
#include "shapes.h"
#include "device/cpu/sum_run.h"
#include "nd_index.h"
#include "math.cl"
#include "math_special.cl"
#if TERN_WIDE
#include "math64.cl"
#include "math64_special.cl"
#endif
#include "math_names.h"

/* host_table.c refers to this symbol, so that a static library links this object. */
#define OBJECT__(name, isa) tern_family_##name##_##isa
#define OBJECT_(name, isa)  OBJECT__(name, isa)
#define OBJECT              OBJECT_(TERN_OBJECT, TERN_ISA)
extern const char OBJECT;
const char OBJECT = 0;

/* every_dtype.h, which cmake/library.cmake writes, includes the family for each dtype with a 1
 * here. */
#define SET_HERE                                                                                   \
    (!TERN_WIDE, TERN_WIDE, TERN_WIDE == TERN_HALVES_WIDE, TERN_WIDE, TERN_WIDE, TERN_WIDE)
#define TERN_HAS(T) IN_SET(HERE, T)
#include "every_dtype.h"
