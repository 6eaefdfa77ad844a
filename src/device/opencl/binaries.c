/* binaries.c -- programs as the driver's binaries: read from the cache, and written to it at once
 * or later. */
#include "device/opencl/opencl.h"
#include "base/lock.h"
#include "device/cache.h"
#include <stdlib.h>

static cl_program from_binary(tern_cl_state *s, const tern_cl_source *source, const void *data,
                              size_t bytes)
{
    cl_int code = CL_SUCCESS, accepted = CL_SUCCESS;
    const unsigned char *binary = data;
    cl_program program = CL_NEW(code, CreateProgramWithBinary(s->context, 1, &s->device, &bytes,
                                                              &binary, &accepted, &code));
    if (code == CL_SUCCESS && accepted == CL_SUCCESS &&
        CL(BuildProgram(program, 1, &s->device, source->options, NULL, NULL)) == CL_SUCCESS)
        return program;
    if (program)
        CL_END(ReleaseProgram(program));
    return NULL;
}

cl_program tern_cl_binary_load(tern_place *place, const tern_cl_source *source,
                               const tern_cache_key *key)
{
    size_t bytes;
    void *data = tern_cache_load(key, &bytes);
    cl_program program = data ? from_binary(tern_cl_state_of(place), source, data, bytes) : NULL;
    if (data && !program)
        tern_cache_remove(key);
    tern_free(data);
    return program;
}

/* Returns the driver's binary of a program, which the caller frees, or NULL if there is none. */
static void *binary_of(cl_program program, size_t *bytes)
{
    *bytes = 0;
    if (tern_cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL) !=
            CL_SUCCESS ||
        *bytes == 0)
        return NULL;
    unsigned char *data = tern_alloc_aligned(*bytes);
    if (data && tern_cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL) ==
                    CL_SUCCESS)
        return data;
    tern_free(data);
    return NULL;
}

void tern_cl_binary_store(const tern_cache_key *key, cl_program program)
{
    size_t bytes;
    void *data = binary_of(program, &bytes);
    if (data)
        tern_cache_keep(key, data, bytes);
    tern_free(data);
}

/* ---- programs that are kept later ---- */

struct tern_cl_later {
    struct tern_cl_later *next;
    tern_cache_key key;
    cl_program program;
};

/* Keeps the program for tern_cl_keep_programs, unless memory is out. */
void tern_cl_keep_later(tern_place *place, const tern_cache_key *key, cl_program program)
{
    tern_cl_state *s = tern_cl_state_of(place);
    struct tern_cl_later *later = malloc(sizeof *later);
    if (!later || tern_cl.RetainProgram(program) != CL_SUCCESS) {
        free(later);
        return;
    }
    tern_mutex_lock(&s->lock);
    *later = (struct tern_cl_later){s->later, *key, program};
    s->later = later;
    tern_mutex_unlock(&s->lock);
}

void tern_cl_forget_programs(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    for (struct tern_cl_later *next, *later = s->later; later; later = next) {
        next = later->next;
        CL_END(ReleaseProgram(later->program));
        free(later);
    }
    s->later = NULL;
}

void tern_cl_keep_programs(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    tern_mutex_lock(&s->lock);
    struct tern_cl_later *later = s->later;
    s->later = NULL;
    tern_mutex_unlock(&s->lock);
    while (later) {
        struct tern_cl_later *next = later->next;
        int claim = tern_cache_claim(&later->key);
        if (!tern_cache_has(&later->key))
            tern_cl_binary_store(&later->key, later->program);
        tern_cache_let_go(claim, &later->key);
        CL_END(ReleaseProgram(later->program));
        free(later);
        later = next;
    }
}
