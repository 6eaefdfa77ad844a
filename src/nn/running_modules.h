/* running_modules.h -- which modules run, for errors to name. */
#ifndef TERN_NN_RUNNING_MODULES_H
#define TERN_NN_RUNNING_MODULES_H
#include "base/thread.h"
#include "nn/module.h"

/* Errors may name m from now on, and no more. */
void tern_nn_list(tern_module *m);
void tern_nn_unlist(tern_module *m);

/* m runs on this thread, until the running of before is put back. */
static inline void tern_nn_runs(const tern_module *m)
{
    tern_running *running = &tern_thread.running;
    running->backward = NULL;
    running->modules.innermost = (tern_module_ref){m, m->number};
    if (!running->modules.outermost.module)
        running->modules.outermost = running->modules.innermost;
}

#endif
