/* tiles.cl -- a matrix product by tiles in local memory, with the group that it requires. */
#define TILE 8

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void tiles(__global const float *a,
                                                                         __global const float *b,
                                                                         __global float *c, int n)
{
    __local float left[TILE][TILE + 1], right[TILE][TILE + 1];
    const int x = get_local_id(0), y = get_local_id(1);
    const int column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int k = 0; k < n; k += TILE) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int i = 0; i < TILE; i++)
            sum = mad(left[y][i], right[i][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
