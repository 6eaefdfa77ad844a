/* sentence_pieces.c -- tokenizers that GGUFs call llama and t5, of SentencePiece, and bert, of word pieces. */
#include "models/gguf/maker.h"
#include <stdio.h>
#include <string.h>

/* ---- llama and t5: SentencePiece --------------------------------------------------------- */

static tern_status read_spaces(gguf_maker *m)
{
    TRY(gguf_flag(m->g, "tokenizer.ggml.add_space_prefix", true, &m->space));
    TRY(gguf_flag(m->g, "tokenizer.ggml.remove_extra_whitespaces", false, &m->spaces_once));
    if (!m->v.scores)
        return gguf_bad(m->g, "there is no `tokenizer.ggml.scores`, which a tokenizer of %s has",
                        m->v.model);
    m->least = INFINITY;
    m->most = -INFINITY;
    for (size_t i = 0; i < m->v.n; i++)
        if (m->v.types[i] == GGUF_NORMAL) {
            m->least = fmin(m->least, (double)m->v.scores[i]);
            m->most = fmax(m->most, (double)m->v.scores[i]);
        }
    m->least = isfinite(m->least) ? m->least : 0;
    m->most = isfinite(m->most) ? m->most : 0;
    return TERN_OK;
}

#define MARK "\xe2\x96\x81" /* stands for a space */

static void put_spaces(gguf_maker *m)
{
    if (m->spaces_once)
        gguf_put(&m->o,
                 "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"^ +| +$\"},\"content\":\"\"},"
                 "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"},");
    if (m->space)
        gguf_put(&m->o, "{\"type\":\"Prepend\",\"prepend\":\"" MARK "\"},");
    gguf_put(&m->o,
             "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}]}");
}

static void put_spaces_decoder(gguf_maker *m)
{
    gguf_put(&m->o, ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
                    "\"pattern\":{\"String\":\"" MARK "\"},\"content\":\" \"},"
                    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}");
    gguf_put(&m->o, m->space || m->spaces_once
                        ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}"
                        : "]}");
}

/* Tokens that a merge may give, the highest score first. */
typedef struct scored {
    float score;
    uint32_t id;
} scored;

static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1) : x->id > y->id ? 1 : -1;
}

/* Both halves of a merge are tokens. */
static tern_status put_scored_merges(gguf_maker *m)
{
    scored *list = malloc((m->v.n + 1) * sizeof *list);
    size_t n = 0;
    bool first = true;
    if (!list)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for the tokenizer", m->g->function);
    for (size_t i = 0; i < m->v.n; i++)
        if (m->v.types[i] == GGUF_NORMAL || m->v.types[i] == GGUF_USER ||
            m->v.types[i] == GGUF_UNUSED)
            list[n++] = (scored){m->v.scores[i], (uint32_t)i};
    qsort(list, n, sizeof *list, by_score);
    for (size_t i = 0; i < n; i++) {
        const gguf_text_of *t = &m->v.tokens[list[i].id];
        size_t at = 0;
        if (t->n)
            tk_next(t->text, &at);
        for (; at < t->n; tk_next(t->text, &at))
            if (tk_vocab_find(&m->v.table, t->text, at) >= 0 &&
                tk_vocab_find(&m->v.table, t->text + at, t->n - at) >= 0) {
                gguf_put_merge(&m->o, first, t, at, 0);
                first = false;
            }
    }
    free(list);
    return m->o.status;
}

tern_status gguf_write_llama(gguf_maker *m)
{
    static const int64_t defaults[] = {1, 2, 0, -1, -1};
    TRY(read_spaces(m));
    TRY(gguf_read_ids(m, defaults, true, false));
    gguf_put_added(m, false);
    gguf_put(&m->o, ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    put_spaces(m);
    gguf_put(&m->o, ",\"pre_tokenizer\":null");
    gguf_put_post(m, m->add_bos ? m->bos : -1, m->add_eos ? m->eos : -1, false);
    put_spaces_decoder(m);
    gguf_put(&m->o, ",\"model\":{\"type\":\"BPE\",\"dropout\":null");
    gguf_put_unknown(m);
    gguf_put(&m->o,
             ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":true,"
             "\"byte_fallback\":true,\"ignore_merges\":false");
    gguf_put_vocab(m);
    gguf_put(&m->o, ",\"merges\":[");
    TRY(put_scored_merges(m));
    gguf_put(&m->o, "]}}");
    return m->o.status;
}

tern_status gguf_rank_by_score(gguf_maker *m, tern_tokenizer *t)
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
    return done ? TERN_OK
                : tern_fail(TERN_ERR_MEMORY, "%s: no memory for the tokenizer", m->g->function);
}

