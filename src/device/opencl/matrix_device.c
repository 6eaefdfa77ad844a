/* matrix_device.c -- the matrix unit that a device reports. */
#include "device/opencl/gemm.h"
#include <CL/cl_ext.h>
#include <string.h>

/* ---- what a device reports ----------------------------------------------------------------- */

/* Returns the smallest sub-group size that Intel's driver reports, or 0. */
static size_t least_sub_group(cl_device_id device)
{
    enum { SUB_GROUP_SIZES_INTEL = 0x4108 };
    size_t sizes[16] = {0}, bytes = 0, least = 0;
    if (CL(GetDeviceInfo(device, SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes, &bytes)) != CL_SUCCESS)
        return 0;
    for (size_t i = 0; i < bytes / sizeof *sizes && i < 16; i++)
        least = !least || sizes[i] < least ? sizes[i] : least;
    return least;
}

/* Returns the way of AMD's device. AMD's own drivers name it by its architecture, "gfx1100" or
 * "gfx90a:sramecc+:xnack-". */
static int way_of_amd(const char *name)
{
    static const struct {
        const char *begins;
        int way;
    } rows[] = {{"gfx11", TERN_MATRIX_RDNA3},
                {"gfx12", TERN_MATRIX_RDNA4},
                {"gfx90a", TERN_MATRIX_CDNA},
                {"gfx94", TERN_MATRIX_CDNA},
                {"gfx95", TERN_MATRIX_CDNA}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(name, rows[i].begins, strlen(rows[i].begins)) == 0)
            return rows[i].way;
    return TERN_MATRIX_PLAIN;
}

int tern_cl_matrix_claimed(cl_device_id device, const char *name)
{
    cl_uint major = 0;
    if (tern_cl_has_extension(device, "cl_nv_device_attribute_query") &&
        CL(GetDeviceInfo(device, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, sizeof major, &major,
                         NULL)) == CL_SUCCESS)
        return major >= 8 ? TERN_MATRIX_MMA : TERN_MATRIX_PLAIN;
    if (tern_cl_has_extension(device, "cl_intel_subgroup_matrix_multiply_accumulate") &&
        tern_cl_has_extension(device, "cl_intel_subgroup_local_block_io")) {
        size_t least = least_sub_group(device);
        return least == 8 ? TERN_MATRIX_XE8 : least == 16 ? TERN_MATRIX_XE16 : TERN_MATRIX_PLAIN;
    }
    return way_of_amd(name);
}
