/* load.c -- tern_onnx_load: makes a module of a file. */
#include "io/onnx/graph.h"
#include "base/os.h"
#include "base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tern/io/onnx.h>

bool tern_onnx_is_available(void)
{
    return onnx_protobuf_open(false);
}

/* ---- the file -------------------------------------------------------------------------------- */

static uint8_t *read_file(const char *path, size_t *n)
{
    int fd = tern_os_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct tern_os_stat is;
    uint8_t *bytes = NULL;
    *n = 0;
    if (fd < 0 || tern_os_fstat(fd, &is) || !S_ISREG(is.st_mode)) {
        tern_fail(TERN_ERR_IO, "tern_onnx_load: %s: %s", path,
                  fd < 0 ? strerror(errno) : "not a regular file");
    } else if (is.st_size > INT32_MAX) {
        tern_fail(TERN_ERR_IO, "tern_onnx_load: %s has %lld bytes, and protobuf's limit is 2 GiB",
                  path, (long long)is.st_size);
    } else if ((bytes = tern_alloc((size_t)is.st_size + 1))) {
        while (*n < (size_t)is.st_size) {
            ssize_t got = tern_os_read(fd, bytes + *n, (size_t)is.st_size - *n);
            if (got > 0)
                *n += (size_t)got;
            else if (got == 0 || errno != EINTR)
                break;
        }
        if (*n != (size_t)is.st_size) {
            tern_fail(TERN_ERR_IO, "tern_onnx_load: %s became shorter while it was read", path);
            tern_free(bytes);
            bytes = NULL;
        }
    }
    if (fd >= 0)
        tern_os_close(fd);
    return bytes;
}

/* Returns the operator set of the default domain, limited to those that tern supports. */
static tern_status find_opset(onnx_graph *g)
{
    for (size_t i = 0; i < g->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = g->model->opset_import[i];
        if (!set->domain || !*set->domain || !strcmp(set->domain, "ai.onnx"))
            g->opset = set->version;
    }
    if (g->opset < 1 || g->opset > 28)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_onnx_load: %s is of operator set %lld, tern reads 1 to 28", g->path,
                         (long long)g->opset);
    return TERN_OK;
}

static tern_status build(tern_module *module, onnx_graph *g)
{
    const Onnx__GraphProto *graph = g->model->graph;
    if (!graph)
        return tern_fail(TERN_ERR_IO, "tern_onnx_load: %s is no ONNX model: it has no graph",
                         g->path);
    TERN_TRY(find_opset(g));
    return onnx_build(module, g);
}

tern_module *tern_onnx_load(const char *path)
{
    size_t n;
    if (!path) {
        tern_fail_argument_null("tern_onnx_load", "path");
        return NULL;
    }
    if (!onnx_protobuf_open(true))
        return NULL;
    uint8_t *bytes = read_file(path, &n);
    onnx_graph *g = bytes ? tern_alloc(sizeof *g) : NULL;
    if (g)
        tern_mutex_init(&g->lock);
    if (g && (g->path = tern_copy_text(path)))
        g->model = onnx_unpack_model(&g->budget, bytes, n, path);
    tern_free(bytes);
    const char *name = g && g->model && g->model->graph ? g->model->graph->name : NULL;
    tern_module *module =
        g && g->model ? tern_nn_module_with_call(name && *name ? name : "ONNX", onnx_run, g) : NULL;
    if (!module || tern_nn_on_free(module, onnx_free_graph) != TERN_OK) {
        tern_nn_free(module); /* the module does not own the graph yet */
        onnx_free_graph(g);
        return NULL;
    }
    if (build(module, g) == TERN_OK)
        return module;
    tern_nn_free(module);
    return NULL;
}
