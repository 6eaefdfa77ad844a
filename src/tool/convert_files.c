/* convert_files.c -- files that appear whole or not at all: PyTorch's archives, and GGUF. */
#include "tool/convert.h"
#include "base/os.h"
#include "tool/tool.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- files --------------------------------------------------------------------------------- */

bool tool_out_open(tool_out *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    *out = (tool_out){.path = path};
    snprintf(out->part, sizeof out->part, "%.*s.%s.%ld.tmp", folder, path, path + folder,
             (long)tern_os_getpid());
    out->file = tern_os_fopen(out->part, "wbx");
    if (!out->file)
        tool_fail(TOOL_WRONG, "%s: %s", out->part, strerror(errno));
    return out->file != NULL;
}

void tool_out_bytes(tool_out *out, const void *bytes, size_t n)
{
    out->failed = out->failed || (n && fwrite(bytes, 1, n, out->file) != n);
    out->at += n;
}

void tool_out_number(tool_out *out, uint64_t x, int bytes)
{
    unsigned char b[8];
    for (int i = 0; i < bytes; i++)
        b[i] = (unsigned char)(x >> 8 * i);
    tool_out_bytes(out, b, (size_t)bytes);
}

void tool_out_pad(tool_out *out, uint64_t multiple)
{
    while (out->at % multiple)
        tool_out_number(out, 0, 1);
}

int tool_out_close(tool_out *out, bool good)
{
    const bool wrote =
        !out->failed && fflush(out->file) == 0 && tern_os_fsync(fileno(out->file)) == 0;
    const int why = errno;
    const bool closed = fclose(out->file) == 0;
    if (good && wrote && closed && tern_os_rename(out->part, out->path) == 0)
        return TOOL_FINE;
    tern_os_unlink(out->part);
    return good ? tool_fail(TOOL_WRONG, "%s: %s", out->path, strerror(wrote ? errno : why))
                : TOOL_WRONG;
}

void *tool_elements(tern_tensor *x, size_t *bytes)
{
    *bytes = (size_t)tern_numel(x) * (size_t)tern_dtype_size(tern_dtype_of(x));
    void *data = malloc(*bytes + 1);
    if (data && tern_copy_to_host(x, data, *bytes) == TERN_OK)
        return data;
    free(data);
    tool_fail(TOOL_WRONG, "convert: %s", data ? tool_error() : "no memory");
    return NULL;
}

/* ---- PyTorch's archive: a zip of stored entries, each at a multiple of 64 ------------------ */

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

/* What a local header and one of the directory have in common, from the version that is needed
 * on. */
static void put_facts(tool_out *out, const entry *e, size_t extra)
{
    tool_out_number(out, 45, 2);
    tool_out_number(out, 0x800, 2); /* UTF-8 */
    tool_out_number(out, 0, 2);     /* stored */
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
    tool_out_number(&a->out, 1, 2); /* the sizes, of 64 bits */
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
    tool_out_number(out, UINT32_MAX, 4); /* entries, twice */
    tool_out_number(out, UINT32_MAX, 4);
    tool_out_number(out, UINT32_MAX, 4);
    tool_out_number(out, 0, 2);
}

/* ---- the pickle, protocol 2 ---------------------------------------------------------------- */

