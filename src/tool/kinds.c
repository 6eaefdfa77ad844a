/* kinds.c -- detects the format of a file by its contents. */
#define _GNU_SOURCE
#include "base/magic.h"
#include "base/os.h"
#include "tool/convert.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 512, TAIL = 1 << 16 };

static bool has(const char *bytes, size_t n, const char *text)
{
    return tern_os_memmem(bytes, n, text, strlen(text)) != NULL;
}

static tool_kind named(tool_holds holds, const char *name)
{
    tool_kind kind = {.holds = holds};
    snprintf(kind.name, sizeof kind.name, "%s", name);
    return kind;
}

/* Determines the kind of a zip archive by its first entry and its directory. */
static tool_kind kind_of_zip(FILE *file, const char *head, size_t n)
{
    char *tail = malloc(TAIL);
    size_t got = 0;
    if (tail && (fseek(file, -TAIL, SEEK_END) == 0 || fseek(file, 0, SEEK_SET) == 0))
        got = fread(tail, 1, TAIL, file);
    const char *kind = has(head, n, ".npy") ? "NumPy archive (numpy.savez)"
                       : tail && has(tail, got, "/archive_format")
                           ? "PyTorch program (torch.export.save)"
                       : tail && has(tail, got, "/code/")    ? "TorchScript (torch.jit.save)"
                       : tail && has(tail, got, "/data.pkl") ? "PyTorch archive (torch.save)"
                                                             : "zip archive";
    free(tail);
    return named(TOOL_HOLDS_TENSORS, kind);
}

/* Determines the kind of a JSON object by its members. */
static tool_kind kind_of_json(const char *path)
{
    static const struct {
        const char *member, *name;
        tool_holds holds;
    } kinds[] = {{"weight_map", "index of several files", TOOL_HOLDS_TENSORS},
                 {"added_tokens", "tokenizer.json", TOOL_HOLDS_TOKENIZER},
                 {"model", "tokenizer.json", TOOL_HOLDS_TOKENIZER},
                 {"special_tokens", "tekken.json (a tokenizer)", TOOL_HOLDS_TOKENIZER},
                 {"vocab", "tekken.json (a tokenizer)", TOOL_HOLDS_TOKENIZER}};
    FILE *file = tern_os_fopen(path, "rb");
    json_t *json = file ? json_loadf(file, 0, NULL) : NULL;
    tool_kind kind = named(TOOL_HOLDS_TEXT, "JSON text");
    const char *key;
    json_t *first = NULL;
    if (!json_is_object(json))
        kind = named(TOOL_HOLDS_TEXT, "text");
    json_object_foreach(json, key, first) break;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_object_get(json, kinds[i].member)) {
            kind = named(kinds[i].holds, kinds[i].name);
            break;
        }
    if (kind.holds == TOOL_HOLDS_TEXT && json_is_integer(first))
        kind = named(TOOL_HOLDS_TOKENIZER, "vocab.json (a tokenizer, with merges.txt)");
    json_decref(json);
    if (file)
        fclose(file);
    return kind;
}

/* Whether head begins with a line of base64, a space and a number. */
static bool is_tiktoken(const char *head)
{
    static const char base64[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    const size_t n = strspn(head, base64),
                 digits = strspn(head + n + (head[n] == ' '), "0123456789");
    return n >= 4 && n % 4 == 0 && head[n] == ' ' && digits && strchr("\r\n", head[n + 1 + digits]);
}

/* Whether no byte is a control character other than white space. */
static bool is_text(const char *head, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)head[i] < 32 && !strchr("\t\n\r\f", head[i] ? head[i] : 'x'))
            return false;
    return n > 0;
}

static tool_kind kind_of_text(const char *path, const char *head, size_t n)
{
    const char *from = head + strspn(head, " \t\r\n");
    if (*from == '{')
        return kind_of_json(path);
    if (is_tiktoken(head))
        return named(TOOL_HOLDS_TOKENIZER, "tiktoken file (a tokenizer)");
    if (has(head, n, "[UNK]\n") || has(head, n, "[UNK]\r\n"))
        return named(TOOL_HOLDS_TOKENIZER, "vocab.txt (a tokenizer)");
    if (strncmp(head, "#version:", 9) == 0)
        return named(TOOL_HOLDS_TOKENIZER, "merges.txt (a tokenizer, with vocab.json)");
    return named(TOOL_HOLDS_TEXT, "text");
}

