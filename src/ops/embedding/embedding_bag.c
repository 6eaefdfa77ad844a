/* embedding_bag.c -- the mean, sum or maximum of the rows of a table that are in each bag.
 *
 * One kernel sums the rows of a bag without a copy of them. The gradient is added row by row:
 *   dtable[index[i]] += factor[i] dy[bag of i],   factor: 1, 1 / size of the bag, or the weight
 * and for maxima to the row that is the maximum of each column. */
#include "base/option.h"
#include "ops/embedding/embedding.h"
#include "ops/index/gather.h"
#include "ops/loss/loss.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

typedef struct bag_attributes {
    int64_t bags, padding;
    tern_embedding_bag_mode mode;
    bool by_frequency;
} bag_attributes;

/* ---- forward ------------------------------------------------------------------------------------
 * inputs table, index (N), offsets, weights (N) or none; outputs the bags, and of maxima the rows
 * that they are from */

static tern_status bag_infer(tern_call *call)
{
    const bag_attributes *at = call->attributes;
    const tern_tensor *table = call->in[0];
    tern_shape shape = {2, {at->bags, table->shape[1]}};
    if (!tern_dtype_is_floating_point(table->dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_embedding_bag: expected a table of a floating point type, got %s",
                         tern_dtype_name(table->dtype));
    call->n_out = at->mode == TERN_EMBEDDING_BAG_MAX ? 2 : 1;
    call->result[0] = (tern_result){.dtype = table->dtype, .shape = shape};
    call->result[1] = (tern_result){.dtype = TERN_I64, .shape = shape};
    return TERN_OK;
}

static tern_status bag_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"embedding", "embedding_bag"};
    const bag_attributes *at = call->attributes;
    tern_tensor *const *in = call->in, *y = call->out[0];
    const tern_tensor *index = in[1]->numel ? in[1] : in[2], *table = in[0]->numel ? in[0] : y;
    const tern_tensor *picks =
        at->mode == TERN_EMBEDDING_BAG_MAX ? call->out[1] : index; /* index: a placeholder */
    tern_arg fault;
    if (y->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_fault_arg(call->place, &fault));
    int64_t work = in[1]->numel / at->bags + 1;
    TERN_TRY(
        TERN_LAUNCH(call->place, &kernel, y->dtype, tern_items_of(y->numel, work), tern_arg_out(y),
                    tern_arg_out(picks), tern_arg_in(table), tern_arg_in(index), tern_arg_in(in[2]),
                    in[3] && in[3]->numel ? tern_arg_in(in[3]) : tern_arg_unused(table), fault,
                    tern_arg_i64(at->bags), tern_arg_i64(y->shape[1]),
                    tern_arg_i64(in[0]->shape[0]), tern_arg_i64(in[1]->numel),
                    tern_arg_i64(in[2]->numel), tern_arg_i64(at->padding), tern_arg_i32(at->mode),
                    tern_arg_i32(in[3] != NULL), tern_arg_fault(TERN_FAULT_EMBEDDING_BAG)));
    return tern_fault_check(call->place);
}

/* ---- backward ---------------------------------------------------------------------------- */

/* The gradients of table and weights need each other; maxima need the rows of the maxima. */
static uint32_t bag_saves(const tern_call *call)
{
    uint32_t saves = TERN_SAVE_IN(1) | TERN_SAVE_IN(2);
    if (call->in[3])
        saves |= TERN_SAVE_IN(0) | TERN_SAVE_IN(3);
    return call->n_out > 1 ? saves | TERN_SAVE_OUT(1) : saves;
}

