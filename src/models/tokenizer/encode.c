/* encode.c -- encoding of texts to ids, and batches with padding. */
#include "models/option.h"
#include "models/tokenizer/tokenizer.h"

/* ---- a text -------------------------------------------------------------------------------- */

static tern_status run_model(const tern_tokenizer *t, const tk_pieces *pieces, tk_tokens *out)
{
    tk_scratch s = {0};
    tern_status status = TERN_OK;
    for (size_t i = 0; i < pieces->n && status == TERN_OK; i++) {
        const tk_piece *piece = &pieces->list[i];
        const tk_range *origin = pieces->text.origin + piece->from;
        size_t before = out->n;
        if (piece->token >= 0)
            status = tk_tokens_add(out, (uint32_t)piece->token, 0, piece->n);
        else
            status =
                t->model.kind->run(&t->model, &s, pieces->text.data + piece->from, piece->n, out);
        for (size_t k = before; k < out->n; k++) {
            tk_range *span = &out->list[k].origin;
            *span = span->to > span->from
                        ? (tk_range){origin[span->from].from, origin[span->to - 1].to}
                        : (tk_range){origin[0].from, origin[0].from};
            out->list[k].word = (int32_t)i;
            out->list[k].found = piece->token >= 0;
        }
    }
    free(s.a);
    free(s.b);
    return status;
}

static tern_status encode_one(const tern_tokenizer *t, const char *function, const char *text,
                              size_t n, tk_tokens *out)
{
    tk_pieces pieces = {0};
    tk_matching m = {.function = function};
    size_t good = n < UINT32_MAX / 4 ? tk_utf8_end(text, n) : 0;
    if (good < n && n >= UINT32_MAX / 4)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: a text of %zu bytes, at most 1 GB is taken",
                         function, n);
    if (good < n)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: the text is not UTF-8: byte %zu is 0x%02x",
                         function, good, (unsigned char)text[good]);
    tern_status status = tk_added_split(&t->added, t->normalizer, &m, text, n, &pieces);
    if (status == TERN_OK)
        status = tk_split(t->pre_tokenizer, &m, &pieces);
    if (status == TERN_OK)
        status = run_model(t, &pieces, out);
    tk_matching_end(&m);
    tk_pieces_free(&pieces);
    return status;
}

/* ---- truncation ---------------------------------------------------------------------------- */

static void cut(tk_tokens *tokens, size_t n, bool left)
{
    if (tokens->n <= n)
        return;
    if (left)
        memmove(tokens->list, tokens->list + tokens->n - n, n * sizeof *tokens->list);
    tokens->n = n;
}

/* Truncates the longer text first, as Hugging Face's longest_first. */
static void cut_pair(tk_tokens parts[2], size_t most, bool left)
{
    bool swapped = parts[0].n > parts[1].n;
    size_t a = parts[swapped].n, b = parts[!swapped].n;
    if (a + b <= most)
        return;
    if (a > most)
        b = a;
    else
        b = most - a > a ? most - a : a;
    if (a + b > most) {
        a = most / 2;
        b = a + most % 2;
    }
    cut(&parts[swapped], a, left);
    cut(&parts[!swapped], b, left);
}

tern_status tk_encode(const tern_tokenizer *t, const char *function, const char *const text[2],
                      const size_t n[2], const tern_encode_options *o, tk_tokens *out)
{
    tk_tokens parts[2] = {{0}};
    bool pair = text[1] != NULL;
    int64_t around = o->no_special_tokens ? 0 : tk_post_added(&t->post, pair);
    tern_status status = encode_one(t, function, text[0], n[0], &parts[0]);
    if (status == TERN_OK && pair)
        status = encode_one(t, function, text[1], n[1], &parts[1]);
    if (status == TERN_OK && o->max_length > 0 && o->max_length < around)
        status =
            tern_fail(TERN_ERR_ARGUMENT, "%s: max_length %lld is less than %lld special tokens",
                      function, (long long)o->max_length, (long long)around);
    if (status == TERN_OK && o->max_length > 0) {
        size_t most = (size_t)(o->max_length - around);
        if (pair)
            cut_pair(parts, most, t->cut_left);
        else
            cut(&parts[0], most, t->cut_left);
    }
    if (status == TERN_OK)
        status = tk_post_run(t, !o->no_special_tokens, text, parts, pair, out);
    free(parts[0].list);
    free(parts[1].list);
    return status;
}

