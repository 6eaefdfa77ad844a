/* quantize_files.c -- quantized layers in the format of bitsandbytes' files. */
#include "models/gguf/layer.h"
#include "models/quantize.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 };
static const char reading[] = "tern_quantized_from_state_dict";

static tern_tensor *part(const tern_state_dict *dict, const char *name, const char *suffix)
{
    char key[1024];
    snprintf(key, sizeof key, "%s%s", name, suffix);
    return tern_state_dict_get(dict, key);
}

/* Returns the n numbers of a tensor as float32, to be freed; NULL after an error. */
static float *floats(const char *name, const char *suffix, tern_tensor *x, int64_t n)
{
    tern_tensor *host = x ? tern_contiguous(tern_to(tern_to_dtype(x, TERN_F32), "cpu")) : NULL;
    float *list = NULL;
    if (!x || tern_numel(x) != n)
        return tern_fail_null(x ? TERN_ERR_STATE : TERN_ERR_ARGUMENT,
                              "%s: \"%s%s\" %s %lld numbers", reading, name, suffix,
                              x ? "has not" : "is not there, of", (long long)n);
    if (host && !(list = malloc(((size_t)n + 1) * sizeof *list)))
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for %lld numbers", reading,
                              (long long)n);
    if (host)
        memcpy(list, tern_data(host), (size_t)n * sizeof *list);
    return list;
}

/* Returns the JSON text stored in a tensor of bytes, parsed; NULL after an error. */
static json_t *state_of(const char *name, tern_tensor *bytes)
{
    json_t *json = NULL;
    if (!bytes || tern_dtype_of(bytes) != TERN_U8)
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "%s: \"%s\" has no quant_state of nf4 and is not of int8", reading,
                              name);
    tern_tensor *host = tern_contiguous(tern_to(bytes, "cpu"));
    if (host)
        json = json_loadb(tern_data(host), (size_t)tern_numel(host), 0, NULL);
    return json || !host ? json
                         : tern_fail_null(TERN_ERR_IO, "%s: the quant_state of \"%s\" is not JSON",
                                          reading, name);
}

/* Returns the scales, decoded if they have 8 bits themselves: map[code] nested_absmax[i / size] +
 * offset. */
static float *scales_of(const tern_state_dict *dict, const char *name, const json_t *state,
                        int64_t blocks)
{
    tern_tensor *absmax = part(dict, name, ".absmax");
    float *scales = floats(name, ".absmax", absmax, blocks);
    if (!scales || tern_dtype_of(absmax) != TERN_U8)
        return scales;
    int64_t size = json_integer_value(json_object_get(state, "nested_blocksize"));
    float offset = (float)json_number_value(json_object_get(state, "nested_offset"));
    float *map = floats(name, ".nested_quant_map", part(dict, name, ".nested_quant_map"), 256);
    float *nested =
        size > 0 ? floats(name, ".nested_absmax", part(dict, name, ".nested_absmax"),
                          (blocks + size - 1) / size)
                 : tern_fail_null(TERN_ERR_IO, "%s: \"%s\" has no nested_blocksize", reading, name);
    for (int64_t i = 0; map && nested && i < blocks; i++)
        scales[i] = map[(int)scales[i]] * nested[i / size] + offset;
    bool good = map && nested;
    free(map);
    free(nested);
    if (good)
        return scales;
    free(scales);
    return NULL;
}

static tern_module *read_nf4(const tern_state_dict *dict, const char *name, tern_tensor *codes,
                             const json_t *state, tern_tensor *bias)
{
    const json_t *shape = json_object_get(state, "shape");
    const char *type = json_string_value(json_object_get(state, "quant_type"));
    quantize_layer l = {.type = TERN_QUANTIZE_NF4,
                        .out = json_integer_value(json_array_get(shape, 0)),
                        .in = json_integer_value(json_array_get(shape, 1))};
    bool sized = l.out > 0 && l.in > 0 && l.out < INT32_MAX && l.in < INT32_MAX;
    int64_t bytes = sized ? (l.out * l.in + 1) / 2 : -1,
            blocks = sized ? (l.out * l.in + BLOCK - 1) / BLOCK : 0;
    if (!type || strcmp(type, "nf4") != 0 ||
        json_integer_value(json_object_get(state, "blocksize")) != BLOCK)
        return tern_fail_null(TERN_ERR_UNSUPPORTED,
                              "%s: \"%s\" is of %s, nf4 in blocks of 64 is read", reading, name,
                              type ? type : "no type");
    if (bytes != tern_numel(codes))
        return tern_fail_null(TERN_ERR_STATE, "%s: \"%s\" has %lld bytes, its shape wants %lld",
                              reading, name, (long long)tern_numel(codes), (long long)bytes);
    float *scales = scales_of(dict, name, state, blocks);
    float *map = scales ? floats(name, ".quant_map", part(dict, name, ".quant_map"), 16) : NULL;
    tern_tensor *whole =
        map ? tern_zeros(TERN_SHAPE(blocks * (BLOCK / 2), 1), TERN_U8, tern_device(codes)) : NULL;
    tern_module *m = NULL;
    if (whole &&
        tern_copy_(tern_narrow(whole, 0, 0, bytes), tern_view(codes, TERN_SHAPE(bytes, 1))))
        m = quantize_make(
            l,
            (tern_tensor *const[3]){
                whole, tern_from_data(scales, TERN_SHAPE(blocks), TERN_F32, tern_device(codes))},
            map, bias);
    free(scales);
    free(map);
    return m;
}

