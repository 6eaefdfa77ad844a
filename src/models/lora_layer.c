/* lora_layer.c -- wrappers: a linear layer with adapters, and a module with trained copies
 * (modules_to_save). */
#include "models/gguf/layer.h"
#include "models/lora.h"
#include "models/quantize.h"
#include <stdlib.h>
#include <string.h>

static const char linear_name[] = "lora.Linear", whole_name[] = "ModulesToSaveWrapper";

lora_data *lora_of(tern_module *m)
{
    const char *name = tern_nn_name(m);
    bool ours = name && (strcmp(name, linear_name) == 0 || strcmp(name, whole_name) == 0);
    return ours ? tern_nn_data(m) : NULL;
}

bool lora_is_linear(tern_module *m)
{
    const char *name = tern_nn_name(m);
    return name && (strcmp(name, "Linear") == 0 || strcmp(name, "Conv1D") == 0 || quantize_is(m));
}

static const char *inner_name(const lora_data *d)
{
    return d->whole ? "original_module" : "base_layer";
}

tern_module *lora_part(tern_module *wrapper, const char *part, const char *adapter)
{
    for (int i = 0; i < tern_nn_children_count(wrapper); i++) {
        tern_module *list = tern_nn_child_at(wrapper, i);
        if (strcmp(tern_nn_child_name_at(wrapper, i), part) != 0)
            continue;
        for (int k = 0; k < tern_nn_children_count(list); k++)
            if (strcmp(tern_nn_child_name_at(list, k), adapter) == 0)
                return tern_nn_child_at(list, k);
    }
    return NULL;
}

/* ---- running ------------------------------------------------------------------------------- */

/* Returns the weight as (out, in), whatever layout the layer has. */
static tern_tensor *weight_of(tern_module *base)
{
    if (quantize_is(base))
        return tern_dequantize_weight(base);
    tern_tensor *w = tern_nn_parameter(base, "weight");
    return strcmp(tern_nn_name(base), "Conv1D") == 0 ? tern_transpose(w, 0, 1) : w;
}

tern_tensor *lora_bias(tern_module *base)
{
    return tern_nn_parameter_at(base, !quantize_is(base));
}

/* Returns s B A, of W's shape, in the adapter's dtype. */
static tern_tensor *delta_of(tern_module *self, const lora_adapter *a)
{
    tern_tensor *down = tern_nn_parameter(lora_part(self, "lora_A", a->name), "weight");
    tern_tensor *up = tern_nn_parameter(lora_part(self, "lora_B", a->name), "weight");
    return tern_mul_scalar(tern_matmul(up, down), TERN_SCALAR(a->scale));
}

/* Returns |W + s B A| of each row, without a gradient. */
static tern_tensor *lengths(tern_tensor *weight, tern_tensor *delta)
{
    tern_tensor *sum = tern_add(tern_detach(weight), tern_detach(delta));
    return tern_sqrt(tern_sum_dim(tern_mul(sum, sum), TERN_DIMS(1), false));
}

/* DoRA: returns y plus (m / |W + s B A| - 1) times y without bias, plus m / |W + s B A| times s B A
 * x. */
static tern_tensor *with_dora(tern_module *self, const lora_adapter *a, tern_tensor *x,
                              tern_tensor *dropped, tern_tensor *y)
{
    tern_module *base = tern_nn_child_at(self, 0);
    tern_tensor *low =
        tern_nn_forward(lora_part(self, "lora_B", a->name),
                        tern_nn_forward(lora_part(self, "lora_A", a->name), dropped));
    tern_tensor *m = tern_nn_parameter(lora_part(self, "lora_magnitude_vector", a->name), "weight");
    tern_tensor *weight = weight_of(base);
    tern_tensor *ratio = tern_div(m, lengths(weight, delta_of(self, a)));
    tern_tensor *bias = lora_bias(base);
    tern_tensor *plain =
        dropped != x ? tern_linear(tern_to_dtype(dropped, tern_dtype_of(weight)), weight, NULL)
        : bias       ? tern_sub(y, bias)
                     : y;
    tern_tensor *more = tern_mul(tern_sub_scalar(ratio, TERN_SCALAR(1)), plain);
    more = tern_add(more, tern_mul(ratio, tern_mul_scalar(low, TERN_SCALAR(a->scale))));
    return tern_add(y, more);
}

