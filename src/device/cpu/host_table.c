/* host_table.c -- the tables of one instruction set's kernels and rows: the linker gathers the
 * entries of one section and names its ends. */
#include "device/cpu/host_tables.h"

#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)

/* A static library gives a program only what it refers to: the symbol that each object defines. */
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

#define SECTION_(KIND, TYPE)                                                                       \
    extern TYPE TERN_GLUE(__start_tern_##KIND##_, TERN_ISA)[] HIDDEN;                              \
    extern TYPE TERN_GLUE(__stop_tern_##KIND##_, TERN_ISA)[] HIDDEN;                               \
    TYPE *TERN_GLUE(tern_host_##KIND##_, TERN_ISA)(size_t * n);                                    \
    TYPE *TERN_GLUE(tern_host_##KIND##_, TERN_ISA)(size_t * n)                                     \
    {                                                                                              \
        *n = (size_t)(TERN_GLUE(__stop_tern_##KIND##_, TERN_ISA) -                                 \
                      TERN_GLUE(__start_tern_##KIND##_, TERN_ISA));                                \
        return TERN_GLUE(__start_tern_##KIND##_, TERN_ISA);                                        \
    }
#define HIDDEN __attribute__((visibility("hidden")))
SECTION_(kernels, const tern_host_entry)
SECTION_(rows, const tern_host_rows *const)
