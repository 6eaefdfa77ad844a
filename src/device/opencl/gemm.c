/* gemm.c -- matrix products on OpenCL devices. */
#include "device/opencl/opencl.h"

tern_status tern_cl_gemm(tern_place *place, const tern_gemm *g)
{
    (void)g;
    return tern_fail(TERN_ERR_UNSUPPORTED, "%s: matrix products", tern_place_info(place)->device);
}

void tern_cl_gemm_close(tern_place *place)
{
    (void)place;
}
