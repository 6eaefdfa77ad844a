/* gemm.c -- matrix products on the host. */
#include "device/cpu/cpu.h"

tern_status tern_cpu_gemm(tern_place *place, const tern_gemm *g)
{
    (void)place;
    (void)g;
    return tern_fail(TERN_ERR_UNSUPPORTED, "gemm");
}
