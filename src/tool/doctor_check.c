/* doctor_check.c -- checks one row: runs the same call on the cpu and on a device, forward and
 * backward, and compares the results. */
#include "tool/doctor.h"
#include "base/os.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEAVES = 16 };

const char *doctor_verdict_name(int verdict)
{
    static const char *const names[] = {
#define X(NAME, TEXT) TEXT,
        DOCTOR_VERDICTS(X)
#undef X
    };
    return (unsigned)verdict < DOCTOR_VERDICT_COUNT ? names[verdict] : "?";
}

/* A call on one of the two devices. */
typedef struct side {
    const char *device;
    tern_value value[TERN_MAX_PARAMETERS];
    tern_tensor *list[TERN_MAX_PARAMETERS][DOCTOR_LIST];
    tern_tensor *leaf[MOST_LEAVES], *grad[MOST_LEAVES], *out[DOCTOR_OUTS];
    int n_leaves, n;
    tern_status status, backward;
    char error[500];
} side;

/* ---- running ------------------------------------------------------------------------------- */

static tern_tensor *input_on(side *s, tern_tensor *x, bool leaf)
{
    tern_tensor *y = tern_clone(tern_to(x, s->device));
    if (y && leaf && s->n_leaves < MOST_LEAVES)
        s->leaf[s->n_leaves++] = tern_requires_grad_(y, true);
    return y;
}

static void begin(side *s, const char *device, const doctor_call *call)
{
    memset(s, 0, sizeof *s);
    s->device = device;
    memcpy(s->value, call->value, sizeof s->value);
    for (int i = 0; i < call->n; i++) {
        tern_value *v = &s->value[i];
        if (v->kind == TERN_VALUE_TENSOR) {
            v->as.tensor = input_on(s, v->as.tensor, call->leaf[i]);
        } else if (v->kind == TERN_VALUE_TENSORS) {
            for (int k = 0; k < v->count; k++)
                s->list[i][k] = input_on(s, v->as.tensors[k], call->leaf[i]);
            v->as.tensors = s->list[i];
        } else if (call->device[i]) {
            v->as.text = device;
        }
    }
}

/* Computes the gradients of the leaves; the gradients of the outputs are the outputs themselves. */
static void backward_pass(side *s)
{
    tern_tensor *outputs[DOCTOR_OUTS], *gradients[DOCTOR_OUTS];
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (tern_requires_grad(s->out[i])) {
            outputs[n] = s->out[i];
            gradients[n++] = tern_detach(s->out[i]);
        }
    if (n > 0 && s->n_leaves > 0)
        s->backward = tern_autograd_grad(
            outputs, n, s->leaf, s->n_leaves, s->grad,
            &(tern_autograd_grad_options){.gradients = gradients, .allow_unused = true});
    if (s->backward == TERN_OK)
        s->backward = tern_synchronize(s->device);
}

static void run_side(side *s, const doctor_call *call)
{
    tern_rng_state start = {.seed = 7};
    tern_set_rng_state(s->device, &start);
    s->n = tern_named_op_call(call->op, s->value, call->n, s->out, DOCTOR_OUTS);
    s->status = s->n < 0 ? tern_last_status() : tern_synchronize(s->device);
    if (s->status == TERN_OK)
        backward_pass(s);
    snprintf(s->error, sizeof s->error, "%s", tern_last_error());
    tern_clear_error();
}

/* ---- comparing ----------------------------------------------------------------------------- */

static double *elements_of(tern_tensor *x)
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

/* Tolerance relative to the largest element: half precision rounds to 2^-8 or 2^-11, and sums in
 * another order differ by more. */
static double tolerance_of(tern_dtype dtype)
{
    return dtype == TERN_F64    ? 1e-7
           : dtype == TERN_F16  ? 2e-2
           : dtype == TERN_BF16 ? 1e-1
           : dtype == TERN_F32  ? 1e-3
                                : 0;
}

/* Returns one unit in the last place of x, which is not 0. */
static double ulp_of(double x, tern_dtype dtype)
{
    int digits = dtype == TERN_F64 ? 53 : dtype == TERN_F16 ? 11 : dtype == TERN_BF16 ? 8 : 24;
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent - digits);
}

