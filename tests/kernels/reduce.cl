/* reduce.cl -- sums of groups in local memory that the launch gives. */
__kernel void reduce(__global const float *x, __global float *sums, __local float *scratch, int n)
{
    uint lane = get_local_id(0);
    float sum = 0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        sum += x[i];
    scratch[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_way = get_local_size(0) / 2; half_way > 0; half_way >>= 1) {
        if (lane < half_way)
            scratch[lane] += scratch[lane + half_way];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0)
        sums[get_group_id(0)] = scratch[0];
}
