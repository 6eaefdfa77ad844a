/* prebuild.c -- programs built ahead of their use. */
#include "device/builds.h"
#include "device/opencl/gemm.h"
#include "device/opencl/gemm_plan.h"
#include <string.h>

void tern_cl_prebuild(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                      int lanes)
{
    if (strcmp(file, "matmul_vector") != 0) {
        tern_cl_build_kernel_ahead(place, file, name, dtype, lanes);
        return;
    }
    char title[256];
    tern_text text = {0};
    tern_cl_source source = tern_cl_vector_source(place, name, dtype, &text, title);
    if (!text.failed)
        tern_cl_build_ahead(place, &source);
    tern_text_free(&text);
}

void tern_cl_prebuild_gemm(tern_place *place, const tern_gemm *g)
{
    tern_cl_way way = tern_cl_route_of(place, g, NULL);
    if (way == TERN_CL_PORTABLE)
        tern_builds_add(place, "matmul", "gemm", g->dtype, 0);
    if (way != TERN_CL_OWN)
        return;
    const tern_cl_gemm_plan plan = tern_cl_vector_plan(place, g, g->count[0] * g->count[1]);
    tern_builds_add(place, "matmul_vector", plan.dot ? "gemm_dot" : "gemm", g->dtype, 0);
    if (plan.parts > 1)
        tern_builds_add(place, "matmul_vector", "gemm_sum", g->dtype, 0);
}
