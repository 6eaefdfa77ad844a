/* halves.cl -- half precision in memory, arithmetic in float. */
__kernel void halves(__global const float *x, __global half *h, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i * 4 >= n)
        return;
    for (int k = 0; k < 4; k++)
        vstore_half(x[4 * i + k] * 3.0f, 4 * i + k, h);
    float4 v = vload_half4(i, h);
    vstore_half4_rte(v * v, i, h);
    y[4 * i] = vload_half(4 * i, h);
    y[4 * i + 1] = v.y;
    vstore2(vload_half2(2 * i + 1, h), 2 * i + 1, y);
}
