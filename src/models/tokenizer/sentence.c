/* sentence.c -- SentencePiece's normalizer and decoder: the whole text at once, with user-defined
 * tokens unchanged. */
#include "models/tokenizer/sentence.h"
#include "models/tokenizer/maker.h"

#define MARK "\xe2\x96\x81" /* U+2581, which replaces a space */
enum { MARK_BYTES = 3 };

void tk_sentence_free(tk_sentence *s)
{
    if (!s)
        return;
    tk_trie_free(&s->user);
    tk_step_free(s->charsmap);
    free(s->types);
    free(s->surface);
    free(s);
}

/* ---- normalizing ------------------------------------------------------------------------- */

size_t tk_sentence_user(const tk_sentence *s, const char *text, size_t n, bool spaces, int64_t *id)
{
    uint32_t node = 0;
    size_t longest = 0;
    int64_t value = -1;
    for (size_t i = 0; s->user.n && i < n; i++) {
        const bool is_space = spaces && text[i] == ' ';
        bool there = true;
        for (int k = 0; there && k < (is_space ? MARK_BYTES : 1); k++)
            there = tk_trie_step(&s->user, &node, (uint8_t)(is_space ? MARK[k] : text[i]), &value);
        if (!there)
            break;
        if (value >= 0) {
            longest = i + 1;
            *id = value;
        }
    }
    return longest;
}

/* Returns the replacement of the text at `at`: *n is its length in bytes, *length that of the
 * replaced text. */
static const char *next_prefix(const tk_sentence *s, const tk_text *in, size_t at, size_t *length,
                               size_t *n)
{
    int64_t id;
    size_t next = at;
    const char *text = in->data + at;
    *length = *n = tk_sentence_user(s, text, in->n - at, true, &id);
    if (*n)
        return text;
    const char *other =
        s->charsmap ? tk_precompiled_longest(s->charsmap, text, in->n - at, length) : NULL;
    if (other) {
        *n = strlen(other);
        return other;
    }
    tk_next(in->data, &next);
    *length = *n = next - at;
    return text;
}

static tern_status add_space(tk_text *out, tk_range origin)
{
    return tk_text_add_at(out, MARK, MARK_BYTES, origin);
}

/* Appends the n bytes that replace `length` bytes of the text at `at`, spaces as U+2581. */
static tern_status add_prefix(const tk_text *in, size_t at, size_t length, const char *text,
                              size_t n, tk_text *out)
{
    const bool same = text == in->data + at && n == length;
    const tk_range all = {in->origin[at].from, in->origin[at + length - 1].to};
    for (size_t i = 0; i < n; i++) {
        const tk_range origin = same ? in->origin[at + i] : all;
        TK_TRY(text[i] == ' ' ? add_space(out, origin) : tk_text_add_at(out, text + i, 1, origin));
    }
    return TERN_OK;
}

static bool ends_with_space(const tk_text *t)
{
    return t->n >= MARK_BYTES && memcmp(t->data + t->n - MARK_BYTES, MARK, MARK_BYTES) == 0;
}

static tern_status normalize(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out)
{
    const tk_sentence *s = step->of;
    size_t at = 0, length = 0, n = 0;
    bool after_space = s->spaces_once;
    (void)m;
    while (s->spaces_once && at < in->n) { /* leading spaces are removed */
        const char *text = next_prefix(s, in, at, &length, &n);
        if (n != 1 || *text != ' ')
            break;
        at += length;
    }
    if (at == in->n)
        return TERN_OK;
    if (s->space && !s->behind)
        TK_TRY(add_space(out, (tk_range){in->origin[at].from, in->origin[at].from}));
    for (; at < in->n; at += length) {
        const char *text = next_prefix(s, in, at, &length, &n);
        size_t from = 0;
        while (after_space && from < n && text[from] == ' ')
            from++;
        TK_TRY(add_prefix(in, at, length, text + from, n - from, out));
        if (n > from)
            after_space = s->spaces_once && text[n - 1] == ' ';
    }
    while (s->spaces_once && ends_with_space(out))
        out->n -= MARK_BYTES;
    const tk_range end = {in->origin[in->n - 1].to, in->origin[in->n - 1].to};
    return s->space && s->behind ? add_space(out, end) : TERN_OK;
}

/* ---- decoding ---------------------------------------------------------------------------- */

static int byte_of(const char *text, size_t n)
{
    return n == 6 ? (int)strtol((char[]){text[3], text[4], 0}, NULL, 16) : -1;
}

/* Appends a run of byte tokens as text; bytes that are not valid UTF-8 become U+FFFD. */
static tern_status flush_bytes(tk_words *out, char *bytes, size_t *n)
{
    for (size_t at = 0; at < *n;) {
        size_t good = tk_utf8_end(bytes + at, *n - at);
        TK_TRY(tk_words_extend(out, bytes + at, good));
        at += good;
        if (at < *n) {
            TK_TRY(tk_words_extend(out, "\xef\xbf\xbd", 3));
            at++;
        }
    }
    *n = 0;
    return TERN_OK;
}

/* Appends a token's text with U+2581 as space; *dropped: a leading space was omitted and counts as
 * text. */
