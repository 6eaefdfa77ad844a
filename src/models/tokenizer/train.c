/* train.c -- trains a BPE vocabulary on texts (Sennrich et al. 2016): each step makes a token of
 * the most frequent pair of neighbours, the one with the lowest ids among equals. */
#include "models/option.h"
#include "models/tokenizer/tokenizer.h"

/* ---- words --------------------------------------------------------------------------------- */

typedef struct part {
    uint32_t id, length; /* a token, and its number of characters */
} part;
typedef struct word {
    part *parts;
    size_t n;
    int64_t count; /* number of occurrences */
} word;

typedef struct counts { /* counts of pairs */
    tk_pairs index;
    int64_t *of;
    size_t n, capacity;
} counts;

/* A pair that may be merged, and the indices of the words that contain it. */
typedef struct candidate {
    uint32_t a, b;
    int64_t count;
    uint32_t *words;
    size_t n, capacity;
} candidate;

typedef struct training {
    tk_vocab seen; /* words by their index in the list */
    word *words;
    size_t n_words, words_capacity;
    tk_vocab vocab;
    counts pairs;
    candidate *heap; /* a max-heap */
    size_t n_heap, heap_capacity;
    candidate *fresh; /* the new pairs of this step */
    size_t n_fresh, fresh_capacity;
    json_t *merges;
    int64_t longest;
} training;

static void end(training *t)
{
    for (size_t i = 0; i < t->n_words; i++)
        free(t->words[i].parts);
    for (size_t i = 0; i < t->n_heap; i++)
        free(t->heap[i].words);
    for (size_t i = 0; i < t->n_fresh; i++)
        free(t->fresh[i].words);
    tk_vocab_free(&t->seen);
    tk_vocab_free(&t->vocab);
    free(t->words);
    free(t->heap);
    free(t->fresh);
    free(t->pairs.index.slots);
    free(t->pairs.of);
    json_decref(t->merges);
}

static tern_status add_word(training *t, const char *text, size_t n)
{
    int64_t at = tk_vocab_find(&t->seen, text, n);
    if (at >= 0) {
        t->words[at].count++;
        return TERN_OK;
    }
    TK_TRY(TK_RESERVE(t->words, t->words_capacity, t->n_words, 1));
    TK_TRY(tk_vocab_add(&t->seen, text, n, (uint32_t)t->n_words));
    t->words[t->n_words++] = (word){.count = 1};
    return TERN_OK;
}

/* Adds the pieces of a text that the model would receive. */
static tern_status add_text(training *t, const tern_tokenizer *like, const char *function,
                            const char *text)
{
    tk_pieces pieces = {0};
    tk_matching m = {.function = function};
    tk_text whole = {0};
    size_t n = strlen(text);
    if (n > UINT32_MAX / 4 || tk_utf8_end(text, n) < n)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: a text is not UTF-8 at byte %zu, or longer than 1 GB", function,
                         tk_utf8_end(text, n));
    tern_status status = tk_text_begin(&whole, text, n);
    if (status == TERN_OK)
        status = tk_normalize(like->normalizer, &m, &whole);
    if (status == TERN_OK)
        status = tk_pieces_add(&pieces, &whole, 0, whole.n);
    if (status == TERN_OK)
        status = tk_split(like->pre_tokenizer, &m, &pieces);
    for (size_t i = 0; i < pieces.n && status == TERN_OK; i++)
        status = add_word(t, pieces.text.data + pieces.list[i].from, pieces.list[i].n);
    tk_text_free(&whole);
    tk_pieces_free(&pieces);
    tk_matching_end(&m);
    return status;
}

/* ---- the alphabet -------------------------------------------------------------------------- */

static tern_status add_token(training *t, const char *text, size_t n)
{
    return tk_vocab_find(&t->vocab, text, n) >= 0
               ? TERN_OK
               : tk_vocab_add(&t->vocab, text, n, (uint32_t)t->vocab.count);
}

