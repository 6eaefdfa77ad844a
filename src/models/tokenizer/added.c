/* added.c -- added tokens, special or the user's, which are found in a text before normalization
 * and the model. */
#include "models/tokenizer/tokenizer.h"

/* ---- reading ------------------------------------------------------------------------------- */

static tern_status normalized_text(const tk_step *normalizer, const char *function,
                                   const char *text, size_t n, tk_text *out)
{
    tk_matching m = {.function = function};
    TK_TRY(tk_text_begin(out, text, n));
    tern_status status = tk_normalize(normalizer, &m, out);
    tk_matching_end(&m);
    return status;
}

static tern_status read_one(tk_added_tokens *added, const char *function, const json_t *json,
                            const tk_vocab *vocab, const tk_step *normalizer)
{
    size_t n;
    tk_text normal = {0};
    const char *text = tk_string(json, "content", &n);
    int64_t id = text ? tk_vocab_find(vocab, text, n) : -1, at = -1;
    id = id < 0 ? tk_int(json, "id", -1) : id;
    if (!text || id < 0 || (uint64_t)id > 4 * (uint64_t)vocab->n + 65536 + 4 * added->n)
        return tern_fail(TERN_ERR_IO, "%s: an added token is '%s' with the number %lld", function,
                         text ? text : "", (long long)id);
    if (n == 0)
        return TERN_OK;
    tk_added one = {(uint32_t)id, tk_bool(json, "single_word", false),
                    tk_bool(json, "lstrip", false), tk_bool(json, "rstrip", false),
                    tk_bool(json, "special", false)};
    for (size_t i = 0; i < added->n && tk_added_by_id(added, id); i++)
        if (added->list[i].id == (uint32_t)id)
            at = (int64_t)i;
    if (at < 0) {
        TK_TRY(TK_RESERVE(added->list, added->capacity, added->n, 1));
        at = (int64_t)added->n++;
    }
    added->list[at] = one;
    TK_TRY(tk_vocab_add(&added->texts, text, n, (uint32_t)id));
    bool in_normal = tk_bool(json, "normalized", !one.special);
    if (in_normal && normalizer) {
        tern_status status = normalized_text(normalizer, function, text, n, &normal);
        text = normal.data;
        n = normal.n;
        if (status != TERN_OK || n == 0) {
            tk_text_free(&normal);
            return status;
        }
    }
    added->first[in_normal][(uint8_t)text[0]] = true;
    tern_status status =
        tk_trie_add(in_normal ? &added->normal : &added->raw, text, n, (uint32_t)at);
    tk_text_free(&normal);
    return status;
}

tern_status tk_added_read(tk_added_tokens *added, const char *function, const json_t *json,
                          const tk_vocab *vocab, const tk_step *normalizer)
{
    size_t i;
    const json_t *one;
    json_array_foreach(json, i, one) TK_TRY(read_one(added, function, one, vocab, normalizer));
    return TERN_OK;
}

void tk_added_free(tk_added_tokens *added)
{
    tk_vocab_free(&added->texts);
    tk_trie_free(&added->raw);
    tk_trie_free(&added->normal);
    free(added->list);
}

void tk_added_unmatch(tk_added_tokens *added)
{
    tk_trie_free(&added->raw);
    tk_trie_free(&added->normal);
    memset(added->first, 0, sizeof added->first);
}

const tk_added *tk_added_by_id(const tk_added_tokens *added, int64_t id)
{
    size_t n;
    if (!tk_vocab_text(&added->texts, id, &n))
        return NULL;
    for (size_t i = 0; i < added->n; i++)
        if (added->list[i].id == (uint64_t)id)
            return &added->list[i];
    return NULL;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* Returns the character that ends at offset `at`. */
static uint32_t char_before(const char *text, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80);
    return tk_next(text, &at);
}

/* Checks whether the token at *from .. *to may stand there (single_word), and extends the range by
 * the blanks that lstrip and rstrip include. */
static bool fits(const tk_added *one, const char *text, size_t n, size_t done, size_t *from,
                 size_t *to)
{
    size_t next = *to;
    if (one->single_word && ((*from > 0 && tk_is_word(char_before(text, *from))) ||
                             (*to < n && tk_is_word(tk_next(text, &next)))))
        return false;
    while (one->left && *from > done && tk_is_white(char_before(text, *from)))
        do
            --*from;
        while (((unsigned char)text[*from] & 0xc0) == 0x80);
    for (size_t at = *to; one->right && at < n && tk_is_white(tk_next(text, &at));)
        *to = at;
    return true;
}

static const tk_added *longest_at(const tk_added_tokens *added, const tk_trie *trie,
                                  const char *text, size_t n, size_t from, size_t *to)
{
    const tk_added *found = NULL;
    uint32_t node = 0;
    int64_t value;
    for (size_t at = from; at < n && tk_trie_step(trie, &node, (uint8_t)text[at], &value); at++)
        if (value >= 0) {
            found = &added->list[value];
            *to = at + 1;
        }
    return found;
}

/* Called for the part of a text between two tokens. */
typedef tern_status (*between)(void *user, const tk_text *text, size_t from, size_t n);

static tern_status each_part(const tk_added_tokens *added, int normal, const tk_text *text,
                             between rest, void *user, tk_pieces *out)
{
    const tk_trie *trie = normal ? &added->normal : &added->raw;
    size_t done = 0, to = 0;
    for (size_t at = 0; at < text->n; at++) {
        const tk_added *one = NULL;
        if (added->first[normal][(uint8_t)text->data[at]])
            one = longest_at(added, trie, text->data, text->n, at, &to);
        size_t from = at;
        if (!one)
            continue;
        at = to - 1;
        if (!fits(one, text->data, text->n, done, &from, &to) || from < done)
            continue;
        if (from > done)
            TK_TRY(rest(user, text, done, from - done));
        TK_TRY(tk_pieces_add_token(out, one->id,
                                   (tk_range){text->origin[from].from, text->origin[to - 1].to}));
        done = to;
        at = to - 1;
    }
    return done < text->n ? rest(user, text, done, text->n - done) : TERN_OK;
}

typedef struct context {
    const tk_added_tokens *added;
    const tk_step *normalizer;
    tk_matching *m;
    tk_pieces *out;
} context;

static tern_status plain(void *user, const tk_text *text, size_t from, size_t n)
{
    context *c = user;
    return tk_pieces_add(c->out, text, from, n);
}

static tern_status normalize(void *user, const tk_text *text, size_t from, size_t n)
{
    context *c = user;
    tk_text part = {0};
    tern_status status = tk_text_add(&part, text->data + from, n, text->origin + from);
    if (status == TERN_OK)
        status = tk_normalize(c->normalizer, c->m, &part);
    if (status == TERN_OK)
        status = each_part(c->added, 1, &part, plain, c, c->out);
    tk_text_free(&part);
    return status;
}

tern_status tk_added_split(const tk_added_tokens *added, const tk_step *normalizer, tk_matching *m,
                           const char *text, size_t n, tk_pieces *out)
{
    context c = {.added = added, .normalizer = normalizer, .m = m, .out = out};
    tk_text whole = {0};
    tern_status status = tk_text_begin(&whole, text, n);
    if (status == TERN_OK)
        status = each_part(added, 0, &whole, normalize, &c, out);
    tk_text_free(&whole);
    return status;
}