/* ---- batches ------------------------------------------------------------------------------- */

/* The tokens of n texts, padded to one length. */
typedef struct batch {
    tk_tokens *rows;
    int n;
    int64_t length, pad_id;
    bool left;
} batch;

/* Returns the value of a column of the result for a token; token NULL: a padding position. */
typedef int64_t (*column)(const batch *b, const tk_token *token, int part);

static int64_t id_of(const batch *b, const tk_token *token, int part)
{
    (void)part;
    return token ? token->id : b->pad_id;
}
static int64_t mask_of(const batch *b, const tk_token *token, int part)
{
    (void)b, (void)part;
    return token != NULL;
}
static int64_t type_of(const batch *b, const tk_token *token, int part)
{
    (void)b, (void)part;
    return token ? token->type : 0;
}
static int64_t special_of(const batch *b, const tk_token *token, int part)
{
    (void)b, (void)part;
    return token ? token->special : 1;
}
static int64_t word_of(const batch *b, const tk_token *token, int part)
{
    (void)b, (void)part;
    return token ? token->word : -1;
}
static int64_t offset_of(const batch *b, const tk_token *token, int part)
{
    (void)b;
    return !token ? 0 : part ? token->origin.to : token->origin.from;
}

static tern_tensor *tensor_of(const char *function, const batch *b, column rule, int parts,
                              const char *device)
{
    size_t count = (size_t)b->n * (size_t)b->length * (size_t)parts, at = 0;
    int64_t *data = malloc((count + 1) * sizeof *data);
    if (!data)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for %zu ids", function, count);
    for (int i = 0; i < b->n; i++) {
        int64_t gap = b->left ? b->length - (int64_t)b->rows[i].n : 0;
        for (int64_t k = 0; k < b->length; k++) {
            int64_t place = k - gap;
            const tk_token *token =
                place >= 0 && place < (int64_t)b->rows[i].n ? &b->rows[i].list[place] : NULL;
            for (int part = 0; part < parts; part++)
                data[at++] = rule(b, token, part);
        }
    }
    tern_shape shape =
        parts == 1 ? TERN_SHAPE(b->n, b->length) : TERN_SHAPE(b->n, b->length, parts);
    tern_tensor *x = tern_from_data(data, shape, TERN_I64, device);
    free(data);
    return x;
}

static tern_status fill_up(const tern_tokenizer *t, const char *function,
                           const tern_encode_options *o, batch *b)
{
    int64_t multiple = o->pad_to_multiple_of;
    bool even = true;
    for (int i = 0; i < b->n; i++) {
        even = even && b->rows[i].n == b->rows[0].n;
        b->length = (int64_t)b->rows[i].n > b->length ? (int64_t)b->rows[i].n : b->length;
    }
    if (o->pad_to_max_length && o->max_length > b->length)
        b->length = o->max_length;
    if (multiple > 1 && b->length % multiple)
        b->length += multiple - b->length % multiple;
    b->pad_id = o->pad_token_id.set ? o->pad_token_id.value : t->pad_id;
    b->left = o->padding_side == TERN_PADDING_SIDE_DEFAULT
                  ? t->pad_left
                  : o->padding_side == TERN_PADDING_SIDE_LEFT;
    even = even && (b->n == 0 || b->length == (int64_t)b->rows[0].n);
    return even || b->pad_id >= 0 ? TERN_OK
                                  : tern_fail(TERN_ERR_ARGUMENT,
                                              "%s: the texts are of different lengths, and the "
                                              "tokenizer has no padding token; "
                                              "give one in options.pad_token_id",
                                              function);
}

