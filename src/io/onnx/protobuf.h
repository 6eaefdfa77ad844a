/* protobuf.h -- internals of reading ONNX messages with protobuf-c, which is loaded at run time.
 *
 * protobuf-c parses nested messages with unlimited recursion, and empty messages take many times
 * their size in memory. So the reader first checks the nesting depth of a file and then unpacks it
 * within a memory budget. */
#ifndef TERN_IO_ONNX_PROTOBUF_H
#define TERN_IO_ONNX_PROTOBUF_H
#include "base/error.h"
#include <onnx.pb-c.h>

/* The allocator of an unpacked message, and the number of bytes that it may still allocate. */
typedef struct onnx_budget {
    ProtobufCAllocator allocator;
    size_t left;
} onnx_budget;

/* Returns whether protobuf-c could be loaded. If not and `say` is true, the error is
 * TERN_ERR_UNSUPPORTED with the package to install. */
bool onnx_protobuf_open(bool say);
/* Returns the model in the bytes of a file, or NULL after TERN_ERR_IO or TERN_ERR_MEMORY, whose
 * message contains the path. */
Onnx__ModelProto *onnx_unpack_model(onnx_budget *budget, const uint8_t *bytes, size_t n,
                                    const char *path);
void onnx_free_model(onnx_budget *budget, Onnx__ModelProto *model);
/* Frees the bytes of a field that is no longer needed. */
void onnx_free_bytes(onnx_budget *budget, ProtobufCBinaryData *bytes);

#endif
