/* select.cl -- OpenCL's common and integer functions. */
__kernel void choose(__global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float v = x[i];
    int k = mad24(i, 3, 7) - mul24(i, 2), low = min(k, 40), high = max(low, 3);
    float a = clamp(v, -0.5f, 0.5f), b = mix(a, 2.0f, 0.25f),
          c = step(0.0f, v) + smoothstep(-1.0f, 1.0f, v);
    float d = select(a, b, (int)(v > 0.1f)), e = sign(v) + degrees(v) * 0.01f + radians(v);
    float2 two = clamp((float2)(v, b), 0.0f, 1.0f) + max((float2)(v), 0.25f) +
                 mix((float2)(a, b), (float2)(c, d), 0.5f);
    y[i] = a + b * c - d + e + (float)(abs(low - high) + (int)abs_diff(k, 20)) + two.x - two.y +
           fmax(v, 0.25f) + fmin(v, 0.75f) + fma(v, a, b) + pown(a, 3) + rsqrt(v * v + 1.0f) +
           hypot(a, b);
}
