/* devices.c -- a step on two devices: it goes well on both or on neither, and results and gradients
 * are the same numbers but for rounding. */
#include "fuzz.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEAVES = 16, MOST_COMPARED = 4096 };
static const double MOST = 1000; /* of an input that is compared: nothing overflows on the way */

const char *fuzz_other_device;

/* A step on one of the devices. */
typedef struct side {
    const char *device;
    tern_value values[TERN_MAX_PARAMETERS];
    tern_tensor *lists[TERN_MAX_PARAMETERS][FUZZ_LIST];
    tern_tensor *leaves[MOST_LEAVES], *grads[MOST_LEAVES], *out[FUZZ_RESULTS];
    int n_leaves, n;
    tern_status status, walked;
    char error[200];
} side;

/* ---- making a side ------------------------------------------------------------------------ */

/* x with its strides and what repeats in it. */
static tern_tensor *copy_on(tern_tensor *x, const char *device)
{
    tern_shape shape = tern_shape_of(x), stride = shape;
    int64_t extent = tern_numel(x) > 0;
    for (int d = 0; d < shape.ndim; d++) {
        stride.dims[d] = tern_stride(x, d);
        extent += tern_numel(x) ? (shape.dims[d] - 1) * stride.dims[d] : 0;
    }
    tern_tensor *y = NULL;
    TERN_NO_GRAD {
        y = tern_detach(x);
        if (tern_numel(x) > 0)
            y = tern_as_strided(y, TERN_SHAPE(extent), TERN_SHAPE(1), 0);
        y = tern_clone(tern_to(y, device));
        if (tern_numel(x) > 0)
            y = tern_as_strided(y, shape, stride, 0);
        else
            y = tern_detach(y);
    }
    return y ? tern_detach(y) : NULL;
}

static tern_tensor *input_on(side *s, tern_tensor *x)
{
    tern_tensor *y = copy_on(x, s->device);
    if (y && tern_requires_grad(x) && s->n_leaves < MOST_LEAVES)
        s->leaves[s->n_leaves++] = tern_requires_grad_(y, true);
    return y;
}

static bool begin_side(side *s, const char *device, const tern_value *values, int n)
{
    memset(s, 0, sizeof *s);
    s->device = device;
    memcpy(s->values, values, sizeof *values * (size_t)n);
    for (int i = 0; i < n; i++)
        if (values[i].kind == TERN_VALUE_TENSOR) {
            s->values[i].as.tensor = input_on(s, values[i].as.tensor);
        } else if (values[i].kind == TERN_VALUE_TENSORS) {
            for (int k = 0; k < values[i].count; k++)
                s->lists[i][k] = input_on(s, values[i].as.tensors[k]);
            s->values[i].as.tensors = s->lists[i];
        }
    return tern_last_status() == TERN_OK;
}

/* Gradients of what came out: the results themselves stand in for those behind them. */
static void run_backward(side *s)
{
    tern_tensor *outputs[FUZZ_RESULTS], *gradients[FUZZ_RESULTS];
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (tern_requires_grad(s->out[i])) {
            outputs[n] = s->out[i];
            gradients[n++] = tern_detach(s->out[i]);
        }
    if (n > 0 && s->n_leaves > 0)
        s->walked = tern_autograd_grad(
            outputs, n, s->leaves, s->n_leaves, s->grads,
            &(tern_autograd_grad_options){.gradients = gradients, .allow_unused = true});
    if (s->walked == TERN_OK)
        s->walked = tern_synchronize(s->device);
}

static void run_side(side *s, const fuzz_step *step, const tern_named_op *op)
{
    tern_rng_state start = {.seed = 7};
    tern_set_rng_state(s->device, &start);
    s->n = tern_named_op_call(op, s->values, step->n, s->out, FUZZ_RESULTS);
    s->status = s->n < 0 ? tern_last_status() : tern_synchronize(s->device);
    if (s->status == TERN_OK)
        run_backward(s);
    snprintf(s->error, sizeof s->error, "%s", tern_last_error());
    tern_clear_error();
}

/* ---- comparing ---------------------------------------------------------------------------- */

static double *read(tern_tensor *x)
{
    size_t bytes = (size_t)tern_numel(x) * sizeof(double);
    double *data = malloc(bytes ? bytes : 1);
    TERN_NO_GRAD
        TERN_SCOPE {
            x = tern_to_dtype(tern_to(tern_detach(x), "cpu"), TERN_F64);
            if (tern_copy_to_host(x, data, bytes) != TERN_OK) {
                free(data);
                data = NULL;
            }
        }
    return data;
}

