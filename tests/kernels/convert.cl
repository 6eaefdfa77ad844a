/* convert.cl -- conversions, rounded and saturated, and bits seen as another type. */
__kernel void convert(__global const float *x, __global int *y, int n)
{
    int i = get_global_id(0);
    if (i >= n / 4)
        return;
    float4 v = vload4(i, x) * 100.0f;
    uchar4 c = convert_uchar4_sat_rte(v);
    int4 down = convert_int4_rtn(v);
    int up = convert_int_rtp(v.x), sat = convert_short_sat(v.y * 1000.0f);
    float back = convert_float(down.z) + convert_float4(c).w;
    uint bits = as_uint(v.x) ^ as_uint4(v).y;
    y[4 * i] = c.x + 256 * c.y + (as_int(back) & 0xffff);
    y[4 * i + 1] = down.x * 31 + up;
    y[4 * i + 2] = sat;
    y[4 * i + 3] = (int)(bits >> 3) + convert_int(as_float(0x3f800000));
}
