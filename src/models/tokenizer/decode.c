/* decode.c -- decoding of ids to text, at once or as a stream. */
#include "models/tokenizer/tokenizer.h"
#include "base/os.h"

const char *tk_token_text(const tern_tokenizer *t, int64_t id, size_t *n)
{
    const char *text = tk_vocab_text(&t->added.texts, id, n);
    return text ? text : tk_vocab_text(&t->model.vocab, id, n);
}

/* Joins the words; without a decoder they are separated by spaces. */
static tern_status join(const tern_tokenizer *t, tk_words *words, char **text)
{
    tk_words out = {0};
    size_t start = 0;
    tern_status status = tk_words_add(&out, "", 0);
    for (size_t i = 0; i < words->count && status == TERN_OK; start = words->ends[i++]) {
        if (!t->decoder && i > 0)
            status = tk_words_extend(&out, " ", 1);
        if (status == TERN_OK)
            status = tk_words_extend(&out, words->data + start, words->ends[i] - start);
    }
    *text = out.data;
    out.data = NULL;
    if (status != TERN_OK) {
        free(*text);
        *text = NULL;
    }
    tk_words_free(&out);
    return status;
}

char *tk_decode_ids(const tern_tokenizer *t, const char *function, const int64_t *ids, size_t n,
                    bool skip_special)
{
    tk_words words = {0};
    tk_matching m = {.function = function};
    char *text = NULL;
    tern_status status = TERN_OK;
    for (size_t i = 0; i < n && status == TERN_OK; i++) {
        size_t length;
        const char *token = tk_token_text(t, ids[i], &length);
        const tk_added *added = skip_special && token ? tk_added_by_id(&t->added, ids[i]) : NULL;
        if (token && !(added && added->special))
            status = tk_words_add(&words, token, length);
    }
    if (status == TERN_OK)
        status = tk_decode(t->decoder, &m, &words);
    if (status == TERN_OK)
        join(t, &words, &text);
    tk_matching_end(&m);
    tk_words_free(&words);
    return text;
}

/* ---- public -------------------------------------------------------------------------------- */

/* Copies the text to memory that tern_free_text frees, and frees the original. */
static char *given_away(char *text)
{
    const size_t bytes = text ? strlen(text) + 1 : 0;
    char *copy = text ? tern_os_alloc(bytes) : NULL;
    if (copy)
        memcpy(copy, text, bytes);
    else if (text)
        tern_fail(TERN_ERR_MEMORY, "tern_tokenizer_decode: no memory for %zu bytes", bytes);
    free(text);
    return copy;
}

char *tern_tokenizer_decode(const tern_tokenizer *t, const tern_tensor *ids,
                            bool skip_special_tokens)
{
    static const char function[] = "tern_tokenizer_decode";
    if (!t || !ids)
        return !ids && tern_last_status() != TERN_OK
                   ? NULL
                   : tern_fail_null(TERN_ERR_ARGUMENT, "%s: %s is NULL", function,
                                    t ? "ids" : "tokenizer");
    int dims = tern_dim(ids);
    int64_t n = tern_numel(ids);
    if (dims < 0 || dims > 2 || (dims == 2 && tern_size(ids, 0) != 1))
        return tern_fail_null(TERN_ERR_SHAPE, "%s: ids of (T) or (1, T) are expected", function);
    if (tern_dtype_of(ids) != TERN_I64 && tern_dtype_of(ids) != TERN_I32)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: ids are of %s, int64 or int32 is expected",
                              function, tern_dtype_name(tern_dtype_of(ids)));
    int64_t *list = malloc(((size_t)n + 1) * sizeof *list);
    if (!list)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for %lld ids", function,
                              (long long)n);
    bool wide = tern_dtype_of(ids) == TERN_I64;
    char *text = NULL;
    if (tern_copy_to_host(ids, (void *)list, (size_t)n * (wide ? 8 : 4)) == TERN_OK) {
        for (int64_t i = n; i-- > 0 && !wide;) { /* widens the ids in place, from the last to the
                                                    first */
            int32_t id;
            memcpy(&id, (char *)list + i * 4, 4);
            list[i] = id;
        }
        text = given_away(tk_decode_ids(t, function, list, (size_t)n, skip_special_tokens));
    }
    free(list);
    return text;
}

