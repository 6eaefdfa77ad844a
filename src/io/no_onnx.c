/* no_onnx.c -- what io/onnx.h is in a build without it. */
#include "base/error.h"
#include <tern/io/onnx.h>

#ifndef TERN_WITH_ONNX
bool tern_onnx_is_available(void)
{
    return false;
}

tern_module *tern_onnx_load(const char *path)
{
    return tern_fail_null(TERN_ERR_UNSUPPORTED,
                          "tern_onnx_load: %s: this build has no ONNX (CMake's TERN_ONNX; Debian's "
                          "libonnx-dev, libprotobuf-c-dev and protobuf-c-compiler)",
                          path ? path : "NULL");
}

tern_status tern_onnx_export(tern_module *module, tern_tensor *const *inputs, int n,
                             const char *path, const tern_onnx_export_options *options)
{
    (void)module, (void)inputs, (void)n, (void)options;
    return tern_fail(TERN_ERR_UNSUPPORTED,
                     "tern_onnx_export: %s: this build has no ONNX (CMake's TERN_ONNX; Debian's "
                     "libonnx-dev, libprotobuf-c-dev and protobuf-c-compiler)",
                     path ? path : "NULL");
}
#endif
