/* write.c -- writes a GGUF file: metadata, tensor records, and tensor data, encoded some rows at a
 * time. */
#include "models/gguf/write.h"
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 32, MOST_AT_A_TIME = 1 << 20 /* elements */ };

/* ---- metadata ------------------------------------------------------------------------------ */

static void put_bits(tk_out *to, uint64_t x, int bytes)
{
    char b[8];
    for (int i = 0; i < bytes; i++)
        b[i] = (char)(x >> 8 * i);
    tk_out_bytes(to, b, (size_t)bytes);
}

static void put_text(tk_out *to, const char *text, size_t n)
{
    put_bits(to, n, 8);
    tk_out_bytes(to, text, n);
}

static void put_key(gguf_writer *w, const char *key, io_gguf_kind kind)
{
    put_text(&w->pairs, key, strlen(key));
    put_bits(&w->pairs, kind, 4);
    w->n_pairs++;
}

void gguf_write_text(gguf_writer *w, const char *key, const char *text)
{
    put_key(w, key, IO_GGUF_TEXT);
    put_text(&w->pairs, text, strlen(text));
}

void gguf_write_u32(gguf_writer *w, const char *key, int64_t x)
{
    if ((x < 0 || x > UINT32_MAX) && w->status == TERN_OK)
        w->status = tern_fail(TERN_ERR_UNSUPPORTED,
                              "%s: \"%s\": %s is %lld, which a GGUF's 32 bits without a sign do "
                              "not hold",
                              w->function, w->path, key, (long long)x);
    put_key(w, key, IO_GGUF_U32);
    put_bits(&w->pairs, (uint64_t)x, 4);
}

void gguf_write_f32(gguf_writer *w, const char *key, double x)
{
    const float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    put_key(w, key, IO_GGUF_F32);
    put_bits(&w->pairs, bits, 4);
}

void gguf_write_bool(gguf_writer *w, const char *key, bool x)
{
    put_key(w, key, IO_GGUF_BOOL);
    put_bits(&w->pairs, x, 1);
}

void gguf_write_array(gguf_writer *w, const char *key, io_gguf_kind kind, uint64_t count)
{
    put_key(w, key, IO_GGUF_ARRAY);
    put_bits(&w->pairs, kind, 4);
    put_bits(&w->pairs, count, 8);
}

void gguf_write_element(gguf_writer *w, const char *prefix, const char *text, size_t n)
{
    const size_t before = strlen(prefix);
    put_bits(&w->pairs, before + n, 8);
    tk_out_bytes(&w->pairs, prefix, before);
    tk_out_bytes(&w->pairs, text, n);
}

void gguf_write_bits(gguf_writer *w, const void *x, size_t n)
{
    tk_out_bytes(&w->pairs, x, n);
}

void gguf_write_value(gguf_writer *w, const char *key, const io_gguf_value *v)
{
    const unsigned char *at = v->bytes;
    const char *text;
    uint64_t n = 0;
    if (v->is_array)
        gguf_write_array(w, key, v->kind, v->count);
    else
        put_key(w, key, v->kind);
    if (v->kind != IO_GGUF_TEXT) {
        tk_out_bytes(&w->pairs, (const char *)at, (size_t)v->count * io_gguf_size(v->kind));
        return;
    }
    for (uint64_t i = 0; i < v->count && io_gguf_text(&at, v->end, &text, &n); i++)
        put_text(&w->pairs, text, (size_t)n);
}

/* ---- tensors ------------------------------------------------------------------------------- */

static int64_t columns_of(const gguf_item *item)
{
    return item->shape.ndim ? item->shape.dims[item->shape.ndim - 1] : 1;
}

static int64_t elements_of(const gguf_item *item)
{
    int64_t n = 1;
    for (int i = 0; i < item->shape.ndim; i++)
        n *= item->shape.dims[i];
    return n;
}

tern_status gguf_write_tensor(gguf_writer *w, const gguf_item *item)
{
    if (item->shape.ndim > 4 || columns_of(item) % item->block->elements)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "%s: \"%s\": `%s` has rows of %lld elements and %d dims: at most 4 dims and "
            "whole blocks of %d of %s are expected",
            w->function, w->path, item->name, (long long)columns_of(item), item->shape.ndim,
            item->block->elements, item->block->name);
    if (w->n == w->capacity) {
        const int capacity = 2 * w->capacity + 64;
        gguf_item *longer = realloc(w->items, (size_t)capacity * sizeof *longer);
        if (!longer)
            return tern_fail(TERN_ERR_MEMORY, "%s: no memory for %d tensors", w->function,
                             capacity);
        w->items = longer;
        w->capacity = capacity;
    }
    gguf_item *to = &w->items[w->n];
    *to = *item;
    to->name = strdup(item->name);
    to->bytes =
        (uint64_t)(elements_of(item) / item->block->elements) * (uint64_t)item->block->bytes;
    w->n += to->name != NULL;
    return to->name ? TERN_OK : tern_fail(TERN_ERR_MEMORY, "%s: no memory", w->function);
}