int64_t tern_tokenizer_vocab_size(const tern_tokenizer *t)
{
    size_t n;
    if (!t)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_tokenizer_vocab_size: tokenizer is NULL"), -1;
    int64_t count = (int64_t)t->model.vocab.count;
    for (size_t i = 0; i < t->added.n; i++)
        count += !tk_vocab_text(&t->model.vocab, t->added.list[i].id, &n);
    return count;
}

int64_t tern_tokenizer_token_to_id(const tern_tokenizer *t, const char *token)
{
    if (!t || !token)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_tokenizer_token_to_id: %s is NULL",
                         t ? "token" : "tokenizer"),
               -1;
    int64_t id = tk_vocab_find(&t->added.texts, token, strlen(token));
    return id >= 0 ? id : tk_vocab_find(&t->model.vocab, token, strlen(token));
}

const char *tern_tokenizer_id_to_token(const tern_tokenizer *t, int64_t id)
{
    size_t n;
    if (!t)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_tokenizer_id_to_token: tokenizer is NULL");
    return tk_token_text(t, id, &n);
}

int64_t tern_tokenizer_special_id(const tern_tokenizer *t, tern_special_token which)
{
    if (!t || (unsigned)which > TERN_TOKEN_EOS)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_tokenizer_special_id: tokenizer %s, token %d",
                         t ? "given" : "NULL", (int)which),
               -1;
    return which == TERN_TOKEN_PAD ? t->pad_id : which == TERN_TOKEN_BOS ? t->bos_id : t->eos_id;
}

/* ---- streams --------------------------------------------------------------------------------- */

struct tern_decode_stream {
    const tern_tokenizer *tokenizer;
    int64_t *ids; /* the last ids; `given`: bytes of their text that were returned and cannot
                     change */
    size_t n, capacity, given, prefix;
    bool skip_special;
    char *text;
};

tern_decode_stream *tern_decode_stream_new(const tern_tokenizer *t, bool skip_special_tokens)
{
    tern_decode_stream *s = t ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return tern_fail_null(t ? TERN_ERR_MEMORY : TERN_ERR_ARGUMENT, "tern_decode_stream_new: %s",
                              t ? "no memory" : "tokenizer is NULL");
    s->tokenizer = t;
    s->skip_special = skip_special_tokens;
    return s;
}

void tern_decode_stream_free(tern_decode_stream *s)
{
    if (!s)
        return;
    free(s->ids);
    free(s->text);
    free(s);
}

/* Decodes the previous ids with the new ones and returns the text after that of the previous: a
 * token's text depends on the tokens before it, and a character may consist of several tokens. */
const char *tern_decode_stream_step(tern_decode_stream *s, int64_t id)
{
    static const char function[] = "tern_decode_stream_step";
    if (!s)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: stream is NULL", function);
    if (TK_RESERVE(s->ids, s->capacity, s->n, 1) != TERN_OK)
        return NULL;
    s->ids[s->n++] = id;
    char *before = tk_decode_ids(s->tokenizer, function, s->ids, s->prefix, s->skip_special);
    char *all =
        before ? tk_decode_ids(s->tokenizer, function, s->ids, s->n, s->skip_special) : NULL;
    size_t n = all ? strlen(all) : 0, have = before ? strlen(before) : 0;
    bool whole = n > have && !(n >= 3 && memcmp(all + n - 3, "\xef\xbf\xbd", 3) == 0);
    free(before);
    free(s->text);
    s->text = all;
    if (!all)
        return s->n--, NULL;
    if (!whole)
        return "";
    /* The new ids are the previous ids of the next step. */
    memmove(s->ids, s->ids + s->prefix, (s->n - s->prefix) * sizeof *s->ids);
    s->n -= s->prefix;
    s->prefix = s->n;
    return s->text + have;
}
