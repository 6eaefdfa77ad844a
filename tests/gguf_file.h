/* gguf_file.h -- GGUF files, byte by byte. */
#ifndef TERN_TESTS_GGUF_FILE_H
#define TERN_TESTS_GGUF_FILE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gguf_bytes {
    unsigned char bytes[1 << 14];
    size_t n;
} gguf_bytes;

static inline void gguf_put(gguf_bytes *b, const void *data, size_t n)
{
    memcpy(b->bytes + b->n, data, n);
    b->n += n;
}
static inline void gguf_number(gguf_bytes *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        b->bytes[b->n++] = (unsigned char)(x >> 8 * i);
}
static inline void gguf_string(gguf_bytes *b, const char *text)
{
    gguf_number(b, strlen(text), 8);
    gguf_put(b, text, strlen(text));
}
static inline void gguf_head(gguf_bytes *b, uint64_t tensors, uint64_t pairs)
{
    b->n = 0;
    gguf_put(b, "GGUF", 4);
    gguf_number(b, 3, 4);
    gguf_number(b, tensors, 8);
    gguf_number(b, pairs, 8);
}
/* A key whose value is a text, or a number of that kind and size. */
static inline void gguf_pair_text(gguf_bytes *b, const char *key, const char *text)
{
    gguf_string(b, key);
    gguf_number(b, 8, 4);
    gguf_string(b, text);
}
static inline void gguf_pair(gguf_bytes *b, const char *key, int kind, uint64_t x, int bytes)
{
    gguf_string(b, key);
    gguf_number(b, (uint64_t)kind, 4);
    gguf_number(b, x, bytes);
}
static inline void gguf_record(gguf_bytes *b, const char *name, int n, const uint64_t *dims,
                               uint32_t type, uint64_t offset)
{
    gguf_string(b, name);
    gguf_number(b, (uint64_t)n, 4);
    for (int i = 0; i < n; i++)
        gguf_number(b, dims[i], 8);
    gguf_number(b, type, 4);
    gguf_number(b, offset, 8);
}
/* Padding up to a multiple of 32, then n bytes of data. */
static inline void gguf_data(gguf_bytes *b, size_t n)
{
    while (b->n % 32)
        b->bytes[b->n++] = 0;
    for (size_t i = 0; i < n; i++)
        b->bytes[b->n++] = (unsigned char)(i % 7);
}
static inline void gguf_write(const gguf_bytes *b, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(b->bytes, 1, b->n, file) != b->n || fclose(file) != 0)
        abort();
}
/* A file of two tensors. */
static inline void gguf_write_sample(const char *path)
{
    static gguf_bytes b;
    gguf_head(&b, 2, 0);
    gguf_record(&b, "q", 2, (uint64_t[]){32, 32}, 8, 0);
    gguf_record(&b, "x", 1, (uint64_t[]){512}, 0, 1088);
    gguf_data(&b, 1088 + 2048);
    gguf_write(&b, path);
}

/* A Llama of one layer as a file says it is: heads of some width, stretched by yarn from some number of places. */
typedef struct gguf_said {
    const char *key; /* of the number that can't be */
    uint64_t heads, key_length, original;
    int kind; /* of the latter: 4 is u32, 6 float32, 12 float64 */
} gguf_said;

static inline void gguf_write_said(const gguf_said *s, const char *arch, const char *path)
{
    static gguf_bytes b;
    char key[128];
    const struct {
        const char *name;
        int kind, bytes;
        uint64_t value;
    } numbers[] = {
        {"block_count", 4, 4, 1},
        {"embedding_length", 4, 4, 8},
        {"feed_forward_length", 4, 4, 8},
        {"context_length", 4, 4, 16},
        {"attention.head_count", 4, 4, s->heads},
        {"attention.key_length", 4, 4, s->key_length},
        {"attention.layer_norm_rms_epsilon", 6, 4, 0x3727c5ac}, /* 1e-5 */
        {"rope.scaling.factor", 6, 4, 0x40000000},              /* 2 */
        {"rope.scaling.original_context_length", s->kind, s->kind == 12 ? 8 : 4, s->original}};
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    gguf_head(&b, 3, NUMBERS + 2);
    gguf_pair_text(&b, "general.architecture", arch);
    snprintf(key, sizeof key, "%s.rope.scaling.type", arch);
    gguf_pair_text(&b, key, "yarn");
    for (int i = 0; i < NUMBERS; i++) {
        snprintf(key, sizeof key, "%s.%s", arch, numbers[i].name);
        gguf_pair(&b, key, numbers[i].kind, numbers[i].value, numbers[i].bytes);
    }
    gguf_record(&b, "token_embd.weight", 2, (uint64_t[]){8, 8}, 0, 0);
    gguf_record(&b, "blk.0.attn_q.weight", 2, (uint64_t[]){8, 8}, 0, 256);
    gguf_record(&b, "blk.0.ffn_up.weight", 2, (uint64_t[]){8, 8}, 0, 512);
    gguf_data(&b, 768);
    gguf_write(&b, path);
}

#endif
