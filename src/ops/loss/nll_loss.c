/* nll_loss.c -- the negative log likelihood of classes. */
#include "ops/loss/loss.h"

static int class_dim(const tern_tensor *x)
{
    return x->ndim < 2 ? 0 : 1;
}

/* Checks the shapes of x and target: (C) and (), (N, C) and (N), (N, C, d1, ...) and (N, d1, ...),
 * with PyTorch's messages. */
static tern_status check(const tern_tensor *x, const tern_tensor *target, const tern_tensor *weight)
{
    TERN_TRY(tern_check_floating("tern_nll_loss", x->dtype));
    if (x->ndim == 0)
        return tern_fail(TERN_ERR_SHAPE, "tern_nll_loss: Expected 1 or more dimensions (got 0)");
    if (x->ndim > 1 && (target->ndim == 0 || x->shape[0] != target->shape[0]))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_nll_loss: Expected input batch_size (%lld) to match target "
                         "batch_size (%lld).",
                         (long long)x->shape[0], (long long)(target->ndim ? target->shape[0] : 1));
    tern_shape expected = tern_shape_of(x), got = tern_shape_of(target);
    for (int d = class_dim(x); d + 1 < expected.ndim; d++)
        expected.dims[d] = expected.dims[d + 1];
    expected.ndim--;
    bool one = x->ndim == 1 && target->ndim == 1 && target->numel == 1;
    if (!one && !tern_shape_equal(&expected, &got))
        return tern_fail(TERN_ERR_SHAPE, "tern_nll_loss: Expected target size %s, got %s",
                         TERN_SHAPE_TEXT(&expected), TERN_SHAPE_TEXT(&got));
    if (target->dtype != TERN_I64)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_nll_loss: expected scalar type int64 but found %s (target)",
                         tern_dtype_name(target->dtype));
    int64_t classes = x->shape[class_dim(x)];
    if (weight && (weight->ndim != 1 || weight->shape[0] != classes))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_nll_loss: weight tensor should be defined either for all %lld "
                         "classes or no classes but got weight tensor of shape: %s",
                         (long long)classes, TERN_TENSOR_TEXT(weight));
    if (weight && weight->dtype != x->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_nll_loss: expected scalar type %s but found %s (weight)",
                         tern_dtype_name(x->dtype), tern_dtype_name(weight->dtype));
    return TERN_OK;
}

/* Returns -w[t] x[t] for log probabilities x; the mean divides by the sum of w[t]. Rows with the
 * ignored target gather class 0, and are then masked with weight 0. */
tern_tensor *tern_nll_loss(tern_tensor *input, tern_tensor *target,
                           const tern_nll_loss_options *options)
{
    const tern_nll_loss_options read = tern_read_nll_loss(options), *o = &read;
    tern_tensor *given = o->weight; /* weight of each class */
    TERN_COMPOSED("nll_loss", FLOAT32, &input, &given);
    if (tern_loss_check(input, target, o->reduction, "tern_nll_loss") != TERN_OK ||
        check(input, target, given) != TERN_OK)
        return NULL;
    int64_t ignored = o->ignore_index.value;
    int dim = class_dim(input);
    tern_tensor *x = tern_loss_wide(input);
    if (input->ndim == 1)
        target = tern_reshape(target, TERN_SHAPE_SCALAR);
    tern_tensor *skip = tern_eq_scalar(target, tern_scalar_int(ignored));
    target = tern_masked_fill(target, skip, tern_scalar_int(0));
    tern_tensor *loss = tern_gather(x, dim, tern_unsqueeze(target, dim));
    loss = tern_neg(tern_squeeze_dim(loss, dim));
    tern_tensor *weight = tern_logical_not(skip); /* weight of each row */
    if (given)
        weight = tern_mul(weight, tern_index(tern_loss_wide(given), target));
    weight = x ? tern_to_dtype(weight, x->dtype) : NULL;
    loss = tern_masked_fill(tern_mul(loss, weight), skip, tern_scalar_int(0));
    if (o->reduction == TERN_REDUCTION_MEAN)
        loss = tern_div(tern_sum(loss), tern_sum(weight));
    bool done = o->reduction == TERN_REDUCTION_MEAN;
    return tern_loss_reduce(loss, done ? TERN_REDUCTION_NONE : o->reduction, input, input);
}
