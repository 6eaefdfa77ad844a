/* protobuf.h -- ONNX's messages, read with protobuf-c, which is opened at run time.
 *
 * protobuf-c follows nested messages by recursion without a limit and takes many times a file's
 * size for empty ones, so a file is walked first (depth) and then unpacked within a budget. */
#ifndef TERN_IO_ONNX_PROTOBUF_H
#define TERN_IO_ONNX_PROTOBUF_H
#include "base/error.h"
#include <onnx.pb-c.h>

/* What an unpacked message may take, and takes. */
typedef struct onnx_budget {
    ProtobufCAllocator allocator;
    size_t left;
} onnx_budget;

/* Whether protobuf-c is there; else TERN_ERR_UNSUPPORTED that says what to install, if `say`. */
bool onnx_protobuf_open(bool say);
/* The model in a file's bytes. NULL after TERN_ERR_IO or TERN_ERR_MEMORY that names the path. */
Onnx__ModelProto *onnx_unpack_model(onnx_budget *budget, const uint8_t *bytes, size_t n,
                                    const char *path);
void onnx_free_model(onnx_budget *budget, Onnx__ModelProto *model);
/* Free the bytes of a field that nobody needs any more. */
void onnx_free_bytes(onnx_budget *budget, ProtobufCBinaryData *bytes);

#endif
