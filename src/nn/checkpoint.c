/* checkpoint.c -- modules in checkpoints: their intermediate results are not kept but computed
 * again in the backward pass, which trades time for memory. */
#include "base/memory.h"
#include "nn/module.h"

static tern_status call_module(void *m, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    return tern_nn_call(m, in, n, out, k);
}

tern_status tern_checkpoint_call(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                                 int k)
{
    if (!m)
        return tern_fail_argument_null("tern_checkpoint_call", "m");
    return tern_checkpoint(call_module, m, in, n, out, k, NULL);
}

tern_tensor *tern_checkpoint_forward(tern_module *m, tern_tensor *x)
{
    tern_tensor *y = NULL;
    if (!m || !x) {
        tern_fail_argument_null("tern_checkpoint_forward", m ? "x" : "m");
        return NULL;
    }
    return tern_checkpoint_call(m, &x, 1, &y, 1) == TERN_OK ? y : NULL;
}

/* ---- a sequence -------------------------------------------------------------------------- */

/* Children first .. end - 1 of a Sequential. */
typedef struct segment {
    tern_module *m;
    int first, end;
} segment;

static tern_status run_segment(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const segment *s = data;
    (void)n;
    (void)k;
    out[0] = in[0];
    for (int i = s->first; out[0] && i < s->end; i++)
        out[0] = tern_nn_forward(tern_nn_child_at(s->m, i), out[0]);
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_tensor *run_checkpointed(segment s, tern_tensor *x,
                                     const tern_checkpoint_sequential_options *o)
{
    tern_checkpoint_options options = {.no_preserve_rng_state = o && o->no_preserve_rng_state,
                                       .free_data = tern_free};
    tern_tensor *y = NULL;
    segment *data = tern_alloc(sizeof *data);
    if (!data)
        return NULL;
    *data = s;
    return tern_checkpoint(run_segment, data, &x, 1, &y, 1, &options) == TERN_OK ? y : NULL;
}

/* The last segment is not checkpointed: its backward pass is first, right after its forward
 * pass. */
tern_tensor *tern_checkpoint_sequential(tern_module *m, int segments, tern_tensor *x,
                                        const tern_checkpoint_sequential_options *options)
{
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
        x = run_checkpointed((segment){m, first, first + length}, x, options);
    if (x && run_segment(&(segment){m, last, n}, &x, 1, &x, 1) != TERN_OK)
        return NULL;
    return x;
}
