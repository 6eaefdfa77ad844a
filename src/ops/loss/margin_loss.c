/* margin_loss.c -- margin losses: ranking, hinge, cosine, triplet, and over several classes. */
#include "ops/loss/loss.h"
#include <math.h>

static tern_scalar real(double value)
{
    return tern_scalar_real(value);
}

/* Returns the margin, or `otherwise`, the default of the loss, if it is NaN. */
static double margin_of(const tern_margin_loss_options *o, double otherwise)
{
    return isnan(o->margin) ? otherwise : o->margin;
}

/* ---- two classes, 1 and -1 --------------------------------------------------------------- */

/* Returns max(0, -t (x1 - x2) + margin): x1 is to be ranked above x2 for t = 1, below x2 for t =
 * -1. */
tern_tensor *tern_margin_ranking_loss(tern_tensor *input1, tern_tensor *input2, tern_tensor *target,
                                      const tern_margin_loss_options *options)
{
    TERN_COMPOSED("margin_ranking_loss", FLOAT32, &input1, &input2, &target);
    const tern_margin_loss_options read = tern_read_margin_loss(options), *o = &read;
    if (tern_loss_check(input1, target, o->reduction, "tern_margin_ranking_loss") != TERN_OK ||
        tern_loss_check(input2, target, o->reduction, "tern_margin_ranking_loss") != TERN_OK)
        return NULL;
    if (input1->ndim != input2->ndim || input1->ndim != target->ndim)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_margin_ranking_loss: margin_ranking_loss : All input tensors "
                              "should have same dimension but got sizes: input1: %s, input2: %s, "
                              "target: %s",
                              TERN_TENSOR_TEXT(input1), TERN_TENSOR_TEXT(input2),
                              TERN_TENSOR_TEXT(target));
    tern_tensor *loss = tern_sub(tern_loss_wide(input1), tern_loss_wide(input2));
    loss = tern_mul(tern_neg(tern_loss_wide(target)), loss);
    loss = tern_add_scalar(loss, real(margin_of(o, 0)));
    return tern_loss_reduce(tern_loss_positive(loss), o->reduction, input1, input2);
}

/* Returns whether each target equals value, compared in the dtype of target: -1 is 255 in uint8,
 * and never equals a bool. */
static tern_tensor *is_value(tern_tensor *target, int64_t value)
{
    if (target->dtype == TERN_BOOL)
        return tern_eq_scalar(target, tern_scalar_int(value));
    return tern_eq(target, tern_new_full(target, TERN_SHAPE_SCALAR, tern_scalar_int(value)));
}

/* Returns 0 where target equals value, and x elsewhere. */
static tern_tensor *zero_where(tern_tensor *target, int64_t value, tern_tensor *x)
{
    tern_tensor *zero = x ? tern_new_zeros(x, TERN_SHAPE_SCALAR) : NULL;
    return tern_where(is_value(target, value), zero, x);
}

/* Returns x for t = 1, max(0, margin - x) for t = -1. For any other target both are added, as in
 * PyTorch. */
tern_tensor *tern_hinge_embedding_loss(tern_tensor *input, tern_tensor *target,
                                       const tern_margin_loss_options *options)
{
    TERN_COMPOSED("hinge_embedding_loss", FLOAT32, &input, &target);
    const tern_margin_loss_options read = tern_read_margin_loss(options), *o = &read;
    if (tern_loss_check(input, target, o->reduction, "tern_hinge_embedding_loss") != TERN_OK)
        return NULL;
    double margin = margin_of(o, 1);
    tern_tensor *x = tern_loss_wide(input);
    tern_tensor *apart = tern_loss_positive(tern_rsub_scalar(x, real(margin)));
    tern_tensor *loss = tern_add(zero_where(target, 1, apart), zero_where(target, -1, x));
    return tern_loss_reduce(loss, o->reduction, input, input);
}

static tern_status check_cosine(const tern_tensor *a, const tern_tensor *b,
                                const tern_tensor *target)
{
    if (target->ndim > 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_cosine_embedding_loss: 0D or 1D target tensor expected, "
                         "multi-target not supported (target %s)",
                         TERN_TENSOR_TEXT(target));
    int dims = target->ndim + 1;
    if (a->ndim != dims || b->ndim != dims)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_cosine_embedding_loss: %dD target tensor expects %dD input tensors, "
                         "but found inputs with sizes %s and %s.",
                         target->ndim, dims, TERN_TENSOR_TEXT(a), TERN_TENSOR_TEXT(b));
    return TERN_OK;
}

