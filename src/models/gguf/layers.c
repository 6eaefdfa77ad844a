/* layers.c -- replaces a model's layers by layers over the undecoded blocks of its GGUF file. */
#include "models/gguf/gguf.h"
#include "models/gguf/layer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plan {
    models_model *m;
    tern_file *file;
    char **paths;
    int n, capacity;
} plan;

static tern_status collect(const char *path, tern_module *m, void *user)
{
    plan *p = user;
    const char *name = tern_nn_name(m);
    if (!*path || (strcmp(name, "Linear") != 0 && strcmp(name, "Conv1D") != 0 &&
                   strcmp(name, "Embedding") != 0))
        return TERN_OK;
    if (p->n == p->capacity) {
        int capacity = 2 * p->capacity + 64;
        char **longer = realloc(p->paths, (size_t)capacity * sizeof *longer);
        if (!longer)
            return tern_fail(TERN_ERR_MEMORY, "tern_models_from_pretrained: no memory");
        p->paths = longer;
        p->capacity = capacity;
    }
    p->paths[p->n] = strdup(path);
    return p->paths[p->n++] ? TERN_OK
                            : tern_fail(TERN_ERR_MEMORY, "tern_models_from_pretrained: no memory");
}

/* Finds the file's matrix of a module and its type; returns false if there is none, or none in a
 * block type that can be decoded. */
static bool find_blocks(const plan *p, const char *path, char name[512], gguf_layer *l)
{
    char weight[512];
    if ((size_t)snprintf(weight, sizeof weight, "%s.weight", path) >= sizeof weight ||
        !gguf_name(p->m, weight, name, 512) || !tern_file_has(p->file, name))
        return false;
    tern_shape shape = tern_file_shape(p->file, name);
    l->block = io_block_named(tern_file_dtype_name(p->file, name));
    if (shape.ndim != 2 || !l->block || !l->block->decode)
        return false;
    l->rows = shape.dims[0];
    l->columns = shape.dims[1];
    return true;
}

/* Checks that the file's sizes are the module's. */
static tern_status check_sizes(const plan *p, const char *path, tern_module *m, const gguf_layer *l)
{
    tern_tensor *w = tern_nn_parameter_at(m, 0);
    bool columns = strcmp(tern_nn_name(m), "Conv1D") == 0;
    if (w && tern_size(w, columns) == l->rows && tern_size(w, !columns) == l->columns)
        return TERN_OK;
    return tern_fail(TERN_ERR_STATE,
                     "tern_models_from_pretrained: size mismatch for %s.weight: the file has "
                     "(%lld, %lld), %s wants another shape",
                     path, (long long)l->rows, (long long)l->columns, p->m->kind->name);
}

static tern_status replace(plan *p, const char *path, const char *name, gguf_layer l,
                           const char *device)
{
    char weight[512];
    tern_module *old = tern_nn_child(p->m->module, path), *made = NULL;
    TRY(check_sizes(p, path, old, &l));
    snprintf(weight, sizeof weight, "%s.weight", path);
    tern_tensor *blocks = io_gguf_blocks(p->file, name, device);
    if (blocks && !gguf_is_transposed(p->m, weight)) /* transposed matrices: the blocks already
                                                        lie along the inputs */
        blocks = gguf_values(p->m, weight, blocks);
    if (!blocks)
        return tern_last_status();
    if (strcmp(tern_nn_name(old), "Embedding") == 0)
        made = gguf_embedding(l, blocks);
    else
        made = gguf_linear(l, blocks, tern_nn_parameter_at(old, 1));
    return made && tern_nn_set_child(p->m->module, path, made) ? TERN_OK : tern_last_status();
}

/* Makes a tied head use the embedding's blocks, the same tensor. */
static tern_status tie(models_model *m)
{
    tern_module *embedding = m->tied ? tern_nn_child(m->module, m->tied) : NULL;
    if (!embedding || !gguf_is_layer(embedding))
        return TERN_OK;
    tern_module *made = gguf_linear(*(const gguf_layer *)tern_nn_data(embedding),
                                    tern_nn_buffer(embedding, "weight"), NULL);
    return made && tern_nn_set_child(m->module, m->kind->head, made) ? TERN_OK : tern_last_status();
}

tern_status gguf_read_layers(models_model *m, tern_file *file, const char *device,
                             void (*used)(void *user, const char *name), void *user)
{
    plan p = {.m = m, .file = file};
    char name[512];
    gguf_layer l;
    tern_status status = tern_nn_each_module(m->module, collect, &p);
    for (int i = 0; i < p.n; i++) {
        if (status == TERN_OK && find_blocks(&p, p.paths[i], name, &l)) {
            used(user, name);
            TERN_SCOPE
                TERN_NO_GRAD
                    status = replace(&p, p.paths[i], name, l, device);
        }
        free(p.paths[i]);
    }
    free(p.paths);
    return status == TERN_OK ? tie(m) : status;
}
