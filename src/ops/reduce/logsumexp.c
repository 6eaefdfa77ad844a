/* logsumexp.c -- log sum e^x over dims, computed as m + log sum e^(x - m), where m is the largest
 * x, which can't overflow. */
#include "ops/reduce/reduction.h"
#include "ops/copy/copy.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

typedef struct log_attributes {
    tern_shape dims, shape; /* shape of the result */
    uint32_t mask;
} log_attributes;

static tern_status log_infer(tern_call *call)
{
    const log_attributes *at = call->attributes;
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype, .shape = at->shape};
    return TERN_OK;
}

/* Returns log sum e^x. The maximum is subtracted before the sum, unless it is infinite. */
static tern_tensor *log_of(tern_tensor *x, const log_attributes *at)
{
    tern_shape shape = tern_shape_of(x);
    tern_tensor *most = tern_amax(x, at->dims, true);
    most = tern_masked_fill(most, tern_isinf(most), tern_scalar_int(0));
    tern_tensor *rest = tern_exp(tern_sub(x, most));
    rest = rest ? tern_log(tern_sum_masked(rest, at->mask, &at->shape)) : NULL;
    shape = tern_masked_shape(&shape, at->mask, at->shape.ndim == shape.ndim);
    return tern_add(rest, tern_view(most, shape));
}

static tern_status log_forward(tern_call *call)
{
    tern_tensor *x = call->in[0], *out = call->out[0];
    tern_status status = TERN_OK;
    if (out->numel == 0)
        return TERN_OK;
    if (x->numel == 0)
        return tern_fill_(out, tern_scalar_real(-INFINITY)) ? TERN_OK : tern_last_status();
    TERN_NO_GRAD {
        TERN_SCOPE {
            x = x->dtype == TERN_F64 ? x : tern_to_dtype(x, TERN_F32);
            tern_tensor *y = x ? log_of(x, call->attributes) : NULL;
            status = y ? tern_copy_elements(out, y) : tern_last_status();
        }
    }
    return status;
}

/* dx = dy e^(x - y). */
static tern_status log_backward(tern_gradient *g)
{
    const log_attributes *at = g->attributes;
    const tern_shape *shape = &g->in_shape[0];
    tern_tensor *share =
        tern_exp(tern_sub(g->in[0], tern_expand_masked(g->out[0], shape, at->mask)));
    g->din[0] = tern_mul(share, tern_expand_masked(g->dout[0], shape, at->mask));
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op logsumexp_op = {.name = "logsumexp",
                                     .names =
                                         TERN_NAMES(TERN_DIMS_FIELD(log_attributes, "dims", mask)),
                                     .cast = TERN_CAST_FLOAT32,
                                     .promotion = TERN_PROMOTE_FLOAT,
                                     .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),
                                     .infer = log_infer,
                                     .forward = log_forward,
                                     .backward = log_backward};

tern_tensor *tern_logsumexp(tern_tensor *x, tern_shape dims, bool keepdim)
{
    log_attributes at = {.dims = dims};
    if (tern_reduction_of(x, &dims, keepdim, &at.mask, &at.shape, "tern_logsumexp") != TERN_OK)
        return NULL;
    return tern_apply(&logsumexp_op, &x, 1, &at, sizeof at);
}
