/* native.cl -- functions with fewer bits. */
__kernel void native(__global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i < n) {
        float v = fabs(x[i]) + 0.5f;
        y[i] = native_sqrt(v) + native_recip(v) + native_exp(-v) + native_log(v) +
               native_sin(v) * native_cos(v) + native_rsqrt(v) + half_sqrt(v) +
               native_divide(1.0f, v) + native_powr(v, 0.5f) + native_exp2(v) + half_recip(v);
    }
}