/* Returns 1 - cos(x1, x2) for t = 1, max(0, cos(x1, x2) - margin) for t = -1, with cos = x1 x2 /
 * sqrt((|x1|^2 + 1e-12) (|x2|^2 + 1e-12)). */
tern_tensor *tern_cosine_embedding_loss(tern_tensor *input1, tern_tensor *input2,
                                        tern_tensor *target,
                                        const tern_margin_loss_options *options)
{
    TERN_COMPOSED("cosine_embedding_loss", FLOAT32, &input1, &input2, &target);
    const tern_margin_loss_options read = tern_read_margin_loss(options), *o = &read;
    if (tern_loss_check(input1, target, o->reduction, "tern_cosine_embedding_loss") != TERN_OK ||
        tern_loss_check(input2, target, o->reduction, "tern_cosine_embedding_loss") != TERN_OK ||
        check_cosine(input1, input2, target) != TERN_OK)
        return NULL;
    tern_shape dims = {1, {target->ndim}};
    tern_tensor *a = tern_loss_wide(input1), *b = tern_loss_wide(input2);
    tern_tensor *product = tern_sum_dim(tern_mul(a, b), dims, false);
    tern_tensor *size1 = tern_add_scalar(tern_sum_dim(tern_mul(a, a), dims, false), real(1e-12));
    tern_tensor *size2 = tern_add_scalar(tern_sum_dim(tern_mul(b, b), dims, false), real(1e-12));
    tern_tensor *cosine = tern_div(product, tern_sqrt(tern_mul(size1, size2)));
    tern_tensor *same = tern_rsub_scalar(cosine, real(1));
    tern_tensor *apart = tern_loss_positive(tern_sub_scalar(cosine, real(margin_of(o, 0))));
    tern_tensor *zero = cosine ? tern_new_zeros(cosine, TERN_SHAPE_SCALAR) : NULL;
    tern_tensor *loss = tern_add(tern_where(is_value(target, 1), same, zero),
                                 tern_where(is_value(target, -1), apart, zero));
    return tern_loss_reduce(loss, o->reduction, input1, input2);
}

/* ---- triplets ---------------------------------------------------------------------------- */

/* Arguments of tern_pairwise_distance. */
typedef struct pairwise {
    double p, eps;
} pairwise;

/* tern_pairwise_distance as a tern_distance_function. */
static tern_tensor *default_distance(tern_tensor *a, tern_tensor *b, void *user)
{
    const pairwise *w = user;
    return tern_pairwise_distance(a, b, w->p, w->eps, false);
}

/* Calls the distance function. Errors of functions called by the user's own distance function name
 * those functions. */
static tern_tensor *distance_of(tern_distance_function distance, tern_tensor *x, tern_tensor *y,
                                void *user)
{
    if (distance == default_distance)
        return distance(x, y, user);
    TERN_UNNAMED_IN_ERRORS;
    return distance(x, y, user);
}

/* Returns max(0, d(a, p) - d(a, n) + margin). With swap, d(a, n) is replaced by d(p, n) where that
 * is smaller (Balntas et al. 2016). */
tern_tensor *tern_triplet_margin_with_distance_loss(tern_tensor *anchor, tern_tensor *positive,
                                                    tern_tensor *negative,
                                                    tern_distance_function distance, void *user,
                                                    const tern_triplet_margin_loss_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
    const tern_triplet_margin_loss_options read = tern_read_triplet_margin_loss(options),
                                           *o = &read;
    pairwise usual = {2, 1e-6};
    if (o->margin <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: margin must be greater than 0, got %g",
                              function, o->margin);
    if (tern_loss_check(anchor, positive, o->reduction, function) != TERN_OK ||
        tern_loss_check(anchor, negative, o->reduction, function) != TERN_OK)
        return NULL;
    if (!distance) {
        distance = default_distance;
        user = &usual;
    }
    tern_tensor *near = distance_of(distance, anchor, positive, user);
    tern_tensor *far = distance_of(distance, anchor, negative, user);
    if (o->swap)
        far = tern_minimum(far, distance_of(distance, positive, negative, user));
    tern_tensor *loss = tern_add_scalar(tern_sub(near, far), real(o->margin));
    loss = tern_loss_positive(loss);
    return loss ? tern_loss_reduce(loss, o->reduction, loss, loss) : NULL;
}

