/* generate.c -- generation token by token: greedy or sampled, with a callback for streaming. */
#include "models/generate.h"
#include <stdlib.h>
#include <string.h>

static const char function[] = "tern_models_generate";

/* ---- end tokens -------------------------------------------------------------------------- */

/* Returns a field of generation_config.json, or of config.json if the former lacks it. */
static const json_t *setting(const models_model *m, const char *name)
{
    const json_t *x = json_object_get(m->generation, name);
    return x && !json_is_null(x) ? x : json_object_get(m->json, name);
}

static void find_ends(models_generation *g)
{
    const json_t *eos = setting(g->m, "eos_token_id"), *pad = setting(g->m, "pad_token_id");
    if (g->o->eos_token_id.set)
        g->ends[g->n_ends++] = g->o->eos_token_id.value;
    else if (json_is_integer(eos))
        g->ends[g->n_ends++] = (int64_t)json_integer_value(eos);
    for (size_t i = 0; !g->n_ends && i < json_array_size(eos) && i < MODELS_MOST_ENDS; i++)
        g->ends[i] = (int64_t)json_integer_value(json_array_get(eos, i));
    if (!g->n_ends)
        g->n_ends = (int)(json_array_size(eos) < MODELS_MOST_ENDS ? json_array_size(eos)
                                                                  : MODELS_MOST_ENDS);
    g->pad = g->o->pad_token_id.set ? g->o->pad_token_id.value
             : json_is_integer(pad) ? (int64_t)json_integer_value(pad)
             : g->n_ends            ? g->ends[0]
                                    : 0;
    if (g->o->no_eos)
        g->n_ends = 0;
}

static bool ends_in(const int64_t *ids, int64_t n, tern_tensor *stop)
{
    int64_t k = tern_numel(stop);
    const int64_t *text = tern_data(stop);
    return k > 0 && k <= n && memcmp(ids + n - k, text, (size_t)k * sizeof *ids) == 0;
}

bool models_ends(const models_generation *g, const int64_t *ids, int64_t n)
{
    for (int i = 0; i < g->n_ends; i++)
        if (n && ids[n - 1] == g->ends[i])
            return true;
    for (int i = 0; i < g->o->n_stop; i++)
        if (ends_in(ids, n, g->o->stop_sequences[i]))
            return true;
    return false;
}

static tern_status check_stops(const tern_generate_options *o)
{
    for (int i = 0; i < o->n_stop; i++)
        if (!o->stop_sequences || !o->stop_sequences[i] ||
            tern_dtype_of(o->stop_sequences[i]) != TERN_I64 ||
            tern_dim(o->stop_sequences[i]) != 1 || !tern_data(o->stop_sequences[i]))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: stop sequence %d is not (T), int64, on the cpu", function, i);
    return TERN_OK;
}

/* ---- one step ---------------------------------------------------------------------------- */

/* Returns positions counted by the attention mask: masked tokens do not advance the position. */
static tern_tensor *positions(const models_generation *g, int64_t places)
{
    tern_tensor *count = tern_cumsum(tern_to_dtype(g->mask, TERN_I64), 1);
    count = count ? tern_clamp_min_scalar(tern_sub_scalar(count, tern_scalar_int(1)),
                                          tern_scalar_int(0))
                  : NULL;
    return count ? tern_narrow(count, 1, tern_size(count, 1) - places, places) : NULL;
}

tern_tensor *models_next_logits(models_generation *g, tern_tensor *ids)
{
    int64_t past = g->cache ? models_cache_length(g->cache) : 0, t = tern_size(ids, 1);
    tern_tensor *in_ids = past ? tern_narrow(ids, 1, past, t - past) : ids;
    tern_model_inputs in = {.cache = g->cache, .logits_to_keep = 1};
    tern_model_outputs out;
    if (g->encoded) {
        in.decoder_input_ids = in_ids;
        in.encoder_hidden_states = g->encoded;
    } else {
        in.input_ids = in_ids;
        in.attention_mask = g->mask;
        in.position_ids = g->mask ? positions(g, t - past) : NULL;
    }
    if (!in_ids || tern_models_call(g->m->module, &in, &out) != TERN_OK)
        return NULL;
    return tern_to_dtype(tern_squeeze_dim(out.logits, 1), TERN_F32);
}

/* Sets the scores of the tokens in the list `name` of generation_config.json to -inf. */
static tern_tensor *suppress(const models_generation *g, tern_tensor *x, const char *name)
{
    int64_t ids[1024], n = 0, vocab = x ? tern_size(x, 1) : 0;
    const json_t *list = json_object_get(g->m->generation, name);
    for (size_t i = 0; x && i < json_array_size(list) && n < 1024; i++) {
        int64_t id = (int64_t)json_integer_value(json_array_get(list, i));
        if (id >= 0 && id < vocab)
            ids[n++] = id;
    }
    tern_tensor *at = n ? tern_from_data(ids, TERN_SHAPE(n), TERN_I64, tern_device(x)) : NULL;
    return n ? tern_index_fill(x, 1, at, tern_scalar_real(-INFINITY)) : x;
}

