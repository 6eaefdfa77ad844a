/* adamw8bit.c -- AdamW with moments of one byte per element: codes of a map of 256 values, and a
 * scale for each block of 256 elements (Dettmers et al. 2022, https://arxiv.org/abs/2110.02861;
 * bitsandbytes' AdamW8bit). */
#include "base/error.h"
#include "models/adamw8bit_kernels.h"
#include "models/model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/models/adamw8bit.h>

enum { BLOCK = 256, ITEMS = 64, SMALL = 4096, TABLES = 4 * 256, PARTS = 4 };

/* ---- maps ------------------------------------------------------------------------------------ */

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* bitsandbytes' create_dynamic_map: decimal exponents from -6 to 0; the larger the exponent, the
 * more bits the fraction has. A fraction is the midpoint between two of evenly spaced bounds from
 * 0.1 to 1. */
static void dynamic_map(bool is_signed, float map[256])
{
    int n = 0;
    for (int k = 0; k < 7; k++) {
        const int items = 1 << (is_signed ? k : k + 1);
        const float step = (1 - 0.1f) / (float)items, power = (float)pow(10, k - 6);
        float low = 0.1f;
        for (int i = 1; i <= items; i++) {
            /* rounded as by fmaf, which some C libraries round twice: products are exact in
             * float64 */
            float high = (float)(i < (items + 1) / 2 ? (double)step * i + (double)0.1f
                                                     : 1 - (double)step * (items - i));
            map[n++] = power * ((low + high) / 2);
            if (is_signed)
                map[n++] = -power * ((low + high) / 2);
            low = high;
        }
    }
    map[n++] = 0;
    map[n++] = 1;
    qsort(map, 256, sizeof *map, ascending);
}

tern_tensor *tern_dynamic_map(bool is_signed, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    float map[256];
    dynamic_map(is_signed, map);
    return tern_from_data(map, TERN_SHAPE(256), TERN_F32, device);
}

/* Returns both maps, each followed by its midpoints. */
static tern_tensor *make_tables(const char *device)
{
    float tables[TABLES];
    for (int k = 0; k < 2; k++) {
        float *map = tables + 512 * k;
        dynamic_map(k == 0, map);
        for (int i = 0; i < 255; i++)
            map[256 + i] = (map[i] + map[i + 1]) / 2;
        map[511] = INFINITY;
    }
    return tern_from_data(tables, TERN_SHAPE(TABLES), TERN_F32, device);
}

/* ---- state ----------------------------------------------------------------------------------- */

static const char *const part_names[PARTS] = {"state1", "state2", "absmax1", "absmax2"};

/* The moments of a parameter; parts: both moments and, if these are codes, both scales. */
typedef struct moments {
    tern_tensor *part[PARTS];
    int64_t steps;
} moments;

/* The compiled kernels and the tables of a device. */
typedef struct place {
    const char *device;
    tern_kernel *blocks, *dense;
    tern_tensor *tables;
} place;

typedef struct adamw8bit {
    moments *of;
    int n;
    place *places;
    int n_places;
} adamw8bit;

static tern_status no_memory(void)
{
    return tern_fail(TERN_ERR_MEMORY, "tern_optim_adamw8bit: no memory");
}

static void release(moments *m)
{
    for (int k = 0; k < PARTS; k++)
        tern_release(m->part[k]);
    *m = (moments){.steps = 0};
}

static void free_data(void *data)
{
    adamw8bit *a = data;
    for (int i = 0; i < a->n; i++)
        release(&a->of[i]);
    for (int i = 0; i < a->n_places; i++) {
        tern_kernel_free(a->places[i].blocks);
        tern_kernel_free(a->places[i].dense);
        tern_release(a->places[i].tables);
    }
    free(a->of);
    free(a->places);
    free(a);
}

/* Returns the entry of parameter i, or NULL without memory. */
static moments *moments_of(adamw8bit *a, int i)
{
    if (i >= a->n) {
        moments *longer = realloc(a->of, (size_t)(i + 1) * sizeof *longer);
        if (!longer) {
            no_memory();
            return NULL;
        }
        memset(longer + a->n, 0, (size_t)(i + 1 - a->n) * sizeof *longer);
        a->of = longer;
        a->n = i + 1;
    }
    return &a->of[i];
}

