/* convert_torch.c -- writes files in the format of torch.save. */
#include "tool/convert.h"
#include "base/os.h"
#include "tool/tool.h"
#include <stdlib.h>
#include <string.h>

/* ---- PyTorch's archive: a zip of stored entries, aligned to multiples of 64 ------------------ */

enum { LOCAL = 30, EXTRA = 20, ALIGNED = 64, MOST_FIELDS = 4 };

typedef struct entry {
    char name[64];
    uint64_t at, size;
    uint32_t crc;
} entry;

typedef struct archive {
    tool_out out;
    entry *entries;
    int n;
} archive;

static uint32_t crc_of(const unsigned char *bytes, size_t n)
{
    static uint32_t table[256];
    uint32_t c = ~0u;
    for (uint32_t i = 0; !table[255] && i < 256; i++) {
        uint32_t x = i;
        for (int k = 0; k < 8; k++)
            x = x & 1 ? x >> 1 ^ 0xedb88320u : x >> 1;
        table[i] = x;
    }
    for (size_t i = 0; i < n; i++)
        c = table[(c ^ bytes[i]) & 255] ^ c >> 8;
    return ~c;
}

/* Writes the fields that a local header and a directory entry share, from "version needed" on. */
static void put_facts(tool_out *out, const entry *e, size_t extra)
{
    tool_out_number(out, 45, 2);
    tool_out_number(out, 0x800, 2); /* flag: UTF-8 */
    tool_out_number(out, 0, 2);     /* method: stored */
    tool_out_number(out, 0, 2);
    tool_out_number(out, 33, 2); /* 1980-01-01 */
    tool_out_number(out, e->crc, 4);
    tool_out_number(out, UINT32_MAX, 4);
    tool_out_number(out, UINT32_MAX, 4);
    tool_out_number(out, strlen(e->name), 2);
    tool_out_number(out, extra, 2);
}

static void add_entry(archive *a, const char *name, const void *bytes, size_t n)
{
    entry *e = &a->entries[a->n++];
    snprintf(e->name, sizeof e->name, "archive/%s", name);
    e->at = a->out.at;
    e->size = n;
    e->crc = crc_of(bytes, n);
    const uint64_t data = e->at + LOCAL + strlen(e->name) + EXTRA + 4;
    const size_t padding = (size_t)((ALIGNED - data % ALIGNED) % ALIGNED);
    tool_out_number(&a->out, 0x04034b50, 4);
    put_facts(&a->out, e, EXTRA + 4 + padding);
    tool_out_bytes(&a->out, e->name, strlen(e->name));
    tool_out_number(&a->out, 1, 2); /* ZIP64: sizes of 64 bits */
    tool_out_number(&a->out, 16, 2);
    tool_out_number(&a->out, n, 8);
    tool_out_number(&a->out, n, 8);
    tool_out_bytes(&a->out, "FB", 2);
    tool_out_number(&a->out, padding, 2);
    for (size_t i = 0; i < padding; i++)
        tool_out_bytes(&a->out, "Z", 1);
    tool_out_bytes(&a->out, bytes, n);
}

static void put_directory(archive *a)
{
    tool_out *out = &a->out;
    const uint64_t from = out->at;
    for (int i = 0; i < a->n; i++) {
        const entry *e = &a->entries[i];
        tool_out_number(out, 0x02014b50, 4);
        tool_out_number(out, 45, 2);
        put_facts(out, e, 28);
        tool_out_number(out, 0, 2);
        tool_out_number(out, 0, 8);
        tool_out_number(out, UINT32_MAX, 4);
        tool_out_bytes(out, e->name, strlen(e->name));
        tool_out_number(out, 1, 2);
        tool_out_number(out, 24, 2);
        tool_out_number(out, e->size, 8);
        tool_out_number(out, e->size, 8);
        tool_out_number(out, e->at, 8);
    }
    const uint64_t to = out->at;
    tool_out_number(out, 0x06064b50, 4);
    tool_out_number(out, 44, 8);
    tool_out_number(out, 45 | 45 << 16, 4);
    tool_out_number(out, 0, 8);
    tool_out_number(out, (uint64_t)a->n, 8);
    tool_out_number(out, (uint64_t)a->n, 8);
    tool_out_number(out, to - from, 8);
    tool_out_number(out, from, 8);
    tool_out_number(out, 0x07064b50, 4);
    tool_out_number(out, 0, 4);
    tool_out_number(out, to, 8);
    tool_out_number(out, 1, 4);
    tool_out_number(out, 0x06054b50, 4);
    tool_out_number(out, 0, 4);
    tool_out_number(out, UINT32_MAX, 4); /* number of entries, twice */
    tool_out_number(out, UINT32_MAX, 4);
    tool_out_number(out, UINT32_MAX, 4);
    tool_out_number(out, 0, 2);
}

/* ---- the pickle, protocol 2 ---------------------------------------------------------------- */

/* The storage class of a dtype, and for dtypes without a class of PyTorch the dtype of an untyped
 * storage. */
