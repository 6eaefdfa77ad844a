/* unigram.c -- the most probable split of a text under a unigram model (Kudo 2018), by the Viterbi
 * algorithm. */
#include "models/tokenizer/model.h"

static tern_status read(tk_model *model, const char *function, const json_t *json)
{
    const json_t *vocab = json_object_get(json, "vocab"), *row;
    size_t i, count = json_array_size(vocab);
    double least = 0;
    if (!json_is_array(vocab))
        return tern_fail(TERN_ERR_IO, "%s: Unigram has no \"vocab\" of [token, score]", function);
    model->scores = malloc((count + 1) * sizeof *model->scores);
    if (!model->scores)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for %zu scores", function, count);
    TK_TRY(tk_vocab_reserve(&model->vocab, count));
    json_array_foreach(vocab, i, row)
    {
        const json_t *text = json_array_get(row, 0), *score = json_array_get(row, 1);
        if (!json_is_string(text) || !json_is_number(score))
            return tern_fail(TERN_ERR_IO, "%s: Unigram's token %zu is not [text, score]", function,
                             i);
        model->scores[i] = json_number_value(score);
        least = i == 0 || model->scores[i] < least ? model->scores[i] : least;
        TK_TRY(tk_vocab_add(&model->vocab, json_string_value(text), json_string_length(text),
                            (uint32_t)i));
        if (json_string_length(text))
            TK_TRY(tk_trie_add(&model->trie, json_string_value(text), json_string_length(text),
                               (uint32_t)i));
    }
    model->unknown_score = least - 10;
    model->unknown = tk_int(json, "unk_id", -1);
    if (model->unknown >= (int64_t)count)
        return tern_fail(TERN_ERR_IO, "%s: Unigram's unk_id is %lld of %zu tokens", function,
                         (long long)model->unknown, count);
    return TERN_OK;
}

/* The best split of the text up to an offset. */
typedef struct node {
    double score;
    int64_t from; /* start of the last token; -1: no split exists */
    int64_t id;
} node;

/* SentencePiece stores sums as float32. */
static void offer(node *to, double score, size_t from, int64_t id, bool as_float)
{
    score = as_float ? (double)(float)score : score;
    if (to->from < 0 || score > to->score)
        *to = (node){score, (int64_t)from, id};
}

/* Computes best[i] for every prefix of the text. */
static tern_status forward(const tk_model *model, node *best, const char *text, size_t n)
{
    for (size_t i = 0; i <= n; i++)
        best[i] = (node){0, -1, -1};
    for (size_t from = 0, next = 0; from < n; from = next) {
        bool one = false;
        int64_t id;
        uint32_t place = 0;
        tk_next(text, &next);
        for (size_t to = from; to < n && tk_trie_step(&model->trie, &place, (uint8_t)text[to], &id);
             to++)
            if (id >= 0) {
                offer(&best[to + 1], best[from].score + model->scores[id], from, id,
                      model->sentence != NULL);
                one = one || to + 1 == next;
            }
        if (one)
            continue;
        if (model->unknown < 0)
            return tern_fail(
                TERN_ERR_ARGUMENT,
                "tern_tokenizer_encode: '%.*s' is not in the vocab, and there is no unk_id",
                (int)(next - from), text + from);
        offer(&best[next], best[from].score + model->unknown_score, from, model->unknown,
              model->sentence != NULL);
    }
    return TERN_OK;
}

/* Appends a token; unknown text becomes byte tokens if all its bytes have one. */
static tern_status add(const tk_model *model, const char *text, size_t from, size_t to, int64_t id,
                       tk_tokens *out)
{
    bool bytes = model->byte_fallback && id == model->unknown;
    if (id == model->unknown &&
        !model->sentence) { /* unknown characters in a row may together be a token */
        int64_t whole = tk_vocab_find(&model->vocab, text + from, to - from);
        if (whole >= 0)
            return tk_tokens_add(out, (uint32_t)whole, from, to);
    }
    for (size_t i = from; i < to; i++)
        bytes = bytes && model->bytes[(uint8_t)text[i]] >= 0;
    if (!bytes)
        return tk_tokens_add(out, (uint32_t)id, from, to);
    for (size_t i = from; i < to; i++)
        TK_TRY(tk_tokens_add(out, (uint32_t)model->bytes[(uint8_t)text[i]], from, to));
    return TERN_OK;
}

static tern_status run(const tk_model *model, tk_scratch *s, const char *text, size_t n,
                       tk_tokens *out)
{
    size_t nodes = s->a_capacity / sizeof(node);
    node *best = s->a;
    tern_status status = TK_RESERVE(best, nodes, 0, n + 1);
    s->a = best;
    s->a_capacity = nodes * sizeof(node);
    TK_TRY(status);
    TK_TRY(forward(model, best, text, n));
    /* Reverses the links: best[i].from becomes the end of the token that begins at i. */
    for (int64_t to = (int64_t)n, next = -1; to > 0;) {
        int64_t from = best[to].from;
        best[to].from = next;
        next = to;
        to = from;
        if (to == 0)
            best[0].from = next;
    }
    for (int64_t from = 0; from < (int64_t)n;) {
        int64_t to = best[from].from, id = best[to].id;
        while (id == model->unknown && to < (int64_t)n && best[best[to].from].id == model->unknown)
            to = best[to].from; /* adjacent unknown tokens are joined */
        TK_TRY(add(model, text, (size_t)from, (size_t)to, id, out));
        from = to;
    }
    return TERN_OK;
}

const tk_model_kind tk_unigram = {"Unigram", read, run};
