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
/* A file of two tensors. */
static inline void gguf_write_sample(const char *path)
{
    static gguf_bytes b;
    gguf_head(&b, 2, 0);
    gguf_record(&b, "q", 2, (uint64_t[]){32, 32}, 8, 0);
    gguf_record(&b, "x", 1, (uint64_t[]){512}, 0, 1088);
    gguf_data(&b, 1088 + 2048);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(b.bytes, 1, b.n, file) != b.n || fclose(file) != 0)
        abort();
}

#endif
