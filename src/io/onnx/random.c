/* random.c -- ONNX's dropout, random numbers, grid sampling and losses. */
#include "io/onnx/operations.h"

tern_status onnx_dropout(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    double ratio[ONNX_DIMS] = {onnx_real(c, "ratio", 0.5)};
    if (onnx_input_reals(c, 1, ratio) == -2)
        return TERN_OK;
    if (c->n_out < 2)
        return onnx_give(c, tern_dropout(x, ratio[0], c->training));
    tern_tensor *factor = tern_dropout(tern_ones_like(x), ratio[0], c->training);
    tern_tensor *mask = tern_ne_scalar(factor, TERN_SCALAR(0));
    c->out[1] = c->opset < 10 ? tern_to_dtype(mask, tern_dtype_of(x)) : mask;
    return onnx_give(c, tern_mul(x, factor));
}

tern_status onnx_grid_sample(onnx_call *c)
{
    tern_grid_sample_options o = {.align_corners = onnx_int(c, "align_corners", 0) != 0};
    if (onnx_text_is(c, "mode", "nearest", false))
        o.mode = TERN_GRID_SAMPLE_NEAREST;
    else if (onnx_text_is(c, "mode", "bicubic", false) || onnx_text_is(c, "mode", "cubic", false))
        o.mode = TERN_GRID_SAMPLE_BICUBIC;
    if (onnx_text_is(c, "padding_mode", "border", false))
        o.padding_mode = TERN_GRID_SAMPLE_BORDER;
    else if (onnx_text_is(c, "padding_mode", "reflection", false))
        o.padding_mode = TERN_GRID_SAMPLE_REFLECTION;
    return onnx_give(c, tern_grid_sample(onnx_in(c, 0), onnx_in(c, 1), &o));
}

/* ---- losses ---------------------------------------------------------------------------------- */

static tern_tensor *likelihood(const onnx_call *c, tern_tensor *log_probabilities)
{
    tern_nll_loss_options o = {.weight = onnx_in(c, 2)};
    const Onnx__AttributeProto *ignore = onnx_attribute(c, "ignore_index");
    /* without ignore_index every target counts, so it is set to a value that no target has */
    o.ignore_index = (tern_optional_int){true, ignore ? ignore->i : INT64_MIN};
    if (onnx_text_is(c, "reduction", "none", false))
        o.reduction = TERN_REDUCTION_NONE;
    else if (onnx_text_is(c, "reduction", "sum", false))
        o.reduction = TERN_REDUCTION_SUM;
    return tern_nll_loss(log_probabilities, tern_to_dtype(onnx_in(c, 1), TERN_I64), &o);
}

tern_status onnx_nll_loss(onnx_call *c)
{
    return onnx_give(c, likelihood(c, onnx_in(c, 0)));
}

tern_status onnx_cross_entropy(onnx_call *c)
{
    tern_tensor *y = tern_log_softmax(onnx_in(c, 0), 1);
    if (c->n_out > 1)
        c->out[1] = y;
    return onnx_give(c, likelihood(c, y));
}

/* ---- random numbers -------------------------------------------------------------------------- */

tern_status onnx_bernoulli(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t type = onnx_int(c, "dtype", 0);
    tern_dtype dtype = type ? onnx_dtype(type, "Bernoulli") : tern_dtype_of(x);
    return dtype ? onnx_give(c, tern_to_dtype(tern_bernoulli(x), dtype)) : TERN_ERR_DTYPE;
}

tern_status onnx_random_uniform_like(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    double low = onnx_real(c, "low", 0), high = onnx_real(c, "high", 1);
    int64_t type = onnx_int(c, "dtype", 0);
    tern_dtype dtype = type ? onnx_dtype(type, "RandomUniformLike") : tern_dtype_of(x);
    if (!dtype)
        return TERN_ERR_DTYPE;
    tern_tensor *y = tern_rand(tern_shape_of(x), dtype, tern_device(x));
    return onnx_give(
        c, tern_add_scalar(tern_mul_scalar(y, TERN_SCALAR(high - low)), TERN_SCALAR(low)));
}

tern_status onnx_random_normal_like(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    double mean = onnx_real(c, "mean", 0), scale = onnx_real(c, "scale", 1);
    int64_t type = onnx_int(c, "dtype", 0);
    tern_dtype dtype = type ? onnx_dtype(type, "RandomNormalLike") : tern_dtype_of(x);
    if (!dtype)
        return TERN_ERR_DTYPE;
    tern_tensor *y = tern_randn(tern_shape_of(x), dtype, tern_device(x));
    return onnx_give(c, tern_add_scalar(tern_mul_scalar(y, TERN_SCALAR(scale)), TERN_SCALAR(mean)));
}
