/* mandelbrot.cl -- complex numbers as float2. */
float2 squared(float2 z)
{
    return (float2)(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y);
}

__kernel void mandelbrot(__global int *steps, int width, int height)
{
    int x = get_global_id(0), y = get_global_id(1), k;
    if (x >= width || y >= height)
        return;
    float2 size = (float2)((float)width, (float)height), at = (float2)((float)x, (float)y);
    float2 c = at / size * (float2)(3.0f, 2.0f) - (float2)(2.25f, 1.0f), z = 0.0f;
    for (k = 0; k < 50; k++) {
        z = squared(z) + c;
        if (dot(z, z) > 4.0f)
            break;
    }
    steps[y * width + x] = k;
}
