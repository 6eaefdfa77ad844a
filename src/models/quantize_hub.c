/* quantize_hub.c -- reads linear layers with 8 or 4 bits: in the format of
 * tern_models_save_pretrained, or GPTQ's and AWQ's 4 bits (eight codes per int32, packed zeros,
 * float16 scales), which become LinearInt4. */
#include "models/quantize.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The content of quantization_config. */
typedef struct format {
    bool own, awq, plus_one; /* plus_one: GPTQ's first format stores zeros minus 1 */
    int64_t group;
} format;

static tern_status read_format(const models_model *m, const json_t *how, format *f)
{
    const char *method = json_string_value(json_object_get(how, "quant_method"));
    const char *kind = json_string_value(json_object_get(how, "checkpoint_format"));
    const char *version = json_string_value(json_object_get(how, "version"));
    const json_t *group = json_object_get(how, "group_size"), *bits = json_object_get(how, "bits");
    *f = (format){.own = method && strcmp(method, QUANTIZE_METHOD) == 0,
                  .awq = method && strcmp(method, "awq") == 0,
                  .plus_one = !kind || strcmp(kind, "gptq_v2") != 0,
                  .group = json_is_integer(group) ? (int64_t)json_integer_value(group) : 128};
    if (f->own)
        return TERN_OK;
    bool known = method && (f->awq || strcmp(method, "gptq") == 0) &&
                 json_integer_value(bits) == 4 &&
                 (!f->awq || !version || strcmp(version, "gemm") == 0);
    return known ? TERN_OK
                 : tern_fail(TERN_ERR_UNSUPPORTED,
                             "config.json of %s: `quantization_config` is of %.20s with %lld bits: "
                             "GPTQ and AWQ of 4 bits are read",
                             m->kind->name, method ? method : "nothing",
                             (long long)json_integer_value(bits));
}

tern_status quantize_check(const models_model *m)
{
    format f;
    const json_t *how = json_object_get(m->json, "quantization_config");
    return how && !json_is_null(how) ? read_format(m, how, &f) : TERN_OK;
}

/* ---- a layer ------------------------------------------------------------------------------- */

static tern_tensor *part(const quantize_source *s, const char *path, const char *suffix,
                         tern_dtype dtype)
{
    char name[1024];
    snprintf(name, sizeof name, "%s.%s", path, suffix);
    if (!tern_file_has(s->file, name))
        return NULL;
    s->used(s->user, name);
    tern_tensor *x = tern_file_get(s->file, name, "cpu");
    return x ? tern_contiguous(tern_to_dtype(x, dtype)) : NULL;
}

static bool is_sized(const tern_tensor *x, int64_t rows, int64_t columns)
{
    return x && tern_dim(x) == 2 && tern_size(x, 0) == rows && tern_size(x, 1) == columns;
}

/* Returns the code at (row, column) of words that pack eight columns each; AWQ's order is 0 2 4 6 1
 * 3 5 7. */
