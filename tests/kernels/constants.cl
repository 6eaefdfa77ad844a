/* constants.cl -- constant memory: tables, pointers to them. */
__constant float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
constant int offsets[] = {-2, -1, 0, 1, 2};

float weigh(__constant float *w, __global const float *x, int at, int n)
{
    float sum = 0;
    for (int k = 0; k < 5; k++)
        sum += w[k] * x[clamp(at + offsets[k], 0, n - 1)];
    return sum;
}

__kernel void constants(__constant float *bias, __global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = weigh(weights, x, i, n) + bias[i % 3];
}
