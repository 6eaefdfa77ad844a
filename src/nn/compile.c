/* compile.c -- tern_compile_ahead: runs a model once without launches, and compiles the kernels
 * that it would launch. */
#include "base/memory.h"
#include "base/option.h"
#include "nn/module.h"
#include <string.h>

/* Sets *device to the device of the first tensor visited. */
static tern_status note_device(const char *path, tern_tensor *x, void *user)
{
    const char **device = user;
    (void)path;
    *device = *device ? *device : tern_device(x);
    return TERN_OK;
}

static tern_status back(tern_module *m, tern_tensor *out)
{
    int64_t n = tern_nn_parameters(m, NULL, 0), wanted = 0;
    tern_tensor **list = n > 0 ? tern_alloc(sizeof *list * 2 * (size_t)n) : NULL;
    if (n <= 0 || !list)
        return n == 0 ? TERN_OK : tern_last_status();
    tern_nn_parameters(m, list, n);
    for (int64_t i = 0; i < n; i++)
        if (tern_requires_grad(list[i]))
            list[wanted++] = list[i];
    tern_tensor *ones = tern_ones_like(out);
    tern_status status = ones ? TERN_OK : tern_last_status();
    if (status == TERN_OK && wanted > 0)
        status = tern_autograd_grad(
            &out, 1, list, (int)wanted, list + n,
            &(tern_autograd_grad_options){.gradients = &ones, .allow_unused = true});
    tern_free(list);
    return status;
}

static tern_status call(tern_module *m, const tern_shape *shapes, int n, const char *device,
                        const tern_compile_ahead_options *o)
{
    tern_tensor *in[n > 0 ? n : 1], *out = NULL;
    for (int i = 0; i < n; i++) {
        tern_dtype dtype = o->dtypes ? o->dtypes[i] : TERN_DTYPE_DEFAULT;
        if (!(in[i] = tern_zeros(shapes[i], dtype, device)))
            return tern_last_status();
    }
    TERN_TRY(tern_nn_call(m, in, n, &out, 1));
    return o->no_backward || !tern_requires_grad(out) ? TERN_OK : back(m, out);
}

tern_status tern_compile_ahead(tern_module *m, const tern_shape *shapes, int n,
                               const tern_compile_ahead_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_compile_ahead_options o = tern_read_compile_ahead(options);
    const char *device = NULL;
    TERN_MODULE_GIVEN(m, __func__);
    if (n < 0 || (n > 0 && !shapes))
        return n < 0 ? tern_fail(TERN_ERR_ARGUMENT, "tern_compile_ahead: n is %d", n)
                     : tern_fail_argument_null(__func__, "shapes");
    TERN_TRY(tern_nn_each_parameter(m, note_device, &device));
    TERN_TRY(tern_nn_each_buffer(m, note_device, &device));
    device = device ? device : tern_default_device();
    if (strcmp(device, "cpu") == 0)
        return TERN_OK;
    TERN_TRY(tern_compile_begin(device));
    tern_status status = TERN_OK, ended;
    TERN_SCOPE
        status = call(m, shapes, n, device, &o);
    ended = tern_compile_end();
    return status == TERN_OK ? ended : status;
}