static int by_code(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Adds every character of the words, and with `bytes` the characters of all bytes, sorted by
 * code. */
static tern_status add_alphabet(training *t, bool bytes)
{
    uint32_t *list = NULL;
    size_t n = 0, capacity = 0;
    tern_status status = TERN_OK;
    for (int byte = 0; bytes && byte < 256 && status == TERN_OK; byte++) {
        status = TK_RESERVE(list, capacity, n, 1);
        if (status == TERN_OK)
            list[n++] = tk_byte_to_char((uint8_t)byte);
    }
    for (size_t i = 0; i < t->n_words && status == TERN_OK; i++) {
        size_t length;
        const char *text = tk_vocab_text(&t->seen, (int64_t)i, &length);
        status = TK_RESERVE(list, capacity, n, length);
        for (size_t at = 0; status == TERN_OK && at < length;)
            list[n++] = tk_next(text, &at);
        if (n > 1 << 20 && status == TERN_OK) { /* removes duplicates */
            qsort(list, n, sizeof *list, by_code);
            size_t kept = 0;
            for (size_t k = 0; k < n; k++)
                if (k == 0 || list[k] != list[k - 1])
                    list[kept++] = list[k];
            n = kept;
        }
    }
    if (n)
        qsort(list, n, sizeof *list, by_code);
    for (size_t i = 0; i < n && status == TERN_OK; i++) {
        char text[4];
        size_t length = tk_put(list[i], text);
        if (i == 0 || list[i] != list[i - 1])
            status = add_token(t, text, length);
    }
    free(list);
    return status;
}

/* ---- pairs --------------------------------------------------------------------------------- */

static tern_status count_pair(training *t, uint32_t a, uint32_t b, int64_t change, int64_t *count)
{
    counts *c = &t->pairs;
    const struct tk_pair *pair = tk_pairs_find(&c->index, a, b);
    if (!pair) {
        TK_TRY(TK_RESERVE(c->of, c->capacity, c->n, 1));
        if (c->index.n_slots < 2 * (c->index.count + 1))
            TK_TRY(tk_pairs_reserve(&c->index, 2 * (c->index.count + 8)));
        tk_pairs_set(&c->index, a, b, 0, (uint32_t)c->n);
        c->of[c->n++] = 0;
        pair = tk_pairs_find(&c->index, a, b);
    }
    *count = c->of[pair->id] += change;
    return TERN_OK;
}

/* Adds word `at` to the candidate of a pair that is new in the word. */
static tern_status note(training *t, uint32_t a, uint32_t b, uint32_t at)
{
    const struct tk_pair *pair =
        tk_pairs_find(&t->pairs.index, a, b); /* count_pair added the pair */
    size_t i = pair->rank;
    if (i >= t->n_fresh || t->fresh[i].a != a || t->fresh[i].b != b) {
        TK_TRY(TK_RESERVE(t->fresh, t->fresh_capacity, t->n_fresh, 1));
        i = t->n_fresh++;
        t->fresh[i] = (candidate){.a = a, .b = b};
        tk_pairs_set(&t->pairs.index, a, b, (uint32_t)i, pair->id);
    }
    candidate *c = &t->fresh[i];
    if (c->n && c->words[c->n - 1] == at)
        return TERN_OK;
    TK_TRY(TK_RESERVE(c->words, c->capacity, c->n, 1));
    c->words[c->n++] = at;
    return TERN_OK;
}

static bool is_better(const candidate *x, const candidate *y)
{
    return x->count != y->count ? x->count > y->count : x->a != y->a ? x->a < y->a : x->b < y->b;
}

static tern_status push(training *t, candidate c)
{
    TK_TRY(TK_RESERVE(t->heap, t->heap_capacity, t->n_heap, 1));
    size_t i = t->n_heap++;
    for (; i > 0 && is_better(&c, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = c;
    return TERN_OK;
}

static candidate pop(training *t)
{
    candidate top = t->heap[0], last = t->heap[--t->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < t->n_heap; i = child) {
        if (child + 1 < t->n_heap && is_better(&t->heap[child + 1], &t->heap[child]))
            child++;
        if (!is_better(&t->heap[child], &last))
            break;
        t->heap[i] = t->heap[child];
    }
    t->heap[i] = last;
    return top;
}

/* Pushes the new pairs of a step with their current counts. */
static tern_status push_fresh(training *t)
{
    for (size_t i = 0; i < t->n_fresh; i++) {
        candidate *c = &t->fresh[i];
        TK_TRY(count_pair(t, c->a, c->b, 0, &c->count));
        if (c->count > 0)
            TK_TRY(push(t, *c));
        else
            free(c->words);
        c->words = NULL;
    }
    t->n_fresh = 0;
    return TERN_OK;
}

static int by_pair(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return x->a != y->a ? (x->a < y->a ? -1 : 1) : x->b < y->b ? -1 : x->b > y->b;
}

/* Splits the words into characters and counts their pairs. */
static tern_status begin_words(training *t)
{
    int64_t count;
    for (size_t i = 0; i < t->n_words; i++) {
        size_t n;
        const char *text = tk_vocab_text(&t->seen, (int64_t)i, &n);
        word *w = &t->words[i];
        w->parts = malloc((n + 1) * sizeof *w->parts);
        if (!w->parts)
            return tern_fail(TERN_ERR_MEMORY,
                             "tern_tokenizer_train_bpe: no memory for a word of %zu bytes", n);
        for (size_t from = 0, at = 0; at < n; from = at) {
            tk_next(text, &at);
            w->parts[w->n++] =
                (part){(uint32_t)tk_vocab_find(&t->vocab, text + from, at - from), 1};
        }
        for (size_t k = 0; k + 1 < w->n; k++) {
            TK_TRY(count_pair(t, w->parts[k].id, w->parts[k + 1].id, w->count, &count));
            TK_TRY(TK_RESERVE(t->fresh, t->fresh_capacity, t->n_fresh, 1));
            t->fresh[t->n_fresh] =
                (candidate){.a = w->parts[k].id, .b = w->parts[k + 1].id, .count = (int64_t)i};
            t->n_fresh++;
        }
    }
    return TERN_OK;
}

/* Joins the candidates of begin_words, one for each occurrence, to one for each pair. */
static tern_status begin_pairs(training *t)
{
    candidate *all = t->fresh;
    size_t n = t->n_fresh;
    tern_status status = TERN_OK;
    t->fresh = NULL;
    t->n_fresh = t->fresh_capacity = 0;
    if (n)
        qsort(all, n, sizeof *all, by_pair);
    for (size_t i = 0; i < n && status == TERN_OK; i++) {
        candidate *last = t->n_fresh ? &t->fresh[t->n_fresh - 1] : NULL;
        if (!last || by_pair(last, &all[i]) != 0) {
            status = TK_RESERVE(t->fresh, t->fresh_capacity, t->n_fresh, 1);
            if (status != TERN_OK)
                break;
            last = &t->fresh[t->n_fresh++];
            *last = (candidate){.a = all[i].a, .b = all[i].b};
        }
        status = TK_RESERVE(last->words, last->capacity, last->n, 1);
        if (status == TERN_OK)
            last->words[last->n++] = (uint32_t)all[i].count;
    }
    free(all);
    return status == TERN_OK ? push_fresh(t) : status;
}

/* ---- a step -------------------------------------------------------------------------------- */

static tern_status change(training *t, part a, part b, uint32_t at, int64_t by)
{
    int64_t count;
    if (by > 0 && (int64_t)a.length + b.length >= t->longest)
        return TERN_OK;
    TK_TRY(count_pair(t, a.id, b.id, by * t->words[at].count, &count));
    return by > 0 ? note(t, a.id, b.id, at) : TERN_OK;
}

static tern_status merge_in(training *t, uint32_t at, uint32_t a, uint32_t b, uint32_t id)
{
    word *w = &t->words[at];
    for (size_t i = 0; i + 1 < w->n; i++) {
        if (w->parts[i].id != a || w->parts[i + 1].id != b)
            continue;
        part first = w->parts[i], second = w->parts[i + 1],
             both = {id, first.length + second.length};
        if (i > 0) {
            TK_TRY(change(t, w->parts[i - 1], first, at, -1));
            TK_TRY(change(t, w->parts[i - 1], both, at, 1));
        }
        w->parts[i] = both;
        memmove(&w->parts[i + 1], &w->parts[i + 2], (w->n - i - 2) * sizeof *w->parts);
        w->n--;
        if (i + 1 < w->n) {
            TK_TRY(change(t, second, w->parts[i + 1], at, -1));
            TK_TRY(change(t, both, w->parts[i + 1], at, 1));
        }
    }
    return TERN_OK;
}

static tern_status merge(training *t, const candidate *c)
{
    size_t n[2];
    const char *text[2] = {tk_vocab_text(&t->vocab, c->a, &n[0]),
                           tk_vocab_text(&t->vocab, c->b, &n[1])};
    char *both = malloc(n[0] + n[1] + 1);
    json_t *pair = json_pack("[s%, s%]", text[0], n[0], text[1], n[1]);
    tern_status status =
        both && pair && json_array_append_new(t->merges, pair) == 0
            ? TERN_OK
            : tern_fail(TERN_ERR_MEMORY, "tern_tokenizer_train_bpe: no memory for a merge");
    if (status == TERN_OK) {
        memcpy(both, text[0], n[0]);
        memcpy(both + n[0], text[1], n[1]);
        status = add_token(t, both, n[0] + n[1]);
    }
    int64_t id = status == TERN_OK ? tk_vocab_find(&t->vocab, both, n[0] + n[1]) : -1;
    for (size_t i = 0; i < c->n && status == TERN_OK; i++)
        status = merge_in(t, c->words[i], c->a, c->b, (uint32_t)id);
    free(both);
    return status == TERN_OK ? push_fresh(t) : status;
}

static tern_status learn(training *t, const tern_bpe_options *o)
{
    while ((int64_t)t->vocab.count < o->vocab_size && t->n_heap) {
        candidate c = pop(t);
        int64_t now;
        tern_status status = count_pair(t, c.a, c.b, 0, &now);
        if (status == TERN_OK && now != c.count) {
            c.count = now; /* other merges have reduced the count */
            TK_TRY(push(t, c));
            continue;
        }
        bool enough = now >= 1 && now >= o->min_frequency;
        if (status == TERN_OK && enough)
            status = merge(t, &c);
        free(c.words);
        TK_TRY(status);
        if (!enough)
            break;
    }
    return TERN_OK;
}

/* ---- the result ---------------------------------------------------------------------------- */

static const char byte_level[] = "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,"
                                 "\"added_tokens\":[],\"normalizer\":null,"
                                 "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
                                 "false,\"trim_offsets\":true,\"use_regex\":true},"
                                 "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
                                 "true,\"trim_offsets\":false,\"use_regex\":true},"
                                 "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                                 "\"trim_offsets\":true,\"use_regex\":true},"
                                 "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
                                 "\"continuing_subword_prefix\":null,"
                                 "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":"
                                 "false,\"ignore_merges\":false,\"vocab\":{},"
                                 "\"merges\":[]}}";

static tern_tokenizer *finish(training *t, const char *function, const tern_tokenizer *like,
                              const tern_bpe_options *o)
{
    json_t *json = json_loadb(like->json, like->n_json, JSON_ALLOW_NUL, NULL),
           *vocab = json_object();
    json_t *model = json_object_get(json, "model"), *added = json_array();
    bool good = model && vocab && added;
    for (size_t i = 0; i < t->vocab.n && good; i++) {
        size_t n;
        const char *text = tk_vocab_text(&t->vocab, (int64_t)i, &n);
        good = json_object_setn_new(vocab, text, n, json_integer((json_int_t)i)) == 0;
    }
    for (int64_t i = 0; good && o->special_tokens && o->special_tokens[i]; i++)
        good = json_array_append_new(
                   added, json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id",
                                    (json_int_t)tk_vocab_find(&t->vocab, o->special_tokens[i],
                                                              strlen(o->special_tokens[i])),
                                    "content", o->special_tokens[i], "single_word", 0, "lstrip", 0,
                                    "rstrip", 0, "normalized", 0, "special", 1)) == 0;
    good = good && json_object_set(model, "vocab", vocab) == 0 &&
           json_object_set(model, "merges", t->merges) == 0 &&
           json_object_set(json, "added_tokens", added) == 0;
    char *text = good ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(vocab);
    json_decref(added);
    json_decref(json);
    tern_tokenizer *made =
        text ? tk_tokenizer_read(function, text, strlen(text))
             : tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for the tokenizer", function);
    free(text);
    return made;
}

static tern_tokenizer *train(const char *function, const tern_tokenizer *like,
                             const char *const *texts, int n, const tern_bpe_options *o)
{
    training t = {.merges = json_array(),
                  .longest = o->max_token_length ? o->max_token_length : INT64_MAX};
    tern_status status = t.merges ? TERN_OK : tern_fail(TERN_ERR_MEMORY, "%s: no memory", function);
    tern_tokenizer *made = NULL;
    for (int i = 0; i < n && status == TERN_OK; i++)
        status = texts[i] ? add_text(&t, like, function, texts[i])
                          : tern_fail(TERN_ERR_ARGUMENT, "%s: text %d is NULL", function, i);
    for (int64_t i = 0; status == TERN_OK && o->special_tokens && o->special_tokens[i]; i++)
        status = add_token(&t, o->special_tokens[i], strlen(o->special_tokens[i]));
    if (status == TERN_OK)
        status = add_alphabet(&t, strstr(like->json, "\"ByteLevel\"") != NULL);
    if (status == TERN_OK)
        status = begin_words(&t);
    if (status == TERN_OK)
        status = begin_pairs(&t);
    if (status == TERN_OK)
        status = learn(&t, o);
    if (status == TERN_OK)
        made = finish(&t, function, like, o);
    end(&t);
    return made;
}

tern_tokenizer *tern_tokenizer_train_bpe(const char *const *texts, int n,
                                         const tern_bpe_options *options)
{
    static const char function[] = "tern_tokenizer_train_bpe";
    const tern_bpe_options o = tern_read_bpe(options);
    if (!texts || n < 0 || o.vocab_size < 1 || o.vocab_size > INT32_MAX || o.min_frequency < 0 ||
        o.max_token_length < 0)
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "%s: texts %s, n %d, vocab_size %lld, min_frequency %lld, max_token_length %lld",
            function, texts ? "given" : "NULL", n, (long long)o.vocab_size,
            (long long)o.min_frequency, (long long)o.max_token_length);
    tern_tokenizer *like =
        o.like ? NULL : tk_tokenizer_read(function, byte_level, sizeof byte_level - 1);
    const tern_tokenizer *as = o.like ? o.like : like;
    tern_tokenizer *made = NULL;
    if (as && (as->model.kind != &tk_bpe || as->model.prefix || as->model.suffix ||
               as->model.byte_fallback))
        tern_fail(TERN_ERR_UNSUPPORTED,
                  "%s: options.like is no BPE without prefixes, suffixes and byte_fallback",
                  function);
    else if (as)
        made = train(function, as, texts, n, &o);
    tern_tokenizer_free(like);
    return made;
}