static tern_status add_piece(const tk_sentence *s, const char *text, size_t n, int type, bool first,
                             bool *dropped, tk_words *out)
{
    *dropped = false;
    if (type == TK_CONTROL)
        return TERN_OK;
    if (type == TK_UNKNOWN && s->surface)
        return tk_words_extend(out, s->surface, strlen(s->surface));
    if (first && (s->space || s->spaces_once) && n >= MARK_BYTES &&
        memcmp(text, MARK, MARK_BYTES) == 0) {
        text += MARK_BYTES;
        n -= MARK_BYTES;
        *dropped = !s->spaces_once;
    }
    for (size_t at = 0; at < n;) {
        size_t from = at;
        bool space = tk_next(text, &at) == 0x2581;
        TK_TRY(tk_words_extend(out, space ? " " : text + from, space ? 1 : at - from));
    }
    return TERN_OK;
}

static tern_status decode(const tk_step *step, tk_matching *m, const tk_words *in, tk_words *out)
{
    const tk_sentence *s = step->of;
    char *bytes = malloc(in->count + 1);
    size_t n_bytes = 0, start = 0;
    bool first = true, dropped = false;
    tern_status status =
        bytes ? tk_words_add(out, "", 0)
              : tern_fail(TERN_ERR_MEMORY, "%s: no memory for %zu bytes", m->function, in->count);
    for (size_t i = 0; i < in->count && status == TERN_OK; start = in->ends[i++]) {
        const char *text = in->data + start;
        const size_t n = in->ends[i] - start;
        int64_t id = tk_vocab_find(s->vocab, text, n);
        int type = id >= 0 && (size_t)id < s->n ? s->types[id] : TK_NORMAL;
        if (type == TK_BYTE && byte_of(text, n) >= 0) {
            bytes[n_bytes++] = (char)byte_of(text, n);
            continue;
        }
        status = flush_bytes(out, bytes, &n_bytes);
        first = first && !dropped && out->n == 0;
        if (status == TERN_OK)
            status = add_piece(s, text, n, type, first, &dropped, out);
    }
    if (status == TERN_OK)
        status = flush_bytes(out, bytes, &n_bytes);
    free(bytes);
    return status;
}

const tk_kind tk_sentence_normalizer = {"SentencePiece", .normalize = normalize};
const tk_kind tk_sentence_decoder = {"SentencePiece", .decode = decode};

/* ---- creation ---------------------------------------------------------------------------- */

static tern_status replace_step(const tk_kind *kind, const tk_sentence *s, tk_step **step)
{
    tk_step_free(*step);
    *step = calloc(1, sizeof **step);
    if (!*step)
        return tern_fail(TERN_ERR_MEMORY, "tern_tokenizer: no memory for a tokenizer");
    (*step)->kind = kind;
    (*step)->of = s;
    return TERN_OK;
}

/* Fills the trie of a unigram model with its normal and its user-defined tokens. */
static tern_status read_candidates(tk_maker *m, tk_model *model)
{
    tk_trie_free(&model->trie);
    for (size_t i = 0; i < m->v.n; i++) {
        const tk_text_of *text = &m->v.tokens[i];
        if (m->v.types[i] == TK_NORMAL || m->v.types[i] == TK_USER)
            TK_TRY(tk_trie_add(&model->trie, text->text, text->n, (uint32_t)i));
    }
    model->unknown_score = (float)m->least - 10;
    return TERN_OK;
}

static tern_status fill(tk_maker *m, tern_tokenizer *t, tk_sentence *s)
{
    s->space = m->space;
    s->behind = m->behind;
    s->spaces_once = m->spaces_once;
    s->vocab = &t->model.vocab;
    s->n = m->v.n;
    s->types = calloc(s->n + 1, 1);
    s->surface = m->surface ? tk_copy(m->surface, strlen(m->surface)) : NULL;
    if (!s->types || (m->surface && !s->surface))
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for a tokenizer", m->where);
    for (size_t i = 0; i < s->n; i++) {
        s->types[i] = (uint8_t)m->v.types[i];
        s->has_unused = s->has_unused || m->v.types[i] == TK_UNUSED;
        if (m->v.types[i] == TK_USER)
            TK_TRY(tk_trie_add(&s->user, m->v.tokens[i].text, m->v.tokens[i].n, (uint32_t)i));
    }
    if (!m->n_charsmap)
        return TERN_OK;
    s->charsmap = calloc(1, sizeof *s->charsmap);
    if (!s->charsmap)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for a tokenizer", m->where);
    return tk_precompiled_table(s->charsmap, m->where, m->charsmap, m->n_charsmap);
}

tern_status tk_make_sentence(tk_maker *m, tern_tokenizer *t)
{
    t->model.sentence = calloc(1, sizeof *t->model.sentence);
    if (!t->model.sentence)
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for a tokenizer", m->where);
    TK_TRY(fill(m, t, t->model.sentence));
    TK_TRY(replace_step(&tk_sentence_normalizer, t->model.sentence, &t->normalizer));
    TK_TRY(replace_step(&tk_sentence_decoder, t->model.sentence, &t->decoder));
    tk_added_unmatch(&t->added);
    return t->model.kind == &tk_unigram ? read_candidates(m, &t->model) : tk_rank_by_score(m, t);
}
