/* gguf_values.c -- reads the values of a GGUF's metadata. */
#include "base/text.h"
#include "base/os.h"
#include "io/file.h"
#include "io/gguf_inside.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    int bytes;
    bool is_signed;
} kinds[IO_GGUF_KINDS] = {
    {"u8", 1, false},   {"i8", 1, true},     {"u16", 2, false}, {"i16", 2, true},
    {"u32", 4, false},  {"i32", 4, true},    {"f32", 4, false}, {"bool", 1, false},
    {"text", 0, false}, {"array", 0, false}, {"u64", 8, false}, {"i64", 8, true},
    {"f64", 8, false},
};

bool io_gguf_is(const tern_file *file)
{
    return file && file->gguf;
}

bool io_gguf_find(const tern_file *file, const char *key, io_gguf_value *value)
{
    int i = io_gguf_is(file) ? tern_keys_find(&file->gguf->keys, key) : -1;
    *value = i < 0 ? (io_gguf_value){0} : file->gguf->pairs[i].value;
    return i >= 0;
}

const char *io_gguf_pair_at(const tern_file *file, int i, io_gguf_value *value)
{
    if (!io_gguf_is(file) || i >= file->gguf->count)
        return NULL;
    *value = file->gguf->pairs[i].value;
    return file->gguf->pairs[i].key;
}

tern_tensor *io_gguf_blocks(tern_file *file, const char *name, const char *device)
{
    int i = tern_keys_find(&file->keys, name);
    const io_entry *from = i < 0 ? NULL : &file->entries[i];
    if (!from || !from->block || from->ndim < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: \"%s\": `%s` is not of blocks",
                              file->function, file->path, IO_SHOW(name));
    int64_t dims[2] = {0, from->dims[from->ndim - 1] / from->block->elements * from->block->bytes};
    io_entry e = *from;
    e.ndim = 2;
    e.dims = dims;
    e.type = io_type_named("U8");
    e.bytes = io_entry_bytes(from);
    dims[0] = dims[1] ? (int64_t)e.bytes / dims[1] : 0;
    e.block = NULL;
    return io_read(file, &e, -1, -1, device, file->function);
}

size_t io_gguf_size(io_gguf_kind kind)
{
    return (size_t)kinds[kind].bytes;
}

double io_gguf_real(io_gguf_kind kind, const unsigned char *bytes)
{
    int64_t whole;
    float single;
    double x;
    if (io_gguf_integer(kind, bytes, &whole))
        return kind == IO_GGUF_U64 ? (double)io_gguf_bits(bytes, 8) : (double)whole;
    uint64_t bits = io_gguf_bits(bytes, kinds[kind].bytes);
    uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&x, &bits, sizeof x);
    return kind == IO_GGUF_F32 ? (double)single : x;
}

bool io_gguf_integer(io_gguf_kind kind, const unsigned char *bytes, int64_t *x)
{
    int n = kinds[kind].bytes;
    if (!n || kind == IO_GGUF_F32 || kind == IO_GGUF_F64)
        return false;
    uint64_t bits = io_gguf_bits(bytes, n);
    if (kinds[kind].is_signed && n < 8 && bits >> (8 * n - 1))
        bits |= UINT64_MAX << 8 * n;
    *x = kind == IO_GGUF_BOOL ? bits != 0 : (int64_t)bits;
    return kind != IO_GGUF_U64 || bits <= INT64_MAX;
}

bool io_gguf_text(const unsigned char **at, const unsigned char *end, const char **text,
                  uint64_t *n)
{
    if (end - *at < 8)
        return false;
    *n = io_gguf_bits(*at, 8);
    if (*n > (uint64_t)(end - *at - 8))
        return false;
    *text = (const char *)*at + 8;
    *at += 8 + *n;
    return true;
}

/* ---- values as text -------------------------------------------------------------------------- */

static void add_number(tern_text *text, io_gguf_kind kind, const unsigned char *at)
{
    int64_t x;
    if (kind == IO_GGUF_U64)
        tern_text_add(text, "%llu", (unsigned long long)io_gguf_bits(at, 8));
    else if (kind == IO_GGUF_BOOL)
        tern_text_add(text, *at ? "true" : "false");
    else if (io_gguf_integer(kind, at, &x))
        tern_text_add(text, "%lld", (long long)x);
    else {
        char real[40];
        tern_os_print_real(real, sizeof real, kind == IO_GGUF_F32 ? "%.9g" : "%.17g",
                           io_gguf_real(kind, at));
        tern_text_add(text, "%s", real);
    }
}

/* Appends the bytes if they are UTF-8 without a zero; else each byte that is not ASCII as \xHH. */
static void add_text(tern_text *to, const char *bytes, size_t n)
{
    tern_text_add_bytes(to, bytes, n);
    if (to->failed || (strlen(to->data) == n && io_is_utf8(to->data)))
        return;
    tern_text_free(to);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        tern_text_add(to, c && c < 0x80 ? "%c" : "\\x%02x", c);
    }
}

tern_status io_gguf_note(tern_state_dict *notes, const io_gguf_pair *pair)
{
    enum { SMALL = 16 };
    const io_gguf_value *v = &pair->value;
    const unsigned char *at = v->bytes;
    tern_text text = {0};
    const char *bytes;
    uint64_t n;
    tern_text_add(&text, "%s", "");
    if (v->is_array && (v->kind == IO_GGUF_TEXT || v->count > SMALL))
        tern_text_add(&text, "array of %llu %s", (unsigned long long)v->count, kinds[v->kind].name);
    else if (v->is_array) {
        for (uint64_t i = 0; i < v->count; i++, at += kinds[v->kind].bytes) {
            tern_text_add(&text, i ? ", " : "[");
            add_number(&text, v->kind, at);
        }
        tern_text_add(&text, v->count ? "]" : "[]");
    } else if (v->kind != IO_GGUF_TEXT)
        add_number(&text, v->kind, at);
    else if (io_gguf_text(&at, v->end, &bytes, &n) && n)
        add_text(&text, bytes, (size_t)n);
    tern_status status =
        text.failed ? TERN_ERR_MEMORY : tern_state_dict_set_metadata(notes, pair->key, text.data);
    tern_text_free(&text);
    return status;
}

void io_gguf_free(struct io_gguf *g)
{
    if (!g)
        return;
    for (int i = 0; i < g->count; i++)
        tern_free(g->pairs[i].key);
    tern_keys_free(&g->keys);
    tern_free(g->pairs);
    tern_free(g);
}
