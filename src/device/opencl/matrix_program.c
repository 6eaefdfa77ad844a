/* matrix_program.c -- programs of kernels over cl_kernels/matrix.h. */
#include "device/opencl/gemm.h"
#include "device/sources.h"
#include <stdio.h>

static void add_text(tern_text *text, const char *defines, const char *file, bool rolled)
{
    const char *const files[] = {"prelude_opencl.h", "prelude_opencl_gpu.h",
                                 "params_device.h",  "dialect.h",
                                 "shapes.h",         file};
    tern_sources_seen seen = {0};
    tern_text_add(text, "#define TERN_F64 0\n#define MATRIX_ROLLED %d\n%s", rolled, defines);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        tern_source_add(text, &seen, files[i]);
}

/* The sub-groups must have the size of the way's instruction. */
static tern_status check(tern_place *place, int way, size_t group, const char *title,
                         const tern_cl_kernel *kernel)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    size_t limit = group, lanes = 0;
    CL(GetKernelWorkGroupInfo(kernel->kernel, s->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit,
                              &limit, NULL));
    CL(GetKernelWorkGroupInfo(kernel->kernel, s->device,
                              CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof lanes, &lanes,
                              NULL));
    if (limit && limit < group)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s needs groups of %zu, and runs in %zu here",
                         tern_place_info(place)->device, title, group, limit);
    if (way >= TERN_MATRIX_RDNA3 && way <= TERN_MATRIX_CDNA &&
        lanes != (size_t)tern_matrix_lanes(way))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s needs waves of %d, and has %zu here",
                         tern_place_info(place)->device, title, tern_matrix_lanes(way), lanes);
    return TERN_OK;
}

tern_status tern_cl_matrix_build(tern_place *place, int way, size_t group, const char *defines,
                                 const char *file, const char *name, const char *title,
                                 tern_cl_kernel **kernel)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    /* With fewer registers Intel's compiler keeps all arrays in memory. */
    const bool wants = way >= TERN_MATRIX_XE8 && s->has_large_registers;
    char options[256];
    tern_text text = {0};
    cl_program program;
    snprintf(options, sizeof options, "%s%s", s->options,
             wants ? " -cl-intel-256-GRF-per-thread" : "");
    add_text(&text, defines, file, way == TERN_MATRIX_PLAIN || s->compiles_late);
    tern_cl_source source = {text.data, options, title, s->keep};
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_cl_build(place, &source, &program);
    tern_text_free(&text);
    TERN_TRY(status);
    TERN_TRY(tern_cl_kernel_make(place, program, name, kernel));
    (*kernel)->group = group;
    status = check(place, way, group, title, *kernel);
    if (status != TERN_OK) {
        tern_cl_kernel_free(*kernel);
        *kernel = NULL;
    }
    return status;
}
