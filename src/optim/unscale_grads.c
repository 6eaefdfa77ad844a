/* unscale_grads.c -- an optimizer's gradients over the scale of mixed precision, looking for
 * infinities and NaN: one launch for each of its batches (PyTorch's GradScaler._unscale_grads_). */
#include "optim/optimizer.h"

static const tern_foreach_kernel kernel = TERN_FOREACH_KERNEL("foreach", "unscale");

/* Counts the gradients. Half precision ones are refused: divided by the scale they would underflow,
 * which the scale is there to prevent. */
static tern_status check(const tern_optimizer *o, int *n)
{
    for (int i = 0; i < o->n; i++) {
        const tern_tensor *grad = tern_grad(o->slots[i].x);
        *n += grad != NULL;
        if (grad && tern_dtype_of(grad) == TERN_F16)
            return tern_fail(TERN_ERR_DTYPE,
                             "tern_amp_unscale_: Attempting to unscale FP16 gradients.");
    }
    return TERN_OK;
}

/* grad /= scale for one batch; *found becomes 1 at an infinity or NaN. grads has room for two
 * columns: the gradients, dense, NULL where there is none, and the same with the parameter in the
 * place of NULL. */
static tern_status unscale_batch(const tern_optimizer *o, const tern_optim_batch *g,
                                 tern_tensor **grads, tern_tensor *scale, tern_tensor *found)
{
    tern_tensor **column = grads + g->count;
    for (int i = 0; i < g->count; i++) {
        tern_tensor *x = o->slots[g->slot[i]].x, *grad = tern_grad(x);
        grads[i] = grad ? tern_contiguous(grad) : NULL;
        if (grad && !grads[i])
            return tern_last_status();
        column[i] = grad ? grads[i] : x;
    }
    tern_foreach_call call = {.kernel = &kernel,
                              .column = {column, grads},
                              .shared = {scale},
                              .found = found,
                              .writes = true};
    TERN_TRY(tern_foreach_launch(g->table, &call));
    for (int i = 0; i < g->count; i++) {
        tern_tensor *grad = tern_grad(o->slots[g->slot[i]].x);
        if (grad && grads[i] != grad && !tern_copy_(grad, grads[i]))
            return tern_last_status();
    }
    return TERN_OK;
}

/* A batch on another device than the scale's has a copy of the scale and a `found` of its own
 * there, joined to the first by a maximum. */
static tern_status unscale(const tern_optimizer *o, const tern_optim_batch *g, tern_tensor **grads,
                           tern_tensor *scale, tern_tensor *found)
{
    const char *device = tern_device(o->slots[g->slot[0]].x);
    if (device == tern_device(scale))
        return unscale_batch(o, g, grads, scale, found);
    tern_tensor *there = tern_zeros(TERN_SHAPE_SCALAR, TERN_F32, device);
    scale = tern_to(scale, device);
    if (!there || !scale)
        return tern_last_status();
    TERN_TRY(unscale_batch(o, g, grads, scale, there));
    return tern_maximum_(found, tern_to(there, tern_device(found))) ? TERN_OK : tern_last_status();
}

tern_status tern_optim_unscale(tern_optimizer *o, tern_tensor *scale, tern_tensor *found, int *n)
{
    *n = 0;
    TERN_TRY(check(o, n));
    tern_tensor **grads = tern_alloc(sizeof *grads * 2 * (size_t)o->n);
    tern_status status = grads ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD {
                status = tern_optim_regroup(o);
                for (int i = 0; status == TERN_OK && i < o->n_batches; i++)
                    status = unscale(o, &o->batches[i], grads, scale, found);
            }
    tern_free(grads);
    return status;
}