static const char *storage_of(tern_dtype dtype)
{
    switch (dtype) {
    case TERN_F32:
        return "FloatStorage";
    case TERN_F64:
        return "DoubleStorage";
    case TERN_F16:
        return "HalfStorage";
    case TERN_BF16:
        return "BFloat16Storage";
    case TERN_I32:
        return "IntStorage";
    case TERN_I64:
        return "LongStorage";
    case TERN_U8:
        return "ByteStorage";
    case TERN_BOOL:
        return "BoolStorage";
    case TERN_I8:
        return "CharStorage";
    case TERN_I16:
        return "ShortStorage";
    default:
        return NULL;
    }
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

static void put_tensor(FILE *to, const char *name, tern_tensor *x, int storage)
{
    char key[16];
    const tern_shape shape = tern_shape_of(x);
    int64_t stride = 1, strides[TERN_MAX_DIMS];
    for (int d = shape.ndim; d-- > 0; stride *= shape.dims[d])
        strides[d] = stride;
    snprintf(key, sizeof key, "%d", storage);
    put_text(to, name);
    fprintf(to, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_text(to, "storage");
    fprintf(to, "ctorch\n%s\n", storage_of(tern_dtype_of(x)));
    put_text(to, key);
    put_text(to, "cpu");
    put_whole(to, tern_numel(x));
    fputs("tQ", to);
    put_whole(to, 0);
    for (int k = 0; k < 2; k++) {
        putc('(', to);
        for (int d = 0; d < shape.ndim; d++)
            put_whole(to, k ? strides[d] : shape.dims[d]);
        putc('t', to);
    }
    fputs("\x89"
          "ccollections\nOrderedDict\n)RtR",
          to);
}

static bool put_pickle(archive *a, const tern_state_dict *dict)
{
    tern_os_text text;
    FILE *to = tern_os_text_begin(&text);
    if (!to)
        return false;
    fputs("\x80\x02"
          "ccollections\nOrderedDict\n)R(",
          to);
    for (int i = 0; i < tern_state_dict_count(dict); i++)
        put_tensor(to, tern_state_dict_key_at(dict, i), tern_state_dict_at(dict, i), i);
    fputs("u.", to);
    char *bytes = tern_os_text_end(&text);
    if (bytes)
        add_entry(a, "data.pkl", bytes, text.bytes);
    free(bytes);
    return bytes != NULL;
}

static bool put_all(archive *a, const tern_state_dict *dict)
{
    bool good = put_pickle(a, dict);
    add_entry(a, "byteorder", "little", 6);
    for (int i = 0; i < tern_state_dict_count(dict) && good; i++) {
        char name[32];
        size_t bytes;
        void *data = tool_elements(tern_state_dict_at(dict, i), &bytes);
        snprintf(name, sizeof name, "data/%d", i);
        good = data != NULL;
        if (good)
            add_entry(a, name, data, bytes);
        free(data);
    }
    add_entry(a, "version", "3\n", 2);
    put_directory(a);
    return good;
}

int tool_write_torch(const tern_state_dict *dict, const char *path)
{
    const int n = tern_state_dict_count(dict);
    archive a = {.entries = calloc((size_t)n + MOST_FIELDS, sizeof(entry))};
    for (int i = 0; i < n; i++)
        if (!storage_of(tern_dtype_of(tern_state_dict_at(dict, i)))) {
            free(a.entries);
            return tool_fail(TOOL_WRONG, "convert: %s is of %s, which is not written as .pt",
                             tern_state_dict_key_at(dict, i),
                             tern_dtype_name(tern_dtype_of(tern_state_dict_at(dict, i))));
        }
    int code = TOOL_WRONG;
    if (a.entries && tool_out_open(&a.out, path))
        code = tool_out_close(&a.out, put_all(&a, dict));
    free(a.entries);
    return code;
}

/* ---- GGUF ---------------------------------------------------------------------------------- */

static int type_in_gguf(tern_dtype dtype)
{
    switch (dtype) {
    case TERN_F32:
        return 0;
    case TERN_F16:
        return 1;
    case TERN_BF16:
        return 30;
    case TERN_F64:
        return 28;
    case TERN_I8:
        return 24;
    case TERN_I16:
        return 25;
    case TERN_I32:
        return 26;
    case TERN_I64:
        return 27;
    default:
        return -1;
    }
}

static void put_gguf_text(tool_out *out, const char *text)
{
    tool_out_number(out, strlen(text), 8);
    tool_out_bytes(out, text, strlen(text));
}

static bool put_gguf(tool_out *out, const tern_state_dict *dict)
{
    enum { ALIGNMENT = 32, TEXT = 8 };
    const int n = tern_state_dict_count(dict), pairs = tern_state_dict_metadata_count(dict);
    uint64_t at = 0;
    bool good = true;
    tool_out_bytes(out, "GGUF", 4);
    tool_out_number(out, 3, 4);
    tool_out_number(out, (uint64_t)n, 8);
    tool_out_number(out, (uint64_t)pairs, 8);
    for (int i = 0; i < pairs; i++) {
        const char *key = tern_state_dict_metadata_key_at(dict, i);
        put_gguf_text(out, key);
        tool_out_number(out, TEXT, 4);
        put_gguf_text(out, tern_state_dict_metadata(dict, key));
    }
    for (int i = 0; i < n; i++) {
        tern_tensor *x = tern_state_dict_at(dict, i);
        const tern_shape shape = tern_shape_of(x);
        put_gguf_text(out, tern_state_dict_key_at(dict, i));
        tool_out_number(out, (uint64_t)shape.ndim, 4);
        for (int d = shape.ndim; d-- > 0;)
            tool_out_number(out, (uint64_t)shape.dims[d], 8);
        tool_out_number(out, (uint64_t)type_in_gguf(tern_dtype_of(x)), 4);
        tool_out_number(out, at, 8);
        const uint64_t bytes = (uint64_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
        at += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    tool_out_pad(out, ALIGNMENT);
    for (int i = 0; i < n && good; i++) {
        size_t bytes;
        void *data = tool_elements(tern_state_dict_at(dict, i), &bytes);
        good = data != NULL;
        if (good)
            tool_out_bytes(out, data, bytes);
        tool_out_pad(out, ALIGNMENT);
        free(data);
    }
    return good;
}

int tool_write_gguf(const tern_state_dict *dict, const char *path)
{
    tool_out out;
    for (int i = 0; i < tern_state_dict_count(dict); i++) {
        tern_tensor *x = tern_state_dict_at(dict, i);
        if (tern_dim(x) > 4 || type_in_gguf(tern_dtype_of(x)) < 0)
            return tool_fail(TOOL_WRONG,
                             "convert: %s is of %s and %d dims: a GGUF has floats and signed "
                             "integers of at most 4 dims",
                             tern_state_dict_key_at(dict, i), tern_dtype_name(tern_dtype_of(x)),
                             tern_dim(x));
    }
    return tool_out_open(&out, path) ? tool_out_close(&out, put_gguf(&out, dict)) : TOOL_WRONG;
}
