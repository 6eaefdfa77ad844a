/* memory_estimate.c -- the peak of device memory of a step that does not run. */
#include "base/callback.h"
#include "base/memory.h"
#include "nn/module.h"
#include "tensor/storage.h"
#include <tern/graph.h>
#include <tern/step.h>

/* The module's parameters, and the gradients that they have before. */
typedef struct parameters {
    tern_tensor **x, **grad;
    int64_t n;
} parameters;

static tern_status note(tern_module *m, parameters *p)
{
    const int64_t n = tern_nn_parameters(m, NULL, 0);
    if (n <= 0)
        return n < 0 ? tern_last_status()
                     : tern_fail(TERN_ERR_ARGUMENT,
                                 "tern_memory_estimate: the module has no parameters");
    p->x = tern_alloc(sizeof *p->x * 2 * (size_t)n);
    if (!p->x)
        return TERN_ERR_MEMORY;
    p->n = n;
    p->grad = p->x + n;
    tern_nn_parameters(m, p->x, n);
    for (int64_t i = 0; i < p->n; i++) {
        tern_keep(p->x[i]);
        p->grad[i] = tern_grad(p->x[i]) ? tern_keep(tern_grad(p->x[i])) : NULL;
    }
    return TERN_OK;
}

/* The bytes of earlier gradients that the step gave up, as it does first of all: p held them. */
static uint64_t put_back(parameters *p)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < p->n; i++) {
        if (tern_grad(p->x[i]) != p->grad[i]) {
            if (p->grad[i])
                bytes +=
                    (uint64_t)tern_numel(p->grad[i]) * tern_dtype_size(tern_dtype_of(p->grad[i]));
            tern_set_grad(p->x[i], p->grad[i]);
        }
        tern_release(p->grad[i]);
        tern_release(p->x[i]);
    }
    tern_free(p->x);
    *p = (parameters){.n = 0};
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
    parameters p = {.n = 0};
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
    tern_status status = note(module, &p);
    /* twice: an optimizer has its state then */
    for (int turn = 0; turn < 2 && status == TERN_OK; turn++) {
        status = tern_storage_estimate_begin(tern_device(p.x[0]));
        if (status != TERN_OK)
            break;
        status = run(function, user, in, n, k);
        const bool last = turn == 1 || status != TERN_OK;
        const uint64_t given_up = last ? put_back(&p) : 0;
        const tern_status ended = tern_storage_estimate_end(&peak, &left);
        status = status == TERN_OK ? ended : status;
        peak -= given_up;
    }
    put_back(&p); /* where that was not done */
    if (status == TERN_OK && left > 0)
        status = tern_fail(TERN_ERR_STATE,
                           "tern_memory_estimate: the function kept %lld tensors beyond its end, "
                           "which have no memory",
                           (long long)left);
    return status == TERN_OK ? peak : 0;
}
