/* post.c -- the tokens around texts, for example [CLS] a [SEP] b [SEP]. */
#include "models/tokenizer/tokenizer.h"

/* ---- reading ------------------------------------------------------------------------------- */

static tern_status put(tk_template *to, int64_t token, int64_t type)
{
    TK_TRY(TK_RESERVE(to->list, to->capacity, to->n, 1));
    to->list[to->n++] = (tk_place){token, (uint8_t)(type < 0 ? 0 : type > 255 ? 255 : type)};
    return TERN_OK;
}

/* Reads {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "</s>", "type_id":
 * 0}}. */
static tern_status read_place(tk_template *to, const char *function, const json_t *json,
                              const json_t *tokens)
{
    const json_t *sequence = json_object_get(json, "Sequence"), *id;
    const json_t *special = json_object_get(json, "SpecialToken");
    const char *name = json_string_value(json_object_get(sequence ? sequence : special, "id"));
    int64_t type = tk_int(sequence ? sequence : special, "type_id", 0);
    size_t i;
    if (!name)
        return tern_fail(TERN_ERR_IO, "%s: a template's place is neither Sequence nor SpecialToken",
                         function);
    if (sequence && name[0] != 'A' && name[0] != 'B')
        return tern_fail(TERN_ERR_IO, "%s: a template's sequence is %s, neither A nor B", function,
                         name);
    if (sequence)
        return put(to, name[0] == 'A' ? -1 : -2, type);
    const json_t *ids = json_object_get(json_object_get(tokens, name), "ids");
    if (!json_is_array(ids))
        return tern_fail(TERN_ERR_IO, "%s: a template's token %s is not among its special_tokens",
                         function, name);
    json_array_foreach(ids, i, id)
    {
        int64_t number = json_is_integer(id) ? json_integer_value(id) : -1;
        if (number < 0 || number >= UINT32_MAX)
            return tern_fail(TERN_ERR_IO, "%s: a template's token %s has no number", function,
                             name);
        TK_TRY(put(to, number, type));
    }
    return TERN_OK;
}

static tern_status read_template(tk_template *to, const char *function, const json_t *list,
                                 const json_t *tokens)
{
    size_t i;
    const json_t *place;
    to->n = 0;
    json_array_foreach(list, i, place) TK_TRY(read_place(to, function, place, tokens));
    return TERN_OK;
}

/* Reads BERT's or RoBERTa's post-processor; RoBERTa has a second separator before the second
 * text. */
static tern_status read_bert(tk_post *post, const char *function, const json_t *json, bool roberta)
{
    const json_t *sep = json_array_get(json_object_get(json, "sep"), 1);
    const json_t *cls = json_array_get(json_object_get(json, "cls"), 1);
    int64_t a = json_integer_value(cls), b = json_integer_value(sep);
    int64_t second = roberta ? 0 : 1;
    if (!json_is_integer(sep) || !json_is_integer(cls) || a < 0 || b < 0 || a >= UINT32_MAX ||
        b >= UINT32_MAX)
        return tern_fail(TERN_ERR_IO, "%s: %s needs sep and cls, [token, number]", function,
                         json_string_value(json_object_get(json, "type")));
    post->one.n = post->two.n = 0;
    for (int pair = 0; pair < 2; pair++) {
        tk_template *to = pair ? &post->two : &post->one;
        TK_TRY(put(to, a, 0));
        TK_TRY(put(to, -1, 0));
        TK_TRY(put(to, b, 0));
        if (pair && roberta)
            TK_TRY(put(to, b, 0));
        if (pair)
            TK_TRY(put(to, -2, second));
        if (pair)
            TK_TRY(put(to, b, second));
    }
    return TERN_OK;
}

