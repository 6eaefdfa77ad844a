/* unscale_grads.c -- divides an optimizer's gradients by the scale of mixed precision, and looks
 * for infinities and NaN, in one launch a batch (PyTorch's GradScaler._unscale_grads_). */
#include "optim/optimizer.h"
#include "tensor/ranks.h"

static const tern_foreach_kernel kernel = TERN_FOREACH_KERNEL("foreach", "unscale");

/* Counts the gradients. Float16 gradients are refused: divided by the scale they would underflow,
 * which the scale prevents. */
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

/* Columns of the launches: the gradients, contiguous, or NULL; the same with the parameter instead
 * of NULL, as a kernel argument must exist; and the gradients that contiguous copies are written
 * to. */
typedef struct columns {
    tern_tensor **grads, **filled, **targets;
} columns;

/* The launch of a batch. If the batch is on another device than the scale, it has its own copies of
 * scale and found there. */
typedef struct unscaling {
    tern_foreach_call call;
    tern_foreach_ready ready;
} unscaling;

static tern_status prepare(const tern_optimizer *o, const tern_optim_batch *b, columns c,
                           tern_tensor *scale, tern_tensor *found, unscaling *u)
{
    const char *device = tern_device(o->slots[b->slot[0]].x);
    if (device != tern_device(scale)) {
        found = tern_zeros(TERN_SHAPE_SCALAR, TERN_F32, device);
        scale = tern_to(scale, device);
        if (!found || !scale)
            return tern_last_status();
    }
    for (int i = 0; i < b->count; i++) {
        tern_tensor *x = o->slots[b->slot[i]].x, *grad = tern_grad(x);
        c.targets[i] = grad;
        c.grads[i] = grad ? tern_optim_in_format(grad, tern_optim_format(grad)) : NULL;
        if (grad && !c.grads[i])
            return tern_last_status();
        c.filled[i] = grad ? c.grads[i] : x;
    }
    u->call = (tern_foreach_call){.kernel = &kernel,
                                  .function = "tern_amp_unscale_",
                                  .column = {c.filled, c.grads},
                                  .target = c.targets,
                                  .shared = {scale},
                                  .found = found,
                                  .writes = true};
    return tern_foreach_prepare(b->table, &u->call, &u->ready);
}

/* Runs grad /= scale for one batch; *found becomes 1 if an element is infinite or NaN. If found is
 * on another device, a maximum combines it with this one. */
static tern_status run(const tern_optim_batch *b, const unscaling *u, tern_tensor *found)
{
    TERN_TRY(tern_foreach_run(b->table, &u->call, &u->ready));
    if (u->call.found == found)
        return TERN_OK;
    tern_tensor *there = tern_to(u->call.found, tern_device(found));
    return tern_maximum_(found, there) ? TERN_OK : tern_last_status();
}

/* Takes the maximum of found over the ranks that have parts of the parameters, so that all skip the
 * step together, and of *n, as other ranks may have gradients where this one has none. */
static tern_status ask_ranks(const tern_optimizer *o, tern_tensor *found, int *n)
{
    const tern_ranks *asked = NULL;
    for (int i = 0; i < o->n; i++) {
        tern_ranks *ranks = tern_sums_of(o->slots[i].x);
        const uint64_t failures = tern_failures();
        if (!ranks || ranks == asked)
            continue;
        asked = ranks;
        double most[2] = {tern_item(found), *n};
        TERN_TRY(tern_failed_since(failures));
        TERN_TRY(ranks->reduce(ranks, most, 2, true));
        if (!tern_fill_(found, tern_scalar_real(most[0])))
            return tern_failed_since(failures);
        *n = (int)most[1];
    }
    return TERN_OK;
}

/* Steps that can fail come first: the gradients of all batches are divided, or none. */
static tern_status unscale(tern_optimizer *o, columns c, unscaling *all, tern_tensor *scale,
                           tern_tensor *found, int *gradients)
{
    for (int i = 0; i < o->n_batches; i++) {
        const int n = o->batches[i].count;
        TERN_TRY(prepare(o, &o->batches[i], c, scale, found, &all[i]));
        c = (columns){c.grads + n, c.filled + n, c.targets + n};
    }
    for (int i = 0; i < o->n_batches; i++)
        TERN_TRY(run(&o->batches[i], &all[i], found));
    return ask_ranks(o, found, gradients);
}

tern_status tern_optim_unscale(tern_optimizer *o, tern_tensor *scale, tern_tensor *found, int *n)
{
    *n = 0;
    TERN_TRY(check(o, n));
    const size_t count = (size_t)o->n;
    tern_tensor **memory = tern_alloc(sizeof *memory * 3 * count);
    unscaling *all = tern_alloc(sizeof *all * count); /* at most one batch a parameter */
    tern_status status = memory && all ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD {
                status = tern_optim_regroup(o);
                if (status == TERN_OK)
                    status = unscale(o, (columns){memory, memory + count, memory + 2 * count}, all,
                                     scale, found, n);
            }
    tern_free(memory);
    tern_free(all);
    return status;
}