/* Adds each column of dy to the row of its maximum. */
static tern_status backward_of_maxima(tern_gradient *g)
{
    tern_tensor *from = g->out[1], *none = tern_lt_scalar(from, tern_scalar_int(0));
    tern_tensor *dy = tern_masked_fill(g->dout[0], none, tern_scalar_int(0));
    from = tern_masked_fill(from, none, tern_scalar_int(0));
    tern_tensor *zeros = tern_zeros(g->in_shape[0], g->dout[0]->dtype, tern_device(g->dout[0]));
    g->din[0] = g->in_shape[0].dims[0] ? tern_scatter_add(zeros, 0, from, dy) : zeros;
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* Returns the bag of each of n indices; *counts is 1 for indices in a bag and not padding, else
 * 0. */
static tern_tensor *bag_of(tern_gradient *g, tern_dtype dtype, tern_tensor **counts)
{
    const bag_attributes *at = g->attributes;
    tern_tensor *index = g->in[1];
    tern_tensor *i = tern_arange(0, (double)index->numel, 1, TERN_I64, tern_device(index));
    tern_tensor *bag = tern_searchsorted(g->in[2], i, TERN_SIDE_RIGHT);
    bag = tern_sub_scalar(bag, tern_scalar_int(1));
    tern_tensor *keep = tern_lt_scalar(bag, tern_scalar_int(at->bags));
    keep = tern_logical_and(keep, tern_ne_scalar(index, tern_scalar_int(at->padding)));
    *counts = tern_to_dtype(keep, dtype);
    return *counts ? tern_clamp(bag, 0, (double)(at->bags - 1)) : NULL;
}

/* dtable[index[i]] += factor[i] dy[bag of i], dweights[i] = table[index[i]] dy[bag of i]. */
static tern_status bag_backward(tern_gradient *g)
{
    const bag_attributes *at = g->attributes;
    tern_tensor *index = g->in[1], *factor = NULL, *dtable, *dy = tern_loss_wide(g->dout[0]);
    if (at->mode == TERN_EMBEDDING_BAG_MAX)
        return backward_of_maxima(g);
    if (!dy || g->dout[0]->numel == 0)
        return dy ? TERN_OK : tern_last_status();
    tern_tensor *bag = bag_of(g, dy->dtype, &factor);
    tern_tensor *rows = tern_index(dy, bag), *counts = factor;
    if (g->needs[3]) {
        tern_tensor *products = tern_mul(tern_embedding(index, g->in[0], NULL), rows);
        products = tern_mul(tern_sum_dim(products, TERN_DIMS(-1), false), counts);
        g->din[3] = products ? tern_to_dtype(products, g->in[3]->dtype) : NULL;
        if (!g->din[3])
            return tern_last_status();
    }
    if (!g->needs[0])
        return TERN_OK;
    if (at->mode == TERN_EMBEDDING_BAG_MEAN) {
        tern_tensor *sizes = tern_zeros(TERN_SHAPE(at->bags), dy->dtype, tern_device(dy));
        sizes = tern_index_add(sizes, 0, bag, counts, tern_scalar_int(1));
        factor = tern_div(factor, tern_index(tern_clamp(sizes, 1, INFINITY), bag));
    }
    if (g->in[3])
        factor = tern_mul(factor, tern_loss_wide(g->in[3]));
    if (at->by_frequency)
        factor =
            tern_div(factor, tern_embedding_frequency(index, g->in_shape[0].dims[0], dy->dtype));
    rows = tern_mul(rows, tern_unsqueeze(factor, -1));
    tern_gather_attributes gathered = {.skip = at->padding, .x_shape = g->in_shape[0]};
    if (!rows)
        return tern_last_status();
    gathered.shape = tern_shape_of(rows);
    dtable = tern_gather_gradient(rows, index, &gathered);
    g->din[0] = dtable ? tern_to_dtype(dtable, g->dout[0]->dtype) : NULL;
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op bag_op = {.name = "embedding_bag",
                               .optional = 1u << 3,
                               .choose_saves = bag_saves,
                               .no_grad_out = 1u << 1,
                               .infer = bag_infer,
                               .forward = bag_forward,
                               .backward = bag_backward};

/* ---- the public function ----------------------------------------------------------------- */

static const char function[] = "tern_embedding_bag";

static tern_status check_bags(const tern_tensor *indices, const tern_tensor *offsets,
                              const tern_embedding_bag_function_options *o)
{
    const tern_tensor *w = o->per_sample_weights;
    if (indices->ndim != 1 && indices->ndim != 2)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: input has to be 1D or 2D Tensor, but got Tensor of dimension %d",
                         function, indices->ndim);
    if (w && !tern_same_shape(w, indices))
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: If per_sample_weights (%s) is not None, then it must have the same "
                         "shape as the input (%s)",
                         function, TERN_TENSOR_TEXT(w), TERN_TENSOR_TEXT(indices));
    if (indices->ndim == 2 && offsets)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: if input is 2D, then offsets has to be None, as input is treated is "
                         "a mini-batch of fixed length sequences. However, found offsets of %s",
                         function, TERN_TENSOR_TEXT(offsets));
    if (indices->ndim == 1 && (!offsets || offsets->ndim != 1))
        return tern_fail(TERN_ERR_SHAPE, "%s: offsets has to be a 1D Tensor%s", function,
                         offsets ? "" : " but got None");
    if (offsets && offsets->dtype != TERN_I64 && offsets->dtype != TERN_I32)
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: Expected tensor for argument #1 'offsets' to have one of the "
                         "following scalar types: int64, int32; but got %s instead",
                         function, tern_dtype_name(offsets->dtype));
    if (offsets && o->include_last_offset && offsets->numel < 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: include_last_offset: number of offset should be at "
                         "least 1",
                         function);
    return TERN_OK;
}

