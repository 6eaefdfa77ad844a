/* multi_head_attention.c -- input projections, attention of each head, and the output
 * projection. */
#include "tensor/op.h"
#include <math.h>
#include <tern/ops.h>

static const char *const name = "tern_multi_head_attention_forward";

typedef tern_multi_head_attention_forward_options settings;

/* One call: its options, its sizes, and its tensors, which are set during the call. */
typedef struct attention {
    const settings *o;
    int64_t batch, queries, keys, heads, width;
    bool batched;
    int extra;              /* number of keys that bias_k and add_zero_attn add */
    tern_tensor *q, *k, *v; /* (N, heads, length, E / heads) */
    tern_tensor *mask;      /* true = attend, or additive; broadcasts to the scores */
    bool causal;            /* causal attention without a mask */
    tern_tensor *out, *weights;
} attention;

/* ---- checks, with PyTorch's messages -------------------------------------------------------- */

/* Checks that inputs are (L, N, E), or (L, E) without a batch, and that masks have matching
 * dims. */
static tern_status check_dims(const attention *a, const tern_tensor *query, const tern_tensor *key,
                              const tern_tensor *value)
{
    const tern_tensor *padding = a->o->key_padding_mask, *mask = a->o->attn_mask;
    const char *kind = a->batched ? "batched (3-D)" : "unbatched (2-D)";
    int n = a->batched ? 3 : 2;
    if (query->ndim != 2 && query->ndim != 3)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: query should be unbatched 2D or batched 3D tensor but received %d-D "
                         "query tensor",
                         name, query->ndim);
    if (key->ndim != n || value->ndim != n)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: For %s `query`, expected `key` and `value` to be %d-D but found %d-D "
                         "and %d-D tensors respectively",
                         name, kind, n, key->ndim, value->ndim);
    if (padding && padding->ndim != n - 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: For %s `query`, expected `key_padding_mask` to be `None` or %d-D but "
                         "found %d-D tensor instead",
                         name, kind, n - 1, padding->ndim);
    if (mask && mask->ndim != 2 && mask->ndim != 3)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: For %s `query`, expected `attn_mask` to be `None`, 2-D or 3-D but "
                         "found %d-D tensor instead",
                         name, kind, mask->ndim);
    return TERN_OK;
}

/* Checks that the embedding dim fits the projections and is divisible by the number of heads, and
 * that key and value have the same length and batch, and the same width if one packed weight
 * projects both. */
static tern_status check_sizes(const attention *a, const tern_tensor *query, const tern_tensor *key,
                               const tern_tensor *value)
{
    const settings *o = a->o;
    const tern_tensor *w = o->in_proj_weight ? o->in_proj_weight : o->q_proj_weight;
    int64_t expected = w->shape[w->ndim - 1];
    bool alike = true;
    if (a->width != expected)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: was expecting embedding dimension of %lld, but got %lld", name,
                         (long long)expected, (long long)a->width);
    if (a->heads < 1 || a->width % a->heads)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: embed_dim %lld not divisible by num_heads %lld",
                         name, (long long)a->width, (long long)a->heads);
    for (int d = 0; d < key->ndim - (o->in_proj_weight ? 0 : 1); d++)
        alike &= key->shape[d] == value->shape[d];
    if (a->batched)
        alike &= key->shape[o->batch_first ? 0 : 1] == a->batch;
    if (!alike)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: key shape %s does not match value shape %s and query shape %s", name,
                         TERN_TENSOR_TEXT(key), TERN_TENSOR_TEXT(value), TERN_TENSOR_TEXT(query));
    return TERN_OK;
}

/* Checks that attn_mask is (L, S), or (N heads, L, S) with one mask for each head, and
 * key_padding_mask (N, S). */