static void put_base64(gguf_out *o, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t x = (uint32_t)bytes[i] << 16 | (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                     (i + 2 < n ? bytes[i + 2] : 0);
        char four[4] = {digits[x >> 18], digits[x >> 12 & 63], digits[x >> 6 & 63], digits[x & 63]};
        four[2] = i + 1 < n ? four[2] : '=';
        four[3] = i + 2 < n ? four[3] : '=';
        gguf_put_bytes(o, four, 4);
    }
}

static tern_status put_charsmap(gguf_maker *m)
{
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    io_gguf_value v;
    if (!io_gguf_find(m->g->file, key, &v))
        return TERN_OK;
    if (!v.is_array || (v.kind != IO_GGUF_U8 && v.kind != IO_GGUF_I8))
        return gguf_bad(m->g, "`%s` is %.60s, and an array of u8 is expected", key,
                        tern_file_metadata(m->g->file, key));
    if (v.count) {
        gguf_put(&m->o, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
        put_base64(&m->o, v.bytes, (size_t)v.count);
        gguf_put(&m->o, "\"},");
    }
    return TERN_OK;
}

/* Tokens that are no words of the text are there with a score that none of its ways takes. */
static void put_scores(gguf_maker *m)
{
    for (size_t i = 0; i < m->v.n; i++) {
        char score[40];
        double x = m->v.types[i] == GGUF_NORMAL ? (double)m->v.scores[i]
                   : m->v.types[i] == GGUF_USER ? (double)m->v.tokens[i].n * m->most - 0.1
                                                : -1e30;
        snprintf(score, sizeof score, ",%.17g]", x);
        gguf_put(&m->o, i ? ",[" : "[");
        gguf_put_token(m, (int64_t)i);
        gguf_put(&m->o, score);
    }
}

tern_status gguf_write_t5(gguf_maker *m)
{
    static const int64_t defaults[] = {-1, 1, 2, 0, -1};
    TRY(read_spaces(m));
    TRY(gguf_read_ids(m, defaults, false, true));
    gguf_put_added(m, false);
    gguf_put(&m->o, ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    TRY(put_charsmap(m));
    put_spaces(m);
    gguf_put(&m->o, ",\"pre_tokenizer\":null");
    gguf_put_post(m, m->add_bos ? m->bos : -1, m->add_eos ? m->eos : -1, false);
    put_spaces_decoder(m);
    gguf_put(&m->o, ",\"model\":{\"type\":\"Unigram\",\"byte_fallback\":true,\"unk_id\":");
    gguf_put_number(&m->o, m->unknown < 0 ? 0 : m->unknown);
    gguf_put(&m->o, ",\"vocab\":[");
    put_scores(m);
    gguf_put(&m->o, "]}}");
    return m->o.status;
}

/* ---- bert: WordPiece --------------------------------------------------------------------- */

/* Files spell "word" with a mark in front, and "##ing" without its ##. */
static void put_word_pieces(gguf_maker *m)
{
    gguf_put(&m->o, ",\"vocab\":{");
    for (size_t i = 0; i < m->v.n; i++) {
        const gguf_text_of *t = &m->v.tokens[i];
        bool begins = t->n >= 3 && memcmp(t->text, MARK, 3) == 0;
        bool as_it_is = m->v.types[i] == GGUF_CONTROL || m->v.types[i] == GGUF_UNKNOWN ||
                        (t->n > 2 && t->text[0] == '[' && t->text[t->n - 1] == ']');
        gguf_put(&m->o, i ? "," : "");
        if (as_it_is || begins)
            gguf_put_quoted(&m->o, "", t->text + (as_it_is ? 0 : 3), t->n - (as_it_is ? 0 : 3));
        else
            gguf_put_quoted(&m->o, "##", t->text, t->n);
        gguf_put(&m->o, ":");
        gguf_put_number(&m->o, (int64_t)i);
    }
    gguf_put(&m->o, "}");
}

tern_status gguf_write_bert(gguf_maker *m)
{
    static const int64_t defaults[] = {101, -1, 100, 0, 102};
    TRY(gguf_read_ids(m, defaults, true, true));
    TRY(gguf_flag(m->g, "tokenizer.ggml.add_sep_token", m->add_eos, &m->add_eos));
    gguf_put_added(m, true);
    gguf_put(&m->o, ",\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
                    "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
                    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}");
    gguf_put_post(m, m->add_bos ? m->bos : -1, m->add_eos ? m->separator : -1, true);
    gguf_put(&m->o, ",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
                    "\"model\":{\"type\":\"WordPiece\"");
    gguf_put_unknown(m);
    gguf_put(&m->o, ",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100");
    put_word_pieces(m);
    gguf_put(&m->o, "}}");
    return m->o.status;
}
