/* row_kernels.c -- the rows of one .def file for the host: TERN_ROWS is "elementwise.def" and so
 * on, TERN_ISA v2, v3, v4 or any, TERN_OBJECT the object's name. TERN_WIDE 0: for float; 1: for
 * double and int64_t. */
#include "device/cpu/host_tables.h"
#include "gather.h"
#include "prelude_host.h"
#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)
#include "dialect.h"
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

#define TABLE_(T, TYPE)                                                                            \
    static const tern_host_rows table_##T = {TYPE, rows_##T};                                      \
    static const tern_host_rows *const listed_##T GATHERED(TERN_GLUE(tern_rows_, TERN_ISA)) =      \
        &table_##T;

#if TERN_WIDE
#define TERN_T f64
#include "math_rows.cl"
#define TERN_ROW_TABLE 0
#include "row_tiles.h"
#include TERN_ROWS
#undef TERN_ROW_TABLE
#define TERN_ROW_TABLE 1
#include "row_tiles.h"
static const tern_host_row rows_f64[] = {
#include TERN_ROWS
    {0}};
TABLE_(f64, STORED_AS_f64)
#undef TERN_T
#undef TERN_ROW_TABLE

#define TERN_T i64
#include "math_rows.cl"
#define TERN_ROW_TABLE 0
#include "row_tiles.h"
#include TERN_ROWS
#undef TERN_ROW_TABLE
#define TERN_ROW_TABLE 1
#include "row_tiles.h"
static const tern_host_row rows_i64[] = {
#include TERN_ROWS
    {0}};
TABLE_(i64, STORED_AS_i64)
#else
#define TERN_T f32
#include "math_rows.cl"
#define TERN_ROW_TABLE 0
#include "row_tiles.h"
#include TERN_ROWS
#undef TERN_ROW_TABLE
#define TERN_ROW_TABLE 1
#include "row_tiles.h"
static const tern_host_row rows_f32[] = {
#include TERN_ROWS
    {0}};
TABLE_(f32, STORED_AS_f32)
#endif