static bool is_wrong(doctor_report *r, const char *what, const char *format, double x, double y)
{
    r->verdict = DOCTOR_WRONG;
    snprintf(r->what, sizeof r->what, "%s", what);
    snprintf(r->text, sizeof r->text, format, x, y);
    return true;
}

/* Compares a, the cpu's tensor, with b; returns true if they differ. Where a is not finite, b may
 * have any value. Tolerance and ulp refer to the largest element (at least 1): an element near zero
 * is a difference of larger ones, so its own last place says nothing about its error. */
static bool differ(tern_tensor *a, tern_tensor *b, tern_dtype dtype, const char *what,
                   doctor_report *r)
{
    if (!a || !b)
        return !a != !b && is_wrong(r, what, b ? "is not there on the cpu" : "is not there", 0, 0);
    if (!tern_same_shape(a, b) || tern_dtype_of(a) != tern_dtype_of(b))
        return is_wrong(r, what, "has another shape or type", 0, 0);
    tern_dtype own = tern_dtype_of(a);
    if (tern_dtype_is_floating_point(own) && tern_dtype_size(own) >= tern_dtype_size(dtype))
        own = tern_dtype_is_floating_point(dtype) ? dtype : own;
    double *x = elements_of(a), *y = elements_of(b), most = 1;
    bool wrong = !x || !y;
    if (wrong)
        is_wrong(r, what, "cannot be read", 0, 0);
    for (int64_t i = 0; !wrong && i < tern_numel(a); i++)
        most = isfinite(x[i]) ? fmax(most, fabs(x[i])) : most;
    for (int64_t i = 0; !wrong && i < tern_numel(a); i++) {
        double off = isfinite(x[i]) ? fabs(x[i] - y[i]) : 0;
        wrong = !(off <= tolerance_of(own) * most);
        if (wrong || off / ulp_of(most, own) > r->ulp) {
            r->ulp = isfinite(off) ? off / ulp_of(most, own) : DBL_MAX;
            r->at = i;
            snprintf(r->what, sizeof r->what, "%s", what);
        }
        if (wrong)
            is_wrong(r, what, "%.9g where the cpu has %.9g", isnan(y[i]) ? fabs(y[i]) : y[i], x[i]);
    }
    free(x);
    free(y);
    tern_clear_error();
    return wrong;
}

static void compare(side *cpu, side *other, tern_dtype dtype, doctor_report *r)
{
    char what[32];
    bool wrong = false;
    for (int i = 0; !wrong && i < cpu->n && i < other->n; i++) {
        snprintf(what, sizeof what, "result %d", i);
        wrong = differ(cpu->out[i], other->out[i], dtype, what, r);
    }
    bool both = cpu->backward == TERN_OK && other->backward == TERN_OK;
    for (int i = 0; !wrong && both && i < cpu->n_leaves; i++) {
        snprintf(what, sizeof what, "gradient %d", i);
        wrong = differ(cpu->grad[i], other->grad[i], dtype, what, r);
    }
}

/* ---- a row --------------------------------------------------------------------------------- */

/* Operations with arbitrary results (uninitialized memory) or results that depend on the device. */
static bool is_free(const char *name)
{
    static const char names[] = " empty empty_like new_empty empty_strided item is_pinned ";
    char word[64];
    snprintf(word, sizeof word, " %.60s ", name);
    return strstr(names, word) != NULL;
}

static void write_shapes(const doctor_call *call, char *text, size_t bytes)
{
    char shape[128];
    *text = '\0';
    for (int i = 0; i < call->n; i++)
        for (int k = 0; k < (call->value[i].kind == TERN_VALUE_TENSORS  ? call->value[i].count
                             : call->value[i].kind == TERN_VALUE_TENSOR ? 1
                                                                        : 0);
             k++) {
            tern_tensor *x = call->value[i].kind == TERN_VALUE_TENSOR ? call->value[i].as.tensor
                                                                      : call->list[i][k];
            size_t used = strlen(text);
            snprintf(text + used, bytes - used, "%s%s", used ? " " : "",
                     tool_shape(tern_shape_of(x), shape));
        }
}

