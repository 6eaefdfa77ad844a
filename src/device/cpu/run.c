/* run.c -- runs the parts of a kernel's grid on the threads of the pool. */
#include "base/parallel.h"
#include "device/cpu/cpu.h"
#include "device/signature.h"
#include <stdatomic.h>

typedef struct launch {
    const tern_cpu_kernel *kernel;
    void *const *args;
} launch;

static void run_part(void *user, int part, int parts)
{
    const launch *l = user;
    l->kernel->run(l->kernel, part, parts, l->args);
}

void tern_cpu_run_parts(const tern_cpu_kernel *kernel, void *const *args, int parts)
{
    launch l = {kernel, args};
    if (parts == 1)
        run_part(&l, 0, 1);
    else
        tern_parallel(parts, run_part, &l);
}

tern_status tern_cpu_run_product(tern_place *place, _Atomic(void *) *slot, const char *name,
                                 tern_dtype dtype, void *problem, int parts)
{
    void *kernel = atomic_load_explicit(slot, memory_order_acquire);
    if (!kernel) {
        const tern_arg arg = {.role = TERN_ROLE_IN, .by_reference = true, .value.data = problem};
        TERN_TRY(tern_signature_check(place, "product", name, dtype, &arg, 1));
        TERN_TRY(tern_cpu_resolve(place, "product", name, dtype, &kernel));
        atomic_store_explicit(slot, kernel, memory_order_release);
    }
    tern_cpu_run_parts(kernel, &problem, parts);
    return TERN_OK;
}
