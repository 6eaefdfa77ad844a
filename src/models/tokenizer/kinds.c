/* kinds.c -- detects the format of a tokenizer file by its contents. */
#include "models/tokenizer/maker.h"

static const char *skip_blank(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

/* Whether a JSON object has a key; errors of the JSON are left to its reader. */
static bool has_key(const char *bytes, size_t n, const char *key)
{
    const char *at = bytes, *end = bytes + n;
    const size_t length = strlen(key);
    int64_t depth = 0;
    for (; at < end; at++) {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        if (*at != '"')
            continue;
        const char *text = ++at;
        for (; at < end && *at != '"'; at++)
            at += *at == '\\' && at + 1 < end;
        const char *next = skip_blank(at < end ? at + 1 : at, end);
        if (depth == 1 && next < end && *next == ':' && (size_t)(at - text) == length &&
            memcmp(text, key, length) == 0)
            return true;
    }
    return false;
}

/* Whether the first value of an object is a number, as all values of a vocab.json are. */
static bool is_vocab(const char *bytes, size_t n)
{
    const char *end = bytes + n, *at = skip_blank(skip_blank(bytes, end) + 1, end);
    if (at >= end || *at++ != '"')
        return false;
    for (; at < end && *at != '"'; at++)
        at += *at == '\\' && at + 1 < end;
    at = skip_blank(at < end ? at + 1 : at, end);
    at = skip_blank(at < end ? at + 1 : at, end); /* after the colon */
    return at < end && (*at == '-' || (*at >= '0' && *at <= '9'));
}

/* Whether the text has the given line. */
static bool has_line(const char *bytes, size_t n, const char *line)
{
    const size_t length = strlen(line);
    for (const char *at = bytes, *end = bytes + n; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *to = stop ? stop : end;
        if ((size_t)(to - at) >= length && memcmp(at, line, length) == 0 &&
            skip_blank(at + length, to) == to)
            return true;
        at = to + 1;
    }
    return false;
}

/* Whether the first lines are "a b". */
static bool is_merges(const char *bytes, size_t n)
{
    const char *at = bytes, *end = bytes + n, *stop;
    if (n >= 8 && memcmp(bytes, "#version", 8) == 0)
        return true;
    for (int i = 0; i < 3 && at < end; i++, at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        const char *space = memchr(at, ' ', (size_t)(stop - at));
        if (!space || space == at || space + 1 >= stop ||
            memchr(space + 1, ' ', (size_t)(stop - space - 1)))
            return false;
    }
    return n > 0;
}

tk_reader tk_reader_of(const char *bytes, size_t n)
{
    const char *first = skip_blank(bytes, bytes + n);
    if (first < bytes + n && *first == '{')
        return is_vocab(bytes, n) ? tk_read_vocab_and_merges
               : has_key(bytes, n, "config") && !has_key(bytes, n, "model") ? tk_read_tekken
                                                                            : tk_read_json;
    if (tk_is_sentence_piece(bytes, n))
        return tk_read_sentence_piece;
    if (tk_is_tiktoken(bytes, n))
        return tk_read_tiktoken;
    if (tk_utf8_end(bytes, n) != n)
        return NULL;
    return has_line(bytes, n, "[UNK]") ? tk_read_word_list
           : is_merges(bytes, n)       ? tk_read_vocab_and_merges
                                       : NULL;
}
