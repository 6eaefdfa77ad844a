/* from_nn.h -- the functions of nn/, a layer above, that lower layers call. */
#ifndef TERN_BASE_FROM_NN_H
#define TERN_BASE_FROM_NN_H
#include "base/thread.h"

typedef struct tern_nn_functions {
    /* Writes the path and the type of the innermost module that runs, as texts of at most `bytes`
     * bytes. Returns false if the module was freed. */
    bool (*module_path)(const tern_modules_running *running, char *path, char *type, size_t bytes);
} tern_nn_functions;

/* The functions of nn/, which are registered when the first module is created; NULL before. */
extern const tern_nn_functions *_Atomic tern_from_nn;

/* Does the same; if no module runs, returns false and empty texts. */
static inline bool tern_module_path(const tern_modules_running *running, char *path, char *type,
                                    size_t bytes)
{
    *path = *type = '\0';
    return running->innermost.module && tern_from_nn->module_path(running, path, type, bytes);
}

#endif