static tern_status check(const char *function, const tern_tokenizer *t, const void *texts, int n,
                         const tern_encode_options *o)
{
    if (!t || !texts)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s is NULL", function, t ? "text" : "tokenizer");
    if (n < 0 || o->max_length < 0 || o->pad_to_multiple_of < 0 || o->text_bytes < 0)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "%s: n is %d, max_length %lld, pad_to_multiple_of %lld, text_bytes %lld: none may "
            "be negative",
            function, n, (long long)o->max_length, (long long)o->pad_to_multiple_of,
            (long long)o->text_bytes);
    return (unsigned)o->padding_side <= TERN_PADDING_SIDE_LEFT
               ? TERN_OK
               : tern_fail(TERN_ERR_ARGUMENT, "%s: padding_side %d is none of tern_padding_side",
                           function, (int)o->padding_side);
}

static tern_status rows_of(const tern_tokenizer *t, const char *function, const char *const *texts,
                           const char *const *pairs, const tern_encode_options *o, batch *b)
{
    for (int i = 0; i < b->n; i++) {
        const char *text[2] = {texts[i], pairs ? pairs[i] : NULL};
        if (!text[0] || (pairs && !text[1]))
            return tern_fail(TERN_ERR_ARGUMENT, "%s: text %d is NULL", function, i);
        size_t n[2] = {o->text_bytes && b->n == 1 ? (size_t)o->text_bytes : strlen(text[0]),
                       text[1] ? strlen(text[1]) : 0};
        TK_TRY(tk_encode(t, function, text, n, o, &b->rows[i]));
    }
    return fill_up(t, function, o, b);
}

/* Computes the results whose bits are set in `wanted`, in the order of columns. */
static tern_status make(const tern_tokenizer *t, const char *function, const char *const *texts,
                        const char *const *pairs, int n, const tern_encode_options *options,
                        unsigned wanted, tern_tensor *out[6])
{
    static const column columns[6] = {id_of, mask_of, type_of, special_of, word_of, offset_of};
    tern_encode_options o = tern_read_encode(options);
    batch b = {.n = n};
    TK_TRY(check(function, t, texts, n, &o));
    b.rows = calloc((size_t)n + 1, sizeof *b.rows);
    tern_status status =
        b.rows ? rows_of(t, function, texts, pairs, &o, &b)
               : tern_fail(TERN_ERR_MEMORY, "%s: no memory for %d texts", function, n);
    for (int i = 0; i < 6 && status == TERN_OK; i++)
        if (wanted >> i & 1) {
            out[i] = tensor_of(function, &b, columns[i], i == 5 ? 2 : 1, o.device);
            status = out[i] ? TERN_OK : TERN_ERR_MEMORY;
        }
    for (int i = 0; b.rows && i < n; i++)
        free(b.rows[i].list);
    free(b.rows);
    return status;
}

tern_tensor *tern_tokenizer_encode(const tern_tokenizer *t, const char *text,
                                   const tern_encode_options *options)
{
    tern_tensor *out[6] = {NULL};
    const char *const *texts = text ? &text : NULL;
    return make(t, "tern_tokenizer_encode", texts, NULL, 1, options, 1, out) == TERN_OK ? out[0]
                                                                                        : NULL;
}

tern_status tern_tokenizer_encode_batch(const tern_tokenizer *t, const char *const *texts, int n,
                                        const tern_encode_options *options, tern_tensor **ids,
                                        tern_tensor **mask)
{
    tern_tensor *out[6] = {NULL};
    tern_status status = make(t, "tern_tokenizer_encode_batch", texts, NULL, n, options, 3, out);
    if (ids)
        *ids = status == TERN_OK ? out[0] : NULL;
    if (mask)
        *mask = status == TERN_OK ? out[1] : NULL;
    return status;
}

tern_status tern_tokenizer_call(const tern_tokenizer *t, const char *const *texts,
                                const char *const *pairs, int n, const tern_encode_options *options,
                                tern_encoding *encoding)
{
    tern_tensor *out[6] = {NULL};
    if (!encoding)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_tokenizer_call: out is NULL");
    *encoding = (tern_encoding){0};
    TK_TRY(make(t, "tern_tokenizer_call", texts, pairs, n, options, 63, out));
    *encoding = (tern_encoding){.input_ids = out[0],
                                .attention_mask = out[1],
                                .token_type_ids = out[2],
                                .special_tokens_mask = out[3],
                                .word_ids = out[4],
                                .offsets = out[5]};
    return TERN_OK;
}
