/* attention_composed.c -- attention made of other operations, and its gradients: for what the fused
 * form does not take, and for gradients of gradients. */
#include "ops/attention/attention.h"
#include "ops/matmul/matrix_product.h"
#include <math.h>
#include <tern/ops.h>

/* True where the key comes after the query. */
static tern_tensor *future_keys(const tern_tensor *scores)
{
    int64_t queries = scores->shape[scores->ndim - 2], keys = scores->shape[scores->ndim - 1];
    const char *device = tern_device(scores);
    tern_tensor *query = tern_arange(0, (double)queries, 1, TERN_I32, device);
    tern_tensor *key = tern_arange(0, (double)keys, 1, TERN_I32, device);
    return tern_gt(key, tern_unsqueeze(query, 1));
}

/* Scores that do not count are -inf: none of their row's weight is left for them. */
static tern_tensor *masked(tern_tensor *scores, tern_tensor *mask, bool causal)
{
    if (!scores || (!mask && !causal))
        return scores;
    if (mask && mask->dtype != TERN_BOOL)
        return tern_add(scores, mask);
    return tern_masked_fill(scores, mask ? tern_logical_not(mask) : future_keys(scores),
                            tern_scalar_real(-INFINITY));
}

/* A query that a mask hides every key from has weights 0, where softmax alone would give NaN, and
 * no gradient flows through it. */
static tern_tensor *weights_of(tern_tensor *query, tern_tensor *key, tern_tensor *mask,
                               const tern_attention_attributes *at)
{
    tern_product product = {.alpha = at->scale, .transpose = {false, true}};
    tern_tensor *scores = masked(tern_product_of(&product, query, key), mask, at->causal);
    if (!mask || !scores || scores->shape[scores->ndim - 1] == 0)
        return tern_softmax(scores, -1);
    tern_tensor *no_key =
        tern_all_dim(tern_eq_scalar(scores, tern_scalar_real(-INFINITY)), -1, true);
    scores = tern_masked_fill(scores, no_key, tern_scalar_int(0));
    return tern_masked_fill(tern_softmax(scores, -1), no_key, tern_scalar_int(0));
}

tern_tensor *tern_attention_composed(tern_tensor *query, tern_tensor *key, tern_tensor *value,
                                     tern_tensor *mask, const tern_attention_attributes *at)
{
    tern_tensor *result = NULL;
    TERN_SCOPE {
        tern_tensor *weights = weights_of(query, key, mask, at);
        if (at->dropout > 0)
            weights = tern_dropout(weights, at->dropout, true);
        result = tern_escape(tern_matmul(weights, value));
    }
    return result;
}

/* With p = softmax(s), s = scale q k':
 *   dv = p' do,   ds = p (do v' - sum p do v'),   dq = scale ds k,   dk = scale ds' q */
tern_status tern_attention_composed_gradient(tern_gradient *g)
{
    const tern_attention_attributes *at = g->attributes;
    if (at->dropout > 0)
        return tern_fail(
            TERN_ERR_UNSUPPORTED,
            "tern_scaled_dot_product_attention: gradients of gradients (create_graph) are "
            "not there with dropout (dropout_p %g)",
            at->dropout);
    tern_tensor *q = g->in[0], *k = g->in[1], *v = g->in[2], *dout = g->dout[0];
    tern_tensor *p = weights_of(q, k, g->in[3], at);
    const tern_product dout_v = {.alpha = 1, .transpose = {false, true}},
                       ds_k = {.alpha = at->scale},
                       ds_q = {.alpha = at->scale, .transpose = {true}},
                       p_dout = {.alpha = 1, .transpose = {true}};
    tern_tensor *dp = tern_product_of(&dout_v, dout, v);
    tern_tensor *ds = tern_mul(p, tern_sub(dp, tern_sum_dim(tern_mul(p, dp), TERN_DIMS(-1), true)));
    g->din[0] = g->needs[0] ? tern_product_of(&ds_k, ds, k) : NULL;
    g->din[1] = g->needs[1] ? tern_product_of(&ds_q, ds, q) : NULL;
    g->din[2] = g->needs[2] ? tern_product_of(&p_dout, p, dout) : NULL;
    return TERN_OK;
}