tern_tensor *models_next_scores(const models_generation *g, tern_tensor *ids, tern_tensor *logits,
                                int64_t made)
{
    logits = suppress(g, logits, "suppress_tokens");
    if (made == 0)
        logits = suppress(g, logits, "begin_suppress_tokens");
    tern_tensor *x = logits ? models_scores(ids, logits, g->o) : NULL;
    if (made >= g->o->min_new_tokens)
        return x;
    for (int i = 0; x && i < g->n_ends; i++)
        if (!tern_fill_(tern_narrow(x, 1, g->ends[i], 1), tern_scalar_real(-INFINITY)))
            return NULL;
    return x;
}

static tern_tensor *choose(const models_generation *g, tern_tensor *scores)
{
    if (!scores)
        return NULL;
    if (!g->o->do_sample)
        return tern_argmax_dim(scores, 1, false);
    tern_tensor *p = tern_softmax(scores, 1);
    p = p ? tern_multinomial(p, 1, false) : NULL;
    return p ? tern_squeeze_dim(p, 1) : NULL;
}

tern_status models_lengthen_mask(models_generation *g)
{
    if (!g->mask)
        return TERN_OK;
    tern_tensor *both[] = {g->mask, tern_new_ones(g->mask, TERN_SHAPE(tern_size(g->mask, 0), 1))};
    tern_tensor *longer = tern_keep(tern_cat(both, 2, 1));
    if (!longer)
        return tern_last_status();
    tern_release(g->mask);
    g->mask = longer;
    return TERN_OK;
}

/* ---- generation loop --------------------------------------------------------------------- */

/* Replaces the next token of finished rows by pad, updates done[] (host memory), and sets *all if
 * every row is finished. Returns next, or NULL after an error. */
static tern_tensor *settle(const models_generation *g, tern_tensor *ids, tern_tensor *next,
                           bool *done, bool *all)
{
    int64_t rows = tern_size(ids, 0), t = tern_size(ids, 1);
    *all = false;
    if (!g->n_ends && !g->o->n_stop)
        return next;
    int64_t *text = malloc((size_t)(rows * (t + 1)) * sizeof *text);
    tern_tensor *both[] = {ids, tern_unsqueeze(next, 1)};
    tern_tensor *whole = g->o->n_stop ? tern_cat(both, 2, 1) : both[1];
    int64_t n = whole ? tern_size(whole, 1) : 0;
    bool changed = false,
         good = text && whole &&
                tern_copy_to_host(whole, text, (size_t)(rows * n) * sizeof *text) == TERN_OK;
    *all = good;
    for (int64_t i = 0; i < rows && good; i++) {
        int64_t *last = &text[i * n + n - 1];
        changed = changed || (done[i] && *last != g->pad);
        *last = done[i] ? g->pad : *last;
        done[i] = done[i] || models_ends(g, text + i * n, n);
        *all = *all && done[i];
        text[i] = *last;
    }
    if (changed && good)
        next = tern_from_data(text, TERN_SHAPE(rows), TERN_I64, tern_device(ids));
    free(text);
    return good ? next : NULL;
}

/* Generates one token for each row: *ids is released and replaced by ids with the new column. */
static tern_status step(models_generation *g, tern_tensor **ids, int64_t made, bool *done,
                        bool *stop)
{
    TERN_SCOPE_HERE;
    tern_tensor *logits = models_next_logits(g, *ids);
    tern_tensor *next = choose(g, models_next_scores(g, *ids, logits, made));
    next = next ? settle(g, *ids, next, done, stop) : NULL;
    if (!next)
        return tern_last_status();
    tern_tensor *both[] = {*ids, tern_to_dtype(tern_unsqueeze(next, 1), tern_dtype_of(*ids))};
    tern_tensor *longer = tern_keep(tern_cat(both, 2, 1));
    if (!longer)
        return tern_last_status();
    tern_release(*ids);
    *ids = longer;
    if (g->o->on_token && !g->o->on_token(next, g->o->user))
        *stop = true;
    return models_lengthen_mask(g);
}

static tern_tensor *rows_of(models_generation *g, tern_tensor *ids)
{
    bool *done = calloc((size_t)tern_size(ids, 0) + 1, sizeof *done), stop = false;
    tern_status status = done ? TERN_OK : tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    int64_t most = g->o->max_new_tokens, places = g->m->c.places - tern_size(ids, 1);
    if (g->m->kind->learned && most > places)
        most = places;
    tern_keep(ids);
    for (int64_t i = 0; status == TERN_OK && !stop && i < most; i++)
        status = step(g, &ids, i, done, &stop);
    free(done);
    tern_tensor *result = status == TERN_OK ? tern_detach(ids) : NULL;
    tern_release(ids);
    return result;
}

