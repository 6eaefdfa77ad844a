/* histogram.cl -- atomics on local and global integers. */
#pragma OPENCL EXTENSION cl_khr_global_int32_base_atomics : enable
#define BINS 16

kernel void histogram(global const int *x, volatile global int *bins, const int n)
{
    local int own[BINS];
    for (int i = get_local_id(0); i < BINS; i += get_local_size(0))
        own[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&own[(uint)x[i] % BINS]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < BINS; i += get_local_size(0))
        atomic_add(&bins[i], own[i]);
}