static int by_columns(const int32_t *words, int64_t columns, int64_t row, int64_t column, bool awq)
{
    static const int place[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    int k = awq ? place[column % 8] : (int)(column % 8);
    return (int)((uint32_t)words[row * (columns / 8) + column / 8] >> (4 * k) & 15);
}

typedef struct arrays {
    uint8_t *codes, *bytes;
    float *scales, *zeros;
} arrays;

/* Converts a layer's arrays; order: the input of each column; NULL: inputs are in order. */
static void convert(const format *f, const quantize_layer *l, int64_t group, const int32_t *order,
                    const int32_t *words, const int32_t *zeros, const float *scales, arrays *to)
{
    int64_t groups = l->in / group;
    for (int64_t o = 0; o < l->out; o++) {
        for (int64_t k = 0; k < l->in; k++) {
            int64_t i = order ? order[k] : k;
            to->codes[o * l->in + k] =
                (uint8_t)(f->awq
                              ? by_columns(words, l->out, i, o, true)
                              : (int)((uint32_t)words[i / 8 * l->out + o] >> (4 * (i % 8)) & 15));
        }
        for (int64_t g = 0; g < groups; g++) {
            int zero = by_columns(zeros, l->out, g, o, f->awq);
            to->scales[o * groups + g] = scales[g * l->out + o];
            to->zeros[o * groups + g] = (float)(zero + (!f->awq && f->plus_one));
        }
    }
    quantize_pack(to->codes, l->out * l->in, group, to->bytes);
}

/* With desc_act, inputs were quantized in order of importance, and g_idx holds the group of each
 * input. Sorts the inputs by group into order (the input of each column); returns false if the
 * groups do not have equal sizes. */
static bool read_order(tern_tensor *index, int64_t in, int64_t group, int32_t *order, bool *ordered)
{
    const int32_t *at = index && tern_numel(index) == in ? tern_data(index) : NULL;
    int64_t n = 0;
    *ordered = false;
    for (int64_t g = 0; at && g < in / group; g++) {
        for (int64_t i = 0; i < in; i++)
            if (at[i] == g && n < in)
                order[n++] = (int32_t)i;
        if (n != (g + 1) * group)
            return false;
    }
    for (int64_t i = 0; i < n; i++)
        *ordered = *ordered || order[i] != i;
    return !index || n == in;
}

static tern_module *read_layer(const quantize_source *s, const format *f, const char *path,
                               tern_module *linear)
{
    tern_tensor *weight = tern_nn_parameter(linear, "weight");
    tern_tensor *bias = tern_nn_parameter_at(linear, 1);
    quantize_layer l = {
        .type = TERN_QUANTIZE_INT4, .out = tern_size(weight, 0), .in = tern_size(weight, 1)};
    int64_t group = f->group > 0 ? f->group : l.in, groups = l.in / group;
    tern_tensor *words = part(s, path, "qweight", TERN_I32);
    tern_tensor *zeros = part(s, path, "qzeros", TERN_I32);
    tern_tensor *scales = part(s, path, "scales", TERN_F32);
    tern_tensor *index = part(s, path, "g_idx", TERN_I32);
    bool fits = l.in % group == 0 && group % 2 == 0 && l.in % 8 == 0 && l.out % 8 == 0 &&
                is_sized(zeros, groups, l.out / 8) && is_sized(scales, groups, l.out) &&
                (f->awq ? is_sized(words, l.in, l.out / 8) : is_sized(words, l.in / 8, l.out));
    int32_t *order = malloc((size_t)l.in * sizeof *order);
    if (!fits || !order || !read_order(index, l.in, group, order, &l.ordered)) {
        free(order);
        return fits && !order
                   ? tern_fail_null(TERN_ERR_MEMORY,
                                    "tern_models_from_pretrained: no memory for %s", path)
                   : tern_fail_null(
                         TERN_ERR_STATE,
                         "tern_models_from_pretrained: %s has qweight, qzeros and scales of "
                         "other sizes than (%lld, %lld) in groups of %lld wants, or a g_idx "
                         "that has not so many of each",
                         path, (long long)l.out, (long long)l.in, (long long)group);
    }
    size_t n = (size_t)(l.out * l.in), k = (size_t)(l.out * groups);
    arrays to = {malloc(n), malloc(n / 2), malloc(k * sizeof(float)), malloc(k * sizeof(float))};
    tern_module *m = NULL;
    if (to.codes && to.bytes && to.scales && to.zeros) {
        convert(f, &l, group, l.ordered ? order : NULL, tern_data(words), tern_data(zeros),
                tern_data(scales), &to);
        tern_tensor *const parts[3] = {
            tern_from_data(to.bytes, TERN_SHAPE(l.out, l.in / 2), TERN_U8, s->device),
            tern_from_data(to.scales, TERN_SHAPE(l.out, groups), TERN_F32, s->device),
            tern_from_data(to.zeros, TERN_SHAPE(l.out, groups), TERN_F32, s->device)};
        m = quantize_make(l, parts, NULL, bias);
        if (m && l.ordered &&
            !tern_nn_add_buffer(m, "order",
                                tern_from_data(order, TERN_SHAPE(l.in), TERN_I32, s->device))) {
            tern_nn_free(m);
            m = NULL;
        }
    } else
        tern_fail(TERN_ERR_MEMORY, "tern_models_from_pretrained: no memory for %s", path);
    free(order);
    free(to.codes);
    free(to.bytes);
    free(to.scales);
    free(to.zeros);
    return m;
}

/* ---- a layer in tern's format ---------------------------------------------------------------- */

/* Returns a tensor of the layer at path, which must have the shape; NULL if it is absent (no error)
 * or after an error. */
static tern_tensor *own_part(const quantize_source *s, const char *path, const char *name,
                             tern_dtype dtype, tern_shape shape)
{
    char full[1024];
    snprintf(full, sizeof full, "%s.%s", path, name);
    if (!tern_file_has(s->file, full))
        return NULL;
    s->used(s->user, full);
    tern_tensor *x = tern_file_get(s->file, full, s->device);
    if (!x)
        return NULL;
    bool same = tern_dim(x) == shape.ndim && tern_dtype_of(x) == dtype;
    for (int i = 0; same && i < shape.ndim; i++)
        same = shape.dims[i] < 0 || tern_size(x, i) == shape.dims[i];
    return same ? x
                : tern_fail_null(TERN_ERR_STATE,
                                 "tern_models_from_pretrained: %s has another size or type than a "
                                 "quantized layer's",
                                 full);
}

/* Returns the type of the layer at path in the file; NONE: the layer is not quantized. */
static tern_quantization own_type(const quantize_source *s, const char *path)
{
    static const char *const marks[] = {"absmax", "quant_map", "codes"};
    tern_quantization type = TERN_QUANTIZE_NONE;
    char name[1024];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.%s", path, marks[i]);
        if (tern_file_has(s->file, name))
            type = (tern_quantization)(TERN_QUANTIZE_INT8 + i);
    }
    return type;
}

