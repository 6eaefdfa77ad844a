/* attention.c -- scaled dot product attention (Vaswani et al. 2017), made of other operations. */
#include "ops/product.h"
#include <math.h>
#include <tern/ops.h>

static const char *const name = "tern_scaled_dot_product_attention";

static tern_status check(tern_tensor *query, tern_tensor *key, tern_tensor *value,
                         const tern_sdpa_options *o)
{
    const tern_tensor *mask = o->attn_mask;
    if (!query || !key || !value)
        return tern_fail_argument_null(name, !query ? "query" : !key ? "key" : "value");
    if (query->dtype != key->dtype || query->dtype != value->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: Expected query, key, and value to have the same dtype, but got "
                         "query.dtype: %s key.dtype: %s and value.dtype: %s instead.",
                         name, tern_dtype_name(query->dtype), tern_dtype_name(key->dtype),
                         tern_dtype_name(value->dtype));
    if (query->ndim < 2 || key->ndim < 2 || value->ndim < 2)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Expected query, key, and value to all be at least 2 dimensional, but "
                         "got query.dim(): %d, key.dim(): %d and value.dim(): %d instead.",
                         name, query->ndim, key->ndim, value->ndim);
    if (mask && o->is_causal)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: Explicit attn_mask should not be set when is_causal=True", name);
    if (mask && mask->dtype != TERN_BOOL && mask->dtype != query->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: Expected attn_mask dtype to be bool or to match query dtype, but got "
                         "attn_mask.dtype: %s and query.dtype: %s instead.",
                         name, tern_dtype_name(mask->dtype), tern_dtype_name(query->dtype));
    if (!(o->dropout_p >= 0 && o->dropout_p <= 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: dropout probability has to be between 0 and 1, but got %g", name,
                         o->dropout_p);
    return TERN_OK;
}

/* True where the key comes after the query. */
static tern_tensor *later(const tern_tensor *scores)
{
    int64_t queries = scores->shape[scores->ndim - 2], keys = scores->shape[scores->ndim - 1];
    const char *device = tern_device(scores);
    tern_tensor *query = tern_arange(0, (double)queries, 1, TERN_I32, device);
    tern_tensor *key = tern_arange(0, (double)keys, 1, TERN_I32, device);
    return tern_gt(key, tern_unsqueeze(query, 1));
}

/* Scores that do not count are -inf: none of their row's weight is left for them. */
static tern_tensor *masked(tern_tensor *scores, const tern_sdpa_options *o)
{
    tern_tensor *mask = o->attn_mask;
    if (!scores || (!mask && !o->is_causal))
        return scores;
    if (mask && mask->dtype != TERN_BOOL)
        return tern_add(scores, mask);
    return tern_masked_fill(scores, mask ? tern_logical_not(mask) : later(scores),
                            tern_scalar_real(-INFINITY));
}

tern_tensor *tern_scaled_dot_product_attention(tern_tensor *query, tern_tensor *key,
                                               tern_tensor *value, const tern_sdpa_options *options)
{
    tern_sdpa_options o = options ? *options : (tern_sdpa_options){0};
    if (check(query, key, value, &o) != TERN_OK)
        return NULL;
    tern_product product = {.alpha = o.scale, .transpose = {false, true}};
    if (o.scale == 0)
        product.alpha = 1 / sqrt((double)query->shape[query->ndim - 1]);
    else if (o.scale == TERN_ZERO)
        product.alpha = 0;
    tern_tensor *result = NULL;
    TERN_SCOPE {
        tern_tensor *scores = masked(tern_product_of(&product, query, key), &o);
        tern_tensor *weights = tern_softmax(scores, -1);
        if (o.dropout_p > 0)
            weights = tern_dropout(weights, o.dropout_p, true);
        result = tern_escape(tern_matmul(weights, value));
    }
    return result;
}
