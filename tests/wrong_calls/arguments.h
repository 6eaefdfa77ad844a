/* arguments.h -- arguments of any kind, most of them wrong for the function that gets them: make_TYPE(source, parameter),
 * which prints what it made into the source's text. */
#ifndef TERN_TESTS_ARGUMENTS_H
#define TERN_TESTS_ARGUMENTS_H
#include "support.h"
#include <math.h>
#include <stdio.h>

enum { N_DTYPES = TERN_F8_E5M2 + 1 };

static const char *device;

/* ---- choices --------------------------------------------------------------------------------- */

typedef struct source {
    uint64_t seed, state;
    tern_tensor *gone;
    tern_module *modules[4];
    tern_optimizer *optimizers[2];
    int n_modules, n_optimizers;
    size_t used, written;
    char text[4096]; /* the arguments, as they are printed */
    _Alignas(16) char bytes[1 << 16];
} source;

static uint32_t pick(source *s, uint32_t n)
{
    uint64_t z = s->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % n;
}

static bool chance(source *s, uint32_t percent)
{
    return pick(s, 100) < percent;
}

static void *scratch(source *s, size_t bytes)
{
    void *at = s->bytes + s->used;
    s->used += (bytes + 15) / 16 * 16;
    assert_true(s->used <= sizeof s->bytes);
    return at;
}

static void told(source *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(s->text + s->written, sizeof s->text - s->written, format, list);
    va_end(list);
    s->written += (size_t)n;
    if (s->written >= sizeof s->text)
        s->written = sizeof s->text - 1;
}

static void *none(source *s)
{
    told(s, "NULL, ");
    return NULL;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int64_t make_count(source *s)
{
    int64_t n = (int64_t)pick(s, 6) - 1;
    told(s, "%lld, ", (long long)n);
    return n;
}

static int64_t hostile(source *s)
{
    static const int64_t odd[] = {7, -3, -100, 64, INT64_C(1) << 40, INT64_MAX, INT64_MIN};
    return chance(s, 80) ? (int64_t)pick(s, 6) - 1 : odd[pick(s, sizeof odd / sizeof *odd)];
}

static int64_t make_int64_t(source *s, const char *parameter)
{
    int64_t value = (strstr(parameter, "layers") || strstr(parameter, "iter"))
                        ? (int64_t)pick(s, 4) - 1
                        : hostile(s); /* so many are made */
    told(s, "%lld, ", (long long)value);
    return value;
}

static int make_int(source *s, const char *parameter)
{
    int64_t value = make_int64_t(s, parameter);
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int)value;
}

static uint64_t make_uint64_t(source *s, const char *parameter)
{
    return (uint64_t)make_int64_t(s, parameter);
}

static size_t make_size_t(source *s, const char *parameter)
{
    size_t n = pick(s, 5);
    (void)parameter;
    told(s, "%zu, ", n);
    return n;
}

static double make_double(source *s, const char *parameter)
{
    static const double values[] = {0,    1,    -1,   0.5, 2,        3,
                                    -0.5, 1e-5, 1e30, NAN, INFINITY, -INFINITY};
    double value = values[pick(s, sizeof values / sizeof *values)];
    (void)parameter;
    told(s, "%g, ", value);
    return value;
}

static float make_float(source *s, const char *parameter)
{
    return (float)make_double(s, parameter);
}

static bool make_bool(source *s, const char *parameter)
{
    bool value = chance(s, 50);
    (void)parameter;
    told(s, "%s, ", value ? "true" : "false");
    return value;
}

static int make_enum(source *s)
{
    int value = chance(s, 85) ? (int)pick(s, 4) : chance(s, 50) ? -1 : 99;
    told(s, "%d, ", value);
    return value;
}

static tern_dtype make_tern_dtype(source *s, const char *parameter)
{
    int value = chance(s, 90) ? (int)pick(s, N_DTYPES) : chance(s, 50) ? -1 : 99;
    (void)parameter;
    told(s, "%s, ", tern_dtype_name((tern_dtype)value));
    return (tern_dtype)value;
}

static tern_elements make_tern_elements(source *s, const char *parameter)
{
    (void)parameter;
    return (tern_elements)make_enum(s);
}

