/* saxpy.cl -- helpers without qualifiers, restrict. */
float scaled(float a, float x)
{
    return a * x;
}

__kernel void saxpy(__global const float *restrict x, __global float *restrict y, const float a,
                    const int n)
{
    int i = (int)get_global_id(0);
    if (i < n)
        y[i] = scaled(a, x[i]) + y[i];
}
