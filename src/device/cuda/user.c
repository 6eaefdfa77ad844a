/* user.c -- the user's own kernels: OpenCL C compiled with NVRTC, arguments and grids. */
#include "device/cuda/cuda.h"
#include "device/sources.h"
#include <stdio.h>
#include <string.h>

/* Adds the user's kernel as a function, and an entry that takes its arguments as words. A launch
 * has one block of shared memory in CUDA, so an argument in local memory becomes an offset into
 * it. */
static tern_status add_text(tern_text *text, const tern_user_source *source, const char *entry)
{
    tern_sources_seen seen = {0};
    bool dims = source->text.data && strstr(source->text.data, "cl_get_work_dim");
    tern_source_add(text, &seen, "user_cuda.h");
    tern_source_add(text, &seen, "user.h");
    tern_text_add_bytes(text, source->text.data, source->text.length);
    tern_text_add(
        text, "extern \"C\" __global__ void %s(const tern_words<%d> tern_given)\n{\n%s    %s;\n}\n",
        entry, source->parameters.n + 1, dims ? "    TERN_SET_DIMS;\n" : "", source->call.data);
    return text->failed ? TERN_ERR_MEMORY : TERN_OK;
}

tern_status tern_cuda_user_compile(tern_place *place, const char *source, const char *name,
                                   void **kernel)
{
    char title[192], entry[128];
    tern_text text = {0};
    tern_cuda_kernel *made = NULL;
    tern_user_source read;
    snprintf(title, sizeof title, "tern_kernel_compile: the source of \"%s\"", name);
    snprintf(entry, sizeof entry, "tern_entry_%s", name);
    TERN_TRY(tern_user_source_read(&read, source, name));
    tern_status status = add_text(&text, &read, entry);
    if (status == TERN_OK) {
        tern_cuda_source from = {text.data, title, entry, false};
        status = tern_cuda_build(place, &from, &made);
    }
    tern_text_free(&text);
    tern_user_source_free(&read);
    TERN_TRY(status);
    made->source = read;
    snprintf(made->name, sizeof made->name, "%s", name);
    *kernel = made;
    return TERN_OK;
}

static tern_status check_shared(tern_place *place, const tern_cuda_kernel *k, size_t bytes)
{
    int most = tern_cuda_state_of(place)->shared_memory;
    if ((uint64_t)bytes + (uint64_t)k->shared <= (uint64_t)most)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT,
                     "tern_kernel_launch: kernel %s is given %zu bytes of local memory and has "
                     "%d of its own, but %s has only %d",
                     k->name, bytes, k->shared, tern_place_info(place)->device, most);
}

tern_status tern_cuda_user_launch(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                                  const tern_arg *args, int n)
{
    tern_cuda_kernel *k = kernel;
    uint64_t words[TERN_USER_ARGUMENTS + 1];
    void *parameters[] = {words, NULL};
    int64_t group[3];
    unsigned blocks[3], block[3];
    size_t shared;
    TERN_TRY(tern_cuda_enter(place));
    tern_user_words(args, n, words, &shared);
    TERN_TRY(check_shared(place, k, shared));
    TERN_TRY(tern_user_group_of(&k->source, tern_place_info(place)->device, k->name, grid,
                                k->most_threads, group));
    words[n] = (uint64_t)tern_user_dims(grid);
    for (int i = 0; i < 3; i++) {
        block[i] = (unsigned)group[i];
        blocks[i] = (unsigned)((grid->items[i] + group[i] - 1) / group[i]);
    }
    CUresult code = tern_cuda.cuLaunchKernel(k->function, blocks[0], blocks[1], blocks[2], block[0],
                                             block[1], block[2], (unsigned)shared,
                                             tern_cuda_stream(place), parameters, NULL);
    return tern_cuda_check_driver(place, code, k->name);
}

void tern_cuda_user_free(tern_place *place, void *kernel)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    tern_cuda_kernel *k = kernel;
    if (atomic_load(&s->lost) || tern_cuda.cudaSetDevice(s->index) != 0) {
        tern_free(k);
        return;
    }
    tern_cuda.cudaStreamSynchronize(s->stream);
    tern_cuda_kernel_free(k);
}
