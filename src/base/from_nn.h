/* from_nn.h -- what the layers below nn/ ask of modules. */
#ifndef TERN_BASE_FROM_NN_H
#define TERN_BASE_FROM_NN_H
#include "base/thread.h"

typedef struct tern_nn_functions {
    /* The path and the type of the innermost module that runs, as texts of at most `bytes`; false
     * where the module is gone. */
    bool (*module_path)(const tern_modules_running *running, char *path, char *type, size_t bytes);
} tern_nn_functions;

/* The functions of nn/, which registers them with its first module; NULL before. */
extern const tern_nn_functions *_Atomic tern_from_nn;

/* The same, and false with empty texts where no module runs. */
static inline bool tern_module_path(const tern_modules_running *running, char *path, char *type,
                                    size_t bytes)
{
    *path = *type = '\0';
    return running->innermost.module && tern_from_nn->module_path(running, path, type, bytes);
}

#endif
