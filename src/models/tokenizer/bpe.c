/* bpe.c -- byte pair encoding (Sennrich et al. 2016): the pair of lowest rank in the list of merges
 * becomes one token, the leftmost pair first, until no pair is in the list. */
#include "models/tokenizer/maker.h"
#include "models/tokenizer/sentence.h"
#include <stdio.h>

/* ---- reading ------------------------------------------------------------------------------- */

bool tk_merge_split(const char *text[2], size_t n[2])
{
    const char *space = memchr(text[0], ' ', n[0]), *end = text[0] + n[0];
    if (!space)
        return false;
    text[1] = space + 1;
    n[0] = (size_t)(space - text[0]);
    n[1] = (size_t)(end - text[1]);
    return memchr(text[1], ' ', n[1]) == NULL;
}

/* Sets text and n to both halves of a merge, ["a", "b"] or "a b". */
static bool halves(const json_t *merge, const char *text[2], size_t n[2])
{
    const bool both = json_is_array(merge) && json_array_size(merge) == 2;
    for (size_t i = 0; i < 2; i++) {
        const json_t *half = both ? json_array_get(merge, i) : merge;
        text[i] = json_string_value(half);
        n[i] = json_string_length(half);
    }
    return text[0] && text[1] && (both || tk_merge_split(text, n));
}

int tk_merge_find(const tk_vocab *vocab, const char *const text[2], const size_t n[2],
                  size_t n_prefix, char *buffer, uint32_t ids[3])
{
    const size_t skip = n_prefix <= n[1] ? n_prefix : 0;
    memcpy(buffer, text[0], n[0]);
    memcpy(buffer + n[0], text[1] + skip, n[1] - skip);
    for (int i = 0; i < 3; i++) {
        const int64_t id =
            tk_vocab_find(vocab, i < 2 ? text[i] : buffer, i < 2 ? n[i] : n[0] + n[1] - skip);
        if (id < 0)
            return i;
        ids[i] = (uint32_t)id;
    }
    return 3;
}

static tern_status read_merge(tk_model *model, const char *function, const json_t *merge,
                              uint32_t rank, tk_scratch *s)
{
    static const char *const missing[] = {"the first", "the second", "what they make"};
    const char *text[2];
    size_t n[2];
    uint32_t ids[3];
    if (!halves(merge, text, n))
        return tern_fail(TERN_ERR_IO, "%s: merge %u is neither \"a b\" nor [\"a\", \"b\"]",
                         function, rank);
    TK_TRY(tk_reserve(&s->a, &s->a_capacity, 0, n[0] + n[1] + 1, 1));
    const int found = tk_merge_find(&model->vocab, text, n, model->n_prefix, s->a, ids);
    if (found < 3)
        return tern_fail(TERN_ERR_IO, "%s: merge %u, '%s' and '%s': %s is not in the vocab",
                         function, rank, text[0], text[1], missing[found]);
    tk_pairs_set(&model->merges, ids[0], ids[1], rank, ids[2]);
    return TERN_OK;
}

static tern_status optional_text(const json_t *json, const char *key, char **text, size_t *n)
{
    const char *found = tk_string(json, key, n);
    if (!found || *n == 0)
        return TERN_OK;
    *text = tk_copy(found, *n);
    return *text ? TERN_OK : TERN_ERR_MEMORY;
}

static tern_status read(tk_model *model, const char *function, const json_t *json)
{
    const json_t *merges = json_object_get(json, "merges"), *merge, *dropout;
    tk_scratch s = {0};
    size_t i, n;
    tern_status status = TERN_OK;
    dropout = json_object_get(json, "dropout");
    if (json_is_number(dropout) && json_number_value(dropout) != 0)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: BPE's dropout is not supported", function);
    TK_TRY(tk_read_vocab(model, function, json));
    if (tk_string(json, "unk_token", &n) && model->unknown < 0)
        return tern_fail(TERN_ERR_IO, "%s: BPE's unk_token is not in its vocab", function);
    model->fuse_unknown = tk_bool(json, "fuse_unk", false);
    model->ignore_merges = tk_bool(json, "ignore_merges", false);
    TK_TRY(optional_text(json, "continuing_subword_prefix", &model->prefix, &model->n_prefix));
    TK_TRY(optional_text(json, "end_of_word_suffix", &model->suffix, &model->n_suffix));
    TK_TRY(tk_pairs_reserve(&model->merges, json_array_size(merges)));
    json_array_foreach(merges, i, merge)
    {
        if (status == TERN_OK)
            status = read_merge(model, function, merge, (uint32_t)i, &s);
    }
    free(s.a);
    return status;
}

