/* build.c -- functions that architectures build their modules with. */
#include "models/model.h"
#include <stdlib.h>
#include <string.h>

/* ---- modules with data ------------------------------------------------------------------- */

typedef struct sized {
    size_t bytes;
    max_align_t data[];
} sized;

static sized *sized_of(const void *data, size_t bytes)
{
    sized *s = malloc(sizeof *s + bytes);
    if (!s)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_models: no memory for %zu bytes", bytes);
    s->bytes = bytes;
    memcpy(s->data, data, bytes);
    return s;
}

static void free_sized(void *data)
{
    free((char *)data - offsetof(sized, data));
}

static void *copy_sized(const void *data, tern_module *copy)
{
    (void)copy;
    const sized *s = (const sized *)((const char *)data - offsetof(sized, data));
    sized *made = sized_of(s->data, s->bytes);
    return made ? made->data : NULL;
}

tern_module *models_module(const char *name, tern_module_call call, const void *data, size_t bytes)
{
    sized *s = sized_of(data, bytes);
    tern_module *m = s ? tern_nn_module_with_call(name, call, s->data) : NULL;
    if (!m) {
        free(s);
        return NULL;
    }
    tern_nn_on_free(m, free_sized);
    tern_nn_on_copy(m, copy_sized);
    return m;
}

/* ---- paths ------------------------------------------------------------------------------- */

static tern_module *own_child(tern_module *m, const char *name, size_t n)
{
    for (int i = 0; i < tern_nn_children_count(m); i++) {
        const char *other = tern_nn_child_name_at(m, i);
        if (strlen(other) == n && strncmp(other, name, n) == 0)
            return tern_nn_child_at(m, i);
    }
    return NULL;
}

tern_module *models_put(tern_module *m, const char *path, tern_module *child)
{
    char name[128];
    if (!m || !child) {
        tern_nn_free(child);
        return NULL;
    }
    for (const char *dot; m && (dot = strchr(path, '.')); path = dot + 1) {
        size_t n = (size_t)(dot - path);
        tern_module *next = own_child(m, path, n);
        if (!next && n < sizeof name) {
            memcpy(name, path, n);
            name[n] = 0;
            next = tern_nn_add(m, name, tern_nn_module_dict());
        }
        m = next;
    }
    if (m)
        return tern_nn_add(m, path, child);
    tern_nn_free(child);
    return NULL;
}

static tern_status put(tern_module *m, const char *path, tern_module *child)
{
    return models_put(m, path, child) ? TERN_OK : tern_last_status();
}

tern_tensor *models_run(tern_module *m, const char *path, tern_tensor *x)
{
    tern_module *child = x ? tern_nn_child(m, path) : NULL;
    return child ? tern_nn_forward(child, x) : NULL;
}

tern_status models_tie(models_model *m, const char *path)
{
    tern_tensor *x = tern_nn_parameter_at(tern_nn_child(m->module, path), 0);
    tern_module *head = tern_nn_child(m->module, m->kind->head);
    m->tied = path;
    return x && tern_nn_set_parameter(head, "weight", x) ? TERN_OK : tern_last_status();
}

tern_module *models_base(models_model *m)
{
    char name[64];
    size_t n = m->kind->prefix ? strlen(m->kind->prefix) : 0;
    if (!m->kind->head || n < 2 || n > sizeof name)
        return m->module;
    memcpy(name, m->kind->prefix, n - 1);
    name[n - 1] = 0;
    tern_module *base = own_child(m->module, name, n - 1);
    return base ? base : tern_nn_add(m->module, name, tern_nn_module_dict());
}

_Thread_local bool models_hollow;

/* Replaces m's weight by one element expanded to the weight's shape, if models_hollow is set: the
 * tensor of a file replaces it afterwards. Frees m and returns NULL after an error. */
static tern_module *hollow(tern_module *m)
{
    tern_tensor *w = m && models_hollow ? tern_nn_parameter_at(m, 0) : NULL;
    if (!w)
        return m;
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *one = tern_zeros(TERN_SHAPE(1, 1), tern_dtype_of(w), tern_device(w));
            w = tern_expand(one, tern_shape_of(w));
            w = w && tern_nn_set_parameter(m, "weight", w) ? w : NULL;
        }
    if (w)
        return m;
    tern_nn_free(m);
    return NULL;
}

/* ---- layers ------------------------------------------------------------------------------ */

tern_status models_linear(tern_module *m, const char *path, int64_t in, int64_t out, bool bias)
{
    return put(m, path, hollow(tern_nn_linear(in, out, &(tern_linear_options){.no_bias = !bias})));
}

tern_status models_embedding(tern_module *m, const char *path, int64_t rows, int64_t width)
{
    return put(m, path, hollow(tern_nn_embedding(rows, width, NULL)));
}

tern_status models_layer_norm(tern_module *m, const char *path, int64_t width, double eps)
{
    return put(m, path,
               tern_nn_layer_norm(TERN_SHAPE(width), &(tern_layer_norm_options){.eps = eps}));
}

tern_status models_rms_norm(tern_module *m, const char *path, int64_t width, double eps)
{
    return put(m, path, tern_nn_rms_norm(TERN_SHAPE(width), &(tern_rms_norm_options){.eps = eps}));
}

static tern_status rms_norm_one(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                                int k)
{
    const double *eps = tern_nn_data(self);
    if (n != 1 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: RMSNorm takes one tensor and gives one");
    tern_tensor *w = tern_to_dtype(tern_nn_parameter(self, "weight"), TERN_F32);
    w = tern_add_scalar(w, tern_scalar_int(1));
    out[0] = w ? tern_rms_norm(in[0], tern_shape_of(w), w, *eps) : NULL;
    return out[0] ? TERN_OK : tern_last_status();
}

tern_status models_rms_norm_one(tern_module *m, const char *path, int64_t width, double eps)
{
    TERN_SCOPE_HERE;
    tern_module *norm = models_module("GemmaRMSNorm", rms_norm_one, &eps, sizeof eps);
    if (!norm || !tern_nn_add_parameter(norm, "weight",
                                        tern_zeros(TERN_SHAPE(width), TERN_DTYPE_DEFAULT, NULL))) {
        tern_nn_free(norm);
        return tern_last_status();
    }
    return put(m, path, norm);
}

static tern_status conv1d(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                          int k)
{
    if (n != 1 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: Conv1D takes one tensor and gives one");
    out[0] = tern_add(tern_matmul(in[0], tern_nn_parameter(self, "weight")),
                      tern_nn_parameter(self, "bias"));
    return out[0] ? TERN_OK : tern_last_status();
}

tern_status models_conv1d(tern_module *m, const char *path, int64_t in, int64_t out)
{
    TERN_SCOPE_HERE;
    int64_t sizes[] = {in, out};
    tern_module *conv = models_module("Conv1D", conv1d, sizes, sizeof sizes);
    tern_tensor *w =
        tern_nn_init_normal_(tern_empty(TERN_SHAPE(in, out), TERN_DTYPE_DEFAULT, NULL), 0, 0.02);
    if (!conv || !w || !tern_nn_add_parameter(conv, "weight", w) ||
        !tern_nn_add_parameter(conv, "bias",
                               tern_zeros(TERN_SHAPE(out), TERN_DTYPE_DEFAULT, NULL))) {
        tern_nn_free(conv);
        return tern_last_status();
    }
    tern_nn_set_extra(conv, "nf=%lld, nx=%lld", (long long)out, (long long)in);
    return put(m, path, hollow(conv));
}