static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    const lora_data *d = tern_nn_data(self);
    tern_tensor *y = tern_nn_forward(tern_nn_child_at(self, 0), x);
    const lora_adapter *a =
        d->active >= 0 && d->enabled && !d->merged ? &d->adapters[d->active] : NULL;
    tern_module *down = a && y ? lora_part(self, "lora_A", a->name) : NULL;
    if (!down)
        return y;
    tern_dtype dtype = tern_dtype_of(y);
    tern_tensor *in = tern_to_dtype(x, tern_dtype_of(tern_nn_parameter_at(down, 0)));
    tern_tensor *dropped = tern_dropout(in, a->dropout, tern_nn_is_training(self));
    if (a->dora)
        return tern_to_dtype(with_dora(self, a, in, dropped, y), dtype);
    tern_tensor *low =
        tern_nn_forward(lora_part(self, "lora_B", a->name), tern_nn_forward(down, dropped));
    return tern_to_dtype(tern_add(y, tern_mul_scalar(low, TERN_SCALAR(a->scale))), dtype);
}

static tern_tensor *forward_whole(tern_module *self, tern_tensor *x)
{
    const lora_data *d = tern_nn_data(self);
    tern_module *copy = d->active >= 0 && d->enabled
                            ? lora_part(self, "modules_to_save", d->adapters[d->active].name)
                            : NULL;
    return tern_nn_forward(copy ? copy : tern_nn_child_at(self, 0), x);
}

/* ---- making -------------------------------------------------------------------------------- */

static void free_data(void *data)
{
    lora_data *d = data;
    for (int i = 0; i < d->n; i++)
        json_decref(d->adapters[i].config);
    free(d);
}

static void *copy_data(const void *data, tern_module *copy)
{
    lora_data *d = malloc(sizeof *d);
    (void)copy;
    if (!d)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_lora: no memory for a copy");
    *d = *(const lora_data *)data;
    for (int i = 0; i < d->n; i++)
        json_incref(d->adapters[i].config);
    return d;
}

tern_module *lora_wrap(tern_module *model, const char *path, bool whole)
{
    lora_data *d = calloc(1, sizeof *d);
    tern_module *m =
        d ? tern_nn_module(whole ? whole_name : linear_name, whole ? forward_whole : forward, d)
          : NULL;
    if (!m) {
        free(d);
        return d ? NULL : tern_fail_null(TERN_ERR_MEMORY, "tern_lora: no memory for %s", path);
    }
    tern_nn_on_free(m, free_data);
    tern_nn_on_copy(m, copy_data);
    d->active = -1;
    d->enabled = true;
    d->whole = whole;
    tern_nn_train(m, tern_nn_is_training(tern_nn_child(model, path)));
    return tern_nn_wrap(model, path, m, inner_name(d));
}

/* Adds child under the adapter's name to the list called part, which is created if it does not
 * exist. */
static tern_status put(tern_module *wrapper, const char *part, const char *adapter,
                       tern_module *child)
{
    tern_module *list = NULL;
    if (!child)
        return tern_last_status();
    for (int i = 0; i < tern_nn_children_count(wrapper) && !list; i++)
        if (strcmp(tern_nn_child_name_at(wrapper, i), part) == 0)
            list = tern_nn_child_at(wrapper, i);
    if (!list)
        list = tern_nn_add(wrapper, part, tern_nn_module_dict());
    if (!list) {
        tern_nn_free(child);
        return tern_last_status();
    }
    tern_nn_train(child, tern_nn_is_training(wrapper));
    return tern_nn_add(list, adapter, child) ? TERN_OK : tern_last_status();
}

static tern_module *magnitude(tern_tensor *weight, tern_dtype dtype)
{
    tern_module *m = tern_nn_module("DoraLinearLayer", NULL, NULL);
    tern_tensor *w = tern_to_dtype(tern_detach(weight), dtype);
    TERN_NO_GRAD
        if (m && !tern_nn_add_parameter(
                     m, "weight", tern_sqrt(tern_sum_dim(tern_mul(w, w), TERN_DIMS(1), false)))) {
            tern_nn_free(m);
            m = NULL;
        }
    return m;
}

static tern_status add_linear(tern_module *wrapper, const lora_adapter *a, int64_t r)
{
    tern_module *base = tern_nn_child_at(wrapper, 0);
    const gguf_layer *blocks = gguf_is_linear(base) ? tern_nn_data(base) : NULL;
    /* Only the shape is needed here: GGUF blocks are not decoded for it. */
    tern_tensor *weight = blocks && !a->dora
                              ? tern_expand(tern_zeros(TERN_SHAPE(1, 1), TERN_F32,
                                                       tern_device(tern_nn_buffer(base, "weight"))),
                                            TERN_SHAPE(blocks->rows, blocks->columns))
                              : weight_of(base);
    tern_dtype dtype = tern_dtype_of(weight);
    if (!weight)
        return tern_last_status();
    dtype = tern_dtype_size(dtype) < 4 ? TERN_F32 : dtype;
    const tern_linear_options o = {.no_bias = true, .dtype = dtype, .device = tern_device(weight)};
    tern_module *up = tern_nn_linear(r, tern_size(weight, 0), &o);
    TERN_NO_GRAD
        if (up)
            tern_nn_init_zeros_(tern_nn_parameter(up, "weight"));
    tern_status status =
        put(wrapper, "lora_A", a->name, tern_nn_linear(tern_size(weight, 1), r, &o));
    if (status == TERN_OK)
        status = put(wrapper, "lora_B", a->name, up);
    else
        tern_nn_free(up);
    if (status == TERN_OK && a->dora)
        status = put(wrapper, "lora_magnitude_vector", a->name, magnitude(weight, dtype));
    return status;
}

