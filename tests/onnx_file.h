/* onnx_file.h -- ONNX models made field by field, also such as no exporter would write. */
#ifndef TERN_TESTS_ONNX_FILE_H
#define TERN_TESTS_ONNX_FILE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a message. */
typedef struct message {
    unsigned char *bytes;
    size_t n, room;
} message;

static inline void put_bytes(message *m, const void *bytes, size_t n)
{
    if (m->n + n >= m->room)
        m->bytes = realloc(m->bytes, m->room = 2 * (m->n + n) + 16);
    if (n)
        memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static inline void put_varint(message *m, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
        put_bytes(m, &byte, 1);
        value >>= 7;
    } while (value);
}

static inline void put_int(message *m, unsigned field, int64_t value)
{
    put_varint(m, field << 3);
    put_varint(m, (uint64_t)value);
}

static inline void put_block(message *m, unsigned field, const void *bytes, size_t n)
{
    put_varint(m, field << 3 | 2);
    put_varint(m, n);
    put_bytes(m, bytes, n);
}

static inline void put_text(message *m, unsigned field, const char *text)
{
    put_block(m, field, text, strlen(text));
}

/* A message in another, which is freed. */
static inline void put_message(message *m, unsigned field, message inner)
{
    put_block(m, field, inner.bytes, inner.n);
    free(inner.bytes);
}

/* ---- ONNX's ---------------------------------------------------------------------------------- */

/* A float tensor with its elements in raw_data. */
static inline message float_tensor(const char *name, int ndim, const int64_t *dims,
                                   const float *data)
{
    message t = {0};
    size_t n = 1;
    for (int d = 0; d < ndim; d++) {
        put_int(&t, 1, dims[d]);
        n *= (size_t)dims[d];
    }
    put_int(&t, 2, 1);
    put_text(&t, 8, name);
    put_block(&t, 9, data, n * sizeof *data);
    return t;
}

/* A node of up to three inputs, "" at the end for less, and one output. */
static inline message node(const char *type, const char *a, const char *b, const char *c,
                           const char *out)
{
    message n = {0};
    const char *const in[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        if (*in[i])
            put_text(&n, 1, in[i]);
    put_text(&n, 2, out);
    put_text(&n, 3, out);
    put_text(&n, 4, type);
    return n;
}

static inline message named(const char *name)
{
    message v = {0};
    put_text(&v, 1, name);
    return v;
}

/* The whole model in a file. */
static inline void write_model(const char *path, message graph, int64_t opset)
{
    message model = {0}, set = {0};
    put_int(&set, 2, opset);
    put_int(&model, 1, 8);
    put_message(&model, 7, graph);
    put_message(&model, 8, set);
    FILE *file = fopen(path, "wb");
    fwrite(model.bytes, 1, model.n, file);
    fclose(file);
    free(model.bytes);
}

#endif
