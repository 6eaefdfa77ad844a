/* protobuf.c -- reads ONNX messages with protobuf-c, within limits, and writes them. */
#include "io/onnx/protobuf.h"
#include "base/lock.h"
#include "base/dynlib.h"
#include "base/magic.h"
#include "base/memory.h"
#include <stddef.h>
#include <string.h>

enum { DEPTH = 32 };

/* ---- protobuf-c, under the names in the generated code (library.cmake renames them) ---------- */

static struct {
    void *(*unpack)(const ProtobufCMessageDescriptor *, ProtobufCAllocator *, size_t,
                    const uint8_t *);
    void (*free_unpacked)(ProtobufCMessage *, ProtobufCAllocator *);
    size_t (*get_packed_size)(const ProtobufCMessage *);
    size_t (*pack)(const ProtobufCMessage *, uint8_t *);
    size_t (*pack_to_buffer)(const ProtobufCMessage *, ProtobufCBuffer *);
    bool there;
    char reason[200];
} protobuf;
static tern_once opened = TERN_ONCE_INIT;

static void open_once(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {{"protobuf_c_message_unpack", 0},
                   {"protobuf_c_message_free_unpacked", sizeof(void *)},
                   {"protobuf_c_message_get_packed_size", 2 * sizeof(void *)},
                   {"protobuf_c_message_pack", 3 * sizeof(void *)},
                   {"protobuf_c_message_pack_to_buffer", 4 * sizeof(void *)}};
    void *library =
        tern_dynlib_open(TERN_LIBRARY_PROTOBUF, protobuf.reason, sizeof protobuf.reason);
    protobuf.there = library != NULL;
    for (size_t i = 0; library && i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = tern_dynlib_symbol(library, symbols[i].name);
        memcpy((char *)&protobuf + symbols[i].offset, &symbol, sizeof symbol);
        protobuf.there = protobuf.there && symbol;
    }
}

bool onnx_protobuf_open(bool say)
{
    tern_call_once(&opened, open_once);
    if (!protobuf.there && say)
        tern_fail(TERN_ERR_UNSUPPORTED,
                  "tern_onnx: libprotobuf-c.so.1 can't be opened (%s); Debian's package is "
                  "libprotobuf-c1",
                  protobuf.reason);
    return protobuf.there;
}

ProtobufCMessage *protobuf_c_message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                            ProtobufCAllocator *allocator, size_t n,
                                            const uint8_t *data)
{
    return protobuf.unpack(descriptor, allocator, n, data);
}

void protobuf_c_message_free_unpacked(ProtobufCMessage *message, ProtobufCAllocator *allocator)
{
    protobuf.free_unpacked(message, allocator);
}

size_t protobuf_c_message_get_packed_size(const ProtobufCMessage *message)
{
    return protobuf.get_packed_size(message);
}

size_t protobuf_c_message_pack(const ProtobufCMessage *message, uint8_t *out)
{
    return protobuf.pack(message, out);
}

size_t protobuf_c_message_pack_to_buffer(const ProtobufCMessage *message, ProtobufCBuffer *buffer)
{
    return protobuf.pack_to_buffer(message, buffer);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Reads a varint at *at. Returns false if it is cut off or has more than ten bytes. */
static bool varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift < 64)
            *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Types of messages that can contain others. nested() returns the type of a field of a message, or
 * -1. */
typedef enum kind {
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    FUNCTION,
    VALUE_INFO,
    TYPE,
    TYPE_PART,
    OTHER
} kind;

