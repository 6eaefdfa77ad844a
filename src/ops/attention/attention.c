/* attention.c -- scaled dot product attention (Vaswani et al. 2017): its checks, and the choice
 * among its implementations.
 *
 *   softmax(scale q k' + mask) v, with the softmax over the keys and scale = 1 / sqrt(E) by
 * default */
#include "ops/attention/attention_tiles.h"
#include "base/option.h"
#include "base/warning.h"
#include <math.h>
#include <tern/ops.h>

static const char *const name = "tern_scaled_dot_product_attention";

/* Checks what PyTorch refuses: dtypes that differ, fewer than two dims, a mask together with
 * is_causal, a mask whose dtype is neither bool nor the query's, a dropout probability outside [0,
 * 1]. */
static tern_status check(tern_tensor *query, tern_tensor *key, tern_tensor *value,
                         const tern_scaled_dot_product_attention_options *o)
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
    if (!(o->softcap >= 0 && isfinite(o->softcap)))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: softcap has to be a positive number, but got %g",
                         name, o->softcap);
    if (o->window < 0)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: window has to be a positive number of keys, but got %lld", name,
                         (long long)o->window);
    return TERN_OK;
}

/* Returns whether the fused form supports these tensors: q, k and v have the same leading dims
 * without broadcasting, at most two of them, none is empty, and the mask broadcasts to the scores
 * (..., L, S) and needs no gradient, which the fused backward does not compute. */
static bool fits_fused(const tern_tensor *q, const tern_tensor *k, const tern_tensor *v,
                       const tern_tensor *mask)
{
    if (!tern_dtype_is_floating_point(q->dtype) || q->ndim > 4 || k->ndim != q->ndim ||
        v->ndim != q->ndim || !q->numel || !k->numel || !v->numel ||
        q->shape[q->ndim - 1] != k->shape[k->ndim - 1] ||
        k->shape[k->ndim - 2] != v->shape[v->ndim - 2])
        return false;
    for (int d = 0; d < q->ndim - 2; d++)
        if (q->shape[d] != k->shape[d] || q->shape[d] != v->shape[d])
            return false;
    if (!mask)
        return true;
    if (tern_requires_grad(mask) || mask->ndim > q->ndim || !mask->numel)
        return false;
    for (int d = 1; d <= mask->ndim; d++) {
        int64_t size = d == 1   ? k->shape[k->ndim - 2]
                       : d == 2 ? q->shape[q->ndim - 2]
                                : q->shape[q->ndim - d];
        if (mask->shape[mask->ndim - d] != 1 && mask->shape[mask->ndim - d] != size)
            return false;
    }
    return true;
}

/* Computes attention of half precision in float32, rounded once at the end, so that neither scores
 * nor weights are rounded. Used where that is cheap (on cpus, and for few scores) and where the
 * fused form does not fit. */
static tern_tensor *in_f32(tern_tensor *query, tern_tensor *key, tern_tensor *value,
                           tern_scaled_dot_product_attention_options o)
{
    tern_dtype dtype = query->dtype;
    if (o.attn_mask && o.attn_mask->dtype != TERN_BOOL &&
        !(o.attn_mask = tern_to_dtype(o.attn_mask, TERN_F32)))
        return NULL;
    query = tern_to_dtype(query, TERN_F32);
    key = tern_to_dtype(key, TERN_F32);
    value = tern_to_dtype(value, TERN_F32);
    tern_tensor *y =
        query && key && value ? tern_scaled_dot_product_attention(query, key, value, &o) : NULL;
    return y ? tern_to_dtype(y, dtype) : NULL;
}

/* Returns whether to compute the products in half precision: on GPUs, if there are so many scores
 * that half precision matrix units save more than three conversions cost. The number of queries of
 * all heads is numel / E. */
static bool keeps_half_precision(const tern_tensor *query, const tern_tensor *key)
{
    enum { SMALL = 1 << 14 };
    int64_t keys = key->shape[key->ndim - 2], width = query->shape[query->ndim - 1];
    bool many = width > 0 && query->numel / width * keys > SMALL;
    return many && tern_place_is_grouped(query->storage->place);
}

