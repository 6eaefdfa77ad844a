/* model.c -- the models of tokenizer.json, by their type; WordPiece and WordLevel. */
#include "models/tokenizer/sentence.h"
#include <stdio.h>

tern_status tk_tokens_add(tk_tokens *to, uint32_t id, size_t from, size_t end)
{
    TK_TRY(TK_RESERVE(to->list, to->capacity, to->n, 1));
    to->list[to->n++] = (tk_token){.id = id, .origin = {(uint32_t)from, (uint32_t)end}};
    return TERN_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

tern_status tk_read_vocab(tk_model *model, const char *function, const json_t *json)
{
    const json_t *vocab = json_object_get(json, "vocab");
    size_t count = json_object_size(vocab), n;
    if (!json_is_object(vocab))
        return tern_fail(TERN_ERR_IO, "%s: the model has no \"vocab\" of {token: number}",
                         function);
    TK_TRY(tk_vocab_reserve(&model->vocab, count));
    for (void *i = json_object_iter((json_t *)vocab); i;
         i = json_object_iter_next((json_t *)vocab, i)) {
        const json_t *id = json_object_iter_value(i);
        int64_t number = json_is_integer(id) ? json_integer_value(id) : -1;
        if (number < 0 || (uint64_t)number > 4 * (uint64_t)count + 65536)
            return tern_fail(TERN_ERR_IO, "%s: token '%s' of %zu has the number %lld", function,
                             json_object_iter_key(i), count, (long long)number);
        TK_TRY(tk_vocab_add(&model->vocab, json_object_iter_key(i), json_object_iter_key_len(i),
                            (uint32_t)number));
    }
    const char *unknown = tk_string(json, "unk_token", &n);
    model->unknown = unknown ? tk_vocab_find(&model->vocab, unknown, n) : -1;
    return TERN_OK;
}

void tk_model_free(tk_model *model)
{
    tk_vocab_free(&model->vocab);
    tk_trie_free(&model->trie);
    free(model->merges.slots);
    free(model->prefix);
    free(model->suffix);
    free(model->scores);
    tk_sentence_free(model->sentence);
}

/* Finds the model's type; older files do not have the field. */
static const tk_model_kind *kind_of(const json_t *json)
{
    static const tk_model_kind *const kinds[] = {&tk_bpe, &tk_word_piece, &tk_unigram,
                                                 &tk_word_level};
    const char *type = json_string_value(json_object_get(json, "type"));
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->type, type) == 0)
            return kinds[i];
    if (type)
        return NULL;
    return json_object_get(json, "merges")                      ? &tk_bpe
           : json_is_array(json_object_get(json, "vocab"))      ? &tk_unigram
           : json_object_get(json, "continuing_subword_prefix") ? &tk_word_piece
                                                                : &tk_word_level;
}

tern_status tk_model_read(tk_model *model, const char *function, const json_t *json)
{
    if (!json_is_object(json))
        return tern_fail(TERN_ERR_IO, "%s: there is no \"model\"", function);
    model->kind = kind_of(json);
    model->unknown = -1;
    if (!model->kind)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: the model is of type %s, which is not supported", function,
                         json_string_value(json_object_get(json, "type")));
    model->byte_fallback = tk_bool(json, "byte_fallback", false);
    TK_TRY(model->kind->read(model, function, json));
    for (int byte = 0; byte < 256; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)byte);
        model->bytes[byte] = model->byte_fallback ? tk_vocab_find(&model->vocab, text, 6) : -1;
    }
    return TERN_OK;
}

/* ---- WordPiece (Wu et al. 2016): the longest token that fits, then the longest that goes on -- */

static tern_status word_piece_read(tk_model *model, const char *function, const json_t *json)
{
    TK_TRY(tk_read_vocab(model, function, json));
    model->longest = tk_int(json, "max_input_chars_per_word", 100);
    if (model->unknown < 0)
        return tern_fail(TERN_ERR_IO, "%s: WordPiece's unk_token is not in its vocab", function);
    return tk_need_text(function, json, "continuing_subword_prefix", &model->prefix,
                        &model->n_prefix);
}

static tern_status word_piece(const tk_model *model, tk_scratch *s, const char *text, size_t n,
                              tk_tokens *out)
{
    size_t before = out->n;
    int64_t chars = 0;
    for (size_t at = 0; at < n; chars++)
        tk_next(text, &at);
    TK_TRY(tk_reserve(&s->a, &s->a_capacity, 0, n + model->n_prefix, 1));
    char *word = s->a;
    for (size_t from = 0, to; from < n && chars <= model->longest; from = to) {
        size_t ahead = from ? model->n_prefix : 0;
        int64_t id = -1;
        memcpy(word, model->prefix, ahead);
        memcpy(word + ahead, text + from, n - from);
        for (to = n; to > from;) {
            id = tk_vocab_find(&model->vocab, word, ahead + to - from);
            if (id >= 0)
                break;
            do
                to--;
            while (to > from && ((unsigned char)text[to] & 0xc0) == 0x80);
        }
        if (id < 0) {
            chars = INT64_MAX;
            break;
        }
        TK_TRY(tk_tokens_add(out, (uint32_t)id, from, to));
    }
    if (chars <= model->longest)
        return TERN_OK;
    out->n = before;
    return tk_tokens_add(out, (uint32_t)model->unknown, 0, n);
}

const tk_model_kind tk_word_piece = {"WordPiece", word_piece_read, word_piece};

/* ---- WordLevel: whole words ------------------------------------------------------------------ */

static tern_status word_level(const tk_model *model, tk_scratch *s, const char *text, size_t n,
                              tk_tokens *out)
{
    int64_t id = tk_vocab_find(&model->vocab, text, n);
    (void)s;
    id = id < 0 ? model->unknown : id;
    return id < 0 ? tern_fail(TERN_ERR_ARGUMENT,
                              "tern_tokenizer_encode: '%.*s' is not in the vocab, and there is "
                              "no unk_token",
                              n < 64 ? (int)n : 64, text)
                  : tk_tokens_add(out, (uint32_t)id, 0, n);
}

const tk_model_kind tk_word_level = {"WordLevel", tk_read_vocab, word_level};
