/* onnx_open.c -- io/onnx.h in a library without ONNX's code: libtern.so, which opens
 * libtern_onnx.so (built from onnx/), or a build without ONNX. */
#include "base/dynlib.h"
#include "base/lock.h"
#include <stdio.h>
#include <string.h>
#include <tern/io/onnx.h>

static struct {
    bool (*is_available)(void);
    tern_module *(*load)(const char *path);
    tern_status (*export)(tern_module *module, tern_tensor *const *inputs, int n, const char *path,
                          const tern_onnx_export_options *options);
    char reason[1400];
} onnx;
static tern_once opened = TERN_ONCE_INIT;

#ifdef TERN_WITH_ONNX
static void *symbol(void *library, const char *name)
{
    void *found = tern_dynlib_symbol(library, name);
    if (!found)
        snprintf(onnx.reason, sizeof onnx.reason, "libtern_onnx" TERN_LIBRARY_ENDING " has no %s",
                 name);
    return found;
}

static void open_once(void)
{
    char path[1024];
    if (!tern_dynlib_beside("onnx", path, sizeof path)) {
        memcpy(onnx.reason, path, sizeof path);
        return;
    }
    void *library = tern_dynlib_open_path(path, onnx.reason, sizeof onnx.reason);
    void *all[3];
    if (!library || !(all[0] = symbol(library, "tern_onnx_is_available")) ||
        !(all[1] = symbol(library, "tern_onnx_load")) ||
        !(all[2] = symbol(library, "tern_onnx_export")))
        return;
    memcpy(&onnx, all, sizeof all);
}
#else
static void open_once(void)
{
    snprintf(onnx.reason, sizeof onnx.reason,
             "this build has no ONNX (CMake's TERN_ONNX; Debian's libonnx-dev, libprotobuf-c-dev "
             "and protobuf-c-compiler)");
}
#endif

static bool is_open(void)
{
    tern_call_once(&opened, open_once);
    return onnx.export != NULL;
}

bool tern_onnx_is_available(void)
{
    return is_open() && onnx.is_available();
}

tern_module *tern_onnx_load(const char *path)
{
    if (is_open())
        return onnx.load(path);
    return tern_fail_null(TERN_ERR_UNSUPPORTED, "tern_onnx_load: %s: %s", path ? path : "NULL",
                          onnx.reason);
}

tern_status tern_onnx_export(tern_module *module, tern_tensor *const *inputs, int n,
                             const char *path, const tern_onnx_export_options *options)
{
    TERN_NAMED_IN_ERRORS;
    if (is_open())
        return onnx.export(module, inputs, n, path, options);
    return tern_fail(TERN_ERR_UNSUPPORTED, "tern_onnx_export: %s: %s", path ? path : "NULL",
                     onnx.reason);
}