static void fail(doctor_report *r, const side *s, tern_status status, const char *what)
{
    bool builds = strstr(s->error, "does not build") == NULL;
    r->verdict = status == TERN_ERR_UNSUPPORTED || status == TERN_ERR_DTYPE ? DOCTOR_LEFT_OUT
                 : builds                                                   ? DOCTOR_WRONG
                                                                            : DOCTOR_BUILD;
    snprintf(r->what, sizeof r->what, "%s", what);
    snprintf(r->text, sizeof r->text, "%s", s->error);
}

void doctor_check(const doctor_row *row, const char *device, doctor_report *r)
{
    static doctor_call call;
    static side cpu, other;
    double begun = tool_now();
    r->verdict = DOCTOR_LEFT_OUT;
    if (is_free(tern_named_op_name(tern_named_op_at(row->op))) || !doctor_find(row, &r->seed)) {
        snprintf(r->text, sizeof r->text, "no call of it is known");
        return;
    }
    TERN_SCOPE {
        TERN_NO_GRAD
            doctor_make(&call, row, r->seed);
        write_shapes(&call, r->shapes, sizeof r->shapes);
        begin(&cpu, "cpu", &call);
        begin(&other, device, &call);
        bool moved = tern_last_status() == TERN_OK;
        if (moved) {
            run_side(&cpu, &call);
            run_side(&other, &call);
        } else {
            snprintf(other.error, sizeof other.error, "%s", tern_last_error());
        }
        r->verdict = DOCTOR_OK;
        if (!moved)
            fail(r, &other, tern_last_status(), "copy");
        else if (other.status != cpu.status)
            fail(r, &other, other.status, "forward");
        else if (cpu.status == TERN_OK && other.backward != cpu.backward)
            fail(r, &other, other.backward, "backward");
        else if (cpu.status == TERN_OK)
            compare(&cpu, &other, row->dtype, r);
        tern_clear_error();
    }
    r->ms = (tool_now() - begun) * 1e3;
}

/* ---- kernels ------------------------------------------------------------------------------- */

static void add_name(char *names, size_t bytes, const char *name, const char *end)
{
    char word[96];
    size_t used = strlen(names), n = (size_t)(end - name);
    snprintf(word, sizeof word, " %.*s ", (int)(n < 90 ? n : 90), name);
    if (n == 0 || strstr(names, word) || used + n + 3 > bytes)
        return;
    snprintf(names + used, bytes - used, "%s%.*s ", used ? "" : " ", (int)n, name);
}

/* Adds the names of the kernel events of the trace. */
static void names_of(json_t *trace, char *names, size_t bytes)
{
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        const char *cat = json_string_value(json_object_get(event, "cat"));
        const char *name = json_string_value(json_object_get(event, "name"));
        if (!cat || !name || strcmp(cat, "kernel") != 0)
            continue;
        const char *quote = strchr(name, '\'');
        name = quote ? quote + 1 : strstr(name, "matrix product") ? "gemm" : name;
        if (!strchr(name, ' '))
            add_name(names, bytes, name, name + strcspn(name, "'"));
    }
}

void doctor_kernels(const doctor_row *row, const char *device, char *names, size_t bytes)
{
    static doctor_call call;
    static side s;
    char path[4096];
    uint64_t seed;
    int file = tern_os_folder(TERN_OS_TEMPORARY, "/tern-doctor-XXXXXX", path, sizeof path)
                   ? tern_os_mkstemp(path)
                   : -1;
    *names = '\0';
    if (file < 0 || !doctor_find(row, &seed))
        return;
    tern_os_close(file);
    TERN_SCOPE {
        TERN_NO_GRAD
            doctor_make(&call, row, seed);
        begin(&s, device, &call);
        TERN_PROFILE(path)
        run_side(&s, &call);
    }
    json_t *trace = json_load_file(path, 0, NULL);
    names_of(trace, names, bytes);
    json_decref(trace);
    tern_os_unlink(path);
}