static uint64_t padded(const gguf_writer *w, uint64_t bytes)
{
    const uint64_t to = w->alignment ? w->alignment : ALIGNMENT;
    return (bytes + to - 1) / to * to;
}

static tern_status pad(gguf_writer *w, io_out *out)
{
    static const char zeros[4096];
    for (uint64_t n = padded(w, out->at) - out->at; n;) {
        const size_t some = n < sizeof zeros ? (size_t)n : sizeof zeros;
        TRY(io_out_write(out, zeros, some));
        n -= some;
    }
    return TERN_OK;
}

static tern_status write_head(gguf_writer *w, io_out *out)
{
    tk_out head = {0};
    uint64_t at = 0;
    tk_out_bytes(&head, "GGUF", 4);
    put_bits(&head, 3, 4);
    put_bits(&head, (uint64_t)w->n, 8);
    put_bits(&head, w->n_pairs, 8);
    tk_out_bytes(&head, w->pairs.text ? w->pairs.text : "", w->pairs.n);
    for (int i = 0; i < w->n; i++) {
        const gguf_item *item = &w->items[i];
        put_text(&head, item->name, strlen(item->name));
        put_bits(&head, (uint64_t)item->shape.ndim, 4);
        for (int k = item->shape.ndim; k-- > 0;)
            put_bits(&head, (uint64_t)item->shape.dims[k], 8);
        put_bits(&head, item->block->id, 4);
        put_bits(&head, at, 8);
        at += padded(w, item->bytes);
    }
    tern_status status = head.status != TERN_OK || w->pairs.status != TERN_OK
                             ? tern_fail(TERN_ERR_MEMORY, "%s: no memory", w->function)
                             : io_out_open(out, padded(w, head.n) + at);
    if (status == TERN_OK)
        status = io_out_write(out, head.text, head.n);
    free(head.text);
    return status == TERN_OK ? pad(w, out) : status;
}

/* Encodes n float32 values on the cpu as blocks and writes the blocks. */
static tern_status encode(const gguf_item *item, const float *x, int64_t n, unsigned char *buffer,
                          io_out *out)
{
    const int each = item->block->elements, bytes = item->block->bytes;
    for (int64_t from = 0; from < n; from += MOST_AT_A_TIME) {
        const int64_t some = n - from < MOST_AT_A_TIME ? n - from : MOST_AT_A_TIME;
        unsigned char *to = buffer;
        for (int64_t i = 0; i < some; i += each, to += bytes)
            item->encoder->encode(x + from + i, to);
        TRY(io_out_write(out, buffer, (size_t)(to - buffer)));
    }
    return TERN_OK;
}

static tern_status write_item(gguf_writer *w, const gguf_item *item, unsigned char *buffer,
                              io_out *out)
{
    tern_tensor *x = w->get ? w->get(w->user, item) : item->values;
    if (x && item->encoder)
        x = tern_contiguous(tern_to_dtype(tern_to(x, "cpu"), TERN_F32));
    if (!x)
        return tern_last_status();
    const int64_t expected = item->encoder ? elements_of(item) : (int64_t)item->bytes;
    if (tern_numel(x) != expected)
        return tern_fail(TERN_ERR_STATE, "%s: \"%s\": `%s` has %lld elements, %lld are expected",
                         w->function, w->path, item->name, (long long)tern_numel(x),
                         (long long)expected);
    TRY(item->encoder ? encode(item, tern_data(x), expected, buffer, out)
                      : io_out_tensor(out, x, NULL, NULL));
    return pad(w, out);
}

tern_status gguf_write_file(gguf_writer *w)
{
    io_out out = {.function = w->function, .path = w->path};
    TRY(w->status);
    unsigned char *buffer = malloc((size_t)MOST_AT_A_TIME * 8);
    tern_status status =
        buffer ? write_head(w, &out) : tern_fail(TERN_ERR_MEMORY, "%s: no memory", w->function);
    for (int i = 0; i < w->n && status == TERN_OK; i++)
        TERN_SCOPE
            TERN_NO_GRAD
                status = write_item(w, &w->items[i], buffer, &out);
    if (status == TERN_OK)
        status = io_out_commit(&out);
    io_out_close(&out);
    free(buffer);
    return status;
}

void gguf_writer_free(gguf_writer *w)
{
    for (int i = 0; i < w->n; i++)
        free(w->items[i].name);
    free(w->items);
    free(w->pairs.text);
}
