/* values.h -- the rows of optimizers.def as C structs: tern_<name>_values has a parameter group's
 * options and the numbers derived from them, in the order and by the names of the kernel.
 * tern_optim_row is an entry of the table of rows. */
#ifndef TERN_OPTIM_VALUES_H
#define TERN_OPTIM_VALUES_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { OPTIM_STATES = 3, OPTIM_VALUES = 20 };

/* The allowed range of an option. */
typedef struct tern_range {
    double low, high;
    bool without_low, without_high;
} tern_range;
/* clang-format off */
#define ANY              {-INFINITY, INFINITY, false, false}
#define FROM(a)          {a, INFINITY, false, false}
#define ABOVE(a)         {a, INFINITY, true, false}
#define FROM_TO(a, b)    {a, b, false, false}
#define FROM_BELOW(a, b) {a, b, false, true}
#define BETWEEN(a, b)    {a, b, true, true}
/* clang-format on */
static inline bool tern_in_range(const tern_range *r, double x)
{
    return (r->without_low ? x > r->low : x >= r->low) &&
           (r->without_high ? x < r->high : x <= r->high);
}

/* The kind of a row: options belong to a group and are saved; settings (and flags) never change;
 * numbers are derived from these. */
typedef enum tern_optim_row_kind { VALUE_OPTION, VALUE_SETTING, VALUE_NUMBER } tern_optim_row_kind;
typedef struct tern_optim_row {
    const char *name; /* "beta1"; NULL after the last one */
    tern_optim_row_kind kind;
    tern_range range;
    const char *words; /* for the error "name: Invalid <words>: -1.0" */
} tern_optim_row;

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    typedef struct tern_##NAME##_values {                                                          \
        double lr;
#define OPTION(FIELD, DEFAULT, RANGE, WORDS)  double FIELD;
#define SETTING(FIELD, DEFAULT, RANGE, WORDS) double FIELD;
#define FLAG(FIELD)                           double FIELD;
#define NUMBER(NAME, VALUE)                   double NAME;
#define END(NAME)                                                                                  \
    }                                                                                              \
    tern_##NAME##_values;                                                                          \
    _Static_assert(sizeof(tern_##NAME##_values) <= sizeof(double[OPTIM_VALUES]), #NAME);
#include "optimizers.def"

#endif
