/* limits.cl -- numbers by name, and what is not a number. */
__kernel void limits(__global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float largest = -INFINITY, smallest = FLT_MAX;
    for (int k = 0; k <= i; k++) {
        largest = fmax(largest, x[k]);
        smallest = fmin(smallest, x[k]);
    }
    float bad = NAN;
    y[i] = largest - smallest + M_PI_F + M_E_F + (isnan(bad) ? 1.0f : 0.0f) +
           (isinf(INFINITY) ? 2.0f : 0.0f) + (MAXFLOAT == FLT_MAX ? 4.0f : 0.0f) + FLT_EPSILON +
           (INT_MAX == 2147483647 ? 8.0f : 0.0f) + fmax(bad, 16.0f) +
           (isfinite(x[i]) ? 0.5f : 0.0f) + (float)CHAR_BIT + sqrt(M_SQRT2_F);
}
