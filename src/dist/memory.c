/* memory.c -- host memory for the tensors of a work. */
#include "dist/dist.h"
#include <string.h>

static size_t bytes_of(const tern_tensor *x)
{
    return (size_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
}

/* Sets *memory to host memory with x's data: x's own on the cpu, else that of a new stage (*stage),
 * into which x is copied if `reads`. */
static tern_status find_memory(tern_tensor *x, bool reads, tern_stage **stage, void **memory)
{
    const size_t bytes = bytes_of(x);
    if (bytes == 0)
        return TERN_OK;
    if (strcmp(tern_device(x), "cpu") == 0) {
        *memory = tern_data(x);
        return *memory ? TERN_OK : TERN_ERR_STATE;
    }
    *stage = tern_stage_new(tern_device(x), bytes);
    if (!*stage)
        return TERN_ERR_MEMORY;
    *memory = tern_stage_memory(*stage);
    return reads ? tern_stage_read(*stage, 0, x, 0, bytes) : TERN_OK;
}

/* Records an error if in and out overlap, unless in is this rank's part of an all-gather's out. */
static tern_status check_apart(tern_dist_work *w)
{
    const char *in = w->from, *out = w->to;
    if (!w->in || !w->out || !in || !out)
        return TERN_OK;
    const size_t in_bytes = bytes_of(w->in), out_bytes = bytes_of(w->out);
    if (in + in_bytes <= out || out + out_bytes <= in)
        return TERN_OK;
    if (w->kind == DIST_ALL_GATHER && in == out + (size_t)w->group->rank * in_bytes) {
        w->from = NULL;
        return TERN_OK;
    }
    return tern_fail(TERN_ERR_ARGUMENT, "tern_dist_%s: the tensors overlap",
                     tern_dist_kind_name(w->kind));
}

tern_status tern_dist_stage(tern_dist_work *w)
{
    void *from = NULL;
    if (w->in)
        TERN_TRY(find_memory(w->in, true, &w->in_stage, &from));
    w->from = from;
    if (w->out)
        TERN_TRY(find_memory(w->out, w->reads, &w->out_stage, &w->to));
    return check_apart(w);
}