/* ---- words --------------------------------------------------------------------------------- */

typedef struct symbol {
    uint32_t id, from, to;
    int32_t before, next; /* indices of symbols; -1: none */
} symbol;
typedef struct candidate {
    uint32_t rank, id;
    int32_t at;
} candidate;
typedef struct word {
    symbol *symbols;
    candidate *heap; /* a min-heap by rank and position */
    int32_t n, n_heap;
    uint32_t
        *halves; /* by the id of an unused token that a merge may form: bytes of its first half;
                    NULL: the vocabulary has no unused tokens */
} word;

static bool is_less(candidate a, candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void push(const tk_model *model, word *w, int32_t at)
{
    int32_t next = at < 0 ? -1 : w->symbols[at].next;
    const struct tk_pair *pair =
        next < 0 ? NULL : tk_pairs_find(&model->merges, w->symbols[at].id, w->symbols[next].id);
    if (!pair)
        return;
    candidate c = {pair->rank, pair->id, at};
    if (w->halves && model->sentence->types[pair->id] == TK_UNUSED)
        w->halves[pair->id] = w->symbols[at].to - w->symbols[at].from;
    int32_t i = w->n_heap++;
    for (; i > 0 && is_less(c, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = c;
}

static candidate pop(word *w)
{
    candidate top = w->heap[0], last = w->heap[--w->n_heap];
    int32_t i = 0;
    for (int32_t child; (child = 2 * i + 1) < w->n_heap; i = child) {
        if (child + 1 < w->n_heap && is_less(w->heap[child + 1], w->heap[child]))
            child++;
        if (!is_less(w->heap[child], last))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

/* Merges all pairs; each merge removes a symbol and pushes up to two new pairs. */
static void merge_all(const tk_model *model, word *w)
{
    for (int32_t i = 0; i + 1 < w->n; i++)
        push(model, w, i);
    while (w->n_heap) {
        candidate c = pop(w);
        symbol *left = &w->symbols[c.at];
        if (left->to == left->from || left->next < 0)
            continue;
        symbol *right = &w->symbols[left->next];
        const struct tk_pair *pair = tk_pairs_find(&model->merges, left->id, right->id);
        if (!pair || pair->id != c.id) /* a symbol of the pair was merged since */
            continue;
        left->id = c.id;
        left->to = right->to;
        left->next = right->next;
        right->from = right->to;
        if (left->next >= 0)
            w->symbols[left->next].before = c.at;
        push(model, w, left->before);
        push(model, w, c.at);
    }
}

static void add_symbol(word *w, uint32_t id, size_t from, size_t to)
{
    w->symbols[w->n] = (symbol){id, (uint32_t)from, (uint32_t)to, w->n - 1, -1};
    if (w->n)
        w->symbols[w->n - 1].next = w->n;
    w->n++;
}

/* Returns the token of a character, with the prefix of continuations or the suffix of word ends;
 * -1: none. */
static int64_t find_char(const tk_model *model, const char *text, size_t n, size_t from, size_t to)
{
    char small[64];
    size_t ahead = from > 0 ? model->n_prefix : 0, behind = to == n ? model->n_suffix : 0;
    if (ahead + behind == 0)
        return tk_vocab_find(&model->vocab, text + from, to - from);
    if (ahead + behind + 4 > sizeof small)
        return -1;
    if (ahead)
        memcpy(small, model->prefix, ahead);
    memcpy(small + ahead, text + from, to - from);
    if (behind)
        memcpy(small + ahead + to - from, model->suffix, behind);
    return tk_vocab_find(&model->vocab, small, ahead + to - from + behind);
}

static void add_chars(const tk_model *model, word *w, const char *text, size_t n)
{
    size_t unknown_from = 0, unknown_to = 0; /* range of unknown characters not added yet */
    for (size_t from = 0, at = 0; from < n; from = at) {
        int64_t id = -1;
        const size_t user =
            model->sentence ? tk_sentence_user(model->sentence, text + from, n - from, false, &id)
                            : 0;
        if (user)
            at = from + user;
        else
            tk_next(text, &at);
        id = user ? id : find_char(model, text, n, from, at);
        bool bytes = id < 0 && model->byte_fallback;
        for (size_t i = from; i < at; i++)
            bytes = bytes && model->bytes[(uint8_t)text[i]] >= 0;
        if (bytes) {
            for (size_t i = from; i < at; i++)
                add_symbol(w, (uint32_t)model->bytes[(uint8_t)text[i]], i, i + 1);
            continue;
        }
        if (id < 0 && model->unknown < 0)
            continue;
        if (unknown_to > unknown_from && (id >= 0 || !model->fuse_unknown)) {
            add_symbol(w, (uint32_t)model->unknown, unknown_from, unknown_to);
            unknown_from = unknown_to;
        }
        if (id >= 0) {
            add_symbol(w, (uint32_t)id, from, at);
            continue;
        }
        if (unknown_to == unknown_from)
            unknown_from = from;
        unknown_to = at;
    }
    if (unknown_to > unknown_from)
        add_symbol(w, (uint32_t)model->unknown, unknown_from, unknown_to);
}

/* Appends a symbol's tokens: SentencePiece splits an unused token into the tokens that formed it,
 * until all are used ones. */
static tern_status add_used(const tk_model *model, const word *w, const symbol *whole,
                            tk_tokens *out)
{
    tk_tokens waiting = {0};
    tern_status status = tk_tokens_add(&waiting, whole->id, whole->from, whole->to);
    while (waiting.n && status == TERN_OK) {
        const tk_token one = waiting.list[--waiting.n];
        const size_t first = w->halves ? w->halves[one.id] : 0;
        size_t n;
        const char *text = tk_vocab_text(&model->vocab, one.id, &n);
        int64_t left = first ? tk_vocab_find(&model->vocab, text, first) : -1,
                right = first ? tk_vocab_find(&model->vocab, text + first, n - first) : -1;
        if (left < 0 || right < 0) {
            status = tk_tokens_add(out, one.id, one.origin.from, one.origin.to);
            continue;
        }
        status = tk_tokens_add(&waiting, (uint32_t)right, one.origin.from + first, one.origin.to);
        if (status == TERN_OK)
            status =
                tk_tokens_add(&waiting, (uint32_t)left, one.origin.from, one.origin.from + first);
    }
    free(waiting.list);
    return status;
}

static tern_status run(const tk_model *model, tk_scratch *s, const char *text, size_t n,
                       tk_tokens *out)
{
    int64_t whole = model->ignore_merges ? tk_vocab_find(&model->vocab, text, n) : -1;
    if (whole >= 0)
        return tk_tokens_add(out, (uint32_t)whole, 0, n);
    if (n > INT32_MAX / 4)
        return tern_fail(TERN_ERR_UNSUPPORTED, "tern_tokenizer_encode: a word of %zu bytes", n);
    word w = {0};
    size_t symbols = s->a_capacity / sizeof(symbol), candidates = s->b_capacity / sizeof(candidate);
    w.symbols = s->a;
    w.heap = s->b;
    tern_status status = TK_RESERVE(w.symbols, symbols, 0, n);
    s->a = w.symbols;
    if (status == TERN_OK)
        status = TK_RESERVE(w.heap, candidates, 0, 3 * n);
    s->b = w.heap;
    s->a_capacity = symbols * sizeof(symbol);
    s->b_capacity = candidates * sizeof(candidate);
    TK_TRY(status);
    if (model->sentence && model->sentence->has_unused) {
        w.halves = calloc(model->sentence->n, sizeof *w.halves);
        if (!w.halves)
            return tern_fail(TERN_ERR_MEMORY, "tern_tokenizer_encode: no memory for a text");
    }
    add_chars(model, &w, text, n);
    merge_all(model, &w);
    for (int32_t i = w.n ? 0 : -1; i >= 0 && status == TERN_OK; i = w.symbols[i].next)
        status = w.halves ? add_used(model, &w, &w.symbols[i], out)
                          : tk_tokens_add(out, w.symbols[i].id, w.symbols[i].from, w.symbols[i].to);
    free(w.halves);
    return status;
}

const tk_model_kind tk_bpe = {"BPE", read, run};
