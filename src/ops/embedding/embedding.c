/* embedding.c -- rows of a table by index: y[..] = weight[index[..]].
 *
 * The operation is index_select with its own gradient: the gradient of the padding row is 0, and
 * scale_grad_by_freq divides the gradient of each row by the number of its occurrences in index. */
#include "ops/embedding/embedding.h"
#include "base/option.h"
#include "device/device.h"
#include "ops/index/gather.h"
#include "tensor/fuse/fuse.h"
#include <tern/autograd.h>
#include <tern/ops.h>

tern_status tern_embedding_check(const tern_tensor *indices, const tern_tensor *weight,
                                 const char *function)
{
    if (indices->dtype != TERN_I64 && indices->dtype != TERN_I32)
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: Expected tensor for argument #1 'indices' to have one of the "
                         "following scalar types: int64, int32; but got %s instead",
                         function, tern_dtype_name(indices->dtype));
    if (weight->ndim != 2)
        return tern_fail(TERN_ERR_SHAPE, "%s: 'weight' must be 2-D, not %d-D", function,
                         weight->ndim);
    return TERN_OK;
}

tern_status tern_embedding_padding(tern_optional_int padding, int64_t rows, int64_t *skip,
                                   const char *function)
{
    *skip = -1;
    if (!padding.set)
        return TERN_OK;
    if (padding.value < -rows || padding.value >= rows)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: Padding_idx must be within num_embeddings (%lld, not %lld)", function,
                         (long long)rows, (long long)padding.value);
    *skip = padding.value < 0 ? padding.value + rows : padding.value;
    return TERN_OK;
}

/* All occurrences of a row have the same factor, so that any of them may be written. */
tern_status tern_embedding_renorm(tern_tensor *weight, tern_tensor *indices, double max_norm,
                                  double norm_type)
{
    tern_status status = TERN_OK;
    if (isnan(max_norm) || indices->numel == 0)
        return TERN_OK;
    TERN_NO_GRAD {
        TERN_SCOPE {
            tern_tensor *index = tern_flatten(tern_to_dtype(indices, TERN_I64), 0, -1);
            tern_tensor *rows = tern_embedding(index, weight, NULL);
            tern_tensor *norm = tern_norm_dim(rows, norm_type, TERN_DIMS(-1), true);
            tern_tensor *scale = tern_reciprocal(tern_add_scalar(norm, tern_scalar_real(1e-7)));
            scale = tern_mul_scalar(scale, tern_scalar_real(max_norm));
            tern_tensor *fits = tern_le_scalar(norm, tern_scalar_real(max_norm));
            rows = tern_mul(rows, tern_masked_fill(scale, fits, tern_scalar_int(1)));
            if (!tern_index_put_(weight, &index, 1, rows, false))
                status = tern_last_status();
        }
    }
    return status;
}

tern_tensor *tern_embedding_frequency(tern_tensor *index, int64_t rows, tern_dtype dtype)
{
    tern_tensor *each = tern_flatten(index, 0, -1), *counts = NULL;
    if (each) {
        tern_tensor *one = tern_ones(TERN_SHAPE(each->numel), dtype, tern_device(index));
        counts = tern_zeros(TERN_SHAPE(rows), dtype, tern_device(index));
        counts = tern_index_add(counts, 0, each, one, tern_scalar_int(1));
    }
    return tern_index(counts, index);
}

typedef struct embedding_attributes {
    tern_gather_attributes gather; /* of rows of weight; the padding row is skipped */
    bool by_frequency;             /* divide gradients by the frequency of their index */
} embedding_attributes;

/* Adds dy in place to an existing gradient of the table (tied to another layer), if no other tensor
 * shares that: only on devices with work-groups, whose sums have no fixed order anyway. */
static tern_status add_to_others(tern_gradient *g, tern_tensor *dy)
{
    const embedding_attributes *at = g->attributes;
    tern_tensor *sum = tern_accumulate_in_place(g);
    tern_dtype dtype = dy->dtype;
    if (!sum || dtype != sum->dtype || (dtype != TERN_F32 && dtype != TERN_F64) ||
        !tern_place_is_grouped(dy->storage->place) || !(dy = tern_contiguous(dy)))
        return TERN_OK;
    TERN_TRY(tern_gather_add_gradient(sum, dy, g->in[1], &at->gather));
    g->din[0] = sum;
    tern_accumulated(g);
    return TERN_OK;
}

/* dweight[index[..]] += dy[..], divided by the frequency of that index with by_frequency. */
static tern_status embedding_backward(tern_gradient *g)
{
    const embedding_attributes *at = g->attributes;
    tern_tensor *dy = g->dout[0], *index = g->in[1];
    if (at->by_frequency) {
        tern_dtype dtype = dy->dtype == TERN_F64 ? TERN_F64 : TERN_F32;
        tern_tensor *n = tern_embedding_frequency(index, at->gather.x_shape.dims[0], dtype);
        n = n ? tern_unsqueeze(n, -1) : NULL;
        dy = n ? tern_to_dtype(tern_div(dy, n), dy->dtype) : NULL;
    }
    if (dy)
        TERN_TRY(add_to_others(g, dy));
    if (tern_is_accumulated(g))
        return TERN_OK;
    g->din[0] = tern_gather_gradient(dy, index, &at->gather);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op embedding_op = {
    .name = "embedding",
    .names = TERN_NAMES(TERN_FIELD(embedding_attributes, "dim", gather.dim)),
    .saves = TERN_SAVE_IN(1),
    .fusion = &(const tern_fusion){.accumulates = true},
    .infer = tern_gather_infer,
    .forward = tern_gather_forward,
    .backward = embedding_backward};

tern_tensor *tern_embedding(tern_tensor *indices, tern_tensor *weight,
                            const tern_embedding_function_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_embedding_function_options read = tern_read_embedding_function(options), *o = &read;
    const char *const function = __func__;
    embedding_attributes at = {.gather.fault = TERN_FAULT_EMBEDDING,
                               .by_frequency = o->scale_grad_by_freq};
    if (!indices || !weight) {
        tern_fail_argument_null(function, indices ? "weight" : "indices");
        return NULL;
    }
    if (tern_embedding_check(indices, weight, function) != TERN_OK ||
        tern_embedding_padding(o->padding_idx, weight->shape[0], &at.gather.skip, function) !=
            TERN_OK ||
        tern_embedding_renorm(weight, indices, o->max_norm, o->norm_type) != TERN_OK)
        return NULL;
    at.gather.x_shape = tern_shape_of(weight);
    if (tern_index_shape(weight, indices, &at.gather.shape, function) != TERN_OK)
        return NULL;
    tern_tensor *in[] = {tern_contiguous(weight),
                         tern_contiguous(tern_to_dtype(indices, TERN_I64))};
    return tern_apply(&embedding_op, in, 2, &at, sizeof at);
}