static tern_module *read_int8(const tern_state_dict *dict, const char *name, tern_tensor *codes,
                              tern_tensor *bias)
{
    char key[1024];
    size_t n = strlen(name), end = n >= 6 && strcmp(name + n - 6, "weight") == 0 ? n - 6 : n;
    snprintf(key, sizeof key, "%.*sSCB", (int)end, name);
    tern_tensor *scales = tern_state_dict_get(dict, key);
    if (tern_dim(codes) != 2 || !scales || tern_numel(scales) != tern_size(codes, 0))
        return tern_fail_null(scales ? TERN_ERR_STATE : TERN_ERR_ARGUMENT,
                              "%s: \"%s\" is not (out, in), or \"%s\" is not there for each row",
                              reading, name, key);
    quantize_layer l = {
        .type = TERN_QUANTIZE_INT8, .out = tern_size(codes, 0), .in = tern_size(codes, 1)};
    tern_tensor *const parts[3] = {
        tern_clone(codes), tern_clone(tern_view(tern_to_dtype(scales, TERN_F32), TERN_SHAPE(-1)))};
    return quantize_make(l, parts, NULL, bias);
}

tern_module *tern_quantized_from_state_dict(const tern_state_dict *dict, const char *name,
                                            tern_tensor *bias)
{
    tern_tensor *codes = dict && name ? tern_state_dict_get(dict, name) : NULL;
    tern_module *m = NULL;
    if (!codes || strlen(name) > 900)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: \"%s\" is not there", reading,
                              name ? name : "NULL");
    TERN_SCOPE {
        if (tern_dtype_of(codes) == TERN_I8)
            m = read_int8(dict, name, codes, bias);
        else {
            json_t *state = state_of(name, part(dict, name, ".quant_state.bitsandbytes__nf4"));
            if (state)
                m = read_nf4(dict, name, codes, state, bias);
            json_decref(state);
        }
    }
    return m;
}

/* ---- writing ------------------------------------------------------------------------------- */

static tern_status put(tern_state_dict *dict, const char *name, const char *suffix, tern_tensor *x)
{
    char key[1024];
    snprintf(key, sizeof key, "%s%s", name, suffix);
    return x ? tern_state_dict_set(dict, key, x) : tern_last_status();
}

static tern_status write_nf4(tern_module *m, tern_state_dict *dict, const char *name)
{
    const quantize_layer *l = tern_nn_data(m);
    char state[256];
    int n = snprintf(state, sizeof state,
                     "{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float32\", "
                     "\"shape\": [%lld, %lld]}",
                     (long long)l->out, (long long)l->in);
    tern_tensor *text = tern_from_data((const uint8_t *)state, TERN_SHAPE(n), TERN_U8, "cpu");
    TRY(put(dict, name, "",
            tern_clone(tern_narrow(tern_nn_buffer(m, "weight"), 0, 0, (l->out * l->in + 1) / 2))));
    TRY(put(dict, name, ".absmax", tern_nn_buffer(m, "absmax")));
    TRY(put(dict, name, ".quant_map", tern_nn_buffer(m, "quant_map")));
    return put(dict, name, ".quant_state.bitsandbytes__nf4", text);
}

tern_status tern_quantized_to_state_dict(tern_module *m, tern_state_dict *dict, const char *name)
{
    tern_status status = TERN_OK;
    if (!m || !dict || !name || !quantize_is(m) || strlen(name) > 900)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_quantized_to_state_dict: %s",
                         !m || !dict || !name ? "NULL" : "no quantized layer, or a long name");
    if (gguf_is_linear(m))
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_quantized_to_state_dict: bitsandbytes has no blocks of GGUF");
    const quantize_layer *l = tern_nn_data(m);
    if (l->type == TERN_QUANTIZE_INT4)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_quantized_to_state_dict: bitsandbytes has no INT4 of groups");
    TERN_SCOPE
        if (l->type == TERN_QUANTIZE_NF4)
            status = write_nf4(m, dict, name);
        else {
            size_t n = strlen(name),
                   end = n >= 6 && strcmp(name + n - 6, "weight") == 0 ? n - 6 : n;
            char prefix[1024];
            snprintf(prefix, sizeof prefix, "%.*s", (int)end, name);
            status = put(dict, name, "", tern_nn_buffer(m, "weight"));
            if (status == TERN_OK)
                status = put(dict, prefix, "SCB", tern_nn_buffer(m, "absmax"));
        }
    return status;
}