tern_status lora_add(tern_module *wrapper, const char *adapter, json_t *config, int64_t r,
                     double scale)
{
    lora_data *d = tern_nn_data(wrapper);
    tern_status status = TERN_OK;
    if (d->n == LORA_MOST)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_lora_add: there are %d adapters, which is the most", LORA_MOST);
    lora_adapter *a = &d->adapters[d->n];
    *a = (lora_adapter){.config = json_incref(config),
                        .scale = scale,
                        .dropout = json_number_value(json_object_get(config, "lora_dropout")),
                        .dora = json_is_true(json_object_get(config, "use_dora"))};
    memcpy(a->name, adapter, strlen(adapter) + 1);
    d->active = d->n++;
    TERN_SCOPE
        status = d->whole ? put(wrapper, "modules_to_save", adapter,
                                tern_nn_copy(tern_nn_child_at(wrapper, 0)))
                          : add_linear(wrapper, a, r);
    return status;
}

void lora_remove(tern_module *wrapper, const char *adapter)
{
    static const char *const parts[] = {"lora_A", "lora_B", "lora_magnitude_vector",
                                        "modules_to_save"};
    lora_data *d = tern_nn_data(wrapper);
    int i = 0;
    for (int k = 0; k < 4; k++)
        tern_nn_free(lora_part(wrapper, parts[k], adapter));
    while (i < d->n && strcmp(d->adapters[i].name, adapter) != 0)
        i++;
    if (i == d->n)
        return;
    json_decref(d->adapters[i].config);
    memmove(&d->adapters[i], &d->adapters[i + 1], sizeof *d->adapters * (size_t)(d->n - i - 1));
    d->n--;
    d->active = d->active > i ? d->active - 1 : d->active == i ? d->n - 1 : d->active;
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Keeps the row lengths for lora_fold out of the weights. */
static tern_tensor *keep_lengths(tern_module *wrapper, tern_tensor *x)
{
    lora_data *d = tern_nn_data(wrapper);
    if (d->has_lengths)
        return tern_nn_set_buffer(wrapper, "merged_lengths", x);
    d->has_lengths = true;
    return tern_nn_add_buffer_with(wrapper, "merged_lengths", x, false);
}

/* Replaces the weight W by W + s B A, with DoRA by m (W + s B A) / |W + s B A|; or, if not in,
 * undoes this. */
static tern_status fold(tern_module *wrapper, const lora_adapter *a, bool in)
{
    tern_module *base = tern_nn_child_at(wrapper, 0);
    tern_tensor *delta = delta_of(wrapper, a);
    tern_tensor *w = delta ? tern_to_dtype(weight_of(base), tern_dtype_of(delta)) : NULL;
    if (a->dora && w) {
        tern_tensor *m =
            tern_nn_parameter(lora_part(wrapper, "lora_magnitude_vector", a->name), "weight");
        /* When undoing, the rows have the lengths m, and the lengths of W + s B A are in
         * merged_lengths. */
        tern_tensor *length = in ? lengths(w, delta) : tern_nn_buffer(wrapper, "merged_lengths");
        tern_tensor *ratio = tern_unsqueeze(in ? tern_div(m, length) : tern_div(length, m), 1);
        w = in ? tern_mul(ratio, tern_add(w, delta)) : tern_sub(tern_mul(ratio, w), delta);
        if (in && w && !keep_lengths(wrapper, length))
            return tern_last_status();
    } else if (w)
        w = in ? tern_add(w, delta) : tern_sub(w, delta);
    if (w && quantize_is(base))
        return quantize_set(base, w);
    if (w && strcmp(tern_nn_name(base), "Conv1D") == 0)
        w = tern_transpose(w, 0, 1);
    return w && tern_copy_(tern_nn_parameter(base, "weight"), w) ? TERN_OK : tern_last_status();
}

tern_status lora_fold(tern_module *wrapper, bool in)
{
    lora_data *d = tern_nn_data(wrapper);
    tern_status status = TERN_OK;
    if (d->whole || d->active < 0 || d->merged == in ||
        !lora_part(wrapper, "lora_A", d->adapters[d->active].name))
        return TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD
            status = fold(wrapper, &d->adapters[d->active], in);
    if (status == TERN_OK)
        d->merged = in;
    return status;
}
