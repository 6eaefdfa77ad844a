/* gemm_state.c -- the state of an OpenCL device for matrix products. */
#include "device/opencl/gemm.h"
#include "base/lock.h"

tern_cl_gemm_state *tern_cl_gemm_state_of(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    tern_mutex_lock(&s->lock);
    if (!s->gemm) {
        tern_cl_gemm_state *made = tern_alloc(sizeof *made);
        if (made)
            tern_mutex_init(&made->lock);
        s->gemm = made;
    }
    tern_cl_gemm_state *state = s->gemm;
    tern_mutex_unlock(&s->lock);
    return state;
}

/* Frees the state. CLBlast stays loaded and keeps its programs. */
void tern_cl_gemm_release(tern_place *place)
{
    tern_cl_gemm_state *state = tern_cl_state_of(place)->gemm;
    if (!state)
        return;
    for (int i = 0; i < 3; i++)
        for (int dtype = 0; dtype < TERN_DTYPE_END; dtype++)
            tern_cl_kernel_free(state->vector[i][dtype]);
    for (tern_cl_tiled *next, *t = state->tiled; t; t = next) {
        next = t->next;
        tern_cl_kernel_free(t->kernel);
        tern_free(t);
    }
    tern_matrix_kernels_free(&state->matrix);
    tern_buffer *buffers[] = {&state->scratch, &state->wide[0], &state->wide[1], &state->wide[2],
                              &state->wide[3]};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i]->handle)
            tern_cl_free(place, buffers[i]);
    tern_mutex_destroy(&state->lock);
    tern_free(state);
}
