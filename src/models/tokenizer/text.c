/* text.c -- growing arrays, and texts that record the origin of each byte. */
#include "models/tokenizer/internal.h"

tern_status tk_reserve(void **list, size_t *capacity, size_t n, size_t more, size_t each)
{
    size_t bytes, want;
    if (more <= *capacity - n)
        return TERN_OK;
    if (__builtin_add_overflow(n, more, &want) || want > SIZE_MAX / 4 ||
        __builtin_mul_overflow(want += want / 2 + 16, each, &bytes))
        return tern_fail(TERN_ERR_MEMORY, "tern_tokenizer: no memory for %zu elements", want);
    void *grown = realloc(*list, bytes);
    if (!grown)
        return tern_fail(TERN_ERR_MEMORY, "tern_tokenizer: no memory for %zu bytes", bytes);
    *list = grown;
    *capacity = want;
    return TERN_OK;
}

char *tk_copy(const char *text, size_t n)
{
    char *copy = malloc(n + 1);
    if (!copy)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_tokenizer: no memory for %zu bytes", n + 1);
    if (n)
        memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

/* ---- texts --------------------------------------------------------------------------------- */

static tern_status text_capacity(tk_text *to, size_t more)
{
    TK_TRY(TK_RESERVE(to->data, to->capacity, to->n, more));
    return TK_RESERVE(to->origin, to->origin_capacity, to->n, more);
}

tern_status tk_text_add(tk_text *to, const char *bytes, size_t n, const tk_range *origin)
{
    TK_TRY(text_capacity(to, n));
    if (n) {
        memcpy(to->data + to->n, bytes, n);
        memcpy(to->origin + to->n, origin, n * sizeof *origin);
    }
    to->n += n;
    return TERN_OK;
}

tern_status tk_text_add_at(tk_text *to, const char *bytes, size_t n, tk_range origin)
{
    TK_TRY(text_capacity(to, n));
    for (size_t i = 0; i < n; i++, to->n++) {
        to->data[to->n] = bytes[i];
        to->origin[to->n] = origin;
    }
    return TERN_OK;
}

tern_status tk_text_begin(tk_text *to, const char *bytes, size_t n)
{
    TK_TRY(text_capacity(to, n));
    for (size_t at = 0; at < n;) {
        tk_range span = {(uint32_t)at, 0};
        tk_next(bytes, &at);
        span.to = (uint32_t)at;
        for (size_t i = span.from; i < at; i++)
            to->origin[i] = span;
    }
    if (n)
        memcpy(to->data, bytes, n);
    to->n = n;
    return TERN_OK;
}

void tk_text_free(tk_text *text)
{
    free(text->data);
    free(text->origin);
    *text = (tk_text){0};
}

/* ---- pieces -------------------------------------------------------------------------------- */

static tern_status add_piece(tk_pieces *to, tk_piece piece)
{
    TK_TRY(TK_RESERVE(to->list, to->capacity, to->n, 1));
    to->list[to->n++] = piece;
    return TERN_OK;
}

tern_status tk_pieces_add(tk_pieces *to, const tk_text *from, size_t at, size_t n)
{
    if (n == 0)
        return TERN_OK;
    TK_TRY(add_piece(to, (tk_piece){to->text.n, n, -1}));
    return tk_text_add(&to->text, from->data + at, n, from->origin + at);
}

tern_status tk_pieces_add_token(tk_pieces *to, int64_t token, tk_range origin)
{
    TK_TRY(add_piece(to, (tk_piece){to->text.n, 1, token}));
    return tk_text_add_at(&to->text, " ", 1, origin);
}

void tk_pieces_free(tk_pieces *pieces)
{
    tk_text_free(&pieces->text);
    free(pieces->list);
    *pieces = (tk_pieces){0};
}

/* ---- words --------------------------------------------------------------------------------- */

tern_status tk_words_extend(tk_words *to, const char *bytes, size_t n)
{
    TK_TRY(TK_RESERVE(to->data, to->capacity, to->n, n + 1));
    if (n)
        memcpy(to->data + to->n, bytes, n);
    to->n += n;
    to->data[to->n] = 0;
    if (to->count)
        to->ends[to->count - 1] = to->n;
    return TERN_OK;
}

tern_status tk_words_add(tk_words *to, const char *bytes, size_t n)
{
    TK_TRY(TK_RESERVE(to->ends, to->ends_capacity, to->count, 1));
    to->ends[to->count++] = to->n;
    return tk_words_extend(to, bytes, n);
}

void tk_words_free(tk_words *words)
{
    free(words->data);
    free(words->ends);
    *words = (tk_words){0};
}
