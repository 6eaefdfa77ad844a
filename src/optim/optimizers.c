/* optimizers.c -- the rows of optimizers.def as C functions and tables: for each optimizer the
 * reading of options, derived numbers, its kind and its two constructors. */
#include "optim/optimizer.h"

/* ---- reading the options; NULL: the defaults ------------------------------------------------- */

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static void NAME##_read(const void *options, void *values)                                     \
    {                                                                                              \
        static const tern_##NAME##_options none;                                                   \
        const tern_##NAME##_options *from = options ? options : &none;                             \
        tern_##NAME##_values *o = values;
#define OPTION(FIELD, DEFAULT, RANGE, WORDS)  o->FIELD = TERN_OPTION(from, FIELD, DEFAULT);
#define SETTING(FIELD, DEFAULT, RANGE, WORDS) o->FIELD = TERN_OPTION(from, FIELD, DEFAULT);
#define FLAG(FIELD)                           o->FIELD = from->FIELD;
#define END(NAME)                             }
#include "optimizers.def"

/* ---- tern_<name>_defaults -------------------------------------------------------------------- */

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    tern_##NAME##_options tern_##NAME##_defaults(void)                                             \
    {                                                                                              \
        tern_##NAME##_options o = {.reserved = {TERN_OPTIONS_AS_WRITTEN}};
#define OPTION(FIELD, DEFAULT, RANGE, WORDS)  o.FIELD = DEFAULT;
#define SETTING(FIELD, DEFAULT, RANGE, WORDS) o.FIELD = DEFAULT;
#define END(NAME)                                                                                  \
    return o;                                                                                      \
    }
#include "optimizers.def"

/* ---- derived numbers ------------------------------------------------------------------------- */

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static void NAME##_derive(void *values)                                                        \
    {                                                                                              \
        tern_##NAME##_values *o = values;                                                          \
        (void)o;
#define NUMBER(NAME, VALUE) o->NAME = VALUE;
#define END(NAME)           }
#include "optimizers.def"

/* Returns which states (moments, momentum buffers) the options need: a bit for each. */
#define ALWAYS 1
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static uint32_t NAME##_states(const void *values)                                              \
    {                                                                                              \
        const tern_##NAME##_values *o = values;                                                    \
        uint32_t states = 0, bit = 1;                                                              \
        (void)o, (void)bit;
#define STATE(NAME, WHEN)                                                                          \
    states |= (WHEN) ? bit : 0;                                                                    \
    bit <<= 1;
#define END(NAME)                                                                                  \
    return states;                                                                                 \
    }
#include "optimizers.def"

/* Returns the error in a combination of options, e.g. Nesterov momentum without momentum, or
 * NULL. */
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static const char *NAME##_conflict(const void *values)                                         \
    {                                                                                              \
        const tern_##NAME##_values *o = values;                                                    \
        (void)o;
#define REQUIRE(CONDITION, WORDS)                                                                  \
    if (!(CONDITION))                                                                              \
        return WORDS;
#define END(NAME)                                                                                  \
    return NULL;                                                                                   \
    }
#include "optimizers.def"

/* ---- tables ---------------------------------------------------------------------------------- */

/* clang-format off */
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static const tern_optim_row NAME##_rows[] = {                                                  \
        {"lr", VALUE_OPTION, FROM(0), "learning rate"},
#define OPTION(FIELD, DEFAULT, RANGE, WORDS)  {#FIELD, VALUE_OPTION, RANGE, WORDS},
#define SETTING(FIELD, DEFAULT, RANGE, WORDS) {#FIELD, VALUE_SETTING, RANGE, WORDS},
#define FLAG(FIELD)                           {#FIELD, VALUE_SETTING, ANY, #FIELD},
#define NUMBER(NAME, VALUE)                   {#NAME, VALUE_NUMBER, ANY, #NAME},
#define END(NAME)                             {.name = NULL}};
#include "optimizers.def"

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static const char *const NAME##_state_names[OPTIM_STATES + 1] = {
#define STATE(NAME, WHEN) #NAME,
#define END(NAME)         NULL};
#include "optimizers.def"

static const tern_optim_parts PLAIN = {.prepare = NULL};
#define HALVES false
#define WIDE   true
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static const tern_optim_kind NAME##_kind = {                                                   \
        .name = "tern_optim_" #NAME,                                                               \
        .kernel = TERN_FOREACH_KERNEL(#FAMILY, #KERNEL),                                           \
        .only_wide = DTYPES,                                                                       \
        .rows = NAME##_rows,                                                                       \
        .n_values = sizeof(tern_##NAME##_values) / sizeof(double),                                 \
        .state_names = NAME##_state_names,                                                         \
        .read = NAME##_read,                                                                       \
        .derive = NAME##_derive,                                                                   \
        .states = NAME##_states,                                                                   \
        .conflict = NAME##_conflict,                                                               \
        .parts = &PARTS};                                                                          \
    tern_optimizer *tern_optim_##NAME(tern_module *module, double lr,                              \
                                      const tern_##NAME##_options *options)                        \
    {                                                                                              \
        return tern_optim_new(&NAME##_kind, module, lr, options);                                  \
    }                                                                                              \
    tern_optimizer *tern_optim_##NAME##_of(tern_tensor *const *parameters, int n, double lr,       \
                                           const tern_##NAME##_options *options)                   \
    {                                                                                              \
        return tern_optim_new_of(&NAME##_kind, parameters, n, lr, options);                        \
    }
#include "optimizers.def"
/* clang-format on */