static tern_status check_mode(const tern_tensor *weight,
                              const tern_embedding_bag_function_options *o)
{
    static const char *const modes[] = {"mean", "sum", "max"};
    const tern_tensor *w = o->per_sample_weights;
    if (o->mode < TERN_EMBEDDING_BAG_MEAN || o->mode > TERN_EMBEDDING_BAG_MAX)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: mode has to be one of sum, mean or max, not %d",
                         function, (int)o->mode);
    if (o->mode == TERN_EMBEDDING_BAG_MAX && o->scale_grad_by_freq)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: max mode does not support scaling the gradient by the frequency",
                         function);
    if (w && o->mode != TERN_EMBEDDING_BAG_SUM)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: per_sample_weights was not None. per_sample_weights is only "
                         "supported for mode='sum' (got mode='%s').",
                         function, modes[o->mode]);
    if (w && w->dtype != weight->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: expected 'weight' and 'per_sample_weights' to have the same scalar "
                         "type, but got %s and %s instead",
                         function, tern_dtype_name(weight->dtype), tern_dtype_name(w->dtype));
    return TERN_OK;
}

/* Returns the offset of each row of (B, N), all 0 if there are no columns. */
static tern_tensor *starts_of_rows(const tern_tensor *indices)
{
    int64_t rows = indices->shape[0], columns = indices->shape[1];
    tern_tensor *i = tern_arange(0, (double)rows, 1, TERN_I64, tern_device(indices));
    return tern_mul_scalar(i, tern_scalar_int(columns));
}

tern_tensor *tern_embedding_bag(tern_tensor *indices, tern_tensor *weight, tern_tensor *offsets,
                                const tern_embedding_bag_function_options *options)
{
    const tern_embedding_bag_function_options read = tern_read_embedding_bag_function(options),
                                              *o = &read;
    bag_attributes at = {.mode = o->mode, .by_frequency = o->scale_grad_by_freq};
    if (!indices || !weight) {
        tern_fail_argument_null(function, indices ? "weight" : "indices");
        return NULL;
    }
    if (tern_embedding_check(indices, weight, function) != TERN_OK ||
        check_bags(indices, offsets, o) != TERN_OK || check_mode(weight, o) != TERN_OK ||
        tern_embedding_padding(o->padding_idx, weight->shape[0], &at.padding, function) != TERN_OK)
        return NULL;
    at.bags = offsets ? offsets->numel - o->include_last_offset : indices->shape[0];
    tern_shape flat = TERN_SHAPE(indices->numel);
    offsets = offsets ? tern_to_dtype(offsets, TERN_I64) : starts_of_rows(indices);
    indices = tern_to_dtype(indices, TERN_I64);
    if (!offsets || !indices)
        return NULL;
    tern_tensor *w = o->per_sample_weights;
    if (w && !(w = tern_contiguous(tern_reshape(w, flat))))
        return NULL;
    tern_tensor *in[] = {tern_contiguous(weight), tern_contiguous(tern_reshape(indices, flat)),
                         tern_contiguous(offsets), w};
    if (o->max_norm != 0) { /* bad offsets are errors before anything is written */
        tern_tensor *y = NULL;
        TERN_NO_GRAD
            y = tern_apply(&bag_op, in, 4, &at, sizeof at);
        if (!y || tern_embedding_renorm(weight, indices, o->max_norm, o->norm_type) != TERN_OK)
            return NULL;
        in[0] = tern_contiguous(weight);
    }
    return tern_apply(&bag_op, in, 4, &at, sizeof at);
}