/* Returns the triplet loss with the distance |x - y + eps|_p. */
tern_tensor *tern_triplet_margin_loss(tern_tensor *anchor, tern_tensor *positive,
                                      tern_tensor *negative,
                                      const tern_triplet_margin_loss_options *options)
{
    TERN_COMPOSED("triplet_margin_loss", FLOAT32, &anchor, &positive, &negative);
    const tern_triplet_margin_loss_options read = tern_read_triplet_margin_loss(options),
                                           *o = &read;
    pairwise how = {o->p, o->eps};
    if (tern_loss_check(anchor, positive, o->reduction, "tern_triplet_margin_loss") != TERN_OK ||
        tern_loss_check(anchor, negative, o->reduction, "tern_triplet_margin_loss") != TERN_OK)
        return NULL;
    if (anchor->ndim != positive->ndim || anchor->ndim != negative->ndim)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_triplet_margin_loss: All inputs should have same dimension but "
                              "got %dD, %dD and %dD inputs.",
                              anchor->ndim, positive->ndim, negative->ndim);
    return tern_triplet_margin_with_distance_loss(anchor, positive, negative, default_distance,
                                                  &how, o);
}

/* ---- several classes --------------------------------------------------------------------- */

/* Checks that x is (N, C) or (C) with C > 0, and that the target has the shape of x (same) or one
 * class index for each row. */
static tern_status check_rows(const tern_tensor *x, const tern_tensor *target, bool same,
                              const char *function)
{
    int64_t rows = x->ndim == 2 ? x->shape[0] : 1, classes = x->ndim ? x->shape[x->ndim - 1] : 1;
    if (x->ndim > 2 || classes == 0)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Expected non-empty vector or matrix with optional 0-dim batch size, "
                         "but got: %s",
                         function, TERN_TENSOR_TEXT(x));
    if (x->dtype == TERN_BOOL) /* checked before a kernel reads the classes */
        return tern_fail_dtype(function, x->dtype);
    if (target->dtype != TERN_I64)
        return tern_fail(TERN_ERR_DTYPE, "%s: expected scalar type int64 but found %s", function,
                         tern_dtype_name(target->dtype));
    if (same && !(tern_same_shape(x, target) || (x->ndim < 2 && target->numel == classes)))
        return tern_fail(TERN_ERR_SHAPE, "%s: inconsistent size %s for argument #2 'target'",
                         function, TERN_TENSOR_TEXT(target));
    if (!same && (target->ndim > 1 || target->numel != rows))
        return tern_fail(TERN_ERR_SHAPE, "%s: inconsistent target size, got: %s", function,
                         TERN_TENSOR_TEXT(target));
    return TERN_OK;
}

/* Returns a view as (N, C); (C) becomes a batch of one. */
static tern_tensor *rows_of(tern_tensor *x, const tern_tensor *input)
{
    int64_t classes = input->ndim ? input->shape[input->ndim - 1] : 1;
    return tern_reshape(x, TERN_SHAPE(input->ndim == 2 ? input->shape[0] : 1, classes));
}

/* Returns 0, 1, ..., C - 1, where C is the size of the last dim of x. */
static tern_tensor *class_indices(const tern_tensor *x)
{
    return tern_arange(0, (double)x->shape[x->ndim - 1], 1, TERN_I64, tern_device(x));
}

