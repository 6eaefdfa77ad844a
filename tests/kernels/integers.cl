/* integers.cl -- integers of all sizes, and functions of their bits. */
__kernel void integers(__global const int *x, __global int *y, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    uint u = (uint)x[i] * 2654435761u + 1u;
    ulong wide = (ulong)u * 6364136223846793005ul;
    uchar small = (uchar)u;
    char negative = (char)small;
    ushort4 four = (ushort4)(small, 2, 3, 4) << (ushort4)(1);
    u ^= rotate(u, 13u) + popcount(u) + clz(u | 1u) + mul_hi(u, 0x9e3779b9u);
    u += hadd(u, 7u) + rhadd((uint)small, 4u) + add_sat((uint)4294967290u, (uint)small) +
         sub_sat((uint)small, 200u);
    uint2 pair = (uint2)(u, (uint)(wide >> 32)) % 1000u;
    long sum = (long)pair.x * 1000 + pair.y - (negative >> 1) + four.x * 3 + four.w;
    y[i] = (int)(sum % 1000003) + (int)(four.s1 & 3) + (i << 2 | 1);
}
