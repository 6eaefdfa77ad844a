/* host_table.c -- the table of one instruction set's kernels: the linker gathers the entries of one
 * section and names its ends. */
#include <stddef.h>

#define TERN_GLUE_(a, b) a##b
#define TERN_GLUE(a, b)  TERN_GLUE_(a, b)
#define START            TERN_GLUE(__start_tern_kernels_, TERN_ISA)
#define STOP             TERN_GLUE(__stop_tern_kernels_, TERN_ISA)

/* A static library gives a program only what it refers to: the symbol that each family defines. */
#define FAMILY_(name, isa) tern_family_##name##_##isa
#define FAMILY(name, isa)  FAMILY_(name, isa)
#define X(name)            extern const char FAMILY(name, TERN_ISA);
TERN_FAMILIES
#undef X
static const char *const families[] __attribute__((used)) = {
#define X(name) &FAMILY(name, TERN_ISA),
    TERN_FAMILIES
#undef X
};

struct tern_host_entry;
extern const struct tern_host_entry *const START[] __attribute__((visibility("hidden")));
extern const struct tern_host_entry *const STOP[] __attribute__((visibility("hidden")));

const struct tern_host_entry *const *TERN_GLUE(tern_host_kernels_, TERN_ISA)(size_t *n);
const struct tern_host_entry *const *TERN_GLUE(tern_host_kernels_, TERN_ISA)(size_t *n)
{
    *n = (size_t)(STOP - START);
    return START;
}
