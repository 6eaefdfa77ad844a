/* test_optim_options.c -- every row of optimizers.def: defaults, ranges, what is saved. */
#include "support.h"
#include "base/text.h"
#include "base/option.h"
#include "optim/values.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 16, FIELD_DOUBLE, FIELD_INT, FIELD_ENUM };

/* A row, and where its field is in the options struct; lr is in none. */
typedef struct field {
    const char *name, *words;
    double otherwise;
    tern_range range;
    size_t at;
    int type;
    bool is_option;
} field;

typedef struct optimizer {
    const char *name;
    size_t bytes, mark; /* of its options struct; where reserved is */
    tern_optimizer *(*make)(tern_tensor *const *x, int n, double lr, const void *options);
    field fields[ROWS];
} optimizer;

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static tern_optimizer *make_##NAME(tern_tensor *const *x, int n, double lr, const void *o)     \
    {                                                                                              \
        return tern_optim_##NAME##_of(x, n, lr, o);                                                \
    }
#include "optimizers.def"

/* clang-format off */
#define TYPE(FIELD) _Generic(((type *)0)->FIELD, double: FIELD_DOUBLE, int: FIELD_INT, default: FIELD_ENUM)
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static optimizer describe_##NAME(void)                                                         \
    {                                                                                              \
        typedef tern_##NAME##_options type;                                                        \
        return (optimizer){"tern_optim_" #NAME, sizeof(type), offsetof(type, reserved), make_##NAME, {
#define OPTION(FIELD, DEFAULT, RANGE, WORDS) \
    {#FIELD, WORDS, DEFAULT, RANGE, offsetof(type, FIELD), TYPE(FIELD), true},
#define SETTING(FIELD, DEFAULT, RANGE, WORDS) \
    {#FIELD, WORDS, DEFAULT, RANGE, offsetof(type, FIELD), TYPE(FIELD), false},
#define END(NAME) {.name = NULL}}}; }
#include "optimizers.def"

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS) describe_##NAME,
static optimizer (*const optimizers[])(void) = {
#include "optimizers.def"
};
/* clang-format on */
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static void put(void *options, const field *f, double value)
{
    if (f->type == FIELD_DOUBLE)
        memcpy((char *)options + f->at, &value, sizeof value);
    else
        memcpy((char *)options + f->at, &(int){(int)value}, sizeof(int));
}

static tern_tensor *parameter(void)
{
    return tern_requires_grad_(tern_ones(TERN_SHAPE(2, 2), TERN_F32, "cpu"), true);
}

/* With one field: refused, and PyTorch's words say what and which value. */
static void check_refused(const optimizer *o, const field *f, double value)
{
    char words[128];
    void *options = calloc(1, o->bytes);
    tern_tensor *x = parameter();
    put(options, f, value);
    snprintf(words, sizeof words, "%s: Invalid %s: %s", o->name, f->words, TERN_NUMBER_TEXT(value));
    if (o->make(&x, 1, 0.1, options))
        fail_msg("%s takes %s = %g", o->name, f->name, value);
    assert_error(TERN_ERR_ARGUMENT, words);
    free(options);
    if (!f->is_option)
        return;
    tern_optimizer *made = o->make(&x, 1, 0.1, NULL);
    assert_int_equal(tern_optim_set_option(made, 0, f->name, value), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, strstr(words, "Invalid"));
    assert_true(tern_optim_get_option(made, 0, f->name) == f->otherwise);
    tern_optim_free(made);
}

static void check_taken(const optimizer *o, const field *f, double value)
{
    void *options = calloc(1, o->bytes);
    tern_tensor *x = parameter();
    put(options, f, value == 0 && f->type == FIELD_DOUBLE ? TERN_ZERO : value);
    tern_optimizer *made = o->make(&x, 1, 0.1, options);
    if (!made)
        fail_msg("%s refuses %s = %g", o->name, f->name, value);
    if (f->is_option)
        assert_true(tern_optim_get_option(made, 0, f->name) == value);
    free(options);
    tern_optim_free(made);
}

/* The next number; of integers none that is 0, which is the default. */
static double beside(const field *f, double x, double to)
{
    if (f->type == FIELD_DOUBLE)
        return nextafter(x, to);
    return to > 0 ? x + 1 : x == 1 ? -1 : x - 1;
}

static void every_number_has_its_range(void **state)
{
    (void)state;
    for (int k = 0; k < OPTIMIZERS; k++)
        TERN_SCOPE {
            optimizer o = optimizers[k]();
            for (const field *f = o.fields; f->name; f++) {
                const tern_range *r = &f->range;
                if (isfinite(r->low) && f->type != FIELD_ENUM) /* it may have no sign */
                    check_refused(&o, f,
                                  r->without_low && r->low != 0 ? r->low : beside(f, r->low, -1e9));
                if (isfinite(r->low) && r->without_low && r->low == 0)
                    check_refused(&o, f, -1);
                if (isfinite(r->low) &&
                    (!r->without_low && (r->low != 0 || f->type == FIELD_DOUBLE)))
                    check_taken(&o, f, r->low);
                if (isfinite(r->high)) {
                    check_refused(&o, f, r->without_high ? r->high : beside(f, r->high, 1e9));
                    check_taken(&o, f, r->without_high ? beside(f, r->high, -1e9) : r->high);
                }
                if (f->type == FIELD_DOUBLE)
                    check_refused(&o, f, NAN);
            }
        }
}

static void every_learning_rate_is_checked(void **state)
{
    (void)state;
    for (int k = 0; k < OPTIMIZERS; k++)
        TERN_SCOPE {
            optimizer o = optimizers[k]();
            tern_tensor *x = parameter();
            assert_null(o.make(&x, 1, -0.5, NULL));
            assert_error(TERN_ERR_ARGUMENT, "Invalid learning rate: -0.5");
            assert_null(o.make(&x, 1, NAN, NULL));
            assert_error(TERN_ERR_ARGUMENT, o.name);
        }
}

typedef struct visits {
    const field *next;
    bool lr;
    int n;
} visits;

static tern_status expect_option(const char *path, tern_tensor *x, void *user)
{
    visits *v = user;
    char expected[64];
    while (v->n > 0 && v->next->name && !v->next->is_option)
        v->next++;
    snprintf(expected, sizeof expected, "param_groups.0.%s", v->n == 0 ? "lr" : v->next->name);
    assert_string_equal(path, expected);
    assert_true(tern_item(x) == (v->n == 0 ? 0.1 : v->next->otherwise));
    v->next += v->n++ > 0;
    return TERN_OK;
}

/* What is saved are the options, by the names of their fields, and nothing else of a group. */
static void defaults_are_read_and_saved(void **state)
{
    (void)state;
    for (int k = 0; k < OPTIMIZERS; k++)
        TERN_SCOPE {
            optimizer o = optimizers[k]();
            tern_tensor *x = parameter();
            tern_optimizer *made = o.make(&x, 1, 0.1, NULL);
            visits v = {.next = o.fields};
            int options = 1;
            assert_ok(tern_optim_each_state(made, expect_option, &v));
            for (const field *f = o.fields; f->name; f++) {
                char path[64];
                snprintf(path, sizeof path, "param_groups.0.%s", f->name);
                tern_tensor *value =
                    tern_tensor_scalar(tern_scalar_real(f->otherwise), TERN_F64, "cpu");
                assert_int_equal(tern_optim_has_option(made, f->name), f->is_option);
                if (f->is_option)
                    assert_ok(tern_optim_set_state(made, path, value));
                options += f->is_option;
            }
            assert_int_equal(v.n, options);
            tern_optim_free(made);
        }
}

/* As TERN_DEFAULTS marks them. */
static void marked_options_are_read_as_written(void **state)
{
    (void)state;
    for (int k = 0; k < OPTIMIZERS; k++)
        TERN_SCOPE {
            optimizer o = optimizers[k]();
            tern_tensor *x = parameter();
            void *options = calloc(1, o.bytes);
            uint64_t mark = TERN_OPTIONS_AS_WRITTEN;
            for (const field *f = o.fields; f->name; f++)
                put(options, f, tern_in_range(&f->range, 0) ? 0 : f->otherwise);
            memcpy((char *)options + o.mark, &mark, sizeof mark);
            tern_optimizer *made = o.make(&x, 1, 0.1, options);
            assert_non_null(made);
            for (const field *f = o.fields; f->name; f++)
                if (f->is_option && tern_in_range(&f->range, 0))
                    assert_true(tern_optim_get_option(made, 0, f->name) == 0);
            tern_optim_free(made);
            free(options);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(every_number_has_its_range),
    TEST(every_learning_rate_is_checked),
    TEST(defaults_are_read_and_saved),
    TEST(marked_options_are_read_as_written),
};
TEST_MAIN(tests)
