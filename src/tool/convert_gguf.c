/* convert_gguf.c -- writes a GGUF of the tensors of any file; blocks and metadata of a GGUF are
 * copied unchanged. */
#include "tool/convert.h"
#include "io/gguf.h"
#include "tool/tool.h"
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ALIGNMENT = 32, MOST_DIMS = 4 };

typedef struct writing {
    tool_out out;
    const tool_tensors *from;
    bool is_gguf; /* the source is a GGUF */
    uint64_t alignment;
} writing;

/* Returns the type that a tensor is written in; NULL: GGUF has no such type. */
static const io_block *block_of(const writing *w, const char *name, tern_dtype dtype)
{
    static const struct {
        tern_dtype dtype;
        const char *name;
    } types[] = {{TERN_F32, "F32"}, {TERN_F16, "F16"}, {TERN_BF16, "BF16"}, {TERN_F64, "F64"},
                 {TERN_I8, "I8"},   {TERN_I16, "I16"}, {TERN_I32, "I32"},   {TERN_I64, "I64"}};
    if (w->is_gguf && !w->from->dtype)
        return io_block_named(tern_file_dtype_name(w->from->file, name));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype)
            return io_block_named(types[i].name);
    return NULL;
}

static uint64_t bytes_of(const io_block *block, tern_shape shape)
{
    uint64_t n = 1;
    for (int d = 0; d < shape.ndim; d++)
        n *= (uint64_t)shape.dims[d];
    return n / (uint64_t)block->elements * (uint64_t)block->bytes;
}

/* ---- metadata ------------------------------------------------------------------------------ */

static void put_text(tool_out *out, const char *text, uint64_t n)
{
    tool_out_number(out, n, 8);
    tool_out_bytes(out, text, (size_t)n);
}

/* Whether to omit a key: those of split files, because the parts become one file, and another
 * format's note of a GGUF's alignment. */
static bool is_left_out(const writing *w, const char *key)
{
    return strncmp(key, "split.", 6) == 0 || (!w->is_gguf && strcmp(key, "general.alignment") == 0);
}

static void put_value(tool_out *out, const io_gguf_value *v)
{
    const unsigned char *at = v->bytes;
    const char *text;
    uint64_t n = 0;
    tool_out_number(out, v->is_array ? IO_GGUF_ARRAY : v->kind, 4);
    if (v->is_array) {
        tool_out_number(out, v->kind, 4);
        tool_out_number(out, v->count, 8);
    }
    if (v->kind != IO_GGUF_TEXT)
        tool_out_bytes(out, at, (size_t)v->count * io_gguf_size(v->kind));
    else
        for (uint64_t i = 0; i < v->count && io_gguf_text(&at, v->end, &text, &n); i++)
            put_text(out, text, n);
}

/* With --dtype, writes general.file_type for the new type of the matrices. */
static bool put_label(writing *w, const char *key)
{
    const tern_dtype dtype = w->from->dtype;
    if (!dtype || dtype == TERN_F64 || strcmp(key, "general.file_type") != 0)
        return false;
    tool_out_number(&w->out, IO_GGUF_U32, 4);
    tool_out_number(&w->out, dtype == TERN_F32 ? 0 : dtype == TERN_F16 ? 1 : 32, 4);
    return true;
}

/* Writes the key-value pairs of the source, as strings if it is no GGUF; without `write` only
 * counts them. */
static uint64_t put_pairs(writing *w, bool write)
{
    io_gguf_value v = {0};
    const char *key;
    uint64_t n = 0;
    const int most = w->is_gguf ? INT32_MAX : tern_file_metadata_count(w->from->file);
    for (int i = 0; i < most; i++) {
        key = w->is_gguf ? io_gguf_pair_at(w->from->file, i, &v)
                         : tern_file_metadata_key_at(w->from->file, i);
        if (!key)
            break;
        if (is_left_out(w, key))
            continue;
        n++;
        if (!write)
            continue;
        put_text(&w->out, key, strlen(key));
        if (w->is_gguf && !put_label(w, key))
            put_value(&w->out, &v);
        if (w->is_gguf)
            continue;
        const char *text = tern_file_metadata(w->from->file, key);
        tool_out_number(&w->out, IO_GGUF_TEXT, 4);
        put_text(&w->out, text, strlen(text));
    }
    return n;
}

