/* host_table.c -- the tables of one instruction set's kernels and rows: the linker gathers the
 * entries of one section and names its ends. */
#include "device/cpu/host_tables.h"
#include "gather.h"

#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)

/* A static library links an object only for a symbol: each object defines this one. */
#define OBJECT_(name, isa) tern_family_##name##_##isa
#define OBJECT(name, isa)  OBJECT_(name, isa)
#define X(name)            extern const char OBJECT(name, TERN_ISA);
TERN_FAMILIES
#undef X
static const char *const objects[] __attribute__((used)) = {
#define X(name) &OBJECT(name, TERN_ISA),
    TERN_FAMILIES
#undef X
};

#define TABLE(KIND, TYPE)                                                                          \
    GATHERED_ENDS(TYPE, first_of_##KIND, end_of_##KIND, TERN_GLUE(tern_##KIND##_, TERN_ISA))       \
    TYPE *TERN_GLUE(tern_host_##KIND##_, TERN_ISA)(size_t * n);                                    \
    TYPE *TERN_GLUE(tern_host_##KIND##_, TERN_ISA)(size_t * n)                                     \
    {                                                                                              \
        *n = (size_t)(end_of_##KIND - first_of_##KIND);                                            \
        return first_of_##KIND;                                                                    \
    }
TABLE(kernels, const tern_host_entry)
TABLE(rows, const tern_host_rows *const)
