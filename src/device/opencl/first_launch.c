/* first_launch.c -- PoCL compiles machine code when a kernel is first launched with a group size,
 * or finds the code in its cache. The launch waits for that, so that tern_on_compile reports it,
 * and no compiler runs while no call of the library waits for it. */
#include "device/builds.h"
#include "base/os.h"
#include "device/opencl/opencl.h"
#include <stdio.h>

/* PATIENCE_US: a longer wait is a compilation, not the reading of a file. */
enum { PATIENCE_US = 20000, LONGEST_NAP_US = 1000 };
/* PoCL compiles other code for grids of more groups than this. */
enum { SMALL_GRID = 65535 };

bool tern_cl_launch_is_first(tern_cl_state *state, tern_cl_kernel *kernel, cl_uint dims,
                             const size_t *global, const size_t *local)
{
    uint64_t form = 1;
    if (!state->compiles_late)
        return false;
    for (cl_uint d = 0; d < dims; d++)
        form = (form << 16) + (local ? local[d] : 0) * 2 + (global[d] >= SMALL_GRID);
    for (int i = 0; i < kernel->n_forms; i++)
        if (kernel->forms[i] == form)
            return false;
    if (kernel->n_forms == TERN_CL_FORMS)
        return false;
    kernel->forms[kernel->n_forms++] = form;
    return true;
}

static bool has_begun(cl_event event)
{
    cl_int status = CL_COMPLETE;
    cl_int code =
        CL(GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return code != CL_SUCCESS || status <= CL_RUNNING;
}

void tern_cl_wait_for_code(tern_place *place, const tern_cl_kernel *kernel, cl_event event)
{
    char title[160];
    long waited = 0, nap = 10;
    bool reported = false;
    snprintf(title, sizeof title, "kernel %s, for its first launch", kernel->name);
    tern_foreign_enter();
    tern_foreign_compile_begin();
    tern_cl_flush(place);
    for (; !tern_builds_are_stopped() && !has_begun(event);
         nap = nap < LONGEST_NAP_US ? 2 * nap : nap) {
        tern_os_sleep(nap * INT64_C(1000));
        waited += nap;
        if (reported || waited < PATIENCE_US)
            continue;
        tern_build_compiles(place, title);
        reported = true;
    }
    tern_foreign_compile_end();
    if (reported)
        tern_build_compiled(place, title);
    CL_END(ReleaseEvent(event));
    tern_foreign_leave();
}