/* Returns the kind of a row of base/magic.def, with the name without its article. */
static tool_kind kind_of_magic(const tern_magic *magic)
{
    static const struct {
        const char *part;
        tool_holds holds;
    } kinds[] = {{"ONNX model", TOOL_HOLDS_MODEL},    {"PNG image", TOOL_HOLDS_IMAGE},
                 {"JPEG image", TOOL_HOLDS_IMAGE},    {"WebP image", TOOL_HOLDS_IMAGE},
                 {"BMP image", TOOL_HOLDS_IMAGE},     {"WAV sound", TOOL_HOLDS_SOUND},
                 {"IDX file", TOOL_HOLDS_IDX},        {"sentencepiece", TOOL_HOLDS_TOKENIZER},
                 {"tar archive", TOOL_HOLDS_ARCHIVE}, {"gzip", TOOL_HOLDS_PACKED},
                 {"zstd", TOOL_HOLDS_PACKED}};
    const char *name = magic->name;
    name += strncmp(name, "a ", 2) == 0 ? 2 : strncmp(name, "an ", 3) == 0 ? 3 : 0;
    tool_kind kind = named(TOOL_HOLDS_UNKNOWN, name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(name, kinds[i].part))
            kind.holds = kinds[i].holds;
    return kind;
}

/* Whether the first member of a tar archive is one of PyTorch's. */
static bool is_torch_tar(const char *head)
{
    static const char *const members[] = {"sys_info", "pickle", "tensors", "storages"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const char *name = strncmp(head, "./", 2) ? head : head + 2;
        if (strcmp(name, members[i]) == 0 || !*name)
            return true;
    }
    return false;
}

static tool_kind kind_of_head(FILE *file, const char *path, const char *head, size_t n)
{
    static const struct {
        size_t n;
        const char *bytes, *name;
    } kinds[] = {{4, "GGUF", "GGUF"},
                 {6, "\x93NUMPY", "NumPy array (numpy.save)"},
                 {6, "L11954", "PyTorch stream of pickles (torch.save before 1.6)"}};
    const size_t known = n < TERN_MAGIC_BYTES ? n : TERN_MAGIC_BYTES;
    if (n > 4 && memcmp(head, "PK\3\4", 4) == 0)
        return kind_of_zip(file, head, n);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n >= kinds[i].n && memcmp(head, kinds[i].bytes, kinds[i].n) == 0)
            return named(TOOL_HOLDS_TENSORS, kinds[i].name);
    /* torch.save's magic number, in a frame from pickle protocol 4 on */
    if (n > 24 && head[0] == '\x80' &&
        memcmp(head + (head[2] == '\x95' ? 11 : 2), "\x8a\x0a\x6c\xfc", 4) == 0)
        return named(TOOL_HOLDS_TENSORS, "PyTorch stream of pickles (torch.save before 1.6)");
    if (n > 9 && head[8] == '{' && !is_text(head, 8))
        return named(TOOL_HOLDS_TENSORS, "safetensors");
    const tern_magic *magic = tern_magic_of(head, known);
    if (magic && n > 262 && memcmp(head + 257, "ustar", 5) == 0 && is_torch_tar(head))
        return named(TOOL_HOLDS_TENSORS, "tar (PyTorch before 0.1.10)");
    if (magic)
        return kind_of_magic(magic);
    return is_text(head, n) ? kind_of_text(path, head, n) : named(TOOL_HOLDS_UNKNOWN, "unknown");
}

tool_kind tool_kind_of(const char *path)
{
    char head[HEAD + 1] = {0};
    struct tern_os_stat about;
    if (tern_os_stat(path, &about) != 0)
        return named(TOOL_HOLDS_UNKNOWN, "unknown");
    if (S_ISDIR(about.st_mode))
        return named(TOOL_HOLDS_TENSORS, "folder");
    FILE *file = S_ISREG(about.st_mode) ? tern_os_fopen(path, "rb") : NULL;
    const size_t n = file ? fread(head, 1, HEAD, file) : 0;
    const tool_kind kind =
        file ? kind_of_head(file, path, head, n) : named(TOOL_HOLDS_UNKNOWN, "no regular file");
    if (file)
        fclose(file);
    return kind;
}
