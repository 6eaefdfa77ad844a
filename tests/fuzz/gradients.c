/* gradients.c -- rows of gradients.def: hooks, functions and checkpoints that do as a word says. */
#include "fuzz.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 }; /* tensors into a function, or out of it */

static int gradients_of(const names_argument *a, tern_tensor **out, int capacity)
{
    tern_tensor *grads[FUZZ_LIST] = {NULL};
    int n = a[1].count, count = 0;
    tern_autograd_grad_options options = {.gradients = a[2].count ? a[2].tensors : NULL,
                                          .retain_graph = B(3),
                                          .create_graph = B(4),
                                          .allow_unused = B(5)};
    if (a[2].count && a[2].count < a[0].count)
        options.gradients = NULL;
    if (tern_autograd_grad(TENSORS(0), TENSORS(1), grads, &options) != TERN_OK)
        return -1;
    for (int i = 0; i < n; i++) {
        if (!grads[i] && !options.allow_unused)
            fuzz_fault("a gradient is missing", "autograd_grad: %d", i);
        if (grads[i] && count < capacity)
            out[count++] = grads[i];
    }
    return count;
}

static int gradient_of(tern_tensor *x, tern_tensor **out, int capacity)
{
    tern_tensor *grad = tern_grad(x);
    if (!grad || capacity < 1)
        return 0;
    if (!tern_same_shape(grad, x) || tern_dtype_of(grad) != tern_dtype_of(x))
        fuzz_fault("a gradient that does not fit its tensor", "%s",
                   tern_grad_fn(x) ? tern_grad_fn(x) : "leaf");
    out[0] = grad;
    return 1;
}

/* ---- what a word makes of a tensor -------------------------------------------------------- */

tern_tensor *fuzz_changed(const char *what, tern_tensor *x)
{
    static const char *const words[] = {"same",  "double", "dtype", "shape", "scalar", "empty",
                                        "error", "write",  "more",  "none",  "product"};
    int i = 0;
    while (i < 10 && strcmp(words[i], what) != 0)
        i++;
    switch (i) {
    case 1:
        return tern_mul_scalar(x, TERN_SCALAR(2));
    case 2:
        return tern_to_dtype(x, tern_dtype_of(x) == TERN_F64 ? TERN_F16 : TERN_F64);
    case 3:
        return tern_ones(TERN_SHAPE(3), tern_dtype_of(x), NULL);
    case 4:
        return tern_sum(x);
    case 5:
        return tern_zeros(TERN_SHAPE(0), tern_dtype_of(x), NULL);
    case 6:
        return tern_fail_null(TERN_ERR_ARGUMENT, "fuzz: an error that was asked for");
    case 7:
        fuzz_writes_inside = true;
        return tern_mul_scalar_(x, TERN_SCALAR(2));
    case 8:
        return tern_to_dtype(x, TERN_I64);
    case 9:
        return NULL;
    case 10:
        return tern_mul(x, x);
    default:
        return x;
    }
}

static tern_tensor *call_hook(tern_tensor *grad, void *user)
{
    return fuzz_changed(user, grad);
}

const char *fuzz_lasting(const char *word)
{
    static char words[64][16];
    static int count;
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return words[i];
    if (count == 64)
        return words[0];
    snprintf(words[count], sizeof words[count], "%.15s", word);
    return words[count++];
}

static int hook(tern_tensor *x, const char *what)
{
    return tern_register_hook(x, call_hook, (void *)(uintptr_t)fuzz_lasting(what)) > 0 ? 0 : -1;
}

/* ---- functions with gradients of their own ------------------------------------------------ */

typedef struct function {
    const char *forward, *backward;
} function;

static tern_status change_all(const char *what, tern_tensor *const *in, int n, tern_tensor **out,
                              int k)
{
    bool none = strcmp(what, "none") == 0;
    for (int i = 0; i < k && !none; i++)
        if (!(out[i] = fuzz_changed(what, in[i % n])))
            return tern_last_status();
    return TERN_OK;
}

static tern_status forward(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    const function *data = tern_function_data(f);
    for (int i = 0; i < n; i++)
        if (tern_function_save(f, in[i]) != TERN_OK)
            return tern_last_status();
    return change_all(data->forward, in, n, out, k);
}

static tern_status backward(tern_function *f, tern_tensor *const *grad_out, int k,
                            tern_tensor **grad_in, int n)
{
    const function *data = tern_function_data(f);
    for (int i = 0; i < n; i++) {
        tern_tensor *dy = grad_out[i % k], *x = tern_function_saved(f, i);
        if (!dy || !x)
            continue;
        grad_in[i] = fuzz_changed(data->backward, strcmp(data->backward, "product") ? dy : x);
        if (!grad_in[i] && tern_last_status() != TERN_OK)
            return tern_last_status();
    }
    return TERN_OK;
}

static int own_function(const names_argument *a, tern_tensor **out, int capacity)
{
    static const tern_function_type type = {
        .name = "Fuzz", .forward = forward, .backward = backward, .free_data = free};
    int64_t k = N(3);
    int n = a[0].count;
    if (n < 1 || n > MOST || k < 1 || k > MOST || k > capacity)
        return DONE(tern_fail(TERN_ERR_ARGUMENT, "fuzz: too many tensors"));
    function *data = malloc(sizeof *data);
    if (!data)
        return DONE(tern_fail(TERN_ERR_MEMORY, "fuzz: no memory"));
    *data = (function){fuzz_lasting(TEXT(1)), fuzz_lasting(TEXT(2))};
    tern_tensor *results[MOST] = {NULL};
    tern_status status = tern_function_apply(&type, data, TENSORS(0), results, (int)k);
    return names_several(status, results, (int)k, out, capacity);
}

/* ---- checkpoints -------------------------------------------------------------------------- */

static tern_status run_again(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    tern_tensor *made[MOST];
    for (int i = 0; i < n; i++)
        if (!(made[i] = tern_dropout(tern_mul(in[i], in[i]), 0.5, true)))
            return tern_last_status();
    return change_all(data, made, n, out, k);
}

static int checkpoint(const names_argument *a, tern_tensor **out, int capacity)
{
    tern_checkpoint_options options = {.no_preserve_rng_state = B(3)};
    tern_tensor *results[MOST] = {NULL};
    int64_t k = N(2);
    if (a[0].count < 1 || a[0].count > MOST || k < 1 || k > MOST || k > capacity)
        return DONE(tern_fail(TERN_ERR_ARGUMENT, "fuzz: too many tensors"));
    tern_status status = tern_checkpoint(run_again, (void *)(uintptr_t)fuzz_lasting(TEXT(1)),
                                         TENSORS(0), results, (int)k, &options);
    return names_several(status, results, (int)k, out, capacity);
}

#define TABLE  fuzz_gradient_rows
#define FAMILY "gradients.def"
#include "names/expand.h"
