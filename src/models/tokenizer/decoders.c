/* decoders.c -- decoders, which turn tokens into text. */
#include "models/tokenizer/internal.h"
#include <stdio.h>

#define EACH_WORD(i, words, text, n)                                                               \
    for (size_t i = 0, n = 0;                                                                      \
         i < (words)->count && (n = (words)->ends[i] - start_of(words, i), 1); i++)                \
        for (const char *text = (words)->data + start_of(words, i); text; text = NULL)

static size_t start_of(const tk_words *words, size_t i)
{
    return i ? words->ends[i - 1] : 0;
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* Appends bytes as text; each maximal prefix of a character that is not complete becomes one
 * U+FFFD. */
static tern_status extend_lossy(tk_words *to, const char *bytes, size_t n)
{
    while (n) {
        size_t good = tk_utf8_end(bytes, n), bad = 1;
        TK_TRY(tk_words_extend(to, bytes, good));
        bytes += good;
        n -= good;
        if (n == 0)
            break;
        /* A prefix is valid if adding continuation bytes makes it a character. */
        for (size_t have = 2; have < 4 && have <= n; have++) {
            char whole[4] = {bytes[0], bytes[1], have > 2 ? bytes[2] : '\x80', '\x80'};
            size_t size = (unsigned char)bytes[0] < 0xe0   ? 2
                          : (unsigned char)bytes[0] < 0xf0 ? 3
                                                           : 4;
            if (have < size && tk_utf8_end(whole, size) == size)
                bad = have;
        }
        TK_TRY(tk_words_extend(to, "\xef\xbf\xbd", 3));
        bytes += bad;
        n -= bad;
    }
    return TERN_OK;
}

static tern_status byte_level(const tk_step *step, tk_matching *m, const tk_words *in,
                              tk_words *out)
{
    char *bytes = malloc(in->n + 1);
    size_t n = 0;
    (void)step, (void)m;
    if (!bytes)
        return tern_fail(TERN_ERR_MEMORY, "tern_tokenizer_decode: no memory for %zu bytes", in->n);
    EACH_WORD(i, in, text, length)
    {
        size_t before = n, at = 0;
        while (at < length) {
            int byte = tk_char_to_byte(tk_next(text, &at));
            if (byte < 0)
                break;
            bytes[n++] = (char)byte;
        }
        if (at < length || (length && n == before)) { /* not byte-level characters: the text is
                                                         kept */
            memcpy(bytes + before, text, length);
            n = before + length;
        }
    }
    tern_status status = tk_words_add(out, "", 0);
    if (status == TERN_OK)
        status = extend_lossy(out, bytes, n);
    free(bytes);
    return status;
}

static int byte_of(const char *text, size_t n)
{
    unsigned byte;
    char digits[3] = {0};
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    memcpy(digits, text + 3, 2);
    if (strspn(digits, "0123456789abcdefABCDEF") != 2 || sscanf(digits, "%x", &byte) != 1)
        return -1;
    return (int)byte;
}

/* Adds a run of bytes: as text if they are UTF-8, else as one U+FFFD per byte. */
static tern_status add_run(tk_words *out, const char *bytes, size_t n)
{
    if (n && tk_utf8_end(bytes, n) == n)
        return tk_words_add(out, bytes, n);
    for (size_t i = 0; i < n; i++)
        TK_TRY(tk_words_add(out, "\xef\xbf\xbd", 3));
    return TERN_OK;
}

static tern_status byte_fallback(const tk_step *step, tk_matching *m, const tk_words *in,
                                 tk_words *out)
{
    char *run = malloc(in->count + 1);
    size_t n = 0;
    tern_status status = TERN_OK;
    (void)step, (void)m;
    if (!run)
        return tern_fail(TERN_ERR_MEMORY, "tern_tokenizer_decode: no memory for %zu bytes",
                         in->count);
    EACH_WORD(i, in, text, length)
    {
        int byte = byte_of(text, length);
        if (byte >= 0) {
            run[n++] = (char)byte;
            continue;
        }
        if (status == TERN_OK)
            status = add_run(out, run, n);
        n = 0;
        if (status == TERN_OK)
            status = tk_words_add(out, text, length);
    }
    if (status == TERN_OK)
        status = add_run(out, run, n);
    free(run);
    return status;
}

/* ---- words --------------------------------------------------------------------------------- */

/* Appends text to the last word with every `from` replaced by `with`. */
static tern_status extend_replaced(tk_words *to, const char *text, size_t n, const char *from,
                                   const char *with)
{
    size_t length = strlen(from);
    for (size_t at = 0; at < n;) {
        if (length && n - at >= length && memcmp(text + at, from, length) == 0) {
            TK_TRY(tk_words_extend(to, with, strlen(with)));
            at += length;
        } else
            TK_TRY(tk_words_extend(to, text + at++, 1));
    }
    return TERN_OK;
}

/* Removes the spaces before punctuation and contractions of English. */
static tern_status add_clean(tk_words *out, const char *text, size_t n)
{
    static const char *const rows[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                          {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                          {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                          {" 've", "'ve"}, {" 're", "'re"}};
    tk_words a = {0}, b = {0};
    tern_status status = tk_words_add(&a, text, n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == TERN_OK; i++) {
        tk_words swap = b;
        swap.n = swap.count = 0;
        status = tk_words_add(&swap, "", 0);
        if (status == TERN_OK)
            status = extend_replaced(&swap, a.data, a.n, rows[i][0], rows[i][1]);
        b = a;
        a = swap;
    }
    if (status == TERN_OK)
        status = tk_words_add(out, a.data, a.n);
    tk_words_free(&a);
    tk_words_free(&b);
    return status;
}

enum { CLEANUP };

static tern_status word_piece_read(tk_step *step, const char *function, const json_t *json)
{
    step->flags[CLEANUP] = tk_bool(json, "cleanup", true);
    return tk_need_text(function, json, "prefix", &step->text, &step->n_text);
}

static tern_status word_piece(const tk_step *step, tk_matching *m, const tk_words *in,
                              tk_words *out)
{
    tk_words one = {0};
    tern_status status = TERN_OK;
    (void)m;
    EACH_WORD(i, in, text, n)
    {
        bool goes_on = i > 0 && n >= step->n_text && memcmp(text, step->text, step->n_text) == 0;
        one.n = one.count = 0;
        if (status == TERN_OK)
            status = tk_words_add(&one, " ", i > 0 && !goes_on);
        if (status == TERN_OK)
            status = tk_words_extend(&one, text + (goes_on ? step->n_text : 0),
                                     n - (goes_on ? step->n_text : 0));
        if (status == TERN_OK)
            status = step->flags[CLEANUP] ? add_clean(out, one.data, one.n)
                                          : tk_words_add(out, one.data, one.n);
    }
    tk_words_free(&one);
    return status;
}

static tern_status metaspace_read(tk_step *step, const char *function, const json_t *json)
{
    size_t n;
    const char *scheme = tk_string(json, "prepend_scheme", &n);
    step->flags[0] =
        scheme ? strcmp(scheme, "never") == 0 : !tk_bool(json, "add_prefix_space", true);
    return tk_need_char(function, json, "replacement", 0x2581, &step->character);
}

static tern_status metaspace(const tk_step *step, tk_matching *m, const tk_words *in, tk_words *out)
{
    (void)m;
    EACH_WORD(i, in, text, n)
    {
        TK_TRY(tk_words_add(out, "", 0));
        for (size_t at = 0, start = 0; at < n; start = at) {
            uint32_t c = tk_next(text, &at);
            if (c != step->character)
                TK_TRY(tk_words_extend(out, text + start, at - start));
            else if (i > 0 || step->flags[0])
                TK_TRY(tk_words_extend(out, " ", 1));
        }
    }
    return TERN_OK;
}

static tern_status replace_read(tk_step *step, const char *function, const json_t *json)
{
    step->pattern = tk_pattern_read(function, json_object_get(json, "pattern"));
    return step->pattern ? tk_need_text(function, json, "content", &step->text, &step->n_text)
                         : TERN_ERR_IO;
}

static tern_status replace(const tk_step *step, tk_matching *m, const tk_words *in, tk_words *out)
{
    EACH_WORD(i, in, text, n)
    {
        size_t at = 0, done = 0, from, to;
        bool found = true;
        TK_TRY(tk_words_add(out, "", 0));
        while (found && at < n) {
            TK_TRY(tk_find(step->pattern, m, text, n, at, &from, &to, &found));
            if (!found || from == n)
                break;
            TK_TRY(tk_words_extend(out, text + done, from - done));
            TK_TRY(tk_words_extend(out, step->text, step->n_text));
            done = at = to;
            if (to == from)
                tk_next(text, &at);
        }
        TK_TRY(tk_words_extend(out, text + done, n - done));
    }
    return TERN_OK;
}

static tern_status fuse(const tk_step *step, tk_matching *m, const tk_words *in, tk_words *out)
{
    (void)step, (void)m;
    return tk_words_add(out, in->data ? in->data : "", in->n);
}

static tern_status strip_read(tk_step *step, const char *function, const json_t *json)
{
    step->numbers[0] = tk_int(json, "start", 0);
    step->numbers[1] = tk_int(json, "stop", 0);
    return tk_need_char(function, json, "content", ' ', &step->character);
}

static tern_status strip(const tk_step *step, tk_matching *m, const tk_words *in, tk_words *out)
{
    char c[4];
    size_t size = tk_put(step->character, c);
    (void)m;
    EACH_WORD(i, in, text, n)
    {
        size_t from = 0, to = n;
        for (int64_t k = 0; k < step->numbers[0] && to - from >= size; k++, from += size)
            if (memcmp(text + from, c, size) != 0)
                break;
        for (int64_t k = 0; k < step->numbers[1] && to - from >= size; k++, to -= size)
            if (memcmp(text + to - size, c, size) != 0)
                break;
        TK_TRY(tk_words_add(out, text + from, to - from));
    }
    return TERN_OK;
}

static tern_status bpe_read(tk_step *step, const char *function, const json_t *json)
{
    return tk_need_text(function, json, "suffix", &step->text, &step->n_text);
}

static tern_status bpe(const tk_step *step, tk_matching *m, const tk_words *in, tk_words *out)
{
    (void)m;
    EACH_WORD(i, in, text, n)
    {
        TK_TRY(tk_words_add(out, "", 0));
        TK_TRY(extend_replaced(out, text, n, step->text, i + 1 < in->count ? " " : ""));
    }
    return TERN_OK;
}

static tern_status ctc_read(tk_step *step, const char *function, const json_t *json)
{
    step->flags[CLEANUP] = tk_bool(json, "cleanup", true);
    TK_TRY(tk_need_text(function, json, "pad_token", &step->text, &step->n_text));
    return tk_need_text(function, json, "word_delimiter_token", &step->other, &step->n_other);
}

/* CTC: joins repeated tokens, removes blank tokens, and writes word delimiters as spaces. */
static tern_status ctc(const tk_step *step, tk_matching *m, const tk_words *in, tk_words *out)
{
    tk_words one = {0};
    tern_status status = TERN_OK;
    (void)m;
    EACH_WORD(i, in, text, n)
    {
        size_t before = i ? in->ends[i - 1] - start_of(in, i - 1) : 0;
        if (status != TERN_OK || (i && before == n && memcmp(text - n, text, n) == 0))
            continue;
        one.n = one.count = 0;
        status = tk_words_add(&one, "", 0);
        if (status == TERN_OK)
            status = extend_replaced(&one, text, n, step->text, "");
        if (status == TERN_OK && one.n == 0)
            continue;
        if (status == TERN_OK && !step->flags[CLEANUP])
            status = tk_words_add(out, one.data, one.n);
        else if (status == TERN_OK) {
            tk_words clean = {0};
            status = add_clean(&clean, one.data, one.n);
            if (status == TERN_OK)
                status = tk_words_add(out, "", 0);
            if (status == TERN_OK)
                status = extend_replaced(out, clean.data, clean.n, step->other, " ");
            tk_words_free(&clean);
        }
    }
    tk_words_free(&one);
    return status;
}

const tk_kind tk_decoders[] = {
    {"ByteLevel", .decode = byte_level},
    {"WordPiece", word_piece_read, .decode = word_piece},
    {"Metaspace", metaspace_read, .decode = metaspace},
    {"Replace", replace_read, .decode = replace},
    {"ByteFallback", .decode = byte_fallback},
    {"Fuse", .decode = fuse},
    {"Strip", strip_read, .decode = strip},
    {"BPEDecoder", bpe_read, .decode = bpe},
    {"CTC", ctc_read, .decode = ctc},
    {NULL},
};
