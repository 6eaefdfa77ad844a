/* checkpoint.c -- modules in checkpoints: their intermediate results are not kept but recomputed in
 * the backward pass, which trades time for memory. */
#include "base/memory.h"
#include "nn/module.h"

/* Returns the checkpoint's module, which runs again in the backward pass, or NULL after an
 * error. */
static tern_module *module_of(tern_life *life)
{
    tern_module *m = tern_life_object(life);
    if (!m)
        tern_fail(TERN_ERR_STATE, "tern_checkpoint: the module was freed before the backward pass, "
                                  "which runs it again");
    return m;
}

static tern_status call_module(void *life, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    tern_module *m = module_of(life);
    return m ? tern_nn_call(m, in, n, out, k) : TERN_ERR_STATE;
}

tern_status tern_checkpoint_call(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                                 int k)
{
    TERN_NAMED_IN_ERRORS;
    TERN_MODULE_GIVEN(m, __func__);
    if (!m)
        return tern_fail_argument_null(__func__, "m");
    tern_life *life = tern_life_of(&m->life, m);
    const tern_checkpoint_options options = {.free_data = tern_life_release};
    return life ? tern_checkpoint(call_module, life, in, n, out, k, &options) : TERN_ERR_MEMORY;
}

tern_tensor *tern_checkpoint_forward(tern_module *m, tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    TERN_MODULE_GIVEN(m, __func__);
    tern_tensor *y = NULL;
    if (!m || !x) {
        tern_fail_argument_null(__func__, m ? "x" : "m");
        return NULL;
    }
    return tern_checkpoint_call(m, &x, 1, &y, 1) == TERN_OK ? y : NULL;
}

/* ---- sequences ------------------------------------------------------------------------------- */

/* Children first .. end - 1 of a Sequential. */
typedef struct segment {
    tern_life *module;
    int first, end;
} segment;

static void free_segment(void *data)
{
    segment *s = data;
    tern_life_release(s->module);
    tern_free(s);
}

static tern_tensor *run_children(tern_module *m, int first, int end, tern_tensor *x)
{
    for (int i = first; x && i < end; i++)
        x = tern_nn_forward(tern_nn_child_at(m, i), x);
    return x;
}

static tern_status run_segment(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const segment *s = data;
    tern_module *m = module_of(s->module);
    (void)n;
    (void)k;
    out[0] = m ? run_children(m, s->first, s->end, in[0]) : NULL;
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_tensor *run_checkpointed(tern_module *m, int first, int end, tern_tensor *x,
                                     const tern_checkpoint_sequential_options *o)
{
    tern_checkpoint_options options = {.no_preserve_rng_state = o && o->no_preserve_rng_state,
                                       .free_data = free_segment};
    tern_tensor *y = NULL;
    segment *data = tern_alloc(sizeof *data);
    if (!data)
        return NULL;
    *data = (segment){tern_life_of(&m->life, m), first, end};
    if (!data->module) {
        tern_free(data);
        return NULL;
    }
    return tern_checkpoint(run_segment, data, &x, 1, &y, 1, &options) == TERN_OK ? y : NULL;
}

/* The last segment is not checkpointed: its backward pass comes first, right after its forward
 * pass. */
tern_tensor *tern_checkpoint_sequential(tern_module *m, int segments, tern_tensor *x,
                                        const tern_checkpoint_sequential_options *options)
{
    TERN_MODULE_GIVEN(m, "tern_checkpoint_sequential");
    if (!m || !x) {
        tern_fail_argument_null("tern_checkpoint_sequential", m ? "x" : "m");
        return NULL;
    }
    int n = tern_nn_children_count(m);
    if (segments < 1 || segments > n)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_checkpoint_sequential: %d segments of %d modules", segments, n);
    int length = n / segments, last = length * (segments - 1);
    for (int first = 0; x && first < last; first += length)
        x = run_checkpointed(m, first, first + length, x, options);
    return run_children(m, last, n, x);
}