static tern_status read_post(tk_post *post, const char *function, const json_t *json, int depth)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    const json_t *tokens = json_object_get(json, "special_tokens"), *list, *one;
    size_t i;
    bool bert = type && !strcmp(type, "BertProcessing"),
         roberta = type && !strcmp(type, "RobertaProcessing");
    if (type && !strcmp(type, "Sequence") && depth < 16) {
        list = json_object_get(json, "processors");
        json_array_foreach(list, i, one) TK_TRY(read_post(post, function, one, depth + 1));
        return TERN_OK;
    }
    if (type && (roberta || !strcmp(type, "ByteLevel"))) {
        post->trim = tk_bool(json, "trim_offsets", true);
        post->prefix_space = tk_bool(json, "add_prefix_space", true);
        if (!roberta)
            return TERN_OK;
    }
    if (bert || roberta)
        return read_bert(post, function, json, roberta);
    if (!type || strcmp(type, "TemplateProcessing") != 0)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: the post_processor is of type %s, which is not supported", function,
                         type ? type : "none");
    TK_TRY(read_template(&post->one, function, json_object_get(json, "single"), tokens));
    return read_template(&post->two, function, json_object_get(json, "pair"), tokens);
}

tern_status tk_post_read(tk_post *post, const char *function, const json_t *json)
{
    TK_TRY(put(&post->one, -1, 0)); /* default without a post-processor: the texts alone */
    TK_TRY(put(&post->two, -1, 0));
    TK_TRY(put(&post->two, -2, 1));
    return !json || json_is_null(json) ? TERN_OK : read_post(post, function, json, 0);
}

void tk_post_free(tk_post *post)
{
    free(post->one.list);
    free(post->two.list);
}

/* ---- running ------------------------------------------------------------------------------- */

int64_t tk_post_added(const tk_post *post, bool pair)
{
    const tk_template *t = pair ? &post->two : &post->one;
    int64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->list[i].token >= 0;
    return n;
}

/* Returns the number of spaces at the start or the end of a token; byte-level vocabularies write a
 * space as U+0120. */
static uint32_t spaces(const char *token, size_t n, bool at_end)
{
    uint32_t leading = 0, run = 0;
    for (size_t at = 0; at < n;) {
        uint32_t c = tk_next(token, &at);
        bool space = c == 0x120 || tk_is_white(c);
        run = space ? run + 1 : 0;
        leading += space && leading + 1 == run && !at_end;
        if (!space && !at_end)
            break;
    }
    return at_end ? run : leading;
}

static bool is_inside(const char *text, uint32_t at)
{
    return ((unsigned char)text[at] & 0xc0) == 0x80;
}

/* Removes a token's own spaces from its offsets, except the space that was added before the
 * text. */
static void trim(const tk_post *post, const char *text, const char *token, size_t n, bool first,
                 tk_range *span)
{
    uint32_t before = spaces(token, n, false), behind = spaces(token, n, true);
    if (before == 1 && post->prefix_space && (first || span->from == 0))
        before = 0;
    for (; before > 0 && span->from < span->to; before--)
        do
            span->from++;
        while (span->from < span->to && is_inside(text, span->from));
    for (; behind > 0 && span->to > span->from; behind--)
        do
            span->to--;
        while (span->to > span->from && is_inside(text, span->to));
}

tern_status tk_post_run(const tern_tokenizer *t, bool special, const char *const texts[2],
                        const tk_tokens parts[2], bool pair, tk_tokens *out)
{
    const tk_post *post = &t->post;
    const tk_template *template = pair ? &post->two : &post->one;
    for (size_t i = 0; i < template->n; i++) {
        tk_place place = template->list[i];
        if (place.token >= 0) {
            if (!special)
                continue;
            TK_TRY(tk_tokens_add(out, (uint32_t)place.token, 0, 0));
            tk_token *last = &out->list[out->n - 1];
            last->word = -1;
            last->special = true;
            last->type = place.type;
            continue;
        }
        const tk_tokens *part = &parts[place.token == -2];
        TK_TRY(TK_RESERVE(out->list, out->capacity, out->n, part->n));
        for (size_t k = 0; k < part->n; k++) {
            tk_token one = part->list[k];
            one.type = place.type;
            if (post->trim) {
                size_t n = one.origin.to - one.origin.from;
                const char *text = texts[place.token == -2], *token = text + one.origin.from;
                if (!one.found)
                    token = tk_token_text(t, one.id, &n);
                trim(post, text, token ? token : "", n, k == 0, &one.origin);
            }
            out->list[out->n++] = one;
        }
    }
    return TERN_OK;
}
