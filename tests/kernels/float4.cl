/* float4.cl -- vectors: loads and stores, arithmetic, literals, swizzles. */
__kernel void float4_(__global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i >= n / 4)
        return;
    float4 v = vload4(i, x), w = (float4)(0.5f);
    float4 z = v * 2.0f + w - (float4)(1.0f, 2.0f, 3.0f, 4.0f) / (1.0f + fabs(v));
    z.xy = v.wz;
    z.s3 += v.s0;
    z.zw *= (float2)(2.0f, 0.25f);
    float2 ends = (float2)(v.lo.x, v.hi.y);
    z += (float4)(ends, v.even);
    z.x = dot(v, w) + length(v.xyz);
    z = -z;
    int4 less = z < v;
    z = select(z, z + 1.0f, less);
    if (any(less))
        z.y += 0.125f;
    vstore4(z, i, y);
}