/* Returns 1 / C sum over c != t of w[t] max(0, margin - x[t] + x[c])^p, where p is 1 or 2. */
tern_tensor *tern_multi_margin_loss(tern_tensor *input, tern_tensor *target,
                                    const tern_multi_margin_loss_options *options)
{
    TERN_COMPOSED("multi_margin_loss", FLOAT32, &input);
    const tern_multi_margin_loss_options read = tern_read_multi_margin_loss(options), *o = &read;
    static const char function[] = "tern_multi_margin_loss";
    int p = o->p;
    if (tern_loss_check(input, target, o->reduction, function) != TERN_OK)
        return NULL;
    if (p != 1 && p != 2)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: only p == 1 and p == 2 supported, not %d",
                              function, p);
    if (o->weight && o->weight->ndim != 1)
        return tern_fail_null(TERN_ERR_SHAPE, "%s: weight must be one-dimensional, not %s",
                              function, TERN_TENSOR_TEXT(o->weight));
    if (check_rows(input, target, false, function) != TERN_OK)
        return NULL;
    bool one = target->ndim == 0;
    tern_tensor *x = rows_of(tern_loss_wide(input), input),
                *y = tern_reshape(target, TERN_SHAPE(target->numel, 1));
    tern_tensor *loss = tern_sub(x, tern_gather(x, 1, y));
    loss = tern_loss_positive(tern_add_scalar(loss, real(o->margin)));
    loss = p == 2 ? tern_square(loss) : loss;
    if (o->weight)
        loss = tern_mul(loss, tern_index(tern_loss_wide(o->weight), y));
    loss = tern_masked_fill(loss, tern_eq(y, x ? class_indices(x) : NULL), real(0));
    loss = tern_mean_dim(loss, TERN_DIMS(1), false);
    if (o->reduction == TERN_REDUCTION_NONE && one)
        loss = tern_squeeze_dim(loss, 0);
    return tern_loss_reduce(loss, o->reduction, input, input);
}

/* Returns which targets of y (N, C) come before the first -1 of their row, and sets *is_target (N,
 * C) to whether each class is one of these targets. */
static tern_tensor *valid_targets(tern_tensor *y, tern_tensor **is_target)
{
    tern_tensor *valid = tern_cumprod(tern_ge_scalar(y, tern_scalar_int(0)), 1);
    valid = tern_ne_scalar(valid, tern_scalar_int(0));
    tern_tensor *each = tern_eq(tern_unsqueeze(y, -1), y ? class_indices(y) : NULL);
    each = tern_logical_and(each, tern_unsqueeze(valid, -1));
    *is_target = tern_any_dim(each, 1, false);
    return valid;
}

/* Returns 1 / C sum over the target classes y and all other classes i of max(0, 1 - (x[y] - x[i])),
 * computed as a tensor (N, y, i) in which the other pairs are masked. */
tern_tensor *tern_multilabel_margin_loss(tern_tensor *input, tern_tensor *target,
                                         const tern_loss_options *options)
{
    TERN_COMPOSED("multilabel_margin_loss", FLOAT32, &input);
    tern_reduction reduction = options ? options->reduction : TERN_REDUCTION_MEAN;
    static const char function[] = "tern_multilabel_margin_loss";
    tern_tensor *is_target = NULL;
    if (tern_loss_check(input, target, reduction, function) != TERN_OK ||
        check_rows(input, target, true, function) != TERN_OK)
        return NULL;
    tern_tensor *x = rows_of(tern_loss_wide(input), input), *y = rows_of(target, input);
    tern_tensor *valid = valid_targets(y, &is_target);
    y = tern_masked_fill(y, tern_logical_not(valid), tern_scalar_int(0));
    /* (N, y, i): 1 - (x[y] - x[i]) */
    tern_tensor *loss = tern_sub(tern_unsqueeze(x, 1), tern_unsqueeze(tern_gather(x, 1, y), -1));
    loss = tern_loss_positive(tern_add_scalar(loss, real(1)));
    tern_tensor *counts =
        tern_logical_and(tern_unsqueeze(valid, -1), tern_unsqueeze(tern_logical_not(is_target), 1));
    loss = tern_masked_fill(loss, tern_logical_not(counts), real(0));
    loss = tern_div_scalar(tern_sum_dim(loss, TERN_DIMS(1, 2), false),
                           real((double)(input->ndim ? input->shape[input->ndim - 1] : 1)));
    if (reduction == TERN_REDUCTION_NONE && input->ndim < 2)
        loss = tern_squeeze_dim(loss, 0);
    return tern_loss_reduce(loss, reduction, input, input);
}