/* ---- tensors ------------------------------------------------------------------------------- */

static void put_records(writing *w)
{
    const tern_file *file = w->from->file;
    uint64_t at = 0;
    for (int i = 0; i < tern_file_count(file); i++) {
        const char *name = tern_file_name_at(file, i);
        const tern_shape shape = tern_file_shape(file, name);
        const io_block *block = block_of(w, name, tool_tensor_dtype(w->from, name));
        put_text(&w->out, name, strlen(name));
        tool_out_number(&w->out, (uint64_t)shape.ndim, 4);
        for (int d = shape.ndim; d-- > 0;)
            tool_out_number(&w->out, (uint64_t)shape.dims[d], 8);
        tool_out_number(&w->out, block->id, 4);
        tool_out_number(&w->out, at, 8);
        at += (bytes_of(block, shape) + w->alignment - 1) / w->alignment * w->alignment;
    }
    tool_out_pad(&w->out, w->alignment);
}

static bool put_tensor(writing *w, int i)
{
    const char *name = tern_file_name_at(w->from->file, i);
    const bool blocks = w->is_gguf && !w->from->dtype &&
                        io_block_named(tern_file_dtype_name(w->from->file, name))->decode;
    tern_tensor *x =
        blocks ? io_gguf_blocks(w->from->file, name, "cpu") : tool_tensor_get(w->from, i);
    if (!x)
        return tool_fail_with_error(), false;
    tool_out_bytes(&w->out, tern_data(x),
                   (size_t)tern_numel(x) * (size_t)tern_dtype_size(tern_dtype_of(x)));
    tool_out_pad(&w->out, w->alignment);
    return true;
}

static bool put_all(writing *w)
{
    bool good = true;
    tool_out_bytes(&w->out, "GGUF", 4);
    tool_out_number(&w->out, 3, 4);
    tool_out_number(&w->out, (uint64_t)tern_file_count(w->from->file), 8);
    tool_out_number(&w->out, put_pairs(w, false), 8);
    put_pairs(w, true);
    put_records(w);
    for (int i = 0; i < tern_file_count(w->from->file) && good; i++)
        TERN_SCOPE
            good = put_tensor(w, i);
    return good;
}

int tool_write_gguf(const tool_tensors *from, const char *path)
{
    io_gguf_value alignment;
    int64_t bytes = DEFAULT_ALIGNMENT;
    writing *w = calloc(1, sizeof *w);
    if (!w)
        return tool_fail(TOOL_WRONG, "convert: no memory");
    w->from = from;
    w->is_gguf = io_gguf_is(from->file);
    if (io_gguf_find(from->file, "general.alignment", &alignment))
        io_gguf_integer(alignment.kind, alignment.bytes, &bytes);
    w->alignment = (uint64_t)bytes;
    int code = TOOL_FINE;
    for (int i = 0; i < tern_file_count(from->file) && code == TOOL_FINE; i++) {
        const char *name = tern_file_name_at(from->file, i);
        const tern_dtype dtype = tool_tensor_dtype(from, name);
        const int dims = tern_file_shape(from->file, name).ndim;
        if (!dtype)
            code = TOOL_WRONG;
        else if (dims > MOST_DIMS || !block_of(w, name, dtype))
            code = tool_fail(TOOL_WRONG,
                             "convert: %s is of %s and %d dims: a GGUF has floats and signed "
                             "integers of at most %d dims",
                             name, tern_dtype_name(dtype), dims, MOST_DIMS);
    }
    if (code == TOOL_FINE)
        code = tool_out_open(&w->out, path) ? tool_out_close(&w->out, put_all(w)) : TOOL_WRONG;
    free(w);
    return code;
}
