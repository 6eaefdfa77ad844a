/* muon.c -- Muon: the momentum of a matrix, orthogonalised by a Newton-Schulz iteration, which
 * brings all its singular values near one (Jordan et al. 2024,
 * https://kellerjordan.github.io/posts/muon; torch.optim.Muon).
 *
 * X = a X + (b A + c A^2) X with A = X X^T, five times: a polynomial of odd powers of X, which acts
 * on the singular values alone. These are matrix products, one parameter after the other; the
 * update of all parameters is one launch then. */
#include "optim/optimizer.h"
#include <math.h>

/* State columns of the kernel. */
enum { MOMENTUM_BUFFER, NEW_BUFFER, DIRECTION };

/* Computes in float32, while PyTorch uses bfloat16. A tall matrix is transposed first, so that A is
 * the smaller of the two Gram matrices. Dividing by the Frobenius norm brings the singular values
 * below one, where the iteration converges. */
static tern_tensor *orthogonalize(tern_tensor *x, const tern_muon_values *v)
{
    bool tall = tern_size(x, 0) > tern_size(x, 1);
    x = tall ? tern_t(x) : x;
    tern_tensor *norm = tern_sqrt(tern_sum(tern_square(x)));
    x = tern_div(x, tern_clamp(norm, v->eps, INFINITY));
    for (int i = 0; i < (int)v->ns_steps; i++) {
        tern_tensor *gram = tern_matmul(x, tern_t(x));
        tern_tensor *other =
            tern_add(tern_mul_scalar(gram, tern_scalar_real(v->ns_b)),
                     tern_mul_scalar(tern_matmul(gram, gram), tern_scalar_real(v->ns_c)));
        x = tern_add(tern_mul_scalar(x, tern_scalar_real(v->ns_a)), tern_matmul(other, x));
    }
    return tern_contiguous(tall ? tern_t(x) : x);
}

/* Returns the factor of the learning rate for a matrix of this shape: 0.2 sqrt(max(rows, columns))
 * to match the RMS of AdamW's updates, or sqrt(max(1, rows / columns)). */
static double adjustment(const tern_tensor *x, const tern_muon_values *v)
{
    double rows = (double)tern_size(x, 0), columns = (double)tern_size(x, 1);
    if ((int)v->adjust_lr == TERN_MUON_MATCH_RMS_ADAMW)
        return 0.2 * sqrt(fmax(rows, columns));
    return sqrt(fmax(1, rows / columns));
}

/* buffer = momentum buffer + (1 - momentum) grad; Nesterov adds the gradient once more. The new
 * buffer and the direction are columns of the launch, which ignores them if the step is skipped. */
static tern_status prepare(const tern_optimizer *o, tern_optim_batch *b)
{
    const tern_muon_values *v = tern_optim_values(o, b);
    tern_optim_columns *c = &b->columns;
    tern_scalar momentum = tern_scalar_real(v->momentum), fresh = tern_scalar_real(1 - v->momentum);
    for (int i = 0; i < b->count; i++) {
        if (!c->grad[i] || tern_numel(c->grad[i]) == 0)
            continue;
        tern_tensor *grad = c->grad[i];
        tern_tensor *buffer = tern_add(tern_mul_scalar(c->state[MOMENTUM_BUFFER][i], momentum),
                                       tern_mul_scalar(grad, fresh));
        tern_tensor *d = v->no_nesterov ? buffer
                                        : tern_add(tern_mul_scalar(buffer, momentum),
                                                   tern_mul_scalar(grad, fresh));
        double factor = adjustment(grad, v);
        c->state[NEW_BUFFER][i] = buffer;
        c->state[DIRECTION][i] = tern_mul_scalar(orthogonalize(d, v), tern_scalar_real(factor));
        if (!buffer || !c->state[DIRECTION][i])
            return tern_last_status();
    }
    return TERN_OK;
}

static tern_status check_parameter(const tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    char text[128];
    if (shape.ndim == 2)
        return TERN_OK;
    return tern_fail(TERN_ERR_SHAPE,
                     "tern_optim_muon: Muon only supports 2D parameters whereas we found a "
                     "parameter with size: %s",
                     tern_format_list(text, sizeof text, shape.dims, shape.ndim));
}

const tern_optim_parts tern_muon_parts = {.prepare = prepare, .check_parameter = check_parameter};
