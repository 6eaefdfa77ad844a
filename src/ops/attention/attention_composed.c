/* attention_composed.c -- attention composed of other operations, and its gradients: for inputs
 * that the fused form does not support, and for gradients of gradients. */
#include "ops/attention/attention.h"
#include "ops/matmul/matrix_product.h"
#include <math.h>
#include <tern/ops.h>

/* Returns which keys are outside of the band, (L, S) as bool: true where j > i + after or j < i -
 * before. */
static tern_tensor *outside(const tern_tensor *scores, const tern_attention_attributes *at)
{
    int64_t queries = scores->shape[scores->ndim - 2], keys = scores->shape[scores->ndim - 1];
    const char *device = tern_device(scores);
    tern_tensor *query = tern_arange(0, (double)queries, 1, TERN_I32, device);
    tern_tensor *key = tern_arange(0, (double)keys, 1, TERN_I32, device);
    tern_attention_band band = tern_attention_band_of(at, queries, keys);
    tern_tensor *ahead = tern_sub(key, tern_unsqueeze(query, 1));
    tern_tensor *later = tern_gt_scalar(ahead, tern_scalar_int(band.after));
    if (!at->window)
        return later;
    return tern_logical_or(later, tern_lt_scalar(ahead, tern_scalar_int(-band.before)));
}

/* Returns the scores with the mask applied: a float mask is added, and scores hidden by a bool
 * mask, causality or the window become -inf, for which softmax gives a weight of exactly 0. */
static tern_tensor *masked(tern_tensor *scores, tern_tensor *mask,
                           const tern_attention_attributes *at)
{
    const tern_scalar hidden = tern_scalar_real(-INFINITY);
    if (scores && (at->causal || at->window))
        scores = tern_masked_fill(scores, outside(scores, at), hidden);
    if (!scores || !mask)
        return scores;
    return mask->dtype == TERN_BOOL ? tern_masked_fill(scores, tern_logical_not(mask), hidden)
                                    : tern_add(scores, mask);
}

/* Returns s = scale q k', or cap tanh(s / cap) with softcap. */
static tern_tensor *scores_of(tern_tensor *query, tern_tensor *key,
                              const tern_attention_attributes *at)
{
    tern_product product = {.alpha = at->scale, .transpose = {false, true}};
    tern_tensor *scores = tern_product_of(&product, query, key);
    if (at->softcap == 0)
        return scores;
    const tern_scalar cap = tern_scalar_real(at->softcap);
    return tern_mul_scalar(tern_tanh(tern_div_scalar(scores, cap)), cap);
}

/* Returns p = softmax(mask(scores)) over the keys. If a mask hides every key of a row, all its
 * scores are -inf, for which softmax gives NaN: such scores are set to 0 before the softmax and the
 * weights to 0 after it, so that the output is 0 and no gradient flows through the row. */
static tern_tensor *weights_of(tern_tensor *scores, tern_tensor *mask,
                               const tern_attention_attributes *at)
{
    scores = masked(scores, mask, at);
    bool may_see_none = mask || at->window || at->lower_right;
    if (!may_see_none || !scores || scores->shape[scores->ndim - 1] == 0)
        return tern_softmax(scores, -1);
    tern_tensor *no_key =
        tern_all_dim(tern_eq_scalar(scores, tern_scalar_real(-INFINITY)), -1, true);
    scores = tern_masked_fill(scores, no_key, tern_scalar_int(0));
    return tern_masked_fill(tern_softmax(scores, -1), no_key, tern_scalar_int(0));
}

/* Returns dropout(softmax(mask(scale q k'))) v. Each step is an operation recorded for backward. */
tern_tensor *tern_attention_composed(tern_tensor *query, tern_tensor *key, tern_tensor *value,
                                     tern_tensor *mask, const tern_attention_attributes *at)
{
    tern_tensor *result = NULL;
    TERN_SCOPE {
        tern_tensor *weights = weights_of(scores_of(query, key, at), mask, at);
        if (at->dropout > 0)
            weights = tern_dropout(weights, at->dropout, true);
        result = tern_escape(tern_matmul(weights, value));
    }
    return result;
}

/* With p = softmax(s), s = scale q k', and sums over the keys:
 *   dv = p' do,   dp = do v',   ds = p (dp - sum p dp),
 *   dq = scale ds k,   dk = scale ds' q
 * The scale is alpha of the last two products. With softcap, s = cap tanh(r / cap), ds is
 * multiplied by 1 - (s / cap)^2. Which weights were dropped is not reproduced here, so dropout is
 * refused. */
tern_status tern_attention_composed_gradient(tern_gradient *g)
{
    const tern_attention_attributes *at = g->attributes;
    if (at->dropout > 0)
        return tern_fail(
            TERN_ERR_UNSUPPORTED,
            "tern_scaled_dot_product_attention: gradients of gradients (create_graph) are "
            "not there with dropout (dropout_p %g)",
            at->dropout);
    tern_tensor *q = g->in[0], *k = g->in[1], *v = g->in[2];
    tern_tensor *dout = at->inner ? tern_transpose(g->dout[0], 1, 2) : g->dout[0];
    tern_tensor *s = scores_of(q, k, at), *p = weights_of(s, g->in[3], at);
    const tern_product dout_v = {.alpha = 1, .transpose = {false, true}},
                       ds_k = {.alpha = at->scale},
                       ds_q = {.alpha = at->scale, .transpose = {true}},
                       p_dout = {.alpha = 1, .transpose = {true}};
    tern_tensor *dp = tern_product_of(&dout_v, dout, v);
    tern_tensor *ds = tern_mul(p, tern_sub(dp, tern_sum_dim(tern_mul(p, dp), TERN_DIMS(-1), true)));
    if (at->softcap != 0) {
        const double factor = 1 / (at->softcap * at->softcap);
        tern_tensor *square = tern_mul_scalar(tern_mul(s, s), tern_scalar_real(factor));
        ds = tern_sub(ds, tern_mul(ds, square));
    }
    g->din[0] = g->needs[0] ? tern_product_of(&ds_k, ds, k) : NULL;
    g->din[1] = g->needs[1] ? tern_product_of(&ds_q, ds, q) : NULL;
    g->din[2] = g->needs[2] ? tern_product_of(&p_dout, p, dout) : NULL;
    return TERN_OK;
}
