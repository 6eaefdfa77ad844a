/* attention_composed.c -- attention made of other operations, and its gradients: for what the fused
 * form does not take, and for gradients of gradients. */
#include "ops/attention/attention.h"
#include "ops/matmul/matrix_product.h"
#include <math.h>
#include <tern/ops.h>

/* The causal mask (L, S) as bool: true where key j comes after query i, that is j > i. It is
 * aligned at the top left, as PyTorch's is, also where L and S differ. */
static tern_tensor *future_keys(const tern_tensor *scores)
{
    int64_t queries = scores->shape[scores->ndim - 2], keys = scores->shape[scores->ndim - 1];
    const char *device = tern_device(scores);
    tern_tensor *query = tern_arange(0, (double)queries, 1, TERN_I32, device);
    tern_tensor *key = tern_arange(0, (double)keys, 1, TERN_I32, device);
    return tern_gt(key, tern_unsqueeze(query, 1));
}

/* Scores with the mask applied: a float mask is added, and what a bool mask or causality hides
 * becomes -inf, of which softmax makes a weight of exactly 0. */
static tern_tensor *masked(tern_tensor *scores, tern_tensor *mask, bool causal)
{
    if (!scores || (!mask && !causal))
        return scores;
    if (mask && mask->dtype != TERN_BOOL)
        return tern_add(scores, mask);
    return tern_masked_fill(scores, mask ? tern_logical_not(mask) : future_keys(scores),
                            tern_scalar_real(-INFINITY));
}

/* p = softmax(mask(scale q k')) over the keys. A row in which a mask hides every key is all
 * -inf, and softmax of it NaN: such scores are set to 0 before the softmax and the weights to
 * 0 after it, so that the output is 0 and no gradient flows through the row. */
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

/* out = dropout(softmax(mask(scale q k'))) v, each step recorded by itself. */
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
 *   dv = p' do,   dp = do v',   ds = p (dp - sum p dp),
 *   dq = scale ds k,   dk = scale ds' q
 * where the sum is over the keys. The scale goes into alpha of the last two products. With
 * dropout the weights that were dropped are not reproduced here, so it is refused. */
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