/* Returns the number of elements of part k for a parameter of n elements; 0: the part is absent. */
static int64_t elements(int64_t n, int k)
{
    return k < 2 ? n : n < SMALL ? 0 : (n + BLOCK - 1) / BLOCK;
}

static tern_dtype type_of(int64_t n, int k)
{
    return k < 2 && n >= SMALL ? TERN_U8 : TERN_F32;
}

/* Creates the moments as zeros, or moves them to the parameter's device. */
static tern_status bring(moments *m, tern_tensor *x)
{
    const char *device = tern_device(x);
    const int64_t n = tern_numel(x);
    if (m->part[0] && tern_numel(m->part[0]) != n)
        release(m);
    for (int k = 0; k < PARTS && elements(n, k); k++) {
        tern_tensor *old = m->part[k];
        if (old && tern_device(old) == device)
            continue;
        m->part[k] =
            tern_keep(old ? tern_to(old, device)
                          : tern_zeros(k < 2 ? tern_shape_of(x) : TERN_SHAPE(elements(n, k)),
                                       type_of(n, k), device));
        if (!m->part[k]) {
            m->part[k] = old;
            return tern_last_status();
        }
        tern_release(old);
    }
    return TERN_OK;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static place *place_of(adamw8bit *a, const char *device)
{
    for (int i = 0; i < a->n_places; i++)
        if (a->places[i].device == device)
            return &a->places[i];
    place *longer = realloc(a->places, (size_t)(a->n_places + 1) * sizeof *longer);
    if (!longer) {
        no_memory();
        return NULL;
    }
    a->places = longer;
    place made = {.device = device, .tables = tern_keep(make_tables(device))};
    if (made.tables && strcmp(device, "cpu") != 0) {
        made.blocks = tern_kernel_compile(device, source, "update_blocks");
        made.dense = made.blocks ? tern_kernel_compile(device, source, "update_dense") : NULL;
    }
    if (made.tables && (made.dense || strcmp(device, "cpu") == 0)) {
        longer[a->n_places] = made;
        return &longer[a->n_places++];
    }
    tern_kernel_free(made.blocks);
    tern_release(made.tables);
    return NULL;
}

/* The last arguments of both kernels. */
typedef struct numbers {
    float lr, beta1, beta2, fresh1, fresh2, eps, shrink, scale, sign;
} numbers;

static numbers numbers_of(const double *values, int64_t step)
{
    const double lr = values[0], beta1 = values[1], beta2 = values[2];
    return (numbers){.lr = (float)(lr / (1 - pow(beta1, (double)step))),
                     .beta1 = (float)beta1,
                     .beta2 = (float)beta2,
                     .fresh1 = (float)(1 - beta1),
                     .fresh2 = (float)(1 - beta2),
                     .eps = (float)values[3],
                     .shrink = (float)(1 - lr * values[4]),
                     .scale = (float)(sqrt)(1 - pow(beta2, (double)step)),
                     .sign = values[6] != 0 ? -1 : 1};
}

#define NUMBERS(o)                                                                                 \
    (o).lr, (o).beta1, (o).beta2, (o).fresh1, (o).fresh2, (o).eps, (o).shrink, (o).scale, (o).sign

/* Runs the kernel on the cpu for all blocks of p, a contiguous float32 tensor. */
static void run_blocks(const place *at, const moments *m, tern_tensor *p, tern_tensor *g, numbers o)
{
    float *x = tern_data(p), *grad = tern_data(g), *tables = tern_data(at->tables);
    void *part[PARTS];
    const int64_t n = tern_numel(p), blocks = (n + BLOCK - 1) / BLOCK;
    enum { SOME = 16 };
    for (int k = 0; k < PARTS; k++)
        part[k] = m->part[k] ? tern_data(m->part[k]) : NULL;
    int threads = tern_get_num_threads();
    (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (blocks > 2 * SOME)
    for (int64_t b = 0; b < blocks; b += SOME) {
        int64_t end = b + SOME < blocks ? b + SOME : blocks;
        if (part[2])
            update_blocks(x, grad, part[0], part[1], part[2], part[3], tables, n, b, end,
                          NUMBERS(o));
        else
            update_dense(x, grad, part[0], part[1], n, b, end, NUMBERS(o));
    }
}

#define NUMBER(x) TERN_ARG_FLOAT(x)
#define PART(k)   TERN_ARG_TENSOR(m->part[k])
#define SETTINGS                                                                                   \
    TERN_ARG_LONG(n), TERN_ARG_LONG(0), TERN_ARG_LONG(blocks), NUMBER(o.lr), NUMBER(o.beta1),      \
        NUMBER(o.beta2), NUMBER(o.fresh1), NUMBER(o.fresh2), NUMBER(o.eps), NUMBER(o.shrink),      \
        NUMBER(o.scale), NUMBER(o.sign)

static tern_status launch(const place *at, const moments *m, tern_tensor *p, tern_tensor *g,
                          numbers o)
{
    const int64_t n = tern_numel(p), blocks = (n + BLOCK - 1) / BLOCK;
    if (!at->blocks) {
        run_blocks(at, m, p, g, o);
        return TERN_OK;
    }
    const tern_kernel_grid grid = TERN_GRID_GROUP(blocks * ITEMS, ITEMS);
    if (!m->part[2])
        return tern_kernel_launch(at->dense, grid, TERN_ARG_TENSOR(p), TERN_ARG_TENSOR(g), PART(0),
                                  PART(1), SETTINGS);
    return tern_kernel_launch(at->blocks, grid, TERN_ARG_TENSOR(p), TERN_ARG_TENSOR(g), PART(0),
                              PART(1), PART(2), PART(3), TERN_ARG_TENSOR(at->tables), SETTINGS);
}

/* Returns a float32 copy, dense and at the start of its memory. */
static tern_tensor *copy_of(tern_tensor *x)
{
    return tern_dtype_of(x) == TERN_F32 ? tern_contiguous(tern_clone(x))
                                        : tern_to_dtype(x, TERN_F32);
}

static tern_status step(void *data, int i, tern_tensor *x, const double *values)
{
    moments *m = moments_of(data, i);
    place *at = m ? place_of(data, tern_device(x)) : NULL;
    if (!at)
        return tern_last_status();
    if (tern_numel(x) == 0)
        return TERN_OK;
    TRY(bring(m, x));
    tern_tensor *p = copy_of(x), *g = copy_of(tern_grad(x));
    if (!p || !g)
        return tern_last_status();
    TRY(launch(at, m, p, g, numbers_of(values, m->steps + 1)));
    m->steps++;
    return tern_copy_(x, p) ? TERN_OK : tern_last_status();
}

/* ---- state: by bitsandbytes' names ----------------------------------------------------------- */

static tern_status each_state(void *data, tern_tensor_visit visit, void *user)
{
    const adamw8bit *a = data;
    char path[96];
    for (int i = 0; i < a->n; i++) {
        const moments *m = &a->of[i];
        for (int k = 0; k < PARTS; k++) {
            snprintf(path, sizeof path, "state.%d.%s", i, part_names[k]);
            if (m->part[k])
                TRY(visit(path, m->part[k], user));
        }
        snprintf(path, sizeof path, "state.%d.step", i);
        tern_tensor *steps = tern_from_data(&m->steps, TERN_SHAPE_SCALAR, TERN_I64, "cpu");
        if (!steps)
            return tern_last_status();
        if (m->part[0])
            TRY(visit(path, steps, user));
    }
    return TERN_OK;
}

/* Reads the state of parameter i from dict into m, which is empty. */
static tern_status take(const tern_state_dict *dict, int i, tern_tensor *x, moments *m, int *taken)
{
    const int64_t n = tern_numel(x);
    char path[96];
    for (int k = 0; k <= PARTS; k++) {
        snprintf(path, sizeof path, "state.%d.%s", i, k < PARTS ? part_names[k] : "step");
        tern_tensor *value = tern_state_dict_get(dict, path);
        int64_t expected = k < PARTS ? elements(n, k) : 1;
        bool fits = value && tern_numel(value) == expected &&
                    (k == PARTS || tern_dtype_of(value) == type_of(n, k));
        if (!value && (!expected || !*taken))
            continue; /* a parameter without state1 has no state */
        if (!fits || (k && !m->part[0]))
            return tern_fail(
                TERN_ERR_STATE,
                "tern_optim_load_state_dict: %s is %s, a parameter of %lld elements has %lld "
                "of %s",
                path, value ? "another" : "missing", (long long)n, (long long)expected,
                k < PARTS ? tern_dtype_name(type_of(n, k)) : "int64");
        ++*taken;
        if (k == PARTS)
            m->steps = (int64_t)tern_item(value);
        else
            m->part[k] = tern_keep(tern_clone(tern_to(value, tern_device(x))));
        if (k < PARTS && !m->part[k])
            return tern_last_status();
    }
    return TERN_OK;
}

static tern_status load_all(tern_optimizer *optimizer, const tern_state_dict *dict, adamw8bit *to)
{
    int states = 0, taken = 0;
    tern_tensor *x;
    for (int i = 0; (x = tern_optim_parameter(optimizer, i)); i++) {
        moments *m = moments_of(to, i);
        int of_this = 0;
        if (!m)
            return tern_last_status();
        TRY(take(dict, i, x, m, &of_this));
        taken += of_this;
    }
    for (int i = 0; i < tern_state_dict_count(dict); i++)
        states += strncmp(tern_state_dict_key_at(dict, i), "state.", 6) == 0;
    if (states != taken)
        return tern_fail(
            TERN_ERR_STATE,
            "tern_optim_load_state_dict: %d states are no state1, state2, absmax1, absmax2 "
            "or step of a parameter",
            states - taken);
    return TERN_OK;
}

static tern_status load_state(void *data, tern_optimizer *optimizer, const tern_state_dict *dict,
                              bool apply)
{
    adamw8bit *a = data, *made = calloc(1, sizeof *made);
    if (!made)
        return no_memory();
    tern_status status;
    TERN_SCOPE
        status = load_all(optimizer, dict, made);
    if (status == TERN_OK && apply) {
        adamw8bit old = *a;
        a->of = made->of;
        a->n = made->n;
        made->of = old.of;
        made->n = old.n;
    }
    free_data(made);
    return status;
}

/* ---- making ---------------------------------------------------------------------------------- */

tern_optimizer *tern_optim_adamw8bit_of(tern_tensor *const *parameters, int n, double lr,
                                        const tern_adamw_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_optimizer_type type = {.name = __func__,
                                             .step = step,
                                             .each_state = each_state,
                                             .load_state = load_state,
                                             .free_data = free_data};
    if (options && options->amsgrad)
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "tern_optim_adamw8bit: amsgrad's maxima are not kept in 8 bits");
    for (int i = 0; parameters && i < n; i++)
        if (parameters[i] && tern_dtype_of(parameters[i]) == TERN_F64)
            return tern_fail_null(
                TERN_ERR_DTYPE,
                "tern_optim_adamw8bit: parameter %d is float64, which it would round to "
                "float32",
                i);
    adamw8bit *data = calloc(1, sizeof *data);
    tern_optimizer *o = data ? tern_optim_custom(&type, data, parameters, n, lr, options) : NULL;
    if (!data)
        no_memory();
    if (!o)
        free(data);
    return o;
}

tern_optimizer *tern_optim_adamw8bit(tern_module *module, double lr,
                                     const tern_adamw_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const int64_t n = tern_nn_parameters(module, NULL, 0);
    tern_tensor **x = n < 0 ? NULL : malloc(((size_t)n + 1) * sizeof *x);
    if (!x)
        return n < 0 ? NULL : tern_fail_null(TERN_ERR_MEMORY, "tern_optim_adamw8bit: no memory");
    tern_nn_parameters(module, x, n);
    tern_optimizer *o = tern_optim_adamw8bit_of(x, (int)n, lr, options);
    free(x);
    return o;
}