static const char *make_const_char_p(source *s, const char *parameter)
{
    static const char *const words[] = {
        "",          "x",     "sum",      "mean",         "reflect", "nonsense",
        "ij,jk->ik", "i,i->", "0.weight", "/proc/none/x", "N",       "%s"};
    static const char *const devices[] = {"cpu", "cpu", "cpu:7", "nonsense", ""};
    const char *value = strcmp(parameter, "device") == 0 ? devices[pick(s, 5)] : words[pick(s, 12)];
    if (strcmp(parameter, "path") == 0 || strcmp(parameter, "folder") == 0)
        value = "/proc/none/x";
    if (chance(s, 20))
        return none(s);
    told(s, "\"%s\", ", value);
    return value;
}

static const char *const *make_const_char_pconst_p(source *s, const char *parameter)
{
    const char **list = scratch(s, 8 * sizeof *list);
    if (chance(s, 10))
        return none(s);
    for (int i = 0; i < 8; i++)
        list[i] = make_const_char_p(s, parameter);
    return list;
}

static tern_scalar make_tern_scalar(source *s, const char *parameter)
{
    switch (pick(s, 3)) {
    case 0:
        return tern_scalar_int(make_int64_t(s, parameter));
    case 1:
        return tern_scalar_bool(make_bool(s, parameter));
    default:
        return tern_scalar_real(make_double(s, parameter));
    }
}

static tern_optional_int make_tern_optional_int(source *s, const char *parameter)
{
    return chance(s, 30) ? (tern_optional_int){0} : tern_some(make_int64_t(s, parameter));
}

static tern_shape make_tern_shape(source *s, const char *parameter)
{
    tern_shape shape = {.ndim = (int)pick(s, 5)};
    (void)parameter;
    if (chance(s, 4))
        shape.ndim = chance(s, 50) ? -1 : TERN_MAX_DIMS + 1;
    told(s, "(");
    for (int i = 0; i < shape.ndim && i < TERN_MAX_DIMS; i++) {
        shape.dims[i] = chance(s, 97) ? (int64_t)pick(s, 6) - (chance(s, 20) ? 2 : 0)
                                      : INT64_C(1) << (chance(s, 50) ? 40 : 62);
        told(s, "%lld ", (long long)shape.dims[i]);
    }
    told(s, shape.ndim < 0 || shape.ndim > TERN_MAX_DIMS ? "%d dims), " : "), ", shape.ndim);
    return shape;
}

