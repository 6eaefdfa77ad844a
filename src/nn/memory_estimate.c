/* memory_estimate.c -- estimates the peak of device memory of a step without running it. */
#include "base/callback.h"
#include "base/memory.h"
#include "nn/module.h"
#include "tensor/storage.h"
#include <tern/graph.h>
#include <tern/step.h>

/* A parameter or buffer of the module, and its gradient and version before the step. */
typedef struct noted {
    tern_tensor *x, *grad;
    int64_t version;
} noted;

typedef struct state {
    noted *of; /* parameters, then buffers */
    int64_t n, capacity;
} state;

static tern_status note_one(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    state *s = user;
    if (s->n == s->capacity) {
        const int64_t capacity = 2 * s->capacity + 16;
        noted *of = tern_grow(s->of, sizeof *of * (size_t)capacity);
        if (!of)
            return TERN_ERR_MEMORY;
        s->of = of;
        s->capacity = capacity;
    }
    tern_tensor *grad = tern_grad(x);
    s->of[s->n++] = (noted){tern_keep(x), grad ? tern_keep(grad) : NULL, tern_version(x)};
    return TERN_OK;
}

static tern_status note(tern_module *m, state *s)
{
    TERN_TRY(tern_nn_each_parameter(m, note_one, s));
    if (s->n == 0)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_memory_estimate: the module has no parameters");
    return tern_nn_each_buffer(m, note_one, s);
}

/* Restores the tensors' gradients and versions, and frees s. Returns the bytes of earlier gradients
 * that the step freed first of all, and that s kept alive. */
static uint64_t put_back(state *s)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const noted *t = &s->of[i];
        if (tern_grad(t->x) != t->grad) {
            if (t->grad)
                bytes += (uint64_t)tern_numel(t->grad) * tern_dtype_size(tern_dtype_of(t->grad));
            tern_set_grad(t->x, t->grad);
        }
        tern_storage_set_version(t->x, t->version);
        tern_release(t->grad);
        tern_release(t->x);
    }
    tern_free(s->of);
    *s = (state){.n = 0};
    return bytes;
}

static tern_status run(tern_step_function function, void *user, tern_tensor *const *in, int n,
                       int k)
{
    tern_tensor *out[k + 1];
    tern_status status = TERN_OK;
    for (int i = 0; i < k; i++)
        out[i] = NULL;
    TERN_SCOPE {
        const tern_callback before = tern_callback_begin();
        status = function(user, in, n, out, k);
        if (status == TERN_OK)
            status = tern_failed_since(before.failures);
        status = TERN_CALLBACK_END(&before, status, "tern_memory_estimate: the function failed");
    }
    return status;
}

uint64_t tern_memory_estimate(tern_step_function function, void *user, tern_tensor *const *in,
                              int n, int k, tern_module *module)
{
    TERN_NAMED_IN_ERRORS;
    state before = {.n = 0};
    uint64_t peak = 0;
    int64_t left = 0;
    if (!function || !module || (!in && n > 0)) {
        tern_fail_argument_null(__func__, !function ? "function" : !module ? "module" : "in");
        return 0;
    }
    if (n < 0 || k < 0 || n > 64 || k > 64) {
        tern_fail(TERN_ERR_ARGUMENT,
                  "tern_memory_estimate: n and k must be from 0 to 64, got %d and %d", n, k);
        return 0;
    }
    tern_status status = note(module, &before);
    /* the step runs twice, since an optimizer has its state in the second run */
    for (int turn = 0; turn < 2 && status == TERN_OK; turn++) {
        status = tern_storage_estimate_begin(tern_device(before.of[0].x));
        if (status != TERN_OK)
            break;
        status = run(function, user, in, n, k);
        const bool last = turn == 1 || status != TERN_OK;
        const uint64_t given_up = last ? put_back(&before) : 0;
        const tern_status ended = tern_storage_estimate_end(&peak, &left);
        status = status == TERN_OK ? ended : status;
        peak -= given_up;
    }
    put_back(&before); /* if a run failed before */
    if (status == TERN_OK && left > 0)
        status = tern_fail(TERN_ERR_STATE,
                           "tern_memory_estimate: the function kept %lld tensors beyond its end, "
                           "which have no memory",
                           (long long)left);
    return status == TERN_OK ? peak : 0;
}