static int nested(kind k, uint64_t field)
{
    static const struct {
        kind of;
        uint64_t field;
        kind is;
    } fields[] = {{MODEL, 7, GRAPH},       {MODEL, 20, OTHER},      {MODEL, 25, FUNCTION},
                  {GRAPH, 1, NODE},        {GRAPH, 11, VALUE_INFO}, {GRAPH, 12, VALUE_INFO},
                  {GRAPH, 13, VALUE_INFO}, {NODE, 5, ATTRIBUTE},    {ATTRIBUTE, 6, GRAPH},
                  {ATTRIBUTE, 11, GRAPH},  {ATTRIBUTE, 14, TYPE},   {ATTRIBUTE, 15, TYPE},
                  {FUNCTION, 7, NODE},     {VALUE_INFO, 2, TYPE},   {TYPE, 4, TYPE_PART},
                  {TYPE, 5, TYPE_PART},    {TYPE, 9, TYPE_PART},    {TYPE_PART, 1, TYPE},
                  {TYPE_PART, 2, TYPE}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].of == k && fields[i].field == field)
            return (int)fields[i].is;
    return -1;
}

/* Returns why the bytes can't be unpacked as a model, or NULL. Reads the wire format without
 * recursion, with a stack of the ends of messages. */
static const char *refusal(const uint8_t *at, size_t n)
{
    struct {
        const uint8_t *end;
        kind kind;
    } stack[DEPTH] = {{at + n, MODEL}};
    int depth = 0;
    for (;;) {
        while (depth > 0 && at == stack[depth].end)
            depth--;
        const uint8_t *end = stack[depth].end;
        if (at == end)
            return NULL;
        uint64_t key, length = 0;
        if (!varint(&at, end, &key))
            return "it is cut off";
        switch (key & 7) {
        case 0:
            if (!varint(&at, end, &length))
                return "it is cut off";
            continue;
        case 1:
            length = 8;
            break;
        case 5:
            length = 4;
            break;
        case 2:
            if (!varint(&at, end, &length))
                return "it is cut off";
            break;
        default:
            return "it is not in the wire format of protobuf";
        }
        if (length > (uint64_t)(end - at))
            return "a field is longer than what is left of the file";
        int inner = (key & 7) == 2 ? nested(stack[depth].kind, key >> 3) : -1;
        if (inner < 0) {
            at += length;
            continue;
        }
        if (depth + 1 == DEPTH)
            return "messages are nested more than 32 deep";
        stack[++depth].end = at + length;
        stack[depth].kind = (kind)inner;
    }
}

static void *budget_alloc(void *data, size_t size)
{
    onnx_budget *budget = data;
    if (size > budget->left)
        return NULL;
    budget->left -= size;
    return tern_alloc(size ? size : 1);
}

static void budget_free(void *data, void *block)
{
    (void)data;
    tern_free(block);
}

Onnx__ModelProto *onnx_unpack_model(onnx_budget *budget, const uint8_t *bytes, size_t n,
                                    const char *path)
{
    if (!onnx_protobuf_open(true))
        return NULL;
    const char *why = refusal(bytes, n);
    if (why)
        return tern_fail_null(TERN_ERR_IO, "tern_onnx_load: %s is not an ONNX model: %s%s", path,
                              why, tern_magic_say(bytes, n).text);
    *budget = (onnx_budget){.allocator = {budget_alloc, budget_free, budget},
                            .left = 16 * n + ((size_t)1 << 20)};
    uint64_t failures = tern_failures();
    Onnx__ModelProto *model = onnx__model_proto__unpack(&budget->allocator, n, bytes);
    if (!model && tern_failed_since(failures) == TERN_OK)
        tern_fail(
            TERN_ERR_IO,
            "tern_onnx_load: %s is not an ONNX model: protobuf-c can't read it in %zu bytes of "
            "memory%s",
            path, 16 * n + ((size_t)1 << 20), tern_magic_say(bytes, n).text);
    return model;
}

void onnx_free_model(onnx_budget *budget, Onnx__ModelProto *model)
{
    if (model)
        onnx__model_proto__free_unpacked(model, &budget->allocator);
}

void onnx_free_bytes(onnx_budget *budget, ProtobufCBinaryData *bytes)
{
    if (bytes->data)
        budget_free(budget, bytes->data);
    *bytes = (ProtobufCBinaryData){0, NULL};
}
