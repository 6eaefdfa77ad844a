/* stencil.cl -- pixels: a blur of four channels with clamped edges. */
uint4 pixel(__global const uchar *image, int2 at, int2 size)
{
    at = clamp(at, (int2)(0), size - 1);
    return convert_uint4(vload4(at.y * size.x + at.x, image));
}

__kernel void stencil(__global const uchar *image, __global uchar *out, int width, int height)
{
    int2 at = (int2)(get_global_id(0), get_global_id(1)), size = (int2)(width, height);
    if (at.x >= width || at.y >= height)
        return;
    uint4 sum = (uint4)(4u);
    for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x)
            sum += pixel(image, at + (int2)(x, y), size) * (uint)((2 - abs(x)) * (2 - abs(y)));
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    vstore4(convert_uchar4(min(sum >> 4, 255u)), at.y * width + at.x, out);
}
