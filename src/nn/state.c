/* state.c -- moves and converts a module's tensors in place, and sets requires_grad.
 *
 * All copies are made before the first tensor changes: after an error the module is unchanged. */
#include "base/memory.h"
#include "nn/module.h"

/* A tensor, and the new data of it and of its gradient. */
typedef struct change {
    tern_tensor *x, *data, *grad;
} change;

typedef struct move {
    const char *device; /* NULL if only the dtype or the format changes */
    tern_dtype dtype;   /* TERN_DTYPE_DEFAULT if only the format changes */
    tern_memory_format format;
    change *changes;
    size_t count, capacity;
} move;

/* Returns x on the device, in the dtype (integers are unchanged), or in the format (only for
 * images). */
static tern_tensor *moved(const move *mv, tern_tensor *x)
{
    if (mv->device)
        return tern_to(x, mv->device);
    if (mv->dtype == TERN_DTYPE_DEFAULT)
        return mv->format == TERN_CONTIGUOUS_FORMAT || tern_dim(x) == 3 + (int)mv->format
                   ? tern_to_memory_format(x, mv->format)
                   : x;
    return tern_dtype_is_floating_point(tern_dtype_of(x)) ? tern_to_dtype(x, mv->dtype) : x;
}

/* Makes the copies of a tensor and its gradient, and adds them to the list. */
static tern_status plan(const char *path, tern_tensor *x, void *user)
{
    move *mv = user;
    tern_tensor *grad = tern_grad(x);
    (void)path;
    if (mv->count == mv->capacity) {
        size_t capacity = mv->capacity ? 2 * mv->capacity : 16;
        change *changes = tern_grow(mv->changes, sizeof *changes * capacity);
        if (!changes)
            return TERN_ERR_MEMORY;
        mv->changes = changes;
        mv->capacity = capacity;
    }
    change c = {.x = x, .data = moved(mv, x)};
    if (c.data == x)
        return TERN_OK;
    c.grad = grad ? moved(mv, grad) : NULL;
    if (!c.data || (grad && !c.grad))
        return tern_last_status();
    mv->changes[mv->count++] = c;
    return TERN_OK;
}

/* The tensors change their data and stay the same objects, so an optimizer can still update
 * them. */
static tern_module *run_move(tern_module *m, move *mv)
{
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            status = tern_nn_each_parameter(m, plan, mv);
            if (status == TERN_OK)
                status = tern_nn_each_buffer(m, plan, mv);
            for (size_t i = 0; status == TERN_OK && i < mv->count; i++) {
                change *c = &mv->changes[i];
                status = tern_set_data_(c->x, c->data) ? TERN_OK : tern_last_status();
                if (status == TERN_OK && c->grad)
                    status = tern_set_grad(c->x, c->grad);
            }
        }
    tern_free(mv->changes);
    return status == TERN_OK ? m : NULL;
}

tern_module *tern_nn_to(tern_module *m, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    TERN_MODULE_GIVEN(m, __func__);
    if (!m) {
        tern_fail_argument_null(__func__, "m");
        return NULL;
    }
    if (!device)
        device = tern_default_device();
    return device ? run_move(m, &(move){.device = device}) : NULL;
}

tern_module *tern_nn_to_dtype(tern_module *m, tern_dtype dtype)
{
    TERN_MODULE_GIVEN(m, "tern_nn_to_dtype");
    if (!m) {
        tern_fail_argument_null("tern_nn_to_dtype", "m");
        return NULL;
    }
    if (!tern_dtype_is_floating_point(dtype))
        return tern_fail_null(
            TERN_ERR_DTYPE,
            "tern_nn_to_dtype: nn.Module.to only accepts floating point or complex "
            "dtypes, but got desired dtype=%s",
            tern_dtype_name(dtype));
    return run_move(m, &(move){.dtype = dtype});
}

tern_module *tern_nn_to_memory_format(tern_module *m, tern_memory_format format)
{
    TERN_MODULE_GIVEN(m, "tern_nn_to_memory_format");
    if (!m) {
        tern_fail_argument_null("tern_nn_to_memory_format", "m");
        return NULL;
    }
    if (tern_check_enum("tern_nn_to_memory_format", "format", (int)format, TERN_CHANNELS_LAST_3D,
                        "tern_memory_format") != TERN_OK)
        return NULL;
    return run_move(m, &(move){.format = format});
}

static tern_status set_requires_grad(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    return tern_requires_grad_(x, *(const bool *)user) ? TERN_OK : tern_last_status();
}

tern_module *tern_nn_requires_grad_(tern_module *m, bool requires_grad)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_each_parameter(m, set_requires_grad, &requires_grad) == TERN_OK ? m : NULL;
}

static tern_status remove_grad(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    (void)user;
    return tern_set_grad(x, NULL);
}

tern_status tern_nn_zero_grad(tern_module *m)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_each_parameter(m, remove_grad, NULL);
}
