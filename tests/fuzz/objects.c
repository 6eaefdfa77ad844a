/* objects.c -- see objects.h. */
#include "objects.h"
#include "nn/module.h"
#include <string.h>

fuzz_objects fuzz_held;

/* What was replaced or refused, to be freed at the end: graphs and others may use it. */
enum { MOST_OLD = 256 };
static tern_module *old_modules[MOST_OLD];
static tern_optimizer *old_optimizers[MOST_OLD];
static int old_module_count, old_optimizer_count;

static void set_aside(tern_module *m)
{
    if (m && old_module_count < MOST_OLD)
        old_modules[old_module_count++] = m;
}

tern_module *fuzz_module(int64_t i)
{
    return FUZZ_OBJECT(modules, i);
}

tern_module *fuzz_without_grads(int64_t i)
{
    tern_module *m = fuzz_module(i);
    fuzz_spare_begin();
    if (m)
        tern_nn_zero_grad(m);
    fuzz_spare_end();
    return m;
}

tern_module *fuzz_take(int64_t i)
{
    tern_module *m = fuzz_without_grads(i);
    if (m)
        fuzz_held.modules[i] = NULL;
    return m;
}

tern_module *fuzz_give(int64_t to, int64_t i)
{
    return to == i ? NULL : fuzz_take(i);
}

tern_module *fuzz_take_back(int64_t i)
{
    tern_module *m = fuzz_take(i);
    set_aside(m);
    return m;
}

int fuzz_put_module(int64_t i, tern_module *m)
{
    if (!m)
        return -1;
    for (int k = 0; k < old_module_count; k++)
        if (old_modules[k] == m)
            old_modules[k] = NULL;
    tern_module **slot = &fuzz_held.modules[(uint64_t)i % FUZZ_MODULES];
    set_aside(*slot);
    *slot = m;
    return 0;
}

int fuzz_put_optimizer(int64_t i, tern_optimizer *optimizer)
{
    if (!optimizer)
        return -1;
    tern_optimizer **slot = &fuzz_held.optimizers[(uint64_t)i % FUZZ_OBJECTS];
    if (*slot && old_optimizer_count < MOST_OLD)
        old_optimizers[old_optimizer_count++] = *slot;
    *slot = optimizer;
    return 0;
}

int fuzz_put_scheduler(int64_t i, tern_lr_scheduler *scheduler)
{
    if (!scheduler)
        return -1;
    tern_lr_scheduler **slot = &fuzz_held.schedulers[(uint64_t)i % FUZZ_OBJECTS];
    tern_lr_scheduler_free(*slot);
    *slot = scheduler;
    return 0;
}

static void free_module(tern_module *m)
{
    if (m)
        tern_nn_zero_grad(m);
    tern_nn_free(m);
}

/* Parameters and buffers, which a run or a step that fails does not move. */
typedef struct watched {
    tern_tensor **list;
    int n, most;
} watched;

static tern_status watch(const char *path, tern_tensor *x, void *user)
{
    watched *w = user;
    (void)path;
    if (w->n < w->most)
        w->list[w->n++] = x;
    return TERN_OK;
}

/* Buffers of the module that is run, if it has no children, of which one may have moved its own when
 * a later one fails, and no hooks, which may fail after the module ran. */
static int watch_run(const fuzz_step *step, watched *w)
{
    tern_module *m = step->n > 0 ? fuzz_module(tern_scalar_to_int(step->values[0].scalar)) : NULL;
    if (m && tern_nn_children_count(m) == 0 && !m->hooks)
        tern_nn_each_buffer(m, watch, w);
    return w->n;
}

int fuzz_watched(const fuzz_step *step, tern_tensor **list, int most)
{
    watched w = {list, 0, most};
    char name[64];
    snprintf(name, sizeof name, " %.60s ", tern_named_op_name(step->op));

    if (strstr(" forward call call_packed ", name))
        return watch_run(step, &w);
    if (!strstr(" step scaler_step load_state_dict ", name))
        return 0;
    for (int i = 0; i < FUZZ_MODULES; i++)
        if (fuzz_held.modules[i]) {
            tern_nn_each_parameter(fuzz_held.modules[i], watch, &w);
            tern_nn_each_buffer(fuzz_held.modules[i], watch, &w);
        }
    return w.n;
}

#define FREE_ALL(kind, free)                                                                       \
    for (size_t i = 0; i < sizeof fuzz_held.kind / sizeof *fuzz_held.kind; i++) {                  \
        free(fuzz_held.kind[i]);                                                                   \
        fuzz_held.kind[i] = NULL;                                                                  \
    }

void fuzz_clean(void)
{
    FREE_ALL(graphs, tern_graph_free)
    FREE_ALL(schedulers, tern_lr_scheduler_free)
    FREE_ALL(scalers, tern_amp_free)
    FREE_ALL(averages, tern_swa_free)
    FREE_ALL(dicts, tern_state_dict_free)
    FREE_ALL(optimizers, tern_optim_free)
    while (old_optimizer_count > 0)
        tern_optim_free(old_optimizers[--old_optimizer_count]);
    FREE_ALL(modules, free_module)
    while (old_module_count > 0)
        free_module(old_modules[--old_module_count]);
}
