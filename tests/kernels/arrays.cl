/* arrays.cl -- parameters that are written as arrays, which are pointers. */
#define SCRATCH __local float scratch[]

__constant float halves[2] = {0.5f, 1.5f};

float sum_of(const __local float values[], local float pairs[][2], __constant float weights[3],
             int n)
{
    __local float(*second)[2] = pairs + 1;
    float sum = 0.0f;
    for (int i = 0; i < n; i++)
        sum += values[i] * weights[i % 3] * halves[i % 2] + second[i - 1][i % 2];
    return sum;
}

__kernel void arrays(__global const float x[], __constant float weights[3], SCRATCH,
                     __local float pairs[][2], __local float (*again)[2], __global float sums[],
                     int n)
{
    __local float most[4];
    int i = get_global_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    scratch[lane] = i < n ? x[i] : 0.0f;
    pairs[lane][0] = 2.0f * scratch[lane];
    pairs[lane][1] = again[lane][0] = -scratch[lane];
    again[lane][1] = 1.0f;
    if (lane < 4)
        most[lane] = scratch[lane] * scratch[lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0)
        sums[get_group_id(0)] =
            sum_of(scratch, pairs, weights, lanes) + sum_of(scratch, again, weights, 3) + most[3];
}