static tern_status check_masks(const attention *a)
{
    const tern_tensor *padding = a->o->key_padding_mask, *mask = a->o->attn_mask;
    if (mask && a->o->is_causal)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: Explicit attn_mask should not be set when is_causal=True", name);
    if (padding && padding->dtype != TERN_BOOL && !tern_dtype_is_floating_point(padding->dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: only bool and floating types of key_padding_mask are supported, not "
                         "%s",
                         name, tern_dtype_name(padding->dtype));
    if (padding && (padding->shape[padding->ndim - 1] != a->keys ||
                    (a->batched && padding->shape[0] != a->batch)))
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: expecting key_padding_mask shape of (%lld, %lld), but got %s", name,
                         (long long)a->batch, (long long)a->keys, TERN_TENSOR_TEXT(padding));
    if (!mask)
        return TERN_OK;
    if (mask->dtype != TERN_BOOL && mask->dtype != TERN_U8 &&
        !tern_dtype_is_floating_point(mask->dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: Only float, byte, and bool types are supported for attn_mask, not %s",
                         name, tern_dtype_name(mask->dtype));
    tern_shape whole = TERN_SHAPE(a->batch * a->heads, a->queries, a->keys);
    tern_shape flat = TERN_SHAPE(a->queries, a->keys), own = tern_shape_of(mask);
    if (!tern_shape_equal(&own, mask->ndim == 2 ? &flat : &whole))
        return tern_fail(
            TERN_ERR_SHAPE, "%s: The shape of the %dD attn_mask is %s, but should be %s.", name,
            mask->ndim, TERN_TENSOR_TEXT(mask), TERN_SHAPE_TEXT(mask->ndim == 2 ? &flat : &whole));
    return TERN_OK;
}

/* Checks static_k or static_v, (N heads, S, E / heads), which replace projected keys or values. */
static tern_status check_static(const attention *a, const tern_tensor *x, const char *which)
{
    if (!x)
        return TERN_OK;
    if (a->o->bias_k || a->o->bias_v)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: bias cannot be added to static %s.", name, which);
    if (x->ndim != 3 || x->shape[0] != a->batch * a->heads || x->shape[2] != a->width / a->heads)
        return tern_fail(TERN_ERR_SHAPE, "%s: expecting static_%c of (%lld, *, %lld), but got %s",
                         name, *which, (long long)(a->batch * a->heads),
                         (long long)(a->width / a->heads), TERN_TENSOR_TEXT(x));
    return TERN_OK;
}

static tern_status check(attention *a, const tern_tensor *query, const tern_tensor *key,
                         const tern_tensor *value)
{
    const settings *o = a->o;
    bool separate = o->q_proj_weight && o->k_proj_weight && o->v_proj_weight;
    if (!query || !key || !value || !o->out_proj_weight || (!o->in_proj_weight && !separate))
        return tern_fail_argument_null(name, !query                ? "query"
                                             : !key                ? "key"
                                             : !value              ? "value"
                                             : !o->out_proj_weight ? "out_proj_weight"
                                                                   : "in_proj_weight");
    a->batched = query->ndim == 3;
    TERN_TRY(check_dims(a, query, key, value));
    int length = a->batched && o->batch_first;
    a->batch = a->batched ? query->shape[o->batch_first ? 0 : 1] : 1;
    a->queries = query->shape[length];
    a->keys = o->static_k && o->static_k->ndim == 3 ? o->static_k->shape[1] : key->shape[length];
    a->width = query->shape[query->ndim - 1];
    a->heads = o->num_heads;
    a->extra = (o->bias_k && o->bias_v) + o->add_zero_attn;
    TERN_TRY(check_sizes(a, query, key, value));
    TERN_TRY(check_static(a, o->static_k, "key"));
    TERN_TRY(check_static(a, o->static_v, "value"));
    return check_masks(a);
}

/* ---- projections --------------------------------------------------------------------------- */

/* Returns x W' + b with parts first to first + n - 1 of the packed weight (3 E, E) and bias (3 E),
 * whose parts are q, k, v. Weights that are not packed are projected one at a time. */
static tern_tensor *project(const attention *a, tern_tensor *x, int first, int n)
{
    const settings *o = a->o;
    tern_tensor *w = o->in_proj_weight, *b = o->in_proj_bias;
    int64_t at = first * a->width, rows = n * a->width;
    if (!w)
        w = first == 0 ? o->q_proj_weight : first == 1 ? o->k_proj_weight : o->v_proj_weight;
    else if (n < 3)
        w = tern_narrow(w, 0, at, rows);
    if (b && n < 3 && !(b = tern_narrow(b, 0, at, rows)))
        return NULL; /* narrow failed; NULL would mean no bias */
    return tern_linear(x, w, b);
}

/* Computes q, k and v. Self-attention projects all three with one product over the packed weight;
 * attention with the same key and value projects these two with one product. */
static tern_status project_all(attention *a, tern_tensor *query, tern_tensor *key,
                               tern_tensor *value)
{
    tern_tensor *part[3] = {NULL, NULL, NULL};
    bool packed = a->o->in_proj_weight && key == value;
    if (packed && query == key) {
        tern_split(project(a, query, 0, 3), a->width, -1, part, 3);
    } else if (packed) {
        part[0] = project(a, query, 0, 1);
        tern_split(project(a, key, 1, 2), a->width, -1, part + 1, 2);
    } else {
        part[0] = project(a, query, 0, 1);
        part[1] = project(a, key, 1, 1);
        part[2] = project(a, value, 2, 1);
    }
    a->q = part[0];
    a->k = part[1];
    a->v = part[2];
    return part[0] && part[1] && part[2] ? TERN_OK : tern_last_status();
}

/* Returns x with bias_k or bias_v (1, 1, E) appended as one more key or value at the end of each
 * sequence. */
static tern_tensor *append_bias(const attention *a, tern_tensor *x, tern_tensor *bias)
{
    int length = a->o->batch_first ? 1 : 0;
    tern_shape shape = TERN_SHAPE(length ? a->batch : 1, length ? 1 : a->batch, a->width);
    tern_tensor *both[] = {x, tern_expand(tern_to_dtype(bias, tern_dtype_of(x)), shape)};
    return tern_cat(both, 2, length);
}

/* Returns (N, L, E) or (L, N, E) as a view (N, heads, L, E / heads): head h has the elements of the
 * embedding from h E / heads on. */
static tern_tensor *to_heads(const attention *a, tern_tensor *x)
{
    if (!x)
        return NULL;
    tern_shape cut = TERN_SHAPE(x->shape[0], x->shape[1], a->heads, a->width / a->heads);
    tern_shape order = a->o->batch_first ? TERN_DIMS(0, 2, 1, 3) : TERN_DIMS(1, 2, 0, 3);
    return tern_permute(tern_view(x, cut), order);
}

/* The inverse of to_heads: (N, heads, L, E / heads) -> (N, L, E) or (L, N, E). */
static tern_tensor *from_heads(const attention *a, tern_tensor *x)
{
    bool batch_first = a->o->batch_first;
    tern_shape order = batch_first ? TERN_DIMS(0, 2, 1, 3) : TERN_DIMS(2, 0, 1, 3);
    tern_shape shape = TERN_SHAPE(batch_first ? a->batch : a->queries,
                                  batch_first ? a->queries : a->batch, a->width);
    return tern_reshape(tern_permute(x, order), shape);
}

/* Returns (N heads, S, E / heads) as (N, heads, S, E / heads). */
static tern_tensor *static_heads(const attention *a, tern_tensor *x)
{
    return tern_reshape(x, TERN_SHAPE(a->batch, a->heads, x->shape[1], x->shape[2]));
}

/* Returns x with one more key or value that is 0, for add_zero_attn: a query may attend to
 * nothing. */
static tern_tensor *append_zeros(const attention *a, tern_tensor *x)
{
    tern_shape one = TERN_SHAPE(a->batch, a->heads, 1, a->width / a->heads);
    tern_tensor *both[] = {x, x ? tern_new_zeros(x, one) : NULL};
    return tern_cat(both, 2, 2);
}

/* Splits q, k and v into heads and appends the keys of bias_k and add_zero_attn, in PyTorch's
 * order: the bias before the split, zeros after it. */
static tern_status split_heads(attention *a)
{
    const settings *o = a->o;
    if (o->bias_k && o->bias_v) {
        a->k = append_bias(a, a->k, o->bias_k);
        a->v = append_bias(a, a->v, o->bias_v);
    }
    a->q = to_heads(a, a->q);
    a->k = o->static_k ? static_heads(a, o->static_k) : to_heads(a, a->k);
    a->v = o->static_v ? static_heads(a, o->static_v) : to_heads(a, a->v);
    if (o->add_zero_attn) {
        a->k = append_zeros(a, a->k);
        a->v = append_zeros(a, a->v);
    }
    return a->q && a->k && a->v ? TERN_OK : tern_last_status();
}

/* ---- masks --------------------------------------------------------------------------------- */

/* Returns a mask as numbers to add to the scores. In a bool mask here, true means that a key is
 * hidden, which becomes -inf. */
static tern_tensor *additive_mask(const attention *a, tern_tensor *mask)
{
    if (!mask || mask->dtype != TERN_BOOL)
        return tern_to_dtype(mask, a->q->dtype);
    tern_tensor *zeros = tern_zeros(tern_shape_of(mask), a->q->dtype, tern_device(mask));
    return tern_masked_fill(zeros, mask, tern_scalar_real(-INFINITY));
}

/* Returns one mask that hides what x or y hides: the logical or of two bool masks, otherwise the
 * sum of their additive forms. Either may be NULL. */
static tern_tensor *combined_masks(const attention *a, tern_tensor *x, tern_tensor *y)
{
    if (!x || !y)
        return x ? x : y;
    if (x->dtype == TERN_BOOL && y->dtype == TERN_BOOL)
        return tern_logical_or(x, y);
    return tern_add(additive_mask(a, x), additive_mask(a, y));
}

/* Returns the causal mask (L, S), which is true where a key is hidden, j > i. */
static tern_tensor *future_keys(const attention *a)
{
    const char *device = tern_device(a->q);
    tern_tensor *query = tern_arange(0, (double)a->queries, 1, TERN_I32, device);
    tern_tensor *key = tern_arange(0, (double)a->keys, 1, TERN_I32, device);
    return tern_gt(key, tern_unsqueeze(query, 1));
}

/* Merges attn_mask and key_padding_mask into the mask of tern_scaled_dot_product_attention, which
 * broadcasts to (N, heads, L, S). In that mask true means attend, here it means hidden, hence the
 * logical not at the end. is_causal stays a flag, which is cheap in the fused form, unless a mask
 * is needed anyway. The appended keys are hidden from no query: the mask is padded with 0. */
static tern_status merge_masks(attention *a, bool wants_weights)
{
    const uint64_t failures = tern_failures();
    tern_tensor *mask = a->o->attn_mask, *padding = a->o->key_padding_mask;
    if (mask && mask->dtype == TERN_U8)
        mask = tern_to_dtype(mask, TERN_BOOL);
    if (mask && mask->ndim == 3)
        mask = tern_reshape(mask, TERN_SHAPE(a->batch, a->heads, a->queries, a->keys));
    if (padding)
        padding = tern_reshape(padding, TERN_SHAPE(a->batch, 1, 1, a->keys));
    a->causal = a->o->is_causal && !padding && !a->extra && !wants_weights;
    if (a->o->is_causal && !a->causal)
        mask = future_keys(a);
    mask = combined_masks(a, mask, padding);
    if (mask && a->extra) /* appended keys are visible to all queries */
        mask = tern_pad(mask, TERN_SHAPE(0, a->extra), NULL);
    if (mask)
        a->mask = mask->dtype == TERN_BOOL ? tern_logical_not(mask) : additive_mask(a, mask);
    return tern_failed_since(failures);
}

/* ---- attention ----------------------------------------------------------------------------- */

/* Returns out = p v with p = dropout(softmax((q / sqrt(E / heads)) k' + mask)). It is composed of
 * single operations because the weights are a result too: for each head, or averaged over the
 * heads. */
static tern_tensor *attend_with_weights(attention *a)
{
    double scale = 1 / sqrt((double)(a->width / a->heads));
    tern_tensor *x =
        tern_matmul(tern_mul_scalar(a->q, tern_scalar_real(scale)), tern_transpose(a->k, -2, -1));
    if (a->mask && a->mask->dtype == TERN_BOOL)
        x = tern_masked_fill(x, tern_logical_not(a->mask), tern_scalar_real(-INFINITY));
    else if (a->mask)
        x = tern_add(x, a->mask);
    x = tern_dropout(tern_softmax(x, -1), a->o->dropout_p, a->o->dropout_p > 0);
    a->weights = a->o->no_average_attn_weights ? x : tern_mean_dim(x, TERN_DIMS(1), false);
    return tern_matmul(x, a->v);
}

/* Runs the projections, attention by heads, and the output projection y W_o' + b_o. An input
 * without a batch becomes a batch of one. Query, key and value that are the same tensor stay the
 * same, since self-attention is projected with one product. */
static tern_status run(attention *a, tern_tensor *query, tern_tensor *key, tern_tensor *value,
                       bool wants_weights)
{
    const settings *o = a->o;
    if (!a->batched) { /* add a batch dim of size 1 */
        bool same[] = {query == key, key == value};
        int batch = o->batch_first ? 0 : 1;
        query = tern_unsqueeze(query, batch);
        key = same[0] ? query : tern_unsqueeze(key, batch);
        value = same[1] ? key : tern_unsqueeze(value, batch);
    }
    TERN_TRY(project_all(a, query, key, value));
    TERN_TRY(split_heads(a));
    TERN_TRY(merge_masks(a, wants_weights));
    tern_scaled_dot_product_attention_options how = {
        .attn_mask = a->mask, .dropout_p = o->dropout_p, .is_causal = a->causal};
    tern_tensor *y = wants_weights ? attend_with_weights(a)
                                   : tern_scaled_dot_product_attention(a->q, a->k, a->v, &how);
    a->out = tern_linear(from_heads(a, y), o->out_proj_weight, o->out_proj_bias);
    if (!a->batched) {
        a->out = tern_squeeze_dim(a->out, o->batch_first ? 0 : 1);
        a->weights = a->weights ? tern_squeeze_dim(a->weights, 0) : NULL;
    }
    return a->out && (a->weights || !wants_weights) ? TERN_OK : tern_last_status();
}

/* Computes MultiHead(q, k, v) = concat(head_1, ..., head_h) W_o', head_i = attention(q W_q', k
 * W_k', v W_v') of the i-th part of the embedding (Vaswani et al. 2017). */
tern_tensor *tern_multi_head_attention_forward(tern_tensor *query, tern_tensor *key,
                                               tern_tensor *value, const settings *options,
                                               tern_tensor **weights)
{
    if (weights)
        *weights = NULL;
    if (!options) {
        tern_fail_argument_null(name, "options");
        return NULL;
    }
    attention a = {.o = options};
    if (check(&a, query, key, value) != TERN_OK)
        return NULL;
    tern_tensor *out = NULL;
    TERN_SCOPE {
        if (run(&a, query, key, value, weights) == TERN_OK) {
            out = tern_escape(a.out);
            if (weights)
                *weights = tern_escape(a.weights);
        }
    }
    return out;
}