static const struct {
    tern_dtype dtype;
    const char *storage, *type;
} storages[] = {{TERN_F32, "FloatStorage", NULL},
                {TERN_F64, "DoubleStorage", NULL},
                {TERN_F16, "HalfStorage", NULL},
                {TERN_BF16, "BFloat16Storage", NULL},
                {TERN_I32, "IntStorage", NULL},
                {TERN_I64, "LongStorage", NULL},
                {TERN_U8, "ByteStorage", NULL},
                {TERN_BOOL, "BoolStorage", NULL},
                {TERN_I8, "CharStorage", NULL},
                {TERN_I16, "ShortStorage", NULL},
                {TERN_U16, "UntypedStorage", "uint16"},
                {TERN_U32, "UntypedStorage", "uint32"},
                {TERN_U64, "UntypedStorage", "uint64"},
                {TERN_F8_E4M3FN, "UntypedStorage", "float8_e4m3fn"},
                {TERN_F8_E5M2, "UntypedStorage", "float8_e5m2"}};
enum { STORAGES = sizeof storages / sizeof *storages };

static int storage_of(tern_dtype dtype)
{
    int i = 0;
    while (i < STORAGES && storages[i].dtype != dtype)
        i++;
    return i;
}

static void put_text(FILE *to, const char *text)
{
    const size_t n = strlen(text);
    putc('X', to);
    for (int i = 0; i < 4; i++)
        putc((int)(n >> 8 * i & 255), to);
    fwrite(text, 1, n, to);
}

static void put_whole(FILE *to, int64_t x)
{
    fputs("\x8a\x08", to); /* LONG1 of 8 bytes */
    for (int i = 0; i < 8; i++)
        putc((int)((uint64_t)x >> 8 * i & 255), to);
}

static void put_tensor(FILE *to, const char *name, tern_shape shape, tern_dtype dtype, int number)
{
    char key[16];
    int64_t n = 1, strides[TERN_MAX_DIMS];
    const int k = storage_of(dtype);
    const char *type = storages[k].type;
    for (int d = shape.ndim; d-- > 0; n *= shape.dims[d])
        strides[d] = n;
    snprintf(key, sizeof key, "%d", number);
    put_text(to, name);
    fprintf(to, "ctorch._utils\n_rebuild_tensor_v%d\n((", type ? 3 : 2);
    put_text(to, "storage");
    fprintf(to, "ctorch%s\n%s\n", type ? ".storage" : "", storages[k].storage);
    put_text(to, key);
    put_text(to, "cpu");
    put_whole(to, type ? n * (int64_t)tern_dtype_size(dtype) : n);
    fputs("tQ", to);
    put_whole(to, 0);
    for (int list = 0; list < 2; list++) {
        putc('(', to);
        for (int d = 0; d < shape.ndim; d++)
            put_whole(to, list ? strides[d] : shape.dims[d]);
        putc('t', to);
    }
    fputs("\x89"
          "ccollections\nOrderedDict\n)R",
          to);
    if (type)
        fprintf(to, "ctorch\n%s\n", type);
    fputs("tR", to);
}

static bool put_pickle(archive *a, const tool_tensors *from)
{
    tern_os_text text;
    FILE *to = tern_os_text_begin(&text);
    if (!to)
        return false;
    fputs("\x80\x02"
          "ccollections\nOrderedDict\n)R(",
          to);
    for (int i = 0; i < tern_file_count(from->file); i++) {
        const char *name = tern_file_name_at(from->file, i);
        put_tensor(to, name, tern_file_shape(from->file, name), tool_tensor_dtype(from, name), i);
    }
    fputs("u.", to);
    char *bytes = tern_os_text_end(&text);
    if (bytes)
        add_entry(a, "data.pkl", bytes, text.bytes);
    free(bytes);
    return bytes != NULL;
}

static bool put_all(archive *a, const tool_tensors *from)
{
    bool good = put_pickle(a, from);
    add_entry(a, "byteorder", "little", 6);
    for (int i = 0; i < tern_file_count(from->file) && good; i++)
        TERN_SCOPE {
            char name[32];
            tern_tensor *x = tool_tensor_get(from, i);
            snprintf(name, sizeof name, "data/%d", i);
            good = x != NULL;
            if (good)
                add_entry(a, name, tern_data(x),
                          (size_t)tern_numel(x) * (size_t)tern_dtype_size(tern_dtype_of(x)));
            else
                tool_fail_with_error();
        }
    add_entry(a, "version", "3\n", 2);
    put_directory(a);
    return good;
}

int tool_write_torch(const tool_tensors *from, const char *path)
{
    const int n = tern_file_count(from->file);
    for (int i = 0; i < n; i++) {
        const char *name = tern_file_name_at(from->file, i);
        const tern_dtype dtype = tool_tensor_dtype(from, name);
        if (!dtype)
            return TOOL_WRONG;
        if (storage_of(dtype) == STORAGES)
            return tool_fail(TOOL_WRONG, "convert: %s is of %s, which is not written as .pt", name,
                             tern_dtype_name(dtype));
    }
    archive *a = calloc(1, sizeof *a);
    if (a)
        a->entries = calloc((size_t)n + MOST_FIELDS, sizeof *a->entries);
    int code = TOOL_WRONG;
    if (!a || !a->entries)
        tool_fail(TOOL_WRONG, "convert: no memory");
    else if (tool_out_open(&a->out, path))
        code = tool_out_close(&a->out, put_all(a, from));
    free(a ? a->entries : NULL);
    free(a);
    return code;
}
