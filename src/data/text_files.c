/* text_files.c -- data sets of lines of text, and of files of tokens. */
#include "data/file.h"
#include <string.h>

/* ---- lines ------------------------------------------------------------------------------- */

typedef struct lines {
    tern_data_file file;
    int64_t *begin; /* n + 1 offsets: the start of each line, and the end of the last */
    int64_t n, capacity;
} lines;

static void free_lines(void *data)
{
    lines *l = data;
    tern_data_file_close(&l->file);
    tern_free(l->begin);
    tern_free(l);
}

static tern_status line_item(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const lines *l = self->data;
    int64_t n = l->begin[i + 1] - l->begin[i];
    tern_tensor *x = tern_empty(TERN_SHAPE(n), TERN_U8, "cpu");
    if (!x)
        return TERN_ERR_MEMORY;
    char *text = n ? tern_data(x) : NULL;
    if (n)
        TERN_TRY(tern_data_file_read(&l->file, l->begin[i], text, n, "tern_datasets_text_lines"));
    while (n && (text[n - 1] == '\n' || (text[n - 1] == '\r' && n)))
        n--;
    item[0] = tern_narrow(x, 0, 0, n);
    return TERN_OK;
}

static tern_status add_line(lines *l, int64_t at)
{
    if (l->n == l->capacity) {
        int64_t capacity = l->capacity ? 2 * l->capacity : 1024;
        int64_t *begin = tern_grow(l->begin, tern_size_bytes(capacity + 1, sizeof *begin));
        if (!begin)
            return TERN_ERR_MEMORY;
        l->begin = begin;
        l->capacity = capacity;
    }
    l->begin[l->n++] = at;
    return TERN_OK;
}

static tern_status find_lines(lines *l)
{
    enum { PIECE = 1 << 16 };
    char *piece = tern_alloc(PIECE);
    tern_status status = piece ? TERN_OK : TERN_ERR_MEMORY;
    bool fresh = true;
    for (int64_t at = 0; status == TERN_OK && at < l->file.size; at += PIECE) {
        int64_t n = l->file.size - at < PIECE ? l->file.size - at : PIECE;
        status = tern_data_file_read(&l->file, at, piece, n, "tern_datasets_text_lines");
        for (int64_t i = 0; i < n && status == TERN_OK; i++) {
            if (fresh)
                status = add_line(l, at + i);
            fresh = piece[i] == '\n';
        }
    }
    tern_free(piece);
    if (status == TERN_OK && !l->begin)
        l->begin = tern_alloc(sizeof *l->begin);
    if (status == TERN_OK && l->begin)
        l->begin[l->n] = l->file.size;
    return status == TERN_OK && !l->begin ? TERN_ERR_MEMORY : status;
}

tern_dataset *tern_datasets_text_lines(const char *path)
{
    static const tern_dataset_type type = {
        .name = "text lines", .item = line_item, .free_data = free_lines};
    lines *l = tern_alloc(sizeof *l);
    tern_dataset *d = NULL;
    if (!l)
        return NULL;
    if (tern_data_file_open(&l->file, path, "tern_datasets_text_lines") == TERN_OK &&
        find_lines(l) == TERN_OK)
        d = tern_data_dataset_of(&type, l->n, 1, l);
    if (!d)
        free_lines(l);
    return d;
}

/* ---- tokens ------------------------------------------------------------------------------ */

typedef struct tokens {
    tern_data_file file;
    int64_t block, each; /* each is the number of bytes of a token */
} tokens;

static void free_tokens(void *data)
{
    tokens *t = data;
    tern_data_file_close(&t->file);
    tern_free(t);
}

/* Converts n tokens of `each` bytes to int64. */
static void widen(const unsigned char *from, int64_t each, int64_t *to, int64_t n)
{
    int32_t four;
    for (int64_t i = 0; i < n; i++, from += each) {
        memcpy(&four, from, each == 4 ? 4 : 0);
        if (each == 8)
            memcpy(&to[i], from, 8);
        else
            to[i] = each == 1 ? from[0] : each == 4 ? four : from[0] | from[1] << 8;
    }
}

/* The file is read and not mapped: if another process truncates it, that is an error and no
 * SIGBUS. */
static tern_status tokens_item(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const tokens *t = self->data;
    const int64_t bytes = (t->block + 1) * t->each;
    for (int k = 0; k < 2; k++)
        if (!(item[k] = tern_empty(TERN_SHAPE(t->block), TERN_I64, "cpu")))
            return TERN_ERR_MEMORY;
    unsigned char *read = tern_alloc_aligned((size_t)bytes);
    if (!read)
        return TERN_ERR_MEMORY;
    tern_status status =
        tern_data_file_read(&t->file, i * t->each, read, bytes, "tern_datasets_tokens");
    for (int k = 0; k < 2 && status == TERN_OK; k++)
        widen(read + k * t->each, t->each, tern_data(item[k]), t->block);
    tern_free(read);
    return status;
}

static tern_status open_tokens(tokens *t, const char *path, tern_dtype dtype, int64_t block)
{
    const char *function = "tern_datasets_tokens";
    t->file.fd = -1;
    t->block = block;
    t->each = dtype ? (int64_t)tern_dtype_size(dtype) : 2;
    if (dtype != TERN_DTYPE_DEFAULT && dtype != TERN_U8 && dtype != TERN_I32 && dtype != TERN_I64)
        return tern_fail(TERN_ERR_DTYPE, "%s: tokens of %s", function, tern_dtype_name(dtype));
    if (block < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: block %lld should be positive", function,
                         (long long)block);
    TERN_TRY(tern_data_file_open(&t->file, path, function));
    if (t->file.size % t->each || t->file.size / t->each <= block)
        return tern_fail(
            TERN_ERR_IO, "%s: %s has %lld bytes: not tokens of %lld, more than %lld of them",
            function, path, (long long)t->file.size, (long long)t->each, (long long)block);
    return TERN_OK;
}

tern_dataset *tern_datasets_tokens(const char *path, tern_dtype dtype, int64_t block)
{
    static const tern_dataset_type type = {
        .name = "tokens", .item = tokens_item, .free_data = free_tokens};
    tokens *t = tern_alloc(sizeof *t);
    tern_dataset *d = NULL;
    if (!t)
        return NULL;
    if (open_tokens(t, path, dtype, block) == TERN_OK)
        d = tern_data_dataset_of(&type, t->file.size / t->each - block, 2, t);
    if (!d)
        free_tokens(t);
    return d;
}
