/* running_modules.h -- the modules that run, for error messages. */
#ifndef TERN_NN_RUNNING_MODULES_H
#define TERN_NN_RUNNING_MODULES_H
#include "base/thread.h"
#include "nn/module.h"

/* tern_nn_list lets error messages name m, tern_nn_unlist ends that. */
void tern_nn_list(tern_module *m);
void tern_nn_unlist(tern_module *m);

/* Makes m the innermost module that runs on this thread. The caller restores the old tern_running
 * after the run. */
static inline void tern_nn_runs(const tern_module *m)
{
    tern_running *running = &tern_thread.running;
    running->backward = NULL;
    running->modules.innermost = (tern_module_ref){m, m->number};
    if (!running->modules.outermost.module)
        running->modules.outermost = running->modules.innermost;
}

#endif
