/* sentence_pieces.c -- writes the tokenizer.json of SentencePiece's two models: BPE by scores, as
 * Llama's, and unigram, as T5's. */
#include "models/tokenizer/maker.h"
#include "base/os.h"
#include <math.h>
#include <stdio.h>

void tk_score_range(tk_maker *m)
{
    m->least = INFINITY;
    m->most = -INFINITY;
    for (size_t i = 0; i < m->v.n; i++)
        if (m->v.types[i] == TK_NORMAL) {
            m->least = fmin(m->least, (double)m->v.scores[i]);
            m->most = fmax(m->most, (double)m->v.scores[i]);
        }
    m->least = isfinite(m->least) ? m->least : 0;
    m->most = isfinite(m->most) ? m->most : 0;
}

#define MARK "\xe2\x96\x81" /* replaces a space */

static void put_spaces(tk_maker *m)
{
    if (m->spaces_once)
        tk_out_text(&m->o,
                    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"^ +| +$\"},\"content\":\"\"},"
                    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"},");
    if (m->space)
        tk_out_text(&m->o, "{\"type\":\"Prepend\",\"prepend\":\"" MARK "\"},");
    tk_out_text(&m->o,
                "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}]}");
}

static void put_spaces_decoder(tk_maker *m)
{
    tk_out_text(&m->o, ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
                       "\"pattern\":{\"String\":\"" MARK "\"},\"content\":\" \"},"
                       "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}");
    tk_out_text(&m->o, m->space || m->spaces_once
                           ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}"
                           : "]}");
}

static void put_charsmap(tk_maker *m)
{
    if (!m->n_charsmap)
        return;
    tk_out_text(&m->o, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    tk_out_base64(&m->o, m->charsmap, m->n_charsmap);
    tk_out_text(&m->o, "\"},");
}

/* Tokens that a merge may form, sorted by descending score. */
typedef struct scored {
    float score;
    uint32_t id;
} scored;

static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1) : x->id > y->id ? 1 : -1;
}

/* Whether a text can be half of a merge: it must be a token, and not a user-defined one. */
static bool is_half(const tk_maker *m, const char *text, size_t n)
{
    int64_t id = tk_vocab_find(&m->v.table, text, n);
    return id >= 0 && (m->v.types[id] == TK_NORMAL || m->v.types[id] == TK_UNUSED);
}

tern_status tk_make_scored_merges(tk_maker *m)
{
    scored *list = malloc((m->v.n + 1) * sizeof *list);
    size_t n = 0;
    bool first = true;
    tk_out_text(&m->o, ",\"merges\":[");
    if (!list)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for the tokenizer", m->where);
    for (size_t i = 0; i < m->v.n; i++)
        if ((m->v.types[i] == TK_NORMAL || m->v.types[i] == TK_UNUSED) && m->v.tokens[i].n)
            list[n++] = (scored){m->v.scores[i], (uint32_t)i};
    qsort(list, n, sizeof *list, by_score);
    for (size_t i = 0; i < n; i++) {
        const tk_text_of *t = &m->v.tokens[list[i].id];
        size_t at = 0;
        if (t->n)
            tk_next(t->text, &at);
        for (; at < t->n; tk_next(t->text, &at))
            if (is_half(m, t->text, at) && is_half(m, t->text + at, t->n - at)) {
                tk_out_merge(&m->o, first, t, at, 0);
                first = false;
            }
    }
    free(list);
    tk_out_text(&m->o, "]}}");
    return m->o.status;
}

tern_status tk_make_llama(tk_maker *m)
{
    tk_make_added(m, false);
    tk_out_text(&m->o, ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    put_charsmap(m);
    put_spaces(m);
    tk_out_text(&m->o, ",\"pre_tokenizer\":null");
    tk_make_post(m, m->add_bos ? m->bos : -1, m->add_eos ? m->eos : -1, false);
    put_spaces_decoder(m);
    tk_out_text(&m->o, ",\"model\":{\"type\":\"BPE\",\"dropout\":null");
    tk_make_unknown(m);
    tk_out_text(&m->o,
                ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":true,"
                "\"byte_fallback\":");
    tk_out_text(&m->o, m->byte_fallback ? "true" : "false");
    tk_out_text(&m->o, ",\"ignore_merges\":false");
    tk_make_vocab(m);
    return tk_make_scored_merges(m);
}

tern_status tk_rank_by_score(tk_maker *m, tern_tokenizer *t)
{
    scored *list = malloc((m->v.n + 1) * sizeof *list);
    uint32_t *ranks = calloc(m->v.n + 1, sizeof *ranks), rank = 0;
    for (size_t i = 0; list && i < m->v.n; i++)
        list[i] = (scored){m->v.scores[i], (uint32_t)i};
    if (list)
        qsort(list, m->v.n, sizeof *list, by_score);
    for (size_t i = 0; list && ranks && i < m->v.n; i++) {
        rank += i && list[i].score != list[i - 1].score;
        ranks[list[i].id] = rank;
    }
    for (size_t i = 0; list && ranks && i < t->model.merges.n_slots; i++)
        if (t->model.merges.slots[i].key)
            t->model.merges.slots[i].rank = ranks[t->model.merges.slots[i].id];
    bool done = list && ranks;
    free(list);
    free(ranks);
    return done ? TERN_OK : tern_fail(TERN_ERR_MEMORY, "%s: no memory for the tokenizer", m->where);
}

/* Tokens that do not occur in texts get a score so low that no split uses them. */
static void put_scores(tk_maker *m)
{
    for (size_t i = 0; i < m->v.n; i++) {
        char score[40];
        double x = m->v.types[i] == TK_NORMAL ? (double)m->v.scores[i]
                   : m->v.types[i] == TK_USER ? (double)m->v.tokens[i].n * m->most - 0.1
                                              : -1e30;
        tern_os_print_real(score, sizeof score, ",%.17g]", x);
        tk_out_text(&m->o, i ? ",[" : "[");
        tk_make_token(m, (int64_t)i);
        tk_out_text(&m->o, score);
    }
}

tern_status tk_make_t5(tk_maker *m)
{
    tk_make_added(m, false);
    tk_out_text(&m->o, ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    put_charsmap(m);
    put_spaces(m);
    tk_out_text(&m->o, ",\"pre_tokenizer\":null");
    tk_make_post(m, m->add_bos ? m->bos : -1, m->add_eos ? m->eos : -1, false);
    put_spaces_decoder(m);
    tk_out_text(&m->o, ",\"model\":{\"type\":\"Unigram\",\"byte_fallback\":");
    tk_out_text(&m->o, m->byte_fallback ? "true" : "false");
    tk_out_text(&m->o, ",\"unk_id\":");
    tk_out_number(&m->o, m->unknown < 0 ? 0 : m->unknown);
    tk_out_text(&m->o, ",\"vocab\":[");
    put_scores(m);
    tk_out_text(&m->o, "]}}");
    return m->o.status;
}
