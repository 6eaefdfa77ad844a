/* scores.c -- what sampling options change in the logits of the next token (transformers' logits
 * processors). */
#include "base/error.h"
#include "models/generate.h"

/* Repetition penalty: for tokens of ids, logits x > 0 become x / p, negative ones x p (Keskar et
 * al. 2019). */
static tern_tensor *penalise(tern_tensor *ids, tern_tensor *x, double p)
{
    tern_scalar by = tern_scalar_real(p), zero = tern_scalar_real(0);
    tern_tensor *seen = tern_gather(x, 1, ids);
    tern_tensor *negative = seen ? tern_lt_scalar(seen, zero) : NULL;
    tern_tensor *less =
        negative ? tern_where(negative, tern_mul_scalar(seen, by), tern_div_scalar(seen, by))
                 : NULL;
    return less ? tern_scatter(x, 1, ids, less, TERN_REDUCE_NONE) : NULL;
}

static tern_tensor *drop(tern_tensor *x, tern_tensor *out)
{
    return x && out ? tern_masked_fill(x, out, tern_scalar_real(-INFINITY)) : NULL;
}

/* Keeps the k largest logits and all that equal the k-th. */
static tern_tensor *keep_top_k(tern_tensor *x, int64_t k)
{
    tern_values_indices top;
    if (k >= tern_size(x, 1))
        return x;
    if (tern_topk(x, k, 1, true, true, &top) != TERN_OK)
        return NULL;
    return drop(x, tern_lt(x, tern_narrow(top.values, 1, k - 1, 1)));
}

/* Keeps the smallest set of most probable tokens whose probabilities sum to p (Holtzman et al.
 * 2020). */
static tern_tensor *keep_top_p(tern_tensor *x, double p)
{
    tern_values_indices sorted;
    if (tern_sort(x, 1, false, &sorted) != TERN_OK)
        return NULL;
    tern_tensor *sum = tern_cumsum(tern_softmax(sorted.values, 1), 1);
    tern_tensor *out = sum ? tern_le_scalar(sum, tern_scalar_real(1 - p)) : NULL;
    int64_t last = tern_size(x, 1) - 1;
    if (!out || !tern_fill_(tern_narrow(out, 1, last, 1), tern_scalar_bool(false)))
        return NULL;
    tern_tensor *kept = drop(sorted.values, out);
    return kept ? tern_scatter(x, 1, sorted.indices, kept, TERN_REDUCE_NONE) : NULL;
}

/* Drops tokens whose probability is below p times the largest one. */
static tern_tensor *keep_min_p(tern_tensor *x, double p)
{
    tern_values_indices most;
    tern_tensor *probability = tern_softmax(x, 1);
    if (!probability || tern_max_dim(probability, 1, true, &most) != TERN_OK)
        return NULL;
    return drop(x, tern_lt(probability, tern_mul_scalar(most.values, tern_scalar_real(p))));
}

tern_tensor *models_scores(tern_tensor *ids, tern_tensor *logits, const tern_generate_options *o)
{
    tern_tensor *x = tern_to_dtype(logits, TERN_F32);
    if (x && o->repetition_penalty != 1)
        x = penalise(ids, x, o->repetition_penalty);
    if (!o->do_sample)
        return x;
    if (x && o->temperature != 1)
        x = tern_div_scalar(x, tern_scalar_real(o->temperature));
    if (x && o->top_k > 0)
        x = keep_top_k(x, o->top_k);
    if (x && o->top_p < 1)
        x = keep_top_p(x, o->top_p);
    if (x && o->min_p > 0)
        x = keep_min_p(x, o->min_p);
    return x;
}

tern_status models_check_generate(const tern_generate_options *o, const char *function)
{
    if (o->max_new_tokens < 0 || o->min_new_tokens < 0 || o->num_beams < 1 || o->n_stop < 0)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: max_new_tokens %lld, min_new_tokens %lld, num_beams %lld", function,
                         (long long)o->max_new_tokens, (long long)o->min_new_tokens,
                         (long long)o->num_beams);
    if (!(o->temperature > 0) || !(o->top_p > 0 && o->top_p <= 1) ||
        !(o->min_p >= 0 && o->min_p <= 1) || !(o->repetition_penalty > 0))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: temperature %g and repetition_penalty %g must be above 0, top_p %g "
                         "above 0 and 1 at most, min_p %g from 0 to 1",
                         function, o->temperature, o->repetition_penalty, o->top_p, o->min_p);
    return TERN_OK;
}

tern_tensor *tern_models_process_logits(tern_tensor *ids, tern_tensor *logits,
                                        const tern_generate_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
    tern_generate_options o = tern_read_generate(options);
    if (!ids || !logits)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %s is NULL", function,
                              ids ? "logits" : "ids");
    if (tern_dim(logits) != 2 || tern_dim(ids) != 2 || tern_size(ids, 0) != tern_size(logits, 0))
        return tern_fail_null(TERN_ERR_SHAPE, "%s: ids (N, T) and logits (N, V)", function);
    return models_check_generate(&o, function) == TERN_OK ? models_scores(ids, logits, &o) : NULL;
}