static tern_module *read_own(const quantize_source *s, const char *path, tern_module *linear)
{
    tern_tensor *weight = tern_nn_parameter_at(linear, 0), *parts[3] = {NULL}, *map = NULL;
    const bool columns = strcmp(tern_nn_name(linear), "Conv1D") == 0;
    quantize_layer l = {.type = own_type(s, path),
                        .out = tern_size(weight, columns),
                        .in = tern_size(weight, !columns)};
    const int64_t blocks = (l.out * l.in + 63) / 64, places = l.type == TERN_QUANTIZE_INT4 ? 2 : 1;
    const tern_shape codes =
        l.type == TERN_QUANTIZE_NF4 ? TERN_SHAPE(blocks * 32, 1) : TERN_SHAPE(l.out, l.in / places);
    const char *const *names = quantize_buffers[l.type];
    parts[0] = own_part(s, path, names[0], l.type == TERN_QUANTIZE_INT8 ? TERN_I8 : TERN_U8, codes);
    if (l.type == TERN_QUANTIZE_INT4) {
        parts[1] = own_part(s, path, names[1], TERN_F32, TERN_SHAPE(l.out, -1));
        parts[2] = parts[1] ? own_part(s, path, names[2], TERN_F32, tern_shape_of(parts[1])) : NULL;
    } else
        parts[1] = own_part(s, path, names[1], TERN_F32,
                            TERN_SHAPE(l.type == TERN_QUANTIZE_NF4 ? blocks : l.out));
    if (l.type == TERN_QUANTIZE_NF4)
        map = tern_to(own_part(s, path, "quant_map", TERN_F32, TERN_SHAPE(16)), "cpu");
    tern_tensor *order = own_part(s, path, "order", TERN_I32, TERN_SHAPE(l.in));
    const int64_t groups = parts[1] && places == 2 ? tern_size(parts[1], 1) : 1;
    if (!parts[0] || !parts[1] || (places == 2 && !parts[2]) || groups < 1 ||
        l.in % (groups * places) || (l.type == TERN_QUANTIZE_NF4 && !map))
        return tern_fail_null(TERN_ERR_STATE,
                              "tern_models_from_pretrained: %s is quantized, and what the file has "
                              "of it is not all, or not for (%lld, %lld)",
                              path, (long long)l.out, (long long)l.in);
    l.ordered = order != NULL;
    tern_module *m =
        quantize_make(l, parts, map ? tern_data(map) : NULL, tern_nn_parameter_at(linear, 1));
    if (!m || !order || tern_nn_add_buffer(m, "order", order))
        return m;
    tern_nn_free(m);
    return NULL;
}

/* ---- all of them --------------------------------------------------------------------------- */

typedef struct plan {
    const quantize_source *source;
    bool own;
    char **paths;
    int n;
} plan;

static tern_status collect(const char *path, tern_module *m, void *user)
{
    plan *p = user;
    char name[1024];
    snprintf(name, sizeof name, "%s.qweight", path);
    if (!quantize_can(m) ||
        !(p->own ? own_type(p->source, path) != TERN_QUANTIZE_NONE
                 : strcmp(tern_nn_name(m), "Linear") == 0 && tern_file_has(p->source->file, name)))
        return TERN_OK;
    char **longer = realloc(p->paths, (size_t)(p->n + 1) * sizeof *longer);
    if (longer)
        p->paths = longer;
    if (!longer || !(p->paths[p->n] = strdup(path)))
        return tern_fail(TERN_ERR_MEMORY, "tern_models_from_pretrained: no memory");
    p->n++;
    return TERN_OK;
}

tern_status quantize_read_layers(models_model *m, const quantize_source *source)
{
    const json_t *how = json_object_get(m->json, "quantization_config");
    format f;
    plan p = {.source = source};
    if (!how || json_is_null(how))
        return TERN_OK;
    TRY(read_format(m, how, &f));
    p.own = f.own;
    tern_status status = tern_nn_each_module(m->module, collect, &p);
    for (int i = 0; i < p.n; i++) {
        if (status == TERN_OK)
            TERN_SCOPE {
                tern_module *linear = tern_nn_child(m->module, p.paths[i]);
                status = quantize_put(m->module, p.paths[i],
                                      f.own ? read_own(source, p.paths[i], linear)
                                            : read_layer(source, &f, p.paths[i], linear));
            }
        free(p.paths[i]);
    }
    free(p.paths);
    return status;
}
