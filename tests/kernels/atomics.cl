/* atomics.cl -- every atomic of 32 bits; floats are added by comparing and swapping. */
void add_float(volatile __global float *to, float value)
{
    union {
        uint u;
        float f;
    } was, now;
    do {
        was.f = *to;
        now.f = was.f + value;
    } while (atomic_cmpxchg((volatile __global uint *)to, was.u, now.u) != was.u);
}

__kernel void atomics(__global const int *x, __global int *y, __global float *sum, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    atomic_add(&y[0], x[i]);
    atomic_sub(&y[1], x[i]);
    atomic_inc(&y[2]);
    atomic_dec(&y[3]);
    atomic_max(&y[4], x[i]);
    atomic_min(&y[5], x[i]);
    atomic_or((volatile __global uint *)&y[6], 1u << (x[i] & 15));
    atomic_xor(&y[7], x[i]);
    atomic_and(&y[8], ~(1 << (i & 7)));
    atomic_xchg(&y[9], 5);
    add_float(sum, (float)(x[i] % 8));
}