/* ---- the function ------------------------------------------------------------------------ */

/* Runs the encoder and returns the first token ids of the decoder. */
static tern_tensor *start_decoder(models_generation *g, tern_tensor *input)
{
    const json_t *start = setting(g->m, "decoder_start_token_id");
    tern_model_inputs in = {.input_ids = input, .input_features = input};
    tern_tensor *given = g->o->decoder_input_ids;
    g->encoded = tern_keep(g->m->kind->encode(g->m, &in));
    if (!g->encoded)
        return NULL;
    if (given)
        return tern_contiguous(
            tern_expand(given, TERN_SHAPE(tern_size(input, 0), tern_size(given, 1))));
    return tern_full(TERN_SHAPE(tern_size(input, 0), 1),
                     tern_scalar_int((int64_t)json_integer_value(start)), TERN_I64,
                     tern_device(input));
}

static tern_status check(const models_generation *g, const tern_tensor *input)
{
    const tern_generate_options *o = g->o;
    TRY(models_check_generate(o, function));
    TRY(check_stops(o));
    if (!input || !g->m->kind->generates)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s", function,
                         input ? "the model writes no text" : "input_ids is NULL");
    if (!g->m->kind->encode && (tern_dim(input) != 2 || tern_size(input, 1) < 1))
        return tern_fail(TERN_ERR_SHAPE, "%s: input_ids are (N, T) of one token and more",
                         function);
    if (o->attention_mask && (tern_dim(o->attention_mask) != 2 ||
                              tern_size(o->attention_mask, 0) != tern_size(input, 0) ||
                              tern_size(o->attention_mask, 1) != tern_size(input, 1)))
        return tern_fail(TERN_ERR_SHAPE, "%s: attention_mask is not of the shape of input_ids",
                         function);
    if (o->decoder_input_ids && (!g->m->kind->encode || tern_dim(o->decoder_input_ids) != 2 ||
                                 tern_size(o->decoder_input_ids, 1) < 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: decoder_input_ids are (N, T), of a model with an encoder", function);
    if (o->num_beams > 1 && (o->on_token || o->do_sample))
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: beams are neither sampled nor streamed",
                         function);
    return TERN_OK;
}

static tern_tensor *run(models_generation *g, tern_tensor *input)
{
    tern_tensor *ids = input;
    find_ends(g);
    if (g->o->attention_mask)
        g->mask = tern_keep(g->o->attention_mask);
    if (!g->o->no_cache) {
        g->cache = tern_models_cache(g->m->module, 0);
        if (!g->cache)
            return NULL;
    }
    if (g->m->kind->encode)
        ids = start_decoder(g, input);
    if (!ids)
        return NULL;
    return g->o->num_beams > 1 ? models_beams(g, ids) : rows_of(g, ids);
}

/* The training flags of all modules, parents first; restored in the same order. */
typedef struct modes {
    bool *training;
    int count;
} modes;

static tern_status note_mode(const char *path, tern_module *m, void *user)
{
    modes *all = user;
    (void)path;
    bool *longer = realloc(all->training, (size_t)all->count + 1);
    if (!longer)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    all->training = longer;
    longer[all->count++] = tern_nn_is_training(m);
    return TERN_OK;
}

static tern_status put_back(const char *path, tern_module *m, void *user)
{
    modes *all = user;
    (void)path;
    if (all->training)
        tern_nn_train(m, all->training[all->count++]);
    return TERN_OK;
}

static tern_status evaluate(tern_module *model, modes *before)
{
    tern_status status = tern_nn_each_module(model, note_mode, before);
    if (status != TERN_OK) {
        free(before->training);
        before->training = NULL;
        return status;
    }
    return tern_nn_eval(model) ? TERN_OK : tern_last_status();
}

tern_tensor *tern_models_generate(tern_module *model, tern_tensor *input_ids,
                                  const tern_generate_options *options)
{
    tern_generate_options o = tern_read_generate(options);
    models_generation g = {.m = models_of(model, function), .o = &o};
    tern_tensor *ids = NULL;
    if (!g.m || check(&g, input_ids) != TERN_OK)
        return NULL;
    modes before = {0};
    if (evaluate(model, &before) == TERN_OK)
        TERN_NO_GRAD
            TERN_SCOPE {
                ids = run(&g, input_ids);
                ids = ids ? tern_escape(ids) : NULL;
            }
    before.count = 0;
    tern_nn_each_module(model, put_back, &before);
    free(before.training);
    tern_release(g.encoded);
    tern_release(g.mask);
    tern_kv_cache_free(g.cache);
    return ids;
}
