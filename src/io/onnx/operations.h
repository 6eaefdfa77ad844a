/* operations.h -- the functions of operations.def. */
#ifndef TERN_IO_ONNX_OPERATIONS_H
#define TERN_IO_ONNX_OPERATIONS_H
#include "io/onnx/graph.h"

#define UNARY(NAME, function)
#define BINARY(NAME, function)
#define RUN(NAME, function, on_host) tern_status onnx_##function(onnx_call *c);
#define KEEPS(NAME, function)        tern_status onnx_##function(onnx_call *c);
#define MICROSOFT(NAME, function)    tern_status onnx_##function(onnx_call *c);
#include "io/onnx/operations.def"
#undef UNARY
#undef BINARY
#undef RUN
#undef KEEPS
#undef MICROSOFT

#endif
