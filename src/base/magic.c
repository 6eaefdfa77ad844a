/* magic.c -- file types by their first bytes. */
#include "base/magic.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *bytes;
    tern_magic kind;
    short offset, n;
} rows[] = {
#define MAGIC(OFFSET, BYTES, NAME, WAY) {BYTES, {NAME, WAY}, OFFSET, sizeof(BYTES) - 1},
#include "base/magic.def"
};

static bool fits(const unsigned char *bytes, const char *pattern, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (pattern[i] != '?' && bytes[i] != (unsigned char)pattern[i])
            return false;
    return true;
}

/* Returns whether a protobuf message begins with ir_version (field 1) and a field of ModelProto. */
static bool is_onnx(const unsigned char *bytes, size_t n)
{
    return n > 3 && bytes[0] == 8 && bytes[1] > 0 && bytes[1] < 32 &&
           (strchr("\x12\x1a\x22\x32\x3a\x42", bytes[2]) != NULL && bytes[2]);
}

/* Returns whether the bytes are a protobuf message whose first piece is <unk>, <pad> or similar. */
static bool is_sentencepiece(const unsigned char *bytes, size_t n)
{
    return n > 8 && bytes[0] == 10 && bytes[2] == 10 && bytes[3] > 0 && bytes[4] == '<' &&
           bytes[1] > bytes[3];
}

const tern_magic *tern_magic_of(const void *bytes, size_t n)
{
    static const tern_magic onnx = {"an ONNX model", "tern_onnx_load reads it"};
    static const tern_magic pieces = {"a model of sentencepiece (a tokenizer)", ""};
    static const tern_magic pickle = {"a pickle of Python's", ""};
    const unsigned char *at = bytes;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((size_t)rows[i].offset + (size_t)rows[i].n <= n &&
            fits(at + rows[i].offset, rows[i].bytes, (size_t)rows[i].n))
            return &rows[i].kind;
    if (n > 2 && at[0] == 0x80 && at[1] >= 2 && at[1] <= 5)
        return &pickle;
    return is_onnx(at, n) ? &onnx : is_sentencepiece(at, n) ? &pieces : NULL;
}

tern_magic_text tern_magic_say(const void *bytes, size_t n)
{
    const tern_magic *kind = tern_magic_of(bytes, n);
    tern_magic_text text = {""};
    if (kind)
        snprintf(text.text, sizeof text.text, ": it is %s%s%s", kind->name, *kind->way ? "; " : "",
                 kind->way);
    return text;
}
