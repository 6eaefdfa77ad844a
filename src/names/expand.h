/* expand.h -- expands the rows of a family to functions and a table; see rows.h. A file may include
 * it several times if the ids of its families differ. */

#define OP(ID, NAME, PARAMETERS, ...)                                                              \
    static int call_##ID(const names_argument *a, tern_tensor **out, int capacity)                 \
    {                                                                                              \
        (void)a;                                                                                   \
        return names_one(__VA_ARGS__, out, capacity);                                              \
    }
#define OPS(ID, NAME, PARAMETERS, RESULTS, ...)                                                    \
    static int call_##ID(const names_argument *a, tern_tensor **out, int capacity)                 \
    {                                                                                              \
        tern_values_indices pair = {NULL, NULL};                                                   \
        tern_tensor *two[2] = {NULL, NULL};                                                        \
        (void)pair;                                                                                \
        (void)two;                                                                                 \
        return __VA_ARGS__;                                                                        \
    }
#include FAMILY
#undef OP
#undef OPS

#define OP(ID, NAME, PARAMETERS, ...) {NAME, NAME "(" PARAMETERS ") -> Tensor", call_##ID},
#define OPS(ID, NAME, PARAMETERS, RESULTS, ...)                                                    \
    {NAME, NAME "(" PARAMETERS ") -> " RESULTS, call_##ID},
#define ROWS_OF_(table) table##_rows
#define ROWS_OF(table)  ROWS_OF_(table)
static const tern_named_op ROWS_OF(TABLE)[] = {
#include FAMILY
};
#undef OP
#undef OPS

extern const names_family TABLE;
const names_family TABLE = {ROWS_OF(TABLE), (int)(sizeof ROWS_OF(TABLE) / sizeof *ROWS_OF(TABLE))};
#undef ROWS_OF_
#undef ROWS_OF
#undef TABLE
#undef FAMILY