/* Half precision rounds to 2^-8 or 2^-11; sums in another order differ by more than that. */
static double tolerance_of(tern_dtype dtype)
{
    return dtype == TERN_F64 ? 1e-7 : dtype == TERN_F16 ? 2e-2 : dtype == TERN_BF16 ? 1e-1 : 1e-3;
}

static bool is_moderate(tern_tensor *x)
{
    bool moderate = tern_numel(x) <= MOST_COMPARED;
    double *data = moderate ? read(x) : NULL;
    for (int64_t i = 0; data && moderate && i < tern_numel(x); i++)
        moderate = fabs(data[i]) <= MOST; /* nor NaN */
    free(data);
    return moderate && data;
}

static bool are_moderate(const side *s, int n)
{
    for (int i = 0; i < n; i++) {
        if (s->values[i].kind == TERN_VALUE_TENSOR && !is_moderate(s->values[i].as.tensor))
            return false;
        for (int k = 0; s->values[i].kind == TERN_VALUE_TENSORS && k < s->values[i].count; k++)
            if (!is_moderate(s->lists[i][k]))
                return false;
    }
    return true;
}

/* a is the cpu's. Where it is not finite, the other may be of any kind. */
static void compare(tern_tensor *a, tern_tensor *b, tern_dtype dtype, const char *op,
                    const char *what)
{
    if (!a != !b)
        fuzz_fault("a device has no such tensor", "%s: %s", op, what);
    if (!a || tern_numel(a) > MOST_COMPARED)
        return;
    if (!tern_same_shape(a, b) || tern_dtype_of(a) != tern_dtype_of(b))
        fuzz_fault("a device has another shape or type", "%s: %s", op, what);
    if (tern_dtype_size(tern_dtype_of(a)) < tern_dtype_size(dtype))
        dtype = tern_dtype_of(a);
    double *x = read(a), *y = read(b), most = 1;
    for (int64_t i = 0; x && i < tern_numel(a); i++)
        most = isfinite(x[i]) ? fmax(most, fabs(x[i])) : most;
    for (int64_t i = 0; x && y && i < tern_numel(a); i++)
        if (isfinite(x[i]) && !(fabs(x[i] - y[i]) <= tolerance_of(dtype) * most))
            fuzz_fault("a device has other numbers", "%s: %s: %.9g and %.9g at %lld", op, what,
                       x[i], y[i], (long long)i);
    if (!x || !y)
        fuzz_fault("a device has no numbers", "%s: %s", op, tern_last_error());
    free(x);
    free(y);
}

/* Whose results are a free choice, memory that is not set, or the device's name. */
static bool is_free(const char *name)
{
    static const char names[] = " empty empty_like new_empty empty_strided item is_pinned ";
    char word[64];
    snprintf(word, sizeof word, " %.60s ", name);
    return strstr(names, word) != NULL;
}

void fuzz_compare_devices(const fuzz_step *step, const tern_named_op *op, const tern_value *values)
{
    static side cpu, other;
    const char *name = tern_named_op_name(op);
    bool tensors = false;
    for (int i = 0; i < step->n; i++) {
        if (values[i].kind == TERN_VALUE_TEXT && strcmp(values[i].name, "device") == 0)
            return;
        tensors = tensors || values[i].kind == TERN_VALUE_TENSOR ||
                  (values[i].kind == TERN_VALUE_TENSORS && values[i].count > 0);
    }
    if (is_free(name) || !tensors)
        return;
    TERN_SCOPE {
        bool made = begin_side(&cpu, "cpu", values, step->n) &&
                    begin_side(&other, fuzz_other_device, values, step->n);
        if (made && are_moderate(&cpu, step->n)) {
            tern_dtype dtype = TERN_F32;
            for (int i = 0; i < step->n; i++)
                if (values[i].kind == TERN_VALUE_TENSOR &&
                    tern_dtype_size(tern_dtype_of(values[i].as.tensor)) < tern_dtype_size(dtype) &&
                    tern_dtype_is_floating_point(tern_dtype_of(values[i].as.tensor)))
                    dtype = tern_dtype_of(values[i].as.tensor);
            run_side(&cpu, step, op);
            run_side(&other, step, op);
            if (other.status != TERN_ERR_UNSUPPORTED && cpu.status != other.status)
                fuzz_fault("a device has another status", "%s: '%s' and '%s'", name, cpu.error,
                           other.error);
            for (int i = 0; cpu.status == TERN_OK && other.status == TERN_OK && i < cpu.n; i++)
                compare(cpu.out[i], other.out[i], dtype, name, "result");
            for (int i = 0; cpu.walked == TERN_OK && other.walked == TERN_OK && i < cpu.n_leaves;
                 i++)
                compare(cpu.grads[i], other.grads[i], dtype, name, "gradient");
        }
        tern_clear_error();
    }
}