/* Warns if the composed form, which stores a score for each query and key, is used for many
 * scores. */
static tern_status warn_composed(const tern_tensor *query, const tern_tensor *key)
{
    enum { MANY = 1 << 20 };
    const uint64_t failures = tern_failures(); /* within TERN_STRICT the warning is an error */
    int64_t width = query->shape[query->ndim - 1];
    if (width && query->numel / width * key->shape[key->ndim - 2] >= MANY)
        tern_warn("slow", "tern_scaled_dot_product_attention",
                  "query %s and key %s take the form that keeps all scores: the fused one wants "
                  "equal leading dims, two of them at most, and a mask without a gradient",
                  TERN_TENSOR_TEXT(query), TERN_TENSOR_TEXT(key));
    return tern_failed_since(failures);
}

/* Grouped query attention: returns x with each head repeated for every head of query that shares
 * it. */
static tern_tensor *repeat_heads(tern_tensor *x, const tern_tensor *query)
{
    if (query->ndim < 3 || x->ndim < 3)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Dimension out of range: enable_gqa wants heads in dim -3, but "
                              "query is %s and key or value is %s",
                              name, TERN_TENSOR_TEXT(query), TERN_TENSOR_TEXT(x));
    int64_t wanted = query->shape[query->ndim - 3], heads = x->shape[x->ndim - 3];
    if (heads != wanted && (heads == 0 || wanted % heads != 0))
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "%s: Number of heads in key and value must divide the number of heads "
            "in query: %s does not divide %s",
            name, TERN_TENSOR_TEXT(x), TERN_TENSOR_TEXT(query));
    return wanted == heads ? x : tern_repeat_interleave(x, wanted / heads, TERN_SOME(x->ndim - 3));
}

/* Returns whether the memory layout of q is (N, T, heads, width), as a linear layer produces. The
 * result and the gradients then get the same layout, so that they need not be copied to it. */
static bool heads_are_inner(const tern_tensor *q)
{
    return q->ndim == 4 && q->shape[1] > 1 && q->shape[2] > 1 && q->stride[1] < q->stride[2];
}

/* Chooses the fused form if the shapes allow it, the composed form otherwise, and computes half
 * precision in float32 where that is cheap. */
tern_tensor *tern_scaled_dot_product_attention(
    tern_tensor *query, tern_tensor *key, tern_tensor *value,
    const tern_scaled_dot_product_attention_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_scaled_dot_product_attention_options o = tern_read_scaled_dot_product_attention(options);
    TERN_CAST_FOR(&tern_attention_fused, &query, &key, &value, &o.attn_mask);
    if (check(query, key, value, &o) != TERN_OK)
        return NULL;
    if (o.enable_gqa &&
        (!(key = repeat_heads(key, query)) || !(value = repeat_heads(value, query))))
        return NULL;
    o.enable_gqa = false;
    tern_attention_attributes at = {.scale = o.scale,
                                    .dropout = o.dropout_p,
                                    .softcap = o.softcap,
                                    .window = o.window,
                                    .causal = o.is_causal,
                                    .lower_right = o.lower_right};
    if (isnan(o.scale))
        at.scale = 1 / sqrt((double)query->shape[query->ndim - 1]);
    bool half = tern_dtype_is_half(query->dtype);
    /* a trace records only operations that other frameworks have too */
    bool fits = !tern_thread.mode.trace && fits_fused(query, key, value, o.attn_mask);
    if (half && !(fits && keeps_half_precision(query, key)))
        return in_f32(query, key, value, o);
    if (!fits && !tern_thread.mode.trace && warn_composed(query, key) != TERN_OK)
        return NULL;
    if (!fits)
        return tern_attention_composed(query, key, value, o.attn_mask, &at);
    tern_tensor *in[] = {query, key, value, o.attn_mask}, *out[4];
    at.inner = heads_are_inner(query) && tern_attention_tiles_fit(in);
    if (tern_apply_all(&tern_attention_fused, in, 4, &at, sizeof at, out, 4) != TERN_OK)
        return NULL;
    return at.inner ? tern_transpose(out[0], 1, 2) : out[0];
}