static tern_shape sizes_of(source *s)
{
#define DIMS(...)                                                                                  \
    {                                                                                              \
        sizeof((int[]){__VA_ARGS__}) / sizeof(int),                                                \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
    static const struct {
        int ndim;
        int64_t dims[5];
    } usual[] = {DIMS(2, 3),
                 DIMS(3, 2),
                 DIMS(3, 3),
                 DIMS(3),
                 DIMS(2),
                 DIMS(1),
                 {0, {0}},
                 DIMS(2, 3, 4),
                 DIMS(2, 3, 4, 4),
                 DIMS(4, 3, 2, 2),
                 DIMS(1, 2, 3, 4, 4),
                 DIMS(2, 1, 2, 2, 2)};
    if (chance(s, 70)) {
        uint32_t i = pick(s, sizeof usual / sizeof *usual);
        return tern_shape_from(usual[i].ndim, usual[i].dims);
    }
    tern_shape shape = {.ndim = (int)pick(s, 6)};
    for (int i = 0; i < shape.ndim; i++)
        shape.dims[i] = (int64_t)pick(s, 6);
    return shape;
}

static tern_tensor *new_tensor(source *s)
{
    tern_dtype dtype = chance(s, 60)   ? TERN_F32
                       : chance(s, 60) ? TERN_I64
                                       : (tern_dtype)pick(s, N_DTYPES);
    tern_shape shape = sizes_of(s);
    tern_tensor *x =
        tern_to_dtype(tern_full(shape, TERN_SCALAR((int)pick(s, 3)), TERN_F32, device), dtype);
    tern_clear_error();
    if (!x)
        return none(s);
    told(s, "%s[", tern_dtype_name(dtype));
    for (int i = 0; i < shape.ndim; i++)
        told(s, "%s%lld", i ? "," : "", (long long)shape.dims[i]);
    told(s, "]");
    if (shape.ndim > 1 && chance(s, 10)) {
        x = tern_transpose(x, 0, 1);
        told(s, ".T");
    } else if (shape.ndim > 0 && chance(s, 5)) {
        tern_tensor *wide = shape.dims[0] == 1 ? tern_expand(x, TERN_SHAPE(4)) : NULL;
        told(s, wide ? ".expand(4)" : "");
        x = wide ? wide : x;
        tern_clear_error();
    }
    if (dtype == TERN_F32 && chance(s, 15)) {
        x = tern_requires_grad_(x, true);
        told(s, " leaf");
        if (chance(s, 50)) {
            x = tern_mul_scalar(x, TERN_SCALAR(1));
            told(s, " * 1");
        }
        tern_clear_error();
    }
    told(s, ", ");
    return x;
}

static tern_tensor *make_tern_tensor_p(source *s, const char *parameter)
{
    (void)parameter;
    if (chance(s, 5))
        return none(s);
    if (chance(s, 3)) {
        told(s, "a tensor that is gone, ");
        return s->gone;
    }
    return new_tensor(s);
}

static const tern_tensor *make_const_tern_tensor_p(source *s, const char *parameter)
{
    return make_tern_tensor_p(s, parameter);
}

static tern_tensor *const *make_tern_tensor_pconst_p(source *s, const char *parameter)
{
    tern_tensor **list = scratch(s, 8 * sizeof *list);
    bool same = chance(s, 30);
    if (chance(s, 5))
        return none(s);
    told(s, "{");
    for (int i = 0; i < 8; i++)
        list[i] = i > 0 && same ? list[0] : i < 5 ? make_tern_tensor_p(s, parameter) : list[0];
    told(s, "}, ");
    return list;
}

/* Where results go. */
#define RESULT(TYPE, WORD)                                                                         \
    static TYPE *make_##WORD##_p(source *s, const char *parameter)                                 \
    {                                                                                              \
        (void)parameter;                                                                           \
        if (chance(s, 5))                                                                          \
            return none(s);                                                                        \
        told(s, "results, ");                                                                      \
        return scratch(s, 64 * sizeof(TYPE));                                                      \
    }
RESULT(tern_tensor *, tern_tensor_p)
RESULT(tern_values_indices, tern_values_indices)
RESULT(tern_unique_result, tern_unique_result)
RESULT(tern_rnn_result, tern_rnn_result)
RESULT(double, double)
RESULT(size_t, size_t)
RESULT(int64_t, int64_t)

static const int64_t *make_const_int64_t_p(source *s, const char *parameter)
{
    int64_t *list = scratch(s, 8 * sizeof *list);
    if (chance(s, 5))
        return none(s);
    for (int i = 0; i < 8; i++)
        list[i] = make_int64_t(s, parameter);
    return list;
}

static const double *make_const_double_p(source *s, const char *parameter)
{
    double *list = scratch(s, 8 * sizeof *list);
    if (chance(s, 5))
        return none(s);
    for (int i = 0; i < 8; i++)
        list[i] = make_double(s, parameter);
    return list;
}

static const void *make_const_void_p(source *s, const char *parameter)
{
    static const char zeros[1 << 20];
    (void)parameter;
    if (chance(s, 5))
        return none(s);
    told(s, "bytes, ");
    return zeros;
}

static tern_module *make_tern_module_p(source *s, const char *parameter)
{
    (void)parameter;
    if (chance(s, 30) || s->n_modules == 4)
        return none(s);
    told(s, "Linear(3, 2), ");
    return s->modules[s->n_modules++] = tern_nn_linear(3, 2, NULL);
}

static const tern_module *make_const_tern_module_p(source *s, const char *parameter)
{
    return make_tern_module_p(s, parameter);
}

static tern_optimizer *make_tern_optimizer_p(source *s, const char *parameter)
{
    tern_module *m = s->n_optimizers < 2 ? make_tern_module_p(s, parameter) : NULL;
    if (!m)
        return none(s);
    told(s, "SGD, ");
    return s->optimizers[s->n_optimizers++] = tern_optim_sgd(m, 0.1, NULL);
}

static const tern_optimizer *make_const_tern_optimizer_p(source *s, const char *parameter)
{
    return make_tern_optimizer_p(s, parameter);
}

#endif
