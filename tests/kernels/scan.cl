/* scan.cl -- sums of all before it in a group, with barriers in a helper. */
int scan_group(__local int *from, int lane, int size)
{
    for (int by = 1; by < size; by *= 2) {
        int add = lane >= by ? from[lane - by] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        from[lane] += add;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return from[lane];
}

__kernel void scan(__global const int *x, __global int *y, __local int *scratch, int n)
{
    int i = get_global_id(0), lane = get_local_id(0);
    scratch[lane] = i < n ? x[i] % 10 : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int sum = scan_group(scratch, lane, get_local_size(0));
    if (i < n)
        y[i] = sum;
}
